package treasury_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// failing is a store whose n-th question about what treasury keeps fails, counted from 1.
type failing struct {
	storage.Store
	n, asked int
}

var errGone = errors.New("the store is gone")

func (f *failing) fails(t *storage.Table) error {
	if !slices.Contains(treasury.Tables(), t) {
		return nil
	}
	if f.asked++; f.asked == f.n {
		return errGone
	}
	return nil
}

func (f *failing) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if err := f.fails(t); err != nil {
		return nil, err
	}
	return f.Store.Rows(ctx, t, keys...)
}

func (f *failing) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if err := f.fails(q.Table); err != nil {
		return nil, err
	}
	return f.Store.Find(ctx, q)
}

func (f *failing) Count(ctx context.Context, q storage.Query) (int64, error) {
	if err := f.fails(q.Table); err != nil {
		return 0, err
	}
	return f.Store.Count(ctx, q)
}

func (f *failing) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	if err := f.fails(c.Table); err != nil {
		return nil, err
	}
	return f.Store.Claim(ctx, c)
}

// TestL02_QuestionFailsOnce: whichever question about sweeps, gas or reservations fails, the
// payment is swept once in the end, each cost is booked once, and nothing is left set aside.
func TestL02_QuestionFailsOnce(t *testing.T) {
	t.Parallel()
	every := 1
	if testing.Short() {
		every = 40
	}
	const currency = "USDTERC20"
	for n := 1; ; n += every {
		w := newWorld(t, "ETH")
		w.fund("1")
		f := &failing{Store: w.store.Store}
		w.store.Store = f
		w.restart()
		p := w.pay(currency, "300")
		f.asked, f.n = 0, n
		for range 60 {
			w.clock.Advance(15 * time.Second)
			w.chain.Mine(1)
			if err := w.app.Step(t.Context()); err != nil {
				require.ErrorIs(t, err, errGone, "question %d", n)
			}
		}
		asked := f.asked
		f.n = 0
		require.Equal(t, payment.Completed, w.payment(p.ID).Status, "question %d", n)
		require.Equal(t, 1, w.landed(w.hot, currency), "one sweep, question %d", n)
		w.conserved("ETH", currency)
		w.released()
		if asked < n {
			require.Greater(t, n, 50)
			return
		}
	}
}
