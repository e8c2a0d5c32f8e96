package reconcile_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
)

// readCount is a store that counts the queries and rows of each table that are read.
type readCount struct {
	storage.Store
	rows, queries map[string]int
}

func (s *readCount) count(t *storage.Table, n int) {
	s.rows[t.Name] += n
	s.queries[t.Name]++
}

func (s *readCount) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	rows, err := s.Store.Find(ctx, q)
	s.count(q.Table, len(rows))
	return rows, err
}

func (s *readCount) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	rows, err := s.Store.Rows(ctx, t, keys...)
	s.count(t, len(rows))
	return rows, err
}

// judged is a network of which some addresses were read at block 400 of 500, when their look comes.
type judged struct {
	*reconcile.Service
	t     *testing.T
	store *readCount
	name  chain.Network
	now   time.Time
	at    reconcile.Reading
	put   []storage.Row
	seq   int64
}

const base = int64(300) // up to where the base of an address goes that has one

func judging(t *testing.T, name chain.Network) *judged {
	t.Helper()
	world := sim.MustNew(sim.Options{Network: name, Registry: chain.MainnetRegistry(), Seed: 1})
	world.Mine(500)
	client := world.Client()
	j := &judged{
		t: t, name: name, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
		store: &readCount{Store: memory.New(), rows: map[string]int{}, queries: map[string]int{}},
	}
	require.NoError(t, j.store.Open(t.Context(), slices.Concat(reconcile.Tables(), incoming.Tables(), outgoing.Tables(), storage.Tables())...))
	first, err := client.(chain.Locator).BlockAt(t.Context(), 400)
	require.NoError(t, err)
	last, err := client.(chain.Locator).BlockAt(t.Context(), 500)
	require.NoError(t, err)
	last.Parent = first.Hash
	trail, err := incoming.NewTrail([]chain.Block{first, last})
	require.NoError(t, err)
	j.at = reconcile.Reading{At: j.now, From: 400, To: 400, Hash: first.Hash}
	j.put = append(j.put,
		incoming.Cursors.Row(incoming.CursorID, 0, time.Time{}, incoming.Cursor{Head: 500, TipRead: j.now, Trail: trail}),
		reconcile.Places.Row("place", 0, time.Time{}, reconcile.PlaceRow{Seq: 1000, FinalAt: 500}))
	j.Service, err = reconcile.New(reconcile.Config{Store: j.store, Client: client, Registry: chain.MainnetRegistry(), Now: func() time.Time { return j.now }})
	require.NoError(t, err)
	return j
}

// look has an address judged that holds so much of a currency.
func (j *judged) look(address, currency string, use incoming.Use, held string, v reconcile.LookRow) {
	j.seq++
	v.Reading = j.at
	v.Reading.Held = map[string]decimal.Decimal{currency: decimal.RequireFromString(held)}
	j.put = append(j.put,
		incoming.Addresses.Row(address, 0, time.Time{}, incoming.AddressRow{Seq: j.seq, Tenant: "shop", Use: use, Created: j.now}),
		reconcile.Looks.Row(address, 0, j.now.Add(-time.Hour), v))
}

// came stores a transfer of 0.001, and returns its id.
func (j *judged) came(address, currency string, n int, height int64) string {
	s := incoming.Sighting{
		Network: string(j.name), Tx: fmt.Sprintf("%s%06d", address, n), Generation: 1, State: incoming.Final, Address: address, Tenant: "shop",
		Currency: currency, Exact: decimal.New(1, -3), Amount: 100_000, Height: height, BlockHash: "h", FinalAt: height + 5, FirstSeen: j.now.Add(-time.Hour),
	}
	j.put = append(j.put, incoming.Sightings.Row(s.Key(), 0, time.Time{}, s))
	return s.Key()
}

// step does one look at all, and returns the row of one.
func (j *judged) step(address string) reconcile.LookRow {
	j.t.Helper()
	for part := range slices.Chunk(j.put, 5000) {
		require.NoError(j.t, storage.CommitOne(j.t.Context(), j.store, storage.Change{ID: part[0].ID, Partition: storage.Network(string(j.name)), Put: part}))
	}
	clear(j.store.rows)
	clear(j.store.queries)
	_, err := j.Step(j.t.Context())
	require.NoError(j.t, err)
	v, _, _, err := reconcile.Looks.One(j.t.Context(), j.store.Store, storage.Network(string(j.name)), address)
	require.NoError(j.t, err)
	return v
}

