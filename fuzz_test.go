package cryptopay_test

import (
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFuzzTargetsAreListed: docs/testing.md says of every fuzz target what it is
// held to, and of no other.
func TestFuzzTargetsAreListed(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("docs/testing.md")
	require.NoError(t, err)
	var listed, found []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([a-z0-9/]+/Fuzz\\w+)` \\|").FindAllStringSubmatch(string(doc), -1) {
		listed = append(listed, m[1])
	}
	target := regexp.MustCompile(`(?m)^func (Fuzz\w+)\(`)
	require.NoError(t, fs.WalkDir(os.DirFS("."), ".", func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && len(file) > 1 && file[0] == '.' {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, "_test.go") {
			return nil
		}
		b, err := os.ReadFile(file)
		for _, m := range target.FindAllStringSubmatch(string(b), -1) {
			found = append(found, path.Dir(file)+"/"+m[1])
		}
		return err
	}))
	require.ElementsMatch(t, found, listed)
}
