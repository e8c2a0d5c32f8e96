package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// transfer pays from a customer to a payment, and returns the transaction.
func (w *world) transfer(currency, address, amount string) string {
	w.t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(w.t, err)
	tx, err := w.chains[c.Network].Pay(chain.Address(address), currency, decimal.RequireFromString(amount))
	require.NoError(w.t, err)
	return tx
}

// paid is what both views show of a payment's money, which agree.
func (w *world) paid(id any) (detail map[string]any) {
	w.t.Helper()
	detail = w.ok(http.StatusOK, "POST", "/payments/status/", map[string]any{"transaction_id": id}).Body
	list := w.ok(http.StatusOK, "GET", "/payments/?limit=100", nil).Body["results"].([]any)
	at := slices.IndexFunc(list, func(v any) bool { return v.(map[string]any)["transaction_id"] == id })
	require.GreaterOrEqual(w.t, at, 0)
	for _, field := range []string{
		"amount_received", "amount_pending", "amount_missing", "confirmations", "required_confirmations",
		"payment_uri", "memo", "memo_address", "custom_id", "address_id", "checkout_url",
	} {
		require.Contains(w.t, detail, field)
		require.Equal(w.t, detail[field], list[at].(map[string]any)[field], field)
	}
	require.NotContains(w.t, list[at], "suspense")
	return detail
}

// TestFA03_APartialPaymentShowsWhatCame: a checkout can be built on what both views
// show, from the first look to the end.
func TestFA03_APartialPaymentShowsWhatCame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(w.tenant)
	made := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20", "custom_id": "cart-7"}, header("Idempotency-Key", "k")).Body
	untouched := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "30", "currency": "BTC"}).Body
	id, address := made["transaction_id"], made["address"].(string)
	shows := func(received, pending, missing, status string, confirmations int, uri string) {
		t.Helper()
		p := w.paid(id)
		require.Equal(t, []any{received, pending, missing, status}, []any{p["amount_received"], p["amount_pending"], p["amount_missing"], p["status"]})
		require.Equal(t, json.Number(decimal.NewFromInt(int64(confirmations)).String()), p["confirmations"])
		require.Equal(t, json.Number("12"), p["required_confirmations"])
		require.Equal(t, "ethereum:0xdAC17F958D2ee523a2206206994597C13D831ec7@1/transfer?address="+address+"&uint256="+uri, p["payment_uri"])
		require.Equal(t, "cart-7", p["custom_id"])
		require.Nil(t, p["memo"])
		require.Nil(t, p["address_id"])
		require.Nil(t, p["checkout_url"])
		require.Empty(t, p["suspense"])
	}
	for _, field := range []string{"amount_received", "amount_pending", "amount_missing", "payment_uri", "custom_id", "suspense"} {
		require.Equal(t, w.paid(id)[field], made[field], "the answer to the creation shows the same: %s", field)
	}
	shows("0.00000000", "0.00000000", "25.00000000", "waiting", 0, "25000000")

	w.transfer("USDTERC20", address, "10")
	w.step()
	shows("0.00000000", "10.00000000", "15.00000000", "waiting", 0, "15000000")
	w.mine(3)
	shows("0.00000000", "10.00000000", "15.00000000", "waiting", 3, "15000000")
	w.mine(27)
	shows("10.00000000", "0.00000000", "15.00000000", "waiting", 30, "15000000")
	w.transfer("USDTERC20", address, "14.9") // within the tolerance
	w.mine(2)
	shows("10.00000000", "14.90000000", "0.00000000", "confirming", 2, "25000000")
	w.mine(15)
	shows("24.90000000", "0.00000000", "0.00000000", "completed", 17, "25000000")

	p := w.paid(untouched["transaction_id"])
	require.Equal(t, "0.00050000", p["amount_missing"], "of the other one nothing came")
	require.Equal(t, "bitcoin:"+p["address"].(string)+"?amount=0.00050000", p["payment_uri"])
	again := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20", "custom_id": "cart-7"}, header("Idempotency-Key", "k"))
	require.Equal(t, made, again.Body, "the first answer, not the progress since")
}

