package memory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Whatever order ids come in, each is found, and no other.
func TestTxLogFindsEveryID(t *testing.T) {
	t.Parallel()
	near, far := rand.New(rand.NewPCG(1, 2)), rand.New(rand.NewPCG(3, 4))
	orders := map[string]func(i int) string{
		"growing":         func(i int) string { return fmt.Sprintf("%08d", i) },
		"falling":         func(i int) string { return fmt.Sprintf("%08d", 1e7-i) },
		"nearly growing":  func(i int) string { return fmt.Sprintf("%08d-%d", i+near.IntN(200), i) },
		"random":          func(i int) string { return fmt.Sprintf("%016x-%d", far.Uint64(), i) },
		"several makers":  func(i int) string { return fmt.Sprintf("%s/%08d", []string{"a", "b", "\xc3\xa4"}[i%3], i) },
		"one far greater": func(i int) string { return fmt.Sprintf("%08d", map[bool]int{true: 1e7, false: i}[i == 7]) },
	}
	for name, id := range orders {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log txLog
			places := map[string]place{}
			for i := range 5000 {
				s := id(i)
				_, ok := log.find(s)
				require.False(t, ok, s)
				change := s
				if i%3 == 0 {
					change = "other"
				}
				at := log.write(&ledger.Tx{ID: s, Kind: ledger.KindFee, Ref: "ref"}, change, int64(i), i%4)
				log.add(s, at)
				places[s] = at
				require.Equal(t, tx{id: s, change: change, kind: ledger.KindFee, ref: "ref", at: int64(i)}, log.at(at))
			}
			for s, at := range places {
				got, ok := log.find(s)
				require.True(t, ok, s)
				require.Equal(t, at, got)
				_, ok = log.find(s + " ")
				require.False(t, ok)
			}
		})
	}
}

// Where records fill their chunks to the brim, what is cut off behind one takes
// nothing of it away.
func TestTxLogFullChunks(t *testing.T) {
	t.Parallel()
	var log txLog
	const size = 32 // a power of two, as chunks have
	id := func(i int) string { return fmt.Sprintf("%016d", i) }
	n := 3 * chunkSize / size
	for i := range n {
		start := log.end(0)
		log.write(&ledger.Tx{ID: id(i)}, id(i), 0, 0)
		log.cut(start)
		require.Equal(t, start, log.end(0))
		log.add(id(i), log.write(&ledger.Tx{ID: id(i)}, id(i), 0, 0))
	}
	require.Len(t, log.chunks, 3)
	for i := range n {
		_, ok := log.find(id(i))
		require.True(t, ok, i)
	}
}

// Records longer than a chunk, and what is cut off, disturb nothing.
func TestTxLogLongRecords(t *testing.T) {
	t.Parallel()
	var log txLog
	rng := rand.New(rand.NewPCG(5, 6))
	type made struct {
		at      place
		id      string
		entries []place
	}
	var all []made
	older := place(0)
	after := map[place]ledger.Amount{}
	for i := range 60 {
		n := []int{0, 2, 100, chunkSize / entrySize, 3 * chunkSize / entrySize}[rng.IntN(5)]
		id := fmt.Sprintf("%05d", i) + strings.Repeat("x", rng.IntN(190))
		start := log.end(0)
		if i%7 == 0 {
			log.write(&ledger.Tx{ID: "gone"}, "gone", 0, n)
			log.cut(start)
			require.Equal(t, start, log.end(0))
		}
		m := made{at: log.write(&ledger.Tx{ID: id}, "c", int64(i), n), id: id}
		for k := range n {
			p := log.enter(m.at, k, ledger.Amount(i*1e6+k), older)
			after[p], older = ledger.Amount(i*1e6+k), p
			m.entries = append(m.entries, p)
		}
		all = append(all, m)
	}
	was := place(0)
	for i, m := range all {
		require.Equal(t, tx{id: m.id, change: "c", at: int64(i)}, log.at(m.at))
		for _, p := range m.entries {
			a, b, r := log.entry(p)
			if a != after[p] || b != was || r != m.at {
				require.Fail(t, "changed", "entry at %d of record %d", p, i)
			}
			was = p
		}
	}
}

// A floor that the last of many transactions breaks leaves no trace of the others.
func TestPostIsTakenBack(t *testing.T) {
	t.Parallel()
	s := New()
	require.NoError(t, s.Open(t.Context()))
	post := func(id string, amounts ...ledger.Amount) storage.Change {
		c := storage.Change{ID: id, Partition: "tenant/p"}
		for i, a := range amounts {
			c.Post = append(c.Post, ledger.Tx{ID: fmt.Sprintf("%s/%d", id, i), Legs: []ledger.Leg{
				{Account: "chain/x", Asset: "COIN", Delta: -a}, {Account: "wallet/w", Asset: "COIN", Delta: a},
			}})
		}
		return c
	}
	require.NoError(t, s.Commit(t.Context(), post("first", 1000))[0])
	want := ledger.Amount(1000)
	for i := range 200 {
		a := ledger.Amount(i + 1)
		var funds *ledger.InsufficientFundsError
		require.ErrorAs(t, s.Commit(t.Context(), post(fmt.Sprint("bad", i), a, a, -want-3*a))[0], &funds)
		require.NoError(t, s.Commit(t.Context(), post(fmt.Sprint("good", i), a, a))[0])
		require.NoError(t, s.Commit(t.Context(), post(fmt.Sprint("good", i), a, a))[0], "there already")
		want += 2 * a
		var dup *storage.DuplicateError
		other := post(fmt.Sprint("good", i), a, a)
		other.ID = "other"
		require.ErrorAs(t, s.Commit(t.Context(), other)[0], &dup)
	}
	entries, err := s.Entries(t.Context(), "tenant/p", "wallet/w", "COIN", 0, 1000)
	require.NoError(t, err)
	require.Len(t, entries, 401)
	for i, e := range entries {
		require.Equal(t, int64(401-i), e.Seq)
		require.Equal(t, want, e.After)
		want -= e.Delta
		page, err := s.Entries(t.Context(), "tenant/p", "wallet/w", "COIN", e.Seq+1, 1)
		require.NoError(t, err)
		require.Equal(t, e, page[0])
	}
	require.Zero(t, want)
}

// The place of every record fits into 32 bits, and what one long record needs beyond.
func TestTxLogPlacesFit(t *testing.T) {
	t.Parallel()
	require.LessOrEqual(t, uint64(maxChunks+1<<10)<<chunkBits, uint64(1)<<32)
	require.Greater(t, uint64(maxChunks)<<chunkBits, uint64(1)<<31)
}
