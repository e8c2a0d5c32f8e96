package outgoing_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// writers are the files that alone may write a table whose rows bind a nonce or a coin to an
// order. All other files of the module read it.
var writers = map[string]string{
	"Nonces":            "chain/outgoing/nonces.go",
	"InputReservations": "chain/outgoing/inputs.go",
	"Coins":             "chain/outgoing/inputs.go",
}

// reads are the uses of a table that make no row of it.
var reads = []string{"One", "Value", "Guard", "Table"}

// TestNoncesAndInputsHaveOneWriter reads the module's source. Rows of these tables are made
// and dropped in one file each. It does not see who puts a row that was loaded back as it is.
func TestNoncesAndInputsHaveOneWriter(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	seen := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		for _, table := range tableUses(file) {
			if writers[table] != name {
				require.Failf(t, "a second writer", "%s writes %s: only %s does", name, table, writers[table])
			}
			seen[table] = true
		}
		return nil
	}))
	require.Len(t, seen, len(writers), "each table has its writer, or this test looks for something else")
}

// tableUses names the tables of which a file makes or drops rows, or which it hands on.
func tableUses(file *ast.File) (written []string) {
	within := file.Name.Name == "outgoing"
	table := func(e ast.Expr) string {
		switch e := e.(type) {
		case *ast.Ident:
			if _, ok := writers[e.Name]; ok && within {
				return e.Name
			}
		case *ast.SelectorExpr:
			if p, ok := e.X.(*ast.Ident); ok && p.Name == "outgoing" {
				if _, ok := writers[e.Sel.Name]; ok {
					return e.Sel.Name
				}
			}
		}
		return ""
	}
	allowed := map[ast.Node]bool{} // parts of what is a read, or no table
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.ValueSpec: // the declaration, and names of locals
			for _, name := range node.Names {
				allowed[name] = true
			}
		case *ast.Field:
			for _, name := range node.Names {
				allowed[name] = true
			}
		case *ast.KeyValueExpr:
			allowed[node.Key] = true
		case *ast.CompositeLit:
			if kind, ok := node.Type.(*ast.SelectorExpr); ok && kind.Sel.Name == "Row" {
				for _, e := range node.Elts {
					if kv, ok := e.(*ast.KeyValueExpr); ok {
						if sel, ok := kv.Value.(*ast.SelectorExpr); ok && sel.Sel.Name == "Table" && table(sel.X) != "" {
							written = append(written, table(sel.X))
						}
					}
				}
			}
		case *ast.SelectorExpr:
			allowed[node.Sel] = true
			if table(node) != "" {
				allowed[node.X] = true
			}
			if table(node.X) != "" && slices.Contains(reads, node.Sel.Name) {
				allowed[node.X] = true
			}
		}
		if e, ok := node.(ast.Expr); ok && table(e) != "" && !allowed[e] {
			written = append(written, table(e))
		}
		return true
	})
	return written
}

// The test above finds each way to write.
func TestWritersAreFound(t *testing.T) {
	t.Parallel()
	for source, want := range map[string][]string{
		`package outgoing; var _ = Nonces.Row("a", 1, at, v)`:                           {"Nonces"},
		`package other; var _ = []storage.Row{outgoing.Nonces.Row("a", 1, at, v)}`:      {"Nonces"},
		`package outgoing; var _ = storage.Row{Table: Coins.Table, ID: "a"}`:            {"Coins"},
		`package other; var _ = storage.Row{Table: outgoing.Coins.Table, ID: "a"}`:      {"Coins"},
		`package outgoing; var _ = keep(InputReservations)`:                             {"InputReservations"},
		`package other; var _ = keep(outgoing.InputReservations)`:                       {"InputReservations"},
		`package outgoing; var _, _, _, _ = Coins.One(ctx, s, p, "a")`:                  nil,
		`package other; var _ = storage.Query{Table: outgoing.Coins.Table}`:             nil,
		`package outgoing; var _ = order{Coins: o.Coins}`:                               nil,
		`package other; var _ = Coins.Row("a", 1, at, Nonces)`:                          nil,
		`package other; var _ = outgoing.InputReservations.Guard("a", 1) == Nonces("")`: nil,
	} {
		file, err := parser.ParseFile(token.NewFileSet(), "a.go", source, parser.SkipObjectResolution)
		require.NoError(t, err)
		require.Equal(t, want, tableUses(file), source)
	}
}
