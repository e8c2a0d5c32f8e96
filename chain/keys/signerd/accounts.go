package signerd

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"maps"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

// Accounts is what an App without the seed derives addresses from: nothing in it is secret.
type Accounts struct {
	XPubs []keys.Account `json:"xpubs"`
	// Ahead has the addresses of networks on ed25519, which have no public derivation, and
	// of all networks whose keys are in a module.
	Ahead keys.List `json:"ahead,omitempty"`
	// Public are the public keys of Ahead that their addresses do not tell: those on
	// secp256k1, and Cardano's.
	Public map[chain.KeyRef]chain.PublicKey `json:"public,omitempty"`
}

// PublicOf is the public part of a seed, for the networks of the encoders. It derives so
// many addresses ahead where there is no other way. more are accounts beside those of
// Seed.Accounts, or in the place of those.
func PublicOf(ctx context.Context, seed *keys.Seed, r *chain.Registry, encode map[chain.Network]keys.Encode, ahead int, more ...keys.Account) (Accounts, error) {
	var out Accounts
	all, err := seed.Accounts(r.Networks())
	if err != nil {
		return out, err
	}
	all = slices.DeleteFunc(all, func(a keys.Account) bool {
		return slices.ContainsFunc(more, func(b keys.Account) bool { return a.Network == b.Network })
	})
	have := map[chain.Network]bool{}
	for _, a := range append(all, more...) {
		if _, served := encode[a.Network]; served {
			out.XPubs, have[a.Network] = append(out.XPubs, a), true
		}
	}
	hardened := seed.Hardened(encode)
	for _, n := range slices.Sorted(maps.Keys(encode)) {
		if have[n] {
			continue
		}
		list, err := hardened.Derive(ctx, n, 0, ahead)
		if err != nil {
			return out, err
		}
		if out.Ahead == nil {
			out.Ahead = keys.List{}
		}
		out.Ahead[n] = list
	}
	return out, nil
}

// MadeIn is what a module has so many keys of, for the networks of the encoders. It makes
// those that it has not yet. Each has signed when this returns.
func MadeIn(ctx context.Context, m keys.Maker, names keys.Names, encode map[chain.Network]keys.Encode, ahead int) (Accounts, error) {
	out := Accounts{Ahead: keys.List{}, Public: map[chain.KeyRef]chain.PublicKey{}}
	for _, n := range slices.Sorted(maps.Keys(encode)) {
		name, ok := names[n]
		if !ok {
			return out, fmt.Errorf("%w %s: keys.Names has no account of it", chain.ErrNoSource, n)
		}
		for i := range ahead {
			d := chain.Derived{Index: uint32(i), Key: name(uint32(i))} //nolint:gosec // nobody makes so many
			pub, err := m.Make(ctx, d.Key)
			if err != nil {
				return out, fmt.Errorf("signerd: key %s of %s: %w", d.Key, n, err)
			}
			if d.Address, err = encode[n](pub); err != nil {
				return out, err
			}
			out.Ahead[n] = append(out.Ahead[n], d)
			if len(pub) != ed25519.PublicKeySize || n == "ADA" { // whose addresses are hashes
				out.Public[d.Key] = pub
			}
		}
	}
	return out, nil
}

// Source derives the addresses of all networks. public names the public key of a KeyRef, for
// clients whose transactions hold it.
func (a Accounts) Source(encode map[chain.Network]keys.Encode) (
	all keys.Sources, public func(chain.Network, chain.KeyRef) (chain.PublicKey, error), err error,
) {
	derived, err := keys.NewSource(a.XPubs, encode)
	if err != nil {
		return nil, nil, err
	}
	all = keys.Sources{}
	for _, x := range a.XPubs {
		all[x.Network] = derived
	}
	for n := range a.Ahead {
		all[n] = a.Ahead
	}
	return all, func(n chain.Network, ref chain.KeyRef) (chain.PublicKey, error) {
		if pub, ok := a.Public[ref]; ok {
			return pub, nil
		}
		return derived.PublicKey(n, ref)
	}, nil
}
