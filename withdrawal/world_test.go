package withdrawal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

const tenant = "t1"

// tb is what tests and rapid have in common.
type tb interface {
	require.TestingT
	Helper()
}

// world is a service over a real store, with everything outside it scripted.
type world struct {
	tb
	*withdrawal.Service
	store   storage.Store
	ctx     context.Context
	payouts *payouts

	mu      sync.Mutex
	now     time.Time
	ids     int
	notices []withdrawal.Notice

	fee       map[string]string // network fee by currency, whole coins
	feeErr    error
	setErr    error // of the tenant's fee
	percent   string
	flat      string
	price     string
	priceAge  time.Duration
	own       map[chain.Address]string
	halted    string
	haltsDown error // halts cannot be read
	ceiling   withdrawal.Ceiling
	verdict   withdrawal.Verdict
	verdErr   error
	required  int64
}

type account struct {
	Open bool `db:"open"`
}

var accounts = storage.NewTable[account]("test_accounts")

func coin(code, network, token, contract string, decimals, scale uint8, minimum string) chain.Currency {
	return chain.Currency{
		Code: code, Name: code, Network: chain.Network(network), Token: token, Contract: contract, Decimals: decimals,
		Scale: scale, MinWithdrawal: decimal.RequireFromString(minimum), Confirmations: 1,
	}
}

var registry = func() *chain.Registry {
	r, err := chain.NewRegistry([]chain.NetworkInfo{
		{Code: "TRX", Aliases: []string{"TRON"}, Family: chain.AccountFamily, AddressType: "TRX", Gas: "TRX"},
		{Code: "ETH", Family: chain.AccountFamily, AddressType: "EVM", Gas: "ETH"},
		{Code: "BTC", Family: chain.UTXOFamily, AddressType: "BTC", Gas: "BTC"},
		{Code: "XRP", Family: chain.AccountFamily, AddressType: "XRP", Gas: "XRP", NeedsMemo: true},
		{Code: "XLM", Family: chain.AccountFamily, AddressType: "XLM", Gas: "XLM", NeedsMemo: true},
	}, []chain.Currency{
		coin("TRX", "TRX", "TRX", "", 6, 6, "1"),
		coin("USDTTRC20", "TRX", "USDT", "TR7N", 6, 6, "1"),
		coin("ETH", "ETH", "ETH", "", 18, 8, "0.001"),
		coin("BTC", "BTC", "BTC", "", 8, 8, "0.0001"),
		coin("XRP", "XRP", "XRP", "", 6, 6, "1"),
		coin("XLM", "XLM", "XLM", "", 7, 7, "1"),
	})
	if err != nil {
		panic(err)
	}
	return r
}()

func newWorld(t tb, change ...func(*withdrawal.Config)) *world {
	return newWorldOn(t, memory.New(), change...)
}

func newWorldOn(t tb, store storage.Store, change ...func(*withdrawal.Config)) *world {
	w := &world{
		tb: t, store: store, ctx: context.Background(), now: time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC),
		fee: map[string]string{"USDTTRC20": "2"}, percent: "0.5", flat: "0", price: "60000",
		own: map[chain.Address]string{}, verdict: withdrawal.Allow, required: 1,
		payouts: &payouts{state: map[string]string{}, intents: map[string]chain.Intent{}},
	}
	tables := slices.Concat(withdrawal.Tables(), storage.Tables(), []*storage.Table{webhook.Events.Table, accounts.Table})
	require.NoError(t, store.Open(w.ctx, tables...))
	for _, id := range []string{"master", "sub"} {
		w.commit(storage.Change{ID: "account/" + id, Put: []storage.Row{accounts.Row(id, 0, time.Time{}, account{Open: true})}})
	}
	guarded, err := rates.NewGuarded(rates.GuardConfig{Rates: w, Now: w.clock})
	require.NoError(t, err)
	c := withdrawal.Config{
		Store: store, Registry: registry, Rates: guarded, Parse: parse, Fees: fees{w}, Tenants: w, Wallets: w, Payouts: w.payouts,
		Now: w.clock, NewID: w.newID,
		MaxCost: func(context.Context, chain.Intent) (ledger.Amount, error) { return 1000, nil },
		Own: func(_ context.Context, _ chain.Network, a chain.Address) (string, bool, error) {
			use, own := w.own[a]
			return use, own, nil
		},
		Policy: func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
			return w.verdict, "because", w.verdErr
		},
		Ceilings: func(_ context.Context, id, currency string) (withdrawal.Ceiling, error) {
			if _, err := registry.Currency(currency); id != tenant || err != nil {
				return withdrawal.Ceiling{}, fmt.Errorf("no ceilings of %q for %q", currency, id)
			}
			return w.ceiling, nil
		},
		Halted: func(context.Context, string, string) (string, error) { return w.halted, w.haltsDown },
		Confirmations: func(*chain.Currency) int64 {
			return w.required
		},
		Notify: func(_ context.Context, n withdrawal.Notice) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.notices = append(w.notices, n)
		},
	}
	for _, f := range change {
		f(&c)
	}
	s, err := withdrawal.New(c)
	require.NoError(t, err)
	w.Service = s
	return w
}

