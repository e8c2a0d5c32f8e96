package cryptopay_test

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
)

// historic is a client that asks for the histories of at most ten addresses, as that of Solana
// does. It keeps what it was last given.
type historic struct {
	chain.Client
	chain.Locator
	chain.Balancer
	chain.Noncer
	list []chain.Address
	few  bool
}

func (c *historic) FewAddresses() int { return 10 }

func (c *historic) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	s, err := c.Client.Scan(ctx, trail, w, limit)
	if err == nil && len(trail) > 0 {
		c.list, c.few, err = w.(chain.FewWatch).Few(ctx, c.FewAddresses(), trail[len(trail)-1].Time)
	}
	return s, err
}

// TestFN09_AddressesThatNobodyWasShown: three payments of several processes are three addresses to
// ask for, however many processes made them and have ended since.
func TestFN09_AddressesThatNobodyWasShown(t *testing.T) {
	t.Parallel()
	const eth = chain.Network("ETH")
	h := newHost(t, 91, eth)
	node := h.chains[eth].Client()
	c := &historic{Client: node, Locator: node.(chain.Locator), Balancer: node.(chain.Balancer), Noncer: node.(chain.Noncer)}
	h.configure = func(cfg *cryptopay.Config) { cfg.Chains = []chain.Client{c} }
	h.restart()
	h.mine(2)
	create := func(app *cryptopay.App) payment.Payment {
		p, err := app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "100", Currency: "USDTERC20"}})
		require.NoError(t, err)
		return p
	}
	look := func(want ...payment.Payment) {
		t.Helper()
		h.mine(1)
		var all []chain.Address
		for _, p := range want {
			all = append(all, chain.Address(p.Address))
		}
		slices.Sort(all)
		require.True(t, c.few, "of %d addresses that were shown blocks are read whole", len(want))
		slices.Sort(c.list)
		require.Equal(t, all, c.list)
	}
	look()
	beside := h.beside(h.configure)
	first := create(h.app)
	look(first)
	second := create(beside)
	look(first, second)
	h.restart()
	third := create(h.app)
	look(first, second, third)
	for _, p := range []payment.Payment{first, second, third} {
		_, err := h.chains[eth].Pay(chain.Address(p.Address), "USDTERC20", p.DueCoins())
		require.NoError(t, err)
	}
	h.mine(40)
	for _, p := range []payment.Payment{first, second, third} {
		got, err := h.app.Payments.Get(t.Context(), h.tenant, p.ID)
		require.NoError(t, err)
		require.Equal(t, payment.Completed, got.Status)
	}
}
