package cryptopay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// What rules cost where a hundred payouts of one tenant are handed over together on SQLite:
// none, one for each payout, and one that counts what went out. Run it with -benchtime 4x.
func BenchmarkPayoutsByRules(b *testing.B) {
	day := policy.Duration(24 * time.Hour)
	for name, rules := range map[string][]policy.Rule{
		"none":    {},
		"amount":  {{Name: "large", Of: policy.KindAmount, Over: dec("1000")}},
		"counted": {{Name: "daily", Of: policy.KindSum, Over: dec("100000"), Per: day}},
	} {
		b.Run(name, func(b *testing.B) {
			store, _ := onSQLite(b)
			h := newHostOn(b, store, 9, "ETH")
			h.configure = func(c *cryptopay.Config) { c.Policy.Rules = rules }
			h.restart()
			h.float("ETH", "2")
			p := h.create("2000", usdt)
			h.pay(p, usdt, dec("2000"))
			h.mine(60)
			for b.Loop() {
				b.StopTimer()
				for range 100 {
					_, err := h.app.Withdrawals.Create(b.Context(), h.tenant, withdrawal.CreateInput{
						Terms: withdrawal.Terms{Amount: ptr(dec("2")), Currency: usdt, Address: string(h.chains["ETH"].Customer("supplier"))},
					})
					require.NoError(b, err)
				}
				b.StartTimer()
				n, err := h.app.Withdrawals.Step(b.Context())
				require.NoError(b, err)
				require.Equal(b, 100, n)
			}
			b.ReportMetric(float64(100*b.N)/b.Elapsed().Seconds(), "payouts/s")
		})
	}
}
