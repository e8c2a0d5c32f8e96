package incoming_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/several"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
)

// historic is a purse that has the history of addresses, too.
type historic struct {
	*purse
	chain.Historian
}

// again is a new process on the same store and node.
func (w *world) again(c chain.Client) {
	w.t.Helper()
	w.net = w.network(w.store, c, func(c *incoming.Config, _ *sim.Options) { c.RoundEvery = roundEvery })
}

// TestFN05_RecoverDoesNotBookAgainWhatARoundBooked: the round booked a direct transfer
// that the scan had skipped, because the address was not watched then.
func TestFN05_RecoverDoesNotBookAgainWhatARoundBooked(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 81)
	p.noState = true
	w.again(historic{p, w.chain.Client().(chain.Historian)})
	a := w.address()
	seen := w.pay(a, "ETH", "1")
	w.mine(1)
	p.held[a] = "1"
	w.round()
	require.NoError(t, w.pool.Retire(context.Background(), w.name, a, w.clock.Now()))
	w.mine(1)
	w.pay(a, "ETH", "2")
	w.pay(a, "USDT", "7")
	w.mine(1)
	p.held[a] = "3"
	w.round()
	require.Len(t, w.of(a), 1, "nobody looks at it")
	require.NoError(t, w.pool.Retire(context.Background(), w.name, a, time.Time{}))
	w.again(historic{p, w.chain.Client().(chain.Historian)})
	w.round()
	require.Len(t, w.of(a), 2, "the round books what it holds")
	late := w.pay(a, "ETH", "4") // after the round, and found by the scan
	w.mine(1)
	w.step()

	found, err := w.net.Recover(context.Background(), a, 1, 0, unrecorded)
	require.NoError(t, err)
	require.Equal(t, 1, found, "the tokens, which no round books")
	sum := dec("0")
	for _, s := range w.of(a) {
		if s.Currency == "ETH" {
			sum = sum.Add(s.Exact)
		}
	}
	require.Equal(t, "7", sum.String())
	require.Equal(t, incoming.Included, w.one(late).State)
	require.NotEmpty(t, w.one(seen).Tx)
}

// TestFN05_CoinsUnderANewCodeAreNotBookedAgain: an operator lists the native coin under
// another code.
func TestFN05_CoinsUnderANewCodeAreNotBookedAgain(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 82)
	p.noState = true
	a := w.address()
	w.pay(a, "ETH", "3")
	w.pay(a, "USDT", "5")
	w.mine(1)
	p.held[a] = "3"
	w.round()
	require.Len(t, w.of(a), 2)

	renamed, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: eth, Family: chain.AccountFamily, Gas: "XETH"}},
		[]chain.Currency{{Code: "XETH", Network: eth, Token: "ETH", Decimals: 18, Scale: 8, Confirmations: confs, Dust: dec("0.0001")}})
	require.NoError(t, err)
	w.reg = renamed
	w.again(p)
	w.round()
	require.Len(t, w.of(a), 2, "nothing came")
	p.held[a] = "4"
	w.round()
	got := w.of(a)
	require.Len(t, got, 3)
	for _, s := range got {
		if s.Unproven {
			require.Equal(t, "1", s.Exact.String(), "what came is booked, and no more")
		}
	}
}

// TestFN05_WhatWasSweptUnseenIsFoundByANewProcess: coins came unseen beside a deposit that
// was seen, and all of it was swept before the next round, which is the first of its
// process or of its branch.
func TestFN05_WhatWasSweptUnseenIsFoundByANewProcess(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(*world, *purse){
		"after a restart": func(w *world, p *purse) { w.again(p) },
		"after a fork":    func(w *world, _ *purse) { w.reorganize(1) },
		"after both":      func(w *world, p *purse) { w.reorganize(1); w.again(p) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := newPurse(t, 83)
			p.noState = true
			a := w.address()
			w.mine(confs)
			w.round() // the fork goes back behind this one
			w.round()
			begin(w, p)
			w.pay(a, "ETH", "1")
			w.mine(2)
			p.spent[a] = chain.Spent{Paid: dec("3"), Nonce: 1} // 2 more than ever came
			w.round()
			got := w.of(a)
			require.Len(t, got, 2)
			require.Equal(t, "3", got[0].Exact.Add(got[1].Exact).String())
		})
	}
}

