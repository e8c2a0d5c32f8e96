package payment

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/webhook"
)

const tenant = "shop"

var ctx = context.Background()

// shop is a merchant with a payment service over a store in memory, and the
// outside world (chain, rates, tenants, wallets, addresses) as plain data.
type shop struct {
	t     testing.TB
	s     *Service
	store *recorder

	now     time.Time
	tipRead time.Time // zero: follows now
	price   map[string]string
	at      time.Time // of prices; zero = now
	fees    Fees
	closed  map[string]bool
	alerts  []Alert
	n       int
	cfg     Config
	log     strings.Builder
}

// recorder remembers what was posted.
type recorder struct {
	failing.Store
	mu    sync.Mutex
	posts []ledger.Tx
	fail  func(storage.Change) error
	done  int // Changes
}

func (r *recorder) Commit(ctx context.Context, changes ...storage.Change) []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range changes {
		if r.fail != nil {
			if err := r.fail(c); err != nil {
				return []error{err}
			}
		}
	}
	errs := r.Store.Commit(ctx, changes...)
	for i, err := range errs {
		if err == nil {
			r.posts = append(r.posts, changes[i].Post...)
			r.done++
		}
	}
	return errs
}

func newShop(t testing.TB, set ...func(*shop)) *shop {
	h := &shop{
		t: t, store: &recorder{Store: failing.Store{Store: memory.New()}}, now: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC),
		price: map[string]string{"USDT": "1", "USDC": "1", "ETH": "2000", "BTC": "60000"}, closed: map[string]bool{},
		fees: Fees{Percent: decimal.New(1, 0)},
	}
	require.NoError(t, h.store.Open(ctx, slices.Concat(Tables(), storage.Tables(), incoming.Tables(), []*storage.Table{webhook.Events.Table})...))
	registry, err := chain.NewRegistry(chain.Networks(), chain.Mainnet())
	require.NoError(t, err)
	h.cfg = Config{
		Store: h.store, Registry: registry, Rates: h, Addresses: h, Tenants: h, Wallets: h,
		Head: func(context.Context, chain.Network) (incoming.Cursor, error) {
			if h.tipRead.IsZero() {
				return incoming.Cursor{TipRead: h.now}, nil
			}
			return incoming.Cursor{TipRead: h.tipRead}, nil
		},
		Now:    func() time.Time { return h.now },
		NewID:  func() string { h.n++; return fmt.Sprintf("id-%06d", h.n) },
		Log:    slog.New(slog.NewTextHandler(&h.log, nil)),
		Notify: func(_ context.Context, a Alert) { h.alerts = append(h.alerts, a) },
	}
	for _, f := range set {
		f(h)
	}
	h.s, err = New(h.cfg)
	require.NoError(t, err)
	return h
}

func (h *shop) Rate(_ context.Context, token, fiat string) (rates.Rate, error) {
	p, ok := h.price[token]
	if !ok {
		return rates.Rate{}, rates.ErrUnavailable
	}
	at := h.at
	if at.IsZero() {
		at = h.now
	}
	return rates.Rate{Token: token, Fiat: fiat, Price: decimal.RequireFromString(p), At: at}, nil
}

func (h *shop) Take(_ context.Context, n chain.Network, _ string) (chain.Derived, error) {
	h.n++
	return chain.Derived{Address: chain.Address(fmt.Sprintf("%s-address-%d", n, h.n))}, nil
}

func (h *shop) PaymentFees(_ context.Context, id string) (Fees, bool, error) {
	return h.fees, id == tenant, nil
}

func (h *shop) OpenWallet(_ context.Context, _, ref string) (string, storage.Guard, bool, error) {
	if ref == "" {
		ref = "w"
	}
	return ref, Payments.Guard("closed/"+ref, 0), !h.closed[ref] && len(ref) < 10, nil
}

// create makes a payment over an amount of USD in a currency.
func (h *shop) create(amount, currency string, set ...func(*CreateInput)) Payment {
	in := CreateInput{Pricing: Pricing{Amount: amount, Currency: currency}, OrderID: "order-1"}
	for _, f := range set {
		f(&in)
	}
	p, err := h.s.Create(ctx, tenant, in)
	require.NoError(h.t, err)
	return p
}

// transfer is one customer's transfer as the chain has it.
type transfer struct {
	h    *shop
	s    incoming.Sighting
	seq  int64
	last fact
}

func (h *shop) transfer(p Payment, amount string) *transfer {
	return h.transferOf(p, p.Currency, amount)
}

