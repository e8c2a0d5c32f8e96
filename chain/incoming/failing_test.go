package incoming_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// failing is a store whose n-th question or commit fails, counted from 1.
type failing struct {
	storage.Store
	n, asked int
	commit   bool // the one that failed was a commit that is sent again
}

var errGone = errors.New("the store is gone")

func (f *failing) fails() error {
	if f.asked++; f.asked == f.n {
		return errGone
	}
	return nil
}

func (f *failing) Rows(ctx context.Context, t *storage.Table, p storage.Partition, ids ...string) ([]storage.Row, error) {
	if err := f.fails(); err != nil {
		return nil, err
	}
	return f.Store.Rows(ctx, t, p, ids...)
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

func (f *failing) Commit(ctx context.Context, changes ...storage.Change) []error {
	if err := f.fails(); err != nil {
		f.commit = !strings.Contains(changes[0].ID, "done")
		errs := make([]error, len(changes))
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	return f.Store.Commit(ctx, changes...)
}

// TestL02_StoreFailsOnce at any question or commit: the error of a question is told, and what
// is known and booked in the end is what it is without it.
func TestL02_StoreFailsOnce(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 5
	}
	for n := 1; ; n += every {
		w := newWorld(t, eth, 41)
		f := &failing{Store: w.store}
		w.net = w.network(f, w.chain.Client())
		told := false
		step := func() {
			w.clock.Advance(2 * time.Minute)
			for range 100 {
				worked, err := w.net.Step(context.Background())
				if err != nil {
					require.ErrorIs(t, err, errGone, "question %d", n)
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
		f.asked, f.n = 0, n
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
		if !f.commit {
			require.Equal(t, f.asked >= n, told, "question %d of %d", n, f.asked)
		}
		for _, s := range w.sightings(w.store) {
			require.Equal(t, incoming.Final, s.State)
		}
		if f.asked < n {
			require.Greater(t, n, 50)
			return
		}
	}
}
