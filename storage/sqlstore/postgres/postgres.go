// Package postgres is storage in PostgreSQL 13 or newer, by pgx through sqlx. Any
// number of processes on any number of machines may share one database.
//
// What it promises: a Commit that returned nil is flushed to the server's disk, so
// it survives a crash of the server, and everyone sees it. A server whose settings
// promise less is refused, unless Options.Accept names the risk. Replication is the
// operator's: with asynchronous standbys a failover loses what they had not
// received; set synchronous_standby_names where it must not.
//
// Tables live beside the host's own, in a schema (Options.Schema) or under a prefix
// of their names (Options.Prefix).
package postgres

import (
	"context"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/lane"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

// base is the dialect; Options add to a copy of it.
var base = sqlstore.Dialect{
	Name:      "postgres",
	Bind:      sqlx.DOLLAR,
	Quote:     `"`,
	Begin:     []string{"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"},
	LockParts: "SELECT part FROM %s WHERE part IN (%s) ORDER BY part FOR UPDATE SKIP LOCKED",
	LockPart:  "SELECT part FROM %s WHERE part IN (%s) FOR UPDATE NOWAIT",
	WaitParts: "SELECT part FROM %s WHERE part IN (%s) ORDER BY part FOR UPDATE",
	RowLock:   " FOR UPDATE",
	ClaimLock: " FOR UPDATE SKIP LOCKED",
	Arrays: map[storage.Kind]string{
		storage.Text: "text[]", storage.Int: "bigint[]", storage.Bool: "bigint[]", storage.Time: "bigint[]",
		storage.Decimal: "text[]", storage.Bytes: "bytea[]", storage.JSON: "text[]",
	},
	Unindexed: map[storage.Kind]string{storage.Text: "(%s || '')", storage.Int: "(%s + 0)", storage.Bool: "(%s + 0)", storage.Time: "(%s + 0)"},
	Page:      page,
	Upsert:    "ON CONFLICT (%s) DO UPDATE SET %s",
	Excluded:  "excluded.%s",
	Ignore:    "ON CONFLICT DO NOTHING",
	MaxParams: 32767,
	MaxRows:   2048,
	Together:  together,
	Replan:    replan,
	Types: map[storage.Kind]string{
		storage.Text: text, storage.Int: "bigint", storage.Bool: "bigint", storage.Time: "bigint",
		storage.Decimal: text, storage.Bytes: "bytea", storage.JSON: text,
	},
	KeyText:     text,
	KeyBytes:    "bytea",
	AfterTable:  `ALTER TABLE %s ALTER COLUMN part SET STATISTICS 0`, // see replan
	DueIndex:    "CREATE INDEX %s ON %s (due, part, id) WHERE due > 0",
	MigrateLock: "SELECT pg_advisory_xact_lock(4846791021)", // one number for all schemas: migrating is rare
	MigrateIn:   "SET LOCAL search_path TO %s",
	MakeSchema:  "CREATE SCHEMA IF NOT EXISTS %s",
	Migrations:  migrations,
	CheckTx:     func(ctx context.Context, q sqlx.QueryerContext) error { return checkTx(ctx, ask(q)) },
	Describe:    describe,
	Classify:    classify,
}

// replan drops a connection's plans. Statements are planned without their values, so
// that planning costs nothing per use. Which index such a plan takes depends on how many
// rows of the table the server expects in one partition. While a table is empty all
// indexes cost the same, and the server may take one that reads the whole partition. So
// plans are dropped as a connection is used (sqlstore.Work). No statistics are kept
// of the column part: they are an average over all tenants, and would say "one row" of a
// tenant with a million where most tenants have one.
const replan = "DISCARD PLANS"

// page hides from the planner how many rows are asked for. The server expects one in 200
// of a table's rows in a partition. Where more are asked for than it expects, it would
// read all of the partition and sort it.
const page = "LIMIT (SELECT ?::bigint) OFFSET (SELECT ?::bigint)"

// text sorts and compares by its bytes, whatever the database's own order is.
const text = `text COLLATE "C"`

// Options of a store. The zero value is fine.
type Options struct {
	// Schema holds the tables. Defaults to the first of the connection's
	// search_path, mostly "public". Migrate makes it.
	Schema string
	// Prefix begins the tables' names. Defaults to "cryptopay_".
	Prefix string
	// Accept names the risks that the operator takes.
	Accept Risks
	// LockTimeout is how long a commit waits for a partition that somebody else
	// keeps locked, as a host's own transaction does. Defaults to 5 s.
	// A transaction of ours that does nothing for so long, as one of a process that
	// was stopped, is ended by the server.
	LockTimeout time.Duration
	// Connections is the most that Open opens for reading. Defaults to 8. Writing
	// takes one per lane, and those of claims, besides.
	Connections int
	// Lane tunes the group commit. Defaults to two shards.
	Lane lane.Config
}

// Risks are settings of a server that Open refuses unless they are accepted here.
type Risks struct {
	// AsyncCommit: synchronous_commit is off. A crash of the server loses the last
	// acknowledged commits, of money too.
	AsyncCommit bool
	// NoFsync: fsync or full_page_writes is off. A crash of the machine may lose or
	// damage everything.
	NoFsync bool
}

func (o Options) withDefaults() Options {
	if o.LockTimeout <= 0 {
		o.LockTimeout = 5 * time.Second
	}
	if o.Connections <= 0 {
		o.Connections = 8
	}
	if o.Lane.Shards <= 0 {
		o.Lane.Shards = 2
	}
	return o
}

// dialect is the base with the options in it.
func (o Options) dialect() (*sqlstore.Dialect, error) {
	d := base
	d.Schema, d.Prefix = o.Schema, o.Prefix
	d.Check = func(ctx context.Context, c sqlx.QueryerContext) error { return check(ctx, ask(c), o.Accept) }
	return &d, d.Valid()
}

// Store is a storage.Store in PostgreSQL. It is a storage.Clock too.
type Store struct {
	*sqlstore.Store
	read   *sqlx.DB
	accept Risks
}

// Now implements storage.Clock with the server's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var micros int64
	err := s.read.GetContext(ctx, &micros, "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
	return storage.FromMicros(micros), err
}

// Open connects to the server that dsn names, as a URL (postgres://user@host/db)
// or in libpq's words. Nothing is asked of it before Store.Open, which comes next;
// the schema is made by Migrate. Close closes the connections.
func Open(dsn string, o Options) (*Store, error) {
	o = o.withDefaults()
	d, err := o.dialect()
	if err != nil {
		return nil, err
	}
	cfg, err := config(dsn)
	if err != nil {
		return nil, err
	}
	own := cfg.Copy()
	// Reading takes a page by an index; workers in parallel cost more than they save.
	cfg.RuntimeParams["max_parallel_workers_per_gather"] = "0"
	cfg.RuntimeParams["jit"] = "off"
	read := sqlx.NewDb(stdlib.OpenDB(*cfg, stdlib.OptionResetSession(replanReads)), "pgx")
	read.SetMaxOpenConns(o.Connections)
	read.SetMaxIdleConns(o.Connections)
	set := own.RuntimeParams
	set["lock_timeout"] = milliseconds(o.LockTimeout)
	set[idle] = milliseconds(o.LockTimeout)
	// Writing finds rows by their keys and nothing else. A plan made while a table
	// was small must not scan it when it is large, nor sort what an index has in order.
	for _, off := range []string{"enable_seqscan", "enable_hashjoin", "enable_mergejoin", "enable_sort", "jit"} {
		set[off] = "off"
	}
	set["plan_cache_mode"] = "force_generic_plan"
	write := sqlx.NewDb(stdlib.OpenDB(*own), "pgx")
	return &Store{sqlstore.New(d, read, write, sqlstore.Options{Lane: o.Lane}).Own(), read, o.Accept}, nil
}

// workKey is where a reading connection keeps its sqlstore.Work.
const workKey = "cryptopay/work"

// replanReads drops the plans of a reading connection as it is used.
func replanReads(ctx context.Context, c *pgx.Conn) error {
	data := c.PgConn().CustomData()
	work, ok := data[workKey].(*sqlstore.Work)
	if !ok {
		work = &sqlstore.Work{}
		data[workKey] = work
	}
	if !work.Add(1) {
		return nil
	}
	_, err := c.Exec(ctx, replan)
	return err
}

// idle ends a transaction whose process was stopped: nobody else can free what it
// has locked.
const idle = "idle_in_transaction_session_timeout"

func config(dsn string) (*pgx.ConnConfig, error) {
	cfg, err := pgx.ParseConfig(dsn)
	if err != nil {
		return nil, errors.New("postgres: the DSN cannot be read: use postgres://user:password@host:port/database") // the cause may quote the password
	}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "cryptopay"
	}
	return cfg, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }

// ErrDriver says that a pool's connections are not pgx's.
var ErrDriver = errors.New(`postgres: the pool must be of pgx: open it with sqlx.Open("pgx", dsn) and import github.com/jackc/pgx/v5/stdlib`)

// OpenDB stands on the host's own pool of pgx connections ("pgx" of
// github.com/jackc/pgx/v5/stdlib). It is never closed here, and its last connection
// is always left to the host: a pool with a limit needs a limit of at least 2.
func OpenDB(db *sqlx.DB, o Options) (*Store, error) {
	o = o.withDefaults()
	d, err := o.dialect()
	if err != nil {
		return nil, err
	}
	if err := ofPGX(db.Driver()); err != nil {
		return nil, err
	}
	if n := db.Stats().MaxOpenConnections; n == 1 {
		return nil, errors.New("postgres: the pool has one connection, and that is the host's: raise SetMaxOpenConns to at least 2")
	}
	// A host's connections keep no plans of ours: see replan.
	d.Begin = append(d.Begin[:1:1], "SET LOCAL lock_timeout = "+milliseconds(o.LockTimeout), "SET LOCAL "+idle+" = "+milliseconds(o.LockTimeout),
		"SET LOCAL plan_cache_mode = force_custom_plan")
	if !o.Accept.AsyncCommit {
		// What was checked when it was opened may be set otherwise since, on this
		// connection: it is no longer looked at, but made so.
		d.Begin = append(d.Begin, "SELECT set_config('synchronous_commit', 'on', true) WHERE current_setting('synchronous_commit') = 'off'")
	}
	return &Store{sqlstore.New(d, db, db, sqlstore.Options{Lane: o.Lane}), db, o.Accept}, nil
}

