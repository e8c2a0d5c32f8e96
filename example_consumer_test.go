package cryptopay_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// A shop marks its orders as paid: in its own table, once, whatever crashes. What the
// consumer writes commits with its place in the events. It looks for the payment that the shop
// made: whoever may create payments may write any OrderID.
func ExampleConfig_consumers() {
	orders := stream.Consumer{Name: "orders", Handle: func(ctx context.Context, tx stream.Tx, e stream.Event) error {
		b, ok := e.Body.(payment.Changed)
		if !ok || b.To != payment.Confirmed {
			return nil
		}
		_, err := tx.SQL.ExecContext(ctx, "UPDATE orders SET paid = paid + 1 WHERE payment = ?", b.PaymentID)
		return err
	}}

	ctx, clock, registry := context.Background(), cryptopay.NewManualClock(time.Unix(1767323045, 0)), chain.MainnetRegistry()
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: clock.Now})
	seed, _ := keys.FromMnemonic(mnemonic, "")
	accounts, _ := seed.Accounts(registry.Networks())
	addresses, _ := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})
	dir, _ := os.MkdirTemp("", "shop")
	defer os.RemoveAll(dir) //nolint:errcheck // an example's end
	file := filepath.Join(dir, "shop.db")
	_ = sqlite.Migrate(ctx, file)
	store, _ := sqlite.Open(file, sqlite.Options{})
	defer store.Close() //nolint:errcheck // an example's end
	db, _ := sqlx.Open("sqlite", "file:"+file+"?_txlock=immediate&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(5000)")
	defer db.Close() //nolint:errcheck // an example's end
	db.MustExec("CREATE TABLE orders (id TEXT PRIMARY KEY, payment TEXT UNIQUE, paid INTEGER NOT NULL)")
	db.MustExec("INSERT INTO orders VALUES ('order 1', NULL, 0), ('order 2', NULL, 0)")

	app, err := cryptopay.New(cryptopay.Config{
		Store: store, Chains: []chain.Client{eth.Client()}, Addresses: addresses, Consumers: []stream.Consumer{orders},
		Rates: rates.NewFixed(clock.Now, "USD", map[string]string{"ETH": "2000"}), Key: bytes.Repeat([]byte{7}, 32), Clock: clock,
	})
	if err != nil {
		panic(err)
	}
	_ = app.Open(ctx)
	name := "My shop"
	shop, _ := app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	_ = app.Step(ctx) // networks are being read
	p, _ := app.Payments.Create(ctx, shop.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "ETH"}, OrderID: "order 1"})
	db.MustExec("UPDATE orders SET payment = ? WHERE id = 'order 1'", p.ID)
	currency, _ := registry.Currency("ETH")
	_, _ = eth.Pay(chain.Address(p.Address), "ETH", currency.Decimal(p.Due))
	for range 20 {
		eth.Mine(1)
		clock.Advance(12 * time.Second)
		_ = app.Step(ctx)
	}

	var all []struct {
		ID   string `db:"id"`
		Paid int    `db:"paid"`
	}
	_ = db.Select(&all, "SELECT id, paid FROM orders ORDER BY id")
	fmt.Println(all)
	// Output:
	// [{order 1 1} {order 2 0}]
}
