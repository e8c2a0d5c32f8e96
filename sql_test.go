package cryptopay_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
)

// The same way in and out, over servers.
func TestPaymentInWithdrawalOutOnPostgres(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	dsn := testenv.Postgres(t).DSN("postgres")
	require.NoError(t, postgres.Migrate(t.Context(), dsn, postgres.Options{}))
	store, err := postgres.Open(dsn, postgres.Options{})
	require.NoError(t, err)
	defer store.Close() //nolint:errcheck // a test's end
	inAndOut(t, store, "USDTERC20")
}

func TestPaymentInWithdrawalOutOnMariaDB(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	dsn := testenv.MariaDB(t).MySQLDSN("test")
	require.NoError(t, mysql.Migrate(t.Context(), dsn, mysql.Options{}))
	store, err := mysql.Open(dsn, mysql.Options{})
	require.NoError(t, err)
	defer store.Close() //nolint:errcheck // a test's end
	inAndOut(t, store, "BTC")
}
