package recall_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/recall"
)

type question struct{ of string }

func TestRecall(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	ask := func(ctx context.Context, of string) (int64, error) {
		return recall.Of(ctx, question{of}, func() (int64, error) { return asked.Add(1), nil })
	}
	for range 2 {
		_, err := ask(t.Context(), "a")
		require.NoError(t, err)
	}
	require.EqualValues(t, 2, asked.Load(), "elsewhere each asks")

	ctx := recall.Within(t.Context())
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			v, err := ask(ctx, "a")
			require.NoError(t, err)
			require.EqualValues(t, 3, v)
		})
	}
	wg.Wait()
	v, err := ask(ctx, "b")
	require.NoError(t, err)
	require.EqualValues(t, 4, v, "another question")
	v, err = ask(recall.Within(ctx), "a")
	require.NoError(t, err)
	require.EqualValues(t, 5, v, "another decision")

	down := errors.New("down")
	_, err = recall.Of(ctx, question{"c"}, func() (int64, error) { return 7, down })
	require.ErrorIs(t, err, down)
	v, err = ask(ctx, "c")
	require.NoError(t, err, "an error is not kept")
	require.EqualValues(t, 6, v)
}

func TestOneByOne(t *testing.T) {
	t.Parallel()
	require.False(t, recall.IsOneByOne(t.Context()))
	require.True(t, recall.IsOneByOne(recall.Within(recall.OneByOne(t.Context()))))
}
