package cryptopay_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	lite "modernc.org/sqlite"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// notedHost is a host on SQLite, whose statements are noted.
func notedHost(t *testing.T, networks ...chain.Network) (*host, *sqlx.DB, *statements) {
	t.Helper()
	testenv.SQLiteApp(t)
	file := filepath.Join(t.TempDir(), "pay.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file))
	seen := &statements{dsn: "file:" + file + "?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)"}
	db := sqlx.NewDb(sql.OpenDB(seen), "sqlite")
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	return newHostOn(t, sqlite.OpenDB(db, sqlite.Options{}), 1, networks...), db, seen
}

// TestFP12_WorkersReadNoHistory: SQLite plans without statistics on a file that nobody
// analyzed. No statement of the workers, or of what merchants and the operator look at,
// then reads all rows of a partition or of a table: each goes along an index.
func TestFP12_WorkersReadNoHistory(t *testing.T) {
	t.Parallel()
	h, db, seen := notedHost(t, "ETH", "BTC")
	ctx := t.Context()
	h.step()
	seen.forget() // what a start asks once
	for _, currency := range []string{"ETH", "USDTERC20", "BTC"} {
		c, err := chain.MainnetRegistry().Currency(currency)
		require.NoError(t, err)
		world := h.chains[c.Network]
		hot, err := h.app.Addresses.Hot(ctx, c.Network, h.tenant)
		require.NoError(t, err)
		gas, err := chain.MainnetRegistry().Gas(c.Network)
		require.NoError(t, err)
		_, err = world.Fund(hot.Address, gas.Code, decimal.New(1, 0))
		require.NoError(t, err)
		p, err := h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{
			Pricing: payment.Pricing{Amount: "300", Currency: currency}, CallbackURL: "https://shop.example/hook",
		})
		require.NoError(t, err)
		_, err = world.Pay(chain.Address(p.Address), currency, c.Decimal(p.Due))
		require.NoError(t, err)
		h.mine(80)
		_, err = h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{PriceAmount: ptr(dec("100")), Currency: currency, Address: string(world.Customer("supplier"))},
		})
		require.NoError(t, err)
		h.mine(3)
	}
	for range 20 {
		h.clock.Advance(11 * time.Minute)
		h.mine(1)
	}
	h.clock.Advance(25 * time.Hour)
	h.step()
	h.look()

	var bad []string
	asked := map[string]bool{}
	for _, s := range seen.all() {
		asked[table.FindStringSubmatch(s.text)[1]] = true
		if _, where, _ := strings.Cut(s.text, " WHERE "); !strings.Contains(where, " AND ") {
			continue // a page of all rows: it ends with its limit
		}
		for _, step := range s.plan(t, db) {
			if readsAll.MatchString(step) {
				bad = append(bad, step+"\n    "+s.text)
			}
		}
	}
	slices.Sort(bad)
	require.Empty(t, bad, "statements that read a whole partition or table")
	for _, name := range []string{"payments", "withdrawals", "sightings", "intents", "outcomes", "sweeps", "events", "waits"} {
		require.True(t, asked[name] || asked["withdrawal_"+name] || asked["webhook_"+name], "nothing was asked of %s: %v", name, asked)
	}
}

// TestFP12_LaterPagesGoAlongTheirIndex: SQLite finds a later page in the index that selects its
// rows. It does not read the rest of the partition for it.
func TestFP12_LaterPagesGoAlongTheirIndex(t *testing.T) {
	t.Parallel()
	h, db, seen := notedHost(t, "ETH")
	p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}})
	require.NoError(t, err)
	for range 3 {
		_, err = h.chains["ETH"].Pay(chain.Address(p.Address), "ETH", dec("0.01"))
		require.NoError(t, err)
	}
	h.mine(2)
	seen.forget()
	found := 0
	for _, err := range storage.All(t.Context(), h.store, storage.Query{
		Table: payment.Deposits.Table, Partition: storage.Tenant(h.tenant), Limit: 2,
		Where: []storage.Cond{{Column: "payment", Op: storage.Eq, Value: p.ID}},
	}) {
		require.NoError(t, err)
		found++
	}
	require.Equal(t, 3, found)
	asked := seen.all()
	require.Len(t, asked, 2, "a first page, and a later one")
	for _, s := range asked {
		require.Contains(t, s.plan(t, db)[0], "(part=? AND payment=?)", s.text)
	}
}

