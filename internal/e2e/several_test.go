package e2e_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/several"
	"github.com/cryptopay-go/cryptopay/internal/nodes/utxotest"
	"github.com/cryptopay-go/cryptopay/payment"
)

// TestCoinsR07_BranchThatOneNodeHasAloneCreditsNothing: two real nodes that must agree
// are on two branches. One of them shows a payment with every confirmation; it counts
// when the other has gone over to that branch.
func TestCoinsR07_BranchThatOneNodeHasAloneCreditsNothing(t *testing.T) {
	t.Parallel()
	one, two := utxotest.Open(t, "BTC", "simnet", 330), utxotest.Open(t, "BTC", "simnet", 0)
	s := openShop(t, one)
	two.Follow(one)
	s.client = func() chain.Client {
		c, err := several.New(several.Config{
			Nodes: []several.Node{{Name: "one", Client: one.Connect()}, {Name: "two", Client: two.Connect()}}, Now: s.clock.Now,
		})
		require.NoError(t, err)
		return c
	}
	s.compose()
	s.step()

	p := s.order("30")
	one.Pay(p.Address, decimal.New(int64(p.Due), -8))
	one.Mine(4)
	two.Mine(3) // which knows of no payment
	for range 5 {
		s.clock.Advance(time.Minute)
		_ = s.app.Step(t.Context()) // it may say that the nodes disagree
		require.Equal(t, payment.Waiting, s.payment(p.ID).Status)
	}
	two.Follow(one)
	for range 5 {
		s.clock.Advance(time.Minute)
		s.step()
	}
	require.Equal(t, payment.Completed, s.payment(p.ID).Status)
	s.sound()
}
