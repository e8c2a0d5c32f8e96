package e2e_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/nodes/solanatest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
)

// shelf is a program whose books are held against its network.
type shelf struct {
	t       testing.TB
	store   storage.Store
	network chain.Network
	clock   *cryptopay.ManualClock
	mine    func(blocks int)
}

// rest lets two days pass, in which each address is looked at.
func (s shelf) rest() {
	s.t.Helper()
	for range 4 {
		s.clock.Advance(13 * time.Hour)
		s.mine(40)
	}
}

// agrees requires that each address of ours was held against the chain, and that no difference
// stands.
func (s shelf) agrees() {
	s.t.Helper()
	began := s.clock.Now()
	s.rest()
	require.Empty(s.t, s.differences())
	rows, err := s.store.Find(s.t.Context(), storage.Query{Table: reconcile.Looks.Table, Partition: storage.Network(string(s.network)), Limit: 1000})
	require.NoError(s.t, err)
	for _, r := range rows {
		v := reconcile.Looks.Value(r)
		require.Empty(s.t, v.Waits, r.ID)
		require.True(s.t, v.Looked.After(began), r.ID)
	}
	require.NotEmpty(s.t, rows)
}

// TestI26_ADriftIsFound on the networks whose accounts owe a reserve, or whose senders pay for others.
func TestI26_ADriftIsFound(t *testing.T) {
	t.Parallel()
	for name, shop := range map[string]func(t *testing.T) map[string]shelf{
		"solana": func(t *testing.T) map[string]shelf {
			m := openMarket(t)
			m.earn("30", "USDTSOL")
			m.earn("30", "SOL")
			m.withdraw("20", "USDTSOL", solanatest.Key("somebody").PublicKey().String())
			m.withdraw("10", "SOL", solanatest.Key("somebody").PublicKey().String())
			return map[string]shelf{"SOL": m.shelf(), "USDTSOL": m.shelf()}
		},
		"cardano": func(t *testing.T) map[string]shelf {
			s := openStall(t, "Ogmios", 20)
			s.earn("50")
			w, err := s.withdraw("30", s.somebody("a"))
			require.NoError(t, err)
			s.withdrawn(w.ID)
			return map[string]shelf{"ADA": s.shelf()}
		},
		"xrp":     func(t *testing.T) map[string]shelf { return busyCounter(t, openXRP(t)) },
		"stellar": func(t *testing.T) map[string]shelf { return busyCounter(t, openStellar(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testenv.Draw(t, 2)
			for currency, s := range shop(t) {
				s.agrees()
				s.drifts(currency)
			}
		})
	}
}

func busyCounter(t *testing.T, p post) map[string]shelf {
	t.Helper()
	s := openCounter(t, p)
	in := s.order("50")
	account, memo := s.apart(chain.Address(in.Address))
	s.pay(account, memo, decimal.New(int64(in.Due), -int32(in.Scale)))
	s.blocks(2)
	s.withdraw(s.existing(), "77", "16")
	return map[string]shelf{string(p.network()): s.shelf()}
}

func (s shelf) differences() (out []reconcile.DifferenceRow) {
	s.t.Helper()
	rows, err := s.store.Find(s.t.Context(), storage.Query{Table: reconcile.Differences.Table, Partition: storage.Network(string(s.network)), Limit: 1000})
	require.NoError(s.t, err)
	for _, r := range rows {
		out = append(out, reconcile.Differences.Value(r))
	}
	return out
}

// drifts adds the smallest amount to what the books say that a transfer brought, and requires that the
// difference is found and named, and that the currency is halted. It is gone when that is taken back.
func (s shelf) drifts(currency string) {
	s.t.Helper()
	part := storage.Network(string(s.network))
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(s.t, err)
	rows, err := s.store.Find(s.t.Context(), storage.Query{
		Table: incoming.Sightings.Table, Partition: part, Limit: 1000, Where: []storage.Cond{{Column: "currency", Op: storage.Eq, Value: currency}},
	})
	require.NoError(s.t, err)
	rows = slices.DeleteFunc(rows, func(r storage.Row) bool { // where coins are outputs, it is one that lies there
		coin, _, ok, err := outgoing.Coins.One(s.t.Context(), s.store, part, r.ID)
		require.NoError(s.t, err)
		return ok && coin.State != outgoing.CoinFree
	})
	require.NotEmpty(s.t, rows)
	add := func(units ledger.Amount) {
		row, old, ok, err := incoming.Sightings.One(s.t.Context(), s.store, part, rows[0].ID)
		require.NoError(s.t, err)
		require.True(s.t, ok)
		row.Exact = row.Exact.Add(c.Decimal(units))
		change := storage.Change{ID: fmt.Sprint("planted", units), Partition: part, Put: []storage.Row{incoming.Sightings.Row(old.ID, old.Version, old.Due, row)}}
		coin, old, ok, err := outgoing.Coins.One(s.t.Context(), s.store, part, rows[0].ID)
		require.NoError(s.t, err)
		if ok { // coins are what the books have there
			coin.Amount += units
			change.Put = append(change.Put, outgoing.Coins.Row(old.ID, old.Version, old.Due, coin))
		}
		require.NoError(s.t, s.store.Commit(s.t.Context(), change)[0])
	}
	add(1)
	s.rest()
	found := s.differences()
	require.Len(s.t, found, 1)
	require.Equal(s.t, []any{currency, c.Decimal(-1).String(), true}, []any{found[0].Currency, found[0].Amount.String(), found[0].Halted})
	require.Contains(s.t, []reconcile.Kind{reconcile.Missing, reconcile.TokenChanged}, found[0].Kind)
	add(-1)
	s.rest()
	require.Empty(s.t, s.differences())
}
