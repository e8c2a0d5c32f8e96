package testenv

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// MariaDB starts a fresh MariaDB with its durable settings on, unless more
// arguments ("--sync-binlog=0") say otherwise. The superuser is "root", without a
// password; there is a database "test".
func MariaDB(t testing.TB, args ...string) *Process {
	t.Helper()
	return MariaDBAt(t, newMariaDB(t), args...)
}

// newMariaDB makes a folder with an empty server's files.
func newMariaDB(t testing.TB) string {
	t.Helper()
	dir := serverDir(t, "mysql")
	path := find("CRYPTOPAY_MARIADB_INSTALL", "mariadb-install-db")
	if path == "" {
		missing(t, "mariadb-install-db", "CRYPTOPAY_MARIADB_INSTALL")
	}
	run(t, dir, "mysql", path, "--no-defaults", "--datadir="+filepath.Join(dir, "data"), "--tmpdir="+dir,
		"--auth-root-authentication-method=normal", "--skip-name-resolve")
	return dir
}

// MariaDBAt starts a MariaDB on what another one, now gone, left in its Dir.
func MariaDBAt(t testing.TB, dir string, args ...string) *Process {
	t.Helper()
	return mariaDB(t, dir, func(int) []string { return args })
}

func mariaDB(t testing.TB, dir string, more func(port int) []string) *Process {
	t.Helper()
	const env = "CRYPTOPAY_MARIADB"
	path := find(env, "mariadbd")
	if path == "" {
		path = "/usr/sbin/mariadbd"
		if !executable(path) {
			missing(t, "mariadbd", env)
		}
	}
	return start(t, spec{
		name: "mariadbd", path: path, dir: dir, as: "mysql", ready: mariaReady,
		args: func(port int, _ string) []string {
			return append([]string{
				"--no-defaults", "--datadir=" + filepath.Join(dir, "data"), "--tmpdir=" + dir, "--socket=" + filepath.Join(dir, "s"),
				"--pid-file=" + filepath.Join(dir, "pid"), "--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1",
				"--skip-name-resolve", "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=64M",
				"--innodb-flush-log-at-trx-commit=1", "--sync-binlog=1",
			}, more(port)...)
		},
	})
}

// MySQLDSN names a database of a MariaDB, as the Go driver wants it.
func (p *Process) MySQLDSN(database string) string {
	return fmt.Sprintf("root@tcp(%s)/%s", p.Address(), database)
}

// galeraModule is where Debian puts it.
const galeraModule = "/usr/lib/galera/libgalera_smm.so"

// Galera starts a cluster of MariaDB nodes that replicate to each other before a
// commit answers.
func Galera(t testing.TB, nodes int, args ...string) []*Process {
	t.Helper()
	if _, err := os.Stat(galeraModule); err != nil {
		missing(t, "galera-4", "nothing else")
	}
	var out []*Process
	peers := ""
	for range nodes {
		p := mariaDB(t, newMariaDB(t), func(int) []string {
			base, ist, sst := FreePort(t), FreePort(t), FreePort(t)
			if peers == "" {
				peers = address(base)
			}
			cluster := "gcomm://"
			if len(out) > 0 {
				cluster += peers
			}
			return append([]string{
				"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2", "--wsrep-on=ON", "--wsrep-provider=" + galeraModule,
				fmt.Sprintf("--wsrep-provider-options=base_host=127.0.0.1;base_port=%d;gmcast.listen_addr=tcp://%s;ist.recv_addr=%s;gcache.size=16M",
					base, address(base), address(ist)),
				"--wsrep-cluster-name=test", "--wsrep-node-address=" + address(base), "--wsrep-sst-method=rsync",
				"--wsrep-sst-receive-address=" + address(sst), "--wsrep-cluster-address=" + cluster,
			}, args...)
		})
		out = append(out, p)
	}
	return out
}

// mariaReady reads the server's greeting. One that is not ready sends none, or an
// error.
func mariaReady(ctx context.Context, port int) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing was written that matters
	if err := conn.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return err
	}
	head := make([]byte, 5)
	if _, err := io.ReadFull(conn, head); err != nil {
		return err
	}
	if head[4] != 10 { // the protocol's version; 255 is an error
		return fmt.Errorf("it answers %q", head)
	}
	return nil
}
