package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// scene is a long story of orders of one tenant, whose Changes meet faults.
type scene struct {
	*world
	f      *failing.Commits
	orders []chain.Intent
	called map[string]bool // orders that were cancelled
	about  string
}

func newScene(t testing.TB, kind string, at map[int]failing.Fault) *scene {
	family, firstSeen := chain.UTXOFamily, kind == "kept"
	if kind == "account" {
		family = chain.AccountFamily
	}
	s := &scene{about: fmt.Sprint(kind, " ", at), called: map[string]bool{}}
	w := newWorld(t, setup{family: family, noFinality: true, firstSeen: firstSeen, change: func(c *outgoing.Config) {
		c.MaxInputs, c.Batch = 3, 4
		c.MayCost = func(context.Context, chain.Intent) (ledger.Amount, error) { return coin, nil }
		c.Raise = func(_ context.Context, _ chain.Intent, most ledger.Amount) (ledger.Amount, error) { return most, nil }
	}})
	s.world = w
	if family == chain.UTXOFamily {
		for range 14 {
			w.fund(w.key(), "BTC", 2*coin)
		}
	} else {
		w.fund(w.hot, "ETH", 60*coin)
		w.fund(w.hot, "USDT", 1_000_000_000)
	}
	w.chain.Mine(10)
	s.f = &failing.Commits{Store: w.store, At: at}
	other := w.process()
	w.store = s.f
	w.restart()
	s.f.Meanwhile = func() { // the lease ends, and another process goes on
		s.advance(2 * time.Minute)
		for range 50 {
			if n, _ := other.Step(s.ctx); n == 0 {
				return
			}
		}
	}
	return s
}

func (s *scene) order(id string, amount ledger.Amount, change ...func(*chain.Intent)) {
	in := s.intent(id, amount)
	for _, f := range change {
		f(&in)
	}
	for {
		err := s.Net.Submit(s.ctx, in)
		if err == nil {
			break
		}
		s.ours(err)
	}
	s.orders = append(s.orders, in)
}

func (s *scene) ours(err error) {
	s.t.Helper()
	require.True(s.t, failing.Ours(err), "%s: %v", s.about, err)
}

func (s *scene) cancel(id string) {
	for {
		done, err := s.Net.Cancel(s.ctx, id)
		if err == nil {
			s.called[id] = done
			return
		}
		s.ours(err)
	}
}

// rounds lets so many minutes go by, with a block in each.
func (s *scene) rounds(n int) {
	for range n {
		if err := s.step(); err != nil {
			s.ours(err)
		}
		s.chain.Mine(1)
		s.advance(time.Minute)
	}
}

func dear(most ledger.Amount) func(*chain.Intent) {
	return func(in *chain.Intent) { in.MaxCost = most }
}

// play tells the story: orders paid together or one after the other, a cancel, prices that
// rise above bounds, coins that have to be merged, a reorg, a signer and a node that refuse.
func (s *scene) play() {
	start := s.clock()
	for i, id := range []string{"a", "b", "c", "d", "e"} {
		s.order(id, coin/2+ledger.Amount(i), dear(10_000))
	}
	s.cancel("d")
	s.signer.fail = []error{errAway}
	s.rounds(2)
	bound := ledger.Amount(20_000)
	if s.set.firstSeen {
		bound = coin / 10 // it pays for a child
	}
	for _, id := range []string{"f", "g", "h"} {
		s.order(id, coin/3, dear(bound))
	}
	if err := s.step(); err != nil {
		s.ours(err)
	}
	s.stick()
	s.rounds(25)
	s.chain.ReviveAll()
	s.chain.SetFeeLevel(0)
	s.order("i", 11*coin) // coins are merged for it
	s.order("j", coin)
	s.signer.fail = append(s.signer.fail, fmt.Errorf("%w: limit", chain.ErrRefused), errAway)
	s.rounds(8)
	_, _ = s.chain.Reorg(3, s.chain.Transactions(true)...)
	for {
		err := s.Net.Recheck(s.ctx, start)
		if err == nil {
			break
		}
		s.ours(err)
	}
	s.rounds(3)
	s.chain.ReviveAll()
	s.order("k", coin)
	s.order("l", coin)
	s.client.reject = fmt.Errorf("%w: bytes", chain.ErrRejected)
	s.rounds(30)
	for range 60 {
		if s.over() {
			break
		}
		s.rounds(1)
	}
	s.rounds(15)
}

func (s *scene) over() bool {
	for _, in := range s.orders {
		switch s.state(in.ID) {
		case outgoing.Final, outgoing.Failed, outgoing.Cancelled:
		default:
			return false
		}
	}
	return true
}

