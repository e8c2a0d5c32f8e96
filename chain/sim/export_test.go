package sim

import "github.com/cryptopay-go/cryptopay/chain"

// DigestsOf lists what a payload needs signed, whatever the payload is.
func DigestsOf(payload []byte) ([]chain.Digest, error) {
	b, err := parseBody(payload)
	return digests(&b, payload), err
}

// TxOf is the hash of a transaction's bytes.
func TxOf(raw []byte) string { return digestHex("tx", string(raw)) }
