package cryptopay_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// BenchmarkCost counts what Postgres does for a forwarded token payment and for an expired
// payment: go test -run '^$' -bench Cost -benchtime 1x -v .
// A forwarded payment is created, paid with a token, confirmed, swept to the hot address
// with a top-up of gas, completed, and its webhooks are delivered. All figures are counts
// of the server, so that they do not depend on the machine or its load. "alone" takes one
// payment after the other; "together" takes all in one block. What the same blocks cost
// without a payment is subtracted.
func BenchmarkCost(b *testing.B) {
	b.Run("forwarded alone", func(b *testing.B) { costOfForwarding(b, 10, 1) })
	b.Run("forwarded together", func(b *testing.B) { costOfForwarding(b, 1, 200) })
	b.Run("expired", func(b *testing.B) { costOfExpiry(b, 2000) })
}

// blocks is how many blocks a payment of the benchmark gets: more than it takes to be
// completed and delivered.
const blocks = 40

func costOfForwarding(b *testing.B, rounds, each int) {
	for range b.N {
		m, h := newMeter(b)
		hot, err := h.app.Hot(b.Context(), "ETH", h.tenant)
		require.NoError(b, err)
		_, err = h.chains["ETH"].Fund(hot, "ETH", dec("10"))
		require.NoError(b, err)
		usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
		require.NoError(b, err)
		round := func(n int) {
			for _, p := range h.orders(n, "USDTERC20") {
				_, err := h.chains["ETH"].Pay(chain.Address(p.Address), "USDTERC20", usdt.Decimal(p.Due))
				require.NoError(b, err)
			}
			h.mine(blocks)
		}
		round(1) // the first one makes the tenant's rows
		idle := m.measure(h, func() {
			for range rounds {
				round(0)
			}
		})
		used := m.measure(h, func() {
			for range rounds {
				round(each)
			}
		})
		require.EqualValues(b, rounds*each+1, h.count(payment.Completed))
		require.EqualValues(b, rounds*each+1, m.one("SELECT count(*) FROM cryptopay_sweeps WHERE state = 'done'"))
		require.Zero(b, m.one("SELECT count(*) FROM cryptopay_events WHERE due > 0"))
		m.report(b, used.minus(idle), float64(rounds*each), "payment")
		require.NoError(b, h.store.Close())
	}
}

func costOfExpiry(b *testing.B, n int) {
	for range b.N {
		m, h := newMeter(b)
		h.orders(n, "ETH")
		used := m.measure(h, func() {
			h.clock.Advance(25 * time.Hour)
			h.chains["ETH"].Mine(1)
			h.step()
		})
		require.EqualValues(b, n, h.count(payment.Expired))
		require.Zero(b, m.one("SELECT count(*) FROM cryptopay_events WHERE due > 0"))
		m.report(b, used, float64(n)/1000, "1000")
		require.NoError(b, h.store.Close())
	}
}

// meter reads the counters of a Postgres.
type meter struct {
	t      testing.TB
	db     *sqlx.DB // of the store
	server *sqlx.DB // another one: what is asked there is not counted
	dsn    string
}

// newMeter is a server, and a host on it whose tenant gets webhooks. Nothing is vacuumed
// and no checkpoint comes, so that counts depend on what is done alone.
func newMeter(b *testing.B) (*meter, *host) {
	b.Helper()
	server := testenv.Postgres(b, "shared_preload_libraries=pg_stat_statements", "autovacuum=off", "checkpoint_timeout=1d", "max_wal_size=20GB")
	m := &meter{b, sqlx.MustOpen("pgx", server.DSN("cost")), sqlx.MustOpen("pgx", server.DSN("postgres")), server.DSN("cost")}
	b.Cleanup(func() { _, _ = m.db.Close(), m.server.Close() })
	m.server.MustExec("CREATE EXTENSION pg_stat_statements")
	m.server.MustExec("CREATE DATABASE cost")
	require.NoError(b, postgres.Migrate(b.Context(), m.dsn, postgres.Options{}))
	h := newHostOn(b, m.store(), 1, "ETH")
	h.quiet()
	_, _, err := h.app.Webhooks.Setup(b.Context(), h.tenant, "https://shop.example/hook", webhook.By{})
	require.NoError(b, err)
	return m, h
}

func (m *meter) store() storage.Store {
	s, err := postgres.Open(m.dsn, postgres.Options{})
	require.NoError(m.t, err)
	return s
}

func (m *meter) one(q string) (n int64) {
	m.t.Helper()
	require.NoError(m.t, m.db.Get(&n, q))
	return n
}

// counts are those of the server; kind by name, and of each table.
type counts struct {
	all    map[string]int64
	tables map[string]tableCounts
	calls  map[string]call // by statement
}

type call struct {
	Query string `db:"query"`
	Calls int64  `db:"calls"`
	WAL   int64  `db:"wal"`
}

type tableCounts struct {
	Name     string `db:"relname"`
	Inserted int64  `db:"n_tup_ins"`
	Updated  int64  `db:"n_tup_upd"`
	HOT      int64  `db:"n_tup_hot_upd"`
	Deleted  int64  `db:"n_tup_del"`
	Dead     int64  `db:"n_dead_tup"`
	Size     int64  `db:"size"`
}

