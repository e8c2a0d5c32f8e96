package sim

import (
	"context"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Broadcast implements chain.Client. Known already, in the mempool or in a
// block, is success. Only bytes that are no transaction of this chain, or not
// signed by the owners of what they spend, are ErrRejected: a nonce too low, a
// spent input or too low a fee can all turn with the next reorg.
func (k *client) Broadcast(ctx context.Context, s chain.Stored) error {
	c := k.c()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := k.n.call(ctx); err != nil {
		return err
	}
	t, err := newTx(s.Raw(), c.next())
	if err == nil {
		err = c.verify(t)
	}
	if err == nil && (s.Tx() != t.Hash || s.Network() != string(c.opt.Network)) {
		err = fmt.Errorf("sim: the bytes are transaction %s of %s", t.Hash, c.opt.Network)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", chain.ErrRejected, err)
	}
	return k.n.take(t)
}

// take lets the node's faults act on a good transaction.
func (n *Node) take(t *tx) error {
	if known := n.c.txs[t.Hash]; known != nil {
		t = known
	}
	if n.refuse > 0 {
		n.refuse--
		if n.refuses != nil {
			return n.refuses
		}
		return errBroken
	}
	n.c.remember(t)
	if n.swallow > 0 {
		n.swallow--
		return nil
	}
	err := n.c.admit(t, false)
	if n.lose > 0 {
		n.lose--
		return fmt.Errorf("%w: %w", chain.ErrNode, errBroken)
	}
	return err
}

// Status implements chain.Client.
func (k *client) Status(ctx context.Context, attempts ...chain.Attempt) (out []chain.Status, err error) {
	err = k.ask(ctx, func(v view) error {
		final := k.n.finalAt(v.head().Height)
		for _, a := range attempts {
			if b, _ := v.included(a.Tx); k.n.forgets[a.Tx] || b != nil && k.n.pruned(v, b.Height) {
				out = append(out, chain.Status{State: chain.Unknown})
				continue
			}
			s, err := k.c().status(v, final, a, !k.n.waiting(v, a.Tx))
			if err != nil {
				return err
			}
			out = append(out, s)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// status judges one attempt. absent says that no mempool has it.
func (c *Chain) status(v view, final int64, a chain.Attempt, absent bool) (chain.Status, error) {
	hash, same := a.Tx, ""
	if len(a.Raw) > 0 {
		if t, err := newTx(a.Raw, 0); err == nil {
			same = t.same
			if len(a.Spends) == 0 {
				a.Spends = t.body.spends()
			}
		}
	}
	b, r := v.included(hash)
	if r == nil {
		by := c.taker(v, a.Spends)
		// The same payment under another hash: somebody changed the signature.
		if t := c.txs[by]; t != nil && same != "" && t.same == same {
			b, r = v.included(by)
		} else if by != "" {
			b, _ = v.included(by)
			return c.stamp(v, final, b, chain.Status{State: chain.Conflicted, By: by}), nil
		}
	}
	switch {
	case r != nil:
		cost, err := c.feeUnits(amountOf(r.Cost))
		if err != nil {
			return chain.Status{}, err
		}
		s := chain.Status{State: chain.Included, Executed: r.Executed, Cost: cost, Shortfall: c.shortfall(r)}
		if r.Tx != hash {
			s.By = r.Tx
		}
		return c.stamp(v, final, b, s), nil
	case !absent && (c.pool.has[hash] || c.kv["t/"+hash] != ""):
		return chain.Status{State: chain.Pending}, nil
	default:
		return chain.Status{State: chain.Unknown}, nil
	}
}

// taker is what took one of the nonces or outpoints in a block.
func (c *Chain) taker(v view, spends []string) string {
	for _, s := range spends {
		if by := v.get("s/" + s); by != "" {
			return by
		}
	}
	return ""
}

func (c *Chain) stamp(v view, final int64, b *block, s chain.Status) chain.Status {
	if b != nil {
		s.Block = b.public()
		s.Confirmations = v.head().Height - b.Height + 1
		s.Final = final >= 0 && b.Height <= final
	}
	return s
}

// shortfall is how much less than ordered a token moved, in units of its currency.
func (c *Chain) shortfall(r *receipt) (sum ledger.Amount) {
	if !r.Executed {
		return 0
	}
	outputs := c.txs[r.Tx].body.Outputs
	for i := range r.Effects {
		x := c.opt.Registry.ByContract(c.opt.Network, r.Effects[i].Asset)
		if i >= len(outputs) || r.Effects[i].Asset == "" || x == nil {
			continue
		}
		ordered, err := x.Units(amountOf(outputs[i].Amount), ledger.Down)
		if err == nil {
			sum += x.Shortfall(ordered, amountOf(r.Effects[i].Amount))
		}
	}
	return sum
}
