package sim

import (
	"context"
	"fmt"
	"strconv"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/cryptopay-go/cryptopay/chain"
)

// DevelopmentAddresses implements chain.Development. The keys follow from the network's code
// alone, so that a store in a file has the same addresses at the next start. It is nil where
// addresses are written as on another network: somebody could send coins there.
func (k *client) DevelopmentAddresses() chain.AddressSource {
	if _, ours := k.c().opt.Addresses.(plain); !ours {
		return nil
	}
	return development{&k.c().opt}
}

// development derives addresses from keys that are no secret.
type development struct{ opt *Options }

func (d development) Derive(_ context.Context, n chain.Network, from uint32, count int) ([]chain.Derived, error) {
	if n != d.opt.Network {
		return nil, fmt.Errorf("%w %s: this is the simulated %s", chain.ErrNoSource, n, d.opt.Network)
	}
	out := make([]chain.Derived, 0, max(count, 0))
	for i := from; len(out) < count; i++ {
		index := strconv.FormatUint(uint64(i), 10)
		secret := digest("development", string(n), index)
		address, err := d.opt.addressOfKey(secp256k1.PrivKeyFromBytes(secret[:]).PubKey().SerializeCompressed())
		if err != nil {
			return nil, err
		}
		out = append(out, chain.Derived{Address: address, Index: i, Key: chain.KeyRef("development/" + index)})
	}
	return out, nil
}
