package testenv

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Postgres starts a fresh PostgreSQL with its durable settings on, unless more
// settings ("fsync=off") say otherwise. The superuser is "postgres", without a
// password.
func Postgres(t testing.TB, settings ...string) *Process {
	t.Helper()
	dir := serverDir(t, "postgres")
	initdb := postgresTool(t, "initdb")
	// Text sorts by bytes in the tables' own collation; a server that sorts as
	// people do shows where that was forgotten.
	run(t, dir, "postgres", initdb, "-D", filepath.Join(dir, "data"), "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-N")
	return PostgresAt(t, dir, settings...)
}

// PostgresAt starts a PostgreSQL on what another one, now gone, left in its Dir.
func PostgresAt(t testing.TB, dir string, settings ...string) *Process {
	t.Helper()
	// A killed server leaves a lock file with its process id behind, and its
	// shared memory, which the next one takes over.
	_ = os.Remove(filepath.Join(dir, "data", "postmaster.pid"))
	return start(t, spec{
		name: "postgres", path: postgresTool(t, "postgres"), dir: dir, as: "postgres", ready: postgresReady,
		end: syscall.SIGQUIT, // at once, but it gives its shared memory back
		args: func(port int, _ string) []string {
			args := []string{
				"-D", filepath.Join(dir, "data"), "-h", "127.0.0.1", "-p", strconv.Itoa(port), "-k", dir,
				"-c", "shared_buffers=64MB", "-c", "max_connections=100", "-c", "autovacuum_naptime=10s",
			}
			for _, s := range settings {
				args = append(args, "-c", s)
			}
			return args
		},
	})
}

// DSN is the URL of a database of a Postgres.
func (p *Process) DSN(database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", p.Address(), database)
}

// postgresTool finds a program of the newest installed server: Debian keeps them
// out of the PATH.
func postgresTool(t testing.TB, name string) string {
	t.Helper()
	const env = "CRYPTOPAY_POSTGRES" // a folder with initdb and postgres
	if dir := os.Getenv(env); dir != "" {
		return filepath.Join(dir, name)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int { return major(a) - major(b) })
	}
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "PostgreSQL ("+name+")", env)
	}
	return path
}

func major(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// postgresReady asks as the protocol's startup packet does, and takes the demand
// for a password or its absence for an answer: an error is "starting up".
func postgresReady(ctx context.Context, port int) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing was written that matters
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	body := []byte("\x00\x03\x00\x00user\x00postgres\x00database\x00postgres\x00\x00")
	if _, err := conn.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body)+4)), body...)); err != nil {
		return err
	}
	kind := make([]byte, 1)
	if _, err := conn.Read(kind); err != nil {
		return err
	}
	if kind[0] != 'R' {
		return fmt.Errorf("it answers %q", kind)
	}
	return nil
}

// PostgresStandby starts a hot standby that follows a primary.
func PostgresStandby(t testing.TB, primary *Process) *Process {
	t.Helper()
	dir := serverDir(t, "postgres")
	run(t, dir, "postgres", postgresTool(t, "pg_basebackup"), "-h", "127.0.0.1", "-p", strconv.Itoa(primary.Port), "-U", "postgres",
		"-D", filepath.Join(dir, "data"), "-R", "-c", "fast", "-X", "stream")
	return PostgresAt(t, dir)
}
