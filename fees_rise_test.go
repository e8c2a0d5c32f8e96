package cryptopay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Payouts are sent, then fees rise and stay: each lands once, and so do those that are
// ordered afterwards from the same hot address.
func TestFN03_FeesThatRiseAndStayStopNoHotAddress(t *testing.T) {
	t.Parallel()
	for _, times := range []int64{2, 4, 10, 30} {
		t.Run(fmt.Sprint("times ", times), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, uint64(40+times), "ETH")
			h.float("ETH", "5")
			h.earn(usdt, "20000")
			h.mine(40)
			world := h.chains["ETH"]
			to := map[string]chain.Address{}
			order := func(from, until int) (ids []string) {
				for i := from; i < until; i++ {
					payee := world.Customer(fmt.Sprint("payee ", i))
					in := withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: ptr(dec("500")), FinalAmount: true, Currency: usdt, Address: string(payee)}}
					w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, in)
					require.NoError(t, err)
					to[w.ID], ids = payee, append(ids, w.ID)
				}
				return ids
			}
			ids := order(0, 5)
			for range 10 { // signed and sent, and in no block yet
				h.step()
				h.clock.Advance(time.Second)
			}
			world.SetFeeLevel(times * world.FeeLevel())
			h.mine(20)
			ids = append(ids, order(5, 10)...)
			for range 12 * 4 { // half a day, a block each 15 minutes at the least
				h.clock.Advance(15 * time.Minute)
				h.mine(1)
			}
			for _, id := range ids {
				w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
				require.NoError(t, err)
				require.Equal(t, withdrawal.Completed, w.Status, "waits for %q", w.WaitingReason())
				require.Equal(t, "500", world.Balance(to[id], usdt).String(), "once")
			}
			h.sound()
		})
	}
}

// A small payout is sent, and fees rise so much that sending it again would cost more than
// half of it. While nobody waits behind it, it waits for them to fall. A larger payout from
// the same address goes out all the same: the nonce of the small one is used up, and the
// merchant has its amount back.
func TestFN03_PayoutThatIsNotWorthItsFeeKeepsNoOtherFromGoing(t *testing.T) {
	t.Parallel()
	h := newHost(t, 39, "ETH")
	h.float("ETH", "5")
	h.earn(usdt, "20000")
	h.mine(40)
	world := h.chains["ETH"]
	order := func(amount, payee string) withdrawal.Withdrawal {
		in := withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: ptr(dec(amount)), FinalAmount: true, Currency: usdt, Address: string(world.Customer(payee))}}
		w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, in)
		require.NoError(t, err)
		return w
	}
	get := func(id string) withdrawal.Withdrawal {
		w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
		require.NoError(t, err)
		return w
	}
	small := order("10", "small")
	for range 10 {
		h.step()
		h.clock.Advance(time.Second)
	}
	require.Equal(t, withdrawal.Processing, get(small.ID).Status)
	world.SetFeeLevel(30 * world.FeeLevel())
	for range 40 {
		h.clock.Advance(15 * time.Minute)
		h.mine(1)
	}
	require.Equal(t, withdrawal.Processing, get(small.ID).Status)
	small = get(small.ID)
	require.Equal(t, withdrawal.ShownFeeTooHigh, small.WaitingReason())
	held := h.credited(usdt)
	large := order("5000", "large")
	for range 40 {
		h.clock.Advance(15 * time.Minute)
		h.mine(1)
	}
	require.Equal(t, withdrawal.Completed, get(large.ID).Status)
	require.Equal(t, "5000", world.Balance(world.Customer("large"), usdt).String())
	require.Equal(t, withdrawal.Failed, get(small.ID).Status)
	require.Equal(t, "0", world.Balance(world.Customer("small"), usdt).String())
	large = get(large.ID)
	require.Equal(t, held-large.Requested, h.credited(usdt), "the small one is given back")
	h.sound()
}
