package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"testing"
)

// Geth starts a go-ethereum with a fresh chain of its own (id 1337). It mines only
// when told to: testing_commitBlockV1 puts the transactions given into a block,
// debug_setHead takes blocks away. Its only account, which it signs for, is rich.
func Geth(t testing.TB, args ...string) *Process {
	t.Helper()
	const env = "CRYPTOPAY_GETH"
	path := find(env, "geth", "bin/geth")
	if path == "" {
		missing(t, "geth", env)
	}
	return start(t, spec{
		name: "geth", path: path, ready: gethReady,
		args: func(port int, _ string) []string {
			return append([]string{
				"--dev", "--dev.period", "1000000000", "--nodiscover", "--maxpeers", "0", "--port", "0", "--ipcdisable", "--authrpc.port", "0",
				"--http", "--http.addr", "127.0.0.1", "--http.port", strconv.Itoa(port), "--http.api", "eth,net,web3,debug,txpool,testing", "--verbosity", "2",
				"--dev.gaslimit", "200000000", "--txpool.accountslots", "1000", "--txpool.accountqueue", "1000", // a test's people send much at once
			}, args...)
		},
	})
}

// gethReady waits for the one block that a development chain makes by itself.
func gethReady(ctx context.Context, port int) error {
	body := []byte(`{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}`)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+address(port), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var answer struct{ Result string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return err
	}
	if answer.Result == "" || answer.Result == "0x0" {
		return errors.New("it has made no block yet")
	}
	return nil
}
