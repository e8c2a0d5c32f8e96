package testenv

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Anvil starts an EVM node with a fresh chain and returns its process. It mines
// only when told to (evm_mine), unless more arguments say otherwise. Its ten
// funded accounts are those of the "test … junk" mnemonic.
func Anvil(t testing.TB, args ...string) *Process {
	t.Helper()
	const env = "CRYPTOPAY_ANVIL"
	path := find(env, "anvil", "node_modules/@foundry-rs/anvil-linux-amd64/bin/anvil", "node_modules/@foundry-rs/anvil-linux-arm64/bin/anvil")
	if path == "" {
		missing(t, "anvil", env)
	}
	return start(t, spec{
		name: "anvil", path: path, ready: jsonRPC,
		args: func(port int, _ string) []string {
			return append([]string{"--host", "127.0.0.1", "--port", strconv.Itoa(port), "--silent", "--no-mining", "--order", "fifo"}, args...)
		},
	})
}

// URL is the process's endpoint for HTTP.
func (p *Process) URL() string { return "http://" + address(p.Port) }

// jsonRPC asks for the chain id.
func jsonRPC(ctx context.Context, port int) error {
	_, err := askEthereum(ctx, port, "eth_chainId", "")
	return err
}

// askEthereum calls a method that answers with a text, or with null. Params is what stands
// between the brackets.
func askEthereum(ctx context.Context, port int, method, params string) (result string, err error) {
	body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":[%s]}`, method, params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address(port), strings.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("HTTP status %d", resp.StatusCode)
	}
	var answer struct {
		Result string
		Error  json.RawMessage
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return "", err
	}
	if answer.Error != nil {
		return "", fmt.Errorf("%s: %s", method, answer.Error)
	}
	return answer.Result, nil
}
