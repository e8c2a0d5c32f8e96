package cryptopay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// From nothing to an address that takes money, on a simulated network and in memory. Errors
// are looked at in the end here, as each of these calls fails after the one before.
func ExampleOpen() {
	ctx, eth := context.Background(), sim.MustNew(sim.Options{Network: "ETH"})
	prices := rates.NewFixed(nil, "USD", map[string]string{"ETH": "2000"}) // there is no price unless you say one
	app, err := cryptopay.Open(ctx, cryptopay.Config{Store: memory.New(), Chains: []chain.Client{eth.Client()}, Rates: prices})
	check(err)
	shop, err := app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: new("My shop")}})
	check(err)
	p, err := app.Payments.Create(ctx, shop.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "ETH"}})
	check(err)
	fmt.Println(p.Status, len(p.Address) > 0)
	// Output:
	// waiting true
}

// A real network and a file take the same calls, and a seed and a key.
func ExampleOpen_realNetwork() {
	ctx, words, key, prices := context.Background(), mnemonic, bytes.Repeat([]byte{7}, 32), rates.NewFixed(nil, "USD", map[string]string{"ETH": "2000"})

	store, err := sqlite.Open("shop.db", sqlite.Options{Migrate: true})
	check(err)
	eth, err := evm.At("ETH", "http://127.0.0.1:8545")
	check(err)
	seed, err := keys.FromMnemonic(words, "")
	check(err)
	addresses, err := seed.Source(eth)
	check(err)
	app, err := cryptopay.Open(ctx, cryptopay.Config{Store: store, Chains: []chain.Client{eth}, Addresses: addresses, Key: key, Rates: prices})
	check(err)
	_ = app
}

// said is what an App logged.
func said(cfg *cryptopay.Config) *bytes.Buffer {
	out := &bytes.Buffer{}
	cfg.Log = slog.New(slog.NewTextHandler(out, nil))
	return out
}

// What is made for development is said loudly, is the same at the next start, and is made on
// simulated networks alone.
func TestKeysOfDevelopment(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), filepath.Join(t.TempDir(), "shop.db")
	var address string
	for range 2 {
		store, err := sqlite.Open(file, sqlite.Options{Migrate: true})
		require.NoError(t, err)
		cfg := cryptopay.Config{Store: store, Chains: []chain.Client{sim.MustNew(sim.Options{Network: "ETH"}).Client()}}
		log := said(&cfg)
		app, err := cryptopay.Open(ctx, cfg)
		require.NoError(t, err)
		_, err = app.Wallets.CreateTenant(ctx, wallet.NewTenant{ID: "shop", Settings: wallet.Settings{Name: new("My shop")}})
		if address == "" {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, wallet.ErrTenantExists)
		}
		hot, err := app.Hot(ctx, "ETH", "shop")
		require.NoError(t, err)
		if address != "" {
			require.Equal(t, address, string(hot))
		}
		address = string(hot)
		for _, field := range []string{"Addresses", "Key"} {
			require.Contains(t, log.String(), "level=WARN msg=made_for_development field=Config."+field)
		}
		require.NoError(t, store.Close())
	}

	real, err := evm.New(evm.Options{Network: "ETH", URL: "http://127.0.0.1:1", ChainID: 1})
	require.NoError(t, err)
	looksReal := sim.MustNew(sim.Options{Network: "ETH", Addresses: likeReal{}}).Client()
	for _, others := range [][]chain.Client{{real}, {looksReal}, {sim.MustNew(sim.Options{Network: "BTC"}).Client(), real}} {
		_, err = cryptopay.New(cryptopay.Config{Store: memory.New(), Chains: others})
		require.ErrorContains(t, err, "Config.Key", "no network that is real gets a key that everybody knows")
		app, err := cryptopay.New(cryptopay.Config{Store: memory.New(), Chains: others, Key: hostKey})
		require.NoError(t, err)
		_, err = app.Addresses.Hot(ctx, "ETH", "shop")
		if err == nil || errors.Is(err, storage.ErrClosed) {
			err = app.Open(ctx)
			require.NoError(t, err)
			_, err = app.Addresses.Hot(ctx, "ETH", "shop")
		}
		missing := &cryptopay.MissingError{}
		require.ErrorAs(t, err, &missing)
		require.Equal(t, "Addresses", missing.Field)
	}
}

// likeReal writes addresses that somebody could send coins to.
type likeReal struct{}

func (likeReal) Parse(s string) (chain.Address, error) { return chain.Address(s), nil }
func (likeReal) Make(owner [32]byte) chain.Address {
	return chain.Address(fmt.Sprintf("0x%x", owner[:20]))
}

// An App needs prices and addresses where something uses them, and says then what lacks which.
func TestConfigIsNeededWhereItIsUsed(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHost(t, 31, "ETH")
	h.step()
	h.float("ETH", "1")
	h.earn("ETH", "300")
	var log *bytes.Buffer
	without := h.beside(func(c *cryptopay.Config) {
		c.Rates, c.Addresses, c.Signer = nil, nil, nil
		c.Chains = []chain.Client{unsimulated{c.Chains[0]}}
		log = said(c)
	})
	for _, field := range []string{"Rates", "Addresses"} {
		require.Contains(t, log.String(), "config_missing field=Config."+field)
	}
	log.Reset()
	w, err := without.Wallets.Create(ctx, h.tenant, wallet.CreateInput{Name: "till", ExternalID: "till-1"})
	require.NoError(t, err)
	_, err = without.Wallets.CreateTransfer(ctx, h.tenant, wallet.TransferInput{
		Direction: wallet.ToSub, WalletID: w.ID, Currency: "ETH", Amount: dec("0.01"),
	})
	require.NoError(t, err)
	amount := dec("0.02")
	paid, err := without.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &amount, Currency: "ETH", Address: string(h.chains["ETH"].Customer("supplier"))},
	})
	require.NoError(t, err)
	require.NoError(t, without.Step(ctx), "nothing that it lacks is asked for")
	require.NotContains(t, log.String(), "missing")
	require.Equal(t, cryptopay.OK, partOf(t, without.Health(ctx), "rates").State, "it prices nothing")

	missing := func(field, what string, err error) {
		t.Helper()
		var m *cryptopay.MissingError
		require.ErrorAs(t, err, &m)
		require.Equal(t, field, m.Field)
		require.Contains(t, err.Error(), "Config."+field)
		require.Contains(t, err.Error(), what)
	}
	_, err = without.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &amount, Currency: "ETH", Address: string(h.chains["ETH"].Customer("supplier"))},
	})
	missing("Rates", "withdrawals", err)
	_, err = without.Payments.Create(ctx, h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "ETH"}})
	missing("Rates", "payments", err)
	addressless := h.beside(func(c *cryptopay.Config) {
		c.Addresses, c.Chains = nil, []chain.Client{unsimulated{c.Chains[0]}}
	})
	_, err = addressless.Payments.Create(ctx, h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "ETH"}})
	missing("Addresses", "payments", err)

	h.mine(60)
	sent, err := without.Withdrawals.Get(ctx, h.tenant, paid.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, sent.Status, "another process sends")
	h.sound()
}

// unsimulated hides that a network is simulated.
type unsimulated struct{ chain.Client }
