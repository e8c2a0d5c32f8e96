package storage

import (
	"context"
	"log/slog"
)

// Claimed is Claim for a worker: a row that cannot be read is logged as
// "row_unreadable", once a lease, and the worker goes on with the others.
func Claimed(ctx context.Context, s Store, c Claim, log *slog.Logger) ([]Row, error) {
	rows, err := s.Claim(ctx, c)
	if unread(err) {
		log.ErrorContext(ctx, "row_unreadable", slog.String("table", c.Table.Name), slog.Any("error", err))
		err = nil
	}
	return rows, err
}
