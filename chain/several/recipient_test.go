package several_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/several"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// host is a network on which another can pay, and on which some recipients take nothing.
type host struct{ chain.Client }

func (host) Network() chain.Network         { return "SOL" }
func (host) Sponsored(in chain.Intent) bool { return in.Purpose == chain.ForSweep }
func (host) Deliverable(_ context.Context, _ string, to chain.Address, _ string, _ ledger.Amount) error {
	if to == "nobody" {
		return &chain.AddressError{Network: "SOL", Reason: "no wallet"}
	}
	return nil
}

// plain is a network that knows neither.
type plain struct{ chain.Client }

func (plain) Network() chain.Network { return "SOL" }

func TestWhoPaysAndWhoCanBePaidPassThrough(t *testing.T) {
	t.Parallel()
	open := func(c chain.Client) several.Client {
		s, err := several.New(several.Config{Nodes: []several.Node{{Name: "a", Client: c}, {Name: "b", Client: c}}, Now: time.Now})
		require.NoError(t, err)
		return s
	}
	c := open(host{})
	require.True(t, c.Sponsored(chain.Intent{Purpose: chain.ForSweep}))
	require.False(t, c.Sponsored(chain.Intent{Purpose: chain.ForWithdrawal}))
	var bad *chain.AddressError
	require.ErrorAs(t, c.Deliverable(t.Context(), "SOL", "nobody", "", 1), &bad)
	require.NoError(t, c.Deliverable(t.Context(), "SOL", "somebody", "", 1))
	c = open(plain{})
	require.False(t, c.Sponsored(chain.Intent{Purpose: chain.ForSweep}))
	require.NoError(t, c.Deliverable(t.Context(), "SOL", "nobody", "", 1))
}
