package outgoing_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

const (
	coin  = ledger.Amount(100_000_000) // one whole coin: all test currencies but USDT have scale 8
	poll  = 10 * time.Second
	stuck = 10 * time.Minute
)

// crash is what a failpoint throws: the process is gone at once.
type crash struct{ at string }

// points counts the places where a process can die, and dies at one of them.
type points struct {
	mu    sync.Mutex
	seen  []string
	dieAt int // 1 …; 0 = never
}

func (p *points) pass(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, name)
	if p.dieAt == len(p.seen) {
		panic(crash{name})
	}
}

// fragileStore dies before or after each Change.
type fragileStore struct {
	storage.Store
	p *points
}

func (s fragileStore) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := make([]error, len(changes))
	for i := range changes {
		s.p.pass("before commit " + changes[i].ID)
		errs[i] = s.Store.Commit(ctx, changes[i])[0]
		s.p.pass("after commit " + changes[i].ID)
	}
	return errs
}

// fullClient is what sim's client can do and outgoing asks for.
type fullClient interface {
	chain.Client
	chain.Noncer
	chain.Balancer
	chain.ParentPayer
}

// fragileClient dies before or after a broadcast, and can have its fee and its
// broadcast errors set.
type fragileClient struct {
	fullClient
	p      *points
	reject error         // of the next broadcast
	short  ledger.Amount // that is missing of what arrives
	keeps  string        // the only transaction that the node takes; "" = all
	why    error         // of the others; nil = as it has another one in their place
	fee    func(chain.Fee) chain.Fee
	sent   map[string][]byte // every raw transaction ever broadcast, by hash
	mu     *sync.Mutex
}

func (c *fragileClient) Broadcast(ctx context.Context, s chain.Stored) error {
	c.p.pass("before broadcast")
	c.mu.Lock()
	c.sent[s.Tx()] = s.Raw()
	err := c.reject
	c.reject = nil
	if err == nil && c.keeps != "" && c.keeps != s.Tx() {
		if err = c.why; err == nil {
			err = fmt.Errorf("%w: tefPAST_SEQ", chain.ErrOccupied)
		}
	}
	c.mu.Unlock()
	if err != nil {
		return err
	}
	err = c.fullClient.Broadcast(ctx, s)
	c.p.pass("after broadcast")
	return err
}

func (c *fragileClient) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	out, err := c.fullClient.Status(ctx, attempts...)
	for i := range out {
		if out[i].Executed {
			out[i].Shortfall = c.short
		}
	}
	return out, err
}

func (c *fragileClient) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	f, err := c.fullClient.EstimateFee(ctx, in)
	if err == nil && c.fee != nil {
		f = c.fee(f)
	}
	return f, err
}

// signer holds keys and keeps the promises of chain.Signer: one payload for an
// attempt, one intent for a nonce or input. It never forgives a breach.
type signer struct {
	mu       sync.Mutex
	p        *points
	inspect  chain.Inspector
	keys     map[chain.KeyRef]*secp256k1.PrivateKey
	payloads map[string][32]byte
	slots    map[string]string
	breach   []string
	calls    int
	fail     []error // of the next calls, before anything is signed
	lose     int     // of the next calls, the answer is lost after signing
	refuses  string  // the intent that it pays nobody for
}

var errAway = errors.New("the signer does not answer")

