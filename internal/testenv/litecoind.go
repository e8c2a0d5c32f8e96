package testenv

import (
	"strconv"
	"testing"
)

// Pruned are arguments for a Litecoind that keeps no index of transactions, and prunes.
var Pruned = []string{"-txindex=0", "-prune=1"}

// Litecoind starts a Litecoin Core on a fresh regtest chain, with an index of
// transactions and no wallet. It speaks the dialect of Bitcoin Core, and takes no
// replacements unless told to, as is its default. Its blocks
// stop at height 431 until somebody pays into an extension block.
func Litecoind(t testing.TB, args ...string) *CoinNode {
	t.Helper()
	const env = "CRYPTOPAY_LITECOIND"
	path := find(env, "litecoind")
	if path == "" {
		missing(t, "litecoind", env)
	}
	data := t.TempDir()
	s := spec{
		name: "litecoind", path: path, ready: coinReady,
		args: func(port int, _ string) []string {
			return append([]string{
				"-regtest", "-datadir=" + data, "-server", "-listen=0", "-dnsseed=0", "-txindex=1", "-disablewallet=1",
				"-persistmempool=0", "-rpcservertimeout=5", "-fallbackfee=0.0001", "-printtoconsole=0",
				"-rpcuser=" + CoinUser, "-rpcpassword=" + CoinPassword, "-rpcbind=127.0.0.1", "-rpcallowip=127.0.0.1", "-rpcport=" + strconv.Itoa(port),
			}, args...)
		},
	}
	return &CoinNode{Process: start(t, s), spec: s, t: t}
}