func (h *shop) transferOf(p Payment, currency, amount string) *transfer {
	h.n++
	c, err := h.cfg.Registry.Currency(currency)
	require.NoError(h.t, err)
	exact := decimal.RequireFromString(amount)
	units, err := c.Units(exact, ledger.Down)
	require.NoError(h.t, err)
	return &transfer{h: h, s: incoming.Sighting{
		Network: p.Network, Tx: fmt.Sprintf("tx%d", h.n), Generation: 1, Address: p.Address, Tenant: tenant,
		Purpose: incoming.UsePayment, From: "customer", Currency: currency, Exact: exact, Amount: units,
	}}
}

func (x *transfer) tell(state incoming.State, final bool) error {
	if x.s.FirstSeen.IsZero() {
		x.s.FirstSeen = x.h.now
	}
	x.seq++
	x.s.State = state
	head := x.s.Height
	if final {
		head += 19
	}
	x.last = fact{sighting: x.s, version: x.seq, head: head, final: final}
	return x.h.s.handle(ctx, x.last)
}

func (x *transfer) must(state incoming.State, final bool) *transfer {
	require.NoError(x.h.t, x.tell(state, final))
	// The same fact again is nothing new.
	before, done := x.h.dump(), x.h.store.done
	require.NoError(x.h.t, x.h.s.handle(ctx, x.last))
	require.Equal(x.h.t, done, x.h.store.done, "a fact that is known was written again")
	if before != x.h.dump() { // not Equal: its output would be endless
		require.Fail(x.h.t, "handling a fact twice changed something")
	}
	return x
}

func (x *transfer) seen() *transfer { return x.must(incoming.Seen, false) }

func (x *transfer) included() *transfer {
	if x.s.Height == 0 {
		x.s.Height, x.s.BlockTime = 100, x.h.now
	}
	return x.must(incoming.Included, false)
}

func (x *transfer) final() *transfer {
	x.included()
	return x.must(incoming.Final, true)
}

func (x *transfer) gone() *transfer {
	x.s.Height, x.s.BlockTime = 0, time.Time{}
	return x.must(incoming.Gone, false)
}

// again is mined again after it was final and gone.
func (x *transfer) again() *transfer {
	x.s.Generation++
	return x.included()
}

func (x *transfer) forward(f incoming.Forward, tx string) *transfer {
	x.s.Forward, x.s.ForwardTx, x.s.ForwardFee = f, tx, "0.00010000"
	return x.must(incoming.Final, true)
}

func (x *transfer) deposit() Deposit {
	d, _, ok, err := Deposits.One(ctx, x.h.store, storage.Tenant(tenant), DepositID(&x.s))
	require.NoError(x.h.t, err)
	require.True(x.h.t, ok, "the deposit was not recorded")
	return d
}

func (h *shop) get(p Payment) *Payment {
	out, err := h.s.Get(ctx, tenant, p.ID)
	require.NoError(h.t, err)
	return &out
}

// after lets time pass and decides what is due.
func (h *shop) after(d time.Duration) {
	h.now = h.now.Add(d)
	h.step()
}

func (h *shop) step() {
	for i := 0; ; i++ {
		n, err := h.s.Step(ctx)
		require.NoError(h.t, err)
		require.NotContains(h.t, h.log.String(), "payment_step_failed")
		if n == 0 {
			return
		}
		require.Positive(h.t, n)
		require.Less(h.t, i, 50, "Step does not come to rest")
	}
}

// dump is everything stored, without what only counts how often it was written.
func (h *shop) dump() string {
	var b strings.Builder
	for _, t := range []*storage.Table{Payments.Table, Deposits.Table, webhook.Events.Table, storage.Activities.Table} {
		rows, err := h.store.Find(ctx, storage.Query{Table: t, Limit: 10000})
		require.NoError(h.t, err)
		for _, r := range rows {
			fmt.Fprintf(&b, "%s %s %+v\n", t.Name, r.ID, r.Value)
		}
	}
	balances, err := h.store.Balances(ctx, storage.Tenant(tenant))
	require.NoError(h.t, err)
	fmt.Fprintf(&b, "%+v\n", balances)
	return b.String()
}

// event is one outbox row in short: "waiting>confirming full", "deposit_received".
func (h *shop) events(p Payment) []string {
	rows, err := h.store.Find(ctx, storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(tenant), Limit: 1000,
		Where: []storage.Cond{{Column: "object", Op: storage.Eq, Value: p.ID}}, Order: []storage.Order{{Column: "seq"}},
	})
	require.NoError(h.t, err)
	out := make([]string, len(rows))
	for i, r := range rows {
		e := webhook.Events.Value(r)
		require.Equal(h.t, int64(i+1), e.Seq, "events are numbered without a gap")
		out[i] = e.Type
		if e.Type == webhook.PaymentStatusUpdate {
			var body struct{ Data StatusUpdate }
			require.NoError(h.t, json.Unmarshal([]byte(e.Body), &body))
			out[i] = fmt.Sprintf("%s>%s", body.Data.PreviousStatus, body.Data.Status)
		}
	}
	require.Equal(h.t, int64(len(rows)), h.get(p).Events)
	require.Equal(h.t, slices.DeleteFunc(slices.Clone(out), func(e string) bool { return !strings.Contains(e, ">") }), h.heard(p), "E01: a host hears of each change of status too")
	return out
}

