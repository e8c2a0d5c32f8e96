package remote_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/chain/sim/remote"
	"github.com/cryptopay-go/cryptopay/internal/safehttp/peertest"
)

// TestFN06_ServerThatNeverEnds: a question ends with its context, whatever answers.
func TestFN06_ServerThatNeverEnds(t *testing.T) {
	t.Parallel()
	local := sim.MustNew(sim.Options{Network: "BTC", Registry: chain.MainnetRegistry(), Seed: 1, Now: time.Now})
	for name, answer := range peertest.Endless() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := remote.Dial(peertest.Serve(t, "127.0.0.1", answer), local)
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			require.Error(t, peertest.Ends(t, func() error {
				_, err := c.Tip(ctx)
				return err
			}))
		})
	}
}
