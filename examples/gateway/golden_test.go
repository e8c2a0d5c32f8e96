package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/goldentest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// golden is a store as an earlier version left it: a gateway in development on TRX, ETH
// and BTC, stopped by SIGTERM. Its merchant has payments that wait, are paid in part,
// confirm, are in the mempool, are completed, expired, and late with money in suspense;
// withdrawals that are pending, processing (two in one transaction), completed and
// cancelled; a wallet, a transfer, and webhooks that nobody takes. testdata/golden has
// its rows, by table, and the same of a second gateway on Redis, by key.
type golden struct {
	name       string
	migrations map[string]int // that the SQL dialects had
	stopped    time.Time      // by the wall's clock
	key, redis string         // of the two key files
}

// goldens has one store per step of the schema, oldest first.
var goldens = []golden{{
	name: "1", migrations: map[string]int{"sqlite": 6, "postgres": 5, "mysql": 5},
	stopped: time.Date(2026, 11, 22, 15, 10, 31, 0, time.UTC),
	key:     "9364a2438162e57f0000dbf63581f29698b22855607a5992823ac3201456df91",
	redis:   "9abb6061c3c9f0c59f7bad475cb405a3fa6fee87b9b6d1fd3576b3504d16cd30",
}, {
	name: "2", migrations: map[string]int{"sqlite": 14, "postgres": 13, "mysql": 13},
	stopped: time.Date(2026, 11, 22, 16, 23, 31, 0, time.UTC),
	key:     "597501d3fbc88387ccb81118812d0e4c100e3520a84094b4b170d0ec3330123e",
	redis:   "4762be33328afb08e6f60b08381ff9d0eb223ce244c32ef6046818be15b688ee",
}, {
	name: "3", migrations: map[string]int{"sqlite": 15, "postgres": 14, "mysql": 14},
	stopped: time.Date(2026, 11, 23, 3, 17, 26, 0, time.UTC),
	key:     "bd2112d8b388568336e0d4a78441d19a60abdc40cad8093ab3e1676250e65b36",
	redis:   "d71135ac4c543a5d17acda2990096967bc557552866f8990a5777eaf36e9f355",
}, {
	name: "4", migrations: map[string]int{"sqlite": 16, "postgres": 15, "mysql": 15},
	stopped: time.Date(2026, 11, 23, 7, 43, 37, 0, time.UTC),
	key:     "4e19055876488a4b78c3c4b6039fbf175fb4b95c4eb14361ecc63bb372bc79c2",
	redis:   "90f86ea2f4e4be3a79a72e69fb63a710923a5647ac839759c15658a97dd86f30",
}, {
	name: "5", migrations: map[string]int{"sqlite": 17, "postgres": 16, "mysql": 16},
	stopped: time.Date(2026, 11, 23, 12, 28, 59, 0, time.UTC),
	key:     "8529a8edebae9835cc85c580823e010526936ac8d6bb3dfe4e32aaa0d747d183",
	redis:   "3a5d10b9150571dc3c2238cec8477f46c89add2728882139d34fbbb4ac9b1002",
}, {
	name: "6", migrations: map[string]int{"sqlite": 18, "postgres": 17, "mysql": 17},
	stopped: time.Date(2026, 11, 23, 14, 48, 47, 0, time.UTC),
	key:     "e0446fa3a4dba5248dd43ca5a9bac684d0d073d8159a31b3d67febdd71bd3661",
	redis:   "b2bd7072cd8d0cecce443982fc4f51751ec068268478608653c3f45f0d99a3f6",
}}

func (g *golden) file(t *testing.T, name string) io.Reader {
	t.Helper()
	return goldentest.Read(t, filepath.Join("testdata", "golden", name))
}

// fill makes the schema of the time in an empty database, and puts the rows in.
func (g *golden) fill(t *testing.T, db *sqlx.DB, dialect, declared string) {
	t.Helper()
	goldentest.SQL{
		DB: db, Dialect: dialect, Migrations: g.migrations[dialect], Folder: filepath.Join("..", "..", "storage", "sqlstore"), Declared: declared,
	}.Fill(t, g.file(t, g.name+".json.gz"))
}

