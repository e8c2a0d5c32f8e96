package treasury_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// until mines, with time for the library to act, until ok.
func (w *world) until(ok func() bool) {
	w.t.Helper()
	for range 100 {
		if ok() {
			return
		}
		w.mine(1)
	}
	require.Fail(w.t, "it never comes to that")
}

// intents lists what was ordered for a purpose.
func (w *world) intents(p chain.Purpose) (out []outgoing.IntentRow) {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network(string(w.n)), Limit: 10_000})
	require.NoError(w.t, err)
	for _, r := range rows {
		if v := outgoing.Intents.Value(r); v.Purpose == p {
			out = append(out, v)
		}
	}
	return out
}

// sweepIDs are the ids of all sweeps, in the order of sweeps.
func (w *world) sweepIDs() (out []string) {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network(string(w.n)), Limit: 10_000})
	require.NoError(w.t, err)
	for _, r := range rows {
		out = append(out, r.ID)
	}
	return out
}

// deposits are what customers paid on the network.
func (w *world) deposits() (out []incoming.Sighting) {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: incoming.Sightings.Table, Partition: storage.Network(string(w.n)), Limit: 10_000})
	require.NoError(w.t, err)
	for _, r := range rows {
		if v := incoming.Sightings.Value(r); v.Purpose == incoming.UsePayment && !v.Internal {
			out = append(out, v)
		}
	}
	return out
}

func (w *world) signed() bool {
	sweeps := w.intents(chain.ForSweep)
	return len(sweeps) > 0 && sweeps[0].State == outgoing.Signed
}

// hours go by, with blocks in them.
func (w *world) hours(n int) {
	w.t.Helper()
	for range n * 4 {
		w.clock.Advance(15 * time.Minute)
		w.mine(1)
	}
}

// A token sweep was signed at a high price, on gas that a fork then took away;
// the price falls. What was signed still needs what it was signed for: the
// address gets that, not what the price of the day asks.
func TestR05_SignedSweepGetsTheGasThatItWasSignedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	level := w.chain.FeeLevel()
	p := w.pay("USDTERC20", "300")
	w.mine(9)
	w.chain.SetFeeLevel(4 * level)
	w.send(p, "ETH", dec("0.3")) // a stray deposit, not final yet when the token is swept
	w.until(w.signed)
	require.Zero(t, w.sweeps()[0].Fundings, "it stands on the stray coins")
	w.chain.SetFeeLevel(20 * level)
	stray := w.chain.Transfers(chain.Address(p.Address))[1]
	require.Equal(t, "ETH", stray.Currency)
	_, err := w.chain.Reorg(8, stray.Tx)
	require.NoError(t, err)
	w.mine(1)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").IsZero())
	w.chain.SetFeeLevel(level)
	w.hours(3)
	w.mine(30)
	require.Equal(t, treasury.SweepDone, w.sweeps()[0].State, w.sweeps()[0].Reason)
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A sweep was handed over and is not signed yet. Then a fork takes its gas away, and it has
// asked for gas as often as one may. It shows why it waits, and asks once more a day later.
func TestFT01_SweepThatWasHandedOverAsksForGasADayLater(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	w.mine(9)
	w.shy = true // nothing is signed
	w.send(p, "ETH", dec("0.3"))
	w.until(func() bool { return len(w.sweeps()) > 0 && w.sweeps()[0].State == treasury.SweepMoving })
	require.Zero(t, w.sweeps()[0].Fundings, "it stands on the stray coins")
	stray := w.chain.Transfers(chain.Address(p.Address))[1]
	_, err := w.chain.Reorg(8, stray.Tx)
	require.NoError(t, err)
	w.fundings(3)
	w.shy = false
	w.hours(20)
	require.Equal(t, treasury.SweepMoving, w.sweeps()[0].State)
	require.Equal(t, treasury.WaitGasStays, w.waiting()[0].Reason)
	require.WithinRange(t, w.waiting()[0].Since, w.clock.Now().Add(-21*time.Hour), w.clock.Now().Add(-19*time.Hour))
	w.hours(8)
	w.mine(30)
	require.Equal(t, treasury.SweepDone, w.sweeps()[0].State, w.sweeps()[0].Reason)
	require.Zero(t, w.waits())
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// The price rises above what a sweep was signed for: the address holds the price
// of the day, but not the eighth more that nodes ask of a replacement.
func TestW03_SweepGetsGasForItsReplacement(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	w.until(w.signed)
	w.chain.SetFeeLevel(22 * w.chain.FeeLevel() / 10)
	_, err := w.chain.Fund(chain.Address(p.Address), "ETH", dec("0.000095"))
	require.NoError(t, err)
	w.hours(4)
	w.mine(30)
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	w.conserved("USDTERC20")
	w.released()
}

// A signed sweep is to get more gas: its cost is set aside, and before it is handed
// over the sweep fails. What was set aside is given back.
func TestW02_GasOfASweepThatFailedMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "300")
	w.until(w.signed)
	level := w.chain.FeeLevel()
	w.chain.SetFeeLevel(2 * level)
	refused := 0
	w.store.fail = func(c *storage.Change) bool {
		no := slices.ContainsFunc(c.Put, func(r storage.Row) bool {
			return r.Table == outgoing.Intents.Table && r.Version == 0 && strings.HasPrefix(r.ID, "gas/2/")
		})
		if no {
			refused++
		}
		return no
	}
	for range 100 {
		w.clock.Advance(15 * time.Minute)
		_ = w.app.Step(t.Context()) // the order for more gas cannot be stored
	}
	require.Positive(t, refused)
	require.Equal(t, treasury.SweepFunding, w.sweeps()[0].State)
	w.chain.SetBehaviour(w.currency("USDTERC20").Contract, paused)
	w.chain.SetFeeLevel(level)
	for range 30 {
		w.chain.Mine(1)
		w.clock.Advance(15 * time.Second)
		_ = w.app.Step(t.Context())
	}
	w.store.fail = nil
	w.hours(1)
	w.chain.SetBehaviour(w.currency("USDTERC20").Contract, sim.Behaviour{})
	w.hours(9)
	require.Equal(t, treasury.SweepReplaced, w.sweeps()[0].State)
	w.released()
}

