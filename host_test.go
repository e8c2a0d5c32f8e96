package cryptopay_test

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A shop whose orders lie in the same database: the order and its payment are
// there together, or neither is.
func ExampleApp_In() {
	ctx, clock, registry := context.Background(), cryptopay.NewManualClock(time.Unix(1767323045, 0)), chain.MainnetRegistry()
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: clock.Now})
	seed, _ := keys.FromMnemonic(mnemonic, "")
	accounts, _ := seed.Accounts(registry.Networks())
	addresses, _ := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})

	dir, _ := os.MkdirTemp("", "shop")
	defer os.RemoveAll(dir) //nolint:errcheck // an example's end
	file := filepath.Join(dir, "shop.db")
	_ = sqlite.Migrate(ctx, file)
	store, _ := sqlite.Open(file, sqlite.Options{})
	defer store.Close() //nolint:errcheck // an example's end
	app, err := cryptopay.New(cryptopay.Config{
		Store: store, Chains: []chain.Client{eth.Client()}, Addresses: addresses,
		Rates: rates.NewFixed(clock.Now, "USD", map[string]string{"USDT": "1"}),
		Key:   bytes.Repeat([]byte{7}, 32), Clock: clock,
	})
	if err != nil {
		panic(err)
	}
	_ = app.Open(ctx)
	name := "My shop"
	shop, _ := app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	_ = app.Step(ctx) // networks are being read

	db, _ := sqlx.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	defer db.Close() //nolint:errcheck // an example's end
	db.MustExec("CREATE TABLE orders (id TEXT PRIMARY KEY, payment TEXT NOT NULL)")
	order := func(id string, paid bool) error {
		tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		if err != nil {
			return err
		}
		defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
		p, err := app.In(store.WithTx(tx.Tx)).Payments.Create(ctx, shop.ID, payment.CreateInput{
			Pricing: payment.Pricing{Amount: "25", Currency: "USDTERC20"}, OrderID: id,
		})
		if err != nil {
			return err
		}
		if _, err = tx.ExecContext(ctx, "INSERT INTO orders VALUES (?, ?)", id, p.ID); err != nil || !paid {
			return err // rolled back
		}
		return tx.Commit() // from here on the address may be shown
	}
	fmt.Println(order("abandoned", false), order("order 1", true))

	var orders []string
	_ = db.Select(&orders, "SELECT id FROM orders")
	payments, _, _, _ := app.Payments.List(ctx, shop.ID, payment.Filter{Limit: 10})
	fmt.Println(orders, len(payments), payments[0].OrderID)
	// Output:
	// <nil> <nil>
	// [order 1] 1 order 1
}

// sqlStore is what the stores in SQL have in common.
type sqlStore interface {
	storage.Store
	WithTx(tx *sql.Tx) *sqlstore.Tx
}

func TestHostsTransaction(t *testing.T) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		store, dsn := onSQLite(t)
		ordersAndPayments(t, store, "sqlite", dsn)
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		skipServer(t)
		dsn := onPostgres(t)
		store, err := postgres.Open(dsn, postgres.Options{})
		require.NoError(t, err)
		ordersAndPayments(t, store, "pgx", dsn)
	})
	t.Run("mariadb", func(t *testing.T) {
		t.Parallel()
		skipServer(t)
		dsn := onMariaDB(t)
		store, err := mysql.Open(dsn, mysql.Options{})
		require.NoError(t, err)
		ordersAndPayments(t, store, "mysql", dsn)
	})
}

