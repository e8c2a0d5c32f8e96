// Package sqlstore keeps storage's tables in a SQL database: one
// implementation over sqlx for every dialect. A dialect is data, see Dialect;
// its package adds the driver, the checks of its settings and its migrations.
//
// # Layout
//
// Each declared table is a real table, Prefix and its name, with the columns
// part, id, version, change_id and due before its own, the primary key
// (part, id), one unique index per Unique, one index per Index, each led by
// part, and an index over due rows. Times are µs since 1970 UTC, amounts are
// 64-bit integers, 0 is "never" and "zero time", no column is null. People may
// read all of it; nobody else may write.
//
// # Commit
//
// A batch locks the rows of its partitions in one table, in sorted order, and
// only then reads what its verdicts depend on; package verdict judges in
// memory, and the net effect is written in a few statements, however many
// Changes there are. Where a database has one writer (SQLite), beginning the
// transaction is that lock.
package sqlstore

import (
	"context"
	"io/fs"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Prefix starts the names of all tables and indexes, so that they can live
// beside a host's own.
const Prefix = "cryptopay_"

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

	Begin     string // begins a transaction that may write
	OneWriter bool   // Begin excludes every other writer: partitions need no locks
	LockParts string // "… WHERE part IN (%s) …": locks and returns free partitions
	WaitParts string // the same, waiting for them
	RowLock   string // appended to reads of rows that will be written
	ClaimLock string // the same, passing over rows locked elsewhere

	// Insert begins a statement whose rows must all be new. An error rolls the
	// whole transaction back, so a statement need not be able to undo itself.
	// Defaults to "INSERT INTO ".
	Insert string
	Tuples string // stands before a list of tuples after IN: "VALUES " or ""
	// Casts names the types of a tuple's values by kind, where the database
	// cannot tell them from the comparison; nil where it can.
	Casts    map[storage.Kind]string
	Upsert   string // "ON CONFLICT (%s) DO UPDATE SET %s": key columns, assignments
	Excluded string // "excluded.%s": the value that an upsert brings
	Ignore   string // "ON CONFLICT DO NOTHING"

	MaxParams int // of one statement
	MaxRows   int // of one statement, a power of two. Defaults to 128

	// Types of columns by kind; KeyText and KeyBytes where they are indexed.
	Types       map[storage.Kind]string
	KeyText     string
	KeyBytes    string
	TableSuffix string // after CREATE TABLE (…)
	DueIndex    string // "CREATE INDEX %s ON %s (due, part, id) WHERE due > 0"

	MigrateLock string // taken inside each migration's transaction; "" where Begin suffices
	Migrations  fs.FS  // migrations/NNNN_name.sql

	// Check reads the settings of a connection and refuses what is unsafe.
	Check func(ctx context.Context, c *sqlx.Conn) error
	// Describe lists what a table consists of, in the words of Shape; empty
	// where there is no such table.
	Describe func(ctx context.Context, q sqlx.QueryerContext, table string) ([]string, error)
	// Classify says what an error of the driver means.
	Classify func(error) Class
}

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
