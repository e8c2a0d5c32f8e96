package cryptopay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

const usdt = "USDTERC20"

// stores are those that two processes are tried on. Memory stands for what every store
// promises, SQLite for what is written and read again.
func stores() map[string]func(testing.TB) storage.Store {
	return map[string]func(testing.TB) storage.Store{
		"memory": func(testing.TB) storage.Store { return memory.New() },
		"sqlite": func(t testing.TB) storage.Store {
			file := filepath.Join(t.TempDir(), "x.db")
			testenv.SQLiteApp(t)
			require.NoError(t, sqlite.Migrate(t.Context(), file))
			s, err := sqlite.Open(file, sqlite.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		},
	}
}

// listing is the shipped registry, changed.
func listing(t testing.TB, edit func(c *chain.Currency) (keep bool)) *chain.Registry {
	t.Helper()
	var left []chain.Currency
	for _, c := range chain.Mainnet() {
		if edit(&c) {
			left = append(left, c)
		}
	}
	r, err := chain.NewRegistry(chain.Networks(), left)
	require.NoError(t, err)
	return r
}

// without configures a process that does not list a currency; blind says that its client
// does not know it either, and so counts the token in its smallest units.
func without(t testing.TB, code string, blind bool) func(*cryptopay.Config) {
	return func(cfg *cryptopay.Config) {
		c, err := cfg.Registry.Currency(code)
		require.NoError(t, err)
		cfg.Registry = listing(t, func(c *chain.Currency) bool { return c.Code != code })
		for i, client := range cfg.Chains {
			if blind && client.Network() == c.Network {
				cfg.Chains[i] = &ignorant{client.(able), c}
			}
		}
	}
}

// able is what a simulated client can do that an App uses.
type able interface {
	chain.Client
	chain.Mempool
	chain.Balancer
	chain.Noncer
	chain.Historian
	chain.Locator
	chain.OnDemand
}

// ignorant is a client that does not know one currency.
type ignorant struct {
	able
	hidden *chain.Currency
}

func (i *ignorant) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	s, err := i.able.Scan(ctx, trail, w, limit)
	for b := range s.Blocks {
		for k := range s.Blocks[b].Transfers {
			if t := &s.Blocks[b].Transfers[k]; t.Currency == i.hidden.Code {
				t.Currency, t.Amount = "", t.Amount.Shift(int32(i.hidden.Decimals))
			}
		}
	}
	return s, err
}

// told are the statuses of a payment that its merchant was told by webhook, in order.
func (h *host) told(id string) []string {
	h.t.Helper()
	h.inbox.mu.Lock()
	defer h.inbox.mu.Unlock()
	var out []string
	for _, d := range h.inbox.got {
		var body struct {
			Event string `json:"event"`
			Data  struct {
				ID     string `json:"transaction_id"`
				Status string `json:"status"`
			} `json:"data"`
		}
		require.NoError(h.t, json.Unmarshal(d.Body, &body))
		if body.Data.ID == id && body.Event == "payment_status_update" {
			out = append(out, body.Data.Status)
		}
	}
	return out
}

func (h *host) received(p payment.Payment) string {
	h.t.Helper()
	p = h.payment(p.ID)
	return p.MerchantReceived()
}

func (h *host) create(amount, currency string) payment.Payment {
	h.t.Helper()
	p, err := h.app.Payments.Create(h.t.Context(), h.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: amount, Currency: currency}, OrderID: "o", CallbackURL: "https://shop.example/hook",
	})
	require.NoError(h.t, err)
	return p
}

func (h *host) pay(p payment.Payment, currency string, amount decimal.Decimal) string {
	h.t.Helper()
	tx, err := h.chains[chain.Network(p.Network)].Pay(chain.Address(p.Address), currency, amount)
	require.NoError(h.t, err)
	return tx
}

// withdraw orders so many USD worth, "" where the merchant does not have it.
func (h *host) withdraw(usd, currency string) string {
	h.t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(h.t, err)
	w, err := h.app.Withdrawals.Create(h.t.Context(), h.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: ptr(dec(usd)), Currency: currency, Address: string(h.chains[c.Network].Customer("supplier"))},
	})
	var short *withdrawal.InsufficientError
	if errors.As(err, &short) {
		return ""
	}
	require.NoError(h.t, err)
	return w.ID
}