// goldenServers are the servers that all golden stores lie on, each in a database of its own: to make
// and start one costs more than what a golden store does there.
type goldenServers struct{ postgres, mariadb testenv.Shared }

func (s *goldenServers) Close() {
	s.postgres.Close()
	s.mariadb.Close()
}

// stores makes the golden store on each backend, and says where it is.
func (g *golden) stores(on *goldenServers) map[string]func(t *testing.T) (dsn, key string) {
	own := []*storage.Table{seeds.Table, worlds.Table}
	made := func(t *testing.T, db *sqlx.DB) string {
		defer db.Close() //nolint:errcheck // a test's end
		name := "golden_" + g.name
		_, err := db.Exec("CREATE DATABASE " + name)
		require.NoError(t, err)
		return name
	}
	return map[string]func(t *testing.T) (string, string){
		"sqlite": func(t *testing.T) (string, string) {
			file := filepath.Join(t.TempDir(), "golden.db")
			db := sqlx.MustOpen("sqlite", file)
			defer db.Close() //nolint:errcheck // a test's end
			g.fill(t, db, "sqlite", sqlite.Schema(own...))
			return "sqlite:" + file, g.key
		},
		"postgres": func(t *testing.T) (string, string) {
			p := on.postgres.Get(t, func(t testing.TB) *testenv.Process { return testenv.Postgres(t) })
			name := made(t, sqlx.MustOpen("pgx", p.DSN("postgres")))
			db := sqlx.MustOpen("pgx", p.DSN(name))
			defer db.Close() //nolint:errcheck // a test's end
			g.fill(t, db, "postgres", postgres.Declared(own...))
			return p.DSN(name), g.key
		},
		"mariadb": func(t *testing.T) (string, string) {
			p := on.mariadb.Get(t, func(t testing.TB) *testenv.Process { return testenv.MariaDB(t) })
			name := made(t, sqlx.MustOpen("mysql", p.MySQLDSN("test")))
			db := sqlx.MustOpen("mysql", p.MySQLDSN(name))
			defer db.Close() //nolint:errcheck // a test's end
			g.fill(t, db, "mysql", mysql.Declared(own...))
			return "mysql://root@" + p.Address() + "/" + name, g.key
		},
		"redis": func(t *testing.T) (string, string) {
			p := testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always")
			client := redis.NewClient(&redis.Options{Addr: p.Address()})
			defer client.Close() //nolint:errcheck // a test's end
			goldentest.FillRedis(t, client, g.file(t, g.name+"-redis.jsonl.gz"))
			return "redis://" + p.Address() + "/0", g.redis
		},
	}
}

// A store of every earlier version opens, and all that was under way comes to its end.
func TestU02_StoresOfEarlierVersions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("servers of its own take seconds")
	}
	servers := new(goldenServers)
	t.Cleanup(servers.Close)
	for i := range goldens {
		g := &goldens[i]
		for backend, fill := range g.stores(servers) {
			t.Run(g.name+"/"+backend, func(t *testing.T) {
				t.Parallel()
				if backend != "sqlite" {
					testenv.Draw(t, 2)
				}
				dsn, key := fill(t)
				goesOn(t, g, dsn, key, false)
			})
			if backend == "sqlite" {
				t.Run(g.name+"/sealed first", func(t *testing.T) {
					t.Parallel()
					dsn, key := fill(t)
					goesOn(t, g, dsn, key, true)
				})
			}
		}
	}
}

// sealed does what the documents ask of the operator once no older process runs.
func (i *inside) sealed() {
	i.t.Helper()
	taken, err := i.g.app.Unsealed(i.t.Context())
	require.NoError(i.t, err)
	require.True(i.t, taken)
	require.NoError(i.t, i.g.app.Upgraded(i.t.Context()))
	n, err := i.g.auth.Reseal(i.t.Context())
	require.NoError(i.t, err)
	require.Positive(i.t, n)
	r, err := i.g.app.Reseal(i.t.Context())
	require.NoError(i.t, err)
	require.Equal(i.t, 7, r.Withdrawals)
	require.Empty(i.t, r.Left)
	altered, err := i.g.auth.Verify(i.t.Context(), "")
	require.NoError(i.t, err)
	require.Empty(i.t, altered)
}

