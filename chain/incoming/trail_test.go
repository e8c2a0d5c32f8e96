package incoming_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
)

func TestTrailIsStoredShortAndWhole(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	for _, want := range [][]chain.Block{
		nil,
		{{Height: 7, Hash: "h7", Parent: "h6", Time: at}},
		{{Height: 0, Hash: "g"}, {Height: 1, Hash: "h1", Parent: "g", Time: at}, {Height: 5, Hash: "h5", Parent: "h1", Time: at.Add(time.Second)}},
		{{Height: 3, Hash: "h3", Parent: "h2", Time: at}, {Height: 4, Hash: "h4", Parent: "h3"}},
	} {
		trail, err := incoming.NewTrail(want)
		require.NoError(t, err)
		got, err := trail.Blocks()
		require.NoError(t, err)
		require.Equal(t, want, got)
		for i, b := range want {
			height, ok := trail.Height(b.Hash)
			require.True(t, ok)
			require.Equal(t, b.Height, height)
			require.Equal(t, i == len(want)-1, trail.Ends(b.Hash))
		}
		for _, stranger := range []string{"", "h", "1", "h6", "h2"} {
			_, ok := trail.Height(stranger)
			require.False(t, ok, stranger)
			require.False(t, trail.Ends(stranger), stranger)
		}
	}
	for _, wrong := range [][]chain.Block{
		{{Height: 1, Hash: "a"}, {Height: 2, Hash: "b", Parent: "other"}},
		{{Height: 1, Hash: "a b"}},
		{{Height: 1, Hash: "a;b"}},
		{{Height: 1, Hash: "a", Parent: "x;5"}},
		{{Height: 1, Hash: "a", Parent: "x b "}},
	} {
		_, err := incoming.NewTrail(wrong)
		require.Error(t, err)
	}
	for _, wrong := range []incoming.Trail{"p;x y", "p;1", "p;1 h", "p;1 h x"} {
		_, err := wrong.Blocks()
		require.Error(t, err, wrong)
	}
}
