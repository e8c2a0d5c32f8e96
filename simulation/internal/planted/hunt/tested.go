//go:build planted

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/simulation/internal/planted"
)

// tested runs the test that each removal names, with the defence taken out. It
// fails where a test still passes, where the module does not compile without the
// defence, and where a test fails although nothing was taken out.
func tested(ctx context.Context, root string, removals []planted.Bug) error {
	sound := map[string]bool{} // tests that pass on the library as it is
	var failed []string
	for i, b := range removals {
		began := time.Now()
		verdict := "found"
		if name := b.Package + " " + b.Test; !sound[name] {
			if out, err := goTest(ctx, root, b, ""); err != nil || strings.Contains(out, "no tests to run") || strings.Contains(out, "--- SKIP") {
				verdict = "the test does not pass, or does not run, on the library as it is"
				fmt.Fprintln(os.Stderr, out)
			}
			sound[name] = verdict == "found"
		}
		if verdict == "found" {
			var err error
			if verdict, err = removed(ctx, root, b); err != nil {
				return err
			}
		}
		if verdict != "found" {
			failed = append(failed, b.ID)
		}
		fmt.Fprintf(os.Stderr, "%d/%d %-32s %s %s: %s (%.0fs)\n", i+1, len(removals), b.ID, b.Package, b.Test, verdict, time.Since(began).Seconds())
	}
	if len(failed) > 0 {
		return fmt.Errorf("hunt: %d of %d removals: %s", len(failed), len(removals), strings.Join(failed, " "))
	}
	return nil
}

// removed is what the named test makes of the library without the defence.
func removed(ctx context.Context, root string, b planted.Bug) (string, error) {
	dir, err := os.MkdirTemp("", "planted")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // of the system's own temporary files
	overlay, err := b.Overlay(root, dir)
	if err != nil {
		return "", err
	}
	out, err := goTest(ctx, root, b, overlay)
	switch {
	case err == nil:
		return "NOT found: the test passes without the defence", nil
	case !strings.Contains(out, "--- FAIL") && (!b.Ends || !strings.Contains(out, "\npanic: ")):
		fmt.Fprintln(os.Stderr, out)
		return "no verdict: the test did not run to its end", nil
	}
	return "found", nil
}

// goTest runs the test of a removal, with an overlay or on the library as it is.
func goTest(ctx context.Context, root string, b planted.Bug, overlay string) (string, error) {
	args := []string{"test", "-count", "1", "-v", "-timeout", "10m", "-run", "^" + strings.ReplaceAll(b.Test, "/", "$/^") + "$"}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+b.Package)...)
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	return string(out), err
}
