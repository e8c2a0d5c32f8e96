package world

import (
	"math/big"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Arithmetic of the world's own expectations: whole numbers without a bound.

func big64(a ledger.Amount) *big.Int { return big.NewInt(int64(a)) }

// floorDiv is ⌊a·num/(den+more)⌋ for numbers that are not negative.
func floorDiv(a, num *big.Int, den int64, more *big.Int) ledger.Amount {
	d := big.NewInt(den)
	if more != nil {
		d.Add(d, more)
	}
	return ledger.Amount(new(big.Int).Quo(new(big.Int).Mul(a, num), d).Int64())
}

// ceilDiv is ⌈a/b⌉.
func ceilDiv(a, b *big.Int) *big.Int {
	q, m := new(big.Int).QuoRem(a, b, new(big.Int))
	if m.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	return q
}
