package incoming_test

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
)

// purse is a node that tells what addresses hold and sent as the test says.
type purse struct {
	chain.Client
	held    map[chain.Address]string
	spent   map[chain.Address]chain.Spent
	named   []chain.Transfer
	noState bool
	asked   map[chain.Address][]chain.Sender
	reads   int
}

func (p *purse) Holdings(_ context.Context, _ chain.Block, list []chain.Address) ([]decimal.Decimal, error) {
	p.reads++
	out := make([]decimal.Decimal, len(list))
	for i, a := range list {
		if v := p.held[a]; v != "" {
			out[i] = dec(v)
		}
	}
	return out, nil
}

func (p *purse) Spent(_ context.Context, _ chain.Block, senders []chain.Sender) ([]chain.Spent, error) {
	out := make([]chain.Spent, len(senders))
	for i, s := range senders {
		p.asked[s.Address] = append(p.asked[s.Address], s)
		if out[i] = p.spent[s.Address]; s.First >= out[i].Nonce {
			out[i].Paid = decimal.Zero
		}
	}
	return out, nil
}

func (p *purse) Received(context.Context, []chain.Address, chain.Block, chain.Block) ([]chain.Transfer, error) {
	if p.noState {
		return nil, chain.ErrNoState
	}
	return p.named, nil
}

const roundEvery = time.Minute

func newPurse(t *testing.T, seed uint64) (*world, *purse) {
	t.Helper()
	w := newWorld(t, eth, seed)
	p := &purse{Client: w.chain.Client(), held: map[chain.Address]string{}, spent: map[chain.Address]chain.Spent{}, asked: map[chain.Address][]chain.Sender{}}
	w.net = w.network(w.store, p, func(c *incoming.Config, _ *sim.Options) { c.RoundEvery = roundEvery })
	w.step()
	return w, p
}

// round mines a block and lets the time of a round pass.
func (w *world) round() {
	w.t.Helper()
	w.mine(1)
	w.clock.Advance(roundEvery)
	w.step()
}

func (w *world) holding(a chain.Address) (incoming.Holding, bool) {
	w.t.Helper()
	h, _, ok, err := incoming.Holdings.One(context.Background(), w.store, storage.Network(string(w.name)), string(a))
	require.NoError(w.t, err)
	return h, ok
}

func (w *world) of(a chain.Address) (out []incoming.Sighting) {
	for _, s := range w.sightings(w.store) {
		if s.Address == string(a) && (s.State == incoming.Included || s.State == incoming.Final) {
			out = append(out, s)
		}
	}
	return out
}

func TestFN05_HoldingIsKeptAndDroppedByAFork(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 71)
	a := w.address()
	w.pay(a, "ETH", "3")
	w.mine(confs)
	p.held[a] = "3"
	w.round()
	_, ok := w.holding(a)
	require.False(t, ok, "what stored transfers explain is not kept")
	require.Empty(t, p.asked[a])

	// It sent 2.5 with a fee of 0.1, and what is left is explained and kept.
	p.held[a], p.spent[a] = "0.4", chain.Spent{Paid: dec("2.6"), Nonce: 1}
	w.round()
	h, ok := w.holding(a)
	require.True(t, ok)
	require.Equal(t, "0.4", h.Amount.String())
	require.EqualValues(t, 1, h.Nonce)
	require.Len(t, w.of(a), 1)

	// A deposit that was seen explains the higher balance: the stored balance becomes that.
	w.pay(a, "ETH", "1")
	w.mine(1)
	p.held[a] = "1.4"
	w.round()
	h, ok = w.holding(a)
	require.True(t, ok)
	require.Equal(t, "1.4", h.Amount.String())
	require.Len(t, w.of(a), 2)

	// A new process builds on that: nothing before is read again.
	w.net = w.network(w.store, p, func(c *incoming.Config, _ *sim.Options) { c.RoundEvery = roundEvery })
	p.asked[a] = nil
	w.round()
	require.Empty(t, p.asked[a])
	require.Len(t, w.of(a), 2)

	// The branch is gone, and with it what was held on it.
	w.reorganize(5)
	p.held[a], p.spent[a] = "4", chain.Spent{}
	w.mine(2)
	w.round()
	_, ok = w.holding(a)
	require.False(t, ok)
	require.Len(t, w.of(a), 2, "nothing is missing, and nothing came")
}

func TestFN05_RestOfABalanceIsBookedUnprovenOnce(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 72)
	p.noState = true
	a := w.address()
	w.pay(a, "ETH", "3")
	p.held[a] = "4.5"
	w.round()
	got := w.of(a)
	require.Len(t, got, 2)
	for _, s := range got {
		if s.Unproven {
			require.Equal(t, "1.5", s.Exact.String())
			require.Zero(t, s.Ordinal+2)
		}
	}
	for range confs {
		w.round()
	}
	require.Len(t, w.of(a), 2, "once")
	other := w.network(w.store, p)
	w.stepOf(other)
	require.Len(t, w.of(a), 2, "whoever looks")

	// Less than dust is nobody's business, nor is what is explained.
	p.held[a] = "4.50009"
	w.round()
	require.Len(t, w.of(a), 2)
	p.held[a] = "5.5"
	w.round()
	require.Len(t, w.of(a), 3)

	// An address that sent what was not signed here is not guessed at.
	p.held[a], p.spent[a] = "9", chain.Spent{Nonce: 7, Strange: true}
	w.round()
	require.Len(t, w.of(a), 3)
}

func TestFN05_BlockOfARoundIsTakenBack(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 73)
	p.noState = true
	a := w.address()
	w.mine(3)
	p.held[a] = "2"
	w.round()
	require.Len(t, w.of(a), 1)
	w.reorganize(2)
	w.mine(2)
	w.round()
	got := w.of(a)
	require.Len(t, got, 1, "once, on the branch that is")
	for range confs {
		w.round()
	}
	require.Len(t, w.of(a), 1)
	require.Equal(t, incoming.Final, w.of(a)[0].State)
}

// A transfer that a contract made and that was swept away again before anybody looked
// shows by what was sent.
func TestFN05_WhatWasSweptUnseenIsFound(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 74)
	p.noState = true
	a, hot := w.address(), w.address()
	w.round()
	w.pay(a, "ETH", "1")
	w.mine(1)
	p.held[a], p.held[hot] = "0", ""
	p.spent[a] = chain.Spent{Paid: dec("3"), Nonce: 1} // 2 more than ever came
	w.round()
	got := w.of(a)
	require.Len(t, got, 2)
	sum := decimal.Zero
	for _, s := range got {
		sum = sum.Add(s.Exact)
	}
	require.Equal(t, "3", sum.String())
}

func (w *world) reorganize(depth int) {
	w.t.Helper()
	_, err := w.chain.Reorg(depth)
	require.NoError(w.t, err)
}
