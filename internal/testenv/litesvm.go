package testenv

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

// LiteSVM starts a server of Solana chains: the real runtime behind the RPC of a
// validator, of which blocks, forks and commitment are ours (litesvm.cjs). Each path
// of its URL is a chain of its own.
func LiteSVM(t testing.TB) *Process {
	t.Helper()
	const env = "CRYPTOPAY_LITESVM" // a folder with the npm package litesvm in it
	node, err := exec.LookPath("node")
	modules := os.Getenv(env)
	if modules == "" {
		modules = filepath.Join(repository(), ".tools", "node_modules")
	}
	if _, e := os.Stat(filepath.Join(modules, "litesvm", "package.json")); err != nil || e != nil {
		missing(t, "litesvm (npm)", env)
	}
	return start(t, spec{
		name: "litesvm", path: node, ready: litesvmReady,
		args: func(port int, _ string) []string {
			return []string{filepath.Join(repository(), "internal", "testenv", "litesvm.cjs"), strconv.Itoa(port), modules}
		},
	})
}

func litesvmReady(ctx context.Context, port int) error {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"getHealth"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address(port)+"/ready", bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	_ = resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	return nil
}
