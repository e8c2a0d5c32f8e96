package chain

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Currency is one asset on one network, by its combined code such as
// "USDTTRC20" or "ETH".
type Currency struct {
	Code     string
	Name     string
	Network  Network
	Token    string // symbol as responses show it: "USDT", "ETH"
	Contract string // canonical contract or mint address; "" for the native coin
	Decimals uint8  // on chain
	Scale    uint8  // of ledger units; fixed for ever
	Stable   bool
	Popular  bool
	// Limits of a payment in whole coins. Zero Max = the most that one credit may be
	// (ledger.MaxCredit): see Most.
	Min, Max      decimal.Decimal
	MinWithdrawal decimal.Decimal
	Dust          decimal.Decimal // below: recorded, not counted
	// Confirmations that make a deposit final; at least 1. They hold for payouts and moves of our
	// own, too.
	Confirmations int64
	// WaitFinal asks, beyond Confirmations, for the network's own finality
	// ("finalized", "solidified") where the client reports it.
	WaitFinal bool
	// Steps say what a deposit needs by its value in USD, in the place of Confirmations and
	// WaitFinal, lowest first. The first is from 0 on, confirmations rise from step to step, and
	// the last asks for no less than Confirmations and WaitFinal do. What one address got in
	// blocks that the last step does not call final yet adds up. Without a price the last step
	// holds. A payout is completed at the step of its value, see withdrawal.Config.Confirmations.
	// Defaults to none.
	Steps  []Step
	Source string // where contract and decimals were taken from
}

// Asset is the currency's name in the ledger.
func (c *Currency) Asset() ledger.Asset { return ledger.Asset(c.Code) }

// Most is the largest payment in whole coins: Max, and at most ledger.MaxCredit.
func (c *Currency) Most() decimal.Decimal {
	if most := c.Decimal(ledger.MaxCredit); c.Max.Sign() <= 0 || c.Max.GreaterThan(most) {
		return most
	}
	return c.Max
}

// Native reports whether the currency is the network's own coin.
func (c *Currency) Native() bool { return c.Contract == "" }

// Units converts whole coins to ledger units.
func (c *Currency) Units(d decimal.Decimal, r ledger.Rounding) (ledger.Amount, error) {
	return ledger.FromDecimal(d, c.Scale, r)
}

// Shortfall is how much less than ordered was delivered, rounded up; 0 where nothing is
// missing.
func (c *Currency) Shortfall(ordered ledger.Amount, delivered decimal.Decimal) ledger.Amount {
	got, err := c.Units(delivered, ledger.Down)
	if err != nil {
		return 0 // more than an Amount holds
	}
	return max(0, ordered-got)
}

// Decimal converts ledger units to whole coins.
func (c *Currency) Decimal(a ledger.Amount) decimal.Decimal { return a.Decimal(c.Scale) }

// NetworkInfo is what the library knows of a network apart from its client.
type NetworkInfo struct {
	Code        Network
	Name        string
	Aliases     []string // accepted in requests: "TRON", "MATIC"
	Family      Family
	AddressType string // "EVM", "TRX", "SOL", "BTC" …
	Gas         string // code of the currency that pays fees
	ChainID     int64  // EVM networks
	NeedsMemo   bool   // XRP, XLM
	// KeyPath is the account of BIP-44 that chain/keys derives addresses of, such as
	// "m/84'/156'/0'", on networks of Bitcoin's kind that it does not know by their code.
	KeyPath string
	// HeadAge is how old a node's newest block may be before the node is taken for one
	// that stands still; see Config.HeadAge of the root package. Below 0: no limit, on
	// chains whose blocks are made on demand. 0 is no limit either.
	HeadAge time.Duration
	// MostInputs is how many coins of ours one standard transaction may spend, on networks of
	// Bitcoin's kind: what nodes relay is bounded by its weight or size. 0 says nothing.
	MostInputs int
}

// ErrCurrency wraps every failed look-up of a currency or network.
var ErrCurrency = errors.New("chain: unsupported currency")

// Registry is the immutable set of networks and currencies of an App.
type Registry struct {
	networks   map[Network]NetworkInfo
	alias      map[string]Network
	currencies map[string]*Currency
	byToken    map[[2]string]*Currency
	byContract map[[2]string]*Currency
	codes      []string
}

// NewRegistry checks and indexes currencies: codes and contracts unique, the
// network and its gas currency known, Scale ≤ min(8, Decimals),
// Confirmations ≥ 1.
func NewRegistry(networks []NetworkInfo, currencies []Currency) (*Registry, error) {
	r := &Registry{
		networks: map[Network]NetworkInfo{}, alias: map[string]Network{},
		currencies: map[string]*Currency{}, byToken: map[[2]string]*Currency{}, byContract: map[[2]string]*Currency{},
	}
	for _, n := range networks {
		if _, taken := r.networks[n.Code]; taken || n.Code == "" {
			return nil, fmt.Errorf("chain: network %q is empty or given twice", n.Code)
		}
		r.networks[n.Code] = n
		for _, a := range append([]string{string(n.Code)}, n.Aliases...) {
			r.alias[a] = n.Code
		}
	}
	for _, c := range currencies {
		if err := r.add(c); err != nil {
			return nil, err
		}
	}
	for _, n := range networks {
		if g, ok := r.currencies[n.Gas]; ok && (g.Network != n.Code || !g.Native()) {
			return nil, fmt.Errorf("chain: network %s: gas currency %s is not its native coin", n.Code, n.Gas)
		}
	}
	slices.Sort(r.codes)
	return r, nil
}

