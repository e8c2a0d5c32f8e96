package cryptopay_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// begin begins a transaction of a host's, which notes names beside what the library does. It
// returns the store inside of it, and how it ends.
type begin func(t *testing.T, name string) (tx storage.Tx, end func(commit bool))

// hostKind is a kind of transaction on a kind of store.
type hostKind struct {
	store storage.Store
	begin begin
	names func(t *testing.T) []string // noted, in order
}

// hostKinds are all that there are.
func hostKinds() map[string]func(t *testing.T) hostKind {
	onSQL := func(t *testing.T, store sqlStore, driver, dsn string) hostKind {
		db, err := sqlx.Open(driver, dsn)
		require.NoError(t, err)
		t.Cleanup(func() { _ = db.Close() })
		_, err = db.Exec("CREATE TABLE noted (name varchar(40) PRIMARY KEY)")
		require.NoError(t, err)
		return hostKind{store, func(t *testing.T, name string) (storage.Tx, func(bool)) {
			tx, err := db.BeginTxx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			require.NoError(t, err)
			t.Cleanup(func() { _ = tx.Rollback() })
			_, err = tx.Exec(tx.Rebind("INSERT INTO noted VALUES (?)"), name)
			require.NoError(t, err)
			return store.WithTx(tx.Tx), func(commit bool) {
				if commit {
					require.NoError(t, tx.Commit())
				} else {
					require.NoError(t, tx.Rollback())
				}
			}
		}, func(t *testing.T) (names []string) {
			require.NoError(t, db.Select(&names, "SELECT name FROM noted ORDER BY name"))
			return names
		}}
	}
	openPostgres := func(t *testing.T) (*postgres.Store, string) {
		skipServer(t)
		dsn := onPostgres(t)
		store, err := postgres.Open(dsn, postgres.Options{})
		require.NoError(t, err)
		t.Cleanup(func() { _ = store.Close() })
		return store, dsn
	}
	return map[string]func(t *testing.T) hostKind{
		"memory": func(*testing.T) hostKind {
			store := memory.New()
			var noted []string
			return hostKind{store, func(t *testing.T, name string) (storage.Tx, func(bool)) {
				tx, err := store.Begin(t.Context())
				require.NoError(t, err)
				t.Cleanup(func() { _ = tx.Rollback() })
				return store.WithTx(tx), func(commit bool) {
					if !commit {
						require.NoError(t, tx.Rollback())
						return
					}
					require.NoError(t, tx.Commit())
					noted = append(noted, name)
				}
			}, func(*testing.T) []string { return noted }}
		},
		"sqlite": func(t *testing.T) hostKind {
			store, dsn := onSQLite(t)
			return onSQL(t, store, "sqlite", dsn)
		},
		"postgres": func(t *testing.T) hostKind {
			store, dsn := openPostgres(t)
			return onSQL(t, store, "pgx", dsn)
		},
		"pgx": func(t *testing.T) hostKind {
			store, dsn := openPostgres(t)
			conn, err := pgx.Connect(t.Context(), dsn)
			require.NoError(t, err)
			t.Cleanup(func() { _ = conn.Close(context.Background()) })
			_, err = conn.Exec(t.Context(), "CREATE TABLE noted (name text PRIMARY KEY)")
			require.NoError(t, err)
			return hostKind{store, func(t *testing.T, name string) (storage.Tx, func(bool)) {
				tx, err := conn.Begin(t.Context())
				require.NoError(t, err)
				_, err = tx.Exec(t.Context(), "INSERT INTO noted VALUES ($1)", name)
				require.NoError(t, err)
				return store.WithPgx(tx), func(commit bool) {
					if commit {
						require.NoError(t, tx.Commit(t.Context()))
					} else {
						require.NoError(t, tx.Rollback(t.Context()))
					}
				}
			}, func(t *testing.T) []string {
				rows, err := conn.Query(t.Context(), "SELECT name FROM noted ORDER BY name")
				require.NoError(t, err)
				names, err := pgx.CollectRows(rows, pgx.RowTo[string])
				require.NoError(t, err)
				return names
			}}
		},
		"mariadb": func(t *testing.T) hostKind {
			skipServer(t)
			dsn := onMariaDB(t)
			store, err := mysql.Open(dsn, mysql.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = store.Close() })
			return onSQL(t, store, "mysql", dsn)
		},
	}
}

