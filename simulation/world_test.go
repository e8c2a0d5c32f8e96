package simulation_test

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/simulation"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
)

var (
	seed    = flag.Uint64("world.seed", 0, "play the world of this seed alone and tell all of its story")
	seeds   = flag.Uint64("world.seeds", 60, "how many worlds to play")
	from    = flag.Uint64("world.from", 1, "the seed of the first; 0 = one that no run before had, which is told")
	steps   = flag.Int("world.steps", 0, "steps of each, 0 = the default")
	days    = flag.Float64("world.days", 0, "simulated days before the faults stop; 0 = the default, negative = what the steps take")
	nemeses = flag.String("world.nemeses", "", "only these may strike, by comma; none; \"\" = drawn by the seed")
	skip    = flag.String("world.skip", "", "steps to leave out: 0-3,7")
	store   = flag.String("world.store", "memory", "memory or sqlite")
	onAnvil = flag.Uint64("world.anvil", 5, "how many worlds to play on a real EVM node")
	logs    = flag.Bool("world.log", false, "show what the processes log")
	open    = flag.String("world.open", "", "promises that are known to be broken and fail a world all the same, by comma")
	shrink  = flag.Bool("world.shrink", true, "cut failing worlds down")
	tally   = flag.Bool("world.promises", false, "tell of each promise how often it was asked and could have failed; fail where one never could")
)

// TestMain lets garbage lie longer: worlds are short and many.
func TestMain(m *testing.M) {
	debug.SetGCPercent(400)
	os.Exit(m.Run())
}

func options(t testing.TB) simulation.Options {
	o := simulation.Options{Steps: *steps, Span: time.Duration(*days * float64(24*time.Hour))}
	for name := range strings.SplitSeq(*nemeses, ",") {
		if name != "" {
			o.Nemeses = append(o.Nemeses, simulation.Nemesis(name))
		}
	}
	if *nemeses == "none" {
		o.Nemeses = []simulation.Nemesis{}
	}
	if *open != "" {
		o.Open = strings.Split(*open, ",")
	}
	var err error
	o.Skip, err = simulation.ParseSkip(*skip)
	require.NoError(t, err)
	if *logs {
		o.Configure = func(c *cryptopay.Config) {
			at := c.Clock.Now
			c.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
				if a.Key == slog.TimeKey {
					a.Value = slog.TimeValue(at())
				}
				return a
			}}))
		}
	}
	switch *store {
	case "memory":
	case "sqlite":
		o.Store = func() (storage.Store, error) { return openSQLite(t) }
	default:
		t.Fatalf("-world.store=%s: memory or sqlite", *store)
	}
	return o
}

// firstSeed is that of -world.from.
func firstSeed() uint64 {
	if *from == 0 {
		return uint64(time.Now().UnixMilli()) * 1000
	}
	return *from
}

// TestWorld plays as many worlds as -world.seeds says, as many at a time as there
// are processors. One that breaks a promise is cut down and told.
func TestWorld(t *testing.T) {
	t.Parallel()
	o := options(t)
	if *seed != 0 {
		r := simulation.World{Seed: *seed, Options: o}.Run(t.Context())
		t.Log(r.Story(0))
		require.Nil(t, r.Failure)
		return
	}
	first := firstSeed()
	last := first + *seeds - 1
	if testing.Short() {
		last = min(last, first+4)
	}
	began, next, lived := time.Now(), atomic.Uint64{}, atomic.Int64{}
	next.Store(first)
	var (
		all      sync.WaitGroup
		counting sync.Mutex
		played   uint64
	)
	promises := simulation.Promises{}
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for s := next.Add(1) - 1; s <= last; s = next.Add(1) - 1 {
				w := simulation.World{Seed: s, Options: o}
				r := w.Run(t.Context())
				lived.Add(int64(r.Simulated))
				counting.Lock()
				promises.Add(r.Promises)
				if played++; played%500 == 0 {
					t.Logf("%d worlds of %d", played, last-first+1)
				}
				counting.Unlock()
				if r.Failure != nil {
					if *shrink {
						r = w.Shrink(t.Context(), r)
					}
					t.Error(r.Story(60))
				}
			}
		})
	}
	all.Wait()
	if *tally {
		t.Logf("promises:\n%s", promises)
		require.Empty(t, promises.Idle(), "these never could have failed")
	}
	n := last - first + 1
	t.Logf("%d worlds from seed %d, %.1f simulated days, %.1f worlds a second",
		n, first, time.Duration(lived.Load()).Hours()/24, float64(n)/time.Since(began).Seconds())
}

// TestI22_SameSeedSameRun plays worlds twice.
func TestI22_SameSeedSameRun(t *testing.T) {
	t.Parallel()
	for s := uint64(1); s <= 6; s++ {
		t.Run(fmt.Sprint("seed=", s), func(t *testing.T) {
			t.Parallel()
			w := simulation.World{Seed: s, Options: options(t)}
			one, two := w.Run(t.Context()), w.Run(t.Context())
			require.Equal(t, one.Hash, two.Hash)
			require.Equal(t, one.Story(0), two.Story(0))
		})
	}
}

func openSQLite(t testing.TB) (storage.Store, error) {
	file := filepath.Join(t.TempDir(), "world.db")
	if err := sqlite.Migrate(t.Context(), file, simulation.Tables()...); err != nil {
		return nil, err
	}
	return sqlite.Open(file, sqlite.Options{})
}
