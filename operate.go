package cryptopay

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
)

// RecoverDeposits reads an old address of ours again between two heights (to 0 =
// up to where the network was read) and returns how many transfers it found
// that were not known. They go the way of every other: late money to suspense.
func (a *App) RecoverDeposits(ctx context.Context, n chain.Network, address chain.Address, from, to int64) (int, error) {
	net, err := a.network(n)
	if err != nil {
		return 0, err
	}
	return net.in.Recover(ctx, address, from, to)
}

// NetworkStatus is how far a network was read and whether it is halted or stuck.
func (a *App) NetworkStatus(ctx context.Context, n chain.Network) (incoming.Status, error) {
	net, err := a.network(n)
	if err != nil {
		return incoming.Status{}, err
	}
	return net.in.Status(ctx)
}

// ResumeNetwork ends a halt after an operator has looked: reading goes on from a
// height below the fork.
func (a *App) ResumeNetwork(ctx context.Context, n chain.Network, from int64) error {
	net, err := a.network(n)
	if err != nil {
		return err
	}
	return net.in.Resume(ctx, from)
}
