package treasury_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

func TestSweepNative(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("ETH", "300")
	w.mine(45)
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	require.Equal(t, treasury.SweepDone, w.sweeps()[0].State)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").LessThan(dec("0.001")), "only what the fee left over")
	w.conserved("ETH")
	w.released()
}

func TestSweepTokenIsFundedFirst(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	w.mine(60)
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	s := w.sweeps()[0]
	require.Equal(t, treasury.SweepDone, s.State)
	require.Equal(t, 1, s.Fundings)
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// Whatever commit a process dies at, before or after it, the next one goes on:
// one sweep, each cost booked once, and nothing left set aside. A token is the
// longest way, as it is sent gas first.
func TestSweepSurvivesDeathAtEveryCommit(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	const currency = "USDTERC20"
	clean := liveThrough(t, currency, 0, false)
	require.Greater(t, clean, 20)
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after=%t", after), func(t *testing.T) {
			t.Parallel()
			for at := 1; at <= clean; at += stride() {
				t.Run(fmt.Sprint(at), func(t *testing.T) { liveThrough(t, currency, at, after) })
			}
		})
	}
}

// liveThrough is a payment swept by a process that dies at one commit, and by
// the one after it. It returns how many commits the first made.
func liveThrough(t *testing.T, currency string, dieAt int, after bool) (commits int) {
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay(currency, "300")
	w.store.commits, w.store.dieAt, w.store.after = 0, dieAt, after
	w.mine(30)
	commits = w.store.commits
	w.store.dieAt = 0
	w.pass(40)
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	require.Equal(t, 1, w.landed(w.hot, currency)-funded(currency), "one sweep")
	for _, s := range w.sweeps() {
		require.Equal(t, treasury.SweepDone, s.State, s.Reason)
	}
	w.conserved("ETH", "USDTERC20")
	w.released()
	return commits
}

// funded is how many transfers of the currency fund makes.
func funded(currency string) int {
	if currency == "ETH" {
		return 1
	}
	return 0
}

// The same for a withdrawal.
func TestWithdrawalSurvivesDeathAtEveryCommit(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	run := func(t *testing.T, currency string, dieAt int, after bool) int {
		n := networkOf(currency)
		w := newWorld(t, n)
		w.fund("1")
		w.pay(currency, "300")
		w.pass(60)
		amount := dec("100")
		to := w.chain.Customer("supplier")
		v, err := w.app.Withdrawals.Create(t.Context(), w.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{PriceAmount: &amount, Currency: currency, Address: string(to)},
		})
		require.NoError(t, err)
		w.store.commits, w.store.dieAt, w.store.after = 0, dieAt, after
		w.mine(30)
		commits := w.store.commits
		w.store.dieAt = 0
		w.pass(60)
		v, err = w.app.Withdrawals.Get(t.Context(), w.tenant, v.ID)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Completed, v.Status, v.Waiting)
		require.Equal(t, w.currency(currency).Decimal(v.Amount).String(), w.chain.Balance(to, currency).String())
		w.conserved(currency, string(n))
		w.released()
		return commits
	}
	for _, currency := range []string{"USDTERC20", "BTC"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			clean := run(t, currency, 0, false)
			for at := 1; at <= clean; at += stride() {
				t.Run(fmt.Sprint(at), func(t *testing.T) { run(t, currency, at, at%2 == 0) })
			}
		})
	}
}

func networkOf(currency string) chain.Network {
	c, err := chain.MainnetRegistry().Currency(currency)
	if err != nil {
		panic(err)
	}
	return c.Network
}

