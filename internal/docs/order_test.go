package docs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOrderOnThePage: the page about embedding prints examples/order as the file is.
func TestOrderOnThePage(t *testing.T) {
	t.Parallel()
	const name = "examples/order/order.go"
	page := filepath.Join(root, "docs/embedding.md")
	program, err := os.ReadFile(filepath.Join(root, name))
	require.NoError(t, err)
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	const begin, end = "```go\n// Package order ", "```\n"
	before, rest, ok := strings.Cut(string(text), begin)
	require.True(t, ok, "the page has the program")
	shown, after, ok := strings.Cut(rest, end)
	require.True(t, ok)
	want := strings.TrimPrefix(string(program), "// Package order ")
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(before+begin+want+end+after), 0o644))
		return
	}
	require.Equal(t, want, shown, "go test ./internal/docs -run TestOrderOnThePage -update writes it anew")
}
