package cryptopay_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/rates"
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
			"old":           func(r *rates.Rate) { r.At = r.At.Add(-withdrawal.DefaultRateAge) },
			"of the future": func(r *rates.Rate) { r.At = r.At.Add(withdrawal.DefaultRateAge) },
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
		r.At = r.At.Add(time.Microsecond - withdrawal.DefaultRateAge)
		return r
	}
	after, err := estimate()
	require.NoError(t, err)
	require.Equal(t, before.NetworkFee, after.NetworkFee)
}
