package cryptopay_test

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// A host pauses its page of withdrawals while a network is halted, by an operator or by the
// library. These events are of no tenant, so there is no transaction: what Handle does must
// bear to be done twice.
func ExampleConfig_consumersOfNetworks() {
	paused := map[chain.Network]map[string]bool{} // by who halts it
	page := func(n chain.Network, who string, halted bool) {
		if paused[n] == nil {
			paused[n] = map[string]bool{}
		}
		if paused[n][who] = halted; halted {
			fmt.Println("withdrawals in", n, "are paused")
			return
		}
		fmt.Println("withdrawals in", n, "go on:", !paused[n]["operator"] && !paused[n]["library"])
	}
	pages := stream.Consumer{Name: "pages", Handle: func(_ context.Context, _ stream.Tx, e stream.Event) error {
		switch b := e.Body.(type) {
		case outgoing.HaltChanged:
			if b.Network != "" && b.Currency == "" && b.Tenant == "" {
				page(b.Network, "operator", b.Halted)
			}
		case incoming.HaltChanged:
			if b.Currency == "" {
				page(b.Network, "library", b.Halted)
			}
		}
		return nil
	}}

	ctx, clock, registry := context.Background(), cryptopay.NewManualClock(time.Unix(1767323045, 0)), chain.MainnetRegistry()
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: clock.Now})
	seed, _ := keys.FromMnemonic(mnemonic, "")
	accounts, _ := seed.Accounts(registry.Networks())
	addresses, _ := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})
	app, err := cryptopay.New(cryptopay.Config{
		Store: memory.New(), Chains: []chain.Client{eth.Client()}, Addresses: addresses, Consumers: []stream.Consumer{pages},
		Rates: rates.NewFixed(clock.Now, "USD", map[string]string{"ETH": "2000"}), Key: bytes.Repeat([]byte{7}, 32), Clock: clock,
	})
	if err != nil {
		panic(err)
	}
	_ = app.Open(ctx)
	_, _ = app.Operate.Halt(ctx, cryptopay.HaltScope{Network: "ETH"}, cryptopay.Call{By: "ann", Reason: "the node looks odd"})
	_ = app.Step(ctx)
	_, _ = app.Operate.Lift(ctx, cryptopay.HaltScope{Network: "ETH"}, cryptopay.Call{By: "ann", Reason: "it does not"})
	_ = app.Step(ctx)
	// Output:
	// withdrawals in ETH are paused
	// withdrawals in ETH go on: true
}
