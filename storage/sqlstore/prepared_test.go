package sqlstore

import (
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"
	_ "modernc.org/sqlite"
)

// Queries are kept up to a number and a length; the others answer the same. A column that
// is added meanwhile is seen.
func TestPreparedReads(t *testing.T) {
	t.Parallel()
	db := sqlx.MustOpen("sqlite", "file:"+t.TempDir()+"/kept.db")
	defer db.Close() //nolint:errcheck // a test's end
	db.MustExec("CREATE TABLE n (v INTEGER)")
	db.MustExec("INSERT INTO n VALUES (1), (2), (3)")
	k := &preparedReads{list: map[string]*sql.Stmt{}}
	p := pool{d: &Dialect{Bind: sqlx.QUESTION}, db: db, kept: k}
	count := func(q string, args ...any) (n int) {
		require.NoError(t, p.each(t.Context(), q, args, func(r Scanner) error { return r.Scan(&n) }))
		return n
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 3 {
				var n int
				if err := p.each(t.Context(), "SELECT count(*) FROM n WHERE v > ?", []any{i}, func(r Scanner) error { return r.Scan(&n) }); err != nil || n != 3-i {
					t.Errorf("%d after %d: %v", n, i, err)
				}
			}
		})
	}
	all.Wait()
	require.Len(t, k.list, 1)
	db.MustExec("ALTER TABLE n ADD w INTEGER DEFAULT 7")
	require.Equal(t, 2, count("SELECT count(*) FROM n WHERE v > ?", 1))

	require.Equal(t, 21, count("SELECT sum(w) FROM n WHERE v IN (1, 2, 3"+strings.Repeat(", 4", longestStatement)+")"))
	require.Len(t, k.list, 1)
	require.Error(t, p.each(t.Context(), "SELECT missing FROM n", nil, nil))
	require.Len(t, k.list, 1)
	for i := range mostStatements + 10 {
		require.Equal(t, i, count(fmt.Sprintf("SELECT %d", i)))
	}
	require.Len(t, k.list, mostStatements)
	require.Equal(t, 2, count("SELECT count(*) FROM n WHERE v > ?", 1))
}
