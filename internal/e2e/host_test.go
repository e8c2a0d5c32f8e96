package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"sync"
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
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

const (
	mnemonic   = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
	blockTime  = 15 * time.Second
	stuckAfter = 3 * time.Minute
)

// setup is what a host is made of that outlives its App.
type setup struct {
	store    storage.Store
	clock    *cryptopay.ManualClock
	client   chain.Client
	registry *chain.Registry
	notifier webhook.Notifier
	float    string // the operator's own ether for fees
	// signer stands before the real one. Defaults to nothing.
	signer func(chain.Signer) chain.Signer
	log    io.Writer // gets what the App logs, as the test's output does; nil = none does
}

// compose makes an App as a program would at its start.
func compose(t testing.TB, s setup) *cryptopay.App {
	t.Helper()
	seed, err := keys.FromMnemonic(mnemonic, "")
	require.NoError(t, err)
	accounts, err := seed.Accounts(s.registry.Networks())
	require.NoError(t, err)
	source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{s.client.Network(): s.client.AddressOf})
	require.NoError(t, err)
	var app *cryptopay.App
	var signer chain.Signer
	signer, err = keys.NewSigner(keys.SignerConfig{
		Seed: seed, Chains: map[chain.Network]keys.Chain{s.client.Network(): s.client}, Registry: keys.StoreRegistry{Store: s.store},
		Mandates: cryptopay.MandateKeys(bytes.Repeat([]byte{7}, 32)),
		KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
			return app.KeyOf(ctx, n, a)
		},
	})
	require.NoError(t, err)
	if s.signer != nil {
		signer = s.signer(signer)
	}
	log := t.Output()
	if s.log != nil {
		log = io.MultiWriter(log, s.log)
	}
	app, err = cryptopay.New(cryptopay.Config{
		Store: s.store, Chains: []chain.Client{s.client}, HeadAge: -1, GoneAfter: -1, Registry: s.registry, Addresses: source, Signer: signer,
		Rates: rates.NewFixed(s.clock.Now, "USD", map[string]string{"ETH": "2000", "USDT": "1", "USDC": "1", "DAI": "1", "TRX": "0.25"}),
		Key:   bytes.Repeat([]byte{7}, 32), Clock: s.clock,
		Notifier: s.notifier, Callbacks: webhook.Guard{AllowHTTP: true}, Outgoing: outgoing.Config{StuckAfter: stuckAfter},
		Log: slog.New(slog.NewTextHandler(log, nil)),
	})
	require.NoError(t, err)
	require.NoError(t, app.Open(t.Context(), keys.Tables()...))
	return app
}

// host is a program that embeds the library on a real node.
type host struct {
	setup
	t      testing.TB
	node   *node
	inbox  *inbox
	app    *cryptopay.App
	tenant string
	hot    string
}

// newHost opens a shop whose hot address has ether for fees.
func newHost(t testing.TB, n *node, change ...func(*setup)) *host {
	t.Helper()
	h := &host{t: t, node: n, inbox: &inbox{}}
	h.setup = setup{
		store: memory.New(), float: "2", client: n.client(), registry: n.registry, notifier: h.inbox,
		clock: cryptopay.NewManualClock(time.Unix(int64(n.block(n.height()).Timestamp), 0)),
	}
	for _, f := range change {
		f(&h.setup)
	}
	h.app = compose(t, h.setup)
	name := "shop"
	tenant, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	h.tenant = tenant.ID
	h.step()
	hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
	require.NoError(t, err)
	h.hot = string(hot)
	n.pay(h.hot, "ETH", dec(h.float))
	h.mine(confirmations)
	return h
}

// restart makes a new App over the same store: all that the process kept in
// memory is gone.
func (h *host) restart(change ...func(*setup)) {
	h.t.Helper()
	for _, f := range change {
		f(&h.setup)
	}
	h.app = compose(h.t, h.setup)
}

func (h *host) step() {
	h.t.Helper()
	require.NoError(h.t, h.app.Step(h.t.Context()))
}

// mine grows the chain one block at a time, with time for the library to act.
func (h *host) mine(blocks int) {
	h.t.Helper()
	for range blocks {
		h.node.commit()
		h.clock.Advance(blockTime)
		h.step()
	}
}

// until mines until done says so.
func (h *host) until(what string, done func() bool) {
	h.t.Helper()
	for range 60 {
		if done() {
			return
		}
		h.mine(1)
	}
	h.t.Fatalf("60 blocks later: not %s", what)
}

// order is a new payment.
func (h *host) order(usd, currency string) *payment.Payment {
	h.t.Helper()
	p, err := h.app.Payments.Create(h.t.Context(), h.tenant, payment.CreateInput{
		Pricing: payment.Pricing{Amount: usd, Currency: currency}, CallbackURL: "https://shop.example/hook",
	})
	require.NoError(h.t, err)
	require.Equal(h.t, payment.Waiting, p.Status)
	return &p
}

func (h *host) due(p *payment.Payment) decimal.Decimal {
	h.t.Helper()
	return h.node.currency(p.Currency).Decimal(p.Due)
}

func (h *host) payment(id string) *payment.Payment {
	h.t.Helper()
	p, err := h.app.Payments.Get(h.t.Context(), h.tenant, id)
	require.NoError(h.t, err)
	return &p
}

