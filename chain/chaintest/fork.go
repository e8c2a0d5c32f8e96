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
	k.rewinds(2, watch())
	tip, err := k.Client.Tip(k.ctx)
	require.NoError(k.t, err)
	require.True(k.t, k.same(tip.Head, k.trail[len(k.trail)-1]))
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
	k.rewinds(1, watch(a))
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
		k.rewinds(depth, watch(a))
	}
	trail, seen := k.trail, k.seen
	k.trail, k.seen = []chain.Block{root}, nil
	k.catchUp(watch(a))
	if k.Histories { // which blocks are in the trail depends on when it was asked for them
		require.True(k.t, k.same(k.trail[len(k.trail)-1], trail[len(trail)-1]))
		unlink := func(all []chain.Transfer) {
			for i := range all {
				all[i].Block.Parent = ""
			}
		}
		unlink(k.seen)
		unlink(seen)
	} else {
		require.Equal(k.t, k.trail, trail)
	}
	require.Equal(k.t, k.seen, seen)
}

// rewinds follows a fork of a depth: exactly the replaced blocks are rewound, those of them that
// are in the trail.
func (k *kit) rewinds(depth int, w chain.Watch) {
	k.t.Helper()
	got := k.catchUp(w)
	if k.Histories {
		require.Positive(k.t, got)
		require.LessOrEqual(k.t, got, depth)
		return
	}
	require.Equal(k.t, depth, got, "exactly the replaced blocks are rewound")
}

// same reports whether two blocks are one. A trail with gaps has parents of its own.
func (k *kit) same(a, b chain.Block) bool {
	if k.Histories {
		a.Parent, b.Parent = "", ""
	}
	return a == b
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
