package redisstore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

// A table before and after: with a column in the middle and one at the end, another index.
type before struct {
	Name  string    `db:"name"`
	Count int64     `db:"count"`
	Tags  []string  `db:"tags,json"`
	At    time.Time `db:"at"`
}

type after struct {
	Name  string            `db:"name"`
	Since time.Time         `db:"since"`
	Count int64             `db:"count"`
	Tags  []string          `db:"tags,json"`
	At    time.Time         `db:"at"`
	Bytes []byte            `db:"bytes"`
	More  map[string]string `db:"more,json"`
}

func olds() storage.TableOf[before] {
	return storage.NewTable[before]("grown", storage.Unique("name"), storage.Index("count"), storage.Index("at"))
}

func news() storage.TableOf[after] {
	return storage.NewTable[after]("grown", storage.Unique("name"), storage.Index("count"), storage.Index("since", "count"))
}

// A store of an earlier version opens after Migrate, with every row, also where Migrate
// was interrupted and run again.
func TestU01_MigrateKeepsRows(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	for interrupted := range 3 {
		o := redisstore.Options{Prefix: fmt.Sprint("migrate", interrupted)}
		old, now := olds(), news()
		s := redisstore.New(client, o)
		require.NoError(t, s.Open(t.Context(), old.Table))
		at := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
		const n = 700 // several chunks
		parts := []storage.Partition{"tenant/a", "tenant/b", "system"}
		for _, p := range parts {
			c := storage.Change{ID: string(p), Partition: p}
			for i := range n {
				var due time.Time
				if i%100 == 0 {
					due = at
				}
				c.Put = append(c.Put, old.Row(fmt.Sprint("id", i), 0, due, before{Name: fmt.Sprint("name", i), Count: int64(i % 7), Tags: []string{"x"}, At: at}))
			}
			require.NoError(t, storage.CommitOne(t.Context(), s, c))
		}
		s = redisstore.New(client, o)
		require.ErrorIs(t, s.Open(t.Context(), now.Table), storage.ErrSchema)
		require.ErrorContains(t, s.Open(t.Context(), now.Table), "run Migrate")
		if interrupted > 0 { // rows are written, the declaration is not
			words := client.HGet(t.Context(), o.Prefix+":{0}:schema:tables", "grown").Val()
			require.NoError(t, redisstore.Migrate(t.Context(), client, o, now.Table))
			require.NoError(t, client.HSet(t.Context(), o.Prefix+":{0}:schema:tables", "grown", words).Err())
		}
		for range 2 { // again at any time
			require.NoError(t, redisstore.Migrate(t.Context(), client, o, now.Table))
		}
		s = redisstore.New(client, o)
		require.NoError(t, s.Open(t.Context(), now.Table))
		for _, p := range parts {
			rows, err := s.Find(t.Context(), storage.Query{Table: now.Table, Partition: p, Limit: n + 1, Where: []storage.Cond{
				{Column: "since", Op: storage.Eq, Value: time.Time{}}, {Column: "count", Op: storage.Eq, Value: int64(3)},
			}})
			require.NoError(t, err)
			require.Len(t, rows, n/7)
			v := now.Value(rows[0])
			require.Equal(t, after{Name: v.Name, Count: 3, Tags: []string{"x"}, At: at, Bytes: v.Bytes}, v)
			require.Empty(t, v.Bytes)
			again := now.Row(rows[0].ID, rows[0].Version, time.Time{}, after{Name: "another", Count: 3, Since: at})
			require.NoError(t, storage.CommitOne(t.Context(), s, storage.Change{ID: "again " + string(p), Partition: p, Put: []storage.Row{again}}))
			rows, err = s.Find(t.Context(), storage.Query{Table: now.Table, Partition: p, Where: []storage.Cond{{Column: "since", Op: storage.Eq, Value: at}}})
			require.NoError(t, err)
			require.Len(t, rows, 1)
			duplicate := storage.CommitOne(t.Context(), s, storage.Change{ID: "dup " + string(p), Partition: p, Put: []storage.Row{now.Row("new", 0, time.Time{}, after{Name: "name5"})}})
			require.ErrorAs(t, duplicate, new(*storage.DuplicateError))
		}
		due, err := s.Claim(t.Context(), storage.Claim{Table: now.Table, Now: at, Until: at.Add(time.Hour), Max: 100})
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(due), 3*n/100-3)
		left, err := client.Keys(t.Context(), o.Prefix+":*:idx:grown:at:*").Result()
		require.NoError(t, err)
		require.Empty(t, left, "the index that is gone")
	}
}

