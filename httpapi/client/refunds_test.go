package client_test

import (
	"path"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/client"
)

// TestRefunds: made once under a key, cancelled, and claimed by whom has the link.
func TestRefunds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx, c := t.Context(), w.client
	p, err := c.CreatePayment(ctx, client.CreatePayment{Amount: "100", Currency: "USDTERC20"})
	require.NoError(t, err)
	w.pay(p.Address, "USDTERC20", "100")
	to := string(w.chain.Customer("refunded"))
	in := client.CreateRefund{Amount: "30", Address: to, Reason: "too large", IdempotencyKey: "k"}
	r, err := c.CreateRefund(ctx, p.TransactionID, in)
	require.NoError(t, err)
	again, err := c.CreateRefund(ctx, p.TransactionID, in)
	require.NoError(t, err)
	require.Equal(t, r, again)
	require.Equal(t, []any{"pending", "30.00000000", &to}, []any{r.Status, r.Amount, r.Address})
	r, err = c.CancelRefund(ctx, r.RefundID)
	require.NoError(t, err)
	require.Equal(t, "cancelled", r.Status)

	_, err = c.CreateRefund(ctx, p.TransactionID, client.CreateRefund{Amount: "101"})
	var refused *client.Error
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "invalid_request", refused.Code)
	r, err = c.CreateRefund(ctx, p.TransactionID, client.CreateRefund{Amount: "90"})
	require.NoError(t, err)
	token := path.Base(*r.ClaimURL)
	got, err := c.Claim(ctx, token)
	require.NoError(t, err)
	require.Equal(t, client.Claim{Amount: "90.00000000", Currency: "USDTERC20", Status: "awaiting_address"}, got)
	got, err = c.UseClaim(ctx, token, to, "")
	require.NoError(t, err)
	require.Equal(t, "pending", got.Status)
	_, err = c.UseClaim(ctx, token, to, "")
	require.ErrorAs(t, err, &refused)
	require.Equal(t, "not_found", refused.Code)
	r, err = c.Refund(ctx, r.RefundID)
	require.NoError(t, err)
	require.Equal(t, []any{"pending", &to}, []any{r.Status, r.Address})
}
