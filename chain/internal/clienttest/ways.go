package clienttest

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// Few is a chain.FewWatch of a few addresses.
type Few struct {
	follow.Only
	Listed func() // what happens right after the first list was made
}

// Few lists them all.
func (w *Few) Few(_ context.Context, most int, _ time.Time) ([]chain.Address, bool, error) {
	list := w.Only
	if w.Listed != nil {
		do := w.Listed
		w.Listed = nil
		do()
	}
	return list, len(list) <= most, nil
}

// Begun is the trail of a client that begins now.
func Begun(t testing.TB, c chain.Client) []chain.Block {
	t.Helper()
	s, err := c.Scan(t.Context(), nil, &Few{}, 1)
	require.NoError(t, err)
	return []chain.Block{s.Blocks[0].Block}
}

// Follow scans from the last block of a trail to the head. after is the trail then.
func Follow(t testing.TB, c chain.Client, trail []chain.Block, w chain.Watch, limit int) (found []chain.Transfer, after []chain.Block) {
	t.Helper()
	for {
		s, err := c.Scan(t.Context(), trail, w, limit)
		require.NoError(t, err)
		require.Zero(t, s.Rewound)
		if len(s.Blocks) == 0 {
			return found, trail
		}
		for _, b := range s.Blocks {
			require.Equal(t, trail[len(trail)-1].Hash, b.Parent)
			found, trail = append(found, b.Transfers...), append(trail, b.Block)
		}
	}
}

// Agree follows a chain by whole blocks and by histories, and returns what both found. Not all
// blocks may be read by histories.
func Agree(t testing.TB, c chain.Client, trail []chain.Block, a ...chain.Address) []chain.Transfer {
	t.Helper()
	all, _ := Follow(t, c, trail, follow.Only(a), 10)
	some, after := Follow(t, c, trail, &Few{Only: a}, 10)
	for _, list := range [][]chain.Transfer{all, some} {
		for i := range list {
			list[i].Block.Parent = ""
		}
	}
	require.Equal(t, all, some)
	require.Less(t, int64(len(after)-len(trail)), after[len(after)-1].Height-trail[len(trail)-1].Height, "not all blocks are read")
	return some
}

// Ways follows one chain by whole blocks, by histories of addresses, and by the two in turns,
// while things happen at random, and requires that all know the same transfers in the end.
// Addresses are handed out all the time, and the watch of some ends.
type Ways struct {
	Registry   *chain.Registry
	Whole, Few chain.Client // of one node
	Seed       uint64
	Rounds     int
	// Address is the i-th address of ours.
	Address func(i int) chain.Address
	// Happen makes things happen, with payments to some addresses, and adds blocks.
	Happen func(t testing.TB, r *rand.Rand, paid []chain.Address)
	// Settle adds blocks until all is final.
	Settle func(t testing.TB)
}

// way is one reader of the chain, with a store of its own.
type way struct {
	name  string
	store storage.Store
	nets  []*incoming.Network
}

