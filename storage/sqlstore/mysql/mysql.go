// Package mysql is storage in MariaDB 10.6 or newer and MySQL 8.0 or newer, by
// go-sql-driver/mysql through sqlx. Any number of processes on any number of
// machines may share one database. It is tested on MariaDB 10.11, alone and as a
// Galera cluster of three; for MySQL it is designed, and not tested.
//
// What it promises: a Commit that returned nil is flushed to the server's disk
// (innodb_flush_log_at_trx_commit = 1), so it survives a crash of the server, and
// everyone sees it. A server whose settings promise less is refused, unless
// Options.Accept names the risk.
//
// Text is kept as bytes (varbinary, longblob), for no collation of these servers
// compares it byte by byte, trailing blanks included, on all versions. To read it
// as text use CONVERT(column USING utf8mb4).
package mysql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"embed"
	"errors"
	"fmt"
	"io"
	"log"
	"net/url"
	"strings"
	"time"

	driverpkg "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/lane"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
)

//go:embed migrations/*.sql
var migrations embed.FS

const begin = "START TRANSACTION READ WRITE"

// lockName is the migrators' lock: one per database of a server.
const lockName = "left(concat('cryptopay_migrations.', database()), 64)"

// base is the dialect; Options add to a copy of it.
var base = sqlstore.Dialect{
	Name:      "mysql",
	Bind:      sqlx.QUESTION,
	Quote:     "`",
	Begin:     []string{begin},
	LockParts: "SELECT part FROM %s WHERE part IN (%s) ORDER BY part FOR UPDATE SKIP LOCKED",
	LockPart:  "SELECT part FROM %s WHERE part IN (%s) FOR UPDATE NOWAIT",
	WaitParts: "SELECT part FROM %s WHERE part IN (%s) ORDER BY part FOR UPDATE",
	RowLock:   " FOR UPDATE",
	ClaimLock: " FOR UPDATE SKIP LOCKED",
	HostLock:  " FOR UPDATE",

	Autocommits: true,
	UseIndex:    " FORCE INDEX (%s)",

	Upsert:    "ON DUPLICATE KEY UPDATE %[2]s",
	Excluded:  "VALUES(%s)",
	Ignore:    "ON DUPLICATE KEY UPDATE {key} = VALUES({key})",
	MaxParams: 65535,
	MaxRows:   256,
	Types: map[storage.Kind]string{
		storage.Text: "longblob", storage.Int: "bigint", storage.Bool: "bigint", storage.Time: "bigint",
		storage.Decimal: "longblob", storage.Bytes: "longblob", storage.JSON: "longblob",
	},
	KeyText:       "varbinary(500)",
	KeyBytes:      "varbinary(500)",
	TableSuffix:   " ENGINE=InnoDB DEFAULT CHARSET=utf8mb4",
	InTable:       true,
	DueIndex:      "INDEX %s (due, part, id)",
	MigrateLock:   "DO get_lock(" + lockName + ", 600)",
	MigrateUnlock: "DO release_lock(" + lockName + ")",
	Migrations:    migrations,
	Describe:      describe,
	Made:          made,
	Classify:      classify,
}

// Options of a store. The zero value is fine.
type Options struct {
	// Prefix begins the tables' names. Defaults to "cryptopay_".
	Prefix string
	// Accept names the risks that the operator takes.
	Accept Risks
	// Galera says that the server is one of a Galera cluster, and that this is
	// meant: each batch then marks its partitions, so that two nodes that commit
	// for one partition at once are told apart, and reads wait for what other
	// nodes have committed. Such a server is refused without it.
	Galera bool
	// LockTimeout is how long a commit waits for a partition that somebody else
	// keeps locked, as a host's own transaction does; whole seconds. Defaults to 5 s.
	// A transaction of ours that does nothing for so long, as one of a process that
	// was stopped, is ended by the server (MariaDB; not by MySQL, nor on a host's pool).
	LockTimeout time.Duration
	// Connections is the most that Open opens for reading. Defaults to 8. Writing
	// takes one per lane, and those of claims, besides.
	Connections int
	// Lane tunes the group commit. Defaults to two shards.
	Lane lane.Config
}

