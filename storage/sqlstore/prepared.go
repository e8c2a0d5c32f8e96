package sqlstore

import (
	"context"
	"database/sql"
	"sync"

	"github.com/jmoiron/sqlx"
)

// preparedReads are the prepared queries of a pool that is ours, by their text, until the
// pool is closed. A database inside of the process takes as long to prepare a short
// statement as to run it.
type preparedReads struct {
	mu   sync.Mutex
	list map[string]*sql.Stmt
}

// What is not kept is prepared each time: a list of keys has another text for each length,
// and a long one takes long to run.
const (
	mostStatements   = 1_000
	longestStatement = 4_096
)

// query runs a query, by a kept statement where there is one or room for it.
func (k *preparedReads) query(ctx context.Context, db *sqlx.DB, q string, args []any) (*sql.Rows, error) {
	k.mu.Lock()
	st, full := k.list[q], len(k.list) >= mostStatements
	k.mu.Unlock()
	if st == nil && (full || len(q) > longestStatement) {
		return db.QueryContext(ctx, q, args...)
	}
	if st == nil {
		made, err := db.PrepareContext(ctx, q)
		if err != nil {
			return nil, err
		}
		st = k.keep(q, made) //nolint:sqlclosecheck // kept until the pool is closed
	}
	return st.QueryContext(ctx, args...)
}

// keep keeps a statement; of two that were made at the same time, the first.
func (k *preparedReads) keep(q string, made *sql.Stmt) *sql.Stmt {
	k.mu.Lock()
	defer k.mu.Unlock()
	if st := k.list[q]; st != nil {
		_ = made.Close() // nobody has it
		return st
	}
	k.list[q] = made
	return made
}