// payer is a purse of an address that sent many transactions: the node tells what they
// paid where it is given all of them from the first nonce on.
type payer struct {
	*purse
	sent map[chain.Address][]string // by nonce
	most int                        // given at once
}

func (p *payer) list(_ context.Context, first map[chain.Address]uint64) (map[chain.Address][]string, error) {
	out := map[chain.Address][]string{}
	for a, at := range first {
		out[a] = p.sent[a][at:]
	}
	return out, nil
}

func (p *payer) Spent(_ context.Context, _ chain.Block, senders []chain.Sender) ([]chain.Spent, error) {
	out := make([]chain.Spent, len(senders))
	for i, s := range senders {
		p.most = max(p.most, len(s.Txs))
		next := uint64(len(p.sent[s.Address]))
		out[i] = chain.Spent{Nonce: next, Strange: uint64(len(s.Txs)) != next-s.First, Paid: decimal.NewFromInt(int64(len(s.Txs)))}
	}
	return out, nil
}

// TestFN05_AForkGoesBackToWhatWasKeptBefore: what comes unseen to a hot address that sent
// much is found after a fork, and not all that it ever sent is read for it.
func TestFN05_AForkGoesBackToWhatWasKeptBefore(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 84)
	p.noState = true
	d, err := w.pool.Hot(context.Background(), w.name, shop)
	require.NoError(t, err)
	hot := d.Address
	x := &payer{purse: p, sent: map[chain.Address][]string{hot: make([]string, 1500)}}
	w.net = w.network(w.store, x, func(c *incoming.Config, _ *sim.Options) { c.RoundEvery, c.Sent = roundEvery, x.list })
	pay := func(left string) { // each costs 1
		x.sent[hot] = append(x.sent[hot], "0x")
		p.held[hot] = left
		w.round()
	}
	p.held[hot] = "10"
	w.round()
	w.mine(confs)
	pay("9")
	pay("8") // two rounds within the depth of a fork
	require.Empty(t, w.of(hot))
	w.reorganize(2)
	w.mine(3)
	pay("12") // and 5 came
	got := w.of(hot)
	require.Len(t, got, 1)
	require.Equal(t, "5", got[0].Exact.String())
	require.Less(t, x.most, 10, "what was sent long ago is not read")
	for i := range 3 * confs {
		pay(fmt.Sprint(13 + i)) // and 2 come each time
	}
	require.Len(t, w.of(hot), 1+3*confs)
	require.Less(t, x.most, 10, "nor later")
}

// limited is a purse whose node fails, or cannot compare balances at all.
type limited struct {
	*purse
	err   error
	sound bool // the node answers a question about no address
	asked int  // with addresses
	calls int
}

func (l *limited) Holdings(ctx context.Context, at chain.Block, list []chain.Address) ([]decimal.Decimal, error) {
	l.calls++
	if len(list) > 0 {
		l.asked++
	}
	if l.err != nil && (len(list) > 0 || !l.sound) {
		return nil, l.err
	}
	return l.purse.Holdings(ctx, at, list)
}

