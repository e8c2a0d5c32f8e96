package treasury_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

// mortal is a process's way to its store, which can die: at the commit with
// that number, before it or after it was done; nothing works from then on.
type mortal struct {
	storage.Store
	commits int // so far, those not counted that only say how far the chain was read
	dieAt   int // 0 = never
	after   bool
	dead    bool
	refuse  storage.Partition // nothing is written to it
	fail    func(c *storage.Change) bool
	busy    func(c *storage.Change) bool // its partition is locked
}

var errDead = errors.New("the process is dead")

func (m *mortal) Commit(ctx context.Context, changes ...storage.Change) []error {
	all := make([]error, len(changes))
	for i := range changes {
		if m.dead || m.refuse != "" && changes[i].Partition == m.refuse || m.fail != nil && m.fail(&changes[i]) {
			all[i] = errDead
			continue
		}
		if m.busy != nil && m.busy(&changes[i]) {
			all[i] = storage.ErrBusy
			continue
		}
		now := false
		if !slices.ContainsFunc(changes[i].Put, func(r storage.Row) bool { return r.Table == incoming.Cursors.Table }) {
			m.commits++
			now = m.commits == m.dieAt
		}
		if m.dead = now && !m.after; m.dead {
			all[i] = errDead
			continue
		}
		all[i] = m.Store.Commit(ctx, changes[i])[0]
		if now {
			m.dead, all[i] = true, errDead
		}
	}
	return all
}

func (m *mortal) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	if m.dead {
		return nil, errDead
	}
	return m.Store.Rows(ctx, t, keys...)
}

func (m *mortal) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if m.dead {
		return nil, errDead
	}
	return m.Store.Find(ctx, q)
}

func (m *mortal) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	if m.dead {
		return nil, errDead
	}
	return m.Store.Claim(ctx, c)
}

type receiver struct{}

func (receiver) Notify(_ context.Context, d []webhook.Delivery) []webhook.Result {
	out := make([]webhook.Result, len(d))
	for i := range out {
		out[i] = webhook.Result{Status: 200}
	}
	return out
}

// world is a host with one simulated chain.
type world struct {
	t      *testing.T
	n      chain.Network
	clock  *cryptopay.ManualClock
	store  *mortal
	seed   *keys.Seed
	chain  *sim.Chain
	app    *cryptopay.App
	random *rand.ChaCha8
	rates  *rates.Fixed
	tenant string
	hot    chain.Address
	shy    bool // the signer takes no address for ours

	unpriced bool          // no source has a price
	priceAge time.Duration // of every price
	rateAge  time.Duration // Config.RateAge
	policy   policy.Policy // of payouts

	treasury treasury.Config // of each process
	outgoing outgoing.Config // of each process
	lacks    string          // a currency that the next process does not list
}

func newWorld(t *testing.T, n chain.Network) *world {
	t.Helper()
	return newWorldAs(t, n, nil)
}

// newWorldAs is a world that is refined before its first process starts.
func newWorldAs(t *testing.T, n chain.Network, refine func(*world)) *world {
	t.Helper()
	w := &world{
		t: t, n: n, clock: cryptopay.NewManualClock(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)),
		store: &mortal{Store: memory.New()}, random: rand.NewChaCha8([32]byte{1}),
	}
	var err error
	w.seed, err = keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	w.chain = sim.MustNew(sim.Options{Network: n, Registry: chain.MainnetRegistry(), Seed: 1, Now: w.clock.Now})
	w.rates = rates.NewFixed(w.clock.Now, "USD", map[string]string{"ETH": "2000", "BTC": "60000", "USDT": "1", "USDC": "1"})
	if refine != nil {
		refine(w)
	}
	w.restart()
	name := "shop"
	tenant, err := w.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	w.tenant = tenant.ID
	w.hot, err = w.app.Hot(t.Context(), n, w.tenant)
	require.NoError(t, err)
	return w
}

