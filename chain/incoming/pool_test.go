package incoming_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

const eth chain.Network = "ETH"

// clock is a time that tests move.
type clock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *clock { return &clock{t: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = c.t.Add(d)
}

func newStore(t testing.TB) storage.Store {
	t.Helper()
	s := memory.New()
	require.NoError(t, s.Open(context.Background(), append(incoming.Tables(), storage.Tables()...)...))
	return s
}

// source derives names. It counts how often it is asked for a block of them.
type source struct {
	mu    sync.Mutex
	calls int
	name  func(n chain.Network, index uint32) chain.Address
}

func (s *source) Derive(_ context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if count > 1 {
		s.calls++
	}
	var out []chain.Derived
	for i := from; i < from+uint32(count); i++ {
		name := chain.Address(fmt.Sprintf("addr%06d", i))
		if s.name != nil {
			name = s.name(n, i)
		}
		out = append(out, chain.Derived{Address: name, Index: i, Key: chain.KeyRef(fmt.Sprintf("m/%d", i))})
	}
	return out, nil
}

func newPool(t testing.TB, s storage.Store, c *clock, src chain.AddressSource) *incoming.Pool {
	t.Helper()
	p, err := incoming.NewPool(incoming.PoolConfig{Store: s, Source: src, Now: c.Now, Networks: []chain.Network{eth}, Ahead: 20, Lease: 3})
	require.NoError(t, err)
	return p
}

func TestPool_TakeNeverDerivesWhenFilled(t *testing.T) {
	t.Parallel()
	ctx, s, c, src := context.Background(), newStore(t), newClock(), &source{}
	p := newPool(t, s, c, src)
	n, err := p.Step(ctx)
	require.NoError(t, err)
	require.Equal(t, 20, n)
	require.Equal(t, 1, src.calls)
	seen := map[chain.Address]bool{}
	for range 20 {
		d, err := p.Take(ctx, eth, "shop")
		require.NoError(t, err)
		require.False(t, seen[d.Address], "handed out twice: %s", d.Address)
		seen[d.Address] = true
		o, ok, err := p.Owner(ctx, eth, d.Address)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, "shop", o.Tenant)
		require.Equal(t, incoming.UsePayment, o.Use)
		require.Equal(t, int64(d.Index), o.Index)
		require.Equal(t, o.Index+1, o.Seq)
		require.Equal(t, string(d.Key), o.Key)
	}
	require.Equal(t, 1, src.calls, "derived though filled")
	_, err = p.Take(ctx, eth, "shop")
	require.NoError(t, err)
	require.Equal(t, 2, src.calls, "a dry directory is filled by the caller")
	_, ok, err := p.Owner(ctx, eth, "stranger")
	require.NoError(t, err)
	require.False(t, ok)
}

func TestPool_HotIsOneForAllProcesses(t *testing.T) {
	t.Parallel()
	ctx, s, c := context.Background(), newStore(t), newClock()
	var wg sync.WaitGroup
	got := make([]chain.Derived, 8)
	for i := range got {
		p := newPool(t, s, c, &source{})
		wg.Go(func() {
			d, err := p.Hot(ctx, eth, "shop")
			if err == nil {
				got[i] = d
			}
		})
	}
	wg.Wait()
	for _, d := range got {
		require.NotEmpty(t, d.Address)
		require.Equal(t, got[0], d)
	}
	p := newPool(t, s, c, &source{})
	change, err := p.Change(ctx, eth, "shop")
	require.NoError(t, err)
	other, err := p.Hot(ctx, eth, "other")
	require.NoError(t, err)
	require.NotEqual(t, got[0].Address, change.Address)
	require.NotEqual(t, got[0].Address, other.Address)
	o, _, err := p.Owner(ctx, eth, got[0].Address)
	require.NoError(t, err)
	require.Equal(t, incoming.UseHot, o.Use)
}

// forgetful commits, and sometimes loses the answer.
type forgetful struct {
	storage.Store
	mu   sync.Mutex
	n    int
	lose func(n int) bool
}

