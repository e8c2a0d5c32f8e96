package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// market is a network whose fees are moved by hand: tenths of what they are, 0 = the
// node does not answer.
type market struct {
	chain.Client
	chain.Noncer
	chain.Balancer
	tenths atomic.Int64
}

// OnDemand implements chain.OnDemand, as the simulated network does.
func (m *market) OnDemand() bool { return true }

func (m *market) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	fee, err := m.Client.EstimateFee(ctx, in)
	tenths := m.tenths.Load()
	if tenths == 0 {
		return chain.Fee{}, chain.ErrNode
	}
	fee.Cost, fee.Max = fee.Cost*ledger.Amount(tenths)/10, fee.Max*ledger.Amount(tenths)/10
	return fee, err
}

// onMarket is a world on Ethereum with fees of its own.
func onMarket(t *testing.T) (*world, *market) {
	m := &market{}
	m.tenths.Store(10)
	return newWorld(t, func(s *setup) {
		s.networks = []chain.Network{"ETH"}
		s.config = func(c *cryptopay.Config) {
			m.Client, m.Noncer, m.Balancer = c.Chains[0], c.Chains[0].(chain.Noncer), c.Chains[0].(chain.Balancer)
			c.Chains = []chain.Client{m}
		}
	}), m
}

// least is the minimum of USDT, which the three places that show it agree on.
func (w *world) least() decimal.Decimal {
	w.t.Helper()
	min := decimal.RequireFromString(w.ok(http.StatusOK, "GET", "/payments/min-amount/?currency=USDTERC20", nil).Body["min_amount"].(json.Number).String())
	listed := entry(w.t, w.ok(http.StatusOK, "GET", "/currencies/?min_max=true", nil), "USDTERC20")["min_amount"].(string)
	estimate := w.ok(http.StatusOK, "POST", "/payments/estimate/", map[string]any{"amount": "9999", "currency": "USDTERC20"}).Body["min_amount"].(string)
	for _, shown := range []string{listed, estimate} {
		require.Equal(w.t, min.String(), decimal.RequireFromString(shown).String())
	}
	below := min.Sub(decimal.New(1, -2)).Truncate(2)
	a := w.ok(http.StatusBadRequest, "POST", "/payments/", map[string]any{"amount": below.String(), "currency": "USDTERC20"})
	require.Contains(w.t, a.at("error", "details"), "amount")
	return min
}

// TestFM09_MinimumsFollowWhatForwardingCosts: the greater of the configured one and
// twice the median cost of the last day, the same wherever it is shown.
func TestFM09_MinimumsFollowWhatForwardingCosts(t *testing.T) {
	t.Parallel()
	w, m := onMarket(t)
	twice := func() decimal.Decimal {
		cost, gas, err := w.app.Treasury.ForwardCost(t.Context(), "USDTERC20")
		require.NoError(t, err)
		require.Equal(t, "ETH", gas)
		return decimal.New(int64(cost), -8).Mul(decimal.New(2*2000, 0)).RoundUp(6)
	}
	pass := func(d time.Duration) {
		for range int(d / (10 * time.Minute)) {
			w.clock.Advance(10 * time.Minute)
			w.step()
		}
	}
	configured := decimal.New(1, 0)
	require.Equal(t, configured.String(), w.least().String(), "nothing is known yet")
	m.tenths.Store(1)
	w.step()
	require.True(t, twice().LessThan(configured), "%s", twice())
	require.Equal(t, configured.String(), w.least().String(), "fees are low")

	// A spike of hours changes nothing, a day does.
	m.tenths.Store(100)
	cheap := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "1", "currency": "USDTERC20", "expiry_minutes": 1440}).Body
	pass(10 * time.Minute)
	dear := twice()
	require.True(t, dear.GreaterThan(configured.Mul(decimal.New(2, 0))), "%s", dear)
	require.Equal(t, configured.String(), w.least().String(), "dear for ten minutes")
	pass(14 * time.Hour)
	w.token = w.newToken(w.admin, "")
	require.Equal(t, dear.String(), w.least().String(), "the most of the last day")
	w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": dear.RoundUp(2).String(), "currency": "USDTERC20"})

	// A little up or down is not told, neither is what a node or price does not say.
	m.tenths.Store(119)
	pass(25 * time.Hour)
	w.token = w.newToken(w.admin, "")
	require.Equal(t, dear.String(), w.least().String(), "less than a fifth more")
	m.tenths.Store(0)
	pass(26 * time.Hour)
	w.token = w.newToken(w.admin, "")
	require.Equal(t, dear.String(), w.least().String(), "the last one, where the node is away")
	m.tenths.Store(120)
	pass(25 * time.Hour)
	w.token = w.newToken(w.admin, "")
	require.Equal(t, dear.Mul(decimal.New(12, -1)).String(), w.least().String(), "a fifth more")
	m.tenths.Store(1)
	pass(25 * time.Hour)
	w.token = w.newToken(w.admin, "")
	require.Equal(t, configured.String(), w.least().String(), "and down again")
	require.Equal(t, "expired", w.paid(cheap["transaction_id"])["status"])
}

