package address

import (
	"bytes"
	"strings"

	"github.com/btcsuite/btcd/address/v2/bech32"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Script is how a network of Bitcoin's kind writes addresses.
type Script struct {
	Name       string // for people
	PubKeyHash byte   // version of P2PKH
	ScriptHash []byte // versions of P2SH; the first is written
	HRP        string // of segregated witness addresses, "" = has none
}

// Version bytes as each project's chain parameters have them.
var (
	bitcoin  = Script{"Bitcoin", 0x00, []byte{0x05}, "bc"}
	litecoin = Script{"Litecoin", 0x30, []byte{0x32, 0x05}, "ltc"}
	dogecoin = Script{"Dogecoin", 0x1e, []byte{0x16}, ""}
)

// ScriptFor is the Script of BTC, LTC or DOGE; ok is false for other networks.
func ScriptFor(n chain.Network) (s Script, ok bool) {
	s, ok = map[chain.Network]Script{"BTC": bitcoin, "LTC": litecoin, "DOGE": dogecoin}[n]
	return s, ok
}

// Format is that of a network which writes so, under a type of that name: for
// clients of test networks, which For does not know.
func (n Script) Format(network chain.Network, typ string) Format {
	return Format{network, typ, n.parse, n.make}
}

// Program reads an address that Parse accepts: its kind, and the hash or witness
// program that a script pays to. ok is false for any other text.
func (n Script) Program(s string) (kind string, program []byte, ok bool) {
	info, program, why := n.read(s)
	return info.Kind, program, why == "" && len(s) <= maxLength
}

func (n Script) parse(s string) (Info, string) {
	info, _, why := n.read(s)
	return info, why
}

func (n Script) read(s string) (info Info, program []byte, why string) {
	if n.HRP != "" && len(s) > len(n.HRP) && strings.EqualFold(s[:len(n.HRP)+1], n.HRP+"1") {
		return n.witness(s)
	}
	body, ok := decode58Check(s)
	switch {
	case !ok || len(body) != 21:
		return Info{}, nil, "is no " + n.Name + " address, or has a wrong checksum"
	case body[0] == n.PubKeyHash:
		return Info{Canonical: chain.Address(s), Kind: "P2PKH"}, body[1:], ""
	case bytes.IndexByte(n.ScriptHash, body[0]) >= 0:
		return Info{Canonical: chain.Address(encode58Check(append([]byte{n.ScriptHash[0]}, body[1:]...)...)), Kind: "P2SH"}, body[1:], ""
	}
	return Info{}, nil, "belongs to another network than " + n.Name
}

// witness reads BIP173 and BIP350 addresses.
func (n Script) witness(s string) (info Info, program []byte, why string) {
	hrp, data, version, err := bech32.DecodeGeneric(s)
	if err != nil || hrp != n.HRP || len(data) == 0 {
		return Info{}, nil, "has a wrong bech32 checksum or form"
	}
	program, err = bech32.ConvertBits(data[1:], 5, 8, false)
	if err != nil || len(program) < 2 || len(program) > 40 {
		return Info{}, nil, "has a malformed witness program"
	}
	info = Info{Canonical: chain.Address(strings.ToLower(s))}
	switch v := data[0]; {
	case v == 0 && version != bech32.Version0 || v > 0 && version != bech32.VersionM:
		return Info{}, nil, "has the checksum of another witness version"
	case v == 0 && len(program) == 20:
		info.Kind = "P2WPKH"
	case v == 0 && len(program) == 32:
		info.Kind = "P2WSH"
	case v == 1 && len(program) == 32 && onCurve(program):
		info.Kind = "P2TR"
	case v == 1 && len(program) == 32:
		return Info{}, nil, "has a Taproot key that is no point of the curve: nobody could spend what is sent there"
	case v == 0:
		return Info{}, nil, "has a witness program of the wrong length"
	default:
		return Info{}, nil, "has a witness version that is not in use: anybody could spend what is sent there"
	}
	return info, program, ""
}

// onCurve reports whether an x-only key (BIP340) is one.
func onCurve(x []byte) bool {
	_, err := secp256k1.ParsePubKey(append([]byte{secp256k1.PubKeyFormatCompressedEven}, x...))
	return err == nil
}

func (n Script) make(body [32]byte) string {
	if n.HRP == "" {
		return encode58Check(append([]byte{n.PubKeyHash}, body[:20]...)...)
	}
	data, err := bech32.ConvertBits(body[:20], 8, 5, true)
	if err != nil {
		panic(err) // bytes always convert
	}
	s, err := bech32.Encode(n.HRP, append([]byte{0}, data...))
	if err != nil {
		panic(err)
	}
	return s
}