func TestSweepWaitsForGasFloatVisibly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	p := w.pay("USDTERC20", "300")
	w.mine(30)
	s := w.sweeps()[0]
	require.Equal(t, treasury.SweepDeferred, s.State)
	require.Zero(t, s.Fundings)
	waiting := w.waiting()
	require.Len(t, waiting, 1)
	require.Equal(t, treasury.WaitGasShort, waiting[0].Reason)
	require.Equal(t, "300", waiting[0].Currency.Decimal(waiting[0].Amount).String())
	require.True(t, waiting[0].Next.After(w.clock.Now()))
	w.fund("1")
	w.mine(100)
	require.Equal(t, treasury.SweepDone, w.sweeps()[0].State)
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// Two deposits at one address become final in the middle of each other's
// sweeps: one sweep at a time, and the later one finds nothing left.
func TestTwoSweepsOfOneAddressTakeTurns(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"ETH", "USDTERC20"} {
		for gap := range 4 {
			t.Run(fmt.Sprint(currency, gap), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, "ETH")
				w.fund("1")
				p := w.pay(currency, "300")
				w.mine(gap)
				w.send(p, currency, dec("0.5"))
				w.mine(100)
				require.Equal(t, payment.Completed, w.payment(p.ID).Status)
				for _, s := range w.sweeps() {
					require.Contains(t, []treasury.SweepState{treasury.SweepDone, treasury.SweepDeferred}, s.State, s.Reason)
				}
				require.True(t, w.chain.Balance(chain.Address(p.Address), currency).LessThan(dec("0.01")))
				w.conserved("ETH", "USDTERC20")
				w.released()
			})
		}
	}
}

// A token and the network's own coin at one address: the sweep of the one must
// not take the gas of the other.
func TestSweepOfCoinsLeavesGasOfTokenAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	w.mine(1)
	w.send(p, "ETH", dec("0.3"))
	shown := 0
	for range 120 {
		w.mine(1)
		waiting, err := w.app.Treasury.Waiting(t.Context(), w.tenant, "ETH", 100, 0)
		require.NoError(t, err)
		for _, s := range waiting {
			if s.Reason == treasury.WaitTurn {
				require.False(t, s.Since.IsZero() || s.Next.IsZero(), "it waits since a time, and is looked at again: %+v", s)
				shown++
			}
		}
	}
	require.Positive(t, shown, "one waits for the other, and says so")
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").LessThan(dec("0.01")))
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// TestFT03_TwoThatHadGasAndWaitDoNotWaitForEachOther: two tokens at one address had gas sent
// for them and wait, as fees rose. More comes in both: each gets its turn. An earlier version
// left them as new ones, each behind the other.
func TestFT03_TwoThatHadGasAndWaitDoNotWaitForEachOther(t *testing.T) {
	t.Parallel()
	for _, state := range []treasury.SweepState{treasury.SweepDeferred, treasury.SweepNew} {
		t.Run(string(state), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("1")
			level := w.chain.FeeLevel()
			p := w.open("USDTERC20", "30")
			w.chain.SetFeeLevel(spike * level)
			w.send(p, "USDTERC20", dec("30"))
			w.send(p, "USDCERC20", dec("30"))
			w.mine(40)
			rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH"), Limit: 10})
			require.NoError(t, err)
			require.Len(t, rows, 2)
			change := storage.Change{ID: "had gas", Partition: storage.Network("ETH")}
			for _, row := range rows {
				s := treasury.Sweeps.Value(row)
				require.Equal(t, treasury.SweepDeferred, s.State, s.Reason)
				s.State, s.Fundings = state, 1
				change.Put = append(change.Put, treasury.Sweeps.Row(row.ID, row.Version, w.clock.Now(), s))
			}
			require.NoError(t, storage.CommitOne(t.Context(), w.store, change))
			if state == treasury.SweepDeferred {
				w.send(p, "USDTERC20", dec("5"))
				w.send(p, "USDCERC20", dec("5"))
			}
			w.mine(40)
			for _, s := range w.sweeps() {
				require.Equal(t, treasury.SweepDeferred, s.State, "it waits for lower fees: %s", s.Reason)
			}
			w.chain.SetFeeLevel(level)
			w.hours(3)
			require.Zero(t, w.waits(), "%+v", w.waiting())
			require.True(t, w.chain.Balance(chain.Address(p.Address), "USDTERC20").IsZero())
			require.True(t, w.chain.Balance(chain.Address(p.Address), "USDCERC20").IsZero())
			w.conserved("USDTERC20", "USDCERC20")
		})
	}
}

func TestDustIsDeferred(t *testing.T) {
	t.Parallel()
	for currency, amount := range map[string]string{"ETH": "0.00001", "USDTERC20": "0.01"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("1")
			p, err := w.app.Payments.Create(t.Context(), w.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: currency}})
			require.NoError(t, err)
			w.send(p, currency, dec(amount))
			w.mine(30)
			require.Equal(t, treasury.SweepDeferred, w.sweeps()[0].State)
			require.Equal(t, 1, w.landed(w.hot, "ETH"), "nothing was sent")
			require.Equal(t, "1", w.chain.Balance(w.hot, "ETH").String(), "nothing was spent")
			w.released()
		})
	}
}

