// Package sqlstore keeps storage's tables in a SQL database: one
// implementation over sqlx for every dialect. A dialect is data, see Dialect;
// its package adds the driver, the checks of its settings and its migrations.
//
// # Layout
//
// Each declared table is a real table, Prefix and its name, with the columns
// part, id, version, change_id, due, lease and claims beside its own, the primary key
// (part, id), one unique index per Unique, one index per Index, each led by
// part, and an index over due rows. Times are µs since 1970 UTC, amounts are
// 64-bit integers, 0 is "never" and "zero time", no column is null. People may
// read all of it; nobody else may write.
//
// A claim writes the end of its lease to the column lease and adds one to claims. No index
// has either, so that it writes no index. A row is due at the later of due and lease, and
// never where due is 0: writing a row ends its lease. Its version is version + claims. A
// process of a version that did not know them sees the columns due and version alone: it
// may claim a row under a lease. Of two who write the row then, one has a conflict.
//
// # Commit
//
// A batch locks the rows of its partitions in one table, in sorted order, and
// only then reads what its verdicts depend on; package verdict judges in
// memory, and the net effect is written in a few statements, however many
// Changes there are. Where a database has one writer (SQLite), beginning the
// transaction is that lock. Where a dialect can, values travel as arrays and
// statements together: a batch is two round trips, one that locks and loads, and
// one that stores and commits.
package sqlstore

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Prefix starts the names of all tables and indexes, so that they can live
// beside a host's own, where a dialect says no other.
const Prefix = "cryptopay_"

// Stmt is one statement that travels with others.
type Stmt struct {
	Text string
	Args []any
	Scan func(Scanner) error // called for every row; nil where there are none
}

// Scanner is one row of a result.
type Scanner interface{ Scan(dest ...any) error }

// Class says what a database's error means for a transaction that was, as far
// as possible, rolled back.
type Class uint8

// The classes. Whatever a dialect does not know is ClassUnknown.
const (
	ClassUnknown Class = iota
	ClassBusy          // locked elsewhere: nothing happened, the same again may work
	ClassRefused       // rolled back: deadlock, serialization, a constraint
	ClassFailed        // rolled back, and trying again is useless (disk full, read-only)
)