// Of a hot or change address that has made thousands of payouts a look reads what has come since its
// base, whatever is looked at in the same step: an address without a base, one whose base is old, and
// coins of the tenant's other addresses.
func TestFA06_ALookReadsNoHistoryOfCoins(t *testing.T) {
	t.Parallel()
	for _, use := range []incoming.Use{incoming.UseHot, incoming.UseChange} {
		j := judging(t, "BTC")
		for i := range 20_000 {
			id := j.came("H", "BTC", i, int64(100+i/100))
			j.put = append(j.put, outgoing.Coins.Row(id, 0, time.Time{}, outgoing.CoinValue{Tenant: "shop", Address: "H", Amount: 100_000, State: outgoing.CoinSpent}))
		}
		for i := range 5000 {
			id := fmt.Sprintf("other%d:0", i)
			j.put = append(j.put, outgoing.Coins.Row(id, 0, time.Time{}, outgoing.CoinValue{Tenant: "shop", Address: "X", Amount: ledger.Amount(i + 1), State: outgoing.CoinFree}))
		}
		j.came("P", "BTC", 1, 350)
		j.look("H", "BTC", use, "0", reconcile.LookRow{Height: base, Looked: j.now.Add(-15 * 24 * time.Hour)})
		j.look("P", "BTC", incoming.UsePayment, "0.001", reconcile.LookRow{})
		j.look("Q", "BTC", incoming.UseHot, "0", reconcile.LookRow{Height: 2, Looked: j.now.Add(-time.Hour)})
		require.Empty(t, j.step("H").Waits, use)
		require.Less(t, j.store.rows["sightings"], 20, use)
		require.Less(t, j.store.rows["coins"], 20, use)
		require.LessOrEqual(t, j.store.queries["sightings"], 6, use)
	}
}

// A hot address that always has something in flight is summed up, too.
func TestFA06_AnAddressThatIsNeverAtRestGetsABase(t *testing.T) {
	t.Parallel()
	j := judging(t, "BTC")
	for i := range 400 {
		id := j.came("H", "BTC", i, int64(10+i/10))
		j.put = append(j.put, outgoing.Coins.Row(id, 0, time.Time{}, outgoing.CoinValue{Tenant: "shop", Address: "H", Amount: 100_000, State: outgoing.CoinSpent}))
	}
	id := j.came("H", "BTC", 400, 300)
	j.put = append(j.put, outgoing.Coins.Row(id, 0, time.Time{}, outgoing.CoinValue{Tenant: "shop", Address: "H", Amount: 100_000, State: outgoing.CoinReserved}))
	j.look("H", "BTC", incoming.UseHot, "0", reconcile.LookRow{})
	v := j.step("H")
	require.Equal(t, string(reconcile.InFlight), v.Waits)
	require.Greater(t, v.Height, base, "the next look reads what comes above")
}

// again has the address judged once more, by another reading.
func (j *judged) again(address string, held map[string]string) reconcile.LookRow {
	j.t.Helper()
	v, row, _, err := reconcile.Looks.One(j.t.Context(), j.store.Store, storage.Network(string(j.name)), address)
	require.NoError(j.t, err)
	v.Reading = j.at
	v.Reading.Held = map[string]decimal.Decimal{}
	for currency, amount := range held {
		v.Reading.Held[currency] = decimal.RequireFromString(amount)
	}
	j.put = append(j.put, reconcile.Looks.Row(address, row.Version, j.now.Add(-time.Hour), v))
	v = j.step(address)
	j.put = nil
	return v
}

