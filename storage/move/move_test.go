package move_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/move"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func openSQLite(t testing.TB, tables ...*storage.Table) storage.Store {
	t.Helper()
	file := filepath.Join(t.TempDir(), "moved.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file, append(tables, move.Positions.Table)...))
	s, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func openRedis(t testing.TB) storage.Store {
	t.Helper()
	p := testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	s := redisstore.New(redis.NewClient(&redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", p.Port)}), redisstore.Options{}).Own()
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// A busy App changes from one store to another, and again, while payments are
// confirming, withdrawals are on their way and webhooks wait: it goes on as if
// nothing had happened.
func TestU03_MovedAppGoesOn(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) storage.Store{
		"sqlite": func(t testing.TB) storage.Store { return openSQLite(t, appTables()...) },
		"redis":  openRedis,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, 11)
			waiting := s.busy()
			s.moveTo(open(t))
			s.step()
			s.moveTo(memory.New())
			s.complete(waiting)
		})
	}
}

// moveTo is a move as an operator makes it.
func (s *shop) moveTo(to storage.Store) {
	s.t.Helper()
	report, err := move.Copy(s.t.Context(), end(s.t, s.store), end(s.t, to), move.Options{})
	require.NoError(s.t, err)
	require.Empty(s.t, report.Differences)
	require.Empty(s.t, report.Findings)
	require.Equal(s.t, report.Source, report.Target)
	s.use(to)
	s.sound()
}

// parts are the partitions of the small stores below.
var parts = []storage.Partition{"network/N", "system", "tenant/a", "tenant/b"}

func small(t testing.TB, s storage.Store) move.End {
	t.Helper()
	require.NoError(t, s.Open(t.Context(), append(storagetest.Tables(), move.Positions.Table)...))
	return move.End{
		Store: s, Tables: storagetest.Tables(),
		Partitions: func(context.Context, storage.Store) iter.Seq2[storage.Partition, error] {
			return func(yield func(storage.Partition, error) bool) {
				for _, p := range parts {
					if !yield(p, nil) {
						return
					}
				}
			}
		},
		Levels: func(r storage.Row) []string {
			if r.Table == storagetest.Things.Table {
				return []string{storagetest.Things.Value(r).Group}
			}
			return nil
		},
	}
}

// fill writes what makes a move hard: versions of many, columns of every kind,
// transactions whose legs would balance in part, in an order that times belie.
func fill(t testing.TB, s storage.Store, seed uint64) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 1))
	ctx, now := t.Context(), time.Date(2026, 3, 4, 5, 6, 7, 8000, time.UTC)
	for _, p := range parts {
		for i := range 40 {
			id, versions := fmt.Sprintf("thing %02d \u00fc \"quoted\"", i), 1+r.Int64N(4)
			if i == 7 && p == storage.System {
				versions = 1300
			}
			for v := range versions {
				c := storage.Change{ID: fmt.Sprintf("%s/%d", id, v), Partition: p, Put: []storage.Row{storagetest.Things.Row(id, v, now.Add(time.Duration(r.IntN(2))*time.Duration(v)), storagetest.Thing{
					Name: fmt.Sprint("name ", i), Group: fmt.Sprint("group ", i%3), Order: int64(i) - 1<<62, Flag: i%2 == 0, At: now,
					Price: decimal.New(r.Int64(), -9), Blob: []byte{0, byte(i), 255}, Notes: []string{"<&>", "\u2028"},
				})}}
				c.Level = []storage.Level{{Name: fmt.Sprint("group ", i%3), Delta: 1, Max: 1 << 40}}
				require.NoError(t, s.Commit(ctx, c)[0])
			}
		}
		wallets := []ledger.Account{ledger.Wallet("x"), ledger.Wallet("y"), ledger.Wallet("z")}
		post := func(i int, legs ...ledger.Leg) {
			id := fmt.Sprintf("tx/%d/%d", i, len(legs))
			err := s.Commit(ctx, storage.Change{ID: "by " + id, Partition: p, Post: []ledger.Tx{{
				ID: id, Kind: ledger.KindDeposit, Ref: fmt.Sprint("ref ", i), At: now.Add(time.Duration(r.IntN(1000)-500) * time.Second), Legs: legs,
			}}})[0]
			var short *ledger.InsufficientFundsError
			if !errors.As(err, &short) {
				require.NoError(t, err)
			}
		}
		posts := 60
		if p == storage.System { // more than a page of rows and of entries
			posts = 600
			var notes []storage.Change
			for i := range 1100 {
				id := fmt.Sprint("note ", i)
				notes = append(notes, storage.Change{ID: id, Partition: p, Put: []storage.Row{storagetest.Notes.Row(id, 0, time.Time{}, storagetest.Note{N: int64(i)})}})
			}
			require.Equal(t, make([]error, len(notes)), s.Commit(ctx, notes...))
		}
		for i := range posts {
			a, b := wallets[r.IntN(3)], wallets[r.IntN(3)]
			n := ledger.Amount(1 + r.IntN(50))
			post(i, ledger.Leg{Account: ledger.Chain("N"), Asset: "ETH", Delta: -n}, ledger.Leg{Account: a, Asset: "ETH", Delta: n})
			if a != b { // two halves, each of which balances
				post(i, ledger.Leg{Account: a, Asset: "ETH", Delta: -n}, ledger.Leg{Account: b, Asset: "ETH", Delta: n},
					ledger.Leg{Account: ledger.FeesPlatform, Asset: "BTC", Delta: -n}, ledger.Leg{Account: ledger.Float, Asset: "BTC", Delta: n},
					ledger.Leg{Account: ledger.FeesNetwork, Asset: "ETH", Delta: -1}, ledger.Leg{Account: ledger.Suspense, Asset: "ETH", Delta: 1})
			}
			post(i, ledger.Leg{Account: b, Asset: "ETH", Hold: 1 + n%3})
		}
	}
}

