package cryptopay_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// costly is a client whose node cannot say what it costs to pay one recipient.
type costly struct {
	able
	recipient *chain.Address
}

func (c costly) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	if *c.recipient != "" && in.To == *c.recipient {
		return chain.Fee{}, fmt.Errorf("%w: more gas than a block has", chain.ErrNode)
	}
	return c.able.EstimateFee(ctx, in)
}

// TestFP01_ARecipientHoldsUpItsOwnPayoutAlone: a contract can have a node fail at the question what it costs to be paid.
// Others of its network go out in the same step.
func TestFP01_ARecipientHoldsUpItsOwnPayoutAlone(t *testing.T) {
	t.Parallel()
	h := rich(t, 63)
	var bad chain.Address
	h.configure = func(cfg *cryptopay.Config) {
		for i, c := range cfg.Chains {
			if c.Network() == "ETH" {
				cfg.Chains[i] = costly{c.(able), &bad}
			}
		}
	}
	h.restart()
	pays := func(to chain.Address) string {
		w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{PriceAmount: ptr(dec("20")), Currency: usdt, Address: string(to)},
		})
		require.NoError(t, err)
		return w.ID
	}
	contract := h.chains["ETH"].Customer("contract")
	first, second := pays(contract), pays(h.chains["ETH"].Customer("supplier"))
	bad = contract
	require.ErrorContains(t, h.app.Step(t.Context()), "what it costs to pay this recipient")
	require.Equal(t, withdrawal.WaitingPayout, h.withdrawal(first).Waiting)
	require.NotEqual(t, withdrawal.Pending, h.withdrawal(second).Status)
}
