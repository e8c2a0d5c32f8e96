package sim_test

import (
	"context"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// watchOne is a chain.Watch of one address.
type watchOne struct{ a chain.Address }

func (w watchOne) Sync(context.Context) error    { return nil }
func (w watchOne) Contains(a chain.Address) bool { return a == w.a }
func (w watchOne) Open() []chain.Address         { return nil }

func Example() {
	registry, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: "ETH", Family: chain.AccountFamily, Gas: "ETH"}},
		[]chain.Currency{{Code: "ETH", Network: "ETH", Token: "ETH", Decimals: 18, Scale: 8, Confirmations: 2}})
	if err != nil {
		panic(err)
	}
	c := sim.MustNew(sim.Options{Network: "ETH", Registry: registry})
	ctx, client := context.Background(), c.Client()
	shop := c.Customer("shop") // any address will do to look at

	start, _ := client.Scan(ctx, nil, watchOne{shop}, 1)
	trail := []chain.Block{start.Blocks[0].Block}

	tx, _ := c.Pay(shop, "ETH", decimal.RequireFromString("0.25"))
	c.Mine(1)
	scan, _ := client.Scan(ctx, trail, watchOne{shop}, 10)
	for _, x := range scan.Blocks[0].Transfers {
		fmt.Println(x.Amount, x.Currency, x.Tx == tx)
	}

	trail = append(trail, scan.Blocks[0].Block)
	_, _ = c.Reorg(1, tx)
	scan, _ = client.Scan(ctx, trail, watchOne{shop}, 10)
	fmt.Println(scan.Rewound, "block undone,", len(scan.Blocks[0].Transfers), "transfers in the new one")
	// Output:
	// 0.25 ETH true
	// 1 block undone, 0 transfers in the new one
}
