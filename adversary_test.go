package cryptopay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
)

// linked is a claim link for so many USDT of the merchant's first payment.
func (i *insider) linked(usdt string) (refund.Refund, string) {
	i.t.Helper()
	p, _, _, err := i.app.Payments.List(i.t.Context(), i.tenant, payment.Filter{Limit: 1, Currency: "USDTERC20"})
	require.NoError(i.t, err)
	r, err := i.app.Refunds.Create(i.t.Context(), i.tenant, refund.CreateInput{Payment: p[0].ID, Amount: ptr(dec(usdt))})
	require.NoError(i.t, err)
	return r, i.app.Refunds.Token(&r)
}

// Who moves the decimal point of a claim link in the database gets no hundredfold.
func TestFS02_ClaimLinkWithAnotherScale(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	r, token := i.linked("10")
	require.True(t, i.edit("UPDATE cryptopay_refunds SET scale = 4 WHERE id = ?", r.ID))
	_, err := i.app.Refunds.Claim(t.Context(), token, string(i.thief), "")
	require.ErrorIs(t, err, refund.ErrAltered)
	i.work(30)
	require.Zero(t, i.chains["ETH"].Balance(i.thief, "USDTERC20").Sign())
}

// A claim link that the merchant cancelled pays nobody who puts its row back as it was.
func TestFS02_CancelledClaimLinkIsNotRevived(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	r, token := i.linked("10")
	_, err := i.app.Refunds.Cancel(t.Context(), i.tenant, r.ID)
	require.NoError(t, err)
	require.True(t, i.edit("UPDATE cryptopay_refunds SET status = 'awaiting_address' WHERE id = ?", r.ID))
	_, err = i.app.Refunds.Claim(t.Context(), token, string(i.thief), "")
	require.Error(t, err)
	i.work(30)
	require.Zero(t, i.chains["ETH"].Balance(i.thief, "USDTERC20").Sign())
}
