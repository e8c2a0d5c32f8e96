package cryptopay_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// ways are two payouts, one on a network with nonces and one on a network with coins, and the tables in which the
// payout side keeps each.
var ways = []struct {
	currency, amount string
	tables           []*storage.Table
}{
	{"USDTERC20", "10", []*storage.Table{outgoing.Intents.Table, outgoing.Attempts.Table, outgoing.Outcomes.Table, outgoing.Nonces.Table, outgoing.InputReservations.Table}},
	{"BTC", "0.0003", []*storage.Table{outgoing.Intents.Table, outgoing.Attempts.Table, outgoing.Batches.Table, outgoing.InputReservations.Table, outgoing.Coins.Table}},
}

// Every column of what the payout side keeps of a payout is edited, one at a time, when its
// transaction is signed and not yet in a block: of its order, its transactions, their nonce or
// coins, and what is told of it. It may wait by that. It is never paid twice, and never paid and
// given back. What waits for hours is told, and goes on once the row is put right. An edited
// authority is named by Verify at once.
func TestFS02_EveryColumnOfAPayoutOnItsWayIsEdited(t *testing.T) {
	t.Parallel()
	for _, c := range ways {
		t.Run(c.currency, func(t *testing.T) {
			insidersOf(t, c.currency, func(t *testing.T, i *insider) {
				i.coins(c.currency)
				n := 0
				for _, table := range c.tables {
					of := classes[table.Name]
					for _, column := range strings.Fields(of.authority + " " + of.witness + " " + of.bookkeeping) {
						n++
						i.setsOnItsWay(table, column, "", c.currency, c.amount)
					}
				}
				require.Greater(t, n, 40)
				if i.slow && c.currency == "BTC" { // the same states as with a nonce
					i.paysNothingTwice()
					return
				}
				for _, table := range c.tables {
					for _, column := range slices.Sorted(maps.Keys(otherStates)) {
						name, of := strings.CutPrefix(column, table.Name+".")
						for _, value := range otherStates[column] {
							if of {
								i.setsOnItsWay(table, name, value, c.currency, c.amount)
							}
						}
					}
				}
				i.paysNothingTwice()
			})
		})
	}
}

// The same rows are deleted, and copied under another id.
func TestFS02_RowsOfAPayoutOnItsWayAreDeletedAndCopied(t *testing.T) {
	t.Parallel()
	for _, c := range ways {
		t.Run(c.currency, func(t *testing.T) {
			insidersOf(t, c.currency, func(t *testing.T, i *insider) {
				i.coins(c.currency)
				for _, table := range c.tables {
					i.attacksOnItsWay(table, table.Name+" deleted", table == outgoing.Intents.Table, c.currency, c.amount, func(id string) (undo func(), ok bool) {
						back := i.deletes(table.Name, "id = ?", id)
						return func() { i.drops(table.Name, id); back() }, true
					})
					i.attacksOnItsWay(table, table.Name+" copied", table == outgoing.Intents.Table, c.currency, c.amount, func(id string) (undo func(), ok bool) {
						return i.copies(table, id, id+"-copy")
					})
				}
				i.paysNothingTwice()
			})
		})
	}
}

// coins gives the hot address so many that a payout need not wait for the change of those before.
func (i *insider) coins(currency string) {
	i.t.Helper()
	if currency != "BTC" {
		return
	}
	hot, err := i.app.Hot(i.t.Context(), "BTC", i.tenant)
	require.NoError(i.t, err)
	for range 60 {
		_, err = i.chains["BTC"].Fund(hot, "BTC", dec("0.01"))
		require.NoError(i.t, err)
	}
	i.work(2)
	i.blocks(20)
}

// otherStates are valid values of columns that a payout on its way does not have.
var otherStates = map[string][]string{
	"intents.state":    {"queued", "waiting", "executed", "settled", "failed", "cancelled"},
	"intents.purpose":  {"sweep", "gas", "cancel"},
	"intents.reason":   {"halted", "altered", "reorged", "signer"},
	"attempts.fate":    {"landed", "dead"},
	"attempts.purpose": {"sweep", "gas", "cancel"},
	"outcomes.state":   {"queued", "waiting", "executed", "settled", "failed", "cancelled"},
	"outcomes.purpose": {"sweep", "gas", "cancel"},
}

// setsOnItsWay gives a column of a new payout that is on its way a value; "" = one that the column cannot have.
func (i *insider) setsOnItsWay(table *storage.Table, column, value, currency, amount string) {
	i.t.Helper()
	authority := slices.Contains(strings.Fields(classes[table.Name].authority), column)
	named := authority && (currency != "BTC" || column != "from_key") // where coins are outputs an order names no key
	i.attacksOnItsWay(table, strings.TrimSpace(table.Name+"."+column+" "+value), named, currency, amount, func(id string) (undo func(), ok bool) {
		undo, ok = i.change(table, id, column)
		if ok && value != "" {
			i.edit("UPDATE cryptopay_"+table.Name+" SET "+column+" = ? WHERE id = ?", value, id)
		}
		return undo, ok
	})
}