// A sweep was taken over and is not signed yet when a deep fork takes the token
// away: nothing is left to move, and it is called back.
func TestR05_SweepOfNothingIsCalledBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "300")
	token := w.chain.Mempool()[0]
	w.until(func() bool { s := w.sweeps(); return len(s) > 0 && s[0].State == treasury.SweepFunding })
	w.shy = true
	w.until(func() bool { return len(w.intents(chain.ForSweep)) > 0 })
	w.mine(1)
	require.Equal(t, outgoing.Waiting, w.intents(chain.ForSweep)[0].State)
	_, err := w.chain.Reorg(20, token)
	require.NoError(t, err)
	w.mine(1)
	w.shy = false
	w.clock.Advance(10 * time.Minute)
	w.mine(1)
	require.Equal(t, outgoing.Cancelled, w.intents(chain.ForSweep)[0].State)
	require.Zero(t, w.landed(w.hot, "USDTERC20"))
	w.mine(30)
	for _, s := range w.sweeps() {
		require.Equal(t, treasury.SweepReplaced, s.State, s.Reason)
	}
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A sweep has landed, its deposit was told so, and then a fork shallower than
// the deposit takes the sweep away and it fails for good: what the address holds
// is swept again without a deposit to remind of it.
func TestR05_SweepThatDiedAfterItLandedIsSweptAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	w.until(func() bool { s := w.sweeps(); return len(s) > 0 && s[0].State == treasury.SweepDone })
	w.mine(1)
	first := w.sweeps()[0].Tx
	require.Equal(t, payment.Completed, w.payment(p.ID).Status)
	contract := w.currency("USDTERC20").Contract
	w.chain.SetBehaviour(contract, paused)
	_, err := w.chain.Reorg(3)
	require.NoError(t, err)
	w.until(func() bool { return w.intents(chain.ForSweep)[0].State == outgoing.Failed || len(w.sweeps()) > 1 })
	w.chain.SetBehaviour(contract, sim.Behaviour{})
	w.hours(2)
	w.mine(30)
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	require.Len(t, w.sweeps(), 2)
	for _, s := range w.sweeps() {
		if s.State == treasury.SweepDone {
			require.NotEqual(t, first, s.Tx)
			require.Equal(t, s.Tx, w.forwardTx(p.Address))
			continue
		}
		require.Equal(t, treasury.SweepReplaced, s.State)
	}
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// forwardTx is what the deposit of an address is said to have been swept with.
func (w *world) forwardTx(address string) string {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network(string(w.n)),
		Where: []storage.Cond{{Column: "address", Op: storage.Eq, Value: address}, {Column: "internal", Op: storage.Eq, Value: false}},
	})
	require.NoError(w.t, err)
	require.Len(w.t, rows, 1)
	return incoming.Sightings.Value(rows[0]).ForwardTx
}