// TestFN05_RoundsAreApart: however fast blocks come, branches change and rounds fail, a
// fifth of RoundEvery passes between two.
func TestFN05_RoundsAreApart(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 85)
	x := &limited{purse: p}
	w.again(x)
	w.address()
	w.step()
	require.Equal(t, 1, x.asked)
	fast := func(blocks int) {
		w.chain.Mine(blocks)
		w.step() // a second
	}
	for range 5 {
		fast(64)
	}
	require.Equal(t, 1, x.asked, "blocks alone are no reason")
	w.reorganize(2)
	fast(3)
	require.Equal(t, 1, x.asked, "nor is a fork")
	w.clock.Advance(roundEvery / 5)
	fast(64)
	require.Equal(t, 2, x.asked, "both are, later")
	w.clock.Advance(roundEvery / 5)
	fast(63)
	require.Equal(t, 2, x.asked, "time and too few blocks are not")
	w.clock.Advance(roundEvery)
	fast(1)
	require.Equal(t, 3, x.asked)
}

// TestFN05_AFailedRoundHoldsNothingUp: a node that cannot tell balances costs the rounds
// alone, and is not asked at each step.
func TestFN05_AFailedRoundHoldsNothingUp(t *testing.T) {
	t.Parallel()
	for name, sound := range map[string]bool{"at once": false, "with the first address": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, p := newPurse(t, 86)
			p.noState = true
			x := &limited{purse: p, err: chain.ErrNoState, sound: sound}
			var said bytes.Buffer
			w.net = w.network(w.store, x, func(c *incoming.Config, _ *sim.Options) {
				c.RoundEvery, c.Log = roundEvery, slog.New(slog.NewTextHandler(&said, nil))
			})
			a := w.address()
			tx := w.pay(a, "ETH", "1")
			p.held[a] = "3"
			for range confs {
				w.chain.Mine(1)
				worked, err := w.net.Step(context.Background())
				require.NoError(t, err, "the scan goes on")
				require.Positive(t, worked)
			}
			require.Equal(t, incoming.Final, w.one(tx).State)
			if sound {
				require.Equal(t, 1, x.asked, "once in a while")
			} else {
				require.Equal(t, 1, x.calls, "once in a while")
			}
			require.Contains(t, said.String(), "level=WARN msg=balances_not_compared")
			x.err = nil
			w.clock.Advance(roundEvery / 5)
			w.step()
			require.Len(t, w.of(a), 2, "the next round finds it")
		})
	}
}

// TestFN05_ANodeThatStopsComparingIsAskedRarely: it answers that it compares no balances only
// when it is asked about an address. That is a round like others, and no fault.
func TestFN05_ANodeThatStopsComparingIsAskedRarely(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 88)
	x := &limited{purse: p, err: errors.ErrUnsupported, sound: true}
	var said bytes.Buffer
	w.net = w.network(w.store, x, func(c *incoming.Config, _ *sim.Options) {
		c.RoundEvery, c.Log = roundEvery, slog.New(slog.NewTextHandler(&said, nil))
	})
	w.address()
	for want := 1; want <= 3; want++ {
		for range 4 {
			w.clock.Advance(roundEvery / 5)
			w.chain.Mine(1)
			w.step()
			require.Equal(t, want, x.asked)
		}
		w.clock.Advance(roundEvery / 5)
	}
	require.NotContains(t, said.String(), "balances_not_compared")
}

// TestFN05_WhatTheNodeNamesIsBookedUnderItsName: a node that can name the transfer of an
// inner call has it booked as that transfer, proven and in its own block.
func TestFN05_WhatTheNodeNamesIsBookedUnderItsName(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 89)
	a := w.address()
	w.pay(a, "ETH", "3")
	w.mine(64) // the node is asked about blocks that are remembered
	w.step()
	in, err := w.chain.Client().(chain.Locator).BlockAt(context.Background(), w.cursor(w.store).Head-1)
	require.NoError(t, err)
	p.held[a] = "4.5"
	p.named = []chain.Transfer{{Tx: "inner", Ordinal: 7, To: a, Currency: "ETH", Amount: dec("1.5"), Block: in}}
	for range confs {
		w.round()
	}
	s := w.one("inner")
	require.False(t, s.Unproven)
	require.Equal(t, "1.5", s.Exact.String())
	require.Equal(t, in.Height, s.Height)
	require.Equal(t, incoming.Final, s.State)
	require.Len(t, w.of(a), 2)
}

