package cryptopay

import (
	"context"
	"encoding/hex"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/seal"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// Receipt says how far a store was at one moment. Kept apart from the store and its backups,
// it tells whether a store that was restored is older. It holds no secret.
type Receipt struct {
	Store    string           `json:"store"` // id of the store, which a copy of it keeps
	At       time.Time        `json:"at"`
	Networks []ReceiptNetwork `json:"networks"`
	Tenants  []ReceiptTenant  `json:"tenants"`
}

// ReceiptNetwork is how far a network was.
type ReceiptNetwork struct {
	Network chain.Network `json:"network"`
	Head    int64         `json:"head"`  // height up to which it was read
	Shown   int64         `json:"shown"` // place in the directory of the last address that was given to anybody
}

// ReceiptTenant is the newest seal of a tenant's journal.
type ReceiptTenant struct {
	Tenant string `json:"tenant"`
	Seal   int64  `json:"seal"` // number; 0 = nothing is sealed
	Hash   string `json:"hash"` // hex
}

// Receipt reads how far the store is. It asks no node.
func (a *App) Receipt(ctx context.Context) (Receipt, error) {
	store := a.identity.store.Load()
	if store == nil {
		return Receipt{}, errNotOpen
	}
	r := Receipt{Store: *store, At: a.cfg.Clock.Now().UTC()}
	networks, err := a.Operate.networks(ctx)
	if err != nil {
		return r, err
	}
	for _, n := range networks {
		cur, _, _, err := incoming.Cursors.One(ctx, a.cfg.Store, storage.Network(string(n)), incoming.CursorID)
		if err != nil {
			return r, err
		}
		shown, err := a.Addresses.Shown(ctx, n)
		if err != nil {
			return r, err
		}
		r.Networks = append(r.Networks, ReceiptNetwork{n, cur.Head, shown})
	}
	err = each(ctx, a.cfg.Store, storage.Query{Table: wallet.TenantRows.Table, Partition: storage.System, IDs: true}, func(row storage.Row) error {
		s, _, err := seal.Newest(ctx, a.cfg.Store, storage.Tenant(row.ID))
		r.Tenants = append(r.Tenants, ReceiptTenant{row.ID, s.Number, hex.EncodeToString(s.Hash)})
		return err
	})
	return r, err
}

// Lag is one thing that a store lacks, or has otherwise, of what is known elsewhere.
type Lag struct {
	Kind   string // "store", "seal", "addresses" or "head" of a Receipt; "nonce" of a chain
	Object string // a tenant, a network or an address
	Detail string
}

// Since compares the store with a Receipt of it that was kept: nothing where it has all that
// the receipt says.
func (a *App) Since(ctx context.Context, r Receipt) (out []Lag, err error) {
	now, err := a.Receipt(ctx)
	if err != nil {
		return nil, err
	}
	add := func(kind, object, format string, args ...any) {
		out = append(out, Lag{kind, object, fmt.Sprintf(format, args...)})
	}
	if r.Store != now.Store {
		add("store", now.Store, "the receipt is of the store %s: it says nothing of this one", r.Store)
		return out, nil
	}
	networks := map[chain.Network]ReceiptNetwork{}
	for _, n := range now.Networks {
		networks[n.Network] = n
	}
	for _, then := range r.Networks {
		is := networks[then.Network]
		if is.Head < then.Head {
			add("head", string(then.Network), "was read up to %d, and is read up to %d", then.Head, is.Head)
		}
		if is.Shown < then.Shown {
			add("addresses", string(then.Network), "%d addresses that were given out are free again", then.Shown-is.Shown)
		}
	}
	for _, then := range r.Tenants {
		if then.Seal == 0 {
			continue
		}
		s, ok, err := a.Seal(ctx, then.Tenant, then.Seal)
		switch {
		case err != nil:
			return out, err
		case !ok:
			add("seal", then.Tenant, "seal %d is not there", then.Seal)
		case hex.EncodeToString(s.Hash) != then.Hash:
			add("seal", then.Tenant, "seal %d is another one: the journal was restored and went on, or was edited", then.Seal)
		}
	}
	return out, nil
}

// Behind lists our addresses of which the chain knows more transactions than the store: see
// Operate.NoncesBeyond. It also looks at hot addresses from which the store has never sent.
func (a *App) Behind(ctx context.Context) (out []Lag, err error) {
	for _, n := range a.networks {
		all, err := n.out.Beyond(ctx)
		if err != nil {
			return out, err
		}
		more, err := a.unsentHot(ctx, n)
		if err != nil {
			return out, err
		}
		for _, b := range append(all, more...) {
			out = append(out, Lag{"nonce", string(n.name) + "/" + string(b.Address), fmt.Sprintf("the chain knows %d transactions, the store %d", b.Chain, b.Ours)})
		}
	}
	return out, nil
}

// unsentHot are the hot addresses of a network from which the chain knows transactions and the
// store none.
func (a *App) unsentHot(ctx context.Context, n *network) (out []outgoing.Nonce, err error) {
	nonces, ok := n.client.(chain.Noncer)
	if !ok || !n.out.Numbered() {
		return nil, nil
	}
	p := storage.Network(string(n.name))
	return out, each(ctx, a.cfg.Store, storage.Query{Table: incoming.Addresses.Table, Partition: p, Where: []storage.Cond{
		{Column: "use_for", Op: storage.In, Value: []incoming.Use{incoming.UseHot, incoming.UseAccount}},
	}}, func(row storage.Row) error {
		_, _, known, err := outgoing.Nonces.One(ctx, a.cfg.Store, p, row.ID)
		if err != nil || known {
			return err
		}
		at, err := nonces.Nonce(ctx, chain.Address(row.ID))
		if at > 0 {
			out = append(out, outgoing.Nonce{Address: chain.Address(row.ID), Chain: at})
		}
		return err
	})
}
