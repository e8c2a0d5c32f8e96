package cryptopay_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Every column of what the payout side keeps of a payout is edited, one at a time, when its
// transaction is signed and not yet in a block: of its order, its transactions, their nonce or
// coins, and what is told of it. It may wait by that. It is never paid twice, and never paid and
// given back. What waits for hours is told, and goes on once the row is put right.
func TestFS02_EveryColumnOfAPayoutOnItsWayIsEdited(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		currency, amount string
		tables           []*storage.Table
	}{
		{"USDTERC20", "10", []*storage.Table{outgoing.Intents.Table, outgoing.Attempts.Table, outgoing.Outcomes.Table, outgoing.Nonces.Table, outgoing.InputReservations.Table}},
		{"BTC", "0.0005", []*storage.Table{outgoing.Intents.Table, outgoing.Attempts.Table, outgoing.Batches.Table, outgoing.InputReservations.Table, outgoing.Coins.Table}},
	} {
		t.Run(c.currency, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, c.currency)
			cur, err := chain.MainnetRegistry().Currency(c.currency)
			require.NoError(t, err)
			world := i.chains[cur.Network]
			var silent []string
			n := 0
			for _, table := range c.tables {
				of := classes[table.Name]
				for _, column := range strings.Fields(of.authority + " " + of.witness + " " + of.bookkeeping) {
					n++
					name := table.Name + "." + column
					to := world.Customer(fmt.Sprint("supplier ", n))
					if table == outgoing.Batches.Table {
						i.work(20) // coins for both
					}
					w := i.withdraw(c.currency, c.amount, to)
					other, another := w, world.Customer(fmt.Sprint("another ", n))
					if table == outgoing.Batches.Table {
						other = i.withdraw(c.currency, c.amount, another)
					}
					for range 2 {
						require.NoError(t, i.app.Step(t.Context()))
					}
					for len(i.sent(w.ID)) == 0 && table != outgoing.Batches.Table {
						i.work(1) // until coins are there
					}
					where := map[*storage.Table]string{
						outgoing.Attempts.Table: "intent = ?", outgoing.InputReservations.Table: "intent = ?", outgoing.Coins.Table: "intent = ?",
						outgoing.Nonces.Table: "id = (SELECT from_address FROM cryptopay_intents WHERE id = ?)",
					}[table]
					if where == "" {
						where = "id = ?"
					}
					id := w.ID
					if table == outgoing.Batches.Table { // one of both leads
						if require.NoError(t, i.db.Get(&id, "SELECT id FROM cryptopay_rides WHERE id IN (?, ?)", w.ID, other.ID)); id == other.ID {
							w, to = other, another
						}
					} else {
						require.NoError(t, i.db.Get(&id, "SELECT id FROM cryptopay_"+table.Name+" WHERE "+where+" LIMIT 1", w.ID), name)
					}
					delete(i.told, w.ID)
					logged := len(i.log.heard())
					undo, ok := i.change(table, id, column)
					if !ok {
						continue
					}
					state := func() withdrawal.Status {
						got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
						require.NoError(t, err)
						paid := world.Balance(to, c.currency)
						require.True(t, paid.IsZero() || paid.Equal(cur.Decimal(w.Amount)), "%s: paid %s", name, paid)
						require.False(t, paid.IsPositive() && (got.Status == withdrawal.Failed || got.Status == withdrawal.Cancelled), "%s: %s, and paid", name, got.Status)
						return got.Status
					}
					ended := func() bool {
						s := state()
						return s == withdrawal.Completed || s == withdrawal.Failed
					}
					for range 30 {
						if i.work(1); ended() {
							break
						}
					}
					for hours := 0; !ended() && !i.told[w.ID] && !strings.Contains(i.log.heard()[logged:], w.ID); hours++ {
						if hours == 8 {
							silent = append(silent, name)
							break
						}
						i.clock.Advance(time.Hour)
						i.work(2)
					}
					if ended() {
						if table == outgoing.Nonces.Table {
							undo()
						}
						continue
					}
					undo()
					if table == outgoing.Batches.Table {
						continue // the order that leads has ended, so nobody looks at it: a person puts it right
					}
					if table == outgoing.Intents.Table { // what was told by it, too
						i.edit("UPDATE cryptopay_outcomes SET due = 1, (purpose, tenant, network) = (SELECT purpose, tenant, network FROM cryptopay_intents i WHERE i.id = cryptopay_outcomes.id) WHERE id = ?", w.ID)
					}
					for range 200 {
						if i.work(1); ended() {
							break
						}
					}
					require.Equal(t, withdrawal.Completed, state(), name)
				}
			}
			require.Empty(t, silent, "the host hears of each")
			require.Greater(t, n, 40)
		})
	}
}
