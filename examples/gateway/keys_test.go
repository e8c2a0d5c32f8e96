package main

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage/memory"
)

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
			calls := 0
			together := interrupted{store, func() {
				if calls++; calls == 2 { // after its first look each waits until all have looked
					looked.Done()
					looked.Wait()
				}
			}}
			seed, err := loadSeed(t.Context(), together, key, "")
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
