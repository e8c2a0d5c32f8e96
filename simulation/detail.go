package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// explain tells what is known of a withdrawal: its attempts and what the chain
// says of them.
func (r *run) explain(v withdrawal.Withdrawal, id string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "withdrawal %s is %s, %s, waiting %q", id, v.Status, v.Stage, v.Waiting)
	net := r.network(chain.Network(v.Network))
	part := storage.Network(v.Network)
	payer, prefix := r.truth.payer(part, id), string(part)+"\x00"
	for _, key := range slices.Sorted(maps.Keys(r.truth.attempts)) {
		tx, ok := strings.CutPrefix(key, prefix)
		if a := r.truth.attempts[key]; ok && a.Intent == payer {
			all, err := net.chain.Client().Status(context.Background(), chain.Attempt{Tx: tx, Raw: a.Raw, Spends: a.Spends})
			s := all[0]
			fmt.Fprintf(&b, "; attempt %d %s of %v is %s, on chain %s by %q final %t executed %t (%v)",
				a.Number, short(tx), a.Spends, a.State, s.State, s.By, s.Final, s.Executed, err)
			for _, x := range net.chain.Transfers("") {
				if x.Tx == s.By {
					fmt.Fprintf(&b, ", which paid %s %s to %s in block %d", x.Amount, x.Currency, x.To, x.Block.Height)
				}
			}
		}
	}
	fmt.Fprintf(&b, "; amount %d to %s, head %d", v.Amount, v.Address, net.chain.Height())
	return b.String()
}
