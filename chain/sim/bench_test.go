package sim_test

import (
	"testing"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// A block of a thousand payments, mined and scanned.
func BenchmarkBlock(b *testing.B) {
	for _, n := range []chain.Network{"ETH", "BTC"} {
		b.Run(string(n), func(b *testing.B) {
			c := open(b, n)
			a := account(b, c, "a").Address
			for b.Loop() {
				at := c.Head()
				for range 1000 {
					pay(b, c, sim.Tx{Payments: to(a, one)})
				}
				c.Mine(1)
				if _, err := scan(b, c.Client(), at); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
