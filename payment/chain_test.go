package payment

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// street is a shop whose customers pay on a simulated chain that incoming reads.
type street struct {
	*shop
	chain *sim.Chain
	net   *incoming.Network
}

func (w *street) Derive(_ context.Context, _ chain.Network, from uint32, count int) ([]chain.Derived, error) {
	out := make([]chain.Derived, count)
	for i := range out {
		out[i] = chain.Derived{Address: w.chain.Customer(fmt.Sprintf("derived %d", int(from)+i)), Index: from + uint32(i)}
	}
	return out, nil
}

func newStreet(t *testing.T, network chain.Network) *street {
	w := &street{shop: newShop(t)}
	clock := func() time.Time { return w.now }
	w.chain = sim.MustNew(sim.Options{Network: network, Registry: w.cfg.Registry, Seed: 1, Now: clock})
	pool, err := incoming.NewPool(incoming.PoolConfig{Store: w.store, Source: w, Now: clock})
	require.NoError(t, err)
	require.NoError(t, pool.Fill(ctx, network))
	w.cfg.Addresses = pool
	w.cfg.Head = func(ctx context.Context, n chain.Network) (incoming.Cursor, error) {
		c, _, _, err := incoming.Cursors.One(ctx, w.store, storage.Network(string(n)), incoming.CursorID)
		return c, err
	}
	w.s, err = New(w.cfg)
	require.NoError(t, err)
	w.net, err = incoming.New(incoming.Config{
		Store: w.store, Client: w.chain.Client(), Registry: w.cfg.Registry, Now: clock,
		Handle: w.s.Handle, Log: w.cfg.Log,
	})
	require.NoError(t, err)
	w.settle()
	return w
}

// settle does all that is due, on the chain's side and on the payments'.
func (w *street) settle() {
	for range 100 {
		n, err := w.net.Step(ctx)
		require.NoError(w.t, err)
		m, err := w.s.Step(ctx)
		require.NoError(w.t, err)
		if n+m == 0 {
			require.NotContains(w.t, w.log.String(), "fact_refused")
			return
		}
	}
	require.Fail(w.t, "never at rest")
}

func (w *street) mine(n int) {
	for range n {
		w.now = w.now.Add(10 * time.Second)
		w.chain.Mine(1)
	}
	w.settle()
}

func (w *street) pay(p Payment, currency, amount string) string {
	tx, err := w.chain.Pay(chain.Address(p.Address), currency, decimal.RequireFromString(amount))
	require.NoError(w.t, err)
	w.settle()
	return tx
}

// TestFromChainToWallet goes the whole way with real proofs.
func TestFromChainToWallet(t *testing.T) {
	t.Parallel()
	w := newStreet(t, "ETH")
	p := w.create("100", "ETH")
	tx := w.pay(p, "ETH", "0.05")
	require.Equal(t, Confirming, w.get(p).Status)
	require.Equal(t, tx, w.get(p).Tx)
	w.mine(11)
	require.Equal(t, Confirming, w.get(p).Status)
	require.Empty(t, w.posted())
	w.mine(1)
	require.Equal(t, Confirmed, w.get(p).Status)
	require.Equal(t, scenario("c −0.05, w +0.0495, P +0.0005"), w.posted())
	require.EqualValues(t, 12, w.get(p).Confirmations)
	w.now = w.now.Add(30 * time.Minute)
	w.settle()
	require.Equal(t, Completed, w.get(p).Status)

	q := w.create("100", usdt)
	w.pay(q, usdt, "60")
	w.pay(q, "USDCERC20", "40")
	w.mine(15)
	require.Equal(t, PartiallyPaid, w.get(q).Status)
	w.now = w.now.Add(time.Hour)
	w.settle()
	require.Equal(t, Expired, w.get(q).Status)
	require.Equal(t, "59.4", w.balance(ledger.Wallet("w"), usdt))
	require.Equal(t, "40", w.balance(ledger.Suspense, "USDCERC20"))
}

// TestD15_ReorgBeforeFinal: what a shallow reorg drops was never credited, and
// what it moves is credited once.
func TestD15_ReorgBeforeFinal(t *testing.T) {
	t.Parallel()
	w := newStreet(t, "BTC")
	p := w.create("60", "BTC")
	kept := w.pay(p, "BTC", "0.0006")
	dropped := w.pay(p, "BTC", "0.0004")
	w.mine(1)
	require.Equal(t, Confirming, w.get(p).Status)
	_, err := w.chain.Reorg(1, dropped)
	require.NoError(t, err)
	w.settle()
	require.Equal(t, PartiallyPaid, w.get(p).Status)
	require.Empty(t, w.posted())
	require.NoError(t, w.chain.Resend(dropped))
	w.settle()
	w.mine(2)
	require.Equal(t, Completed, w.get(p).Status, "nothing to forward on a UTXO chain")
	require.Equal(t, "0.00099", w.balance(ledger.Wallet("w"), "BTC"))
	deposits, err := w.s.Deposits(ctx, tenant, p.ID)
	require.NoError(t, err)
	hashes := []string{deposits[0].Tx, deposits[1].Tx}
	slices.Sort(hashes)
	want := []string{kept, dropped}
	slices.Sort(want)
	require.Equal(t, want, hashes)
}

// TestT02_DeadNodeDelaysExpiry: a customer who paid in time while the node was
// down is not told that the payment has expired.
func TestT02_DeadNodeDelaysExpiry(t *testing.T) {
	t.Parallel()
	w := newStreet(t, "ETH")
	p := w.create("100", "ETH")
	_, err := w.chain.Pay(chain.Address(p.Address), "ETH", decimal.RequireFromString("0.05"))
	require.NoError(t, err)
	w.now = w.now.Add(50 * time.Minute)
	w.chain.Mine(1) // in time; nobody reads it
	w.now = w.now.Add(3 * time.Hour)
	_, err = w.s.Step(ctx)
	require.NoError(t, err)
	require.Equal(t, Waiting, w.get(p).Status)
	w.settle()
	require.Equal(t, Confirming, w.get(p).Status)
	w.mine(12)
	require.Equal(t, Confirmed, w.get(p).Status)
	require.Equal(t, TypeFull, w.get(p).Type)
}
