package outgoing_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/goldentest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/redisstore"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

// goldens are the stores of earlier versions, oldest first. Each has orders in every state,
// with the chains that they are on. To add one, add a name and run
// TestOrdersOfEarlierVersions with -update: it makes the stores that have no files, and
// leaves the others as those versions wrote them.
var goldens = []string{"1"}

// sqlstore is the folder of the databases' migrations.
var sqlstore = filepath.Join("..", "..", "storage", "sqlstore")

var dialects = []string{"sqlite", "postgres", "mysql"}

// golden is what the files beside the rows say.
type golden struct {
	Migrations map[string]int // by dialect
	Stands     map[string]*standing
}

// standing is how a stand was left.
type standing struct {
	Now       time.Time
	Keys, Ops int               // that were made so far
	Alien     []string          // transactions that are not ours
	Payloads  map[string]string // that the signer has signed, by attempt
	Slots     map[string]string // that it has given to intents
	Chain     json.RawMessage
}

func goldenFile(name, kind string) string {
	return filepath.Join("testdata", "golden", name+kind+".gz")
}

// inPart is a store whose partition of a network is another one's, named after a stand: so
// many stands of the same network share a store.
type inPart struct {
	storage.Store
	name string
}

func (s inPart) to(p storage.Partition) storage.Partition { return p + storage.Partition("/"+s.name) }

func (s inPart) from(rows []storage.Row, err error) ([]storage.Row, error) {
	for i := range rows {
		rows[i].Partition = storage.Partition(strings.TrimSuffix(string(rows[i].Partition), "/"+s.name))
	}
	return rows, err
}

func (s inPart) Commit(ctx context.Context, changes ...storage.Change) []error {
	changes = slices.Clone(changes)
	for i := range changes {
		changes[i].Partition = s.to(changes[i].Partition)
	}
	return s.Store.Commit(ctx, changes...)
}

func (s inPart) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	keys = slices.Clone(keys)
	for i := range keys {
		keys[i].Partition = s.to(keys[i].Partition)
	}
	return s.from(s.Store.Rows(ctx, t, keys...))
}

func (s inPart) query(q storage.Query) storage.Query {
	if q.Partitions = slices.Clone(q.Partitions); q.Partitions == nil {
		q.Partition = s.to(q.Partition)
	}
	for i := range q.Partitions {
		q.Partitions[i] = s.to(q.Partitions[i])
	}
	return q
}

func (s inPart) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	return s.from(s.Store.Find(ctx, s.query(q)))
}

func (s inPart) Count(ctx context.Context, q storage.Query) (int64, error) {
	return s.Store.Count(ctx, s.query(q))
}

func (s inPart) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	c.Partition = s.to(c.Partition)
	return s.from(s.Store.Claim(ctx, c))
}

// world is a stand in a store.
func (s *stand) world(t *testing.T, store storage.Store) *world {
	set := s.setup
	set.store = inPart{store, s.name}
	return newWorld(t, set)
}

// left writes down how a world was left, beside its rows.
func (w *world) left() *standing {
	snapshot, err := w.chain.Snapshot()
	require.NoError(w.t, err)
	out := &standing{
		Now: w.now, Keys: w.keys, Ops: w.ops, Alien: slices.Sorted(maps.Keys(w.alien)),
		Payloads: map[string]string{}, Slots: w.signer.slots, Chain: snapshot,
	}
	for attempt, hash := range w.signer.payloads {
		out.Payloads[attempt] = hex.EncodeToString(hash[:])
	}
	return out
}

// goOn has a new world go on where another was left.
func (w *world) goOn(s *standing) {
	w.t.Helper()
	require.NoError(w.t, w.chain.Restore(s.Chain))
	w.now, w.ops = s.Now, s.Ops
	for w.keys < s.Keys {
		w.key()
	}
	for _, tx := range s.Alien {
		w.alien[tx] = true
	}
	for attempt, text := range s.Payloads {
		hash, err := hex.DecodeString(text)
		require.NoError(w.t, err)
		w.signer.payloads[attempt] = [32]byte(hash)
	}
	maps.Copy(w.signer.slots, s.Slots)
}

