// Package fsmtest checks a machine in its domain's tests: that its table is
// sound, that the whole State × Trigger product is as reviewed, and that the
// document made from it is not stale. `go test ./<domain>/ -run Machine -update`
// writes both files anew.
package fsmtest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/fsm"
)

var update = flag.Bool("update", false, "write MACHINE.md and golden files anew")

// Walk checks the machine, asks it every State × Trigger × State question, and
// compares the product with the golden file and the rendering with document.
func Walk[S, T ~string](t *testing.T, m *fsm.Machine[S, T], golden, document string) {
	t.Helper()
	require.NoError(t, m.Check())
	for _, from := range append([]S{""}, m.States...) {
		for _, trigger := range m.Triggers() {
			targets := m.Targets(from, trigger)
			require.Equal(t, len(targets) > 0, m.Can(from, trigger))
			for _, to := range m.States {
				if err := m.Move(from, trigger, to); slices.Contains(targets, to) {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, fsm.ErrIllegal)
				}
			}
			next, err := m.Next(from, trigger)
			switch len(targets) {
			case 0:
				require.ErrorIs(t, err, fsm.ErrIllegal)
			case 1:
				require.NoError(t, err)
				require.Equal(t, targets[0], next)
			default:
				require.Error(t, err)
			}
		}
	}
	Golden(t, golden, m.Product())
	Golden(t, document, m.Markdown())
}

// Golden compares text with a file, or writes the file with -update.
func Golden(t *testing.T, file, text string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err, "run the test with -update to write it")
	require.Equal(t, string(want), text, "%s is stale: run the test with -update and review what changed", file)
}
