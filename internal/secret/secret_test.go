package secret_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/secret"
)

const canary = "canary-d41d8cd98f00b204"

func TestK02_SecretPrintsAsStars(t *testing.T) {
	t.Parallel()
	s := secret.New([]byte(canary))
	var out bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&out, nil))
	type holder struct{ S secret.Secret }
	log.Info("x", slog.Any("a", s), slog.Any("b", holder{s}), slog.Any("c", &s))
	j, err := json.Marshal(map[string]any{"a": s, "b": holder{s}})
	require.NoError(t, err)
	out.Write(j)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		fmt.Fprintf(&out, verb+verb, s, holder{s})
	}
	require.NotContains(t, out.String(), canary)
	require.NotContains(t, out.String(), fmt.Sprintf("%x", canary))
	require.NotContains(t, out.String(), fmt.Sprint([]byte(canary)))
	require.Equal(t, canary, string(s.Reveal()))
}

func TestK01_SealedOpensOnlyInItsPlace(t *testing.T) {
	t.Parallel()
	box, err := secret.NewBox(bytes.Repeat([]byte{7}, 32), rand.NewChaCha8([32]byte{1}))
	require.NoError(t, err)
	sealed, err := box.Seal(secret.New([]byte(canary)), "tenant/a/webhook/1")
	require.NoError(t, err)
	require.NotContains(t, string(sealed), canary)
	s, err := box.Open(sealed, "tenant/a/webhook/1")
	require.NoError(t, err)
	require.Equal(t, canary, string(s.Reveal()))
	for _, place := range []string{"tenant/b/webhook/1", "tenant/a/webhook/2", ""} {
		_, err = box.Open(sealed, place)
		require.ErrorIs(t, err, secret.ErrSealed)
	}
	for i := range sealed {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		_, err = box.Open(changed, "tenant/a/webhook/1")
		require.ErrorIs(t, err, secret.ErrSealed)
	}
	_, err = secret.NewBox([]byte("short"), rand.NewChaCha8([32]byte{}))
	require.Error(t, err)
}
