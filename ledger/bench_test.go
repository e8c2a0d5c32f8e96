package ledger_test

import (
	"testing"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Ours and the decimal package's side by side: only their ratio counts.

var (
	amountSink  ledger.Amount
	decimalSink decimal.Decimal
	stringSink  string
)

func BenchmarkParse(b *testing.B) {
	const number = "1234.56789012"
	b.Run("amount", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			amountSink, _ = ledger.ParseAmount(number, 8)
		}
	})
	b.Run("ours to decimal", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			decimalSink, _ = ledger.ParseDecimal(number)
		}
	})
	b.Run("peer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			decimalSink, _ = decimal.NewFromString(number)
		}
	})
}

func BenchmarkFormat(b *testing.B) {
	const units = 123456789012
	d := decimal.New(units, -8)
	b.Run("amount", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			stringSink = ledger.Amount(units).Format(8, 8)
		}
	})
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		var buf [32]byte
		for b.Loop() {
			_ = ledger.Amount(units).Append(buf[:0], 8, 8)
		}
	})
	b.Run("plain", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			stringSink = ledger.PlainString(d)
		}
	})
	b.Run("peer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			stringSink = d.StringFixed(8)
		}
	})
}

func BenchmarkAdd(b *testing.B) {
	x, y := decimal.New(123456789012, -8), decimal.New(99, -8)
	b.Run("amount", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			amountSink, _ = ledger.Amount(123456789012).Add(99)
		}
	})
	b.Run("peer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			decimalSink = x.Add(y)
		}
	})
}

// A fee of 0.5 %, rounded down to 8 places.
func BenchmarkFee(b *testing.B) {
	x, f := decimal.New(123456789012, -8), decimal.New(5, -3)
	b.Run("amount", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			amountSink, _ = ledger.Amount(123456789012).MulDiv(5, 1000, ledger.Down)
		}
	})
	b.Run("peer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			decimalSink = x.Mul(f).RoundFloor(8)
		}
	})
}

// A price over a rate, 8 places.
func BenchmarkQuo(b *testing.B) {
	x, y := decimal.New(10000, -2), decimal.New(6000017, -2)
	b.Run("amount", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			amountSink, _ = ledger.Quo(x, y, 8, ledger.Up)
		}
	})
	b.Run("peer", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			decimalSink = x.DivRound(y, 18)
		}
	})
}

func BenchmarkCheck(b *testing.B) {
	tx := ledger.Tx{ID: "settle/1", Legs: []ledger.Leg{
		{Account: ledger.Wallet("1"), Asset: "USDT", Delta: -100, Hold: -100},
		{Account: ledger.Chain("TRX"), Asset: "USDT", Delta: 97},
		{Account: ledger.FeesPlatform, Asset: "USDT", Delta: 1},
		{Account: ledger.FeesNetwork, Asset: "USDT", Delta: 2},
	}}
	b.ReportAllocs()
	for b.Loop() {
		_ = tx.Check()
	}
}
