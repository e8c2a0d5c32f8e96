// Package testenv starts real servers for tests: on loopback, on a free port
// below the ephemeral range, in a temporary folder, stopped by process id when
// the test ends. What is not installed is skipped with one loud line that says
// how to get it, or fails the test where CRYPTOPAY_TEST_FULL=1 says that nothing
// may be skipped. For tests only.
package testenv

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// Process is a started server.
type Process struct {
	Port int
	PID  int
	Dir  string // temporary, gone after the test

	done chan struct{}
}

// spec is how to start a server.
type spec struct {
	name  string
	path  string
	args  func(port int, dir string) []string
	env   []string
	dir   string    // its folder. Defaults to a temporary one of the test
	as    string    // the account that it runs as where the tests are root
	end   os.Signal // by which the test ends it. Defaults to a kill
	ready func(ctx context.Context, port int) error
}

// start runs a server until the test ends. Another process may take the port
// between choosing and using it, and processes of a server that was killed may
// still hold its data: it is tried a few times, later each time.
func start(t testing.TB, s spec) *Process {
	t.Helper()
	var err error
	for pause := 50 * time.Millisecond; pause < 10*time.Second; pause *= 2 {
		var p *Process
		if p, err = try(t, s); err == nil {
			return p
		}
		time.Sleep(pause)
	}
	t.Fatalf("testenv: %s does not start: %v", s.name, err)
	return nil
}

func try(t testing.TB, s spec) (*Process, error) {
	t.Helper()
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	dir := s.dir
	if dir == "" {
		dir = t.TempDir()
	}
	log, err := os.Create(filepath.Join(dir, "server.log"))
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(s.path, s.args(port, dir)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	cmd.Env = append(append(os.Environ(), "HOME="+dir), s.env...)
	runAs(cmd, s.as)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Port: port, PID: cmd.Process.Pid, Dir: dir, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	stop := func() {
		if s.end != nil && cmd.Process.Signal(s.end) == nil {
			select {
			case <-p.done:
			case <-time.After(10 * time.Second):
			}
		}
		_ = cmd.Process.Kill()
		<-p.done
	}
	if err := p.wait(s); err != nil {
		stop()
		tail, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w: %s", err, tail[max(0, len(tail)-2000):])
	}
	t.Cleanup(stop)
	return p, nil
}

// wait returns when the server answers, or has ended.
func (p *Process) wait(s spec) error {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.ready(ctx, p.Port)
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return errors.New("it ended at once")
		case <-ctx.Done():
			return fmt.Errorf("not ready after 30 s: %w", err)
		case <-tick.C:
		}
	}
}

// FreePort is a port for a server that a test starts itself.
func FreePort(t testing.TB) int {
	t.Helper()
	port, err := freePort()
	if err != nil {
		t.Fatalf("testenv: %v", err)
	}
	return port
}

// freePort finds a port that nothing listens on, below the ephemeral range: a
// port above could be taken by somebody's outgoing connection.
func freePort() (int, error) {
	for range 200 {
		port := 20000 + rand.IntN(12000)
		l, err := net.Listen("tcp", address(port))
		if err != nil {
			continue
		}
		return port, l.Close()
	}
	return 0, errors.New("no free port between 20000 and 32000")
}

func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// find looks for a program: where an environment variable says, in the PATH,
// then among the tools that ./test.sh installs below .tools in the repository.
func find(env, name string, tools ...string) string {
	if p := os.Getenv(env); p != "" {
		return p
	}
	if p, err := exec.LookPath(name); err == nil {
		return p
	}
	root := repository()
	for _, rel := range tools {
		if p := filepath.Join(root, ".tools", rel); executable(p) {
			return p
		}
	}
	return ""
}

func executable(p string) bool {
	i, err := os.Stat(p)
	return err == nil && i.Mode().IsRegular() && i.Mode()&0o111 != 0
}

// repository is the folder of go.mod, above the test's own.
func repository() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, e := os.Stat(filepath.Join(dir, "go.mod")); e == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			break
		}
		dir = up
	}
	return ""
}

// missing ends the test: skipped, or failed where everything must run.
func missing(t testing.TB, name, env string) {
	t.Helper()
	line := fmt.Sprintf("NOT TESTED: %s is not installed: run ./test.sh, which installs it, or set %s", name, env)
	if os.Getenv("CRYPTOPAY_TEST_FULL") == "1" {
		t.Fatal(line)
	}
	_, _ = fmt.Fprintln(os.Stderr, line+" ("+t.Name()+")")
	t.Skip(line)
}
