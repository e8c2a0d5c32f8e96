package main

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/cardano"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/networks"
	"github.com/cryptopay-go/cryptopay/chain/solana"
	"github.com/cryptopay-go/cryptopay/chain/stellar"
	"github.com/cryptopay-go/cryptopay/chain/tron"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/chain/xrp"
)

// node is what the settings say of a real network.
type node struct {
	url           string // it may hold a secret
	chain         string // which one it is on; "" is the main one
	header        http.Header
	confirmations int64 // of a payment. 0 is what is shipped
	final         int64 // blocks. 0 is the node's own word
	dialect       utxo.Dialect
	solid         string
	kupo          string // an own node of Cardano has it beside Ogmios
	project       string // at a provider of Cardano, which has neither; a secret
	stake         string
	version1      bool              // of the transactions that are sent
	contracts     map[string]string // by currency, on other chains than the main one

	preset *evm.Options // of networks of Ethereum's kind
	params *utxo.Params // of networks of Bitcoin's kind
}

// nodeOf knows of a network what its kind needs.
func nodeOf(set *networks.Set, n chain.Network) node {
	at := node{contracts: map[string]string{}}
	if o, ok := set.EVM(n); ok {
		at.preset = &o
	}
	if p, ok := set.UTXO(n); ok {
		at.params = &p
	}
	return at
}

// nodeSettings are read for each network from CRYPTOPAY_<name>_<network>.
var nodeSettings = []struct {
	name string
	on   func(n chain.Network, at *node) bool // nil is everywhere
	read func(at *node, v string) error
}{
	{"RPC", nil, func(at *node, v string) error { at.url = v; return nil }},
	{"CHAIN", nil, func(at *node, v string) error { at.chain = v; return nil }},
	{"HEADER", nil, readHeader},
	{"CONFIRMATIONS", nil, func(at *node, v string) error { return readBlocks(&at.confirmations, v) }},
	{"FINAL", isEVM, func(at *node, v string) error { return readBlocks(&at.final, v) }},
	{"DIALECT", isUTXO, func(at *node, v string) error {
		at.dialect = utxo.Dialect(v)
		if at.dialect != utxo.Core && at.dialect != utxo.Btcd {
			return fmt.Errorf("must be %s or %s", utxo.Core, utxo.Btcd)
		}
		return nil
	}},
	{"SOLID", func(n chain.Network, _ *node) bool { return n == "TRX" }, func(at *node, v string) error { at.solid = v; return nil }},
	{"KUPO", isCardano, func(at *node, v string) error { at.kupo = v; return nil }},
	{"PROJECT", isCardano, func(at *node, v string) error { at.project = v; return nil }},
	{"STAKE", isCardano, func(at *node, v string) error { at.stake = v; return nil }},
	{"VERSION", func(n chain.Network, _ *node) bool { return n == "SOL" }, func(at *node, v string) error {
		if at.version1 = v == "1"; !at.version1 {
			return errors.New("must be 1, or empty for transactions without a version")
		}
		return nil
	}},
}

func isEVM(_ chain.Network, at *node) bool  { return at.preset != nil }
func isUTXO(_ chain.Network, at *node) bool { return at.params != nil }

func isCardano(n chain.Network, _ *node) bool { return n == "ADA" }

