package testenv

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// Redis starts an empty Redis that keeps nothing on disk, unless more arguments
// say otherwise: "--dir" with another's folder starts it on what that one kept.
func Redis(t testing.TB, args ...string) *Process {
	t.Helper()
	return redisServer(t, func(int) []string { return args })
}

func redisServer(t testing.TB, more func(port int) []string) *Process {
	t.Helper()
	const env = "CRYPTOPAY_REDIS"
	path := find(env, "redis-server")
	if path == "" {
		missing(t, "redis-server", env)
	}
	return start(t, spec{
		name: "redis-server", path: path, ready: ping,
		args: func(port int, dir string) []string {
			return append([]string{
				"--bind", "127.0.0.1", "--port", strconv.Itoa(port), "--dir", dir,
				"--save", "", "--appendonly", "no", "--daemonize", "no",
			}, more(port)...)
		},
	})
}

// redisSlots is how many slots a cluster spreads over its masters.
const redisSlots = 16384

// RedisCluster starts a cluster of masters without replicas.
func RedisCluster(t testing.TB, masters int, args ...string) []*Process {
	t.Helper()
	nodes := make([]*Process, masters)
	bus := make([]int, masters)
	for i := range nodes {
		nodes[i] = redisServer(t, func(int) []string {
			bus[i] = FreePort(t)
			return append([]string{"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus[i])}, args...)
		})
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for i, n := range nodes {
		for _, words := range [][]string{
			{"CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i + 1)},
			{"CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i * redisSlots / masters), strconv.Itoa((i+1)*redisSlots/masters - 1)},
			{"CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(nodes[0].Port), strconv.Itoa(bus[0])},
		} {
			if words[1] == "MEET" && i == 0 {
				continue
			}
			if _, err := ask(ctx, n.Port, words...); err != nil {
				t.Fatalf("testenv: redis cluster: %v: %v", words, err)
			}
		}
	}
	if err := agreed(ctx, nodes); err != nil {
		t.Fatalf("testenv: redis cluster: %v", err)
	}
	return nodes
}

// agreed returns when every node knows every other and serves.
func agreed(ctx context.Context, nodes []*Process) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, n := range nodes {
		for {
			state, err := ask(ctx, n.Port, "CLUSTER", "INFO")
			if err == nil && strings.Contains(state, "cluster_state:ok") && strings.Contains(state, fmt.Sprintf("cluster_size:%d\r", len(nodes))) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("the nodes do not agree: %s %w", state, errors.Join(err, ctx.Err()))
			case <-tick.C:
			}
		}
	}
	return nil
}

// Kill ends the process as a crash does, and returns when it is gone.
func (p *Process) Kill() {
	select {
	case <-p.done:
		return
	default:
	}
	if running, err := os.FindProcess(p.PID); err == nil {
		_ = running.Kill()
	}
	<-p.done
}

// Address is host:port of the process.
func (p *Process) Address() string { return address(p.Port) }

// ping asks a Redis whether it is there.
func ping(ctx context.Context, port int) error {
	answer, err := ask(ctx, port, "PING")
	if err == nil && answer != "PONG" {
		err = fmt.Errorf("it answers %q", answer)
	}
	return err
}

// ask sends one command to a Redis and reads an answer that is one text.
func ask(ctx context.Context, port int, words ...string) (string, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", address(port))
	if err != nil {
		return "", err
	}
	defer conn.Close() //nolint:errcheck // nothing was written that matters
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return "", err
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := io.WriteString(conn, b.String()); err != nil {
		return "", err
	}
	r := bufio.NewReader(conn)
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	switch {
	case strings.HasPrefix(line, "+"):
		return line[1:], nil
	case strings.HasPrefix(line, "$"):
		n, err := strconv.Atoi(line[1:])
		if err != nil || n < 0 {
			return "", fmt.Errorf("it answers %q", line)
		}
		body := make([]byte, n)
		_, err = io.ReadFull(r, body)
		return string(body), err
	}
	return "", fmt.Errorf("it answers %q", line)
}
