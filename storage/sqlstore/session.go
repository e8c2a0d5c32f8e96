package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/lane"
)

// rollbackTime bounds a rollback, which must not depend on the context that
// may have caused it.
const rollbackTime = 5 * time.Second

// session is one connection while it is ours. Statements are prepared and kept
// only where the connection stays ours (keep).
type session struct {
	d     *Dialect
	conn  *sqlx.Conn // nil inside of a host's transaction
	link  Link
	words words
	keep  bool
	stmts map[string]*sqlx.Stmt
	wait  time.Duration // for Begin, where the database is locked elsewhere
	// steady is appended to reads of the ledger, whose partitions are locked: "",
	// unless the transaction may show an older state of it.
	steady string
	lost   bool // the connection is in an unknown state: do not use it again
	own    bool // the connection is ours for good, and so are the plans of its statements
	work   Work // transactions, and rows sent in them
	rows   int  // sent in the transaction before

	// Where statements travel together, exec and each only queue them: what is
	// read is there after flush.
	together bool
	queue    []Stmt
	size     int               // of the queue's values, about
	rebound  map[string]string // statements in the driver's words
}

// Link is what statements are sent to, in the words and with the parameters of its driver.
type Link interface {
	Exec(ctx context.Context, query string, args ...any) error
	// Query calls row for every row of the answer.
	Query(ctx context.Context, query string, args []any, row func(Scanner) error) error
}

// sqlLink is a connection or a transaction of database/sql.
type sqlLink struct {
	c interface {
		ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
		QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	}
}

func (l sqlLink) Exec(ctx context.Context, query string, args ...any) error {
	_, err := l.c.ExecContext(ctx, query, args...)
	return err
}

func (l sqlLink) Query(ctx context.Context, query string, args []any, row func(Scanner) error) error {
	rows, err := l.c.QueryContext(ctx, query, args...) //nolint:sqlclosecheck // closed in visit
	if err != nil {
		return err
	}
	return visit(rows, row)
}

// words are how a transaction begins and ends.
type words struct {
	begin            []string
	commit, rollback string
}

// on is a session on a connection of ours.
func (d *Dialect) on(conn *sqlx.Conn) *session {
	return &session{d: d, conn: conn, link: sqlLink{conn}, words: words{d.Begin, "COMMIT", "ROLLBACK"}}
}

// mostQueued is about how many bytes travel together: far less than servers take.
const mostQueued = 1 << 20

func (s *session) rebind(q string) string {
	if s.d.Bind == sqlx.QUESTION {
		return q
	}
	r, ok := s.rebound[q]
	if !ok {
		r = sqlx.Rebind(s.d.Bind, q)
		if s.rebound == nil || len(s.rebound) > 10_000 {
			s.rebound = map[string]string{}
		}
		s.rebound[q] = r
	}
	return r
}

func (s *session) enqueue(ctx context.Context, q string, args []any, f scan) error {
	s.queue = append(s.queue, Stmt{s.rebind(q), args, f})
	s.size += len(q)
	for _, a := range args {
		switch a := a.(type) {
		case string:
			s.size += len(a)
		case []byte:
			s.size += len(a)
		case []string:
			for i := range a {
				s.size += len(a[i])
			}
		case [][]byte:
			for i := range a {
				s.size += len(a[i])
			}
		}
	}
	if s.size < mostQueued {
		return nil
	}
	return s.flush(ctx)
}

// flush sends what is queued. After an error the transaction is over.
func (s *session) flush(ctx context.Context) error {
	if len(s.queue) == 0 {
		return nil
	}
	list := s.queue
	s.queue, s.size = nil, 0
	if len(list) == 1 && list[0].Scan == nil {
		return s.link.Exec(ctx, list[0].Text, list[0].Args...)
	}
	return s.d.Together(ctx, s.conn, list)
}

// prepared returns the kept statement for q, or nil.
func (s *session) prepared(ctx context.Context, q string) (*sqlx.Stmt, error) {
	if !s.keep {
		return nil, nil //nolint:nilnil // no statement is kept
	}
	if st := s.stmts[q]; st != nil {
		return st, nil
	}
	st, err := s.conn.PreparexContext(ctx, sqlx.Rebind(s.d.Bind, q))
	if err != nil {
		return nil, err
	}
	if s.stmts == nil {
		s.stmts = map[string]*sqlx.Stmt{}
	}
	s.stmts[q] = st
	return st, nil
}

// unwatched is a context for one statement. Where there is one writer nothing
// is waited for once it has begun, and a driver that has to watch a context
// starts a goroutine for every statement.
func (s *session) unwatched(ctx context.Context) context.Context {
	if s.d.OneWriter && ctx.Err() == nil {
		return context.WithoutCancel(ctx)
	}
	return ctx
}

