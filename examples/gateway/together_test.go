package main

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// Processes start together on an empty store: before any one read or write of the
// first, the second has started whole. Both serve, with the same merchant, the
// same credentials and the same hot address.
func TestC01_ProcessesStartTogether(t *testing.T) {
	t.Parallel()
	for at, met := 0, true; met; at++ {
		t.Run(fmt.Sprintf("call %d", at), func(t *testing.T) {
			store := memory.New()
			key := filepath.Join(t.TempDir(), "key")
			var second *gateway
			calls := 0
			first := composed(t, key, interrupted{store, func() {
				if calls++; calls == at+1 {
					second = composed(t, key, store)
				}
			}})
			if met = second != nil; !met {
				second = composed(t, key, store)
				require.Greater(t, at, 5, "the start that is interrupted asks the store")
			}
			hot, err := first.app.Hot(t.Context(), "ETH", tenantID)
			require.NoError(t, err)
			same, err := second.app.Hot(t.Context(), "ETH", tenantID)
			require.NoError(t, err)
			require.Equal(t, hot, same)
			for _, g := range []*gateway{first, second} {
				_, err = g.auth.Token(t.Context(), testClient, testSecret, "")
				require.NoError(t, err)
				_, err = g.auth.CheckKey(t.Context(), "an-api-key-of-the-settings")
				require.NoError(t, err)
			}
			apps, err := first.auth.Apps(t.Context(), tenantID)
			require.NoError(t, err)
			require.Len(t, apps, 1)
			all, err := first.auth.Keys(t.Context(), tenantID)
			require.NoError(t, err)
			require.Len(t, all, 1)
		})
	}
}

// composed is a gateway on this store, as far as it writes when it starts.
func composed(t *testing.T, keyFile string, store storage.Store) *gateway {
	t.Helper()
	env := map[string]string{
		"CRYPTOPAY_CLIENT_ID": testClient, "CRYPTOPAY_CLIENT_SECRET": testSecret, "CRYPTOPAY_RATE_LIMITS": "off",
		"CRYPTOPAY_API_KEY": "an-api-key-of-the-settings",
	}
	s, err := readSettings([]string{"-store", "memory", "-key-file", keyFile, "-dev=false"}, func(name string) string { return env[name] })
	require.NoError(t, err)
	ring, _, err := loadKeys(keyFile)
	require.NoError(t, err)
	g := &gateway{s: s, log: slog.New(slog.DiscardHandler), metrics: newMetrics(), told: map[hotOf]bool{}, store: store}
	require.NoError(t, store.Open(t.Context(), tables()...))
	c := &clock{Clock: cryptopay.SystemClock{}}
	local, err := simulated("ETH", c.Now)
	require.NoError(t, err)
	g.world = &world{
		registry: chain.MainnetRegistry(), store: store, clock: c, rates: rates.NewFixed(c.Now, "USD", firstPrices),
		clients: []chain.Client{local.Client()},
	}
	require.NoError(t, g.compose(t.Context(), ring))
	require.NoError(t, g.accounts(t.Context(), ring))
	return g
}

// interrupted is a store before whose every call something else happens.
type interrupted struct {
	storage.Store
	before func()
}

func (s interrupted) Commit(ctx context.Context, changes ...storage.Change) []error {
	s.before()
	return s.Store.Commit(ctx, changes...)
}

func (s interrupted) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	s.before()
	return s.Store.Rows(ctx, t, keys...)
}

func (s interrupted) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	s.before()
	return s.Store.Find(ctx, q)
}
