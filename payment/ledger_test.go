package payment

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// legs brings a line of the scenarios into the form that shop.posted gives.
func scenario(text string) string {
	if text == "none" {
		return ""
	}
	txs := strings.Split(text, "; then ")
	for i, tx := range txs {
		legs := strings.Split(strings.ReplaceAll(tx, "−", "-"), ", ")
		slices.Sort(legs)
		txs[i] = strings.Join(legs, ", ")
	}
	return strings.Join(txs, "; then ")
}

const usdt = "USDTERC20"

func byUser(in *CreateInput) { v := true; in.FeeByUser = &v }

func floating(in *CreateInput) { v := false; in.FixedRate = &v }

func networkFee(units ledger.Amount) func(*shop) {
	return func(h *shop) { h.cfg.NetworkFee = fixedFee(units) }
}

func creditLate(h *shop) { h.cfg.Late = LateCredit }

// TestMoneyIn produces each line of "Money in" of the ledger's scenarios.
func TestMoneyIn(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set    []func(*shop)
		create []func(*CreateInput)
		pay    []string
		due    string
		legs   string
		status Status
		typ    Type
		value  string
	}{
		"full, fee by merchant":    {pay: []string{"100"}, due: "100", legs: "c −100, w +99, P +1", typ: TypeFull, value: "99.00"},
		"full, by merchant, n = 1": {set: []func(*shop){networkFee(1e6)}, pay: []string{"100"}, due: "100", legs: "c −100, w +98, P +1, N +1", typ: TypeFull, value: "98.00"},
		"full, fee by user":        {create: []func(*CreateInput){byUser}, pay: []string{"101"}, due: "101", legs: "c −101, w +100, P +1", typ: TypeFull, value: "100.00"},
		"full, by user, n = 1":     {set: []func(*shop){networkFee(1e6)}, create: []func(*CreateInput){byUser}, pay: []string{"102"}, due: "102", legs: "c −102, w +100, P +1, N +1", typ: TypeFull, value: "100.00"},
		"short in tolerance":       {create: []func(*CreateInput){byUser}, pay: []string{"100.6"}, due: "101", legs: "c −100.6, w +99.603961, P +0.996039", typ: TypeFull, value: "99.60"},
		"over":                     {pay: []string{"150"}, due: "100", legs: "c −150, w +148.5, P +1.5", typ: TypeOver, value: "148.50"},
		"two deposits":             {pay: []string{"60", "40"}, due: "100", legs: "c −60, w +59.4, P +0.6; then c −40, w +39.6, P +0.4", typ: TypeFull, value: "99.00"},
		"network fee once":         {set: []func(*shop){networkFee(1e6)}, pay: []string{"60", "40"}, due: "100", legs: "c −60, w +58.4, P +0.6, N +1; then c −40, w +39.6, P +0.4", typ: TypeFull, value: "98.00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newShop(t, c.set...)
			p := h.create("100", usdt, c.create...)
			require.Equal(t, c.due, h.units(p.Due, usdt))
			for _, amount := range c.pay {
				x := h.transfer(p, amount).seen()
				h.now = h.now.Add(time.Second)
				x.final()
			}
			require.Equal(t, scenario(c.legs), h.posted())
			got := h.get(p)
			require.Equal(t, Confirmed, got.Status)
			require.Equal(t, c.typ, got.Type)
			require.Equal(t, c.value, got.MerchantReceived())
			require.Equal(t, c.value, h.lastUpdate(p).MerchantReceivedUSD)
			require.Len(t, h.lastUpdate(p).PaymentHistory, len(c.pay))
		})
	}
}

func (h *shop) units(a ledger.Amount, currency string) string {
	c, err := h.cfg.Registry.Currency(currency)
	require.NoError(h.t, err)
	return c.Decimal(a).String()
}

func TestMoneyIn_Partial(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	h.transfer(p, "40").final()
	require.Empty(t, h.posted())
	require.Equal(t, PartiallyPaid, h.get(p).Status)
	h.after(time.Hour + time.Second)
	require.Equal(t, scenario("c −40, w +39.6, P +0.4"), h.posted())
	require.Equal(t, Expired, h.get(p).Status)
	require.Equal(t, TypePartial, h.get(p).Type)
	require.Equal(t, "39.60", h.get(p).MerchantReceived())
	require.Equal(t, []string{"deposit_received", "waiting>partially_paid", "partially_paid>expired"}, h.events(p))
}

func TestMoneyIn_Floating(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", "ETH", floating)
	require.Equal(t, "0.05", h.units(p.Due, "ETH"))
	h.price["ETH"] = "1900"
	x := h.transfer(p, "0.05").seen()
	h.price["ETH"] = "1700" // only the rate when first seen counts
	x.final()
	require.Equal(t, scenario("c −0.05, w +0.0495, P +0.0005"), h.posted())
	require.Equal(t, TypeFull, h.get(p).Type)
	require.Equal(t, "94.05", h.get(p).MerchantReceived())
}

