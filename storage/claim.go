package storage

import (
	"context"
	"log/slog"
)

// Claimed is Claim for a worker: a row that cannot be read is logged as
// "row_unreadable", once a lease, and the worker goes on with the others.
func Claimed(ctx context.Context, s Store, c Claim, log *slog.Logger) ([]Row, error) {
	rows, err := s.Claim(ctx, c)
	return rows, logged(ctx, c.Table, err, log)
}

// Found is Find for a worker: a row that cannot be read is logged as "row_unreadable", and
// the worker goes on with the others. It is for rows each of which is decided on by itself,
// not for whoever needs all that match.
func Found(ctx context.Context, s Store, q Query, log *slog.Logger) ([]Row, error) {
	rows, err := s.Find(ctx, q)
	return rows, logged(ctx, q.Table, err, log)
}

// logged is nil for an error of a row that cannot be read, which it logs.
func logged(ctx context.Context, t *Table, err error, log *slog.Logger) error {
	if !unread(err) {
		return err
	}
	log.ErrorContext(ctx, "row_unreadable", slog.String("table", t.Name), slog.Any("error", err))
	return nil
}
