package webhook

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
)

// TestTurnsOfManyTenants: however many tenants there are, each has its turn once in a minute,
// and those who had theirs before that are forgotten.
func TestTurnsOfManyTenants(t *testing.T) {
	t.Parallel()
	turns := turns{last: map[storage.Partition]time.Time{}}
	tenant := func(i int) storage.Partition { return storage.Tenant(fmt.Sprint(i)) }
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const tenants = maxBreakers + 3
	for i := range tenants {
		require.True(t, turns.due(tenant(i), now))
	}
	for i := range tenants {
		require.False(t, turns.due(tenant(i), now.Add(trimEvery-1)))
	}
	require.True(t, turns.due(tenant(0), now.Add(trimEvery)))
	require.LessOrEqual(t, len(turns.last), maxBreakers+1)
}