func (h *host) completed(p *payment.Payment) {
	h.t.Helper()
	h.until("completed", func() bool { return h.payment(p.ID).Status == payment.Completed })
}

// earn lets a customer pay and the sweep arrive.
func (h *host) earn(usd, currency string) *payment.Payment {
	h.t.Helper()
	p := h.order(usd, currency)
	h.node.pay(p.Address, currency, h.due(p))
	h.completed(p)
	h.mine(finalDepth)
	return h.payment(p.ID)
}

// withdraw asks for a payout to somebody who has nothing yet.
func (h *host) withdraw(usd, currency, to string) withdrawal.Withdrawal {
	h.t.Helper()
	amount := dec(usd)
	w, err := h.app.Withdrawals.Create(h.t.Context(), h.tenant, withdrawal.CreateInput{
		Terms:       withdrawal.Terms{PriceAmount: &amount, Currency: currency, Address: to},
		CallbackURL: "https://shop.example/hook",
	})
	require.NoError(h.t, err)
	return w
}

func (h *host) withdrawal(id string) withdrawal.Withdrawal {
	h.t.Helper()
	w, err := h.app.Withdrawals.Get(h.t.Context(), h.tenant, id)
	require.NoError(h.t, err)
	return w
}

// paidOnce mines on until the withdrawal is done and its transaction final, and
// wants exactly its amount to have reached a recipient who had nothing.
func (h *host) paidOnce(w withdrawal.Withdrawal, to string) withdrawal.Withdrawal {
	h.t.Helper()
	h.until("withdrawn", func() bool { return h.withdrawal(w.ID).Status == withdrawal.Completed })
	h.mine(finalDepth + 2)
	w = h.withdrawal(w.ID)
	require.Equal(h.t, withdrawal.Completed, w.Status)
	require.Equal(h.t, h.node.currency(w.Currency).Decimal(w.Amount).String(), h.node.holds(to, w.Currency).String(), "the recipient is paid once")
	return w
}

// attempts are the signed transactions of a network's withdrawals, oldest first.
func (h *host) attempts() []storage.Row {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{
		Table: outgoing.Attempts.Table, Partition: storage.Network("ETH"), Limit: 100,
		Where: []storage.Cond{{Column: "purpose", Op: storage.Eq, Value: chain.ForWithdrawal}},
		Order: []storage.Order{{Column: "intent"}, {Column: "number"}},
	})
	require.NoError(h.t, err)
	return rows
}

// signed are the payloads that the signer ever signed for a withdrawal.
func (h *host) signed(w withdrawal.Withdrawal) []storage.Row {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{
		Table: keys.SignedAttempts.Table, Partition: storage.Network("ETH"), Limit: 100,
		Where: []storage.Cond{{Column: "intent", Op: storage.Eq, Value: w.ID}},
	})
	require.NoError(h.t, err)
	return rows
}

// sightings are what is stored of a transaction's transfers to us.
func (h *host) sightings(tx string) []storage.Row {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network("ETH"), Limit: 100,
		Where: []storage.Cond{{Column: "tx", Op: storage.Eq, Value: tx}},
	})
	require.NoError(h.t, err)
	return rows
}

// available is what the shop can spend.
func (h *host) available(currency string) string {
	h.t.Helper()
	view, err := h.app.Wallets.Overview(h.t.Context(), h.tenant)
	require.NoError(h.t, err)
	for _, b := range view.Account {
		if b.Currency == currency {
			return h.node.currency(currency).Decimal(b.Available).String()
		}
	}
	return "0"
}

// sound ends every test: the books prove themselves, no hold is left over, and
// merchants heard of what happened.
func (h *host) sound(events ...string) {
	h.t.Helper()
	reports, err := h.app.Verify(h.t.Context())
	require.NoError(h.t, err)
	require.Len(h.t, reports, 1)
	require.Empty(h.t, reports[0].Ledger.Findings)
	require.Empty(h.t, reports[0].Holds)
	require.Empty(h.t, reports[0].Unexplained)
	require.Empty(h.t, reports[0].Gas)
	for _, e := range events {
		require.Contains(h.t, h.inbox.events(), e)
	}
}

// inbox is the merchant's receiver.
type inbox struct {
	mu  sync.Mutex
	got []webhook.Delivery
}

func (i *inbox) Notify(_ context.Context, deliveries []webhook.Delivery) []webhook.Result {
	i.mu.Lock()
	defer i.mu.Unlock()
	out := make([]webhook.Result, len(deliveries))
	for k, d := range deliveries {
		i.got = append(i.got, d)
		out[k] = webhook.Result{Status: 200}
	}
	return out
}

// events are "kind" and, where there is a status, "kind:status".
func (i *inbox) events() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	var out []string
	for _, d := range i.got {
		var e struct {
			Event string `json:"event"`
			Data  struct {
				Status string `json:"status"`
			} `json:"data"`
		}
		if json.Unmarshal(d.Body, &e) == nil {
			out = append(out, e.Event, e.Event+":"+e.Data.Status)
		}
	}
	return out
}

func (i *inbox) count(event string) (n int) {
	for _, e := range i.events() {
		if e == event {
			n++
		}
	}
	return n
}

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }
