package sim

import (
	"encoding/hex"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/cryptopay-go/cryptopay/chain"
)

// An address is "sim", the network's code in lower case, 40 hex digits of the
// hash of the public key, and 8 of a checksum over all before it. There is one
// writing of it: upper case is refused, not folded.
const (
	bodyDigits = 40
	sumDigits  = 8
)

func prefix(n chain.Network) string { return "sim" + strings.ToLower(string(n)) }

// addressOf makes the address of any text that stands for an owner.
func addressOf(n chain.Network, owner string) chain.Address {
	s := prefix(n) + digestHex("owner", owner)[:bodyDigits]
	return chain.Address(s + checksum(s))
}

func checksum(s string) string { return digestHex("checksum", s)[:sumDigits] }

func parseAddress(n chain.Network, s string) (chain.Address, error) {
	bad := func(why string) error { return &chain.AddressError{Network: n, Address: s, Reason: why} }
	p := prefix(n)
	switch {
	case !strings.HasPrefix(s, p):
		return "", bad("it does not begin with " + p)
	case len(s) != len(p)+bodyDigits+sumDigits:
		return "", bad("it has the wrong length")
	}
	for _, r := range s[len(p):] {
		if (r < '0' || r > '9') && (r < 'a' || r > 'f') {
			return "", bad("it has other characters than 0-9 and a-f")
		}
	}
	if cut := len(s) - sumDigits; s[cut:] != checksum(s[:cut]) {
		return "", bad("its checksum is wrong")
	}
	return chain.Address(s), nil
}

func addressOfKey(n chain.Network, pub []byte) (chain.Address, error) {
	key, err := secp256k1.ParsePubKey(pub)
	if err != nil || len(pub) != secp256k1.PubKeyBytesLenCompressed {
		return "", &chain.AddressError{Network: n, Address: hex.EncodeToString(pub), Reason: "the key is no compressed secp256k1 key of 33 bytes"}
	}
	return addressOf(n, string(key.SerializeCompressed())), nil
}

// signedBy returns the address whose key made a signature r‖s‖v.
func signedBy(n chain.Network, sig chain.Signature, digest [32]byte) (chain.Address, bool) {
	if len(sig) != 65 || sig[64] > 3 {
		return "", false
	}
	compact := append([]byte{27 + 4 + sig[64]}, sig[:64]...)
	pub, _, err := ecdsa.RecoverCompact(compact, digest[:])
	if err != nil {
		return "", false
	}
	return addressOf(n, string(pub.SerializeCompressed())), true
}

// lowS reports whether a signature is the one of the two that nodes relay.
func lowS(sig chain.Signature) bool {
	var s secp256k1.ModNScalar
	return len(sig) == 65 && !s.SetByteSlice(sig[32:64]) && !s.IsOverHalfOrder()
}
