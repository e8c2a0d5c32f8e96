package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jmoiron/sqlx"
	"github.com/jmoiron/sqlx/reflectx"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// Tx is a Store inside of a transaction of the host's own; see Store.WithTx.
type Tx struct {
	reads

	mu    sync.Mutex // a transaction does one thing at a time
	host  HostTx
	ss    *session
	held  []storage.Partition
	ready bool
}

var _ storage.Tx = (*Tx)(nil)

// ErrOver: the host's transaction was rolled back, by the database or because
// nothing is known of it. What came before in it has not happened.
var ErrOver = errors.New("sqlstore: the host's transaction was rolled back: begin again")

// WithTx is the store inside of a transaction that the host began on the same
// database, and ends: what is committed through it happens with the host's own
// rows or not at all. An *sqlx.Tx holds an *sql.Tx: WithTx(tx.Tx). The store must
// be open, and nothing is asked of the transaction before the first call.
//
//   - nil from Commit means: if the transaction commits. Until then nobody else
//     sees any of it, so nothing leaves the house.
//   - A verdict (ErrConflict and those of storage.Final) leaves the transaction as
//     it was, and so does a partition that was not got in time (storage.ErrBusy): a
//     savepoint stands around each Commit. After any other error roll back. Where
//     the database did so by itself (a deadlock on MariaDB) the transaction is ended
//     here, so that nothing of the host's follows alone.
//   - A Commit takes the tenant's partition and keeps it until the transaction
//     ends. Others of this tenant wait meanwhile, for as long as their lock timeout
//     says, and other tenants do not: keep it short. It waits for the partition as
//     long as the host's connection is set to wait for a lock.
//   - Two tenants in one transaction are taken in the order of their ids: any other
//     is storage.ErrMalformed, for two who go different ways would wait for each
//     other. What is no tenant's (system, networks) is refused: all would wait. A Change
//     there that only inserts rows of tables without a Unique, such as a new tenant's, takes
//     no partition, and nobody waits for it. Where somebody else has inserted the same
//     meanwhile its error is none of the verdicts.
//   - Commit nothing for the same tenant through the store itself while the
//     transaction is open: it would wait for itself.
//
// A tenant's first transaction, and an address (cryptopay.App.In), take another
// connection for a moment. Where the store lives in the host's pool, have fewer of
// these transactions at a time than it has connections, or all wait for each other.
//
// The transaction must be READ COMMITTED (sql.TxOptions). Postgres says what it is,
// and any other is refused. MariaDB does not tell: there one at REPEATABLE READ,
// the default, is as exact, but what it locks lies between rows too, and other
// tenants may wait for it; and it goes on to see rows as they were at its first
// read, so that a decision about one that was written since is ErrConflict until
// the transaction is begun again. Locking those rows as they are read would be no
// way out: whoever commits takes the partition before its rows.
//
// Where a database has one writer (SQLite) a transaction that has written holds up
// everybody who writes; it is then storage.Tx.Alone, and networks may be written.
// Open the host's pool with _txlock=immediate: a transaction that begins by reading
// is refused at its first write if anybody wrote in between.
func (s *Store) WithTx(tx *sql.Tx) *Tx {
	return s.With(&sqlTx{sqlLink{tx}, s.d, &sqlx.Tx{Tx: tx, Mapper: reflectx.NewMapperFunc("db", sqlx.NameMapper)}})
}

// HostTx is a host's transaction, of any driver of the dialect's database.
type HostTx interface {
	Link
	// Check refuses settings of the connection or the transaction that promise too little.
	Check(ctx context.Context) error
	// Rollback ends a transaction that the database has ended.
	Rollback()
}

// sqlTx is an *sql.Tx.
type sqlTx struct {
	sqlLink
	d  *Dialect
	tx *sqlx.Tx
}

func (t *sqlTx) Check(ctx context.Context) error {
	if err := t.d.Check(ctx, t.tx); err != nil || t.d.CheckTx == nil {
		return err
	}
	return t.d.CheckTx(ctx, t.tx)
}

func (t *sqlTx) Rollback() { _ = t.tx.Rollback() }

// With is WithTx for a driver that is none of database/sql: for the package of a dialect.
func (s *Store) With(tx HostTx) *Tx {
	w := words{[]string{"SAVEPOINT cryptopay"}, "RELEASE SAVEPOINT cryptopay", "ROLLBACK TO SAVEPOINT cryptopay"}
	if s.d.Autocommits {
		w.begin = append(w.begin, w.rollback) // fails where there is no transaction any more
	}
	ss := &session{d: s.d, link: tx, steady: s.d.HostLock, words: w}
	t := &Tx{ss: ss, host: tx}
	t.reads = reads{s: s, at: (*inTx)(t)}
	return t
}

