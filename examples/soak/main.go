// Command soak plays worlds of simulation for as long as it is let, tells
// how it goes, and keeps a record that adds up over many runs.
//
//	go run ./examples/soak -seeds 20000 -record soak.json
//
// The record says which seed comes next, so that the same command goes on where
// it was stopped. A world that breaks a promise is cut down, told, and kept in
// the record with the flags that replay it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"time"

	"github.com/cryptopay-go/cryptopay/simulation"
)

func main() {
	var o options
	flag.Uint64Var(&o.seeds, "seeds", 1000, "how many worlds to play")
	flag.Uint64Var(&o.from, "from", 0, "seed of the first; 0 = where the record ends")
	flag.IntVar(&o.steps, "steps", 0, "steps of each; 0 = the default")
	flag.Float64Var(&o.days, "days", 7, "simulated days of each before its faults stop")
	flag.IntVar(&o.parallel, "parallel", runtime.GOMAXPROCS(0), "worlds at a time")
	flag.StringVar(&o.file, "record", "soak.json", "the record, read at the start and written all the time")
	flag.StringVar(&o.commit, "commit", "", "of the code that is run; a record is of one commit")
	flag.DurationVar(&o.every, "every", 10*time.Second, "how often progress is told")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type options struct {
	seeds, from     uint64
	steps, parallel int
	days            float64
	file, commit    string
	every           time.Duration
}

// errBroken ends the program with another code than 0.
var errBroken = errors.New("soak: promises were broken: see the record")

func run(ctx context.Context, o options) error {
	debug.SetGCPercent(400) // worlds are short and many
	rec, err := load(o.file, o.commit)
	if err != nil {
		return err
	}
	if o.from > 0 {
		rec.Next = o.from
	}
	s := &soak{o: o, rec: rec, end: rec.Next + o.seeds, began: time.Now(), first: rec.Next, ahead: map[uint64]bool{}}
	s.next = rec.Next
	var all sync.WaitGroup
	for range max(1, o.parallel) {
		all.Go(func() { s.work(ctx) })
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		all.Wait()
	}()
	tick := time.NewTicker(o.every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			fmt.Println(s.progress())
		case <-done:
			fmt.Println(s.progress())
			if err := s.save(); err != nil {
				return err
			}
			if s.broken > 0 {
				return errBroken
			}
			return nil
		}
	}
}

// soak is one run of this command.
type soak struct {
	o     options
	began time.Time
	first uint64
	end   uint64

	mu     sync.Mutex
	rec    *record
	next   uint64          // to be played
	ahead  map[uint64]bool // played, and not next after what the record has
	broken int
	saved  time.Time
}

func (s *soak) work(ctx context.Context) {
	for {
		s.mu.Lock()
		seed := s.next
		s.next++
		s.mu.Unlock()
		if seed >= s.end || ctx.Err() != nil {
			return
		}
		w := simulation.World{Seed: seed, Options: simulation.Options{Steps: s.o.steps, Span: time.Duration(s.o.days * float64(24*time.Hour))}}
		r := w.Run(ctx)
		if ctx.Err() != nil {
			return // cut short: it is played again
		}
		if r.Failure != nil {
			r = w.Shrink(ctx, r)
			fmt.Println(r.Story(80))
		}
		if err := s.took(&r, seed); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return
		}
	}
}

// took adds a world to the record. The record's Next moves over worlds that are
// all played, so that none is left out or counted twice by the next run.
func (s *soak) took(r *simulation.Result, seed uint64) error {
	s.mu.Lock()
	s.rec.add(r)
	if r.Failure != nil {
		s.broken++
	}
	s.ahead[seed] = true
	for s.ahead[s.rec.Next] {
		delete(s.ahead, s.rec.Next)
		s.rec.Next++
	}
	due := len(s.ahead) == 0 && time.Since(s.saved) > s.o.every
	s.mu.Unlock()
	if due {
		return s.save()
	}
	return nil
}

// save writes the record as far as it has no gap. What was played ahead of one
// when the program is stopped is played again, and its figures counted twice;
// that is at most one world per processor.
func (s *soak) save() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.saved = time.Now()
	s.rec.Seconds += int64(s.saved.Sub(s.began).Seconds()) - s.rec.running
	s.rec.running = int64(s.saved.Sub(s.began).Seconds())
	return s.rec.save(s.o.file)
}

func (s *soak) progress() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	played := s.rec.Next - s.first + uint64(len(s.ahead))
	rate := float64(played) / time.Since(s.began).Seconds()
	return fmt.Sprintf("%d of %d worlds, %.1f a second, %d broken; in all %d worlds, %.1f simulated days, %.2f simulated years",
		played, s.end-s.first, rate, s.broken, s.rec.Worlds, s.rec.days(), s.rec.days()/365.25)
}
