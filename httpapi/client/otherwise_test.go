package client_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/httpapi/client"
)

// TestWhatCameOtherwise: deposits, money in suspense, webhooks and refunds are listed and
// decided about against the real service, and lists are filtered by what the merchant calls things.
func TestWhatCameOtherwise(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	app, secret, err := w.auth.CreateApp(t.Context(), auth.NewApp{
		Tenant: w.tenant, Name: "back office", Scopes: []auth.Scope{auth.Read, auth.Write, auth.Admin}, Role: auth.TenantAdmin,
	})
	require.NoError(t, err)
	c, ctx := w.newClient(func(o *client.Options) { o.ClientID, o.ClientSecret = app.ClientID, secret }), t.Context()
	_, err = c.SetUpWebhooks(ctx, "https://shop.example/hook")
	require.NoError(t, err)
	p, err := c.CreatePayment(ctx, client.CreatePayment{Amount: "40", Currency: "USDTERC20", OrderID: "A-7", CustomID: "ann"})
	require.NoError(t, err)
	_, err = c.CreatePayment(ctx, client.CreatePayment{Amount: "50", Currency: "USDTERC20", OrderID: "A-8"})
	require.NoError(t, err)
	w.pay(p.Address, "USDTERC20", "40")
	w.pay(p.Address, "ETH", "0.01")

	for _, f := range []client.PaymentFilter{{OrderID: "A-7"}, {CustomID: "ann"}, {Status: "completed", DateFrom: "2026-01-02", DateTo: "2026-01-02"}} {
		page, err := c.Payments(ctx, f)
		require.NoError(t, err)
		require.Equal(t, []int64{1, 2}, []int64{page.Count, page.Total})
		require.Equal(t, p.TransactionID, page.Results[0].TransactionID)
	}
	none, err := c.Payments(ctx, client.PaymentFilter{DateTo: "2026-01-01"})
	require.NoError(t, err)
	require.Zero(t, none.Count)
	deposits, total, err := c.Deposits(ctx, p.TransactionID, 1, 0)
	require.NoError(t, err)
	require.Equal(t, int64(2), total)
	require.Equal(t, []string{"40.00000000", "final", "counted"}, []string{deposits[0].Amount, deposits[0].Status, deposits[0].Role})

	aside, total, err := c.Suspense(ctx, client.SuspenseFilter{Status: "open", Reason: "wrong_asset"})
	require.NoError(t, err)
	require.Equal(t, int64(1), total)
	require.Equal(t, p.TransactionID, *aside[0].TransactionID)
	decided, err := c.ResolveSuspense(ctx, aside[0].SuspenseID, client.ResolveSuspense{Action: "credit", Reason: "it is his"})
	require.NoError(t, err)
	require.Equal(t, "credited", decided.Status)

	made, err := c.CreateRefund(ctx, p.TransactionID, client.CreateRefund{Amount: "10"})
	require.NoError(t, err)
	refunds, total, err := c.Refunds(ctx, client.RefundFilter{TransactionID: p.TransactionID, Status: "awaiting_address", DateFrom: "2026-01-02"})
	require.NoError(t, err)
	require.Equal(t, int64(1), total)
	require.Equal(t, []client.Refund{made}, refunds)

	sent, total, err := c.Deliveries(ctx, client.DeliveryFilter{ObjectID: p.TransactionID, Event: "payment_status_update", Status: "delivered"})
	require.NoError(t, err)
	require.Equal(t, int64(len(sent)), total)
	require.NotEmpty(t, sent)
	before := len(w.hook.got)
	require.NoError(t, c.Resend(ctx, sent[0].DeliveryID))
	w.mine(1)
	require.Len(t, w.hook.got, before+1)
	var refused *client.Error
	require.ErrorAs(t, c.Resend(ctx, "nobody~000001"), &refused)
	require.Equal(t, http.StatusNotFound, refused.Status)

	a, err := c.CreateAddress(ctx, client.CreateAddress{Currency: "USDTERC20", ExternalID: "ann"})
	require.NoError(t, err)
	retired, err := c.RetireAddress(ctx, a.AddressID)
	require.NoError(t, err)
	require.NotNil(t, retired.RetiredAt)
	least, err := c.PaymentLimits(ctx, "USDTERC20")
	require.NoError(t, err)
	require.Equal(t, "USDT", least.Token)
	limits, err := c.WithdrawalLimits(ctx, "USDTERC20")
	require.NoError(t, err)
	require.Len(t, limits, 1)
	pays, err := c.Withdrawals(ctx, client.WithdrawalFilter{Currency: "ETH"})
	require.NoError(t, err)
	require.Zero(t, pays.Total)
}
