package docs

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/doc"
	"io"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write docs/packages.md")

// layers are the public packages from below to above. A package imports packages of its own
// layer and of those below it, and none above. What imports nothing of the library is as low
// as it can be read.
var layers = []struct {
	name, holds string
	packages    []string
}{
	{"Money", "amounts and double entry", []string{"ledger"}},
	{"Storage", "rows, changes and events, on memory, files and servers", []string{
		"storage", "storage/verdict", "storage/lane", "storage/memory", "storage/sqlstore", "storage/sqlstore/sqlite", "storage/sqlstore/postgres",
		"storage/sqlstore/mysql", "storage/redisstore", "storage/stream", "storage/tally", "storage/seal", "storage/move", "storage/storagetest",
	}},
	{"Networks", "clients of nodes, addresses, keys and prices", []string{
		"chain", "chain/address", "chain/mandate", "chain/rates", "chain/keys", "chain/keys/hsm", "chain/keys/signerd", "chain/several", "chain/evm", "chain/utxo",
		"chain/tron", "chain/solana", "chain/xrp", "chain/stellar", "chain/cardano", "chain/networks", "chain/sim", "chain/sim/remote",
	}},
	{"Transfers", "what comes in and goes out on networks", []string{"chain/incoming", "chain/outgoing", "chain/refill", "chain/chaintest"}},
	{"Domains", "what merchants have and ask for", []string{"webhook", "wallet", "wallet/treasury", "wallet/reconcile", "wallet/house", "payment", "withdrawal", "withdrawal/policy", "refund", "report", "report/journal"}},
	{"The App", "all of it, composed", []string{"cryptopay"}},
	{"Doors", "how people and programs reach an App", []string{
		"httpapi", "httpapi/auth", "httpapi/checkout", "httpapi/client", "httpapi/limit", "httpapi/limit/redislimit", "operator", "observe", "observe/prometheus", "observe/otel", "observe/rules",
	}},
	{"Tests of a host", "an App in three lines, and whole simulated weeks", []string{"cryptopaytest", "simulation"}},
}

type drawn struct {
	ImportPath, Name, Doc string
	Imports               []string
}

// room is the name of a package in the graph: its path below the module.
func room(importPath string) string {
	if importPath == module {
		return "cryptopay"
	}
	return strings.TrimPrefix(importPath, module+"/")
}

// TestImports draws the import graph into docs/packages.md, and holds that nothing below
// imports what is above.
func TestImports(t *testing.T) {
	t.Parallel()
	all := map[string]drawn{}
	for name, p := range publicPackages(t) {
		p.Imports = slices.DeleteFunc(p.Imports, func(i string) bool {
			return i != module && !strings.HasPrefix(i, module+"/") || strings.Contains(i, "/internal/")
		})
		for i := range p.Imports {
			p.Imports[i] = room(p.Imports[i])
		}
		slices.Sort(p.Imports)
		all[name] = p
	}
	level := map[string]int{}
	for i, l := range layers {
		for _, name := range l.packages {
			require.Contains(t, all, name, "layer %q", l.name)
			level[name] = i
		}
	}
	for name, p := range all {
		require.Contains(t, level, name, "a new package needs its layer")
		for _, below := range p.Imports {
			require.LessOrEqual(t, level[below], level[name], "%s must not import %s", name, below)
		}
	}
	page := packagesPage(all)
	const file = "../../docs/packages.md"
	if *update {
		require.NoError(t, os.WriteFile(file, page, 0o644))
	}
	kept, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(kept), string(page), "make generate writes docs/packages.md anew")
}

// publicPackages are those that a host can import, by their room, without the examples.
func publicPackages(t *testing.T) map[string]drawn {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Doc,Imports", "./...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	require.NoError(t, err)
	all := map[string]drawn{}
	for in := json.NewDecoder(bytes.NewReader(out)); ; {
		var p drawn
		if err := in.Decode(&p); errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		name := room(p.ImportPath)
		if p.Name != "main" && !strings.Contains("/"+name+"/", "/internal/") && !strings.HasPrefix(name, "examples/") {
			all[name] = p
		}
	}
}

// packagesPage is docs/packages.md.
func packagesPage(all map[string]drawn) []byte {
	var b bytes.Buffer
	b.WriteString("# Packages\n\nWhich package holds what, and what it imports. `make generate` writes this page from the code; `TestImports` fails where it is old, or where a\n" +
		"package imports another one that is above it.\n\nAn arrow leads from a package to one that it imports. An import that other arrows show already is left out.\n\n```mermaid\nflowchart TD\n")
	id := func(name string) string { return strings.ReplaceAll(name, "/", "_") }
	for i, l := range slices.Backward(layers) {
		fmt.Fprintf(&b, "  subgraph L%d[\"%s\"]\n", i, l.name)
		for _, name := range l.packages {
			fmt.Fprintf(&b, "    %s[\"%s\"]\n", id(name), name)
		}
		b.WriteString("  end\n")
	}
	for _, l := range slices.Backward(layers) {
		for _, name := range l.packages {
			for _, to := range all[name].Imports {
				if !reached(all, all[name].Imports, to) {
					fmt.Fprintf(&b, "  %s --> %s\n", id(name), id(to))
				}
			}
		}
	}
	b.WriteString("```\n")
	for _, l := range slices.Backward(layers) {
		fmt.Fprintf(&b, "\n## %s\n\n%s.\n\n| package | what it is | imports |\n|---|---|---|\n", l.name, strings.ToUpper(l.holds[:1])+l.holds[1:])
		for _, name := range l.packages {
			folder := name
			if name == "cryptopay" {
				folder = ""
			}
			imports := "–"
			if list := all[name].Imports; len(list) > 0 {
				imports = "`" + strings.Join(list, "` `") + "`"
			}
			what := strings.TrimPrefix(new(doc.Package).Synopsis(all[name].Doc), "Package "+path.Base(name)+" ")
			what = strings.ReplaceAll(strings.TrimRight(what, ".:"), "|", "\\|")
			fmt.Fprintf(&b, "| [`%s`](../%s) | %s | %s |\n", name, folder, what, imports)
		}
	}
	return b.Bytes()
}

// reached tells whether one of the packages, other than to itself, imports to, also through others.
func reached(all map[string]drawn, from []string, to string) bool {
	for _, p := range from {
		if p != to && (slices.Contains(all[p].Imports, to) || reached(all, all[p].Imports, to)) {
			return true
		}
	}
	return false
}
