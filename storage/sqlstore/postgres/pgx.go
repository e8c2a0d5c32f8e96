package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
)

// WithPgx is sqlstore.Store.WithTx for a transaction that the host began by pgx itself, on a
// connection or a pool of its own: pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, the default of
// most servers. The same rules hold. As with every pgx.Tx, it is over once a context ends
// during a statement.
func (s *Store) WithPgx(tx pgx.Tx) *sqlstore.Tx { return s.With(pgxTx{tx, s.accept}) }

// pgxTx is a pgx.Tx as a host's transaction.
type pgxTx struct {
	tx     pgx.Tx
	accept Risks
}

func (t pgxTx) Exec(ctx context.Context, query string, args ...any) error {
	_, err := t.tx.Exec(ctx, query, args...)
	return err
}

func (t pgxTx) Query(ctx context.Context, query string, args []any, row func(sqlstore.Scanner) error) error {
	rows, err := t.tx.Query(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := row(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (t pgxTx) Check(ctx context.Context) error {
	ask := func(ctx context.Context, query string) sqlstore.Scanner { return t.tx.QueryRow(ctx, query) }
	if err := check(ctx, ask, t.accept); err != nil {
		return err
	}
	return checkTx(ctx, ask)
}

func (t pgxTx) Rollback() { _ = t.tx.Rollback(context.Background()) }
