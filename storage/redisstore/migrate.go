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
// dropped. A column that is gone or has another kind, and another unique key, is
// storage.ErrSchema.
//
// No other process may use the store meanwhile: one of an earlier version would go on
// to write rows that lack the new columns. Migrate may be interrupted, and run again at
// any time.
func Migrate(ctx context.Context, client redis.UniversalClient, o Options, tables ...*storage.Table) error {
	s := New(client, o)
	for _, t := range tables {
		l := layoutOf(t)
		words, err := client.HGet(ctx, s.keys.schema(), t.Name).Result()
		if err == redis.Nil || err == nil && words == l.declaration() { //nolint:errorlint // go-redis returns it as it is
			continue
		}
		if err != nil {
			return failed("migrating", err)
		}
		m, err := migrationOf(l, words)
		if err != nil {
			return err
		}
		if err := m.run(ctx, s); err != nil {
			return fmt.Errorf("redisstore: migrating table %q: %w", t.Name, err)
		}
		if err := client.HSet(ctx, s.keys.schema(), t.Name, l.declaration()).Err(); err != nil {
			return failed("migrating", err)
		}
	}
	return nil
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
		if !had[word] && x.unique >= 0 {
			return refuse("the unique key " + x.name + " is new")
		}
		if !had[word] {
			m.build = append(m.build, x)
		}
		delete(had, word)
	}
	for word := range had {
		if strings.HasPrefix(word, "unique ") {
			return refuse("a unique key is gone")
		}
		m.drop = append(m.drop, strings.Trim(word, "()"))
	}
	slices.Sort(m.drop)
	return m, nil
}

//go:embed lua/migrate.lua
var migrateLua string

var migrateScript = redis.NewScript(migrateLua)

// migrateChunk is how many rows one script writes.
const migrateChunk = 200

func (m *migration) run(ctx context.Context, s *Store) error {
	parts, err := s.partitions(ctx, m.l.t, "")
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
		now, err := m.convert(packed)
		if err != nil {
			return fmt.Errorf("%w: row %q", err, id)
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
	return migrateScript.Run(ctx, s.client, names, args...).Err()
}

// convert is a packed row with the columns of now. One that an interrupted run has
// written already stays as it is.
func (m *migration) convert(packed string) (string, error) {
	parts, err := unpackTexts(packed)
	switch {
	case err != nil:
		return "", err
	case len(parts) == 3+len(m.from):
		return packed, nil
	case len(parts) != 3+m.columns:
		return "", errForeign
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
			return "", err
		}
		p.bytes(encodeScalar(nil, zero))
	}
	return string(p.b), nil
}
