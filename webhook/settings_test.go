package webhook_test

import (
	"errors"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/internal/secret"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

func TestCheckSecret(t *testing.T) {
	t.Parallel()
	for _, good := range []string{strings.Repeat("x", webhook.MinSecret), strings.Repeat("~", webhook.MaxSecret)} {
		require.NoError(t, webhook.CheckSecret(good))
	}
	for _, bad := range []string{"", strings.Repeat("x", webhook.MinSecret-1), strings.Repeat("x", webhook.MaxSecret+1), strings.Repeat("é", 20), "a secret with spaces in it", "a-secret-with-a-nul\x00"} {
		require.ErrorIs(t, webhook.CheckSecret(bad), webhook.ErrSecret, "%q", bad)
	}
}

func TestCheckEvents(t *testing.T) {
	t.Parallel()
	require.NoError(t, webhook.CheckEvents(nil))
	require.NoError(t, webhook.CheckEvents(webhook.EventTypes()))
	for _, bad := range []string{"", "payment", "PAYMENT_STATUS_UPDATE"} {
		require.ErrorIs(t, webhook.CheckEvents([]string{webhook.DepositReceived, bad}), webhook.ErrEventType, "%q", bad)
	}
}

// What a tenant set before it set a URL is there when it looks.
func TestSettingsBeforeAnyURL(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		v, err := w.svc.Edit(t.Context(), "a", webhook.Patch{})
		require.NoError(t, err)
		require.Equal(t, webhook.Settings{}, v, "nothing is no edit")
		events := []string{webhook.DepositMerged}
		v, err = w.svc.Edit(t.Context(), "a", webhook.Patch{Events: &events})
		require.NoError(t, err)
		require.Equal(t, events, v.Events)
		require.Equal(t, start, v.Created)
		got, err := w.svc.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, v, got)
		_, full, err := w.svc.Setup(t.Context(), "a", "https://shop.example/")
		require.NoError(t, err)
		require.NotEmpty(t, full, "it was not shown yet")
	})
}

// A tenant that set nothing has no settings, also when a secret was made for it: its payment
// has a callback of its own, and that is signed.
func TestSettingsOfATenantThatSetNothing(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.emit("a", "p1", 1, "https://shop.example/p1", 1)
		require.Equal(t, 1, w.step())
		require.Len(t, w.sent, 1)
		v, err := w.svc.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, webhook.Settings{}, v)
	})
}

// Where the secret does not open, Setup changes nothing.
func TestK01_SetupOfASecretThatDoesNotOpen(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		events := []string{webhook.DepositMerged}
		before, err := w.svc.Edit(t.Context(), "a", webhook.Patch{Events: &events})
		require.NoError(t, err)
		w.key = 8
		w.restart()
		_, _, err = w.svc.Setup(t.Context(), "a", "https://shop.example/")
		require.ErrorIs(t, err, secret.ErrSealed)
		after, err := w.svc.Get(t.Context(), "a")
		require.NoError(t, err)
		require.Equal(t, before, after)
	})
}

// Opens tells the key that the secrets were sealed with from another one. With no secret
// there is none that does not open; a store that does not answer says nothing.
func TestK01_OpensTellsTheKey(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		opens := func() bool {
			t.Helper()
			yes, err := w.svc.Opens(t.Context())
			require.NoError(t, err)
			return yes
		}
		require.True(t, opens())
		w.setup("a")
		require.True(t, opens())
		w.key = 8
		w.restart()
		require.False(t, opens())
		w.serve(&failing.Store{Store: w.store, FailAt: 1})
		yes, err := w.svc.Opens(t.Context())
		require.ErrorIs(t, err, failing.ErrGone)
		require.False(t, yes)
	})
}

// Sealed again with a new key, both secrets of a rotation sign without the key before.
func TestK01_ResealedSecretsSign(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		previous, current := w.setup("a"), "the-current-secret"
		_, err := w.svc.Edit(t.Context(), "a", webhook.Patch{Secret: &current})
		require.NoError(t, err)
		w.older, w.key = []byte{w.key}, 8
		w.restart()
		for _, want := range []int{2, 0} {
			n, left, err := w.svc.Reseal(t.Context(), "a")
			require.NoError(t, err)
			require.Empty(t, left)
			require.Equal(t, want, n)
		}
		w.older = nil
		w.restart()
		w.emit("a", "p1", 1, "", 1)
		require.Equal(t, 1, w.step())
		require.True(t, w.verifies(w.sent[0], current))
		require.True(t, w.verifies(w.sent[0], previous))
	})
}

// Without randomness there is no secret, and without the store's answer nothing is set.
func TestSettingsThatCannotBeMade(t *testing.T) {
	each(t, func(t *testing.T, w *world) {
		w.serve(&failing.Store{Store: w.store, FailAt: 1})
		_, _, err := w.svc.Setup(t.Context(), "a", "https://shop.example/")
		require.ErrorIs(t, err, failing.ErrGone)
		none := errors.New("no entropy")
		w.random = iotest.ErrReader(none)
		w.serve(w.store)
		_, _, err = w.svc.Setup(t.Context(), "a", "https://shop.example/")
		require.ErrorIs(t, err, none)
		_, _, there, err := webhook.SettingsTable.One(t.Context(), w.store, storage.Tenant("a"), "settings")
		require.NoError(t, err)
		require.False(t, there)
	})
}
