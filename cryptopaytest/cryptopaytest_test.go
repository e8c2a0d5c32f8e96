package cryptopaytest_test

import (
	"context"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A customer who pays in parts has paid when the parts are as much as is due.
func TestCustomerPaysInParts(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	p := h.Customer.Sends(h.Payment("25", "USDTERC20"), "10", "USDTERC20")
	require.Equal(t, payment.PartiallyPaid, p.Status)
	p = h.Customer.Sends(p, "15", "USDTERC20")
	require.Equal(t, payment.Completed, p.Status)
	require.Equal(t, p.Due, p.Received)
	h.Verify()
}

// Each call of the customer leads to the outcome that it is named for, on both families of
// networks, and the books are sound after it.
func TestCustomer(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"ETH", "USDTERC20", "BTC"} {
		for name, c := range map[string]struct {
			does func(*cryptopaytest.Host, payment.Payment) payment.Payment
			ends payment.Status
			role payment.Role
		}{
			"pays":        {func(h *cryptopaytest.Host, p payment.Payment) payment.Payment { return h.Customer.Pays(p) }, payment.Completed, payment.RoleInTime},
			"short":       {func(h *cryptopaytest.Host, p payment.Payment) payment.Payment { return h.Customer.PaysShort(p) }, payment.PartiallyPaid, payment.RoleInTime},
			"over":        {func(h *cryptopaytest.Host, p payment.Payment) payment.Payment { return h.Customer.PaysOver(p) }, payment.Completed, payment.RoleInTime},
			"late":        {func(h *cryptopaytest.Host, p payment.Payment) payment.Payment { return h.Customer.PaysLate(p) }, payment.Expired, payment.RoleUnmatched},
			"wrong asset": {func(h *cryptopaytest.Host, p payment.Payment) payment.Payment { return h.Customer.PaysWrongAsset(p) }, payment.Waiting, payment.RoleWrongToken},
			"reorg":       {func(h *cryptopaytest.Host, p payment.Payment) payment.Payment { return h.Customer.PaysAndIsReorged(p) }, payment.Waiting, payment.RoleInTime},
			"nothing":     {func(h *cryptopaytest.Host, p payment.Payment) payment.Payment { return h.Customer.LetsExpire(p) }, payment.Expired, ""},
		} {
			if currency == "BTC" && name == "wrong asset" {
				continue // the network has one
			}
			t.Run(currency+"/"+name, func(t *testing.T) {
				t.Parallel()
				h := cryptopaytest.New(t)
				p := c.does(h, h.Payment("25", currency))
				require.Equal(t, c.ends, p.Status)
				deposits, err := h.App.Payments.Deposits(t.Context(), h.ID, p.ID)
				require.NoError(t, err)
				aside, err := h.App.Payments.Suspense(t.Context(), h.ID, 10, 0)
				require.NoError(t, err)
				if deposits = append(deposits, aside...); c.role == "" {
					require.Empty(t, deposits)
				} else {
					require.Len(t, deposits, 1)
					require.Equal(t, c.role, deposits[0].Role)
				}
				var statuses []payment.Status
				for _, e := range h.Events() {
					if b, ok := e.Body.(payment.Changed); ok {
						statuses = append(statuses, b.To)
					}
				}
				require.Equal(t, payment.Waiting, statuses[0])
				require.Equal(t, c.ends, statuses[len(statuses)-1])
				h.Verify()
			})
		}
	}
}

// A payout that is in no block waits, and goes on when blocks take it.
func TestWithdrawStuck(t *testing.T) {
	t.Parallel()
	for currency, coins := range map[string]string{"ETH": "0.01", "USDTERC20": "10", "BTC": "0.001"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			h := cryptopaytest.New(t)
			h.Customer.Pays(h.Payment("300", currency))
			w := h.WithdrawStuck(coins, currency)
			require.Equal(t, []any{withdrawal.Processing, withdrawal.ShownStuck}, []any{w.Status, w.WaitingReason()})
			require.False(t, w.WaitingSince.IsZero())
			require.True(t, h.SupplierHas(currency).IsZero())
			h.Settle()
			require.Equal(t, withdrawal.Completed, h.WithdrawalNow(w.ID).Status)
			require.Equal(t, coins, h.SupplierHas(currency).String(), "paid once")
			w = h.Withdraw(coins, currency)
			require.Equal(t, withdrawal.Completed, w.Status)
			h.Verify()
		})
	}
}

// A payout whose coins are credited, and still on the address that a customer paid, waits for
// them, and goes on when they are there.
func TestWithdrawHotShort(t *testing.T) {
	t.Parallel()
	for currency, coins := range map[string]string{"ETH": "0.01", "USDTERC20": "10"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			h := cryptopaytest.New(t)
			h.Customer.Pays(h.Payment("300", currency))
			w := h.WithdrawHotShort(coins, currency)
			require.Equal(t, []any{withdrawal.Pending, withdrawal.ShownHotShort}, []any{w.Status, w.WaitingReason()})
			require.False(t, w.WaitingSince.IsZero())
			h.Settle()
			require.Equal(t, withdrawal.Completed, h.WithdrawalNow(w.ID).Status)
			require.Equal(t, coinsOf(t, h, w), h.SupplierHas(currency).String(), "paid once")
			require.Equal(t, withdrawal.Pending, h.WithdrawHotShort(coins, currency).Status, "and again")
			h.Settle()
			h.Verify()
		})
	}
}

