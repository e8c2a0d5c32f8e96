package testenv

import (
	"context"
	"errors"
	"strconv"
	"testing"
)

// Geth starts a go-ethereum (see gethnode) with a fresh chain of its own, id 1337. It mines
// only when told to: testing_commitBlockV1 puts the transactions given into a block,
// debug_setHead takes blocks away. Its only account, which it signs for, is rich.
func Geth(t testing.TB) *Process {
	t.Helper()
	const env = "CRYPTOPAY_GETHNODE"
	path := find(env, "gethnode", "bin/gethnode")
	if path == "" {
		missing(t, "gethnode", env)
	}
	return start(t, spec{
		name: "gethnode", path: path, ready: gethReady,
		args: func(port int, _ string) []string { return []string{strconv.Itoa(port)} },
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
