package sqlstore

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
)

// A host's connections are all taken, and whoever writes gives up waiting: nothing has
// happened, and the gate is as full as it was.
func TestX02_WriterThatGivesUpAtTheGate(t *testing.T) {
	t.Parallel()
	s := &Store{d: &Dialect{}, gate: make(gate, 1)}
	s.gate <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := s.writing(ctx, func(*session) error { panic("it was not its turn") })
	require.ErrorIs(t, err, storage.ErrBusy)
	require.ErrorIs(t, err, context.Canceled)
	require.Len(t, s.gate, 1)
}

// The same for whoever reads.
func TestX02_ReaderThatGivesUpAtTheGate(t *testing.T) {
	t.Parallel()
	p := pool{d: &Dialect{}, gate: make(gate, 1)}
	p.gate <- struct{}{}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, p.each(ctx, "SELECT 1", nil, nil), context.Canceled)
	require.ErrorIs(t, p.pipe(ctx, nil), context.Canceled)
	require.Len(t, p.gate, 1)
}

// A lane that is still at work when its store is closed writes nothing.
func TestFQ08_WriteAfterClose(t *testing.T) {
	t.Parallel()
	s := &Store{d: &Dialect{}}
	_, err := s.Write(t.Context(), false, []storage.Change{{ID: "a", Partition: "p"}})
	require.ErrorIs(t, err, storage.ErrClosed)
}
