package address

import (
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Info is what a text turned out to be.
type Info struct {
	// Canonical is the one writing that the library uses.
	Canonical chain.Address
	// Kind is the format's own name: "EVM", "P2WPKH", "x-address" …
	Kind string
	// Base and Tag are of an XRP X-address or a Stellar muxed address: the
	// account, and the tag or id that names a destination within it. Tag is nil
	// where there is none.
	Base chain.Address
	Tag  *uint64
}

// Format is how one network writes addresses.
type Format struct {
	Network chain.Network
	// Type is the interface's name of the format: "EVM", "TRX", "BTC" …
	Type string

	parse func(s string) (Info, string)
	make  func(body [32]byte) string
}

// formats by network.
var formats = func() map[chain.Network]Format {
	out := map[chain.Network]Format{}
	for _, n := range []chain.Network{"ETH", "POLYGON", "BSC", "ARB", "BASE", "OPTIMISM", "AVAX"} {
		out[n] = EVM(n)
	}
	for _, f := range []Format{
		{"TRX", "TRX", parseTron, makeTron},
		{"SOL", "SOL", parseSolana, makeSolana},
		{"BTC", "BTC", bitcoin.parse, bitcoin.make},
		{"LTC", "LTC", litecoin.parse, litecoin.make},
		{"DOGE", "DOGE", dogecoin.parse, dogecoin.make},
		{"XRP", "XRP", parseXRP, makeXRP},
		{"ADA", "ADA", parseCardano, makeCardano},
		{"XLM", "XLM", parseStellar, makeStellar},
	} {
		out[f.Network] = f
	}
	return out
}()

// For finds the format of a network by its code; ok is false where the network
// is not one of the interface's.
func For(n chain.Network) (f Format, ok bool) {
	f, ok = formats[n]
	return f, ok
}

// EVM is the format of a network of Ethereum's kind that For does not know.
func EVM(n chain.Network) Format { return Format{n, "EVM", parseEVM, makeEVM} }

// maxLength is longer than any address there is; what is longer is not looked at.
const maxLength = 128

// Parse reads an address. The error is a *chain.AddressError.
func (f Format) Parse(s string) (Info, error) {
	info, why := Info{}, "it is too long"
	if len(s) <= maxLength {
		info, why = f.parse(s)
	}
	if why != "" {
		return Info{}, &chain.AddressError{Network: f.Network, Address: redact(s), Reason: why}
	}
	if info.Base == "" {
		info.Base = info.Canonical
	}
	return info, nil
}

// Make writes the address of a hash or key of 32 bytes, of which a format may
// use a part: for simulated networks, whose keys are not the network's own. Its
// result parses.
func (f Format) Make(body [32]byte) chain.Address { return chain.Address(f.make(body)) }

// Untag takes an address apart that carries a tag: an X-address of the XRP Ledger, a muxed
// account of Stellar. ok is false for every other address.
func (f Format) Untag(a chain.Address) (account chain.Address, memo string, ok bool) {
	info, err := f.Parse(string(a))
	if err != nil || info.Tag == nil {
		return "", "", false
	}
	return info.Base, strconv.FormatUint(*info.Tag, 10), true
}

// Multiplex is the address of an account with a tag: an X-address of the XRP Ledger, a muxed
// account of Stellar. Other networks have none.
func (f Format) Multiplex(account chain.Address, id uint32) (chain.Address, error) {
	if who, ok := XRPAccount(account); ok && f.Network == "XRP" {
		return XAddress(who, id), nil
	}
	if key, ok := StellarKey(account); ok && f.Network == "XLM" {
		return StellarMuxed(key, uint64(id)), nil
	}
	return "", &chain.AddressError{Network: f.Network, Address: redact(string(account)), Reason: "it is no account that many addresses can share"}
}

// redact keeps a text that could be a private key out of errors and logs.
func redact(s string) string {
	if secretLike(s) {
		return ""
	}
	return s
}
