package seal_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/seal"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

const here = storage.Partition("tenant/here")

var (
	ctx = context.Background()
	key = seal.Key([]byte("the host's secret"))
	day = time.Date(2026, 5, 6, 7, 8, 9, 10_999, time.UTC)
)

// The servers are shared by all tests of this package.
var (
	pg, maria testenv.Shared
	databases atomic.Int64
)

func TestMain(m *testing.M) {
	code := m.Run()
	pg.Close()
	maria.Close()
	os.Exit(code)
}

// backends are a new store of each kind; those in SQL with a connection that the
// insider has.
var backends = map[string]func(t testing.TB) (storage.Store, *sqlx.DB){
	"memory": func(testing.TB) (storage.Store, *sqlx.DB) { return memory.New(), nil },
	"sqlite": func(t testing.TB) (storage.Store, *sqlx.DB) {
		file := filepath.Join(t.TempDir(), "x.db")
		require.NoError(t, sqlite.Migrate(ctx, file))
		s, err := sqlite.Open(file, sqlite.Options{})
		require.NoError(t, err)
		return s, insider(t, "sqlite", "file:"+file+"?_pragma=busy_timeout(5000)")
	},
	"postgres": func(t testing.TB) (storage.Store, *sqlx.DB) {
		server := pg.Get(t, func(t testing.TB) *testenv.Process { return testenv.Postgres(t) })
		name := fmt.Sprint("seal", databases.Add(1))
		_, err := insider(t, "pgx", server.DSN("postgres")).Exec("CREATE DATABASE " + name)
		require.NoError(t, err)
		dsn := server.DSN(name)
		require.NoError(t, postgres.Migrate(ctx, dsn, postgres.Options{}))
		s, err := postgres.Open(dsn, postgres.Options{})
		require.NoError(t, err)
		return s, insider(t, "pgx", dsn)
	},
	"mariadb": func(t testing.TB) (storage.Store, *sqlx.DB) {
		server := maria.Get(t, func(t testing.TB) *testenv.Process { return testenv.MariaDB(t) })
		name := fmt.Sprint("seal", databases.Add(1))
		_, err := insider(t, "mysql", server.MySQLDSN("test")).Exec("CREATE DATABASE " + name)
		require.NoError(t, err)
		dsn := server.MySQLDSN(name)
		require.NoError(t, mysql.Migrate(ctx, dsn, mysql.Options{}))
		s, err := mysql.Open(dsn, mysql.Options{})
		require.NoError(t, err)
		return s, insider(t, "mysql", dsn)
	},
	"redis": func(t testing.TB) (storage.Store, *sqlx.DB) {
		p := testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
		return redisstore.New(redis.NewClient(&redis.Options{Addr: p.Address()}), redisstore.Options{}).Own(), nil
	},
}

