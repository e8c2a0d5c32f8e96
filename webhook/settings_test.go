package webhook_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

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
		_, secret, err := w.svc.Setup(t.Context(), "a", "https://shop.example/")
		require.NoError(t, err)
		require.NotEmpty(t, secret, "it was not shown yet")
	})
}
