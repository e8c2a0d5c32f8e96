package cryptopay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A shop takes many small payments and pays out once: the payout needs as many coins as it
// had payments. It is paid, and quoted for what it costs: neither less nor half as much
// again.
func TestFN02_PayoutOfManySmallCoins(t *testing.T) {
	t.Parallel()
	for _, coins := range []int{3, 6, 20, 60} {
		t.Run(fmt.Sprint(coins, " coins"), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, uint64(70+coins), "BTC")
			for range 10 {
				h.float("BTC", "0.0005")
			}
			world := h.chains["BTC"]
			btc, err := chain.MainnetRegistry().Currency("BTC")
			require.NoError(t, err)
			for range coins {
				p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "60", Currency: "BTC"}})
				require.NoError(t, err)
				_, err = world.Pay(chain.Address(p.Address), "BTC", btc.Decimal(p.Due))
				require.NoError(t, err)
				h.mine(1)
			}
			h.mine(15)
			amount := h.credited("BTC") * 9 / 10
			payee := world.Customer("payee")
			terms := withdrawal.Terms{Amount: ptr(btc.Decimal(amount)), Currency: "BTC", Address: string(payee)}
			w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, withdrawal.CreateInput{Terms: terms})
			require.NoError(t, err)
			for range 40 {
				h.clock.Advance(15 * time.Minute)
				h.mine(1)
			}
			w, err = h.app.Withdrawals.Get(t.Context(), h.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, w.Status, "waits for %q", w.WaitingReason())
			require.Equal(t, btc.Decimal(w.Amount).String(), world.Balance(payee, "BTC").String())
			st, err := world.Outcome(w.Tx)
			require.NoError(t, err)
			paid := st.Cost
			t.Logf("quoted %d, paid %d", w.NetworkFee, paid)
			require.GreaterOrEqual(t, w.NetworkFee, paid)
			require.LessOrEqual(t, w.NetworkFee, paid*3/2)
			h.sound()
		})
	}
}

// A payout needs more coins than one transaction holds. They are merged first, and the
// merchant sees that it waits for this and since when. Then one transaction pays.
func TestFT04_PayoutOfMoreCoinsThanOneTransactionHolds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("2,000 coins take a minute under the race detector")
	}
	h := newHost(t, 51, "BTC")
	for range 20 {
		h.float("BTC", "0.004")
	}
	h.coins(2000, "0.005")
	world := h.chains["BTC"]
	payee := world.Customer("payee")
	w := h.payOut(payee, "9.5")
	h.clock.Advance(time.Minute)
	h.step()
	w = h.withdrawal(w.ID)
	require.Equal(t, withdrawal.ShownApproval, w.WaitingReason(), "it is worth more than 100,000 USD")
	_, err := h.app.Withdrawals.Approve(t.Context(), h.tenant, w.ID, "ann", "")
	require.NoError(t, err)
	h.step()
	w = h.withdrawal(w.ID)
	require.Equal(t, withdrawal.Pending, w.Status)
	require.Equal(t, withdrawal.ShownConsolidating, w.WaitingReason())
	require.False(t, w.WaitingSince.IsZero())
	quoted := w.NetworkFee
	h.mergedAndPaid(payee, h.goesOn(w.ID))
	paid := ledger.Amount(0)
	for intent, list := range h.attempts("BTC") {
		for _, a := range list {
			require.LessOrEqual(t, len(a.Spends), 200, intent)
			if a.State == outgoing.AttemptFinal {
				paid += a.MaxCost
			}
		}
	}
	require.Equal(t, 9, h.merges(), "as many as are needed")
	t.Logf("quoted %d, paid %d", quoted, paid)
	require.GreaterOrEqual(t, quoted, paid)
	require.LessOrEqual(t, quoted, paid*3/2)
}

// few configures transactions of few coins.
func few(c *cryptopay.Config) { c.Outgoing.MaxInputs = 4 }

// goesOn lets hours go by until a withdrawal is completed.
func (h *host) goesOn(id string) withdrawal.Withdrawal {
	h.t.Helper()
	for range 120 {
		w := h.withdrawal(id)
		if w.Status == withdrawal.Completed {
			break
		}
		h.clock.Advance(5 * time.Minute)
		h.mine(1)
	}
	w := h.withdrawal(id)
	require.Equal(h.t, withdrawal.Completed, w.Status, "waits for %q", w.WaitingReason())
	require.Empty(h.t, w.WaitingReason())
	h.mine(25)
	return w
}

