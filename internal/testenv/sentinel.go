package testenv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// RedisSentinel starts a master with replicas, and three sentinels that make a
// replica the master, which they call "cryptopay", when a second has passed
// without a word of it. The first server begins as the master.
func RedisSentinel(t testing.TB, replicas int, args ...string) (servers, sentinels []*Process) {
	t.Helper()
	servers = append(servers, Redis(t, args...))
	for range replicas {
		follow := append([]string{"--replicaof", fmt.Sprint("127.0.0.1 ", servers[0].Port)}, args...)
		servers = append(servers, Redis(t, follow...))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	wait(t, "replicas", 30*time.Second, func() error {
		_, err := ask(ctx, servers[0].Port, "SET", "testenv", "1")
		for _, s := range servers[1:] {
			if got, e := ask(ctx, s.Port, "GET", "testenv"); e != nil {
				err = e
			} else if got != "1" {
				err = fmt.Errorf("a replica has %q", got)
			}
		}
		return err
	})
	for range 3 {
		sentinels = append(sentinels, sentinel(t, servers[0].Port))
	}
	wait(t, "sentinels", 30*time.Second, func() error {
		for _, s := range sentinels {
			if _, err := ask(ctx, s.Port, "SENTINEL", "CKQUORUM", "cryptopay"); err != nil {
				return err
			}
		}
		return nil
	})
	return servers, sentinels
}

func sentinel(t testing.TB, master int) *Process {
	t.Helper()
	const env = "CRYPTOPAY_REDIS"
	path := find(env, "redis-server")
	if path == "" {
		missing(t, "redis-server", env)
	}
	return start(t, spec{
		name: "redis-sentinel", path: path, ready: ping,
		args: func(port int, dir string) []string {
			config := filepath.Join(dir, "sentinel.conf")
			text := fmt.Sprintf("port %d\nbind 127.0.0.1\nsentinel monitor cryptopay 127.0.0.1 %d 2\n"+
				"sentinel down-after-milliseconds cryptopay 1000\nsentinel failover-timeout cryptopay 5000\n", port, master)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatalf("testenv: %v", err)
			}
			return []string{config, "--sentinel"}
		},
	})
}
