package docs

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/cryptopay-go/cryptopay"

// listed is a package as the go command lists it.
type listed struct {
	ImportPath, Name, Export string
	Standard                 bool
}

// library is the compiled library, and all that it imports.
type library struct {
	byPath map[string]listed
	byName map[string]string // import paths of packages of the library and of the standard library
	fset   *token.FileSet
	gc     types.Importer
	mu     sync.Mutex
}

var compiled = sync.OnceValues(func() (*library, error) {
	cmd := exec.Command("go", "list", "-e", "-export", "-deps", "-json=ImportPath,Name,Export,Standard", "./...") //nolint:noctx // once for all tests
	cmd.Dir, cmd.Stderr = root, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	l := &library{byPath: map[string]listed{}, byName: map[string]string{}, fset: token.NewFileSet()}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		l.byPath[p.ImportPath] = p
		ours := strings.HasPrefix(p.ImportPath, module)
		if _, taken := l.byName[p.Name]; strings.Contains(p.ImportPath, "internal") || strings.Contains(p.ImportPath, "/examples/") || p.Name == "main" || taken && !ours {
			continue
		}
		l.byName[p.Name] = p.ImportPath
	}
	l.byName["decimal"], l.byName["sqlx"] = "github.com/shopspring/decimal", "github.com/jmoiron/sqlx"
	l.byName["rand"] = "crypto/rand"
	l.gc = importer.ForCompiler(l.fset, "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(l.byPath[path].Export)
	})
	return l, nil
})

func theLibrary(t *testing.T) *library {
	t.Helper()
	l, err := compiled()
	require.NoError(t, err)
	return l
}

// Import may be called concurrently.
func (l *library) Import(path string) (*types.Package, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.gc.Import(path)
}

// ours is a package of the library by its path below the module; "cryptopay" is the root.
func (l *library) ours(path string) (*types.Package, error) {
	if path == "cryptopay" {
		return l.Import(module)
	}
	if _, ok := l.byPath[module+"/"+path]; !ok {
		return nil, fmt.Errorf("no package %s", path)
	}
	return l.Import(module + "/" + path)
}

// has says whether a package has a name such as "App.Operate.Halt": of the scope, then
// fields and methods.
func has(p *types.Package, name string) bool {
	parts := strings.Split(name, ".")
	at := p.Scope().Lookup(parts[0])
	if at == nil || !at.Exported() {
		return false
	}
	for _, part := range parts[1:] {
		next, _, _ := types.LookupFieldOrMethod(at.Type(), true, p, part)
		if next == nil || !next.Exported() {
			return false
		}
		at = next
	}
	return true
}

var (
	span      = regexp.MustCompile("`([^`]+)`")
	qualified = regexp.MustCompile(`^\*?\&?([a-z]\w*)\.([A-Z]\w*(?:\.[A-Z]\w*)*)(?:[^\w.].*)?$`)
	member    = regexp.MustCompile(`^([A-Z]\w*)\.([A-Z]\w*(?:\.[A-Z]\w*)*)(?:[^\w.].*)?$`)
)

// TestNames: a name in a document that is written as package.Name, or as Type.Name with a
// type of the library, exists.
func TestNames(t *testing.T) {
	t.Parallel()
	l := theLibrary(t)
	var all []*types.Package
	for dir, p := range l.byPath {
		if (dir == module || strings.HasPrefix(dir, module+"/")) && !strings.Contains(dir, "/internal/") && p.Name != "main" {
			one, err := l.Import(dir)
			require.NoError(t, err)
			all = append(all, one)
		}
	}
	for _, p := range pages(t) {
		if p.path == "CHANGELOG.md" {
			continue // it names what was
		}
		known := all
		if dir := module + "/" + path.Dir(p.path); strings.Contains(dir, "/internal/") && l.byPath[dir].Name != "" { // a page of an internal package
			own, err := l.Import(dir)
			require.NoError(t, err)
			known = append(slices.Clip(all), own)
		}
		for i, line := range p.lines {
			for _, m := range span.FindAllStringSubmatch(line, -1) {
				if q := qualified.FindStringSubmatch(m[1]); q != nil && strings.HasPrefix(l.byName[q[1]], module) {
					one, err := l.Import(l.byName[q[1]])
					require.NoError(t, err)
					if !has(one, q[2]) {
						t.Errorf("%s:%d: package %s has no %s", p.path, i+1, one.Path(), q[2])
					}
				}
				if q := member.FindStringSubmatch(m[1]); q != nil && !existsSomewhere(known, q[1], q[2]) {
					t.Errorf("%s:%d: no type %s of the library has %s", p.path, i+1, q[1], q[2])
				}
			}
		}
	}
}

// existsSomewhere says whether a type of that name has the members, in any package, or a
// field of that name of App or Config; it is true where no package has a type of the
// name, as the word is something else then.
func existsSomewhere(all []*types.Package, typ, members string) bool {
	known := false
	for _, p := range all {
		if p.Path() == module && (has(p, "App."+typ+"."+members) || has(p, "Config."+typ+"."+members)) {
			return true
		}
		if _, isType := p.Scope().Lookup(typ).(*types.TypeName); isType {
			known = true
			if has(p, typ+"."+members) {
				return true
			}
		}
	}
	return !known
}

// TestWhereIsWhat: the table of docs/README.md has at least 40 rows, and each names what is there.
func TestWhereIsWhat(t *testing.T) {
	t.Parallel()
	l, index := theLibrary(t), onePage(t, "docs/README.md")
	rows := 0
	for _, line := range index.section("Where is what") {
		cells := strings.Split(strings.Trim(line, "|"), "|")
		if len(cells) != 4 || strings.Contains(cells[0], "---") || strings.TrimSpace(cells[0]) == "question" {
			continue
		}
		rows++
		path := strings.Trim(cells[1], " `")
		p, err := l.ours(path)
		require.NoError(t, err, line)
		names := span.FindAllStringSubmatch(cells[2], -1)
		require.NotEmpty(t, names, line)
		for _, m := range names {
			require.True(t, has(p, m[1]), "package %s has no %s: %s", path, m[1], line)
		}
		require.Regexp(t, link, cells[3], line)
	}
	require.GreaterOrEqual(t, rows, 40)
}
