package webhook_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/webhook"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// world is a host with a store, a clock, and receivers that do as told.
type world struct {
	t      *testing.T
	store  storage.Store
	reopen func() storage.Store
	now    time.Time
	ids    int
	key    byte   // 32 of it are the key of the secrets
	older  []byte // likewise of each key before
	random io.Reader
	bounds webhook.Config // Batch and MaxUndelivered; 0 = as usual
	logs   bytes.Buffer
	svc    *webhook.Service
	mu     sync.Mutex
	sent   []webhook.Delivery
	answer func(webhook.Delivery) webhook.Result
	host   bool // it also takes what no merchant is to be told of
	acts   []audit.Act
	known  func(tenant string) error // nil = every tenant is there
}

// Notify is the outside world: it takes down what arrives.
func (w *world) Notify(_ context.Context, ds []webhook.Delivery) []webhook.Result {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]webhook.Result, len(ds))
	for i, d := range ds {
		if d.URL == "" && !w.host {
			out[i] = webhook.Result{Err: webhook.ErrNoURL}
			continue
		}
		w.sent = append(w.sent, d)
		if w.answer != nil {
			out[i] = w.answer(d)
		} else {
			out[i] = webhook.Result{Status: 200}
		}
	}
	return out
}

func fails(webhook.Delivery) webhook.Result {
	return webhook.Result{Status: 500, Err: errors.New("webhook: the receiver answered 500")}
}

func newWorld(t *testing.T, store storage.Store, reopen func() storage.Store) *world {
	w := &world{t: t, store: store, reopen: reopen, now: start, key: 9, random: rand.NewChaCha8([32]byte{7})}
	require.NoError(t, store.Open(t.Context(), append(webhook.Tables(), storage.Counters.Table)...))
	w.restart()
	return w
}

func onMemory(t *testing.T) *world {
	s := memory.New()
	return newWorld(t, s, func() storage.Store { return s })
}

func onSQLite(t *testing.T) *world {
	path := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, sqlite.Migrate(t.Context(), path, append(webhook.Tables(), storage.Counters.Table)...))
	open := func() storage.Store {
		s, err := sqlite.Open(path, sqlite.Options{})
		require.NoError(t, err)
		return s
	}
	w := newWorld(t, open(), open)
	t.Cleanup(func() { _ = w.store.Close() })
	return w
}

// each runs a test on every store.
func each(t *testing.T, f func(t *testing.T, w *world)) {
	t.Parallel()
	for name, on := range map[string]func(*testing.T) *world{"memory": onMemory, "sqlite": onSQLite} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t, on(t)) })
	}
}

// restart is a new process: nothing is left but the store.
func (w *world) restart() {
	require.NoError(w.t, w.store.Close())
	w.store = w.reopen()
	require.NoError(w.t, w.store.Open(w.t.Context(), append(webhook.Tables(), storage.Counters.Table)...))
	w.serve(w.store)
}

func (w *world) serve(s storage.Store) {
	var older [][]byte
	for _, b := range w.older {
		older = append(older, bytes.Repeat([]byte{b}, 32))
	}
	box, err := secret.NewBox(bytes.Repeat([]byte{w.key}, 32), w.random, older...)
	require.NoError(w.t, err)
	w.svc, err = webhook.New(webhook.Config{
		Store: s, Notifier: w, Box: box, Random: w.random, Batch: w.bounds.Batch, MaxUndelivered: w.bounds.MaxUndelivered,
		Now:   func() time.Time { return w.now },
		NewID: func() string { w.ids++; return fmt.Sprintf("id-%06d", w.ids) },
		Log:   slog.New(slog.NewJSONHandler(&w.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Audit: w.record,
		CheckTenant: func(_ context.Context, tenant string) error {
			if w.known == nil {
				return nil
			}
			return w.known(tenant)
		},
	})
	require.NoError(w.t, err)
}

// record takes an act down, in the Change that it is told of.
func (w *world) record(_ context.Context, c *storage.Change, a audit.Act) error {
	require.Equal(w.t, storage.Tenant(a.Tenant), c.Partition)
	w.acts = append(w.acts, a)
	return nil
}

func (w *world) setup(tenant string) (secret string) {
	_, full, err := w.svc.Setup(w.t.Context(), tenant, "https://"+tenant+".example.com/hook", webhook.By{})
	require.NoError(w.t, err)
	return full
}

func (w *world) emit(tenant, object string, seq int64, url string, data any) storage.Row {
	row, err := webhook.NewEvent(webhook.PaymentStatusUpdate, object, seq, url, data, w.now)
	require.NoError(w.t, err)
	w.ids++
	require.NoError(w.t, storage.CommitOne(w.t.Context(), w.store, storage.Change{
		ID: fmt.Sprintf("emit-%d", w.ids), Partition: storage.Tenant(tenant), Put: []storage.Row{row},
	}))
	return row
}

func (w *world) step() int {
	n, err := w.svc.Step(w.t.Context())
	require.NoError(w.t, err)
	return n
}

func (w *world) event(tenant, id string) webhook.Event {
	e, _, ok, err := webhook.Events.One(w.t.Context(), w.store, storage.Tenant(tenant), id)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	return e
}

func (w *world) verifies(d webhook.Delivery, secret string) bool {
	return webhook.Verify(d.Header, d.Body, w.now, 0, secret) == nil
}