// attacksOnItsWay does something to a row of a new payout that is on its way. Verify names it at once if it is to be named.
func (i *insider) attacksOnItsWay(table *storage.Table, name string, named bool, currency, amount string, do func(id string) (undo func(), ok bool)) {
	t := i.t
	t.Helper()
	cur, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(t, err)
	world := i.chains[cur.Network]
	w, id := i.onItsWay(table, name, currency, amount)
	i.attacked = append(i.attacked, w)
	delete(i.told, w.ID)
	logged := len(i.log.heard())
	undo, ok := do(id)
	if !ok {
		return
	}
	if named {
		require.True(t, i.finds(w.ID), "%s: Verify names it", name)
	}
	ended := func() withdrawal.Status {
		got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
		require.NoError(t, err)
		paid := world.Balance(chain.Address(w.Address), currency)
		require.True(t, paid.IsZero() || paid.Equal(cur.Decimal(w.Amount)), "%s: paid %s", name, paid)
		switch got.Status {
		case withdrawal.Completed:
			require.False(t, paid.IsZero(), "%s: completed, and not paid", name)
			return got.Status
		case withdrawal.Failed, withdrawal.Cancelled:
			require.True(t, paid.IsZero(), "%s: %s, and paid", name, got.Status)
			return got.Status
		}
		return ""
	}
	i.until(30, func() bool { return ended() != "" })
	for hours := 0; ended() == "" && !i.told[w.ID] && !strings.Contains(i.log.heard()[logged:], w.ID); hours++ {
		require.Less(t, hours, 8, "%s: it waits, and nobody hears of it", name)
		i.clock.Advance(time.Hour)
		i.work(2)
	}
	switch {
	case ended() != "" && table != outgoing.Nonces.Table: // other payouts need the nonce
		return
	case table == outgoing.Batches.Table:
		return // the order that leads has ended, so nobody looks at it: a person puts it right
	}
	undo()
	if ended() != "" {
		return
	}
	if table == outgoing.Intents.Table { // what was told by it, too
		i.edit("UPDATE cryptopay_outcomes SET due = 1, (purpose, tenant, network) = (SELECT purpose, tenant, network FROM cryptopay_intents i WHERE i.id = cryptopay_outcomes.id) WHERE id = ?", w.ID)
	}
	i.until(200, func() bool { return ended() != "" })
	require.Equal(t, withdrawal.Completed, ended(), name)
}

// paysNothingTwice lets time go by, and looks at what each attacked payout has paid.
func (i *insider) paysNothingTwice() {
	i.t.Helper()
	i.work(2)
	i.blocks(20)
	for _, w := range i.attacked {
		cur, err := chain.MainnetRegistry().Currency(w.Currency)
		require.NoError(i.t, err)
		paid := i.chains[cur.Network].Balance(chain.Address(w.Address), w.Currency)
		require.True(i.t, paid.IsZero() || paid.Equal(cur.Decimal(w.Amount)), "%s: paid %s", w.ID, paid)
	}
}

// onItsWay makes a payout, and returns the id of its row in a table once it is on its way. Where the
// table is that of batches, it is one that another order leads.
func (i *insider) onItsWay(table *storage.Table, name, currency, amount string) (w withdrawal.Withdrawal, id string) {
	t := i.t
	t.Helper()
	var network chain.Network
	for n := range i.chains {
		network = n
	}
	batch := table == outgoing.Batches.Table
	w = i.withdraw(currency, amount, i.chains[network].Customer(name))
	other := w
	if batch {
		other = i.withdraw(currency, amount, i.chains[network].Customer("beside "+name))
	}
	sent := func() bool { return len(i.sent(w.ID))+len(i.sent(other.ID)) > 0 }
	for n := 0; n < 2 && !sent(); n++ {
		require.NoError(t, i.app.Step(t.Context()))
	}
	require.True(t, i.until(60, sent), "%s: coins are there", name)
	where := map[*storage.Table]string{
		outgoing.Intents.Table: "id = ?", outgoing.Outcomes.Table: "id = ?", outgoing.Batches.Table: "id = ?",
		outgoing.Attempts.Table: "intent = ?", outgoing.InputReservations.Table: "intent = ?", outgoing.Coins.Table: "intent = ?",
		outgoing.Nonces.Table: "id = (SELECT from_address FROM cryptopay_intents WHERE id = ?)",
	}[table]
	var ids []string
	for _, of := range []withdrawal.Withdrawal{w, other} {
		require.NoError(t, i.db.Select(&ids, i.db.Rebind("SELECT id FROM cryptopay_"+table.Name+" WHERE "+where), of.ID), name)
		if len(ids) > 0 {
			return of, ids[0]
		}
	}
	require.Fail(t, "no row", name)
	return w, ""
}

