package sqlite_test

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// TestPreparedQueriesAreNotPlannedAnew: SQLite plans a prepared statement with a bare "LIMIT ?"
// anew whenever the limit is bound. The driver does not count plans: SQLite itself is asked.
func TestPreparedQueriesAreNotPlannedAnew(t *testing.T) {
	t.Parallel()
	tls := libc.NewTLS()
	t.Cleanup(tls.Close)
	text := func(s string) uintptr {
		p, err := libc.CString(s)
		require.NoError(t, err)
		t.Cleanup(func() { libc.Xfree(tls, p) })
		return p
	}
	out := libc.Xcalloc(tls, 1, 8)
	t.Cleanup(func() { libc.Xfree(tls, out) })
	answer := func() uintptr { return uintptr(binary.NativeEndian.Uint64(libc.GoBytes(out, 8))) }
	require.EqualValues(t, sqlite3.SQLITE_OK, sqlite3.Xsqlite3_open_v2(tls, text(":memory:"), out, sqlite3.SQLITE_OPEN_READWRITE|sqlite3.SQLITE_OPEN_CREATE, 0))
	db := answer()
	t.Cleanup(func() { sqlite3.Xsqlite3_close_v2(tls, db) })
	require.EqualValues(t, sqlite3.SQLITE_OK, sqlite3.Xsqlite3_exec(tls, db, text("CREATE TABLE numbers (n INTEGER PRIMARY KEY); INSERT INTO numbers VALUES (1), (2), (3)"), 0, 0, 0))

	plans := func(limit string) int32 { // how often ten uses plan it anew
		require.EqualValues(t, sqlite3.SQLITE_OK, sqlite3.Xsqlite3_prepare_v2(tls, db, text("SELECT n FROM numbers ORDER BY n "+limit), -1, out, 0))
		query := answer()
		defer sqlite3.Xsqlite3_finalize(tls, query)
		for i := range int32(10) {
			require.EqualValues(t, sqlite3.SQLITE_OK, sqlite3.Xsqlite3_bind_int(tls, query, 1, 1+i%3))
			rows := int32(0)
			for sqlite3.Xsqlite3_step(tls, query) == sqlite3.SQLITE_ROW {
				rows++
			}
			require.Equal(t, 1+i%3, rows)
			require.EqualValues(t, sqlite3.SQLITE_OK, sqlite3.Xsqlite3_reset(tls, query))
		}
		return sqlite3.Xsqlite3_stmt_status(tls, query, sqlite3.SQLITE_STMTSTATUS_REPREPARE, 0)
	}
	require.Positive(t, plans("LIMIT ?"), "what is to be avoided")
	require.Zero(t, plans(sqlite.Dialect().Limit))
}
