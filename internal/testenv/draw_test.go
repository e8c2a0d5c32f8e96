package testenv

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// named is a test of another name, which may be skipped.
type named struct {
	testing.TB
	name    string
	skipped bool
}

func (n *named) Name() string         { return n.name }
func (n *named) Skipf(string, ...any) { n.skipped = true }

// Each number draws about one of four tests, over time every test is drawn, and the same number
// draws the same ones.
func TestDraw(t *testing.T) {
	runs := func(draw, test int) bool {
		t.Setenv(drawEnv, fmt.Sprint(draw))
		n := &named{TB: t, name: fmt.Sprint("TestSomething/", test)}
		Draw(n, 4)
		return !n.skipped
	}
	const draws, tests = 60, 40
	ever := map[int]int{}
	for draw := range draws {
		some := 0
		for test := range tests {
			once, again := runs(draw, test), runs(draw, test)
			require.Equal(t, once, again)
			if once {
				some++
				ever[test]++
			}
		}
		require.Positive(t, some)
		require.Less(t, some, tests)
	}
	require.Len(t, ever, tests)
	for test, n := range ever {
		require.Less(t, n, draws/2, "test %d", test)
	}
	t.Setenv(drawEnv, "")
	n := &named{TB: t, name: "TestSomething/1"}
	for range 10 {
		Draw(n, 4)
		require.False(t, n.skipped)
	}
}

func TestDrawn(t *testing.T) {
	all := []string{"a", "b", "c", "d", "e"}
	ever := map[string]bool{}
	for draw := range 40 {
		t.Setenv(drawEnv, fmt.Sprint(draw))
		got := Drawn(t, 2, all)
		require.Len(t, got, 2)
		require.True(t, slices.IsSorted(got))
		require.NotEqual(t, got[0], got[1])
		require.Equal(t, got, Drawn(t, 2, all))
		require.Equal(t, all, Drawn(t, 5, all))
		ever[got[0]], ever[got[1]] = true, true
	}
	require.Len(t, ever, len(all))
	t.Setenv(drawEnv, "")
	require.Equal(t, all, Drawn(t, 2, all))
}
