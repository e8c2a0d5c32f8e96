package testenv

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"
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
	height, err := askEthereum(ctx, port, "eth_blockNumber", "")
	if err == nil && (height == "" || height == "0x0") {
		err = errors.New("it has made no block yet")
	}
	if err == nil {
		err = gethIndexed(ctx, port)
	}
	return err
}

// GethIndexed waits until a go-ethereum that has its first block has indexed it. Until then it
// answers no question about a transaction that it does not know.
func GethIndexed(t testing.TB, port int) {
	t.Helper()
	wait(t, "go-ethereum, which indexes its first block", 30*time.Second, func() error { return gethIndexed(t.Context(), port) })
}

func gethIndexed(ctx context.Context, port int) error {
	_, err := askEthereum(ctx, port, "eth_getTransactionReceipt", `"0x`+strings.Repeat("0", 64)+`"`)
	return err
}
