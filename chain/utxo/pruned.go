package utxo

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// withoutIndex is sources on a node that keeps no index of transactions. Coins are checked against
// its set of unspent outputs, and coins that wait to be mined against the waiting transactions that
// make them. A transaction that the packet has to keep is read from its block. A coin that the node
// does not know may be spent: without its transaction Build goes on, as it does beside an index, and
// Status tells.
func (c *Client) withoutIndex(ctx context.Context, p *packet, whole bool) error {
	needs := func(i int) bool {
		k, _ := classify(p.from[i].out.PkScript)
		return whole || k != p2wpkh && k != p2tr
	}
	coins, err := c.unspentOutputs(ctx, p)
	if err != nil {
		return err
	}
	var waiting []int
	blocks := map[int64]block{}
	for i := range coins {
		switch at := p.tx.TxIn[i].PreviousOutPoint; {
		case coins[i].out == nil:
			waiting = append(waiting, i)
		case needs(i):
			err = c.fromBlock(ctx, p, i, coins[i].height, blocks)
		default:
			err = sameCoin(at, coins[i].out, p.from[i].out)
		}
		if err != nil {
			return err
		}
	}
	calls := make([]*transport.Call, len(waiting))
	for n, i := range waiting {
		calls[n] = transport.NewCall("getrawtransaction", p.tx.TxIn[i].PreviousOutPoint.Hash.String(), 0)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return err
	}
	for n, i := range waiting {
		at := p.tx.TxIn[i].PreviousOutPoint
		if missing := unknownTx(calls[n].Err) || noIndex(calls[n].Err); missing && !needs(i) {
			continue
		} else if missing {
			return fmt.Errorf("%w: it has no unspent coin %s", chain.ErrNode, at)
		}
		t, err := c.given(calls[n], at.Hash.String())
		if err != nil {
			return err
		}
		if err := p.madeBy(i, &t); err != nil {
			return err
		}
		if !needs(i) {
			p.from[i].tx = nil
		}
	}
	return nil
}

// unspentOutput is an output in the node's set of those that no block spends.
type unspentOutput struct {
	out    *wire.TxOut // nil = it is not there
	height int64       // of the block that made it
}

// unspentOutputs reads what a packet spends from the node's set.
func (c *Client) unspentOutputs(ctx context.Context, p *packet) ([]unspentOutput, error) {
	calls := make([]*transport.Call, len(p.tx.TxIn))
	for i, in := range p.tx.TxIn {
		calls[i] = transport.NewCall("gettxout", in.PreviousOutPoint.Hash.String(), in.PreviousOutPoint.Index, false)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	heights := map[string]int64{}
	out := make([]unspentOutput, len(calls))
	for i, k := range calls {
		if k.Err == nil && k.Null() {
			continue
		}
		var said struct {
			Best          string      `json:"bestblock"`
			Confirmations int64       `json:"confirmations"`
			Value         json.Number `json:"value"`
			Script        struct {
				Hex string `json:"hex"`
			} `json:"scriptPubKey"`
		}
		if err := k.Into(&said); err != nil {
			return nil, err
		}
		value, err := units(string(said.Value))
		script, bad := hex.DecodeString(said.Script.Hex)
		if err != nil || bad != nil {
			return nil, fmt.Errorf("%w: it does not say what %s is worth", chain.ErrNode, p.tx.TxIn[i].PreviousOutPoint)
		}
		if _, known := heights[said.Best]; !known {
			b, err := c.blockOf(ctx, said.Best)
			if err != nil {
				return nil, err
			}
			heights[said.Best] = b.Height
		}
		out[i] = unspentOutput{wire.NewTxOut(value, script), heights[said.Best] - said.Confirmations + 1}
	}
	return out, nil
}

// errDropped: the node keeps a block no more that a payload needs.
var errDropped = errors.New("the node has dropped the block that made it: connect one that keeps it")

// fromBlock reads the transaction that made a coin out of its block. blocks are those that
// were read already.
func (c *Client) fromBlock(ctx context.Context, p *packet, i int, height int64, blocks map[int64]block) error {
	at := p.tx.TxIn[i].PreviousOutPoint
	b, read := blocks[height]
	if !read {
		hashes, err := c.hashes(ctx, height, 1)
		if err != nil {
			return err
		}
		all, err := c.blocks(ctx, height, hashes)
		if dropped(err) {
			err = fmt.Errorf("utxo: coin %s: %w", at, errDropped)
		}
		if err != nil {
			return err
		}
		b = all[0]
		blocks[height] = b
	}
	n := slices.IndexFunc(b.txs, func(t tx) bool { return t.id == at.Hash })
	if n < 0 {
		return fmt.Errorf("%w: block %s did not make coin %s", chain.ErrNode, b.Hash, at)
	}
	return p.madeBy(i, &b.txs[n])
}

// given is the transaction that an answer holds.
func (c *Client) given(k *transport.Call, id string) (tx, error) {
	raw, err := bytesOf(k)
	if err != nil {
		return tx{}, err
	}
	t, err := readTx(raw, c.p.MWEB)
	if err != nil || hexHash(t.id) != id {
		return tx{}, fmt.Errorf("%w: it does not give transaction %s", chain.ErrNode, id)
	}
	return t, nil
}
