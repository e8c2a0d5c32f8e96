package otel_test

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/observe"
	"github.com/cryptopay-go/cryptopay/observe/otel"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// A payment that ends is one trace, its id the payment's, with a span for each stage at the
// times of the rows; one that expires has the stages that it came to. The metrics are those of
// package observe.
func TestE10_TracesAndMetrics(t *testing.T) {
	t.Parallel()
	ctx, clock, registry := t.Context(), cryptopay.NewManualClock(time.Unix(1767323045, 0).UTC()), chain.MainnetRegistry()
	eth := sim.MustNew(sim.Options{Network: "ETH", Registry: registry, Now: clock.Now})
	seed, err := keys.FromMnemonic("abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about", "")
	require.NoError(t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(t, err)
	addresses, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{"ETH": eth.Client().AddressOf})
	require.NoError(t, err)
	spans, reader := tracetest.NewInMemoryExporter(), sdkmetric.NewManualReader()
	o, err := otel.New(sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader)), sdktrace.NewTracerProvider(sdktrace.WithSyncer(spans)))
	require.NoError(t, err)
	app, err := cryptopay.New(cryptopay.Config{
		Store: memory.New(), Chains: []chain.Client{eth.Client()}, Addresses: addresses, Clock: clock, Log: slog.New(slog.DiscardHandler),
		Rates: rates.NewFixed(clock.Now, "USD", map[string]string{"USDT": "1", "USDC": "1", "DAI": "1", "ETH": "2000"}), Key: bytes.Repeat([]byte{7}, 32),
		Observer: o, Consumers: []stream.Consumer{o.Traces()},
	})
	require.NoError(t, err)
	o.Watch(app)
	require.NoError(t, app.Open(ctx))
	name := "shop"
	shop, err := app.Wallets.CreateTenant(ctx, wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	create := func() payment.Payment {
		p, err := app.Payments.Create(ctx, shop.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "ETH"}})
		require.NoError(t, err)
		return p
	}
	pass := func(minutes int) {
		for range minutes {
			clock.Advance(time.Minute)
			eth.Mine(1)
			require.NoError(t, app.Step(ctx))
		}
	}
	paid, left := create(), create()
	pass(3)
	_, err = eth.Pay(chain.Address(paid.Address), "ETH", decimal.RequireFromString("0.0125"))
	require.NoError(t, err)
	seen := clock.Now()
	require.NoError(t, app.Step(ctx))
	pass(300)

	got := map[string]map[string][2]time.Time{}
	for _, s := range spans.GetSpans() {
		id := s.SpanContext.TraceID().String()
		if got[id] == nil {
			got[id] = map[string][2]time.Time{}
		}
		require.NotContains(t, got[id], s.Name)
		got[id][s.Name] = [2]time.Time{s.StartTime, s.EndTime}
	}
	require.Len(t, got, 2)
	p, err := app.Payments.Get(ctx, shop.ID, paid.ID)
	require.NoError(t, err)
	require.Equal(t, payment.Completed, p.Status)
	trace := got[strings.ReplaceAll(paid.ID, "-", "")]
	end := trace["payment"][1]
	require.True(t, end.After(p.ConfirmedAt) || end.Equal(p.ConfirmedAt))
	require.Equal(t, map[string][2]time.Time{
		"payment": {p.CreatedAt, end}, "created": {p.CreatedAt, seen}, "seen": {seen, p.ConfirmedAt}, "confirmed": {p.ConfirmedAt, end},
	}, trace)
	p, err = app.Payments.Get(ctx, shop.ID, left.ID)
	require.NoError(t, err)
	require.Equal(t, payment.Expired, p.Status)
	trace = got[strings.ReplaceAll(left.ID, "-", "")]
	require.Len(t, trace, 2)
	require.Equal(t, trace["payment"], trace["created"])

	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(ctx, &all))
	values := map[string]bool{}
	for _, scope := range all.ScopeMetrics {
		require.Equal(t, otel.Scope, scope.Scope.Name)
		for _, m := range scope.Metrics {
			values[m.Name] = true
			if m.Name == "cryptopay_payments" {
				total := 0.0
				for _, point := range m.Data.(metricdata.Gauge[float64]).DataPoints {
					total += point.Value
				}
				require.Equal(t, 2, int(total))
			}
		}
	}
	for _, m := range observe.Metrics() {
		require.True(t, values[m.Name], m.Name)
	}
	require.True(t, values[observe.Steps])
	_, err = otel.New(nil, nil)
	require.ErrorContains(t, err, "MeterProvider")
}