// What can never be sent has nothing set aside.
func TestRefusedIntentSetsNothingAside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	good := chain.Intent{
		ID: "w1", Purpose: chain.ForWithdrawal, Tenant: w.tenant, Network: "ETH", Currency: "ETH",
		To: w.chain.Customer("supplier"), Amount: 1_000_000, Confirmations: 1,
	}
	bad := good
	bad.Confirmations = -1
	require.ErrorIs(t, w.app.Treasury.Submit(t.Context(), bad), outgoing.ErrIntent)
	w.released()
	require.ErrorIs(t, w.app.Treasury.Submit(t.Context(), bad), outgoing.ErrIntent, "it stays refused")
	w.released()
	good.ID, bad.ID = "w2", "w2"
	require.NoError(t, w.app.Treasury.Submit(t.Context(), good))
	require.Error(t, w.app.Treasury.Submit(t.Context(), bad), "taken over already")
	reserved, _, _, err := treasury.Reservations.One(t.Context(), w.store, storage.Tenant(w.tenant), "w2")
	require.NoError(t, err)
	require.True(t, reserved.Open, "what is on its way keeps what was set aside for it")
}

// TestR05_SweepIsNotGivenUpOnTheWordOfANodeOnABranchThatWasLeft: the node is as high as the
// block that makes the deposit final, on a branch in which the address is empty.
func TestR05_SweepIsNotGivenUpOnTheWordOfANodeOnABranchThatWasLeft(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"ETH", "USDTERC20"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("1")
			head := func() string {
				tip, err := w.chain.Client().Tip(t.Context())
				require.NoError(t, err)
				return tip.Head.Hash
			}
			w.chain.Mine(40)
			left := head()
			_, err := w.chain.ReorgTo(40, 20)
			require.NoError(t, err)
			p := w.pay(currency, "300")
			w.chain.Mine(40)
			for _, worker := range w.app.Workers() {
				if worker.Name == "incoming/ETH" {
					_, err := worker.Step(t.Context())
					require.NoError(t, err)
				}
			}
			stay := head()
			_, err = w.chain.Switch(left)
			require.NoError(t, err)
			for range 3 {
				_, err := w.app.Treasury.Step(t.Context(), w.n)
				require.ErrorIs(t, err, chain.ErrBehind)
				w.clock.Advance(10 * time.Minute)
			}
			require.Equal(t, treasury.SweepNew, w.sweeps()[0].State)
			_, err = w.chain.Switch(stay)
			require.NoError(t, err)
			w.mine(45)
			require.Equal(t, payment.Completed, w.payment(p.ID).Status)
			require.Equal(t, treasury.SweepDone, w.sweeps()[0].State)
			w.conserved("ETH", currency)
		})
	}
}

// A node that has fallen back behind the block of a deposit says that its address is
// empty. What is there is not given up for that: neither coins nor tokens.
func TestR06_SweepIsNotGivenUpOnTheWordOfANodeThatIsBehind(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"ETH", "USDTERC20"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("1")
			p := w.pay(currency, "300")
			w.chain.Mine(14)
			for _, worker := range w.app.Workers() {
				if worker.Name == "incoming/ETH" {
					_, err := worker.Step(t.Context())
					require.NoError(t, err)
				}
			}
			w.chain.Front().Lag(14)
			for range 3 {
				_, err := w.app.Treasury.Step(t.Context(), w.n)
				require.ErrorIs(t, err, chain.ErrBehind)
				w.clock.Advance(10 * time.Minute)
			}
			require.Equal(t, treasury.SweepNew, w.sweeps()[0].State)
			w.chain.Front().Honest()
			w.mine(45)
			require.Equal(t, payment.Completed, w.payment(p.ID).Status)
			require.Equal(t, treasury.SweepDone, w.sweeps()[0].State)
			w.conserved("ETH", currency)
		})
	}
}

