package prometheus_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/observe"
	"github.com/cryptopay-go/cryptopay/observe/prometheus"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// config is a small App's, on a simulated chain.
func config(clock cryptopay.Clock, eth *sim.Chain, store storage.Store) cryptopay.Config {
	registry := chain.MainnetRegistry()
	seed, _ := keys.FromMnemonic("abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about", "")
	accounts, _ := seed.Accounts(registry.Networks())
	addresses, _ := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})
	return cryptopay.Config{
		Store: store, Chains: []chain.Client{eth.Client()}, Addresses: addresses, Clock: clock, Log: slog.New(slog.DiscardHandler),
		Rates: rates.NewFixed(clock.Now, "USD", map[string]string{"USDT": "1", "USDC": "1", "DAI": "1", "ETH": "2000"}), Key: bytes.Repeat([]byte{7}, 32),
	}
}

// Show the figures of an App to Prometheus.
func ExampleCollector() {
	ctx, clock := context.Background(), cryptopay.NewManualClock(time.Unix(1767323045, 0))
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Now: clock.Now})
	cfg := config(clock, eth, memory.New())

	figures := prometheus.New()
	cfg.Observer = figures // hears how long steps take
	app, err := cryptopay.New(cfg)
	if err != nil {
		panic(err)
	}
	figures.Watch(app)
	_ = app.Open(ctx)
	registry := client.NewRegistry() // promhttp.HandlerFor(registry, …) serves it
	registry.MustRegister(figures)

	families, _ := registry.Gather()
	for _, f := range families {
		if f.GetName() == "cryptopay_tenants" {
			fmt.Println(f.GetName(), f.GetMetric()[0].GetGauge().GetValue())
		}
	}
	// Output: cryptopay_tenants 0
}

// A scrape shows what there is: a registry that checks everything takes it, and each metric
// is there after some business.
func TestE10_AScrapeShowsWhatThereIs(t *testing.T) {
	t.Parallel()
	ctx, clock := t.Context(), cryptopay.NewManualClock(time.Unix(1767323045, 0))
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Now: clock.Now})
	c := prometheus.New()
	cfg := config(clock, eth, memory.New())
	cfg.Observer = c
	app, err := cryptopay.New(cfg)
	require.NoError(t, err)
	require.NoError(t, app.Open(ctx))
	registry := client.NewPedanticRegistry()
	registry.MustRegister(c)
	families, err := registry.Gather()
	require.NoError(t, err)
	require.Empty(t, families, "nothing is watched yet")
	c.Watch(app)

	name := "shop"
	shop, err := app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	p, err := app.Payments.Create(ctx, shop.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "USDTERC20"}})
	require.NoError(t, err)
	_, err = eth.Pay(chain.Address(p.Address), "USDTERC20", decimal.RequireFromString("25"))
	require.NoError(t, err)
	clock.Advance(90 * time.Second)
	require.NoError(t, app.Step(ctx))
	require.NoError(t, testutil.CollectAndCompare(c, strings.NewReader(`
# HELP cryptopay_payments_oldest_seconds Age of the oldest payment of a status that is not final; 0 for the others.
# TYPE cryptopay_payments_oldest_seconds gauge
cryptopay_payments_oldest_seconds{status="completed"} 0
cryptopay_payments_oldest_seconds{status="confirmed"} 0
cryptopay_payments_oldest_seconds{status="confirming"} 90
cryptopay_payments_oldest_seconds{status="expired"} 0
cryptopay_payments_oldest_seconds{status="failed"} 0
cryptopay_payments_oldest_seconds{status="sending"} 0
cryptopay_payments_oldest_seconds{status="waiting"} 0
# HELP cryptopay_figures_up 1 where the figures of this scrape are all there is, 0 where reading some failed.
# TYPE cryptopay_figures_up gauge
cryptopay_figures_up 1
`), "cryptopay_payments_oldest_seconds", "cryptopay_figures_up"))
	families, err = registry.Gather()
	require.NoError(t, err)
	shown := map[string]bool{}
	for _, f := range families {
		shown[f.GetName()] = true
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				require.NotContains(t, l.GetValue(), shop.ID)
			}
		}
	}
	require.True(t, shown[observe.Steps])
	for _, m := range observe.Metrics() {
		if !strings.HasPrefix(m.Name, "cryptopay_consumer_") { // there is none
			require.True(t, shown[m.Name], m.Name)
		}
	}
}

// stuck is a store that hangs, whatever the context says.
type stuck struct {
	storage.Store
	hangs chan struct{}
}

func (s *stuck) Rows(ctx context.Context, t *storage.Table, k ...storage.Key) ([]storage.Row, error) {
	select {
	case <-s.hangs:
		select {}
	default:
		return s.Store.Rows(ctx, t, k...)
	}
}

// A scrape ends while the store hangs, and says so.
func TestE10_AScrapeEndsWhateverHangs(t *testing.T) {
	t.Parallel()
	clock := cryptopay.NewManualClock(time.Unix(1767323045, 0))
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Now: clock.Now})
	s := &stuck{memory.New(), make(chan struct{})}
	app, err := cryptopay.New(config(clock, eth, s))
	require.NoError(t, err)
	require.NoError(t, app.Open(t.Context()))
	c := prometheus.New()
	c.Watch(app)
	close(s.hangs)
	for range 2 {
		began := time.Now()
		samples := observe.Read(t.Context(), app)
		require.Less(t, time.Since(began), 9*time.Second)
		values := map[string]float64{}
		for _, sample := range samples {
			values[sample.Name+strings.Join(sample.Labels, "")] = sample.Value
		}
		require.Equal(t, 2, int(values["cryptopay_part_statusstore"]))
		up, said := values["cryptopay_figures_up"]
		require.True(t, said)
		require.Zero(t, up)
	}
}
