package utxo

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"

	"github.com/cryptopay-go/cryptopay/chain"
)

// descriptor says which keys spend the coins of one address: an output descriptor (BIP 380)
// of the form wpkh(KEY), wsh(sortedmulti(M,KEY,…)) or wsh(multi(M,KEY,…)). A KEY is an
// extended public key with where it comes from and the steps to the address, such as
// [d34db33f/48h/0h/0h/2h]xpub…/0/0.
type descriptor struct {
	need   int    // signatures
	script []byte // that pays the address
	inner  []byte // witness script of wsh; nil for wpkh
	keys   [][]byte
	from   []*psbt.Bip32Derivation // of each key
}

// Bounds of a descriptor. More than 16 keys have no standard script.
const (
	maxDescriptor = 4096
	maxColdKeys   = 16
	maxColdSteps  = 10 // in a key's path
)

func (c *Client) descriptor(text string) (*descriptor, error) {
	if c.p.Legacy {
		return nil, rejected("%s has no segregated witness: a transaction cannot be signed elsewhere", c.o.Network)
	}
	if len(text) > maxDescriptor {
		return nil, rejected("the descriptor is over %d bytes", maxDescriptor)
	}
	body, sum, has := strings.Cut(strings.TrimSpace(text), "#")
	if want := descriptorSum(body); has && sum != want {
		return nil, rejected("the descriptor's checksum is %q, and of this text it is %q", sum, want)
	}
	d := &descriptor{need: 1}
	if key, ok := within(body, "wpkh"); ok {
		if err := d.key(key); err != nil {
			return nil, err
		}
		d.script = scriptOf(p2wpkh, btcaddr.Hash160(d.keys[0]))
		return d, nil
	}
	inner, ok := within(body, "wsh")
	list, sorted := within(inner, "sortedmulti")
	if !sorted {
		var plain bool
		list, plain = within(inner, "multi")
		ok = ok && plain
	}
	if !ok {
		return nil, rejected("the descriptor is none of wpkh(KEY), wsh(sortedmulti(M,KEY,…)), wsh(multi(M,KEY,…))")
	}
	parts := strings.Split(list, ",")
	need, err := strconv.Atoi(parts[0])
	if n := len(parts) - 1; err != nil || strconv.Itoa(need) != parts[0] || need < 1 || need > n || n > maxColdKeys {
		return nil, rejected("the descriptor wants %.20q signatures of %d keys: give 1 to all of at most %d", parts[0], n, maxColdKeys)
	}
	d.need = need
	for _, key := range parts[1:] {
		if err := d.key(key); err != nil {
			return nil, err
		}
	}
	return d, d.multisig(sorted)
}

// within is what stands in the brackets of a function.
func within(text, name string) (string, bool) {
	in, ok := strings.CutPrefix(text, name+"(")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(in, ")")
}

// multisig makes the scripts of wsh.
func (d *descriptor) multisig(sorted bool) error {
	if sorted {
		slices.SortFunc(d.keys, bytes.Compare)
		slices.SortFunc(d.from, func(a, b *psbt.Bip32Derivation) int { return bytes.Compare(a.PubKey, b.PubKey) })
	}
	b := txscript.NewScriptBuilder().AddInt64(int64(d.need))
	for _, k := range d.keys {
		b.AddData(k)
	}
	script, err := b.AddInt64(int64(len(d.keys))).AddOp(txscript.OP_CHECKMULTISIG).Script()
	if err != nil {
		return rejected("the descriptor has no script: %w", err)
	}
	hash := sha256.Sum256(script)
	d.inner, d.script = script, scriptOf(p2wsh, hash[:])
	return nil
}

