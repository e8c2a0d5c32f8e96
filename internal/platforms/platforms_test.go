// Package platforms holds the module to the systems that it is promised for: every package
// of ours type-checks for each of them. What another system lacks, and what a smaller word
// does not hold, is an error of types: nothing needs to be linked for it.
package platforms

import (
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
)

const module = "github.com/cryptopay-go/cryptopay"

// promised are the systems that README names beside the one that the tests run on.
var promised = []string{"linux/arm64", "darwin/arm64", "windows/amd64", "linux/386"}

// listed is what `go list -json` says of a package.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Error           *struct{ Err string }
}

func TestEverySystemBuilds(t *testing.T) {
	t.Parallel()
	for _, system := range promised {
		t.Run(system, func(t *testing.T) {
			t.Parallel()
			errs, ours := check(t, "../..", system)
			require.Empty(t, errs)
			require.Greater(t, ours, 50, "the packages of the module were not looked at")
		})
	}
}

// The check sees what it is for: a number that 32 bits do not hold, and a call that Windows
// does not have.
func TestACheckFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module "+module+"\n\ngo 1.26.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.go"), []byte(`package a

import "syscall"

const large int = 1 << 40

func f() error { return syscall.Kill(large, syscall.SIGSTOP) }
`), 0o600))
	errs, _ := check(t, dir, "windows/386")
	require.Len(t, errs, 3)
	require.Contains(t, errs[0], "overflows")
	require.Contains(t, errs[1], "undefined: syscall.Kill")
	require.Contains(t, errs[2], "undefined: syscall.SIGSTOP")
	errs, ours := check(t, dir, "linux/amd64")
	require.Empty(t, errs)
	require.Equal(t, 1, ours)
}

// check type-checks the packages of a folder, and all that they import, for a system. It
// returns the errors in packages of ours, and how many of those there are.
func check(t *testing.T, dir, system string) (errs []string, ours int) {
	t.Helper()
	goos, goarch, _ := strings.Cut(system, "/")
	cmd := exec.CommandContext(t.Context(), "go", "list", "-e", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Error", "./...")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0", "GOFLAGS=")
	out, err := cmd.Output()
	require.NoError(t, err)
	fset, known, in := token.NewFileSet(), map[string]*types.Package{"unsafe": types.Unsafe}, json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p listed
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			return errs, ours
		}
		require.NoError(t, err)
		if p.ImportPath == "unsafe" {
			continue
		}
		mine := strings.HasPrefix(p.ImportPath, module)
		if p.Error != nil && mine {
			errs = append(errs, p.ImportPath+": "+p.Error.Err)
		}
		files := make([]*ast.File, len(p.GoFiles))
		var all errgroup.Group
		for i, name := range p.GoFiles {
			all.Go(func() (err error) {
				files[i], err = parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
				return err
			})
		}
		require.NoError(t, all.Wait())
		c := types.Config{
			IgnoreFuncBodies: !mine, FakeImportC: true, Sizes: types.SizesFor("gc", goarch),
			Importer: importer{p.ImportMap, known},
			Error: func(err error) {
				if mine {
					errs = append(errs, err.Error())
				}
			},
		}
		known[p.ImportPath], _ = c.Check(p.ImportPath, fset, files, nil)
		if mine {
			ours++
		}
	}
}

// importer knows the packages that were checked before.
type importer struct {
	vendored map[string]string
	known    map[string]*types.Package
}

func (i importer) Import(path string) (*types.Package, error) {
	if v, ok := i.vendored[path]; ok {
		path = v
	}
	if p := i.known[path]; p != nil {
		return p, nil
	}
	return nil, errors.New("no package " + path)
}
