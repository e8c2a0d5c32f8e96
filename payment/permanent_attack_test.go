package payment

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// TestPermanentAddress_MinimumLoweredAfterAPersonDecided: a small deposit that a person has
// dealt with stays dealt with, also where it would not be small any more.
func TestPermanentAddress_MinimumLoweredAfterAPersonDecided(t *testing.T) {
	t.Parallel()
	for name, decide := range map[string]func(*shop, string) error{
		"credited": func(h *shop, id string) error { _, err := h.s.Resolve(ctx, tenant, id, "w"); return err },
		"ignored":  func(h *shop, id string) error { _, err := h.s.Ignore(ctx, tenant, id); return err },
		"refunded": func(h *shop, id string) error { _, err := h.s.Refund(ctx, tenant, id); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newShop(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
			x := h.pay(h.permanent("ann", usdt), usdt, "4").final()
			require.NoError(t, decide(h, x.deposit().ID))
			before := x.deposit().Booking
			h.posted()
			h.s.c.Minimums = least(h, usdt, "1")
			x.forward(incoming.Forwarded, "sweep")
			require.Empty(t, h.posted(), "the same money is booked once")
			require.Equal(t, before, x.deposit().Booking)
			require.Empty(t, x.deposit().Payment)
			if name != "refunded" {
				return
			}
			x.gone() // a reorg, and it is back
			h.posted()
			x.again().final()
			require.Equal(t, scenario("c −4, A +4"), h.posted(), "it was refunded")
			require.Equal(t, "0", h.balance(ledger.Wallet("w"), usdt))
		})
	}
}

// TestPermanentAddress_ManyTinyDepositsKeepNoneFromAddingUp: whoever sends hundreds of tiny
// amounts to somebody's address keeps nothing of what he pays from being credited.
func TestPermanentAddress_ManyTinyDepositsKeepNoneFromAddingUp(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
	a := h.permanent("ann", usdt)
	final := func(amount string) *transfer {
		x := h.pay(a, usdt, amount)
		x.s.Height, x.s.BlockTime = 100, h.now
		require.NoError(t, x.tell(incoming.Final, true))
		return x
	}
	for range maxWaiting {
		h.now = h.now.Add(time.Second)
		final("0.01")
	}
	h.now = h.now.Add(time.Second)
	one := final("4.5")
	two := final("4.5")
	require.Equal(t, InWallet, two.deposit().Booking)
	require.Equal(t, one.payment().ID, two.payment().ID)
	require.Len(t, two.payment().ID, 36)
}

// TestPermanentAddress_AlertsNameNoPaymentThatIsNot: what counts for no payment is told of
// without one.
func TestPermanentAddress_AlertsNameNoPaymentThatIsNot(t *testing.T) {
	t.Parallel()
	h := newShop(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
	a := h.permanent("ann", usdt)
	h.pay(a, usdt, "4").final().gone()
	impossible := h.pay(a, usdt, "100")
	impossible.s.Amount = -1
	impossible.seen()
	require.Len(t, h.alerts, 2)
	for _, alert := range h.alerts {
		require.Empty(t, alert.Payment, "%+v", alert)
	}
}
