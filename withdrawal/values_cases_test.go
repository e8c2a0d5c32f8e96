package withdrawal_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A flat fee with more places than the coin has is rounded up, never down.
func TestFQ12_FlatFeeIsRoundedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.percent, w.flat = "0", "0.1000001"
	e, err := w.Estimate(w.ctx, tenant, usdt("100").Terms)
	require.NoError(t, err)
	require.EqualValues(t, 100_001, e.PlatformFee)
}

// A replacement is newer than the transaction that landed. The completed withdrawal
// shows the one that landed, also where that is reported late.
func TestFQ12_LandedHashIsShown(t *testing.T) {
	t.Parallel()
	w, id := handed(t)
	w.tell(id, withdrawal.OutcomeSigned, "aa", 0)
	landed := w.clock()
	w.advance(time.Second)
	w.tell(id, withdrawal.OutcomeSigned, "bb", 0)
	require.Equal(t, "bb", w.get(id).Tx)
	require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
		Intent: id, State: withdrawal.OutcomeSettled, Tx: "aa", Confirmations: 12, At: landed,
	}))
	v := w.get(id)
	require.Equal(t, []any{withdrawal.Completed, "aa"}, []any{v.Status, v.Tx})
	w.sound()
}
