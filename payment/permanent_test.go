package payment

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// permanent asks for a permanent address.
func (h *shop) permanent(externalID, currency string) PermanentAddress {
	a, _, err := h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: externalID, Currency: currency})
	require.NoError(h.t, err)
	return a
}

// pay sends money to a permanent address.
func (h *shop) pay(a PermanentAddress, currency, amount string) *transfer {
	return h.transferOf(a.Shown(), currency, amount)
}

// payment is the payment that a transfer counts for.
func (x *transfer) payment() *Payment {
	id := x.deposit().Payment
	require.NotEmpty(x.h.t, id, "it counts for no payment")
	return x.h.get(Payment{ID: id})
}

// TestPermanentAddress_OneForEver: one for each external_id and network, whoever asks and how
// often.
func TestPermanentAddress_OneForEver(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	a, made, err := h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: "ann", Currency: usdt, WalletID: "wallet", CallbackURL: "https://shop.example/in"})
	require.NoError(t, err)
	require.True(t, made)
	require.Equal(t, []string{"ETH", "ann", "wallet", "wallet", "https://shop.example/in"}, []string{a.Network, a.ExternalID, a.Wallet, a.WalletRef, a.CallbackURL})
	again, made, err := h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: "ann", Blockchain: "ETH", Token: "ETH"})
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, a, again, "another currency of the network, another wallet: it stays as it is")
	require.NotEqual(t, a.Address, h.permanent("ann", "BTC").Address, "another network")
	require.NotEqual(t, a.Address, h.permanent("Ann", usdt).Address)

	var all sync.WaitGroup
	var mu sync.Mutex
	got := map[string]int{}
	h.s.c.NewID = func() string { mu.Lock(); defer mu.Unlock(); h.n++; return fmt.Sprintf("race-%06d", h.n) }
	h.s.c.Addresses = locked{h, &mu}
	for range 8 {
		all.Go(func() {
			a, made, err := h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: "bob", Currency: usdt})
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				got[a.Address]++
				if made {
					got["made"]++
				}
			}
		})
	}
	all.Wait()
	require.Len(t, got, 2)
	require.Equal(t, 1, got["made"], "%v", got)

	page, total, err := h.s.PermanentAddresses(ctx, tenant, AddressFilter{ExternalID: "ann"})
	require.NoError(t, err)
	require.Equal(t, int64(2), total)
	require.Equal(t, []string{"BTC", "ETH"}, []string{page[0].Network, page[1].Network}, "newest first")
	_, total, err = h.s.PermanentAddresses(ctx, "another", AddressFilter{})
	require.NoError(t, err)
	require.Zero(t, total)
}

// locked hands out addresses to several goroutines.
type locked struct {
	h  *shop
	mu *sync.Mutex
}

func (l locked) Take(ctx context.Context, n chain.Network, tenant string) (chain.Derived, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.h.Take(ctx, n, tenant)
}

func TestPermanentAddress_RefusesABadRequest(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	for field, in := range map[string]AddressInput{
		"external_id":  {Currency: usdt},
		"currency":     {ExternalID: "ann"},
		"token":        {ExternalID: "ann", Blockchain: "ETH"},
		"callback_url": {ExternalID: "ann", Currency: usdt, CallbackURL: "ftp://x"},
		"wallet_id":    {ExternalID: "ann", Currency: usdt, WalletID: strings.Repeat("w", 65)},
	} {
		_, _, err := h.s.PermanentAddress(ctx, tenant, in)
		var bad *InvalidError
		require.ErrorAs(t, err, &bad, field)
		require.Contains(t, bad.Fields, field)
	}
	_, _, err := h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: strings.Repeat("é", 65), Currency: usdt})
	require.ErrorContains(t, err, "external_id")
	_, _, err = h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: "ann", Currency: "NOPE"})
	require.ErrorAs(t, err, new(*CurrencyError))
	_, _, err = h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: "ann", Currency: usdt, WalletID: "no such wallet"})
	require.ErrorIs(t, err, ErrNotFound)
	h.s.c.Permanent = func(context.Context) (bool, error) { return false, nil }
	_, _, err = h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: "ann", Currency: usdt})
	require.ErrorIs(t, err, ErrNotUpgraded)
	_, total, err := h.s.PermanentAddresses(ctx, tenant, AddressFilter{})
	require.NoError(t, err)
	require.Zero(t, total, "nothing of that made one")
}

