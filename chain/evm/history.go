package evm

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
)

// History lists the executed transfers to an address from height from to height
// to, both included: tokens by eth_getLogs over ranges, the native coin by
// halving the range wherever balance or nonce changed. What that points at is
// then read like any other block, so the answer has the identities of Scan. It
// needs a node that keeps the state of these blocks; without it, and over more
// blocks than Options.LogSpan, the error says so.
func (c *Client) History(ctx context.Context, a chain.Address, from, to int64) ([]chain.Transfer, error) {
	owner, err := c.own(a)
	if err != nil {
		return nil, err
	}
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	if from = max(from, 1); to < from {
		return nil, nil
	}
	if tip.Head.Height < to {
		return nil, fmt.Errorf("%w: its head is %d, asked up to %d", chain.ErrBehind, tip.Head.Height, to)
	}
	heights := map[int64]bool{}
	if err := c.tokenBlocks(ctx, owner, from, to, heights); err != nil {
		return nil, err
	}
	if err := c.nativeBlocks(ctx, owner, from, to, heights); err != nil {
		return nil, err
	}
	return c.blocksAt(ctx, follow.Only{a}, slices.Sorted(maps.Keys(heights)))
}

func (c *Client) blocksAt(ctx context.Context, w chain.Watch, heights []int64) ([]chain.Transfer, error) {
	var out []chain.Transfer
	for _, h := range heights {
		k := transport.NewCall("eth_getBlockByNumber", quantity(h), true)
		if err := c.node.Do(ctx, k); err != nil {
			return nil, err
		}
		b, err := blockOf(k)
		if err != nil {
			return nil, err
		}
		if b.Height != h {
			return nil, fmt.Errorf("%w: asked for block %d, got %d", chain.ErrNode, h, b.Height)
		}
		scanned, err := c.match(ctx, []block{b}, w)
		if err != nil {
			return nil, err
		}
		out = append(out, scanned[0].Transfers...)
	}
	return out, nil
}

// tokenBlocks adds the heights with a Transfer log to the owner. The range is
// halved where the node finds it too much.
func (c *Client) tokenBlocks(ctx context.Context, owner common.Address, from, to int64, heights map[int64]bool) error {
	span := c.o.LogSpan
	for from <= to {
		end := min(to, from+span-1)
		k := transport.NewCall("eth_getLogs", map[string]any{
			"fromBlock": quantity(from), "toBlock": quantity(end),
			"topics": []any{transferTopic, nil, common.BytesToHash(owner[:])},
		})
		known := transport.NewCall("eth_getBlockByNumber", quantity(end), false)
		if err := c.node.Do(ctx, known, k); err != nil {
			return err
		}
		// One that has not come so far answers with nothing, not with an error.
		if b, err := blockOf(known); err != nil {
			return err
		} else if b.Height != end {
			return fmt.Errorf("%w: asked for block %d, got %d", chain.ErrNode, end, b.Height)
		}
		if k.Err != nil {
			if span == 1 || unsupported(k.Err) {
				return k.Err
			}
			span = max(1, span/2)
			continue
		}
		w := newWalk(k.Out)
		w.Array(func() {
			w.Object(func(key []byte) {
				if string(key) == "blockNumber" {
					heights[w.number()] = true
					return
				}
				w.Skip()
			})
		})
		if err := w.End(); err != nil {
			return err
		}
		from = end + 1
	}
	return nil
}

// mark is what an account looks like after a block.
type mark struct{ balance, nonce *big.Int }

func (m mark) same(o mark) bool { return m.balance.Cmp(o.balance) == 0 && m.nonce.Cmp(o.nonce) == 0 }

func (c *Client) mark(ctx context.Context, owner common.Address, height int64) (mark, error) {
	b, n := transport.NewCall("eth_getBalance", owner, quantity(height)), transport.NewCall("eth_getTransactionCount", owner, quantity(height))
	if err := c.node.Do(ctx, b, n); err != nil {
		return mark{}, err
	}
	balance, err := quantityOf(b)
	if err != nil {
		return mark{}, err
	}
	nonce, err := quantityOf(n)
	return mark{balance, nonce}, err
}

// nativeBlocks adds the heights at which the balance or nonce changed. Money that
// came and went between two marks took a nonce with it.
func (c *Client) nativeBlocks(ctx context.Context, owner common.Address, from, to int64, heights map[int64]bool) error {
	lo, err := c.mark(ctx, owner, from-1)
	if stateGone(err) && to-from < c.o.LogSpan {
		for h := from; h <= to; h++ {
			heights[h] = true
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("evm: the state of block %d is needed, ask a node that keeps it (an archive): %w", from-1, err)
	}
	hi, err := c.mark(ctx, owner, to)
	if err != nil {
		return err
	}
	return c.halve(ctx, owner, from-1, to, lo, hi, heights)
}

func (c *Client) halve(ctx context.Context, owner common.Address, lo, hi int64, at, end mark, heights map[int64]bool) error {
	if at.same(end) {
		return nil
	}
	if hi-lo == 1 {
		heights[hi] = true
		return nil
	}
	mid := lo + (hi-lo)/2
	m, err := c.mark(ctx, owner, mid)
	if err != nil {
		return err
	}
	if err := c.halve(ctx, owner, lo, mid, at, m, heights); err != nil {
		return err
	}
	return c.halve(ctx, owner, mid, hi, m, end, heights)
}