func (s *signer) Sign(_ context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	s.p.pass("before sign")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	if len(s.fail) > 0 {
		err := s.fail[0]
		s.fail = s.fail[1:]
		if err != nil {
			return nil, err
		}
	}
	if s.refuses == r.Intent.ID && r.Intent.Purpose != chain.ForCancel {
		return nil, fmt.Errorf("%w: above its limit", chain.ErrRefused)
	}
	u, err := s.inspect.Inspect(r.Unsigned.Payload)
	if err != nil {
		return nil, err
	}
	hash := sha256.Sum256(r.Unsigned.Payload)
	if had, ok := s.payloads[r.Attempt]; ok && had != hash {
		s.breach = append(s.breach, "two payloads for "+r.Attempt)
		return nil, fmt.Errorf("%w: another payload", chain.ErrRefused)
	}
	for _, slot := range u.Spends {
		if by, ok := s.slots[slot]; ok && by != r.Intent.ID {
			s.breach = append(s.breach, "two intents for "+slot)
			return nil, fmt.Errorf("%w: another intent", chain.ErrRefused)
		}
	}
	s.payloads[r.Attempt] = hash
	for _, slot := range u.Spends {
		s.slots[slot] = r.Intent.ID
	}
	sigs := make([]chain.Signature, len(u.Digests))
	for i, d := range u.Digests {
		key := s.keys[r.Keys[i]]
		if key == nil {
			return nil, fmt.Errorf("%w: no key", chain.ErrRefused)
		}
		c := ecdsa.SignCompact(key, d.Hash[:], true)
		sigs[i] = append(bytes.Clone(c[1:]), c[0]-31)
	}
	s.p.pass("after sign")
	if s.lose > 0 {
		s.lose--
		return nil, errAway
	}
	return sigs, nil
}

type setup struct {
	family     chain.Family
	finality   int64
	noFinality bool
	firstSeen  bool // nodes take no replacement
	change     func(*outgoing.Config)
	most       int           // chain.NetworkInfo.MostInputs
	store      storage.Store // that is open; nil = one in memory
}

// world is one network, one store, and the process that is working now.
type world struct {
	t      testing.TB
	ctx    context.Context
	chain  *sim.Chain
	reg    *chain.Registry
	store  storage.Store
	client *fragileClient
	signer *signer
	points *points
	set    setup

	mu     sync.Mutex
	now    time.Time
	heard  []outgoing.Outcome
	keys   int
	ops    int                 // of operators
	source chain.AddressSource // nil: keys of signer
	hot    chain.Derived
	gas    string
	Net    *outgoing.Sender
	refuse error // of the outcomes' owner
	died   bool
	alien  map[string]bool     // transactions made with our key past the store
	made   map[string][]string // what the transactions spend that made coins
}

func registry(t testing.TB, most int) *chain.Registry {
	reg, err := chain.NewRegistry([]chain.NetworkInfo{
		{Code: "ETH", Name: "Account", Family: chain.AccountFamily, AddressType: "EVM", ChainID: 1, Gas: "ETH"},
		{Code: "BTC", Name: "Outputs", Family: chain.UTXOFamily, Gas: "BTC", MostInputs: most},
	}, []chain.Currency{
		{Code: "ETH", Network: "ETH", Token: "ETH", Decimals: 18, Scale: 8, Confirmations: 6},
		{Code: "USDT", Network: "ETH", Token: "USDT", Contract: "0xusdt", Decimals: 6, Scale: 6, Confirmations: 6},
		{Code: "BTC", Network: "BTC", Token: "BTC", Decimals: 8, Scale: 8, Confirmations: 6},
	})
	require.NoError(t, err)
	return reg
}

func newWorld(t testing.TB, s setup) *world {
	if s.family == "" {
		s.family = chain.AccountFamily
	}
	w := &world{
		t: t, ctx: context.Background(), reg: registry(t, s.most), store: memory.New(), set: s, points: &points{},
		alien: map[string]bool{}, made: map[string][]string{}, now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), gas: "ETH",
	}
	if s.family == chain.UTXOFamily {
		w.gas = "BTC"
	}
	if s.finality == 0 && !s.noFinality {
		s.finality = 6
	}
	w.chain = sim.MustNew(sim.Options{Network: chain.Network(w.gas), Registry: w.reg, Family: s.family, Seed: 7, Finality: s.finality, FirstSeen: s.firstSeen})
	full := w.chain.Client().(fullClient)
	w.client = &fragileClient{fullClient: full, p: w.points, sent: map[string][]byte{}, mu: new(sync.Mutex)}
	w.signer = &signer{
		p: w.points, inspect: full, keys: map[chain.KeyRef]*secp256k1.PrivateKey{},
		payloads: map[string][32]byte{}, slots: map[string]string{},
	}
	if s.store != nil {
		w.store = s.store
	} else {
		require.NoError(t, w.store.Open(w.ctx, tables()...))
	}
	w.hot = w.key()
	w.restart()
	return w
}

