package stellar

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/stellar/stellartest"
)

// crowd has strangers pay an account so often, each a transaction in its list, in ledgers
// of a hundred.
func (n *town) crowd(to chain.Address, times int) {
	for i := range times {
		n.Send(stellartest.Pay{To: string(to), Stroops: 1})
		if i%100 == 99 {
			n.Mine(1)
		}
	}
	n.Mine(1)
}

// pages counts the pages of an account's transactions that a status takes.
func (n *town) pages(t *testing.T, of chain.Attempt, others ...chain.Attempt) (int, chain.Status) {
	t.Helper()
	pages := 0
	n.Set(func(f *stellartest.Fault) {
		f.Tamper = func(path string, body []byte) []byte {
			if strings.HasSuffix(path, "/transactions") {
				pages++
			}
			return body
		}
	})
	all, err := n.client.Status(t.Context(), append([]chain.Attempt{of}, others...)...)
	require.NoError(t, err)
	return pages, all[0]
}

// TestFN34_StrangersDoNotLengthenTheSearch for the transaction that took a number: one of
// ours is known by its hash, and nothing is listed.
func TestFN34_StrangersDoNotLengthenTheSearch(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	first := n.sign(t, a, o)
	n.crowd(a.Address, 1000)
	o.Attempt = 2
	second := n.sign(t, a, o)
	require.NoError(t, n.Broadcast(t, second))
	n.crowd(a.Address, 1000)
	pages, st := n.pages(t, first, second)
	require.Equal(t, chain.Conflicted, st.State)
	require.Equal(t, second.Tx, st.By)
	require.True(t, st.Final)
	require.Zero(t, pages)
}

// TestFN34_SearchIsBoundedAndGoesOn: where it is none of those that are asked about, each
// look reads a few pages, from the ledgers on at which the attempt was signed, and the next
// goes on there.
func TestFN34_SearchIsBoundedAndGoesOn(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	n.crowd(a.Address, 1000) // before it was signed: not looked at
	n.Mine(200)
	o := n.Order(t, n.intent(a.Address, to, 2))
	first := n.sign(t, a, o)
	o.Attempt = 2
	second := n.sign(t, a, o)
	n.crowd(a.Address, 2000)
	require.NoError(t, n.Broadcast(t, second))
	n.crowd(a.Address, 2000)
	for look := 1; ; look++ {
		pages, st := n.pages(t, first)
		require.LessOrEqual(t, pages, pagesPerLook)
		if st.State == chain.Conflicted {
			require.Equal(t, second.Tx, st.By)
			require.Equal(t, 3, look, "2000 transactions are ten pages")
			break
		}
		require.Less(t, look, 4)
	}
}

// TestFN34_SearchThatBeganTooLateGoesBack: the attempt says how long it can land, not when it
// was signed. A process with a shorter Options.Expiry begins too late at first.
func TestFN34_SearchThatBeganTooLateGoesBack(t *testing.T) {
	t.Parallel()
	n := openTown(t)
	a, to := n.two(t)
	o := n.Order(t, n.intent(a.Address, to, 2))
	first := n.sign(t, a, o)
	o.Attempt = 2
	second := n.sign(t, a, o)
	require.NoError(t, n.Broadcast(t, second))
	n.Mine(300)
	n.Landed(t, n.intent(a.Address, to, 2), a)
	n.client.o.Expiry = 0
	var st chain.Status
	for range 3 {
		if _, st = n.pages(t, first); st.State == chain.Conflicted {
			break
		}
	}
	require.Equal(t, second.Tx, st.By)
}
