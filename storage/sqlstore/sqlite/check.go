package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jmoiron/sqlx"
	driver "modernc.org/sqlite"
	lib "modernc.org/sqlite/lib"

	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
)

// oldest is the first release without the corruption after a WAL reset.
var oldest = [3]int{3, 51, 3}

// ErrUnsafe says that a connection's settings promise less than a ledger needs.
var ErrUnsafe = errors.New("sqlite: unsafe settings")

// check reads the settings of a connection.
func check(ctx context.Context, c sqlx.QueryerContext) error {
	var s struct {
		Version  string `db:"version"`
		Journal  string `db:"journal_mode"`
		Sync     int64  `db:"synchronous"`
		Busy     int64  `db:"timeout"`
		Ignore   int64  `db:"ignore_check_constraints"`
		Unlocked int64  `db:"read_uncommitted"`
		Encoding string `db:"encoding"`
		ReadOnly int64  `db:"query_only"`
	}
	err := sqlx.GetContext(ctx, c, &s, `SELECT sqlite_version() AS version, journal_mode, synchronous, timeout,
		ignore_check_constraints, read_uncommitted, encoding, query_only
		FROM pragma_journal_mode, pragma_synchronous, pragma_busy_timeout,
		pragma_ignore_check_constraints, pragma_read_uncommitted, pragma_encoding, pragma_query_only`)
	if err != nil {
		return fmt.Errorf("sqlite: reading the connection's settings: %w", err)
	}
	var v [3]int
	_, _ = fmt.Sscanf(s.Version, "%d.%d.%d", &v[0], &v[1], &v[2])
	for _, rule := range []struct {
		broken bool
		advice string
	}{
		{less(v, oldest), "version " + s.Version + " may corrupt a WAL file: use at least 3.51.3"},
		{!strings.EqualFold(s.Journal, "wal"), "journal_mode is " + s.Journal + ": set PRAGMA journal_mode=WAL"},
		{s.Sync < 2, fmt.Sprintf("synchronous is %d: set PRAGMA synchronous=FULL", s.Sync)},
		{s.Busy <= 0, "there is no busy_timeout: set PRAGMA busy_timeout=5000"},
		{s.Ignore != 0, "ignore_check_constraints is on: set it off"},
		{s.Unlocked != 0, "read_uncommitted is on: set it off"},
		{!strings.EqualFold(s.Encoding, "utf-8"), "encoding is " + s.Encoding + ": use UTF-8, so that text compares by bytes"},
		{s.ReadOnly != 0, "query_only is on: set it off"},
	} {
		if rule.broken {
			return fmt.Errorf("%w: %s", ErrUnsafe, rule.advice)
		}
	}
	return nil
}

func less(a, b [3]int) bool {
	for i := range a {
		if a[i] != b[i] {
			return a[i] < b[i]
		}
	}
	return false
}

// describe lists what a table consists of; see sqlstore.Dialect.Shape.
func describe(ctx context.Context, q sqlx.QueryerContext, table string) ([]string, error) {
	var columns []struct {
		Name string `db:"name"`
		Type string `db:"type"`
		Key  int64  `db:"pk"`
	}
	if err := sqlx.SelectContext(ctx, q, &columns, `SELECT name, type, pk FROM pragma_table_info(?) ORDER BY cid`, table); err != nil {
		return nil, err
	}
	if len(columns) == 0 {
		return nil, nil
	}
	out := make([]string, 0, len(columns))
	key := make([]string, len(columns))
	for _, c := range columns {
		out = append(out, "column "+c.Name+" "+c.Type)
		if c.Key > 0 {
			key[c.Key-1] = c.Name + ","
		}
	}
	out = append(out, "key "+strings.TrimSuffix(strings.Join(key, ""), ","))
	var indexes []struct {
		Unique  int64  `db:"uniq"`
		Columns string `db:"cols"`
	}
	err := sqlx.SelectContext(ctx, q, &indexes, `SELECT l."unique" AS uniq,
		(SELECT group_concat(coalesce(name, '?'), ',' ORDER BY seqno) FROM pragma_index_info(l.name)) AS cols
		FROM pragma_index_list(?) l WHERE l.origin = 'c'`, table)
	for _, i := range indexes {
		word := "index "
		if i.Unique != 0 {
			word = "unique "
		}
		out = append(out, word+i.Columns)
	}
	return out, err
}

// classify knows the codes after which a transaction is gone. The low byte is
// the primary code; 517, for one, is a kind of busy.
func classify(err error) sqlstore.Class {
	var e *driver.Error
	if !errors.As(err, &e) {
		return sqlstore.ClassUnknown
	}
	switch e.Code() & 0xff {
	case lib.SQLITE_BUSY, lib.SQLITE_LOCKED:
		return sqlstore.ClassBusy
	case lib.SQLITE_CONSTRAINT, lib.SQLITE_TOOBIG, lib.SQLITE_MISMATCH:
		return sqlstore.ClassRefused
	case lib.SQLITE_FULL, lib.SQLITE_READONLY:
		return sqlstore.ClassFailed
	}
	return sqlstore.ClassUnknown
}
