package payment

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

func invalid(t *testing.T, err error) map[string][]string {
	t.Helper()
	var bad *InvalidError
	require.ErrorAs(t, err, &bad)
	return bad.Fields
}

// TestW18_OneDepositOfAFortune: it is not credited without a person.
func TestW18_OneDepositOfAFortune(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "BTC")
	x := h.transfer(p, "620000").final()
	require.Equal(t, RoleExcess, x.deposit().Role)
	require.Equal(t, scenario("c −620000, S +620000"), h.posted())
	require.Equal(t, Waiting, h.get(p).Status)
	require.Equal(t, "0", h.balance(ledger.Wallet("w"), "BTC"))
}

// TestW18_LiabilitiesNeverAboveWhatTheChainBrought: a Tx that would owe more
// than came is refused before it reaches a store.
func TestW18_LiabilitiesNeverAboveWhatTheChainBrought(t *testing.T) {
	t.Parallel()
	leg := func(a ledger.Account, d ledger.Amount) ledger.Leg {
		return ledger.Leg{Account: a, Asset: "BTC", Delta: d}
	}
	x := &decision{}
	require.ErrorIs(t, x.post(ledger.Tx{ID: "1", Legs: []ledger.Leg{leg("chain/BTC", -100), leg("wallet/w", 101), leg(ledger.FeesPlatform, -1)}}), errUnbacked)
	require.ErrorIs(t, x.post(ledger.Tx{ID: "1", Legs: []ledger.Leg{leg(ledger.Adjustment, -100), leg("wallet/w", 100)}}), errUnbacked)
	require.ErrorIs(t, x.post(ledger.Tx{ID: "1", Legs: []ledger.Leg{leg("chain/BTC", -100), leg("wallet/w", 101)}}), ledger.ErrUnbalanced)
	require.NoError(t, x.post(ledger.Tx{ID: "1", Legs: []ledger.Leg{leg("chain/BTC", -100), leg("wallet/w", 100)}}))
}

// TestH01_EventsAreInTheSameChange: where the commit fails nothing is told and
// nothing moved; where its answer is lost nothing is told or moved twice.
func TestH01_EventsAreInTheSameChange(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	broken := errors.New("the connection broke")
	h.store.fail = func(c storage.Change) error {
		events, payments := 0, 0
		for _, r := range c.Put {
			switch r.Table {
			case webhook.Events.Table:
				events++
			case Payments.Table:
				payments++
			}
		}
		require.Equal(t, 1, payments)
		require.Equal(t, 3, events, "payment_deposit, deposit_received and the status, with the payment they tell about")
		return broken
	}
	x := h.transfer(p, "100")
	x.s.Height, x.s.BlockTime = 100, h.now
	require.ErrorIs(t, x.tell(incoming.Included, false), broken)
	h.store.fail = nil
	require.Empty(t, h.events(p))
	require.Equal(t, Waiting, h.get(p).Status)

	lost := &lostAnswers{Store: h.store}
	h.cfg.Store = lost
	s, err := New(h.cfg)
	require.NoError(t, err)
	h.s = s
	lost.on = true
	require.ErrorIs(t, x.tell(incoming.Included, false), errLost)
	lost.on = false
	x.final()
	require.Equal(t, []string{"deposit_received", "waiting>confirming", "confirming>confirmed"}, h.events(p))
	require.Equal(t, "99", h.balance(ledger.Wallet("w"), usdt))
}

var errLost = errors.New("no answer")

// lostAnswers commits, and loses the answer.
type lostAnswers struct {
	storage.Store
	on bool
}

func (l *lostAnswers) Commit(ctx context.Context, c ...storage.Change) []error {
	errs := l.Store.Commit(ctx, c...)
	if l.on {
		for i := range errs {
			errs[i] = errLost
		}
	}
	return errs
}

