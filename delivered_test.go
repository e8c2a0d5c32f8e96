package cryptopay_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// skimming is a client that sees a token which keeps a part of each payout.
type skimming struct {
	able
	keeps ledger.Amount
}

func (c skimming) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	out, err := c.able.Status(ctx, attempts...)
	for i := range out {
		if out[i].State == chain.Included && out[i].Executed {
			out[i].Shortfall = c.keeps
		}
	}
	return out, err
}

// A withdrawal is completed when a node has taken it, as no confirmations are required.
// In its block it brings less: the operator hears before it is final, and no other of the
// token is signed.
func TestFN07_PayoutWithoutConfirmationsBringsLess(t *testing.T) {
	t.Parallel()
	h := rich(t, 44)
	h.configure = func(cfg *cryptopay.Config) {
		cfg.Withdrawals.Confirmations = func(*chain.Currency) int64 { return 0 }
		for i, c := range cfg.Chains {
			if c.Network() == "ETH" {
				cfg.Chains[i] = skimming{c.(able), 100_000}
			}
		}
	}
	h.restart()
	get := func(id string) withdrawal.Withdrawal {
		w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
		require.NoError(t, err)
		return w
	}
	id := h.withdraw("20", usdt)
	for range 8 { // and no block
		h.clock.Advance(15 * time.Second)
		h.step()
	}
	require.Equal(t, withdrawal.Completed, get(id).Status)
	h.mine(6) // not final yet
	require.Equal(t, withdrawal.WaitingDeliveredLess, get(id).Waiting)
	next := h.withdraw("10", usdt)
	h.mine(40)
	require.Equal(t, []any{withdrawal.Pending, withdrawal.WaitingHalted}, []any{get(next).Status, get(next).Waiting})
	require.Contains(t, get(next).Reason, "another payout of "+usdt)
	_, err := h.app.Withdrawals.TakeDelivered(t.Context(), h.tenant, id, "ann", "it is little")
	require.NoError(t, err)
	h.mine(40)
	require.Equal(t, []any{withdrawal.WaitingHalted, "delivered_less"}, []any{get(next).Waiting, get(next).Reason}, "of every merchant, until somebody lifts it")
	h.lift(usdt)
	h.mine(40)
	require.Equal(t, withdrawal.WaitingDeliveredLess, get(next).Waiting, "it was paid, and brought less too")
	require.Equal(t, takesAFee, h.distrusted())
	_, err = h.app.Withdrawals.PayMissing(t.Context(), h.tenant, next, "bob", "the supplier is owed it")
	require.NoError(t, err)
	said := h.logged(storage.Tenant(h.tenant))
	require.Equal(t, []outgoing.OperationKind{"take_delivered", "pay_missing"}, kindsOf(said), "both cost the operator or a recipient")
	require.Equal(t, []string{"ann", "it is little", id}, []string{said[0].By, said[0].Reason, said[0].Object})
	require.Equal(t, []string{"bob", "the supplier is owed it", next}, []string{said[1].By, said[1].Reason, said[1].Object})
	require.Contains(t, said[1].After, `"amount":"0.1"`)
	h.sound()
}
