package utxo

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
)

func TestBtcdConformance(t *testing.T) {
	t.Parallel()
	n := btcdTown(t)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return n.harness(t) })
}

func TestLitecoinCoreConformance(t *testing.T) { conformsOnLitecoin(t, litecoinTown) }

// TestLitecoinCorePrunedConformance is on a node with -prune and without -txindex.
func TestLitecoinCorePrunedConformance(t *testing.T) {
	testenv.Draw(t, 2)
	conformsOnLitecoin(t, prunedTown)
}

func conformsOnLitecoin(t *testing.T, open func(testing.TB) *town) {
	t.Parallel()
	n := open(t)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		if n.height() > 380 { // its chain ends at 431
			n = open(t)
		}
		return n.harness(t)
	})
}
