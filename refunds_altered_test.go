package cryptopay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
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

// Whoever puts the row of a cancelled claim link back as it was is paid nothing.
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

// Who has a refund name another payment in the database makes no room for refunds of that one: the
// money stays held until the row is put right.
func TestFS02_RefundOfAnotherPayment(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	ctx := t.Context()
	all, _, _, err := i.app.Payments.List(ctx, i.tenant, payment.Filter{Limit: 2, Currency: "USDTERC20"})
	require.NoError(t, err)
	r, err := i.app.Refunds.Create(ctx, i.tenant, refund.CreateInput{Payment: all[0].ID, Amount: ptr(dec("10")), Address: string(i.chains["ETH"].Customer("customer"))})
	require.NoError(t, err)
	other, err := i.app.Refunds.Create(ctx, i.tenant, refund.CreateInput{Payment: all[1].ID, Amount: ptr(dec("10"))})
	require.NoError(t, err)
	edit := func(to string) {
		require.True(t, i.edit("UPDATE cryptopay_refunds SET payment = ? WHERE id = ?", to, r.ID))
	}
	edit(other.Payment)
	_, err = i.app.Refunds.Cancel(ctx, i.tenant, r.ID)
	require.ErrorIs(t, err, refund.ErrAltered)
	require.Equal(t, withdrawal.Pending, i.withdrawalOf(r.Withdrawal).Status)
	edit(r.Payment)
	ended, err := i.app.Refunds.Cancel(ctx, i.tenant, r.ID)
	require.NoError(t, err)
	require.Equal(t, refund.Cancelled, ended.Status)
	i.nothingFound()
}

// A fork takes a payment away after its claim link was given out: the link pays nothing until the
// payment is back.
func TestRefund_ClaimOfAPaymentThatIsGone(t *testing.T) {
	t.Parallel()
	h := &till{cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"ETH"}}), t}
	ctx, eth := t.Context(), h.Chains["ETH"]
	h.paid("500") // of others
	p := h.Payment("100", "USDTERC20")
	before := eth.Height()
	tx, err := eth.Pay(chain.Address(p.Address), "USDTERC20", dec("100"))
	require.NoError(t, err)
	for h.PaymentNow(p.ID).Received == 0 {
		h.Mine(1)
	}
	r, err := h.gives(p, "30", byLink)
	require.NoError(t, err)
	token := h.App.Refunds.Token(&r)
	_, err = eth.Reorg(int(eth.Height()-before), tx)
	require.NoError(t, err)
	h.Clock.Advance(time.Minute)
	_ = h.App.Step(ctx) // the network is halted
	_, err = h.App.Operate.ResumeNetwork(ctx, "ETH", before, cryptopay.Call{By: "op", Reason: "a deep fork"})
	require.NoError(t, err)
	h.Step()
	require.Zero(t, h.PaymentNow(p.ID).Received, "it is reversed")

	_, err = h.App.Refunds.Claim(ctx, token, string(h.customer()), "")
	require.ErrorIs(t, err, refund.ErrNotNow)
	require.Equal(t, []any{refund.AwaitingAddress, refund.WaitingPayout}, []any{h.refund(r.ID).Status, h.refund(r.ID).Waiting})
	require.NoError(t, eth.Resend(tx))
	h.Settle()
	require.Equal(t, "0", h.has())
	_, err = h.App.Refunds.Claim(ctx, token, string(h.customer()), "")
	require.NoError(t, err)
	h.Settle()
	require.Equal(t, refund.Completed, h.refund(r.ID).Status)
	h.Verify()
}

// A refund of money in suspense brings less, the operator pays what is missing, and that ends
// unpaid: the house has it back, and nothing stays in the refund's own wallet, which is nobody's.
func TestRefund_RestThatEndsUnpaidIsTheHouses(t *testing.T) {
	t.Parallel()
	skims := false
	h := &till{cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"ETH"}, Configure: func(c *cryptopay.Config) {
		if skims {
			c.Chains[0] = skimming{c.Chains[0].(able), 100_000}
		}
	}}), t}
	ctx := t.Context()
	h.paid("500")
	require.Equal(t, withdrawal.Completed, h.Withdraw("20", "USDTERC20").Status) // the house has its fee
	for range 3 {                                                                // a sweep will bring less, too, and that is the house's loss
		require.Equal(t, withdrawal.Completed, h.Withdraw("20", "USDTERC20").Status)
	}
	h.Customer.PaysLate(h.Payment("30", "USDTERC20"))
	h.Settle()
	list, err := h.App.Payments.Suspense(ctx, h.ID, 1, 0)
	require.NoError(t, err)
	r, _, err := h.App.Operate.PayOutSuspense(ctx, h.ID, list[0].ID, string(h.customer()), "", cryptopay.Call{By: "ann", Reason: "late"})
	require.NoError(t, err)
	skims = true
	h.Restart()
	h.Mine(60)
	_, err = h.App.Operate.Lift(ctx, cryptopay.HaltScope{Network: "ETH", Currency: "USDTERC20"}, cryptopay.Call{By: "ann", Reason: "a sweep brought less, too"})
	require.NoError(t, err)
	h.Mine(60)
	require.Equal(t, withdrawal.WaitingDeliveredLess, h.WithdrawalNow(r.Withdrawal).Waiting)
	before, _ := h.balance(ledger.Adjustment)
	rest, err := h.App.Withdrawals.PayMissing(ctx, h.ID, r.Withdrawal, "ann", "it skims")
	require.NoError(t, err)
	log, err := h.App.Operate.AuditLog(ctx, storage.Tenant(h.ID), 0, 10)
	require.NoError(t, err)
	require.Equal(t, []string{audit.Pay, "ann", "it skims", r.Withdrawal}, []string{string(log[len(log)-1].Kind), log[len(log)-1].By, log[len(log)-1].Reason, log[len(log)-1].Object})
	require.Equal(t, refund.Completed, h.refund(r.ID).Status)
	_, err = h.App.Withdrawals.Cancel(ctx, h.ID, rest.ID)
	require.NoError(t, err)
	posted, held := h.balance(ledger.Wallet("refund-" + r.ID))
	after, _ := h.balance(ledger.Adjustment)
	require.Equal(t, []string{"0", "0", before}, []string{posted, held, after})
	h.Verify()
}