func parse(n chain.Network, s string) (chain.Address, error) {
	if strings.HasPrefix(s, "bad") {
		return "", &chain.AddressError{Network: n, Address: s, Reason: "checksum"}
	}
	return chain.Address(s), nil
}

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

type fees struct{ *world }

func (f fees) Quote(_ context.Context, in chain.Intent) (ledger.Amount, error) {
	if f.feeErr != nil {
		return 0, f.feeErr
	}
	c, err := registry.Currency(in.Currency)
	if err != nil {
		return 0, err
	}
	if f.fee[c.Code] == "" {
		return 0, nil
	}
	return c.Units(decimal.RequireFromString(f.fee[c.Code]), ledger.Up)
}

func (w *world) WithdrawalFee(context.Context, string, string) (percent, flat decimal.Decimal, err error) {
	return decimal.RequireFromString(w.percent), decimal.RequireFromString(w.flat), w.setErr
}

func (w *world) Rate(_ context.Context, token, fiat string) (rates.Rate, error) {
	return rates.Rate{Token: token, Fiat: fiat, Price: decimal.RequireFromString(w.price), At: w.clock().Add(-w.priceAge)}, nil
}

var errNoAccount = fmt.Errorf("no such account")

func (w *world) Resolve(ctx context.Context, tenant, ref string) (string, storage.Guard, error) {
	if ref == "" {
		ref = "master"
	}
	a, row, ok, err := accounts.One(ctx, w.store, storage.Tenant(tenant), ref)
	if err == nil && (!ok || !a.Open) {
		err = errNoAccount
	}
	return ref, accounts.Guard(ref, row.Version), err
}

// payouts is the payout side: an intent is queued, then signed or cancelled.
type payouts struct {
	mu      sync.Mutex
	state   map[string]string
	intents map[string]chain.Intent
	before  func(in chain.Intent) error // of Submit, before the intent is taken
	after   func(in chain.Intent) error // after it was taken
	unknown func()                      // of Cancel, where it has no such intent
	wrong   []string
}

func (p *payouts) Submit(_ context.Context, in chain.Intent) error {
	if p.before != nil {
		if err := p.before(in); err != nil {
			return err
		}
	}
	p.mu.Lock()
	if old, ok := p.intents[in.ID]; ok && old != in {
		p.wrong = append(p.wrong, "another intent under "+in.ID)
	} else if !ok {
		p.intents[in.ID], p.state[in.ID] = in, "queued"
	}
	p.mu.Unlock()
	if p.after != nil {
		return p.after(in)
	}
	return nil
}

func (p *payouts) Cancel(_ context.Context, _ chain.Network, id string) (bool, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch p.state[id] {
	case "":
		if p.unknown != nil {
			p.mu.Unlock()
			p.unknown()
			p.mu.Lock()
		}
		return false, fmt.Errorf("%w: %s", withdrawal.ErrNoIntent, id)
	case "queued", "cancelled":
		p.state[id] = "cancelled"
		return true, nil
	}
	return false, nil
}

// sign takes a queued intent to the network; ok is false where it is ended.
func (p *payouts) sign(id string) (ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state[id] == "queued" {
		p.state[id] = "signed"
	}
	return p.state[id] == "signed"
}

func (w *world) commit(c storage.Change) {
	w.Helper()
	c.Partition = storage.Tenant(tenant)
	require.NoError(w, storage.CommitOne(w.ctx, w.store, c))
}

// fund gives a wallet coins that are on the chain.
func (w *world) fund(wallet, code, amount string) {
	w.Helper()
	c, err := registry.Currency(code)
	require.NoError(w, err)
	a, err := c.Units(decimal.RequireFromString(amount), ledger.Down)
	require.NoError(w, err)
	id := w.newID()
	w.commit(storage.Change{ID: id, Post: []ledger.Tx{{
		ID: "credit/" + id, Kind: ledger.KindDeposit, At: w.clock(), Legs: []ledger.Leg{
			{Account: ledger.Chain(string(c.Network)), Asset: c.Asset(), Delta: -a},
			{Account: ledger.Wallet(wallet), Asset: c.Asset(), Delta: a},
		},
	}}})
}

func dec(s string) *decimal.Decimal {
	d := decimal.RequireFromString(s)
	return &d
}

// usdt is a plain request for some USDT.
func usdt(amount string) withdrawal.CreateInput {
	return withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: dec(amount), Currency: "USDTTRC20", Address: "Tdest"}}
}

// keyed is a request under a key.
func keyed(key string, in withdrawal.CreateInput) withdrawal.CreateInput {
	in.Key = key
	return in
}

func (w *world) create(in withdrawal.CreateInput) withdrawal.Withdrawal {
	w.Helper()
	v, err := w.Create(w.ctx, tenant, in)
	require.NoError(w, err)
	return v
}

