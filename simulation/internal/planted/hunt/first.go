//go:build planted

package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/simulation/internal/planted"
)

// anybody asks of each omission which test finds it, whichever that is: the tests of its
// package, then worlds, then the tests of other packages that a removal from the same
// package names. It prints the rows for docs/evidence/omissions.md. An omission that nothing finds
// is no error: that is what the first run is to tell.
func anybody(ctx context.Context, root string, omissions []planted.Bug) error {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the system's own temporary files
	r, err := newFirstRun(ctx, root, dir, omissions)
	if err != nil {
		return err
	}
	missed := 0
	for i, b := range omissions {
		began := time.Now()
		by, err := r.finder(ctx, b)
		if err != nil {
			by = "no verdict: " + err.Error()
		}
		if by == "" {
			by = "NOT found"
			missed++
		}
		fmt.Printf("%d/%d %s | %s (%.0fs)\n", i+1, len(omissions), b.ID, by, time.Since(began).Seconds())
	}
	fmt.Printf("%d of %d were not found\n", missed, len(omissions))
	return nil
}

// firstRun is what all omissions share.
type firstRun struct {
	root    string
	program string          // with every omission that it can hold
	holds   map[string]bool // those
	worlds  map[string]bool // packages of the module that a world is made of
}

func newFirstRun(ctx context.Context, root, dir string, omissions []planted.Bug) (*firstRun, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-tags", "planted", "-deps", "./simulation/internal/planted/hunt")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("hunt: listing packages: %w", err)
	}
	r := &firstRun{root: root, program: filepath.Join(dir, "together"), worlds: map[string]bool{}}
	for line := range strings.Lines(string(out)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), module); ok {
			r.worlds[cmp.Or(strings.TrimPrefix(name, "/"), ".")] = true
		}
	}
	var played []planted.Bug
	for _, b := range omissions {
		if strings.HasSuffix(b.File, ".go") && r.worlds[path.Dir(b.File)] {
			played = append(played, b)
		}
	}
	if len(played) == 0 {
		return r, nil
	}
	list, holds, err := together(root, dir, played)
	if err != nil {
		return nil, err
	}
	r.holds = holds
	return r, build(ctx, root, list, r.program)
}

const module = "github.com/cryptopay-go/cryptopay"

// finder names the first test, or the promise that a world saw broken; "" = nothing does.
func (r *firstRun) finder(ctx context.Context, b planted.Bug) (string, error) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the system's own temporary files
	list, err := b.Overlay(r.root, dir)
	if err != nil {
		return "", err
	}
	suite := suites(path.Dir(b.File))
	for _, pkg := range suite {
		if name, err := failing(ctx, r.root, list, pkg, *own); name != "" || err != nil {
			return name, err
		}
	}
	if r.worlds[path.Dir(b.File)] {
		program := ""
		if r.holds[b.ID] {
			program = r.program
		}
		f, err := hunted(ctx, r.root, program, b)
		if err != nil || !f.none() {
			return "worlds: " + f.by() + " " + f.seeds(), err
		}
	}
	for _, other := range planted.Removals() {
		if path.Dir(other.File) != path.Dir(b.File) || slices.Contains(suite, other.Package) {
			continue
		}
		name, err := failing(ctx, r.root, list, other.Package, "^"+strings.ReplaceAll(other.Test, "/", "$/^")+"$")
		if name != "" || err != nil {
			return name, err
		}
	}
	return "", nil
}

// suites are the packages whose tests are those of a package.
func suites(pkg string) []string {
	switch pkg {
	case "storage/sqlstore": // its dialects test it
		return []string{pkg + "/sqlite", pkg + "/postgres", pkg + "/mysql"}
	case "storage/redisstore/lua": // its scripts
		return []string{"storage/redisstore"}
	}
	return []string{pkg}
}

var failLine = regexp.MustCompile(`(?m)^\s*--- FAIL: (\S+)`)

// failing runs tests of a package over an overlay and names one that fails: the deepest
// subtest of the first.
func failing(ctx context.Context, root, list, pkg, only string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-count", "1", "-failfast", "-timeout", "15m", "-run", only, "-overlay", list, "./"+pkg)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if err == nil {
		return "", nil
	}
	found := failLine.FindAllStringSubmatch(string(out), -1)
	if len(found) == 0 {
		if strings.Contains(string(out), "panic: ") || strings.Contains(string(out), "fatal error: ") {
			return pkg + " panics or hangs", nil
		}
		return "", fmt.Errorf("%s: %w\n%s", pkg, err, out)
	}
	names := make([]string, 0, len(found))
	for _, f := range found {
		if !slices.ContainsFunc(names, func(n string) bool { return strings.HasPrefix(n, f[1]+"/") }) {
			names = append(names, f[1])
		}
	}
	return pkg + " " + strings.Join(names[:min(2, len(names))], ", "), nil
}
