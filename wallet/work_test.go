package wallet_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// Many transfers that an earlier version left pending are applied in as many calls of the
// store as one is.
func TestFP01_TransfersAreAppliedTogether(t *testing.T) {
	t.Parallel()
	calls := map[int]int{}
	for _, n := range []int{1, 100} {
		s := &failing.Store{Store: memory.New(), Counts: func(failing.Call) bool { return true }}
		w := newWorldOn(t, s)
		w.post(ledger.KindDeposit, wallet.Master, usdt, "100000")
		var ids []string
		for i := range n {
			ids = append(ids, w.accepted(wallet.ToSub, w.sub(fmt.Sprint("sub", i)), "1").ID)
		}
		s.Calls = 0
		worked, err := w.Step(w.ctx)
		require.NoError(t, err)
		require.Equal(t, n, worked)
		calls[n] = s.Calls
		for _, id := range ids {
			v, err := w.Transfer(w.ctx, tenant, id)
			require.NoError(t, err)
			require.Equal(t, wallet.TransferCompleted, v.Status)
		}
	}
	require.Equal(t, map[int]int{1: 3, 100: 3}, calls)
}