// TestPermanentAddress_EachDepositIsAPayment: over what came, valued when seen, without window
// or expiry, with the tenant's fee.
func TestPermanentAddress_EachDepositIsAPayment(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	a, _, err := h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: "ann", Currency: usdt, WalletID: "wallet", CallbackURL: "https://shop.example/in"})
	require.NoError(t, err)
	h.price["ETH"] = "2000.129"
	one, two := h.pay(a, usdt, "100").seen(), h.pay(a, "ETH", "0.5").included()
	p, q := one.payment(), two.payment()
	require.NotEqual(t, p.ID, q.ID)
	require.Len(t, p.ID, 36)
	require.Equal(t, []any{Confirming, Status("confirming"), a.ID, a.Address, usdt, "100", "100", false, "", h.now.Add(24 * time.Hour), "wallet", "https://shop.example/in", TypeFull},
		[]any{p.Status, p.Shown(), p.AddressID, p.Address, p.Currency, p.DueCoins().String(), p.Price.String(), p.FixedRate, p.OrderID, p.ExpiresAt, p.WalletRef, p.CallbackURL, p.Type})
	require.Equal(t, []string{"0.5", "1000.06"}, []string{q.DueCoins().String(), q.Price.String()})
	require.Equal(t, []string{"deposit_received", "waiting>confirming"}, h.eventTypes(p.ID))
	h.price["ETH"] = "1"
	h.now = h.now.Add(72 * time.Hour)
	h.step()
	two.final()
	require.Equal(t, "1000.06", two.payment().Price.String(), "as it was when seen")
	require.Equal(t, "990.06", two.payment().MerchantReceived())
	require.Equal(t, Failed, one.payment().Status, "in no block two days after its expiry_time")
	one.final()
	h.after(time.Hour)
	require.Equal(t, "99", h.balance(ledger.Wallet("wallet"), usdt))
	require.Equal(t, "1", h.balance(ledger.FeesPlatform, usdt))
	require.Equal(t, "0.495", h.balance(ledger.Wallet("wallet"), "ETH"))
	require.Equal(t, Completed, one.payment().Status)
	arrivals, n, err := h.s.Arrivals(ctx, tenant, p.ID, 0, 0)
	require.NoError(t, err)
	require.Equal(t, int64(1), n, "of this payment's money alone")
	require.Equal(t, ShownCounted, arrivals[0].ShownRole())
	require.Empty(t, h.alerts)
	list, count, _, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.Len(t, list, 2)
	require.Equal(t, int64(2), count)
}

// TestPermanentAddress_ManyDeposits: two outputs of one transaction, and two hundred others.
func TestPermanentAddress_ManyDeposits(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	a := h.permanent("ann", "BTC")
	seen := map[string]bool{}
	first := h.pay(a, "BTC", "0.01")
	second := h.pay(a, "BTC", "0.02")
	second.s.Tx, second.s.Ordinal = first.s.Tx, 1
	for _, x := range []*transfer{first, second} {
		seen[x.final().payment().ID] = true
	}
	for range 198 {
		x := h.pay(a, "BTC", "0.01")
		x.s.Height, x.s.BlockTime = 100, h.now
		require.NoError(t, x.tell(incoming.Final, true))
		seen[x.payment().ID] = true
	}
	require.Len(t, seen, 200)
	require.Equal(t, "1.9899", h.balance(ledger.Wallet("w"), "BTC"))
	_, count, _, err := h.s.List(ctx, tenant, Filter{Status: Completed})
	require.NoError(t, err)
	require.Equal(t, int64(200), count)
}

// TestPermanentAddress_GoneAndBack: gone is failed, back is confirming, however late; what was
// credited is taken back and credited under the next generation.
func TestPermanentAddress_GoneAndBack(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	a := h.permanent("ann", usdt)
	x := h.pay(a, usdt, "100").included().gone()
	require.Equal(t, Failed, x.payment().Status)
	h.after(100 * time.Hour)
	require.Equal(t, Confirming, x.included().payment().Status)
	x.final()
	require.Equal(t, scenario("c −100, w +99, P +1"), h.posted())
	p := x.gone().payment()
	require.Equal(t, Confirmed, p.Status, "kept")
	require.Equal(t, scenario("w −99, P −1, c +100"), h.posted())
	h.after(100 * time.Hour)
	x.again().final()
	require.Equal(t, scenario("c −100, w +99, P +1"), h.posted())
	require.Equal(t, []string{"deposit_received", "waiting>confirming", "confirming>failed", "failed>confirming", "confirming>confirmed", "confirmed>completed"}, h.eventTypes(p.ID))
	require.Len(t, h.alerts, 1)

	never := h.pay(a, usdt, "50")
	require.NoError(t, never.tell(incoming.Gone, false))
	_, _, ok, err := Deposits.One(ctx, h.store, storage.Tenant(tenant), DepositID(&never.s))
	require.NoError(t, err)
	require.False(t, ok, "what was gone before it was seen here is nothing")
	require.Equal(t, "50", never.included().payment().DueCoins().String())
}