// makeGolden makes a golden store of this version.
func makeGolden(t *testing.T, name string) {
	t.Helper()
	made := golden{Migrations: map[string]int{}, Stands: map[string]*standing{}}
	for _, d := range dialects {
		made.Migrations[d] = goldentest.Migrations(t, sqlstore, d)
	}
	file := filepath.Join(t.TempDir(), "golden.db")
	require.NoError(t, sqlite.Migrate(t.Context(), file, tables()...))
	onSQLite, err := sqlite.Open(file, sqlite.Options{})
	require.NoError(t, err)
	client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always").Address()})
	onRedis := redisstore.New(client, redisstore.Options{})
	for i, store := range []storage.Store{onSQLite, onRedis} {
		require.NoError(t, store.Open(t.Context(), tables()...))
		for _, s := range stands() {
			w := s.world(t, store)
			if !s.bare {
				w.endow()
			}
			s.make(w)
			left := w.left()
			if i == 0 {
				made.Stands[s.name] = left
			}
			require.Equal(t, made.Stands[s.name], left, "%s is another one each time", s.name)
		}
	}
	require.NoError(t, onSQLite.Close())
	db := sqlx.MustOpen("sqlite", file)
	goldentest.Write(t, goldenFile(name, ".json"), func(w io.Writer) { goldentest.DumpSQLite(t, db, w) })
	require.NoError(t, db.Close())
	goldentest.Write(t, goldenFile(name, "-redis.jsonl"), func(w io.Writer) { goldentest.DumpRedis(t, client, w) })
	require.NoError(t, client.Close())
	goldentest.Write(t, goldenFile(name, "-chains.json"), func(w io.Writer) { require.NoError(t, json.NewEncoder(w).Encode(made)) })
}

// making is held while a golden store is made.
var making sync.Mutex

func readGolden(t *testing.T, name string) (g golden) {
	t.Helper()
	making.Lock()
	defer making.Unlock()
	if _, err := os.Stat(goldenFile(name, "-chains.json")); os.IsNotExist(err) && flag.Lookup("update").Value.String() == "true" {
		makeGolden(t, name)
	}
	require.NoError(t, json.NewDecoder(goldentest.Read(t, goldenFile(name, "-chains.json"))).Decode(&g))
	return g
}

// stores opens a golden store on each backend, as this version does.
func (g *golden) stores(name string) map[string]func(t *testing.T) storage.Store {
	fill := func(t *testing.T, db *sqlx.DB, dialect string) {
		goldentest.SQL{DB: db, Dialect: dialect, Migrations: g.Migrations[dialect], Folder: sqlstore}.Fill(t, goldentest.Read(t, goldenFile(name, ".json")))
		require.NoError(t, db.Close())
	}
	return map[string]func(t *testing.T) storage.Store{
		"sqlite": func(t *testing.T) storage.Store {
			file := filepath.Join(t.TempDir(), "golden.db")
			fill(t, sqlx.MustOpen("sqlite", file), "sqlite")
			require.NoError(t, sqlite.Migrate(t.Context(), file, tables()...))
			s, err := sqlite.Open(file, sqlite.Options{})
			require.NoError(t, err)
			return s
		},
		"postgres": func(t *testing.T) storage.Store {
			dsn := testenv.Postgres(t).DSN("postgres")
			fill(t, sqlx.MustOpen("pgx", dsn), "postgres")
			require.NoError(t, postgres.Migrate(t.Context(), dsn, postgres.Options{}, tables()...))
			s, err := postgres.Open(dsn, postgres.Options{})
			require.NoError(t, err)
			return s
		},
		"mariadb": func(t *testing.T) storage.Store {
			dsn := testenv.MariaDB(t).MySQLDSN("test")
			fill(t, sqlx.MustOpen("mysql", dsn), "mysql")
			require.NoError(t, mysql.Migrate(t.Context(), dsn, mysql.Options{}, tables()...))
			s, err := mysql.Open(dsn, mysql.Options{})
			require.NoError(t, err)
			return s
		},
		"redis": func(t *testing.T) storage.Store {
			client := redis.NewClient(&redis.Options{Addr: testenv.Redis(t, "--appendonly", "yes", "--appendfsync", "always").Address()})
			goldentest.FillRedis(t, client, goldentest.Read(t, goldenFile(name, "-redis.jsonl")))
			require.NoError(t, redisstore.Migrate(t.Context(), client, redisstore.Options{}, tables()...))
			return redisstore.New(client, redisstore.Options{}).Own()
		},
	}
}

