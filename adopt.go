package cryptopay

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
)

// AdoptNonce goes on sending from one of our addresses with next as its nonce,
// after a person has accounted for every transaction before it that the store
// does not know, as after a restore from an older backup. It never goes back.
func (a *App) AdoptNonce(ctx context.Context, n chain.Network, address chain.Address, next uint64) error {
	net, err := a.network(n)
	if err != nil {
		return err
	}
	return net.out.AdoptNonce(ctx, address, next)
}
