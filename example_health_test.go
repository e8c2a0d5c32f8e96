package cryptopay_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// Ask how an App is: what is down, why, and whether this process can serve all the same.
func ExampleApp_Health() {
	ctx, clock, registry := context.Background(), cryptopay.NewManualClock(time.Unix(1767323045, 0)), chain.MainnetRegistry()
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: clock.Now})
	seed, _ := keys.FromMnemonic(mnemonic, "")
	accounts, _ := seed.Accounts(registry.Networks())
	addresses, _ := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})
	app, err := cryptopay.New(cryptopay.Config{
		Store: memory.New(), Chains: []chain.Client{eth.Client()}, Addresses: addresses, Clock: clock,
		Rates: rates.NewFixed(clock.Now, "USD", map[string]string{"ETH": "2000", "USDT": "1", "USDC": "1", "DAI": "1"}),
		Key:   bytes.Repeat([]byte{7}, 32), Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		panic(err)
	}
	_ = app.Open(ctx)
	_ = app.Step(ctx)
	h := app.Health(ctx)
	fmt.Println(h.State(), h.Ready())

	eth.Front().FailRate(1000)
	h = app.Health(ctx)
	for _, p := range h.Parts() {
		if p.State != cryptopay.OK {
			fmt.Println(p.Name, p.State, p.Since.UTC().Format(time.TimeOnly))
		}
	}
	fmt.Println(h.State(), h.Ready())
	// Output:
	// ok true
	// node/ETH down 03:04:05
	// down true
}
