package address

import (
	"encoding/hex"
	"strings"

	"golang.org/x/crypto/sha3"

	"github.com/cryptopay-go/cryptopay/chain"
)

// parseEVM accepts 0x and 40 hex digits: with a right EIP-55 checksum, or all
// in one case. The canonical form has the checksum.
func parseEVM(s string) (Info, string) {
	if len(s) != 42 || s[0] != '0' || s[1] != 'x' {
		return Info{}, "must be 0x and 40 hex digits"
	}
	digits := s[2:]
	lower := strings.ToLower(digits)
	if _, err := hex.DecodeString(lower); err != nil {
		return Info{}, "must be 0x and 40 hex digits"
	}
	canonical := eip55(lower)
	if digits != lower && digits != strings.ToUpper(digits) && canonical != s {
		return Info{}, "wrong EIP-55 checksum: a letter is mistyped"
	}
	return Info{Canonical: chain.Address(canonical), Kind: "EVM"}, ""
}

func makeEVM(body [32]byte) string { return eip55(hex.EncodeToString(body[:20])) }

// eip55 raises the letters whose digit of the hash is 8 or more.
func eip55(lower string) string {
	h := sha3.NewLegacyKeccak256()
	h.Write([]byte(lower))
	sum := h.Sum(nil)
	out := []byte("0x" + lower)
	for i := range lower {
		if nibble := sum[i/2] >> (4 * (1 - i%2)) & 15; nibble >= 8 && lower[i] >= 'a' {
			out[2+i] -= 'a' - 'A'
		}
	}
	return string(out)
}

// tronPrefix is the first byte of every mainnet address.
const tronPrefix = 0x41

func parseTron(s string) (Info, string) {
	body, ok := decode58Check(s)
	switch {
	case !ok:
		return Info{}, "must be base58 with a right checksum"
	case len(body) != 21 || body[0] != tronPrefix:
		return Info{}, "is no Tron mainnet address: they begin with T"
	}
	return Info{Canonical: chain.Address(s), Kind: "TRX"}, ""
}

func makeTron(body [32]byte) string {
	return encode58Check(append([]byte{tronPrefix}, body[:20]...)...)
}