// TestPermanentAddress_SmallDepositsAddUp: below the minimum they wait in suspense, shown with
// the reason, and are one payment when they reach it.
func TestPermanentAddress_SmallDepositsAddUp(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
	a, other := h.permanent("ann", usdt), h.permanent("bob", usdt)
	one := h.pay(a, usdt, "4").seen()
	require.Equal(t, RoleSmall, one.deposit().Role)
	require.Empty(t, h.posted(), "not final")
	one.final()
	require.Equal(t, scenario("c −4, S +4"), h.posted())
	h.now = h.now.Add(time.Minute)
	two := h.pay(a, usdt, "5.9").final()
	stranger := h.pay(other, usdt, "9").final()
	otherCoin := h.pay(a, "ETH", "0.0001").final()
	h.posted()
	page, n, err := h.s.SuspenseList(ctx, tenant, SuspenseFilter{Reason: ReasonBelowMinimum})
	require.NoError(t, err)
	require.Equal(t, int64(4), n)
	require.Equal(t, ReasonBelowMinimum, page[0].SuspenseReason())
	require.Empty(t, page[0].PaymentID)
	_, count, _, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.Zero(t, count)

	h.now = h.now.Add(time.Minute)
	three := h.pay(a, usdt, "0.1").seen()
	require.Empty(t, three.deposit().Payment, "it counts when it is final")
	h.posted()
	three.final()
	require.Equal(t, scenario("S −4, w +3.96, P +0.04; then S −5.9, w +5.841, P +0.059; then c −0.1, w +0.099, P +0.001"), h.posted())
	p := three.payment()
	for _, x := range []*transfer{one, two} {
		require.Equal(t, p.ID, x.payment().ID)
		require.Equal(t, InWallet, x.deposit().Booking)
	}
	require.Equal(t, []string{"10", "10", "9.90"}, []string{p.DueCoins().String(), p.Price.String(), p.MerchantReceived()})
	require.Equal(t, []string{"deposit_received", "deposit_received", "deposit_received", "waiting>confirming", "confirming>confirmed"}, h.eventTypes(p.ID))
	require.Equal(t, InSuspense, stranger.deposit().Booking)
	require.Equal(t, InSuspense, otherCoin.deposit().Booking)
	_, n, err = h.s.SuspenseList(ctx, tenant, SuspenseFilter{})
	require.NoError(t, err)
	require.Equal(t, int64(2), n)

	// A reorg takes one of them, and brings it back.
	one.gone()
	require.Equal(t, scenario("w −3.96, P −0.04, c +4"), h.posted())
	one.again().final()
	require.Equal(t, scenario("c −4, w +3.96, P +0.04"), h.posted())

	// What a person has decided about is not added up.
	h.pay(a, usdt, "9").final()
	four := h.pay(a, usdt, "0.9").final()
	_, err = h.s.Resolve(ctx, tenant, four.deposit().ID, "w")
	require.NoError(t, err)
	require.Equal(t, InSuspense, h.pay(a, usdt, "0.9").final().deposit().Booking)
	require.Equal(t, InWallet, h.pay(a, usdt, "0.1").final().deposit().Booking)
	require.Equal(t, "9.0001", h.sum(ledger.Suspense))
}

// least makes the minimum of a currency greater than the registry's.
func least(h *shop, code, amount string) Minimums {
	return func(context.Context, ...*chain.Currency) (map[string]ledger.Amount, error) {
		c, err := h.cfg.Registry.Currency(code)
		if err != nil {
			return nil, err
		}
		units, err := c.Units(decimal.RequireFromString(amount), ledger.Up)
		return map[string]ledger.Amount{code: units}, err
	}
}

// eventTypes are the webhooks of a payment, in short.
func (h *shop) eventTypes(id string) []string {
	rows, err := h.store.Find(ctx, storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(tenant), Limit: 1000,
		Where: []storage.Cond{{Column: "object", Op: storage.Eq, Value: id}}, Order: []storage.Order{{Column: "seq"}},
	})
	require.NoError(h.t, err)
	var out []string
	for _, r := range rows {
		e := webhook.Events.Value(r)
		var body struct{ Data StatusUpdate }
		require.NoError(h.t, json.Unmarshal([]byte(e.Body), &body))
		if e.Type == webhook.PaymentStatusUpdate {
			e.Type = fmt.Sprintf("%s>%s", body.Data.PreviousStatus, body.Data.Status)
		}
		out = append(out, e.Type)
	}
	return out
}

