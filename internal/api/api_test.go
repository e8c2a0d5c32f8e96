// Package api keeps docs/evidence/api.txt: all that the public packages export, a line each,
// so that a change shows each name that it adds, takes away or gives another type.
package api

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/evidence/api.txt")

const (
	module = "github.com/cryptopay-go/cryptopay"
	list   = "../../docs/evidence/api.txt"
)

// most is how many package-level names there may be: it goes down, not up.
const most = 1_830

type listed struct {
	ImportPath, Name, Dir, Export string
	GoFiles                       []string
}

func TestExported(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-export", "-json=ImportPath,Name,Dir,Export,GoFiles", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	var ours []listed
	exports := map[string]string{}
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		exports[p.ImportPath] = p.Export
		if public(p) {
			ours = append(ours, p)
		}
	}
	slices.SortFunc(ours, func(a, b listed) int { return strings.Compare(a.ImportPath, b.ImportPath) })
	fset := token.NewFileSet()
	known := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })

	names := 0
	var lines []string
	for _, p := range ours {
		var files []*ast.File
		for _, name := range p.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			files = append(files, f)
		}
		c := types.Config{Importer: known, IgnoreFuncBodies: true}
		checked, err := c.Check(p.ImportPath, fset, files, nil)
		require.NoError(t, err)
		here := exported(checked)
		names += here.names
		lines = append(lines, here.lines...)
	}
	text := fmt.Sprintf("%d names of %d packages\n%s\n", names, len(ours), strings.Join(lines, "\n"))
	if *update {
		require.NoError(t, os.WriteFile(list, []byte(text), 0o644)) //nolint:gosec // everybody reads it
	}
	want, err := os.ReadFile(list)
	require.NoError(t, err)
	require.Equal(t, string(want), text, "what is exported has changed: go test ./internal/api -update writes the list anew")
	require.LessOrEqual(t, names, most, "a smaller interface is easier to keep: unexport something")
}

// public reports whether a host can import a package.
func public(p listed) bool {
	return strings.HasPrefix(p.ImportPath, module) && p.Name != "main" && !strings.Contains(p.ImportPath, "/internal/")
}

type found struct {
	names int
	lines []string
}

// exported lists what a package exports: its names, the fields and methods of its types.
func exported(p *types.Package) (out found) {
	short := strings.TrimPrefix(strings.TrimPrefix(p.Path(), module), "/")
	if short == "" {
		short = p.Name()
	}
	within := func(other *types.Package) string {
		if other == p {
			return ""
		}
		return other.Name()
	}
	add := func(format string, a ...any) {
		out.lines = append(out.lines, short+": "+fmt.Sprintf(format, a...))
	}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		out.names++
		typ, ok := o.(*types.TypeName)
		if !ok {
			add("%s", types.ObjectString(o, within))
			continue
		}
		switch u := typ.Type().Underlying().(type) {
		case *types.Struct:
			add("type %s struct", name)
			for f := range u.Fields() {
				if f.Exported() {
					add("%s.%s %s", name, f.Name(), types.TypeString(f.Type(), within))
				}
			}
		case *types.Interface:
			add("type %s interface", name)
			for m := range u.Methods() {
				add("%s.%s%s", name, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), within), "func"))
			}
		default:
			add("%s", types.ObjectString(o, within))
		}
		if named, ok := typ.Type().(*types.Named); ok {
			var methods []string
			for m := range named.Methods() {
				if m.Exported() {
					methods = append(methods, fmt.Sprintf("%s.%s%s", name, m.Name(), strings.TrimPrefix(types.TypeString(m.Type(), within), "func")))
				}
			}
			slices.Sort(methods)
			for _, m := range methods {
				add("%s", m)
			}
		}
	}
	return out
}