func insider(t testing.TB, driver, dsn string) *sqlx.DB {
	t.Helper()
	db, err := sqlx.Open(driver, dsn)
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func opened(t testing.TB, name string) (storage.Store, *sqlx.DB) {
	t.Helper()
	if testing.Short() && name != "memory" && name != "sqlite" {
		t.Skip("a server of its own takes seconds")
	}
	s, db := backends[name](t)
	require.NoError(t, s.Open(ctx, seal.Tables()...))
	t.Cleanup(func() { _ = s.Close() })
	return s, db
}

// pay posts one deposit.
func pay(t testing.TB, s storage.Store, n int) {
	t.Helper()
	id := fmt.Sprintf("credit/%d", n)
	require.NoError(t, storage.CommitOne(ctx, s, storage.Change{ID: id, Partition: here, Post: []ledger.Tx{{
		ID: id, Kind: ledger.KindDeposit, Ref: fmt.Sprint("payment ", n), At: day.Add(time.Duration(n) * time.Second), Legs: []ledger.Leg{
			{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -100},
			{Account: ledger.FeesPlatform, Asset: "ETH", Delta: 3},
			{Account: ledger.Wallet(fmt.Sprint("w", n%3)), Asset: "ETH", Delta: 97},
		},
	}}}))
}

func pays(t testing.TB, s storage.Store, from, to int) {
	t.Helper()
	for n := from; n <= to; n++ {
		pay(t, s, n)
	}
}

// sealAll seals until nothing is left and says how many seals that took.
func sealAll(t testing.TB, s storage.Store) (made int) {
	t.Helper()
	for {
		_, n, err := seal.Next(ctx, s, here, key, day)
		require.NoError(t, err)
		if n == 0 {
			return made
		}
		made++
	}
}

// prove is the proof, and what the ledger finds on the same way.
func prove(t testing.TB, s storage.Store, key []byte) (seal.Proof, []ledger.Finding) {
	t.Helper()
	balances, err := s.Balances(ctx, here)
	require.NoError(t, err)
	var p seal.Proof
	report, err := ledger.Verify(ledger.Books{
		Live: true, Entries: seal.Prove(ctx, s, here, balances, keysOf(key), &p),
		Balances: func(yield func(ledger.Balance, error) bool) {
			for _, b := range balances {
				if !yield(b, nil) {
					return
				}
			}
		},
	})
	require.NoError(t, err)
	return p, report.Findings
}

func clean(t testing.TB, s storage.Store, seals, entries int64) {
	t.Helper()
	p, books := prove(t, s, key)
	require.Empty(t, p.Findings)
	require.Empty(t, books)
	require.Equal(t, seals, p.Seals)
	require.Equal(t, entries, p.Entries)
}

// filled is a store with three seals over 20 deposits, and two that are not sealed.
func filled(t *testing.T, name string) (storage.Store, *sqlx.DB) {
	t.Helper()
	s, db := opened(t, name)
	from := 1
	for _, upTo := range []int{6, 13, 20} {
		pays(t, s, from, upTo)
		require.Equal(t, 1, sealAll(t, s))
		from = upTo + 1
	}
	pays(t, s, 21, 22)
	return s, db
}

// The same journal has the same seals on every backend, and the last hash is
// written down here: what was sealed by one version is proved by the next.
func TestL12_SealsAreTheSameOnEveryBackend(t *testing.T) {
	t.Parallel()
	for name := range backends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := opened(t, name)
			clean(t, s, 0, 0)
			pays(t, s, 1, 5)
			require.Equal(t, 1, sealAll(t, s))
			clean(t, s, 1, 15)
			require.Zero(t, sealAll(t, s), "nothing new")
			pays(t, s, 6, 400)
			require.Equal(t, 3, sealAll(t, s), "at most so many entries each")
			clean(t, s, 4, 1200)
			last, ok, err := seal.Newest(ctx, s, here)
			require.NoError(t, err)
			require.True(t, ok)
			require.EqualValues(t, 4, last.Number)
			require.Equal(t, "c61d90521b2ee3f24d7fc59560373adc539b92e79b9c34de04e91ad71c442db5", hex.EncodeToString(last.Hash))
			again, ok, err := seal.At(ctx, s, here, 4)
			require.NoError(t, err)
			require.True(t, ok)
			require.Equal(t, last, again)
			_, ok, err = seal.At(ctx, s, here, 5)
			require.NoError(t, err)
			require.False(t, ok)
		})
	}
}

// edit is a store in which a history reads otherwise than it was written.
type edit struct {
	storage.Store
	edit func([]ledger.Entry) []ledger.Entry
}

func (e *edit) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, max int) ([]ledger.Entry, error) {
	all, err := e.Store.Entries(ctx, p, a, asset, 0, 1<<20)
	if e.edit != nil && a == ledger.Wallet("w1") {
		all = e.edit(all)
	}
	all = slices.DeleteFunc(all, func(x ledger.Entry) bool { return before > 0 && x.Seq >= before })
	return all[:min(max, len(all))], err
}