// look asks what merchants and the operator are shown.
func (h *host) look() {
	h.t.Helper()
	ctx, none := h.t.Context(), func(err error) { h.t.Helper(); require.NoError(h.t, err) }
	_, _, _, err := h.app.Payments.List(ctx, h.tenant, payment.Filter{Limit: 20})
	none(err)
	_, _, _, err = h.app.Payments.List(ctx, h.tenant, payment.Filter{Status: payment.Completed, Limit: 20})
	none(err)
	_, _, err = h.app.Withdrawals.List(ctx, h.tenant, withdrawal.Filter{Limit: 20})
	none(err)
	_, _, err = h.app.Reports.Transactions(ctx, h.tenant, report.Filter{Page: 1, PageSize: 20})
	none(err)
	_, err = h.app.Reports.Stats(ctx, h.tenant, report.StatsFilter{From: h.clock.Now().Add(-48 * time.Hour)})
	none(err)
	_, _, err = h.app.Wallets.History(ctx, h.tenant, wallet.HistoryFilter{Wallet: wallet.Master, Limit: 20})
	none(err)
	for n := range h.chains {
		_, err = h.app.Treasury.Waiting(ctx, h.tenant, n, 20, 0)
		none(err)
	}
}

var (
	table = regexp.MustCompile(`cryptopay_(\w+)`)
	// readsAll is a step of a plan that reads a whole table, or all rows of a partition.
	readsAll = regexp.MustCompile(`^(SCAN \w+|(SCAN|SEARCH) \w+ USING INDEX sqlite_autoindex_\w+_1 \(part=\?\))$`)
)

// statement is what was asked, with what.
type statement struct {
	text string
	args []driver.NamedValue
}

// plan is how SQLite goes about it.
func (s statement) plan(t *testing.T, db *sqlx.DB) (steps []string) {
	t.Helper()
	args := make([]any, len(s.args))
	for i, a := range s.args {
		args[i] = a.Value
	}
	rows, err := db.QueryContext(context.WithValue(t.Context(), plain{}, true), "EXPLAIN QUERY PLAN "+s.text, args...)
	require.NoError(t, err, s.text)
	defer rows.Close() //nolint:errcheck // a test's end
	for rows.Next() {
		var id, parent, unused int
		var detail string
		require.NoError(t, rows.Scan(&id, &parent, &unused, &detail))
		steps = append(steps, detail)
	}
	require.NoError(t, rows.Err())
	return steps
}

// plain marks what is not noted.
type plain struct{}

// statements is a connector that notes what its connections are asked.
type statements struct {
	dsn string
	mu  sync.Mutex
	got map[string]statement
}

func (s *statements) Driver() driver.Driver { return &lite.Driver{} }

func (s *statements) Connect(context.Context) (driver.Conn, error) {
	c, err := s.Driver().Open(s.dsn)
	if err != nil {
		return nil, err
	}
	return noted{c, s}, nil
}

func (s *statements) note(ctx context.Context, text string, args []driver.NamedValue) {
	if ctx.Value(plain{}) != nil || !strings.Contains(text, "cryptopay_") || strings.HasPrefix(text, "INSERT INTO") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.got == nil {
		s.got = map[string]statement{}
	}
	s.got[text] = statement{text, slices.Clone(args)}
}

func (s *statements) forget() {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.got)
}

func (s *statements) all() (out []statement) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, v := range s.got {
		out = append(out, v)
	}
	return out
}

// noted is a connection that tells what it is asked.
type noted struct {
	driver.Conn
	to *statements
}

func (c noted) BeginTx(ctx context.Context, o driver.TxOptions) (driver.Tx, error) {
	return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, o) //nolint:forcetypeassert // it is SQLite's
}

func (c noted) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	c.to.note(ctx, text, args)
	return c.Conn.(driver.QueryerContext).QueryContext(ctx, text, args) //nolint:forcetypeassert // it is SQLite's
}

func (c noted) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	c.to.note(ctx, text, args)
	return c.Conn.(driver.ExecerContext).ExecContext(ctx, text, args) //nolint:forcetypeassert // it is SQLite's
}

func (c noted) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, text) //nolint:forcetypeassert // it is SQLite's
	if err != nil {
		return nil, err
	}
	return notedStmt{s, c.to, text}, nil
}

func (c noted) IsValid() bool {
	v, ok := c.Conn.(driver.Validator)
	return !ok || v.IsValid()
}

func (c noted) ResetSession(ctx context.Context) error {
	if r, ok := c.Conn.(driver.SessionResetter); ok {
		return r.ResetSession(ctx)
	}
	return nil
}

type notedStmt struct {
	driver.Stmt
	to   *statements
	text string
}

func (s notedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	s.to.note(ctx, s.text, args)
	return s.Stmt.(driver.StmtQueryContext).QueryContext(ctx, args) //nolint:forcetypeassert // it is SQLite's
}

func (s notedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	s.to.note(ctx, s.text, args)
	return s.Stmt.(driver.StmtExecContext).ExecContext(ctx, args) //nolint:forcetypeassert // it is SQLite's
}
