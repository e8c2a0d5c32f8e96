package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Two processes work on the same store at once, as Run works: each kind of work
// on a goroutine of its own.
func TestTwoProcessesAtOnceCreditAndPayOnce(t *testing.T) {
	t.Parallel()
	n := openAnvil(t, usual)
	h := newHost(t, n)
	h.earn("3000", "ETH")
	h.earn("3000", "USDTERC20")

	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 2 {
		s := h.setup
		s.client = n.client()
		app := compose(t, s)
		running.Go(func() { _ = app.Run(ctx) }) // always nil
	}
	var payments []*payment.Payment
	var withdrawals []withdrawal.Withdrawal
	for i := range 6 {
		currency := []string{"ETH", "USDTERC20"}[i%2]
		p := h.order("300", currency)
		n.pay(p.Address, currency, h.due(p))
		payments = append(payments, p)
		withdrawals = append(withdrawals, h.withdraw("100", currency, recipient(i)))
	}
	done := func() bool {
		for _, p := range payments {
			if h.payment(p.ID).Status != payment.Completed {
				return false
			}
		}
		for _, w := range withdrawals {
			if h.withdrawal(w.ID).Status != withdrawal.Completed {
				return false
			}
		}
		return true
	}
	for i := 0; !done(); i++ {
		require.Less(t, i, 300, "it does not get on")
		n.commit()
		h.clock.Advance(blockTime)
		tick(t)
	}
	stop()
	h.clock.Advance(0)
	running.Wait()
	h.mine(finalDepth)
	for i, w := range withdrawals {
		require.Equal(t, n.currency(w.Currency).Decimal(w.Amount).String(), n.holds(recipient(i), w.Currency).String(), "paid once")
		require.Len(t, h.signed(w), 1, "what one process signs the other leaves alone")
	}
	for _, p := range payments {
		require.Equal(t, "300.00", h.payment(p.ID).MerchantReceived())
	}
	require.Len(t, h.attempts(), len(withdrawals))
	h.sound("payment_status_update:completed", "withdrawal_status_update:completed")
}

// tick gives goroutines that wait for a moved clock time to do what is due.
func tick(t testing.TB) {
	t.Helper()
	require.NoError(t, cryptopay.SystemClock{}.Wait(t.Context(), 20*time.Millisecond))
}

func recipient(i int) string { return common.HexToAddress(fmt.Sprintf("0xbeef%04d", i)).Hex() }
