package cryptopay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A shop takes many small payments and pays out once: the payout needs as many coins as it
// had payments. It is paid, and quoted for what it costs: neither less nor half as much
// again.
func TestFN02_PayoutOfManySmallCoins(t *testing.T) {
	t.Parallel()
	for _, coins := range []int{3, 6, 20, 60} {
		t.Run(fmt.Sprint(coins, " coins"), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, uint64(70+coins), "BTC")
			for range 10 {
				h.float("BTC", "0.0005")
			}
			world := h.chains["BTC"]
			btc, err := chain.MainnetRegistry().Currency("BTC")
			require.NoError(t, err)
			for range coins {
				p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "60", Currency: "BTC"}})
				require.NoError(t, err)
				_, err = world.Pay(chain.Address(p.Address), "BTC", btc.Decimal(p.Due))
				require.NoError(t, err)
				h.mine(1)
			}
			h.mine(15)
			amount := h.credited("BTC") * 9 / 10
			payee := world.Customer("payee")
			terms := withdrawal.Terms{Amount: ptr(btc.Decimal(amount)), Currency: "BTC", Address: string(payee)}
			w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, withdrawal.CreateInput{Terms: terms}, storage.Once{})
			require.NoError(t, err)
			for range 40 {
				h.clock.Advance(15 * time.Minute)
				h.mine(1)
			}
			w, err = h.app.Withdrawals.Get(t.Context(), h.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, w.Status, "waits for %q", w.WaitingReason())
			require.Equal(t, btc.Decimal(w.Amount).String(), world.Balance(payee, "BTC").String())
			st, err := world.Outcome(w.Tx)
			require.NoError(t, err)
			paid := st.Cost
			t.Logf("quoted %d, paid %d", w.NetworkFee, paid)
			require.GreaterOrEqual(t, w.NetworkFee, paid)
			require.LessOrEqual(t, w.NetworkFee, paid*3/2)
			h.sound()
		})
	}
}