// An edited row of the nonce of a hot address stops what is sent from there: Verify names it.
func TestFS02_EditedNonceIsNamed(t *testing.T) {
	insiders(t, func(t *testing.T, i *insider) {
		_, hot := i.onItsWay(outgoing.Nonces.Table, "supplier", "USDTERC20", "10")
		require.NotContains(t, i.contradictions(), hot)
		for _, set := range []string{"next_nonce = next_nonce - 1", "holder = 'nobody'"} {
			undo := i.rowOf("nonces", hot)
			i.edit("UPDATE cryptopay_nonces SET "+set+" WHERE id = ?", hot)
			require.Contains(t, i.contradictions(), hot, set)
			undo()
			require.NotContains(t, i.contradictions(), hot, set)
		}
		i.work(40)
		require.NotContains(t, i.contradictions(), hot)
	})
}

// TestFS02_OutputsOfATransactionThatPaysSeveral: somebody edits what a transaction pays, so that it seems to pay one of its
// payouts nothing. That payout is not paid again by itself, whatever its signer would sign. The log and Verify name it.
func TestFS02_OutputsOfATransactionThatPaysSeveral(t *testing.T) {
	t.Parallel()
	for _, signer := range []string{"of mandates", "of its own"} {
		t.Run(signer, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "BTC")
			if signer == "of its own" {
				i.apart(nil)
			}
			w, member := i.onItsWay(outgoing.Batches.Table, "supplier", "BTC", "0.0005")
			require.Equal(t, w.ID, member)
			var leader string
			require.NoError(t, i.db.Get(&leader, "SELECT carrier FROM cryptopay_rides WHERE id = ?", member))
			i.edit("UPDATE cryptopay_attempts SET outputs = replace(outputs, ?, ?) WHERE intent = ?", w.Address, "x"+w.Address[1:], leader)
			i.work(60)
			i.clock.Advance(2 * time.Hour)
			i.work(10)
			btc, err := chain.MainnetRegistry().Currency("BTC")
			require.NoError(t, err)
			require.Equal(t, btc.Decimal(w.Amount).String(), i.chains["BTC"].Balance(chain.Address(w.Address), "BTC").String(), "once")
			require.Regexp(t, "order_altered .*"+w.ID+".* may have", i.log.heard())
			require.True(t, i.finds(w.ID))
		})
	}
}

// TestFN07_EditedDeliveryIsNotPaidAgain: a payout that has brought all is edited to wait as one that brought less. The
// operator, who is asked what to do, pays nothing again: the chain says that nothing is missing.
func TestFN07_EditedDeliveryIsNotPaidAgain(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	w, _ := i.onItsWay(outgoing.Attempts.Table, "supplier", "USDTERC20", "10")
	edit := func() {
		i.edit("UPDATE cryptopay_withdrawals SET delivered = 1, waiting = 'delivered_less', waiting_since = created_at WHERE id = ?", w.ID)
	}
	pay := func() error {
		_, err := i.app.Withdrawals.PayMissing(t.Context(), i.tenant, w.ID, "ann", "it seems owed")
		return err
	}
	edit()
	require.ErrorContains(t, pay(), "no transaction in a block pays it")
	i.work(40)
	edit()
	require.ErrorIs(t, pay(), withdrawal.ErrNotShort)
	i.work(40)
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	require.Equal(t, usdt.Decimal(w.Amount).String(), i.chains["ETH"].Balance(chain.Address(w.Address), "USDTERC20").String(), "once")
}

// TestFS02_EditedCostIsNotBooked: somebody edits the outcome of a payout: it has cost another sum, or a sum is to be taken
// back. Gas is paid out of the house's funds, so these stay what they are.
func TestFS02_EditedCostIsNotBooked(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	w, _ := i.onItsWay(outgoing.Attempts.Table, "supplier", "USDTERC20", "10")
	for n := 0; ; n++ {
		require.Less(t, n, 20)
		v, err := i.app.Operate.Transactions(t.Context(), "ETH", w.ID)
		require.NoError(t, err)
		if v.State == outgoing.Final {
			break
		}
		i.work(10)
	}
	i.work(10)
	house := func() []ledger.Balance {
		b, err := i.store.Balances(t.Context(), storage.Tenant(i.tenant), ledger.FeesNetwork, ledger.Float)
		require.NoError(t, err)
		return b
	}
	before, tx := house(), i.sent(w.ID)[0]
	for _, set := range []string{
		"cost = -900000000, cost_tx = 'another'",
		"cost = cost + 1",
		`undone = '[{"tx":"` + tx + `","cost":900000000}]'`,
		`state = 'signed', reason = 'reorged', cost_tx = '', undone = '[{"tx":"` + tx + `","cost":900000000}]'`,
	} {
		undo := i.rowOf("outcomes", w.ID)
		logged := len(i.log.heard())
		i.edit("UPDATE cryptopay_outcomes SET due = 1, "+set+" WHERE id = ?", w.ID)
		i.work(5)
		require.Equal(t, before, house(), set)
		require.Contains(t, i.log.heard()[logged:], "order_altered", set)
		require.True(t, i.finds(w.ID), set)
		undo()
	}
	i.work(5)
	require.Equal(t, before, house())
}
