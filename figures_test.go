package cryptopay_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

func (h *host) figures(app *cryptopay.App) cryptopay.Figures {
	h.t.Helper()
	f, err := app.Figures(h.t.Context())
	require.NoError(h.t, err)
	return f
}

// The figures are what there is, over all tenants, on every store: also where they were made
// step by step, and where a process that knows nothing yet makes them.
func TestE10_FiguresAreWhatThereIs(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store storage.Store) {
		h := newHostOn(t, store, 5, "ETH")
		h.configure = func(c *cryptopay.Config) {
			c.Consumers = []stream.Consumer{{Name: "books", Handle: func(context.Context, stream.Tx, stream.Event) error { return nil }}}
		}
		h.restart()
		h.rates.Set("DAI", "USD", dec("1"))
		first := h.figures(h.app)
		require.Equal(t, 1, first.Tenants)
		require.Equal(t, 1, first.Seen)
		h.float("ETH", "5")
		_, late, _ := h.business()
		waits := h.create("40", "ETH")
		name := "another"
		other, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
		require.NoError(t, err)
		h.clock.Advance(time.Minute)
		_, err = h.app.Payments.Create(t.Context(), other.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "10", Currency: "ETH"}})
		require.NoError(t, err)
		h.step()

		f := h.figures(h.app)
		require.Equal(t, 2, f.Tenants)
		require.Equal(t, 2, f.Seen)
		require.Equal(t, cryptopay.Group{Count: 2, Oldest: waits.CreatedAt}, f.Payments[payment.Waiting])
		require.EqualValues(t, 1, f.Payments[payment.Completed].Count)
		require.EqualValues(t, 1, f.Payments[payment.Expired].Count)
		require.EqualValues(t, 1, f.Withdrawals[withdrawal.Completed].Count)
		require.Zero(t, f.Withdrawals[withdrawal.Pending].Count)
		require.EqualValues(t, 1, f.Suspense["ETH"].Count)
		require.Equal(t, h.payment(late).Due.Decimal(8).String(), f.Suspense["ETH"].Amount.String())
		require.True(t, f.Funds["ETH"].Equity.IsPositive())
		require.Zero(t, f.Funds["ETH"].Short)
		require.EqualValues(t, 1, f.Alerts["suspense"])
		require.Zero(t, f.Consumers["books"].Behind)
		require.True(t, f.Consumers["books"].Here)
		require.Equal(t, chain.Network("ETH"), f.Networks[0].Network)
		require.Equal(t, h.chains["ETH"].Height(), f.Networks[0].Tip)
		for kind, at := range f.Due {
			require.Zero(t, at, "nothing is due: %s", kind)
		}

		fresh := h.figures(h.beside(h.configure))
		require.Equal(t, f.Payments, fresh.Payments)
		require.Equal(t, f.Withdrawals, fresh.Withdrawals)
		require.Equal(t, f.Suspense["ETH"].Amount.String(), fresh.Suspense["ETH"].Amount.String())
		require.Equal(t, f.Funds["ETH"].Equity.String(), fresh.Funds["ETH"].Equity.String())
	})
}

// closedBooks gives the App a consumer "books" that fails until the result is false.
func (h *host) closedBooks(tries int) *atomic.Bool {
	fails := new(atomic.Bool)
	fails.Store(true)
	h.configure = func(c *cryptopay.Config) {
		c.Consumers = []stream.Consumer{{Name: "books", Tries: tries, Handle: func(context.Context, stream.Tx, stream.Event) error {
			if fails.Load() {
				return errors.New("the books are closed")
			}
			return nil
		}}}
	}
	return fails
}

// A consumer that fails shows how many events wait and since when, in the figures and in
// Health, and no more once it has handled them.
func TestE10_ConsumersLagIsShown(t *testing.T) {
	t.Parallel()
	h := newHost(t, 6, "ETH")
	fails := h.closedBooks(100)
	h.restart()
	began := h.clock.Now()
	h.create("40", "ETH")
	h.mine(2)
	c := h.figures(h.app).Consumers["books"]
	require.EqualValues(t, 1, c.Behind)
	require.Equal(t, began, c.Oldest)
	require.Equal(t, 1, c.Failing)
	p := partOf(t, h.app.Health(t.Context()), "consumer/books")
	require.Equal(t, cryptopay.Degraded, p.State)
	require.Contains(t, p.Reason, "the books are closed")

	fails.Store(false)
	h.clock.Advance(time.Hour)
	h.step()
	c = h.figures(h.app).Consumers["books"]
	require.Zero(t, c.Behind)
	require.Zero(t, c.Oldest)
	require.Equal(t, cryptopay.OK, partOf(t, h.app.Health(t.Context()), "consumer/books").State)
}