func TestListAndFilters(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	for range 3 {
		h.create("100", usdt)
		h.now = h.now.Add(time.Second)
	}
	b := h.create("100", "BTC")
	p := h.create("100", usdt)
	h.transfer(p, "40").seen()
	page, count, total, err := h.s.List(ctx, tenant, Filter{Status: Waiting, Blockchain: "ETH", Token: "USDT", Limit: 2})
	require.NoError(t, err)
	require.Len(t, page, 2)
	require.EqualValues(t, 4, count, "partially_paid is shown as waiting")
	require.EqualValues(t, 5, total)
	require.Equal(t, p.ID, page[0].ID)
	require.Equal(t, Waiting, page[0].Shown())
	page, count, _, err = h.s.List(ctx, tenant, Filter{Currency: "BTC"})
	require.NoError(t, err)
	require.EqualValues(t, 1, count)
	require.Equal(t, b.ID, page[0].ID)
	_, _, _, err = h.s.List(ctx, tenant, Filter{Status: PartiallyPaid, Currency: "x", Blockchain: "x", Token: "x", Limit: 101, Offset: -1})
	require.Len(t, invalid(t, err), 6)
}

func TestUpdateAndCancel(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	order, bad := "order-2", "nobody"
	h.now = h.now.Add(time.Minute)
	got, err := h.s.Update(ctx, tenant, p.ID, Patch{OrderID: &order})
	require.NoError(t, err)
	require.Equal(t, order, got.OrderID)
	require.Equal(t, order, h.get(p).OrderID)
	require.True(t, got.UpdatedAt.Equal(h.now))
	_, err = h.s.Update(ctx, tenant, p.ID, Patch{CustomerEmail: &bad})
	require.NotEmpty(t, invalid(t, err)["customer_email"])

	var state *StateError
	x := h.transfer(p, "40").seen()
	_, err = h.s.Cancel(ctx, tenant, p.ID)
	require.ErrorAs(t, err, &state, "a deposit is live")
	x.gone()
	got, err = h.s.Cancel(ctx, tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, Expired, got.Status)
	_, err = h.s.Cancel(ctx, tenant, p.ID)
	require.ErrorAs(t, err, &state)
	_, err = h.s.Update(ctx, tenant, p.ID, Patch{OrderID: &order})
	require.ErrorAs(t, err, &state)
	_, err = h.s.Cancel(ctx, tenant, "nope")
	require.ErrorIs(t, err, ErrNotFound)
	h.price["USDT"] = "1"
	x.included()
	x.final()
	require.Equal(t, scenario("c −40, S +40"), h.posted())
}

// What an ended payment says of a person can be erased; its money stays as it was.
func TestErase(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	text, mail := "a gift for Ann", "ann@example.com"
	p := h.create("100", usdt)
	_, err := h.s.Update(ctx, tenant, p.ID, Patch{Description: &text, CustomerEmail: &mail})
	require.NoError(t, err)
	var state *StateError
	_, err = h.s.Erase(ctx, tenant, p.ID)
	require.ErrorAs(t, err, &state)
	require.Equal(t, mail, h.get(p).CustomerEmail)
	_, err = h.s.Cancel(ctx, tenant, p.ID)
	require.NoError(t, err)
	was := *h.get(p)
	for range 2 {
		got, err := h.s.Erase(ctx, tenant, p.ID)
		require.NoError(t, err)
		was.Description, was.CustomerEmail, was.UpdatedAt = "", "", got.UpdatedAt
		require.Equal(t, was, got)
		require.Equal(t, was, *h.get(p))
	}
	_, err = h.s.Erase(ctx, "other", p.ID)
	require.ErrorIs(t, err, ErrNotFound)
}

func TestEstimateCreatesNothing(t *testing.T) {
	t.Parallel()
	h := newShop(t, networkFee(2e6))
	yes := true
	q, err := h.s.Estimate(ctx, tenant, Pricing{Amount: "100", Currency: usdt, FeeByUser: &yes})
	require.NoError(t, err)
	require.Equal(t, "103", h.units(q.Due, usdt))
	require.Equal(t, "3", h.units(q.Fee, usdt))
	_, _, total, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.Zero(t, total)
	_, err = h.s.Estimate(ctx, tenant, Pricing{Currency: usdt})
	require.NotEmpty(t, invalid(t, err)["amount"])
}

