package treasury_test

import (
	"flag"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// spike is a fee level at which a payment of 100 USD is not worth forwarding.
const spike = 1500

// open is a payment that nobody has paid yet.
func (w *world) open(currency, usd string) payment.Payment {
	w.t.Helper()
	p, err := w.app.Payments.Create(w.t.Context(), w.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: usd, Currency: currency}})
	require.NoError(w.t, err)
	return p
}

// withdraw orders a payout worth so many USD.
func (w *world) withdraw(currency, amount string) string {
	w.t.Helper()
	a := dec(amount)
	v, err := w.app.Withdrawals.Create(w.t.Context(), w.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &a, Currency: currency, Address: string(w.chain.Customer("supplier"))},
	})
	require.NoError(w.t, err)
	return v.ID
}

func (w *world) paidOut(id string) {
	w.t.Helper()
	v, err := w.app.Withdrawals.Get(w.t.Context(), w.tenant, id)
	require.NoError(w.t, err)
	require.Equal(w.t, withdrawal.Completed, v.Status, v.Waiting)
}

// merged counts the deposit_merged events.
func (w *world) merged() (n int) {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(w.tenant), Limit: 100_000,
		Where: []storage.Cond{{Column: "type", Op: storage.Eq, Value: webhook.DepositMerged}},
	})
	require.NoError(w.t, err)
	return len(rows)
}

// A payment becomes final while fees are high: its payment completes, it waits with a
// reason, and after a day of normal fees all of it can be paid out, without a top-up and
// whatever process works.
func TestFT01_PaymentMadeInAFeeSpikeIsSpendableADayLater(t *testing.T) {
	t.Parallel()
	for name, parts := range map[string][]string{
		"one payment":        {"0.05"},
		"ten small payments": {"0.0025", "0.0025", "0.0025", "0.0025", "0.0025", "0.0025", "0.0025", "0.0025", "0.0025", "0.0025"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("0.01")
			level := w.chain.FeeLevel()
			w.chain.SetFeeLevel(spike * level)
			sum := decimal.Zero
			for _, amount := range parts {
				p := w.open("ETH", dec(amount).Mul(dec("2000")).String())
				w.send(p, "ETH", dec(amount))
				sum = sum.Add(dec(amount))
			}
			w.mine(40)
			w.clock.Advance(31 * time.Minute)
			w.mine(1)
			waiting := w.waiting()
			require.Len(t, waiting, len(parts))
			for _, x := range waiting {
				require.Equal(t, treasury.WaitBelowCost, x.Reason)
				require.False(t, x.Since.IsZero())
				require.Positive(t, x.DueBelow)
			}
			require.Zero(t, w.merged())
			credited := w.posted(ledger.Wallet("master"), "ETH")
			require.True(t, credited.GreaterThan(sum.Mul(dec("0.99"))), "the merchant has it")

			w.chain.SetFeeLevel(level)
			id := w.withdraw("ETH", credited.Mul(dec("1600")).Truncate(2).String())
			w.restart()
			w.hours(24)
			w.mine(30)
			require.Zero(t, w.waits())
			for _, s := range w.sweeps() {
				require.Equal(t, treasury.SweepDone, s.State, s.Reason)
			}
			require.Equal(t, len(parts), w.merged(), "told when it has merged")
			w.paidOut(id)
			w.conserved("ETH")
			w.released()
		})
	}
}

