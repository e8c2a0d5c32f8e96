package treasury

import (
	"context"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Refused gives back what was set aside for an intent that was refused for good: where
// its network is retired no sender is asked, so that Submit cannot. It does nothing for
// an intent that was taken over, or for which nothing is set aside. Safe to repeat.
func (t *Treasury) Refused(ctx context.Context, in chain.Intent) error {
	return t.unreserve(ctx, in)
}
