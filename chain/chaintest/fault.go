package chaintest

import (
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

func faultCases() []testCase {
	return []testCase{
		{"D07_NodeBehindTheTrailIsAnError", nothing, behindTheTrail},
		{"D07_LaggingNodeIsNeverEmpty", canLag, laggingNode},
		{"D07_PartialAnswerIsAnError", canHide, partialAnswer},
		{"D14_FailingNodeIsAnError", canFail, failingNode},
		{"D18_WrongChainIsRefused", canMistake, wrongChain},
		{"EndedContextIsAnError", nothing, endedContext},
	}
}

// behindTheTrail shows the client a block that its node cannot have yet.
func behindTheTrail(k *kit) {
	k.start()
	last := k.trail[0]
	for range 3 {
		last = chain.Block{Height: last.Height + 1, Hash: damaged(last.Hash, len(last.Hash)-1), Parent: last.Hash, Time: last.Time}
		k.trail = append(k.trail, last)
	}
	k.neverEmpty(watch(), chain.ErrBehind)
}

func laggingNode(k *kit) {
	a := k.account().Address
	k.start()
	tx := k.pay(a)
	k.Mine(k.t, 3)
	k.catchUp(watch(a))
	k.only(tx)
	k.Lag(k.t, 2)
	k.neverEmpty(watch(a), chain.ErrBehind)
	k.Lag(k.t, 0)
	require.Zero(k.t, k.catchUp(watch(a)), "a node that was behind rewinds nothing")
	k.only(tx)
}

func partialAnswer(k *kit) {
	a := k.account().Address
	k.start()
	tx := k.pay(a)
	k.Mine(k.t, 1)
	k.Partial(k.t, true)
	k.neverEmpty(watch(a), chain.ErrNode)
	k.Partial(k.t, false)
	k.catchUp(watch(a))
	k.only(tx)
}

func failingNode(k *kit) {
	a := k.account().Address
	k.start()
	k.pay(a)
	k.Mine(k.t, 1)
	k.Fail(k.t, true)
	k.neverEmpty(watch(a), chain.ErrNode)
	_, err := k.Client.Tip(k.ctx)
	require.ErrorIs(k.t, err, chain.ErrNode)
	_, err = k.Client.Status(k.ctx, chain.Attempt{Tx: "00"})
	require.ErrorIs(k.t, err, chain.ErrNode)
	err = k.Client.Broadcast(k.ctx, k.stored(chain.Signed{Tx: "00", Raw: []byte{0}}))
	require.Error(k.t, err)
	if m, ok := k.Client.(chain.Mempool); ok {
		_, err = m.Pending(k.ctx, watch(a))
		require.ErrorIs(k.t, err, chain.ErrNode)
	}
	k.Fail(k.t, false)
	k.catchUp(watch(a))
	require.Len(k.t, k.seen, 1)
}

func wrongChain(k *kit) {
	_, err := k.WrongChain(k.t).Tip(k.ctx)
	require.ErrorIs(k.t, err, chain.ErrWrongNet)
}

func endedContext(k *kit) {
	k.start()
	k.Mine(k.t, 1)
	_, err := k.Client.Tip(k.canceled())
	require.Error(k.t, err)
	s, err := k.Client.Scan(k.canceled(), k.trail, k.few(watch()), 3)
	require.Error(k.t, err)
	require.Empty(k.t, s.Blocks)
	_, err = k.Client.Status(k.canceled(), chain.Attempt{Tx: "00"})
	require.Error(k.t, err)
}
