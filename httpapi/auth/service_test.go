package auth_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

func TestTokenIsIssuedAndChecked(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a, secret := w.app()
		require.Equal(t, auth.App{
			ID: 1, Tenant: tenant, Name: "Shop", ClientID: a.ClientID, ClientType: "confidential",
			MaskedSecret: "********" + secret[len(secret)-4:], Scopes: []auth.Scope{auth.Read, auth.Write}, CreatedAt: w.now,
		}, a)
		require.Len(t, a.ClientID, 32)
		tok, err := w.Token(w.ctx, a.ClientID, secret, "")
		require.NoError(t, err)
		require.Equal(t, 3600, tok.ExpiresIn)
		require.Equal(t, "read write", tok.Scope)
		again := w.token(a, secret)
		require.NotEqual(t, tok.AccessToken, again)

		who := w.let(w.Service, tok.AccessToken)
		require.Equal(t, auth.Identity{Tenant: tenant, Client: a.ClientID, Token: who.Token, Scopes: []auth.Scope{auth.Read, auth.Write}}, who)
		require.Equal(t, who, w.let(w.Service, tok.AccessToken))
		require.NotEqual(t, who.Token, w.let(w.Service, again).Token)

		found, ok, err := w.AppByClient(w.ctx, a.ClientID)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, a, found)
		for _, unknown := range []string{"", "nobody", "\x00", strings.Repeat("x", 500)} {
			_, ok, err = w.AppByClient(w.ctx, unknown)
			require.NoError(t, err)
			require.False(t, ok)
		}
	})
}

func TestBootstrapApplication(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		n := auth.NewApp{
			Tenant: tenant, Name: "Operator", Scopes: []auth.Scope{auth.Admin, auth.Write, auth.Read, auth.Read}, Role: auth.TenantAdmin,
			ClientID: "operator", ClientSecret: "open sesame, said Ali Baba",
		}
		a, secret, err := w.CreateApp(w.ctx, n)
		require.NoError(t, err)
		require.Equal(t, "open sesame, said Ali Baba", secret)
		require.Equal(t, "********", a.MaskedSecret)
		require.Equal(t, []auth.Scope{auth.Read, auth.Write, auth.Admin}, a.Scopes)
		who := w.let(w.Service, w.token(a, secret))
		require.Equal(t, auth.TenantAdmin, who.Role)
		_, _, err = w.CreateApp(w.ctx, n)
		require.ErrorIs(t, err, auth.ErrExists)

		key, given, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Operator", Key: "the operator's own key"})
		require.NoError(t, err)
		require.Equal(t, "the operator's own key", given)
		require.Equal(t, "********", key.Masked)
		_, _, err = w.CreateKey(w.ctx, auth.NewKey{Tenant: other, Name: "Another", Key: "the operator's own key"})
		require.ErrorIs(t, err, auth.ErrExists)
	})
}

