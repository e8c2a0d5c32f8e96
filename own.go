package cryptopay

import (
	"context"
	"log/slog"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// internal says which transfers our own keys made between our addresses: those of stored
// attempts (see outgoing.Sender.Internal), and those of transactions that the store knows
// nothing of, as after a restore from an older backup. The money is in the books already.
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
