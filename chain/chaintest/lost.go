package chaintest

import (
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

func lostCases() []testCase {
	return []testCase{
		{"UnknownIsUnknown", nothing, unknownIsUnknown},
		{"StatusKeepsTheOrderAsked", nothing, statusOrder},
		{"BroadcastTwiceIsSuccess", nothing, broadcastTwice},
		{"GarbageIsNotBroadcast", nothing, garbage},
		{"W01_LostAnswerIsNoRejection", canLose, lostAnswer},
		{"W03_ReplacementLandsAndTheFirstIsConflicted", replaces, replacement},
		{"W05_NonceTooLowIsNoProofOfDeath", all(accounts, able[chain.Noncer]("Noncer")), nonceTooLow},
		{"W05_NonceGapIsFilled", all(accounts, able[chain.Noncer]("Noncer")), nonceGap},
		{"R05_SendIsUnminedAndSentAgain", reorgs, unmined},
	}
}

func unknownIsUnknown(k *kit) {
	s := k.sender()
	a, _ := s.attempt(s.order(s.intent(k.Native, k.account().Address)))
	st := k.status(a)
	require.Equal(k.t, chain.Unknown, st.State)
	require.False(k.t, st.Final)
	require.Zero(k.t, st.Cost)
	k.Mine(k.t, 3)
	require.Equal(k.t, chain.Unknown, k.status(a).State, "time alone proves nothing")
	none, err := k.Client.Status(k.ctx)
	require.NoError(k.t, err)
	require.Empty(k.t, none)
}

func statusOrder(k *kit) {
	s, r := k.sender(), k.sender()
	to := k.account().Address
	a, _ := s.attempt(s.order(s.intent(k.Native, to)))
	b, _ := r.attempt(r.order(r.intent(k.Native, to)))
	require.NoError(k.t, k.broadcast(b))
	k.Mine(k.t, 1)
	for _, order := range [][]chain.Attempt{{a, b}, {b, a}, {b, b, a}} {
		all, err := k.Client.Status(k.ctx, order...)
		require.NoError(k.t, err)
		require.Len(k.t, all, len(order))
		for i, x := range order {
			require.Equal(k.t, x.Tx == b.Tx, all[i].State == chain.Included)
		}
	}
}

func broadcastTwice(k *kit) {
	s, to := k.sender(), k.account().Address
	k.start()
	a, _ := s.attempt(s.order(s.intent(k.Native, to)))
	require.NoError(k.t, k.broadcast(a))
	require.NoError(k.t, k.broadcast(a), "known to the mempool")
	k.landed(a)
	require.NoError(k.t, k.broadcast(a), "in a block")
	k.Mine(k.t, 2)
	require.NoError(k.t, k.broadcast(a), "in an old block")
	k.catchUp(watch(to))
	k.only(a.Tx)
}

func garbage(k *kit) {
	s := k.sender()
	a, _ := s.attempt(s.order(s.intent(k.Native, k.account().Address)))
	for _, raw := range [][]byte{nil, {0}, []byte("garbage"), a.Raw[:len(a.Raw)/2]} {
		require.Error(k.t, k.broadcast(chain.Attempt{Tx: a.Tx, Raw: raw}))
	}
	require.Equal(k.t, chain.Unknown, k.status(a).State)
}

func lostAnswer(k *kit) {
	s, to := k.sender(), k.account().Address
	k.start()
	a, _ := s.attempt(s.order(s.intent(k.Native, to)))
	k.LoseAnswer(k.t)
	err := k.broadcast(a)
	require.Error(k.t, err)
	require.NotErrorIs(k.t, err, chain.ErrRejected, "an answer that was lost says nothing")
	require.NoError(k.t, k.broadcast(a), "the same bytes again")
	k.landed(a)
	k.catchUp(watch(to))
	k.only(a.Tx)
}

func replacement(k *kit) {
	s, to := k.sender(), k.account().Address
	k.start()
	o := s.order(s.intent(k.Native, to))
	first, u1 := s.attempt(o)
	o.Attempt = 2
	second, u2 := s.attempt(o)
	require.NotEqual(k.t, first.Tx, second.Tx)
	require.Equal(k.t, u1.Spends, u2.Spends, "attempts of one intent exclude each other")
	require.Greater(k.t, u2.MaxCost, u1.MaxCost)
	if k.Crowded != nil {
		k.Crowded(k.t, true)
	}
	require.NoError(k.t, k.broadcast(first))
	require.NoError(k.t, k.broadcast(second))
	if k.Crowded != nil {
		k.Crowded(k.t, false)
	}
	k.landed(second)
	dead := k.status(first)
	require.Equal(k.t, chain.Conflicted, dead.State)
	require.Equal(k.t, k.status(second).Block, dead.Block)
	if dead.By != "" {
		require.Equal(k.t, second.Tx, dead.By)
	}
	k.catchUp(watch(to))
	require.Len(k.t, k.seen, 1, "one of the two")
	k.only(second.Tx)
	if k.Finality >= 0 && k.Finality <= 100 {
		k.Mine(k.t, int(k.Finality)+1)
		require.True(k.t, k.status(first).Final, "a final conflict is proof of death")
	}
}

func nonceTooLow(k *kit) {
	s, to := k.sender(), k.account().Address
	o := s.order(s.intent(k.Native, to))
	first, _ := s.attempt(o)
	o.Intent.To = k.account().Address
	other, _ := s.attempt(o)
	require.NoError(k.t, k.broadcast(first))
	k.landed(first)
	err := k.broadcast(other)
	require.Error(k.t, err, "it did not get in")
	require.NotErrorIs(k.t, err, chain.ErrRejected, "a reorg can let it in again")
	st := k.status(other)
	require.Equal(k.t, chain.Conflicted, st.State)
	require.Equal(k.t, k.status(first).Block.Hash, st.Block.Hash)
}

func nonceGap(k *kit) {
	s, to := k.sender(), k.account().Address
	in := s.intent(k.Native, to)
	in.Amount /= 2
	o := s.order(in)
	first, _ := s.attempt(o)
	o.Nonce++
	second, _ := s.attempt(o)
	if err := k.broadcast(second); err != nil {
		require.NotErrorIs(k.t, err, chain.ErrRejected)
	}
	k.Mine(k.t, 1)
	require.NotEqual(k.t, chain.Included, k.status(second).State)
	require.NotEqual(k.t, chain.Conflicted, k.status(second).State)
	require.NoError(k.t, k.broadcast(first))
	if k.OneWaits {
		k.Mine(k.t, 1)
	}
	require.NoError(k.t, k.broadcast(second))
	k.Mine(k.t, 2)
	require.Equal(k.t, chain.Included, k.status(first).State)
	require.Equal(k.t, chain.Included, k.status(second).State)
}

func unmined(k *kit) {
	s, to := k.sender(), k.account().Address
	k.Mine(k.t, 1)
	k.start()
	a, _ := s.attempt(s.order(s.intent(k.Native, to)))
	require.NoError(k.t, k.broadcast(a))
	before := k.landed(a)
	k.catchUp(watch(to))
	k.Reorg(k.t, 1, a.Tx)
	st := k.status(a)
	require.NotEqual(k.t, chain.Included, st.State)
	require.NotEqual(k.t, chain.Conflicted, st.State, "nothing has taken its place")
	require.NoError(k.t, k.broadcast(a), "the same bytes again")
	after := k.landed(a)
	require.NotEqual(k.t, before.Block.Hash, after.Block.Hash)
	require.Equal(k.t, 1, k.catchUp(watch(to)))
	k.only(a.Tx)
}
