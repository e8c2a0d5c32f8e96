package incoming_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// everyCall counts commits, too.
func everyCall(failing.Call) bool { return true }

// TestL02_StoreFailsOnce lets each read and each commit fail in turn. Step returns the error
// of a read. In the end the sightings and the ledger are the same as if nothing had failed.
func TestL02_StoreFailsOnce(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 5
	}
	for n := 1; ; n += every {
		w := newWorld(t, eth, 41)
		f := &failing.Store{Store: w.store, Counts: everyCall}
		w.net = w.network(f, w.chain.Client())
		told := false
		step := func() {
			w.clock.Advance(2 * time.Minute)
			for range 100 {
				worked, err := w.net.Step(context.Background())
				if err != nil {
					require.ErrorIs(t, err, failing.ErrGone, "question %d", n)
					told = true
					w.clock.Advance(2 * time.Minute)
					continue
				}
				if worked == 0 {
					return
				}
			}
			require.Fail(t, "never done")
		}
		w.step()
		f.Calls, f.FailAt = 0, n
		token, coin := w.address(), w.address()
		w.pay(token, "USDT", "1")
		step() // sees it in the mempool
		w.mine(1)
		step()
		w.pay(coin, "ETH", "2")
		w.mine(2)
		step()
		_, err := w.chain.Reorg(2)
		require.NoError(t, err)
		step()
		w.mine(confs + 2)
		step()
		require.Equal(t, w.truth(), w.summary(w.store), "question %d", n)
		w.requireBooks()
		require.Len(t, w.books, 2)
		retried := len(f.Failed.Changes) > 0 && !strings.Contains(f.Failed.Changes[0].ID, "done")
		if !retried {
			require.Equal(t, f.Calls >= n, told, "question %d of %d", n, f.Calls)
		}
		for _, s := range w.sightings(w.store) {
			require.Equal(t, incoming.Final, s.State)
		}
		if f.Calls < n {
			require.Greater(t, n, 50)
			return
		}
	}
}

// hooked is a store on which something happens before the next claim.
type hooked struct {
	storage.Store
	before func()
}

func (h *hooked) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	if before := h.before; before != nil {
		h.before = nil
		before()
	}
	return h.Store.Claim(ctx, c)
}

// TestPool_HotIsTakenMeanwhile by another process, after this one has found none: it is the
// same address.
func TestPool_HotIsTakenMeanwhile(t *testing.T) {
	t.Parallel()
	ctx, s, c := context.Background(), newStore(t), newClock()
	other := newPool(t, s, c, &source{})
	require.NoError(t, other.Fill(ctx, eth))
	h := &hooked{Store: s}
	p := newPool(t, h, c, &source{})
	for name, take := range map[string]func(p *incoming.Pool) (chain.Derived, error){
		"hot":    func(p *incoming.Pool) (chain.Derived, error) { return p.Hot(ctx, eth, "shop") },
		"change": func(p *incoming.Pool) (chain.Derived, error) { return p.Change(ctx, eth, "shop") },
	} {
		var first chain.Derived
		h.before = func() {
			var err error
			first, err = take(other)
			require.NoError(t, err)
		}
		got, err := take(p)
		require.NoError(t, err, name)
		require.Equal(t, first, got, name)
	}
}

// TestGoneAfter: a transfer is gone once it was in no mempool for so long. One that comes
// back meanwhile is not.
func TestGoneAfter(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 42, func(c *incoming.Config, _ *sim.Options) { c.GoneAfter = 10 * time.Minute })
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	w.step()
	state := func(after time.Duration) incoming.State {
		t.Helper()
		w.clock.Advance(after)
		w.step()
		return w.one(tx).State
	}
	require.Equal(t, incoming.Seen, w.one(tx).State)
	w.chain.Drop(tx)
	require.Equal(t, incoming.Seen, state(0))
	require.Equal(t, incoming.Seen, state(9*time.Minute))
	require.NoError(t, w.chain.Resend(tx))
	require.Equal(t, incoming.Seen, state(0))
	w.chain.Drop(tx)
	require.Equal(t, incoming.Seen, state(6*time.Minute), "it was there meanwhile")
	require.Equal(t, incoming.Seen, state(3*time.Minute))
	require.Equal(t, incoming.Gone, state(2*time.Minute))
	require.NoError(t, w.chain.Resend(tx))
	w.mine(confs)
	w.step()
	require.Equal(t, incoming.Final, w.one(tx).State)
	w.requireBooks()
}

