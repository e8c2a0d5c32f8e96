package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	driverpkg "github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
)

// ErrUnsafe says that a server's settings promise less than a ledger needs.
var ErrUnsafe = errors.New("mysql: unsafe settings")

// settings are a connection's variables by name. What a server does not know is
// missing.
type settings map[string]string

func read(ctx context.Context, c sqlx.QueryerContext, show string) (settings, error) {
	rows, err := c.QueryxContext(ctx, show)
	if err != nil {
		return nil, fmt.Errorf("mysql: reading the connection's settings: %w", err)
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	s := settings{}
	for rows.Next() {
		var name, value string
		if err := rows.Scan(&name, &value); err != nil {
			return nil, err
		}
		s[strings.ToLower(name)] = value
	}
	return s, rows.Err()
}

func (s settings) on(name string) bool { return s[name] == "ON" || s[name] == "1" }

// check reads the settings of a connection.
func check(ctx context.Context, c sqlx.QueryerContext, o Options) error {
	s, err := read(ctx, c, `SHOW VARIABLES WHERE variable_name IN ('version', 'version_comment', 'innodb_flush_log_at_trx_commit',
		'sync_binlog', 'log_bin', 'read_only', 'super_read_only', 'innodb_read_only', 'sql_mode', 'wsrep_on', 'wsrep_sync_wait', 'innodb_doublewrite',
		'innodb_force_recovery', 'unique_checks', 'innodb_snapshot_isolation', 'tx_read_only', 'transaction_read_only')`)
	if err != nil {
		return err
	}
	for _, rule := range []struct {
		broken bool
		advice string
	}{
		{tooOld(s["version"]), "version " + s["version"] + " is too old: use at least MariaDB 10.6 or MySQL 8.0"},
		{s.on("read_only") || s.on("super_read_only") || s.on("innodb_read_only"), "read_only is on, as on a replica: connect to the primary"},
		{s.on("tx_read_only") || s.on("transaction_read_only"), "the connection's transactions are read-only: set tx_read_only off"},
		{
			s["innodb_flush_log_at_trx_commit"] != "1" && !o.Accept.LazyFlush,
			"innodb_flush_log_at_trx_commit is " + s["innodb_flush_log_at_trx_commit"] + ": set it to 1, or accept the risk (Risks.LazyFlush)",
		},
		{
			s.on("log_bin") && s["sync_binlog"] != "1" && !o.Accept.LazyBinlog,
			"sync_binlog is " + s["sync_binlog"] + ": set it to 1, or accept the risk (Risks.LazyBinlog)",
		},
		{s["innodb_force_recovery"] != "0", "innodb_force_recovery is " + s["innodb_force_recovery"] + ": restore the server first"},
		{s["innodb_doublewrite"] == "OFF", "innodb_doublewrite is off, a torn page is lost: set it on"},
		{!s.on("unique_checks"), "unique_checks is off: set it on"},
		{
			!strings.Contains(s["sql_mode"], "STRICT_TRANS_TABLES") && !strings.Contains(s["sql_mode"], "STRICT_ALL_TABLES"),
			"sql_mode is '" + s["sql_mode"] + "', which cuts values off silently: add STRICT_TRANS_TABLES",
		},
		{s.on("wsrep_on") && !o.Galera, "this server is a member of a Galera cluster: say so (Options.Galera)"},
		{!s.on("wsrep_on") && o.Galera, "this server is no member of a Galera cluster: leave Options.Galera out"},
		{o.Galera && s["wsrep_sync_wait"] != "7", "wsrep_sync_wait is " + s["wsrep_sync_wait"] + ", reads would be stale: set it to 7"},
	} {
		if rule.broken {
			return fmt.Errorf("%w: %s", ErrUnsafe, rule.advice)
		}
	}
	if !o.Galera {
		return nil
	}
	return member(ctx, c)
}

// member refuses a node that is not in the part of the cluster that has a quorum,
// or lags behind it.
func member(ctx context.Context, c sqlx.QueryerContext) error {
	s, err := read(ctx, c, `SHOW STATUS WHERE variable_name IN ('wsrep_cluster_status', 'wsrep_ready', 'wsrep_local_state_comment')`)
	if err != nil {
		return err
	}
	if s["wsrep_cluster_status"] != "Primary" || s["wsrep_ready"] != "ON" || s["wsrep_local_state_comment"] != "Synced" {
		return fmt.Errorf("%w: this Galera node is %q, ready %q, in a component that is %q: connect to one that is Synced, ON and Primary",
			ErrUnsafe, s["wsrep_local_state_comment"], s["wsrep_ready"], s["wsrep_cluster_status"])
	}
	return nil
}

// tooOld knows the first releases with SKIP LOCKED and atomic DDL.
func tooOld(version string) bool {
	number, _, _ := strings.Cut(version, "-")
	parts := append(strings.Split(number, "."), "0", "0")
	major, _ := strconv.Atoi(parts[0])
	minor, _ := strconv.Atoi(parts[1])
	if strings.Contains(version, "MariaDB") {
		return major < 10 || major == 10 && minor < 6
	}
	return major < 8
}

// describe lists what a table consists of; see sqlstore.Dialect.Shape.
func describe(ctx context.Context, q sqlx.QueryerContext, table string) ([]string, error) {
	var engine string
	err := sqlx.GetContext(ctx, q, &engine, `SELECT coalesce(engine, '') FROM information_schema.tables WHERE table_schema = database() AND table_name = ?`, table)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, err
	case engine != "InnoDB":
		return nil, fmt.Errorf("%w: table %s is of engine %s, which has no transactions: ALTER TABLE %s ENGINE=InnoDB", ErrUnsafe, table, engine, table)
	}
	var columns []struct {
		Name     string `db:"name"`
		Type     string `db:"type"`
		Nullable string `db:"nullable"`
	}
	err = sqlx.SelectContext(ctx, q, &columns, `SELECT column_name AS name, column_type AS type, is_nullable AS nullable
		FROM information_schema.columns WHERE table_schema = database() AND table_name = ? ORDER BY ordinal_position`, table)
	if err != nil {
		return nil, err
	}
	out := make([]string, 0, len(columns))
	for _, c := range columns {
		line := "column " + c.Name + " " + strings.Replace(c.Type, "bigint(20)", "bigint", 1) // a width is for display
		if c.Nullable != "NO" {
			line += " NULL"
		}
		out = append(out, line)
	}
	var indexes []struct {
		Name    string `db:"name"`
		Plain   int64  `db:"plain"`
		Columns string `db:"cols"`
	}
	err = sqlx.SelectContext(ctx, q, &indexes, `SELECT index_name AS name, max(non_unique) AS plain,
		group_concat(concat(column_name, coalesce(concat('(', sub_part, ')'), '')) ORDER BY seq_in_index) AS cols
		FROM information_schema.statistics WHERE table_schema = database() AND table_name = ? GROUP BY index_name`, table)
	for _, i := range indexes {
		word := "index "
		switch {
		case i.Name == "PRIMARY":
			word = "key "
		case i.Plain == 0:
			word = "unique "
		}
		out = append(out, word+i.Columns)
	}
	return out, err
}

