package signerd

import (
	"context"
	"maps"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
)

// Accounts is what an App without the seed derives addresses from: nothing in it is secret.
type Accounts struct {
	XPubs []keys.Account `json:"xpubs"`
	Ahead keys.List      `json:"ahead,omitempty"` // of networks on ed25519, which have no public derivation
}

// PublicOf is the public part of a seed, for the networks of the encoders. It derives so
// many addresses ahead where there is no other way. more are accounts beside those of
// Seed.Accounts.
func PublicOf(ctx context.Context, seed *keys.Seed, r *chain.Registry, encode map[chain.Network]keys.Encode, ahead int, more ...keys.Account) (Accounts, error) {
	var out Accounts
	all, err := seed.Accounts(r.Networks())
	if err != nil {
		return out, err
	}
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

// Source derives the addresses of all networks. public is the part of it that has public
// keys, for clients whose transactions hold them.
func (a Accounts) Source(encode map[chain.Network]keys.Encode) (all keys.Sources, public *keys.Source, err error) {
	if public, err = keys.NewSource(a.XPubs, encode); err != nil {
		return nil, nil, err
	}
	all = keys.Sources{}
	for _, x := range a.XPubs {
		all[x.Network] = public
	}
	for n := range a.Ahead {
		all[n] = a.Ahead
	}
	return all, public, nil
}