// TestGoneAfter_OfTwoProcesses: only the node of one process has a transfer. The transfer is not
// gone as long as that process looks twice within GoneAfter.
func TestGoneAfter_OfTwoProcesses(t *testing.T) {
	t.Parallel()
	const after = 10 * time.Minute
	w := newWorld(t, eth, 45)
	slow := func(c *incoming.Config, _ *sim.Options) { c.GoneAfter = after }
	has := w.network(w.store, w.chain.Client(), slow)
	node := w.chain.NewNode()
	misses := w.network(w.store, node.Client(), slow)
	step := func(n *incoming.Network) {
		t.Helper()
		_, err := n.Step(context.Background())
		require.NoError(t, err)
	}
	step(has)
	tx := w.pay(w.address(), "ETH", "1")
	node.Forget(tx)
	step(has)
	for range 4 {
		step(misses)
		require.Equal(t, incoming.Seen, w.one(tx).State)
		w.clock.Advance(after / 2)
		step(has)
		w.clock.Advance(after / 2)
		step(misses)
		require.Equal(t, incoming.Seen, w.one(tx).State)
		step(has)
	}
	w.clock.Advance(after)
	step(misses)
	require.Equal(t, incoming.Gone, w.one(tx).State, "nobody looked who has it")
}

// TestL02_StoreFailsOnceInARound lets each call of the store fail in turn while a round reads
// balances. Coins that only a balance shows are booked once. In the end the sightings and the
// holdings of each address are the same as if nothing had failed.
func TestL02_StoreFailsOnceInARound(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 5
	}
	var want []string
	for n := 0; ; n += every {
		w, p := newPurse(t, 73)
		f := &failing.Store{Store: w.store, Counts: everyCall, FailAt: n}
		var said bytes.Buffer
		w.net = w.network(f, p, func(c *incoming.Config, _ *sim.Options) {
			c.RoundEvery, c.Log = roundEvery, slog.New(slog.NewTextHandler(&said, nil))
		})
		told := false
		p.noState = true
		a, quiet := w.address(), w.address()
		round := func() {
			w.mine(1)
			w.clock.Advance(2 * roundEvery)
			for range 100 {
				worked, err := w.net.Step(context.Background())
				if err != nil {
					require.ErrorIs(t, err, failing.ErrGone, "question %d", n)
					told = true
					w.clock.Advance(2 * roundEvery)
				} else if worked == 0 {
					return
				}
			}
			require.Fail(t, "never done")
		}
		w.pay(a, "ETH", "3")
		p.held[a], p.held[quiet] = "4.5", "0.00001"
		round()
		p.held[a], p.spent[a] = "1.4", chain.Spent{Paid: dec("3.1"), Nonce: 1}
		round()
		w.pay(quiet, "ETH", "1")
		p.held[quiet] = "1.00001"
		for range confs + 2 {
			round()
		}
		var got []string
		for _, address := range []chain.Address{a, quiet} {
			for _, s := range w.of(address) {
				got = append(got, fmt.Sprint(s.Address, s.State, s.Exact, s.Unproven))
			}
			h, _ := w.holding(address)
			got = append(got, fmt.Sprint(h.Amount, h.Nonce))
		}
		slices.Sort(got)
		if n == 0 {
			require.Len(t, got, 5)
			want = got
			continue
		}
		require.Equal(t, want, got, "question %d of %d", n, f.Calls)
		if f.Failed.Changes == nil {
			told = told || strings.Contains(said.String(), failing.ErrGone.Error())
			require.Equal(t, f.Calls >= n, told, "question %d of %d", n, f.Calls)
		}
		if f.Calls < n {
			require.Greater(t, n, 50)
			return
		}
	}
}

// TestCursorThatCannotBeRead damages the headers in the cursor. Step then returns an error and
// leaves the cursor as it is. It does not read the chain anew. Once the headers are repaired,
// a payment that came meanwhile is final.
func TestCursorThatCannotBeRead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 43)
	w.step()
	w.mine(3)
	w.step()
	part := storage.Network(string(eth))
	c, row, ok, err := incoming.Cursors.One(context.Background(), w.store, part, incoming.CursorID)
	require.NoError(t, err)
	require.True(t, ok)
	good := c.Trail
	c.Trail = c.Trail[:len(c.Trail)/2]
	edit := func(id string) {
		t.Helper()
		_, row, _, err = incoming.Cursors.One(context.Background(), w.store, part, incoming.CursorID)
		require.NoError(t, err)
		change := storage.Change{ID: id, Partition: part, Put: []storage.Row{incoming.Cursors.Row(incoming.CursorID, row.Version, row.Due, c)}}
		require.NoError(t, w.store.Commit(context.Background(), change)[0])
	}
	edit("spoil")
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(1)
	for range 3 {
		_, err = w.net.Step(context.Background())
		require.Error(t, err)
		require.Equal(t, c.Trail, w.cursor(w.store).Trail)
	}
	c.Trail = good
	edit("repair")
	w.mine(confs)
	w.step()
	require.Equal(t, incoming.Final, w.one(tx).State)
	w.requireBooks()
}