// Dialect is what one database says differently. Statements are written with ?
// and rebound.
type Dialect struct {
	Name  string
	Bind  int    // sqlx.QUESTION, sqlx.DOLLAR
	Quote string // around column names, which may be any word: " or `

	Prefix string // of the names of tables. Defaults to the constant
	Schema string // that holds the tables; "" = the connection's own

	Begin     []string // begins a transaction that may write
	OneWriter bool     // Begin excludes every other writer: partitions need no locks
	LockParts string   // "… %s WHERE part IN (%s) …": locks and returns free partitions
	LockPart  string   // the same for one, which fails with ClassBusy where it is not free
	WaitParts string   // the same, waiting for them
	// Touch writes to the partitions of a batch, "… %s … WHERE part IN (%s)", where
	// a lock alone holds off only those of the same server; "" where it holds off all.
	Touch string
	// Tries is how often a refused batch is tried by itself, before its lane does
	// so: where others may be first any number of times. Defaults to 1.
	Tries     int
	RowLock   string // appended to reads of rows that will be written
	ClaimLock string // the same, passing over rows locked elsewhere

	// Insert begins a statement whose rows must all be new. An error rolls the
	// whole transaction back, so a statement need not be able to undo itself.
	// Defaults to "INSERT INTO ".
	Insert string
	Tuples string // stands before a list of tuples after IN: "VALUES " or ""
	// Arrays names the types of values that travel as one array per column, by
	// kind: statements then have one text however many rows they take; nil where
	// they travel as tuples.
	Arrays   map[storage.Kind]string
	Upsert   string // "ON CONFLICT (%s) DO UPDATE SET %s": key columns, assignments
	Excluded string // "excluded.%s": the value that an upsert brings
	Ignore   string // "ON CONFLICT DO NOTHING"; {key} is a column of the key

	// Unindexed writes a column, by kind, so that no index has it: "(%s || '')". A claim
	// names its columns so, where the planner else may take an index of theirs instead of
	// that of the rows that are due, and reads what is not due. nil where it does not.
	Unindexed map[storage.Kind]string

	// HidePart writes the partition in the condition of a claim, "+part", where the planner
	// else reads all rows of that partition for those that are due. Defaults to "part".
	HidePart string
	// Sorted writes a column by which rows are sorted after they were found, "+%s", where
	// the planner else reads all rows of a partition because they come in that order; ""
	// where it does not.
	Sorted string

	// Limit is the end of a query for the first rows: how many. Defaults to "LIMIT ?".
	Limit string
	// Page is the end of a query for a page: how many rows, behind how many. Defaults to
	// Limit and "OFFSET ?".
	Page string

	// UseIndex follows the name of a table whose index a query must walk along,
	// "FORCE INDEX (%s)", where the planner else takes the partition of that index alone
	// and reads past all rows that are out of bounds; "" where it does not.
	UseIndex string

	// Replan makes the database plan a connection's prepared statements anew, where
	// it keeps plans that were made while a table was small; "" where it does not.
	Replan string

	// Together sends statements in one round trip, in order, and stops at the first
	// that fails; nil where they are best sent one by one.
	Together func(ctx context.Context, c *sqlx.Conn, list []Stmt) error

	MaxParams int // of one statement
	MaxRows   int // of one statement, a power of two. Defaults to 128

	// Types of columns by kind; KeyText and KeyBytes where they are indexed.
	Types       map[storage.Kind]string
	KeyText     string
	KeyBytes    string
	TableSuffix string // after CREATE TABLE (…)
	AfterTable  string // "ALTER TABLE %s …": follows each CREATE TABLE of a declared table; "" = nothing
	InTable     bool   // indexes stand inside of CREATE TABLE
	DueIndex    string // "CREATE INDEX %s ON %s (due, part, id) WHERE due > 0", or "INDEX %s (due, part, id)"

	MigrateLock   string // taken inside each migration's transaction; "" where Begin suffices
	MigrateUnlock string // where the lock outlives transactions; it is then taken once
	MigrateIn     string // "SET LOCAL search_path TO %s": makes Schema the connection's own
	MakeSchema    string // "CREATE SCHEMA IF NOT EXISTS %s"
	Migrations    fs.FS  // migrations/NNNN_name.sql, and WholeSchema where there is one

	// Check reads the settings of a connection and refuses what is unsafe: at Open,
	// and of each connection that is kept.
	Check func(ctx context.Context, q sqlx.QueryerContext) error
	// CheckTx is what is looked at besides in a host's transaction; nil where that is all.
	CheckTx func(ctx context.Context, q sqlx.QueryerContext) error
	// HostLock is appended to reads of the ledger in a host's transaction, where it
	// may show an older state than that which its locks keep; mostly "".
	HostLock string
	// Autocommits says that what is sent after the database ended a transaction by
	// itself is committed statement by statement, and SAVEPOINT is no error then.
	Autocommits bool
	// CheckEach says that a host's connections are looked at before each batch, as
	// nothing in Begin makes up for what its session may have set.
	CheckEach bool
	// Describe lists what a table consists of, in the words of Shape; empty
	// where there is no such table.
	Describe func(ctx context.Context, q sqlx.QueryerContext, table string) ([]string, error)
	// Made reports an error of a migration's statement that says that what it makes is
	// there, or what it drops is gone, where a change of the schema is committed by itself: a
	// migrator can have ended after it. nil where a migration is one transaction.
	Made func(error) bool
	// Classify says what an error of the driver means.
	Classify func(error) Class
}

// Valid says whether the names that an operator chose can be used.
func (d *Dialect) Valid() error {
	for _, name := range []string{d.Schema, d.Prefix} {
		if !plain.MatchString(name) {
			return fmt.Errorf("sqlstore: %q is no usable name of a schema or prefix: at most 24 of a-z, 0-9 and _, a letter first", name)
		}
	}
	return nil
}

var plain = regexp.MustCompile(`^([a-z][a-z0-9_]{0,23})?$`)

// local is the name of a table inside its schema.
func (d *Dialect) local(table string) string { return cmp.Or(d.Prefix, Prefix) + table }

// Table is the name of a table, as statements have it.
func (d *Dialect) Table(name string) string {
	if d.Schema != "" {
		return d.Schema + "." + d.local(name)
	}
	return d.local(name)
}

func (d *Dialect) ignore(key string) string { return strings.ReplaceAll(d.Ignore, "{key}", key) }

func (d *Dialect) quote(column string) string { return d.Quote + column + d.Quote }

func (d *Dialect) insert() string {
	if d.Insert != "" {
		return d.Insert
	}
	return "INSERT INTO "
}

func (d *Dialect) quoteAll(columns []string) string {
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = d.quote(c)
	}
	return strings.Join(out, ", ")
}