// Ether was priced a million times too high when a sweep was judged. It waits, and goes
// when the price is put right.
func TestFT01_GasWasPricedTooHigh(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("USDTERC20", "300")
	w.until(func() bool { return len(w.sweeps()) == 1 && w.sweeps()[0].State == treasury.SweepDone })
	w.hours(1)
	w.rates.Set("ETH", "USD", dec("2000000000"))
	w.send(p, "USDTERC20", dec("12"))
	w.until(func() bool { return w.waits() == 1 })
	w.hours(3)
	require.Equal(t, treasury.WaitBelowCost, w.waiting()[0].Reason)
	w.rates.Set("ETH", "USD", dec("2000"))
	w.until(func() bool { return w.chain.Balance(chain.Address(p.Address), "USDTERC20").IsZero() })
	w.conserved("USDTERC20")
}

// Gas was sent where its price had been told far too low and fees were high. Now it is there,
// worth more than half of the coins: they are forwarded with it, as it is of no other use.
func TestFT01_GasThatIsThereIsUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	level := w.chain.FeeLevel()
	w.chain.SetFeeLevel(40 * level)
	w.rates.Set("ETH", "USD", dec("20"))
	p := w.open("USDTERC20", "10")
	w.send(p, "USDTERC20", dec("10"))
	w.until(func() bool { return len(w.intents(chain.ForGas)) == 1 })
	w.rates.Set("ETH", "USD", dec("2000"))
	w.until(func() bool { return w.waits() == 1 })
	require.Equal(t, treasury.WaitBelowCost, w.waiting()[0].Reason)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").Mul(dec("2000")).GreaterThan(dec("5")))
	w.hours(2)
	require.Equal(t, 1, w.waits())
	w.chain.SetFeeLevel(level)
	w.until(func() bool { return w.chain.Balance(chain.Address(p.Address), "USDTERC20").IsZero() })
	require.Len(t, w.intents(chain.ForGas), 1)
	w.mine(14)
	w.conserved("ETH", "USDTERC20")
}

// A second deposit came to an address whose first one had been forwarded, and paid the
// network for a token of the same address. What is left of it is not what the first sweep
// moved: it is forwarded, too.
func TestFT01_DepositThatPaidForItsNeighbour(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("ETH", "2000")
	a := chain.Address(p.Address)
	w.until(func() bool { return len(w.sweeps()) == 1 && w.sweeps()[0].State == treasury.SweepDone })
	w.hours(1)
	w.send(p, "USDTERC20", dec("300"))
	w.mine(9)
	w.send(p, "ETH", dec("0.5")) // not final yet when the token is swept
	w.until(func() bool { return w.chain.Balance(a, "USDTERC20").IsZero() })
	require.True(t, w.chain.Balance(a, "ETH").LessThan(dec("0.501")), "the token was swept on the second deposit")
	require.True(t, w.chain.Balance(a, "ETH").GreaterThan(dec("0.4")))
	w.hours(3)
	require.True(t, w.chain.Balance(a, "ETH").LessThan(dec("0.01")), "%s ETH is left", w.chain.Balance(a, "ETH"))
	w.mine(14)
	w.conserved("ETH", "USDTERC20")
}

// credit lets deposits be seen and credited, and nothing be forwarded.
func (w *world) credit() {
	w.t.Helper()
	for _, worker := range w.app.Workers() {
		if slices.Contains([]string{"incoming/ETH", "payments"}, worker.Name) {
			for range 5 {
				_, err := worker.Step(w.t.Context())
				require.NoError(w.t, err)
			}
		}
	}
}

// catchingUp is a node that is behind until somebody asks for its tip.
type catchingUp struct {
	node
	front *sim.Node
}

