package testenv

import (
	"context"
	"errors"
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
	height, err := askEthereum(ctx, port, "eth_blockNumber")
	if err == nil && (height == "" || height == "0x0") {
		err = errors.New("it has made no block yet")
	}
	return err
}
