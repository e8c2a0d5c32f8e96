package payment

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// inFiat prices a shop's coins in other fiat currencies than USD, too: one EUR is
// two USD.
type inFiat struct{ *shop }

func (f inFiat) Rate(ctx context.Context, token, fiat string) (rates.Rate, error) {
	r, err := f.shop.Rate(ctx, token, fiat)
	if fiat == "EUR" {
		r.Price = r.Price.Div(decimal.New(2, 0))
	}
	return r, err
}

func inEUR(in *CreateInput) { in.PriceCurrency = "EUR" }

// A deposit of a little more than 200 USD is above a bound of 200 USD, though it is
// only 100 EUR.
func TestFQ10_MaxCreditOfAPriceInEUR(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) {
		most := decimal.New(200, 0)
		h.cfg.Rates, h.cfg.MaxCreditUSD = inFiat{h}, &most
	})
	p := h.create("100", usdt, inEUR)
	require.Equal(t, "200", h.units(p.Due, usdt))
	h.transfer(p, "200.000001").final()
	require.Equal(t, scenario("c −200.000001, S +200.000001"), h.posted())
	h.transfer(p, "200").final()
	require.Equal(t, scenario("c −200, w +198, P +2"), h.posted())
}

// A payment may be short by 5 USD, which are 2.50 EUR.
func TestFQ10_ToleranceOfAPriceInEUR(t *testing.T) {
	t.Parallel()
	for amount, want := range map[string]Type{"9995": TypeFull, "9994.999999": TypePartial} {
		h := newShop(t, func(h *shop) { h.cfg.Rates = inFiat{h} })
		p := h.create("5000", usdt, inEUR)
		require.Equal(t, "10000", h.units(p.Due, usdt))
		h.transfer(p, amount).final()
		require.Equal(t, want, h.get(p).Type, amount)
	}
}

// The limits of a currency are for what is bought. The fee that the customer pays on
// top neither lifts a small payment over the minimum nor a large one over the maximum.
func TestFQ10_LimitsLeaveTheCustomersFeeOut(t *testing.T) {
	t.Parallel()
	h := newShop(t, networkFee(1e6))
	c, err := h.cfg.Registry.Currency(usdt)
	require.NoError(t, err)
	c.Min, c.Max = decimal.New(5, 0), decimal.New(1000, 0)
	for amount, ok := range map[string]bool{"4.99": false, "5": true, "1000": true, "1000.01": false} {
		yes := true
		_, err := h.s.Estimate(ctx, tenant, Pricing{Amount: amount, Currency: usdt, FeeByUser: &yes})
		if ok {
			require.NoError(t, err, amount)
			continue
		}
		require.NotEmpty(t, invalid(t, err)["amount"], amount)
	}
}

// A late deposit is on its way to be credited, and nobody has looked at the head
// since, so the payment still waits. It is not cancelled under the deposit.
func TestFQ10_NoCancelWhileALateDepositIsCredited(t *testing.T) {
	t.Parallel()
	h := newShop(t, creditLate)
	p := h.create("100", usdt)
	h.tipRead = h.now
	h.now = p.ExpiresAt.Add(time.Minute)
	x := h.transfer(p, "100").seen()
	require.Equal(t, RoleLate, x.deposit().Role)
	require.Equal(t, Waiting, h.get(p).Status)
	var state *StateError
	_, err := h.s.Cancel(ctx, tenant, p.ID)
	require.ErrorAs(t, err, &state)
	x.final()
	h.tipRead = time.Time{}
	h.after(time.Hour)
	require.Equal(t, scenario("c −100, w +99, P +1"), h.posted())
	require.Equal(t, "99", h.balance(ledger.Wallet("w"), usdt))
}
