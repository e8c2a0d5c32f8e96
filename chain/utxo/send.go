package utxo

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"slices"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// signed reads a signed transaction of ours. An error here is proof: no node of
// any network takes the bytes.
func signed(id string, raw []byte) (*wire.MsgTx, error) {
	t := wire.NewMsgTx(2)
	r := bytes.NewReader(raw)
	if err := t.Deserialize(r); err != nil || r.Len() > 0 {
		return nil, fmt.Errorf("%w: not a transaction", chain.ErrRejected)
	}
	seen := map[wire.OutPoint]bool{}
	for _, in := range t.TxIn {
		if seen[in.PreviousOutPoint] {
			return nil, fmt.Errorf("%w: it spends %s twice", chain.ErrRejected, in.PreviousOutPoint)
		}
		seen[in.PreviousOutPoint] = true
	}
	if len(t.TxIn) == 0 || len(t.TxOut) == 0 {
		return nil, fmt.Errorf("%w: it spends or pays nothing", chain.ErrRejected)
	}
	if t.TxHash().String() != id {
		return nil, fmt.Errorf("%w: the bytes are those of another transaction", chain.ErrRejected)
	}
	return t, nil
}

// Broadcast sends the stored bytes. The node's words prove nothing: where it
// refuses, what counts is whether it has this very transaction, and everything
// else is an unknown outcome. ErrRejected comes only from what can be seen in
// the bytes themselves.
func (c *Client) Broadcast(ctx context.Context, s chain.Stored) error {
	if s.Network() != string(c.o.Network) {
		return fmt.Errorf("utxo: a transaction of %s cannot be sent on %s", s.Network(), c.o.Network)
	}
	t, err := signed(s.Tx(), s.Raw())
	if err != nil {
		return err
	}
	if _, err := c.height(ctx); err != nil {
		return err
	}
	k := transport.NewCall("sendrawtransaction", hex.EncodeToString(s.Raw()))
	if err := c.node.Do(ctx, k); err != nil {
		return err
	}
	if k.Err == nil {
		if id, err := hashOf(k); err != nil || id != s.Tx() {
			return fmt.Errorf("%w: it took the transaction and named another", chain.ErrNode)
		}
		return nil
	}
	if has, err := c.has(ctx, s.Tx(), len(t.TxOut)); has && err == nil {
		return nil
	}
	return k.Err
}

// has reports whether the node has a transaction. A pruned node shows one in a block by what
// nothing has spent of it.
func (c *Client) has(ctx context.Context, id string, outputs int) (bool, error) {
	info, err := c.lookUp(ctx, id)
	if err != nil || info[0] != nil || !c.o.Pruned {
		return err == nil && info[0] != nil, err
	}
	calls := make([]*transport.Call, outputs)
	for i := range calls {
		calls[i] = transport.NewCall("gettxout", id, i, false)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return false, err
	}
	return slices.ContainsFunc(calls, func(k *transport.Call) bool { return k.Err == nil && !k.Null() }), nil
}

// txInfo is what a node says of a transaction that it has.
type txInfo struct {
	Hex           string `json:"hex"`
	BlockHash     string `json:"blockhash"`
	Confirmations int64  `json:"confirmations"`
}

// lookUp asks for transactions, in their order: nil for one that the node has
// neither in its mempool nor in a block of its chain. A pruned node tells of its
// mempool alone.
func (c *Client) lookUp(ctx context.Context, ids ...string) ([]*txInfo, error) {
	out := make([]*txInfo, len(ids))
	calls := make([]*transport.Call, len(ids))
	for i, id := range ids {
		calls[i] = transport.NewCall("getrawtransaction", id, 1)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	for i, k := range calls {
		if unknownTx(k.Err) || noIndex(k.Err) && c.o.Pruned {
			continue
		}
		if noIndex(k.Err) {
			return nil, errNoIndex
		}
		var info txInfo
		if err := k.Into(&info); err != nil {
			return nil, err
		}
		if info.BlockHash != "" && info.Confirmations < 1 {
			continue // in a block that is not on the chain any more
		}
		out[i] = &info
	}
	return out, nil
}

// decode reads the bytes of a transaction that a node gave.
func (c *Client) decode(i *txInfo) (tx, error) {
	raw, err := hex.DecodeString(i.Hex)
	if err != nil {
		return tx{}, fmt.Errorf("%w: a transaction is not hex", follow.ErrTorn)
	}
	t, err := readTx(raw, c.p.MWEB)
	if err != nil {
		return tx{}, fmt.Errorf("%w: %w", follow.ErrTorn, err)
	}
	return t, nil
}