func TestAppsAndKeysBelongToTheirTenant(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a, _ := w.app()
		b, _, err := w.CreateApp(w.ctx, auth.NewApp{Tenant: other, Name: "Other"})
		require.NoError(t, err)
		require.EqualValues(t, 2, b.ID)
		got, err := w.Apps(w.ctx, tenant)
		require.NoError(t, err)
		require.Equal(t, []auth.App{a}, got)
		got, err = w.Apps(w.ctx, "nobody")
		require.NoError(t, err)
		require.Equal(t, []auth.App{}, got)
		require.ErrorIs(t, w.DeleteApp(w.ctx, other, a.ID, auth.By{}), auth.ErrNotFound)
		require.ErrorIs(t, w.DeleteApp(w.ctx, tenant, 99, auth.By{}), auth.ErrNotFound)
		require.NoError(t, w.DeleteApp(w.ctx, tenant, a.ID, auth.By{}))
		require.ErrorIs(t, w.DeleteApp(w.ctx, tenant, a.ID, auth.By{}), auth.ErrNotFound)

		k, secret, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Till", Scopes: []auth.Scope{auth.Read}, Role: auth.GlobalAdmin})
		require.NoError(t, err)
		require.Equal(t, auth.APIKey{
			ID: k.ID, Tenant: tenant, Name: "Till", Masked: k.Masked, Scopes: []auth.Scope{auth.Read}, Role: auth.GlobalAdmin, CreatedAt: w.clock(),
		}, k)
		keys, err := w.Keys(w.ctx, tenant)
		require.NoError(t, err)
		require.Equal(t, []auth.APIKey{k}, keys)
		who, err := w.CheckKey(w.ctx, secret)
		require.NoError(t, err)
		require.Equal(t, auth.Identity{
			Tenant: tenant, Client: k.ID, Token: who.Token, Scopes: []auth.Scope{auth.Read}, Role: auth.GlobalAdmin, Key: true,
		}, who)
		for _, id := range []string{"", "nobody", "\x00\xff"} {
			require.ErrorIs(t, w.DeleteKey(w.ctx, tenant, id, auth.By{}), auth.ErrNotFound)
		}
		require.ErrorIs(t, w.DeleteKey(w.ctx, other, k.ID, auth.By{}), auth.ErrNotFound)
		require.NoError(t, w.DeleteKey(w.ctx, tenant, k.ID, auth.By{}))
		_, err = w.CheckKey(w.ctx, secret)
		require.ErrorIs(t, err, auth.ErrToken)
	})
}

// A list is whole, however many pages of the store it takes.
func TestListIsWhole(t *testing.T) {
	t.Parallel()
	w := onMemory(t, func(c *auth.Config) { c.MaxApps = -1 })
	for range 1001 {
		w.app()
	}
	got, err := w.Apps(w.ctx, tenant)
	require.NoError(t, err)
	require.Len(t, got, 1001)
	require.EqualValues(t, 1001, got[1000].ID)
}

func TestExpiryIsHalfOpen(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a, secret := w.app()
		tok := w.token(a, secret)
		w.advance(time.Hour - time.Microsecond)
		w.let(w.Service, tok)
		w.advance(time.Microsecond)
		w.refused(w.Service, tok, auth.Expired)
	})
}

func TestPurge(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		a, secret := w.app()
		old := []string{w.token(a, secret), w.token(a, secret), w.token(a, secret)}
		require.NoError(t, w.Revoke(w.ctx, a.ClientID, secret, old[0]))
		w.advance(time.Hour)
		fresh := w.token(a, secret)
		purge := func(most, want int) {
			t.Helper()
			n, err := w.Purge(w.ctx, most)
			require.NoError(t, err)
			require.Equal(t, want, n)
		}
		purge(10, 0)
		w.refused(w.Service, old[0], auth.Revoked)
		w.refused(w.Service, old[1], auth.Expired)
		w.advance(time.Hour)
		purge(2, 2)
		purge(2, 1)
		purge(2, 0)
		for _, tok := range old {
			w.refused(w.Service, tok, auth.Unknown)
		}
		w.refused(w.Service, fresh, auth.Expired)
		n, err := w.store.Count(w.ctx, storage.Query{Table: auth.Tables()[1], Partition: storage.System})
		require.NoError(t, err)
		require.EqualValues(t, 1, n)
	})
}

// What a commit whose answer was lost has made is what the caller gets.
func TestLostAnswers(t *testing.T) {
	t.Parallel()
	for lose := 1; lose <= 2; lose++ {
		store := &lossy{Store: memory.New()}
		w := newWorld(t, store)
		store.lose = lose
		a, secret := w.app()
		store.lose = lose
		tok := w.token(a, secret)
		w.let(w.Service, tok)
		store.lose = lose
		_, key, err := w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "Till"})
		require.NoError(t, err)
		_, err = w.CheckKey(w.ctx, key)
		require.NoError(t, err)
		store.lose = lose
		require.NoError(t, w.Revoke(w.ctx, a.ClientID, secret, tok))
		w.refused(w.Service, tok, auth.Revoked)
		apps, err := w.Apps(w.ctx, tenant)
		require.NoError(t, err)
		require.Equal(t, []auth.App{a}, apps)
		store.lose = lose
		require.NoError(t, w.DeleteApp(w.ctx, tenant, a.ID, auth.By{}))
	}
}