// What cannot be kept is refused, and nothing is written.
func TestU01_MigrateRefuses(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	type gone struct {
		Name string `db:"name"`
	}
	type other struct {
		Name  string `db:"name"`
		Count string `db:"count"`
		Tags  string `db:"tags"`
		At    string `db:"at"`
	}
	o := redisstore.Options{Prefix: "refused"}
	s := redisstore.New(client, o)
	require.NoError(t, s.Open(t.Context(), olds().Table))
	for what, table := range map[string]*storage.Table{
		"a column is gone":         storage.NewTable[gone]("grown", storage.Unique("name")).Table,
		"has another kind":         storage.NewTable[other]("grown", storage.Unique("name")).Table,
		"the unique key at is new": storage.NewTable[before]("grown", storage.Unique("name"), storage.Unique("at")).Table,
		"a unique key is gone":     storage.NewTable[before]("grown").Table,
	} {
		err := redisstore.Migrate(t.Context(), client, o, table)
		require.ErrorIs(t, err, storage.ErrSchema, what)
		require.ErrorContains(t, err, what)
	}
	require.NoError(t, redisstore.New(client, o).Open(t.Context(), olds().Table))
}

// A process of an earlier version was not stopped, and writes a row of its own form. Run
// again, Migrate brings it to the present form.
func TestFU01_MigrateAgainMendsRowsOfAnOldProcess(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	o := redisstore.Options{Prefix: "mended"}
	old, now := olds(), news()
	running := redisstore.New(client, o)
	require.NoError(t, running.Open(t.Context(), old.Table))
	write := func(id string, count int64) {
		row := old.Row(id, 0, time.Time{}, before{Name: id, Count: count})
		require.NoError(t, storage.CommitOne(t.Context(), running, storage.Change{ID: id, Partition: "tenant/a", Put: []storage.Row{row}}))
	}
	write("first", 1)
	require.NoError(t, redisstore.Migrate(t.Context(), client, o, now.Table))
	write("second", 2)
	s := redisstore.New(client, o)
	require.NoError(t, s.Open(t.Context(), now.Table))
	q := storage.Query{Table: now.Table, Partition: "tenant/a"}
	_, err := s.Find(t.Context(), q)
	require.Error(t, err, "nobody can read it")
	require.NoError(t, redisstore.Migrate(t.Context(), client, o, now.Table))
	rows, err := s.Find(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, rows, 2)
	q.Where = []storage.Cond{{Column: "since", Op: storage.Eq, Value: time.Time{}}, {Column: "count", Op: storage.Eq, Value: int64(2)}}
	rows, err = s.Find(t.Context(), q)
	require.NoError(t, err)
	require.Len(t, rows, 1, "it is in the new index")
}

// What a later version has stored in another form is not opened.
func TestU01_AnotherLayoutIsRefused(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	s := opened(t, client, redisstore.Options{})
	require.NoError(t, storage.CommitOne(t.Context(), s, sale("1")))
	opened(t, client, redisstore.Options{})
	require.NoError(t, client.HSet(t.Context(), "cryptopay:{0}:schema:tables", "", "2").Err())
	require.ErrorIs(t, redisstore.New(client, redisstore.Options{}).Open(t.Context(), storagetest.Tables()...), storage.ErrSchema)
}

