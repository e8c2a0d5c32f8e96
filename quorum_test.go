package cryptopay_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/several"
	"github.com/cryptopay-go/cryptopay/payment"
)

// vault is a node that compares balances: a contract paid so much to one address, by an inner
// call that the blocks do not show.
type vault struct {
	able
	inner map[chain.Address]decimal.Decimal
}

func (v *vault) Holdings(ctx context.Context, _ chain.Block, list []chain.Address) ([]decimal.Decimal, error) {
	out := make([]decimal.Decimal, len(list))
	for i, a := range list {
		held, err := v.Balance(ctx, "ETH", a)
		if err != nil {
			return nil, err
		}
		out[i] = held.Add(v.inner[a])
	}
	return out, nil
}

func (v *vault) Spent(_ context.Context, _ chain.Block, senders []chain.Sender) ([]chain.Spent, error) {
	return make([]chain.Spent, len(senders)), nil
}

func (v *vault) Received(context.Context, []chain.Address, chain.Block, chain.Block) ([]chain.Transfer, error) {
	return nil, chain.ErrNoState
}

// TestFN05_NodeWithoutBalancesSwitchesNothingOff: of several nodes those that compare balances
// are asked, wherever the ones stand that do not.
func TestFN05_NodeWithoutBalancesSwitchesNothingOff(t *testing.T) {
	t.Parallel()
	for at := range 3 {
		t.Run(fmt.Sprint("without at ", at), func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 31, "ETH")
			inner := map[chain.Address]decimal.Decimal{}
			h.configure = func(cfg *cryptopay.Config) {
				var nodes []several.Node
				for i := range 3 {
					c := h.chains["ETH"].NewNode().Client()
					if i != at {
						c = &vault{able: c.(able), inner: inner}
					}
					nodes = append(nodes, several.Node{Name: fmt.Sprint("node", i), Client: c})
				}
				c, err := several.New(several.Config{Nodes: nodes, Now: h.clock.Now})
				require.NoError(t, err)
				cfg.Chains = []chain.Client{c}
			}
			h.restart()
			p := h.create("100.00", "ETH")
			inner[chain.Address(p.Address)] = dec("3")
			h.mine(60)
			list, err := h.app.Payments.Suspense(t.Context(), h.tenant, 10, 0)
			require.NoError(t, err)
			require.Len(t, list, 1, "what only balances show is found")
			require.Equal(t, payment.RoleUnproven, list[0].Role)
			require.Equal(t, "3", list[0].Exact.String())
		})
	}
}