// TestFA12_QuoteSaysHowOldItsPriceIs: a quote has the time of its price, and when that is too old
// to be used.
func TestFA12_QuoteSaysHowOldItsPriceIs(t *testing.T) {
	t.Parallel()
	for name, age := range map[string]time.Duration{"default": 0, "configured": 3 * time.Minute} {
		h := newShop(t, func(h *shop) { h.cfg.RateAge = age })
		h.at = h.now.Add(-40 * time.Second)
		for _, fiat := range []string{"USD", "EUR"} {
			q, err := h.s.Estimate(ctx, tenant, Pricing{Amount: "100", Currency: "ETH", PriceCurrency: fiat})
			require.NoError(t, err)
			require.Equal(t, h.at, q.RateAt, name)
			require.Equal(t, h.at.Add(orElse(age, rates.DefaultMaxAge)), q.ExpiresAt, name)
		}
	}
	h := newShop(t)
	h.cfg.RateAge = -time.Second
	_, err := New(h.cfg)
	require.ErrorContains(t, err, "RateAge")
}

// A price that cannot be had does not hide a deposit, it only delays its credit.
func TestFloatingWithoutAPrice(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "ETH", floating)
	price := h.price["ETH"]
	delete(h.price, "ETH")
	x := h.transfer(p, "0.05").included()
	require.Equal(t, Confirming, h.get(p).Status)
	require.ErrorIs(t, x.tell(incoming.Final, true), rates.ErrUnavailable)
	require.Empty(t, h.posted())
	h.price["ETH"] = price
	x.final()
	require.Equal(t, "99.00", h.get(p).MerchantReceived())
}

// A part that became final while there was no price is credited at the price of
// when its window ends: there is no other fact of it to come.
func TestFloatingPartWithoutAPrice(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "ETH", floating)
	price := h.price["ETH"]
	delete(h.price, "ETH")
	h.transfer(p, "0.02").final()
	require.Equal(t, PartiallyPaid, h.get(p).Status)
	h.price["ETH"] = price
	h.after(2 * time.Hour)
	require.Equal(t, Expired, h.get(p).Status)
	require.Equal(t, TypePartial, h.get(p).Type)
	require.Equal(t, "39.60", h.get(p).MerchantReceived())
}

func TestClosedWalletFallsBackToMaster(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt, func(in *CreateInput) { in.WalletID = "branch" })
	h.closed["branch"] = true
	h.transfer(p, "100").final()
	require.Equal(t, "99", h.balance(ledger.Wallet("w"), usdt))
	require.Equal(t, "0", h.balance(ledger.Wallet("branch"), usdt))
}

// A wallet that was closed has nothing to take from when its deposit goes.
func TestReversalAfterTheWalletWasClosed(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").final()
	h.spend(usdt, "99", false)
	p2 := h.create("100", usdt, func(in *CreateInput) { in.WalletID = "branch" })
	y := h.transfer(p2, "100").final()
	h.posted()
	h.closed["branch"] = true
	y.gone()
	require.Equal(t, scenario("R −99, P −1, c +100"), h.posted())
	x.gone()
	require.Equal(t, scenario("R −99, P −1, c +100"), h.posted())
}

// A network that cannot be asked does not hold up the others.
func TestStepGoesOnBesideADeadNetwork(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	h.now = h.now.Add(2 * time.Hour)
	head := h.cfg.Head
	h.cfg.Head = func(ctx context.Context, n chain.Network) (incoming.Cursor, error) {
		if n != "ETH" {
			return incoming.Cursor{}, errLost
		}
		return head(ctx, n)
	}
	s, err := New(h.cfg)
	require.NoError(t, err)
	_, err = s.Step(ctx)
	require.ErrorIs(t, err, errLost)
	require.Equal(t, Expired, h.get(p).Status)
}

