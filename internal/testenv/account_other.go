//go:build !unix

package testenv

import (
	"os/exec"
	"testing"
)

func runAs(*exec.Cmd, string) {}

func serverDir(t testing.TB, _ string) string { return t.TempDir() }

func run(t testing.TB, dir, _, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("testenv: %s: %v: %s", path, err, out)
	}
}