// TestFN05_AnUnchangedBalanceIsNotLookedUp: a round reads nothing from the store for an
// address whose balance is unchanged and explained.
func TestFN05_AnUnchangedBalanceIsNotLookedUp(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 90)
	s := &looked{Store: w.store}
	w.net = w.network(s, p, func(c *incoming.Config, _ *sim.Options) { c.RoundEvery = roundEvery })
	a := w.address()
	w.pay(a, "ETH", "3")
	w.mine(confs)
	p.held[a] = "3"
	w.round()
	w.round() // the transfer is in the blocks of the round before
	s.rows = 0
	for range 5 {
		w.round()
	}
	require.Zero(t, s.rows)
	p.held[a] = "4"
	w.round()
	require.Positive(t, s.rows)
	require.Len(t, w.of(a), 2)
}

// TestFN05_AForkDuringARound: another process follows a fork after this one has read the
// balances at a block that is then gone. Nothing is booked in that block.
func TestFN05_AForkDuringARound(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 91)
	p.noState = true
	a := w.address()
	w.mine(3)
	w.step()
	other := w.network(w.store, withoutMempool(w.chain.Client()))
	x := &interrupted{purse: p, meanwhile: func() {
		w.reorganize(2)
		w.mine(2)
		w.stepOf(other)
	}}
	w.again(x)
	p.held[a] = "2"
	w.mine(1)
	_, err := w.net.Step(context.Background())
	require.NoError(t, err)
	require.Nil(t, x.meanwhile)
	for _, s := range w.sightings(w.store) {
		b, err := w.chain.Client().(chain.Locator).BlockAt(context.Background(), s.Height)
		require.NoError(t, err)
		require.Equal(t, b.Hash, s.BlockHash)
	}
	for range confs + 1 {
		w.round()
	}
	require.Len(t, w.of(a), 1)
	require.Equal(t, incoming.Final, w.of(a)[0].State)
}

// interrupted is a purse of which something happens before its first answer arrives.
type interrupted struct {
	*purse
	meanwhile func()
}

func (i *interrupted) Holdings(ctx context.Context, at chain.Block, list []chain.Address) ([]decimal.Decimal, error) {
	out, err := i.purse.Holdings(ctx, at, list)
	if f := i.meanwhile; f != nil && len(list) > 0 {
		i.meanwhile = nil
		f()
	}
	return out, err
}

// looked counts how often the directory is read by address.
type looked struct {
	storage.Store
	rows int
}

func (l *looked) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if t == incoming.Addresses.Table {
		l.rows++
	}
	return l.Store.Rows(ctx, t, keys...)
}

// TestFN05_AClientThatComparesNoBalancesIsAskedOnce: it has the methods, as those of
// package several do whatever their nodes can, but answers none.
func TestFN05_AClientThatComparesNoBalancesIsAskedOnce(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 87)
	off := &limited{purse: p, err: fmt.Errorf("switched off: %w", errors.ErrUnsupported)}
	both, err := several.New(several.Config{Now: w.clock.Now, Nodes: []several.Node{
		{Name: "a", Client: w.chain.Client()}, {Name: "b", Client: w.chain.Client()},
	}})
	require.NoError(t, err)
	for name, c := range map[string]chain.Client{"switched off": off, "several": both} {
		s := &looked{Store: w.store}
		var said bytes.Buffer
		n := w.network(s, c, func(c *incoming.Config, _ *sim.Options) {
			c.RoundEvery, c.Log = roundEvery, slog.New(slog.NewTextHandler(&said, nil))
		})
		for range 30 {
			w.mine(1)
			w.clock.Advance(roundEvery)
			w.stepOf(n)
		}
		require.Zero(t, s.rows, name)
		require.Empty(t, said.String(), name)
	}
	require.Equal(t, 1, off.calls)
	require.Zero(t, off.asked)
}
