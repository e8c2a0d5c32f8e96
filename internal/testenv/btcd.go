package testenv

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// What the nodes of Bitcoin's kind are started with.
const (
	CoinUser     = "tester"
	CoinPassword = "not-a-secret"
)

// CoinNode is a node of Bitcoin's kind on a chain of its own. It mines only when
// told to.
type CoinNode struct {
	*Process
	spec spec
	t    testing.TB // the test that owns it
}

// URL is the endpoint, without user and password.
func (n *CoinNode) URL() string { return "http://" + address(n.Port) }

// Restart ends the node and starts it on the same chain, with nothing in its
// mempool. Its port is another then.
func (n *CoinNode) Restart() {
	t := n.t
	t.Helper()
	p, err := os.FindProcess(n.PID)
	if err == nil {
		err = p.Signal(syscall.SIGTERM)
	}
	if err != nil {
		t.Fatalf("testenv: %s: %v", n.spec.name, err)
	}
	select {
	case <-n.done:
	case <-time.After(30 * time.Second):
		t.Fatalf("testenv: %s does not end", n.spec.name)
	}
	n.Process = start(t, n.spec)
}

// Btcd starts a btcd on a fresh chain of a kind ("simnet", "regtest"), with
// indexes of transactions and addresses. Blocks pay to reward.
func Btcd(t testing.TB, kind, reward string, args ...string) *CoinNode {
	t.Helper()
	const env = "CRYPTOPAY_BTCD"
	path := find(env, "btcd", "bin/btcd")
	if path == "" {
		missing(t, "btcd", env)
	}
	data := t.TempDir()
	s := spec{
		name: "btcd", path: path, ready: coinReady,
		args: func(port int, _ string) []string {
			return append([]string{
				"--configfile=/dev/null", "--" + kind, "--notls", "--txindex", "--addrindex", "--nolisten", "--nobanning",
				"--rpcuser=" + CoinUser, "--rpcpass=" + CoinPassword, "--rpclisten=" + address(port), "--rpcmaxclients=100",
				"--datadir=" + data + "/data", "--logdir=" + data + "/log", "--miningaddr=" + reward,
			}, args...)
		},
	}
	return &CoinNode{Process: start(t, s), spec: s, t: t}
}

// coinReady asks for the height, which a node answers once it has its chain.
func coinReady(ctx context.Context, port int) error {
	body := []byte(`{"jsonrpc":"1.0","id":1,"method":"getblockcount","params":[]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address(port), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.SetBasicAuth(CoinUser, CoinPassword)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP status %s", strconv.Itoa(resp.StatusCode))
	}
	return nil
}
