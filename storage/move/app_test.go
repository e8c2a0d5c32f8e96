package move_test

import (
	"bytes"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/move"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// shop is a program that embeds the library, whose store is changed while money
// is on its way.
type shop struct {
	t       *testing.T
	clock   *cryptopay.ManualClock
	chains  map[chain.Network]*sim.Chain
	seed    *keys.Seed
	random  *rand.ChaCha8
	rates   *rates.Fixed
	store   storage.Store
	app     *cryptopay.App
	tenants []string

	mu       sync.Mutex
	told     map[string]int // webhook id → times
	deaf     bool           // receivers answer nothing
	payments []string
	payouts  []string
	tenantOf map[string]string
}

func (s *shop) Notify(_ context.Context, list []webhook.Delivery) []webhook.Result {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make([]webhook.Result, len(list))
	for i, d := range list {
		if s.deaf {
			out[i] = webhook.Result{Status: 503, Err: webhook.ErrURL}
			continue
		}
		s.told[string(d.Body)]++
		out[i] = webhook.Result{Status: 200}
	}
	return out
}

func appTables() []*storage.Table { return slices.Concat(cryptopay.Tables(), keys.Tables()) }

// end is a store of the App at an end of a move; it opens it.
func end(t testing.TB, s storage.Store) move.End {
	t.Helper()
	require.NoError(t, s.Open(t.Context(), append(appTables(), move.Positions.Table)...))
	return move.End{Store: s, Tables: appTables(), Partitions: cryptopay.Partitions, Levels: cryptopay.LevelsOf}
}

const dailyCap = 500 // USDT

func newShop(t *testing.T, seed uint64) *shop {
	t.Helper()
	t.Logf("seed %d", seed)
	var key [32]byte
	key[0] = byte(seed)
	s := &shop{
		t: t, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), chains: map[chain.Network]*sim.Chain{},
		random: rand.NewChaCha8(key), told: map[string]int{}, tenantOf: map[string]string{},
	}
	var err error
	s.seed, err = keys.FromMnemonic("abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about", "")
	require.NoError(t, err)
	s.rates = rates.NewFixed(s.clock.Now, "USD", map[string]string{"ETH": "2000", "BTC": "60000", "USDT": "1", "USDC": "1"})
	for _, n := range []chain.Network{"ETH", "BTC"} {
		s.chains[n] = sim.MustNew(sim.Options{Network: n, Registry: chain.MainnetRegistry(), Seed: seed, Now: s.clock.Now, Finality: 20})
	}
	s.use(memory.New())
	for _, name := range []string{"one", "two"} {
		tenant, err := s.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
		require.NoError(t, err)
		s.tenants = append(s.tenants, tenant.ID)
	}
	return s
}

// use makes a new App over a store: all that a process kept in memory is gone.
func (s *shop) use(store storage.Store) {
	s.t.Helper()
	registry := chain.MainnetRegistry()
	var clients []chain.Client
	encode, inspect := map[chain.Network]keys.Encode{}, map[chain.Network]keys.Chain{}
	for _, n := range registry.Networks() {
		if c := s.chains[n.Code]; c != nil {
			client := c.Client()
			clients = append(clients, client)
			encode[n.Code], inspect[n.Code] = client.AddressOf, client
		}
	}
	accounts, err := s.seed.Accounts(registry.Networks())
	require.NoError(s.t, err)
	source, err := keys.NewSource(accounts, encode)
	require.NoError(s.t, err)
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: s.seed, Chains: inspect, Registry: keys.StoreRegistry{Store: store},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return s.app.KeyOf(ctx, n, a)
		},
	})
	require.NoError(s.t, err)
	s.store = store
	s.app, err = cryptopay.New(cryptopay.Config{
		Store: store, Chains: clients, Registry: registry, Addresses: source, Signer: signer, Rates: s.rates,
		Key: bytes.Repeat([]byte{7}, 32), Clock: s.clock, Random: s.random, Notifier: s,
		Callbacks: webhook.Guard{AllowHTTP: true}, Log: slog.New(slog.DiscardHandler),
		SealEvery: time.Minute,
		Withdrawals: withdrawal.Config{Ceilings: func(_ context.Context, _, currency string) (withdrawal.Ceiling, error) {
			if currency != "USDTERC20" {
				return withdrawal.Ceiling{}, nil
			}
			return withdrawal.Ceiling{Daily: dailyCap * 1_000_000}, nil
		}},
	})
	require.NoError(s.t, err)
	require.NoError(s.t, s.app.Open(s.t.Context(), append(keys.Tables(), move.Positions.Table)...))
}

func (s *shop) step() {
	s.t.Helper()
	require.NoError(s.t, s.app.Step(s.t.Context()))
}

func (s *shop) mine(n int) {
	s.t.Helper()
	for range n {
		s.clock.Advance(15 * time.Second)
		for _, c := range s.chains {
			c.Mine(1)
		}
		s.step()
	}
}

// pay makes a payment and, where it says so, lets the customer pay it.
func (s *shop) pay(tenant, currency, amount string, now bool) payment.Payment {
	s.t.Helper()
	p, err := s.app.Payments.Create(s.t.Context(), tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: amount, Currency: currency}, OrderID: "order-" + amount, CallbackURL: "https://shop.example/hook",
	})
	require.NoError(s.t, err)
	s.payments, s.tenantOf[p.ID] = append(s.payments, p.ID), tenant
	if now {
		s.settle(p)
	}
	return p
}

