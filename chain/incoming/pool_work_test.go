package incoming_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Two tenants get their first hot address in one piece of work, and no address is free.
// Whoever derives more keeps its turn while it asks the store: it must not be put aside
// then, as the other one would wait for that turn for ever.
func TestPool_TwoOfOneWorkFindTheDirectoryDry(t *testing.T) {
	t.Parallel()
	s, c := newStore(t), newClock()
	p := newPool(t, s, c, &source{})
	tenants := []string{"shop", "other"}
	hot := map[string]chain.Address{}
	done := make(chan []error, 1)
	go func() {
		done <- storage.Work(context.Background(), s, tenants, func(t string) string { return t }, func(ctx context.Context, tenant string) error {
			d, err := p.Hot(ctx, eth, tenant)
			hot[tenant] = d.Address
			return err
		})
	}()
	select {
	case errs := <-done:
		require.Equal(t, []error{nil, nil}, errs)
		require.NotEmpty(t, hot["shop"])
		require.NotEmpty(t, hot["other"])
		require.NotEqual(t, hot["shop"], hot["other"])
	case <-time.After(20 * time.Second):
		t.Fatal("the two wait for each other")
	}
}
