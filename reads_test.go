package cryptopay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// An export of a long history reads each line once, by the server's own count: its cost
// grows with the lines, not with their square.
func TestFP06_ExportReadsEachLineOnce(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	dsn := onPostgres(t)
	store, err := postgres.Open(dsn, postgres.Options{})
	require.NoError(t, err)
	h := newHostOn(t, store, 1, "ETH")
	const lines = 6_000
	now := h.clock.Now()
	h.lines(names("line", lines), func(i int) storage.Activity {
		at := now.Add(-time.Duration(i) * time.Second)
		return storage.Activity{Kind: storage.ActivityPayment, Status: "waiting", Currency: "ETH", Amount: 5, Net: 5, CreatedAt: at}
	})
	all, err := h.app.Reports.Export(t.Context(), h.tenant, report.Filter{})
	require.NoError(t, err)
	n := 0
	for _, err := range all {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, lines, n)
	require.NoError(t, store.Close())

	require.Less(t, rowsRead(t, dsn, "activity"), 6*lines)
}

// A page of the history reads itself, also where few lines of a long history match: it is
// found by the payments that it is of.
func TestFP05_APageOfTheHistoryReadsItself(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	for name, server := range readServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			store := s.open()
			h := newHostOn(t, store, 1, "ETH")
			const lines, rare, reads = 6_000, 15, 20
			h.history(lines)
			c := storage.Change{ID: "rare", Partition: storage.Tenant(h.tenant)}
			for _, id := range names("0000rare", rare) { // the oldest
				at := h.clock.Now().AddDate(-1, 0, 0)
				p := payment.Payment{Status: payment.Failed, Currency: "ETH", Network: "ETH", Token: "ETH", Address: id, Scale: 8, CreatedAt: at}
				line := storage.Activity{Kind: storage.ActivityPayment, Status: "failed", Currency: "ETH", CreatedAt: at}
				c.Put = append(c.Put, payment.Payments.Row(id, 0, time.Time{}, p), storage.Activities.Row(id, 0, time.Time{}, line))
			}
			require.NoError(t, storage.CommitOne(t.Context(), store, c))
			_, err := h.app.Recount(t.Context(), h.tenant)
			require.NoError(t, err)
			require.NoError(t, store.Close())
			s.analyze("activity", "payments", "withdrawals")
			before := s.read("activity", "payments", "withdrawals")
			store = s.open()
			h.store = store
			h.restart()
			for i := range reads {
				f, want, most := report.Filter{Page: 1 + i/4, PageSize: 10}, lines+rare, 10
				switch i % 4 {
				case 1:
					f.Type = "payment"
				case 2:
					f.Status = "failed"
					want, most = rare, max(0, min(10, rare-10*(i/4)))
				case 3:
					f.Currency, f.Type = "ETH", []string{"", "payment"}[i/4%2]
					want, most = rare, max(0, min(10, rare-10*(i/4)))
				}
				page, count, err := h.app.Reports.Transactions(t.Context(), h.tenant, f)
				require.NoError(t, err)
				require.EqualValues(t, want, count)
				require.Len(t, page, most)
			}
			require.NoError(t, store.Close())
			require.Less(t, s.read("activity", "payments", "withdrawals")-before, lines, "all lines were read for a page")
		})
	}
}

// What a page of the history goes on behind is found by one index that has the rows in
// order, also where no statistics were made, as is usual on SQLite.
func TestFP06_PagesGoAlongOneIndexOnSQLite(t *testing.T) {
	t.Parallel()
	file := t.TempDir() + "/x.db"
	require.NoError(t, sqlite.Migrate(t.Context(), file))
	db := sqlx.MustOpen("sqlite", file)
	defer db.Close() //nolint:errcheck // a test's end
	for _, filter := range []string{"", "kind = 'payment' AND ", "status = 'waiting' AND ", "currency = 'ETH' AND ", "created_at >= 3 AND created_at < 9 AND "} {
		for _, behind := range []string{"created_at = 7 AND id < 'x'", "created_at < 7"} {
			var plan []struct {
				ID      int    `db:"id"`
				Parent  int    `db:"parent"`
				NotUsed int    `db:"notused"`
				Detail  string `db:"detail"`
			}
			q := fmt.Sprintf("SELECT * FROM cryptopay_activity WHERE part = 'tenant/x' AND %s%s ORDER BY created_at DESC, id DESC LIMIT 500", filter, behind)
			require.NoError(t, db.Select(&plan, "EXPLAIN QUERY PLAN "+q))
			require.Len(t, plan, 1, "it sorts: %s: %+v", q, plan)
			require.Contains(t, plan[0].Detail, "USING INDEX cryptopay_activity_i", q)
		}
	}
}

