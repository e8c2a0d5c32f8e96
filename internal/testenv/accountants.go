package testenv

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// HLedger has hledger check a journal.
func HLedger(t testing.TB, journal []byte) error {
	return accountant(t, journal, "hledger", "check", "-f")
}

// BeanCheck has Beancount check a journal.
func BeanCheck(t testing.TB, journal []byte) error { return accountant(t, journal, "bean-check") }

func accountant(t testing.TB, journal []byte, name string, args ...string) error {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		missing(t, name, "PATH")
	}
	file := filepath.Join(t.TempDir(), "journal")
	if err := os.WriteFile(file, journal, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), name, append(args, file)...).CombinedOutput() //nolint:gosec // a test's
	if err != nil {
		return fmt.Errorf("testenv: %s: %w: %s", name, err, out)
	}
	return nil
}