// float gives the operator coins for gas.
func (h *host) float(n chain.Network, amount string) {
	h.t.Helper()
	hot, err := h.app.Hot(h.t.Context(), n, h.tenant)
	require.NoError(h.t, err)
	gas, err := chain.MainnetRegistry().Gas(n)
	require.NoError(h.t, err)
	_, err = h.chains[n].Fund(hot, gas.Code, dec(amount))
	require.NoError(h.t, err)
	h.mine(int(gas.Confirmations) + 1)
}

func stepOf(t testing.TB, a *cryptopay.App) {
	t.Helper()
	require.NoError(t, a.Step(t.Context()))
}

// mineWith grows the chain by n blocks of which only one process reads.
func (h *host) mineWith(a *cryptopay.App, n chain.Network, count int) {
	h.t.Helper()
	for range count {
		h.clock.Advance(15 * time.Second)
		h.chains[n].Mine(1)
		stepOf(h.t, a)
	}
}

// posted is what an account holds.
func (h *host) posted(a ledger.Account, asset string) ledger.Amount {
	h.t.Helper()
	balances, err := h.store.Balances(h.t.Context(), storage.Tenant(h.tenant))
	require.NoError(h.t, err)
	for _, b := range balances {
		if b.Account == a && string(b.Asset) == asset {
			return b.Posted
		}
	}
	return 0
}

// credited is what all wallets hold of an asset.
func (h *host) credited(asset string) (sum ledger.Amount) {
	h.t.Helper()
	balances, err := h.store.Balances(h.t.Context(), storage.Tenant(h.tenant))
	require.NoError(h.t, err)
	for _, b := range balances {
		if _, wallet := b.Account.WalletID(); wallet && string(b.Asset) == asset {
			sum += b.Posted
		}
	}
	return sum
}

// TestFM01_DepositReadByAProcessWithoutItsCurrency: one process does not list the currency
// and reads the block, one that lists it comes later. What was paid in time ends in the
// payment, what came late or for another currency in suspense, and the host is told once.
func TestFM01_DepositReadByAProcessWithoutItsCurrency(t *testing.T) {
	t.Parallel()
	for name, open := range stores() {
		for _, blind := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/blind=%t", name, blind), func(t *testing.T) {
				t.Parallel()
				h := newHostOn(t, open(t), 3, "ETH")
				var alerts []payment.Alert
				h.configure = func(cfg *cryptopay.Config) {
					cfg.Payments.Notify = func(_ context.Context, a payment.Alert) { alerts = append(alerts, a) }
				}
				h.restart()
				h.float("ETH", "1")
				poor := h.beside(without(t, usdt, blind))
				inTime, other, late := h.create("25", usdt), h.create("50", "ETH"), h.create("30", usdt)
				h.pay(inTime, usdt, dec("25"))
				h.pay(other, usdt, dec("7"))
				h.mineWith(poor, "ETH", 3)
				h.clock.Advance(2 * time.Hour)
				h.mineWith(poor, "ETH", 20) // final by now, and both windows are over
				require.Equal(t, payment.Waiting, h.payment(inTime.ID).Status, "who does not list its currency does not end it")
				require.Empty(t, h.told(inTime.ID))
				h.pay(late, usdt, dec("30"))
				h.mineWith(poor, "ETH", 20)

				h.step() // one that lists it
				h.mine(20)
				require.Equal(t, payment.Completed, h.payment(inTime.ID).Status)
				require.Equal(t, "25.00", h.received(inTime))
				require.NotContains(t, h.told(inTime.ID), "expired")
				require.Equal(t, ledger.Amount(25_000_000), h.credited(usdt))
				require.Equal(t, payment.Expired, h.payment(late.ID).Status)
				require.Equal(t, ledger.Amount(37_000_000), h.posted(ledger.Suspense, usdt))
				require.Len(t, alerts, 2)
				stepOf(t, poor)
				h.mineWith(poor, "ETH", 5)
				h.mine(5)
				require.Len(t, alerts, 2, "once")
				require.Equal(t, ledger.Amount(25_000_000), h.credited(usdt))
				h.sound()
			})
		}
	}
}

