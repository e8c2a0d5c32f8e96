package tron

import (
	"context"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
)

// java-tron keeps the calls that contracts make of others only where vm.saveInternalTx is
// on, which it is not by default, and a node does not say whether it is. TRX that contracts
// pay is in these calls alone. But each call of another contract is one of them, and a log
// names the contract that wrote it: a log of one that the transaction did not call itself,
// and no inner call, shows a node that keeps none.

// keeping is what is known of whether the node keeps inner calls. One goroutine at a time has
// it: the one whose value is in turn.
type keeping struct {
	turn   chan struct{} // has room for one value
	known  bool          // or was looked for
	silent bool          // it kept none the last time that one was to be seen
}

// lookBack is how many blocks before the first ones are looked at where those do not say.
// On the main network nearly each block does.
const lookBack = 20

// sign is what a receipt shows of that.
type sign int

const (
	nothing sign = iota // no contract was called that could pay TRX
	unclear             // one was, and need not have called another
	kept
	unkept
)

func (c *Client) sign(b *body, x *info) sign {
	called, ok := accountFrom(b.to)
	switch {
	case len(x.internal) > 0:
		return kept
	case b.kind == kindCreate && !x.failed:
		return unclear
	case b.contracts != 1 || b.kind != kindTrigger || !ok || x.failed:
		return nothing
	}
	for i := range x.logs {
		if x.logs[i].contract != called {
			return unkept
		}
	}
	if c.tokens[called] != nil {
		return nothing
	}
	return unclear
}

// signs is what the receipts of blocks show together.
func (c *Client) signs(rs []*reading) (s sign, at string) {
	for _, r := range rs {
		for i := range r.txs {
			t := c.sign(&r.bodies[i], r.infos[r.txs[i].id])
			if t == unkept {
				return unkept, fmt.Sprintf("transaction %x of block %s", r.txs[i].id, r.Hash)
			}
			s = max(s, t)
		}
	}
	return s, ""
}

// keepsCalls refuses blocks in which TRX that contracts paid may be missing.
func (c *Client) keepsCalls(ctx context.Context, rs []*reading) error {
	if c.o.NoInternal {
		return nil
	}
	s, at := c.signs(rs)
	if s == nothing {
		return nil
	}
	select {
	case c.keeping.turn <- struct{}{}:
		defer func() { <-c.keeping.turn }()
	case <-ctx.Done(): // another goroutine looks at earlier blocks, which takes its time
		return fmt.Errorf("%w: %w", chain.ErrNode, ctx.Err())
	}
	if s == unclear && !c.keeping.known {
		before, err := c.before(ctx, rs[0].Block)
		if err != nil {
			return err
		}
		if earlier, where := c.signs(before); earlier > unclear {
			s, at = earlier, where
		}
		c.keeping.known = true
	}
	switch {
	case s == kept:
		c.keeping.known, c.keeping.silent = true, false
	case s == unkept:
		c.keeping.known, c.keeping.silent = true, true
	case s == unclear && c.keeping.silent:
		at = "a transaction of block " + rs[0].Hash + " or of one after it"
	}
	if at == "" {
		return nil
	}
	return fmt.Errorf("%w: it keeps no inner calls of contracts, as %s shows: TRX that contracts pay would be lost: "+
		"switch vm.saveInternalTx on, or ask another node; Options.NoInternal does without such TRX", chain.ErrNode, at)
}

// before reads some blocks before one.
func (c *Client) before(ctx context.Context, b chain.Block) ([]*reading, error) {
	n := min(lookBack, b.Height-1)
	if n <= 0 {
		return nil, nil
	}
	last, err := c.at(ctx, b.Height-1-n)
	if err != nil {
		return nil, err
	}
	var all []*reading
	for at := last.Block; at.Height < b.Height-1; {
		blocks, err := c.blocks(ctx, at, int(min(b.Height-1-at.Height, int64(c.o.Group))))
		if err != nil {
			return nil, err
		}
		rs, err := c.read(ctx, blocks)
		if err != nil {
			return nil, err
		}
		all, at = append(all, rs...), blocks[len(blocks)-1].Block
	}
	return all, nil
}
