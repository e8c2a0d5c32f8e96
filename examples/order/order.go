// Package order is a shop in a hundred lines, on one Postgres database: an order and
// its payment are made in one transaction, an order is marked as paid once whatever crashes,
// and the REST interface knows the shop's own sessions. Its tests run it, on Postgres and in
// memory.
package order

import (
	"context"
	"database/sql"
	"errors"
	"net/http"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/httpapi/auth"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// Orders is where the shop keeps its orders: in Postgres, and in a test in memory.
type Orders interface {
	// Add adds an order. It is there with what pay does in the same transaction, or not at all.
	Add(ctx context.Context, id string, pay func(storage.Tx) (paymentID string, err error)) error
	// Paid notes that the order of a payment is paid, in the transaction of the event that tells
	// it.
	Paid(ctx context.Context, tx stream.Tx, paymentID string) error
}

// Order takes an order of so many USD. Its payment's address may be shown from then on.
func Order(ctx context.Context, app *cryptopay.App, orders Orders, tenant, id, usd string) (p payment.Payment, err error) {
	err = orders.Add(ctx, id, func(tx storage.Tx) (string, error) {
		p, err = app.In(tx).Payments.Create(ctx, tenant, payment.CreateInput{
			Pricing: payment.Pricing{Amount: usd, Currency: "ETH"}, OrderID: id,
		})
		return p.ID, err
	})
	return p, err
}

// Paid is the consumer that marks orders as paid. It looks for the payment that the shop made:
// anybody who may create payments may write the id of an order into another one.
func Paid(orders Orders) stream.Consumer {
	return stream.Consumer{Name: "orders", Handle: func(ctx context.Context, tx stream.Tx, e stream.Event) error {
		if b, ok := e.Body.(payment.Changed); ok && b.To == payment.Confirmed {
			return orders.Paid(ctx, tx, b.PaymentID)
		}
		return nil
	}}
}

const schema = `CREATE TABLE IF NOT EXISTS orders (id text PRIMARY KEY, payment text UNIQUE NOT NULL, paid int NOT NULL DEFAULT 0);
	CREATE TABLE IF NOT EXISTS sessions (id text PRIMARY KEY, tenant text NOT NULL, email text NOT NULL)`

// inPostgres are Orders in the library's own database.
type inPostgres struct {
	db    *sqlx.DB
	store *postgres.Store
}

func (o *inPostgres) Add(ctx context.Context, id string, pay func(storage.Tx) (string, error)) error {
	tx, err := o.db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	paymentID, err := pay(o.store.WithTx(tx.Tx))
	if err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, payment) VALUES ($1, $2)", id, paymentID); err != nil {
		return err
	}
	return tx.Commit()
}

func (o *inPostgres) Paid(ctx context.Context, tx stream.Tx, paymentID string) error {
	_, err := tx.SQL.ExecContext(ctx, "UPDATE orders SET paid = paid + 1 WHERE payment = $1", paymentID)
	return err
}

// open makes the tables, the library's beside the shop's own.
func open(ctx context.Context, db *sqlx.DB) (*inPostgres, error) {
	if err := postgres.MigrateDB(ctx, db, postgres.Options{}); err != nil {
		return nil, err
	}
	if _, err := db.ExecContext(ctx, schema); err != nil {
		return nil, err
	}
	store, err := postgres.OpenDB(db, postgres.Options{})
	return &inPostgres{db, store}, err
}

// sessions are the shop's logins, as the REST interface asks for them.
type sessions struct{ db *sqlx.DB }

func (s sessions) Identify(r *http.Request) (who auth.Identity, known bool, err error) {
	cookie, err := r.Cookie("session")
	if err != nil {
		return who, false, nil //nolint:nilerr // who has no session has no access
	}
	who.Scopes = []auth.Scope{auth.Read, auth.Write}
	err = s.db.QueryRowContext(r.Context(), "SELECT tenant, email FROM sessions WHERE id = $1", cookie.Value).Scan(&who.Tenant, &who.Client)
	if errors.Is(err, sql.ErrNoRows) {
		err = auth.ErrToken
	}
	return who, true, err
}