// Risks are settings of a server that Open refuses unless they are accepted here.
type Risks struct {
	// LazyFlush: innodb_flush_log_at_trx_commit is not 1. A crash of the server or
	// machine loses the last acknowledged commits, of money too.
	LazyFlush bool
	// LazyBinlog: the binary log is on and sync_binlog is not 1. After a crash
	// replicas may lack acknowledged commits.
	LazyBinlog bool
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
	d.Prefix = o.Prefix
	if o.Galera {
		d.Touch = "UPDATE %s SET turn = turn + 1 WHERE part IN (%s)"
		d.Tries = 40 // one of those that meet always wins
	}
	d.Check = func(ctx context.Context, c sqlx.QueryerContext) error { return check(ctx, c, o) }
	return &d, d.Valid()
}

// session is what every connection of ours is set to.
func (o Options) session() []string {
	set := []string{
		"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
		"SET SESSION sql_mode = 'TRADITIONAL', SESSION innodb_lock_wait_timeout = " + seconds(o.LockTimeout),
		// Only MariaDB can end a transaction whose process was stopped: nobody else
		// can free what it has locked.
		"SET /*M!100300 SESSION idle_transaction_timeout = " + seconds(o.LockTimeout) + ", */ @cryptopay = 1",
	}
	if o.Galera {
		set = append(set, "SET SESSION wsrep_sync_wait = 7")
	}
	return set
}

func seconds(d time.Duration) string {
	return fmt.Sprint(max(1, int64(d.Round(time.Second)/time.Second)))
}

// Store is a storage.Store in MariaDB or MySQL. It is a storage.Clock too.
type Store struct {
	*sqlstore.Store
	read *sqlx.DB
}

// Now implements storage.Clock with the server's clock.
func (s *Store) Now(ctx context.Context) (time.Time, error) {
	var micros int64
	err := s.read.GetContext(ctx, &micros, "SELECT timestampdiff(MICROSECOND, '1970-01-01', utc_timestamp(6))")
	return storage.FromMicros(micros), err
}

// Open connects to the database that dsn names, in the words of the driver
// (user:password@tcp(host:3306)/database) or as a URL
// (mysql://user:password@host:3306/database). Nothing is asked of it before
// Store.Open, which comes next; the schema is made by Migrate. Close closes the
// connections.
func Open(dsn string, o Options) (*Store, error) {
	o = o.withDefaults()
	d, err := o.dialect()
	if err != nil {
		return nil, err
	}
	read, err := connect(dsn, o, false)
	if err != nil {
		return nil, err
	}
	read.SetMaxOpenConns(o.Connections)
	read.SetMaxIdleConns(o.Connections)
	write, err := connect(dsn, o, true)
	if err != nil {
		return nil, err
	}
	if !o.Galera {
		// A Galera node that another one was faster than rolls back between two
		// statements of one text, says nothing, and runs the rest: seen on 10.11.
		d.Together = together
	}
	return &Store{sqlstore.New(d, read, write, sqlstore.Options{Lane: o.Lane}).Own(), read}, nil
}

// connect makes a pool whose connections are all set to what we need. Where
// several statements travel together they are one text.
func connect(dsn string, o Options, several bool) (*sqlx.DB, error) {
	cfg, err := config(dsn)
	if err != nil {
		return nil, err
	}
	cfg.MultiStatements = several
	inner, err := driverpkg.NewConnector(cfg)
	if err != nil {
		return nil, errBadDSN
	}
	return sqlx.NewDb(sql.OpenDB(&connector{inner, o.session()}), "mysql"), nil
}

