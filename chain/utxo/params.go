package utxo

import (
	"github.com/btcsuite/btcd/chaincfg/v2"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
)

// Params are what one chain of Bitcoin's kind differs in from another. Rates are
// in units of 10⁻⁸ coins per 1000 virtual bytes.
type Params struct {
	Name    string // "main", "regtest", "simnet"
	Address address.Script
	// Genesis is the hash of block 0, and Checkpoint one of a later block, after
	// the last fork that kept the genesis: BCH has Bitcoin's. 0 height = none.
	Genesis    string
	Checkpoint Checkpoint
	// Legacy makes our own addresses P2PKH. Otherwise they are P2WPKH.
	Legacy bool
	// Maturity is how many confirmations a coinbase needs before it can be spent.
	Maturity int64
	// MinRate is the lowest rate that is offered, FallbackRate the one where the
	// node has no estimate, MaxRate the one above which nothing is built.
	MinRate, FallbackRate, MaxRate int64
	// Increment is what a replacement must offer more than what it replaces.
	Increment int64
	// DustRate makes an output dust that costs more than a third of itself to
	// spend; Dust is a flat limit instead.
	DustRate, Dust int64
	// AuxPoW: headers may carry the proof of work of another chain.
	AuxPoW bool
	// MWEB: blocks may end with an extension block, and hold a transaction that
	// pays what leaves it.
	MWEB bool
}

// Checkpoint is a block that every node of the right chain has.
type Checkpoint struct {
	Height int64
	Hash   string
}

// pegMaturity is how many confirmations a payment out of an MWEB extension block
// needs before it can be spent.
const pegMaturity = 6

// Mainnet returns the parameters of BTC, LTC or DOGE.
func Mainnet(n chain.Network) (Params, bool) {
	write, ok := address.ScriptFor(n)
	if !ok {
		return Params{}, false
	}
	p := Params{Name: "main", Address: write}
	switch n {
	case "BTC":
		last := chaincfg.MainNetParams.Checkpoints[len(chaincfg.MainNetParams.Checkpoints)-1]
		p.Genesis = chaincfg.MainNetParams.GenesisHash.String()
		p.Checkpoint = Checkpoint{int64(last.Height), last.Hash.String()}
		p.bitcoin()
	case "LTC": // Litecoin Core src/chainparams.cpp, src/policy/policy.h
		p.Genesis = "12a765e31ffd4059bada1e25190f6e98c99d9714d334efa41a195a7e7e04bfe2"
		p.Checkpoint = Checkpoint{721_000, "198a7b4de1df9478e2463bd99d75b714eab235a2e63e741641dc8a759a9840e5"}
		p.litecoin()
	case "DOGE": // Dogecoin Core src/chainparams.cpp, doc/fee-recommendation.md
		p.Genesis = "1a91e3dace36e2be3bf030a65679fe821aa1d6ef92e7c9902eb318182c355691"
		p.Checkpoint = Checkpoint{1_000_000, "6aae55bea74235f0c80bd066349d4440c31f2d0f27d54265ecd484d8c1d11b47"}
		p.Legacy, p.AuxPoW, p.Maturity = true, true, 240
		p.MinRate, p.FallbackRate, p.MaxRate = 1_000_000, 1_000_000, 500_000_000
		p.Increment, p.Dust = 1_000_000, 1_000_000
	}
	return p, true
}

func (p *Params) bitcoin() {
	p.Maturity, p.DustRate, p.Increment = 100, 3000, 1000
	p.MinRate, p.FallbackRate, p.MaxRate = 1000, 10_000, 1_000_000
}

func (p *Params) litecoin() {
	p.Maturity, p.DustRate, p.Increment, p.MWEB = 100, 30_000, 1000, true
	p.MinRate, p.FallbackRate, p.MaxRate = 1000, 10_000, 10_000_000
}

// Testnets returns the parameters of the chains that a developer's own nodes
// make: "regtest" of Bitcoin and Litecoin Core, "simnet" and "regtest" of btcd.
func Testnets(n chain.Network, name string) (Params, bool) {
	p := Params{Name: name}
	switch {
	case n == "BTC" && (name == "simnet" || name == "regtest"):
		c := &chaincfg.SimNetParams
		if name == "regtest" {
			c = &chaincfg.RegressionNetParams
		}
		p.Address = address.Script{
			Name: "Bitcoin " + name, PubKeyHash: c.PubKeyHashAddrID,
			ScriptHash: []byte{c.ScriptHashAddrID}, HRP: c.Bech32HRPSegwit,
		}
		p.Genesis = c.GenesisHash.String()
		p.bitcoin()
	case n == "LTC" && name == "regtest":
		p.Address = address.Script{Name: "Litecoin regtest", PubKeyHash: 111, ScriptHash: []byte{58, 196}, HRP: "rltc"}
		p.Genesis = "530827f38f93b43ed12af0b3ad25a288dc02ed74d6d7857862df51fc56c416f9"
		p.litecoin()
	default:
		return Params{}, false
	}
	return p, true
}
