// Package policy reads what a signer may pay, as people write it: docs/signer.md.
package policy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Limit is keys.Limit as people write it.
type Limit struct {
	Amount decimal.Decimal `json:"amount"` // in coins
	Per    string          `json:"per"`    // such as 24h
}

// Network is what may be signed on a network.
type Network struct {
	Costs []Limit `json:"costs"` // the most that the network may take
}

// Currency is what may be paid to others.
type Currency struct {
	Pays []Limit `json:"pays"`
}

// Limits are those of networks and currencies, in the smallest units that are kept.
func Limits(r *chain.Registry, networks map[chain.Network]Network, currencies map[string]Currency) (keys.Limits, error) {
	out := keys.Limits{Pays: map[string][]keys.Limit{}, Costs: map[chain.Network][]keys.Limit{}}
	for _, n := range slices.Sorted(maps.Keys(networks)) {
		gas, err := r.Gas(n)
		if err != nil {
			return out, fmt.Errorf("networks: %w", err)
		}
		if out.Costs[n], err = units(gas, networks[n].Costs); err != nil {
			return out, fmt.Errorf("networks: %s: costs: %w", n, err)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(currencies)) {
		of, err := r.Currency(code)
		if err != nil {
			return out, fmt.Errorf("currencies: %w", err)
		}
		if out.Pays[code], err = units(of, currencies[code].Pays); err != nil {
			return out, fmt.Errorf("currencies: %s: pays: %w", code, err)
		}
	}
	return out, nil
}

func units(of *chain.Currency, list []Limit) (out []keys.Limit, err error) {
	for _, l := range list {
		per, err := time.ParseDuration(l.Per)
		if err != nil {
			return nil, err
		}
		amount, err := of.Units(l.Amount, ledger.Down)
		if err != nil {
			return nil, err
		}
		out = append(out, keys.Limit{Amount: amount, Per: per})
	}
	return out, nil
}

// Decode reads JSON. It refuses a name that it does not know, and a name that stands in it
// twice: one of the two would bound nothing.
func Decode(text []byte, into any) error {
	if _, err := jsontext.NewDecoder(bytes.NewReader(text)).ReadValue(); err != nil {
		return err
	}
	in := json.NewDecoder(bytes.NewReader(text))
	in.DisallowUnknownFields()
	if err := in.Decode(into); err != nil {
		return err
	}
	if _, more := in.Token(); !errors.Is(more, io.EOF) {
		return errors.New("there is more than one configuration in it")
	}
	return nil
}
