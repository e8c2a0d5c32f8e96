// Package licences keeps NOTICE: it names each module of others that a package of ours
// links, with its licence. The test fails where a module is new, has another version or
// another licence, or has none that is known to be free to link.
package licences

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/licensecheck"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write NOTICE")

const (
	module = "github.com/cryptopay-go/cryptopay"
	notice = "../../NOTICE"
)

// names are what licences are called in files of modules. Of those that have several, the
// first is that of what is linked: go-ethereum's programs have another than its packages.
var names = []string{"COPYING.LESSER", "LICENSE", "LICENSE.txt", "LICENSE.md", "LICENCE", "LICENSE-MIT", "License.txt", "LICENSE.MIT", "COPYING", "license"}

// free are the licences that a product may link. One that asks for more than a notice is
// named in NOTICE's first lines.
var free = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "LGPL-3.0", "MIT", "MPL-2.0", "MPL-2.0-no-copyleft-exception", "Unlicense", "BlueOak-1.0.0", "CC0-1.0"}

// without are the modules that have no file of a licence, and what is known of them.
var without = map[string]string{
	"github.com/gagliardetto/treeout": "no licence in its folder; it comes with solana-go, of the same author, which is Apache-2.0",
}

type listed struct {
	ImportPath string
	Standard   bool
	Imports    []string
	Deps       []string
	Module     *struct{ Path, Version, Dir string }
}

func TestNotice(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Standard,Imports,Deps,Module", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	packages := map[string]listed{}
	for in := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p listed
		err := in.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		packages[p.ImportPath] = p
	}

	links := map[string]map[string]bool{} // the modules that a package of ours links
	modules := map[string]listed{}
	for path, p := range packages {
		if !strings.HasPrefix(path, module) || strings.HasPrefix(path, module+"/internal/testenv/") { // only programs of tests link it
			continue
		}
		links[path] = map[string]bool{}
		for _, d := range p.Deps {
			if m := packages[d].Module; m != nil && m.Path != module {
				links[path][m.Path] = true
				modules[m.Path] = packages[d]
			}
		}
	}

	var b strings.Builder
	b.WriteString(head)
	for _, path := range slices.Sorted(maps.Keys(modules)) {
		m := modules[path].Module
		fmt.Fprintf(&b, "%s %s\n    %s\n    linked by %s\n", path, m.Version, licence(t, path, m.Dir), strings.Join(first(path, packages, links), ", "))
	}
	if *update {
		require.NoError(t, os.WriteFile(notice, []byte(b.String()), 0o644)) //nolint:gosec // everybody reads it
	}
	want, err := os.ReadFile(notice)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "go test ./internal/licences -update writes NOTICE anew")
}

const head = `cryptopay has the licence of the file LICENSE. A program that links a package of it links
these modules of others, too. Each has a notice in its own folder that has to go along.

What asks for more than its notice: LGPL-3.0 (go-ethereum; who gives away a program that
links it lets its receivers link it with another version of go-ethereum) and MPL-2.0 (whose
own files stay open). A program that needs neither leaves out the packages named beside them.

`

// first are the packages that link a module not only because another of ours does. An
// example is named where no package of the library links it.
func first(m string, packages map[string]listed, links map[string]map[string]bool) []string {
	var out, examples []string
	for path := range links {
		if !links[path][m] || slices.ContainsFunc(packages[path].Imports, func(i string) bool { return links[i][m] }) {
			continue
		}
		short := cmp.Or(strings.TrimPrefix(strings.TrimPrefix(path, module), "/"), "the root")
		if strings.HasPrefix(short, "examples/") || strings.HasPrefix(short, "internal/") {
			examples = append(examples, short)
			continue
		}
		out = append(out, short)
	}
	if len(out) == 0 {
		out = examples
	}
	slices.Sort(out)
	return out
}

// licence reads the licence of a module in its folder.
func licence(t *testing.T, path, dir string) string {
	t.Helper()
	for _, n := range names {
		text, err := os.ReadFile(filepath.Join(dir, n))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		var found []string
		for _, m := range licensecheck.Scan(text).Match {
			if !m.IsURL && !slices.Contains(found, m.ID) {
				found = append(found, m.ID)
			}
		}
		for _, id := range found {
			require.Contains(t, free, id, "%s/%s", dir, n)
		}
		require.NotEmpty(t, found, "%s/%s is no licence that is known", dir, n)
		return strings.Join(found, " and ")
	}
	require.Contains(t, without, path, "%s has no licence", dir)
	return without[path]
}