func readHeader(at *node, v string) error {
	name, value, _ := strings.Cut(v, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	if name == "" || value == "" || strings.ContainsAny(v, "\r\n") {
		return errors.New("must be one header, as Name: value") // which may be a secret
	}
	at.header = http.Header{name: {value}}
	return nil
}

func readBlocks(to *int64, v string) error {
	n, err := strconv.ParseInt(v, 10, 32)
	if err != nil || n < 1 {
		return errors.New("must be a number of blocks, at least 1")
	}
	*to = n
	return nil
}

// readNodes reads the settings of every network that has a node.
func readNodes(all *networks.Set, env func(string) string) (map[chain.Network]node, error) {
	nodes := map[chain.Network]node{}
	var errs []error
	for _, network := range all.Networks() {
		n, at := network.Code, nodeOf(all, network.Code)
		for _, set := range nodeSettings {
			name := fmt.Sprintf("CRYPTOPAY_%s_%s", set.name, n)
			v := env(name)
			switch {
			case v == "":
			case set.on != nil && !set.on(n, &at):
				errs = append(errs, fmt.Errorf("%s: %s has no such setting", name, n))
			case at.url == "" && set.name != "RPC":
				errs = append(errs, fmt.Errorf("%s says something of a node, and CRYPTOPAY_RPC_%s names none", name, n))
			default:
				if err := set.read(&at, v); err != nil {
					errs = append(errs, fmt.Errorf("%s %w", name, err))
				}
			}
		}
		errs = append(errs, at.readContracts(all, n, env))
		if at.url != "" {
			nodes[n] = at
		}
	}
	return nodes, errors.Join(errs...)
}

// readContracts reads where the tokens are on a chain that is not the main one,
// from CRYPTOPAY_CONTRACT_<currency>.
func (at *node) readContracts(all *networks.Set, n chain.Network, env func(string) string) error {
	for _, c := range all.Registry().On(n) {
		name := "CRYPTOPAY_CONTRACT_" + c.Code
		v := env(name)
		if v == "" {
			continue
		}
		if c.Native() {
			return fmt.Errorf("%s: %s is a coin", name, c.Code)
		}
		if at.url == "" || at.chain == "" {
			return fmt.Errorf("%s is for other chains than the main one: CRYPTOPAY_CHAIN_%s says which", name, n)
		}
		format, _ := all.Format(n)
		info, err := format.Parse(v)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		at.contracts[c.Code] = string(info.Canonical)
	}
	return nil
}

// registryOf is the registry of all networks as the nodes have it: with their
// confirmations, and on chains other than the main one without tokens whose
// contracts nobody has named.
func registryOf(all *networks.Set, nodes map[chain.Network]node) (*chain.Registry, error) {
	infos, currencies := all.Networks(), all.Currencies()
	for i, n := range infos {
		if nodes[n.Code].chain != "" {
			infos[i].HeadAge = -1 // test chains make blocks when somebody asks for them
		}
		if at := nodes[n.Code]; at.chain != "" && at.preset != nil {
			id, err := chainID(all, n.Code, at.chain)
			if err != nil {
				return nil, err
			}
			infos[i].ChainID = id
		}
	}
	currencies = slices.DeleteFunc(currencies, func(c chain.Currency) bool {
		at := nodes[c.Network]
		return at.chain != "" && !c.Native() && at.contracts[c.Code] == ""
	})
	for i, c := range currencies {
		at := nodes[c.Network]
		if at.confirmations > 0 {
			currencies[i].Confirmations = at.confirmations
		}
		if contract := at.contracts[c.Code]; contract != "" {
			currencies[i].Contract = contract
		}
	}
	return chain.NewRegistry(infos, currencies)
}

// errMain: what is named is the main chain, where test settings have no place.
var errMain = errors.New("names a main chain: leave it out, for the main chain of the network")

// chainError says what CRYPTOPAY_CHAIN_… must be.
func chainError(n chain.Network, err error) error {
	return fmt.Errorf("CRYPTOPAY_CHAIN_%s %w", n, err)
}

func chainID(all *networks.Set, n chain.Network, v string) (int64, error) {
	id, err := strconv.ParseInt(v, 10, 64)
	switch {
	case err != nil || id < 1:
		return 0, chainError(n, errors.New("must be a chain id, such as 11155111"))
	case slices.ContainsFunc(all.Networks(), func(i chain.NetworkInfo) bool { return i.ChainID == id }):
		return 0, chainError(n, errMain)
	}
	return id, nil
}

// publicKey gives the key of an account of ours.
type publicKey func(n chain.Network, k chain.KeyRef) (chain.PublicKey, error)

// dial makes the client of a real network. It does no I/O. Errors name the setting. log is
// for what a client passes over, nil = nowhere.
func dial(r *chain.Registry, n chain.Network, at node, public publicKey, log *slog.Logger) (chain.Client, error) {
	client, err := at.client(r, n, public, log)
	if err != nil && !strings.HasPrefix(err.Error(), "CRYPTOPAY_") {
		err = fmt.Errorf("CRYPTOPAY_RPC_%s: %w", n, err)
	}
	return client, err
}

// client is where a network's family meets its settings.
func (at node) client(r *chain.Registry, n chain.Network, public publicKey, log *slog.Logger) (chain.Client, error) {
	switch {
	case at.preset != nil:
		return at.evm(r, n)
	case at.params != nil:
		return at.utxo(r, n)
	}
	for family, main := range map[chain.Network]string{"TRX": tron.Mainnet, "SOL": solana.Mainnet, "XLM": stellar.Mainnet} {
		if n == family && at.chain == main {
			return nil, chainError(n, errMain)
		}
	}
	switch n {
	case "TRX":
		return tron.New(tron.Options{Registry: r, URL: at.url, SolidURL: at.solid, Genesis: at.chain, Header: at.header})
	case "SOL":
		return solana.New(solana.Options{Registry: r, URL: at.url, Genesis: at.chain, Header: at.header, SendVersion1: at.version1, Log: log})
	case "XLM":
		return stellar.New(stellar.Options{Registry: r, URL: at.url, Passphrase: at.chain, Header: at.header})
	case "ADA":
		return at.cardano(r, n, public)
	case "XRP":
		id, err := strconv.ParseUint("0"+at.chain, 10, 32)
		switch {
		case err != nil:
			return nil, chainError(n, errors.New("must be a network id, such as 1"))
		case at.chain != "" && uint32(id) == xrp.Mainnet:
			return nil, chainError(n, errMain)
		}
		return xrp.New(xrp.Options{
			Registry: r, URL: at.url, NetworkID: uint32(id), Header: at.header,
			PublicKey: func(_ chain.Address, k chain.KeyRef) (chain.PublicKey, error) { return public(n, k) },
		})
	}
	return nil, errors.New("there is no client for this network yet")
}

func (at node) cardano(r *chain.Registry, n chain.Network, public publicKey) (chain.Client, error) {
	o := cardano.Options{
		Registry: r, Header: at.header, Stake: at.stake,
		PublicKey: func(_ chain.Address, k chain.KeyRef) (chain.PublicKey, error) { return public(n, k) },
	}
	switch {
	case at.chain != "":
		return nil, chainError(n, errors.New("is not for ADA: addresses of its test networks are refused"))
	case (at.kupo == "") == (at.project == ""):
		return nil, errors.New("CRYPTOPAY_KUPO_ADA or CRYPTOPAY_PROJECT_ADA must say what is beside CRYPTOPAY_RPC_ADA: Kupo of an own node, or the project id at a provider")
	case at.kupo != "":
		o.Ogmios, o.Kupo = at.url, at.kupo
	default:
		o.Blockfrost, o.Project = at.url, at.project
	}
	return cardano.New(o)
}

func (at node) evm(r *chain.Registry, n chain.Network) (chain.Client, error) {
	info, err := r.Network(string(n))
	if err != nil {
		return nil, err
	}
	o := *at.preset
	o.Registry, o.URL, o.Header, o.ChainID = r, at.url, at.header, info.ChainID
	if at.final > 0 {
		o.FinalityTags, o.FinalDepth = false, at.final
	}
	return evm.New(o)
}

func (at node) utxo(r *chain.Registry, n chain.Network) (chain.Client, error) {
	params := *at.params
	if at.chain != "" {
		var known bool
		if params, known = utxo.Testnets(n, at.chain); !known {
			return nil, chainError(n, errors.New("must be regtest or simnet (BTC), or regtest (LTC)"))
		}
	}
	return utxo.New(utxo.Options{Network: n, Params: params, Registry: r, URL: at.url, Dialect: at.dialect, Header: at.header})
}

// mainChains are the networks whose main chain is served.
func mainChains(nodes map[chain.Network]node) []chain.Network {
	var out []chain.Network
	for _, n := range slices.Sorted(maps.Keys(nodes)) {
		if nodes[n].chain == "" {
			out = append(out, n)
		}
	}
	return out
}
