package cryptopay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// A merchant gets one deposit_merged for each deposit that is forwarded to the treasury, also for
// a part that was forwarded before it was credited.
func TestDepositMerged_IsToldOnceOfEachPart(t *testing.T) {
	t.Parallel()
	for _, rest := range []bool{true, false} {
		h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: func(c *cryptopay.Config) { c.Payments.Window = 6 * time.Hour }})
		p := h.Payment("100", "USDTERC20")
		h.Customer.Sends(p, "40", "USDTERC20")
		h.Mine(60)
		h.Settle()
		if rest {
			h.Customer.Pays(p)
		} else {
			h.Customer.LetsExpire(p)
		}
		h.Mine(60)
		h.Settle()
		list, err := h.App.Payments.Deposits(t.Context(), h.ID, p.ID)
		require.NoError(t, err)
		forwarded := 0
		for _, d := range list {
			if d.ForwardTx != "" && d.Booking == payment.InWallet {
				forwarded++
			}
		}
		told := 0
		for _, w := range h.Webhooks() {
			if w.Type == webhook.DepositMerged {
				told++
			}
		}
		require.Equal(t, forwarded, told)
	}
}
