package auth_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

const (
	tenant = "t1"
	other  = "t2"
)

// world is one store, one clock, and any number of processes' Services.
type world struct {
	t     testing.TB
	ctx   context.Context
	store storage.Store
	file  string // of the store, "" = in memory
	*auth.Service

	mu     sync.Mutex
	now    time.Time
	ids    int
	seed   byte
	change func(*auth.Config)
}

func newWorld(t testing.TB, store storage.Store, change ...func(*auth.Config)) *world {
	w := &world{t: t, ctx: context.Background(), store: store, now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC), change: func(c *auth.Config) {
		for _, f := range change {
			f(c)
		}
	}}
	require.NoError(t, store.Open(w.ctx, auth.Tables()...))
	w.Service = w.process()
	return w
}

func onMemory(t testing.TB, change ...func(*auth.Config)) *world {
	return newWorld(t, memory.New(), change...)
}

func onSQLite(t testing.TB, change ...func(*auth.Config)) *world {
	file := filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, sqlite.Migrate(context.Background(), file, auth.Tables()...))
	s, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	w := newWorld(t, s, change...)
	w.file = file
	return w
}

// each runs a test on every store.
func each(t *testing.T, f func(t *testing.T, w *world)) {
	t.Parallel()
	for name, on := range map[string]func(testing.TB, ...func(*auth.Config)) *world{"memory": onMemory, "sqlite": onSQLite} {
		t.Run(name, func(t *testing.T) { t.Parallel(); f(t, on(t)) })
	}
}

// onPostgres is a world on a server of its own.
func onPostgres(t testing.TB) *world {
	dsn := testenv.Postgres(t).DSN("postgres")
	require.NoError(t, postgres.Migrate(context.Background(), dsn, postgres.Options{}, auth.Tables()...))
	store, err := postgres.Open(dsn, postgres.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return newWorld(t, store)
}

// key is what every process of a world has in common beside the store.
func key() []byte { return bytes.Repeat([]byte{7}, 32) }

// process is another Service over the same store.
func (w *world) process() *auth.Service {
	w.t.Helper()
	w.seed++
	c := auth.Config{Store: w.store, Key: key(), Now: w.clock, NewID: w.newID, Random: rand.NewChaCha8([32]byte{w.seed})}
	w.change(&c)
	s, err := auth.New(c)
	require.NoError(w.t, err)
	return s
}

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("id%06d", w.ids)
}

// app makes an application with these scopes and returns it with its secret.
func (w *world) app(scopes ...auth.Scope) (auth.App, string) {
	w.t.Helper()
	a, secret, err := w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "Shop", Scopes: scopes})
	require.NoError(w.t, err)
	return a, secret
}

// token issues a token with all scopes of an application.
func (w *world) token(a auth.App, secret string) string {
	w.t.Helper()
	tok, err := w.Token(w.ctx, a.ClientID, secret, "")
	require.NoError(w.t, err)
	return tok.AccessToken
}

// refused demands that a bearer token opens nothing, for a reason.
func (w *world) refused(s *auth.Service, bearer, reason string) {
	w.t.Helper()
	who, err := s.Check(w.ctx, bearer)
	require.ErrorIs(w.t, err, auth.ErrToken)
	why := new(auth.TokenError)
	require.ErrorAs(w.t, err, &why)
	require.Equal(w.t, reason, why.Reason)
	require.Zero(w.t, who)
}

// let demands that a bearer token opens.
func (w *world) let(s *auth.Service, bearer string) auth.Identity {
	w.t.Helper()
	who, err := s.Check(w.ctx, bearer)
	require.NoError(w.t, err)
	return who
}

// lossy makes the next commits happen and says that nobody knows.
type lossy struct {
	storage.Store
	lose int
}

func (l *lossy) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := l.Store.Commit(ctx, changes...)
	for i := range errs {
		if errs[i] == nil && l.lose > 0 {
			l.lose--
			errs[i] = context.DeadlineExceeded
		}
	}
	return errs
}

// counting notes what is asked of the store.
type counting struct {
	storage.Store
	asked []string
}

func (c *counting) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	c.asked = append(c.asked, fmt.Sprint("rows ", t.Name, " ", keys[0].Partition, " ", len(keys)))
	return c.Store.Rows(ctx, t, keys...)
}

func (c *counting) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	c.asked = append(c.asked, "find "+q.Table.Name)
	return c.Store.Find(ctx, q)
}

func (c *counting) Commit(ctx context.Context, changes ...storage.Change) []error {
	c.asked = append(c.asked, "commit")
	return c.Store.Commit(ctx, changes...)
}
