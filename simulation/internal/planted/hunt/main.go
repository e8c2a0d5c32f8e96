//go:build planted

// Command hunt plants every bug of the table in turn, plays worlds until one of
// them finds it, and prints the table of docs/evidence/reliability.md. It ends with code 1
// where a bug was not found, or half of them only after too many worlds.
//
//	go run -tags planted ./simulation/internal/planted/hunt -run 'nonce|hold'
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/overlay"
	"github.com/cryptopay-go/cryptopay/simulation/internal/planted"
)

var (
	run   = flag.String("run", ".", "plant only the bugs whose id matches")
	write = flag.String("write", "", "write the table between the markers of this file")
	limit = flag.Int("limit", 1000, "how many worlds to play from each first seed")
	most  = flag.Int("most", 50, "how many worlds it may take, in the median over all bugs")
	tell  = flag.Bool("tell", false, "tell what each world found")
	first = flag.Bool("first", false, "ask of each omission which test finds it, whatever test it names; 7 worlds from each first seed")
	own   = flag.String("own", ".", "with -first: what -run takes of the tests of an omission's own package")
	tries = flag.Int("tries", 3, "from how many of the first seeds to play")
	alone = flag.Bool("worlds", false, "plant only the bugs that worlds have to find, and none that a test names")
	keep  = flag.String("keep", "", "note in this file what each bug's worlds found, and hunt no bug again that it has of the same program")
	play  = flag.String("play", "", "play worlds on this store and print what they find (of a program with a bug in it)")
)

// control plays the library as it is: nothing may be found in it.
var control = planted.Bug{ID: "none", What: "nothing: the library as it is"}

// innocent is how many worlds of each first seed the library as it is plays: more are
// examples/soak's to play.
const innocent = 300

func main() {
	flag.Parse()
	var err error
	if *play != "" {
		err = played(context.Background())
	} else {
		err = hunt(context.Background())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func hunt(ctx context.Context) error {
	if *write != "" && *run != "." {
		return errors.New("hunt: the table is written as a whole: give -run or -write")
	}
	only, err := regexp.Compile(*run)
	if err != nil {
		return err
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		return errors.New("hunt: run it at the module's root")
	}
	if *first {
		*limit = 7
		return anybody(ctx, root, slices.DeleteFunc(planted.Omissions(), func(b planted.Bug) bool { return !only.MatchString(b.ID) }))
	}
	var bugs, removals []planted.Bug
	for _, b := range append([]planted.Bug{control}, planted.All()...) {
		switch {
		case !only.MatchString(b.ID) || *alone && b.Test != "":
		case b.Test != "":
			removals = append(removals, b)
		default:
			bugs = append(bugs, b)
		}
	}
	if err := tested(ctx, root, removals); err != nil || len(bugs) == 0 {
		return err
	}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the system's own temporary files
	list, holds, err := together(root, dir, bugs)
	if err != nil {
		return err
	}
	program := filepath.Join(dir, "together")
	if err := build(ctx, root, list, program); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "built: %d of %d bugs in one program\n", len(holds), len(bugs))
	had, err := load(*keep, program)
	if err != nil {
		return err
	}
	var all []found
	var failed []string
	for _, b := range bugs {
		began := time.Now()
		with := ""
		if holds[b.ID] || b.File == "" {
			with = program
		}
		f, known := found{bug: b}, false
		if f.worlds, known = had.worlds[b.ID]; !known {
			f, err = hunted(ctx, root, with, b)
			err = errors.Join(err, had.add(f, err))
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = append(failed, b.ID)
			continue
		}
		report(&f, time.Since(began))
		if !f.good() {
			failed = append(failed, b.ID)
		}
		if b.File != "" {
			all = append(all, f)
		}
	}
	table := render(all)
	fmt.Print(table)
	if *write != "" {
		if err := between(*write, table); err != nil {
			return err
		}
	}
	if overall(all) > *most {
		return fmt.Errorf("hunt: half of the bugs take more than %d worlds", *most)
	}
	if len(failed) > 0 {
		return fmt.Errorf("hunt: %d of %d: %s", len(failed), len(all), strings.Join(failed, " "))
	}
	return nil
}

// report tells how one bug went.
func report(f *found, took time.Duration) {
	fmt.Fprintf(os.Stderr, "%-32s %-5s %-22s %s (%.0fs)\n", f.bug.ID, f.verdict(), f.by(), f.seeds(), took.Seconds())
	for _, w := range f.worlds {
		if *tell && w.Worlds > 0 {
			fmt.Fprintf(os.Stderr, "    seed %d: %s: %.300s\n", w.Seed, w.Invariant, w.What)
		}
	}
}

// hunted lets a program with the bug in it play: the one given, or one of its own.
func hunted(ctx context.Context, root, program string, b planted.Bug) (found, error) {
	f := found{bug: b}
	if program == "" {
		dir, err := os.MkdirTemp("", "planted")
		if err != nil {
			return f, err
		}
		defer os.RemoveAll(dir) //nolint:errcheck // of the system's own temporary files
		list, err := b.Overlay(root, dir)
		if err != nil {
			return f, err
		}
		program = filepath.Join(dir, "hunt")
		if err := build(ctx, root, list, program); err != nil {
			return f, fmt.Errorf("%s: %w", b.ID, err)
		}
	}
	worlds := *limit
	if b.File == "" {
		worlds = min(worlds, innocent)
	}
	played := exec.CommandContext(ctx, program, "-play", cmp.Or(b.Store, "memory"), "-limit", fmt.Sprint(worlds),
		"-tries", fmt.Sprint(*tries))
	played.Env = append(os.Environ(), overlay.Chosen+"="+b.ID)
	played.Stderr = os.Stderr
	out, err := played.Output()
	if err == nil {
		err = json.Unmarshal(out, &f.worlds)
	}
	if err != nil {
		return f, fmt.Errorf("hunt: playing with %s: %w", b.ID, err)
	}
	return f, nil
}

// together writes the list for one program with every bug that lies within a function,
// and says which those are. The others are built one by one.
func together(root, dir string, bugs []planted.Bug) (list string, holds map[string]bool, err error) {
	var edits []overlay.Edit
	for i := range bugs {
		if bugs[i].File == "" {
			continue
		}
		_, e, err := bugs[i].Edit(root)
		if err != nil {
			return "", nil, err
		}
		edits = append(edits, e)
	}
	return overlay.Together(root, dir, edits)
}

// build builds this program with what a list for -overlay puts in it.
func build(ctx context.Context, root, list, program string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-tags", "planted", "-ldflags", "-s -w", "-overlay", list,
		"-o", program, "./simulation/internal/planted/hunt")
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("hunt: it does not compile: %w\n%s", err, out)
	}
	return nil
}
