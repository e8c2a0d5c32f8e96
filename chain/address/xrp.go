package address

import (
	"bytes"
	"encoding/binary"

	"github.com/cryptopay-go/cryptopay/chain"
)

// X-addresses are XLS-5: two bytes of prefix, the account, a flag and a tag.
var (
	xMain = []byte{0x05, 0x44}
	xTest = []byte{0x04, 0x93}
)

func parseXRP(s string) (Info, string) {
	body, ok := decode58Check(fromRipple(s))
	switch {
	case !ok:
		return Info{}, "must be base58 of the XRP Ledger with a right checksum"
	case len(body) == 21 && body[0] == 0:
		if blackHole(body[1:]) {
			return Info{}, "is a black hole: nobody has its key"
		}
		return Info{Canonical: chain.Address(s), Kind: "classic"}, ""
	case len(body) == 31 && bytes.HasPrefix(body, xTest):
		return Info{}, "belongs to the test network"
	case len(body) == 31 && bytes.HasPrefix(body, xMain):
		return xAddress(s, body[2:22], body[22], body[23:])
	}
	return Info{}, "is no account of the XRP Ledger: they begin with r or X"
}

func xAddress(s string, account []byte, flag byte, tag []byte) (Info, string) {
	value := binary.LittleEndian.Uint64(tag)
	info := Info{Canonical: chain.Address(s), Kind: "x-address", Base: chain.Address(classic(account))}
	switch {
	case blackHole(account):
		return Info{}, "is a black hole: nobody has its key"
	case flag == 0 && value == 0:
		info.Canonical = info.Base
		return info, ""
	case flag == 1 && value <= 1<<32-1:
		info.Tag = &value
		return info, ""
	}
	return Info{}, "has a malformed tag"
}

// blackHole reports ACCOUNT_ZERO and ACCOUNT_ONE.
func blackHole(account []byte) bool {
	return bytes.Count(account[:19], []byte{0}) == 19 && account[19] <= 1
}

func classic(account []byte) string {
	return toRipple(encode58Check(append([]byte{0}, account...)...))
}

func makeXRP(body [32]byte) string { return classic(body[:20]) }

// XRPAccount reads the 20 bytes of a classic address; ok is false for any other
// text.
func XRPAccount(a chain.Address) (id [20]byte, ok bool) {
	body, ok := decode58Check(fromRipple(string(a)))
	if !ok || len(body) != 21 || body[0] != 0 {
		return id, false
	}
	return [20]byte(body[1:]), true
}

// XAddress writes the X-address of an account and a destination tag on the main
// network.
func XAddress(account [20]byte, tag uint32) chain.Address {
	body := append(append(append([]byte(nil), xMain...), account[:]...), 1)
	body = binary.LittleEndian.AppendUint64(body, uint64(tag))
	return chain.Address(toRipple(encode58Check(body...)))
}
