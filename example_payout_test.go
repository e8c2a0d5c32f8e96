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
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// exampleShop is a host on a simulated chain, with one merchant.
type exampleShop struct {
	app    *cryptopay.App
	clock  *cryptopay.ManualClock
	eth    *sim.Chain
	tenant string
}

// openShop composes an App with a signer; set may change its Config.
func openShop(ctx context.Context, set func(*cryptopay.Config)) *exampleShop {
	s := &exampleShop{clock: cryptopay.NewManualClock(time.Unix(1767323045, 0))}
	registry, store := chain.MainnetRegistry(), memory.New()
	s.eth = sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: s.clock.Now})
	seed, err := keys.FromMnemonic(mnemonic, "")
	check(err)
	accounts, err := seed.Accounts(registry.Networks())
	check(err)
	addresses, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": s.eth.Client().AddressOf})
	check(err)
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{"ETH": s.eth.Client()}, Registry: keys.StoreRegistry{Store: store},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return s.app.KeyOf(ctx, n, a)
		},
	})
	check(err)
	cfg := cryptopay.Config{
		Store: store, Chains: []chain.Client{s.eth.Client()}, Addresses: addresses, Signer: signer,
		Rates: rates.NewFixed(s.clock.Now, "USD", map[string]string{"USDT": "1", "USDC": "1", "DAI": "1", "ETH": "2000"}),
		Key:   bytes.Repeat([]byte{7}, 32), Clock: s.clock,
	}
	if set != nil {
		set(&cfg)
	}
	s.app, err = cryptopay.New(cfg)
	check(err)
	check(s.app.Open(ctx, keys.Tables()...))
	name := "My shop"
	shop, err := s.app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	check(err)
	s.tenant = shop.ID
	hot, err := s.app.Hot(ctx, "ETH", s.tenant) // the operator's coins for network fees go here
	check(err)
	_, err = s.eth.Fund(hot, "ETH", decimal.RequireFromString("0.5"))
	check(err)
	s.blocks(ctx, 40)
	return s
}

// blocks mines, moves the clock and lets the App work.
func (s *exampleShop) blocks(ctx context.Context, n int) {
	for range n {
		s.eth.Mine(1)
		s.clock.Advance(12 * time.Second)
		check(s.app.Step(ctx))
	}
}

// earn has a customer pay 25 USD.
func (s *exampleShop) earn(ctx context.Context) {
	p, err := s.app.Payments.Create(ctx, s.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "USDTERC20"}})
	check(err)
	_, err = s.eth.Pay(chain.Address(p.Address), "USDTERC20", decimal.RequireFromString("25"))
	check(err)
	s.blocks(ctx, 60)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Pay out: the amount and the fees are held at once, and the payout is sent and followed
// by the workers.
func Example_payOut() {
	ctx := context.Background()
	s := openShop(ctx, nil)
	s.earn(ctx)

	amount := decimal.RequireFromString("10")
	w, err := s.app.Withdrawals.Create(ctx, s.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &amount, FinalAmount: true, Currency: "USDTERC20", Address: string(s.eth.Customer("supplier"))},
	}, storage.Once{Key: "invoice 1", Fingerprint: "10 USDT to the supplier"}) // the same request again gives the same withdrawal
	check(err)
	fmt.Println(w.Status)

	s.blocks(ctx, 60)
	w, err = s.app.Withdrawals.Get(ctx, s.tenant, w.ID)
	check(err)
	fmt.Println(w.Status, s.eth.Balance(s.eth.Customer("supplier"), "USDTERC20"))
	// Output:
	// pending
	// completed 10
}