func (n catchingUp) Tip(ctx context.Context) (chain.Tip, error) {
	n.front.Honest()
	return n.Client.Tip(ctx)
}

// A node was behind when it said what an address holds, and had caught up when it was asked
// how far it is, as when a process slept between the two. What it said first ends nothing.
func TestR06_BalanceReadBeforeTheNodeCaughtUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.pay("ETH", "2000")
	w.until(func() bool { return len(w.sweeps()) == 1 && w.sweeps()[0].State == treasury.SweepDone })
	w.hours(1)
	w.send(p, "ETH", dec("0.5"))
	w.chain.Mine(14)
	w.credit()
	v := w.viewer(node{Client: w.chain.Client()}, func(cfg *treasury.Config) {
		cfg.Clients[w.n] = catchingUp{node{Client: w.chain.Client()}, w.chain.Front()}
	})
	for range 3 {
		w.chain.Front().Lag(14)
		_, err := v.Step(t.Context(), w.n)
		require.ErrorIs(t, err, chain.ErrBehind)
		w.clock.Advance(10 * time.Minute)
	}
	w.chain.Front().Honest()
	w.hours(1)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").LessThan(dec("0.01")), "the second deposit is forwarded, too")
	w.mine(14)
	w.conserved("ETH")
}

// Fees rose to five times within the minute for which one estimate of them serves. A sweep
// that is judged then goes when they have fallen back.
func TestFT01_FeesRoseSinceTheLastEstimate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		worth string
		rise  int64
	}{{"2.5", 500}, {"2.2", 120}} {
		t.Run(c.worth, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("1")
			level := w.chain.FeeLevel()
			p := w.open("USDTERC20", "300")
			cost, _, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
			require.NoError(t, err)
			w.send(p, "USDTERC20", w.currency("ETH").Decimal(cost).Mul(dec("2000")).Mul(dec(c.worth)))
			w.chain.Mine(14)
			w.credit()
			w.clock.Advance(2 * time.Hour)
			w.credit()
			_, _, err = w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
			require.NoError(t, err)
			w.chain.SetFeeLevel(level * c.rise / 100)
			_, err = w.app.Treasury.Step(t.Context(), w.n)
			require.NoError(t, err)
			require.Equal(t, treasury.WaitBelowCost, w.waiting()[0].Reason)
			w.hours(2)
			require.Equal(t, 1, w.waits())
			w.chain.SetFeeLevel(level)
			w.hours(1)
			require.Zero(t, w.waits())
			require.True(t, w.chain.Balance(chain.Address(p.Address), "USDTERC20").IsZero())
		})
	}
}

// A sweep that waited is decided, and the process dies before it is sent. Until another
// goes on with it, it is shown with the time at which that is.
func TestFT01_DecidedAndNotSentShowsWhenItGoesOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.pay("USDTERC20", "300")
	w.until(func() bool { return w.waits() == 1 && w.waiting()[0].Reason == treasury.WaitGasShort })
	require.False(t, w.waiting()[0].Next.IsZero())
	_, err := w.chain.Fund(w.hot, "ETH", dec("1"))
	require.NoError(t, err)
	w.chain.Mine(14)
	w.store.fail = func(c *storage.Change) bool { return strings.HasPrefix(c.ID, "reserve/") }
	w.clock.Advance(time.Hour)
	for range 3 {
		_ = w.app.Step(t.Context()) // the process dies where it would set the cost aside
	}
	w.store.fail = nil
	require.Equal(t, treasury.SweepFunding, w.sweeps()[0].State)
	require.Equal(t, 1, w.waits())
	require.True(t, w.waiting()[0].Next.After(w.clock.Now()))
	w.hours(1)
	require.Zero(t, w.waits())
}

