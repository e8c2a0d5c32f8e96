package testenv

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Token is a token of SoftHSM in a folder of its own.
type Token struct {
	Library, Label, PIN string
	Conf                string // what SOFTHSM2_CONF must name in the process that uses it
	Dir                 string // of its objects
}

// SoftHSM makes a token.
func SoftHSM(t testing.TB) Token {
	t.Helper()
	const env = "CRYPTOPAY_SOFTHSM"
	library := os.Getenv(env)
	for _, at := range []string{"/usr/lib/softhsm/libsofthsm2.so", "/usr/lib/*/softhsm/libsofthsm2.so", "/usr/local/lib/softhsm/libsofthsm2.so"} {
		if found, _ := filepath.Glob(at); library == "" && len(found) > 0 {
			library = found[0]
		}
	}
	util, err := exec.LookPath("softhsm2-util")
	if err != nil || library == "" {
		missing(t, "softhsm2", env)
	}
	dir := t.TempDir()
	out := Token{Library: library, Label: "cryptopay", PIN: "correct horse", Conf: filepath.Join(dir, "softhsm2.conf"), Dir: filepath.Join(dir, "tokens")}
	if err := os.Mkdir(out.Dir, 0o700); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	text := "directories.tokendir = " + out.Dir + "\nobjectstore.backend = file\nlog.level = ERROR\n"
	if err := os.WriteFile(out.Conf, []byte(text), 0o600); err != nil {
		t.Fatalf("testenv: %v", err)
	}
	cmd := exec.Command(util, "--init-token", "--free", "--label", out.Label, "--pin", out.PIN, "--so-pin", "12345678")
	cmd.Env = append(os.Environ(), "SOFTHSM2_CONF="+out.Conf)
	if text, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("testenv: softhsm2-util: %v: %s", err, text)
	}
	return out
}
