package signerd_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// shop is an App without a seed: it has extended public keys, and a signer elsewhere.
type shop struct {
	t      testing.TB
	clock  *cryptopay.ManualClock
	store  storage.Store
	signer *signer
	sims   map[chain.Network]*sim.Chain
	app    *cryptopay.App
	tenant string
	heard  *heard
}

// heard notes the signatures that came, and loses them when it is told to: as an App does
// that dies with them.
type heard struct {
	chain.ManySigner
	mu    sync.Mutex
	lose  int
	known map[string]string // signatures by attempt
	twice []string          // attempts that were signed in two ways
	asked int
}

func (h *heard) SignMany(ctx context.Context, rs []chain.SignRequest) ([][]chain.Signature, []error) {
	sigs, errs := h.ManySigner.SignMany(ctx, rs)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.asked += len(rs)
	for i := range rs {
		if errs[i] != nil {
			continue
		}
		text := fmt.Sprintf("%x", sigs[i])
		if old, ok := h.known[rs[i].Attempt]; ok && old != text {
			h.twice = append(h.twice, rs[i].Attempt)
		}
		h.known[rs[i].Attempt] = text
		if h.lose > 0 {
			h.lose--
			sigs[i], errs[i] = nil, errors.New("lost")
		}
	}
	return sigs, errs
}

func newShop(t testing.TB, s *signer) *shop {
	t.Helper()
	h := &shop{
		t: t, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)), store: memory.New(), signer: s,
		sims: map[chain.Network]*sim.Chain{}, heard: &heard{known: map[string]string{}},
	}
	for _, n := range s.order.Networks {
		h.sims[n] = simulated(n, h.clock.Now)
	}
	h.restart()
	name := "shop"
	tenant, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	h.tenant = tenant.ID
	h.step()
	for n, c := range h.sims {
		hot, err := h.app.Hot(t.Context(), n, h.tenant)
		require.NoError(t, err)
		gas, err := chain.MainnetRegistry().Gas(n)
		require.NoError(t, err)
		_, err = c.Fund(hot, gas.Code, decimal.New(1, 0))
		require.NoError(t, err)
	}
	h.mine(15)
	return h
}

// restart is a new process of the App on what the old one stored.
func (h *shop) restart() {
	h.t.Helper()
	registry := chain.MainnetRegistry()
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(h.t, err)
	accounts, err := seed.Accounts(registry.Networks())
	require.NoError(h.t, err)
	encode, clients := map[chain.Network]keys.Encode{}, []chain.Client{}
	for n, c := range h.sims {
		client := c.Client()
		clients = append(clients, client)
		encode[n] = client.AddressOf
	}
	source, err := keys.NewSource(accounts, encode)
	require.NoError(h.t, err)
	h.heard.ManySigner = h.signer.client(func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
		return h.app.KeyOf(ctx, n, a)
	})
	h.app, err = cryptopay.New(cryptopay.Config{
		Store: h.store, Chains: clients, Registry: registry, Addresses: source, Signer: h.heard, Clock: h.clock,
		Rates: rates.NewFixed(h.clock.Now, "USD", map[string]string{"ETH": "2000", "BTC": "60000", "USDT": "1"}),
		Key:   bytes.Repeat([]byte{7}, 32), Log: slog.New(slog.NewTextHandler(h.t.Output(), nil)),
	})
	require.NoError(h.t, err)
	require.NoError(h.t, h.app.Open(h.t.Context()))
}

func (h *shop) step() {
	h.t.Helper()
	require.NoError(h.t, h.app.Step(h.t.Context()))
}

func (h *shop) mine(n int) {
	h.t.Helper()
	for range n {
		h.clock.Advance(15 * time.Second)
		for _, c := range h.sims {
			c.Mine(1)
		}
		h.step()
	}
}

// earn takes a payment of so much in USD, until it is forwarded.
func (h *shop) earn(currency, usd string) {
	h.t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(h.t, err)
	p, err := h.app.Payments.Create(h.t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: usd, Currency: currency}})
	require.NoError(h.t, err)
	_, err = h.sims[c.Network].Pay(chain.Address(p.Address), currency, c.Decimal(p.Due))
	require.NoError(h.t, err)
	h.mine(int(c.Confirmations) + 30)
	p, err = h.app.Payments.Get(h.t.Context(), h.tenant, p.ID)
	require.NoError(h.t, err)
	require.Equal(h.t, payment.Completed, p.Status)
}