// Whatever is done to a history in memory is found, and the first transaction of
// the seal named.
func TestL12_EveryFieldOfAnEntryInMemory(t *testing.T) {
	t.Parallel()
	inner, _ := filled(t, "memory")
	s := &edit{Store: inner}
	clean(t, s, 3, 60)
	// w1 has credit/1, 4 | 7, 10, 13 | 16, 19 | 22; newest first.
	const third = 5 // its number 3, credit/7, from the front
	at := func(f func(*ledger.Entry)) func([]ledger.Entry) []ledger.Entry {
		return func(all []ledger.Entry) []ledger.Entry { f(&all[third]); return all }
	}
	for name, c := range map[string]struct {
		edit  func([]ledger.Entry) []ledger.Entry
		fault seal.Fault
		seq   int64
		tx    string
	}{
		"account":     {at(func(e *ledger.Entry) { e.Account = ledger.Wallet("w2") }), seal.FaultEntry, 3, "credit/7"},
		"asset":       {at(func(e *ledger.Entry) { e.Asset = "ETh" }), seal.FaultEntry, 3, "credit/7"},
		"transaction": {at(func(e *ledger.Entry) { e.Tx = "credit/8" }), seal.FaultEntry, 3, "credit/8"},
		"kind":        {at(func(e *ledger.Entry) { e.Kind = ledger.KindFee }), seal.FaultEntry, 3, "credit/7"},
		"reference":   {at(func(e *ledger.Entry) { e.Ref = "payment 8" }), seal.FaultEntry, 3, "credit/7"},
		"amount":      {at(func(e *ledger.Entry) { e.Delta++ }), seal.FaultEntry, 3, "credit/7"},
		"balance":     {at(func(e *ledger.Entry) { e.After++ }), seal.FaultEntry, 3, "credit/7"},
		"time":        {at(func(e *ledger.Entry) { e.At = e.At.Add(time.Microsecond) }), seal.FaultEntry, 3, "credit/7"},
		"number":      {at(func(e *ledger.Entry) { e.Seq = 1000 }), seal.FaultGone, 3, ""},
		"deleted":     {func(all []ledger.Entry) []ledger.Entry { return slices.Delete(all, third, third+1) }, seal.FaultGone, 3, ""},
		"all deleted": {func([]ledger.Entry) []ledger.Entry { return nil }, seal.FaultGone, 1, ""},
		"deleted and closed": {func(all []ledger.Entry) []ledger.Entry {
			for i := range third {
				all[i].Seq--
			}
			return slices.Delete(all, third, third+1)
		}, seal.FaultEntry, 3, "credit/10"},
		"inserted": {func(all []ledger.Entry) []ledger.Entry {
			for i := range third {
				all[i].Seq++
			}
			e := all[third]
			e.Seq, e.Tx = e.Seq+1, "credit/7a"
			return slices.Insert(all, third, e)
		}, seal.FaultEntry, 4, "credit/7a"},
		"reordered": {func(all []ledger.Entry) []ledger.Entry {
			all[third], all[third-1] = all[third-1], all[third]
			all[third].Seq, all[third-1].Seq = all[third-1].Seq, all[third].Seq
			return all
		}, seal.FaultEntry, 3, "credit/10"},
	} {
		s.edit = c.edit
		p, _ := prove(t, s, key)
		require.NotEmpty(t, p.Findings, name)
		want := seal.Finding{Fault: c.fault, Seal: 2, Account: ledger.Wallet("w1"), Asset: "ETH", Seq: c.seq, Tx: c.tx}
		if name == "all deleted" {
			want.Seal = 1
		}
		require.Equal(t, want, p.Findings[0], name)
	}
	s.edit = func(all []ledger.Entry) []ledger.Entry { all[0].Ref = "not sealed yet"; return all }
	clean(t, s, 3, 60)
}

// Sealing goes on beside postings and other sealers, proofs beside both, and every
// entry is sealed once.
func TestL12_SealersPostersAndProofsAtOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"memory", "sqlite"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := opened(t, name)
			pay(t, s, 1000)
			var posting, sealing sync.WaitGroup
			done := make(chan struct{})
			for w := range 4 {
				posting.Go(func() {
					for i := range 50 {
						pay(t, s, w*100+i)
					}
				})
			}
			for range 3 {
				sealing.Go(func() {
					for over := false; !over; {
						select {
						case <-done:
							over = true
						default:
						}
						if _, _, err := seal.Next(ctx, s, here, key, day); err != nil {
							t.Error(err)
							return
						}
						if p, books := prove(t, s, key); len(p.Findings)+len(books) > 0 {
							t.Error(p.Findings, books)
							return
						}
					}
				})
			}
			posting.Wait()
			close(done)
			sealing.Wait()
			sealAll(t, s)
			p, _ := prove(t, s, key)
			require.EqualValues(t, 201*3, p.Entries)
			require.Greater(t, p.Seals, int64(1))
		})
	}
}

// A journal that is shorter than what was sealed of it is not sealed any further.
func TestL12_BrokenJournalIsNotSealed(t *testing.T) {
	t.Parallel()
	inner, _ := filled(t, "memory")
	s := &edit{Store: inner, edit: func(all []ledger.Entry) []ledger.Entry { return all[1:] }}
	_, _, err := seal.Next(ctx, s, here, key, day)
	require.ErrorIs(t, err, seal.ErrBroken)
	cut := shorter{Store: inner}
	_, _, err = seal.Next(ctx, cut, here, key, day)
	require.ErrorIs(t, err, seal.ErrBroken)
}

