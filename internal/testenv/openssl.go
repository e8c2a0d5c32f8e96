package testenv

import (
	"os/exec"
	"testing"
)

// OpenSSL returns where the program openssl is, which makes certificates.
func OpenSSL(t testing.TB) string {
	t.Helper()
	path, err := exec.LookPath("openssl")
	if err != nil {
		missing(t, "openssl", "PATH")
	}
	return path
}
