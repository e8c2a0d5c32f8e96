package address

import (
	"encoding/binary"
	"hash/crc32"
	"strings"

	"github.com/btcsuite/btcd/address/v2/bech32"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Shelley addresses are CIP-19: a header byte of type and network, then hashes
// of 28 bytes.
const (
	hashSize       = 28
	cardanoMainnet = 1
)

// shelleyKinds are the payment types that can be paid, by the header's upper half.
var shelleyKinds = map[byte]struct {
	name string
	size int
}{
	0: {"base", 2 * hashSize}, 1: {"base-script", 2 * hashSize}, 2: {"base", 2 * hashSize}, 3: {"base-script", 2 * hashSize},
	6: {"enterprise", hashSize}, 7: {"enterprise-script", hashSize},
}

func parseCardano(s string) (Info, string) {
	if !strings.HasPrefix(s, "addr") && !strings.HasPrefix(s, "stake") && !strings.HasPrefix(s, "ADDR") {
		return byron(s)
	}
	hrp, data, version, err := bech32.DecodeNoLimitWithVersion(s)
	if err != nil || version != bech32.Version0 {
		return Info{}, "has a wrong bech32 checksum or form"
	}
	if hrp != "addr" {
		return Info{}, "cannot be paid on mainnet: such addresses begin with addr1"
	}
	raw, err := bech32.ConvertBits(data, 5, 8, false)
	if err != nil || len(raw) == 0 {
		return Info{}, "is malformed"
	}
	kind, known := shelleyKinds[raw[0]>>4]
	switch {
	case raw[0]&15 != cardanoMainnet:
		return Info{}, "belongs to a test network"
	case raw[0]>>4 == 4 || raw[0]>>4 == 5:
		return Info{}, "is a pointer address, which the Conway era made obsolete"
	case !known || len(raw) != 1+kind.size:
		return Info{}, "has an unknown type or a wrong length"
	}
	return Info{Canonical: chain.Address(strings.ToLower(s)), Kind: kind.name}, ""
}

// byron reads the addresses of before 2020: base58 of the CBOR array
// [#6.24(payload), crc32(payload)].
func byron(s string) (Info, string) {
	const malformed = "is no Cardano address, or has a wrong checksum"
	raw, ok := decode58(s)
	if !ok || len(raw) < 4 || raw[0] != 0x82 || raw[1] != 0xd8 || raw[2] != 0x18 {
		return Info{}, malformed
	}
	payload, rest, ok := cborBytes(raw[3:])
	if !ok || len(rest) != 5 || rest[0] != 0x1a || binary.BigEndian.Uint32(rest[1:]) != crc32.ChecksumIEEE(payload) {
		return Info{}, malformed
	}
	if len(payload) < 3 || payload[0] != 0x83 {
		return Info{}, malformed
	}
	root, attributes, ok := cborBytes(payload[1:])
	if !ok || len(root) != hashSize || len(attributes) < 2 || attributes[0]>>5 != 5 {
		return Info{}, malformed
	}
	if testnet(attributes) {
		return Info{}, "belongs to a test network"
	}
	return Info{Canonical: chain.Address(s), Kind: "byron"}, ""
}

// testnet reports an attribute 2, the network's magic: mainnet has none. The
// attributes are a small map of integers to byte strings.
func testnet(attributes []byte) bool {
	pairs, rest := int(attributes[0]&31), attributes[1:]
	for range pairs {
		if len(rest) < 2 {
			return true // malformed: not to be paid
		}
		if rest[0] == 2 {
			return true
		}
		var ok bool
		if _, rest, ok = cborBytes(rest[1:]); !ok {
			return true
		}
	}
	return false
}

// cborBytes reads one byte string of at most 255 bytes (RFC 8949 §3.1, major
// type 2).
func cborBytes(b []byte) (value, rest []byte, ok bool) {
	if len(b) == 0 || b[0]>>5 != 2 {
		return nil, nil, false
	}
	n, head := int(b[0]&31), 1
	if n == 24 && len(b) > 1 {
		n, head = int(b[1]), 2
	} else if n >= 24 {
		return nil, nil, false
	}
	if len(b) < head+n {
		return nil, nil, false
	}
	return b[head : head+n], b[head+n:], true
}

func makeCardano(body [32]byte) string {
	data, err := bech32.ConvertBits(append([]byte{6<<4 | cardanoMainnet}, body[:hashSize]...), 8, 5, true)
	if err != nil {
		panic(err) // bytes always convert
	}
	s, err := bech32.Encode("addr", data)
	if err != nil {
		panic(err)
	}
	return s
}
