package address

import (
	"bytes"
	"strings"

	"github.com/btcsuite/btcd/address/v2/bech32"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/cryptopay-go/cryptopay/chain"
)

// script is a network of Bitcoin's kind.
type script struct {
	name       string
	pubkeyHash byte   // version of P2PKH
	scriptHash []byte // versions of P2SH; the first is written
	hrp        string // of segregated witness addresses, "" = has none
}

// Version bytes as each project's chain parameters have them.
var (
	bitcoin  = script{"Bitcoin", 0x00, []byte{0x05}, "bc"}
	litecoin = script{"Litecoin", 0x30, []byte{0x32, 0x05}, "ltc"}
	dogecoin = script{"Dogecoin", 0x1e, []byte{0x16}, ""}
)

func (n script) parse(s string) (Info, string) {
	if n.hrp != "" && len(s) > len(n.hrp) && strings.EqualFold(s[:len(n.hrp)+1], n.hrp+"1") {
		return n.witness(s)
	}
	body, ok := decode58Check(s)
	switch {
	case !ok || len(body) != 21:
		return Info{}, "is no " + n.name + " address, or has a wrong checksum"
	case body[0] == n.pubkeyHash:
		return Info{Canonical: chain.Address(s), Kind: "P2PKH"}, ""
	case bytes.IndexByte(n.scriptHash, body[0]) >= 0:
		return Info{Canonical: chain.Address(encode58Check(append([]byte{n.scriptHash[0]}, body[1:]...)...)), Kind: "P2SH"}, ""
	}
	return Info{}, "belongs to another network than " + n.name
}

// witness reads BIP173 and BIP350 addresses.
func (n script) witness(s string) (Info, string) {
	hrp, data, version, err := bech32.DecodeGeneric(s)
	if err != nil || hrp != n.hrp || len(data) == 0 {
		return Info{}, "has a wrong bech32 checksum or form"
	}
	program, err := bech32.ConvertBits(data[1:], 5, 8, false)
	if err != nil || len(program) < 2 || len(program) > 40 {
		return Info{}, "has a malformed witness program"
	}
	info := Info{Canonical: chain.Address(strings.ToLower(s))}
	switch v := data[0]; {
	case v == 0 && version != bech32.Version0 || v > 0 && version != bech32.VersionM:
		return Info{}, "has the checksum of another witness version"
	case v == 0 && len(program) == 20:
		info.Kind = "P2WPKH"
	case v == 0 && len(program) == 32:
		info.Kind = "P2WSH"
	case v == 1 && len(program) == 32 && onCurve(program):
		info.Kind = "P2TR"
	case v == 1 && len(program) == 32:
		return Info{}, "has a Taproot key that is no point of the curve: nobody could spend what is sent there"
	case v == 0:
		return Info{}, "has a witness program of the wrong length"
	default:
		return Info{}, "has a witness version that is not in use: anybody could spend what is sent there"
	}
	return info, ""
}

// onCurve reports whether an x-only key (BIP340) is one.
func onCurve(x []byte) bool {
	_, err := secp256k1.ParsePubKey(append([]byte{secp256k1.PubKeyFormatCompressedEven}, x...))
	return err == nil
}

func (n script) make(body [32]byte) string {
	if n.hrp == "" {
		return encode58Check(append([]byte{n.pubkeyHash}, body[:20]...)...)
	}
	data, err := bech32.ConvertBits(body[:20], 8, 5, true)
	if err != nil {
		panic(err) // bytes always convert
	}
	s, err := bech32.Encode(n.hrp, append([]byte{0}, data...))
	if err != nil {
		panic(err)
	}
	return s
}