// The hot address holds what the fee of a gas transfer may be, and not the gas itself: the
// transfer waits, and the coins behind it say since when and for what.
func TestFT01_GasTransferThatLacksItsCoinsIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("0.0002")
	p := w.pay("USDTERC20", "300")
	w.until(func() bool { return len(w.waiting()) > 0 })
	short := w.waiting()[0]
	require.Equal(t, treasury.WaitGasShort, short.Reason)
	require.Equal(t, p.Address, string(short.Address))
	require.False(t, short.Since.IsZero())
	w.hours(12)
	require.Equal(t, outgoing.ReasonHotBalance, w.intents(chain.ForGas)[0].Reason)
	again := w.waiting()
	require.Len(t, again, 1)
	require.Equal(t, treasury.WaitGasShort, again[0].Reason)
	require.Equal(t, short.Since, again[0].Since)
	require.True(t, again[0].Next.After(w.clock.Now()), "and when it is looked at again")

	w.fund("0.0005")
	w.hours(2)
	w.mine(30)
	require.Empty(t, w.waiting())
	require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A gas transfer was signed on coins that a fork then took away. No node takes it, and the
// coins behind it say since when they wait, and for what.
func TestFT01_SignedGasTransferThatLacksItsCoinsIsShown(t *testing.T) {
	t.Parallel()
	for name, left := range map[string]string{"Amount": "0.0002", "Fee": "0.00021"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund(left)
			p := w.pay("USDTERC20", "300")
			w.mine(11)
			stray, err := w.chain.Fund(w.hot, "ETH", dec("0.3"))
			require.NoError(t, err)
			gas := func() outgoing.IntentRow { return append(w.intents(chain.ForGas), outgoing.IntentRow{})[0] }
			w.until(func() bool { return gas().State == outgoing.Signed })
			_, err = w.chain.Reorg(int(w.chain.Height()-w.height(stray)+1), stray)
			require.NoError(t, err)
			w.hours(12)
			require.Equal(t, outgoing.Signed, gas().State)
			waiting := w.waiting()
			require.Len(t, waiting, 1)
			require.Equal(t, treasury.WaitGasShort, waiting[0].Reason)
			require.Equal(t, p.Address, string(waiting[0].Address))
			require.WithinRange(t, waiting[0].Since, w.clock.Now().Add(-12*time.Hour), w.clock.Now().Add(-11*time.Hour))
			require.True(t, waiting[0].Next.After(w.clock.Now()))

			w.fund("0.0005")
			w.hours(2)
			w.mine(30)
			require.Empty(t, w.waiting())
			require.Equal(t, "300", w.chain.Balance(w.hot, "USDTERC20").String())
			w.conserved("ETH", "USDTERC20")
			w.released()
		})
	}
}

// height is that of the block that a transfer to the hot address is in.
func (w *world) height(tx string) int64 {
	for _, x := range w.chain.Transfers(w.hot) {
		if x.Tx == tx {
			return x.Block.Height
		}
	}
	return 0
}

// The signer signs nothing. What was handed over to it, the gas transfer of one sweep and
// another sweep itself, is shown with that reason, and the host is told once.
func TestFT01_SweepThatIsNotSignedIsShown(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"USDTERC20", "ETH"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			var told []treasury.Notice
			w := newWorldAs(t, "ETH", func(w *world) {
				w.treasury.Notify = func(_ context.Context, n treasury.Notice) { told = append(told, n) }
			})
			w.fund("1")
			w.shy = true
			p := w.pay(currency, "300")
			w.mine(14)
			w.hours(12)
			waiting := w.waiting()
			require.Len(t, waiting, 1)
			require.Equal(t, string(outgoing.ReasonSigner), waiting[0].Reason)
			require.Equal(t, p.Address, string(waiting[0].Address))
			require.WithinRange(t, waiting[0].Since, w.clock.Now().Add(-12*time.Hour), w.clock.Now().Add(-11*time.Hour))
			require.True(t, waiting[0].Next.After(w.clock.Now()))
			require.Len(t, told, 1)
			require.Equal(t, waiting[0].Reason, told[0].Reason)
			require.Equal(t, waiting[0].Since, told[0].Since)

			w.shy = false
			w.hours(3)
			w.mine(30)
			require.Empty(t, w.waiting())
			require.Len(t, told, 1)
			w.conserved("ETH", currency)
			w.released()
		})
	}
}

