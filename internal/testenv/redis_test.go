package testenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedisClusterServes(t *testing.T) {
	t.Parallel()
	nodes := RedisCluster(t, 3)
	require.Len(t, nodes, 3)
	for _, n := range nodes {
		state, err := ask(t.Context(), n.Port, "CLUSTER", "INFO")
		require.NoError(t, err)
		require.Contains(t, state, "cluster_slots_ok:16384")
	}
}

func TestRedisKeepsItsFolderOverAKill(t *testing.T) {
	t.Parallel()
	first := Redis(t, "--appendonly", "yes", "--appendfsync", "always")
	answer, err := ask(t.Context(), first.Port, "SET", "k", "v")
	require.NoError(t, err)
	require.Equal(t, "OK", answer)
	first.Kill()
	first.Kill() // again is harmless
	require.Error(t, ping(t.Context(), first.Port))
	second := Redis(t, "--dir", first.Dir, "--appendonly", "yes", "--appendfsync", "always")
	answer, err = ask(t.Context(), second.Port, "GET", "k")
	require.NoError(t, err)
	require.Equal(t, "v", answer)
}
