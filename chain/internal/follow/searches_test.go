package follow_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// kept counts the searches of n that do not begin anew.
func kept(s *follow.Searches[int], n int) (count int) {
	for i := range n {
		if s.Begin(strconv.Itoa(i), -1) != -1 {
			count++
		}
	}
	return count
}

func TestFN34_SearchGoesOnWhereItWasKept(t *testing.T) {
	t.Parallel()
	var s follow.Searches[int]
	s.End("a")
	require.Equal(t, 3, s.Begin("a", 3))
	require.Equal(t, 4, s.Begin("a", 4), "to begin keeps nothing")
	s.Keep("a", 7)
	s.Keep("b", 8)
	require.Equal(t, 7, s.Begin("a", 3))
	s.Keep("a", 9)
	require.Equal(t, 9, s.Begin("a", 3))
	s.End("a")
	require.Equal(t, 3, s.Begin("a", 3))
	require.Equal(t, 8, s.Begin("b", 3), "another search is left alone")
}

// TestFN34_ManySearchesLoseOneAtATime: where no more are kept, only a new one costs another
// its place.
func TestFN34_ManySearchesLoseOneAtATime(t *testing.T) {
	t.Parallel()
	var s follow.Searches[int]
	for i := range follow.MaxSearches {
		s.Keep(strconv.Itoa(i), i)
	}
	const all = follow.MaxSearches + 100
	require.Equal(t, follow.MaxSearches, kept(&s, all))
	s.Keep("3", 4)
	require.Equal(t, 4, s.Begin("3", -1))
	require.Equal(t, follow.MaxSearches, kept(&s, all), "one that goes on")
	s.End("4")
	s.End("4")
	require.Equal(t, follow.MaxSearches-1, kept(&s, all), "one that ends")
	s.Keep("4", 4)
	require.Equal(t, follow.MaxSearches, kept(&s, all))
	for i := follow.MaxSearches; i < all; i++ {
		s.Keep(strconv.Itoa(i), i)
		require.Equal(t, i, s.Begin(strconv.Itoa(i), -1))
		require.Equal(t, follow.MaxSearches, kept(&s, all), "one more")
	}
}
