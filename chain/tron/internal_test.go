package tron

import (
	"context"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/internal/nodes/trontest"
)

// calls puts a transaction into the pool by which a contract calls a token.
func (n *town) calls(t testing.TB) {
	t.Helper()
	to := n.customer(t, "somebody").Address
	five := chaintest.Payment{To: to, Currency: "USDTTRC20", Amount: decimal.NewFromInt(5)}
	n.pay(t, "", false, five, five)
}

// inner has a contract pay TRX to an address.
func (n *town) inner(t testing.TB, to chain.Address) {
	t.Helper()
	n.pay(t, trontest.Internal, false, chaintest.Payment{To: to, Currency: "TRX", Amount: decimal.NewFromInt(7)})
}

// scan reads all blocks after one.
func (n *town) scan(t testing.TB, from chain.Block, to chain.Address) ([]chain.Transfer, error) {
	t.Helper()
	s, err := n.client.Scan(t.Context(), []chain.Block{from}, follow.Only{to}, 99)
	var out []chain.Transfer
	for _, b := range s.Blocks {
		out = append(out, b.Transfers...)
	}
	return out, err
}

// TestFN35_NodeThatKeepsNoInnerCallsIsRefused: a contract logged that was not called itself, so
// another one called it, and the receipt tells of no call. From then on no block with a call
// of a contract is believed until a receipt tells of one.
func TestFN35_NodeThatKeepsNoInnerCallsIsRefused(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	n.Set(func(f *trontest.Fault) { f.NoInternal = true })
	start := n.Head(t)
	n.calls(t)
	n.Mine(1)
	_, err := n.scan(t, start, to)
	require.ErrorIs(t, err, chain.ErrNode)
	require.ErrorContains(t, err, "vm.saveInternalTx")

	quiet := n.Head(t)
	n.fund(t, to, "TRX", 3)
	n.fund(t, to, "USDTTRC20", 4)
	got, err := n.scan(t, quiet, to)
	require.NoError(t, err, "nothing was called that could pay TRX")
	require.Len(t, got, 2)

	paid := n.Head(t)
	n.inner(t, to)
	n.Mine(1)
	_, err = n.scan(t, paid, to)
	require.ErrorContains(t, err, "vm.saveInternalTx", "whether this call paid anybody, it does not say")
	_, err = n.client.History(t.Context(), to, paid.Height+1, paid.Height+1)
	require.ErrorContains(t, err, "vm.saveInternalTx")

	n.Set(func(f *trontest.Fault) { f.NoInternal = false })
	got, err = n.scan(t, start, to)
	require.NoError(t, err)
	require.Len(t, got, 3)
	last := got[2]
	require.Equal(t, "TRX", last.Currency)
	require.True(t, decimal.NewFromInt(7).Equal(last.Amount))
}

// TestFN35_NodeIsFoundOutBeforeTheFirstBlock: where the first blocks that are read do not say
// whether inner calls are kept, some before them are looked at.
func TestFN35_NodeIsFoundOutBeforeTheFirstBlock(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{false, true} {
		n := openTown(t)
		to := n.customer(t, "to").Address
		n.Set(func(f *trontest.Fault) { f.NoInternal = !keeps })
		n.calls(t)
		n.Mine(9)
		start := n.Head(t)
		n.inner(t, to)
		n.Mine(1)
		got, err := n.scan(t, start, to)
		if keeps {
			require.NoError(t, err)
			require.Len(t, got, 1)
			continue
		}
		require.ErrorContains(t, err, "vm.saveInternalTx")
	}
}

// TestFN35_WaitsNoLongerThanItsContext: while one reading looks at earlier blocks, another one
// waits for it until its own context ends. It does not wait where it has nothing to ask.
func TestFN35_WaitsNoLongerThanItsContext(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	to := n.customer(t, "to").Address
	c := n.client
	read := func(mine func()) []*reading {
		t.Helper()
		from := n.Head(t)
		mine()
		n.Mine(1)
		blocks, err := c.blocks(t.Context(), from, 1)
		require.NoError(t, err)
		rs, err := c.read(t.Context(), blocks)
		require.NoError(t, err)
		return rs
	}
	n.Set(func(f *trontest.Fault) { f.NoInternal = true })
	quiet := read(func() {})
	unsure := read(func() { n.inner(t, to) })
	ended, end := context.WithCancel(t.Context())
	end()
	c.keeping.turn <- struct{}{} // another one looks
	require.NoError(t, c.keepsCalls(ended, quiet))
	err := c.keepsCalls(ended, unsure)
	require.ErrorIs(t, err, context.Canceled)
	require.ErrorIs(t, err, chain.ErrNode)
	require.False(t, c.keeping.known)
	<-c.keeping.turn
	require.NoError(t, c.keepsCalls(t.Context(), unsure))
	require.True(t, c.keeping.known)
}

// TestFN35_WhoDoesWithoutSaysSo: Options.NoInternal.
func TestFN35_WhoDoesWithoutSaysSo(t *testing.T) {
	t.Parallel()
	n := openTown(t, func(o *Options) { o.NoInternal = true })
	to := n.customer(t, "to").Address
	n.Set(func(f *trontest.Fault) { f.NoInternal = true })
	start := n.Head(t)
	n.calls(t)
	n.inner(t, to)
	n.fund(t, to, "USDTTRC20", 4)
	got, err := n.scan(t, start, to)
	require.NoError(t, err)
	require.Len(t, got, 1)
}