// What a consumer has put aside is shown as long as it is there: an order that nobody fills
// looks else as if all were done.
func TestE10_DeadLettersAreShown(t *testing.T) {
	t.Parallel()
	h := newHost(t, 8, "ETH")
	fails := h.closedBooks(1)
	h.restart()
	dead := func(n int64) {
		for _, app := range []*cryptopay.App{h.app, h.beside(h.configure)} {
			require.Equal(t, n, h.figures(app).Consumers["books"].Dead)
			p := partOf(t, app.Health(t.Context()), "consumer/books")
			require.Equal(t, n > 0, p.State == cryptopay.Degraded)
			if n > 0 {
				require.Contains(t, p.Reason, "2 events are dead letters")
			}
		}
	}
	h.step()
	dead(0)
	p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}})
	require.NoError(t, err)
	h.mine(2)
	_, err = h.app.Payments.Cancel(t.Context(), h.tenant, p.ID)
	require.NoError(t, err)
	h.mine(2)
	require.Zero(t, h.figures(h.app).Consumers["books"].Behind)
	dead(2)
	fails.Store(false)
	_, err = h.app.Events.Retry(t.Context(), storage.Tenant(h.tenant), "books", p.ID)
	require.NoError(t, err)
	dead(0)
}

// The streams of networks have consumers, too: one that fails there is shown.
func TestE10_ConsumersLagOnNetworksIsShown(t *testing.T) {
	t.Parallel()
	h := newHost(t, 7, "ETH")
	h.configure = func(c *cryptopay.Config) {
		c.Consumers = []stream.Consumer{{Name: "pager", Tries: 100, Handle: func(_ context.Context, _ stream.Tx, e stream.Event) error {
			if _, halted := e.Body.(outgoing.HaltChanged); halted {
				return errors.New("nobody answers")
			}
			return nil
		}}}
	}
	h.restart()
	h.mine(2)
	require.Zero(t, h.figures(h.app).Consumers["pager"].Behind)
	began := h.clock.Now()
	_, err := h.app.Operate.Halt(t.Context(), cryptopay.HaltScope{Network: "ETH"}, cryptopay.Call{By: "ann", Reason: "the node looks odd"})
	require.NoError(t, err)
	h.mine(2)
	c := h.figures(h.app).Consumers["pager"]
	require.EqualValues(t, 2, c.Behind, "the halt, and that an operator called")
	require.Equal(t, began, c.Oldest)
	require.Equal(t, 1, c.Failing)
}

// askedStore counts what a store is asked.
type askedStore struct {
	storage.Store
	mu    sync.Mutex
	calls int
	rows  int
}

func (s *askedStore) note(rows int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls, s.rows = s.calls+1, s.rows+rows
}

func (s *askedStore) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	rows, err := s.Store.Rows(ctx, t, keys...)
	s.note(len(rows))
	return rows, err
}

func (s *askedStore) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	rows, err := s.Store.Find(ctx, q)
	s.note(len(rows))
	return rows, err
}

func (s *askedStore) Peek(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	rows, err := storage.Peek(ctx, s.Store, c)
	s.note(len(rows))
	return rows, err
}

func (s *askedStore) Count(ctx context.Context, q storage.Query) (int64, error) {
	n, err := s.Store.Count(ctx, q)
	s.note(int(n))
	return n, err
}

// What Figures and Health read does not grow with what is over.
func TestE10_FiguresDoNotGrowWithHistory(t *testing.T) {
	t.Parallel()
	h := newHost(t, 7, "ETH")
	h.float("ETH", "5")
	s := &askedStore{}
	app := h.beside(func(c *cryptopay.Config) { s.Store = c.Store; c.Store = s })
	over := func(n int) (calls, rows int) {
		for range n {
			p := h.create("50", "ETH")
			h.pay(p, "ETH", p.Due.Decimal(8))
		}
		h.mine(60)
		require.Zero(t, h.figures(app).Payments[payment.Waiting].Count)
		s.calls, s.rows = 0, 0
		h.clock.Advance(time.Hour) // everything is looked at again
		h.step()
		h.figures(app)
		app.Health(t.Context())
		return s.calls, s.rows
	}
	calls, rows := over(2)
	more, moreRows := over(40)
	require.LessOrEqual(t, more, calls+2)
	require.LessOrEqual(t, moreRows, rows+2)
}

// farStore does not answer what only a look at a tenant asks, before whoever asks gives up.
type farStore struct{ storage.Store }

func (farStore) Balances(ctx context.Context, _ storage.Partition, _ ...ledger.Account) ([]ledger.Balance, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// A store that is too slow for a look at all tenants takes none of the other figures away: by
// them alerts tell that work waits.
func TestE10_FiguresOfASlowStore(t *testing.T) {
	t.Parallel()
	h := newHostOn(t, farStore{memory.New()}, 5, "ETH")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	f, err := h.app.Figures(ctx)
	require.NoError(t, err)
	require.NoError(t, ctx.Err())
	require.Equal(t, 1, f.Tenants)
	require.Zero(t, f.Seen)
	require.NotEmpty(t, f.Due)
	require.Len(t, f.Networks, 1)
}