// made knows the errors of MySQL and MariaDB for a column, index or check that is there,
// and for an index that is gone.
func made(err error) bool {
	var e *driverpkg.MySQLError
	return errors.As(err, &e) && slices.Contains([]uint16{1060, 1061, 1091, 1826, 3822}, e.Number)
}

// classify knows the numbers after which a transaction is gone, or is once it was
// rolled back: 1205 undoes only the statement.
func classify(err error) sqlstore.Class {
	var e *driverpkg.MySQLError
	if !errors.As(err, &e) {
		return sqlstore.ClassUnknown
	}
	switch e.Number {
	case 1205, 3572: // lock wait timeout, nowait
		return sqlstore.ClassBusy
	case 1213, 1020, // deadlock (Galera: another node was first), record has changed
		1062, 1586, 4025, 3819, 1048, 1452, // unique keys, checks, nulls, references
		1264, 1406, 1366, 1292, 1265: // values that do not fit
		return sqlstore.ClassRefused
	case 1021, 1114, 1290, 1792, 1836: // disk full, table full, read-only
		return sqlstore.ClassFailed
	}
	return sqlstore.ClassUnknown
}

// together sends statements in one round trip, as one text. The server stops at
// the first that fails.
func together(ctx context.Context, conn *sqlx.Conn, list []sqlstore.Stmt) error {
	var text strings.Builder
	var args []any
	reads := false
	for i := range list {
		if i > 0 {
			text.WriteString("; ")
		}
		text.WriteString(list[i].Text)
		args = append(args, list[i].Args...)
		reads = reads || list[i].Scan != nil
	}
	if !reads {
		_, err := conn.ExecContext(ctx, text.String(), args...)
		return err
	}
	rows, err := conn.QueryContext(ctx, text.String(), args...)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	first := true
	for i := range list {
		if list[i].Scan == nil {
			continue // it has no rows, and the driver passes over it
		}
		if !first && !rows.NextResultSet() {
			if err := rows.Err(); err != nil {
				return err
			}
			return fmt.Errorf("mysql: %d statements gave fewer results", len(list))
		}
		first = false
		for rows.Next() {
			if err := list[i].Scan(rows); err != nil {
				return err
			}
		}
	}
	for rows.NextResultSet() { // an error of a statement after the last that reads
	}
	return rows.Err()
}
