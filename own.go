package cryptopay

import (
	"context"
	"log/slog"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
)

// internal says which transfers our own keys made between our addresses: those of stored
// attempts (see outgoing.Sender.Internal), and those of transactions that the store knows
// nothing of, as after a restore from an older backup. The money is in the books already. What
// such a transaction brought to an address that a customer was given is a deposit like any
// other: it may be a payout to that customer.
func (a *App) internal(n *network) func(context.Context, chain.Network, []chain.Transfer) ([]bool, error) {
	return func(ctx context.Context, network chain.Network, transfers []chain.Transfer) ([]bool, error) {
		out, known, err := n.out.Internal(ctx, network, transfers)
		if err != nil {
			return out, err
		}
		info, err := a.cfg.Registry.Network(string(n.name))
		if err != nil {
			return out, err
		}
		coins := info.Family == chain.UTXOFamily // coins alone say who paid
		var spent []string
		for i := range transfers {
			if t := &transfers[i]; coins && !known[i] {
				spent = append(spent, t.Spends[:min(1, len(t.Spends))]...) // one of our coins among the inputs means that all are
			}
		}
		ours, err := n.rows(ctx, a.cfg.Store, incoming.Sightings.Table, spent)
		if err != nil {
			return out, err
		}
		made := map[string]bool{}
		var to []string
		for i := range transfers {
			t := &transfers[i]
			switch {
			case known[i]:
				continue
			case !coins:
				out[i] = t.From != "" && n.in.Watches(t.From)
			case len(t.Spends) > 0:
				_, mine := ours[t.Spends[0]]
				out[i] = mine || made[t.Spends[0]]
			}
			if out[i] {
				made[incoming.Key(t.Tx, t.Ordinal)], to = true, append(to, string(t.To))
			}
		}
		given, err := a.given(ctx, n, to)
		if err != nil {
			return out, err
		}
		for i := range transfers {
			t := &transfers[i]
			if !out[i] || known[i] {
				continue
			}
			if out[i] = !given[string(t.To)]; out[i] {
				a.cfg.Log.WarnContext(ctx, "own_transfer_unknown", slog.String("network", string(n.name)), slog.String("tx", t.Tx), slog.String("address", string(t.To)), slog.String("amount", t.Amount.String()))
			}
		}
		return out, nil
	}
}

// given says which addresses a customer was given: those of payments, and permanent ones.
func (a *App) given(ctx context.Context, n *network, addresses []string) (map[string]bool, error) {
	out := map[string]bool{}
	rows, err := n.rows(ctx, a.cfg.Store, incoming.Addresses.Table, addresses)
	if err != nil {
		return nil, err
	}
	var payments, permanent []storage.Key
	for address, row := range rows {
		p := storage.Tenant(incoming.Addresses.Value(row).Tenant)
		payments = append(payments, storage.Key{Partition: p, Unique: []string{"network", "address", "slot"}, Values: []any{string(n.name), address, ""}})
		permanent = append(permanent, storage.Key{Partition: p, Unique: []string{"network", "address"}, Values: []any{string(n.name), address}})
	}
	if len(payments) == 0 {
		return out, nil
	}
	some, err := a.cfg.Store.Rows(ctx, payment.Payments.Table, payments...)
	if err != nil {
		return nil, err
	}
	for _, r := range some {
		out[payment.Payments.Value(r).Address] = true
	}
	some, err = a.cfg.Store.Rows(ctx, payment.PermanentAddresses.Table, permanent...)
	for _, r := range some {
		out[payment.PermanentAddresses.Value(r).Address] = true
	}
	return out, err
}

// rows reads rows of the network by id.
func (n *network) rows(ctx context.Context, s storage.Store, t *storage.Table, ids []string) (map[string]storage.Row, error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	out := map[string]storage.Row{}
	if len(ids) == 0 {
		return out, nil
	}
	rows, err := s.Rows(ctx, t, storage.Keys(storage.Network(string(n.name)), ids...)...)
	for _, r := range rows {
		out[r.ID] = r
	}
	return out, err
}