// TestFM01_DepositOfAnOlderVersionIsRecovered: a version before this one stored a deposit
// without a currency and left no mark. RecoverDeposits reads it from the chain again.
func TestFM01_DepositOfAnOlderVersionIsRecovered(t *testing.T) {
	t.Parallel()
	h := newHost(t, 4, "ETH")
	h.step()
	poor := h.beside(without(t, usdt, true))
	p := h.create("25", usdt)
	h.pay(p, usdt, dec("25"))
	h.mineWith(poor, "ETH", 20)
	part := storage.Network("ETH")
	rows, err := h.store.Find(t.Context(), storage.Query{Table: incoming.Unlisted.Table, Partition: part})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.NoError(t, h.store.Commit(t.Context(), storage.Change{ID: "older", Partition: part, Drop: rows})[0])
	h.clock.Advance(2 * time.Hour)
	h.step()
	require.Equal(t, payment.Expired, h.payment(p.ID).Status)
	for _, want := range []int{1, 0} {
		found, _, err := h.app.Operate.RecoverDeposits(t.Context(), "ETH", chain.Address(p.Address), 1, 0, because("asked"))
		require.NoError(t, err)
		require.Equal(t, want, found)
	}
	h.mine(20)
	require.Equal(t, "25.00", h.received(p), "its block is dated in time")
	h.sound()
}

// TestFM01_SpamDoesNotHideATokenThatAnotherProcessLists: a block with more worthless
// tokens than are recorded still shows one that another process on the store lists.
func TestFM01_SpamDoesNotHideATokenThatAnotherProcessLists(t *testing.T) {
	t.Parallel()
	h := newHost(t, 5, "ETH")
	h.float("ETH", "1")
	poor := h.beside(without(t, usdt, false))
	p := h.create("25", usdt)
	var spam sim.Tx
	for i := range 120 {
		spam.Payments = append(spam.Payments, sim.Payment{
			To: chain.Address(p.Address), Contract: fmt.Sprintf("0x%040x", i+1), Amount: dec("1"),
		})
	}
	_, err := h.chains["ETH"].Send(spam)
	require.NoError(t, err)
	h.pay(p, usdt, dec("25"))
	h.mineWith(poor, "ETH", 20)
	h.step()
	h.mine(20)
	require.Equal(t, payment.Completed, h.payment(p.ID).Status)
}

// TestFM06_RaisedConfirmationsHoldForWhatIsNotFinal: in an emergency the operator asks for
// more confirmations; what is in a block already waits for them too. Fewer are no promise
// taken back: what was included under more keeps them.
func TestFM06_RaisedConfirmationsHoldForWhatIsNotFinal(t *testing.T) {
	t.Parallel()
	depth := func(n int64) func(*cryptopay.Config) {
		return func(cfg *cryptopay.Config) {
			cfg.Registry = listing(t, func(c *chain.Currency) bool {
				if c.Network == "LTC" {
					c.Confirmations = n
				}
				return true
			})
		}
	}
	for name, c := range map[string]struct{ before, after, final int }{
		"raised": {6, 40, 40}, "lowered": {40, 6, 40},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t, 6, "LTC")
			h.rates.Set("LTC", "USD", dec("80"))
			h.configure = depth(int64(c.before))
			h.restart()
			h.step()
			p := h.create("80", "LTC")
			h.pay(p, "LTC", dec("1"))
			h.mine(3)
			h.configure = depth(int64(c.after))
			h.restart()
			h.mine(c.final - 4)
			require.Equal(t, payment.Confirming, h.payment(p.ID).Status)
			h.mine(1)
			require.Equal(t, payment.Completed, h.payment(p.ID).Status)
		})
	}
}