// Tenants, wallets, transfers, payments and refunds are created in a host's transaction of each kind:
// a rollback leaves nothing of them and of the host's row, a commit leaves both, and what a
// customer then pays arrives.
func TestL05_AllThatAHostsTransactionCreates(t *testing.T) {
	t.Parallel()
	for kind, open := range hostKinds() {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			k := open(t)
			h := newHostOn(t, k.store, 1, "ETH")
			h.step()
			h.earn("ETH", "300")
			earned, _, _, err := h.app.Payments.List(t.Context(), h.tenant, payment.Filter{Status: payment.Completed})
			require.NoError(t, err)
			refunded := func(in *cryptopay.InTx) (string, error) {
				r, err := in.Refunds.Create(t.Context(), h.tenant, refund.CreateInput{
					Payment: earned[0].ID, Amount: ptr(dec("0.02")), Address: string(h.chains["ETH"].Customer("refunded")),
				})
				return r.ID, err
			}
			ctx := t.Context()
			master := func(s *wallet.Service) string {
				b, err := s.Balances(ctx, h.tenant, wallet.Master)
				require.NoError(t, err)
				return fmt.Sprint(b)
			}
			var noted []string
			for what, c := range map[string]struct {
				create func(in *cryptopay.InTx) (id string, err error)
				there  func(in *cryptopay.InTx, id string) bool
			}{
				"tenant": {func(in *cryptopay.InTx) (string, error) {
					v, err := in.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: new("Another shop")}})
					return v.ID, err
				}, func(in *cryptopay.InTx, id string) bool {
					_, err := in.Wallets.Tenant(ctx, id)
					if err != nil {
						require.ErrorIs(t, err, wallet.ErrNoTenant)
						return false
					}
					_, _, err = in.Wallets.Resolve(ctx, id, "")
					require.NoError(t, err, "who is there has a master account")
					return true
				}},
				"wallet": {func(in *cryptopay.InTx) (string, error) {
					w, err := in.Wallets.Create(ctx, h.tenant, wallet.CreateInput{Name: "till", ExternalID: "till"})
					return w.ID, err
				}, func(in *cryptopay.InTx, id string) bool {
					_, err := in.Wallets.Get(ctx, h.tenant, id)
					return err == nil
				}},
				"payment": {func(in *cryptopay.InTx) (string, error) {
					p, err := in.Payments.Create(ctx, h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "ETH"}})
					return p.ID, err
				}, func(in *cryptopay.InTx, id string) bool {
					_, err := in.Payments.Get(ctx, h.tenant, id)
					return err == nil
				}},
				"refund": {refunded, func(in *cryptopay.InTx, id string) bool {
					r, err := in.Refunds.Get(ctx, h.tenant, id)
					if err != nil {
						require.ErrorIs(t, err, refund.ErrNotFound)
						return false
					}
					_, err = in.Withdrawals.Get(ctx, h.tenant, r.Withdrawal)
					require.NoError(t, err, "with its withdrawal")
					return true
				}},
				"payout": {func(in *cryptopay.InTx) (string, error) {
					of := func(name string) withdrawal.CreateInput {
						return withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: ptr(dec("0.01")), Currency: "ETH", Address: string(h.chains["ETH"].Customer(name))}}
					}
					p, err := in.Withdrawals.CreatePayout(ctx, h.tenant, "", []withdrawal.CreateInput{of("ann"), of("bob"), of("ann")})
					return p.ID, err
				}, func(in *cryptopay.InTx, id string) bool {
					p, err := in.Withdrawals.Payout(ctx, h.tenant, id)
					if err != nil {
						require.ErrorIs(t, err, withdrawal.ErrNotFound)
						return false
					}
					require.Len(t, p.Withdrawals, 3)
					return true
				}},
				"transfer": {func(in *cryptopay.InTx) (string, error) {
					w, err := in.Wallets.Create(ctx, h.tenant, wallet.CreateInput{Name: "savings", ExternalID: "savings"})
					if err != nil {
						return "", err
					}
					before := master(in.Wallets)
					v, err := in.Wallets.CreateTransfer(ctx, h.tenant, wallet.TransferInput{
						Direction: wallet.ToSub, WalletID: w.ID, Currency: "ETH", Amount: dec("0.01"),
					})
					require.NotEqual(t, before, master(in.Wallets))
					return v.ID, err
				}, func(in *cryptopay.InTx, id string) bool {
					_, err := in.Wallets.Transfer(ctx, h.tenant, id)
					return err == nil
				}},
			} {
				outside := &cryptopay.InTx{Payments: h.app.Payments, Withdrawals: h.app.Withdrawals, Refunds: h.app.Refunds, Wallets: h.app.Wallets}
				before := master(h.app.Wallets)
				for _, commit := range []bool{false, true} {
					tx, end := k.begin(t, what)
					in := h.app.In(tx)
					id, err := c.create(in)
					require.NoError(t, err, what)
					require.True(t, c.there(in, id), "the transaction sees it")
					require.False(t, c.there(outside, id), "nobody else does")
					require.Equal(t, before, master(h.app.Wallets))
					end(commit)
					require.Equal(t, commit, c.there(outside, id), what)
				}
				noted = append(noted, what)
				require.ElementsMatch(t, noted, k.names(t), "with the host's own row, or not at all")
			}
			all, _, _, err := h.app.Payments.List(ctx, h.tenant, payment.Filter{Status: payment.Waiting, Limit: 10})
			require.NoError(t, err)
			require.Len(t, all, 1)
			p := h.payment(all[0].ID)
			h.pay(p, "ETH", dec("0.0125"))
			h.mine(40)
			require.Equal(t, payment.Completed, h.payment(p.ID).Status)
			given, total, err := h.app.Refunds.List(ctx, h.tenant, refund.Filter{Payment: earned[0].ID})
			require.NoError(t, err)
			require.Equal(t, int64(1), total)
			require.Equal(t, refund.Completed, given[0].Status)
			require.True(t, h.chains["ETH"].Balance(h.chains["ETH"].Customer("refunded"), "ETH").IsPositive(), "what is committed is paid")
			h.sound()
		})
	}
}