// errBadDSN does not quote the DSN, which may hold a password.
var errBadDSN = errors.New("mysql: the DSN cannot be read: use user:password@tcp(host:3306)/database or mysql://user:password@host:3306/database")

func config(dsn string) (*driverpkg.Config, error) {
	if rest, ok := strings.CutPrefix(dsn, "mysql://"); ok {
		var err error
		if dsn, err = fromURL(rest); err != nil {
			return nil, err
		}
	}
	cfg, err := driverpkg.ParseDSN(dsn)
	if err != nil {
		return nil, errBadDSN
	}
	if cfg.DBName == "" {
		return nil, errors.New("mysql: the DSN names no database")
	}
	cfg.InterpolateParams = true // one round trip, where preparing makes it three
	cfg.MaxAllowedPacket = 0     // the server says
	cfg.Logger = log.New(io.Discard, "", 0)
	return cfg, nil
}

// connector sets each new connection.
type connector struct {
	driver.Connector
	set []string
}

// Connect implements driver.Connector.
func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	x, ok := conn.(driver.ExecerContext)
	if !ok {
		return nil, errors.Join(fmt.Errorf("mysql: a connection of %T cannot be set", conn), conn.Close())
	}
	for _, q := range c.set {
		if _, err := x.ExecContext(ctx, q, nil); err != nil {
			return nil, errors.Join(fmt.Errorf("mysql: setting the connection: %w", err), conn.Close())
		}
	}
	return conn, nil
}

// OpenDB stands on the host's own pool of connections of the driver "mysql". It is
// never closed here, and its last connection is always left to the host: a pool
// with a limit needs a limit of at least 2. sql_mode must hold STRICT_TRANS_TABLES
// or STRICT_ALL_TABLES (it does by default), and with Options.Galera
// wsrep_sync_wait must be 7: set it in the DSN. interpolateParams=true spares
// round trips.
func OpenDB(db *sqlx.DB, o Options) (*Store, error) {
	o = o.withDefaults()
	d, err := o.dialect()
	if err != nil {
		return nil, err
	}
	if _, ok := db.Driver().(*driverpkg.MySQLDriver); !ok {
		return nil, fmt.Errorf("mysql: the pool must be of github.com/go-sql-driver/mysql, not of %T", db.Driver())
	}
	if n := db.Stats().MaxOpenConnections; n == 1 {
		return nil, errors.New("mysql: the pool has one connection, and that is the host's: raise SetMaxOpenConns to at least 2")
	}
	// For the next transaction only: the session stays as the host has it.
	d.Begin = []string{"SET TRANSACTION ISOLATION LEVEL READ COMMITTED", begin}
	return &Store{sqlstore.New(d, db, db, sqlstore.Options{Lane: o.Lane}), db}, nil
}

// Migrate brings the schema of the database to this library's, by migrations
// written by hand. Tables that none of them makes, as a host's own, are created
// from their declarations. Any number of processes may do so at once and at any
// time: they take turns, and as these servers cannot take a change of a schema
// back, each statement may be run again.
func Migrate(ctx context.Context, dsn string, o Options, tables ...*storage.Table) error {
	db, err := connect(dsn, o.withDefaults(), false)
	if err != nil {
		return err
	}
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

// fromURL turns user:password@host:port/database?params into the driver's words.
func fromURL(rest string) (string, error) {
	u, err := url.Parse("mysql://" + rest)
	if err != nil || u.Host == "" {
		return "", errBadDSN
	}
	host := u.Host
	if u.Port() == "" {
		host += ":3306"
	}
	cfg := driverpkg.NewConfig()
	cfg.Net, cfg.Addr, cfg.DBName, cfg.User = "tcp", host, strings.TrimPrefix(u.Path, "/"), u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	dsn := cfg.FormatDSN()
	if u.RawQuery != "" {
		sign := "?"
		if strings.Contains(dsn, "?") {
			sign = "&"
		}
		dsn += sign + u.RawQuery
	}
	return dsn, nil
}
