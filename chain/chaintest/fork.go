package chaintest

import (
	"slices"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

func forkCases() []testCase {
	return []testCase{
		{"R01_ForkIsFoundByHash", reorgs, forkByHash},
		{"R01_DroppedTransferIsGone", reorgs, droppedIsGone},
		{"R01_MovedTransferMoves", all(reorgs, returns), movedMoves},
		{"R01_EveryDepthEqualsAFreshScan", reorgs, everyDepth},
		{"R02_OrdinalsOutliveAReorg", all(reorgs, returns, batches), ordinalsOutlive},
		{"R03_DeepForkIsAnError", reorgs, deepFork},
	}
}

func forkByHash(k *kit) {
	k.start()
	k.Mine(k.t, 4)
	k.catchUp(watch())
	old := k.trail[len(k.trail)-1]
	k.Reorg(k.t, 2)
	require.Equal(k.t, 2, k.catchUp(watch()), "exactly the replaced blocks are rewound")
	tip, err := k.Client.Tip(k.ctx)
	require.NoError(k.t, err)
	require.Equal(k.t, tip.Head, k.trail[len(k.trail)-1])
	require.NotEqual(k.t, old.Hash, tip.Head.Hash)
}

func droppedIsGone(k *kit) {
	a := k.account().Address
	k.start()
	k.Mine(k.t, 1)
	stays := k.pay(a)
	k.Mine(k.t, 1)
	gone := k.pay(a)
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	k.only(gone)
	k.Reorg(k.t, 1, gone)
	k.Mine(k.t, 2)
	require.Equal(k.t, 1, k.catchUp(watch(a)))
	require.Empty(k.t, k.of(gone))
	k.only(stays)
}

func movedMoves(k *kit) {
	a := k.account().Address
	k.start()
	k.Mine(k.t, 1)
	tx := k.pay(a)
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	before := k.only(tx)
	k.Reorg(k.t, 1)
	k.catchUp(watch(a))
	require.Empty(k.t, k.of(tx), "it is in no block now")
	k.Mine(k.t, 1)
	k.catchUp(watch(a))
	after := k.only(tx)
	require.NotEqual(k.t, before.Block.Hash, after.Block.Hash)
	require.Equal(k.t, before.Ordinal, after.Ordinal)
	before.Block = after.Block
	require.Equal(k.t, before, after, "all else is the same")
}

// everyDepth follows forks of growing depth, and compares with a scan that
// never saw them.
func everyDepth(k *kit) {
	a := k.account().Address
	k.start()
	root := k.trail[0]
	for depth := 1; depth <= 5; depth++ {
		var drop []string
		for i := range depth {
			tx := k.pay(a)
			k.Mine(k.t, 1)
			if i%2 == 0 {
				drop = append(drop, tx)
			}
		}
		k.catchUp(watch(a))
		k.Reorg(k.t, depth, drop...)
		k.Mine(k.t, 1)
		require.Equal(k.t, depth, k.catchUp(watch(a)))
	}
	trail, seen := k.trail, k.seen
	k.trail, k.seen = []chain.Block{root}, nil
	k.catchUp(watch(a))
	require.Equal(k.t, k.trail, trail)
	require.Equal(k.t, k.seen, seen)
}

func ordinalsOutlive(k *kit) {
	k.start()
	k.Mine(k.t, 1)
	a := k.account().Address
	first := k.Pay(k.t, Payment{To: a, Currency: k.batchCurrency(), Amount: k.Amount})
	tx, x, y, _ := k.batch()
	k.Mine(k.t, 1)
	w := watch(a, x, y)
	k.catchUp(w)
	before := k.of(tx)
	require.Len(k.t, before, 3)
	// Without the other one its place in the block, and its logs' numbers in the
	// block, are others.
	k.Reorg(k.t, 1, first)
	other := k.Pay(k.t, Payment{To: a, Currency: k.Native, Amount: k.Amount})
	k.Mine(k.t, 1)
	k.catchUp(w)
	k.only(other)
	after := k.of(tx)
	require.Len(k.t, after, 3)
	byOrdinal := func(p, q chain.Transfer) int { return p.Ordinal - q.Ordinal }
	slices.SortFunc(before, byOrdinal)
	slices.SortFunc(after, byOrdinal)
	for i := range before {
		require.Equal(k.t, before[i].Ordinal, after[i].Ordinal)
		require.Equal(k.t, before[i].To, after[i].To)
		require.True(k.t, before[i].Amount.Equal(after[i].Amount))
	}
}

func deepFork(k *kit) {
	k.Mine(k.t, 2)
	k.start()
	k.Mine(k.t, 2)
	k.catchUp(watch())
	k.Reorg(k.t, 3)
	k.Mine(k.t, 1)
	k.neverEmpty(watch(), chain.ErrDeepFork)
}
