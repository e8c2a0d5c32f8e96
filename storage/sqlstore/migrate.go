package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage"
)

// migration is one embedded file.
type migration struct {
	version    int64
	name       string
	statements []string
}

// migrations reads the dialect's files, in order. They are numbered without a
// gap from 1.
func (d *Dialect) migrations() ([]migration, error) {
	names, err := fs.Glob(d.Migrations, "migrations/*.sql")
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	out := make([]migration, 0, len(names))
	for i, file := range names {
		name := strings.TrimSuffix(strings.TrimPrefix(file, "migrations/"), ".sql")
		number, _, _ := strings.Cut(name, "_")
		v, err := strconv.ParseInt(number, 10, 64)
		if err != nil || v != int64(i+1) {
			return nil, fmt.Errorf("sqlstore: migration %s is not number %d", file, i+1)
		}
		text, err := fs.ReadFile(d.Migrations, file)
		if err != nil {
			return nil, err
		}
		out = append(out, migration{v, name, statements(strings.ReplaceAll(string(text), Prefix, d.local("")))})
	}
	return out, nil
}

// statements splits a file at the semicolons that end a line. Lines that start
// with -- are comments.
func statements(text string) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(strings.TrimSpace(line), "--") {
			lines = append(lines, strings.TrimRight(line, " \t\r\n"))
		}
	}
	var out []string
	for s := range strings.SplitSeq(strings.Join(lines, "\n")+"\n", ";\n") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Migrate brings the database's schema to this library's: first the dialect's
// own migrations, each in a transaction, then, from its declaration, every table
// of tables that none of them made: a host's own. It may be run by many processes
// at once and again at any time. A table that exists in another shape is
// storage.ErrSchema: changing it takes a migration.
func Migrate(ctx context.Context, db *sqlx.DB, d *Dialect, tables ...*storage.Table) error {
	conn, err := db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // gives the connection back
	all, err := d.migrations()
	if err != nil {
		return err
	}
	s := d.on(conn)
	if d.MigrateUnlock != "" {
		if err := s.exec(ctx, d.MigrateLock); err != nil {
			return err
		}
		defer func() { _ = s.exec(context.WithoutCancel(ctx), d.MigrateUnlock) }()
	}
	for done := false; !done; {
		err := s.inTx(ctx, func() error {
			if err := s.migrationsTable(ctx); err != nil {
				return err
			}
			at, err := s.schemaVersion(ctx)
			if err != nil {
				return err
			}
			if at >= int64(len(all)) {
				done = true
				return newer(at, len(all))
			}
			if at == 0 {
				made, err := s.makeWhole(ctx, all)
				if made || err != nil {
					return err
				}
			}
			return s.migrate(ctx, all[at])
		})
		if err != nil {
			return fmt.Errorf("sqlstore: migrating: %w", err)
		}
	}
	return s.inTx(ctx, func() error {
		if err := s.lockMigrations(ctx); err != nil {
			return err
		}
		for _, t := range tables {
			if err := s.create(ctx, t); err != nil {
				return err
			}
		}
		return nil
	})
}

func newer(at int64, known int) error {
	if at > int64(known) {
		return fmt.Errorf("%w: the database has version %d, this library knows %d: update the library", storage.ErrSchema, at, known)
	}
	return nil
}

// lockMigrations keeps other migrators out until the transaction ends, and makes
// the schema the connection's own for as long.
func (s *session) lockMigrations(ctx context.Context) error {
	if s.d.MigrateLock != "" && s.d.MigrateUnlock == "" {
		if err := s.exec(ctx, s.d.MigrateLock); err != nil {
			return err
		}
	}
	if s.d.Schema == "" {
		return nil
	}
	return s.exec(ctx, fmt.Sprintf(s.d.MigrateIn, s.d.Schema))
}

func (d *Dialect) migrationsDDL() string {
	return "CREATE TABLE IF NOT EXISTS " + d.local("migrations") + " (version " + d.Types[storage.Int] +
		" NOT NULL PRIMARY KEY, name " + d.KeyText + " NOT NULL)" + d.TableSuffix
}

func (s *session) migrationsTable(ctx context.Context) error {
	if err := s.lockMigrations(ctx); err != nil {
		return err
	}
	if s.d.Schema != "" {
		if err := s.exec(ctx, fmt.Sprintf(s.d.MakeSchema, s.d.Schema)); err != nil {
			return err
		}
	}
	return s.exec(ctx, s.d.migrationsDDL())
}

func (s *session) schemaVersion(ctx context.Context) (int64, error) {
	var v int64
	err := s.conn.GetContext(ctx, &v, "SELECT coalesce(max(version), 0) FROM "+s.d.Table("migrations"))
	return v, err
}