// key makes an address that the signer can sign for.
func (w *world) key() chain.Derived {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.keys++
	if w.source != nil {
		d, err := w.source.Derive(w.ctx, chain.Network(w.gas), uint32(w.keys), 1)
		require.NoError(w.t, err)
		return d[0]
	}
	sum := sha256.Sum256([]byte(fmt.Sprint("key ", w.keys)))
	priv := secp256k1.PrivKeyFromBytes(sum[:])
	a, err := w.client.AddressOf(priv.PubKey().SerializeCompressed())
	require.NoError(w.t, err)
	d := chain.Derived{Address: a, Index: uint32(w.keys), Key: chain.KeyRef(fmt.Sprint("m/", w.keys))}
	w.signer.mu.Lock()
	w.signer.keys[d.Key] = priv
	w.signer.mu.Unlock()
	return d
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

// process makes another worker on the same store.
func (w *world) process() *outgoing.Sender {
	c := outgoing.Config{
		Store: fragileStore{w.store, w.points}, Client: w.client, Registry: w.reg, Signer: w.signer,
		Now: w.clock, Log: slog.New(slog.DiscardHandler), StuckAfter: stuck, Poll: poll,
		Handle: func(_ context.Context, o outgoing.Outcome) error {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.refuse != nil {
				return w.refuse
			}
			w.heard = append(w.heard, o)
			return nil
		},
		ChangeAddress: func(context.Context, string) (chain.Derived, error) { return w.key(), nil },
	}
	if w.set.change != nil {
		w.set.change(&c)
	}
	n, err := outgoing.New(c)
	require.NoError(w.t, err)
	return n
}

func (w *world) restart() { w.Net = w.process() }

// step works until nothing is due. Errors of single intents are the caller's
// business only where he asks for them.
func (w *world) step() error {
	var all error
	for range 200 {
		n, err := w.Net.Step(w.ctx)
		all = errors.Join(all, err)
		if n == 0 {
			return all
		}
	}
	w.t.Fatal("Step never comes to an end")
	return nil
}

// die runs f and reports whether the process died in it; it is then another one.
func (w *world) die(f func()) (died bool) {
	defer func() {
		switch x := recover().(type) {
		case nil:
		case crash:
			died, w.died = true, true
			w.points.dieAt = 0
			w.restart()
		default:
			panic(x)
		}
	}()
	f()
	return false
}

// run lets time and blocks go by: each round a minute and a block.
func (w *world) run(rounds int) {
	for range rounds {
		_ = w.step()
		w.chain.Mine(1)
		w.advance(time.Minute)
	}
	_ = w.step()
}

func (w *world) fund(d chain.Derived, currency string, amount ledger.Amount) {
	cur, err := w.reg.Currency(currency)
	require.NoError(w.t, err)
	tx, err := w.chain.Fund(d.Address, currency, cur.Decimal(amount))
	require.NoError(w.t, err)
	if w.set.family == chain.UTXOFamily {
		w.coin(d, tx+":0", amount)
	}
}

func (w *world) coin(d chain.Derived, outpoint string, amount ledger.Amount) {
	require.NoError(w.t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "coin/" + outpoint, Partition: storage.Network(w.gas),
		Put: []storage.Row{outgoing.CoinRow("t1", chain.Coin{Outpoint: outpoint, Address: d.Address, Key: d.Key, Amount: amount})},
	}))
}

// funded gives the hot side enough for all tests.
func funded(t testing.TB, s setup) *world {
	w := newWorld(t, s)
	w.endow()
	return w
}

func (w *world) endow() {
	if w.set.family == chain.UTXOFamily {
		for range 4 {
			w.fund(w.key(), "BTC", 5*coin)
		}
	} else {
		w.fund(w.hot, "ETH", 20*coin)
		w.fund(w.hot, "USDT", 1_000_000_000)
	}
}

func (w *world) to(name string) chain.Address { return w.chain.Customer(name) }

