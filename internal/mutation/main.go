// Command mutation measures what the tests of a package find. It makes mutants of the
// package: copies with one small thing wrong, as a person might write it. Then it runs
// the package's tests on each, and the suites that the package belongs to. A mutant
// that fails a test is killed. One that passes all of them survives: a test is
// missing, or the mutant does what the package does. docs/evidence/mutation.md keeps the
// record.
//
//	go run ./internal/mutation -pkg ledger -n 200 -seed 1 -for 1h
//
// No file of the tree is changed: one program holds all mutants, and the environment
// says which is on. See overlay.Together.
//
// All kinds of mutants are made here, with no other tool. The usual one for Go,
// github.com/go-gremlins/gremlins, puts one operator in the place of another and knows
// no missing statements, swapped values or ignored errors. It draws none by a seed. It
// copies the module, and in the copy it runs one `go test` for each mutant, which
// builds again and leaves the other suites out.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/overlay"
)

// options are what a run is asked to do.
type options struct {
	root    string  // of the module, absolute
	dir     string  // of the package, from the root
	further []suite // that run where its own tests pass
	n       int
	seed    uint64
	limit   time.Duration
	journal string        // the file that a stopped run goes on from; "" = none
	again   bool          // survivors of the journal run again
	most    int           // of further to run
	fast    bool          // run tests with -short alone
	slack   time.Duration // what a run may take beyond five times that of the library as it is
}

func main() {
	o := options{slack: 3 * time.Second}
	flag.StringVar(&o.dir, "pkg", "", "the package, such as wallet/treasury")
	flag.IntVar(&o.n, "n", 200, "how many mutants to run, at most")
	flag.Uint64Var(&o.seed, "seed", 1, "what draws the mutants")
	flag.DurationVar(&o.limit, "for", time.Hour, "how long to run mutants; those that are left then are not counted")
	flag.StringVar(&o.journal, "resume", "", "keep what became of each mutant in this file, and go on from what it has")
	flag.BoolVar(&o.again, "again", false, "run the survivors that -resume has again: there are new tests")
	flag.IntVar(&o.most, "further", len(further), "how many of the further suites to run at most; -again runs the others on what survived")
	flag.BoolVar(&o.fast, "fast", false, "run tests with -short alone; -again without it runs all of them on what survived")
	file := flag.String("write", "", "put the result into this record")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := run(ctx, o, *file)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options, file string) error {
	if o.dir == "" {
		return errors.New("mutation: which package? Give PKG=ledger to make, or -pkg ledger")
	}
	o.dir = path.Clean(filepath.ToSlash(o.dir))
	var err error
	if o.root, err = filepath.Abs("."); err != nil {
		return err
	}
	o.further = further[o.dir]
	o.further = o.further[:min(o.most, len(o.further))]
	r, err := measure(ctx, say, o)
	if err != nil {
		return err
	}
	tell(r)
	if file == "" {
		return nil
	}
	return write(file, r)
}

// measure draws mutants of a package and runs tests on each.
func measure(ctx context.Context, say func(string, ...any), o options) (*result, error) {
	s, err := load(ctx, o.root, o.dir)
	if err != nil {
		return nil, err
	}
	r := &result{dir: o.dir, seed: o.seed}
	r.all = s.mutants()
	some := draw(r.all, o.n, o.seed, s.compiles)
	r.drawn = len(some)
	say("%s: %d of %d mutants, seed %d\n", o.dir, len(some), len(r.all), o.seed)

	dir, err := os.MkdirTemp("", "mutation")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the system's own temporary files
	// The databases that tests start run as other accounts.
	if err := os.Chmod(dir, 0o755); err != nil {
		return nil, err
	}
	t := trial{root: o.root, dir: dir, fast: o.fast, slack: o.slack}
	var edits []overlay.Edit
	for _, m := range some {
		edits = append(edits, m.Edit)
	}
	together := filepath.Join(dir, "together")
	if err := os.Mkdir(together, 0o700); err != nil {
		return nil, err
	}
	if t.list, t.holds, err = overlay.Together(o.root, together, edits); err != nil {
		return nil, err
	}
	for _, s := range append([]suite{{dir: o.dir}}, o.further...) {
		t.programs = append(t.programs, &program{suite: s})
	}
	j, err := resume(o.journal, s, o.dir)
	if err != nil {
		return nil, err
	}
	defer j.close()
	began := time.Now()
	at := commit(ctx, o)
	for i := range some {
		m := &some[i]
		e, done := j.entries[m.identity()]
		if !done || o.again && e.Verdict == survives {
			if time.Since(began) > o.limit {
				say("time is up: %d mutants were not run\n", len(some)-i)
				break
			}
			if e, err = t.verdict(ctx, s, m); err != nil {
				return nil, err
			}
			e.Commit, e.Brief = at, e.Verdict == survives && (o.fast || len(o.further) < len(further[o.dir]))
			if err := j.add(e); err != nil {
				return nil, err
			}
			say("%d/%d %s %s: %s %s (%.1f s)\n", i+1, len(some), m.place(), m.kind, e.Verdict, e.By, e.Seconds)
		}
		r.count(*m, e)
	}
	return r, nil
}

// verdict runs tests on a mutant.
func (t *trial) verdict(ctx context.Context, s *source, m *mutant) (entry, error) {
	began := time.Now()
	yes, by, err := t.survives(ctx, s, m)
	e := entry{Mutant: m.identity(), Verdict: killed, By: by, Seconds: time.Since(began).Seconds()}
	switch {
	case ctx.Err() != nil:
		return e, ctx.Err()
	case errors.Is(err, errCompile):
		e.Verdict = uncompiled
	case err != nil:
		return e, err
	case yes:
		e.Verdict = survives
	}
	return e, nil
}

// say tells the person who runs the tool.
func say(format string, args ...any) { fmt.Printf(format, args...) }

// tell says what was found.
func tell(r *result) {
	for i := range r.survivors {
		m := &r.survivors[i]
		say("\n%s: %s\n  before: %s\n  after:  %s\n", m.place(), m.kind, m.before, m.after)
	}
	say("\n%s: %d of %d mutants killed (%.1f%%), %d survive, in %.1f minutes; seed %d\n",
		r.dir, len(r.killed), r.ran(), r.percent(), len(r.survivors), r.minutes, r.seed)
}

// commit is what the package is at, and says so where its files differ from that.
func commit(ctx context.Context, o options) string {
	git := func(args ...string) string {
		cmd := exec.CommandContext(ctx, "git", args...)
		cmd.Dir = o.root
		out, err := cmd.Output()
		if err != nil {
			return ""
		}
		return string(bytes.TrimSpace(out))
	}
	at := git("rev-parse", "--short=7", "HEAD")
	if at == "" {
		return "none"
	}
	if changed := git("status", "--porcelain", "--", o.dir); strings.TrimSpace(changed) != "" {
		at += " and changes"
	}
	return at
}