// ordersAndPayments: a payment is created with the host's own order, once taken
// back and once for good, and is then paid like any other.
func ordersAndPayments(t *testing.T, store sqlStore, driver, dsn string) {
	t.Helper()
	defer store.Close() //nolint:errcheck // a test's end
	h := newHostOn(t, store, 1, "ETH")
	ctx := t.Context()
	h.step()
	hot, err := h.app.Addresses.Hot(ctx, "ETH", h.tenant)
	require.NoError(t, err)
	_, err = h.chains["ETH"].Fund(hot.Address, "ETH", dec("1"))
	require.NoError(t, err)
	h.mine(40)
	db, err := sqlx.Open(driver, dsn)
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // a test's end
	_, err = db.Exec("CREATE TABLE orders (id varchar(40) PRIMARY KEY, payment varchar(40) NOT NULL)")
	require.NoError(t, err)
	name := "Another shop"
	other, err := h.app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	input := payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}, CallbackURL: "https://shop.example/hook"}

	order := func(id string, commit bool) payment.Payment {
		tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		require.NoError(t, err)
		defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
		in := store.WithTx(tx.Tx)
		mine := input
		mine.OrderID = id
		p, err := h.app.In(in).Payments.Create(ctx, h.tenant, mine)
		require.NoError(t, err)
		_, err = tx.Exec(tx.Rebind("INSERT INTO orders (id, payment) VALUES (?, ?)"), id, p.ID)
		require.NoError(t, err)
		_, err = h.app.In(in).Payments.Get(ctx, h.tenant, p.ID)
		require.NoError(t, err, "the transaction sees it")
		_, err = h.app.Payments.Get(ctx, h.tenant, p.ID)
		require.Error(t, err, "nobody else does")
		if !in.Alone() { // nor does anybody else wait
			_, err = h.app.Payments.Create(ctx, other.ID, input)
			require.NoError(t, err)
		}
		if !commit {
			require.NoError(t, tx.Rollback())
			_, err = h.app.Payments.Get(ctx, h.tenant, p.ID)
			require.Error(t, err)
			return p
		}
		require.NoError(t, tx.Commit())
		return p
	}
	gone, p := order("gone", false), order("kept", true)
	var orders []string
	require.NoError(t, db.Select(&orders, "SELECT payment FROM orders"))
	require.Equal(t, []string{p.ID}, orders)
	all, _, _, err := h.app.Payments.List(ctx, h.tenant, payment.Filter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, all, 1)
	next, err := h.app.Payments.Create(ctx, h.tenant, input)
	require.NoError(t, err)
	require.NotEqual(t, p.Address, next.Address)
	if driver != "sqlite" { // there its taking was rolled back, too
		require.NotEqual(t, gone.Address, p.Address)
	}

	c, err := chain.MainnetRegistry().Currency("ETH")
	require.NoError(t, err)
	_, err = h.chains["ETH"].Pay(chain.Address(p.Address), "ETH", c.Decimal(p.Due))
	require.NoError(t, err)
	h.step()
	require.Equal(t, payment.Confirming, h.payment(p.ID).Status)
	h.mine(int(c.Confirmations) + 10)
	h.step()
	require.Equal(t, payment.Completed, h.payment(p.ID).Status)
	h.sound()
	refundsAndWithdrawals(t, h, store, db)
}

// accountOnly is a client of a network where a tenant's payments share an account.
type accountOnly struct{ chain.Client }

func (accountOnly) Multiplex(account chain.Address, id uint32) (chain.Address, error) {
	return chain.Address(fmt.Sprint(account, "/", id)), nil
}

func (accountOnly) Untag(a chain.Address) (chain.Address, string, bool) {
	account, id, ok := strings.Cut(string(a), "/")
	return chain.Address(account), id, ok
}

// onSQLite makes a store in a file of its own; dsn is how a host opens that file.
func onSQLite(t testing.TB) (store *sqlite.Store, dsn string) {
	t.Helper()
	testenv.SQLiteApp(t)
	file := filepath.Join(t.TempDir(), "host.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file))
	store, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { _ = store.Close() })
	return store, "file:" + (&url.URL{Path: file}).EscapedPath() + "?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)"
}