// heard are the changes of status that a host was told of.
func (h *shop) heard(p Payment) []string {
	rows, err := h.store.Find(ctx, storage.Query{Table: storage.Events.Table, Partition: storage.Tenant(tenant), Limit: 1000})
	require.NoError(h.t, err)
	out := []string{}
	for _, r := range rows {
		e := storage.Events.Value(r)
		if e.Kind != (Changed{}).EventKind() || e.Object != p.ID {
			continue
		}
		var b Changed
		require.NoError(h.t, json.Unmarshal(e.Data, &b))
		if b.From != "" {
			out = append(out, fmt.Sprintf("%s>%s", b.From, b.To))
		}
	}
	return out
}

func (h *shop) lastUpdate(p Payment) StatusUpdate {
	rows, err := h.store.Find(ctx, storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(tenant), Limit: 1,
		Where: []storage.Cond{{Column: "object", Op: storage.Eq, Value: p.ID}, {Column: "type", Op: storage.Eq, Value: webhook.PaymentStatusUpdate}},
		Order: []storage.Order{{Column: "seq", Desc: true}},
	})
	require.NoError(h.t, err)
	require.NotEmpty(h.t, rows)
	var body struct{ Data StatusUpdate }
	require.NoError(h.t, json.Unmarshal([]byte(webhook.Events.Value(rows[0]).Body), &body))
	return body.Data
}

// moves of money since the last call, in the notation of the ledger's scenarios.
func (h *shop) posted() string {
	short := func(a ledger.Account) string {
		switch {
		case strings.HasPrefix(string(a), "wallet/"):
			return "w"
		case strings.HasPrefix(string(a), "chain/"):
			return "c"
		case strings.HasPrefix(string(a), "receivable/"):
			return "R"
		}
		return map[ledger.Account]string{ledger.FeesPlatform: "P", ledger.FeesNetwork: "N", ledger.Suspense: "S", ledger.Adjustment: "A"}[a]
	}
	var txs []string
	for _, tx := range h.store.posts {
		require.NoError(h.t, tx.Check())
		var legs []string
		for _, l := range tx.Legs {
			c, err := h.cfg.Registry.Currency(string(l.Asset))
			require.NoError(h.t, err)
			text := c.Decimal(l.Delta).String()
			if l.Delta > 0 {
				text = "+" + text
			}
			legs = append(legs, short(l.Account)+" "+text)
		}
		slices.Sort(legs)
		txs = append(txs, strings.Join(legs, ", "))
	}
	h.store.posts = nil
	return strings.Join(txs, "; then ")
}

// available is what the wallet w can spend, in whole coins.
func (h *shop) balance(a ledger.Account, currency string) string {
	c, err := h.cfg.Registry.Currency(currency)
	require.NoError(h.t, err)
	balances, err := h.store.Balances(ctx, storage.Tenant(tenant), a)
	require.NoError(h.t, err)
	for _, b := range balances {
		if b.Asset == c.Asset() {
			return c.Decimal(b.Available()).String()
		}
	}
	return "0"
}

// spend moves funds out of the wallet, as a withdrawal or its hold would.
func (h *shop) spend(currency, amount string, hold bool) {
	c, err := h.cfg.Registry.Currency(currency)
	require.NoError(h.t, err)
	units, err := c.Units(decimal.RequireFromString(amount), ledger.Down)
	require.NoError(h.t, err)
	h.n++
	tx := ledger.Tx{ID: fmt.Sprintf("spend-%d", h.n), Kind: ledger.KindWithdrawal, At: h.now}
	if hold {
		tx.Legs = []ledger.Leg{{Account: ledger.Wallet("w"), Asset: c.Asset(), Hold: units}}
	} else {
		tx.Legs = []ledger.Leg{
			{Account: ledger.Wallet("w"), Asset: c.Asset(), Delta: -units},
			{Account: ledger.Chain(string(c.Network)), Asset: c.Asset(), Delta: units},
		}
	}
	require.NoError(h.t, h.store.Commit(ctx, storage.Change{ID: tx.ID, Partition: storage.Tenant(tenant), Post: []ledger.Tx{tx}})[0])
	h.store.posts = nil
}

func fixedFee(units ledger.Amount) func(context.Context, *chain.Currency) (ledger.Amount, error) {
	return func(context.Context, *chain.Currency) (ledger.Amount, error) { return units, nil }
}
