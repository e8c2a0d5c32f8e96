package testenv

import (
	"net"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAnvilStartsAndStops(t *testing.T) {
	t.Parallel()
	var port int
	t.Run("runs", func(t *testing.T) {
		p := Anvil(t)
		port = p.Port
		require.Less(t, port, 32768)
		require.NotEqual(t, os.Getpid(), p.PID)
		require.NoError(t, jsonRPC(t.Context(), port))
	})
	if port == 0 {
		return // skipped
	}
	l, err := net.Listen("tcp", address(port))
	require.NoError(t, err, "the port is free again")
	require.NoError(t, l.Close())
}

// recorder takes the place of a test to see how it would end.
type recorder struct {
	testing.TB
	skipped, failed bool
}

func (*recorder) Helper()        {}
func (*recorder) Name() string   { return "recorder" }
func (r *recorder) Skip(...any)  { r.skipped = true }
func (r *recorder) Fatal(...any) { r.failed = true }

func TestMissingIsLoud(t *testing.T) {
	t.Setenv("CRYPTOPAY_TEST_FULL", "")
	r := &recorder{TB: t}
	missing(r, "nothing", "CRYPTOPAY_NOTHING")
	require.True(t, r.skipped)
	require.False(t, r.failed)

	t.Setenv("CRYPTOPAY_TEST_FULL", "1")
	r = &recorder{TB: t}
	missing(r, "nothing", "CRYPTOPAY_NOTHING")
	require.True(t, r.failed)
}

func TestRedisStartsAndStops(t *testing.T) {
	t.Parallel()
	var port int
	t.Run("runs", func(t *testing.T) {
		p := Redis(t)
		port = p.Port
		require.Equal(t, address(port), p.Address())
		require.NoError(t, ping(t.Context(), port))
	})
	if port == 0 {
		return // skipped
	}
	require.Error(t, ping(t.Context(), port), "it is gone")
}
