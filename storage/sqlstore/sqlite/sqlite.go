// Package sqlite is storage in a SQLite file, by a driver in pure Go. One file
// serves one machine: several processes may share it, one of them writes at a
// time, and readers never wait.
//
// What it promises: a Commit that returned nil has been synced to disk (WAL,
// synchronous=FULL), so it survives kill -9 and power loss. A connection whose
// settings promise less is refused.
package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
	lite "modernc.org/sqlite" // also the driver "sqlite"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/lane"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
)

//go:embed migrations/*.sql schema.sql
var migrations embed.FS

var dialect = &sqlstore.Dialect{
	Name:      "sqlite",
	Bind:      sqlx.QUESTION,
	Quote:     `"`,
	Begin:     []string{"BEGIN IMMEDIATE"},
	OneWriter: true,
	Insert:    "INSERT OR FAIL INTO ", // without a journal for the statement
	Tuples:    "VALUES ",
	Upsert:    "ON CONFLICT (%s) DO UPDATE SET %s",
	Excluded:  "excluded.%s",
	Ignore:    "ON CONFLICT DO NOTHING",
	HidePart:  "+part",
	Sorted:    "+%s",
	// A bare "LIMIT ?" makes SQLite plan the prepared statement anew at every use.
	Limit:     "LIMIT ?+0",
	MaxParams: 32766,
	MaxRows:   32, // the driver's binding takes time by the square of the parameters
	Types: map[storage.Kind]string{
		storage.Text: "TEXT", storage.Int: "INTEGER", storage.Bool: "INTEGER", storage.Time: "INTEGER",
		storage.Decimal: "TEXT", storage.Bytes: "BLOB", storage.JSON: "TEXT",
	},
	KeyText:     "TEXT",
	KeyBytes:    "BLOB",
	TableSuffix: " STRICT",
	DueIndex:    "CREATE INDEX %s ON %s (due, part, id) WHERE due > 0",
	Migrations:  migrations,
	Check:       check,
	CheckEach:   true,
	Describe:    describe,
	Classify:    classify,
}

// Store is a storage.Store in a SQLite file.
type Store struct {
	*sqlstore.Store
	migrate func(ctx context.Context, tables ...*storage.Table) error // nil = the host does it
}

// Open implements storage.Store. With Options.Migrate it migrates first.
func (s *Store) Open(ctx context.Context, tables ...*storage.Table) error {
	if s.migrate != nil {
		if err := s.migrate(ctx, tables...); err != nil {
			return err
		}
	}
	return s.Store.Open(ctx, tables...)
}

// Options of a store that Open opens itself.
type Options struct {
	// BusyTimeout is how long a transaction waits for another process to finish
	// writing. Defaults to 5 s.
	BusyTimeout time.Duration
	// Readers is the number of connections that read. Defaults to 4.
	Readers int
	// Lane tunes the group commit. The zero value is fine.
	Lane lane.Config
	// Migrate has Store.Open bring the schema to this version first, for programs of one
	// process. Defaults to leaving that to Migrate.
	Migrate bool
}

func (o Options) withDefaults() Options {
	if o.BusyTimeout <= 0 {
		o.BusyTimeout = 5 * time.Second
	}
	if o.Readers <= 0 {
		o.Readers = 4
	}
	return o
}

// Open opens the file at path, creating it where there is none. The schema is
// made by Migrate and checked by Store.Open, which comes next. Close closes it.
func Open(path string, o Options) (*Store, error) {
	o = o.withDefaults()
	write, err := connect(path, min(o.BusyTimeout, oneWait), o.BusyTimeout)
	if err != nil {
		return nil, err
	}
	write.SetMaxOpenConns(1)
	read, err := connect(path, o.BusyTimeout, o.BusyTimeout)
	if err != nil {
		_ = write.Close()
		return nil, err
	}
	read.SetMaxOpenConns(o.Readers)
	read.SetMaxIdleConns(o.Readers)
	s := &Store{Store: sqlstore.New(dialect, read, write, sqlstore.Options{Lane: o.Lane, BusyTimeout: o.BusyTimeout}).Own()}
	if o.Migrate {
		s.migrate = func(ctx context.Context, tables ...*storage.Table) error { return Migrate(ctx, path, tables...) }
	}
	return s, nil
}