// A read that fails is an error, never a finding, and nothing is sealed after it.
func TestL12_ReadsThatFail(t *testing.T) {
	t.Parallel()
	inner, _ := filled(t, "memory")
	balances, err := inner.Balances(ctx, here)
	require.NoError(t, err)
	for name, act := range map[string]func(s storage.Store) error{
		"prove": func(s storage.Store) error {
			var p seal.Proof
			var failed error
			for _, err := range seal.Prove(ctx, s, here, balances, keysOf(key), &p) {
				failed = errors.Join(failed, err)
			}
			require.Empty(t, p.Findings)
			return failed
		},
		"newest": func(s storage.Store) error { _, _, err := seal.Newest(ctx, s, here); return err },
		"at":     func(s storage.Store) error { _, _, err := seal.At(ctx, s, here, 1); return err },
	} {
		s := &failing.Store{Store: inner}
		require.NoError(t, act(s), name)
		reads := s.Calls
		require.Positive(t, reads, name)
		for n := 1; n <= reads; n++ {
			require.ErrorIs(t, act(&failing.Store{Store: inner, FailAt: n}), failing.ErrGone, "%s, read %d of %d", name, n, reads)
		}
	}
	n := 0
	for made := 0; made == 0; { // the first that reads all it needs makes the seal
		n++
		one, entries, err := seal.Next(ctx, &failing.Store{Store: inner, FailAt: n}, here, key, day)
		if made = entries; made == 0 {
			require.ErrorIs(t, err, failing.ErrGone, "read %d", n)
			require.Zero(t, one, "read %d", n)
			continue
		}
		require.NoError(t, err)
	}
	require.Greater(t, n, 3)
	clean(t, inner, 4, 66)
}

// full is a store that takes no commit.
type full struct{ storage.Store }

func (full) Commit(_ context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i := range errs {
		errs[i] = failing.ErrGone
	}
	return errs
}

// A seal that was not stored is none.
func TestSealThatIsNotStored(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, "memory")
	_, _, err := seal.Next(ctx, full{s}, here, key, day)
	require.ErrorIs(t, err, failing.ErrGone)
	clean(t, s, 3, 60)
}

// A reader of the journal may stop at any entry: nothing more is read or told.
func TestProveStopsWithItsReader(t *testing.T) {
	t.Parallel()
	inner, _ := filled(t, "memory")
	balances, err := inner.Balances(ctx, here)
	require.NoError(t, err)
	for stop := 1; stop <= 66; stop++ {
		var p seal.Proof
		seen := 0
		for e, err := range seal.Prove(ctx, inner, here, balances, keysOf(key), &p) {
			require.NoError(t, err)
			require.NotZero(t, e.Seq)
			if seen++; seen == stop {
				break
			}
		}
		require.Equal(t, stop, seen)
		require.Empty(t, p.Findings)
	}
}

// Seals and accounts are more than one page of rows, and entries more than one seal.
func TestManySealsAndAccounts(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, "memory")
	for n := range 450 {
		id := fmt.Sprintf("many/%d", n)
		require.NoError(t, storage.CommitOne(ctx, s, storage.Change{ID: id, Partition: here, Post: []ledger.Tx{{
			ID: id, Kind: ledger.KindDeposit, At: day, Legs: []ledger.Leg{
				{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -1}, {Account: ledger.Wallet(fmt.Sprint("n", n)), Asset: "ETH", Delta: 1},
			},
		}}}))
	}
	require.Equal(t, 2, sealAll(t, s), "900 entries")
	clean(t, s, 2, 900)
	for n := 1; n <= 205; n++ {
		pay(t, s, n)
		one, entries, err := seal.Next(ctx, s, here, key, day)
		require.NoError(t, err)
		require.Equal(t, 3, entries)
		require.EqualValues(t, 2+n, one.Number)
	}
	clean(t, s, 207, 900+205*3)

	var p seal.Proof // with another key each of them is a finding, and a hundred are listed
	balances, err := s.Balances(ctx, here)
	require.NoError(t, err)
	for _, err := range seal.Prove(ctx, s, here, balances, keysOf(seal.Key([]byte("another"))), &p) {
		require.NoError(t, err)
	}
	require.Len(t, p.Findings, 100)
	require.EqualValues(t, 107, p.More)
	for i, f := range p.Findings {
		require.Equal(t, seal.Finding{Fault: seal.FaultKey, Seal: int64(i + 1)}, f)
	}
}

