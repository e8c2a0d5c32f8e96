//go:build unix

package keys_test

import (
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// seedTo names the file that a child of TestSeedFileIsWholeOrNotThere writes.
const seedTo = "CRYPTOPAY_TEST_SEED_TO"

// TestSeedFileIsWholeOrNotThere: on a disk that takes not a byte more, saving a seed
// fails, and no file has its name.
func TestSeedFileIsWholeOrNotThere(t *testing.T) {
	if file := os.Getenv(seedTo); file != "" {
		signal.Ignore(syscall.SIGXFSZ)
		seed, random := newSeed(t), rand.NewChaCha8([32]byte{3})
		require.ErrorIs(t, seed.SaveQuick(file, passphrase, random), syscall.EFBIG)
		return
	}
	t.Parallel()
	dir := t.TempDir()
	child := exec.CommandContext(t.Context(), "sh", "-c", `ulimit -f 0; exec "$0" "$@"`,
		os.Args[0], "-test.run=^TestSeedFileIsWholeOrNotThere$")
	child.Env = append(os.Environ(), seedTo+"="+filepath.Join(dir, "seed"))
	out, err := child.CombinedOutput()
	require.NoError(t, err, "%s", out)
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}