func (w *world) intent(id string, amount ledger.Amount) chain.Intent {
	in := chain.Intent{
		ID: id, Purpose: chain.ForWithdrawal, Tenant: "t1", Network: chain.Network(w.gas), Currency: w.gas,
		To: w.to(id), Amount: amount, MaxCost: coin / 10, Confirmations: 2,
	}
	if w.set.family == chain.AccountFamily || w.set.family == "" {
		in.From, in.FromKey = w.hot.Address, w.hot.Key
	}
	return in
}

func (w *world) submit(in chain.Intent) chain.Intent {
	require.NoError(w.t, w.Net.Submit(w.ctx, in))
	return in
}

func (w *world) get(id string) outgoing.View {
	v, ok, err := w.Net.Get(w.ctx, id)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	return v
}

func (w *world) state(id string) outgoing.State { return w.get(id).State }

// last is what the owner heard last of an intent.
func (w *world) last(id string) outgoing.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	for i := len(w.heard) - 1; i >= 0; i-- {
		if w.heard[i].Intent == id {
			return w.heard[i]
		}
	}
	return outgoing.Outcome{}
}

func (w *world) states(id string) (out []outgoing.State) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.heard {
		if o.Intent == id {
			out = append(out, o.State)
		}
	}
	return out
}

// paid demands that the recipient has his amount exactly once, on the chain.
func (w *world) paid(in chain.Intent) {
	w.t.Helper()
	cur, err := w.reg.Currency(in.Currency)
	require.NoError(w.t, err)
	got := w.chain.Transfers(in.To)
	sum := decimal.Zero
	for _, x := range got {
		sum = sum.Add(x.Amount)
	}
	require.Len(w.t, got, 1, "payments of %s", in.ID)
	require.True(w.t, sum.Equal(cur.Decimal(in.Amount)), "%s got %s", in.ID, sum)
}

func (w *world) unpaid(in chain.Intent) {
	w.t.Helper()
	require.Empty(w.t, w.chain.Transfers(in.To), "payments of %s", in.ID)
}

func (w *world) rows(t *storage.Table) []storage.Row {
	rows, err := w.store.Find(w.ctx, storage.Query{Table: t, Partition: storage.Network(w.gas), Limit: 10_000})
	require.NoError(w.t, err)
	return rows
}

// sound demands what must hold once all is at rest: no breach at the signer, no
// reservation, no held nonce and no reserved coin left, dense nonces, every
// transaction of ours on the chain known as a stored attempt.
func (w *world) sound() {
	w.t.Helper()
	require.Empty(w.t, w.signer.breach)
	require.Empty(w.t, w.rows(outgoing.InputReservations.Table), "reservations")
	for _, r := range w.rows(outgoing.Nonces.Table) {
		v := outgoing.Nonces.Value(r)
		require.Empty(w.t, v.Holder)
		at, err := w.client.Nonce(w.ctx, chain.Address(r.ID))
		require.NoError(w.t, err)
		require.EqualValues(w.t, at, v.Next, "nonce of %s", r.ID)
	}
	for _, r := range w.rows(outgoing.Coins.Table) {
		require.NotContains(w.t, []outgoing.CoinState{outgoing.CoinReserved, outgoing.CoinUnmined}, outgoing.Coins.Value(r).State, r.ID)
	}
	stored := map[string]bool{}
	for _, r := range w.rows(outgoing.Attempts.Table) {
		stored[r.ID] = true
	}
	for _, h := range w.chain.Transactions(true) {
		require.True(w.t, stored[h] || w.alien[h], "%s was sent and is not stored", h)
	}
	inFlight, err := w.Net.InFlight(w.ctx, "")
	require.NoError(w.t, err)
	require.Zero(w.t, inFlight)
	require.NoError(w.t, w.chain.Audit())
}

// stride is from which place to the next a process dies: at each, or at some with -short.
func stride() int {
	if testing.Short() {
		return 5
	}
	return 1
}

func families(t *testing.T, f func(t *testing.T, w *world)) {
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			f(t, funded(t, setup{family: family}))
		})
	}
}

// tables are those that the package writes: its own, and what every store has.
func tables() []*storage.Table { return slices.Concat(storage.Tables(), outgoing.Tables()) }
