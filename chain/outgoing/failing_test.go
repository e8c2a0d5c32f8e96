package outgoing_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// TestL02_QuestionFailsOnce: whichever question to the store fails, while an order is taken,
// signed, replaced, mined or settled: each is paid once.
func TestL02_QuestionFailsOnce(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 7
	}
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			for n := 1; ; n += every {
				var log strings.Builder
				w := funded(t, setup{family: family, change: func(c *outgoing.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }})
				f := &failing.Store{Store: w.store}
				w.store = f
				w.restart()
				f.FailAt = n
				told := false
				orders := []chain.Intent{w.intent("a", coin), w.intent("b", 2*coin)}
				for _, in := range orders {
					err := w.Net.Submit(w.ctx, in)
					if err != nil {
						told = true
						require.ErrorIs(t, err, failing.ErrGone, "question %d", n)
						require.NoError(t, w.Net.Submit(w.ctx, in))
					}
				}
				for round := range 30 {
					if err := w.step(); err != nil {
						require.ErrorIs(t, err, failing.ErrGone, "question %d", n)
						told = true
					}
					if round >= 12 { // until then they are stuck, and replaced
						w.chain.Mine(1)
					}
					w.advance(time.Minute)
				}
				asked := f.Calls
				f.FailAt = 0
				for _, in := range orders {
					w.paid(in)
					require.Equal(t, outgoing.Final, w.last(in.ID).State, "question %d", n)
				}
				w.sound()
				if family == chain.AccountFamily { // a batch that meets an error is tried with fewer orders, and tells nobody
					require.Equal(t, asked >= n, told || strings.Contains(log.String(), failing.ErrGone.Error()), "question %d of %d", n, asked)
				}
				if asked < n {
					require.Greater(t, n, 50)
					return
				}
			}
		})
	}
}

// TestL02_QuestionAboutALostNonceFailsOnce: a deep reorg took a settled transaction.
// Whichever question to the store fails while it is sent again: somebody is told, and both
// orders are paid once.
func TestL02_QuestionAboutALostNonceFailsOnce(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 3
	}
	for n := 1; ; n += every {
		var log strings.Builder
		w := funded(t, setup{noFinality: true, change: func(c *outgoing.Config) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }})
		f := &failing.Store{Store: w.store}
		w.store = f
		w.restart()
		a := w.submit(w.intent("a", coin))
		w.run(30)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.evict(w.last("a").Tx)
		b := w.submit(w.intent("b", coin))
		f.Calls, f.FailAt = 0, n
		told := false
		for range 40 {
			if err := w.step(); err != nil {
				require.ErrorIs(t, err, failing.ErrGone, "question %d", n)
				told = true
			}
			w.chain.Mine(1)
			w.advance(time.Minute)
		}
		asked := f.Calls
		f.FailAt = 0
		w.paid(a)
		w.paid(b)
		w.sound()
		require.Equal(t, asked >= n, told || strings.Contains(log.String(), failing.ErrGone.Error()), "question %d of %d", n, asked)
		if asked < n {
			require.Greater(t, n, 50)
			return
		}
	}
}

// TestL02_QuestionAboutAChildFailsOnce: nodes keep a transaction, and a child pays for it,
// within a bound that has to be raised. Whichever question to the store fails: somebody is
// told, or a lower bound is asked for. No bound is asked for but the order's, which is paid
// once.
func TestL02_QuestionAboutAChildFailsOnce(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	play := func(n int) (questions int, told bool, bounds []ledger.Amount) {
		var log strings.Builder
		w := funded(t, setup{family: chain.UTXOFamily, firstSeen: true, change: func(c *outgoing.Config) {
			c.Log = slog.New(slog.NewTextHandler(&log, nil))
			c.Raise = func(_ context.Context, in chain.Intent, most ledger.Amount) (ledger.Amount, error) {
				require.Equal(t, "a", in.ID)
				bounds = append(bounds, most)
				return most, nil
			}
		}})
		f := &failing.Store{Store: w.store}
		w.store = f
		w.restart()
		a := w.intent("a", coin)
		a.MaxCost = 300_000
		w.submit(a)
		require.NoError(t, w.step())
		w.stick()
		w.childIs(outgoing.Signed)
		w.chain.SetFeeLevel(2000)
		w.chain.SetFirstSeen(false)
		f.Calls, f.FailAt = 0, n
		settled := func(id string) bool { return w.last(id).State == outgoing.Final }
		for rounds := 0; rounds < 60 && (!settled("a") || !settled(outgoing.ID{Kind: outgoing.OrderChild, For: "a"}.String())); rounds++ {
			if err := w.step(); err != nil {
				require.ErrorIs(t, err, failing.ErrGone, "question %d", n)
				told = true
			}
			w.chain.Mine(1)
			w.advance(time.Minute)
		}
		questions, f.FailAt = f.Calls, 0
		w.each(a)
		require.Equal(t, outgoing.Final, w.child().State, "question %d", n)
		require.Len(t, w.child().Attempts, 2, "question %d", n)
		return questions, told || strings.Contains(log.String(), failing.ErrGone.Error()), bounds
	}
	first, every := 1, 1
	if testing.Short() {
		first, every = 5, 9
	}
	questions, _, usual := play(0)
	require.Greater(t, questions, 50)
	for n := first; n <= questions; n += every {
		if _, told, bounds := play(n); !told {
			require.NotEqual(t, usual, bounds, "question %d of %d", n, questions)
		}
	}
}