// check demands that each order was paid once and settled, or never paid and ended otherwise,
// and that its owner was told.
func (s *scene) check() {
	for _, in := range s.orders {
		v := s.get(in.ID)
		switch v.State {
		case outgoing.Final:
			require.Len(s.t, s.chain.Transfers(in.To), 1, "%s: %s\n%s", s.about, in.ID, strings.Join(s.f.Met, "\n"))
			s.paid(in)
			require.False(s.t, s.called[in.ID], "%s: %s", s.about, in.ID)
		case outgoing.Failed, outgoing.Cancelled:
			require.Empty(s.t, s.chain.Transfers(in.To), "%s: %s\n%s", s.about, in.ID, strings.Join(s.f.Met, "\n"))
		default:
			require.Fail(s.t, "no end", "%s: %s is %s, %s, due %s\n%s", s.about, in.ID, v.State, v.Reason, v.Due, strings.Join(s.f.Met, "\n"))
		}
		require.Equal(s.t, v.State, s.last(in.ID).State, "%s: %s\n%s", s.about, in.ID, strings.Join(s.f.Met, "\n"))
	}
	s.costs()
	s.sound()
}

// TestC05_CommitComesBackOtherwise: some Change of a long story, one of eight, is not done, or
// is done and not known to be: each order is paid once.
func TestC05_CommitComesBackOtherwise(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, kind := range []string{"account", "utxo", "kept"} {
		for _, fault := range failing.Faults {
			t.Run(kind+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				for n := 1 + len(fault)%3; ; n += 8 * stride() {
					s := newScene(t, kind, map[int]failing.Fault{n: fault})
					s.play()
					s.check()
					if s.f.Seen < n {
						require.Greater(t, n, 100)
						t.Log(n, "Changes")
						return
					}
				}
			})
		}
	}
}

// TestC05_TwoCommitsComeBackOtherwise is the same with two Changes of one story, at random.
func TestC05_TwoCommitsComeBackOtherwise(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	const seed = 5
	for _, kind := range []string{"account", "utxo", "kept"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(seed, 1))
			for range pairs {
				first := 1 + r.IntN(140)
				at := map[int]failing.Fault{first: failing.Faults[r.IntN(len(failing.Faults))]}
				at[first+1+r.IntN(12)] = failing.Faults[r.IntN(len(failing.Faults))]
				s := newScene(t, kind, at)
				s.play()
				s.check()
			}
		})
	}
}

const pairs = 20

// TestC05_SubmitThatComesBackOtherwise: an order counts as taken over only where it was, and
// one that can never be sent is never.
func TestC05_SubmitThatComesBackOtherwise(t *testing.T) {
	t.Parallel()
	for _, fault := range failing.Faults {
		if fault == failing.Passed {
			continue
		}
		for _, bad := range []bool{false, true} {
			w := funded(t, setup{})
			in := w.intent("a", coin)
			if bad {
				in.MaxCost = 0
			}
			own := w.store
			w.store = &failing.Commits{Store: own, At: map[int]failing.Fault{1: fault}}
			w.restart()
			err := w.Net.Submit(w.ctx, in)
			v, ok, e := w.Net.Get(w.ctx, "a")
			require.NoError(t, e)
			if bad {
				require.Error(t, err, fault)
				require.True(t, errors.Is(err, outgoing.ErrIntent) || failing.Ours(err), "%s: %v", fault, err)
				require.True(t, !ok || v.State == outgoing.Cancelled, fault)
				require.ErrorIs(t, w.Net.Submit(w.ctx, in), outgoing.ErrIntent, fault)
				continue
			}
			require.Equal(t, ok, err == nil, "%s: %v", fault, err)
			require.NoError(t, w.Net.Submit(w.ctx, in), fault)
			w.run(12)
			w.paid(in)
		}
	}
}

// TestC05_OutcomeThatIsToldComesBackOtherwise: that an outcome was told is written another
// time where it was not. Where the store is busy, or another process was faster, nobody has
// to look at that.
func TestC05_OutcomeThatIsToldComesBackOtherwise(t *testing.T) {
	t.Parallel()
	for _, fault := range []failing.Fault{failing.Busy, failing.Conflict, failing.Undone, failing.Unheard} {
		w := funded(t, setup{})
		w.store = &failing.Commits{
			Store: w.store, At: map[int]failing.Fault{2: fault},
			Counts: func(c *storage.Change) bool { return len(c.Put) == 1 && c.Put[0].Table == outgoing.Outcomes.Table },
		}
		w.restart()
		in := w.submit(w.intent("a", coin))
		var all error
		for range 15 {
			all = errors.Join(all, w.step())
			w.chain.Mine(1)
			w.advance(time.Minute)
		}
		w.paid(in)
		require.Equal(t, outgoing.Final, w.last("a").State, fault)
		if fault == failing.Busy || fault == failing.Conflict {
			require.NoError(t, all, fault)
		} else {
			require.ErrorIs(t, all, failing.ErrGone, fault)
		}
	}
}