func (s *session) migrate(ctx context.Context, m migration) error {
	for _, q := range m.statements {
		there, err := s.hasColumn(ctx, q)
		if err == nil && !there {
			err = s.passCheck(ctx, q)
		}
		if err == nil && !there {
			err = s.exec(ctx, q)
		}
		if s.d.Made != nil && s.d.Made(err) {
			err = nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return s.record(ctx, m)
}

func (s *session) record(ctx context.Context, m migration) error {
	return s.exec(ctx, "INSERT INTO "+s.d.Table("migrations")+" (version, name) VALUES (?, ?) "+s.d.ignore("version"), m.version, m.name)
}

// WholeSchema is the file beside a dialect's migrations that makes what all of them make,
// for a database that has nothing yet. Its first line names the last of them.
const WholeSchema = "schema.sql"

// makeWhole makes the schema of an empty database at once, where the dialect has the file
// for it: altering a table takes SQLite longer than making it.
func (s *session) makeWhole(ctx context.Context, all []migration) (bool, error) {
	text, err := fs.ReadFile(s.d.Migrations, WholeSchema)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if first != WholeUpTo(all[len(all)-1].name) {
		return false, nil
	}
	have, err := s.d.Describe(ctx, s.conn, s.d.Table("parts"))
	if err != nil || len(have) > 0 {
		return false, err
	}
	for _, q := range statements(strings.ReplaceAll(string(text), Prefix, s.d.local(""))) {
		if err := s.exec(ctx, q); err != nil {
			return false, fmt.Errorf("%s: %w", WholeSchema, err)
		}
	}
	for _, m := range all {
		if err := s.record(ctx, m); err != nil {
			return false, err
		}
	}
	return true, nil
}

// WholeUpTo is the first line of a WholeSchema that holds this migration as its last.
func WholeUpTo(name string) string { return "-- All migrations up to " + name + "." }

// addsCheck is a statement that adds a check to a table and looks at the rows there are.
var addsCheck = regexp.MustCompile(`(?s)^ALTER TABLE (\S+) ADD CONSTRAINT .*?(\w+)\s+CHECK \((.*)\)$`)

// passCheck refuses a statement that adds a check which rows break: the database's own
// error does not name them.
func (s *session) passCheck(ctx context.Context, q string) error {
	m := addsCheck.FindStringSubmatch(q)
	if m == nil {
		return nil
	}
	var broken []struct {
		Part string `db:"part"`
		ID   string `db:"id"`
	}
	const most = 20
	err := s.conn.SelectContext(ctx, &broken, fmt.Sprintf("SELECT part, id FROM %s WHERE NOT (%s) ORDER BY part, id LIMIT %d", m[1], m[3], most))
	if err != nil || len(broken) == 0 {
		return err
	}
	var rows []string
	for _, r := range broken {
		rows = append(rows, fmt.Sprintf("row %q of partition %q", r.ID, r.Part))
	}
	if len(broken) == most {
		rows = append(rows, "perhaps more")
	}
	return fmt.Errorf("table %s: %s: the values break the rule %s that is to be added, as only an edit of the database can have made them: "+
		"find out who made it, correct the values so that this is true: %s; then run Migrate again", m[1], strings.Join(rows, ", "), m[2], strings.Join(strings.Fields(m[3]), " "))
}

// addsColumn is a statement that adds one column to a table.
var addsColumn = regexp.MustCompile(`^ALTER TABLE (\S+) ADD COLUMN (\S+) `)

// hasColumn reports whether a statement adds a column that is there: where a statement
// is a transaction of its own, a migration can have ended after it.
func (s *session) hasColumn(ctx context.Context, q string) (bool, error) {
	m := addsColumn.FindStringSubmatch(q)
	if m == nil {
		return false, nil
	}
	have, err := s.d.Describe(ctx, s.conn, s.d.Table(strings.TrimPrefix(m[1], s.d.local(""))))
	column := "column " + strings.Trim(m[2], s.d.Quote) + " "
	return slices.ContainsFunc(have, func(line string) bool { return strings.HasPrefix(line, column) }), err
}

func (s *session) create(ctx context.Context, t *storage.Table) error {
	have, err := s.d.Describe(ctx, s.conn, s.d.Table(t.Name))
	if err != nil {
		return err
	}
	if len(have) > 0 {
		return s.complete(ctx, t, have)
	}
	for _, q := range s.d.DDL(t) {
		if err := s.exec(ctx, q); err != nil {
			return fmt.Errorf("creating %s: %w", s.d.Table(t.Name), err)
		}
	}
	return nil
}

// complete adds to a host's own table the columns that every table has since it was made.
func (s *session) complete(ctx context.Context, t *storage.Table, have []string) error {
	for _, column := range s.d.leaseColumns() {
		words := strings.Fields(strings.ReplaceAll(column, s.d.Quote, ""))
		if line := "column " + words[0] + " " + words[1]; !slices.Contains(have, line) {
			if err := s.exec(ctx, "ALTER TABLE "+s.d.Table(t.Name)+" ADD COLUMN "+column); err != nil {
				return err
			}
			have = append(have, line)
		}
	}
	return s.d.compare(t, have)
}

func (d *Dialect) compare(t *storage.Table, have []string) error {
	if len(have) == 0 {
		return fmt.Errorf("%w: there is no table %s", storage.ErrSchema, d.Table(t.Name))
	}
	if m := missing(d.Shape(t), have); len(m) > 0 {
		return fmt.Errorf("%w: table %s: %s", storage.ErrSchema, d.Table(t.Name), strings.Join(m, "; "))
	}
	return nil
}

// checkSchema refuses a database whose schema is not this library's.
func (s *session) checkSchema(ctx context.Context, tables []*storage.Table) error {
	all, err := s.d.migrations()
	if err != nil {
		return err
	}
	have, err := s.d.Describe(ctx, s.conn, s.d.Table("migrations"))
	if err != nil {
		return err
	}
	if len(have) == 0 {
		return fmt.Errorf("%w: the database is empty", storage.ErrSchema)
	}
	at, err := s.schemaVersion(ctx)
	if err != nil {
		return err
	}
	if at < int64(len(all)) {
		return fmt.Errorf("%w: the database has version %d, this library needs %d", storage.ErrSchema, at, len(all))
	}
	if err := newer(at, len(all)); err != nil {
		return err
	}
	for _, t := range tables {
		have, err := s.d.Describe(ctx, s.conn, s.d.Table(t.Name))
		if err != nil {
			return err
		}
		if err := s.d.compare(t, have); err != nil {
			return err
		}
	}
	return nil
}
