package utxo

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
)

// kind is a form of output script, by the names of package address.
type kind string

const (
	p2pkh  kind = "P2PKH"
	p2sh   kind = "P2SH"
	p2wpkh kind = "P2WPKH"
	p2wsh  kind = "P2WSH"
	p2tr   kind = "P2TR"
)

// classify says what kind of script it is, and the hash or program in it; ""
// for one that no address stands for.
func classify(s []byte) (kind, []byte) {
	switch {
	case len(s) == 22 && s[0] == 0 && s[1] == 20:
		return p2wpkh, s[2:]
	case len(s) == 25 && s[0] == 0x76 && s[1] == 0xa9 && s[2] == 20 && s[23] == 0x88 && s[24] == 0xac:
		return p2pkh, s[3:23]
	case len(s) == 23 && s[0] == 0xa9 && s[1] == 20 && s[22] == 0x87:
		return p2sh, s[2:22]
	case len(s) == 34 && s[0] == 0x51 && s[1] == 32:
		return p2tr, s[2:]
	case len(s) == 34 && s[0] == 0 && s[1] == 32:
		return p2wsh, s[2:]
	}
	return "", nil
}

// scriptOf writes the script of a kind.
func scriptOf(k kind, program []byte) []byte {
	switch k {
	case p2pkh:
		return append(append([]byte{0x76, 0xa9, 20}, program...), 0x88, 0xac)
	case p2sh:
		return append(append([]byte{0xa9, 20}, program...), 0x87)
	case p2tr:
		return append([]byte{0x51, 32}, program...)
	default: // witness version 0
		return append([]byte{0, byte(len(program))}, program...)
	}
}

// script is the one that pays an address.
func (c *Client) script(a chain.Address) ([]byte, error) {
	if _, err := c.ParseAddress(string(a)); err != nil {
		return nil, err
	}
	k, program, ok := c.p.Address.Program(string(a))
	if !ok {
		return nil, &chain.AddressError{Network: c.o.Network, Reason: "cannot be read"}
	}
	return scriptOf(kind(k), program), nil
}

// address is the one that a script pays; ok is false where there is none.
func (c *Client) address(script []byte) (chain.Address, bool) {
	k, program := classify(script)
	if k == "" {
		return "", false
	}
	return chain.Address(c.write.append(nil, k, program)), true
}

// ParseAddress implements chain.Client, as package address has it.
func (c *Client) ParseAddress(s string) (chain.Address, error) {
	info, err := c.format.Parse(s)
	return info.Canonical, err
}

// AddressOf is the address of a compressed secp256k1 key: P2WPKH, or P2PKH where
// Params.Legacy says so.
func (c *Client) AddressOf(pub chain.PublicKey) (chain.Address, error) {
	if len(pub) != secp256k1.PubKeyBytesLenCompressed {
		return "", fmt.Errorf("utxo: not a compressed secp256k1 public key: %d bytes", len(pub))
	}
	if _, err := secp256k1.ParsePubKey(pub); err != nil {
		return "", fmt.Errorf("utxo: not a compressed secp256k1 public key: %w", err)
	}
	k := p2wpkh
	if c.p.Legacy {
		k = p2pkh
	}
	return chain.Address(c.write.append(nil, k, btcaddr.Hash160(pub))), nil
}

// writer writes addresses. It runs for every output of a block, so it appends
// to what is there and allocates nothing.
type writer struct {
	pubKeyHash, scriptHash byte
	hrp                    string
	start                  uint32 // checksum of the prefix alone
}

func newWriter(s address.Script) *writer {
	w := &writer{pubKeyHash: s.PubKeyHash, scriptHash: s.ScriptHash[0], hrp: s.HRP, start: 1}
	for i := range len(s.HRP) {
		w.start = polymod(w.start, s.HRP[i]>>5)
	}
	w.start = polymod(w.start, 0)
	for i := range len(s.HRP) {
		w.start = polymod(w.start, s.HRP[i]&31)
	}
	return w
}

