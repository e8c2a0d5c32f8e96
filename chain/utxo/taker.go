package utxo

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// taker is the transaction that spends an output, in a block.
type taker struct {
	tx    *tx
	block chain.Block
}

// maxTaken bounds what is remembered of spends found.
const maxTaken = 4096

// takers finds, in blocks, what spends the outputs that the questions spend.
// Nodes keep no index of that. So it is asked which outputs are gone, where they
// were made, and the blocks are read from the head back to there, at most
// Options.SearchBlocks of them, and none that was read before in vain. A pruned node
// does not tell where they were made, and ends the search at the oldest block that it has.
func (c *Client) takers(ctx context.Context, head chain.Block, qs []*question) (map[string]taker, error) {
	found := map[string]taker{}
	missing, err := c.gone(ctx, qs)
	if err != nil || len(missing) == 0 {
		return found, err
	}
	if err := c.recall(ctx, missing, found); err != nil || len(missing) == 0 {
		return found, err
	}
	var lowest int64
	if !c.o.Pruned {
		if lowest, err = c.made(ctx, missing); err != nil || len(missing) == 0 {
			return found, err
		}
	}
	lowest = max(lowest, head.Height-int64(c.o.SearchBlocks)+1)
	passed := c.inVain(missing)
	asked := maps.Clone(missing)
	hash := head.Hash
	for height := head.Height; height >= lowest; height-- {
		maps.DeleteFunc(missing, func(key [36]byte, _ string) bool { return passed[key] == hash })
		if len(missing) == 0 {
			break
		}
		blocks, err := c.blocks(ctx, height, []string{hash})
		if c.o.Pruned && dropped(err) {
			break
		}
		if err != nil {
			return nil, err
		}
		b := &blocks[0]
		for i := range b.txs {
			t := &b.txs[i]
			t.inputs(func(o []byte) bool {
				key := [36]byte(o)
				if s, ok := missing[key]; ok {
					delete(missing, key)
					found[s] = taker{t.keep(), b.Block}
				}
				return true
			})
		}
		hash = b.Parent
	}
	c.remember(found)
	c.pass(head, asked, found)
	return found, nil
}

// inVain is the hash of the block down from which no spend of an output was found.
func (c *Client) inVain(missing map[[36]byte]string) map[[36]byte]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make(map[[36]byte]string, len(missing))
	for key := range missing {
		if hash, ok := c.passed[key]; ok {
			out[key] = hash
		}
	}
	return out
}

// pass remembers which of the outputs nothing on the chain of head spends.
func (c *Client) pass(head chain.Block, asked map[[36]byte]string, found map[string]taker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.passed)+len(asked) > maxTaken {
		clear(c.passed)
	}
	for key, s := range asked {
		if _, ok := found[s]; ok {
			delete(c.passed, key)
		} else {
			c.passed[key] = head.Hash
		}
	}
}

// keep copies a transaction out of its block.
func (t *tx) keep() *tx {
	own, err := readTx(t.stripped(), false)
	if err != nil {
		return t
	}
	own.pegs = t.pegs
	return &own
}

// wireOutpoint is an outpoint as it is in a transaction.
func wireOutpoint(s string) (out [36]byte, id string, n uint32, err error) {
	at, err := parseOutpoint(s)
	if err != nil {
		return out, "", 0, err
	}
	copy(out[:], at.Hash[:])
	binary.LittleEndian.PutUint32(out[32:], at.Index)
	return out, at.Hash.String(), at.Index, nil
}

// gone lists the outputs that are not unspent at the head.
func (c *Client) gone(ctx context.Context, qs []*question) (map[[36]byte]string, error) {
	var calls []*transport.Call
	var asked []string
	for _, q := range qs {
		for _, s := range q.spends {
			_, id, n, err := wireOutpoint(s)
			if err != nil {
				return nil, err
			}
			calls, asked = append(calls, transport.NewCall("gettxout", id, n, false)), append(asked, s)
		}
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	out := map[[36]byte]string{}
	for i, k := range calls {
		if k.Err != nil {
			return nil, k.Err
		}
		if k.Null() {
			key, _, _, _ := wireOutpoint(asked[i])
			out[key] = asked[i]
		}
	}
	return out, nil
}

// made finds the lowest block that made one of the outputs, and drops those that
// are in no block.
func (c *Client) made(ctx context.Context, missing map[[36]byte]string) (int64, error) {
	var keys [][36]byte
	var ids []string
	for key := range missing {
		keys, ids = append(keys, key), append(ids, hexHash([32]byte(key[:32])))
	}
	infos, err := c.lookUp(ctx, ids...)
	if err != nil {
		return 0, err
	}
	lowest := int64(1) << 62
	for i, info := range infos {
		if info == nil || info.BlockHash == "" {
			delete(missing, keys[i])
			continue
		}
		b, err := c.blockOf(ctx, info.BlockHash)
		if errors.Is(err, follow.ErrTorn) {
			delete(missing, keys[i])
			continue
		}
		if err != nil {
			return 0, err
		}
		lowest = min(lowest, b.Height)
	}
	return lowest, nil
}

// recall answers from what was found before, where its block is still on the
// chain.
func (c *Client) recall(ctx context.Context, missing map[[36]byte]string, found map[string]taker) error {
	known := map[[36]byte]taker{}
	c.mu.Lock()
	for key, s := range missing {
		if t, ok := c.taken[s]; ok {
			known[key] = t
		}
	}
	c.mu.Unlock()
	for key, t := range known {
		at := transport.NewCall("getblockhash", t.block.Height)
		if err := c.node.Do(ctx, at); err != nil {
			return err
		}
		if outOfRange(at.Err) {
			continue
		}
		h, err := hashOf(at)
		if err != nil {
			return fmt.Errorf("utxo: where %s was spent: %w", missing[key], err)
		}
		if h == t.block.Hash {
			found[missing[key]] = t
			delete(missing, key)
		}
	}
	return nil
}

func (c *Client) remember(found map[string]taker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.taken)+len(found) > maxTaken {
		clear(c.taken)
	}
	for s, t := range found {
		c.taken[s] = t
	}
}