func (h *shop) order(currency, usd, to string) string {
	h.t.Helper()
	amount := decimal.RequireFromString(usd)
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(h.t, err)
	w, err := h.app.Withdrawals.Create(h.t.Context(), h.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &amount, Currency: currency, Address: string(h.sims[c.Network].Customer(to))},
	})
	require.NoError(h.t, err)
	return w.ID
}

func (h *shop) withdrawal(id string) withdrawal.Withdrawal {
	h.t.Helper()
	w, err := h.app.Withdrawals.Get(h.t.Context(), h.tenant, id)
	require.NoError(h.t, err)
	return w
}

// paid says that a withdrawal was paid once, and the books are sound.
func (h *shop) paid(id, to string) {
	h.t.Helper()
	w := h.withdrawal(id)
	require.Equal(h.t, withdrawal.Completed, w.Status, "waiting for %s", w.Waiting)
	c, err := chain.MainnetRegistry().Currency(w.Currency)
	require.NoError(h.t, err)
	world := h.sims[c.Network]
	require.Len(h.t, world.Transfers(world.Customer(to)), 1)
	require.Equal(h.t, c.Decimal(w.Amount).String(), world.Transfers(world.Customer(to))[0].Amount.String())
	reports, err := h.app.Verify(h.t.Context())
	require.NoError(h.t, err)
	for i := range reports {
		require.True(h.t, reports[i].Sound())
	}
	require.NoError(h.t, world.Audit())
	require.Empty(h.t, h.heard.twice)
}

func shopLimits(usdt, eth, btc ledger.Amount) keys.Limits {
	day := func(a ledger.Amount) []keys.Limit { return []keys.Limit{{Amount: a, Per: 24 * time.Hour}} }
	return keys.Limits{
		Pays:  map[string][]keys.Limit{"USDTERC20": day(usdt), "ETH": day(eth), "BTC": day(btc)},
		Costs: map[chain.Network][]keys.Limit{"ETH": day(coin), "BTC": day(coin)},
	}
}

// An App without a seed forwards deposits and pays out, in coins, tokens and outputs.
func TestFS07_AppPaysOutAndSweepsThroughTheSigner(t *testing.T) {
	t.Parallel()
	s := newSigner(t, shopLimits(1e12, 1e12, 1e12), "ETH", "BTC")
	s.start()
	h := newShop(t, s)
	var ids []string
	for _, currency := range []string{"ETH", "USDTERC20", "BTC"} {
		h.earn(currency, "300")
		ids = append(ids, h.order(currency, "100", "supplier "+currency))
	}
	h.mine(40)
	for i, currency := range []string{"ETH", "USDTERC20", "BTC"} {
		h.paid(ids[i], "supplier "+currency)
	}
	pays, keeps := map[string]int{}, map[string]int{}
	for _, l := range s.lines() {
		for _, p := range l.Pays {
			pays[p.Currency]++
		}
		for _, p := range l.Keeps {
			keeps[p.Currency]++
			require.NotEmpty(t, p.Key)
		}
	}
	require.Equal(t, map[string]int{"ETH": 1, "USDTERC20": 1, "BTC": 1}, pays)
	require.Positive(t, keeps["USDTERC20"], "forwarded to the hot address")
	require.Positive(t, keeps["ETH"])
	require.Positive(t, keeps["BTC"], "change")
}

// A withdrawal that the limit holds up waits for the signer, and is paid when the window
// has moved.
func TestFS07_WithdrawalAboveTheLimitWaits(t *testing.T) {
	t.Parallel()
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	most, err := usdt.Units(decimal.New(150, 0), ledger.Down)
	require.NoError(t, err)
	s := newSigner(t, shopLimits(most, 1e12, 1e12), "ETH")
	delete(s.order.Limits.Pays, "BTC")
	delete(s.order.Limits.Costs, "BTC")
	s.start()
	h := newShop(t, s)
	h.earn("USDTERC20", "300")
	first := h.order("USDTERC20", "100", "first")
	h.mine(40)
	h.paid(first, "first")
	second := h.order("USDTERC20", "100", "second")
	h.mine(40)
	require.Equal(t, "signer", h.withdrawal(second).Waiting)
	s.kill()
	s.order.Skip = 25 * time.Hour
	s.start()
	h.mine(60)
	h.paid(second, "second")
}

