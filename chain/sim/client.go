package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// client is a chain.Client with every optional ability.
type client struct{ n *Node }

var (
	_ chain.Client   = (*client)(nil)
	_ chain.Mempool  = (*client)(nil)
	_ chain.Balancer = (*client)(nil)

	_ chain.ManyBalancer = (*client)(nil)
	_ chain.Noncer       = (*client)(nil)
	_ chain.Historian    = (*client)(nil)
	_ chain.Locator      = (*client)(nil)
	_ chain.OnDemand     = (*client)(nil)
	_ chain.Metered      = (*client)(nil)

	_ chain.Development = (*client)(nil)
)

func (k *client) c() *Chain { return k.n.c }

// ask runs f on the node's view under the chain's lock.
func (k *client) ask(ctx context.Context, f func(v view) error) error {
	c := k.c()
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := k.n.call(ctx); err != nil {
		return err
	}
	return f(k.n.view())
}

// Network implements chain.Client.
func (k *client) Network() chain.Network { return k.c().opt.Network }

// Usage implements chain.Metered: of all clients of the node.
func (k *client) Usage() []chain.Usage {
	k.c().mu.Lock()
	defer k.c().mu.Unlock()
	return []chain.Usage{{Total: k.n.calls}}
}

// OnDemand implements chain.OnDemand.
func (k *client) OnDemand() bool { return !k.c().opt.Steady }

// ParseAddress implements chain.Client.
func (k *client) ParseAddress(s string) (chain.Address, error) {
	return k.c().opt.Addresses.Parse(s)
}

// AddressOf implements chain.Client for compressed secp256k1 keys.
func (k *client) AddressOf(pub chain.PublicKey) (chain.Address, error) {
	return k.c().opt.addressOfKey(pub)
}

// Tip implements chain.Client.
func (k *client) Tip(ctx context.Context) (t chain.Tip, err error) {
	err = k.ask(ctx, func(v view) error {
		head := v.head()
		t = chain.Tip{Head: head.public(), Safe: k.c().safeHeight(head.Height), Final: k.n.finalAt(head.Height)}
		t.Head.Height += k.n.lie
		return nil
	})
	return t, err
}

