package several_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/several"
)

// pruned is a node without an index of transactions: it tells of the cost what it was told.
type pruned struct{ anyKind }

// anyKind is a client with what the simulated one has beside a Client.
type anyKind interface {
	chain.Client
	chain.Noncer
}

func (p pruned) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	out, err := p.anyKind.Status(ctx, attempts...)
	for i := range out {
		if out[i].State == chain.Included {
			out[i].Cost = attempts[i].MaxCost
		}
	}
	return out, err
}

// Restoring a store asks what a transaction has cost that it knows nothing of. A pruned node
// cannot say, and contradicts nobody.
func TestBreak_APrunedNodeBesideOneWithAnIndex(t *testing.T) {
	t.Parallel()
	n := newTown(t, "ETH", 2, func(c *several.Config) { c.Nodes[1].Client = pruned{c.Nodes[1].Client.(anyKind)} })
	u, s, _ := n.signed(t)
	require.NoError(t, n.client.Broadcast(t.Context(), proof.NewStored("ETH", s.Tx, s.Raw)))
	n.Mine(3)
	all, err := n.client.Status(t.Context(), chain.Attempt{Tx: s.Tx, Spends: u.Spends})
	require.NoError(t, err)
	t.Log(all[0].State, all[0].Cost, n.log.String())
	require.Equal(t, chain.Included, all[0].State)
	require.NotContains(t, n.log.String(), "nodes_disagree")
	require.Positive(t, all[0].Cost)
}