// inTx reads in the transaction.
type inTx Tx

func (r *inTx) each(ctx context.Context, q string, args []any, f scan) error {
	t := (*Tx)(r)
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check(ctx); err != nil {
		return err
	}
	return t.ss.each(ctx, q, args, f)
}

// check is called under mu.
func (t *Tx) check(ctx context.Context) error {
	if t.ss.lost {
		return ErrOver
	}
	if t.ready {
		return nil
	}
	if err := t.host.Check(ctx); err != nil {
		return err
	}
	t.ready = true
	return nil
}

// begun refuses a transaction that is over where SAVEPOINT would begin another and
// RELEASE commit it (SQLite, after a full disk or an interrupted statement). Inside
// of a transaction BEGIN changes nothing and is an error.
func (t *Tx) begun(ctx context.Context) error {
	if !t.Alone() {
		return nil
	}
	err := t.ss.link.Exec(context.WithoutCancel(ctx), "BEGIN")
	switch {
	case err == nil:
		t.ss.lost = true
		t.end()
		return ErrOver
	case strings.Contains(err.Error(), "within a transaction"):
		return nil
	}
	return err
}

// Alone implements storage.Tx.
func (t *Tx) Alone() bool { return t.s.d.OneWriter }

// Open implements storage.Store: the store itself must have been opened with
// these tables.
func (t *Tx) Open(_ context.Context, tables ...*storage.Table) error {
	for _, table := range tables {
		if err := t.s.tableOpen(table); err != nil {
			return err
		}
	}
	_, err := t.s.opened()
	return err
}

// Close implements storage.Store. The transaction is the host's to end.
func (t *Tx) Close() error { return nil }

// Commit implements storage.Store, as far as the transaction can: see WithTx.
func (t *Tx) Commit(ctx context.Context, changes ...storage.Change) []error {
	t.mu.Lock()
	defer t.mu.Unlock()
	errs, err := t.commit(ctx, changes)
	if err != nil {
		errs = slices.Repeat([]error{err}, len(changes))
	}
	return errs
}

func (t *Tx) commit(ctx context.Context, changes []storage.Change) ([]error, error) {
	open, err := t.s.opened()
	if err != nil {
		return nil, err
	}
	if err := t.check(ctx); err != nil {
		return nil, err
	}
	if err := t.begun(ctx); err != nil {
		return nil, err
	}
	batch := verdict.Prepare(open.Has, changes)
	free, parts := t.free(changes, batch.Partitions())
	if err := t.may(parts); err != nil {
		return nil, err
	}
	if !t.Alone() && len(t.s.unknown(parts)) > 0 {
		// By a connection of ours, and at once: a partition's first row that waits
		// for the host would hold up whoever enters another one with it.
		err := t.s.writing(ctx, func(ss *session) error { return t.s.enter(ctx, ss, parts) })
		if err != nil {
			return nil, err
		}
		t.s.remember(parts)
	}
	errs, err := t.s.batch(ctx, t.ss, true, parts, free, batch, changes)
	if err != nil {
		t.end()
		return nil, err
	}
	t.held = append(t.held, parts...)
	return errs, nil
}

// end makes sure that a transaction which is over takes nothing more: a database
// that has rolled it back would do each further statement by itself.
func (t *Tx) end() {
	if t.ss.lost {
		t.host.Rollback()
	}
}

// free are the partitions that need not be taken, of those that are no tenant's: each of their
// Changes only inserts, and the database itself refuses what is there. parts are the others.
func (t *Tx) free(changes []storage.Change, all []storage.Partition) (free, parts []storage.Partition) {
	if t.Alone() {
		return nil, all
	}
	for _, p := range all {
		inserts := !tenants(p)
		for i := range changes {
			inserts = inserts && (changes[i].Partition != p || onlyInserts(&changes[i]))
		}
		if inserts {
			free = append(free, p)
		} else {
			parts = append(parts, p)
		}
	}
	return free, parts
}

func onlyInserts(c *storage.Change) bool {
	known := slices.ContainsFunc(c.Put, func(r storage.Row) bool { return r.Version != 0 || r.Table == nil || len(r.Table.Uniques) > 0 })
	return !known && len(c.Put) > 0 && len(c.Require)+len(c.Drop)+len(c.Post)+len(c.Level)+len(c.Count)+len(c.Tell)+len(c.Empty) == 0
}

