package cryptopay

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// internal says which transfers our own keys made between our addresses: those of stored
// attempts (see outgoing.Sender.Internal), and those of transactions that the store knows
// nothing of, as after a restore from an older backup. The money is in the books already.
func (a *App) internal(n *network) func(context.Context, chain.Network, []chain.Transfer) ([]bool, error) {
	return func(ctx context.Context, network chain.Network, transfers []chain.Transfer) ([]bool, error) {
		out, err := n.out.Internal(ctx, network, transfers)
		if err != nil {
			return out, err
		}
		made := map[string]bool{}
		var spent, txs []string
		for i := range transfers {
			t := &transfers[i]
			spent = append(spent, t.Spends[:min(1, len(t.Spends))]...) // one of our coins among the inputs means that all are
			if t.From != "" && n.in.Watches(t.From) {
				txs = append(txs, t.Tx)
			}
		}
		ours := map[string]storage.Row{}
		if info, err := a.cfg.Registry.Network(string(n.name)); err == nil && info.Family == chain.UTXOFamily {
			if ours, err = n.rows(ctx, a.cfg.Store, incoming.Sightings.Table, spent); err != nil {
				return out, err
			}
			for i := range transfers {
				txs = append(txs, transfers[i].Tx)
			}
		}
		if len(txs) == 0 {
			return out, nil
		}
		known, err := n.rows(ctx, a.cfg.Store, outgoing.Attempts.Table, txs)
		if err != nil {
			return out, err
		}
		coins, err := n.rows(ctx, a.cfg.Store, outgoing.Coins.Table, slices.Collect(maps.Keys(ours)))
		if err != nil {
			return out, err
		}
		for i := range transfers {
			t := &transfers[i]
			if _, attempt := known[t.Tx]; attempt || out[i] {
				continue
			}
			out[i] = t.From != "" && n.in.Watches(t.From)
			if len(t.Spends) > 0 && !out[i] {
				_, mine := ours[t.Spends[0]]
				coin, ok := coins[t.Spends[0]]
				out[i] = made[t.Spends[0]] || mine && (!ok || outgoing.Coins.Value(coin).Intent == "") // else an attempt of ours under another hash
			}
			if out[i] {
				made[incoming.Key(t.Tx, t.Ordinal)] = true
				a.cfg.Log.WarnContext(ctx, "own_transfer_unknown", slog.String("network", string(n.name)), slog.String("tx", t.Tx), slog.String("address", string(t.To)), slog.String("amount", t.Amount.String()))
			}
		}
		return out, nil
	}
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