// TestFM09_NoRequestAsksANode: what is shown and refused is read from the store.
func TestFM09_NoRequestAsksANode(t *testing.T) {
	t.Parallel()
	w, m := onMarket(t)
	w.step()
	least := w.least()
	m.tenths.Store(0)
	require.Equal(t, least.String(), w.least().String())
	p := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": least.RoundUp(2).String(), "currency": "USDTERC20"}).Body
	w.transfer("USDTERC20", p["address"].(string), p["amount_crypto"].(string))
	m.tenths.Store(1000)
	w.clock.Advance(20 * time.Minute)
	w.mine(15)
	require.Equal(t, p["amount_crypto"], w.paid(p["transaction_id"])["amount_received"], "a payment keeps the minimum that it was created under")
}

// TestFA12_QuoteSaysHowOldItsPriceIs: an estimate names the time of its price, and when that is too
// old to be used.
func TestFA12_QuoteSaysHowOldItsPriceIs(t *testing.T) {
	t.Parallel()
	for want, age := range map[string]time.Duration{"2026-01-02T03:13:55.000Z": 0, "2026-01-02T03:06:55.000Z": 3 * time.Minute} {
		w := newWorld(t, func(s *setup) {
			s.config = func(c *cryptopay.Config) {
				c.RateAge = age
				taken := c.Clock.Now().Add(-10 * time.Second)
				c.Rates = rates.NewFixed(func() time.Time { return taken }, "USD", map[string]string{"BTC": "60000"})
			}
		})
		q := w.ok(http.StatusOK, "POST", "/payments/estimate/", map[string]any{"amount": "50", "currency": "BTC"}).Body
		require.Equal(t, "2026-01-02T03:03:55.000Z", q["rate_at"])
		require.Equal(t, want, q["expires_at"])
	}
}

// TestFA12_QuoteSaysWhereForwardingCostsMore: fees that rise for some hours leave the minimum as it
// is, so a payment may bring less than it costs to move on. The estimate says so.
func TestFA12_QuoteSaysWhereForwardingCostsMore(t *testing.T) {
	t.Parallel()
	w, m := onMarket(t)
	quote := func(amount, currency string) map[string]any {
		return w.ok(http.StatusOK, "POST", "/payments/estimate/", map[string]any{"amount": amount, "currency": currency}).Body
	}
	cost := func(currency string, price int64) string {
		c, gas, err := w.app.Treasury.ForwardCost(t.Context(), currency)
		require.NoError(t, err)
		require.Equal(t, "ETH", gas)
		return decimal.New(int64(c), -8).Mul(decimal.New(price, 0)).StringFixed(8)
	}
	q := quote("1", "USDTERC20")
	require.Nil(t, q["forward_cost"], "nothing is known yet")
	require.Equal(t, false, q["below_cost"])
	m.tenths.Store(1)
	w.step()
	q = quote("1", "USDTERC20")
	require.Equal(t, cost("USDTERC20", 2000), q["forward_cost"])
	require.Equal(t, false, q["below_cost"])

	m.tenths.Store(100)
	w.clock.Advance(10 * time.Minute)
	w.step()
	q = quote("1", "USDTERC20")
	require.Equal(t, "1.00000000", q["min_amount"])
	require.Equal(t, cost("USDTERC20", 2000), q["forward_cost"])
	require.Equal(t, true, q["below_cost"])
	require.Equal(t, false, quote("9999", "USDTERC20")["below_cost"])
	require.Equal(t, cost("ETH", 1), quote("9999", "ETH")["forward_cost"])

	// What is not known is not told: no sample of the last day, no price of the gas.
	m.tenths.Store(0)
	w.clock.Advance(24 * time.Hour)
	w.step()
	w.token = w.newToken(w.admin, "")
	q = quote("1", "USDTERC20")
	require.Nil(t, q["forward_cost"])
	require.Equal(t, false, q["below_cost"])
}