func ofPGX(d driver.Driver) error {
	if _, ok := d.(*stdlib.Driver); !ok {
		return fmt.Errorf("%w, not of %T", ErrDriver, d)
	}
	return nil
}

// Migrate brings the schema of the database to this library's, by migrations
// written by hand. Tables that none of them makes, as a host's own, are created
// from their declarations. Any number of processes may do so at once and at any
// time: they take turns, and what is interrupted has not happened.
func Migrate(ctx context.Context, dsn string, o Options, tables ...*storage.Table) error {
	cfg, err := config(dsn)
	if err != nil {
		return err
	}
	db := sqlx.NewDb(stdlib.OpenDB(*cfg), "pgx")
	defer db.Close() //nolint:errcheck // nothing is pending
	return MigrateDB(ctx, db, o, tables...)
}

// MigrateDB is Migrate over the host's own pool.
func MigrateDB(ctx context.Context, db *sqlx.DB, o Options, tables ...*storage.Table) error {
	d, err := o.dialect()
	if err != nil {
		return err
	}
	return sqlstore.Migrate(ctx, db, d, tables...)
}

// Schema prints all that Migrate does on an empty database, for a host that runs
// it with a tool of its own: the migrations, then those of the tables that none of
// them makes.
func Schema(o Options, tables ...*storage.Table) (string, error) {
	d, err := o.dialect()
	if err != nil {
		return "", err
	}
	return d.Script(tables...)
}

// Declared prints the statements that make these tables, for a migration's file.
func Declared(tables ...*storage.Table) string { return base.Declared(tables...) }