// A hot address always pays USDT, and has a base. Somebody takes its ether: that is named all the same,
// also at an address that was in use before the first look.
func TestFM03_ATheftAtABusyAddressIsNamed(t *testing.T) {
	t.Parallel()
	for _, earlier := range []bool{false, true} {
		j := judging(t, "ETH")
		j.came("H", "ETH", 1, 100)
		j.came("H", "USDTERC20", 2, 100)
		j.look("H", "ETH", incoming.UseHot, "0.001", reconcile.LookRow{Earlier: earlier})
		j.put = append(j.put, outgoing.Intents.Row("w", 0, time.Time{}, outgoing.IntentRow{
			Purpose: chain.ForWithdrawal, Tenant: "shop", Network: "ETH", Currency: "USDTERC20", From: "H", To: "out", Amount: 1000,
			State: outgoing.Signed, Attempts: 1, Updated: j.now,
		}))
		j.step("H")
		j.put = nil
		pays := func(ether string) reconcile.LookRow {
			return j.again("H", map[string]string{"ETH": ether, "USDTERC20": "0"})
		}
		require.Equal(t, string(reconcile.InFlight), pays("0.001").Waits)
		// It gets a base, as one that has done much.
		v, row, _, err := reconcile.Looks.One(t.Context(), j.store.Store, storage.Network("ETH"), "H")
		require.NoError(t, err)
		v.Height, v.Cut = base, j.now.Add(-2*time.Hour)
		for code, base := range map[string]string{"ETH": "0.001", "USDTERC20": "0.001"} {
			spot := v.Spots[code]
			spot.Base = decimal.RequireFromString(base)
			if v.Spots == nil {
				v.Spots = map[string]reconcile.Spot{}
			}
			v.Spots[code] = spot
		}
		require.NoError(t, storage.CommitOne(t.Context(), j.store, storage.Change{
			ID: "base", Partition: storage.Network("ETH"), Put: []storage.Row{reconcile.Looks.Row("H", row.Version, row.Due, v)},
		}))
		v = pays("0")
		require.Equal(t, reconcile.Missing, v.Spots["ETH"].Suspect)
		require.Zero(t, v.Height, "from all that is stored")
		pays("0")
		rows, err := j.store.Find(t.Context(), storage.Query{Table: reconcile.Differences.Table, Partition: storage.Network("ETH")})
		require.NoError(t, err)
		require.Len(t, rows, 1, "earlier: %t", earlier)
		require.Equal(t, []any{"ETH", "-0.001"}, []any{reconcile.Differences.Value(rows[0]).Currency, reconcile.Differences.Value(rows[0]).Amount.String()})
	}
}

// A hot address that always pays has sent hundreds of transactions, each of which cost a part of a unit
// less than the books say. Once they are in its base that is still no difference, and not all is read again.
func TestFA06_RoundingOfWhatIsInTheBase(t *testing.T) {
	t.Parallel()
	j := judging(t, "ETH")
	cur, err := chain.MainnetRegistry().Currency("ETH")
	require.NoError(t, err)
	for i := range 300 {
		j.came("H", "ETH", i, int64(10+i/10))
		id := fmt.Sprintf("w%03d", i)
		j.put = append(j.put,
			outgoing.Intents.Row(id, 0, time.Time{}, outgoing.IntentRow{
				Purpose: chain.ForWithdrawal, Tenant: "shop", Network: "ETH", Currency: "ETH", From: "H", To: "out", Amount: 100_000, State: outgoing.Final,
				Attempts: 1, Updated: j.now.Add(-5 * time.Hour),
			}),
			outgoing.Outcomes.Row(id, 0, time.Time{}, outgoing.Outcome{Intent: id, Amount: 100_000, State: outgoing.Final}),
			outgoing.Attempts.Row("tx"+id, 0, time.Time{}, outgoing.AttemptRow{Intent: id, Number: 1, State: outgoing.AttemptFinal}))
	}
	j.came("H", "USDTERC20", 1000, 100)
	j.put = append(j.put, outgoing.Intents.Row("w", 0, time.Time{}, outgoing.IntentRow{
		Purpose: chain.ForWithdrawal, Tenant: "shop", Network: "ETH", Currency: "USDTERC20", From: "H", To: "out", Amount: 1000,
		State: outgoing.Signed, Attempts: 1, MaxCost: 1000, Updated: j.now,
	}))
	in, out := decimal.New(300, -3), cur.Decimal(300*100_000)
	held := in.Sub(out).Add(decimal.New(150, -int32(cur.Scale)))
	require.True(t, held.IsPositive())
	j.look("H", "ETH", incoming.UseHot, held.String(), reconcile.LookRow{})
	j.step("H")
	j.put = nil
	for range 3 {
		v := j.again("H", map[string]string{"ETH": held.String(), "USDTERC20": "0"})
		require.Equal(t, string(reconcile.InFlight), v.Waits)
		require.Empty(t, v.Spots["ETH"].Suspect)
		require.Greater(t, v.Height, base-100)
	}
}

// What an earlier version has explained without a count is counted at the next look that agrees; what
// is found of those blocks later is then no difference.
func TestD17_WhatAnEarlierVersionExplainedIsCounted(t *testing.T) {
	t.Parallel()
	j := judging(t, "BTC")
	j.came("P", "BTC", 1, 100)
	j.look("P", "BTC", incoming.UsePayment, "0.003", reconcile.LookRow{Spots: map[string]reconcile.Spot{"BTC": {
		Explained: decimal.New(2, -3), Why: reconcile.Unwatched, Height: 390, At: j.now.Add(-time.Minute),
	}}})
	v := j.step("P")
	require.Empty(t, v.Waits)
	require.Equal(t, []any{true, 1, "0.002"}, []any{v.Spots["BTC"].Counted, v.Spots["BTC"].Transfers, v.Spots["BTC"].Explained.String()})
	j.put = nil
	j.came("P", "BTC", 2, 200)
	j.came("P", "BTC", 3, 200)
	v = j.again("P", map[string]string{"BTC": "0.003"})
	require.Empty(t, v.Waits)
	require.Empty(t, v.Spots["BTC"].Suspect)
	require.Equal(t, "0", v.Spots["BTC"].Explained.String())
}

