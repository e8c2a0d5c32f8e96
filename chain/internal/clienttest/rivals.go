package clienttest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
)

// Rivals puts a client to FN34: two attempts of one intent have the same sequence number,
// the second lands, and strangers' payments make the account's list of transactions long.
type Rivals struct {
	Desk
	Intent chain.Intent
	By     chaintest.Account
	// Crowd has strangers pay the account so often.
	Crowd func(times int)
	// Count has the node call a function for each page of the list that it is asked for.
	Count func(page func())
}

// sign makes the two attempts.
func (r Rivals) sign(t testing.TB) (first, second chain.Attempt) {
	t.Helper()
	o := r.Order(t, r.Intent)
	first = r.Sign(t, o, r.By)
	o.Attempt = 2
	return first, r.Sign(t, o, r.By)
}

// look asks for the status of the first attempt, and counts the pages that it takes.
func (r Rivals) look(t testing.TB, first chain.Attempt, others ...chain.Attempt) (chain.Status, int) {
	t.Helper()
	pages := 0
	r.Count(func() { pages++ })
	all, err := r.At.Status(t.Context(), append([]chain.Attempt{first}, others...)...)
	require.NoError(t, err)
	return all[0], pages
}

// Known asks about both attempts. The second is found by its hash, and no list is read.
func (r Rivals) Known(t testing.TB, crowd int) {
	t.Helper()
	first, second := r.sign(t)
	r.Crowd(crowd)
	require.NoError(t, r.Broadcast(t, second))
	r.Crowd(crowd)
	st, pages := r.look(t, first, second)
	require.Equal(t, chain.Conflicted, st.State)
	require.Equal(t, second.Tx, st.By)
	require.True(t, st.Final)
	require.Zero(t, pages)
}

// GoesOn asks about the first attempt alone. Each look reads at most so many pages of the
// list, and goes on where the one before ended. It returns how many looks found the second.
func (r Rivals) GoesOn(t testing.TB, crowd, pages int) (looks int) {
	t.Helper()
	first, second := r.sign(t)
	r.Crowd(crowd)
	require.NoError(t, r.Broadcast(t, second))
	r.Crowd(crowd)
	const most = 20
	for looks = 1; looks < most; looks++ {
		st, read := r.look(t, first)
		require.LessOrEqual(t, read, pages)
		if st.State == chain.Conflicted {
			require.Equal(t, second.Tx, st.By)
			break
		}
	}
	return looks
}

// GoesBack asks about the first attempt after so many blocks. After restart the client
// begins its search too late at first, because an attempt says how long it can land and
// not when it was signed.
func (r Rivals) GoesBack(t testing.TB, blocks int, restart func()) {
	t.Helper()
	first, second := r.sign(t)
	require.NoError(t, r.Broadcast(t, second))
	r.Add(blocks)
	r.Landed(t, r.Intent, r.By)
	restart()
	var st chain.Status
	for range 3 {
		if st, _ = r.look(t, first); st.State == chain.Conflicted {
			break
		}
	}
	require.Equal(t, second.Tx, st.By)
}