// sum is what all currencies have in one account.
func (h *shop) sum(a ledger.Account) string {
	balances, err := h.store.Balances(ctx, storage.Tenant(tenant), a)
	require.NoError(h.t, err)
	var sum decimal.Decimal
	for _, b := range balances {
		c, err := h.cfg.Registry.Currency(string(b.Asset))
		require.NoError(h.t, err)
		sum = sum.Add(c.Decimal(b.Posted))
	}
	return sum.String()
}

// TestPermanentAddress_SmallDepositsOfTwoProcesses: of two who book the last two small deposits
// at once one sees the other's.
func TestPermanentAddress_SmallDepositsOfTwoProcesses(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
	a := h.permanent("ann", usdt)
	one, two := h.pay(a, usdt, "6").seen(), h.pay(a, usdt, "6").seen()
	between := false
	h.store.fail = func(storage.Change) error {
		if !between {
			between = true
			h.store.mu.Unlock()
			defer h.store.mu.Lock()
			two.final()
		}
		return nil
	}
	require.NoError(t, one.tell(incoming.Final, true))
	require.True(t, between)
	require.Equal(t, one.payment().ID, two.payment().ID)
	require.Equal(t, "11.88", h.balance(ledger.Wallet("w"), usdt))
	require.Equal(t, "0", h.balance(ledger.Suspense, usdt))
}

// TestPermanentAddress_WithoutAPrice: the fact waits, and nothing is lost.
func TestPermanentAddress_WithoutAPrice(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	a := h.permanent("ann", "ETH")
	delete(h.price, "ETH")
	x := h.pay(a, "ETH", "0.5")
	x.s.Height, x.s.BlockTime = 100, h.now
	before := h.dump()
	require.ErrorIs(t, x.tell(incoming.Final, true), rates.ErrUnavailable)
	require.Equal(t, before, h.dump())
	h.price["ETH"] = "1900"
	x.final()
	require.Equal(t, "950", x.payment().Price.String())
	require.Equal(t, "0.495", h.balance(ledger.Wallet("w"), "ETH"))
}

// TestPermanentAddress_WhatDoesNotCount goes where it would at a payment's address.
func TestPermanentAddress_WhatDoesNotCount(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { most := decimal.New(1000, 0); h.cfg.MaxCreditUSD = &most })
	a := h.permanent("ann", usdt)
	unproven := h.pay(a, usdt, "100")
	unproven.s.Unproven = true
	require.Equal(t, RoleUnproven, unproven.final().deposit().Role)
	require.Equal(t, RoleExcess, h.pay(a, usdt, "1001").final().deposit().Role)
	unlisted := h.pay(a, usdt, "100")
	unlisted.s.Currency, unlisted.s.Contract, unlisted.s.Amount = "", "0xother", 0
	require.Equal(t, RoleUnlisted, unlisted.final().deposit().Role)
	require.Equal(t, "1101", h.sum(ledger.Suspense))
	_, count, _, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.Zero(t, count)
}

// TestPermanentAddress_Retired: what comes later is late money; what had come goes on; the
// address stays watched for a while; asked for again it is in use again.
func TestPermanentAddress_Retired(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	a := h.permanent("ann", usdt)
	part := storage.Network("ETH")
	c := storage.Change{ID: "directory", Partition: part, Put: []storage.Row{incoming.Addresses.Row(a.Address, 0, time.Time{}, incoming.AddressRow{Seq: 1, Tenant: tenant, Use: incoming.UsePayment})}}
	require.NoError(t, storage.CommitOne(ctx, h.store, c))
	watched := func() time.Time {
		v, _, ok, err := incoming.Addresses.One(ctx, h.store, part, a.Address)
		require.NoError(t, err)
		require.True(t, ok)
		return v.WatchUntil
	}
	early := h.pay(a, usdt, "100").seen()
	h.after(40 * 24 * time.Hour)
	require.True(t, watched().IsZero(), "payments of a permanent address do not end its watch")
	old := h.pay(a, usdt, "70")
	old.s.FirstSeen = h.now
	old.s.BlockTime, old.s.Height = h.now, 100
	h.now = h.now.Add(time.Minute)
	retired, err := h.s.RetireAddress(ctx, tenant, a.ID)
	require.NoError(t, err)
	require.Equal(t, h.now, retired.RetiredAt)
	again, err := h.s.RetireAddress(ctx, tenant, a.ID)
	require.NoError(t, err)
	require.Equal(t, retired, again)
	h.after(time.Minute)
	require.Equal(t, retired.RetiredAt.Add(30*24*time.Hour), watched())
	require.Equal(t, InWallet, old.final().deposit().Booking, "it came before")
	late := h.pay(a, usdt, "50").final()
	require.Equal(t, []any{RoleUnmatched, InSuspense, ReasonLate}, []any{late.deposit().Role, late.deposit().Booking, func() string { d := late.deposit(); return d.SuspenseReason() }()})
	require.Equal(t, InWallet, early.final().deposit().Booking, "its payment goes on")
	_, err = h.s.RetireAddress(ctx, tenant, "nobody's")
	require.ErrorIs(t, err, ErrNotFound)

	back, made, err := h.s.PermanentAddress(ctx, tenant, AddressInput{ExternalID: "ann", Currency: usdt})
	require.NoError(t, err)
	require.False(t, made)
	require.Equal(t, a.Address, back.Address)
	require.True(t, back.RetiredAt.IsZero())
	require.True(t, watched().IsZero(), "before it is shown")
	h.after(time.Minute)
	require.True(t, watched().IsZero())
	require.Equal(t, InWallet, h.pay(a, usdt, "60").final().deposit().Booking)
}

