package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var eventName = regexp.MustCompile(`^[a-z]+(_[a-z]+)*$`)

// warnings are the events that the library's packages log as WARN or ERROR, each with a
// place where one does. The signer's are on its own page.
func warnings(t *testing.T) map[string]string {
	t.Helper()
	out, fset := map[string]string{}, token.NewFileSet()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root:
			if strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"internal", "examples", "testdata", "simulation", "cryptopaytest", "signerd"}, d.Name()) {
				return fs.SkipDir
			}
			return nil
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			fun, ok := call.Fun.(*ast.SelectorExpr)
			if !ok || !slices.Contains([]string{"Warn", "WarnContext", "Error", "ErrorContext"}, fun.Sel.Name) {
				return true
			}
			at := 0
			if strings.HasSuffix(fun.Sel.Name, "Context") {
				at = 1
			}
			if len(call.Args) > at {
				if lit, ok := call.Args[at].(*ast.BasicLit); ok && lit.Kind == token.STRING {
					if s, err := strconv.Unquote(lit.Value); err == nil && eventName.MatchString(s) {
						out[s] = fset.Position(lit.Pos()).String()
					}
				}
			}
			return true
		})
		return nil
	}))
	require.Greater(t, len(out), 50)
	return out
}

// TestLoggedEvents: whatever is logged as WARN or ERROR has a row that says what it means
// and what to do, or a section of the runbook.
func TestLoggedEvents(t *testing.T) {
	t.Parallel()
	p := onePage(t, runbook)
	text := strings.Join(p.section("Events in the log"), "\n")
	for _, h := range p.headings(3) {
		text += "\n" + h
	}
	var missing []string
	for event, place := range warnings(t) {
		if !strings.Contains(text, "`"+event+"`") {
			missing = append(missing, event+" of "+place)
		}
	}
	slices.Sort(missing)
	require.Empty(t, missing, "%s does not say what they mean", runbook)
}
