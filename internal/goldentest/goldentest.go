// Package goldentest keeps the rows of a store in files, for tests that open a store which
// an earlier version left. The SQL databases have the same rows and share a file. Redis has
// one of its own, with its keys.
package goldentest

import (
	"bufio"
	"compress/gzip"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
)

// Read opens a file that was written with Write.
func Read(t testing.TB, file string) io.Reader {
	t.Helper()
	f, err := os.Open(file)
	require.NoError(t, err)
	t.Cleanup(func() { _ = f.Close() })
	z, err := gzip.NewReader(f)
	require.NoError(t, err)
	return z
}

// Write makes a file of what f writes. The same text makes the same file.
func Write(t testing.TB, file string, f func(w io.Writer)) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o750))
	out, err := os.Create(file)
	require.NoError(t, err)
	z, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	require.NoError(t, err)
	f(z)
	require.NoError(t, z.Close())
	require.NoError(t, out.Close())
}

// prefix of every table of a store.
const prefix = "cryptopay_"

// journal is the table of the migrations that a database has.
const journal = prefix + "migrations"

type table struct {
	Columns []string
	Rows    [][]any
}

// Migrations counts the migrations of a dialect in a folder of storage/sqlstore.
func Migrations(t testing.TB, sqlstore, dialect string) int {
	return len(migrations(t, sqlstore, dialect))
}

func migrations(t testing.TB, sqlstore, dialect string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(sqlstore, dialect, "migrations", "*.sql"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	slices.Sort(files)
	return files
}

// SQL is an empty database, and what is to be made in it.
type SQL struct {
	DB         *sqlx.DB
	Dialect    string // "sqlite", "postgres" or "mysql"
	Migrations int    // that the store had
	Folder     string // of storage/sqlstore
	Declared   string // statements that make the host's own tables
}

// Fill makes the schema of the time, and puts the rows in.
func (s SQL) Fill(t testing.TB, rows io.Reader) {
	t.Helper()
	exec := func(text string) {
		for q := range strings.SplitSeq(text, ";\n") {
			if q = strings.TrimSpace(q); q != "" {
				s.DB.MustExec(q)
			}
		}
	}
	kind, quote := "(version bigint NOT NULL PRIMARY KEY, name varchar(200) NOT NULL)", `"`
	switch s.Dialect {
	case "sqlite":
		kind = "(version INTEGER NOT NULL PRIMARY KEY, name TEXT NOT NULL)"
	case "mysql":
		quote = "`"
	}
	exec("CREATE TABLE " + journal + " " + kind)
	for i, file := range migrations(t, s.Folder, s.Dialect)[:s.Migrations] {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		exec(string(text))
		s.DB.MustExec(s.DB.Rebind("INSERT INTO "+journal+" (version, name) VALUES (?, ?)"), i+1, strings.TrimSuffix(filepath.Base(file), ".sql"))
	}
	exec(s.Declared)
	var all map[string]table
	d := json.NewDecoder(rows)
	d.UseNumber()
	require.NoError(t, d.Decode(&all))
	tx := s.DB.MustBegin()
	for name, rows := range all {
		names := make([]string, len(rows.Columns))
		for i, c := range rows.Columns {
			names[i] = quote + c + quote
		}
		insert := s.DB.Rebind("INSERT INTO " + prefix + name + " (" + strings.Join(names, ", ") + ") VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", len(names)), ", ") + ")")
		for _, row := range rows.Rows {
			for i, v := range row {
				var err error
				switch v := v.(type) {
				case json.Number:
					row[i], err = v.Int64()
				case map[string]any:
					row[i], err = hex.DecodeString(v["hex"].(string))
				}
				require.NoError(t, err)
			}
			tx.MustExec(insert, row...)
		}
	}
	require.NoError(t, tx.Commit())
}

// DumpSQLite writes the rows of a database of SQLite for SQL.Fill.
func DumpSQLite(t testing.TB, db *sqlx.DB, w io.Writer) {
	t.Helper()
	var names []string
	require.NoError(t, db.Select(&names, "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE ? AND name <> ? ORDER BY name", prefix+"%", journal))
	all := map[string]table{}
	for _, name := range names {
		if made := dumpTable(t, db, name); len(made.Rows) > 0 {
			all[strings.TrimPrefix(name, prefix)] = made
		}
	}
	require.NoError(t, json.NewEncoder(w).Encode(all))
}