// mergedAndPaid requires that a payee got what a withdrawal says, that nothing is under way or
// set aside any more, and that the books are what the chain holds.
func (h *host) mergedAndPaid(payee chain.Address, w withdrawal.Withdrawal) {
	h.t.Helper()
	btc, err := chain.MainnetRegistry().Currency("BTC")
	require.NoError(h.t, err)
	got := h.chains["BTC"].Transfers(payee)
	require.Len(h.t, got, 1, "paid once")
	require.Equal(h.t, btc.Decimal(w.Amount).String(), got[0].Amount.String())
	h.nothingReserved("BTC")
	h.sound()
	reports, err := h.app.Verify(h.t.Context())
	require.NoError(h.t, err)
	for _, r := range reports {
		require.Empty(h.t, r.Contradictions)
	}
	coins, err := h.store.Find(h.t.Context(), storage.Query{
		Table: outgoing.Coins.Table, Partition: storage.Network("BTC"), Limit: 1000,
		Where: []storage.Cond{{Column: "state", Op: storage.Eq, Value: outgoing.CoinFree}},
	})
	require.NoError(h.t, err)
	var sum ledger.Amount
	for _, r := range coins {
		sum += outgoing.Coins.Value(r).Amount
	}
	balances, err := h.store.Balances(h.t.Context(), storage.Tenant(h.tenant), ledger.Chain("BTC"))
	require.NoError(h.t, err)
	require.Len(h.t, balances, 1)
	require.Equal(h.t, -balances[0].Posted, sum, "the books say what the coins are")
}

// mortal is a store whose process dies at a commit.
type mortal struct {
	storage.Store
	left int  // commits until then; below 1 = it lives
	done bool // the last of them is still written
	dead bool
}

func (m *mortal) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i := range changes {
		last := m.left == 1
		if m.left > 0 {
			m.left--
		}
		if !m.dead && (!last || m.done) {
			errs[i] = m.Store.Commit(ctx, changes[i])[0]
		}
		if m.dead = m.dead || last; m.dead {
			errs[i] = errDies
		}
	}
	return errs
}

// The process dies at one commit after the other while coins are merged and the payout is
// sent: it is paid once, and nothing stays set aside.
func TestFT04_ProcessesThatDieWhileCoinsAreMerged(t *testing.T) {
	t.Parallel()
	for first := range 4 {
		t.Run(fmt.Sprint("from commit ", first+1), func(t *testing.T) {
			t.Parallel()
			m := &mortal{Store: memory.New()}
			h := newHostOn(t, m, 52, "BTC")
			h.configure = few
			h.restart()
			h.float("BTC", "0.004")
			h.coins(12, "0.005")
			payee := h.chains["BTC"].Customer("payee")
			w := h.payOut(payee, "0.055")
			deaths := 0
			for h.withdrawal(w.ID).Status != withdrawal.Completed {
				require.Less(t, deaths, 1000)
				m.left, m.done = 1+(first+deaths/2)%6, deaths%2 == 0
				_ = h.app.Step(t.Context())
				m.left, m.dead = 0, false
				h.restart()
				deaths++
				h.clock.Advance(40 * time.Second)
				if deaths%4 == 0 {
					h.chains["BTC"].Mine(1)
				}
			}
			h.mine(60)
			require.GreaterOrEqual(t, h.merges(), 3)
			h.mergedAndPaid(payee, h.goesOn(w.ID))
		})
	}
}

// setAside requires that what merges on their way may cost is set aside, and that there are some.
func (h *host) setAside() {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{
		Table: outgoing.Intents.Table, Partition: storage.Network("BTC"), Limit: 1000,
		Where: []storage.Cond{{Column: "state", Op: storage.Eq, Value: outgoing.Signed}},
	})
	require.NoError(h.t, err)
	some := false
	for _, r := range rows {
		if outgoing.ParseID(r.ID).Kind == outgoing.OrderMerge {
			some = true
			aside, _, ok, err := treasury.Reservations.One(h.t.Context(), h.store, storage.Tenant(h.tenant), r.ID)
			require.NoError(h.t, err)
			require.True(h.t, ok && aside.Open, r.ID)
			require.GreaterOrEqual(h.t, aside.Amount, outgoing.Intents.Value(r).MaxCost)
		}
	}
	require.True(h.t, some)
}

