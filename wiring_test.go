package cryptopay_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A network fee is taken in the withdrawal's own currency only at prices that
// can be true: of gas as of the currency.
func TestW18_NetworkFeeAtNoImpossiblePrice(t *testing.T) {
	t.Parallel()
	h := newHost(t, 21, "ETH")
	h.step()
	amount := dec("100")
	estimate := func() (withdrawal.Estimate, error) {
		return h.app.Withdrawals.Estimate(t.Context(), h.tenant, withdrawal.Terms{Amount: &amount, Currency: "USDTERC20"})
	}
	before, err := estimate()
	require.NoError(t, err)
	require.Positive(t, before.NetworkFee)
	for _, token := range []string{"ETH", "USDT"} {
		for name, wrong := range map[string]func(*rates.Rate){
			"zero":          func(r *rates.Rate) { r.Price = decimal.Decimal{} },
			"negative":      func(r *rates.Rate) { r.Price = r.Price.Neg() },
			"old":           func(r *rates.Rate) { r.At = r.At.Add(-rates.DefaultMaxAge) },
			"of the future": func(r *rates.Rate) { r.At = r.At.Add(rates.DefaultMaxAge) },
			"of no time":    func(r *rates.Rate) { r.At = time.Time{} },
		} {
			h.quoted = func(r rates.Rate) rates.Rate {
				if r.Token == token {
					wrong(&r)
				}
				return r
			}
			_, err := estimate()
			require.ErrorIs(t, err, withdrawal.ErrFee, "%s %s", token, name)
			require.ErrorIs(t, err, rates.ErrUnavailable, "%s %s", token, name)
		}
	}
	h.quoted = func(r rates.Rate) rates.Rate {
		r.At = r.At.Add(time.Microsecond - rates.DefaultMaxAge)
		return r
	}
	after, err := estimate()
	require.NoError(t, err)
	require.Equal(t, before.NetworkFee, after.NetworkFee)
}

// guzzler is a network with one recipient that says itself what it costs to be paid,
// as a contract does.
type guzzler struct {
	chain.Client
	chain.Noncer
	chain.Balancer
	to   chain.Address
	dear atomic.Int64 // times what others cost; 0 = as others
}

func (g *guzzler) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	fee, err := g.Client.EstimateFee(ctx, in)
	if times := g.dear.Load(); err == nil && in.To == g.to && times > 0 {
		fee.Cost, fee.Max = fee.Cost*ledger.Amount(times), fee.Max*ledger.Amount(times)
	}
	return fee, err
}

// TestW14_ARecipientDoesNotSayWhatItMayCost: one that is cheap when the fee is quoted
// and dear when it is paid would spend the operator's coins.
func TestW14_ARecipientDoesNotSayWhatItMayCost(t *testing.T) {
	t.Parallel()
	h := newHost(t, 31, "ETH")
	g := &guzzler{}
	h.configure = func(c *cryptopay.Config) {
		g.Client, g.Noncer, g.Balancer = c.Chains[0], c.Chains[0].(chain.Noncer), c.Chains[0].(chain.Balancer)
		c.Chains = []chain.Client{g}
	}
	h.restart()
	ctx, world := t.Context(), h.chains["ETH"]
	h.step()
	hot, err := h.app.Addresses.Hot(ctx, "ETH", h.tenant)
	require.NoError(t, err)
	_, err = world.Fund(hot.Address, "ETH", dec("1"))
	require.NoError(t, err)
	p, err := h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}, OrderID: "o", CallbackURL: "https://shop.example/hook",
	})
	require.NoError(t, err)
	_, err = world.Pay(chain.Address(p.Address), "ETH", dec("0.2"))
	require.NoError(t, err)
	h.mine(60)
	typical, err := g.EstimateFee(ctx, chain.Intent{Purpose: chain.ForWithdrawal, Network: "ETH", Currency: "ETH", Amount: 1})
	require.NoError(t, err)

	pay := func(name string, later int64) withdrawal.Withdrawal {
		g.to = world.Customer(name)
		g.dear.Store(0)
		w, err := h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{PriceAmount: ptr(dec("50")), Currency: "ETH", Address: string(g.to)},
		})
		require.NoError(t, err)
		g.dear.Store(later)
		h.mine(60)
		w, err = h.app.Withdrawals.Get(ctx, h.tenant, w.ID)
		require.NoError(t, err)
		return w
	}
	w := pay("a contract", 1000)
	require.LessOrEqual(t, w.MaxCost, 30*typical.Max)
	w = pay("a new account", 5)
	require.GreaterOrEqual(t, w.MaxCost, 5*typical.Max, "some do cost more")
	require.Equal(t, withdrawal.Completed, w.Status)
}
