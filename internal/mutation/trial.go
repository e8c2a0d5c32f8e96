package main

import (
	"bytes"
	"cmp"
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
	fast     bool       // run tests with -short alone
	slack    time.Duration
}

// program is the test program of a suite which holds mutants.
type program struct {
	suite
	path    string              // "" = the package has no tests
	built   bool                // as it is before the first mutant that gets so far
	quick   bool                // it runs with -short first, which takes less than half of the time
	full    time.Duration       // what a run of all tests may take
	short   time.Duration       // what a run with -short may take
	killers map[string][]string // by file: the tests that killed its last mutants
}

// errCompile is the error of a mutant that does not compile, though its types are right.
var errCompile = errors.New("mutation: the mutant does not compile")

// survives runs the suites on a mutant until one of them fails, and says which test did.
// What each suite finds in little time comes before what any of them takes long for.
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
	paths := make([]string, len(t.programs)) // of the programs that hold the mutant
	for _, full := range []bool{false, true} {
		for i, p := range t.programs {
			if err := t.ready(ctx, p); err != nil {
				return false, "", err
			}
			if p.path == "" || full && t.fast {
				continue
			}
			chosen := m.ID
			switch {
			case alone == "":
				paths[i] = p.path
			case paths[i] == "":
				paths[i] = filepath.Join(t.dir, fmt.Sprintf("alone%d.test", i))
				if err := t.build(ctx, p.suite, alone, paths[i]); err != nil {
					return false, "", fmt.Errorf("%w: %w", errCompile, err)
				}
			}
			if alone != "" {
				chosen = ""
			}
			for _, r := range p.rounds(m.File, full) {
				passes, by, err := t.run(ctx, p, paths[i], chosen, r)
				if err == nil && by == late {
					passes, by, err = t.confirm(ctx, p, paths[i], chosen, r)
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
	}
	return true, "", nil
}

// round is one run of a program.
type round struct {
	args  []string
	limit time.Duration // what it may take
}

// rounds are the runs of a program that a mutant of the file has to pass. The fast ones
// come first, of every program. The full one is of all tests.
func (p *program) rounds(file string, full bool) (out []round) {
	if full {
		return []round{{nil, p.full}}
	}
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
	return out
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
		if args == nil && t.fast {
			continue
		}
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
	p.quick = t.fast || took[1] < took[0]/2
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

// run runs a test program with one mutant switched on, until a test of it fails. A test
// that does not end in time fails; so does one that takes too much memory.
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
		path, "-test.v=test2json", "-test.failfast", "-test.paniconexit0", "-test.timeout=" + r.limit.String(),
	}
	cmd := exec.CommandContext(timed, "sh", append(append(shell, p.args...), r.args...)...)
	cmd.Dir = filepath.Join(t.root, filepath.FromSlash(p.dir))
	cmd.Env = append(os.Environ(), overlay.Chosen+"="+chosen, "TMPDIR="+room)
	end := group(cmd)
	// Tests that run at once go on after one of them has failed. With test2json a test
	// inside of another one tells of itself at once.
	out := output{failed: end}
	cmd.Stdout, cmd.Stderr = &out, &out
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

// output is what a test program writes, line by line.
type output struct {
	line   []byte // that has not ended yet
	found  string // what failed, as far as the lines tell: a test, or else what was said last
	test   bool   // found is a test
	failed func() // is called when a test has failed
}

// lineRead is how much of a line is looked at.
const lineRead = 1 << 12

func (o *output) Write(p []byte) (int, error) {
	n := len(p)
	for {
		line, rest, ended := bytes.Cut(p, []byte{'\n'})
		o.line = append(o.line, line[:min(len(line), lineRead-len(o.line))]...)
		if !ended {
			return n, nil
		}
		o.look()
		o.line, p = o.line[:0], rest
	}
}

var failure = regexp.MustCompile(`(?:^|\x16)\s*--- FAIL: (\S+)|^panic: (` + late + `)|^(panic|fatal error): `)

// look reads a line. The library as it is may well write of a panic.
func (o *output) look() {
	found := failure.FindSubmatch(o.line)
	if found == nil || o.test {
		return
	}
	o.found, o.test = string(bytes.Join(found[1:], nil)), len(found[1]) > 0
	if o.test {
		o.failed()
	}
}

// by is what failed.
func (o *output) by() string { return cmp.Or(o.found, "no verdict") }