// TestStepCounts: the number that Step returns includes a transfer in the mempool, also
// where Config.Handle is nil.
func TestStepCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 44)
	n := w.network(w.store, w.chain.Client(), func(c *incoming.Config, _ *sim.Options) { c.Handle = nil })
	w.stepOf(n)
	w.pay(w.address(), "ETH", "1")
	w.clock.Advance(time.Minute)
	worked, err := n.Step(context.Background())
	require.NoError(t, err)
	require.Equal(t, 1, worked)
}

// TestFN05_NamedAboveTheBlock: a node that names a transfer of a block above the one that was
// asked about is not believed.
func TestFN05_NamedAboveTheBlock(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 76)
	a := w.address()
	w.pay(a, "ETH", "3")
	w.mine(confs)
	w.step()
	p.held[a] = "4.5"
	p.named = []chain.Transfer{{Tx: "inner", To: a, Currency: "ETH", Amount: dec("1.5"), Block: chain.Block{Height: w.cursor(w.store).Head + 2, Hash: "above"}}}
	w.round()
	require.Len(t, w.of(a), 1)
}

// TestL02_StoreFailsOnceAtAQuestionOfTheHost: a status and an address are an error where the
// store fails, and nothing else.
func TestL02_StoreFailsOnceAtAQuestionOfTheHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 46)
	w.mine(3)
	w.step()
	want, err := w.net.Status(context.Background())
	require.NoError(t, err)
	f := &failing.Store{Store: w.store, Counts: everyCall}
	n, pool := w.network(f, w.chain.Client()), w.newPool(f)
	for name, ask := range map[string]func() error{
		"status": func() error {
			got, err := n.Status(context.Background())
			if err == nil {
				require.Equal(t, want.Head, got.Head)
			}
			return err
		},
		"address": func() error { _, err := pool.Take(context.Background(), w.name, shop); return err },
	} {
		for at := 1; ; at++ {
			f.Calls, f.FailAt, f.Failed = 0, at, failing.Call{}
			err := ask()
			if f.Calls < at {
				require.NoError(t, err, name)
				require.Greater(t, at, 1, name)
				break
			}
			if f.Failed.Changes == nil {
				require.ErrorIs(t, err, failing.ErrGone, "%s, question %d", name, at)
			}
		}
	}
}

// strangeBlocks tells of each height a block that is on no chain.
type strangeBlocks struct{}

func (strangeBlocks) BlockAt(_ context.Context, height int64) (chain.Block, error) {
	return chain.Block{Height: height, Hash: fmt.Sprint("strange ", height)}, nil
}

// TestR04_StartRemembersTheChainOfItsHead: a node that tells blocks of another branch is not
// believed. What is remembered begins with the head.
func TestR04_StartRemembersTheChainOfItsHead(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 47)
	w.mine(5)
	m := w.mangled()
	m.Locator = strangeBlocks{}
	w.net = w.network(w.store, m)
	w.step()
	blocks, err := w.cursor(w.store).Trail.Blocks()
	require.NoError(t, err)
	require.Len(t, blocks, 1)
	require.Equal(t, w.chain.Head().Hash, blocks[0].Hash)
}

// TestFM01_ListedLaterIsDescribedAgain: a token was paid that no process listed. A process
// that lists it describes the transfer, and it becomes final as one of that currency.
func TestFM01_ListedLaterIsDescribedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 48)
	listed := w.reg
	without, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: eth, Family: chain.AccountFamily, Gas: "ETH"}},
		[]chain.Currency{{Code: "ETH", Network: eth, Token: "ETH", Decimals: 18, Scale: 8, Confirmations: confs, Dust: dec("0.0001")}})
	require.NoError(t, err)
	w.reg = without
	w.net = w.network(w.store, w.chain.Client())
	w.step()
	tx := w.pay(w.address(), "BIG", "7.5")
	w.mine(1)
	w.step()
	require.Equal(t, []any{"", "big", int64(0)}, []any{w.one(tx).Currency, w.one(tx).Contract, int64(w.one(tx).Amount)})
	w.reg = listed
	w.net = w.network(w.store, w.chain.Client())
	w.step()
	s := w.one(tx)
	require.Equal(t, []any{"BIG", int64(750_000_000)}, []any{s.Currency, int64(s.Amount)})
	w.mine(confs)
	w.step()
	require.Equal(t, incoming.Final, w.one(tx).State)
}