// TestFM01_ConfigurationsSideBySide: two processes of different configurations on one
// store, stepping in every order that a seed comes to. Each deposit ends in its payment or
// in suspense, and each merchant is told each thing once.
func TestFM01_ConfigurationsSideBySide(t *testing.T) {
	t.Parallel()
	others := map[string]func(testing.TB) func(*cryptopay.Config){
		"without a currency": func(t testing.TB) func(*cryptopay.Config) { return without(t, usdt, true) },
		"without a chain": func(testing.TB) func(*cryptopay.Config) {
			return func(cfg *cryptopay.Config) {
				cfg.Chains = slices.DeleteFunc(cfg.Chains, func(c chain.Client) bool { return c.Network() == "BTC" })
				cfg.Elsewhere = []chain.Network{"BTC"}
			}
		},
		"fewer confirmations": func(t testing.TB) func(*cryptopay.Config) {
			return func(cfg *cryptopay.Config) {
				cfg.Registry = listing(t, func(c *chain.Currency) bool { c.Confirmations = 1; return true })
			}
		},
		"no word of what others can": func(testing.TB) func(*cryptopay.Config) {
			return func(cfg *cryptopay.Config) { // as a version before batches and children
				cfg.Outgoing.MaxPayments, cfg.Outgoing.DisableCPFP, cfg.GoneAfter = 1, true, -1
			}
		},
	}
	seeds := 6
	if testing.Short() {
		seeds = 1
	}
	for store, open := range stores() {
		for name, other := range others {
			for seed := range seeds {
				if store == "sqlite" && seed > 0 {
					break
				}
				t.Run(fmt.Sprintf("%s/%s/%d", store, name, seed), func(t *testing.T) {
					t.Parallel()
					sideBySide(t, open(t), uint64(seed), other(t))
				})
			}
		}
	}
}

func sideBySide(t *testing.T, store storage.Store, seed uint64, other func(*cryptopay.Config)) {
	h := newHostOn(t, store, seed+100, "ETH", "BTC")
	h.float("ETH", "1")
	apps := []*cryptopay.App{h.app, h.beside(other)}
	rng := rand.New(rand.NewPCG(seed, 7))
	currencies := []string{usdt, "ETH", "BTC"}
	var all []payment.Payment
	var out []string
	paid := map[string]decimal.Decimal{}
	for range 120 {
		switch rng.IntN(9) {
		case 0:
			all = append(all, h.create("120", currencies[rng.IntN(len(currencies))]))
		case 1, 2:
			if len(all) == 0 {
				continue
			}
			p := all[rng.IntN(len(all))]
			currency := p.Currency
			if chain.Network(p.Network) == "ETH" && rng.IntN(5) == 0 {
				currency = []string{usdt, "ETH"}[rng.IntN(2)]
			}
			amount := map[string]string{usdt: "120", "ETH": "0.06", "BTC": "0.002"}[currency]
			h.pay(p, currency, dec(amount))
			paid[currency] = paid[currency].Add(dec(amount))
		case 8:
			if id := h.withdraw("15", currencies[rng.IntN(2)]); id != "" {
				out = append(out, id)
			}
		case 3:
			h.clock.Advance(time.Duration(rng.IntN(40)) * time.Minute)
		case 4, 5:
			h.clock.Advance(15 * time.Second)
			h.chains[[]chain.Network{"ETH", "BTC"}[rng.IntN(2)]].Mine(1)
		default:
			stepOf(t, apps[rng.IntN(2)])
		}
	}
	for range 40 { // both go on until all is final and every window is over
		h.clock.Advance(5 * time.Minute)
		for _, c := range h.chains {
			c.Mine(1)
		}
		stepOf(t, apps[rng.IntN(2)])
	}
	for range 3 {
		h.clock.Advance(2 * time.Minute)
		stepOf(t, apps[1])
		stepOf(t, apps[0])
	}
	for _, p := range all {
		status := h.payment(p.ID).Status
		require.Contains(t, []payment.Status{payment.Completed, payment.Expired}, status)
		told := h.told(p.ID)
		for _, s := range told {
			require.Len(t, slices.DeleteFunc(slices.Clone(told), func(o string) bool { return o != s }), 1, "%s: %v", s, told)
		}
		require.Equal(t, string(status), told[len(told)-1])
	}
	gone := map[string]ledger.Amount{}
	for _, id := range out {
		w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Completed, w.Status, "waits for %s", w.Waiting)
		gone[w.Currency] += w.Requested
	}
	registry := chain.MainnetRegistry()
	for code, sum := range paid {
		c, err := registry.Currency(code)
		require.NoError(t, err)
		in := h.credited(code) + h.posted(ledger.Suspense, code) + gone[code]
		require.Equal(t, sum.String(), c.Decimal(in).String(), code)
	}
	h.sound()
}