func tenants(p storage.Partition) bool {
	return strings.HasPrefix(string(p), string(storage.Tenant("")))
}

// may says whether the transaction may take these partitions, which are sorted.
func (t *Tx) may(parts []storage.Partition) error {
	if t.Alone() {
		return nil
	}
	for _, p := range parts {
		if !tenants(p) {
			return fmt.Errorf("%w: a host's transaction cannot hold %s, for which everybody would wait: use the store itself", storage.ErrMalformed, p)
		}
		if !slices.Contains(t.held, p) && len(t.held) > 0 && p < slices.Max(t.held) {
			return fmt.Errorf("%w: %s after %s: a host's transaction takes tenants in the order of their ids", storage.ErrMalformed, p, slices.Max(t.held))
		}
	}
	return nil
}

// Claim implements storage.Store where the transaction is alone; elsewhere it is
// refused, for a lease must be there for all.
func (t *Tx) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	if !t.Alone() {
		return nil, fmt.Errorf("%w: nothing can be claimed in a host's transaction: use the store itself", storage.ErrMalformed)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.check(ctx); err != nil {
		return nil, err
	}
	if err := t.begun(ctx); err != nil {
		return nil, err
	}
	cond, args, err := t.s.due(c)
	if err != nil {
		return nil, err
	}
	rows, unread, err := t.s.take(ctx, t.ss, c, cond, args)
	t.end()
	return rows, errors.Join(unread, err)
}

var _ storage.Transactor = (*Store)(nil)

// InTx implements storage.Transactor, on a connection of the writing pool. While f sends
// nothing for longer than the store's LockTimeout the database may end the transaction. Once
// ctx ends it is rolled back, and nobody waits for it any more, even where f does not return.
func (s *Store) InTx(ctx context.Context, p storage.Partition, f func(ctx context.Context, tx *sql.Tx, st storage.Tx) error) error {
	parts := []storage.Partition{p}
	if !s.d.OneWriter && len(s.unknown(parts)) > 0 {
		// Before the transaction has a connection: who has one must not wait for another.
		if err := s.writing(ctx, func(ss *session) error { return s.enter(ctx, ss, parts) }); err != nil {
			return err
		}
		s.remember(parts)
	}
	ss, leave, err := s.enterWriting(ctx)
	if err != nil {
		return err
	}
	tx, err := s.begin(ctx, ss)
	if err != nil {
		leave()
		return err
	}
	ss.lost = true // until the transaction has ended for sure
	end := func(how func() error) error {
		err := how()
		ss.lost = err != nil
		leave()
		return err
	}
	ours := context.AfterFunc(ctx, func() { _ = end(tx.Rollback) })
	over := false
	defer func() {
		if !over && ours() { // f failed, or panicked
			_ = end(tx.Rollback)
		}
	}()
	if err := f(context.WithValue(ctx, insideOf{s}, true), tx.Tx, s.WithTx(tx.Tx)); err != nil {
		return err
	}
	if over = ours(); !over {
		return ctx.Err()
	}
	return end(tx.Commit)
}

// insideOf marks the context of a function that InTx of a Store has called.
type insideOf struct{ s *Store }

// inside refuses who would wait for itself: a call of the Store in a transaction that keeps
// all other writers out.
func (s *Store) inside(ctx context.Context) error {
	if s.d.OneWriter && ctx.Value(insideOf{s}) != nil {
		return fmt.Errorf("%w: this database has one writer, and that is the transaction in which this call is made: use the transaction's own store", storage.ErrMalformed)
	}
	return nil
}

// begin begins a transaction in which a host writes, too. Where the database has one
// writer, this is the writer from here on: a transaction that begins by reading could be
// refused when it writes. It waits for another writer as long as a Commit does. An error
// wraps storage.ErrBusy where another one writes.
func (s *Store) begin(ctx context.Context, ss *session) (*sqlx.Tx, error) {
	if !s.d.OneWriter {
		tx, err := ss.conn.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
		return tx, ss.classify(err)
	}
	wait, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for {
		tx, err := ss.conn.BeginTxx(ctx, nil)
		if err != nil {
			return nil, ss.classify(err)
		}
		if _, err = tx.ExecContext(ctx, "DELETE FROM "+TableName(storage.Streams.Table)+" WHERE 0"); err == nil {
			return tx, nil
		}
		if e := tx.Rollback(); e != nil {
			ss.lost = true
			return nil, errors.Join(err, e)
		}
		if err = ss.classify(err); wait.Err() != nil || !errors.Is(err, storage.ErrBusy) {
			return nil, err
		}
	}
}
