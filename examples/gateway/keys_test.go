package main

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// firstLook is a store whose first reader waits until all have looked.
type firstLook struct {
	storage.Store
	once sync.Once
	all  *sync.WaitGroup
}

func (s *firstLook) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	rows, err := s.Store.Rows(ctx, t, keys...)
	s.once.Do(func() { s.all.Done(); s.all.Wait() })
	return rows, err
}

// Processes that start at once on an empty store have one seed: what one shows
// another can sign for.
func TestC05_OneSeedForProcessesThatStartAtOnce(t *testing.T) {
	t.Parallel()
	store, key := memory.New(), make([]byte, keySize)
	require.NoError(t, store.Open(t.Context(), tables()...))
	var wg, looked sync.WaitGroup
	got := make([]string, 4)
	looked.Add(len(got))
	for i := range got {
		wg.Go(func() {
			seed, err := loadSeed(t.Context(), &firstLook{Store: store, all: &looked}, key, "")
			if err != nil {
				t.Error(err)
				return
			}
			if got[i], err = seed.XPub("m/44'/60'/0'"); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, xpub := range got {
		require.Equal(t, got[0], xpub)
	}
}