// Whichever answer is lost while a store is migrated: without an error every row has the
// present form, and after one, once it ran again.
func TestU01_LostAnswersOfMigrate(t *testing.T) {
	t.Parallel()
	p, client := server(t)
	between := newProxy(t, p.Address())
	for n := 1; ; n++ {
		far := redis.NewClient(&redis.Options{Addr: between.address, MaxRetries: -1, DialerRetries: 1, PoolSize: 1})
		t.Cleanup(func() { _ = far.Close() })
		require.NoError(t, far.Ping(t.Context()).Err())
		o := redisstore.Options{Prefix: fmt.Sprint("lost", n)}
		old, now := olds(), news()
		s := redisstore.New(client, o)
		require.NoError(t, s.Open(t.Context(), old.Table))
		for _, p := range []storage.Partition{"tenant/a", "tenant/b"} {
			row := old.Row("1", 0, time.Time{}, before{Name: "x", Count: 3})
			require.NoError(t, storage.CommitOne(t.Context(), s, storage.Change{ID: string(p), Partition: p, Put: []storage.Row{row}}))
		}
		between.cutAt(n)
		err := redisstore.Migrate(t.Context(), far, o, now.Table)
		whole := between.cutAt(0) > 0
		if err != nil {
			require.False(t, whole, err)
			require.NoError(t, redisstore.Migrate(t.Context(), client, o, now.Table))
		}
		s = redisstore.New(client, o)
		require.NoError(t, s.Open(t.Context(), now.Table))
		rows, err := s.Find(t.Context(), storage.Query{Table: now.Table, Where: []storage.Cond{{Column: "since", Op: storage.Eq, Value: time.Time{}}}})
		require.NoError(t, err, "answer %d", n)
		require.Len(t, rows, 2, "answer %d", n)
		if whole {
			require.Greater(t, n, 8)
			return
		}
	}
}

// A unique key that gains a column: what was unique is found by the new key, stays unique, and
// what differs in the new column alone may be there twice.
func TestU01_AUniqueKeyMayGainColumns(t *testing.T) {
	t.Parallel()
	_, client := server(t)
	type wider struct {
		Name  string    `db:"name"`
		Count int64     `db:"count"`
		Tags  []string  `db:"tags,json"`
		At    time.Time `db:"at"`
		Slot  string    `db:"slot"`
	}
	o := redisstore.Options{Prefix: "wider"}
	old := olds()
	now := storage.NewTable[wider]("grown", storage.Unique("name", "slot"), storage.Index("count"), storage.Index("at"))
	s := redisstore.New(client, o)
	require.NoError(t, s.Open(t.Context(), old.Table))
	p := storage.Partition("tenant/a")
	put := func(s storage.Store, id string, row storage.Row) error {
		return storage.CommitOne(t.Context(), s, storage.Change{ID: "put " + id, Partition: p, Put: []storage.Row{row}})
	}
	require.NoError(t, put(s, "1", old.Row("1", 0, time.Time{}, before{Name: "a"})))
	for range 2 {
		require.NoError(t, redisstore.Migrate(t.Context(), client, o, now.Table))
	}
	s = redisstore.New(client, o)
	require.NoError(t, s.Open(t.Context(), now.Table))
	rows, err := s.Rows(t.Context(), now.Table, storage.Key{Partition: p, Unique: []string{"name", "slot"}, Values: []any{"a", ""}})
	require.NoError(t, err)
	require.Len(t, rows, 1)
	require.ErrorAs(t, put(s, "2", now.Row("2", 0, time.Time{}, wider{Name: "a"})), new(*storage.DuplicateError))
	require.NoError(t, put(s, "3", now.Row("3", 0, time.Time{}, wider{Name: "a", Slot: "x"})))
	left, err := client.Keys(t.Context(), o.Prefix+":*:idx:grown:name:*").Result()
	require.NoError(t, err)
	require.Empty(t, left, "the key that is gone")

	narrower := storage.NewTable[wider]("grown", storage.Unique("slot"), storage.Index("count"), storage.Index("at"))
	require.ErrorIs(t, redisstore.Migrate(t.Context(), client, o, narrower.Table), storage.ErrSchema)
}
