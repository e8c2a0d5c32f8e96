package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/cardano"
	"github.com/cryptopay-go/cryptopay/chain/evm"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/chain/solana"
	"github.com/cryptopay-go/cryptopay/chain/stellar"
	"github.com/cryptopay-go/cryptopay/chain/tron"
	"github.com/cryptopay-go/cryptopay/chain/utxo"
	"github.com/cryptopay-go/cryptopay/chain/xrp"
)

// nowhere is the node of clients that only read payloads and write addresses.
const nowhere = "http://127.0.0.1:1"

// connect makes a client of each network. None of them has a node.
func (c *config) connect() (*chain.Registry, map[chain.Network]chain.Client, error) {
	r, err := c.registryOf()
	if err != nil {
		return nil, nil, err
	}
	clients := map[chain.Network]chain.Client{}
	for n, set := range c.Networks {
		if len(c.Simulated) > 0 {
			clients[n], err = c.simulated(r, n, slices.Index(c.Simulated, n))
		} else {
			clients[n], err = c.client(r, n, set)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("networks: %s: %w", n, err)
		}
	}
	return r, clients, nil
}

// registryOf is the registry of all networks, and on chains other than the main one with the ids
// and contracts that were named.
func (c *config) registryOf() (*chain.Registry, error) {
	infos, currencies := c.all.Networks(), c.all.Currencies()
	for i, n := range infos {
		if set := c.Networks[n.Code]; set.Chain != "" && n.ChainID != 0 {
			id, err := strconv.ParseInt(set.Chain, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("networks: %s: chain must be a chain id, such as 11155111", n.Code)
			}
			infos[i].ChainID = id
		}
	}
	currencies = slices.DeleteFunc(currencies, func(cur chain.Currency) bool {
		return c.Networks[cur.Network].Chain != "" && !cur.Native() && c.Currencies[cur.Code].Contract == ""
	})
	for i, cur := range currencies {
		contract := c.Currencies[cur.Code].Contract
		if contract == "" {
			continue
		}
		if c.Networks[cur.Network].Chain == "" || cur.Native() {
			return nil, fmt.Errorf("currencies: %s: contract is for tokens on other chains than the main one", cur.Code)
		}
		format, _ := c.all.Format(cur.Network)
		info, err := format.Parse(contract)
		if err != nil {
			return nil, fmt.Errorf("currencies: %s: contract: %w", cur.Code, err)
		}
		currencies[i].Contract = string(info.Canonical)
	}
	return chain.NewRegistry(infos, currencies)
}

// client reads what is signed on a network, on the chain that is named.
func (c *config) client(r *chain.Registry, n chain.Network, set network) (chain.Client, error) {
	on := set.Chain
	if set.Stake != "" && n != "ADA" {
		return nil, errors.New("stake is for ADA")
	}
	if _, ok := c.all.UTXO(n); set.Pruned && !ok {
		return nil, errors.New("pruned is for BTC and LTC")
	}
	if o, ok := c.all.EVM(n); ok {
		info, err := r.Network(string(n))
		if err != nil {
			return nil, err
		}
		o.Registry, o.URL, o.ChainID = r, nowhere, info.ChainID
		return evm.New(o)
	}
	if params, ok := c.all.UTXO(n); ok {
		if on != "" {
			if params, ok = utxo.Testnets(n, on); !ok {
				return nil, errors.New("chain must be regtest or simnet (BTC), or regtest (LTC)")
			}
		}
		return utxo.New(utxo.Options{Network: n, Params: params, Registry: r, URL: nowhere, Pruned: set.Pruned})
	}
	switch n {
	case "TRX":
		return tron.New(tron.Options{Registry: r, URL: nowhere, Genesis: on})
	case "SOL":
		return solana.New(solana.Options{Registry: r, URL: nowhere, Genesis: on})
	case "XLM":
		return stellar.New(stellar.Options{Registry: r, URL: nowhere, Passphrase: on})
	case "ADA":
		if on != "" {
			return nil, errors.New("chain is not for ADA: addresses of its test networks are refused")
		}
		return cardano.New(cardano.Options{Registry: r, Blockfrost: nowhere, Stake: set.Stake})
	case "XRP":
		id, err := strconv.ParseUint("0"+on, 10, 32)
		if err != nil {
			return nil, errors.New("chain must be a network id, such as 1")
		}
		return xrp.New(xrp.Options{
			Registry: r, URL: nowhere, NetworkID: uint32(id),
			PublicKey: func(chain.Address, chain.KeyRef) (chain.PublicKey, error) {
				return nil, errors.New("nothing is built here")
			},
		})
	}
	return nil, errors.New("there is no client for this network yet")
}

// realistic writes addresses of a simulated network as the real one does.
type realistic struct{ address.Format }

func (f realistic) Parse(s string) (chain.Address, error) {
	info, err := f.Format.Parse(s)
	return info.Canonical, err
}

// simulated reads what is signed on a network that a gateway simulates at a place of its
// list.
func (c *config) simulated(r *chain.Registry, n chain.Network, place int) (chain.Client, error) {
	format, ok := c.all.Format(n)
	if !ok || place < 0 {
		return nil, errors.New("it is not among the simulated ones")
	}
	made, err := sim.New(sim.Options{Network: n, Registry: r, Addresses: realistic{format}, Seed: uint64(place) + 1})
	if err != nil {
		return nil, err
	}
	return made.Client(), nil
}
