package cryptopay_test

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// mortal is a store as one process sees it that dies at a commit, before or
// after it happened, or loses the answers of some.
type mortal struct {
	storage.Store
	commits, dieAt int
	after, dead    bool
	lose           int // every so many commits
	mu             sync.Mutex
}

// gone says whether this process can still read.
func (m *mortal) gone() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

// next counts a commit and says whether it happens and whether it is answered.
func (m *mortal) next() (happens, answered bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.dead {
		return false, false
	}
	m.commits++
	m.dead = m.commits == m.dieAt
	return !m.dead || m.after, !m.dead && (m.lose == 0 || m.commits%m.lose != 0)
}

var errDead = errors.New("this process is dead, or the answer is lost")

func (m *mortal) Commit(ctx context.Context, changes ...storage.Change) []error {
	all := make([]error, len(changes))
	for i := range changes {
		happens, answered := m.next()
		if happens {
			all[i] = m.Store.Commit(ctx, changes[i])[0]
		}
		if !answered {
			all[i] = errDead
		}
	}
	return all
}

func (m *mortal) Rows(ctx context.Context, t *storage.Table, p storage.Partition, ids ...string) ([]storage.Row, error) {
	if m.gone() {
		return nil, errDead
	}
	return m.Store.Rows(ctx, t, p, ids...)
}

func (m *mortal) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if m.gone() {
		return nil, errDead
	}
	return m.Store.Find(ctx, q)
}

func (m *mortal) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	if m.gone() {
		return nil, errDead
	}
	return m.Store.Claim(ctx, c)
}

// die lets this process end at one of its next commits.
func (w *world) die() string {
	w.store.commits, w.store.dieAt, w.store.after = 0, 1+w.rng.IntN(40), w.rng.IntN(2) == 0
	return fmt.Sprint(w.store.dieAt, w.store.after)
}

// lose lets answers of commits get lost from now on, or no more.
func (w *world) lose() string {
	w.store.lose = []int{0, 0, 3, 7}[w.rng.IntN(4)]
	return fmt.Sprint(w.store.lose)
}

// fees lets a network's price rise or fall, so that what was sent is stuck.
func (w *world) fees() string {
	n := []chain.Network{"ETH", "BTC"}[w.rng.IntN(2)]
	if w.level[n] == 0 {
		w.level[n] = w.chains[n].FeeLevel()
	}
	times := []int64{1, 1, 2, 4}[w.rng.IntN(4)]
	w.chains[n].SetFeeLevel(w.level[n] * times)
	return fmt.Sprint(n, times)
}

// unwell says whether a call may fail now.
func (w *world) unwell() bool { return w.faulty || w.store.dieAt > 0 || w.store.lose > 0 }

// heal ends every fault of stores and prices.
func (w *world) heal() {
	w.store.lose, w.store.dieAt = 0, 0
	for _, n := range []chain.Network{"ETH", "BTC"} {
		if w.level[n] != 0 {
			w.chains[n].SetFeeLevel(w.level[n])
		}
	}
}

// conserved holds the books against the chains: what all addresses of ours hold
// is what the ledger says is held there, and nothing is set aside any more.
func (w *world) conserved() {
	balances, err := w.store.Balances(w.t.Context(), storage.Tenant(w.tenant))
	require.NoError(w.t, err)
	for _, code := range []string{"ETH", "BTC", "USDTERC20", "USDCERC20"} {
		c, n := w.chainOf(code)
		rows, err := w.store.Find(w.t.Context(), storage.Query{
			Table: incoming.Addresses.Table, Partition: storage.Network(string(n)), Limit: 100_000,
		})
		require.NoError(w.t, err)
		held, books := dec("0"), dec("0")
		for _, r := range rows {
			held = held.Add(w.chains[n].Balance(chain.Address(r.ID), code))
		}
		for _, b := range balances {
			if b.Asset == c.Asset() && b.Account == ledger.Chain(string(n)) {
				books = c.Decimal(b.Posted).Neg()
			}
		}
		dust := dec("0.0000001") // costs round up
		require.False(w.t, held.Sub(books).Abs().GreaterThan(dust), "%s: held %s, in the books %s; %s", code, held, books, w.story())
	}
	rows, err := w.store.Find(w.t.Context(), storage.Query{Table: treasury.GasFloats.Table, Partition: storage.Tenant(w.tenant)})
	require.NoError(w.t, err)
	for _, r := range rows {
		g := treasury.GasFloats.Value(r)
		require.Zero(w.t, g.Reserved, "%s is still set aside; %s", g.Asset, w.story())
		require.Zero(w.t, g.Count)
	}
}