// A merge has ended, and a process that was paused asks for what it may cost: nothing is set
// aside for it any more.
func TestFT04_NothingIsSetAsideForAMergeThatHasEnded(t *testing.T) {
	t.Parallel()
	h := newHost(t, 57, "BTC")
	h.float("BTC", "0.05")
	merge := chain.Intent{ID: "merge/payout/1", Purpose: chain.ForCancel, Tenant: h.tenant, Network: "BTC", Currency: "BTC"}
	ended := outgoing.Outcome{
		Intent: merge.ID, Purpose: chain.ForCancel, Tenant: h.tenant, Network: "BTC", Currency: "BTC", State: outgoing.Cancelled, At: h.clock.Now(),
	}
	require.NoError(t, h.app.Treasury.HandleOutcome(t.Context(), ended))
	got, err := h.app.Treasury.Grant(t.Context(), merge, 5000)
	require.NoError(t, err)
	require.Zero(t, got, "it is refused")
	r, _, _, err := treasury.Reservations.One(t.Context(), h.store, storage.Tenant(h.tenant), merge.ID)
	require.NoError(t, err)
	require.False(t, r.Open)
	h.sound()
}

// merges is how many have landed.
func (h *host) merges() (landed int) {
	h.t.Helper()
	for intent, list := range h.attempts("BTC") {
		for _, a := range list {
			if (outgoing.ParseID(intent).Kind == outgoing.OrderMerge) && a.State == outgoing.AttemptFinal {
				landed++
			}
		}
	}
	return landed
}

// Merges are on their way, and fees rise for good: they are sent again at higher fees, as
// everything else is.
func TestFT04_FeesRiseWhileCoinsAreMerged(t *testing.T) {
	t.Parallel()
	for _, times := range []int64{2, 4, 10} {
		t.Run(fmt.Sprint("times ", times), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 53, "BTC")
			h.configure = few
			h.restart()
			h.float("BTC", "0.05")
			h.coins(12, "0.05")
			world := h.chains["BTC"]
			payee := world.Customer("payee")
			w := h.payOut(payee, "0.55")
			for range 4 {
				h.step()
				h.clock.Advance(10 * time.Second)
			}
			require.Equal(t, withdrawal.ShownConsolidating, h.shownReason(w.ID))
			h.setAside()
			world.SetFeeLevel(times * world.FeeLevel())
			h.mergedAndPaid(payee, h.goesOn(w.ID))
		})
	}
}

// Fees are so high that merging and sending would cost more than half of the payout: it
// says so, and nothing is merged. When they have fallen it goes out.
func TestFT04_MergingIsWorthHalfOfThePayout(t *testing.T) {
	t.Parallel()
	h := newHost(t, 54, "BTC")
	h.configure = few
	h.restart()
	for range 20 {
		h.float("BTC", "0.004")
	}
	h.coins(12, "0.005")
	world := h.chains["BTC"]
	payee := world.Customer("payee")
	w := h.payOut(payee, "0.055")
	level := world.FeeLevel()
	world.SetFeeLevel(300 * level)
	for range 20 {
		h.clock.Advance(10 * time.Minute)
		h.mine(1)
	}
	require.Equal(t, withdrawal.ShownFeeTooHigh, h.shownReason(w.ID))
	require.Zero(t, h.merges())
	world.SetFeeLevel(level)
	h.mergedAndPaid(payee, h.goesOn(w.ID))
	require.Positive(t, h.merges())
}

// A merchant takes a payout back while coins are merged for it: he has the amount again,
// and the coins are there for the next one.
func TestFT04_PayoutIsTakenBackWhileCoinsAreMerged(t *testing.T) {
	t.Parallel()
	h := newHost(t, 56, "BTC")
	h.configure = few
	h.restart()
	h.float("BTC", "0.004")
	h.coins(12, "0.005")
	had := h.credited("BTC")
	payee := h.chains["BTC"].Customer("payee")
	w := h.payOut(payee, "0.055")
	for range 4 {
		h.step()
		h.clock.Advance(10 * time.Second)
	}
	require.Equal(t, withdrawal.ShownConsolidating, h.shownReason(w.ID))
	_, err := h.app.Withdrawals.Cancel(t.Context(), h.tenant, w.ID)
	require.NoError(t, err)
	h.mine(60)
	require.Equal(t, withdrawal.Cancelled, h.withdrawal(w.ID).Status)
	require.Equal(t, had, h.credited("BTC"))
	h.nothingReserved("BTC")
	h.sound()
	next := h.payOut(payee, "0.055")
	h.mergedAndPaid(payee, h.goesOn(next.ID))
}