// TestPermanentAddress_StaleFactsAreIgnored: an older version of a small deposit that arrives
// late, at another process, changes nothing and makes no payment.
func TestPermanentAddress_StaleFactsAreIgnored(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
	a := h.permanent("ann", usdt)
	x := h.pay(a, usdt, "4").seen()
	stale := x.last
	x.final()
	before := h.dump()
	require.NoError(t, h.s.handle(ctx, stale))
	require.Equal(t, before, h.dump())
	_, count, _, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.Zero(t, count)
}

// TestPermanentAddress_MinimumLoweredAfterAPersonDecided: a small deposit that a person has
// dealt with stays dealt with, also where it would not be small any more.
func TestPermanentAddress_MinimumLoweredAfterAPersonDecided(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(*shop, string) error{
		"credited": func(h *shop, id string) error { _, err := h.s.Resolve(ctx, tenant, id, "w"); return err },
		"ignored":  func(h *shop, id string) error { _, err := h.s.Ignore(ctx, tenant, id); return err },
		"refunded": func(h *shop, id string) error { _, err := h.s.Refund(ctx, tenant, id); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newShop(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
			x := h.pay(h.permanent("ann", usdt), usdt, "4").final()
			require.NoError(t, decide(h, x.deposit().ID))
			before := x.deposit().Booking
			h.posted()
			h.s.c.Minimums = least(h, usdt, "1")
			x.forward(incoming.Forwarded, "sweep")
			require.Empty(t, h.posted(), "the same money is booked once")
			require.Equal(t, before, x.deposit().Booking)
			require.Empty(t, x.deposit().Payment)
			if name != "refunded" {
				return
			}
			x.gone() // a reorg, and it is back
			h.posted()
			x.again().final()
			require.Equal(t, scenario("c −4, A +4"), h.posted(), "it was refunded")
			require.Equal(t, "0", h.balance(ledger.Wallet("w"), usdt))
		})
	}
}

// TestPermanentAddress_ManyTinyDepositsKeepNoneFromAddingUp: whoever sends hundreds of tiny
// amounts to somebody's address keeps nothing of what he pays from being credited.
func TestPermanentAddress_ManyTinyDepositsKeepNoneFromAddingUp(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
	a := h.permanent("ann", usdt)
	final := func(amount string) *transfer {
		x := h.pay(a, usdt, amount)
		x.s.Height, x.s.BlockTime = 100, h.now
		require.NoError(t, x.tell(incoming.Final, true))
		return x
	}
	for range maxWaiting {
		h.now = h.now.Add(time.Second)
		final("0.01")
	}
	h.now = h.now.Add(time.Second)
	one := final("4.5")
	two := final("4.5")
	require.Equal(t, InWallet, two.deposit().Booking)
	require.Equal(t, one.payment().ID, two.payment().ID)
	require.Len(t, two.payment().ID, 36)
}

// TestPermanentAddress_AlertsNameNoPaymentThatIsNot: what counts for no payment is told of
// without one.
func TestPermanentAddress_AlertsNameNoPaymentThatIsNot(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
	a := h.permanent("ann", usdt)
	h.pay(a, usdt, "4").final().gone()
	impossible := h.pay(a, usdt, "100")
	impossible.s.Amount = -1
	impossible.seen()
	require.Len(t, h.alerts, 2)
	for _, alert := range h.alerts {
		require.Empty(t, alert.Payment, "%+v", alert)
	}
}
