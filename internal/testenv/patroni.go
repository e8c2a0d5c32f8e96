package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// PatroniMember is a Patroni with the PostgreSQL that it keeps.
type PatroniMember struct {
	*Process     // of Patroni; its Port is that of PostgreSQL
	API      int // port of Patroni's own interface
}

// Kill ends Patroni and its PostgreSQL as the death of their machine does.
func (m *PatroniMember) Kill() {
	m.Process.Kill()
	m.killServer()
}

// killServer ends the PostgreSQL that outlives its Patroni.
func (m *PatroniMember) killServer() {
	text, err := os.ReadFile(filepath.Join(m.Dir, "data", "postmaster.pid"))
	if err != nil {
		return // it is gone
	}
	first, _, _ := strings.Cut(string(text), "\n")
	if pid, err := strconv.Atoi(first); err == nil {
		if p, err := os.FindProcess(pid); err == nil {
			_ = p.Kill()
		}
	}
}

// Patroni starts PostgreSQL servers, one of which leads, under Patroni and an
// etcd, with synchronous_mode and synchronous_mode_strict on: a commit answers
// when a standby has it, and only such a standby is made the leader. The
// superuser is "postgres", without a password.
func Patroni(t testing.TB, members int) []*PatroniMember {
	t.Helper()
	path := find("CRYPTOPAY_PATRONI", "patroni")
	if path == "" {
		missing(t, "patroni", "CRYPTOPAY_PATRONI")
	}
	store := etcd(t)
	out := make([]*PatroniMember, members)
	for i := range out {
		out[i] = patroniMember(t, path, fmt.Sprint("member", i), store)
	}
	for i := range out {
		wait(t, "patroni member", time.Minute, func() error { return out[i].state() })
	}
	wait(t, "a synchronous standby", time.Minute, func() error {
		for _, m := range out {
			if m.is("synchronous") {
				return nil
			}
		}
		return fmt.Errorf("none yet")
	})
	return out
}

func patroniMember(t testing.TB, path, name string, store *Process) *PatroniMember {
	t.Helper()
	m := &PatroniMember{API: FreePort(t)}
	dir := serverDir(t, "postgres")
	config := filepath.Join(dir, "patroni.yml")
	t.Cleanup(m.killServer) // after Patroni itself is gone
	m.Process = start(t, spec{
		name: "patroni", path: path, dir: dir, as: "postgres", ready: func(ctx context.Context, _ int) error { return answers(ctx, m.API) },
		args: func(port int, _ string) []string {
			text := patroniConfig(name, dir, filepath.Dir(postgresTool(t, "postgres")), port, m.API, store.Port)
			if err := os.WriteFile(config, []byte(text), 0o644); err != nil { //nolint:gosec // it holds no secret, and another account reads it
				t.Fatalf("testenv: %v", err)
			}
			return []string{config}
		},
	})
	return m
}

func patroniConfig(name, dir, bin string, port, api, etcd int) string {
	return fmt.Sprintf(`
scope: cryptopay
name: %[1]s
restapi: {listen: "127.0.0.1:%[5]d", connect_address: "127.0.0.1:%[5]d"}
etcd3: {host: "127.0.0.1:%[6]d"}
bootstrap:
  dcs:
    ttl: 20
    loop_wait: 1
    retry_timeout: 3
    synchronous_mode: true
    synchronous_mode_strict: true
    postgresql: {use_slots: true}
  initdb: [{encoding: UTF8}, {locale: C.UTF-8}, {auth-host: trust}, {auth-local: trust}]
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
postgresql:
  listen: "127.0.0.1:%[4]d"
  connect_address: "127.0.0.1:%[4]d"
  data_dir: "%[2]s/data"
  bin_dir: "%[3]s"
  authentication: {superuser: {username: postgres}, replication: {username: postgres}}
  parameters: {unix_socket_directories: "%[2]s", shared_buffers: 32MB, max_connections: 60}
watchdog: {mode: "off"}
`, name, dir, bin, port, api, etcd)
}

// state is nil when the member's PostgreSQL runs.
func (m *PatroniMember) state() error {
	s, err := m.ask("patroni")
	if err == nil && s["state"] != "running" {
		err = fmt.Errorf("it is %v", s["state"])
	}
	return err
}

// Leads reports whether the member is the leader, as Patroni has it.
func (m *PatroniMember) Leads() bool { return m.is("primary") }

// is asks one of Patroni's health checks.
func (m *PatroniMember) is(role string) bool {
	_, err := m.ask(role)
	return err == nil
}

func (m *PatroniMember) ask(path string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/%s", m.API, path), nil)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() //nolint:errcheck // nothing was written
	if res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d", res.StatusCode)
	}
	var v map[string]any
	return v, json.NewDecoder(res.Body).Decode(&v)
}

// etcd starts one etcd.
func etcd(t testing.TB) *Process {
	t.Helper()
	path := find("CRYPTOPAY_ETCD", "etcd")
	if path == "" {
		missing(t, "etcd", "CRYPTOPAY_ETCD")
	}
	peer := FreePort(t)
	return start(t, spec{
		name: "etcd", path: path, ready: answers,
		args: func(port int, dir string) []string {
			client, peers := "http://"+address(port), "http://"+address(peer)
			return []string{
				"--data-dir", filepath.Join(dir, "data"), "--listen-client-urls", client, "--advertise-client-urls", client,
				"--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default=" + peers,
			}
		},
	})
}

// answers reports whether something listens on a port.
func answers(ctx context.Context, port int) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return err
	}
	return conn.Close()
}

// wait asks again until there is no error.
func wait(t testing.TB, what string, patience time.Duration, ready func() error) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); ; <-tick.C {
		err := ready()
		if err == nil {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("testenv: %s: not ready after %s: %v", what, patience, err)
		}
	}
}
