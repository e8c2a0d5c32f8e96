package sim

import (
	"math/big"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Prices are whole numbers. On account networks the price of one gas, in
// 10^-18 coins; on UTXO networks that of one byte, in 10^-8 coins.
const (
	accountExp = -18
	utxoExp    = -8

	quietGasPrice  = 1_000_000_000
	quietByteRate  = 5
	defaultGasTip  = 100_000_000
	nativeGas      = 21_000
	tokenGas       = 65_000
	bytesOverhead  = 11
	bytesPerInput  = 68
	bytesPerOutput = 31

	// maxPrice keeps sums of prices far from overflow.
	maxPrice = 1 << 56
)

// dustLimit is the least output of a UTXO network.
var dustLimit = decimal.New(546, utxoExp)

func (c *Chain) quietLevel() int64 {
	if c.utxo() {
		return quietByteRate
	}
	return quietGasPrice
}

// SetFeeLevel makes blocks take only what pays at least level: 10^-18 coins for
// a gas on account networks, 10^-8 coins for a byte on UTXO networks. 0 puts the
// quiet level back. What pays less stays in the mempool.
func (c *Chain) SetFeeLevel(level int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if level <= 0 {
		level = c.quietLevel()
	}
	c.level = min(level, maxPrice/4)
}

// SetFirstSeen changes Options.FirstSeen.
func (c *Chain) SetFirstSeen(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opt.FirstSeen = on
}

// FeeLevel is the level that stands.
func (c *Chain) FeeLevel() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.level
}

// cost is n gas or bytes at a price, in whole coins, rounded up to what the
// coin can show.
func (c *Chain) cost(n, price int64) decimal.Decimal {
	exp := int32(accountExp)
	if c.utxo() {
		exp = utxoExp
	}
	product := new(big.Int).Mul(big.NewInt(n), big.NewInt(price))
	return decimal.NewFromBigInt(product, exp).RoundUp(c.decimals(""))
}

// bytesOf is how much room a UTXO transaction takes.
func bytesOf(b *body) int64 {
	return bytesOverhead + bytesPerInput*int64(len(b.Inputs)) + bytesPerOutput*int64(len(b.Outputs)) + int64(len(b.Memo))
}

// gasOf is the gas of one payment.
func gasOf(asset string) int64 {
	if asset == "" {
		return nativeGas
	}
	return tokenGas
}

// price is what a transaction pays for a gas or byte at the present level.
func (c *Chain) price(b *body) int64 {
	if c.utxo() {
		size := bytesOf(b)
		fee := b.inputSum().Sub(b.outputSum()).Shift(-utxoExp)
		if units := fee.BigInt(); units.IsInt64() {
			return units.Int64() / size
		}
		return maxPrice
	}
	return min(b.Max, c.level+b.Tip)
}

// raise is the price of the n-th attempt of the same thing: each an eighth more
// than the one before, above the tenth that nodes ask for.
func raise(price int64, attempt int) int64 {
	for ; attempt > 1 && price < maxPrice; attempt-- {
		price += price/8 + 1
	}
	return price
}

// feeUnits converts whole coins of the gas currency to ledger units, up.
func (c *Chain) feeUnits(d decimal.Decimal) (ledger.Amount, error) { return c.gas.Units(d, ledger.Up) }

// outranks is the replacement rule: a tenth more in every price.
func (c *Chain) outranks(b, old *body) bool {
	more := func(x, y int64) bool { return x >= y+(y+9)/10 }
	if c.opt.Family == chain.UTXOFamily {
		fee, had := b.inputSum().Sub(b.outputSum()), old.inputSum().Sub(old.outputSum())
		return fee.GreaterThan(had) && more(c.price(b), c.price(old))
	}
	return more(b.Max, old.Max) && more(b.Tip, old.Tip)
}