// Scan implements chain.Client.
func (k *client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (s chain.Scan, err error) {
	if limit < 1 {
		return s, errors.New("sim: Scan of less than one block")
	}
	var fetched []*block
	err = k.ask(ctx, func(v view) error {
		s, fetched, err = k.follow(v, trail, limit)
		return err
	})
	if err != nil || len(trail) == 0 {
		return s, err
	}
	// Only now: an address handed out before any of these blocks was fetched is
	// known after it.
	if err := w.Sync(ctx); err != nil {
		return chain.Scan{}, err
	}
	c := k.c()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, b := range fetched {
		if !c.knows(b) {
			return chain.Scan{}, fmt.Errorf("%w: the chain was put back to an older state meanwhile", chain.ErrNode)
		}
		s.Blocks = append(s.Blocks, chain.ScannedBlock{Block: b.public(), Transfers: k.match(b, w)})
	}
	return s, nil
}

// follow finds where a trail leaves the node's chain, and what comes after.
func (k *client) follow(v view, trail []chain.Block, limit int) (chain.Scan, []*block, error) {
	head := v.head()
	if len(trail) == 0 {
		return chain.Scan{Blocks: []chain.ScannedBlock{{Block: head.public()}}}, nil, nil
	}
	if last := trail[len(trail)-1]; head.Height < last.Height {
		return chain.Scan{}, nil, fmt.Errorf("%w: its head is %d, block %d is known", chain.ErrBehind, head.Height, last.Height)
	}
	anchor := len(trail) - 1
	for ; anchor >= 0; anchor-- {
		if b := v.at(trail[anchor].Height); b != nil && b.Hash == trail[anchor].Hash {
			break
		}
	}
	if anchor < 0 {
		return chain.Scan{}, nil, chain.ErrDeepFork
	}
	var fetched []*block
	for h := trail[anchor].Height + 1; h <= head.Height && len(fetched) < limit; h++ {
		fetched = append(fetched, v.at(h))
	}
	if k.n.partial && len(fetched) > 0 {
		return chain.Scan{}, nil, fmt.Errorf("%w: block %d is known without its transactions", chain.ErrNode, fetched[0].Height)
	}
	return chain.Scan{Rewound: len(trail) - 1 - anchor}, fetched, nil
}

// match lists what a block moved to watched addresses, as this node can see it.
func (k *client) match(b *block, w chain.Watch) []chain.Transfer {
	if k.n.empty {
		return nil
	}
	all := k.c().transfersOf(b)
	var out []chain.Transfer
	for _, x := range all {
		if t, watched := Arrived(k.c().shares(), w, x.Transfer); watched && (!k.n.noTrace || !x.inner) {
			out = append(out, t)
		}
	}
	if k.n.noTrace {
		out = append(out, k.differences(b, all, w)...)
	}
	return out
}

// differences lists what open addresses gained in a block without a transfer
// that shows it: one per address, named by both.
func (k *client) differences(b *block, all []moved, w chain.Watch) []chain.Transfer {
	gained := map[chain.Address]decimal.Decimal{}
	for _, x := range all {
		if x.inner {
			gained[x.To] = gained[x.To].Add(x.Amount)
		}
	}
	var out []chain.Transfer
	for _, a := range w.Open() {
		if sum := gained[a]; sum.IsPositive() {
			out = append(out, chain.Transfer{
				Tx: "balance/" + b.Hash + "/" + string(a), Ordinal: -2, Block: b.public(), Currency: k.c().gas.Code,
				To: a, Amount: sum, Unproven: true,
			})
		}
	}
	return out
}

// Pending implements chain.Mempool: what waiting transactions say they will do.
// Whether they then do it is known in the block.
func (k *client) Pending(ctx context.Context, w chain.Watch) (out []chain.Transfer, err error) {
	var all []chain.Transfer
	err = k.ask(ctx, func(v view) error {
		for _, t := range k.n.mempool(v) {
			all = append(all, k.c().promises(t)...)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := w.Sync(ctx); err != nil {
		return nil, err
	}
	for _, x := range all {
		if t, watched := Arrived(k.c().shares(), w, x); watched {
			out = append(out, t)
		}
	}
	return out, nil
}

// promises lists what a transaction says it will move.
func (c *Chain) promises(t *tx) []chain.Transfer {
	var out []chain.Transfer
	for i, o := range t.body.Outputs {
		if o.Effect == InnerReverted || o.Effect == Internal {
			continue // nothing outside the contract shows it
		}
		out = append(out, chain.Transfer{
			Tx: t.Hash, Ordinal: t.body.ordinal(i), Currency: c.code(o.Asset), Contract: o.Asset,
			From: t.body.sender(), To: o.To, Memo: t.body.Memo, Amount: amountOf(o.Amount),
			Spends: t.body.spends(), Confirmable: t.body.Immature,
		})
	}
	return out
}

// Balance implements chain.Balancer.
func (k *client) Balance(ctx context.Context, currency string, a chain.Address) (d decimal.Decimal, err error) {
	asset, err := k.c().asset(currency, "")
	if err != nil {
		return d, err
	}
	err = k.ask(ctx, func(v view) error {
		d = v.balance(asset, k.c().account(a))
		return nil
	})
	return d, err
}

// Balances implements chain.ManyBalancer, on networks of accounts alone: elsewhere the error wraps
// errors.ErrUnsupported.
func (k *client) Balances(ctx context.Context, currency string, list []chain.Address) ([]*decimal.Decimal, error) {
	if k.c().utxo() {
		return nil, fmt.Errorf("sim: balances of outputs at once: %w", errors.ErrUnsupported)
	}
	asset, err := k.c().asset(currency, "")
	if err != nil {
		return nil, err
	}
	out := make([]*decimal.Decimal, len(list))
	err = k.ask(ctx, func(v view) error {
		for i, a := range list {
			d := v.balance(asset, k.c().account(a))
			out[i] = &d
		}
		return nil
	})
	return out, err
}

// Nonce implements chain.Noncer.
func (k *client) Nonce(ctx context.Context, a chain.Address) (n uint64, err error) {
	err = k.ask(ctx, func(v view) error {
		n = uint64(max(int64(v.nonce(a))+k.n.nonce, 0))
		return nil
	})
	return n, err
}

// History implements chain.Historian.
func (k *client) History(ctx context.Context, a chain.Address, from, to int64) (out []chain.Transfer, err error) {
	err = k.ask(ctx, func(v view) error {
		switch {
		case to > v.head().Height:
			return fmt.Errorf("%w: its head is %d", chain.ErrBehind, v.head().Height)
		case k.n.pruned(v, from):
			return fmt.Errorf("%w: block %d is pruned", chain.ErrNode, from)
		case k.n.partial:
			return fmt.Errorf("%w: blocks are known without their transactions", chain.ErrNode)
		}
		for h := max(from, k.c().opt.StartHeight); h <= to; h++ {
			out = append(out, k.match(v.at(h), only{a, k.c().account(a)})...)
		}
		out = slices.DeleteFunc(out, func(t chain.Transfer) bool { return t.To != a })
		return nil
	})
	return out, err
}

// only is the watch of one address, and of its account.
type only struct{ a, account chain.Address }

func (o only) Sync(context.Context) error    { return nil }
func (o only) Contains(a chain.Address) bool { return a == o.a || a == o.account }
func (o only) Open() []chain.Address         { return []chain.Address{o.a} }

// BlockAt implements chain.Locator. A height above the node's head is ErrBehind.
func (k *client) BlockAt(ctx context.Context, height int64) (b chain.Block, err error) {
	err = k.ask(ctx, func(v view) error {
		x := v.at(height)
		switch {
		case x != nil:
			b = x.public()
			return nil
		case height > v.head().Height:
			return fmt.Errorf("%w: its head is %d", chain.ErrBehind, v.head().Height)
		default:
			return fmt.Errorf("%w: the chain begins at %d", chain.ErrNode, k.c().opt.StartHeight)
		}
	})
	return b, err
}
