package docs

import (
	"go/constant"
	"go/types"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

const runbook = "docs/operations.md"

// kinds of what a host's Notify gets: the values of constants named Alert… or Notice….
func kinds(t *testing.T) []string {
	t.Helper()
	l := theLibrary(t)
	var out []string
	for _, path := range []string{"cryptopay", "payment", "withdrawal", "wallet/treasury"} {
		p, err := l.ours(path)
		require.NoError(t, err)
		for _, name := range p.Scope().Names() {
			c, ok := p.Scope().Lookup(name).(*types.Const)
			if ok && (strings.HasPrefix(name, "Alert") || strings.HasPrefix(name, "Notice")) && c.Val().Kind() == constant.String {
				out = append(out, constant.StringVal(c.Val()))
			}
		}
	}
	// A treasury.Notice has no kind: its section is named after its event in the log.
	p, err := l.ours("wallet/treasury")
	require.NoError(t, err)
	if has(p, "Notice") {
		out = append(out, "sweep_waiting_long")
	}
	out = append(out, "books_differ") // a reconcile.Difference
	slices.Sort(out)
	require.GreaterOrEqual(t, len(out), 10)
	return out
}

// TestRunbook: each kind of alert has one section in the runbook, and no section is for a
// kind that is not there. Each says what it means, what is at risk, where to look and what
// ends it.
func TestRunbook(t *testing.T) {
	t.Parallel()
	p := onePage(t, runbook)
	var sections []string
	for _, h := range p.headings(3) {
		if name := strings.Trim(h, "`"); "`"+name+"`" == h {
			sections = append(sections, name)
			text := strings.Join(p.section(h), "\n")
			for _, part := range []string{"**Meaning.**", "**Risk.**", "**Look.**", "**End.**"} {
				require.Contains(t, text, part, h)
			}
		}
	}
	slices.Sort(sections)
	require.Equal(t, kinds(t), sections)
}

var firstCell = regexp.MustCompile("^\\| `([a-z_ ]+)`")

// TestLogEvents: each event of the runbook's table of log events is logged somewhere.
func TestLogEvents(t *testing.T) {
	t.Parallel()
	p := onePage(t, runbook)
	var code strings.Builder
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != root && strings.HasPrefix(d.Name(), ".") {
			return fs.SkipDir
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") && !strings.Contains(filepath.ToSlash(path), "/planted/") {
			text, err := os.ReadFile(path)
			code.Write(text)
			return err
		}
		return nil
	}))
	events := 0
	for _, line := range p.section("Events in the log") {
		if m := firstCell.FindStringSubmatch(line); m != nil {
			events++
			require.Contains(t, code.String(), `"`+m[1]+`"`, line)
		}
	}
	require.Greater(t, events, 15)
}

var tableName = regexp.MustCompile(`\bcryptopay_[a-z_]+\b`)

// TestSQL: statements of the runbook can be run on a store, and the tables that it names are there.
func TestSQL(t *testing.T) {
	t.Parallel()
	ctx, file := t.Context(), filepath.Join(t.TempDir(), "x.db")
	require.NoError(t, sqlite.Migrate(ctx, file))
	db, err := sqlx.Open("sqlite", "file:"+file)
	require.NoError(t, err)
	defer db.Close()
	p := onePage(t, runbook)
	text, statements := strings.Join(p.lines, "\n"), 0
	for _, b := range p.blocks {
		if b.lang == "sql" {
			statements++
			_, err := db.ExecContext(ctx, b.text)
			require.NoError(t, err, b.text)
		}
	}
	require.Positive(t, statements)
	for _, name := range tableName.FindAllString(text, -1) {
		var n int
		require.NoError(t, db.GetContext(ctx, &n, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?", name))
		require.Equal(t, 1, n, name)
	}
}
