package simulation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/simulation/internal/judge"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// World is one run. The zero Options are right for most.
type World struct {
	Seed uint64
	Options
}

// Options refine a run. Everything that is left out is drawn from the seed or
// has a default.
type Options struct {
	// Steps is how many times somebody acts before the faults stop. Defaults to
	// 150.
	Steps int
	// Span is how much time passes before the faults stop: between bursts of steps
	// there are quiet hours, in which chains make blocks and processes do what
	// comes due. Defaults to a week; negative: what the steps take by themselves.
	Span time.Duration
	// Nemeses are those that may strike. nil = a random part of Nemeses() by the
	// seed; empty = none.
	Nemeses []Nemesis
	// Skip leaves out steps by number, from 0: Shrink's work.
	Skip map[int]bool
	// Nodes opens networks that are not simulated, by code: such a world has these
	// alone, and only nemeses strike that need no simulated node. A run is then
	// the same again only as far as the nodes are. Defaults to none.
	Nodes map[chain.Network]func(sim.Options) (Chain, error)
	// Store makes the store of the run. Defaults to memory.New. The run closes it.
	Store func() (storage.Store, error)
	// Configure changes the Config of each process when it starts. What it adds
	// must not use goroutines or the wall clock, else runs cannot be repeated.
	// Defaults to nothing.
	Configure func(*cryptopay.Config)
	// Actors act beside the world's own. Defaults to none.
	Actors []Actor
	// Check is asked after every step and at the end; an error fails the run.
	// Defaults to nothing.
	Check func(*Turn) error
	// Each is how often all books are proved from what is stored: every so many
	// steps, and at the end. What each commit does is always checked. Defaults
	// to 25.
	Each int
	// Open lists promises that are known to be broken, by id, which are to fail the world
	// all the same. Defaults to none.
	Open []string
}

// Actor is somebody of the host's who takes part.
type Actor struct {
	Name   string
	Weight int // beside the world's own, whose weights add up to about 100
	// Act does one thing and says what, in a few words that follow from the
	// Turn alone. It runs inside a process that may be paused, and may die, at
	// every call of its store: Act is then never heard of again. An error that
	// is no verdict of the library's and comes without a fault fails the run.
	Act func(*Turn) (string, error)
}

// Result is what a run came to.
type Result struct {
	World     World
	Hash      string // of all that happened, in order
	Steps     int
	Simulated time.Duration
	Struck    map[Nemesis]int // how often each nemesis struck
	Counts    map[string]int  // what the world did: "payments", "withdrawals" …
	Promises  Promises        // how often each was asked, and could have failed
	Failure   *Failure        // nil = every promise was kept
	story     []string
}

// Promises counts each promise of the judge: how often it was asked, could have failed,
// and was broken.
type Promises = judge.Tally

// Failure is a promise that was broken.
type Failure struct {
	Invariant string // "I7"
	Step      int
	What      string
}

func (f *Failure) Error() string {
	return fmt.Sprintf("step %d: %s: %s", f.Step, f.Invariant, f.What)
}

const (
	defaultSteps = 150
	defaultSpan  = 7 * 24 * time.Hour
	defaultEach  = 25
)

// Run plays the world to its end, or to the first broken promise. ctx ends it
// early with a Failure.
func (w World) Run(ctx context.Context) Result {
	if w.Steps == 0 {
		w.Steps = defaultSteps
	}
	if w.Span == 0 {
		w.Span = defaultSpan
	}
	if w.Each == 0 {
		w.Each = defaultEach
	}
	if w.Store == nil {
		w.Store = func() (storage.Store, error) { return memory.New(), nil }
	}
	r := newRun(w)
	r.play(ctx)
	return r.result()
}

// Story tells a run for people: what happened, the last of it, and how to see it
// again. lines = 0 tells all.
func (r Result) Story(lines int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "world of seed %d: %d steps, %s simulated, nemeses: %s\n",
		r.World.Seed, r.Steps, r.Simulated.Round(time.Second), strings.Join(names(slices.Sorted(maps.Keys(r.Struck))), ", "))
	told := r.story
	if lines > 0 && len(told) > lines {
		fmt.Fprintf(&b, "  … %d lines before\n", len(told)-lines)
		told = told[len(told)-lines:]
	}
	for _, line := range told {
		fmt.Fprintf(&b, "  %s\n", line)
	}
	if r.Failure != nil {
		fmt.Fprintf(&b, "BROKEN %s\n", r.Failure)
		test := "TestWorld$"
		if len(r.World.Nodes) > 0 {
			test = "TestWorldOnAnvil"
		}
		fmt.Fprintf(&b, "replay: go test ./simulation -run '%s' %s\n", test, r.World.Flags())
	}
	return b.String()
}

// Flags are those of this package's test that play the same world again.
func (w World) Flags() string {
	s := fmt.Sprintf("-world.seed=%d", w.Seed)
	if w.Steps != 0 && w.Steps != defaultSteps {
		s += fmt.Sprintf(" -world.steps=%d", w.Steps)
	}
	if w.Span != 0 && w.Span != defaultSpan {
		s += " -world.days=" + days(max(w.Span, -24*time.Hour))
	}
	if w.Nemeses != nil {
		s += " -world.nemeses=" + strings.Join(append(names(w.Nemeses), "none")[:max(len(w.Nemeses), 1)], ",")
	}
	if len(w.Open) > 0 {
		s += " -world.open=" + strings.Join(w.Open, ",")
	}
	if len(w.Skip) > 0 {
		s += " -world.skip=" + ranges(w.Skip)
	}
	return s
}

func names(all []Nemesis) []string {
	out := make([]string, len(all))
	for i, n := range all {
		out[i] = string(n)
	}
	return out
}

// ranges writes a set of numbers as "0-3,7".
func ranges(set map[int]bool) string {
	var out []string
	all := slices.Sorted(maps.Keys(set))
	for i := 0; i < len(all); {
		j := i
		for j+1 < len(all) && all[j+1] == all[j]+1 {
			j++
		}
		if i == j {
			out = append(out, fmt.Sprint(all[i]))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", all[i], all[j]))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

// ParseSkip reads what Flags writes for Skip.
func ParseSkip(s string) (map[int]bool, error) {
	out := map[int]bool{}
	for part := range strings.SplitSeq(s, ",") {
		if part == "" {
			continue
		}
		var from, to int
		if n, _ := fmt.Sscanf(part, "%d-%d", &from, &to); n < 2 {
			if n, err := fmt.Sscanf(part, "%d", &from); n != 1 {
				return nil, fmt.Errorf("simulation: %q is no step or range of steps: %w", part, err)
			}
			to = from
		}
		for i := from; i <= to; i++ {
			out[i] = true
		}
	}
	return out, nil
}
