package postgres_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver of the host's own pool
	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
)

// tables are those of the App, of a signer, of the REST interface, and your own:
// slices.Concat(cryptopay.Tables(), keys.Tables(), auth.Tables(), …).
var tables = storage.Tables()

// Migrate is a step of its own: run it before a new version starts. Then each process
// opens the store and gives it to cryptopay.Config.Store.
func ExampleOpen() {
	ctx, dsn := context.Background(), os.Getenv("DATABASE_URL") // postgres://user:password@host/database
	if err := postgres.Migrate(ctx, dsn, postgres.Options{}, tables...); err != nil {
		fmt.Println(err)
		return
	}
	store, err := postgres.Open(dsn, postgres.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer store.Close() //nolint:errcheck // an example's end
	// App.Open calls this. It refuses settings that lose commits, and another schema.
	fmt.Println(store.Open(ctx, tables...))
}

// On the host's own pool, in a schema of its own beside the host's tables.
func ExampleOpenDB() {
	ctx, options := context.Background(), postgres.Options{Schema: "cryptopay", Prefix: "pay_"}
	db, err := sqlx.Open("pgx", os.Getenv("DATABASE_URL"))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close() //nolint:errcheck // an example's end
	if err := postgres.MigrateDB(ctx, db, options, tables...); err != nil {
		fmt.Println(err)
		return
	}
	store, err := postgres.OpenDB(db, options) // its Close leaves the pool open
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(store.Open(ctx, tables...))
}

// TestExamples runs the examples, which have no output without a server.
func TestExamples(t *testing.T) {
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	dsn := testenv.Postgres(t).DSN("postgres")
	t.Setenv("DATABASE_URL", dsn)
	db, err := sqlx.Open("pgx", dsn)
	require.NoError(t, err)
	defer db.Close()
	ExampleOpen()
	ExampleOpenDB()
	for _, table := range []string{"public.cryptopay_payments", "cryptopay.pay_payments"} {
		var n int
		require.NoError(t, db.GetContext(t.Context(), &n, "SELECT count(*) FROM "+table), table)
	}
}
