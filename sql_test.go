package cryptopay_test

import (
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
)

// The same way in and out, over servers.
func TestPaymentInWithdrawalOutOnPostgres(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	dsn := onPostgres(t)
	store, err := postgres.Open(dsn, postgres.Options{})
	require.NoError(t, err)
	defer store.Close() //nolint:errcheck // a test's end
	inAndOut(t, store, "USDTERC20")
	sumsAreChecked(t, "pgx", dsn)
}

func TestPaymentInWithdrawalOutOnMariaDB(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	dsn := onMariaDB(t)
	store, err := mysql.Open(dsn, mysql.Options{})
	require.NoError(t, err)
	defer store.Close() //nolint:errcheck // a test's end
	inAndOut(t, store, "BTC")
	sumsAreChecked(t, "mysql", dsn)
}

// sumsAreChecked: the database itself refuses a withdrawal whose amount and fees are not
// what was requested (FS02).
func sumsAreChecked(t *testing.T, driver, dsn string) {
	t.Helper()
	db, err := sqlx.Open(driver, dsn)
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // a test's end
	_, err = db.Exec("UPDATE cryptopay_withdrawals SET amount = amount + 1")
	require.ErrorContains(t, err, "cryptopay_withdrawals_sum")
	_, err = db.Exec("UPDATE cryptopay_withdrawals SET amount = amount + 1, requested = requested + 1, amount_rank = amount_rank + 1")
	require.NoError(t, err)
}