// A currency that was retired does not strand payments. One that is only not listed by
// this process is left to another.
func TestCurrencyIsRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	h.transfer(p, "40").final()
	left := slices.DeleteFunc(chain.Mainnet(), func(c chain.Currency) bool { return c.Code == usdt })
	registry, err := chain.NewRegistry(chain.Networks(), left)
	require.NoError(t, err)
	h.cfg.Registry = registry
	h.s, err = New(h.cfg)
	require.NoError(t, err)
	h.after(2 * time.Hour)
	require.Equal(t, PartiallyPaid, h.get(p).Status)
	h.cfg.Retired = []string{usdt}
	h.s, err = New(h.cfg)
	require.NoError(t, err)
	h.after(2 * time.Hour)
	require.Equal(t, Expired, h.get(p).Status)
	require.Equal(t, "39.60", h.get(p).MerchantReceived())
}

func TestMoneyForNoPaymentAndTooManyDeposits(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.MaxDeposits = 2 })
	stray := Payment{Network: "ETH", Address: "nobody's", Currency: usdt}
	h.transfer(stray, "5").final().gone()
	require.Equal(t, scenario("c −5, S +5; then S −5, c +5"), h.posted())
	p := h.create("100", usdt)
	for range 3 {
		h.transfer(p, "1").final()
	}
	require.Equal(t, scenario("c −1, S +1"), h.posted())
	deposits, err := h.s.Deposits(ctx, tenant, p.ID)
	require.NoError(t, err)
	require.Len(t, deposits, 2)
	unproven := h.transfer(p, "100")
	unproven.s.Unproven = true
	unproven.final()
	require.Equal(t, scenario("c −100, S +100"), h.posted())
	internal := h.transfer(p, "7")
	internal.s.Internal = true
	require.NoError(t, internal.tell(incoming.Final, true))
	require.Empty(t, h.posted(), "our own gas is no deposit")
	internal.s.Internal, internal.s.Purpose = false, incoming.UseHot
	require.Error(t, internal.tell(incoming.Final, true))
}

func TestAddressIsWatchedForAWhileAfterTheEnd(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "ETH")
	part := storage.Network("ETH")
	row := incoming.Addresses.Row(p.Address, 0, time.Time{}, incoming.AddressRow{Seq: 1, Tenant: tenant, Use: incoming.UsePayment})
	require.NoError(t, h.store.Commit(ctx, storage.Change{ID: "address", Partition: part, Put: []storage.Row{row}})[0])
	until := func() time.Time {
		a, _, ok, err := incoming.Addresses.One(ctx, h.store, part, p.Address)
		require.NoError(t, err)
		require.True(t, ok)
		return a.WatchUntil
	}
	open, err := h.s.Open(ctx, "ETH")
	require.NoError(t, err)
	require.Equal(t, []chain.Address{chain.Address(p.Address)}, open)
	h.after(2 * time.Hour)
	require.Equal(t, Expired, h.get(p).Status)
	require.True(t, until().IsZero())
	h.store.fail = func(c storage.Change) error {
		if c.Partition == part {
			return failing.ErrGone
		}
		return nil
	}
	h.now = h.now.Add(24 * time.Hour)
	_, err = h.s.Step(ctx)
	require.NoError(t, err)
	require.Contains(t, h.log.String(), "payment_step_failed")
	require.True(t, until().IsZero())
	require.True(t, h.get(p).WatchedUntil.IsZero())
	h.store.fail = nil
	h.log.Reset()
	h.after(time.Hour)
	require.True(t, until().Equal(p.ExpiresAt.Add(30*24*time.Hour)))
	open, err = h.s.Open(ctx, "ETH")
	require.NoError(t, err)
	require.Empty(t, open)
}

