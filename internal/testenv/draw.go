package testenv

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
)

// drawEnv is the variable with the number that draws. Where it is not set, nothing is left out.
const drawEnv = "CRYPTOPAY_TEST_DRAW"

// Draw skips a test in all but about one of n runs. A test calls it that tries on one more server,
// node or page what another test tries elsewhere. CRYPTOPAY_TEST_DRAW, a number, and the test's name
// decide whether it is skipped. Without that variable it never is.
func Draw(t testing.TB, n int) {
	t.Helper()
	if dice := drawn(t); dice != nil && dice.IntN(n) != 0 {
		t.Skipf("%s=%s draws other tests; without it all go on", drawEnv, os.Getenv(drawEnv))
	}
}

// Drawn returns n of all, in their order. The same number and the test's name decide which. Without
// that variable it returns all.
func Drawn[T any](t testing.TB, n int, all []T) []T {
	t.Helper()
	dice := drawn(t)
	if dice == nil || n >= len(all) {
		return all
	}
	at := dice.Perm(len(all))[:n]
	slices.Sort(at)
	out := make([]T, n)
	for i, k := range at {
		out[i] = all[k]
	}
	t.Logf("%s=%s draws those at %v of %d", drawEnv, os.Getenv(drawEnv), at, len(all))
	return out
}

// drawn is the dice of a test, nil where nothing is left out.
func drawn(t testing.TB) *rand.Rand {
	t.Helper()
	text := os.Getenv(drawEnv)
	if text == "" {
		return nil
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", drawEnv, err)
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}
