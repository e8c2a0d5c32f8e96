package main

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// database is one SQL database that holds the shop's tables and the library's. Times are Unix
// seconds and amounts cents, so that the same SQL serves both kinds.
type database struct {
	db    *sqlx.DB
	store hostStore
}

// hostStore is a store that can write in the shop's own transactions.
type hostStore interface {
	storage.Store
	WithTx(tx *sql.Tx) *sqlstore.Tx
}

const schema = `
CREATE TABLE IF NOT EXISTS orders (
	number text PRIMARY KEY, buyer text NOT NULL, goods text NOT NULL, cents bigint NOT NULL, currency text NOT NULL,
	payment text NOT NULL UNIQUE, state text NOT NULL, placed bigint NOT NULL, paid bigint NOT NULL DEFAULT 0);
CREATE INDEX IF NOT EXISTS orders_placed ON orders (placed);
CREATE TABLE IF NOT EXISTS staff (email text PRIMARY KEY, password text NOT NULL);
CREATE TABLE IF NOT EXISTS sessions (id text PRIMARY KEY, email text NOT NULL, ends bigint NOT NULL);
CREATE TABLE IF NOT EXISTS simulated (name text PRIMARY KEY, state text NOT NULL);`

// tables are the library's, for Migrate and Open.
func tables() []*storage.Table { return slices.Concat(cryptopay.Tables(), keys.Tables()) }

func openDatabase(ctx context.Context, s settings) (d *database, err error) {
	d = &database{}
	if s.postgres != "" {
		d.db, d.store, err = openPostgres(ctx, s.postgres)
	} else {
		d.db, d.store, err = openSQLite(ctx, filepath.Join(s.dir, "shop.db"))
	}
	if err != nil {
		return nil, err
	}
	_, err = d.db.ExecContext(ctx, schema)
	return d, err
}

func openPostgres(ctx context.Context, dsn string) (*sqlx.DB, hostStore, error) {
	db, err := sqlx.Open("pgx", dsn)
	if err != nil {
		return nil, nil, errors.New("-postgres must be such as postgres://user:password@host/database") // the cause may repeat the password
	}
	if err := postgres.MigrateDB(ctx, db, postgres.Options{}, tables()...); err != nil {
		return nil, nil, errors.Join(err, db.Close())
	}
	store, err := postgres.OpenDB(db, postgres.Options{})
	return db, store, err
}

func openSQLite(ctx context.Context, file string) (*sqlx.DB, hostStore, error) {
	if err := sqlite.Migrate(ctx, file, tables()...); err != nil { // makes the file, for its owner alone to read
		return nil, nil, err
	}
	settings := url.Values{"_txlock": {"immediate"}, "_pragma": {"journal_mode(WAL)", "synchronous(FULL)", "busy_timeout(5000)"}}
	db, err := sqlx.Open("sqlite", "file:"+(&url.URL{Path: file}).EscapedPath()+"?"+settings.Encode())
	if err != nil {
		return nil, nil, err
	}
	return db, sqlite.OpenDB(db, sqlite.Options{}), nil
}

func (d *database) close() error { return errors.Join(d.store.Close(), d.db.Close()) }

// exec runs a statement of the shop's own. Its places are question marks on both databases.
func (d *database) exec(ctx context.Context, query string, args ...any) error {
	_, err := d.db.ExecContext(ctx, d.db.Rebind(query), args...)
	return err
}

// get reads one row. found is false where there is none.
func (d *database) get(ctx context.Context, into any, query string, args ...any) (found bool, err error) {
	err = d.db.GetContext(ctx, into, d.db.Rebind(query), args...)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	return err == nil, err
}

// moment is a stored time.
type moment int64

func (m moment) String() string { return time.Unix(int64(m), 0).UTC().Format("2006-01-02 15:04 UTC") }

// fileOf reads a file that only its owner may read, or writes what make gives at the first start.
func fileOf(name string, make func() ([]byte, error)) ([]byte, error) {
	b, err := os.ReadFile(name)
	if !errors.Is(err, os.ErrNotExist) {
		return b, err
	}
	if b, err = make(); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(b)
	return b, errors.Join(err, f.Sync(), f.Close())
}
