package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage/sqlstore"
)

// oldest is server_version_num of the first release that is not refused.
const oldest = 130000

// ErrUnsafe says that a server's settings promise less than a ledger needs.
var ErrUnsafe = errors.New("postgres: unsafe settings")

// one is how a connection is asked for one row.
type one func(ctx context.Context, query string) sqlstore.Scanner

// ask is a connection or a transaction of database/sql.
func ask(c sqlx.QueryerContext) one {
	return func(ctx context.Context, query string) sqlstore.Scanner { return c.QueryRowxContext(ctx, query) }
}

// check reads the settings of a connection.
func check(ctx context.Context, ask one, accept Risks) error {
	var s struct {
		Version                            int64
		Fsync, Pages, Sync, Encoding, Role string
		ReadOnly                           string
		Standby                            bool
	}
	err := ask(ctx, `SELECT current_setting('server_version_num')::bigint, current_setting('fsync'), current_setting('full_page_writes'),
		current_setting('synchronous_commit'), current_setting('server_encoding'), current_setting('default_transaction_read_only'),
		pg_is_in_recovery(), current_setting('session_replication_role')`).
		Scan(&s.Version, &s.Fsync, &s.Pages, &s.Sync, &s.Encoding, &s.ReadOnly, &s.Standby, &s.Role)
	if err != nil {
		return fmt.Errorf("postgres: reading the connection's settings: %w", err)
	}
	for _, rule := range []struct {
		broken bool
		advice string
	}{
		{s.Version < oldest, fmt.Sprintf("version %d.%d is too old: use at least 13", s.Version/10000, s.Version%10000)},
		{s.Standby, "this server is a standby: connect to the primary (target_session_attrs=read-write with several hosts)"},
		{s.ReadOnly != "off", "default_transaction_read_only is on: set it off"},
		{s.Fsync != "on" && !accept.NoFsync, "fsync is off: set fsync=on, or accept the risk (Risks.NoFsync)"},
		{s.Pages != "on" && !accept.NoFsync, "full_page_writes is off: set full_page_writes=on, or accept the risk (Risks.NoFsync)"},
		{s.Sync == "off" && !accept.AsyncCommit, "synchronous_commit is off: set synchronous_commit=on, or accept the risk (Risks.AsyncCommit)"},
		{s.Encoding != "UTF8", "the database's encoding is " + s.Encoding + ": create it with ENCODING 'UTF8'"},
		{s.Role != "origin", "session_replication_role is " + s.Role + ": set it to origin"},
	} {
		if rule.broken {
			return fmt.Errorf("%w: %s", ErrUnsafe, rule.advice)
		}
	}
	return nil
}

// checkTx refuses a host's transaction that would not see what others have
// committed by the time that it has its locks.
func checkTx(ctx context.Context, ask one) error {
	var isolation, readOnly string
	err := ask(ctx, `SELECT current_setting('transaction_isolation'), current_setting('transaction_read_only')`).Scan(&isolation, &readOnly)
	switch {
	case err != nil:
		return fmt.Errorf("postgres: reading the transaction's settings: %w", err)
	case isolation != "read committed":
		return fmt.Errorf("%w: the transaction is %s: begin it with sql.LevelReadCommitted", ErrUnsafe, strings.ToUpper(isolation))
	case readOnly != "off":
		return fmt.Errorf("%w: the transaction is read-only", ErrUnsafe)
	}
	return nil
}

// describe lists what a table consists of; see sqlstore.Dialect.Shape.
func describe(ctx context.Context, q sqlx.QueryerContext, table string) ([]string, error) {
	var columns []struct {
		Name     string `db:"name"`
		Type     string `db:"type"`
		Kept     string `db:"kept"`
		Nullable bool   `db:"nullable"`
	}
	err := sqlx.SelectContext(ctx, q, &columns, `
		SELECT a.attname AS name, format_type(a.atttypid, a.atttypmod) || coalesce(' COLLATE "' || l.collname || '"', '') AS type,
			c.relpersistence::text AS kept, NOT a.attnotnull AS nullable
		FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_collation l ON l.oid = a.attcollation
		WHERE c.oid = to_regclass($1) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, table)
	if err != nil || len(columns) == 0 {
		return nil, err
	}
	if columns[0].Kept != "p" {
		return nil, fmt.Errorf("%w: table %s is unlogged, a crash empties it: ALTER TABLE %s SET LOGGED", ErrUnsafe, table, table)
	}
	out := make([]string, 0, len(columns))
	for _, c := range columns {
		line := "column " + c.Name + " " + c.Type
		if c.Nullable {
			line += " NULL"
		}
		out = append(out, line)
	}
	var indexes []struct {
		Primary bool   `db:"prim"`
		Unique  bool   `db:"uniq"`
		Where   string `db:"pred"`
		Columns string `db:"cols"`
	}
	err = sqlx.SelectContext(ctx, q, &indexes, `
		SELECT i.indisprimary AS prim, i.indisunique AS uniq, coalesce(pg_get_expr(i.indpred, i.indrelid), '') AS pred,
			(SELECT string_agg(coalesce(a.attname, '?'), ',' ORDER BY k.n) FROM unnest(i.indkey::smallint[]) WITH ORDINALITY AS k(num, n)
			 LEFT JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.num WHERE k.n <= i.indnkeyatts) AS cols
		FROM pg_index i WHERE i.indrelid = to_regclass($1) AND i.indisvalid`, table)
	for _, i := range indexes {
		word := "index "
		switch {
		case i.Primary:
			word = "key "
		case i.Unique:
			word = "unique "
		}
		line := word + i.Columns
		if i.Where != "" && (i.Columns != "due,part,id" || i.Where != "(due > 0)") {
			line += " WHERE " + i.Where
		}
		out = append(out, line)
	}
	return out, err
}

// classify knows the codes after which a transaction is gone.
func classify(err error) sqlstore.Class {
	var e *pgconn.PgError
	if !errors.As(err, &e) {
		return sqlstore.ClassUnknown
	}
	switch e.Code {
	case "55P03": // lock_not_available
		return sqlstore.ClassBusy
	case "40001", "40P01": // serialization_failure, deadlock_detected
		return sqlstore.ClassRefused
	case "25006", "53100", "53200": // read-only, disk full, out of memory
		return sqlstore.ClassFailed
	}
	if strings.HasPrefix(e.Code, "22") || strings.HasPrefix(e.Code, "23") { // data, constraints
		return sqlstore.ClassRefused
	}
	return sqlstore.ClassUnknown
}

// together sends statements in one round trip.
func together(ctx context.Context, conn *sqlx.Conn, list []sqlstore.Stmt) error {
	return conn.Raw(func(c any) error {
		own, ok := c.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("%w, not of %T", ErrDriver, c)
		}
		batch := &pgx.Batch{}
		for i := range list {
			q := batch.Queue(list[i].Text, list[i].Args...)
			if scan := list[i].Scan; scan != nil {
				q.Query(func(rows pgx.Rows) error {
					defer rows.Close()
					for rows.Next() {
						if err := scan(rows); err != nil {
							return err
						}
					}
					return rows.Err()
				})
			}
		}
		return own.Conn().SendBatch(ctx, batch).Close()
	})
}