// oneWait is the driver's own wait for the write lock. It sleeps longer each
// time, so it is kept short and repeated: see Options.BusyTimeout.
const oneWait = 50 * time.Millisecond

// pageCache is the most that a connection keeps of the file, in KiB.
const pageCache = 32 << 10

// connect opens a pool on the file at path: busy is the driver's own wait for a lock, and
// wait how long a connection is opened again that meets one.
func connect(path string, busy, wait time.Duration) (*sqlx.DB, error) {
	if path == "" || strings.Contains(path, ":memory:") {
		return nil, fmt.Errorf("sqlite: %q is no file: use storage/memory for what need not last", path)
	}
	q := url.Values{"_pragma": {
		fmt.Sprintf("busy_timeout(%d)", busy.Milliseconds()),
		"journal_mode(WAL)", "synchronous(FULL)", "foreign_keys(1)",
		// The default of 2 MB does not hold what a thousand accounts touch.
		fmt.Sprintf("cache_size(-%d)", pageCache),
	}}
	if err := private(path); err != nil {
		return nil, err
	}
	o := &opener{driver: &lite.Driver{}, dsn: "file:" + (&url.URL{Path: path}).EscapedPath() + "?" + q.Encode(), wait: wait}
	return sqlx.NewDb(sql.OpenDB(o), "sqlite"), nil
}

// opener opens connections to a file. The first one changes a new file to WAL, and where
// several do so at once SQLite tells some that it is locked, whatever their busy_timeout:
// these come again.
type opener struct {
	driver driver.Driver
	dsn    string
	wait   time.Duration
}

// Connect implements driver.Connector.
func (o *opener) Connect(ctx context.Context) (driver.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, o.wait)
	defer cancel()
	for {
		c, err := o.driver.Open(o.dsn)
		if err == nil || classify(err) != sqlstore.ClassBusy {
			return c, err
		}
		if ctx.Err() != nil {
			return nil, err
		}
		pause, over := context.WithTimeout(ctx, comeAgain)
		<-pause.Done()
		over()
	}
}

// comeAgain is after how long a connection is opened again.
const comeAgain = 2 * time.Millisecond

// Driver implements driver.Connector.
func (o *opener) Driver() driver.Driver { return o.driver }

// private makes a new file that only its owner can read: it holds what customers paid, and
// hashes of credentials. SQLite gives the files beside it the same mode. One that is there
// stays as it is.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return fmt.Errorf("sqlite: %w", err)
	}
	return f.Close()
}

// OpenDB stands on the host's own pool of connections of the driver "sqlite".
// It is never closed here. Every connection must have journal_mode WAL,
// synchronous FULL or EXTRA, and a busy_timeout: set them in the DSN, as in
// file:x.db?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000).
func OpenDB(db *sqlx.DB, o Options) *Store {
	o = o.withDefaults()
	s := &Store{Store: sqlstore.New(dialect, db, db, sqlstore.Options{Lane: o.Lane, BusyTimeout: o.BusyTimeout})}
	if o.Migrate {
		s.migrate = func(ctx context.Context, tables ...*storage.Table) error { return MigrateDB(ctx, db, tables...) }
	}
	return s
}

// Migrate brings the schema of the file at path to this library's, by migrations
// written by hand. Tables that none of them makes, as a host's own, are created
// from their declarations. It may be run again, and by several processes at once.
func Migrate(ctx context.Context, path string, tables ...*storage.Table) error {
	wait := Options{}.withDefaults().BusyTimeout
	db, err := connect(path, wait, wait)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // nothing is pending
	return MigrateDB(ctx, db, tables...)
}

// MigrateDB is Migrate over the host's own pool.
func MigrateDB(ctx context.Context, db *sqlx.DB, tables ...*storage.Table) error {
	return sqlstore.Migrate(ctx, db, dialect, tables...)
}

// Schema prints the statements that make these tables, for a migration's file.
func Schema(tables ...*storage.Table) string { return dialect.Declared(tables...) }