// A seal that was signed is of one key; one that was not is of none in particular.
func TestSignedWith(t *testing.T) {
	t.Parallel()
	s, _ := opened(t, "memory")
	require.Nil(t, seal.Key(nil))
	pay(t, s, 1)
	plain, _, err := seal.Next(ctx, s, here, nil, day)
	require.NoError(t, err)
	pay(t, s, 2)
	signed, _, err := seal.Next(ctx, s, here, key, day)
	require.NoError(t, err)
	require.Empty(t, plain.MAC)
	mac := hmac.New(sha256.New, key)
	mac.Write(signed.Hash)
	require.Equal(t, mac.Sum(nil), signed.MAC, "it signs the hash")
	forged := signed
	forged.Hash = plain.Hash
	require.False(t, forged.SignedWith(key))
	require.True(t, plain.SignedWith(key))
	require.True(t, plain.SignedWith(nil))
	require.True(t, signed.SignedWith(key))
	require.False(t, signed.SignedWith(nil))
	require.False(t, signed.SignedWith(seal.Key([]byte("another"))))
}

// shorter is a store whose balances are of earlier.
type shorter struct{ storage.Store }

func (s shorter) Balances(ctx context.Context, p storage.Partition, a ...ledger.Account) ([]ledger.Balance, error) {
	list, err := s.Store.Balances(ctx, p, a...)
	for i := range list {
		list[i].Seq = 2
	}
	return list, err
}

// BenchmarkSeal is what sealing takes of an entry, and proving it: with the ledger's
// own proof, and that alone.
func BenchmarkSeal(b *testing.B) {
	for _, name := range []string{"memory", "sqlite"} {
		b.Run(name, func(b *testing.B) {
			s, _ := opened(b, name)
			pays(b, s, 1, b.N/3+1)
			per := func(unit string, f func()) {
				start := time.Now()
				f()
				b.ReportMetric(float64(time.Since(start).Nanoseconds())/float64(b.N), unit)
			}
			b.ResetTimer()
			per("ledger-ns/entry", func() { prove(b, s, key) })
			per("seal-ns/entry", func() { sealAll(b, s) })
			per("prove-ns/entry", func() { prove(b, s, key) })
		})
	}
}

// Each seal that is missing is named, and no other.
func TestL12_MissingSealsAreNamed(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, "memory")
	require.Equal(t, 1, sealAll(t, s))
	var drop []storage.Row
	for _, n := range []int64{2, 3} {
		rows, err := s.Rows(ctx, seal.Seals.Table, storage.Keys(here, fmt.Sprintf("%016d", n))...)
		require.NoError(t, err)
		drop = append(drop, rows...)
	}
	require.NoError(t, s.Commit(ctx, storage.Change{ID: "drop", Partition: here, Drop: drop})[0])
	p, _ := prove(t, s, key)
	var missing []int64
	for _, f := range p.Findings {
		if f.Fault == seal.FaultMissing {
			missing = append(missing, f.Seal)
		}
	}
	require.Equal(t, []int64{2, 3}, missing)
	require.EqualValues(t, 2, p.Seals)
}

// What a newest seal that is missing covered is listed by account, and then by asset.
func TestL12_HeightsAreListedInOrder(t *testing.T) {
	t.Parallel()
	s, _ := filled(t, "memory")
	var legs []ledger.Leg
	want := []string{"wallet/a ZZZ", "wallet/b AAA", "wallet/b ZZZ", "wallet/c AAA"}
	for _, w := range want {
		account, asset, _ := strings.Cut(w, " ")
		legs = append(legs,
			ledger.Leg{Account: ledger.FeesPlatform, Asset: ledger.Asset(asset), Delta: -1},
			ledger.Leg{Account: ledger.Account(account), Asset: ledger.Asset(asset), Delta: 1})
	}
	for i := 0; i < len(legs); i += 2 {
		id := fmt.Sprint("more/", i)
		require.NoError(t, storage.CommitOne(ctx, s, storage.Change{ID: id, Partition: here, Post: []ledger.Tx{{
			ID: id, Kind: ledger.KindAdjustment, At: day, Legs: legs[i : i+2],
		}}}))
	}
	sealed, n, err := seal.Next(ctx, s, here, key, day)
	require.NoError(t, err)
	require.Positive(t, n)
	rows, err := s.Rows(ctx, seal.Seals.Table, storage.Keys(here, fmt.Sprintf("%016d", sealed.Number))...)
	require.NoError(t, err)
	require.NoError(t, s.Commit(ctx, storage.Change{ID: "drop", Partition: here, Drop: rows})[0])
	p, _ := prove(t, s, key)
	var got []string
	for _, f := range p.Findings {
		if f.Fault == seal.FaultHeight && slices.Contains(want, string(f.Account)+" "+string(f.Asset)) {
			got = append(got, string(f.Account)+" "+string(f.Asset))
		}
	}
	require.Equal(t, want, got)
}

// keysOf is a list of one key, or of none.
func keysOf(key []byte) [][]byte {
	if len(key) == 0 {
		return nil
	}
	return [][]byte{key}
}