// Whoever edits the database can make it look like one of a version before seals: the gateway
// notes outside of it that all is sealed.
func TestFS02_GatewayKnowsWithoutTheDatabaseThatAllIsSealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "pay.key")
	start := func(env map[string]string) error {
		s, err := readSettings([]string{"-store", "sqlite:" + filepath.Join(dir, "pay.db"), "-key-file", file}, func(k string) string { return env[k] })
		require.NoError(t, err)
		g, err := open(t.Context(), s, slog.New(slog.NewTextHandler(t.Output(), nil)))
		if err == nil {
			require.NoError(t, g.close())
		}
		return err
	}
	forget := func() {
		db, err := sqlx.Open("sqlite", filepath.Join(dir, "pay.db"))
		require.NoError(t, err)
		defer db.Close() //nolint:errcheck // nothing is pending
		_, err = db.Exec("DELETE FROM cryptopay_fingerprints WHERE id = 'store'")
		require.NoError(t, err)
	}
	require.NoError(t, start(nil))
	require.FileExists(t, sealedFile(file))
	require.NoError(t, start(nil))
	forget()
	require.Error(t, start(nil))

	// The same, where a version before seals made the store.
	require.NoError(t, os.Remove(sealedFile(file)))
	db, err := sqlx.Open("sqlite", filepath.Join(dir, "pay.db"))
	require.NoError(t, err)
	_, err = db.Exec("DELETE FROM cryptopay_fingerprints")
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NoError(t, start(nil))
	require.NoFileExists(t, sealedFile(file))
	require.NoError(t, start(map[string]string{"CRYPTOPAY_UPGRADED": "1"}))
	require.FileExists(t, sealedFile(file))
	require.NoError(t, start(nil))
	forget()
	require.Error(t, start(nil))
}

// A store on Redis that an earlier version made is left as it is until the operator says
// that no other process runs: those of the earlier version would go on writing to it.
func TestFU02_RedisIsMigratedOnTheOperatorsWordAlone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("servers of its own take seconds")
	}
	dsn, _ := goldens[0].stores(nil)["redis"](t)
	opens := func(migrate bool) error {
		s, err := openStore(t.Context(), dsn, migrate)
		require.NoError(t, err)
		defer func() { require.NoError(t, s.Close()) }()
		return s.Open(t.Context(), tables()...)
	}
	require.ErrorIs(t, opens(false), storage.ErrSchema)
	require.ErrorIs(t, opens(false), storage.ErrSchema)
	require.NoError(t, opens(true))
	require.NoError(t, opens(false))
}

// countedLists are lists whose number of rows is shown, with the rows that they are of.
var countedLists = []struct {
	path  string
	table *storage.Table
	where []storage.Cond
}{
	{"/payments/?limit=1", payment.Payments.Table, nil},
	{"/payments/?limit=1&status=waiting", payment.Payments.Table, []storage.Cond{{Column: "status", Op: storage.In, Value: []payment.Status{payment.Waiting, payment.PartiallyPaid}}}},
	{"/payments/?limit=1&status=completed", payment.Payments.Table, []storage.Cond{{Column: "status", Op: storage.Eq, Value: payment.Completed}}},
	{"/payments/?limit=1&status=expired", payment.Payments.Table, []storage.Cond{{Column: "status", Op: storage.Eq, Value: payment.Expired}}},
	{"/payments/?limit=1&currency=USDTTRC20", payment.Payments.Table, []storage.Cond{{Column: "currency", Op: storage.Eq, Value: "USDTTRC20"}}},
	{"/payments/?limit=1&blockchain=ETH", payment.Payments.Table, []storage.Cond{{Column: "network", Op: storage.Eq, Value: "ETH"}}},
	{"/withdrawal/?limit=1", withdrawal.Withdrawals.Table, nil},
	{"/withdrawal/?limit=1&status=pending", withdrawal.Withdrawals.Table, []storage.Cond{{Column: "status", Op: storage.Eq, Value: withdrawal.Pending}}},
	{"/withdrawal/?limit=1&status=cancelled", withdrawal.Withdrawals.Table, []storage.Cond{{Column: "status", Op: storage.Eq, Value: withdrawal.Cancelled}}},
	{"/webhooks/deliveries/?limit=1", webhook.Events.Table, nil},
	{"/webhooks/deliveries/?limit=1&status=failed", webhook.Events.Table, []storage.Cond{{Column: "status", Op: storage.Eq, Value: webhook.StatusFailed}}},
	{"/webhooks/deliveries/?limit=1&event=deposit_received", webhook.Events.Table, []storage.Cond{{Column: "type", Op: storage.Eq, Value: webhook.DepositReceived}}},
	{"/refunds/?limit=1", refund.Refunds.Table, nil},
	{"/transactions/transactions/?page_size=1", storage.Activities.Table, nil},
	{"/transactions/transactions/?page_size=1&type=withdrawal", storage.Activities.Table, []storage.Cond{{Column: "kind", Op: storage.Eq, Value: storage.ActivityWithdrawal}}},
}

