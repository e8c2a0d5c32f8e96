package storagetest

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// transfers is how many the bank makes. What was claimed for 100,000 is said in
// docs/evidence/reliability.md.
var transfers = flag.Int("storagetest.transfers", 3000, "how many transfers the bank of the store's suite makes")

const (
	bankClients  = 32
	bankAccounts = 100
	bankEach     = 1000 // coins on each account at first
	leastLooks   = 3    // the clients go on until there were so many
)

// bank is wallets between which many clients move money at once. The money in it
// never changes, whoever looks and whenever.
type bank struct {
	e      *env
	stores []storage.Store // handles on one store
	limit  int64           // transfers to make
	next   atomic.Int64    // those that were begun
	paid   atomic.Int64
	short  atomic.Int64
	hosts  atomic.Int64 // host's transactions that were committed
	taken  atomic.Int64 // those that were rolled back
	looks  atomic.Int64 // at the whole, while money moves

	mu    sync.Mutex
	moved map[ledger.Account]ledger.Amount // by what was acknowledged
}

func bankAccount(i int) ledger.Account { return ledger.Wallet(fmt.Sprintf("bank-%03d", i)) }

// testBank: L03, L04. Nothing is lost or made by any number of clients, each look
// at the whole is exact, and every account has what its acknowledged transfers say.
func testBank(t testing.TB, e *env) {
	b := &bank{e: e, stores: []storage.Store{e.s}, limit: int64(*transfers), moved: map[ledger.Account]ledger.Amount{}}
	if testing.Short() {
		b.limit = min(b.limit, 800)
	}
	if e.h.Second != nil {
		other := e.h.Second(t, e.s)
		require.NoError(t, other.Open(e.ctx, Tables()...))
		b.stores = append(b.stores, other)
	}
	var fill []storage.Change
	for i := range bankAccounts {
		fill = append(fill, e.post(fund(bankAccount(i), bankEach)...))
	}
	e.commit(t, fill...)
	ctx, cancel := context.WithCancel(e.ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		for ctx.Err() == nil {
			b.look(t)
			b.looks.Add(1)
		}
	})
	var clients sync.WaitGroup
	for c := range bankClients {
		clients.Go(func() { b.client(t, c) })
	}
	clients.Wait()
	cancel()
	looks.Wait()
	b.look(t)
	require.Positive(t, b.short.Load(), "no account was ever short: this shows little")
	require.GreaterOrEqual(t, b.next.Load(), b.limit)
	if e.h.Begin != nil {
		require.Positive(t, b.hosts.Load()+b.taken.Load())
	}
	all, err := e.s.Balances(e.ctx, here)
	require.NoError(t, err)
	for _, x := range all {
		if x.Account != ledger.Chain("net") {
			require.Equal(t, bankEach+b.moved[x.Account], x.Posted, x.Account)
		}
	}
	t.Logf("bank: %d paid, %d refused, %d host's transactions and %d taken back, %d exact snapshots", b.paid.Load(), b.short.Load(), b.hosts.Load(), b.taken.Load(), b.looks.Load())
}

// look sums up all that there is, in one read.
func (b *bank) look(t testing.TB) {
	all, err := b.e.s.Balances(b.e.ctx, here)
	if err != nil {
		t.Errorf("snapshot: %v", err)
		return
	}
	var sum ledger.Amount
	for _, x := range all {
		if x.Account == ledger.Chain("net") {
			continue
		}
		sum += x.Posted
		if x.Posted < 0 || x.Held != 0 {
			t.Errorf("%s stands at %d, held %d", x.Account, x.Posted, x.Held)
		}
	}
	if sum != bankAccounts*bankEach {
		t.Errorf("the bank has %d", sum)
	}
}

type order struct {
	from, to ledger.Account
	amount   ledger.Amount
}

func (b *bank) draw(rnd *rand.Rand) order {
	from := rnd.IntN(bankAccounts)
	return order{bankAccount(from), bankAccount((from + 1 + rnd.IntN(bankAccounts-1)) % bankAccounts), ledger.Amount(1 + rnd.IntN(bankEach))}
}

// client transfers, alone or two at a time in a host's transaction, which it
// sometimes takes back.
func (b *bank) client(t testing.TB, c int) {
	rnd := rand.New(rand.NewPCG(11, uint64(c)))
	s := b.stores[c%len(b.stores)]
	for i := 0; c == 0 && i == 0 || b.next.Add(1) <= b.limit || b.looks.Load() < leastLooks; i++ {
		var err error
		if b.e.h.Begin != nil && c == 0 && (i == 0 || rnd.IntN(8) == 0) {
			b.next.Add(1)
			err = b.host(t, b.draw(rnd), b.draw(rnd), rnd.IntN(3) > 0)
		} else {
			err = b.pay(s, b.draw(rnd))
		}
		if err != nil {
			t.Errorf("client %d: %v", c, err)
			return
		}
	}
}

func (b *bank) pay(s storage.Store, o order) error {
	err := storage.CommitOne(b.e.ctx, s, b.e.post(move(o.from, o.to, o.amount)...))
	return b.book(o, err)
}

// book keeps what was acknowledged. Being short is no error.
func (b *bank) book(o order, err error) error {
	var short *ledger.InsufficientFundsError
	if errors.As(err, &short) {
		b.short.Add(1)
		return nil
	}
	if err != nil {
		return err
	}
	b.paid.Add(1)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.moved[o.from] -= o.amount
	b.moved[o.to] += o.amount
	return nil
}

// host transfers twice in a host's transaction. What waits too long for it is
// taken back, as a host would.
func (b *bank) host(t testing.TB, x, y order, commit bool) error {
	tx, end := b.e.h.Begin(t, b.e.s)
	var errs []error
	for _, o := range []order{x, y} {
		err := tx.Commit(b.e.ctx, b.e.post(move(o.from, o.to, o.amount)...))[0]
		commit = commit && (err == nil || storage.Final(err))
		errs = append(errs, err)
	}
	if ended := end(commit); ended != nil || !commit {
		b.taken.Add(1)
		return nil //nolint:nilerr // taken back, by the host or by the database
	}
	b.hosts.Add(1)
	return errors.Join(b.book(x, errs[0]), b.book(y, errs[1]))
}