func sameSmall(t testing.TB, a, b move.End) {
	t.Helper()
	rows, err := move.Diff(t.Context(), a, b, 5)
	require.NoError(t, err)
	require.Empty(t, rows)
}

// A stream over a file holds all that a store does, whatever backends are at its ends.
func TestExportImport(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) storage.Store{
		"memory": func(testing.TB) storage.Store { return memory.New() },
		"sqlite": func(t testing.TB) storage.Store { return openSQLite(t, storagetest.Tables()...) },
		"redis":  openRedis,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to, back := small(t, memory.New()), small(t, open(t)), small(t, memory.New())
			fill(t, from.Store, 3)
			var first, second bytes.Buffer
			sent, err := move.Export(t.Context(), from, &first, move.Options{})
			require.NoError(t, err)
			phases := map[string]bool{}
			report, err := move.Import(t.Context(), &first, to, move.Options{Progress: func(p move.Progress) { phases[p.Phase] = true }})
			require.NoError(t, err)
			require.Equal(t, sent, report.Source)
			require.Equal(t, sent, report.Target)
			require.Len(t, phases, 2)
			sameSmall(t, from, to)
			_, err = move.Export(t.Context(), to, &second, move.Options{})
			require.NoError(t, err)
			_, err = move.Import(t.Context(), &second, back, move.Options{})
			require.NoError(t, err)
			sameSmall(t, from, back)
		})
	}
}

// cut is a store whose process ends after so many commits: the last one happened,
// or not, and nobody was told.
type cut struct {
	storage.Store
	left int
	half bool
}

var errCut = errors.New("the process ended")

func (c *cut) Commit(ctx context.Context, changes ...storage.Change) []error {
	if c.left--; c.left < 0 {
		out := make([]error, len(changes))
		for i := range out {
			out[i] = errCut
		}
		if c.half {
			c.Store.Commit(ctx, changes[:len(changes)/2]...)
			c.half = false
		}
		return out
	}
	return c.Store.Commit(ctx, changes...)
}

// Ended at one commit after the other, in the middle of it, a move goes on from
// what the target holds and ends equal.
func TestU03_InterruptedMoveGoesOn(t *testing.T) {
	t.Parallel()
	from := small(t, memory.New())
	fill(t, from.Store, 5)
	var stream bytes.Buffer
	_, err := move.Export(t.Context(), from, &stream, move.Options{})
	require.NoError(t, err)
	for n := 0; ; n += 1 + n/12 { // each of the first twelve, then some
		to := small(t, memory.New())
		limited := to
		limited.Store = &cut{Store: to.Store, left: n, half: true}
		_, err := move.Import(t.Context(), bytes.NewReader(stream.Bytes()), limited, move.Options{})
		if err == nil {
			require.Greater(t, n, 10)
			break
		}
		require.ErrorIs(t, err, errCut)
		if n == 1 {
			require.ErrorIs(t, move.Unfinished(t.Context(), to.Store), move.ErrUnfinished)
		}
		if n%2 == 0 { // again by another way
			_, err = move.Import(t.Context(), bytes.NewReader(stream.Bytes()), to, move.Options{})
		} else {
			_, err = move.Copy(t.Context(), from, to, move.Options{})
		}
		require.NoError(t, err, "interrupted at commit %d", n)
		require.NoError(t, move.Unfinished(t.Context(), to.Store))
		sameSmall(t, from, to)
	}
}