// A store that fails is an error, never an answer.
func TestStoreFailureIsNoVerdict(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a, secret := w.app()
	tok := w.token(a, secret)
	require.NoError(t, w.store.Close())
	_, err := w.Check(w.ctx, tok)
	require.ErrorIs(t, err, storage.ErrClosed)
	require.NotErrorIs(t, err, auth.ErrToken)
	_, err = w.Token(w.ctx, a.ClientID, secret, "")
	require.ErrorIs(t, err, storage.ErrClosed)
	_, err = w.CheckKey(w.ctx, "12345678")
	require.ErrorIs(t, err, storage.ErrClosed)
	require.ErrorIs(t, w.Revoke(w.ctx, a.ClientID, secret, tok), storage.ErrClosed)
	_, err = w.Apps(w.ctx, tenant)
	require.ErrorIs(t, err, storage.ErrClosed)
	_, err = w.Purge(w.ctx, 1)
	require.ErrorIs(t, err, storage.ErrClosed)
	_, _, err = w.AppByClient(w.ctx, a.ClientID)
	require.ErrorIs(t, err, storage.ErrClosed)
	require.ErrorIs(t, w.DeleteApp(w.ctx, tenant, a.ID, auth.By{}), storage.ErrClosed)
	require.ErrorIs(t, w.DeleteKey(w.ctx, tenant, "k", auth.By{}), storage.ErrClosed)
}

// partial fails to read rows of one table.
type partial struct {
	storage.Store
	table string
}

func (p *partial) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if t.Name == p.table {
		return nil, io.ErrUnexpectedEOF
	}
	return p.Store.Rows(ctx, t, keys...)
}

// No application is made on a guess at what the store holds.
func TestApplicationNeedsReads(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	for _, table := range auth.Tables() {
		w.change = func(c *auth.Config) { c.Store = &partial{w.store, table.Name} }
		_, _, err := w.process().CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "x"})
		apps, listed := w.Apps(w.ctx, tenant)
		require.NoError(t, listed)
		if table.Name == "applications" || table.Name == "application_sequence" {
			require.ErrorIs(t, err, io.ErrUnexpectedEOF)
			require.Empty(t, apps)
		}
		for _, a := range apps {
			require.NoError(t, w.DeleteApp(w.ctx, tenant, a.ID, auth.By{}))
		}
	}
}

// A token that is void already is left alone: nothing is written.
func TestRevokeTwiceWritesOnce(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	a, secret := w.app()
	tok := w.token(a, secret)
	store := &counting{Store: w.store}
	w.change = func(c *auth.Config) { c.Store = store }
	s := w.process()
	for range 2 {
		require.NoError(t, s.Revoke(w.ctx, a.ClientID, secret, tok))
		w.refused(w.Service, tok, auth.Revoked)
	}
	require.NoError(t, s.Revoke(w.ctx, a.ClientID, secret, unissued(1)))
	commits := 0
	for _, asked := range store.asked {
		if asked == "commit" {
			commits++
		}
	}
	require.Equal(t, 1, commits)
}

// stuttering fails at its first read.
type stuttering struct {
	io.Reader
	failed bool
}

func (s *stuttering) Read(p []byte) (int, error) {
	if !s.failed {
		s.failed = true
		return 0, io.ErrUnexpectedEOF
	}
	return s.Reader.Read(p)
}

// Randomness that fails once and comes back makes no application without a client id.
func TestRandomnessFailsOnce(t *testing.T) {
	t.Parallel()
	w := onMemory(t, func(c *auth.Config) { c.Random = &stuttering{Reader: c.Random} })
	_, _, err := w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "x"})
	require.ErrorContains(t, err, "no randomness")
	apps, err := w.Apps(w.ctx, tenant)
	require.NoError(t, err)
	require.Empty(t, apps)
	a, secret := w.app()
	w.token(a, secret)
}