func (f *forgetful) Commit(ctx context.Context, changes ...storage.Change) []error {
	f.mu.Lock()
	f.n++
	lost := f.lose(f.n)
	f.mu.Unlock()
	errs := f.Store.Commit(ctx, changes...)
	if lost {
		for i := range errs {
			errs[i] = context.DeadlineExceeded
		}
	}
	return errs
}

func TestK03_NoAddressTwiceAcrossProcesses(t *testing.T) {
	t.Parallel()
	ctx, s, c := context.Background(), newStore(t), newClock()
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		seen = map[chain.Address]int{}
		errs []error
	)
	for i := range 6 {
		// Every process loses answers now and then.
		p := newPool(t, &forgetful{Store: s, lose: func(n int) bool { return (n+i)%5 == 0 }}, c, &source{})
		wg.Go(func() {
			for k := range 40 {
				d, err := p.Take(ctx, eth, fmt.Sprintf("tenant%d", k%2))
				mu.Lock()
				if err != nil {
					errs = append(errs, err)
				} else {
					seen[d.Address]++
				}
				mu.Unlock()
				if k%10 == 0 {
					_ = p.Fill(ctx, eth)
				}
			}
		})
	}
	wg.Wait()
	require.Empty(t, errs)
	require.Len(t, seen, 240)
	for a, n := range seen {
		require.Equal(t, 1, n, a)
	}
	requireDense(t, s)
}

// requireDense checks that the directory has every sequence once, and no index
// or address twice.
func requireDense(t *testing.T, s storage.Store) {
	t.Helper()
	rows, err := s.Find(context.Background(), storage.Query{
		Table: incoming.Addresses.Table, Partition: storage.Network(string(eth)), Limit: 100000,
		Order: []storage.Order{{Column: "seq"}},
	})
	require.NoError(t, err)
	index := map[int64]bool{}
	for i, r := range rows {
		a := incoming.Addresses.Value(r)
		require.Equal(t, int64(i+1), a.Seq)
		require.False(t, index[a.Index])
		index[a.Index] = true
	}
}

// Between a process's claim and its commit another takes what it can get, for
// the same tenant: before the claim has run out, and after.
func TestK03_SlowProcessLosesItsClaim(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, time.Minute} {
		ctx, s, c := context.Background(), newStore(t), newClock()
		quick := newPool(t, s, c, &source{})
		require.NoError(t, quick.Fill(ctx, eth))
		taken := map[chain.Address]bool{}
		slow := newPool(t, &before{Store: s, hook: func() {
			c.Advance(late)
			for range 21 {
				d, err := quick.Take(ctx, eth, "shop")
				require.NoError(t, err)
				require.False(t, taken[d.Address])
				taken[d.Address] = true
			}
		}}, c, &source{})
		d, err := slow.Take(ctx, eth, "shop")
		require.NoError(t, err)
		require.False(t, taken[d.Address], "handed out twice: %s", d.Address)
		requireDense(t, s)
	}
}

// before runs a hook once, before the first commit.
type before struct {
	storage.Store
	hook func()
}

func (b *before) Commit(ctx context.Context, changes ...storage.Change) []error {
	if h := b.hook; h != nil {
		b.hook = nil
		h()
	}
	return b.Store.Commit(ctx, changes...)
}

func TestK03_CrashWastesAndNeverReuses(t *testing.T) {
	t.Parallel()
	ctx, s, c := context.Background(), newStore(t), newClock()
	a, err := newPool(t, s, c, &source{}).Take(ctx, eth, "shop")
	require.NoError(t, err)
	// The process ends with two leased addresses in hand; the next has others.
	b, err := newPool(t, s, c, &source{}).Take(ctx, eth, "shop")
	require.NoError(t, err)
	require.GreaterOrEqual(t, b.Index, a.Index+3)
}

func TestWatched_ReadsWhatOthersAdd(t *testing.T) {
	t.Parallel()
	ctx, s, c := context.Background(), newStore(t), newClock()
	w := incoming.NewWatched(s, eth)
	p := newPool(t, s, c, &source{})
	for range 3 {
		require.NoError(t, p.Fill(ctx, eth))
		var got []chain.Address
		for range 20 {
			d, err := p.Take(ctx, eth, "shop")
			require.NoError(t, err)
			got = append(got, d.Address)
		}
		require.NoError(t, w.Sync(ctx))
		for _, a := range got {
			require.True(t, w.Contains(a))
		}
	}
	require.False(t, w.Contains("stranger"))
	require.EqualValues(t, 60, w.Len())
}

