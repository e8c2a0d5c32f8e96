package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/overlay"
)

// trial runs tests on mutants.
type trial struct {
	root     string // of the module
	dir      string // temporary
	list     string // for -overlay: one program that holds most mutants
	holds    map[string]bool
	programs []*program // the tests of the package first
	slack    time.Duration
}

// program is the test program of a suite which holds mutants.
type program struct {
	suite
	path    string              // "" = the package has no tests
	built   bool                // as it is before the first mutant that gets so far
	quick   bool                // with -short it takes less than half of the time
	full    time.Duration       // what a run of all tests may take
	short   time.Duration       // what a run with -short may take
	killers map[string][]string // by file: the tests that killed its last mutants
}

// errCompile is the error of a mutant that does not compile, though its types are right.
var errCompile = errors.New("mutation: the mutant does not compile")

// survives runs the suites on a mutant until one of them fails, and says which test did.
func (t *trial) survives(ctx context.Context, s *source, m *mutant) (yes bool, by string, err error) {
	alone := "" // the list of a mutant that the program of all does not hold
	if !t.holds[m.ID] {
		i := 0
		for s.names[i] != m.File {
			i++
		}
		if alone, err = overlay.Write(t.root, t.dir, map[string][]byte{m.File: m.Apply(s.texts[i])}); err != nil {
			return false, "", err
		}
	}
	for _, p := range t.programs {
		if err := t.ready(ctx, p); err != nil {
			return false, "", err
		}
		if p.path == "" {
			continue
		}
		path, chosen := p.path, m.ID
		if alone != "" {
			path, chosen = filepath.Join(t.dir, "alone.test"), ""
			if err := t.build(ctx, p.suite, alone, path); err != nil {
				return false, "", fmt.Errorf("%w: %w", errCompile, err)
			}
		}
		for _, r := range p.rounds(m.File) {
			passes, by, err := t.run(ctx, p, path, chosen, r)
			if err == nil && by == late {
				passes, by, err = t.confirm(ctx, p, path, chosen, r)
			}
			if err != nil {
				return false, "", err
			}
			if !passes {
				p.learn(m.File, by)
				return false, by, nil
			}
		}
	}
	return true, "", nil
}

// round is one run of a program.
type round struct {
	args  []string
	limit time.Duration // what it may take
}

// rounds are the runs of a program that a mutant of the file has to pass, the fastest
// first. The last one is of all tests.
func (p *program) rounds(file string) (out []round) {
	if names := p.killers[file]; len(names) > 0 && len(p.args) == 0 {
		r := round{[]string{"-test.run=^(" + strings.Join(names, "|") + ")$"}, p.full}
		if p.quick {
			r = round{append(r.args, "-test.short"), p.short}
		}
		out = append(out, r)
	}
	if p.quick {
		out = append(out, round{[]string{"-test.short"}, p.short})
	}
	return append(out, round{nil, p.full})
}

// allowed is how long a run may take whose tests take so long on the library as it is.
func (t *trial) allowed(took time.Duration) time.Duration { return 5*took + t.slack }

// confirm runs a round again that did not end in time. The machine may be busy: the
// library as it is says how long the round takes now.
func (t *trial) confirm(ctx context.Context, p *program, path, chosen string, r round) (passes bool, by string, err error) {
	began := time.Now()
	right := round{r.args, 20 * time.Minute}
	if passes, by, err := t.run(ctx, p, p.path, "", right); err != nil || !passes {
		return false, "", errors.Join(err, fmt.Errorf("mutation: the tests of %s do not pass any more on the library as it is: %s", p.dir, by))
	}
	r.limit = max(r.limit, t.allowed(time.Since(began)))
	return t.run(ctx, p, path, chosen, r)
}

// learn notes which test killed a mutant of the file: it may kill the next one, too.
func (p *program) learn(file, by string) {
	name, _, _ := strings.Cut(by, "/")
	if !strings.HasPrefix(name, "Test") && !strings.HasPrefix(name, "Fuzz") {
		return
	}
	if p.killers == nil {
		p.killers = map[string][]string{}
	}
	names := slices.DeleteFunc(p.killers[file], func(n string) bool { return n == name })
	p.killers[file] = append([]string{name}, names[:min(len(names), 4)]...)
}

