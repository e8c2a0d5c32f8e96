package auth_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// lastMinute calls then once something was counted.
type lastMinute struct {
	storage.Store
	then func()
}

func (s *lastMinute) Count(ctx context.Context, q storage.Query) (int64, error) {
	n, err := s.Store.Count(ctx, q)
	if then := s.then; then != nil {
		s.then = nil
		then()
	}
	return n, err
}

// TestFA08_ApplicationsAreBounded: a tenant has no more applications than is configured, whoever
// makes them. One that is deleted makes room, and other tenants have their own.
func TestFA08_ApplicationsAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ set, most int }{"set": {3, 3}, "default": {0, 100}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := onMemory(t, func(a *auth.Config) { a.MaxApps = c.set })
			create := func(tenant string) (auth.App, error) {
				a, _, err := w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "Till"})
				return a, err
			}
			refused := func() {
				_, err := create(tenant)
				var bad *auth.InvalidError
				require.ErrorAs(t, err, &bad)
				require.Equal(t, map[string][]string{"name": {fmt.Sprintf("is of one application too many: an account may have %d", c.most)}}, bad.Fields)
			}
			first, err := create(tenant)
			require.NoError(t, err)
			for range c.most - 1 {
				_, err := create(tenant)
				require.NoError(t, err)
			}
			refused()
			_, err = create(other)
			require.NoError(t, err)
			refused()
			require.NoError(t, w.DeleteApp(w.ctx, tenant, first.ID, auth.By{}))
			_, err = create(tenant)
			require.NoError(t, err)
			refused()
			apps, err := w.Apps(w.ctx, tenant)
			require.NoError(t, err)
			require.Len(t, apps, c.most)
		})
	}
	unbounded := onMemory(t, func(a *auth.Config) { a.MaxApps = -1 })
	for range 130 {
		_, _, err := unbounded.CreateApp(unbounded.ctx, auth.NewApp{Tenant: tenant, Name: "Till"})
		require.NoError(t, err)
	}
}

// TestFA08_ApplicationsAreBoundedOverProcesses: two processes that make the last one at the same
// moment do not both make it.
func TestFA08_ApplicationsAreBoundedOverProcesses(t *testing.T) {
	t.Parallel()
	store := &lastMinute{Store: memory.New()}
	w := newWorld(t, store, func(a *auth.Config) { a.MaxApps = 2 })
	beside := w.process()
	for range 2 {
		a, _ := w.app()
		require.NoError(t, w.DeleteApp(w.ctx, tenant, a.ID, auth.By{}))
	}
	w.app()
	var besides error
	store.then = func() { _, _, besides = beside.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "Beside"}) }
	_, _, err := w.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "Till"})
	require.NoError(t, besides)
	require.ErrorContains(t, err, "one application too many")
	apps, err := w.Apps(w.ctx, tenant)
	require.NoError(t, err)
	require.Len(t, apps, 2)
}

// TestFA08_ApplicationsAreBoundedWhenManyAreMade: by several processes at once.
func TestFA08_ApplicationsAreBoundedWhenManyAreMade(t *testing.T) {
	t.Parallel()
	w := onMemory(t, func(a *auth.Config) { a.MaxApps = 3 })
	var all sync.WaitGroup
	for range 4 {
		process := w.process()
		all.Go(func() {
			for range 4 {
				_, _, _ = process.CreateApp(w.ctx, auth.NewApp{Tenant: tenant, Name: "Till"})
			}
		})
	}
	all.Wait()
	apps, err := w.Apps(w.ctx, tenant)
	require.NoError(t, err)
	require.Len(t, apps, 3)
}
