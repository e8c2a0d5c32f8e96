//go:build planted

// Command hunt plants every bug of the table in turn, plays worlds until one of
// them finds it, and prints the table of docs/reliability.md. It ends with code 1
// where a bug was not found, or only after too many worlds.
//
//	go run -tags planted ./chain/sim/world/internal/planted/hunt -run 'nonce|hold'
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

	"github.com/cryptopay-go/cryptopay/chain/sim/world/internal/planted"
)

var (
	run   = flag.String("run", ".", "plant only the bugs whose id matches")
	write = flag.String("write", "", "write the table between the markers of this file")
	limit = flag.Int("limit", 300, "how many worlds to play from each first seed")
	most  = flag.Int("most", 50, "how many worlds it may take, in the median")
	tell  = flag.Bool("tell", false, "tell what each world found")
	play  = flag.String("play", "", "play worlds on this store and print what they find (of a program with a bug in it)")
)

// control plays the library as it is: nothing may be found in it.
var control = planted.Bug{ID: "none", What: "nothing: the library as it is"}

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
	var all []found
	var failed []string
	for _, b := range append([]planted.Bug{control}, planted.All()...) {
		if !only.MatchString(b.ID) {
			continue
		}
		began := time.Now()
		f, err := hunted(ctx, root, b)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			failed = append(failed, b.ID)
			continue
		}
		fmt.Fprintf(os.Stderr, "%-32s %-5s %-22s %s (%.0fs)\n", b.ID, f.verdict(), f.by(), f.seeds(), time.Since(began).Seconds())
		if *tell {
			for _, w := range slices.DeleteFunc(slices.Clone(f.worlds), func(w caught) bool { return w.Worlds == 0 }) {
				fmt.Fprintf(os.Stderr, "    seed %d: %s: %.300s\n", w.Seed, w.Invariant, w.What)
			}
		}
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
	if len(failed) > 0 {
		return fmt.Errorf("hunt: %d of %d: %s", len(failed), len(all), strings.Join(failed, " "))
	}
	return nil
}

// hunted builds this program with the bug in it and lets it play.
func hunted(ctx context.Context, root string, b planted.Bug) (found, error) {
	f := found{bug: b}
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return f, err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the system's own temporary files
	store, tags := cmp.Or(b.Store, "memory"), "planted"
	if b.Store == "sqlite" {
		tags += ",sqlite"
	}
	args := []string{"build", "-tags", tags, "-ldflags", "-s -w", "-o", filepath.Join(dir, "hunt")}
	if b.File != "" {
		overlay, err := b.Overlay(root, dir)
		if err != nil {
			return f, err
		}
		args = append(args, "-overlay", overlay)
	}
	build := exec.CommandContext(ctx, "go", append(args, "./chain/sim/world/internal/planted/hunt")...)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		return f, fmt.Errorf("hunt: %s does not compile: %w\n%s", b.ID, err, out)
	}
	program := exec.CommandContext(ctx, filepath.Join(dir, "hunt"), "-play", store, "-limit", fmt.Sprint(*limit))
	program.Stderr = os.Stderr
	out, err := program.Output()
	if err != nil {
		return f, fmt.Errorf("hunt: playing with %s: %w", b.ID, err)
	}
	if err := json.Unmarshal(out, &f.worlds); err != nil {
		return f, fmt.Errorf("hunt: playing with %s: %w", b.ID, err)
	}
	return f, nil
}