// countsRows requires that lists show as many rows as the merchant has.
func (i *inside) countsRows(when string) {
	i.t.Helper()
	store := i.g.app.Config().Store
	tenants, _, err := i.g.app.Wallets.Tenants(i.t.Context(), 0, 0)
	require.NoError(i.t, err)
	require.Len(i.t, tenants, 1)
	p := storage.Tenant(tenants[0].ID)
	for _, l := range countedLists {
		n, err := store.Count(i.t.Context(), storage.Query{Table: l.table, Partition: p, Where: l.where})
		require.NoError(i.t, err)
		view := i.ok("GET", l.path, nil)
		shown := view["count"]
		if shown == nil {
			shown = view["total"]
		}
		require.Equal(i.t, fmt.Sprint(n), fmt.Sprint(shown), "%s: %s", when, l.path)
	}
}

// goesOn opens a golden store with this version, at the moment at which it was left.
func goesOn(t *testing.T, g *golden, dsn, key string, sealedFirst bool) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "golden.key")
	require.NoError(t, os.WriteFile(file, []byte(key+"\n"), 0o600))
	env := map[string]string{
		"CRYPTOPAY_CLIENT_ID": "golden", "CRYPTOPAY_CLIENT_SECRET": "golden-secret-of-the-day", "CRYPTOPAY_API_KEY": "golden-key-of-the-day-0001",
		"CRYPTOPAY_RATE_LIMITS": "off", "CRYPTOPAY_ALLOW_PRIVATE_CALLBACKS": "1", "CRYPTOPAY_KEY_FILE": file,
		"CRYPTOPAY_MNEMONIC": strings.Repeat("abandon ", 11) + "about",
	}
	s, err := readSettings([]string{"-store", dsn, "-networks", "TRX,ETH,BTC", "-migrate"}, func(k string) string { return env[k] })
	require.NoError(t, err)
	store, err := openStore(t.Context(), dsn, true)
	require.NoError(t, err)
	require.NoError(t, store.Open(t.Context(), tables()...))
	require.NoError(t, storage.Decide(t.Context(), store, func(ctx context.Context) (storage.Change, error) {
		v, row, _, err := worlds.One(ctx, store, storage.System, clockID)
		v.Offset -= int64(time.Since(g.stopped))
		return storage.Change{ID: "as it was", Partition: storage.System, Put: []storage.Row{worlds.Row(clockID, row.Version, row.Due, v)}}, err
	}))
	require.NoError(t, store.Close())

	i := &inside{t: t, s: s}
	i.g, err = open(t.Context(), s, slog.New(slog.NewTextHandler(t.Output(), nil)))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, i.g.close()) })
	i.api = i.g.handler()
	token, err := i.g.auth.Token(t.Context(), "golden", "golden-secret-of-the-day", "")
	require.NoError(t, err)
	i.token = token.AccessToken

	i.countsRows("made by an earlier version")
	if sealedFirst {
		i.sealed()
	}
	orders := map[string]string{} // transaction_id by order_id
	list := i.ok("GET", "/payments/?limit=100", nil)["results"].([]any)
	for _, p := range list {
		p := p.(map[string]any)
		orders[p["order_id"].(string)] = p["transaction_id"].(string)
	}
	require.Len(t, orders, 11)
	pay := func(order, amount string) {
		p := i.ok("POST", "/payments/status/", map[string]any{"transaction_id": orders[order]})
		i.ok("POST", "/dev/pay", map[string]any{"address": p["address"], "currency": p["currency"], "amount": amount})
	}
	pay("waiting", "25")
	pay("partial", "15")
	for _, n := range []string{"TRX", "ETH", "BTC"} {
		i.ok("POST", "/dev/mine", map[string]any{"blockchain": n, "blocks": 24})
	}
	i.ok("POST", "/dev/settle", map[string]any{})
	want := map[string]string{"small-eth": "expired", "late": "expired"}
	for order, id := range orders {
		status, ok := want[order]
		if !ok {
			status = "completed"
		}
		require.Equal(t, status, i.status(id), order)
	}
	withdrawals := i.ok("GET", "/withdrawal/?limit=100", nil)["withdrawals"].([]any)
	require.Len(t, withdrawals, 7)
	for _, w := range withdrawals {
		w := w.(map[string]any)
		status := "completed"
		if w["custom_id"] == "w-cancelled" {
			status = "cancelled"
		}
		require.Equal(t, status, w["status"], w["custom_id"])
	}
	account := i.ok("GET", "/user/balances/", nil)["account"].(map[string]any)
	for currency, amount := range map[string]string{"USDTTRC20": "227.74500000", "USDTERC20": "203.87500000"} {
		require.Equal(t, amount, account[currency].(map[string]any)["amount"], fmt.Sprint(currency, " of ", account))
		require.Equal(t, "0.00000000", account[currency].(map[string]any)["pending_amount"])
	}
	counts := func() (out []any) {
		for _, l := range countedLists {
			view := i.ok("GET", l.path, nil)
			out = append(out, l.path, view["count"], view["total"])
		}
		deposits := i.ok("GET", "/user/balances/history/?limit=5&type=deposit", nil)
		return append(out, deposits["count"], deposits["total"], i.ok("GET", "/user/balances/", nil)["statistics"])
	}
	i.countsRows("made by an earlier version, then worked on")
	byRows := counts()
	if sealedFirst {
		require.NoError(t, i.g.app.Upgraded(t.Context()))
	} else {
		i.sealed()
	}
	i.countsRows("and upgraded, not yet counted again")
	require.Equal(t, byRows, counts())
	tenants, _, err := i.g.app.Wallets.Tenants(t.Context(), 0, 0)
	require.NoError(t, err)
	for _, tenant := range tenants {
		counted, err := payment.Tally.Marked(t.Context(), i.g.app.Config().Store, storage.Tenant(tenant.ID))
		require.NoError(t, err)
		aside, err := payment.SuspenseTally.Marked(t.Context(), i.g.app.Config().Store, storage.Tenant(tenant.ID))
		require.NoError(t, err)
		told, err := webhook.Tally.Marked(t.Context(), i.g.app.Config().Store, storage.Tenant(tenant.ID))
		require.NoError(t, err)
		made, err := i.g.app.Recount(t.Context(), tenant.ID)
		require.NoError(t, err)
		require.Equal(t, !counted || !aside || !told, len(made) > 0)
		marked, err := payment.Tally.Marked(t.Context(), i.g.app.Config().Store, storage.Tenant(tenant.ID))
		require.NoError(t, err)
		require.True(t, marked)
	}
	require.NotEmpty(t, tenants)
	i.countsRows("and counted again")
	require.Equal(t, byRows, counts(), "from counters")
	reports, err := i.g.app.Verify(t.Context())
	require.NoError(t, err)
	for _, r := range reports {
		require.True(t, r.Sound(), "%+v", r)
	}
}
