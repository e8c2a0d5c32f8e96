//go:build planted

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/sim/world/internal/planted"
)

// anybody asks of each omission which test finds it, whichever that is: the tests of its
// package, then worlds, then the tests of other packages that a removal from the same
// package names. It prints the rows for docs/omissions.md. An omission that nothing finds
// is no error: that is what the first run is to tell.
func anybody(ctx context.Context, root string, omissions []planted.Bug) error {
	missed := 0
	for i, b := range omissions {
		began := time.Now()
		by, err := finder(ctx, root, b)
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

// finder names the first test, or the promise that a world saw broken; "" = nothing does.
func finder(ctx context.Context, root string, b planted.Bug) (string, error) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the system's own temporary files
	list, err := b.Overlay(root, dir)
	if err != nil {
		return "", err
	}
	own := b.Package
	if own == "" {
		own = path.Dir(b.File)
	}
	if name, err := failing(ctx, root, list, own, "."); name != "" || err != nil {
		return name, err
	}
	f, err := hunted(ctx, root, "", b)
	if err != nil {
		return "", err
	}
	if !f.none() {
		return "worlds: " + f.by() + " " + f.seeds(), nil
	}
	for _, r := range planted.Removals() {
		if path.Dir(r.File) != path.Dir(b.File) || r.Package == own {
			continue
		}
		name, err := failing(ctx, root, list, r.Package, "^"+strings.ReplaceAll(r.Test, "/", "$/^")+"$")
		if name != "" || err != nil {
			return name, err
		}
	}
	return "", nil
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