// A target that is ended at every commit, over and over, still gets there.
func TestU03_InterruptedAgainAndAgain(t *testing.T) {
	t.Parallel()
	from, to := small(t, memory.New()), small(t, memory.New())
	fill(t, from.Store, 6)
	for round := range 200 {
		limited := to
		limited.Store = &cut{Store: to.Store, left: 8, half: true}
		if round > 60 {
			limited = to // the comparison reads levels by commits
		}
		_, err := move.Copy(t.Context(), from, limited, move.Options{})
		if err == nil {
			require.Greater(t, round, 3)
			sameSmall(t, from, to)
			return
		}
		require.ErrorIs(t, err, errCut)
	}
	require.Fail(t, "it never ends")
}

// What is planted in the target is found, and named.
func TestU03_PlantedDifferenceIsFound(t *testing.T) {
	t.Parallel()
	thing := func(p storage.Partition, s storage.Store, f func(*storage.Row, *storagetest.Thing)) {
		rows, err := s.Find(t.Context(), storage.Query{Table: storagetest.Things.Table, Partition: p, Limit: 1, Offset: 3})
		require.NoError(t, err)
		v := storagetest.Things.Value(rows[0])
		f(&rows[0], &v)
		rows[0].Value = v
		require.NoError(t, s.Commit(t.Context(), storage.Change{ID: "planted", Partition: p, Put: rows})[0])
	}
	post := func(s storage.Store, legs ...ledger.Leg) {
		require.NoError(t, s.Commit(t.Context(), storage.Change{ID: "planted", Partition: "tenant/b", Post: []ledger.Tx{{ID: "planted", Legs: legs}}})[0])
	}
	for name, plant := range map[string]func(s storage.Store){
		"a value": func(s storage.Store) {
			thing("tenant/a", s, func(_ *storage.Row, v *storagetest.Thing) { v.Price = v.Price.Add(decimal.New(1, -9)) })
		},
		"a version": func(s storage.Store) { thing("system", s, func(*storage.Row, *storagetest.Thing) {}) },
		"a due time": func(s storage.Store) {
			thing("system", s, func(r *storage.Row, _ *storagetest.Thing) { r.Due = r.Due.Add(time.Hour) })
		},
		"a row less": func(s storage.Store) {
			rows, err := s.Find(t.Context(), storage.Query{Table: storagetest.Things.Table, Partition: "tenant/b", Limit: 1})
			require.NoError(t, err)
			require.NoError(t, s.Commit(t.Context(), storage.Change{ID: "planted", Partition: "tenant/b", Drop: rows})[0])
		},
		"a row more": func(s storage.Store) {
			require.NoError(t, s.Commit(t.Context(), storage.Change{ID: "planted", Partition: "system", Put: []storage.Row{
				storagetest.Notes.Row("n", 0, time.Time{}, storagetest.Note{}),
			}})[0])
		},
		"money": func(s storage.Store) {
			post(s, ledger.Leg{Account: ledger.Float, Asset: "ETH", Delta: -1}, ledger.Leg{Account: ledger.Suspense, Asset: "ETH", Delta: 1})
		},
		"a hold":  func(s storage.Store) { post(s, ledger.Leg{Account: ledger.Float, Asset: "ETH", Hold: 1}) },
		"a level": func(s storage.Store) { plantLevel(t, s) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := small(t, memory.New()), small(t, memory.New())
			fill(t, from.Store, 8)
			_, err := move.Copy(t.Context(), from, to, move.Options{})
			require.NoError(t, err)
			plant(to.Store)
			report, err := move.Copy(t.Context(), from, to, move.Options{})
			require.ErrorIs(t, err, move.ErrDifferent)
			require.NotEmpty(t, report.Differences)
			if name != "a row more" || len(report.Rows) > 0 {
				require.NotEmpty(t, report.Rows)
			}
		})
	}
}

func plantLevel(t testing.TB, s storage.Store) {
	t.Helper()
	note := storagetest.Notes.Row("n", 0, time.Time{}, storagetest.Note{})
	require.NoError(t, s.Commit(t.Context(), storage.Change{
		ID: "planted", Partition: "tenant/b", Put: []storage.Row{note}, Level: []storage.Level{{Name: "group 1", Delta: -1}},
	})[0])
	note.Version = 1
	require.NoError(t, s.Commit(t.Context(), storage.Change{ID: "gone", Partition: "tenant/b", Drop: []storage.Row{note}})[0])
}

// busy is a source that somebody writes to while it is read.
type busy struct {
	storage.Store
	after int
	write func(storage.Store)
}

