package utxo

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/chain/chaintest"
)

func TestBtcdConformance(t *testing.T) {
	t.Parallel()
	n := btcdTown(t)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness { return n.harness(t) })
}

// TestLitecoinCorePrunedConformance is on a node with -prune and without -txindex.
func TestLitecoinCorePrunedConformance(t *testing.T) {
	t.Parallel()
	n := prunedTown(t)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		if n.height() > 380 { // its chain ends at 431
			n = prunedTown(t)
		}
		return n.harness(t)
	})
}

func TestLitecoinCoreConformance(t *testing.T) {
	t.Parallel()
	n := litecoinTown(t)
	chaintest.Run(t, func(t *testing.T) *chaintest.Harness {
		if n.height() > 380 { // its chain ends at 431
			n = litecoinTown(t)
		}
		return n.harness(t)
	})
}
