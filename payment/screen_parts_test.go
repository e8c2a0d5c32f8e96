package payment

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// releasedPart is a payment of 100 to which 40 came that a person has released.
func releasedPart(t *testing.T) (*shop, Payment, *transfer) {
	h, s := screening(t)
	s.says(AskReview, "", nil)
	p := h.create("100", usdt)
	x := h.transfer(p, "40").final()
	_, err := h.s.Release(ctx, tenant, x.deposit().ID)
	require.NoError(t, err)
	require.Equal(t, PartiallyPaid, h.get(p).Status)
	s.says(Allow, "", nil)
	return h, p, x
}

// A released part counts for its payment: nobody refunds, credits or ignores it.
func TestScreen_AReleasedPartIsDealtWithOnce(t *testing.T) {
	t.Parallel()
	for name, deal := range map[string]func(*shop, string) error{
		"refunded": func(h *shop, id string) error { _, err := h.s.Refund(ctx, tenant, id); return err },
		"credited": func(h *shop, id string) error { _, err := h.s.Resolve(ctx, tenant, id, "w"); return err },
		"ignored":  func(h *shop, id string) error { _, err := h.s.Ignore(ctx, tenant, id); return err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, p, x := releasedPart(t)
			require.ErrorAs(t, deal(h, x.deposit().ID), new(*StateError))
			list, open, err := h.s.SuspenseList(ctx, tenant, SuspenseFilter{})
			require.NoError(t, err)
			require.Empty(t, list)
			require.Zero(t, open)
			h.transfer(p, "60").final()
			require.Equal(t, Confirmed, h.get(p).Status)
			require.Equal(t, "99", h.balance(ledger.Wallet("w"), usdt))
			require.Equal(t, "0", h.sum(ledger.Suspense))
		})
	}
}

// heldPart is a deposit of 3 at a permanent address that was credited with another of 7, was
// taken away by a fork, came back and is held.
func heldPart(t *testing.T) (*shop, *transfer) {
	h, s := screening(t, func(h *shop) { h.cfg.Minimums = least(h, usdt, "10") })
	a := h.permanent("ann", usdt)
	small := h.pay(a, usdt, "3").final()
	require.Equal(t, InSuspense, small.deposit().Booking)
	require.Equal(t, InWallet, h.pay(a, usdt, "7").final().deposit().Booking)
	require.Equal(t, InWallet, small.deposit().Booking)
	small.gone()
	s.says(AskReview, "", nil)
	small.again().final()
	require.Equal(t, []any{RoleHeld, InSuspense}, []any{small.deposit().Role, small.deposit().Booking})
	return h, small
}

// A small deposit that was credited together with others, and is held after a fork, can be released.
func TestScreen_AHeldPartAtAPermanentAddressIsReleased(t *testing.T) {
	t.Parallel()
	h, small := heldPart(t)
	_, err := h.s.Release(ctx, tenant, small.deposit().ID)
	require.NoError(t, err)
	require.Equal(t, "9.9", h.balance(ledger.Wallet("w"), usdt))
}

// What a fork takes away is taken out of the books, and makes no payment.
func TestScreen_AHeldPartAtAPermanentAddressIsTakenBack(t *testing.T) {
	t.Parallel()
	h, small := heldPart(t)
	before, _, _, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	err = small.tell(incoming.Gone, false)
	require.NoError(t, err)
	assert.Equal(t, "0", h.sum(ledger.Suspense), "the chain has not got it")
	after, _, _, err := h.s.List(ctx, tenant, Filter{})
	require.NoError(t, err)
	require.Len(t, after, len(before), "of nothing that came")
}