// restart is a new process on the same store.
func (w *world) restart() {
	w.t.Helper()
	w.store = &mortal{Store: w.store.Store}
	registry, client := w.registry(), w.chain.Client()
	accounts, err := w.seed.Accounts(registry.Networks())
	require.NoError(w.t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{w.n: client.AddressOf})
	require.NoError(w.t, err)
	var app *cryptopay.App
	signer, err := keys.NewSigner(keys.SignerConfig{
		Seed: w.seed, Chains: map[chain.Network]keys.Chain{w.n: client}, Registry: keys.StoreRegistry{Store: w.store},
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			if w.shy {
				return "", false, nil
			}
			return app.KeyOf(ctx, n, a)
		},
	})
	require.NoError(w.t, err)
	app, err = cryptopay.New(cryptopay.Config{
		Store: w.store, Chains: []chain.Client{client}, Registry: registry, Addresses: source, Signer: signer,
		Rates: prices{w}, RateAge: w.rateAge, Treasury: w.treasury, Outgoing: w.outgoing, Policy: w.policy,
		Key: bytes.Repeat([]byte{7}, 32), Clock: w.clock, Random: w.random, Notifier: receiver{},
		Log: slog.New(slog.DiscardHandler),
	})
	require.NoError(w.t, err)
	require.NoError(w.t, app.Open(w.t.Context(), keys.Tables()...))
	w.app = app
}

func (w *world) registry() *chain.Registry {
	all := chain.MainnetRegistry()
	if w.lacks == "" {
		return all
	}
	var listed []chain.Currency
	for _, code := range all.Codes() {
		if c := w.currency(code); code != w.lacks {
			listed = append(listed, *c)
		}
	}
	out, err := chain.NewRegistry(all.Networks(), listed)
	require.NoError(w.t, err)
	return out
}

// prices is the processes' source of prices.
type prices struct{ w *world }

func (p prices) Rate(ctx context.Context, token, fiat string) (rates.Rate, error) {
	if p.w.unpriced {
		return rates.Rate{}, rates.ErrUnavailable
	}
	r, err := p.w.rates.Rate(ctx, token, fiat)
	r.At = r.At.Add(-p.w.priceAge)
	return r, err
}

// step works; a process that dies is followed by a new one.
func (w *world) step() {
	w.t.Helper()
	err := w.app.Step(w.t.Context())
	if w.store.dead {
		w.restart()
		return
	}
	require.NoError(w.t, err)
}

func (w *world) mine(n int) {
	w.t.Helper()
	for range n {
		w.clock.Advance(15 * time.Second)
		w.chain.Mine(1)
		w.step()
	}
}

// pass is mine where only the end is looked at: mostly time goes by, and after the first eight blocks
// the library acts at every fourth and at the last.
func (w *world) pass(n int) {
	w.t.Helper()
	for i := range n {
		w.clock.Advance(15 * time.Second)
		w.chain.Mine(1)
		if seldom(i) || i == n-1 {
			w.step()
		}
	}
}

// seldom is true of the first eight, and then of every fourth.
func seldom(i int) bool { return i < 8 || i%4 == 3 }

// fund tops the hot address up, for good.
func (w *world) fund(amount string) {
	w.t.Helper()
	_, err := w.chain.Fund(w.hot, string(w.n), dec(amount))
	require.NoError(w.t, err)
	w.pass(14)
}

func (w *world) pay(currency, usd string) payment.Payment {
	w.t.Helper()
	p, err := w.app.Payments.Create(w.t.Context(), w.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: usd, Currency: currency}})
	require.NoError(w.t, err)
	c := w.currency(currency)
	w.send(p, currency, c.Decimal(p.Due))
	return p
}