func TestMoneyIn_Late(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	h.after(2 * time.Hour)
	before := h.get(p)
	h.transfer(p, "100").final()
	require.Equal(t, scenario("c −100, S +100"), h.posted())
	require.Equal(t, before, h.get(p), "the payment is unchanged")
	require.Equal(t, AlertSuspense, h.alerts[0].Kind)

	h = newShop(t, creditLate)
	p = h.create("100", "ETH")
	h.after(2 * time.Hour)
	h.price["ETH"] = "2200"
	h.posted()
	h.transfer(p, "0.05").final()
	require.Equal(t, scenario("c −0.05, w +0.0495, P +0.0005"), h.posted())
	require.Equal(t, TypeLate, h.get(p).Type)
	require.Equal(t, Confirmed, h.get(p).Status)
	require.Equal(t, "108.90", h.get(p).MerchantReceived(), "valued at the rate when seen")
}

// TestMoneyIn_LateWithoutAPrice: late money cannot be judged while nobody gives a price. It is
// told again, and valued then.
func TestMoneyIn_LateWithoutAPrice(t *testing.T) {
	t.Parallel()
	h := newShop(t, creditLate)
	p := h.create("100", "ETH")
	h.after(2 * time.Hour)
	before := h.dump()
	price := h.price["ETH"]
	delete(h.price, "ETH")
	x := h.transfer(p, "0.05")
	require.ErrorIs(t, x.tell(incoming.Seen, false), rates.ErrUnavailable)
	require.Equal(t, before, h.dump())
	h.price["ETH"] = price
	h.posted()
	x.final()
	require.Equal(t, scenario("c −0.05, w +0.0495, P +0.0005"), h.posted())
	require.Equal(t, TypeLate, h.get(p).Type)
	require.Equal(t, "99.00", h.get(p).MerchantReceived())
}

func TestMoneyIn_DroppedBeforeFinal(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	h.transfer(p, "60").included()
	x := h.transfer(p, "40").included()
	require.Equal(t, Confirming, h.get(p).Status)
	x.gone()
	require.Equal(t, PartiallyPaid, h.get(p).Status)
	require.Empty(t, h.posted())
}

func TestMoneyIn_Reversals(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	h.transfer(p, "60").final()
	x := h.transfer(p, "40").final()
	h.posted()
	x.gone()
	require.Equal(t, scenario("w −39.6, P −0.4, c +40"), h.posted())
	require.Equal(t, Confirmed, h.get(p).Status)
	require.Equal(t, "59.40", h.get(p).MerchantReceived())
	require.Equal(t, AlertReversed, h.alerts[0].Kind)
	x.again().final()
	require.Equal(t, scenario("c −40, w +39.6, P +0.4"), h.posted())
	require.Equal(t, "99.00", h.get(p).MerchantReceived())
}

// TestR03_DeepReorgBooksAReceivable: what the wallet no longer has becomes what
// it owes, held funds stay held, and the deposit's return repays it first.
func TestR03_DeepReorgBooksAReceivable(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ hold, legs, recover, left string }{
		"80 withdrawn":              {"0", "w −19, R −80, P −1, c +100", "c −100, w +99, P +1; then w −80, R +80", "0"},
		"80 withdrawn, 10 are held": {"10", "w −9, R −90, P −1, c +100", "c −100, w +99, P +1; then w −90, R +90", "0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newShop(t)
			p := h.create("100", usdt)
			x := h.transfer(p, "100").final()
			h.spend(usdt, "80", false)
			if c.hold != "0" {
				h.spend(usdt, c.hold, true)
			}
			x.gone()
			require.Equal(t, scenario(c.legs), h.posted())
			require.Equal(t, c.left, h.balance(ledger.Wallet("w"), usdt))
			require.Equal(t, Confirmed, h.get(p).Status)
			x.again()
			require.Empty(t, h.posted(), "nothing before it is final again")
			x.final()
			require.Equal(t, scenario(c.recover), h.posted())
			require.Equal(t, "0", h.balance(ledger.Receivable("w"), usdt))
			require.Zero(t, x.deposit().Owed)
		})
	}
}

// TestR03_ReturnInOneFact: gone, mined again and final between two looks.
func TestR03_ReturnInOneFact(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").final()
	h.spend(usdt, "80", false)
	x.s.Generation++
	x.must(incoming.Final, true)
	require.Equal(t, scenario("w −19, R −80, P −1, c +100; then c −100, w +99, P +1; then w −80, R +80"), h.posted())
	require.Equal(t, "19", h.balance(ledger.Wallet("w"), usdt))
}