// A payment that is created in a host's transaction shares its tenant's account as
// any other does: an account of its own would be one that nobody opens.
func TestHostsPaymentSharesTheAccount(t *testing.T) {
	t.Parallel()
	store, dsn := onSQLite(t)
	h := newHostOn(t, store, 1, "ETH")
	h.configure = func(c *cryptopay.Config) {
		c.Chains = []chain.Client{accountOnly{c.Chains[0]}}
	}
	h.restart()
	h.step()
	db, err := sqlx.Open("sqlite", dsn)
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // a test's end
	input := payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}}
	first, err := h.app.Payments.Create(t.Context(), h.tenant, input)
	require.NoError(t, err)
	tx, err := db.BeginTxx(t.Context(), nil)
	require.NoError(t, err)
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	p, err := h.app.In(store.WithTx(tx.Tx)).Payments.Create(t.Context(), h.tenant, input)
	require.NoError(t, err)
	require.NoError(t, tx.Commit())
	account, _, _ := strings.Cut(first.Address, "/")
	require.NotEqual(t, first.Address, p.Address)
	require.Contains(t, p.Address, account+"/")
}

// refundsAndWithdrawals: money is set aside with the host's own row, or is not.
func refundsAndWithdrawals(t *testing.T, h *host, store sqlStore, db *sqlx.DB) {
	t.Helper()
	ctx, world := t.Context(), h.chains["ETH"]
	to := world.Customer("supplier")
	balances := func() string {
		all, err := store.Balances(ctx, storage.Tenant(h.tenant))
		require.NoError(t, err)
		return fmt.Sprint(all)
	}
	before := balances()
	refund := func(commit bool) string {
		tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		require.NoError(t, err)
		defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
		w, err := h.app.In(store.WithTx(tx.Tx)).Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
			Terms: withdrawal.Terms{PriceAmount: ptr(dec("100")), Currency: "ETH", Address: string(to)},
		})
		require.NoError(t, err)
		_, err = tx.Exec(tx.Rebind("INSERT INTO orders (id, payment) VALUES (?, ?)"), "refund "+w.ID[:8], w.ID)
		require.NoError(t, err)
		if commit {
			require.NoError(t, tx.Commit())
		}
		return w.ID
	}
	gone := refund(false)
	require.Equal(t, before, balances(), "nothing is held")
	_, err := h.app.Withdrawals.Get(ctx, h.tenant, gone)
	require.Error(t, err)
	id := refund(true)
	require.NotEqual(t, before, balances())
	h.mine(40)
	w, err := h.app.Withdrawals.Get(ctx, h.tenant, id)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, w.Status, "waiting for %s", w.Waiting)
	c, err := chain.MainnetRegistry().Currency("ETH")
	require.NoError(t, err)
	require.Equal(t, c.Decimal(w.Amount).String(), world.Balance(to, "ETH").String(), "paid once")
	h.sound()
}

// TestE05_HostTransactionsThatTakeAllConnections: as many transactions of a host's at a time as
// his pool has connections leave the library none. Each is told within the pool's patience, and
// none waits for ever.
func TestE05_HostTransactionsThatTakeAllConnections(t *testing.T) {
	t.Parallel()
	skipServer(t)
	db, err := sqlx.Open("pgx", onPostgres(t))
	require.NoError(t, err)
	t.Cleanup(func() { _ = db.Close() })
	store, err := postgres.OpenDB(db, postgres.Options{})
	require.NoError(t, err)
	h := newHostOn(t, store, 1, "ETH")
	h.step()
	const connections = 2
	db.SetMaxOpenConns(connections)
	var txs []*sql.Tx
	for range connections {
		tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		require.NoError(t, err)
		txs = append(txs, tx)
	}
	create := func(tx *sql.Tx) error {
		_, err := h.app.In(store.WithTx(tx)).Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: "ETH"}})
		return err
	}
	failed := make(chan error)
	for _, tx := range txs {
		go func() { failed <- create(tx) }()
	}
	for range txs {
		err := <-failed
		require.ErrorIs(t, err, incoming.ErrNoAddress)
		require.ErrorContains(t, err, "fewer at a time than its pool has connections")
	}
	for _, tx := range txs {
		require.NoError(t, tx.Rollback())
	}
	tx, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	require.NoError(t, err)
	require.NoError(t, create(tx))
	require.NoError(t, tx.Commit())
}
