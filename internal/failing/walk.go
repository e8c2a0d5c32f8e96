package failing

import (
	"context"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Walked is a store on which Then happens once, behind the first query: while somebody reads page
// by page.
type Walked struct {
	storage.Store
	Table *storage.Table // the query is one of it. Defaults to any
	Then  func()
}

// Find implements storage.Store.
func (w *Walked) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	rows, err := w.Store.Find(ctx, q)
	if then := w.Then; then != nil && (w.Table == nil || q.Table == w.Table) {
		w.Then = nil
		then()
	}
	return rows, err
}
