package cryptopay_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// Embedding: compose an App, open a tenant, create a payment. Step does what
// Run does in a server, on this goroutine.
func Example() {
	ctx, clock, registry := context.Background(), cryptopay.NewManualClock(time.Unix(1767323045, 0)), chain.MainnetRegistry()
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: clock.Now})
	seed, _ := keys.FromMnemonic(mnemonic, "")
	accounts, _ := seed.Accounts(registry.Networks())
	addresses, _ := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})

	app, err := cryptopay.New(cryptopay.Config{
		Store: memory.New(), Chains: []chain.Client{eth.Client()}, Addresses: addresses,
		Rates: rates.NewFixed(clock.Now, "USD", map[string]string{"USDT": "1", "ETH": "2000"}),
		Key:   bytes.Repeat([]byte{7}, 32), Clock: clock,
	})
	if err != nil {
		panic(err)
	}
	_ = app.Open(ctx)
	name := "My shop"
	shop, _ := app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	p, _ := app.Payments.Create(ctx, shop.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "USDTERC20"}})
	fmt.Println(p.Status)

	_, _ = eth.Pay(chain.Address(p.Address), "USDTERC20", decimal.RequireFromString("25"))
	_ = app.Step(ctx) // seen in the mempool
	p, _ = app.Payments.Get(ctx, shop.ID, p.ID)
	fmt.Println(p.Status)

	eth.Mine(12) // final: credited. Its coins are forwarded when the hot address has gas
	_ = app.Step(ctx)
	p, _ = app.Payments.Get(ctx, shop.ID, p.ID)
	fmt.Println(p.Status, p.MerchantReceived(), "USD")
	// Output:
	// waiting
	// confirming
	// completed 25.00 USD
}
