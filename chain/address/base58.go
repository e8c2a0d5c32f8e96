package address

import (
	"bytes"
	"crypto/sha256"
	"strings"

	"github.com/btcsuite/btcd/address/v2/base58"
)

// Alphabets of base58.
const (
	bitcoinAlphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
	rippleAlphabet  = "rpshnaf39wBUDNEGHJKLM4PQRST7VWXYZ2bcdeCg65jkm8oFqi1tuvAxyz"
)

// decode58 reads base58, canonical writing alone.
func decode58(s string) ([]byte, bool) {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return r > 'z' || !strings.ContainsRune(bitcoinAlphabet, r) }) {
		return nil, false
	}
	b := base58.Decode(s)
	return b, len(b) > 0 && base58.Encode(b) == s
}

// decode58Check reads base58 with a checksum of four bytes, which it takes off.
func decode58Check(s string) ([]byte, bool) {
	b, ok := decode58(s)
	if !ok || len(b) < 5 {
		return nil, false
	}
	body, sum := b[:len(b)-4], b[len(b)-4:]
	return body, bytes.Equal(sum, checksum(body))
}

func encode58Check(body ...byte) string {
	return base58.Encode(append(body[:len(body):len(body)], checksum(body)...))
}

func checksum(body []byte) []byte {
	once := sha256.Sum256(body)
	twice := sha256.Sum256(once[:])
	return twice[:4]
}

// toRipple and fromRipple change between the alphabets, letter by letter.
func toRipple(s string) string { return translate(s, bitcoinAlphabet, rippleAlphabet) }

func fromRipple(s string) string { return translate(s, rippleAlphabet, bitcoinAlphabet) }

func translate(s, from, to string) string {
	return strings.Map(func(r rune) rune {
		if i := strings.IndexRune(from, r); i >= 0 {
			return rune(to[i])
		}
		return 0
	}, s)
}

// secretLike reports texts in the form of a private key: WIF, a Stellar or XRP
// seed, 32 bytes of hex.
func secretLike(s string) bool {
	if b, ok := decode58Check(s); ok && (len(b) == 33 || len(b) == 34) {
		return true
	}
	if _, ok := decode58Check(fromRipple(s)); ok && strings.HasPrefix(s, "s") {
		return true
	}
	if len(s) == 56 && s[0] == 'S' {
		return true
	}
	hex := strings.TrimPrefix(s, "0x")
	return len(hex) == 64 && strings.Trim(hex, "0123456789abcdefABCDEF") == ""
}
