package testenv

import (
	"bytes"
	"context"
	"encoding/json"
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
	node, modules := npm(t, "litesvm")
	return start(t, spec{
		name: "litesvm", path: node, ready: litesvmReady,
		args: func(port int, _ string) []string {
			return []string{filepath.Join(repository(), "internal", "testenv", "litesvm.cjs"), strconv.Itoa(port), modules}
		},
	})
}

// npm finds node and the folder with the npm packages, of which the test needs one.
func npm(t testing.TB, name string) (node, modules string) {
	t.Helper()
	const env = "CRYPTOPAY_LITESVM" // a folder with the npm packages litesvm and @solana/kit in it
	node, err := exec.LookPath("node")
	modules = os.Getenv(env)
	if modules == "" {
		modules = filepath.Join(repository(), ".tools", "node_modules")
	}
	if _, e := os.Stat(filepath.Join(modules, filepath.FromSlash(name), "package.json")); err != nil || e != nil {
		missing(t, name+" (npm)", env)
	}
	return node, modules
}

// Kit has @solana/kit do a list of tasks, as kit.cjs describes them, and reads the list of
// results into out.
func Kit(t testing.TB, tasks, out any) {
	t.Helper()
	script(t, "kit.cjs", tasks, out, "@solana/kit")
}

// Cardano has the reference library of Cardano, or a ledger of others, do a list of tasks, as
// cardano.cjs describes them, and reads the list of results into out.
func Cardano(t testing.TB, tasks, out any) {
	t.Helper()
	script(t, "cardano.cjs", tasks, out, "@emurgo/cardano-serialization-lib-nodejs", "@lucid-evolution/provider")
}

// script runs one of ours with node and the npm packages that it needs.
func script(t testing.TB, name string, tasks, out any, packages ...string) {
	t.Helper()
	var node, modules string
	for _, p := range packages {
		node, modules = npm(t, p)
	}
	in, err := json.Marshal(tasks)
	if err != nil {
		t.Fatalf("testenv: %s: %v", name, err)
	}
	var told bytes.Buffer
	cmd := exec.CommandContext(t.Context(), node, filepath.Join(repository(), "internal", "testenv", name), modules)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(in), &told
	answer, err := cmd.Output()
	if err != nil {
		t.Fatalf("testenv: %s: %v: %s", name, err, told.Bytes())
	}
	if err := json.Unmarshal(answer, out); err != nil {
		t.Fatalf("testenv: %s: %v", name, err)
	}
}

func litesvmReady(ctx context.Context, port int) error {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"getHealth"}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address(port)+"/ready", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json") // a validator takes nothing else
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
