package cryptopay

import (
	"errors"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// InTx is what an App can do inside of a transaction of the host's own.
type InTx struct {
	Payments    *payment.Service
	Withdrawals *withdrawal.Service // Create, CreatePayout; what was handed to a network is cancelled at the App itself
	Refunds     *refund.Service     // Create, OfSuspense; one whose withdrawal was handed over is cancelled at the App itself
	Wallets     *wallet.Service     // also CreateTenant: the tenant is there with the host's own row
}

// errInTx: what a network has to be told cannot be taken back with a transaction.
var errInTx = errors.New("cryptopay: networks are told nothing in a host's transaction: use the App itself")

// In is the App inside of a database transaction that the host began, so that a tenant,
// wallet, transfer, payment, withdrawal or refund is there with the host's own row, or neither is:
//
//	tx, err := db.BeginTxx(ctx, &sql.TxOptions{Isolation: sql.LevelReadCommitted})
//	…
//	defer tx.Rollback()
//	… tx.ExecContext: the order …
//	p, err := app.In(store.WithTx(tx.Tx)).Payments.Create(ctx, tenant, input)
//	…
//	return tx.Commit()
//
// A pgx.Tx goes by postgres.Store.WithPgx, and memory.Store.Begin begins one for a test that
// needs no database.
//
// What it returns holds if the transaction commits: show nobody its address
// before. Nothing leaves until then, and workers find it on their next tick after.
// What a transaction holds, who waits for it, and after which errors it can go on,
// is said at the store's WithTx; in short: keep it short, one tenant, READ
// COMMITTED. Addresses come from the network's partition, which no transaction may
// hold: what was taken for a transaction that is rolled back is wasted. Where a
// transaction keeps all other writers out (SQLite) they are taken in it instead.
func (a *App) In(tx storage.Tx) *InTx {
	b := *a
	b.tx, b.cfg.Store = tx, tx
	if tx.Alone() {
		var err error
		p := b.pool()
		p.Lease = 1
		if b.Addresses, err = incoming.NewPool(p); err != nil {
			panic(err) // New has checked the same
		}
	}
	if err := b.domains(); err != nil {
		panic(err) // New has checked the same
	}
	return &InTx{Payments: b.Payments, Withdrawals: b.Withdrawals, Refunds: b.Refunds, Wallets: b.Wallets}
}
