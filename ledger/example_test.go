package ledger_test

import (
	"errors"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// A payment of 100 USDT, of which the merchant gets 99 and the platform 1.
func Example() {
	const usdt, scale = ledger.Asset("USDTTRC20"), 6
	paid, _ := ledger.ParseAmount("100", scale)
	fee, _ := paid.MulDiv(1, 100, ledger.Down)
	rest, _ := paid.Sub(fee)
	owed, _ := paid.Neg()

	tx := ledger.Tx{ID: "credit/7f3a/1", Kind: ledger.KindDeposit, Legs: []ledger.Leg{
		{Account: ledger.Chain("TRX"), Asset: usdt, Delta: owed},
		{Account: ledger.Wallet("42"), Asset: usdt, Delta: rest},
		{Account: ledger.FeesPlatform, Asset: usdt, Delta: fee},
	}}
	fmt.Println("balanced:", tx.Check() == nil)
	for _, leg := range tx.Legs {
		b, err := ledger.Balance{}.Apply(leg)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(b.Account, b.Posted.Format(scale, 8))
	}
	// Output:
	// balanced: true
	// chain/TRX -100.00000000
	// wallet/42 99.00000000
	// fees/platform 1.00000000
}

func ExampleBalance_Apply() {
	wallet := ledger.Balance{Account: ledger.Wallet("42"), Asset: "ETH", Posted: 100, Held: 30}
	_, err := wallet.Apply(ledger.Leg{Account: wallet.Account, Asset: "ETH", Hold: 80})

	var short *ledger.InsufficientFundsError
	if errors.As(err, &short) {
		fmt.Println(short.Available, "available,", short.Requested, "requested")
	}
	// Output: 70 available, 80 requested
}

func ExampleParseAmount() {
	for _, s := range []string{"0.10", "0.123456789", "1e5"} {
		a, err := ledger.ParseAmount(s, 8)
		switch {
		case errors.Is(err, ledger.ErrPrecision):
			fmt.Println(s, "has too many places")
		case err != nil:
			fmt.Println(s, "is no amount")
		default:
			fmt.Println(a.Format(8, 8))
		}
	}
	// Output:
	// 0.10000000
	// 0.123456789 has too many places
	// 1e5 is no amount
}

// A price in fiat and a rate give what is due in the coin; the coin and a rate
// give its value.
func ExampleQuo() {
	price, rate := decimal.New(100, 0), decimal.New(60_000, 0)
	due, _ := ledger.Quo(price, rate, 8, ledger.Up)
	fmt.Println(due.Format(8, 8), "BTC")

	value, _ := ledger.MulRound(due, 8, rate, 2, ledger.Down)
	fmt.Println(ledger.PlainString(value), "USD")
	// Output:
	// 0.00166667 BTC
	// 100.00 USD
}

func ExampleVerify() {
	wallet, chain := ledger.Wallet("42"), ledger.Chain("ETH")
	report, err := ledger.Verify(ledger.Books{
		Balances: func(yield func(ledger.Balance, error) bool) {
			_ = yield(ledger.Balance{Account: wallet, Asset: "ETH", Posted: 6, Seq: 1}, nil) &&
				yield(ledger.Balance{Account: chain, Asset: "ETH", Posted: -5, Seq: 1}, nil)
		},
		Entries: func(yield func(ledger.Entry, error) bool) {
			_ = yield(ledger.Entry{Account: wallet, Asset: "ETH", Seq: 1, Tx: "credit/1/1", Delta: 5, After: 5}, nil) &&
				yield(ledger.Entry{Account: chain, Asset: "ETH", Seq: 1, Tx: "credit/1/1", Delta: -5, After: -5}, nil)
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range report.Findings {
		fmt.Println(f)
	}
	// Output:
	// ledger: drift account="wallet/42" asset="ETH" want=5 have=6
	// ledger: insolvent asset="ETH" want=6 have=5
	// ledger: uneven asset="ETH" want=0 have=1
}
