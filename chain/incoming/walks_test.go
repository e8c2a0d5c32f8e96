package incoming

import (
	"fmt"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// named is a client that is asked for its name alone.
type named struct{ chain.Client }

func (named) Network() chain.Network { return "ETH" }

// walking is a network with Sightings of two currencies: the first wait for the network's word.
func walking(t *testing.T, waiting, others int) (*Network, *failing.Walked) {
	t.Helper()
	reg, err := chain.NewRegistry([]chain.NetworkInfo{{Code: "ETH", Family: chain.AccountFamily, Gas: "ETH"}}, []chain.Currency{
		{Code: "ETH", Network: "ETH", Token: "ETH", Decimals: 18, Scale: 8, Confirmations: 6},
		{Code: "USDT", Network: "ETH", Token: "USDT", Contract: "usdt", Decimals: 6, Scale: 6, Confirmations: 2, WaitFinal: true},
	})
	require.NoError(t, err)
	s := &failing.Walked{Store: memory.New(), Table: Sightings.Table}
	require.NoError(t, s.Open(t.Context(), append(Tables(), storage.Tables()...)...))
	n, err := New(Config{Store: s, Client: named{}, Registry: reg, Now: time.Now})
	require.NoError(t, err)
	c := storage.Change{ID: "made", Partition: n.part, Put: []storage.Row{Cursors.Row(CursorID, 0, time.Time{}, Cursor{Head: 100, Final: 10})}}
	for i := range waiting + others {
		v := Sighting{
			Network: "ETH", Tx: fmt.Sprintf("tx%05d", i), Generation: 1, State: Included, Address: "a", Tenant: "shop", Currency: "ETH",
			Exact: decimal.New(1, 0), Amount: 1, Height: 50, BlockHash: "h", FinalAt: 55,
		}
		if i < waiting {
			v.Currency, v.FinalAt = "USDT", 51
		}
		c.Put = append(c.Put, Sightings.Row(v.Key(), 0, time.Time{}, v))
	}
	require.NoError(t, storage.CommitOne(t.Context(), s, c))
	return n, s
}

// change writes the first Sighting anew.
func change(t *testing.T, w *failing.Walked, n *Network, f func(*Sighting)) {
	t.Helper()
	v, row, _, err := Sightings.One(t.Context(), w.Store, n.part, Key("tx00000", 0))
	require.NoError(t, err)
	f(&v)
	require.NoError(t, storage.CommitOne(t.Context(), w.Store, storage.Change{
		ID: "changed", Partition: n.part, Put: []storage.Row{Sightings.Row(row.ID, row.Version, row.Due, v)},
	}))
}

// A Sighting that changes while all are read hides none of the others, and none is there twice.
func TestFR05_SightingsThatChangeWhileAllAreRead(t *testing.T) {
	t.Parallel()
	states := storage.Cond{Column: "state", Op: storage.In, Value: []State{Included, Final}}
	for name, where := range map[string][]storage.Cond{
		"by id":       {{Column: "address", Op: storage.In, Value: []string{"a"}}, states},
		"by final_at": {states, anyForward, {Column: "final_at", Op: storage.Gt, Value: int64(20)}},
	} {
		for what, f := range map[string]func(*Sighting){
			"is gone":        func(s *Sighting) { s.State = Gone },
			"is final later": func(s *Sighting) { s.FinalAt = 99 },
		} {
			n, s := walking(t, 700, 1700)
			s.Then = func() { change(t, s, n, f) }
			rows, err := n.find(t.Context(), where...)
			require.NoError(t, err)
			met := map[string]int{}
			for _, r := range rows {
				met[r.ID]++
			}
			require.Len(t, met, 2400, "%s: %s", name, what)
			require.Len(t, rows, 2400, "%s: %s", name, what)
		}
	}
}

// What waits for the network's word and goes away meanwhile leaves no other one unread.
func TestFR05_PromotesAllWhileOneGoes(t *testing.T) {
	t.Parallel()
	n, s := walking(t, settleChunk, settleChunk+200)
	cur, version, err := n.cursor(t.Context())
	require.NoError(t, err)
	s.Then = func() { change(t, s, n, func(v *Sighting) { v.State = Gone }) }
	worked, err := n.promote(t.Context(), cur, version, true)
	require.NoError(t, err)
	require.Equal(t, settleChunk+200, worked)
	left, err := s.Count(t.Context(), storage.Query{Table: Sightings.Table, Partition: n.part, Where: []storage.Cond{
		{Column: "state", Op: storage.Eq, Value: Included}, {Column: "currency", Op: storage.Eq, Value: "ETH"},
	}})
	require.NoError(t, err)
	require.Zero(t, left)
}