func (s *session) exec(ctx context.Context, q string, args ...any) error {
	if s.together {
		return s.enqueue(ctx, q, args, nil)
	}
	ctx = s.unwatched(ctx)
	st, err := s.prepared(ctx, q) //nolint:sqlclosecheck // kept until the session ends
	if err != nil {
		return err
	}
	if st != nil {
		_, err = st.ExecContext(ctx, args...)
		return err
	}
	return s.link.Exec(ctx, sqlx.Rebind(s.d.Bind, q), args...)
}

// each runs a query and calls f for every row, which it may scan: now, or when
// the queue is flushed.
func (s *session) each(ctx context.Context, q string, args []any, f scan) error {
	if s.together {
		return s.enqueue(ctx, q, args, f)
	}
	ctx = s.unwatched(ctx)
	st, err := s.prepared(ctx, q) //nolint:sqlclosecheck // kept until the session ends
	if err != nil {
		return err
	}
	if st == nil {
		return s.link.Query(ctx, sqlx.Rebind(s.d.Bind, q), args, f)
	}
	rows, err := st.QueryContext(ctx, args...) //nolint:sqlclosecheck // closed in visit
	if err != nil {
		return err
	}
	return visit(rows, f)
}

func visit(rows *sql.Rows, f scan) error {
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		if err := f(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// inTx runs f in a transaction that may write. Any error rolls all of it back,
// with an explicit ROLLBACK: some databases undo only the statement. The error
// wraps storage.ErrBusy or lane.ErrRefused where it is certain that nothing
// happened and another try makes sense.
func (s *session) inTx(ctx context.Context, f func() error) error {
	if err := s.begin(ctx); err != nil {
		s.rollback()
		return s.classify(err)
	}
	over := false
	defer func() {
		if !over { // f panicked
			s.rollback()
		}
	}()
	sent := false // the commit was, so that what became of it may be unknown
	err := s.replan(ctx)
	if err == nil {
		err = f()
	}
	if err == nil {
		sent = true
		err = s.exec(ctx, s.words.commit)
	}
	if err == nil {
		err = s.flush(ctx)
	}
	over = true
	if err == nil {
		return nil
	}
	s.rollback()
	if !sent {
		return s.before(ctx, err)
	}
	return s.classify(err)
}

// Work is what was done on one connection, to know when its statements are to be planned
// anew: when it has grown by a quarter, and at the latest after replanEvery. A plan that
// was made while a table was small is so dropped before the table has grown far, without
// a look at the table's statistics. Planning costs about as much as one use.
type Work struct{ done, planned int }

const replanEvery = 4096

// Add counts n more, such as uses and rows, and reports whether to plan anew now.
func (w *Work) Add(n int) bool {
	w.done += n
	if w.done-w.planned <= min(w.planned/4, replanEvery) {
		return false
	}
	w.planned = w.done
	return true
}

// replan drops the connection's plans where it is time to. It stands inside of the
// transaction, whose beginning must be the first of what travels together.
func (s *session) replan(ctx context.Context) error {
	more := 1 + s.rows
	s.rows = 0
	if s.d.Replan == "" || !s.own || !s.work.Add(more) {
		return nil
	}
	return s.exec(ctx, s.d.Replan)
}

// before is what an error means of which it is certain that nothing happened.
func (s *session) before(ctx context.Context, err error) error {
	if s.lost && ctx.Err() == nil && s.d.Classify(err) == ClassUnknown {
		return fmt.Errorf("%w: the connection was lost before anything happened: %w", storage.ErrBusy, err)
	}
	return s.classify(err)
}

// begin tries for as long as s.wait says. Where the database waits by sleeping
// longer and longer (SQLite), many short waits win a place among busy writers
// that one long wait never gets.
func (s *session) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for {
		var err error
		for _, q := range s.words.begin {
			if err == nil {
				err = s.exec(context.WithoutCancel(ctx), q)
			}
		}
		if err == nil || ctx.Err() != nil || s.d.Classify(err) != ClassBusy {
			return err
		}
	}
}

func (s *session) rollback() {
	s.queue, s.size = nil, 0
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTime)
	defer cancel()
	// Refused also where the database rolled back by itself; a connection that
	// is not known to be clean is thrown away either way.
	if err := s.link.Exec(ctx, s.words.rollback); err != nil {
		s.lost = true
	}
}

func (s *session) classify(err error) error {
	if err == nil || errors.Is(err, storage.ErrBusy) || errors.Is(err, lane.ErrRefused) {
		return err
	}
	switch s.d.Classify(err) {
	case ClassBusy:
		return fmt.Errorf("%w: %w", storage.ErrBusy, err)
	case ClassRefused:
		return fmt.Errorf("%w: %w", lane.ErrRefused, err)
	default:
		return err
	}
}