// TestD19_FloodOfDust: many worthless deposits cost bounded work, no coins and
// no events.
func TestD19_FloodOfDust(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p, err := w.app.Payments.Create(t.Context(), w.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "USDTERC20"}})
	require.NoError(t, err)
	const flood = 400
	for range flood {
		w.send(p, "USDTERC20", dec("0.000001"))
	}
	w.mine(30)
	require.Empty(t, w.sweeps(), "dust alone is not worth a row")
	require.Equal(t, "1", w.chain.Balance(w.hot, "ETH").String(), "nothing was spent")
	waiting, err := w.store.Count(t.Context(), storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network("ETH"),
		Where: []storage.Cond{{Column: "forward", Op: storage.Eq, Value: incoming.ForwardNone}, {Column: "purpose", Op: storage.Eq, Value: incoming.UsePayment}},
	})
	require.NoError(t, err)
	require.Zero(t, waiting)
	events, err := w.store.Count(t.Context(), storage.Query{Table: payment.Deposits.Table, Partition: storage.Tenant(w.tenant), Where: []storage.Cond{{Column: "payment", Op: storage.Ne, Value: ""}}})
	require.NoError(t, err)
	require.Zero(t, events, "none of them counts")
}

// A sweep that reverts is deferred, its cost is booked, and the payment does
// not wait. It is tried again until it goes through.
func TestFailedSweepIsDeferred(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	for range 60 {
		w.mine(1)
		if s := w.sweeps(); len(s) > 0 && s[0].State == treasury.SweepMoving {
			break
		}
	}
	w.chain.SetBehaviour(w.currency("USDTERC20").Contract, paused)
	w.mine(40)
	require.Equal(t, treasury.SweepReplaced, w.sweeps()[0].State)
	require.Equal(t, treasury.WaitRefused, w.waiting()[0].Reason)
	w.clock.Advance(31 * time.Minute)
	w.mine(2)
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	require.Zero(t, w.landed(w.hot, "USDTERC20"))
	w.chain.SetBehaviour(w.currency("USDTERC20").Contract, sim.Behaviour{})
	w.hours(2)
	w.mine(30)
	require.Zero(t, w.waits())
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A signer has signed a sweep, was not heard, and refuses it from then on: its nonce is
// used up by paying the address itself, and the sweep fails. Another takes its place, as
// the merchant's coins would stay where they are until somebody pays there again.
func TestK05_SweepWhoseNonceWasUsedUpIsMadeAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("ETH", "100")
	w.store.fail = func(c *storage.Change) bool { return strings.HasPrefix(c.ID, "out/store/") }
	for range 20 { // not heard
		w.clock.Advance(15 * time.Second)
		w.chain.Mine(1)
		_ = w.app.Step(t.Context())
	}
	require.NotEmpty(t, w.intents(chain.ForSweep)[0].Plan)
	w.store.fail, w.shy = nil, true
	for range 60 {
		w.mine(1)
		if w.intents(chain.ForSweep)[0].State == outgoing.Failed {
			break
		}
	}
	require.Equal(t, outgoing.Failed, w.intents(chain.ForSweep)[0].State)
	w.shy = false
	w.mine(60)
	states := map[treasury.SweepState]int{}
	for _, s := range w.sweeps() {
		states[s.State]++
	}
	require.Equal(t, map[treasury.SweepState]int{treasury.SweepReplaced: 1, treasury.SweepDone: 1}, states)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").IsZero())
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	rows, err := w.store.Find(t.Context(), storage.Query{Table: incoming.Sightings.Table, Partition: storage.Network("ETH"), Where: []storage.Cond{
		{Column: "address", Op: storage.Eq, Value: chain.Address(p.Address)},
	}})
	require.NoError(t, err)
	for _, r := range rows {
		if s := incoming.Sightings.Value(r); !s.Internal {
			require.Equal(t, incoming.Forwarded, s.Forward)
		}
	}
	w.released()
	w.conserved("ETH")
}
