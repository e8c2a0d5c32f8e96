package transport_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// A node that broke may be another one: whoever comes while it is looked at anew
// must not be let pass on what was found before.
func TestTrust(t *testing.T) {
	t.Parallel()
	var trust transport.Trust
	looks := 0
	wrong := errors.New("another chain")
	right := func() error { looks++; return nil }
	require.ErrorIs(t, trust.Check(func() error { return wrong }), wrong)
	require.NoError(t, trust.Check(right))
	require.NoError(t, trust.Check(right))
	require.Equal(t, 1, looks, "found once")

	trust.Broke()
	require.ErrorIs(t, trust.Check(func() error {
		require.ErrorIs(t, trust.Check(func() error { return wrong }), wrong, "while another one looks")
		return wrong
	}), wrong)

	require.NoError(t, trust.Check(func() error { trust.Broke(); return nil }))
	require.NoError(t, trust.Check(right))
	require.Equal(t, 2, looks, "it broke while it was looked at")
}