// key adds one KEY.
func (d *descriptor) key(text string) error {
	at := len(d.keys) + 1
	from := &psbt.Bip32Derivation{}
	rest, origin := text, ""
	if strings.HasPrefix(text, "[") {
		var closed bool
		if origin, rest, closed = strings.Cut(text[1:], "]"); !closed {
			return rejected("key %d of the descriptor does not close its [", at)
		}
	}
	parts := strings.Split(rest, "/")
	k, err := hdkeychain.NewKeyFromString(parts[0])
	switch {
	case err != nil || !slices.Contains([]string{"0488b21e", "043587cf"}, hex.EncodeToString(k.Version())) && !k.IsPrivate():
		return rejected("key %d of the descriptor is no extended public key: write it as xpub…, or tpub… of a test network", at)
	case k.IsPrivate():
		return rejected("key %d of the descriptor is private: it must not come near this service", at)
	}
	if origin == "" {
		pub, err := k.ECPubKey()
		if err != nil {
			return rejected("key %d of the descriptor: %w", at, err)
		}
		from.MasterKeyFingerprint = binary.LittleEndian.Uint32(btcaddr.Hash160(pub.SerializeCompressed()))
	} else {
		print, path, _ := strings.Cut(origin, "/")
		b, err := hex.DecodeString(print)
		if err != nil || len(b) != 4 {
			return rejected("key %d of the descriptor: the fingerprint %.20q is not of 8 hex digits", at, print)
		}
		from.MasterKeyFingerprint = binary.LittleEndian.Uint32(b)
		if from.Bip32Path, err = steps(path, true); err != nil {
			return rejected("key %d of the descriptor: %w", at, err)
		}
	}
	path, err := steps(strings.Join(parts[1:], "/"), false)
	if err != nil {
		return rejected("key %d of the descriptor: %w", at, err)
	}
	for _, i := range path {
		if k, err = k.Derive(i); err != nil {
			return rejected("key %d of the descriptor: %w", at, err)
		}
	}
	pub, err := k.ECPubKey()
	if err != nil {
		return rejected("key %d of the descriptor: %w", at, err)
	}
	from.PubKey, from.Bip32Path = pub.SerializeCompressed(), append(from.Bip32Path, path...)
	if slices.ContainsFunc(d.keys, func(had []byte) bool { return bytes.Equal(had, from.PubKey) }) {
		return rejected("key %d of the descriptor is there twice", at)
	}
	d.keys, d.from = append(d.keys, from.PubKey), append(d.from, from)
	return nil
}

// steps reads a path. Hardened steps end with ', h or H.
func steps(path string, hardened bool) (out []uint32, err error) {
	if path == "" {
		return nil, nil
	}
	all := strings.Split(path, "/")
	if len(all) > maxColdSteps {
		return nil, rejected("a path has at most %d steps", maxColdSteps)
	}
	for _, s := range all {
		digits := strings.TrimRight(s, "'hH")
		n, err := strconv.ParseUint(digits, 10, 31)
		switch {
		case strings.ContainsAny(s, "*<>"):
			return nil, rejected("the step %q stands for many addresses: give the number of the one", s)
		case err != nil || len(s) > len(digits)+1 || strconv.FormatUint(n, 10) != digits:
			return nil, rejected("%.20q is no step of a path", s)
		case len(s) > len(digits) && !hardened:
			return nil, rejected("the step %q cannot be taken without the private key", s)
		case len(s) > len(digits):
			n += hdkeychain.HardenedKeyStart
		}
		out = append(out, uint32(n)) //nolint:gosec // of 31 bits, and one
	}
	return out, nil
}

// ColdAddress implements chain.ColdSpender.
func (c *Client) ColdAddress(text string) (chain.Address, error) {
	d, err := c.descriptor(text)
	if err != nil {
		return "", err
	}
	a, _ := c.address(d.script)
	return a, nil
}

// The checksum of a descriptor (BIP 380): like that of bech32, over 40 bits.
const descriptorChars = "0123456789()[],'/*abcdefgh@:$%{}" + "IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~" + "ijklmnopqrstuvwxyzABCDEFGH`#\"\\ "

func descriptorSum(text string) string {
	sum, class, in := uint64(1), uint64(0), 0
	add := func(v uint64) {
		top := sum >> 35
		sum = (sum&0x7ffffffff)<<5 ^ v
		for i, g := range [5]uint64{0xf5dee51989, 0xa9fdca3312, 0x1bab10e32d, 0x3706b1677a, 0x644d626ffd} {
			if top>>i&1 == 1 {
				sum ^= g
			}
		}
	}
	for i := range len(text) {
		at := strings.IndexByte(descriptorChars, text[i])
		if at < 0 {
			return ""
		}
		add(uint64(at & 31))
		class = class*3 + uint64(at>>5)
		if in++; in == 3 {
			add(class)
			class, in = 0, 0
		}
	}
	if in > 0 {
		add(class)
	}
	for range 8 {
		add(0)
	}
	sum ^= 1
	out := make([]byte, 8)
	for i := range out {
		out[i] = charset[sum>>(5*(7-i))&31]
	}
	return string(out)
}
