package planted_test

import (
	"encoding/json"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/simulation/internal/planted"
)

const root = "../../.."

// TestPlanted_EachStillFits holds the table against the code, so that it cannot rot:
// what a bug replaces is there once, and the file is Go with it.
func TestPlanted_EachStillFits(t *testing.T) {
	t.Parallel()
	ids := map[string]bool{}
	for _, b := range planted.All() {
		require.False(t, ids[b.ID], "%s is there twice", b.ID)
		ids[b.ID] = true
		require.NotEmpty(t, b.What, b.ID)
		require.Equal(t, b.Test == "", b.Package == "", "%s: a test is named with its package", b.ID)
		text, err := b.Mutate(root)
		require.NoError(t, err)
		if filepath.Ext(b.File) == ".go" {
			_, err = parser.ParseFile(token.NewFileSet(), b.File, text, parser.SkipObjectResolution)
			require.NoError(t, err, b.ID)
		}
	}
	require.GreaterOrEqual(t, len(ids), 60)
}

// TestPlanted_RemovalsNameTheirTest: the test that a removal names is there, and so is
// its row in docs/evidence/faults.md.
func TestPlanted_RemovalsNameTheirTest(t *testing.T) {
	t.Parallel()
	faults, err := os.ReadFile(filepath.Join(root, "docs", "evidence", "faults.md"))
	require.NoError(t, err)
	for _, b := range planted.Removals() {
		require.NotEmpty(t, b.Test, "%s: a removal names its test", b.ID)
		require.Regexp(t, `^F[A-Z][0-9]{2}(-[a-z0-9-]+)?$`, b.ID)
		require.Contains(t, string(faults), "| "+b.ID[:4]+" ", "%s has no row in docs/evidence/faults.md", b.ID)
		requireTest(t, b)
	}
}

// TestPlanted_OmissionsHaveTheirRow: each omission has a row in docs/evidence/omissions.md, and the
// test that it names is there.
func TestPlanted_OmissionsHaveTheirRow(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(root, "docs", "evidence", "omissions.md"))
	require.NoError(t, err)
	require.NotEmpty(t, planted.Omissions())
	for _, b := range planted.Omissions() {
		require.Regexp(t, `^omit(-[a-z0-9]+)+$`, b.ID)
		require.Contains(t, string(page), "| "+strings.TrimPrefix(b.ID, "omit-")+" |", "%s has no row in docs/evidence/omissions.md", b.ID)
		requireTest(t, b)
	}
}

// requireTest holds the test that a bug names against the files of its package.
func requireTest(t *testing.T, b planted.Bug) {
	t.Helper()
	if b.Test == "" {
		return
	}
	name, _, _ := strings.Cut(b.Test, "/")
	files, err := filepath.Glob(filepath.Join(root, filepath.FromSlash(b.Package), "*_test.go"))
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "func "+name+"(")
	}), "%s: no test %s in %s", b.ID, name, b.Package)
}

// TestPlanted_Overlay writes what the go command reads.
func TestPlanted_Overlay(t *testing.T) {
	t.Parallel()
	abs, err := filepath.Abs(root)
	require.NoError(t, err)
	b := planted.All()[0]
	name, err := b.Overlay(abs, t.TempDir())
	require.NoError(t, err)
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	var list struct{ Replace map[string]string }
	require.NoError(t, json.Unmarshal(text, &list))
	instead, err := os.ReadFile(list.Replace[filepath.Join(abs, b.File)])
	require.NoError(t, err)
	require.Contains(t, string(instead), b.New)

	b.Old = "no such line"
	_, err = b.Mutate(root)
	require.ErrorContains(t, err, "0 times")
}