// ready builds the program with all mutants of the list, and runs it with none of them:
// it must pass, and its time bounds that of every other run.
func (t *trial) ready(ctx context.Context, p *program) error {
	if p.built {
		return nil
	}
	path, err := os.MkdirTemp(t.dir, "suite")
	if err != nil {
		return err
	}
	path = filepath.Join(path, "program.test")
	if err := t.build(ctx, p.suite, t.list, path); err != nil {
		return err
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		p.built = true // go test -c makes no program where there are no tests
		return nil
	}
	p.path = path
	var took [2]time.Duration
	for i, args := range [][]string{nil, {"-test.short"}} {
		began := time.Now()
		passes, by, err := t.run(ctx, p, path, "", round{args, 20 * time.Minute})
		if err != nil {
			return err
		}
		if !passes {
			return fmt.Errorf("mutation: the tests of %s do not pass on the library as it is: %s", p.dir, by)
		}
		took[i] = time.Since(began)
	}
	p.quick = took[1] < took[0]/2
	p.full, p.short = t.allowed(took[0]), t.allowed(took[1])
	p.built = true
	return nil
}

func (t *trial) build(ctx context.Context, s suite, list, to string) error {
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-overlay", list, "-o", to, "./"+s.dir)
	cmd.Dir = t.root
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("mutation: building the tests of %s: %w\n%s", s.dir, err, out)
	}
	return nil
}

// memory is how much of it, in KiB, a test may take: a mutant may well be an endless
// loop that appends.
const memory = 6 << 20

// run runs a test program with one mutant switched on. A test that does not end in
// time fails; so does one that takes too much memory.
func (t *trial) run(ctx context.Context, p *program, path, chosen string, r round) (passes bool, by string, err error) {
	room, err := os.MkdirTemp(t.dir, "run")
	if err != nil {
		return false, "", err
	}
	defer os.RemoveAll(room)                      //nolint:errcheck // of the system's own temporary files
	if err := os.Chmod(room, 0o755); err != nil { // as in measure
		return false, "", err
	}
	timed, cancel := context.WithTimeout(ctx, r.limit+time.Minute)
	defer cancel()
	shell := []string{
		"-c", fmt.Sprintf(`ulimit -d %d; exec "$0" "$@"`, memory),
		path, "-test.failfast", "-test.paniconexit0", "-test.timeout=" + r.limit.String(),
	}
	cmd := exec.CommandContext(timed, "sh", append(append(shell, p.args...), r.args...)...)
	cmd.Dir = filepath.Join(t.root, filepath.FromSlash(p.dir))
	cmd.Env = append(os.Environ(), overlay.Chosen+"="+chosen, "TMPDIR="+room)
	var out head
	cmd.Stdout, cmd.Stderr = &out, &out
	end := group(cmd)
	cmd.WaitDelay = 10 * time.Second
	err = cmd.Run()
	end()
	switch {
	case ctx.Err() != nil:
		return false, "", ctx.Err()
	case cmd.ProcessState == nil: // it did not even start
		return false, "", err
	case timed.Err() != nil: // the program did not even end itself
		return false, late, nil
	}
	return cmd.ProcessState.Success(), out.by(), nil
}

// late is what by returns of tests that did not end in time.
const late = "test timed out"

// head keeps the beginning of what is written to it.
type head struct{ bytes.Buffer }

func (h *head) Write(p []byte) (int, error) {
	if room := 1<<20 - h.Len(); room > 0 {
		h.Buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

var failure = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)|^panic: (` + late + `)|^(panic|fatal error): `)

// by is what failed first, as far as the output tells.
func (h *head) by() string {
	found := failure.FindSubmatch(h.Bytes())
	if found == nil {
		return "no verdict"
	}
	return string(bytes.Join(found[1:], nil))
}
