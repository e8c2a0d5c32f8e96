package incoming_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// numbers writes addresses as account and number.
type numbers struct{}

func (numbers) Untag(a chain.Address) (account chain.Address, memo string, ok bool) {
	x, memo, ok := strings.Cut(string(a), "#")
	return chain.Address(x), memo, ok
}

func (numbers) Multiplex(a chain.Address, id uint32) (chain.Address, error) {
	if strings.Contains(string(a), "#") {
		return "", errors.New("not an account")
	}
	return chain.Address(fmt.Sprintf("%s#%d", a, id)), nil
}

// TestK03_NoNumberOfAnAccountIsGivenTwice: two processes on one store, several
// tenants, all at once.
func TestK03_NoNumberOfAnAccountIsGivenTwice(t *testing.T) {
	t.Parallel()
	const xrp chain.Network = "XRP"
	store, c := newStore(t), newClock()
	var pools []*incoming.Pool
	for range 2 {
		p, err := incoming.NewPool(incoming.PoolConfig{
			Store: store, Source: &source{}, Now: c.Now, NewID: uuid.NewString, Networks: []chain.Network{xrp}, Ahead: 4, Lease: 3,
			Shared: map[chain.Network]chain.Multiplexer{xrp: numbers{}},
		})
		require.NoError(t, err)
		pools = append(pools, p)
	}
	var mu sync.Mutex
	seen := map[chain.Address]string{}
	accounts := map[string]map[chain.Address]bool{}
	var wg sync.WaitGroup
	errs := make(chan error, 100)
	for i := range 24 {
		wg.Go(func() {
			tenant := fmt.Sprintf("t%d", i%3)
			for j := range 5 {
				d, err := pools[i%2].Take(t.Context(), xrp, tenant)
				if j == 0 && err == nil {
					d, err = pools[i%2].Hot(t.Context(), xrp, tenant)
				}
				if err != nil {
					errs <- err
					return
				}
				mu.Lock()
				account, _, _ := (numbers{}).Untag(d.Address)
				if accounts[tenant] == nil {
					accounts[tenant] = map[chain.Address]bool{}
				}
				accounts[tenant][account] = true
				if j > 0 && seen[d.Address] != "" {
					errs <- fmt.Errorf("%s twice", d.Address)
				}
				seen[d.Address] = tenant
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	close(errs)
	for err := range errs {
		require.NoError(t, err)
	}
	require.Len(t, accounts, 3)
	all := map[chain.Address]bool{}
	for _, a := range accounts {
		require.Len(t, a, 1, "one account per tenant")
		for x := range a {
			all[x] = true
		}
	}
	require.Len(t, all, 3, "and none of two")
	w := incoming.NewWatched(store, xrp)
	require.NoError(t, w.Sync(t.Context()))
	for a := range seen {
		require.True(t, w.Contains(a), "watched from when it was made: %s", a)
		account, _, _ := (numbers{}).Untag(a)
		require.True(t, w.Contains(account))
	}
	rows, err := store.Find(t.Context(), storage.Query{Table: incoming.Addresses.Table, Partition: storage.Network("XRP"), Limit: 1000})
	require.NoError(t, err)
	index := map[int64]bool{}
	for _, r := range rows {
		if a := incoming.Addresses.Value(r); !strings.Contains(r.ID, "#") {
			require.False(t, index[a.Index], "an account is derived once")
			index[a.Index] = true
		}
	}
}

// overtaken is a store on the way to which somebody else is faster, once.
type overtaken struct {
	storage.Store
	by func()
}

func (o *overtaken) Commit(ctx context.Context, changes ...storage.Change) []error {
	if by := o.by; by != nil && strings.HasPrefix(changes[0].ID, "multiplex/") {
		o.by = nil
		by()
	}
	return o.Store.Commit(ctx, changes...)
}

// TestK03_TwoProcessesInOneMoment: both have read the same end of the directory, for
// the same tenant, by clocks that say the same. Each gets numbers of its own.
func TestK03_TwoProcessesInOneMoment(t *testing.T) {
	t.Parallel()
	const xrp chain.Network = "XRP"
	store, c := newStore(t), newClock()
	pool := func(s storage.Store) *incoming.Pool {
		p, err := incoming.NewPool(incoming.PoolConfig{
			Store: s, Source: &source{}, Now: c.Now, NewID: uuid.NewString, Ahead: 4, Lease: 3,
			Shared: map[chain.Network]chain.Multiplexer{xrp: numbers{}},
		})
		require.NoError(t, err)
		return p
	}
	quick, way := pool(store), &overtaken{Store: store}
	slow := pool(way)
	_, err := slow.Hot(t.Context(), xrp, "a") // the account is there
	require.NoError(t, err)
	var theirs chain.Derived
	way.by = func() {
		var err error
		theirs, err = quick.Take(t.Context(), xrp, "a")
		require.NoError(t, err)
	}
	ours, err := slow.Take(t.Context(), xrp, "a")
	require.NoError(t, err)
	require.NotEmpty(t, theirs.Address)
	require.NotEqual(t, theirs.Address, ours.Address)
}

// TestFP10_AddressesOfAnAccountAreCheckedTogether: a process that has seen none of them reads
// the account once for all.
func TestFP10_AddressesOfAnAccountAreCheckedTogether(t *testing.T) {
	t.Parallel()
	const xrp chain.Network = "XRP"
	calls := map[int]int{}
	for _, n := range []int{1, 20} {
		store, c := &failing.Store{Store: newStore(t)}, newClock()
		pool := func() *incoming.Pool {
			p, err := incoming.NewPool(incoming.PoolConfig{
				Store: store, Source: &source{}, Now: c.Now, NewID: uuid.NewString, Ahead: 4, Lease: 3,
				Shared: map[chain.Network]chain.Multiplexer{xrp: numbers{}},
			})
			require.NoError(t, err)
			return p
		}
		var list []chain.Address
		for first := pool(); len(list) < n; {
			d, err := first.Take(t.Context(), xrp, "shop")
			require.NoError(t, err)
			list = append(list, d.Address)
		}
		second := pool()
		store.Calls = 0
		wrong, err := second.Ours(t.Context(), xrp, "shop", list...)
		require.NoError(t, err)
		require.Empty(t, wrong)
		calls[n] = store.Calls
	}
	require.Equal(t, calls[1], calls[20], "look-ups: %v", calls)
}
