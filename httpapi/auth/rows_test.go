package auth

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// A key that is removed while keys are listed hides none of the others.
func TestFR05_KeysWhileOneIsRemoved(t *testing.T) {
	t.Parallel()
	s := &failing.Walked{Store: memory.New()}
	require.NoError(t, s.Open(t.Context(), Tables()...))
	c := storage.Change{ID: "made", Partition: storage.System}
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i := range 2100 {
		c.Put = append(c.Put, apiKeys.Row(fmt.Sprintf("k%05d", 3000-i), 0, time.Time{}, apiKey{KeyID: fmt.Sprint(i), Tenant: "t1", CreatedAt: at.Add(time.Duration(i/4) * time.Second)}))
	}
	require.NoError(t, storage.CommitOne(t.Context(), s, c))
	s.Then = func() {
		require.NoError(t, storage.CommitOne(t.Context(), s.Store, storage.Change{
			ID: "removed", Partition: storage.System, Drop: []storage.Row{apiKeys.Row("k03000", 1, time.Time{}, apiKey{})},
		}))
	}
	type listed struct {
		id string
		at time.Time
	}
	got, err := list(t.Context(), s, apiKeys, "t1", "created_at", func(id string, k apiKey) listed { return listed{id, k.CreatedAt} })
	require.NoError(t, err)
	met := map[string]bool{}
	for i, k := range got {
		met[k.id] = true
		require.False(t, i > 0 && k.at.Before(got[i-1].at))
	}
	require.Len(t, got, 2100)
	require.Len(t, met, 2100)
}