func (r *Registry) add(c Currency) error {
	n, ok := r.networks[c.Network]
	token, contract := [2]string{string(c.Network), c.Token}, [2]string{string(c.Network), c.Contract}
	switch {
	case !ok:
		return fmt.Errorf("chain: currency %s: unknown network %q", c.Code, c.Network)
	case c.Code == "" || r.currencies[c.Code] != nil:
		return fmt.Errorf("chain: currency %q is empty or given twice", c.Code)
	case r.byToken[token] != nil || r.byContract[contract] != nil:
		return fmt.Errorf("chain: currency %s: token or contract is another currency's already", c.Code)
	case c.Scale > 8 || c.Scale > c.Decimals:
		return fmt.Errorf("chain: currency %s: scale %d is above min(8, %d decimals)", c.Code, c.Scale, c.Decimals)
	case c.Confirmations < 1:
		return fmt.Errorf("chain: currency %s: at least 1 confirmation is required", c.Code)
	case c.CheckSteps() != nil:
		return fmt.Errorf("chain: currency %s: steps: %w", c.Code, c.CheckSteps())
	case c.Native() != (c.Code == n.Gas):
		return fmt.Errorf("chain: currency %s: the native coin of %s is %s", c.Code, n.Code, n.Gas)
	}
	r.currencies[c.Code], r.byToken[token], r.byContract[contract] = &c, &c, &c
	r.codes = append(r.codes, c.Code)
	return nil
}

// Only is the part of the Registry that is on some networks. Networks that it
// does not have are left out.
func (r *Registry) Only(networks ...Network) *Registry {
	var (
		infos      []NetworkInfo
		currencies []Currency
	)
	for _, n := range networks {
		info, ok := r.networks[n]
		if !ok {
			continue
		}
		infos = append(infos, info)
		for _, c := range r.On(n) {
			currencies = append(currencies, *c)
		}
	}
	part, err := NewRegistry(infos, currencies)
	if err != nil {
		panic(err) // what was right as a whole is right in part
	}
	return part
}

// Currency looks a combined code up. Case-sensitive. Errors wrap ErrCurrency.
func (r *Registry) Currency(code string) (*Currency, error) {
	if c, ok := r.currencies[code]; ok {
		return c, nil
	}
	return nil, fmt.Errorf("%w: %q", ErrCurrency, code)
}

// Pair looks a currency up by network (or its alias) and token symbol.
func (r *Registry) Pair(network, token string) (*Currency, error) {
	n, ok := r.alias[network]
	if c := r.byToken[[2]string{string(n), token}]; ok && c != nil {
		return c, nil
	}
	return nil, fmt.Errorf("%w: token %q on %q", ErrCurrency, token, network)
}

// ByContract finds the currency of a contract on a network, nil where it is
// none of ours. contract must be in canonical form; EVM contracts compare
// without regard to checksum case.
func (r *Registry) ByContract(n Network, contract string) *Currency {
	if c := r.byContract[[2]string{string(n), contract}]; c != nil {
		return c
	}
	if r.networks[n].AddressType == "EVM" {
		for k, c := range r.byContract {
			if k[0] == string(n) && strings.EqualFold(k[1], contract) {
				return c
			}
		}
	}
	return nil
}

// Network looks a network up by code or alias. Errors wrap ErrCurrency.
func (r *Registry) Network(code string) (NetworkInfo, error) {
	if n, ok := r.alias[code]; ok {
		return r.networks[n], nil
	}
	return NetworkInfo{}, fmt.Errorf("%w: network %q", ErrCurrency, code)
}

// Networks lists all networks, sorted by code.
func (r *Registry) Networks() []NetworkInfo {
	return slices.SortedFunc(maps.Values(r.networks), func(a, b NetworkInfo) int { return strings.Compare(string(a.Code), string(b.Code)) })
}

// Gas is the currency that pays fees on a network.
func (r *Registry) Gas(n Network) (*Currency, error) { return r.Currency(r.networks[n].Gas) }

// Codes lists all currencies, sorted.
func (r *Registry) Codes() []string { return slices.Clone(r.codes) }

// On lists the currencies of one network, sorted by code.
func (r *Registry) On(n Network) []*Currency {
	var out []*Currency
	for _, code := range r.codes {
		if c := r.currencies[code]; c.Network == n {
			out = append(out, c)
		}
	}
	return out
}