// A small deposit waits for lower fees. They fall, and a large one comes, while the node
// has fallen back behind its block. The small one is not forwarded as if it were all.
func TestR06_LittleIsThereForANodeThatIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	level := w.chain.FeeLevel()
	w.chain.SetFeeLevel(10 * level)
	p := w.open("ETH", "300")
	w.send(p, "ETH", dec("0.0004"))
	w.mine(40)
	require.Equal(t, 1, w.waits())
	w.chain.SetFeeLevel(level)
	w.send(p, "ETH", dec("0.1"))
	w.chain.Mine(14)
	w.credit()
	w.chain.Front().Lag(14)
	for range 3 {
		_, err := w.app.Treasury.Step(t.Context(), w.n)
		require.ErrorIs(t, err, chain.ErrBehind)
		w.clock.Advance(10 * time.Minute)
	}
	w.chain.Front().Honest()
	w.hours(2)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").LessThan(dec("0.0004")), "all of it is forwarded")
	w.mine(14)
	w.released()
}

// A small deposit and a large one are to be forwarded. The node that builds the transaction
// has fallen back behind the large one's block, so that the small one alone moves. The
// large one follows, and is told to be forwarded by the transaction that moved it.
func TestR06_SweepIsBuiltByANodeThatIsBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	level := w.chain.FeeLevel()
	w.chain.SetFeeLevel(10 * level)
	p := w.open("ETH", "200")
	w.send(p, "ETH", dec("0.0004"))
	w.mine(40)
	require.Equal(t, 1, w.waits())
	w.chain.SetFeeLevel(level)
	w.send(p, "ETH", dec("0.1"))
	w.chain.Mine(14)
	w.credit()
	for range 3 {
		_, err := w.app.Treasury.Step(t.Context(), w.n)
		require.NoError(t, err)
		w.clock.Advance(time.Minute)
	}
	require.Len(t, w.intents(chain.ForSweep), 1)
	w.chain.Front().Lag(14)
	for _, worker := range w.app.Workers() {
		if worker.Name == "outgoing/ETH" {
			_, _ = worker.Step(t.Context())
		}
	}
	w.chain.Front().Honest()
	w.mine(30)
	w.hours(2)
	w.mine(30)
	require.True(t, w.chain.Balance(chain.Address(p.Address), "ETH").LessThan(dec("0.0004")), "all of it is forwarded")
	sweeps := w.intents(chain.ForSweep)
	require.Len(t, sweeps, 2)
	rows, err := w.store.Find(t.Context(), storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(w.tenant),
		Where: []storage.Cond{{Column: "type", Op: storage.Eq, Value: webhook.DepositMerged}},
	})
	require.NoError(t, err)
	by := map[string]string{}
	for _, row := range rows {
		var told struct{ Data payment.DepositMerged }
		require.NoError(t, json.Unmarshal([]byte(webhook.Events.Value(row).Body), &told))
		by[told.Data.Amount] = told.Data.MergeTransactionHash
	}
	require.Equal(t, map[string]string{"0.00040000": sweeps[0].Tx, "0.10000000": sweeps[1].Tx}, by)
	w.released()
}

// A sweep is signed for two deposits. A fork takes the second away before it lands, and a
// third comes, as large as both: the sweep takes all of that, and the first deposit stays.
// It is forwarded, too.
func TestR05_SweepThatLandsOnAnotherDepositThanItWasSignedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	p := w.open("ETH", "300")
	at := chain.Address(p.Address)
	w.send(p, "ETH", dec("0.03"))
	w.chain.Mine(14)
	w.credit()
	second, err := w.chain.Pay(at, "ETH", dec("0.08"))
	require.NoError(t, err)
	w.chain.Mine(1)
	_, err = w.app.Treasury.Step(t.Context(), w.n)
	require.NoError(t, err)
	for _, worker := range w.app.Workers() {
		if worker.Name == "outgoing/ETH" {
			_, err := worker.Step(t.Context())
			require.NoError(t, err)
		}
	}
	require.True(t, w.signed())
	_, err = w.chain.Reorg(1, second)
	require.NoError(t, err)
	w.chain.Drop(second)
	w.send(p, "ETH", dec("0.11"))
	w.chain.Mine(1)
	require.Equal(t, "0.03", w.chain.Balance(at, "ETH").String())
	w.hours(2)
	w.mine(40)
	require.True(t, w.chain.Balance(at, "ETH").LessThan(dec("0.0004")), "all of it is forwarded")
	w.released()
}

