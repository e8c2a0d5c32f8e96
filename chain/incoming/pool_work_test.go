package incoming_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Sweeps and withdrawals ask for hot addresses as items of one Work. Where the directory is
// dry, none of them waits for another item, which cannot go on before it does.
func TestFP10_ItemsOfWorkTakeFromADryDirectory(t *testing.T) {
	t.Parallel()
	s, c := newStore(t), newClock()
	p := newPool(t, s, c, &source{})
	tenants := []string{"t1", "t2", "t3", "t4"}
	done := make(chan []error, 1)
	go func() {
		done <- storage.Work(t.Context(), s, tenants, func(tenant string) string { return tenant }, func(ctx context.Context, tenant string) error {
			_, err := p.Hot(ctx, eth, tenant)
			return err
		})
	}()
	select {
	case errs := <-done:
		for i, err := range errs {
			require.NoError(t, err, "the hot address of %s", tenants[i])
		}
	case <-time.After(20 * time.Second): // reached only where they are stuck
		t.Fatal("items of one Work wait for each other")
	}
	requireDense(t, s)
}

// stuck is a source that does not answer before its caller gives up.
type stuck struct {
	asked chan struct{}
}

func (s *stuck) Derive(ctx context.Context, _ chain.Network, _ uint32, _ int) ([]chain.Derived, error) {
	s.asked <- struct{}{}
	<-ctx.Done()
	return nil, ctx.Err()
}

// deserted is a store whose caller gives up when it has claimed.
type deserted struct {
	storage.Store
	giveUp func()
}

func (d *deserted) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	defer d.giveUp()
	return d.Store.Claim(ctx, c)
}

// While a key service does not answer who fills the directory, a request waits no longer
// than its own deadline.
func TestFP10_ARequestWaitsForTheSourceUntilItsDeadline(t *testing.T) {
	t.Parallel()
	request, giveUp := context.WithCancel(t.Context())
	src := &stuck{asked: make(chan struct{}, 2)}
	p := newPool(t, &deserted{newStore(t), giveUp}, newClock(), src)
	filling, stop := context.WithCancel(t.Context())
	filled := make(chan error, 1)
	go func() { filled <- p.Fill(filling, eth) }()
	<-src.asked
	took := make(chan error, 1)
	go func() {
		_, err := p.Take(request, eth, "shop")
		took <- err
	}()
	select {
	case err := <-took:
		require.ErrorIs(t, err, context.Canceled)
	case <-time.After(20 * time.Second): // reached only where it is stuck
		t.Error("the request waits for who fills the directory")
	}
	stop()
	require.ErrorIs(t, <-filled, context.Canceled)
}

// slow is a source that answers when it is told to.
type slow struct {
	source
	asked, answer chan struct{}
}

func (s *slow) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	s.asked <- struct{}{}
	<-s.answer
	return s.source.Derive(ctx, n, from, count)
}

// A request that waited while the directory was filled takes what was derived meanwhile: it
// derives nothing itself. Time goes on while it waits.
func TestFP10_WhatWasDerivedMeanwhileIsTaken(t *testing.T) {
	t.Parallel()
	c, src := newClock(), &slow{asked: make(chan struct{}, 2), answer: make(chan struct{})}
	claimed := make(chan struct{}, 4)
	s := &deserted{newStore(t), func() {
		c.Advance(time.Millisecond)
		claimed <- struct{}{}
	}}
	p := newPool(t, s, c, src)
	filled, took := make(chan error, 1), make(chan error, 1)
	go func() { filled <- p.Fill(t.Context(), eth) }()
	<-src.asked
	go func() {
		_, err := p.Take(t.Context(), eth, "shop")
		took <- err
	}()
	<-claimed // nothing was free
	close(src.answer)
	require.NoError(t, <-filled)
	require.NoError(t, <-took)
	n, err := s.Count(t.Context(), storage.Query{Table: incoming.Addresses.Table})
	require.NoError(t, err)
	require.EqualValues(t, 20, n, "what Fill derived, and nothing else")
}