// TestAddressIsWatchedForADayAtLeast: where it is not to be watched beyond its end, it is
// watched for as long as what was seen in time may still come back.
func TestAddressIsWatchedForADayAtLeast(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.WatchAfter = new(time.Duration) })
	p := h.create("100", "ETH")
	part := storage.Network("ETH")
	row := incoming.Addresses.Row(p.Address, 0, time.Time{}, incoming.AddressRow{Seq: 1, Tenant: tenant, Use: incoming.UsePayment})
	require.NoError(t, h.store.Commit(ctx, storage.Change{ID: "address", Partition: part, Put: []storage.Row{row}})[0])
	h.after(2 * time.Hour)
	h.after(24 * time.Hour)
	a, _, ok, err := incoming.Addresses.One(ctx, h.store, part, p.Address)
	require.NoError(t, err)
	require.True(t, ok)
	require.True(t, a.WatchUntil.Equal(p.ExpiresAt.Add(holdFor)))
}

func TestConfigSaysWhatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := New(Config{})
	require.Error(t, err)
	h := newShop(t)
	for _, spoil := range []func(*Config){
		func(c *Config) { c.Late = "maybe" },
		func(c *Config) { c.Window = 48 * time.Hour },
		func(c *Config) { d := decimal.New(100, 0); c.Tolerance = &d },
		func(c *Config) { c.Rates = nil },
	} {
		c := h.cfg
		spoil(&c)
		_, err := New(c)
		require.Error(t, err)
	}
	for _, fee := range []string{"-1", "100.1", "0.1234567"} {
		h.fees.Percent = decimal.RequireFromString(fee)
		_, err := h.s.Create(ctx, tenant, CreateInput{Pricing: Pricing{Amount: "100", Currency: usdt}})
		require.Error(t, err)
	}
}

// However many wait, over all tenants: each is looked at.
func TestFN05_EveryOpenPaymentIsListed(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	want := map[chain.Address]bool{}
	add := func(count int) {
		t.Helper()
		for range count {
			want[chain.Address(h.create("100", "ETH").Address)] = true
		}
		open, err := h.s.Open(ctx, "ETH")
		require.NoError(t, err)
		require.Len(t, open, len(want))
		for _, a := range open {
			require.True(t, want[a])
		}
	}
	add(openPage + 1)
	add(1) // the next one is listed at once
	h.after(time.Minute)
	add(openPage)
	h.create("100", "USDTERC20")
	add(0)
}

// meanwhile calls f once, after the first page of payments was read.
type meanwhile struct {
	storage.Store
	f func()
}

func (m *meanwhile) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	rows, err := m.Store.Find(ctx, q)
	if f := m.f; f != nil && q.Table == Payments.Table {
		m.f = nil
		f()
	}
	return rows, err
}

// A payment ends while the list of open ones is read: none behind it is passed over.
func TestFP05_NoOpenPaymentIsPassedOver(t *testing.T) {
	t.Parallel()
	m := &meanwhile{}
	h := newShop(t, func(h *shop) { m.Store = h.store; h.cfg.Store = m })
	var first string
	for i := range openPage + 1 {
		h.now = h.now.Add(time.Millisecond)
		if p := h.create("100", "ETH"); i == 0 {
			first = p.ID
		}
	}
	m.f = func() {
		_, err := h.s.Cancel(ctx, tenant, first)
		require.NoError(t, err)
	}
	open, err := h.s.Open(ctx, "ETH")
	require.NoError(t, err)
	require.Len(t, open, openPage+1)
}

// A payment goes back to an earlier status while the list of open ones is read, status by
// status: a fork took its deposit. It is listed nevertheless.
func TestFP05_PaymentThatGoesBackMeanwhileIsListed(t *testing.T) {
	t.Parallel()
	m := &meanwhile{}
	h := newShop(t, func(h *shop) { m.Store = h.store; h.cfg.Store = m })
	p := h.create("100", "ETH")
	d := h.transfer(p, "100")
	d.included()
	require.Equal(t, Confirming, h.get(p).Status)
	_, err := h.s.Open(ctx, "ETH")
	require.NoError(t, err)
	h.now = h.now.Add(openFor + time.Second) // all are read again
	m.f = func() { d.gone() }
	open, err := h.s.Open(ctx, "ETH")
	require.NoError(t, err)
	require.Equal(t, Waiting, h.get(p).Status)
	require.Contains(t, open, chain.Address(p.Address))
}