func (w *world) get(id string) withdrawal.Withdrawal {
	w.Helper()
	v, err := w.Get(w.ctx, tenant, id)
	require.NoError(w, err)
	return v
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

// tell hands an outcome over; the time is the clock's.
func (w *world) tell(id, state, tx string, confirmations int64) {
	w.Helper()
	require.NoError(w, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
		Intent: id, State: state, Tx: tx, Confirmations: confirmations, At: w.clock(),
	}))
}

// books lists what every account holds: w, c, P and N posted, H held.
type books map[string]ledger.Amount

func (w *world) books(code string) books {
	w.Helper()
	balances, err := w.store.Balances(w.ctx, storage.Tenant(tenant))
	require.NoError(w, err)
	out := books{}
	for _, b := range balances {
		if string(b.Asset) != code {
			continue
		}
		switch id, wallet := b.Account.WalletID(); {
		case wallet && id == "master":
			out["w"], out["H"] = b.Posted, b.Held
		case wallet:
			out[id], out["H "+id] = b.Posted, b.Held
		case b.Account == ledger.FeesPlatform:
			out["P"] = b.Posted
		case b.Account == ledger.FeesNetwork:
			out["N"] = b.Posted
		default:
			out["c"] = b.Posted
		}
	}
	return out
}

// since writes what moved since before, account by account: H is held, w and sub are wallets, c is the chain, P and N are fees.
func (b books) since(before books, code string) string {
	c, _ := registry.Currency(code)
	var out []string
	for _, k := range []string{"H", "w", "H sub", "sub", "c", "P", "N"} {
		if d := b[k] - before[k]; d != 0 {
			sign := "+"
			if d < 0 {
				sign = ""
			}
			out = append(out, k+" "+sign+ledger.PlainString(c.Decimal(d).Truncate(8)))
		}
	}
	for i, s := range out {
		if strings.Contains(s, ".") {
			out[i] = strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
		}
	}
	return strings.Join(out, ", ")
}

// reasonsTold are the reasons that withdrawal_waiting events of a withdrawal say, in order.
func (w *world) reasonsTold(id string) (out []string) {
	w.Helper()
	rows, err := w.store.Find(w.ctx, storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(tenant), Limit: 1000,
		Where: []storage.Cond{{Column: "object", Op: storage.Eq, Value: id + "/waiting"}}, Order: []storage.Order{{Column: "seq"}},
	})
	require.NoError(w, err)
	for _, r := range rows {
		out = append(out, field(webhook.Events.Value(r).Body, "waiting_reason"))
	}
	return out
}

// events lists "previous>status" of an object's events in order of sequence.
func (w *world) events(id string) []string {
	w.Helper()
	rows, err := w.store.Find(w.ctx, storage.Query{
		Table: webhook.Events.Table, Partition: storage.Tenant(tenant), Limit: 1000,
		Where: []storage.Cond{{Column: "object", Op: storage.Eq, Value: id}}, Order: []storage.Order{{Column: "seq"}},
	})
	require.NoError(w, err)
	out := []string{}
	for i, r := range rows {
		e := webhook.Events.Value(r)
		require.EqualValues(w, i+1, e.Seq)
		out = append(out, field(e.Body, "previous_status")+">"+field(e.Body, "status"))
	}
	return out
}

func field(body, name string) string {
	_, rest, _ := strings.Cut(body, `"`+name+`":"`)
	v, _, _ := strings.Cut(rest, `"`)
	return v
}

// sound checks what always holds: holds belong to live withdrawals and nothing
// else, the amounts of each add up, books and history agree.
func (w *world) sound() {
	w.Helper()
	list, _, err := w.List(w.ctx, tenant, withdrawal.Filter{Limit: 100})
	require.NoError(w, err)
	held := map[ledger.Account]ledger.Amount{}
	for _, v := range list {
		require.Equal(w, v.Requested, v.Amount+v.PlatformFee+v.NetworkFee)
		if v.Live() {
			held[ledger.Wallet(v.Wallet)] += v.Requested
		}
		line, _, ok, err := storage.Activities.One(w.ctx, w.store, storage.Tenant(tenant), v.ID)
		require.NoError(w, err)
		require.True(w, ok)
		require.Equal(w, []any{string(v.Status), v.Tx, v.Requested}, []any{line.Status, line.TxHash, line.Fee + line.Net})
	}
	balances, err := w.store.Balances(w.ctx, storage.Tenant(tenant))
	require.NoError(w, err)
	sum := map[ledger.Asset]ledger.Amount{}
	for _, b := range balances {
		require.Equal(w, held[b.Account], b.Held, "held on %s", b.Account)
		sum[b.Asset] += b.Posted
	}
	for asset, s := range sum {
		require.Zero(w, s, "sum of %s", asset)
	}
	require.Empty(w, w.payouts.wrong)
}

var _ tb = (*testing.T)(nil)
