package cryptopaytest

import (
	"bytes"
	"context"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// Words are the seed that everybody knows: of tests alone.
const Words = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// Key is the cryptopay.Config.Key of tests.
func Key() []byte { return bytes.Repeat([]byte{7}, 32) }

// Prices are fixed ones in USD.
func Prices(now func() time.Time) *rates.Fixed {
	return rates.NewFixed(now, "USD", map[string]string{
		"BTC": "60000", "ETH": "2000", "LTC": "80", "DOGE": "0.1", "TRX": "0.2", "SOL": "150", "XRP": "2", "XLM": "0.2",
		"BNB": "600", "MATIC": "0.5", "AVAX": "30", "USDT": "1", "USDC": "1", "DAI": "1",
	})
}

// Parts are what a Config on simulated chains is made of.
type Parts struct {
	Store  storage.Store
	Clock  *cryptopay.ManualClock
	Chains map[chain.Network]*sim.Chain
	// App is the one that is made of the Config. The Signer asks it for the keys of our addresses.
	App func() *cryptopay.App
	// Mandates are what the Signer demands: cryptopay.MandateKeys. Defaults to none.
	Mandates mandate.Keys
}

// Config is a Config with keys, a Signer, prices and the networks' clients, in the order of
// the registry.
func (p Parts) Config() (cryptopay.Config, error) {
	registry, inspect := chain.MainnetRegistry(), map[chain.Network]keys.Chain{}
	var clients []chain.Client
	for _, info := range registry.Networks() {
		if c := p.Chains[info.Code]; c != nil {
			clients = append(clients, c.Client())
			inspect[info.Code] = c.Client()
		}
	}
	seed, err := keys.FromMnemonic(Words, "")
	if err != nil {
		return cryptopay.Config{}, err
	}
	addresses, err := seed.Source(clients...)
	if err != nil {
		return cryptopay.Config{}, err
	}
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: inspect, Registry: keys.StoreRegistry{Store: p.Store},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return p.App().KeyOf(ctx, n, a)
		},
		Mandates: p.Mandates,
	})
	if err != nil {
		return cryptopay.Config{}, err
	}
	return cryptopay.Config{
		Store: p.Store, Chains: clients, Registry: registry, Addresses: addresses, Signer: signer, Rates: Prices(p.Clock.Now),
		Key: Key(), Clock: p.Clock, Callbacks: webhook.Guard{AllowHTTP: true},
	}, nil
}