// A payout that a fork has taken away is sent again, the same one, and paid once.
func TestWithdrawReorged(t *testing.T) {
	t.Parallel()
	for currency, coins := range map[string]string{"ETH": "0.01", "USDTERC20": "10", "BTC": "0.001"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			h := cryptopaytest.New(t)
			h.Customer.Pays(h.Payment("300", currency))
			w := h.WithdrawReorged(coins, currency)
			require.Equal(t, withdrawal.ShownReorged, w.WaitingReason())
			require.True(t, h.SupplierHas(currency).IsZero())
			h.Settle()
			w = h.WithdrawalNow(w.ID)
			require.Equal(t, []any{withdrawal.Completed, ""}, []any{w.Status, w.WaitingReason()})
			require.Equal(t, coins, h.SupplierHas(currency).String(), "paid once")
			h.Verify()
		})
	}
}

// coinsOf is what a withdrawal pays, in whole coins.
func coinsOf(t *testing.T, h *cryptopaytest.Host, w withdrawal.Withdrawal) string {
	t.Helper()
	c, err := h.App.Config().Registry.Currency(w.Currency)
	require.NoError(t, err)
	return c.Decimal(w.Amount).String()
}

// After fees have risen a payout costs ten times as much. One that was sent before is replaced
// by one that pays them, and is paid once.
func TestRaiseFees(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	h.Customer.Pays(h.Payment("300", "USDTERC20"))
	hot, err := h.App.Hot(t.Context(), "ETH", h.ID)
	require.NoError(t, err)
	costs := func(do func()) decimal.Decimal {
		before := h.Chains["ETH"].Balance(hot, "ETH")
		do()
		return before.Sub(h.Chains["ETH"].Balance(hot, "ETH"))
	}
	usual := costs(func() { h.Withdraw("10", "USDTERC20") })
	amount := decimal.RequireFromString("10")
	sent, err := h.App.Withdrawals.Create(t.Context(), h.ID, withdrawal.CreateInput{Terms: withdrawal.Terms{
		Amount: &amount, FinalAmount: true, Currency: "USDTERC20", Address: string(h.Chains["ETH"].Customer("supplier")),
	}})
	require.NoError(t, err)
	h.Step()
	h.RaiseFees("USDTERC20")
	h.Settle()
	require.Equal(t, withdrawal.Processing, h.WithdrawalNow(sent.ID).Status)
	h.Clock.Advance(15 * time.Minute)
	h.Settle()
	require.Equal(t, withdrawal.Completed, h.WithdrawalNow(sent.ID).Status)
	high := costs(func() { h.Withdraw("10", "USDTERC20") })
	require.True(t, high.GreaterThan(usual.Mul(decimal.New(8, 0))), "%s and %s", usual, high)
	require.Equal(t, "30", h.SupplierHas("USDTERC20").String())
	h.Verify()
}

// deaf refuses what it is sent.
type deaf struct{}

func (deaf) Notify(_ context.Context, list []webhook.Delivery) []webhook.Result {
	return slices.Repeat([]webhook.Result{{Status: 500, Err: webhook.ErrURL}}, len(list))
}

// The host's Config, several tenants, and a new process on the same store.
func TestOptions(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.Open(t, cryptopaytest.Options{
		Networks: []chain.Network{"LTC"}, Seed: 5,
		Configure: func(c *cryptopay.Config) { c.Notifier = deaf{} },
	})
	other := h.NewTenant("Another shop")
	p := other.Payment("25", "LTC", func(in *payment.CreateInput) { in.OrderID = "order 1" })
	h.Restart()
	require.Equal(t, payment.Completed, h.Customer.Pays(p).Status)
	require.Equal(t, "order 1", other.PaymentNow(p.ID).OrderID)
	_, err := h.App.Payments.Get(t.Context(), h.ID, p.ID)
	require.Error(t, err, "it is the other one's")
	tried := map[string]int{}
	for _, d := range h.Webhooks() {
		var body struct{ Data struct{ Status string } }
		require.NoError(t, json.Unmarshal(d.Body, &body))
		require.Equal(t, other.ID, d.Tenant)
		tried[body.Data.Status]++
	}
	require.Greater(t, tried["confirming"], 1, "the host's Notifier refused it")

	same := cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"LTC"}, Seed: 5})
	require.Equal(t, h.ID, same.ID, "the same Options give the same ids")
}

// TestPaysTheRest: who has paid a part pays what is missing, and no more.
func TestPaysTheRest(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"ETH", "USDTERC20", "BTC"} {
		h := cryptopaytest.New(t)
		p := h.Customer.Pays(h.Customer.PaysShort(h.Payment("25", currency)))
		require.Equal(t, payment.Completed, p.Status)
		require.Equal(t, p.Due, p.Received)
		h.Verify()
	}
}