// A token's issuer blocks the address of a payment, and lifts that days later.
func TestFT01_SweepThatWasRefusedIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	w.mine(1)
	contract := w.currency("USDTERC20").Contract
	w.chain.SetBehaviour(contract, sim.Behaviour{Blocked: []chain.Address{chain.Address(p.Address)}})
	w.until(func() bool { return w.waits() > 0 })
	require.Equal(t, treasury.WaitRefused, w.waiting()[0].Reason)
	w.clock.Advance(31 * time.Minute)
	w.mine(1)
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	id := w.withdraw("USDTERC20", "200")
	w.hours(3 * 24)
	w.mine(60)
	w.until(func() bool {
		return slices.ContainsFunc(w.waiting(), func(x treasury.Waiting) bool { return x.Reason == treasury.WaitRefused })
	})
	require.Less(t, len(w.intents(chain.ForSweep)), 12, "with growing pauses")
	spent := dec("1").Sub(w.chain.Balance(w.hot, "ETH")).Mul(dec("2000"))
	require.True(t, spent.LessThan(dec("150")), "all tries together cost at most half of it: %s USD", spent)

	w.chain.SetBehaviour(contract, sim.Behaviour{})
	w.restart()
	w.hours(26)
	w.mine(30)
	require.Zero(t, w.waits())
	w.paidOut(id)
	require.Equal(t, 1, w.merged())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A sweep that a version before this one has given up is taken up again.
func TestFT01_SweepsThatWereGivenUpAreTakenUpAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("0.01")
	level := w.chain.FeeLevel()
	w.chain.SetFeeLevel(spike * level)
	w.pay("ETH", "100")
	w.mine(40)
	w.givenUp()
	w.restart()
	w.mine(3)
	require.Equal(t, treasury.WaitBelowCost, w.waiting()[0].Reason, "it is judged anew")
	w.givenUp()
	w.chain.SetFeeLevel(level)
	w.restart()
	w.hours(1)
	w.mine(30)
	require.Zero(t, w.waits())
	require.True(t, w.chain.Balance(w.hot, "ETH").GreaterThan(dec("0.049")))
	w.conserved("ETH")
	w.released()
}

// givenUp leaves the store as a version did that gave sweeps up.
func (w *world) givenUp() {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{
		Table: treasury.Sweeps.Table, Partition: storage.Network(string(w.n)),
		Where: []storage.Cond{{Column: "state", Op: storage.Eq, Value: treasury.SweepDeferred}},
	})
	require.NoError(w.t, err)
	require.NotEmpty(w.t, rows)
	for _, row := range rows {
		s := treasury.Sweeps.Value(row)
		s.State, s.Reason = "deferred", "0.05 ETH is not worth its fee of up to 0.1"
		c := storage.Change{ID: "old/" + row.ID, Partition: row.Partition, Put: []storage.Row{
			treasury.Sweeps.Row(row.ID, row.Version, time.Time{}, s),
		}}
		notes, err := w.store.Rows(w.t.Context(), treasury.SweepNotes.Table, storage.Keys(row.Partition, row.ID)...)
		require.NoError(w.t, err)
		c.Drop = notes
		require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, c))
	}
}

// Payments of two cents, thousands of them: what forwarding costs is at most half of
// what it moves, the rest waits where it is and is shown, adds up with what comes later,
// and goes when fees have fallen.
func TestFT02_DustCostsAtMostHalfOfWhatItMoves(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	t.Run("a few in memory", func(t *testing.T) { t.Parallel(); dust(t, newWorld(t, "ETH"), 300/stride()) })
	if many := *dustPayments; many > 0 {
		t.Run("many", func(t *testing.T) {
			t.Parallel()
			dust(t, newWorldAs(t, "ETH", func(w *world) {
				if *dustStore == "sqlite" {
					w.store = &mortal{Store: onSQLite(t)}
				}
			}), many)
		})
	}
}

var (
	dustPayments = flag.Int("dust", 0, "play so many payments of two cents; see make dust")
	dustStore    = flag.String("dust.store", "memory", "memory or sqlite")
)