// A store of every earlier version opens on each backend, and each order comes to its end.
func TestOrdersOfEarlierVersions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("servers of its own take seconds")
	}
	for _, name := range goldens {
		g := readGolden(t, name)
		for backend, open := range g.stores(name) {
			t.Run(name+"/"+backend, func(t *testing.T) {
				t.Parallel()
				store := open(t)
				t.Cleanup(func() { require.NoError(t, store.Close()) })
				require.NoError(t, store.Open(t.Context(), tables()...))
				all := stands()
				for _, left := range slices.Sorted(maps.Keys(g.Stands)) { // one that was added later is in none of them
					at := slices.IndexFunc(all, func(s stand) bool { return s.name == left })
					require.GreaterOrEqual(t, at, 0, "nobody knows how %s ends", left)
					t.Run(left, func(t *testing.T) { all[at].comesToRest(t, store, g.Stands[left]) })
				}
			})
		}
	}
}

// comesToRest works on a stand until each of its orders has ended, and demands that it has
// ended as it must.
func (s *stand) comesToRest(t *testing.T, store storage.Store, left *standing) {
	w := s.world(t, store)
	w.goOn(left)
	before := w.rows(outgoing.Intents.Table)
	require.NotEmpty(t, before)
	if s.mend != nil {
		s.mend(w)
	}
	rest := func() bool {
		return !slices.ContainsFunc(w.rows(outgoing.Intents.Table), func(r storage.Row) bool {
			v := outgoing.Intents.Value(r)
			ended := v.State == outgoing.Final || v.State == outgoing.Failed || v.State == outgoing.Cancelled
			return !ended && s.ends[r.ID].state != v.State
		})
	}
	w.run(2)
	for range 60 {
		if rest() {
			break
		}
		w.run(1)
	}
	w.run(2)
	after := w.rows(outgoing.Intents.Table)
	require.Len(t, after, len(before), "what helps the orders was there already")
	for _, r := range after {
		w.ended(r, s.ends[r.ID])
	}
	w.usedOnce()
	w.sound()
}

// ended demands that an order has ended as it must: paid once, or not at all.
func (w *world) ended(r storage.Row, want end) {
	w.t.Helper()
	v := outgoing.Intents.Value(r)
	if want.state == "" {
		want.state = outgoing.Final
	}
	require.Equal(w.t, want, end{v.State, v.Reason}, r.ID)
	require.Empty(w.t, v.Misplanned(r.ID))
	if v.Reason != outgoing.ReasonAltered {
		why, err := w.Net.Refusals(w.ctx, r.ID)
		require.NoError(w.t, err)
		require.Empty(w.t, why)
	}
	o, row, told, err := outgoing.Outcomes.One(w.ctx, w.store, storage.Network(w.gas), r.ID)
	require.NoError(w.t, err)
	if told { // no outcome is stored of an order that was refused
		require.True(w.t, row.Due.IsZero(), "its owner took the last outcome of %s", r.ID)
	}
	switch {
	case v.Purpose == chain.ForCancel: // it pays nobody
	case v.State == outgoing.Final && v.All:
		require.Len(w.t, w.chain.Transfers(v.To), 1)
	case v.State == outgoing.Final || v.Reason == outgoing.ReasonAltered:
		w.paid(v.Order(r.ID))
	default:
		w.unpaid(v.Order(r.ID))
	}
	if v.State == outgoing.Final || v.State == outgoing.Failed {
		require.Equal(w.t, v.State, o.State)
		require.Equal(w.t, v.Reason, o.Reason)
	}
}

// usedOnce demands that at most one transaction that has landed uses each nonce and each
// coin, that it is on the chain, and that nothing may land any more.
func (w *world) usedOnce() {
	w.t.Helper()
	by := map[string]string{}
	for _, r := range w.rows(outgoing.Attempts.Table) {
		a := outgoing.Attempts.Value(r)
		require.NotEqual(w.t, outgoing.Open, a.State, r.ID)
		if a.State != outgoing.AttemptFinal {
			continue
		}
		for _, spent := range a.Spends {
			require.Empty(w.t, by[spent], "%s is used twice", spent)
			by[spent] = r.ID
		}
		st, err := w.chain.Outcome(r.ID)
		require.NoError(w.t, err)
		require.Equal(w.t, chain.Included, st.State)
	}
	for _, r := range w.rows(outgoing.Coins.Table) {
		c := outgoing.Coins.Value(r)
		require.Equal(w.t, c.State == outgoing.CoinSpent, by[r.ID] != "", "%s is %s", r.ID, c.State)
	}
}

