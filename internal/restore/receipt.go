package restore

import (
	"context"
	"encoding/hex"
	"errors"
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
func (s *Steps) Receipt(ctx context.Context) (Receipt, error) {
	r := Receipt{Store: s.App.StoreID(), At: s.cfg.Clock.Now().UTC()}
	networks, err := s.networks(ctx)
	if err != nil {
		return r, err
	}
	for _, n := range networks {
		cur, _, _, err := incoming.Cursors.One(ctx, s.cfg.Store, storage.Network(string(n)), incoming.CursorID)
		if err != nil {
			return r, err
		}
		shown, err := s.App.Addresses.Shown(ctx, n)
		if err != nil {
			return r, err
		}
		r.Networks = append(r.Networks, ReceiptNetwork{n, cur.Head, shown})
	}
	err = each(ctx, s.cfg.Store, storage.Query{Table: wallet.TenantRows.Table, Partition: storage.System, IDs: true}, func(row storage.Row) error {
		newest, _, err := seal.Newest(ctx, s.cfg.Store, storage.Tenant(row.ID))
		r.Tenants = append(r.Tenants, ReceiptTenant{row.ID, newest.Number, hex.EncodeToString(newest.Hash)})
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
func (s *Steps) Since(ctx context.Context, r Receipt) (out []Lag, err error) {
	now, err := s.Receipt(ctx)
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
		kept, ok, err := s.App.Seal(ctx, then.Tenant, then.Seal)
		switch {
		case err != nil:
			return out, err
		case !ok:
			add("seal", then.Tenant, "seal %d is not there", then.Seal)
		case hex.EncodeToString(kept.Hash) != then.Hash:
			add("seal", then.Tenant, "seal %d is another one: the journal was restored and went on, or was edited", then.Seal)
		}
	}
	return out, nil
}

// Behind lists our addresses of which the chain knows more transactions than the store: see
// cryptopay.Operate.NoncesBeyond. It also looks at hot addresses from which the store has never
// sent.
func (s *Steps) Behind(ctx context.Context) (out []Lag, err error) {
	for _, client := range s.cfg.Chains {
		n := client.Network()
		all, err := s.App.Operate.NoncesBeyond(ctx, n)
		if err != nil {
			return out, err
		}
		more, err := s.unsentHot(ctx, client)
		if err != nil {
			return out, err
		}
		for _, b := range append(all, more...) {
			out = append(out, Lag{"nonce", string(n) + "/" + string(b.Address), fmt.Sprintf("the chain knows %d transactions, the store %d", b.Chain, b.Ours)})
		}
	}
	return out, nil
}

// unsentHot are the hot addresses of a network from which the chain knows transactions and the
// store none.
func (s *Steps) unsentHot(ctx context.Context, client chain.Client) (out []outgoing.Nonce, err error) {
	nonces, ok := client.(chain.Noncer)
	info, err := s.cfg.Registry.Network(string(client.Network()))
	if err != nil || !ok || info.Family != chain.AccountFamily {
		return nil, err
	}
	p := storage.Network(string(client.Network()))
	err = each(ctx, s.cfg.Store, storage.Query{Table: incoming.Addresses.Table, Partition: p, Where: []storage.Cond{
		{Column: "use_for", Op: storage.In, Value: []incoming.Use{incoming.UseHot, incoming.UseRetired, incoming.UseAccount}},
	}}, func(row storage.Row) error {
		_, _, known, err := outgoing.Nonces.One(ctx, s.cfg.Store, p, row.ID)
		if err != nil || known {
			return err
		}
		at, err := nonces.Nonce(ctx, chain.Address(row.ID))
		if errors.Is(err, errors.ErrUnsupported) { // none of several nodes numbers them
			return nil
		}
		if at > 0 {
			out = append(out, outgoing.Nonce{Address: chain.Address(row.ID), Chain: at})
		}
		return err
	})
	return out, err
}