func dumpTable(t testing.TB, db *sqlx.DB, name string) (out table) {
	t.Helper()
	rows, err := db.QueryxContext(t.Context(), `SELECT * FROM "`+name+`"`) //nolint:sqlclosecheck // it is, below
	require.NoError(t, err)
	defer rows.Close() //nolint:errcheck // all of it was read
	out.Columns, err = rows.Columns()
	require.NoError(t, err)
	for rows.Next() {
		row, err := rows.SliceScan()
		require.NoError(t, err)
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = map[string]string{"hex": hex.EncodeToString(b)}
			}
		}
		out.Rows = append(out.Rows, row)
	}
	require.NoError(t, rows.Err())
	slices.SortFunc(out.Rows, func(a, b []any) int { return strings.Compare(fmt.Sprint(a...), fmt.Sprint(b...)) })
	return out
}

// redisKey is one key of Redis. Its texts are in base64.
type redisKey struct {
	Key    string
	Hash   []string `json:",omitempty"`
	Zset   []string `json:",omitempty"`
	List   []string `json:",omitempty"`
	Set    []string `json:",omitempty"`
	String []string `json:",omitempty"`
}

// FillRedis writes the keys of a store on Redis.
func FillRedis(t testing.TB, client *redis.Client, keys io.Reader) {
	t.Helper()
	lines := bufio.NewScanner(keys)
	lines.Buffer(nil, 1<<22)
	text := func(s string) string {
		b, err := base64.RawStdEncoding.DecodeString(s)
		require.NoError(t, err)
		return string(b)
	}
	for lines.Scan() {
		var line redisKey
		require.NoError(t, json.Unmarshal(lines.Bytes(), &line))
		ctx, key := t.Context(), text(line.Key)
		for i := 0; i+1 < len(line.Hash); i += 2 {
			require.NoError(t, client.HSet(ctx, key, text(line.Hash[i]), text(line.Hash[i+1])).Err())
		}
		for i := 0; i+1 < len(line.Zset); i += 2 {
			score, err := strconv.ParseFloat(text(line.Zset[i+1]), 64)
			require.NoError(t, err)
			require.NoError(t, client.ZAdd(ctx, key, redis.Z{Member: text(line.Zset[i]), Score: score}).Err())
		}
		for _, v := range line.List {
			require.NoError(t, client.RPush(ctx, key, text(v)).Err())
		}
		for _, v := range line.Set {
			require.NoError(t, client.SAdd(ctx, key, text(v)).Err())
		}
		for _, v := range line.String {
			require.NoError(t, client.Set(ctx, key, text(v), 0).Err())
		}
	}
	require.NoError(t, lines.Err())
}

// DumpRedis writes all keys of a server for FillRedis.
func DumpRedis(t testing.TB, client *redis.Client, w io.Writer) {
	t.Helper()
	ctx := t.Context()
	keys, err := client.Keys(ctx, "*").Result()
	require.NoError(t, err)
	slices.Sort(keys)
	encode := func(all ...string) (out []string) {
		for _, s := range all {
			out = append(out, base64.RawStdEncoding.EncodeToString([]byte(s)))
		}
		return out
	}
	e := json.NewEncoder(w)
	for _, key := range keys {
		line := redisKey{Key: encode(key)[0]}
		kind, err := client.Type(ctx, key).Result()
		require.NoError(t, err)
		switch kind {
		case "hash":
			all, err := client.HGetAll(ctx, key).Result()
			require.NoError(t, err)
			for _, field := range slices.Sorted(maps.Keys(all)) {
				line.Hash = append(line.Hash, encode(field, all[field])...)
			}
		case "zset":
			all, err := client.ZRangeWithScores(ctx, key, 0, -1).Result()
			require.NoError(t, err)
			for _, z := range all {
				line.Zset = append(line.Zset, encode(fmt.Sprint(z.Member), strconv.FormatFloat(z.Score, 'g', -1, 64))...)
			}
		case "list":
			all, err := client.LRange(ctx, key, 0, -1).Result()
			require.NoError(t, err)
			line.List = encode(all...)
		case "set":
			all, err := client.SMembers(ctx, key).Result()
			require.NoError(t, err)
			slices.Sort(all)
			line.Set = encode(all...)
		case "string":
			v, err := client.Get(ctx, key).Result()
			require.NoError(t, err)
			line.String = encode(v)
		default:
			require.Failf(t, "unknown kind of key", "%q is %s", key, kind)
		}
		require.NoError(t, e.Encode(line))
	}
}