// The row of an application says whether its secret was made or chosen.
func TestApplicationRowTellsChosenSecrets(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	made, _ := w.app()
	chosen := w.chosen()
	for id, want := range map[string]string{made.ClientID: "Made:true", chosen.ClientID: "Made:false"} {
		rows, err := w.store.Rows(w.ctx, auth.Tables()[0], storage.Keys(storage.System, id)...)
		require.NoError(t, err)
		require.Len(t, rows, 1)
		require.Contains(t, fmt.Sprintf("%+v", rows[0].Value), want)
	}
}

func TestApplicationsAreNumberedOnce(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		const processes, callers, rounds = 3, 3, 4
		var mu sync.Mutex
		var ids []int64
		var wg sync.WaitGroup
		for range processes {
			s := w.process()
			for range callers {
				wg.Go(func() {
					for range rounds {
						a, _, err := s.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "Shop"})
						if err != nil {
							t.Error(err)
							return
						}
						mu.Lock()
						ids = append(ids, a.ID)
						mu.Unlock()
					}
				})
			}
		}
		wg.Wait()
		slices.Sort(ids)
		want := make([]int64, processes*callers*rounds)
		for i := range want {
			want[i] = int64(i + 1)
		}
		require.Equal(t, want, ids)

		// A number is not given out again.
		require.NoError(t, w.DeleteApp(w.ctx, tenant, ids[len(ids)-1], auth.By{}))
		a, _ := w.app()
		require.EqualValues(t, len(want)+1, a.ID)
	})
}

// Processes that start at once all bootstrap the same application: one makes it.
func TestOneOfManyBootstraps(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		n := auth.NewApp{Tenant: tenant, Name: "Operator", ClientID: "operator", ClientSecret: "open sesame, said Ali Baba"}
		var wg sync.WaitGroup
		for range 4 {
			s := w.process()
			wg.Go(func() {
				if _, _, err := s.CreateApp(w.ctx, n); err != nil && !errors.Is(err, auth.ErrExists) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		apps, err := w.Apps(w.ctx, tenant)
		require.NoError(t, err)
		require.Len(t, apps, 1)
		w.let(w.Service, w.token(apps[0], "open sesame, said Ali Baba"))
	})
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	w := onMemory(t)
	long := strings.Repeat("x", 256)
	for _, c := range []struct {
		app   auth.NewApp
		field string
	}{
		{auth.NewApp{Name: "x"}, "tenant"},
		{auth.NewApp{Tenant: long, Name: "x"}, "tenant"},
		{auth.NewApp{Tenant: "a\x00", Name: "x"}, "tenant"},
		{auth.NewApp{Tenant: tenant}, "name"},
		{auth.NewApp{Tenant: tenant, Name: " \t "}, "name"},
		{auth.NewApp{Tenant: tenant, Name: long}, "name"},
		{auth.NewApp{Tenant: tenant, Name: "a\x00b"}, "name"},
		{auth.NewApp{Tenant: tenant, Name: "a\nb"}, "name"},
		{auth.NewApp{Tenant: tenant, Name: "a\xff"}, "name"},
		{auth.NewApp{Tenant: tenant, Name: "x", Scopes: []auth.Scope{"root"}}, "scopes"},
		{auth.NewApp{Tenant: tenant, Name: "x", Scopes: []auth.Scope{"read write"}}, "scopes"},
		{auth.NewApp{Tenant: tenant, Name: "x", Scopes: []auth.Scope{""}}, "scopes"},
		{auth.NewApp{Tenant: tenant, Name: "x", Role: "king"}, "role"},
		{auth.NewApp{Tenant: tenant, Name: "x", ClientID: "a"}, "client_secret"},
		{auth.NewApp{Tenant: tenant, Name: "x", ClientSecret: "open sesame, said Ali Baba"}, "client_id"},
		{auth.NewApp{Tenant: tenant, Name: "x", ClientID: "a:b", ClientSecret: "open sesame, said Ali Baba"}, "client_id"},
		{auth.NewApp{Tenant: tenant, Name: "x", ClientID: "a b", ClientSecret: "open sesame, said Ali Baba"}, "client_id"},
		{auth.NewApp{Tenant: tenant, Name: "x", ClientID: "ä", ClientSecret: "open sesame, said Ali Baba"}, "client_id"},
		{auth.NewApp{Tenant: tenant, Name: "x", ClientID: long, ClientSecret: "open sesame, said Ali Baba"}, "client_id"},
		{auth.NewApp{Tenant: tenant, Name: "x", ClientID: "a", ClientSecret: "\x7f"}, "client_secret"},
		{auth.NewApp{Tenant: tenant, Name: "x", ClientID: "a", ClientSecret: long}, "client_secret"},
	} {
		_, _, err := w.CreateApp(w.ctx, c.app)
		bad := new(auth.InvalidError)
		require.ErrorAs(t, err, &bad, "%q", c.app.Name)
		require.Len(t, bad.Fields, 1)
		require.Contains(t, bad.Fields, c.field)
	}
	_, _, err := w.CreateKey(w.ctx, auth.NewKey{Scopes: []auth.Scope{"x"}, Role: "king", Key: "1234567"})
	bad := new(auth.InvalidError)
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Fields, 5)
	_, _, err = w.CreateKey(w.ctx, auth.NewKey{Tenant: strings.Repeat("x", 65), Name: "x"})
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Fields, "tenant")
	_, _, err = w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: strings.Repeat("x", 65)})
	require.NoError(t, err)
	_, _, err = w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: strings.Repeat("ß", 255)})
	require.NoError(t, err, "characters, not bytes")
	_, _, err = w.CreateApp(w.ctx, auth.NewApp{Tenant: strings.Repeat("x", 64), Name: "x"})
	require.NoError(t, err, "the longest id of a tenant")
}

