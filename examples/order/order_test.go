package order

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/httpapi"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// inMemory are Orders of a test that needs no database.
type inMemory struct {
	store  *memory.Store
	paid   map[string]int
	orders map[string]string // by payment
}

func (o inMemory) Add(ctx context.Context, id string, pay func(storage.Tx) (string, error)) error {
	tx, err := o.store.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	paymentID, err := pay(o.store.WithTx(tx))
	if err != nil {
		return err
	}
	if _, taken := o.paid[id]; taken {
		return errors.New("the order is there already")
	}
	o.paid[id], o.orders[paymentID] = 0, id
	return tx.Commit()
}

func (o inMemory) Paid(_ context.Context, _ stream.Tx, paymentID string) error {
	if id, ours := o.orders[paymentID]; ours {
		o.paid[id]++
	}
	return nil
}

// The shop's own test: in memory, and in milliseconds.
func TestOrderIsPaidOnce(t *testing.T) {
	t.Parallel()
	store := memory.New()
	orders := inMemory{store, map[string]int{}, map[string]string{}}
	story(t, store, orders, func(id string) int { return orders.paid[id] })
}

// The same story on a real Postgres, and the merchant's view of it.
func TestOrderIsPaidOnceOnPostgres(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("a server of its own takes seconds")
	}
	db, err := sqlx.Open("pgx", testenv.Postgres(t).DSN("postgres"))
	require.NoError(t, err)
	defer db.Close() //nolint:errcheck // a test's end
	orders, err := open(t.Context(), db)
	require.NoError(t, err)
	h := story(t, orders.store, orders, func(id string) (paid int) {
		require.NoError(t, db.Get(&paid, "SELECT paid FROM orders WHERE id = $1", id))
		return paid
	})
	var left int
	require.NoError(t, db.Get(&left, "SELECT count(*) FROM orders"))
	require.Equal(t, 2, left, "an order without its payment is not there")

	db.MustExec("INSERT INTO sessions VALUES ('s1', $1, 'ann@shop.example')", h.ID)
	api, err := httpapi.New(h.App, httpapi.Options{Login: sessions{db}, Prefix: "/pay"})
	require.NoError(t, err)
	for session, want := range map[string]int{"s1": http.StatusOK, "s2": http.StatusUnauthorized, "": http.StatusUnauthorized} {
		r, w := httptest.NewRequest(http.MethodGet, "/pay/payments/", nil), httptest.NewRecorder()
		if session != "" {
			r.AddCookie(&http.Cookie{Name: "session", Value: session})
		}
		api.ServeHTTP(w, r)
		require.Equal(t, want, w.Code, w.Body)
	}
}

// story is one order that is paid, one that is paid too late, and one that cannot be taken.
func story(t *testing.T, store storage.Store, orders Orders, paid func(id string) int) *cryptopaytest.Host {
	t.Helper()
	h := cryptopaytest.Open(t, cryptopaytest.Options{Store: store, Configure: func(c *cryptopay.Config) {
		c.Consumers = []stream.Consumer{Paid(orders)}
	}})
	p, err := Order(t.Context(), h.App, orders, h.ID, "order 1", "25")
	require.NoError(t, err)
	late, err := Order(t.Context(), h.App, orders, h.ID, "order 2", "25")
	require.NoError(t, err)
	_, err = Order(t.Context(), h.App, orders, h.ID, "order 1", "25")
	require.Error(t, err)
	all, _, _, err := h.App.Payments.List(t.Context(), h.ID, payment.Filter{Limit: 10})
	require.NoError(t, err)
	require.Len(t, all, 2, "an order that was not taken has no payment")

	cheap := h.Payment("3", "ETH", func(in *payment.CreateInput) { in.OrderID = "order 2" })
	require.Equal(t, payment.Completed, h.Customer.Pays(cheap).Status, "somebody else's payment for what he calls order 2")
	require.Equal(t, payment.Completed, h.Customer.Pays(p).Status)
	require.Equal(t, payment.Expired, h.Customer.PaysLate(late).Status)
	h.Restart()
	h.Settle()
	require.Equal(t, 1, paid("order 1"))
	require.Zero(t, paid("order 2"))
	h.Verify()
	return h
}
