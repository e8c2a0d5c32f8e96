package testenv

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPostgresKeepsItsFolderOverAKill(t *testing.T) {
	t.Parallel()
	first := Postgres(t)
	require.Less(t, first.Port, 32768)
	require.NoError(t, postgresReady(t.Context(), first.Port))
	first.Kill()
	require.Error(t, postgresReady(t.Context(), first.Port))
	second := PostgresAt(t, first.Dir)
	require.NoError(t, postgresReady(t.Context(), second.Port))
}

func TestMariaDBKeepsItsFolderOverAKill(t *testing.T) {
	t.Parallel()
	first := MariaDB(t)
	require.Less(t, first.Port, 32768)
	require.NoError(t, mariaReady(t.Context(), first.Port))
	first.Kill()
	require.Error(t, mariaReady(t.Context(), first.Port))
	second := MariaDBAt(t, first.Dir)
	require.NoError(t, mariaReady(t.Context(), second.Port))
}
