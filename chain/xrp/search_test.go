package xrp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/xrp/xrptest"
)

// crowd has strangers pay an account so often.
func (n *town) crowd(to chain.Address, times int) {
	for range times {
		n.Send(xrptest.Pay{To: string(to), Drops: 1})
		n.Mine(1)
	}
}

// pages counts the pages of an account's transactions that a status takes.
func (n *town) pages(t *testing.T, of chain.Attempt, others ...chain.Attempt) (int, chain.Status) {
	t.Helper()
	pages := 0
	n.Set(func(f *xrptest.Fault) {
		f.Tamper = func(method string, body []byte) []byte {
			if method == "account_tx" {
				pages++
			}
			return body
		}
	})
	all, err := n.client.Status(t.Context(), append([]chain.Attempt{of}, others...)...)
	require.NoError(t, err)
	return pages, all[0]
}

// TestFN34_StrangersDoNotLengthenTheSearch for the transaction that took a Sequence: one of
// ours is known by its hash, and nothing is listed.
func TestFN34_StrangersDoNotLengthenTheSearch(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	first := n.sign(t, a, o)
	o.Attempt = 2
	second := n.sign(t, a, o)
	require.NoError(t, n.Broadcast(t, second))
	n.crowd(a.Address, 40)
	pages, st := n.pages(t, first, second)
	require.Equal(t, chain.Conflicted, st.State)
	require.Equal(t, second.Tx, st.By)
	require.True(t, st.Final)
	require.Zero(t, pages)
}

// TestFN34_SearchIsBoundedAndGoesOn: where it is none of those that are asked about, each
// look reads a few pages, and the next goes on there. The modelled server's pages are of 3.
func TestFN34_SearchIsBoundedAndGoesOn(t *testing.T) {
	t.Parallel()
	for _, clio := range []bool{false, true} {
		n := openTown(t, func(o *Options) { o.Window = 100 })
		n.Set(func(f *xrptest.Fault) { f.Clio = clio })
		a, to := n.pair(t)
		n.crowd(a.Address, 120) // before it was signed
		n.Mine(100)
		o := n.Order(t, n.intent(a.Address, to, 2))
		first := n.sign(t, a, o)
		o.Attempt = 2
		second := n.sign(t, a, o)
		n.crowd(a.Address, 60)
		require.NoError(t, n.Broadcast(t, second))
		n.crowd(a.Address, 60)
		for look := 1; ; look++ {
			pages, st := n.pages(t, first)
			require.LessOrEqual(t, pages, pagesPerLook)
			if st.State == chain.Conflicted {
				require.Equal(t, second.Tx, st.By)
				break
			}
			require.Less(t, look, 8)
		}
	}
}

// TestFN34_SearchThatBeganTooLateGoesBack: an attempt says how long it can land, not when it
// was signed. A process with a smaller Options.Window begins too late at first.
func TestFN34_SearchThatBeganTooLateGoesBack(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.pair(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	first := n.sign(t, a, o)
	o.Attempt = 2
	second := n.sign(t, a, o)
	require.NoError(t, n.Broadcast(t, second))
	n.Mine(280)
	n.Landed(t, n.intent(a.Address, to, 2), a)
	n.client.o.Window = 1
	var st chain.Status
	for range 3 {
		if _, st = n.pages(t, first); st.State == chain.Conflicted {
			break
		}
	}
	require.Equal(t, second.Tx, st.By)
}
