// Package networks knows networks and tokens as data: those that are shipped, and those that
// a file adds. A host that serves a network of Ethereum's or Bitcoin's kind needs a few lines
// of YAML and no Go.
//
// What it promises:
//   - Every value of a file is checked and bounded. An error names file, line, column and
//     field, all errors are told at once, and a file with one changes nothing.
//   - What the file says of a shipped network or currency must say `override: true`, and
//     replaces the fields that it names. What decides whose money it is (chain id, kind,
//     contract, decimals, scale, the genesis block, forms of addresses) is never replaced.
//   - No two networks share a code, an alias, a name or a chain id; no two currencies a code,
//     or a contract or a symbol on one network.
//
// The file's form is in docs/registry.md.
package networks

import (
	_ "embed" // for shipped.yaml
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
)

// Set is networks with their currencies, and what their clients need to know. It does not
// change. Safe for concurrent use.
type Set struct {
	networks   []chain.NetworkInfo
	currencies []chain.Currency
	evm        map[chain.Network]evm.Options
	utxo       map[chain.Network]utxo.Params
	registry   *chain.Registry
}

//go:embed shipped.yaml
var shipped []byte

// Shipped is the Set of the shipped networks: those of chain.Networks, and others of
// Ethereum's kind that this package adds.
func Shipped() *Set { return ofPackage() }

var ofPackage = sync.OnceValue(func() *Set {
	s := &Set{networks: chain.Networks(), currencies: chain.Mainnet(), evm: map[chain.Network]evm.Options{}, utxo: map[chain.Network]utxo.Params{}}
	for _, o := range evm.Networks() {
		s.evm[o.Network] = o
	}
	for _, n := range s.networks {
		if p, ok := utxo.Mainnet(n.Code); ok {
			s.utxo[n.Code] = p
		}
	}
	s, err := s.with("shipped.yaml", shipped)
	if err != nil {
		panic(err) // the shipped data is tested
	}
	return s
})

// Read adds to the shipped networks what a file says.
func Read(file string) (*Set, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	return Parse(file, text)
}

// Parse is Read of a file's text; name is what errors call it.
func Parse(name string, text []byte) (*Set, error) { return Shipped().with(name, text) }

// Networks lists all networks.
func (s *Set) Networks() []chain.NetworkInfo { return slices.Clone(s.networks) }

// Currencies lists the currencies of all networks. A host changes or removes entries before it
// makes a chain.Registry of them.
func (s *Set) Currencies() []chain.Currency { return slices.Clone(s.currencies) }

// Registry is that of all networks and currencies.
func (s *Set) Registry() *chain.Registry { return s.registry }

// EVM gives the options of a network of Ethereum's kind, without Registry and URL; ok is false
// for other networks.
func (s *Set) EVM(n chain.Network) (o evm.Options, ok bool) {
	o, ok = s.evm[n]
	return o, ok
}

// UTXO gives the parameters of a network of Bitcoin's kind; ok is false for other networks.
func (s *Set) UTXO(n chain.Network) (p utxo.Params, ok bool) {
	p, ok = s.utxo[n]
	return p, ok
}

// Format is how a network writes addresses; ok is false where the Set does not have it.
func (s *Set) Format(n chain.Network) (f address.Format, ok bool) {
	if f, ok = address.For(n); ok {
		return f, true
	}
	if _, ok = s.evm[n]; ok {
		return address.EVM(n), true
	}
	if p, ok := s.utxo[n]; ok {
		return p.Address.Format(n, string(n)), true
	}
	return f, false
}

func (s *Set) clone() *Set {
	return &Set{networks: s.Networks(), currencies: s.Currencies(), evm: maps.Clone(s.evm), utxo: maps.Clone(s.utxo)}
}

// info is the entry of a network, nil where there is none.
func (s *Set) info(n chain.Network) *chain.NetworkInfo {
	for i := range s.networks {
		if s.networks[i].Code == n {
			return &s.networks[i]
		}
	}
	return nil
}

// currency is the entry of a code, nil where there is none.
func (s *Set) currency(code string) *chain.Currency {
	for i := range s.currencies {
		if s.currencies[i].Code == code {
			return &s.currencies[i]
		}
	}
	return nil
}
