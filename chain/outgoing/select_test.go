package outgoing

import (
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
)

func drawSelection(t *rapid.T) selection {
	worth := rapid.SliceOfN(rapid.Int64Range(-50, 2000), 0, 12).Draw(t, "worth")
	s := selection{
		need:   ledger.Amount(rapid.Int64Range(1, 6000).Draw(t, "need")),
		change: ledger.Amount(rapid.Int64Range(0, 60).Draw(t, "change")),
		least:  ledger.Amount(rapid.Int64Range(0, 100).Draw(t, "least")),
		most:   rapid.IntRange(0, 12).Draw(t, "most"),
		spare:  ledger.Amount(rapid.Int64Range(0, 200).Draw(t, "spare")),
	}
	for _, w := range worth {
		s.worth = append(s.worth, ledger.Amount(w))
	}
	return s
}

// subsets calls f with each set of worthy coins that is not too many.
func (s *selection) subsets(f func(count int, sum ledger.Amount)) {
	for set := range uint(1) << len(s.worth) {
		var sum ledger.Amount
		good := bits.OnesCount(set) <= s.most
		for i, w := range s.worth {
			if set>>i&1 == 1 {
				sum += w
				good = good && w > 0
			}
		}
		if good {
			f(bits.OnesCount(set), sum)
		}
	}
}

// TestSelectionIsAsGoodAsTryingAll: a choice is found where there is one, it is
// enough, it leaves no change where that takes at most one coin more, and else takes as
// few coins as it can.
func TestSelectionIsAsGoodAsTryingAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, asGoodAsTryingAll)
}

func asGoodAsTryingAll(t *rapid.T) {
	s := drawSelection(t)
	limit := s.need + min(max(s.change+s.least-1, 0), s.spare)
	bare, withChange := len(s.worth)+1, len(s.worth)+1
	var nearest ledger.Amount
	s.subsets(func(count int, sum ledger.Amount) {
		if sum >= s.need {
			bare = min(bare, count)
		}
		if sum >= s.need+s.change+s.least {
			withChange = min(withChange, count)
		}
	})
	s.subsets(func(count int, sum ledger.Amount) {
		if sum >= s.need && sum <= limit && count <= withChange+1 && (nearest == 0 || sum < nearest) {
			nearest = sum
		}
	})
	got := s.pick()
	require.Equal(t, got, s.pick(), "the same for the same coins")
	if bare > len(s.worth) {
		require.Nil(t, got)
		return
	}
	var sum ledger.Amount
	for i, p := range got {
		require.True(t, i == 0 || got[i-1] < p, "each once, ascending")
		require.Positive(t, s.worth[p], "a coin that costs more than it brings is left")
		sum += s.worth[p]
	}
	require.GreaterOrEqual(t, sum, s.need)
	require.LessOrEqual(t, len(got), s.most)
	if nearest > 0 {
		require.Equal(t, nearest, sum, "without change, and as near as can be")
		return
	}
	if withChange <= len(s.worth) {
		require.Len(t, got, withChange, "and nothing is given away that change could keep")
		return
	}
	require.Len(t, got, bare)
}

// FuzzSelection is the same with a fuzzer's choices.
func FuzzSelection(f *testing.F) {
	for seed := range uint64(4) {
		choices := make([]byte, 1024)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(choices)
		f.Add(choices)
	}
	f.Fuzz(rapid.MakeFuzz(asGoodAsTryingAll))
}

// TestSelectionKeepsLargeCoinsFree: the smallest coin that does is taken, not
// the largest.
func TestSelectionKeepsLargeCoinsFree(t *testing.T) {
	t.Parallel()
	s := selection{worth: []ledger.Amount{100_000, 50_000, 9_000, 5_000, 400}, need: 4_000, change: 30, least: 300, most: 5, spare: 100}
	require.Equal(t, []int{3}, s.pick())
	s.need = 5_500
	require.Equal(t, []int{2}, s.pick())
	s.need = 58_910
	require.Equal(t, []int{1, 2}, s.pick(), "what is over is less than change costs")
	s.need = 52_000
	require.Equal(t, []int{0}, s.pick(), "one coin is better than two")
	s.need = 1_000_000
	require.Nil(t, s.pick())
}

// TestSelectionGivesLittleAway: where an output must hold a million, coins of just a little
// less above the need are none that fit; where no others are, they are taken.
func TestSelectionGivesLittleAway(t *testing.T) {
	t.Parallel()
	s := selection{worth: []ledger.Amount{9_000_000, 5_900_000, 400_000}, need: 5_000_000, change: 3_000, least: 1_000_000, most: 5, spare: 9_000}
	require.Equal(t, []int{0}, s.pick(), "with change, and not 900000 too many")
	s.worth = s.worth[1:]
	require.Equal(t, []int{0, 1}, s.pick(), "one more, which makes change possible")
	s.worth = s.worth[:1]
	require.Equal(t, []int{0}, s.pick(), "there is no other way")
}

// TestFN02_ManyCoinsInThePlaceOfChange: seventeen small coins would save the change, and
// cost ten times what it costs.
func TestFN02_ManyCoinsInThePlaceOfChange(t *testing.T) {
	t.Parallel()
	s := selection{worth: []ledger.Amount{40_000, 40_000}, need: 79_000, change: 30, least: 300, most: 200, spare: 100}
	for range 20 {
		s.worth = append(s.worth, 2_300)
	}
	require.Equal(t, []int{0, 1}, s.pick())
}

// TestSelectionIsBounded: coins of even worth never come to an odd need, and
// there are more ways to try than anybody has time for.
func TestSelectionIsBounded(t *testing.T) {
	t.Parallel()
	s := selection{need: 1_000_000_007, least: 1, most: 200}
	for i := range maxCandidates {
		s.worth = append(s.worth, ledger.Amount(20_000_000-2*i*i))
	}
	require.Nil(t, s.exact(s.most))
	require.Len(t, s.pick(), 51)
}