// TestFA03_WhatDoesNotCountIsShown: late money and the wrong asset.
func TestFA03_WhatDoesNotCountIsShown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(w.tenant)
	made := w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "USDTERC20", "expiry_minutes": 5}).Body
	address := made["address"].(string)
	wrong := w.transfer("USDCERC20", address, "25.5")
	w.mine(1)
	p := w.paid(made["transaction_id"])
	require.Equal(t, "25.00000000", p["amount_missing"])
	require.Equal(t, []any{map[string]any{"amount": "25.50000000", "currency": "USDCERC20", "transaction_hash": wrong, "reason": "wrong_asset"}}, p["suspense"])
	w.mine(30)
	late := w.transfer("USDTERC20", address, "25")
	w.mine(30)
	p = w.paid(made["transaction_id"])
	require.Equal(t, "expired", p["status"])
	require.Equal(t, "0.00000000", p["amount_received"])
	require.Equal(t, []any{
		map[string]any{"amount": "25.50000000", "currency": "USDCERC20", "transaction_hash": wrong, "reason": "wrong_asset"},
		map[string]any{"amount": "25.00000000", "currency": "USDTERC20", "transaction_hash": late, "reason": "late"},
	}, p["suspense"])

	open, err := w.app.Payments.Suspense(t.Context(), w.tenant, 10, 0)
	require.NoError(t, err)
	require.Len(t, open, 2)
	_, err = w.app.Payments.Resolve(t.Context(), w.tenant, open[0].ID, "")
	require.NoError(t, err)
	require.Len(t, w.paid(made["transaction_id"])["suspense"], 1, "a person has dealt with the other")
}

// TestFA04_AWithdrawalSaysWhyItWaits: and since when, however often it is tried.
func TestFA04_AWithdrawalSaysWhyItWaits(t *testing.T) {
	t.Parallel()
	policy, halted := withdrawal.Allow, ""
	why := ""
	w := newWorld(t, func(s *setup) {
		s.config = func(c *cryptopay.Config) {
			c.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
				return policy, "a new address", nil
			}
			c.Withdrawals.Halted = func(context.Context, string, string) (string, error) { return halted, nil }
			c.Outgoing.Halted = func(context.Context, chain.Intent) (string, error) { return why, nil }
		}
	})
	w.earn("USDTERC20", "1000", "") // there are no coins to pay the network with
	ask := func() any {
		return w.ok(http.StatusCreated, "POST", "/withdrawal/", map[string]any{
			"amount": "20", "currency": "USDTERC20", "address": w.chains["ETH"].Customer("supplier"),
		}).Body["withdrawal_id"]
	}
	show := func(id any) map[string]any {
		one := w.ok(http.StatusOK, "GET", "/withdrawal/"+id.(string)+"/", nil).Body
		list := w.ok(http.StatusOK, "GET", "/withdrawal/?limit=100", nil).Body["withdrawals"].([]any)
		require.Contains(t, list, any(one), "the list shows the same")
		return one
	}
	waits := func(id any, reason, since string) {
		t.Helper()
		v := show(id)
		require.Equal(t, []any{"pending", reason, since}, []any{v["status"], v["waiting_reason"], v["waiting_since"]})
	}
	later := func(d time.Duration) {
		for range int(d / (15 * time.Second)) {
			w.clock.Advance(15 * time.Second)
			w.step()
		}
	}

	first := ask()
	require.Nil(t, show(first)["waiting_reason"], "it has not been looked at")
	w.clock.Advance(time.Second)
	since := w.clock.Now().Format("2006-01-02T15:04:05.000Z")
	w.step()
	waits(first, "gas_short", since)
	later(20 * time.Minute)
	waits(first, "gas_short", since)

	halted = "the host says so"
	second := ask()
	since = w.clock.Now().Format("2006-01-02T15:04:05.000Z")
	w.step()
	waits(second, "halted", since)
	later(5 * time.Minute)
	waits(second, "halted", since)
	halted, policy = "", withdrawal.AskReview
	later(time.Minute)
	v := show(second)
	require.Equal(t, "review", v["waiting_reason"])
	require.Greater(t, v["waiting_since"], since, "another reason began later")
	policy = withdrawal.Allow

	w.fund(w.tenant)
	w.mine(30) // the gas has arrived
	later(time.Hour)
	w.mine(60)
	w.token = w.newToken(w.admin, "")
	v = show(first)
	require.Equal(t, []any{"completed", nil, nil}, []any{v["status"], v["waiting_reason"], v["waiting_since"]})
	for said, shown := range map[string]string{
		"hot_short": "hot_short", "gas_float_short": "gas_short", "fee_above_cap": "fee_too_high", "node": "stuck", "signer": "stuck", "an incident": "halted",
	} {
		why = said
		id := ask()
		w.clock.Advance(time.Minute)
		w.step()
		require.Equal(t, shown, show(id)["waiting_reason"], said)
	}
	third := ask()
	w.ok(http.StatusOK, "POST", "/withdrawal/"+third.(string)+"/cancel/", nil)
	v = show(third)
	require.Equal(t, []any{"cancelled", nil, nil}, []any{v["status"], v["waiting_reason"], v["waiting_since"]})
}

