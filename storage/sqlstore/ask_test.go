package sqlstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// bounded is a runner that notes whether a statement may take for ever.
type bounded struct{ bounded bool }

func (b *bounded) each(ctx context.Context, _ string, _ []any, _ scan) error {
	_, b.bounded = ctx.Deadline()
	return nil
}

// Two callers ask for all. One that may wait for ever, as a worker does, gives its turn back
// where a connection hangs.
func TestFP04_ALookUpForOthersHasAnEnd(t *testing.T) {
	t.Parallel()
	s := &Store{d: &Dialect{}}
	s.tables.Store(&verdict.Tables{storage.OnceTable.Table: true})
	at := &bounded{}
	r := &reads{s: s, at: at, queue: &lookups{}}
	_, err := r.Rows(context.Background(), storage.OnceTable.Table, storage.Keys("t", "k")...)
	require.NoError(t, err)
	require.True(t, at.bounded)
}
