package storage

import (
	"context"
	"database/sql"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Partition names the shard that a record lives in: "tenant/<id>",
// "network/<code>" or "system". A Change touches exactly one, and uniqueness
// holds within one. Nothing is ever atomic across two.
type Partition string

// System holds what belongs to no tenant and no network: the directory of
// tenants, applications, tokens, keys.
const System Partition = "system"

// Tenant is the partition of one merchant.
func Tenant(id string) Partition { return Partition("tenant/" + id) }

// Network is the partition of one chain.
func Network(code string) Partition { return Partition("network/" + code) }

// Store is everything that a backend implements. All methods may be called
// concurrently and by several processes at once. A method whose context ends
// returns its error; for Commit that is an unknown outcome.
type Store interface {
	// Open makes the store ready for the tables. It checks the settings and the
	// schema it stands on and refuses what is unsafe or too old with an error
	// that says what to do. Calling it again with the same tables is harmless.
	Open(ctx context.Context, tables ...*Table) error

	// Commit is the only write. Each Change is atomic, the slice is not; error i
	// belongs to change i. nil: durable and visible to every later read.
	// ErrConflict: nothing happened, reload and decide again.
	// *DuplicateError, *ledger.InsufficientFundsError, *LevelError,
	// *NotEmptyError and ErrMalformed: nothing happened, and never will for
	// this Change. ErrBusy: nothing happened, send the same Change later. Any other
	// error: unknown outcome, send the same Change again. A Change that is there
	// already returns nil (see Change.ID).
	Commit(ctx context.Context, changes ...Change) []error

	// Rows returns the rows with these keys, of any partitions, in the order asked;
	// keys that no row has are left out. Doubled keys give doubled rows.
	Rows(ctx context.Context, t *Table, keys ...Key) ([]Row, error)

	// Find returns the rows that match, ordered as the Query says. A page that
	// does not exist is empty, not an error. A row that cannot be read is left out: its
	// *RowError comes beside the rows, and they are not all.
	Find(ctx context.Context, q Query) ([]Row, error)

	// Count returns how many rows match; Order, Limit and Offset play no part. A row that
	// cannot be read may be counted, or its *RowError comes beside how many others there are.
	Count(ctx context.Context, q Query) (int64, error)

	// Claim takes due rows, oldest first, under a lease: each returned row has
	// its Due moved to Until and its Version raised by one. No other Claim
	// returns it before Until, and a Put that relies on an older Version is
	// ErrConflict: that is the fence.
	//
	// A row that cannot be read is taken as well, so that it is in nobody's way, and left
	// out: its *RowError comes beside the rows.
	Claim(ctx context.Context, c Claim) ([]Row, error)

	// Balances returns every asset's balance of these accounts, or of all
	// accounts of the partition where none is named, ordered by account and
	// asset. An account that was never touched has none.
	Balances(ctx context.Context, p Partition, accounts ...ledger.Account) ([]ledger.Balance, error)

	// Entries returns at most max entries of one account and asset with
	// Seq < before (0 = from the newest), newest first.
	Entries(ctx context.Context, p Partition, a ledger.Account, asset ledger.Asset, before int64, max int) ([]ledger.Entry, error)

	// Close releases what the store opened itself, and nothing of the host's.
	Close() error
}

// Change is everything that one decision causes: it happens whole or not at all.
//
// It must hold at least one Put, Drop or Post. It is judged in this order:
// there already (nil); Require and versions (ErrConflict); uniqueness
// (*DuplicateError); Empty (*NotEmptyError); Level (*LevelError); Count
// (ledger.ErrOverflow); Post (*DuplicateError for a Tx.ID,
// *ledger.InsufficientFundsError).
//
// There already means: a Tx of Post exists and was posted by this ID, or a row
// of Put exists and was last written by this ID, or the Change only Drops and
// the rows are gone. Where a Put row was written by this ID but has moved on
// since, the version tells: ErrConflict, and deciding on the new state must
// find nothing left to do.
type Change struct {
	// ID is a UUIDv7, or derived from what caused the Change; at most 200 bytes.
	// The same ID always carries the same Change.
	ID        string
	Partition Partition
	Require   []Guard          // versions of rows that the decision relied on
	Put       []Row            // Version 0 inserts; else it must match and is stored as +1
	Drop      []Row            // Table, ID and Version as in Put
	Post      []ledger.Tx      // balanced, Tx.ID unique in the partition
	Level     []Level          // counters with a ceiling
	Count     []Count          // counters without one
	Tell      []Event          // numbered within the partition, in the order of Changes: see Events
	Empty     []ledger.Account // every balance of it must be zero

	// NoWait gives ErrBusy where the partition stays locked elsewhere: by another
	// process, or by a host's transaction. It is for workers, who come again; without
	// it a Commit waits for the lock. In a host's transaction it plays no part.
	NoWait bool
}

// Guard demands that a row stands at a version; 0 = it must not exist.
type Guard struct {
	Table   *Table
	ID      string
	Version int64
}

// Level moves a named counter of the partition: value += Delta. Where Delta > 0
// the result must be at most Max, else *LevelError. Values below 0 become 0.
type Level struct {
	Name  string
	Delta int64
	Max   int64
}

// Row is one record of a table. Value is what the table was declared for, by
// value (a T, not a *T); TableOf gives typed access.
type Row struct {
	Table     *Table
	Partition Partition // set on reading; in a Change the Change's is taken
	ID        string    // unique in table and partition; at most 200 bytes
	Version   int64
	Change    string    // set on reading: ID of the Change that last wrote it
	Due       time.Time // zero: never; else Claim finds it from then on
	Value     any
}

// Query selects rows of one table.
type Query struct {
	Table      *Table
	Partition  Partition   // "" = all partitions: for operators' reads and workers only
	Partitions []Partition // instead of Partition: rows of any of these, none where it is empty and not nil
	Where      []Cond      // all must hold
	Order      []Order     // then by id; default by id ascending
	Limit      int         // 0 = 100
	Offset     int
	IDs        bool // Find returns rows without their Value: whoever wants ids alone reads less
}

// Cond compares a column with a value of the column's Go type. Text compares
// by bytes, everywhere. Column may also be "id", "due" or "version".
type Cond struct {
	Column string
	Op     Op
	Value  any // for In: a slice of the column's type
}

// Op is a comparison.
type Op string

// The comparisons that every backend knows.
const (
	Eq Op = "="
	Ne Op = "<>"
	Lt Op = "<"
	Le Op = "<="
	Gt Op = ">"
	Ge Op = ">="
	In Op = "in"
)

// Order sorts by a column. Ids break ties in the same direction.
type Order struct {
	Column string
	Desc   bool
}

// Claim asks for due rows: Due ≤ Now and not zero.
type Claim struct {
	Table     *Table
	Partition Partition   // "" = any
	Except    []Partition // rows of these are passed over
	Where     []Cond
	Now       time.Time
	Until     time.Time // end of the lease, must be after Now
	Max       int
}

// Table lookup names that every table has beside its own columns.
const (
	ColID      = "id"
	ColDue     = "due"
	ColVersion = "version"
)

// Tx is a Store inside of a transaction of the host's own: nil from its Commit
// means "if that transaction commits". Backends in SQL and memory give one (WithTx);
// what can be written through it, and who waits for whom, is said there. Redis gives
// none.
type Tx interface {
	Store

	// Alone reports whether the transaction keeps every other writer of the
	// database out, so that whatever has to be written has to be written in it.
	Alone() bool
}

// Transactor is a Store over a database that can hold a host's tables, too.
type Transactor interface {
	// InTx begins a transaction and calls f. It commits where f returns nil, and rolls back
	// where it does not. In f, s is the store inside of the transaction, and the rules of its
	// WithTx hold. f writes rows of the tenant p through s alone: another way would wait for
	// this transaction. Where the database has one writer that is so of every row. ErrBusy
	// says that nothing has happened; any other error of the commit leaves that open.
	InTx(ctx context.Context, p Partition, f func(ctx context.Context, tx *sql.Tx, s Tx) error) error
}