// Every poll of an EVM network asks for the open payments of its coin, over all tenants.
// It reads those, and not the payments that have ended.
func TestFP02_OpenPaymentsAreFoundByAnIndex(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	dsn := onPostgres(t)
	store, err := postgres.Open(dsn, postgres.Options{})
	require.NoError(t, err)
	h := newHostOn(t, store, 1, "ETH")
	const ended, open, polls = 6_000, 20, 20
	for part := range slices.Chunk(names("payment", ended), 200) {
		c := storage.Change{ID: "payments/" + part[0], Partition: storage.Tenant(h.tenant)}
		for _, id := range part {
			c.Put = append(c.Put, payment.Payments.Row(id, 0, time.Time{}, payment.Payment{
				Status: payment.Completed, Currency: "ETH", Network: "ETH", Address: id, CreatedAt: h.clock.Now(),
			}))
		}
		require.NoError(t, storage.CommitOne(t.Context(), store, c))
	}
	require.NoError(t, store.Close())
	before := rowsRead(t, dsn, "payments")
	store, err = postgres.Open(dsn, postgres.Options{})
	require.NoError(t, err)
	h.store = store
	h.restart()
	h.step()
	for range open {
		_, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "50", Currency: "ETH"}})
		require.NoError(t, err)
	}
	for range polls {
		h.clock.Advance(2 * time.Minute) // the list is read anew
		list, err := h.app.Payments.Open(t.Context(), "ETH")
		require.NoError(t, err)
		require.Len(t, list, open)
	}
	require.NoError(t, store.Close())
	require.Less(t, rowsRead(t, dsn, "payments")-before, ended, "all payments were read, time and again")
}

// A network whose history is long reads what is under way: the Sightings that become final,
// that a fork takes back, that wait to be forwarded, those of an address, and of these the
// newest. It does so on three indexes, where every change of a Sighting writes all that there are.
func TestFP10_SightingsAreFoundByThreeIndexes(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	require.Len(t, incoming.Sightings.Indexes, 3)
	for name, server := range readServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t)
			store := s.open()
			h := newHostOn(t, store, 1, "ETH")
			hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
			require.NoError(t, err)
			_, err = h.chains["ETH"].Fund(hot, "ETH", dec("10"))
			require.NoError(t, err)
			h.mine(60)
			const past = 10_000
			for part := range slices.Chunk(names("old", past), 500) {
				c := storage.Change{ID: "sightings/" + part[0], Partition: storage.Network("ETH")}
				for _, tx := range part {
					s := incoming.Sighting{
						Network: "ETH", Tx: tx, Generation: 1, State: incoming.Final, Address: tx, Tenant: h.tenant, Purpose: incoming.UsePayment,
						Currency: "ETH", Exact: dec("1"), Amount: 1e8, Height: 1, BlockHash: "old", FinalAt: 12, Forward: incoming.Forwarded,
					}
					c.Put = append(c.Put, incoming.Sightings.Row(s.Key(), 0, time.Time{}, s))
				}
				require.NoError(t, storage.CommitOne(t.Context(), store, c))
			}
			require.NoError(t, store.Close())
			s.analyze("sightings")
			before := s.read("sightings")
			store = s.open()
			h.store = store
			h.restart()
			p := h.orders(1, "USDTERC20")[0]
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			_, err = h.chains["ETH"].Pay(chain.Address(p.Address), "USDTERC20", usdt.Decimal(p.Due))
			require.NoError(t, err)
			h.mine(3)
			_, err = h.chains["ETH"].Reorg(2)
			require.NoError(t, err)
			h.mine(40)
			require.EqualValues(t, 1, h.count(payment.Completed))
			require.NoError(t, store.Close())
			require.Less(t, s.read("sightings")-before, past, "Sightings of the past were read, time and again")
		})
	}
}

// What is to be paid out in a currency without required confirmations asks whether a payout
// of it delivered less: it reads those that did, and not all that were ever completed.
func TestFN07_DeliveredLessIsFoundByAnIndex(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	dsn := onPostgres(t)
	store, err := postgres.Open(dsn, postgres.Options{})
	require.NoError(t, err)
	h := newHostOn(t, store, 1, "ETH")
	h.configure = func(c *cryptopay.Config) { c.Withdrawals.Confirmations = func(*chain.Currency) int64 { return 0 } }
	const ended, asked = 6_000, 20
	put := func(short bool, ids ...string) {
		t.Helper()
		for part := range slices.Chunk(ids, 200) {
			c := storage.Change{ID: "withdrawals/" + part[0], Partition: storage.Tenant(h.tenant)}
			for _, id := range part {
				w := withdrawal.Withdrawal{Status: withdrawal.Completed, Currency: "ETH", Amount: 1, Requested: 1, CreatedAt: h.clock.Now()}
				if short {
					w.Waiting, w.WaitingSince = withdrawal.WaitingDeliveredLess, h.clock.Now()
				}
				c.Put = append(c.Put, withdrawal.Withdrawals.Row(id, 0, time.Time{}, w))
			}
			require.NoError(t, storage.CommitOne(t.Context(), store, c))
		}
	}
	put(false, names("withdrawal", ended)...)
	require.NoError(t, store.Close())
	before := rowsRead(t, dsn, "withdrawals")
	store, err = postgres.Open(dsn, postgres.Options{})
	require.NoError(t, err)
	h.store = store
	h.restart()
	ask := func() (short bool) {
		for range asked {
			short, err = h.app.Withdrawals.DeliveredLess(t.Context(), h.tenant, "ETH")
			require.NoError(t, err)
		}
		return short
	}
	require.False(t, ask())
	put(true, "short")
	require.True(t, ask())
	require.NoError(t, store.Close())
	require.Less(t, rowsRead(t, dsn, "withdrawals")-before, ended, "all withdrawals were read, time and again")
}

// readServer is a database of its own, that says what it has read.
type readServer struct {
	open    func() storage.Store
	read    func(tables ...string) int
	analyze func(tables ...string) // as the server does by itself after so many rows
}

var readServers = map[string]func(t *testing.T) readServer{
	"postgres": func(t *testing.T) readServer {
		dsn := onPostgres(t)
		return readServer{
			func() storage.Store {
				s, err := postgres.Open(dsn, postgres.Options{})
				require.NoError(t, err)
				return s
			},
			func(tables ...string) (n int) {
				for _, table := range tables {
					n += rowsRead(t, dsn, table)
				}
				return n
			},
			func(tables ...string) {
				db := sqlx.MustOpen("pgx", dsn)
				defer db.Close() //nolint:errcheck // a test's end
				db.MustExec("ANALYZE cryptopay_" + strings.Join(tables, ", cryptopay_"))
			},
		}
	},
	"mariadb": func(t *testing.T) readServer {
		dsn := onMariaDB(t)
		db := sqlx.MustOpen("mysql", dsn)
		t.Cleanup(func() { _ = db.Close() })
		db.MustExec("SET GLOBAL userstat = 1")
		return readServer{
			func() storage.Store {
				s, err := mysql.Open(dsn, mysql.Options{})
				require.NoError(t, err)
				return s
			},
			func(tables ...string) (n int) {
				q, args, err := sqlx.In("SELECT coalesce(sum(rows_read), 0) FROM information_schema.table_statistics WHERE table_schema = database() AND substr(table_name, 11) IN (?)", tables)
				require.NoError(t, err)
				require.NoError(t, db.Get(&n, q, args...))
				return n
			},
			func(tables ...string) { db.MustExec("ANALYZE TABLE cryptopay_" + strings.Join(tables, ", cryptopay_")) },
		}
	},
}

// rowsRead is how many rows and index entries of a table were read by connections that
// have ended: the server adds their counts up when they do.
func rowsRead(t *testing.T, dsn, table string) (n int) {
	t.Helper()
	db := sqlx.MustOpen("pgx", dsn)
	defer db.Close() //nolint:errcheck // a test's end
	require.Eventually(t, func() bool {
		var others int
		err := db.Get(&others, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cryptopay' AND datname = current_database()")
		return err == nil && others == 0
	}, time.Minute, 10*time.Millisecond)
	require.NoError(t, db.Get(&n, "SELECT sum(idx_tup_read) + max(seq_tup_read) FROM pg_stat_user_indexes JOIN pg_stat_user_tables USING (relname) WHERE relname = 'cryptopay_"+table+"'"))
	return n
}