// TestFA12_QuoteWithoutAForwardCost: where outputs are spent where they are nothing is forwarded,
// and where the gas has no price the cost is unknown.
func TestFA12_QuoteWithoutAForwardCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			c.Rates = rates.NewFixed(c.Clock.Now, "USD", map[string]string{"BTC": "60000", "USDT": "1"})
		}
	})
	w.step()
	for _, currency := range []string{"BTC", "USDTERC20"} {
		q := w.ok(http.StatusOK, "POST", "/payments/estimate/", map[string]any{"amount": "50", "currency": currency}).Body
		require.Contains(t, q, "forward_cost")
		require.Nil(t, q["forward_cost"], currency)
		require.Equal(t, false, q["below_cost"], currency)
	}
}

// TestFA01_MaximumsAreNeverNull: of every shipped currency, worth about a million USD,
// and the same wherever they are shown.
func TestFA01_MaximumsAreNeverNull(t *testing.T) {
	t.Parallel()
	unbounded := []chain.Currency{}
	for _, c := range chain.Mainnet() {
		require.Positive(t, c.Max.Sign(), c.Code)
		if c.Stable {
			require.Equal(t, "1000000", c.Max.String(), c.Code)
		}
		if c.Code == "USDCERC20" {
			c.Max = decimal.Decimal{}
		}
		unbounded = append(unbounded, c)
	}
	registry, err := chain.NewRegistry(chain.Networks(), unbounded)
	require.NoError(t, err)
	w := newWorld(t, func(s *setup) { s.config = func(c *cryptopay.Config) { c.Registry = registry } })
	w.fund(w.tenant)
	w.earn("USDTERC20", "100", "")
	a := w.ok(http.StatusOK, "GET", "/currencies/?min_max=true&include_usd=true", nil)
	for _, v := range a.Body["currencies"].([]any) {
		c := v.(map[string]any)
		code := c["currency"].(string)
		limits := w.ok(http.StatusOK, "GET", "/payments/min-amount/?currency="+code, nil).Body
		most := decimal.RequireFromString(c["max_amount"].(string))
		require.Positive(t, most.Sign(), code)
		require.Equal(t, most.String(), decimal.RequireFromString(limits["max_amount"].(json.Number).String()).String(), code)
		estimate := w.ok(http.StatusOK, "POST", "/payments/estimate/", map[string]any{"amount": "100", "currency": code}).Body
		require.Equal(t, c["max_amount"], estimate["max_amount"], code)
		usd := decimal.RequireFromString(c["max_amount_usd"].(string))
		if code != "USDCERC20" {
			require.True(t, usd.GreaterThanOrEqual(decimal.New(500_000, 0)) && usd.LessThanOrEqual(decimal.New(2_000_000, 0)), "%s: %s", code, usd)
		}
	}
	w.ok(http.StatusBadRequest, "POST", "/payments/", map[string]any{"amount": "1000000.01", "currency": "USDTERC20"})
	w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "1000000", "currency": "USDTERC20"})
	w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "1000000.01", "currency": "USDCERC20"})
	for _, v := range w.ok(http.StatusOK, "GET", "/currencies/?min_max=true&withdrawal=true", nil).Body["currencies"].([]any) {
		require.NotEmpty(t, v.(map[string]any)["max_amount"])
	}
}