func TestConfig(t *testing.T) {
	t.Parallel()
	good := auth.Config{Store: memory.New(), Key: key(), Now: time.Now, NewID: func() string { return "" }, Random: strings.NewReader("")}
	_, err := auth.New(good)
	require.NoError(t, err)
	for name, spoil := range map[string]func(*auth.Config){
		"store": func(c *auth.Config) { c.Store = nil }, "now": func(c *auth.Config) { c.Now = nil },
		"id": func(c *auth.Config) { c.NewID = nil }, "random": func(c *auth.Config) { c.Random = nil },
		"two": func(c *auth.Config) { c.Keys = [][]byte{key()} }, "a short one": func(c *auth.Config) { c.Key, c.Keys = nil, [][]byte{key(), {1}} },
		"no key": func(c *auth.Config) { c.Key = nil }, "short key": func(c *auth.Config) { c.Key = make([]byte, 31) },
		"life": func(c *auth.Config) { c.TokenLife = -time.Second }, "odd life": func(c *auth.Config) { c.TokenLife = 1500 * time.Millisecond },
	} {
		c := good
		spoil(&c)
		_, err := auth.New(c)
		require.Error(t, err, name)
	}
	w := onMemory(t, func(c *auth.Config) {
		c.TokenLife = 5 * time.Minute
		c.Random = strings.NewReader(strings.Repeat("r", 100))
	})
	a, secret := w.app()
	tok, err := w.Token(w.ctx, a.ClientID, secret, "")
	require.NoError(t, err)
	require.Equal(t, 300, tok.ExpiresIn)
	_, err = w.Token(w.ctx, a.ClientID, secret, "")
	require.ErrorContains(t, err, "no randomness")
	_, _, err = w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "x"})
	require.ErrorContains(t, err, "no randomness")
	_, _, err = w.CreateKey(w.ctx, auth.NewKey{Tenant: tenant, Name: "x"})
	require.ErrorContains(t, err, "no randomness")
}