// shapes are what orders of a golden store stand in beside the states, each with its test.
var shapes = map[string]func(r *rowsOf) bool{
	"a plan that no signer has signed": func(r *rowsOf) bool {
		return r.intent(func(_ string, v *outgoing.IntentRow) bool { return v.State == outgoing.Queued && len(v.Plan) > 0 })
	},
	"a plan that a signer may have signed": func(r *rowsOf) bool {
		return r.intent(func(_ string, v *outgoing.IntentRow) bool { return v.State == outgoing.Waiting && len(v.Plan) > 0 })
	},
	"a replacement that is planned": func(r *rowsOf) bool {
		return r.intent(func(_ string, v *outgoing.IntentRow) bool { return v.State == outgoing.Signed && len(v.Plan) > 0 })
	},
	"replaced once":  func(r *rowsOf) bool { return slices.Contains(slices.Collect(maps.Values(r.open())), 2) },
	"replaced twice": func(r *rowsOf) bool { return slices.Contains(slices.Collect(maps.Values(r.open())), 3) },
	"cancelling": func(r *rowsOf) bool {
		return r.intent(func(id string, v *outgoing.IntentRow) bool {
			return v.State == outgoing.Signed && v.Cancelling && !outgoing.ParseID(id).Helps()
		})
	},
	"told that it is executed": func(r *rowsOf) bool {
		return r.intent(func(_ string, v *outgoing.IntentRow) bool {
			return v.State == outgoing.Signed && v.ExecutedReported
		})
	},
	"a child": func(r *rowsOf) bool {
		return r.intent(func(id string, v *outgoing.IntentRow) bool {
			return v.State == outgoing.Signed && (outgoing.ParseID(id).Kind == outgoing.OrderChild)
		})
	},
	"a merge that is signed": func(r *rowsOf) bool {
		return r.intent(func(id string, v *outgoing.IntentRow) bool {
			return v.State == outgoing.Signed && (outgoing.ParseID(id).Kind == outgoing.OrderMerge)
		})
	},
	"a merge that is executed": func(r *rowsOf) bool {
		return r.intent(func(id string, v *outgoing.IntentRow) bool {
			return v.State == outgoing.Executed && (outgoing.ParseID(id).Kind == outgoing.OrderMerge)
		})
	},
	"a nonce gap being filled": func(r *rowsOf) bool {
		return r.intent(func(id string, v *outgoing.IntentRow) bool {
			return v.State == outgoing.Signed && strings.HasPrefix(id, "fill/")
		})
	},
	"a sweep": func(r *rowsOf) bool {
		return r.intent(func(_ string, v *outgoing.IntentRow) bool { return v.Purpose == chain.ForSweep && v.All })
	},
	"a gas transfer": func(r *rowsOf) bool {
		return r.intent(func(_ string, v *outgoing.IntentRow) bool { return v.Purpose == chain.ForGas })
	},
	"a batch of several": func(r *rowsOf) bool {
		members := map[string]int{}
		for _, row := range r.rows[outgoing.Batches.Table] {
			members[string(row.Partition)+outgoing.Batches.Value(row).Leader]++
		}
		return slices.Contains(slices.Collect(maps.Values(members)), 2)
	},
	"a nonce that is held": func(r *rowsOf) bool {
		return slices.ContainsFunc(each(r, outgoing.Nonces), func(v outgoing.NonceRow) bool { return v.Holder != "" })
	},
	"an attempt that was rejected": func(r *rowsOf) bool {
		return slices.ContainsFunc(each(r, outgoing.Attempts), func(v outgoing.AttemptRow) bool { return v.Rejected })
	},
	"a halt": func(r *rowsOf) bool {
		return slices.ContainsFunc(each(r, outgoing.Halts), func(v outgoing.HaltRow) bool { return len(v.Halts) > 0 })
	},
	"an operation": func(r *rowsOf) bool { return len(each(r, outgoing.Operations)) > 0 },
	"an outcome that was not told": func(r *rowsOf) bool {
		return slices.ContainsFunc(r.rows[outgoing.Outcomes.Table], func(o storage.Row) bool { return !o.Due.IsZero() })
	},
	"an outcome that was told": func(r *rowsOf) bool {
		return slices.ContainsFunc(r.rows[outgoing.Outcomes.Table], func(o storage.Row) bool { return o.Due.IsZero() })
	},
}