func onSQLite(t *testing.T) storage.Store {
	file := filepath.Join(t.TempDir(), "treasury.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file, append(cryptopay.Tables(), keys.Tables()...)...))
	s, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func dust(t *testing.T, w *world, many int) {
	w.fund("1")
	level := w.chain.FeeLevel()
	start, before := w.chain.Balance(w.hot, "ETH"), decimal.Zero
	var first payment.Payment
	for i := range many {
		p := w.open("USDTERC20", "5")
		if i == 0 {
			first = p
		}
		w.send(p, "USDTERC20", dec("0.02"))
	}
	half := func(price string) { // of what was moved since the last time
		t.Helper()
		has, moved := w.chain.Balance(w.hot, "ETH"), w.chain.Balance(w.hot, "USDTERC20")
		gone := start.Sub(has).Mul(dec(price)) // with the gas that stays where it was sent
		require.True(t, gone.Mul(dec("2")).LessThanOrEqual(moved.Sub(before)), "%s USD for %s", gone, moved.Sub(before))
		start, before = has, moved
	}
	w.mine(60)
	require.Equal(t, start.String(), w.chain.Balance(w.hot, "ETH").String(), "two cents cost eighty to move")
	require.Empty(t, w.intents(chain.ForGas))
	require.Equal(t, min(1000, many), w.waits())
	require.Equal(t, treasury.WaitBelowCost, w.waiting()[0].Reason)
	h, err := w.app.Treasury.Holdings(t.Context(), w.tenant)
	require.NoError(t, err)
	require.Equal(t, dec("0.02").Mul(decimal.NewFromInt(int64(many))).String(), figures(h, "USDTERC20")[2], "shown")

	w.send(first, "USDTERC20", dec("4.98"))
	w.mine(60)
	require.Equal(t, "5", w.chain.Balance(w.hot, "USDTERC20").String(), "it adds up, and goes as one")
	half("2000")

	w.chain.SetFeeLevel(level / 100)
	w.rates.Set("ETH", "USD", dec("200"))
	w.restart()
	w.hours(12)
	w.mine(60)
	require.Zero(t, w.waits())
	require.Equal(t, dec("0.02").Mul(decimal.NewFromInt(int64(many-1))).Add(dec("5")).String(), w.chain.Balance(w.hot, "USDTERC20").String())
	half("200")
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// An earlier version gave a sweep up and made another for the same deposit, which fails
// now. It is made again under an id that no sweep has, and the coins are forwarded once.
func TestFT01_SweepBesideOneThatWasGivenUpIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "300")
	contract := w.currency("USDTERC20").Contract
	moving := func(n int) func() bool {
		return func() bool { s := w.sweeps(); return len(s) == n && s[n-1].State == treasury.SweepMoving }
	}
	w.until(moving(1))
	w.chain.SetBehaviour(contract, sim.Behaviour{Paused: true})
	w.until(func() bool { return w.waits() > 0 })
	w.chain.SetBehaviour(contract, sim.Behaviour{})
	w.until(moving(2))
	w.chain.SetBehaviour(contract, sim.Behaviour{Paused: true})

	rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH"), Limit: 1})
	require.NoError(t, err)
	old := treasury.Sweeps.Value(rows[0])
	require.Equal(t, treasury.SweepReplaced, old.State)
	old.State = "deferred"
	third := old
	third.State = treasury.SweepReplaced
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{ID: "old", Partition: rows[0].Partition, Put: []storage.Row{
		treasury.Sweeps.Row(rows[0].ID, rows[0].Version, time.Time{}, old),
		treasury.Sweeps.Row(rows[0].ID+"/again/2", 0, time.Time{}, third),
	}}))
	w.restart()
	w.mine(1)
	require.Len(t, w.sweeps(), 3, "the second has the deposit")
	w.hours(1)
	w.chain.SetBehaviour(contract, sim.Behaviour{})
	w.hours(4)
	w.mine(40)
	require.Zero(t, w.waits())
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A permanent address has had more than a thousand sweeps when the transaction of one fails: it is
// made again, under an id that none of them has.
func TestFA04_SweepOfAnAddressThatHadManyIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	contract := w.currency("USDTERC20").Contract
	w.until(func() bool { s := w.sweeps(); return len(s) == 1 && s[0].State == treasury.SweepMoving })
	c := storage.Change{ID: "old", Partition: storage.Network("ETH")}
	for i := range 1000 { // before all others, by id
		c.Put = append(c.Put, treasury.Sweeps.Row(fmt.Sprintf("sweep/ETH/!%05d", i), 0, time.Time{}, treasury.Sweep{
			Tenant: w.tenant, Network: "ETH", Address: p.Address, Currency: "USDTERC20", State: treasury.SweepReplaced, Created: w.clock.Now(),
		}))
	}
	require.NoError(t, storage.CommitOne(t.Context(), w.store, c))
	w.chain.SetBehaviour(contract, sim.Behaviour{Paused: true})
	w.until(func() bool { return w.waits() > 0 })
	w.chain.SetBehaviour(contract, sim.Behaviour{})
	w.hours(4)
	w.mine(40)
	require.Zero(t, w.waits())
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// An earlier version left a deposit of a token that it did not list: deferred, with a
// sweep without a currency. Once it is listed and recovered, it is forwarded.
func TestFM01_DepositThatWasUnlistedIsForwardedOnceItIsRecovered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	w.mine(3)
	at := storage.Query{Table: incoming.Sightings.Table, Partition: storage.Network("ETH"), Where: []storage.Cond{
		{Column: "address", Op: storage.Eq, Value: p.Address},
	}}
	rows, err := w.store.Find(t.Context(), at)
	require.NoError(t, err)
	require.Len(t, rows, 1)
	s := incoming.Sightings.Value(rows[0])
	require.Equal(t, incoming.Included, s.State)
	s.State, s.Currency, s.Amount, s.Forward = incoming.Final, "", 0, incoming.Deferred
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{ID: "old", Partition: rows[0].Partition, Put: []storage.Row{
		incoming.Sightings.Row(rows[0].ID, rows[0].Version, time.Time{}, s),
		treasury.Sweeps.Row("sweep/"+s.Generated(), 0, time.Time{}, treasury.Sweep{
			Tenant: w.tenant, Network: "ETH", Address: p.Address, Deposits: []string{rows[0].ID}, State: "deferred", Created: w.clock.Now(),
		}),
	}}))
	w.restart()
	w.mine(20)
	require.Zero(t, w.landed(w.hot, "USDTERC20"))
	_, _, err = w.app.Operate.RecoverDeposits(t.Context(), w.n, chain.Address(p.Address), 1, 0, cryptopay.Call{By: "ops", Reason: "asked"})
	require.NoError(t, err)
	w.mine(60)
	rows, err = w.store.Find(t.Context(), at)
	require.NoError(t, err)
	for _, row := range rows {
		if s := incoming.Sightings.Value(row); s.Currency == "USDTERC20" {
			require.Equal(t, incoming.Forwarded, s.Forward)
		}
	}
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// TestFM01_DepositOfACurrencyThatOneProcessDoesNotList: while a new currency is rolled out, a
// process that does not list it leaves its deposits to one that does.
func TestFM01_DepositOfACurrencyThatOneProcessDoesNotList(t *testing.T) {
	t.Parallel()
	w := newWorldAs(t, "ETH", func(w *world) { w.lacks = "USDTERC20" })
	w.fund("1")
	before := w.app
	w.lacks = ""
	w.restart()
	p := w.pay("USDTERC20", "300")
	w.chain.Mine(14)
	w.credit()
	_, err := before.Treasury.Step(t.Context(), w.n)
	require.NoError(t, err)
	w.until(func() bool { return w.chain.Balance(chain.Address(p.Address), "USDTERC20").IsZero() })
	w.conserved("USDTERC20")
}

// A network that nobody configured has no sweeps to be moved: the caller named a wrong one.
func TestStepOfAnUnknownNetwork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	_, err := w.app.Treasury.Step(t.Context(), "EHT")
	require.ErrorIs(t, err, chain.ErrCurrency)
}
