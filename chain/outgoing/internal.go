package outgoing

import (
	"context"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Internal says which transfers were made by stored attempts of ours to sweep,
// fund, cancel or return change: those are no deposits. What a withdrawal pays
// to an address of ours is one. known says which a stored attempt made, whatever for.
func (n *Sender) Internal(ctx context.Context, network chain.Network, transfers []chain.Transfer) (out, known []bool, err error) {
	out, known = make([]bool, len(transfers)), make([]bool, len(transfers))
	if network != n.info.Code || len(transfers) == 0 {
		return out, known, nil
	}
	ids := make([]string, 0, len(transfers))
	for i := range transfers {
		if !slices.Contains(ids, transfers[i].Tx) {
			ids = append(ids, transfers[i].Tx)
		}
	}
	rows, err := n.Store.Rows(ctx, Attempts.Table, storage.Keys(n.part, ids...)...)
	if err != nil {
		return nil, nil, err
	}
	byTx := make(map[string]AttemptRow, len(rows))
	for _, r := range rows {
		byTx[r.ID] = Attempts.Value(r)
	}
	var strange []int
	for i := range transfers {
		if a, ok := byTx[transfers[i].Tx]; ok {
			out[i], known[i] = n.ours(&a, &transfers[i]), true
		} else if n.info.Family == chain.UTXOFamily && len(transfers[i].Spends) > 0 {
			strange = append(strange, i)
		}
	}
	return out, known, n.renamed(ctx, transfers, strange, out, known)
}

// renamed finds the transfers of attempts that somebody gave another hash, by
// what they spend: nobody but us can spend our coins, and a changed signature
// changes neither inputs nor outputs.
func (n *Sender) renamed(ctx context.Context, transfers []chain.Transfer, strange []int, out, known []bool) error {
	if len(strange) == 0 {
		return nil
	}
	firsts := make([]string, len(strange)) // one of our coins among the inputs means that all are
	for i, at := range strange {
		firsts[i] = transfers[at].Spends[0]
	}
	slices.Sort(firsts)
	coins, err := n.loadCoins(ctx, slices.Compact(firsts)...)
	if err != nil {
		return err
	}
	holder := map[string]string{} // a coin keeps the name of the intent that spent it
	var intents []string
	for i := range coins {
		if c := &coins[i]; c.Intent != "" {
			holder[c.outpoint] = c.Intent
			intents = append(intents, c.Intent)
		}
	}
	slices.Sort(intents)
	byIntent, err := n.attempts(ctx, slices.Compact(intents)...)
	if err != nil {
		return err
	}
	for _, at := range strange {
		t := &transfers[at]
		for _, a := range byIntent[holder[t.Spends[0]]] {
			if sameSet(a.v.Spends, t.Spends) && n.pays(&a.v, t) {
				out[at], known[at] = out[at] || n.ours(&a.v, t), true
			}
		}
	}
	return nil
}

// pays reports whether an output of the attempt is just what was transferred:
// attempts with the same inputs differ in it.
func (n *Sender) pays(a *AttemptRow, t *chain.Transfer) bool {
	if t.Ordinal < 0 || t.Ordinal >= len(a.Outputs) {
		return false
	}
	o := a.Outputs[t.Ordinal]
	cur, err := n.Registry.Currency(o.Currency)
	return err == nil && o.To == t.To && o.Currency == t.Currency && cur.Decimal(o.Amount).Equal(t.Amount)
}

// ours finds the output that a transfer is. Where one address is both paid and
// given change, the output's place tells; only UTXO networks have such.
func (n *Sender) ours(a *AttemptRow, t *chain.Transfer) bool {
	if n.info.Family == chain.UTXOFamily {
		if t.Ordinal < 0 || t.Ordinal >= len(a.Outputs) || a.Outputs[t.Ordinal].To != t.To {
			return false
		}
		return a.Outputs[t.Ordinal].Change || a.Purpose != chain.ForWithdrawal
	}
	if a.Purpose == chain.ForWithdrawal {
		return false
	}
	return slices.ContainsFunc(a.Outputs, func(o chain.Output) bool { return o.To == t.To })
}
