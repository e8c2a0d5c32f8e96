package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// Processes that start at once on an empty store have one seed: what one shows
// another can sign for.
func TestC05_OneSeedForProcessesThatStartAtOnce(t *testing.T) {
	t.Parallel()
	store, ring := memory.New(), keyring{make([]byte, keySize)}
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
			seed, err := loadSeed(t.Context(), together, ring, "")
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

// TestFS02_TheGatewaysKeyIsChanged: the operator puts a new key into the key file, has all
// sealed with it, and takes the old key out. What the store has goes on at each step: a
// withdrawal that waits, webhooks' secret, credentials, the seed. Taken out too early, the
// old key is missed by name, and nothing has happened.
func TestFS02_TheGatewaysKeyIsChanged(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "pay.key")
	env := map[string]string{
		"CRYPTOPAY_CLIENT_ID": testClient, "CRYPTOPAY_CLIENT_SECRET": testSecret, "CRYPTOPAY_RATE_LIMITS": "off",
		"CRYPTOPAY_ALLOW_PRIVATE_CALLBACKS": "1", "CRYPTOPAY_API_KEY": "an-api-key-of-the-settings",
	}
	read := func() settings {
		s, err := readSettings([]string{"-store", "sqlite:" + filepath.Join(dir, "pay.db"), "-key-file", file, "-networks", "ETH"}, func(k string) string { return env[k] })
		require.NoError(t, err)
		return s
	}
	i := &inside{t: t, s: read()}
	i.open()
	first, err := os.ReadFile(file)
	require.NoError(t, err)
	p := i.ok("POST", "/payments/", body{"amount": "300", "currency": "ETH"})
	i.ok("POST", "/dev/pay", body{"address": p["address"], "currency": "ETH", "amount": p["amount_crypto"]})
	i.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 100})
	i.ok("POST", "/user/webhooks/", body{"callback_url": "http://127.0.0.1:9/hook"})
	w := i.ok("POST", "/withdrawal/", body{"amount": "0.01", "currency": "ETH", "address": "0x00000000000000000000000000000000000000a1"})
	hot, err := i.g.app.Hot(t.Context(), "ETH", tenantID)
	require.NoError(t, err)

	second := strings.Repeat("5a", keySize) + "\n"
	restart := func(keys string, more ...string) error {
		require.NoError(t, os.WriteFile(file, []byte(keys), 0o600))
		delete(env, "CRYPTOPAY_RESEAL")
		for _, name := range more {
			env[name] = "1"
		}
		g, err := open(t.Context(), read(), slog.New(slog.DiscardHandler))
		if err == nil {
			require.NoError(t, g.close())
		}
		return err
	}
	goesOn := func() {
		t.Helper()
		i.s = read()
		i.open()
		same, err := i.g.app.Hot(t.Context(), "ETH", tenantID)
		require.NoError(t, err)
		require.Equal(t, hot, same)
		_, err = i.g.auth.CheckKey(t.Context(), env["CRYPTOPAY_API_KEY"])
		require.NoError(t, err)
		i.ok("POST", "/user/webhooks/test/", body{"event_type": "payment_status_update"})
		reports, err := i.g.app.Verify(t.Context())
		require.NoError(t, err)
		for _, r := range reports {
			require.Empty(t, r.Contradictions)
		}
	}
	require.NoError(t, i.g.close())
	require.Error(t, restart(second), "without the key that sealed it")
	require.NoError(t, restart(string(first)+second), "known, and not used yet")
	goesOn()
	require.NoError(t, i.g.close())
	require.NoError(t, restart(second+string(first)))
	goesOn()
	require.NoError(t, i.g.close())
	require.Error(t, restart(second), "not sealed with it yet")
	require.NoError(t, restart(second+string(first), "CRYPTOPAY_RESEAL"))
	i.s = read()
	i.open()
	i.ok("POST", "/dev/advance", body{"seconds": 2 * 3600}) // tokens that the old key made are over
	for n := 1; n > 0; {
		n, err = i.g.auth.Purge(t.Context(), purgeBatch)
		require.NoError(t, err)
	}
	require.NoError(t, i.g.close())
	require.NoError(t, restart(second), "the old key is gone")
	goesOn()
	i.ok("POST", "/dev/mine", body{"blockchain": "ETH", "blocks": 100})
	require.Equal(t, "completed", i.ok("GET", "/withdrawal/"+w["withdrawal_id"].(string)+"/", nil)["status"])
	require.NoError(t, i.g.close())
	require.Error(t, restart(string(first)), "the old key opens nothing any more")
	require.ErrorContains(t, restart(second+"not a key\n"), "line 2")
}