// The signer dies at every place of its work, or the App with the signatures in its hands:
// each withdrawal is paid once, and no attempt is signed in two ways.
func TestFS07_PaidOnceWhoeverDies(t *testing.T) {
	t.Parallel()
	for _, place := range []string{beforeBind, afterBind, inTheLog, afterLog, "the App", "between"} {
		for _, currency := range []string{"USDTERC20", "BTC"} {
			t.Run(place+" "+currency, func(t *testing.T) {
				t.Parallel()
				s := newSigner(t, shopLimits(1e12, 1e12, 1e12), "ETH", "BTC")
				s.start()
				h := newShop(t, s)
				h.earn(currency, "300")
				signed := len(s.lines())
				switch place {
				case "the App":
					h.heard.lose = 3
				case "between":
					s.kill()
				default:
					s.at(place, 1)
				}
				id := h.order(currency, "100", "supplier")
				asked := h.heard.asked
				for h.heard.asked == asked {
					h.clock.Advance(time.Second)
					h.step()
				}
				if place != "the App" {
					require.Empty(t, h.withdrawal(id).Tx)
					if place != "between" {
						s.died()
					}
					s.at("", 0)
				}
				h.restart()
				h.mine(60)
				h.paid(id, "supplier")
				payloads := map[string]string{}
				for _, l := range s.lines()[signed:] {
					if old, ok := payloads[l.Attempt]; ok {
						require.Equal(t, old, l.Payload)
					}
					payloads[l.Attempt] = l.Payload
				}
				require.Len(t, payloads, 1)
			})
		}
	}
}

// What a signer asks of the network it signs for it needs no node for, and half a
// configuration is refused by its name.
func TestFS07_ConfigurationsAreChecked(t *testing.T) {
	t.Parallel()
	store := memory.New()
	require.NoError(t, store.Open(t.Context(), keys.LimitTables()...))
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	log, err := signerd.OpenLog(t.TempDir() + "/signed.log")
	require.NoError(t, err)
	whole := signerd.Config{
		Seed: seed, Registry: chain.MainnetRegistry(), Chains: map[chain.Network]signerd.Chain{"ETH": simulated("ETH", time.Now).Client()},
		Store: store, Limits: limitsOf("ETH", "ETH", 1, 1), Log: log, Now: time.Now,
	}
	_, err = signerd.New(t.Context(), whole)
	require.NoError(t, err)
	for want, edit := range map[string]func(*signerd.Config){
		"are required":            func(c *signerd.Config) { c.Log = nil },
		"costs: name one for ETH": func(c *signerd.Config) { c.Limits.Costs = nil },
		"network BTC is not":      func(c *signerd.Config) { c.Limits = limitsOf("BTC", "ETH", 1, 1) },
		"limits of ETHX":          func(c *signerd.Config) { c.Limits = limitsOf("ETH", "ETHX", 1, 1) },
		"a minute and 366 days": func(c *signerd.Config) {
			c.Limits.Pays = map[string][]keys.Limit{"ETH": {{Amount: 1, Per: time.Second}}}
		},
		"name at least one": func(c *signerd.Config) { c.Limits.Pays = map[string][]keys.Limit{"ETH": {}} },
		"recipients of BTC": func(c *signerd.Config) { c.Allow = map[string][]signerd.Recipient{"BTC": {}} },
		"recipients of ETH": func(c *signerd.Config) { c.Allow = map[string][]signerd.Recipient{"ETH": {{Address: "no address"}}} },
		"must not be negative": func(c *signerd.Config) {
			c.Limits.Pays = map[string][]keys.Limit{"ETH": {{Amount: -1, Per: time.Hour}}}
		},
	} {
		broken := whole
		edit(&broken)
		_, err := signerd.New(t.Context(), broken)
		require.ErrorContains(t, err, want)
	}
	for _, url := range []string{"", "http://127.0.0.1", "https://", "https://user:secret@host", "https://host/path", "https://host?a=b", "::"} {
		_, err := signerd.NewClient(signerd.ClientConfig{URL: url})
		require.ErrorContains(t, err, "URL must be such as")
		require.NotContains(t, err.Error(), "secret")
	}
	_, err = signerd.NewClient(signerd.ClientConfig{URL: "https://host"})
	require.ErrorContains(t, err, "client certificate")
}