// A sweep ended without its order, for which something was set aside. A process hands the
// order over, so that it can be called back, and dies before it calls it back. The next one
// does so: no order is left that is sent later, and nothing stays set aside.
func TestR05_OrderOfAnEndedSweepIsCalledBackByTheNextProcess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("ETH", "300")
	w.store.fail = func(c *storage.Change) bool { return strings.HasPrefix(c.ID, "out/submit/") }
	for range 20 {
		w.clock.Advance(15 * time.Second)
		w.chain.Mine(1)
		_ = w.app.Step(t.Context()) // the sweep is not handed over
	}
	rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH")})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.Empty(t, w.intents(chain.ForSweep))
	r, _, _, err := treasury.Reservations.One(t.Context(), w.store, storage.Tenant(w.tenant), rows[0].ID)
	require.NoError(t, err)
	require.True(t, r.Open, "set aside and not handed over")
	s := treasury.Sweeps.Value(rows[0])
	s.State, s.Tx = treasury.SweepDone, "0xanother"
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{ID: "ended", Partition: rows[0].Partition, Put: []storage.Row{
		treasury.Sweeps.Row(rows[0].ID, rows[0].Version, w.clock.Now(), s),
	}}))
	w.store.fail = func(c *storage.Change) bool { return strings.HasPrefix(c.ID, "out/cancel/") }
	_, err = w.app.Treasury.Step(t.Context(), w.n)
	require.Error(t, err, "it dies before it calls the order back")
	w.restart()
	w.clock.Advance(2 * time.Minute)
	_, err = w.app.Treasury.Step(t.Context(), w.n)
	require.NoError(t, err)
	v, _, ok, err := outgoing.Intents.One(t.Context(), w.store, storage.Network("ETH"), rows[0].ID)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, outgoing.Cancelled, v.State)
	w.hours(1)
	w.released()
}

// A gas transfer was signed on coins that a fork then took away, and its sweep went without it:
// its nonce goes back to ourselves, and nothing stays set aside. Whether the sweep ended before
// the coins were missed, or after.
func TestFT01_SignedGasTransferThatNobodyNeedsIsTakenBack(t *testing.T) {
	t.Parallel()
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("ended before ", before), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "ETH")
			w.fund("0.0002")
			w.pay("USDTERC20", "300")
			w.mine(11)
			stray, err := w.chain.Fund(w.hot, "ETH", dec("0.3"))
			require.NoError(t, err)
			gas := func() outgoing.IntentRow { return append(w.intents(chain.ForGas), outgoing.IntentRow{})[0] }
			w.until(func() bool { return gas().State == outgoing.Signed })
			ends := func() { // as where somebody else had sent the gas
				rows, err := w.store.Find(t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network("ETH")})
				require.NoError(t, err)
				s := treasury.Sweeps.Value(rows[0])
				s.State, s.Tx = treasury.SweepDone, "elsewhere"
				require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
					ID: "ends", Partition: storage.Network("ETH"), Put: []storage.Row{treasury.Sweeps.Row(rows[0].ID, rows[0].Version, w.clock.Now(), s)},
				}))
				w.step()
			}
			if before {
				ends()
			}
			_, err = w.chain.Reorg(int(w.chain.Height()-w.height(stray)+1), stray)
			require.NoError(t, err)
			w.hours(12)
			if !before {
				require.Equal(t, outgoing.ReasonHotBalance, gas().Reason)
				ends()
			}
			w.hours(2)
			w.mine(30)
			require.Equal(t, outgoing.Failed, gas().State, "it waits for %q", gas().Reason)
			w.released()
			ops, err := w.store.Find(t.Context(), storage.Query{Table: outgoing.Operations.Table, Partition: storage.Network("ETH")})
			require.NoError(t, err)
			require.Len(t, ops, 1, "it is on record")
			require.Equal(t, "treasury", outgoing.Operations.Value(ops[0]).By)
		})
	}
}