// wholeRows counts the rows that the store gives with their values.
type wholeRows struct {
	storage.Store
	n int
}

func (s *wholeRows) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	rows, err := s.Store.Find(ctx, q)
	if !q.IDs {
		s.n += len(rows)
	}
	return rows, err
}

// A process that starts learns of a long directory by its ids, and still finds an address
// that is missing, wherever it is.
func TestFP08_TheFirstLookReadsIDs(t *testing.T) {
	t.Parallel()
	const n = 12_345
	part := storage.Network("ETH")
	for _, missing := range []int64{0, 1, 4_999, 5_000, 5_001, 7_777, n - 1} {
		store := &wholeRows{Store: memory.New()}
		require.NoError(t, store.Open(t.Context(), append(incoming.Tables(), storage.Tables()...)...))
		for from := int64(1); from <= n; from += 1000 {
			c := storage.Change{ID: fmt.Sprint(from), Partition: part}
			for seq := from; seq < min(from+1000, n+1); seq++ {
				if seq != missing {
					c.Put = append(c.Put, incoming.Addresses.Row(fmt.Sprint("address-", seq), 0, time.Time{}, incoming.AddressRow{Seq: seq, Index: seq}))
				}
			}
			require.NoError(t, storage.CommitOne(t.Context(), store, c))
		}
		w := incoming.NewWatched(store, "ETH")
		err := w.Sync(t.Context())
		if missing > 0 {
			require.ErrorContains(t, err, fmt.Sprintf("lacks sequence %d:", missing))
			require.Equal(t, missing-1, w.Len())
			continue
		}
		require.NoError(t, err)
		require.Equal(t, int64(n), w.Len())
		for seq := range int64(n) {
			require.True(t, w.Contains(chain.Address(fmt.Sprint("address-", seq+1))))
		}
		require.Less(t, store.n, 5_000, "whole rows of the last page alone")
	}
}

// woken reports whether the pool has asked for its Step.
func woken(p *incoming.Pool) bool {
	select {
	case <-p.Wake():
		return true
	default:
		return false
	}
}

// A request that finds the directory dry derives what it takes and no more, and wakes who
// fills it. Requests that come meanwhile wait for it. Step fills the rest, and while a good
// part of a block is left nobody is woken.
func TestFP10_ARequestDerivesOnlyWhereThePoolIsDry(t *testing.T) {
	t.Parallel()
	ctx, s, c, src := context.Background(), newStore(t), newClock(), &source{}
	p := newPool(t, s, c, src)
	require.False(t, woken(p))
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			_, err := p.Take(ctx, eth, fmt.Sprint("shop", i))
			require.NoError(t, err)
		})
	}
	wg.Wait()
	n, err := s.Count(ctx, storage.Query{Table: incoming.Addresses.Table})
	require.NoError(t, err)
	require.EqualValues(t, 6, n, "two leases of three")
	require.True(t, woken(p))
	filled, err := p.Step(ctx)
	require.NoError(t, err)
	require.Equal(t, 20, filled)
	calls := src.calls
	take := func(times int) {
		for range times {
			_, err := p.Take(ctx, eth, "shop")
			require.NoError(t, err)
		}
	}
	take(3)
	require.False(t, woken(p), "17 of 20 are left")
	take(3)
	require.True(t, woken(p), "12 of 20 are left: a lease that is used up at once makes the next one larger")
	require.Equal(t, calls, src.calls, "nothing was derived for a request")
	filled, err = p.Step(ctx)
	require.NoError(t, err)
	require.Equal(t, 8, filled)
	filled, err = p.Step(ctx)
	require.NoError(t, err)
	require.Zero(t, filled)
}

// once derives each index at most once.
type once struct {
	source
	seen map[uint32]bool
}

