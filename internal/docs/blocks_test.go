package docs

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// start is the page whose blocks are files of one program: see start_test.go.
const start = "docs/getting-started.md"

// TestGoBlocks: every Go block of README.md and docs compiles. A block is a file, or
// declarations, or statements; the names that it does not declare are those of
// testdata/preamble.go.txt.
func TestGoBlocks(t *testing.T) {
	t.Parallel()
	l := theLibrary(t)
	preamble, err := os.ReadFile("testdata/preamble.go.txt")
	require.NoError(t, err)
	blocks := 0
	for _, p := range pages(t) {
		if p.path == start || p.path != "README.md" && !strings.HasPrefix(p.path, "docs/") {
			continue
		}
		for _, b := range p.blocks {
			if b.lang != "go" {
				continue
			}
			blocks++
			if err := l.check(string(preamble), b.text); err != nil {
				t.Errorf("%s:%d: %v", p.path, b.line, err)
			}
		}
	}
	require.Greater(t, blocks, 10)
}

var declares = regexp.MustCompile(`(?m)^(func|type|import) `)

// aFile finds the name of the package in a block that is a whole file.
var aFile = regexp.MustCompile(`\A(?://.*\n)*package (\w+)\n`)

// check type-checks one block, beside the preamble.
func (l *library) check(preamble, text string) error {
	body := text
	file := aFile.FindStringSubmatch(text)
	switch {
	case file != nil:
		preamble = "package " + file[1]
	case declares.MatchString(text):
		body = "package block\n" + text
	case strings.Contains(text, "return err"):
		body = "package block\nfunc _() error {\n{" + text + "\n}\nreturn nil\n}\n"
	default:
		body = "package block\nfunc _() {\n" + text + "\n}\n"
	}
	var files []*ast.File
	for i, src := range []string{preamble, body} {
		f, err := parser.ParseFile(l.fset, fmt.Sprintf("block%d.go", i), src, 0)
		if err != nil {
			return err
		}
		if len(f.Imports) == 0 && len(f.Decls) > 0 {
			if f, err = parser.ParseFile(l.fset, fmt.Sprintf("block%d.go", i), l.withImports(f, src), 0); err != nil {
				return err
			}
		}
		files = append(files, f)
	}
	var failed error
	cfg := types.Config{Importer: l, Error: func(err error) {
		var e types.Error
		if errors.As(err, &e); !e.Soft { // soft: unused names and imports
			failed = errors.Join(failed, err)
		}
	}}
	_, _ = cfg.Check("block", l.fset, files, nil)
	return failed
}

// withImports adds the packages that a file names.
func (l *library) withImports(f *ast.File, src string) string {
	var paths []string
	ast.Inspect(f, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if x, ok := s.X.(*ast.Ident); ok && s.Sel.IsExported() {
				if path := l.byName[x.Name]; path != "" && !slices.Contains(paths, path) && !declared(f, x.Name) {
					paths = append(paths, path)
				}
			}
		}
		return true
	})
	first, rest, _ := strings.Cut(src, "\n")
	for _, path := range paths {
		first += fmt.Sprintf("; import %q", path)
	}
	return first + "\n" + rest
}

// declared says whether a file declares a name as a variable somewhere.
func declared(f *ast.File, name string) bool {
	found := false
	ast.Inspect(f, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.AssignStmt:
			for _, left := range x.Lhs {
				id, ok := left.(*ast.Ident)
				found = found || ok && id.Name == name
			}
		case *ast.Field:
			for _, id := range x.Names {
				found = found || id.Name == name
			}
		case *ast.ValueSpec:
			for _, id := range x.Names {
				found = found || id.Name == name
			}
		}
		return !found
	})
	return found
}