// append writes the address of a kind. A witness program on a network without
// any has no address.
func (w *writer) append(dst []byte, k kind, program []byte) []byte {
	switch k {
	case p2pkh:
		return append58(dst, w.pubKeyHash, program)
	case p2sh:
		return append58(dst, w.scriptHash, program)
	case p2tr:
		return w.bech32(dst, 1, program)
	default:
		return w.bech32(dst, 0, program)
	}
}

const (
	charset  = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
	alphabet = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
)

// generators of the bech32 checksum, for each value of the five bits that leave.
var generators = func() (out [32]uint32) {
	for i := range out {
		for bit, g := range [5]uint32{0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3} {
			if i>>bit&1 == 1 {
				out[i] ^= g
			}
		}
	}
	return out
}()

func polymod(sum uint32, v byte) uint32 {
	return (sum&0x1ffffff)<<5 ^ uint32(v) ^ generators[sum>>25]
}

// pairs are the generators for the ten bits that leave with two steps.
var pairs = func() (out [1024]uint32) {
	for i := range out {
		out[i] = polymod(polymod(uint32(i)<<20, 0), 0)
	}
	return out
}()

// polymod2 is two steps of polymod at once: each waits for the one before.
func polymod2(sum, v uint32) uint32 { return (sum&0xfffff)<<10 ^ v ^ pairs[sum>>20] }

// bech32 writes a witness program (BIP 173, BIP 350).
func (w *writer) bech32(dst []byte, version byte, program []byte) []byte {
	if w.hrp == "" {
		return dst
	}
	dst = append(append(dst, w.hrp...), '1', charset[version])
	sum := polymod(w.start, version)
	for ; len(program) >= 5; program = program[5:] {
		v := uint64(binary.BigEndian.Uint32(program))<<8 | uint64(program[4])
		dst = append(dst, charset[v>>35], charset[v>>30&31], charset[v>>25&31], charset[v>>20&31],
			charset[v>>15&31], charset[v>>10&31], charset[v>>5&31], charset[v&31])
		for shift := 30; shift >= 0; shift -= 10 {
			sum = polymod2(sum, uint32(v>>shift&1023))
		}
	}
	var rest uint32 // at most four bytes, with zeros behind
	for i, b := range program {
		rest |= uint32(b) << (24 - 8*i)
	}
	for bits := 8 * len(program); bits > 0; bits -= 5 {
		v := byte(rest >> 27)
		dst, sum, rest = append(dst, charset[v]), polymod(sum, v), rest<<5
	}
	for range 3 {
		sum = polymod2(sum, 0)
	}
	if version == 0 {
		sum ^= 1
	} else {
		sum ^= 0x2bc830a3
	}
	for i := range 6 {
		dst = append(dst, charset[sum>>(5*(5-i))&31])
	}
	return dst
}

// append58 writes a version and a hash of 20 bytes in base58 with a checksum.
func append58(dst []byte, version byte, hash []byte) []byte {
	var body [28]byte // three zeros, version, hash, checksum: seven words
	body[3] = version
	copy(body[4:24], hash)
	once := sha256.Sum256(body[3:24])
	twice := sha256.Sum256(once[:])
	copy(body[24:], twice[:4])
	zeros := 0
	for zeros < 25 && body[3+zeros] == 0 {
		zeros++
	}
	var words [7]uint32
	for i := range words {
		words[i] = binary.BigEndian.Uint32(body[4*i:])
	}
	// Five digits at a time: 58⁵ is the largest power that fits a word.
	const chunk = 58 * 58 * 58 * 58 * 58
	var digits [35]byte
	n := len(digits)
	for first := 0; first < len(words); {
		var rest uint64
		for i := first; i < len(words); i++ {
			v := rest<<32 | uint64(words[i])
			words[i], rest = uint32(v/chunk), v%chunk
		}
		for range 5 {
			n--
			digits[n] = alphabet[rest%58]
			rest /= 58
		}
		for first < len(words) && words[first] == 0 {
			first++
		}
	}
	for n < len(digits) && digits[n] == '1' {
		n++
	}
	for range zeros {
		dst = append(dst, '1')
	}
	return append(dst, digits[n:]...)
}