// TestFA02_PaidTogetherHaveOneBatch: the same on each from the signing on, and none
// where a transaction pays one alone.
func TestFA02_PaidTogetherHaveOneBatch(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund(w.tenant)
	w.earn("BTC", "6000", "")
	ask := func() any {
		return w.ok(http.StatusCreated, "POST", "/withdrawal/", map[string]any{
			"amount": "0.01", "currency": "BTC", "address": w.chains["BTC"].Customer("supplier"),
		}).Body["withdrawal_id"]
	}
	show := func(id any) map[string]any {
		return w.ok(http.StatusOK, "GET", "/withdrawal/"+id.(string)+"/", nil).Body
	}
	var three []any
	for range 3 {
		three = append(three, ask())
		require.Nil(t, show(three[len(three)-1])["batch_id"], "it is not signed")
	}
	for _, blocks := range []int{0, 1, 10} {
		w.mine(blocks)
		w.step()
		first := show(three[0])
		require.NotEmpty(t, first["transaction_hash"])
		require.NotEmpty(t, first["batch_id"])
		for _, id := range three {
			v := show(id)
			require.Equal(t, first["transaction_hash"], v["transaction_hash"])
			require.Equal(t, first["batch_id"], v["batch_id"])
		}
	}
	require.Equal(t, "completed", show(three[0])["status"])
	alone := ask()
	w.mine(10)
	require.Equal(t, "completed", show(alone)["status"])
	require.Nil(t, show(alone)["batch_id"])
}

// TestX01_PaymentsShowWhereTheCustomerPays: every view of a payment, a replayed answer
// too, has the link that the host's checkout makes of tenant and payment.
func TestX01_PaymentsShowWhereTheCustomerPays(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(s *setup) {
		s.options = func(o *httpapi.Options) {
			o.CheckoutURL = func(tenant, payment string) string { return "https://pay.example.com/" + tenant + "/" + payment }
		}
	})
	create := func() map[string]any {
		return w.ok(http.StatusCreated, "POST", "/payments/", map[string]any{"amount": "25", "currency": "BTC"}, header("Idempotency-Key", "k")).Body
	}
	p := create()
	link := "https://pay.example.com/" + w.tenant + "/" + p["transaction_id"].(string)
	require.Equal(t, link, p["checkout_url"])
	require.Equal(t, link, create()["checkout_url"])
	require.Equal(t, link, w.paid(p["transaction_id"])["checkout_url"])
}