// rowsOf are the rows of golden stores.
type rowsOf struct {
	rows map[*storage.Table][]storage.Row
}

func each[T any](r *rowsOf, t storage.TableOf[T]) (out []T) {
	for _, row := range r.rows[t.Table] {
		out = append(out, t.Value(row))
	}
	return out
}

func (r *rowsOf) intent(is func(id string, v *outgoing.IntentRow) bool) bool {
	return slices.ContainsFunc(r.rows[outgoing.Intents.Table], func(row storage.Row) bool {
		v := outgoing.Intents.Value(row)
		return is(row.ID, &v)
	})
}

// open counts the open attempts of each order.
func (r *rowsOf) open() map[string]int {
	out := map[string]int{}
	for _, row := range r.rows[outgoing.Attempts.Table] {
		if a := outgoing.Attempts.Value(row); a.State == outgoing.Open {
			out[string(row.Partition)+a.Intent]++
		}
	}
	return out
}

// TestGoldenStoresHaveEveryState fails where a version brings a state that no golden store
// has: whoever adds one makes a store that has it.
func TestGoldenStoresHaveEveryState(t *testing.T) {
	t.Parallel()
	all := &rowsOf{rows: map[*storage.Table][]storage.Row{}}
	for _, name := range goldens {
		g := readGolden(t, name)
		store := g.stores(name)["sqlite"](t)
		require.NoError(t, store.Open(t.Context(), tables()...))
		for _, table := range outgoing.Tables() {
			rows, err := store.Find(t.Context(), storage.Query{Table: table, Limit: 10_000})
			require.NoError(t, err)
			all.rows[table] = append(all.rows[table], rows...)
		}
		require.NoError(t, store.Close())
	}
	seen := map[string]map[string]bool{"State": {}, "Reason": {}, "AttemptState": {}, "CoinState": {}}
	for _, v := range each(all, outgoing.Intents) {
		seen["State"][string(v.State)], seen["Reason"][string(v.Reason)] = true, true
	}
	// An order that has ended so is never read again but to be shown: one that was refused is there.
	seen["Reason"][string(outgoing.ReasonCancelled)] = true
	for _, v := range each(all, outgoing.Attempts) {
		seen["AttemptState"][string(v.State)] = true
	}
	for _, v := range each(all, outgoing.Coins) {
		seen["CoinState"][string(v.State)] = true
	}
	declared := constants(t)
	for kind, has := range seen {
		require.NotEmpty(t, declared[kind])
		for _, c := range declared[kind] {
			require.True(t, has[c], "no golden store has a row whose %s is %q: add one, see goldens", kind, c)
		}
	}
	for _, s := range outgoing.Machine().States {
		require.Contains(t, declared["State"], string(s))
	}
	for name, has := range shapes {
		require.True(t, has(all), "no golden store has %s: add one, see goldens", name)
	}
	for _, table := range outgoing.Tables() {
		require.NotEmpty(t, all.rows[table], table.Name)
	}
}

// constants reads the values of the package's constants, by their type.
func constants(t *testing.T) map[string][]string {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	out := map[string][]string{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		file, err := parser.ParseFile(token.NewFileSet(), name, bytes.NewReader(text), parser.SkipObjectResolution)
		require.NoError(t, err)
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 {
				return true
			}
			kind, named := spec.Type.(*ast.Ident)
			if value, ok := spec.Values[0].(*ast.BasicLit); ok && named && value.Kind == token.STRING {
				s, err := strconv.Unquote(value.Value)
				require.NoError(t, err)
				out[kind.Name] = append(out[kind.Name], s)
			}
			return true
		})
	}
	return out
}