func (b *busy) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if b.after--; b.after == 0 {
		b.write(b.Store)
	}
	return b.Store.Find(ctx, q)
}

// A source that is written to meanwhile is never called equal, wherever that was.
func TestU03_BusySourceIsRefused(t *testing.T) {
	t.Parallel()
	writes := map[string]func(storage.Store){
		"claim": func(s storage.Store) {
			now := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
			rows, err := s.Claim(t.Context(), storage.Claim{Table: storagetest.Things.Table, Partition: "network/N", Now: now, Until: now.Add(1), Max: 1})
			require.NoError(t, err)
			require.Len(t, rows, 1)
		},
		"post": func(s storage.Store) {
			require.NoError(t, s.Commit(t.Context(), storage.Change{ID: "late", Partition: "network/N", Post: []ledger.Tx{{ID: "late", Legs: []ledger.Leg{
				{Account: ledger.Float, Asset: "ETH", Delta: -1}, {Account: ledger.Suspense, Asset: "ETH", Delta: 1},
			}}}})[0])
		},
	}
	for name, w := range writes {
		first := len(storagetest.Tables())
		for after := first + 1; after <= len(parts)*first+1; after += 3 { // between the two readings of the first partition
			from := small(t, memory.New())
			fill(t, from.Store, 9)
			from.Store = &busy{Store: from.Store, after: after, write: w}
			var stream bytes.Buffer
			_, err := move.Export(t.Context(), from, &stream, move.Options{})
			require.ErrorIs(t, err, move.ErrBusy, "%s before read %d", name, after)
			_, err = move.Import(t.Context(), &stream, small(t, memory.New()), move.Options{})
			require.ErrorIs(t, err, move.ErrStream, "no last line")
		}
	}
}

// A stream that is damaged, cut off or another's is refused, and so is a target
// that holds something already.
func TestStreamsAndTargetsThatAreRefused(t *testing.T) {
	t.Parallel()
	export := func(seed uint64) string {
		from := small(t, memory.New())
		fill(t, from.Store, seed)
		var stream bytes.Buffer
		_, err := move.Export(t.Context(), from, &stream, move.Options{})
		require.NoError(t, err)
		return stream.String()
	}
	good, other := export(1), export(2)
	lines := strings.SplitAfter(good, "\n")
	for name, bad := range map[string]string{
		"empty":        "",
		"cut in line":  good[:len(good)/2],
		"cut at line":  strings.Join(lines[:len(lines)/2], ""),
		"no last line": strings.Join(lines[:len(lines)-2], ""),
		"a bit":        good[:len(good)/2] + string(good[len(good)/2]^1) + good[len(good)/2+1:],
		"no first":     strings.Join(lines[1:], ""),
		"text":         "what is this\n",
	} {
		_, err := move.Import(t.Context(), strings.NewReader(bad), small(t, memory.New()), move.Options{})
		require.ErrorIs(t, err, move.ErrStream, name)
	}
	missing := strings.Join(append(append([]string(nil), lines[:9]...), lines[10:]...), "")
	_, err := move.Import(t.Context(), strings.NewReader(missing), small(t, memory.New()), move.Options{})
	require.ErrorIs(t, err, move.ErrDifferent, "a line that is missing")

	to := small(t, memory.New())
	_, err = move.Import(t.Context(), strings.NewReader(strings.Join(lines[:len(lines)-2], "")), to, move.Options{})
	require.ErrorIs(t, err, move.ErrStream)
	_, err = move.Import(t.Context(), strings.NewReader(other), to, move.Options{})
	require.ErrorIs(t, err, move.ErrStream, "another stream's target")

	full := small(t, memory.New())
	fill(t, full.Store, 1)
	_, err = move.Import(t.Context(), strings.NewReader(good), full, move.Options{})
	require.ErrorIs(t, err, move.ErrNotEmpty)

	few := small(t, memory.New())
	few.Tables = few.Tables[:1]
	_, err = move.Import(t.Context(), strings.NewReader(good), few, move.Options{})
	require.ErrorIs(t, err, move.ErrIncomplete, "a table less")
}

// A partition that was not named is noticed by its rows.
func TestForgottenPartition(t *testing.T) {
	t.Parallel()
	from := small(t, memory.New())
	fill(t, from.Store, 4)
	note := storagetest.Notes.Row("n", 0, time.Time{}, storagetest.Note{})
	require.NoError(t, from.Store.Commit(t.Context(), storage.Change{ID: "x", Partition: "tenant/forgotten", Put: []storage.Row{note}})[0])
	_, err := move.Export(t.Context(), from, &bytes.Buffer{}, move.Options{})
	require.ErrorIs(t, err, move.ErrIncomplete)
}
