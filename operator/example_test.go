package operator_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v3"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/operator"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// openShop is how this host opens its App. What it opens and cannot use it closes.
func openShop(ctx context.Context, file string) (house *operator.House, err error) {
	if err := sqlite.Migrate(ctx, file); err != nil {
		return nil, err
	}
	store, err := sqlite.Open(file, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = store.Close()
		}
	}()
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry()}) // a node in production
	seed, err := keys.FromMnemonic(mnemonic, "")
	if err != nil {
		return nil, err
	}
	accounts, err := seed.Accounts(chain.MainnetRegistry().Networks())
	if err != nil {
		return nil, err
	}
	addresses, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})
	if err != nil {
		return nil, err
	}
	app, err := cryptopay.New(cryptopay.Config{
		Store: store, Chains: []chain.Client{eth.Client()}, Addresses: addresses, Key: []byte(strings.Repeat("k", 32)),
		Rates: rates.NewFixed(cryptopay.SystemClock{}.Now, "USD", map[string]string{"ETH": "2000"}),
	})
	if err == nil {
		err = app.Open(ctx)
	}
	return &operator.House{App: app, Close: store.Close}, err
}

// A host mounts the command in its own program, beside its other commands.
func ExampleCommand() {
	dir, _ := os.MkdirTemp("", "shop")
	defer os.RemoveAll(dir) //nolint:errcheck // an example's end
	open := func(ctx context.Context) (*operator.House, error) {
		return openShop(ctx, filepath.Join(dir, "shop.db"))
	}
	for _, line := range []string{
		"shop operator tenants create -id bakery -name Bakery",
		"shop operator halt -currency USDTERC20 -reason drill -by ann -dry-run",
		"shop operator halts -json",
	} {
		shop := &cli.Command{Name: "shop", Commands: []*cli.Command{operator.Command(open)}}
		if err := shop.Run(context.Background(), strings.Fields(line)); err != nil {
			fmt.Println("shop:", err) // and os.Exit(1)
		}
	}
	// Output:
	// shop: -reason is required: say why, it is kept
	// operation  -
	// dry_run    true
	// networks   ETH
	// []
}