func (s *shop) settle(p payment.Payment) {
	s.t.Helper()
	c, err := chain.MainnetRegistry().Currency(p.Currency)
	require.NoError(s.t, err)
	_, err = s.chains[c.Network].Pay(chain.Address(p.Address), p.Currency, c.Decimal(p.Due))
	require.NoError(s.t, err)
}

func (s *shop) withdraw(tenant, currency, usd string) error {
	s.t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(s.t, err)
	price := decimal.RequireFromString(usd)
	w, err := s.app.Withdrawals.Create(s.t.Context(), tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &price, Currency: currency, Address: string(s.chains[c.Network].Customer("supplier"))},
		Key:   "withdraw " + tenant + usd,
	})
	if err == nil {
		s.payouts, s.tenantOf[w.ID] = append(s.payouts, w.ID), tenant
	}
	return err
}

// busy brings everything underway that can be: payments in every state,
// withdrawals asked for, sent and done, a transfer, webhooks that wait.
func (s *shop) busy() payment.Payment {
	s.t.Helper()
	ctx := s.t.Context()
	s.step()
	for n, world := range s.chains {
		for _, tenant := range s.tenants {
			hot, err := s.app.Addresses.Hot(ctx, n, tenant)
			require.NoError(s.t, err)
			gas, err := chain.MainnetRegistry().Gas(n)
			require.NoError(s.t, err)
			_, err = world.Fund(hot.Address, gas.Code, decimal.NewFromInt(1))
			require.NoError(s.t, err)
		}
	}
	s.mine(25)
	for _, tenant := range s.tenants {
		s.pay(tenant, "USDTERC20", "900", true)
		s.pay(tenant, "BTC", "400", true)
	}
	s.mine(40)
	require.NoError(s.t, s.withdraw(s.tenants[0], "USDTERC20", "200"))
	s.mine(30)
	s.pay(s.tenants[0], "ETH", "120", true) // will be confirming
	s.pay(s.tenants[1], "USDTERC20", "70", true)
	s.mine(2)
	for range 5 { // small forks: the deposits' facts are of a high version by now
		_, err := s.chains["ETH"].Reorg(2)
		require.NoError(s.t, err)
		s.mine(1)
	}
	s.deaf = true
	require.NoError(s.t, s.withdraw(s.tenants[0], "BTC", "100")) // on its way
	require.NoError(s.t, s.withdraw(s.tenants[1], "USDTERC20", "150"))
	s.mine(2)
	require.NoError(s.t, s.withdraw(s.tenants[0], "USDTERC20", "250")) // just asked for
	return s.pay(s.tenants[1], "ETH", "55", false)                     // waits for the customer
}

// complete lets everything come to its end over the store in use, and looks.
func (s *shop) complete(waiting payment.Payment) {
	s.t.Helper()
	ctx := s.t.Context()
	s.deaf = false
	require.Error(s.t, s.withdraw(s.tenants[0], "USDTERC20", "60"), "the day's cap counts what was withdrawn before the move")
	s.settle(waiting)
	s.mine(90)
	for _, id := range s.payments {
		p, err := s.app.Payments.Get(ctx, s.tenantOf[id], id)
		require.NoError(s.t, err)
		require.Equal(s.t, payment.Completed, p.Status, "%s %s", p.Currency, p.ID)
	}
	for _, id := range s.payouts {
		w, err := s.app.Withdrawals.Get(ctx, s.tenantOf[id], id)
		require.NoError(s.t, err)
		require.Equal(s.t, withdrawal.Completed, w.Status, "%s %s", w.Currency, w.Waiting)
	}
	events, err := s.store.Find(ctx, storage.Query{Table: webhook.Events.Table, Limit: 1000})
	require.NoError(s.t, err)
	delivered := 0
	for _, e := range events {
		switch webhook.Events.Value(e).Status {
		case webhook.StatusDelivered:
			delivered++
		case webhook.StatusSkipped: // withdrawals name no URL here
		default:
			require.Fail(s.t, "not told", e.ID)
		}
	}
	require.Equal(s.t, len(s.told), delivered)
	for body, n := range s.told {
		require.Equal(s.t, 1, n, body)
	}
	s.sound()
	paid := map[string]decimal.Decimal{}
	for _, id := range s.payouts {
		w, _ := s.app.Withdrawals.Get(ctx, s.tenantOf[id], id)
		c, _ := chain.MainnetRegistry().Currency(w.Currency)
		paid[w.Currency] = paid[w.Currency].Add(c.Decimal(w.Amount))
	}
	for currency, sum := range paid {
		c, _ := chain.MainnetRegistry().Currency(currency)
		world := s.chains[c.Network]
		require.Equal(s.t, sum.String(), world.Balance(world.Customer("supplier"), currency).String(), "paid once, %s", currency)
	}
	for _, world := range s.chains {
		require.NoError(s.t, world.Audit())
	}
}

func (s *shop) sound() {
	s.t.Helper()
	reports, err := cryptopay.VerifyStore(s.t.Context(), s.store)
	require.NoError(s.t, err)
	require.Len(s.t, reports, len(s.tenants))
	for _, r := range reports {
		require.True(s.t, r.Sound(), "%+v", r)
		require.Positive(s.t, r.Seals.Seals, "journals are sealed at both ends")
	}
}
