package testenv

import "testing"

// Wallet has bitcoinjs-lib do a list of tasks, as psbt.cjs describes them, and reads the list of
// results into out.
func Wallet(t testing.TB, tasks, out any) {
	t.Helper()
	script(t, "psbt.cjs", tasks, out, "bip32", "bitcoinjs-lib", "tiny-secp256k1")
}
