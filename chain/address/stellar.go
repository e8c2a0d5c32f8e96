package address

import (
	"encoding/base32"
	"encoding/binary"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Version bytes of Stellar's strkeys (SEP-23).
const (
	strkeyAccount = 6 << 3  // G…
	strkeyMuxed   = 12 << 3 // M…
)

var strkey = base32.StdEncoding.WithPadding(base32.NoPadding)

func parseStellar(s string) (Info, string) {
	raw, err := strkey.DecodeString(s)
	if err != nil || len(raw) < 3 || strkey.EncodeToString(raw) != s {
		return Info{}, "must be a Stellar account: G… or M… in base32"
	}
	body := raw[:len(raw)-2]
	if binary.LittleEndian.Uint16(raw[len(raw)-2:]) != crc16(body) {
		return Info{}, "has a wrong checksum"
	}
	switch {
	case body[0] == strkeyAccount && len(body) == 33 && isEdwards(body[1:]):
		return Info{Canonical: chain.Address(s), Kind: "account"}, ""
	case body[0] == strkeyMuxed && len(body) == 41 && isEdwards(body[1:33]):
		id := binary.BigEndian.Uint64(body[33:])
		return Info{Canonical: chain.Address(s), Kind: "muxed", Base: chain.Address(account(body[1:33])), Tag: &id}, ""
	}
	return Info{}, "is no Stellar account: they begin with G or M"
}

func account(key []byte) string {
	body := append([]byte{strkeyAccount}, key...)
	return strkey.EncodeToString(binary.LittleEndian.AppendUint16(body, crc16(body)))
}

// crc16 is CRC-16/XMODEM.
func crc16(b []byte) uint16 {
	var crc uint16
	for _, c := range b {
		crc ^= uint16(c) << 8
		for range 8 {
			if crc&0x8000 != 0 {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return crc
}

func makeStellar(body [32]byte) string {
	raw, _ := decode58(makeSolana(body)) // a point of the same curve
	return account(raw)
}

// StellarKey reads the 32 bytes of an account G…; ok is false for any other text.
func StellarKey(a chain.Address) (key [32]byte, ok bool) {
	raw, err := strkey.DecodeString(string(a))
	if err != nil || len(raw) != 35 || raw[0] != strkeyAccount || account(raw[1:33]) != string(a) {
		return key, false
	}
	return [32]byte(raw[1:33]), true
}

// StellarAccount writes the account G… of a key.
func StellarAccount(key [32]byte) chain.Address { return chain.Address(account(key[:])) }

// StellarMuxed writes the muxed account M… of a key and an id.
func StellarMuxed(key [32]byte, id uint64) chain.Address {
	body := append([]byte{strkeyMuxed}, key[:]...)
	body = binary.BigEndian.AppendUint64(body, id)
	return chain.Address(strkey.EncodeToString(binary.LittleEndian.AppendUint16(body, crc16(body))))
}
