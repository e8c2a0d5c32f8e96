package incoming_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// slowAnswer lets the world go on between a node's answer and its arrival.
type slowAnswer struct {
	chain.Client
	meanwhile func()
}

func (c slowAnswer) Tip(ctx context.Context) (chain.Tip, error) {
	t, err := c.Client.Tip(ctx)
	c.meanwhile()
	return t, err
}

// Two processes read one chain. What the other one read, while our question was
// under way, is no fault of the node that answered before.
func TestC05_WhatAnotherProcessReadMeanwhileIsNoFault(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 1, func(_ *incoming.Config, o *sim.Options) { o.Finality = 3 })
	other := w.network(w.store, w.chain.Client())
	on := true
	slow := w.network(w.store, slowAnswer{w.chain.Client(), func() {
		if !on {
			return
		}
		on = false
		w.chain.Mine(10)
		_, err := other.Step(t.Context())
		require.NoError(t, err)
	}})
	step := func() {
		_, err := slow.Step(t.Context())
		require.NoError(t, err)
	}
	step()
	w.mine(5)
	for range 3 {
		on = true
		step()
		s, err := slow.Status(t.Context())
		require.NoError(t, err)
		require.Empty(t, s.Stuck)
	}
	s, err := slow.Status(t.Context())
	require.NoError(t, err)
	require.Equal(t, w.chain.Height(), s.Head)
	require.Equal(t, w.chain.Height()-3, s.Final, "and what it read stands")
	// What was known before the question must be in the answer.
	w.chain.Front().LieFinal(1)
	_, err = slow.Step(t.Context())
	require.ErrorIs(t, err, chain.ErrBehind)
	w.chain.Front().LieFinal(-2).Lag(4)
	_, err = slow.Step(t.Context())
	require.ErrorIs(t, err, chain.ErrBehind)
}
