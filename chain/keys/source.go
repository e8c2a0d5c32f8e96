package keys

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Encode turns a public key into a network's address: chain.Client.AddressOf.
type Encode func(pub chain.PublicKey) (chain.Address, error)

// Source derives addresses from xpubs. It holds no private key. Safe for
// concurrent use.
type Source struct{ branches map[chain.Network]branch }

type branch struct {
	key    children // <account>/<branch>
	prefix string   // of the KeyRefs
	encode Encode
}

// children are public keys below one, by index.
type children interface {
	child(i uint32) (chain.PublicKey, error)
}

// NewSource makes a Source of accounts; encode says how each network writes an
// address. Accounts of networks without an encoder are left out.
func NewSource(accounts []Account, encode map[chain.Network]Encode) (*Source, error) {
	s := &Source{branches: map[chain.Network]branch{}}
	for _, a := range accounts {
		e, ok := encode[a.Network]
		if !ok {
			continue
		}
		prefix := fmt.Sprintf("%s/%d/", a.Path, a.Branch)
		if _, soft := onSoft(chain.KeyRef(a.Path)); soft {
			k, err := softBranch(a)
			if err != nil {
				return nil, err
			}
			s.branches[a.Network] = branch{key: softPublic{k}, prefix: prefix, encode: e}
			continue
		}
		k, err := hdkeychain.NewKeyFromString(a.XPub)
		if err != nil || k.IsPrivate() {
			return nil, fmt.Errorf("keys: account of %s: an extended public key is needed", a.Network)
		}
		// The key of another account would give addresses that nothing can spend.
		steps, err := parsePath(a.Path)
		if err != nil || int(k.Depth()) != len(steps) || len(steps) > 0 && k.ChildIndex() != steps[len(steps)-1] {
			return nil, fmt.Errorf("keys: account of %s: the extended public key is not the one of its path", a.Network)
		}
		if k, err = k.Derive(a.Branch); err != nil {
			return nil, fmt.Errorf("keys: account of %s: branch %d: %w", a.Network, a.Branch, err)
		}
		p, err := newPublic(k)
		if err != nil {
			return nil, fmt.Errorf("keys: account of %s: %w", a.Network, err)
		}
		s.branches[a.Network] = branch{key: p, prefix: prefix, encode: e}
	}
	return s, nil
}

// Source derives the addresses of the clients' networks from the accounts of the seed. Of
// networks on secp256k1 it holds public keys alone.
func (s *Seed) Source(clients ...chain.Client) (Sources, error) {
	encode := map[chain.Network]Encode{}
	for _, c := range clients {
		encode[c.Network()] = c.AddressOf
	}
	accounts, err := s.Accounts(chain.Networks())
	if err != nil {
		return nil, err
	}
	public, err := NewSource(accounts, encode)
	if err != nil {
		return nil, err
	}
	hardened, out := s.Hardened(encode), Sources{}
	for n := range encode {
		if _, ok := public.branches[n]; ok {
			out[n] = public
		} else if _, ok := hardened.branches[n]; ok {
			out[n] = hardened
		} else {
			return nil, fmt.Errorf("%w %s: no account of a seed is known for it, use NewSource", chain.ErrNoSource, n)
		}
	}
	return out, nil
}

// Derive returns count addresses of a network from index on.
func (s *Source) Derive(ctx context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	b, ok := s.branches[n]
	if !ok {
		return nil, fmt.Errorf("%w %s: give its xpub", chain.ErrNoSource, n)
	}
	if count < 0 {
		return nil, fmt.Errorf("keys: %d addresses cannot be derived", count)
	}
	if int64(from)+int64(count) > hdkeychain.HardenedKeyStart {
		return nil, fmt.Errorf("keys: the account of %s is used up: add another", n)
	}
	out := make([]chain.Derived, 0, count)
	for i := from; len(out) < count; i++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		pub, err := b.key.child(i)
		if err != nil {
			return nil, fmt.Errorf("keys: index %d of %s: %w", i, n, err)
		}
		a, err := b.encode(pub)
		if err != nil {
			return nil, err
		}
		out = append(out, chain.Derived{Address: a, Index: i, Key: chain.KeyRef(b.prefix + strconv.FormatUint(uint64(i), 10))})
	}
	return out, nil
}

// PublicKey is the key that a KeyRef names, of a network whose transactions hold
// it, and whose addresses do not tell it.
func (s *Source) PublicKey(n chain.Network, ref chain.KeyRef) (chain.PublicKey, error) {
	b, ok := s.branches[n]
	if !ok {
		return nil, fmt.Errorf("keys: no account for network %s: give its xpub", n)
	}
	last, ok := strings.CutPrefix(string(ref), b.prefix)
	i, err := strconv.ParseUint(last, 10, 31)
	if !ok || err != nil || last != strconv.FormatUint(i, 10) {
		return nil, fmt.Errorf("keys: %q is not below the account of %s", ref, n)
	}
	return b.key.child(uint32(i)) //nolint:gosec // of 31 bits
}
