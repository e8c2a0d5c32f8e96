package auth

import (
	"context"

	"github.com/cryptopay-go/cryptopay/storage"
)

// list is all that a tenant has of a table, in the order of a column.
func list[T, V any](ctx context.Context, s storage.Store, t storage.TableOf[T], tenant, order string, view func(id string, v T) V) ([]V, error) {
	q := storage.Query{
		Table: t.Table, Partition: storage.System, Limit: 1000,
		Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: tenant}},
		Order: []storage.Order{{Column: order}},
	}
	out := []V{}
	for r, err := range storage.All(ctx, s, q) {
		if err != nil {
			return nil, err
		}
		out = append(out, view(r.ID, t.Value(r)))
	}
	return out, nil
}

// remove drops the one row of a tenant that the condition selects, and has the Change record
// that. ErrNotFound.
func remove[T any](ctx context.Context, s *Service, t storage.TableOf[T], tenant string, which storage.Cond, record func(*storage.Change, storage.Row) error) error {
	s.acting.Lock()
	defer s.acting.Unlock()
	return storage.Decide(ctx, s.store, func(ctx context.Context) (storage.Change, error) {
		rows, err := s.store.Find(ctx, storage.Query{
			Table: t.Table, Partition: storage.System, Limit: 1,
			Where: []storage.Cond{which, {Column: "tenant", Op: storage.Eq, Value: tenant}},
		})
		if err == nil && len(rows) == 0 {
			err = ErrNotFound
		}
		if err != nil {
			return storage.Change{}, err
		}
		c := storage.Change{ID: s.newID(), Partition: storage.System, Drop: rows}
		return c, record(&c, rows[0])
	})
}
