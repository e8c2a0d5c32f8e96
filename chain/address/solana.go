package address

import (
	"crypto/sha256"

	"filippo.io/edwards25519"
	"github.com/btcsuite/btcd/address/v2/base58"

	"github.com/cryptopay-go/cryptopay/chain"
)

func parseSolana(s string) (Info, string) {
	key, ok := decode58(s)
	switch {
	case !ok || len(key) != 32:
		return Info{}, "must be base58 of 32 bytes"
	case !isEdwards(key):
		return Info{}, "is off the curve: a token account or a program's account, which no key signs for: give the owner's address, or have the operator list a vault among your destinations"
	}
	return Info{Canonical: chain.Address(s), Kind: "SOL"}, ""
}

func isEdwards(key []byte) bool {
	_, err := new(edwards25519.Point).SetBytes(key)
	return err == nil
}

// makeSolana hashes until the result is a point: every second one is.
func makeSolana(body [32]byte) string {
	for !isEdwards(body[:]) {
		body = sha256.Sum256(body[:])
	}
	return base58.Encode(body[:])
}