// A permanent address has been swept thousands of times: what ended before its base is not read again,
// and is in the base.
func TestFA06_ALookReadsNoHistoryOfSweeps(t *testing.T) {
	t.Parallel()
	j := judging(t, "ETH")
	sweep := func(n int, state outgoing.State, updated time.Time) {
		id := fmt.Sprintf("sweep/%05d", n)
		j.put = append(j.put,
			outgoing.Intents.Row(id, 0, time.Time{}, outgoing.IntentRow{
				Purpose: chain.ForSweep, Tenant: "shop", Network: "ETH", Currency: "ETH", From: "A", To: "hot", Amount: 100_000, State: state, Attempts: 1, Updated: updated,
			}),
			outgoing.Outcomes.Row(id, 0, time.Time{}, outgoing.Outcome{Intent: id, Amount: 100_000, State: state}),
			outgoing.Attempts.Row("tx"+id, 0, time.Time{}, outgoing.AttemptRow{Intent: id, Number: 1, State: outgoing.AttemptFinal}))
	}
	for i := range 300 {
		j.came("A", "ETH", i, int64(100+i/10))
		sweep(i, outgoing.Final, j.now.Add(-time.Duration(300-i)*6*time.Hour))
	}
	j.look("A", "ETH", incoming.UsePayment, "0", reconcile.LookRow{Looked: j.now.Add(-time.Minute)})
	v := j.step("A")
	require.Empty(t, v.Waits)
	require.Empty(t, v.Spots, "what came and what left are both in the base")
	require.Greater(t, v.Height, base)
	require.True(t, v.Cut.After(j.now.Add(-6*time.Hour)))

	// One more, since.
	row, err := j.store.Store.Rows(t.Context(), reconcile.Looks.Table, storage.Keys(storage.Network("ETH"), "A")...)
	require.NoError(t, err)
	v.Reading = j.at
	v.Reading.Held = map[string]decimal.Decimal{"ETH": decimal.RequireFromString("0.001")}
	j.put = []storage.Row{reconcile.Looks.Row("A", row[0].Version, j.now.Add(-time.Hour), v)}
	j.came("A", "ETH", 1000, 399)
	j.came("A", "ETH", 1001, 399)
	sweep(1000, outgoing.Final, j.now.Add(-10*time.Minute))
	v = j.step("A")
	require.Empty(t, v.Waits)
	for _, table := range []string{"sightings", "intents", "outcomes", "attempts"} {
		require.Less(t, j.store.rows[table], 5, table)
	}
}

// More transfers become final in one block than are read at once: each address that money came to is
// looked at.
func TestFX01_OneBlockWithManyTransfers(t *testing.T) {
	t.Parallel()
	world := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Seed: 1})
	world.Mine(101)
	w := watching(t, world.Client(), 100, numbered(world))
	part := storage.Network("ETH")
	name := numbered(world)
	rows, err := w.store.Find(t.Context(), storage.Query{Table: reconcile.Looks.Table, Partition: part, Limit: 1000})
	require.NoError(t, err)
	var put []storage.Row
	for _, r := range rows { // none is due by itself
		put = append(put, reconcile.Looks.Row(r.ID, r.Version, w.now.Add(20*time.Hour), reconcile.Looks.Value(r)))
	}
	cur, row, _, err := incoming.Cursors.One(t.Context(), w.store, part, incoming.CursorID)
	require.NoError(t, err)
	cur.Head = 101
	put = append(put, incoming.Cursors.Row(incoming.CursorID, row.Version, time.Time{}, cur))
	for i := range 6010 {
		s := incoming.Sighting{
			Network: "ETH", Tx: fmt.Sprintf("tx%05d", i), Generation: 1, State: incoming.Final, Address: string(name(i / 100)), Tenant: "shop",
			Currency: "ETH", Exact: decimal.New(1, -3), Amount: 100_000, Height: 90, BlockHash: "h", FinalAt: 101, FirstSeen: w.now,
		}
		put = append(put, incoming.Sightings.Row(s.Key(), 0, time.Time{}, s))
	}
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{ID: "came", Partition: part, Put: put}))
	w.minute()
	require.Equal(t, 61, w.read())
	place, _, _, err := reconcile.Places.One(t.Context(), w.store, part, "place")
	require.NoError(t, err)
	require.EqualValues(t, 101, place.FinalAt)
}
