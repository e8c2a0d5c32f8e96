package cryptopay_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What is logged has a name that stays: lower case, with underscores. An operator's rules
// look for it.
func TestLogEventsHaveNames(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	levels := regexp.MustCompile(`^(Debug|Info|Warn|Error)(Context)?$|^(Log|LogAttrs)$`)
	found := 0
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && strings.HasPrefix(d.Name(), "."):
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(path) //nolint:gosec // of this module
		if err != nil {
			return err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, path, src, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		text := func(n ast.Node) string {
			return string(src[files.Position(n.Pos()).Offset:files.Position(n.End()).Offset])
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			sel, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !levels.MatchString(sel.Sel.Name) || !strings.HasSuffix(strings.ToLower(strings.TrimSuffix(text(sel.X), "()")), "log") {
				return true
			}
			for _, arg := range call.Args {
				if lit, ok := arg.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					event, err := strconv.Unquote(lit.Value)
					require.NoError(t, err)
					require.Regexp(t, name, event, "%s", files.Position(lit.Pos()))
					found++
					break
				}
			}
			return true
		})
		return nil
	})
	require.NoError(t, err)
	require.Greater(t, found, 100)
}