func (o *once) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	for i := from; i < from+uint32(count); i++ {
		if o.seen[i] {
			return nil, fmt.Errorf("index %d is derived again", i)
		}
		o.seen[i] = true
	}
	return o.source.Derive(ctx, n, from, count)
}

// What this process derived it does not derive again, neither to hand it out nor to show
// it. Another process does, as it has only the directory's word.
func TestFP10_ADerivedAddressIsNotDerivedAgain(t *testing.T) {
	t.Parallel()
	ctx, s, c := context.Background(), newStore(t), newClock()
	p := newPool(t, s, c, &once{seen: map[uint32]bool{}})
	_, err := p.Step(ctx)
	require.NoError(t, err)
	for range 6 {
		d, err := p.Take(ctx, eth, "shop")
		require.NoError(t, err)
		wrong, err := p.Ours(ctx, eth, "shop", d.Address)
		require.NoError(t, err)
		require.Empty(t, wrong)
		wrong, err = p.Ours(ctx, eth, "another", d.Address)
		require.NoError(t, err)
		require.ErrorIs(t, wrong[d.Address], incoming.ErrNotDerived)
	}
	other := &once{seen: map[uint32]bool{}}
	_, err = newPool(t, s, c, other).Take(ctx, eth, "shop")
	require.NoError(t, err)
	require.Len(t, other.seen, 3)
}

// A free address that this process derived is edited in the store, in its key: it is
// handed out to nobody.
func TestFS02_EditedOwnAddressIsNotHandedOut(t *testing.T) {
	t.Parallel()
	ctx, s, c := context.Background(), newStore(t), newClock()
	p := newPool(t, s, c, &source{})
	_, err := p.Step(ctx)
	require.NoError(t, err)
	part := storage.Network(string(eth))
	a, row, ok, err := incoming.Addresses.One(ctx, s, part, "addr000001")
	require.NoError(t, err)
	require.True(t, ok)
	a.Key = "m/7"
	require.NoError(t, storage.CommitOne(ctx, s, storage.Change{
		ID: "edit", Partition: part, Put: []storage.Row{incoming.Addresses.Row(row.ID, row.Version, row.Due, a)},
	}))
	for range 19 {
		d, err := p.Take(ctx, eth, "shop")
		require.NoError(t, err)
		require.NotEqual(t, chain.Address("addr000001"), d.Address)
	}
}

// A network that nobody uses has few free addresses. It gets as many as were handed out, up
// to Ahead, and another process finds the same.
func TestFP10_ThePoolGrowsWithItsUse(t *testing.T) {
	t.Parallel()
	ctx, s, c := context.Background(), newStore(t), newClock()
	open := func() *incoming.Pool {
		p, err := incoming.NewPool(incoming.PoolConfig{Store: s, Source: &source{}, Now: c.Now, Networks: []chain.Network{eth}, Ahead: 100, Lease: 1})
		require.NoError(t, err)
		return p
	}
	free := func() int {
		n, err := s.Count(ctx, storage.Query{
			Table: incoming.Addresses.Table, Partition: storage.Network(string(eth)),
			Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: ""}},
		})
		require.NoError(t, err)
		return int(n)
	}
	p := open()
	n, err := p.Step(ctx)
	require.NoError(t, err)
	require.Equal(t, 32, n)
	n, err = p.Step(ctx)
	require.NoError(t, err)
	require.Zero(t, n, "it is full")
	used := 0
	for _, step := range []struct{ take, free, other int }{
		{7, 25, 25}, {1, 32, 32}, {12, 32, 32}, {30, 50, 50}, {1, 49, 49}, {40, 91, 91}, {20, 71, 100}, {24, 76, 76}, {4, 72, 100}, {150, 100, 100},
	} {
		for range step.take {
			c.Advance(2 * time.Minute) // so that no lease grows
			_, err := p.Take(ctx, eth, "shop")
			require.NoError(t, err)
			used++
		}
		_, err := p.Step(ctx)
		require.NoError(t, err)
		require.Equal(t, step.free, free(), "after %d", used)
		other := open()
		_, err = other.Step(ctx)
		require.NoError(t, err)
		require.Equal(t, step.other, free(), "another process, after %d", used)
	}
}
