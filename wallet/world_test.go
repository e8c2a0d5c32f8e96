package wallet_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
)

const (
	tenant = "t1"
	usdt   = "USDTTRC20"
)

// tb is what tests and rapid have in common.
type tb interface {
	require.TestingT
	Helper()
}

// world is a service with one tenant over a real store.
type world struct {
	tb
	*wallet.Service
	store storage.Store
	ctx   context.Context

	mu  sync.Mutex
	now time.Time
	ids int
}

var registry = func() *chain.Registry {
	r, err := chain.NewRegistry([]chain.NetworkInfo{
		{Code: "TRX", Family: chain.AccountFamily, AddressType: "TRX", Gas: "TRX"},
		{Code: "BTC", Family: chain.UTXOFamily, AddressType: "BTC", Gas: "BTC"},
	}, []chain.Currency{
		{Code: "TRX", Network: "TRX", Token: "TRX", Decimals: 6, Scale: 6, Confirmations: 1},
		{Code: usdt, Network: "TRX", Token: "USDT", Contract: "TR7N", Decimals: 6, Scale: 6, Confirmations: 1},
		{Code: "BTC", Network: "BTC", Token: "BTC", Decimals: 8, Scale: 8, Confirmations: 1},
	})
	if err != nil {
		panic(err)
	}
	return r
}()

func newWorld(t tb, change ...func(*wallet.Config)) *world {
	return newWorldOn(t, memory.New(), change...)
}

func newWorldOn(t tb, store storage.Store, change ...func(*wallet.Config)) *world {
	w := &world{tb: t, store: store, ctx: context.Background(), now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)}
	require.NoError(t, store.Open(w.ctx, slices.Concat(wallet.Tables(), storage.Tables(), []*storage.Table{webhook.Events.Table})...))
	c := wallet.Config{Store: store, Registry: registry, Now: w.clock, NewID: w.newID}
	for _, f := range change {
		f(&c)
	}
	s, err := wallet.New(c)
	require.NoError(t, err)
	w.Service = s
	_, err = s.CreateTenant(w.ctx, wallet.NewTenant{ID: tenant, Settings: wallet.Settings{Name: ptr("Shop")}})
	require.NoError(t, err)
	return w
}

func ptr[T any](v T) *T { return &v }

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

func (w *world) clock() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.now
}

func (w *world) advance(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.now = w.now.Add(d)
}

func (w *world) newID() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ids++
	return fmt.Sprintf("id%06d", w.ids)
}

// post moves money between a wallet and the chain.
func (w *world) post(kind ledger.Kind, id, code, amount string) {
	w.Helper()
	c, err := registry.Currency(code)
	require.NoError(w, err)
	a, err := c.Units(dec(amount), ledger.Down)
	require.NoError(w, err)
	n := w.newID()
	require.NoError(w, storage.CommitOne(w.ctx, w.store, storage.Change{ID: n, Partition: storage.Tenant(tenant), Post: []ledger.Tx{{
		ID: n, Kind: kind, At: w.clock(), Legs: []ledger.Leg{
			{Account: ledger.Chain(string(c.Network)), Asset: c.Asset(), Delta: -a},
			{Account: ledger.Wallet(id), Asset: c.Asset(), Delta: a},
		},
	}}}))
}

func (w *world) sub(external string) wallet.Wallet {
	w.Helper()
	v, err := w.Create(w.ctx, tenant, wallet.CreateInput{Name: "Sub " + external, ExternalID: external})
	require.NoError(w, err)
	return v
}

func (w *world) transfer(d wallet.Direction, ref, amount string) wallet.Transfer {
	w.Helper()
	t, err := w.CreateTransfer(w.ctx, tenant, wallet.TransferInput{Direction: d, WalletID: ref, Currency: usdt, Amount: dec(amount)})
	require.NoError(w, err)
	return t
}

// accepted stores a pending transfer as versions did that left its settling to Step: the
// transfer is due, and its amount is held on the source.
func (w *world) accepted(d wallet.Direction, v wallet.Wallet, amount string) wallet.Transfer {
	w.Helper()
	c, err := registry.Currency(usdt)
	require.NoError(w, err)
	units, err := c.Units(dec(amount), ledger.Down)
	require.NoError(w, err)
	now := w.clock()
	t := wallet.Transfer{
		ID: w.newID(), Wallet: v.ID, ExternalID: v.ExternalID, Direction: d, Currency: usdt, Amount: units,
		Status: wallet.TransferPending, CreatedAt: now, UpdatedAt: now,
	}
	require.NoError(w, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: w.newID(), Partition: storage.Tenant(tenant), Put: []storage.Row{wallet.TransferRows.Row(t.ID, 0, now, t)},
		Post: []ledger.Tx{{ID: "hold/" + t.ID, Kind: ledger.KindTransfer, Ref: t.ID, At: now, Legs: []ledger.Leg{
			{Account: ledger.Wallet(t.Source()), Asset: usdt, Hold: units},
		}}},
	}))
	return t
}

func (w *world) step() {
	w.Helper()
	for range 100 {
		n, err := w.Step(w.ctx)
		require.NoError(w, err)
		if n == 0 {
			return
		}
	}
	require.Fail(w, "work never ends")
}

// has writes a wallet's balance as "amount/pending".
func (w *world) has(id string) string {
	w.Helper()
	all, err := w.Balances(w.ctx, tenant, id)
	require.NoError(w, err)
	for _, b := range all[id] {
		if b.Currency == usdt {
			require.Equal(w, b.Amount, b.Pending+b.Available)
			return short(b.Amount) + "/" + short(b.Pending)
		}
	}
	return "none"
}

func short(a ledger.Amount) string {
	return strings.TrimSuffix(strings.TrimRight(a.Format(6, 6), "0"), ".")
}

func (w *world) events(id string) []webhook.Event {
	w.Helper()
	rows, err := w.store.Find(w.ctx, storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(tenant),
		Where: []storage.Cond{{Column: "object", Op: storage.Eq, Value: id}}, Order: []storage.Order{{Column: "seq"}},
	})
	require.NoError(w, err)
	var out []webhook.Event
	for _, r := range rows {
		out = append(out, webhook.Events.Value(r))
	}
	return out
}