// measure counts what f does. The store is opened anew before and closed after it: the
// server adds a connection's counts up when it ends. What opening costs is not counted.
func (m *meter) measure(h *host, f func()) counts {
	m.t.Helper()
	open := m.between(h, func() {})
	used := m.between(h, f)
	return used.minus(open)
}

func (m *meter) between(h *host, f func()) counts {
	m.t.Helper()
	require.NoError(m.t, h.store.Close())
	before := m.read()
	h.store = m.store()
	h.restart()
	f()
	require.NoError(m.t, h.store.Close())
	after := m.read()
	h.store = m.store()
	h.restart()
	return after.minus(before)
}

// read waits until all connections of the store have ended. The server does not count BEGIN
// and COMMIT as statements.
func (m *meter) read() counts {
	m.t.Helper()
	ask := func(to any, q string) { require.NoError(m.t, m.server.Get(to, q)) }
	require.Eventually(m.t, func() bool {
		var others int
		ask(&others, "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'cryptopay'")
		return others == 0
	}, time.Minute, 10*time.Millisecond)
	c := counts{map[string]int64{}, map[string]tableCounts{}, map[string]call{}}
	var transactions, wal int64
	ask(&transactions, "SELECT xact_commit FROM pg_stat_database WHERE datname = 'cost'")
	ask(&wal, "SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
	c.all["transactions"], c.all["wal-B"] = transactions, wal
	var list []call
	require.NoError(m.t, m.server.Select(&list, `SELECT query, sum(calls)::bigint AS calls, sum(wal_bytes)::bigint AS wal FROM pg_stat_statements s
		JOIN pg_database d ON d.oid = s.dbid WHERE datname = 'cost' AND query LIKE '%cryptopay\_%' AND NOT query LIKE '%pg\_stat%' GROUP BY query`))
	for _, s := range list {
		c.calls[s.Query] = s
		c.all["statements"] += s.Calls
	}
	var tables []tableCounts
	require.NoError(m.t, m.db.Select(&tables, `SELECT relname, n_tup_ins, n_tup_upd, n_tup_hot_upd, n_tup_del, n_dead_tup, pg_total_relation_size(relid) AS size
		FROM pg_stat_user_tables WHERE starts_with(relname, 'cryptopay')`))
	for _, t := range tables {
		c.tables[t.Name] = t
		c.all["rows"] += t.Inserted + t.Updated + t.Deleted
		c.all["database-B"] += t.Size
	}
	return c
}

func (c counts) minus(o counts) counts {
	d := counts{map[string]int64{}, map[string]tableCounts{}, map[string]call{}}
	for k, n := range c.all {
		d.all[k] = n - o.all[k]
	}
	for k, n := range c.calls {
		d.calls[k] = call{k, n.Calls - o.calls[k].Calls, n.WAL - o.calls[k].WAL}
	}
	for k, n := range c.tables {
		x := o.tables[k]
		d.tables[k] = tableCounts{k, n.Inserted - x.Inserted, n.Updated - x.Updated, n.HOT - x.HOT, n.Deleted - x.Deleted, n.Dead - x.Dead, n.Size - x.Size}
	}
	return d
}

// report gives the figures of one of n, and logs those of each table and statement.
func (m *meter) report(b *testing.B, c counts, n float64, of string) {
	b.Helper()
	for k, v := range c.all {
		b.ReportMetric(float64(v)/n, k+"/"+of)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "of one %s:\n%-32s %8s %8s %8s %8s %8s %8s\n", of, "table", "inserted", "updated", "HOT", "deleted", "dead", "bytes")
	for _, k := range slices.SortedFunc(maps.Keys(c.tables), func(x, y string) int { return int(c.tables[y].Size - c.tables[x].Size) }) {
		if t := c.tables[k]; t.Inserted+t.Updated+t.Deleted != 0 {
			fmt.Fprintf(&text, "%-32s %8.2f %8.2f %8.2f %8.2f %8.2f %8.0f\n", strings.TrimPrefix(k, "cryptopay_"),
				float64(t.Inserted)/n, float64(t.Updated)/n, float64(t.HOT)/n, float64(t.Deleted)/n, float64(t.Dead)/n, float64(t.Size)/n)
		}
	}
	fmt.Fprintf(&text, "%8s %8s statement\n", "calls", "WAL")
	for _, q := range slices.SortedFunc(maps.Values(c.calls), func(x, y call) int { return int(y.WAL - x.WAL) }) {
		if q.Calls != 0 {
			fmt.Fprintf(&text, "%8.2f %8.0f %s\n", float64(q.Calls)/n, float64(q.WAL)/n, brief(q.Query))
		}
	}
	b.Log(text.String())
}

// brief is a statement without its list of columns.
func brief(q string) string {
	if from := strings.Index(q, " FROM cryptopay"); from > 60 {
		q = q[:40] + "…" + q[from:]
	}
	return q[:min(len(q), 120)]
}
