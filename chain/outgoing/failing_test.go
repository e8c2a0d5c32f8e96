package outgoing_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// failing is a store whose n-th question fails, counted from 1.
type failing struct {
	storage.Store
	n, asked int
}

var errGone = errors.New("the store is gone")

func (f *failing) fails() error {
	if f.asked++; f.asked == f.n {
		return errGone
	}
	return nil
}

func (f *failing) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Rows(ctx, t, keys...)
}

func (f *failing) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Find(ctx, q)
}

func (f *failing) Count(ctx context.Context, q storage.Query) (int64, error) {
	if err := f.fails(); err != nil {
		return 0, err
	}
	return f.Store.Count(ctx, q)
}

func (f *failing) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Claim(ctx, c)
}

// TestL02_QuestionFailsOnce: whichever question to the store fails, while an order is taken,
// signed, replaced, mined or settled: each is paid once.
func TestL02_QuestionFailsOnce(t *testing.T) {
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
				f := &failing{Store: w.store}
				w.store = f
				w.restart()
				f.n = n
				told := false
				orders := []chain.Intent{w.intent("a", coin), w.intent("b", 2*coin)}
				for _, in := range orders {
					err := w.Net.Submit(w.ctx, in)
					if err != nil {
						told = true
						require.ErrorIs(t, err, errGone, "question %d", n)
						require.NoError(t, w.Net.Submit(w.ctx, in))
					}
				}
				for round := range 30 {
					if err := w.step(); err != nil {
						require.ErrorIs(t, err, errGone, "question %d", n)
						told = true
					}
					if round >= 12 { // until then they are stuck, and replaced
						w.chain.Mine(1)
					}
					w.advance(time.Minute)
				}
				asked := f.asked
				f.n = 0
				for _, in := range orders {
					w.paid(in)
					require.Equal(t, outgoing.Settled, w.last(in.ID).State, "question %d", n)
				}
				w.sound()
				if family == chain.AccountFamily { // a batch that meets an error is tried with fewer orders, and tells nobody
					require.Equal(t, asked >= n, told || strings.Contains(log.String(), errGone.Error()), "question %d of %d", n, asked)
				}
				if asked < n {
					require.Greater(t, n, 50)
					return
				}
			}
		})
	}
}