func TestMoneyIn_WrongTokenAndItsResolution(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transferOf(p, "USDCERC20", "50").final()
	require.Equal(t, scenario("c −50, S +50"), h.posted())
	require.Equal(t, RoleWrongToken, x.deposit().Role)
	require.Equal(t, Waiting, h.get(p).Status)
	require.Empty(t, h.events(p))
	list, err := h.s.Suspense(ctx, tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, list, 1)

	d, err := h.s.Resolve(ctx, tenant, list[0].ID, "w")
	require.NoError(t, err)
	balances, err := h.store.Balances(ctx, storage.Tenant(tenant), ledger.Wallet("w"))
	require.NoError(t, err)
	_, counted, err := tally.OfKind(ctx, h.store, storage.Tenant(tenant), balances, ledger.KindDeposit)
	require.NoError(t, err)
	require.True(t, counted, "what a person credits is counted, too")
	require.Equal(t, Resolved, d.Booking)
	require.Equal(t, scenario("S −50, w +50"), h.posted())
	var state *StateError
	_, err = h.s.Refund(ctx, tenant, list[0].ID)
	require.ErrorAs(t, err, &state)

	h.spend("USDCERC20", "20", false)
	x.gone()
	require.Equal(t, scenario("w −30, R −20, c +50"), h.posted())
	x.again().final()
	require.Equal(t, scenario("c −50, S +50"), h.posted())
	_, err = h.s.Resolve(ctx, tenant, list[0].ID, "w")
	require.NoError(t, err)
	require.Equal(t, scenario("S −50, w +50; then w −20, R +20"), h.posted())

	y := h.transferOf(p, "USDCERC20", "7").final()
	h.posted()
	_, err = h.s.Refund(ctx, tenant, y.deposit().ID)
	require.NoError(t, err)
	require.Equal(t, scenario("S −7, c +7"), h.posted())
	y.gone()
	require.Equal(t, scenario("A −7, c +7"), h.posted())
	y.again().final()
	require.Equal(t, scenario("c −7, A +7"), h.posted())
	require.Equal(t, Refunded, y.deposit().Booking)
}

func TestMoneyIn_RecordedOnly(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	c, err := h.cfg.Registry.Currency(usdt)
	require.NoError(t, err)
	require.True(t, c.Dust.IsPositive())
	dust := h.transfer(p, "0.000001").final()
	require.Equal(t, RoleDust, dust.deposit().Role)

	fake := h.transfer(p, "100")
	fake.s.Currency, fake.s.Contract = "", "0xfake"
	fake.final()
	require.Equal(t, RoleUnlisted, fake.deposit().Role)

	huge := h.transfer(p, "1")
	huge.s.Amount, huge.s.Exact = -1, decimal.RequireFromString("1e60")
	huge.final()
	require.Equal(t, RoleQuarantined, huge.deposit().Role)
	require.Equal(t, []Alert{{Kind: AlertQuarantined, Tenant: tenant, Payment: p.ID, Deposit: huge.deposit().ID, Text: h.alerts[0].Text}}, h.alerts)

	require.Empty(t, h.posted())
	require.Empty(t, h.events(p))
	require.Equal(t, Waiting, h.get(p).Status)

	fee := h.transfer(p, "99").final() // of 100 that were sent by a token that takes 1
	require.Empty(t, h.posted(), "99 of 100 is short")
	fee.gone()
}

// A transfer that moves an impossible amount only in its block counts no more, and a person
// is told once.
func TestMoneyIn_QuarantinedInItsBlock(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").seen()
	require.Equal(t, RoleInTime, x.deposit().Role)
	x.s.Amount, x.s.Exact = -1, decimal.RequireFromString("1e60")
	x.final().final()
	require.Equal(t, RoleQuarantined, x.deposit().Role)
	require.Equal(t, []Alert{{Kind: AlertQuarantined, Tenant: tenant, Payment: p.ID, Deposit: x.deposit().ID, Text: h.alerts[0].Text}}, h.alerts)
	require.Empty(t, h.posted())
}

// A fee-on-transfer token is credited as what arrives.
func TestMoneyIn_FeeOnTransfer(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("99", usdt)
	h.transfer(p, "99").final()
	require.Equal(t, scenario("c −99, w +98.01, P +0.99"), h.posted())
}

// TestL13_ReversalLeavesHoldsAlone: payments take no holds and release none; what
// a withdrawal has held stays held when its wallet's deposit is taken away.
func TestL13_ReversalLeavesHoldsAlone(t *testing.T) {
	t.Parallel()
	h := newShop(t)
	p := h.create("100", usdt)
	x := h.transfer(p, "100").final()
	h.spend(usdt, "10", true)
	x.gone()
	balances, err := h.store.Balances(ctx, storage.Tenant(tenant), ledger.Wallet("w"))
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(10_000_000), balances[0].Held)
	require.Zero(t, balances[0].Available())
	for _, tx := range h.store.posts {
		for _, l := range tx.Legs {
			require.Zero(t, l.Hold)
		}
	}
	x.again().final()
	balances, err = h.store.Balances(ctx, storage.Tenant(tenant), ledger.Wallet("w"))
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(10_000_000), balances[0].Held)
	require.Equal(t, ledger.Amount(89_000_000), balances[0].Available())
}