// Run returns how many transfers there are.
func (w Ways) Run(t *testing.T) int {
	t.Helper()
	r := rand.New(rand.NewPCG(w.Seed, 9)) //nolint:gosec // a test
	now := time.Now()
	var ways []*way
	for name, clients := range map[string][]chain.Client{"whole": {w.Whole}, "few": {w.Few}, "turns": {w.Whole, w.Few}} {
		y := &way{name: name, store: memory.New()}
		require.NoError(t, y.store.Open(t.Context(), append(incoming.Tables(), storage.Tables()...)...))
		for _, c := range clients {
			n, err := incoming.New(incoming.Config{Store: y.store, Client: c, Registry: w.Registry, Now: func() time.Time { return now }, MaxBlocks: 5})
			require.NoError(t, err)
			y.nets = append(y.nets, n)
		}
		ways = append(ways, y)
	}
	slices.SortFunc(ways, func(a, b *way) int { return cmp.Compare(a.name, b.name) })
	part := storage.Network(string(w.Whole.Network()))
	put := func(a chain.Address, change func(row *incoming.AddressRow)) {
		for _, y := range ways {
			row, old, ok, err := incoming.Addresses.One(t.Context(), y.store, part, string(a))
			require.NoError(t, err)
			if !ok {
				n, err := y.store.Count(t.Context(), storage.Query{Table: incoming.Addresses.Table, Partition: part})
				require.NoError(t, err)
				row = incoming.AddressRow{Seq: n + 1, Index: n, Use: incoming.UsePayment, Created: now}
			}
			change(&row)
			c := storage.Change{
				ID: fmt.Sprint("address ", a, old.Version), Partition: part,
				Put: []storage.Row{incoming.Addresses.Row(string(a), old.Version, time.Time{}, row)},
			}
			require.NoError(t, y.store.Commit(t.Context(), c)[0])
		}
	}
	tagger, _ := w.Whole.(chain.Tagger)
	free, made := []chain.Address{}, 0
	var paid []chain.Address
	hand := func() {
		if len(free) == 0 { // as the pool does: some are there before they are anybody's
			for range 3 {
				a := w.Address(made)
				made++
				if tagger != nil {
					if account, _, tagged := tagger.Untag(a); tagged {
						put(account, func(row *incoming.AddressRow) { row.Tenant, row.Use = "shop", incoming.UseAccount })
					}
				}
				put(a, func(*incoming.AddressRow) {})
				free = append(free, a)
			}
		}
		put(free[0], func(row *incoming.AddressRow) { row.Tenant = "shop" })
		paid, free = append(paid, free[0]), free[1:]
	}
	step := func(y *way) {
		n := y.nets[r.IntN(len(y.nets))]
		for {
			worked, err := n.Step(t.Context())
			require.NoError(t, err, y.name)
			if worked == 0 {
				return
			}
		}
	}
	hand()
	for _, y := range ways {
		step(y)
	}
	for range w.Rounds {
		if r.IntN(3) == 0 {
			hand()
		}
		if r.IntN(12) == 0 && len(paid) > 3 {
			tip, err := w.Whole.Tip(t.Context())
			require.NoError(t, err)
			put(paid[r.IntN(len(paid)-1)], func(row *incoming.AddressRow) {
				if row.WatchUntil.IsZero() { // else it would begin anew, where some ways have passed it
					row.WatchUntil = tip.Head.Time
				}
			})
		}
		if r.IntN(12) == 0 {
			for _, y := range ways { // what came before this is nobody's in all ways, or in none
				step(y)
			}
			put(paid[r.IntN(len(paid))], func(row *incoming.AddressRow) { row.WatchUntil = time.Time{} })
		}
		w.Happen(t, r, paid)
		for _, y := range ways {
			if r.IntN(3) > 0 {
				step(y)
			}
		}
	}
	w.Settle(t)
	var want []string
	for _, y := range ways[len(ways)-1:] { // by whole blocks
		step(y)
		want = known(t, y.store, part)
	}
	for _, y := range ways {
		step(y)
		require.Equal(t, want, known(t, y.store, part), "%s, seed %d", y.name, w.Seed)
	}
	return len(want)
}

// known lists what a store knows of the chain as it is.
func known(t testing.TB, s storage.Store, part storage.Partition) (out []string) {
	t.Helper()
	rows, err := s.Find(t.Context(), storage.Query{Table: incoming.Sightings.Table, Partition: part, Limit: 100_000})
	require.NoError(t, err)
	for _, row := range rows {
		x := incoming.Sightings.Value(row)
		if x.State != incoming.Gone {
			out = append(out, fmt.Sprintln(x.Key(), x.State, x.Height, x.BlockHash, x.Address, x.From, x.Memo, x.Currency, x.Contract, x.Exact, x.Unproven))
		}
	}
	slices.Sort(out)
	return out
}