// crumbs has customers leave 1 USDT each at so many addresses: too little to be forwarded.
// What came of a payment in time is credited when its window has ended.
func (w *world) crumbs(n int) {
	w.t.Helper()
	for range n {
		w.send(w.open("USDTERC20", "5"), "USDTERC20", dec("1"))
	}
	w.mine(60)
	w.hours(2)
	w.mine(1)
}

func (w *world) send(p payment.Payment, currency string, amount decimal.Decimal) {
	w.t.Helper()
	_, err := w.chain.Pay(chain.Address(p.Address), currency, amount)
	require.NoError(w.t, err)
}

func (w *world) currency(code string) *chain.Currency {
	c, err := chain.MainnetRegistry().Currency(code)
	require.NoError(w.t, err)
	return c
}

func (w *world) payment(id string) payment.Payment {
	w.t.Helper()
	p, err := w.app.Payments.Get(w.t.Context(), w.tenant, id)
	require.NoError(w.t, err)
	return p
}

func (w *world) sweeps() (out []treasury.Sweep) {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: treasury.Sweeps.Table, Partition: storage.Network(string(w.n)), Limit: 10_000})
	require.NoError(w.t, err)
	for _, r := range rows {
		out = append(out, treasury.Sweeps.Value(r))
	}
	return out
}

// posted is an account's balance, in whole coins.
func (w *world) posted(a ledger.Account, currency string) decimal.Decimal {
	w.t.Helper()
	balances, err := w.store.Balances(w.t.Context(), storage.Tenant(w.tenant), a)
	require.NoError(w.t, err)
	for _, b := range balances {
		if string(b.Asset) == currency {
			return w.currency(currency).Decimal(b.Posted)
		}
	}
	return decimal.Zero
}

// conserved: what the books say is on chain is what our addresses hold. What a transaction
// cost is booked in whole units, rounded up: each may leave less than a unit on chain.
func (w *world) conserved(currencies ...string) {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: incoming.Addresses.Table, Partition: storage.Network(string(w.n)), Limit: 100_000})
	require.NoError(w.t, err)
	for _, c := range currencies {
		held := decimal.Zero
		for _, r := range rows {
			held = held.Add(w.chain.Balance(chain.Address(r.ID), c))
		}
		booked := w.posted(ledger.Chain(string(w.n)), c).Neg()
		most := decimal.New(int64(len(w.attempts())), -int32(w.currency(c).Scale))
		over := held.Sub(booked)
		require.True(w.t, over.IsZero() || over.IsPositive() && w.currency(c).Native() && over.LessThan(most), "%s: %s on chain, %s in the books", c, held, booked)
	}
	reports, err := w.app.Verify(w.t.Context())
	require.NoError(w.t, err)
	for _, r := range reports {
		require.True(w.t, r.Sound(), "%+v", r)
	}
	require.NoError(w.t, w.chain.Audit())
}

// released: nothing is in flight, so nothing is set aside.
func (w *world) released() {
	w.t.Helper()
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: treasury.GasFloats.Table, Partition: storage.Tenant(w.tenant)})
	require.NoError(w.t, err)
	for _, r := range rows {
		g := treasury.GasFloats.Value(r)
		require.Zero(w.t, g.Reserved, g.Asset)
		require.Zero(w.t, g.Count, g.Asset)
	}
	open, err := w.store.Count(w.t.Context(), storage.Query{
		Table: treasury.Reservations.Table, Partition: storage.Tenant(w.tenant),
		Where: []storage.Cond{{Column: "open", Op: storage.Eq, Value: true}},
	})
	require.NoError(w.t, err)
	require.Zero(w.t, open)
}

// landed counts the transfers of a currency that reached an address.
func (w *world) landed(to chain.Address, currency string) (n int) {
	for _, t := range w.chain.Transfers(to) {
		if t.Currency == currency {
			n++
		}
	}
	return n
}

// stride is from which commit to the next a process dies: at each, or at some with -short.
func stride() int {
	if testing.Short() {
		return 7
	}
	return 1
}

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }
