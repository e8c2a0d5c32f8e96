package incoming_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
)

// sparse is a client that gives the blocks with transfers alone, and the last, as one that
// reads histories does. It lists what few it was given, and keeps one address's blocks back.
type sparse struct {
	chain.Client
	chain.Locator
	chain.Historian
	missed chain.Address
	most   int
	list   []chain.Address
	few    bool
}

func sparseOf(c chain.Client) *sparse {
	return &sparse{Client: c, Locator: c.(chain.Locator), Historian: c.(chain.Historian), most: 10}
}

func (c *sparse) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	s, err := c.Client.Scan(ctx, trail, w, limit)
	if err != nil || len(trail) == 0 {
		return s, err
	}
	last := trail[len(trail)-1-s.Rewound]
	if c.list, c.few, err = w.(chain.FewWatch).Few(ctx, c.most, last.Time); err != nil {
		return chain.Scan{}, err
	}
	slices.Sort(c.list)
	var kept []chain.ScannedBlock
	for i, b := range s.Blocks {
		b.Transfers = slices.DeleteFunc(slices.Clone(b.Transfers), func(x chain.Transfer) bool { return x.To == c.missed })
		if len(b.Transfers) > 0 || i == len(s.Blocks)-1 {
			b.Parent, last = last.Hash, b.Block
			for j := range b.Transfers {
				b.Transfers[j].Block.Parent = b.Parent
			}
			kept = append(kept, b)
		}
	}
	s.Blocks = kept
	return s, nil
}

// What is listed is what was handed out and is still watched at the time that is asked for.
func TestFN09_TheFewThatAreWatched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 1)
	c := sparseOf(w.chain.Client())
	net := w.network(w.store, c)
	w.stepOf(net)
	look := func() ([]chain.Address, bool) {
		w.mine(1)
		w.stepOf(net)
		return c.list, c.few
	}
	list, few := look()
	require.Empty(t, list, "all are free")
	require.True(t, few)
	var all []chain.Address
	for range 3 {
		all = append(all, w.address())
	}
	slices.Sort(all)
	list, few = look()
	require.Equal(t, all, list)
	require.True(t, few)
	until := func(a chain.Address, at time.Time) {
		row, r, ok, err := incoming.Addresses.One(t.Context(), w.store, storage.Network(string(eth)), string(a))
		require.NoError(t, err)
		require.True(t, ok)
		row.WatchUntil = at
		c := storage.Change{ID: "until " + string(a) + at.String(), Partition: storage.Network(string(eth)), Put: []storage.Row{incoming.Addresses.Row(string(a), r.Version, time.Time{}, row)}}
		require.NoError(t, w.store.Commit(t.Context(), c)[0])
	}
	head := w.cursor(w.store).HeadTime
	until(all[0], head.Add(-time.Millisecond))
	until(all[1], head)
	list, _ = look()
	require.Equal(t, all[1:], list, "a block of the same time may follow")
	list, _ = look()
	require.Equal(t, all[2:], list)
	until(all[0], time.Time{})
	list, _ = look()
	require.Equal(t, []chain.Address{all[0], all[2]}, list)
	c.most = 1
	_, few = look()
	require.False(t, few)
}

// Where each address that was taken counts, none is taken ahead: not by a tenant that uses them up
// quickly, nor by processes that end. Elsewhere they are.
func TestFN09_NoAddressIsTakenAhead(t *testing.T) {
	t.Parallel()
	for _, single := range []bool{true, false} {
		s, c := newStore(t), newClock()
		shown := map[chain.Address]bool{}
		for range 5 {
			p, err := incoming.NewPool(incoming.PoolConfig{Store: s, Source: &source{}, Now: c.Now, Single: map[chain.Network]bool{eth: single}})
			require.NoError(t, err)
			for range 4 {
				d, err := p.Take(t.Context(), eth, "shop")
				require.NoError(t, err)
				shown[d.Address] = true
			}
		}
		require.Len(t, shown, 20, "none is handed out twice")
		taken, err := s.Count(t.Context(), storage.Query{
			Table: incoming.Addresses.Table, Partition: storage.Network(string(eth)),
			Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: "shop"}},
		})
		require.NoError(t, err)
		require.EqualValues(t, map[bool]int{true: 20, false: 40}[single], taken)
		requireDense(t, s)
	}
}

// A fork in a gap of the trail takes back what may be on the branch that was left, and nothing
// that the network had called final: the fork is above that.
func TestFN09_AForkInAGap(t *testing.T) {
	t.Parallel()
	for _, above := range []int{5, 1} { // blocks above the one that was missed
		w := newWorld(t, eth, 3, func(c *incoming.Config, o *sim.Options) { c.MaxBlocks, o.Finality = 16, 3 })
		c := sparseOf(w.chain.Client())
		c.missed = w.address()
		net := w.network(w.store, c, func(c *incoming.Config, _ *sim.Options) { c.MaxBlocks = 16 })
		w.stepOf(net)
		tx := w.pay(c.missed, "BIG", "1")
		w.mine(1 + above)
		w.stepOf(net)
		found, err := net.Recover(t.Context(), c.missed, 1, 0, unrecorded)
		require.NoError(t, err)
		require.Equal(t, 1, found)
		w.stepOf(net)
		require.Equal(t, incoming.Final, w.one(tx).State)
		c.missed = ""
		_, err = w.chain.Reorg(1 + min(above, 1))
		require.NoError(t, err)
		w.mine(1)
		w.stepOf(net)
		require.Equal(t, incoming.Final, w.one(tx).State)
		require.Equal(t, map[bool]int{true: 1, false: 2}[above == 5], w.one(tx).Generation)
		w.requireBooks()
		require.Empty(t, w.cursor(w.store).Halted)
	}
}
