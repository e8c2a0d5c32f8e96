//go:build unix

package testenv

import (
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
	"testing"
)

// Databases refuse to run as root. Where the tests do, they run as their own
// account, or as nobody.
func account(name string) (uid, gid int, ok bool) {
	if os.Getuid() != 0 {
		return 0, 0, false
	}
	for _, n := range []string{name, "nobody"} {
		if u, err := user.Lookup(n); err == nil {
			uid, _ = strconv.Atoi(u.Uid)
			gid, _ = strconv.Atoi(u.Gid)
			return uid, gid, true
		}
	}
	return 0, 0, false
}

func runAs(cmd *exec.Cmd, name string) {
	if uid, gid, ok := account(name); ok && name != "" {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
	}
}

// serverDir is a temporary folder that the server's account may use: those of
// the tests themselves are closed to it.
func serverDir(t testing.TB, name string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "cryptopay-"+name+"-")
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if uid, gid, ok := account(name); ok {
		if err := os.Chown(dir, uid, gid); err != nil {
			t.Fatalf("testenv: %v", err)
		}
	}
	return dir
}

// run runs a tool to its end as the account.
func run(t testing.TB, dir, as, path string, args ...string) {
	t.Helper()
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+dir, "TZ=UTC")
	runAs(cmd, as)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("testenv: %s: %v: %s", path, err, out)
	}
}