// coins has payments come in as so many coins of an amount of BTC.
func (h *host) coins(count int, amount string) {
	h.t.Helper()
	btc, err := chain.MainnetRegistry().Currency("BTC")
	require.NoError(h.t, err)
	price := dec(amount).Mul(dec("60000"))
	for left := count; left > 0; {
		parts := min(left, 50)
		left -= parts
		p, err := h.app.Payments.Create(h.t.Context(), h.tenant, payment.CreateInput{
			Pricing: payment.Pricing{Amount: price.Mul(decimal.New(int64(parts), 0)).String(), Currency: "BTC"},
		})
		require.NoError(h.t, err)
		require.Equal(h.t, dec(amount).Mul(decimal.New(int64(parts), 0)).String(), btc.Decimal(p.Due).String())
		for range parts {
			_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec(amount))
			require.NoError(h.t, err)
		}
		h.mine(1)
	}
	h.mine(15)
}

// payOut orders an amount of BTC.
func (h *host) payOut(payee chain.Address, amount string) withdrawal.Withdrawal {
	h.t.Helper()
	terms := withdrawal.Terms{Amount: ptr(dec(amount)), Currency: "BTC", Address: string(payee)}
	w, err := h.app.Withdrawals.Create(h.t.Context(), h.tenant, withdrawal.CreateInput{Terms: terms})
	require.NoError(h.t, err)
	return w
}

func (h *host) withdrawal(id string) withdrawal.Withdrawal {
	h.t.Helper()
	w, err := h.app.Withdrawals.Get(h.t.Context(), h.tenant, id)
	require.NoError(h.t, err)
	return w
}

// shownReason is what the merchant sees that a withdrawal waits for.
func (h *host) shownReason(id string) string {
	h.t.Helper()
	w := h.withdrawal(id)
	return w.WaitingReason()
}

// nothingReserved requires that every coin is free or spent, and that every order has ended.
func (h *host) nothingReserved(n chain.Network) {
	h.t.Helper()
	p := storage.Network(string(n))
	held, err := h.store.Count(h.t.Context(), storage.Query{Table: outgoing.InputReservations.Table, Partition: p})
	require.NoError(h.t, err)
	require.Zero(h.t, held)
	open, err := h.store.Count(h.t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: p, Where: []storage.Cond{
		{Column: "state", Op: storage.In, Value: []outgoing.State{outgoing.Queued, outgoing.Waiting, outgoing.Signed, outgoing.Executed}},
	}})
	require.NoError(h.t, err)
	require.Zero(h.t, open)
	for _, s := range []outgoing.CoinState{outgoing.CoinReserved, outgoing.CoinGone, outgoing.CoinUnmined, outgoing.CoinDisputed} {
		coins, err := h.store.Count(h.t.Context(), storage.Query{Table: outgoing.Coins.Table, Partition: p, Where: []storage.Cond{{Column: "state", Op: storage.Eq, Value: s}}})
		require.NoError(h.t, err)
		require.Zero(h.t, coins, s)
	}
}

// Merges have a confirmation when a deep fork takes a deposit away that one of them spends,
// and its customer spends it elsewhere for good. The merge goes on with other coins, and the
// payout is paid once.
func TestFT04_ForkTakesADepositThatAMergeSpends(t *testing.T) {
	t.Parallel()
	h := newHost(t, 58, "BTC")
	h.configure = few
	h.restart()
	h.float("BTC", "0.004")
	h.float("BTC", "0.004")
	world := h.chains["BTC"]
	before := world.Height()
	h.coins(20, "0.005")
	payee := world.Customer("payee")
	w := h.payOut(payee, "0.055")
	lost := ""
	for lost == "" {
		h.clock.Advance(time.Minute)
		h.mine(1)
		rows, err := h.store.Find(t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network("BTC"), Limit: 1000})
		require.NoError(t, err)
		for _, r := range rows {
			if v := outgoing.Intents.Value(r); (outgoing.ParseID(r.ID).Kind == outgoing.OrderMerge) && v.State == outgoing.Executed {
				lost, _, _ = strings.Cut(h.attempts("BTC")[r.ID][0].Spends[0], ":")
			}
		}
	}
	_, err := world.Reorg(int(world.Height()-before), append(world.Transactions(true), lost)...)
	require.NoError(t, err)
	_, err = world.Send(sim.Tx{Replaces: lost, Payments: []sim.Payment{{To: world.Customer("himself"), Currency: "BTC", Amount: dec("0.004")}}})
	require.NoError(t, err)
	for range 20 {
		h.clock.Advance(10 * time.Minute)
		h.mine(1)
	}
	h.goesOn(w.ID)
	require.Len(t, world.Transfers(payee), 1, "paid once")
	held, err := h.store.Count(t.Context(), storage.Query{Table: outgoing.InputReservations.Table, Partition: storage.Network("BTC")})
	require.NoError(t, err)
	require.Zero(t, held, "nothing is held up")
	h.sound()
}
