package stream_test

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

var kills = flag.Int("kills", 10, "how often processes are killed on each store")

// child says to a process of the test which store it works on.
const child = "STREAM_CHILD"

func TestMain(m *testing.M) {
	if of := os.Getenv(child); of != "" {
		kind, dsn, _ := strings.Cut(of, "=")
		fmt.Fprintln(os.Stderr, work(kind, dsn))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func open(kind, dsn string) (storage.Store, error) {
	switch kind {
	case "sqlite":
		return sqlite.Open(dsn, sqlite.Options{})
	case "postgres":
		return postgres.Open(dsn, postgres.Options{})
	case "mariadb":
		return mysql.Open(dsn, mysql.Options{})
	}
	return redisstore.New(redis.NewClient(&redis.Options{Addr: dsn}), redisstore.Options{Prefix: "p"}), nil
}

func tables() []*storage.Table { return append(storagetest.Tables(), stream.Tables()...) }

// shops are whose events there are.
func shops() []storage.Partition {
	return []storage.Partition{storage.Tenant("a"), storage.Tenant("b"), storage.Tenant("c")}
}

// hear writes an event into the host's table: what the event asks for, and nothing that
// would keep it from being done twice.
func hear(ctx context.Context, tx stream.Tx, e stream.Event) error {
	if tx.SQL == nil {
		return nil
	}
	_, err := tx.SQL.ExecContext(ctx, fmt.Sprintf("INSERT INTO heard VALUES ('%s', %d)", e.Partition, e.Number))
	return err
}

func service(store storage.Store, handle func(context.Context, stream.Tx, stream.Event) error) *stream.Service {
	s, err := stream.New(stream.Config{
		Store: store, Consumers: []stream.Consumer{{Name: "host", Handle: handle}}, Kinds: stream.Kinds{},
		Now: time.Now, NewID: uuid.NewString, Lease: 2 * time.Second,
	})
	if err != nil {
		panic(err)
	}
	return s
}

// work tells of something and hands it over, until it is killed.
func work(kind, dsn string) error {
	ctx := context.Background()
	store, err := open(kind, dsn)
	if err != nil {
		return err
	}
	if err := store.Open(ctx, tables()...); err != nil {
		return err
	}
	s := service(store, hear)
	if err := s.Register(ctx); err != nil {
		return err
	}
	run := s.Run(ctx, 4)
	for i := 0; ; i++ {
		for _, p := range shops() {
			at := time.Now()
			c := storage.Change{ID: uuid.NewString(), Partition: p}
			c.Put = []storage.Row{storagetest.Notes.Row(c.ID, 0, time.Time{}, storagetest.Note{})}
			for k := range i%3 + 1 {
				c.Tell = append(c.Tell, storage.Event{Kind: "made", Object: fmt.Sprint(c.ID, k), At: at})
			}
			if err := storage.CommitOne(ctx, store, c); err != nil && !errors.Is(err, storage.ErrBusy) {
				return err
			}
		}
		if _, err := run.Step(ctx); err != nil {
			return err
		}
	}
}

// E01, L01: processes are killed while they hand events to a consumer. On a SQL database
// each event is in the host's table once; on Redis each was handled at least once.
func TestFE01_L01_KilledConsumers(t *testing.T) {
	t.Parallel()
	run := func(kind string, dsn func(t *testing.T) string) {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			killed(t, kind, dsn(t))
		})
	}
	run("sqlite", func(t *testing.T) string {
		file := filepath.Join(t.TempDir(), "x.db")
		require.NoError(t, sqlite.Migrate(t.Context(), file, tables()...))
		return file
	})
	run("postgres", func(t *testing.T) string {
		dsn := testenv.Postgres(t).DSN("postgres")
		require.NoError(t, postgres.Migrate(t.Context(), dsn, postgres.Options{}, tables()...))
		return dsn
	})
	run("mariadb", func(t *testing.T) string {
		dsn := testenv.MariaDB(t).MySQLDSN("test")
		require.NoError(t, mysql.Migrate(t.Context(), dsn, mysql.Options{}, tables()...))
		return dsn
	})
	run("redis", func(t *testing.T) string {
		return testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction").Address()
	})
}

func killed(t *testing.T, kind, dsn string) {
	t.Helper()
	ctx := t.Context()
	store, err := open(kind, dsn)
	require.NoError(t, err)
	defer store.Close() //nolint:errcheck // a test's end
	require.NoError(t, store.Open(ctx, tables()...))
	begin, once := store.(storage.Transactor)
	if once {
		require.NoError(t, begin.InTx(ctx, storage.Tenant("a"), func(ctx context.Context, tx *sql.Tx, _ storage.Tx) error {
			_, err := tx.ExecContext(ctx, "CREATE TABLE heard (part varchar(100), number bigint)")
			return err
		}))
	}
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any will do; it is printed
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // dice of a test
	start := func() *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^$") //nolint:gosec // this test itself
		cmd.Env = append(os.Environ(), child+"="+kind+"="+dsn)
		cmd.Stderr = t.Output()
		require.NoError(t, cmd.Start())
		return cmd
	}
	processes := []*exec.Cmd{start(), start(), start()}
	for range *kills {
		last := func() (n int64) {
			for _, p := range shops() {
				s, _, _, err := storage.Streams.One(ctx, store, p, storage.StreamID)
				require.NoError(t, err)
				n += s.Last
			}
			return n
		}
		from := last()
		require.Eventually(t, func() bool { return last() >= from+30+dice.Int64N(60) }, time.Minute, 5*time.Millisecond)
		i := dice.IntN(len(processes))
		require.NoError(t, processes[i].Process.Kill())
		_ = processes[i].Wait()
		processes[i] = start()
	}
	for _, p := range processes {
		require.NoError(t, p.Process.Kill())
		_ = p.Wait()
	}

	s := service(store, hear)
	require.Eventually(t, func() bool { // the leases of the dead end
		_, err := s.Step(ctx)
		require.NoError(t, err)
		for _, p := range shops() {
			place, _, _, err := stream.Places.One(ctx, store, p, "host")
			require.NoError(t, err)
			last, _, _, err := storage.Streams.One(ctx, store, p, storage.StreamID)
			require.NoError(t, err)
			if place.Seen != last.Last {
				return false
			}
		}
		return true
	}, time.Minute, 50*time.Millisecond)
	if !once {
		return
	}
	for _, p := range shops() {
		last, _, _, err := storage.Streams.One(ctx, store, p, storage.StreamID)
		require.NoError(t, err)
		var all, different, highest int64
		require.NoError(t, begin.InTx(ctx, storage.Tenant("a"), func(ctx context.Context, tx *sql.Tx, _ storage.Tx) error {
			return tx.QueryRowContext(ctx, "SELECT count(*), count(DISTINCT number), max(number) FROM heard WHERE part = '"+string(p)+"'").Scan(&all, &different, &highest)
		}))
		require.Equal(t, last.Last, highest)
		require.Equal(t, last.Last, different, "each event of %s", p)
		require.Equal(t, last.Last, all, "each once")
		letters, err := s.Dead(ctx, p, "host", 0, 1)
		require.NoError(t, err)
		require.Empty(t, letters)
	}
}
