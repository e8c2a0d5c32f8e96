package sqlstore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage/lane"
)

// rollbackTime bounds a rollback, which must not depend on the context that
// may have caused it.
const rollbackTime = 5 * time.Second

// session is one connection while it is ours. Statements are prepared and kept
// only where the connection stays ours (keep).
type session struct {
	d     *Dialect
	conn  *sqlx.Conn
	keep  bool
	stmts map[string]*sqlx.Stmt
	wait  time.Duration // for Begin, where the database is locked elsewhere
	lost  bool          // the connection is in an unknown state: do not use it again
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
	ctx = s.unwatched(ctx)
	st, err := s.prepared(ctx, q) //nolint:sqlclosecheck // kept until the session ends
	if err != nil {
		return err
	}
	if st != nil {
		_, err = st.ExecContext(ctx, args...)
		return err
	}
	_, err = s.conn.ExecContext(ctx, sqlx.Rebind(s.d.Bind, q), args...)
	return err
}

// each runs a query and calls f for every row, which it may scan.
func (s *session) each(ctx context.Context, q string, args []any, f func(*sql.Rows) error) error {
	ctx = s.unwatched(ctx)
	st, err := s.prepared(ctx, q) //nolint:sqlclosecheck // kept until the session ends
	if err != nil {
		return err
	}
	var rows *sql.Rows
	if st != nil {
		rows, err = st.QueryContext(ctx, args...) //nolint:sqlclosecheck // closed in visit
	} else {
		rows, err = s.conn.QueryContext(ctx, sqlx.Rebind(s.d.Bind, q), args...) //nolint:sqlclosecheck // closed in visit
	}
	if err != nil {
		return err
	}
	return visit(rows, f)
}

func visit(rows *sql.Rows, f func(*sql.Rows) error) error {
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
// wraps lane.ErrBusy or lane.ErrRefused where it is certain that nothing
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
	err := f()
	if err == nil {
		err = s.exec(ctx, "COMMIT")
	}
	over = true
	if err == nil {
		return nil
	}
	s.rollback()
	return s.classify(err)
}

// begin tries for as long as s.wait says. Where the database waits by sleeping
// longer and longer (SQLite), many short waits win a place among busy writers
// that one long wait never gets.
func (s *session) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.wait)
	defer cancel()
	for {
		err := s.exec(context.WithoutCancel(ctx), s.d.Begin)
		if err == nil || ctx.Err() != nil || s.d.Classify(err) != ClassBusy {
			return err
		}
	}
}

func (s *session) rollback() {
	ctx, cancel := context.WithTimeout(context.Background(), rollbackTime)
	defer cancel()
	// Refused also where the database rolled back by itself; a connection that
	// is not known to be clean is thrown away either way.
	if _, err := s.conn.ExecContext(ctx, "ROLLBACK"); err != nil {
		s.lost = true
	}
}

func (s *session) classify(err error) error {
	if errors.Is(err, lane.ErrBusy) || errors.Is(err, lane.ErrRefused) {
		return err
	}
	switch s.d.Classify(err) {
	case ClassBusy:
		return fmt.Errorf("%w: %w", lane.ErrBusy, err)
	case ClassRefused:
		return fmt.Errorf("%w: %w", lane.ErrRefused, err)
	default:
		return err
	}
}
