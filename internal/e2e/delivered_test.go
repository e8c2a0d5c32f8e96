package e2e_test

import (
	"fmt"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// teller is what a test of a payout needs, on whichever chain.
type teller struct {
	t       testing.TB
	app     func() *cryptopay.App
	tenant  string
	ask     func(usd, currency, to string) withdrawal.Withdrawal
	mine    func(blocks int)
	restart func()
	topUp   func(currency, amount string)
	holds   func(a, currency string) decimal.Decimal
	sound   func()
}

func (s *teller) get(id string) withdrawal.Withdrawal {
	s.t.Helper()
	w, err := s.app().Withdrawals.Get(s.t.Context(), s.tenant, id)
	require.NoError(s.t, err)
	return w
}

// until mines until a withdrawal is so.
func (s *teller) until(id string, done func(w withdrawal.Withdrawal) bool) withdrawal.Withdrawal {
	s.t.Helper()
	for range 120 {
		if w := s.get(id); done(w) {
			return w
		}
		s.mine(1)
	}
	s.t.Fatalf("not so: %+v", s.get(id))
	return withdrawal.Withdrawal{}
}

func (s *teller) short(id string) withdrawal.Withdrawal {
	s.t.Helper()
	return s.until(id, func(w withdrawal.Withdrawal) bool { return w.Waiting == withdrawal.WaitingDeliveredLess })
}

// held is what is held of the merchant's balance, in units.
func (s *teller) held(currency string) int64 {
	s.t.Helper()
	view, err := s.app().Wallets.Overview(s.t.Context(), s.tenant)
	require.NoError(s.t, err)
	for _, b := range view.Account {
		if b.Currency == currency {
			return int64(b.Pending)
		}
	}
	return 0
}

// lift has an operator lift the halt of a currency: he has looked at what was taken.
func (s *teller) lift(currency string) {
	s.t.Helper()
	_, err := s.app().Operate.Lift(s.t.Context(), cryptopay.HaltScope{Currency: currency}, cryptopay.Call{By: "ann", Reason: "looked at it"})
	require.NoError(s.t, err)
}

// covered has the operator bear what sweeps have lost so far, to the unit, and go on.
// Of what he brings a share is kept, too.
func (s *teller) covered(currency string, keeps decimal.Decimal) {
	s.t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(s.t, err)
	balances, err := s.app().Config().Store.Balances(s.t.Context(), storage.Tenant(s.tenant))
	require.NoError(s.t, err)
	var equity ledger.Amount
	for _, b := range balances {
		if b.Asset == c.Asset() && b.Account.House() {
			equity += b.Posted
		}
	}
	if equity < 0 {
		s.topUp(currency, c.Decimal(-equity).Div(decimal.NewFromInt(1).Sub(keeps)).RoundUp(int32(c.Scale)).String())
		s.mine(70)
	}
	s.lift(currency)
}

// deliversLess plays a currency of which a share is taken from each transfer: the first
// payout brings less, other payouts of the currency wait for the operator through
// restarts and finality, payouts of other currencies go on.
func deliversLess(s *teller, fee, plain string, keeps decimal.Decimal, to func(i int) string) {
	t := s.t
	t.Helper()
	s.covered(fee, keeps)
	w := s.ask("100", fee, to(1))
	short := s.short(w.ID)
	require.Equal(t, withdrawal.Processing, short.Status, "neither failed nor completed")
	currency, err := chain.MainnetRegistry().Currency(fee)
	require.NoError(t, err)
	one, full := decimal.NewFromInt(1), currency.Decimal(short.Amount)
	require.Equal(t, s.holds(to(1), fee).String(), currency.Decimal(short.Delivered).String())
	require.True(t, full.Mul(one.Sub(keeps)).Sub(currency.Decimal(short.Delivered)).Abs().LessThan(dec("0.00001")), "%d", short.Delivered)
	require.Equal(t, int64(w.Requested), s.held(fee), "nothing is given back")

	next, other := s.ask("20", fee, to(2)), s.ask("10", plain, to(3))
	s.mine(1)
	s.restart()
	s.mine(70) // final by far
	require.Equal(t, withdrawal.WaitingDeliveredLess, s.get(w.ID).Waiting)
	require.Equal(t, withdrawal.Processing, s.get(w.ID).Status)
	require.Equal(t, withdrawal.Pending, s.get(next.ID).Status, "payouts of the currency are halted")
	require.Equal(t, withdrawal.WaitingHalted, s.get(next.ID).Waiting)
	require.Equal(t, withdrawal.Completed, s.get(other.ID).Status, "others are not")
	require.True(t, s.holds(to(2), fee).IsZero())
	s.sound()

	// The operator pays the rest. Of that, too, a share is taken.
	_, err = s.app().Withdrawals.PayMissing(t.Context(), s.tenant, w.ID, "ann", "the customer is owed it")
	require.ErrorIs(t, err, withdrawal.ErrNoEquity, "not out of other merchants' money")
	require.Equal(t, withdrawal.Processing, s.get(w.ID).Status)
	s.topUp(fee, "5")
	s.mine(70)
	rest, err := s.app().Withdrawals.PayMissing(t.Context(), s.tenant, w.ID, "ann", "the customer is owed it")
	require.NoError(t, err)
	require.Equal(t, short.Missing(), rest.Amount)
	again, err := s.app().Withdrawals.PayMissing(t.Context(), s.tenant, w.ID, "ann", "the customer is owed it")
	require.NoError(t, err)
	require.Equal(t, rest.ID, again.ID, "paid once")
	require.Equal(t, withdrawal.Completed, s.get(w.ID).Status)
	s.sound()
	for _, id := range []string{rest.ID, next.ID} { // whichever goes out first halts the other
		s.lift(fee)
		less := s.short(id)
		taken, err := s.app().Withdrawals.TakeDelivered(t.Context(), s.tenant, id, "ann", "it is little")
		require.NoError(t, err)
		require.Equal(t, withdrawal.Completed, taken.Status)
		require.Equal(t, less.Delivered, taken.Delivered)
		_, err = s.app().Withdrawals.TakeDelivered(t.Context(), s.tenant, id, "ann", "it is little")
		require.NoError(t, err, "asked again")
	}
	_, err = s.app().Withdrawals.TakeDelivered(t.Context(), s.tenant, other.ID, "ann", "a mistake")
	require.ErrorIs(t, err, withdrawal.ErrNotShort)
	s.mine(70)
	require.Zero(t, s.held(fee))
	left := full.Sub(s.holds(to(1), fee))
	require.True(t, full.Mul(keeps).Mul(keeps).Sub(left).Abs().LessThan(dec("0.00001")), "all but a share of the share: %s", left)
	s.sound()
}

func TestFN07_APayoutThatBringsLessWaitsForTheOperator(t *testing.T) {
	t.Parallel()
	t.Run("anvil", func(t *testing.T) {
		t.Parallel()
		n := openAnvil(t, usual)
		h := newHost(t, n)
		p := h.order("300", "DAIERC20")
		n.pay(p.Address, "DAIERC20", dec("304"))
		h.completed(p)
		h.mine(finalDepth)
		h.earn("300", "USDCERC20")
		s := &teller{
			t: t, app: func() *cryptopay.App { return h.app }, tenant: h.tenant, ask: h.withdraw, mine: h.mine,
			restart: func() { h.restart() }, topUp: func(currency, amount string) { n.pay(h.hot, currency, dec(amount)) }, holds: n.holds, sound: func() { h.sound() },
		}
		deliversLess(s, "DAIERC20", "USDCERC20", dec("0.01"), recipient)
	})
	t.Run("tron", func(t *testing.T) {
		t.Parallel()
		k := openKiosk(t)
		for _, currency := range []string{"USDTTRC20", "TRX"} {
			p := k.order("300", currency)
			k.pay(p.Address, currency, k.due(p))
			k.mine(60)
		}
		k.node.TokenFee(1)
		s := &teller{
			t: t, app: func() *cryptopay.App { return k.app }, tenant: k.tenant, ask: k.withdraw, mine: k.mine,
			restart: func() { k.app = compose(t, k.setup) }, sound: k.sound,
			topUp: func(currency, amount string) {
				hot, err := k.app.Hot(t.Context(), "TRX", k.tenant)
				require.NoError(t, err)
				k.pay(string(hot), currency, dec(amount))
			},
			holds: func(a, currency string) decimal.Decimal {
				held, err := k.client.(chain.Balancer).Balance(t.Context(), currency, chain.Address(a))
				require.NoError(t, err)
				return held
			},
		}
		deliversLess(s, "USDTTRC20", "TRX", dec("0.001"), func(i int) string { return k.somebody(fmt.Sprint("customer ", i)) })
	})
}
