package redisstore

import (
	"context"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Migrate brings what is stored to the declarations of the tables, so that Open
// accepts it: columns that a table has gained get their zero value, indexes are built and
// dropped. A unique key may gain columns: what was unique stays so. A column that is gone or
// has another kind, and any other unique key, is storage.ErrSchema.
//
// No other process may use the store meanwhile: one of an earlier version would go on
// to write rows that lack the new columns, which nobody can read. Should that have
// happened, stop it and run Migrate again: it knows the earlier declarations and writes
// such rows anew. Migrate may be interrupted, and run again at any time.
func Migrate(ctx context.Context, client redis.UniversalClient, o Options, tables ...*storage.Table) error {
	s := New(client, o)
	all, err := client.HGetAll(ctx, s.keys.schema()).Result()
	if err != nil {
		return failed("migrating", err)
	}
	for _, t := range tables {
		l := layoutOf(t)
		words, stored := all[t.Name]
		var ways []*migration
		if stored && words != l.declaration() {
			m, err := migrationOf(l, words)
			if err != nil {
				return err
			}
			ways = append(ways, m)
			if err := client.HSet(ctx, s.keys.schema(), earlier(t.Name, m.columns), words).Err(); err != nil {
				return failed("migrating", err)
			}
		}
		for field, words := range all {
			if strings.HasPrefix(field, earlier(t.Name, -1)) {
				m, err := migrationOf(l, words)
				if err != nil {
					return err
				}
				ways = append(ways, m)
			}
		}
		for _, m := range ways {
			if err := m.run(ctx, s); err != nil {
				return fmt.Errorf("redisstore: migrating table %q: %w", t.Name, err)
			}
		}
		if len(ways) == 0 {
			continue
		}
		if err := client.HSet(ctx, s.keys.schema(), t.Name, l.declaration()).Err(); err != nil {
			return failed("migrating", err)
		}
	}
	return nil
}

// earlier is the field of the schema that keeps a declaration of so many columns which
// was migrated away from; the beginning of them all where columns is below 0.
func earlier(table string, columns int) string {
	if columns < 0 {
		return table + " of "
	}
	return table + " of " + strconv.Itoa(columns)
}

// migration is the way from one declaration of a table to the next.
type migration struct {
	l       *layout
	columns int      // how many were stored
	from    []int    // for each column its place among those stored, -1 = it is new
	build   []index  // indexes that are new
	drop    []string // names of indexes that are gone
}

// migrationOf reads what layout.declaration wrote.
func migrationOf(l *layout, words string) (*migration, error) {
	refuse := func(what string) (*migration, error) {
		return nil, fmt.Errorf("%w: redisstore: table %q is stored as %q: %s: copy the store into another Prefix", storage.ErrSchema, l.t.Name, words, what)
	}
	m := &migration{l: l}
	stored := map[string]string{}
	place := map[string]int{}
	for {
		column, rest, ok := strings.Cut(words, ";")
		if !ok {
			break
		}
		name, kind, _ := strings.Cut(strings.TrimSpace(column), " ")
		stored[name], place[name] = kind, m.columns
		m.columns++
		words = rest
	}
	for _, c := range l.t.Columns {
		at, known := place[c.Name]
		switch {
		case !known:
			at = -1
		case stored[c.Name] != strconv.Itoa(int(c.Kind)):
			return refuse("column " + c.Name + " has another kind")
		}
		m.from = append(m.from, at)
		delete(stored, c.Name)
	}
	if len(stored) > 0 {
		return refuse("a column is gone")
	}
	had := map[string]bool{} // "unique (…)" or "(…)"
	unique := ""
	for _, word := range strings.Fields(words) {
		if word == "unique" {
			unique = "unique "
			continue
		}
		had[unique+word] = true
		unique = ""
	}
	for _, x := range l.indexes[1:] {
		word := "(" + x.name + ")"
		if x.unique >= 0 {
			word = "unique " + word
		}
		if !had[word] {
			m.build = append(m.build, x)
		}
		delete(had, word)
	}
	grown := map[string]bool{} // unique keys that gained columns, by what they were
	for _, x := range m.build {
		if x.unique < 0 {
			continue
		}
		from := grownFrom(x.name, had)
		if from == "" {
			return refuse("the unique key " + x.name + " is new")
		}
		grown[from] = true
	}
	for word := range had {
		if strings.HasPrefix(word, "unique ") && !grown[word] {
			return refuse("a unique key is gone")
		}
		m.drop = append(m.drop, strings.Trim(strings.TrimPrefix(word, "unique "), "()"))
	}
	slices.Sort(m.drop)
	return m, nil
}

// grownFrom finds the unique key, among those that are gone, of which a new one has all
// columns; "" where there is none.
func grownFrom(name string, gone map[string]bool) string {
	columns := strings.Split(name, ",")
	for word := range gone {
		key, unique := strings.CutPrefix(word, "unique ")
		if unique && !slices.ContainsFunc(strings.Split(strings.Trim(key, "()"), ","), func(c string) bool { return !slices.Contains(columns, c) }) {
			return word
		}
	}
	return ""
}

//go:embed lua/migrate.lua
var migrateLua string

var migrateScript = redis.NewScript(migrateLua)

// migrateChunk is how many rows one script writes.
const migrateChunk = 200

func (m *migration) run(ctx context.Context, s *Store) error {
	parts, err := s.partitions(ctx, m.l.t, nil)
	if err != nil {
		return err
	}
	for _, p := range parts {
		var cursor uint64
		for first := true; first || cursor != 0; first = false {
			var pairs []string
			if pairs, cursor, err = s.client.HScan(ctx, s.keys.rows(m.l.t, p), cursor, "", migrateChunk).Result(); err != nil {
				return err
			}
			for chunk := range slices.Chunk(pairs, 2*migrateChunk) { // small hashes come whole
				if err := m.rewrite(ctx, s, p, chunk); err != nil {
					return err
				}
			}
		}
		for _, name := range m.drop {
			if err := s.client.Del(ctx, s.keys.index(m.l.t, &index{name: name}, p)).Err(); err != nil {
				return err
			}
		}
	}
	return nil
}

// rewrite writes rows, given as id and packed row by turns, as they are declared now.
func (m *migration) rewrite(ctx context.Context, s *Store, p storage.Partition, pairs []string) error {
	names := []string{s.keys.rows(m.l.t, p)}
	for i := range m.build {
		names = append(names, s.keys.index(m.l.t, &m.build[i], p))
	}
	var args []any
	for i := 0; i+1 < len(pairs); i += 2 {
		id, packed := pairs[i], pairs[i+1]
		now, ok, err := m.convert(packed)
		if err != nil {
			return fmt.Errorf("%w: row %q", err, id)
		}
		if !ok {
			continue
		}
		row, err := unpackRow(m.l.t, p, id, now)
		if err != nil {
			return err
		}
		args = append(args, id, packed, now)
		for x := range m.build {
			args = append(args, string(m.build[x].prefix(row.Scalars))+id+"\x00"+string([]byte{byte(len(id))}))
		}
	}
	if len(args) == 0 {
		return nil
	}
	return migrateScript.Run(ctx, s.client, names, args...).Err()
}

// convert is a packed row with the columns of now. One that has them stays as it is; ok is
// false for one of another declaration than the one that is migrated away from.
func (m *migration) convert(packed string) (now string, ok bool, err error) {
	parts, err := unpackTexts(packed)
	switch {
	case err != nil:
		return "", false, err
	case len(parts) == 3+len(m.from):
		return packed, true, nil
	case len(parts) != 3+m.columns:
		return "", false, nil
	}
	p := packer{}
	p.array(3 + len(m.from))
	for _, head := range parts[:3] {
		p.str(head)
	}
	for i, at := range m.from {
		if at >= 0 {
			p.str(parts[3+at])
			continue
		}
		zero, err := m.l.t.Columns[i].Zero()
		if err != nil {
			return "", false, err
		}
		p.bytes(encodeScalar(nil, zero))
	}
	return string(p.b), true, nil
}
