package cryptopay_test

import (
	"context"
	"fmt"
	"io"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// example is what a Host needs of a test, outside of one.
type example struct{ ctx context.Context }

func (e example) Context() context.Context     { return e.ctx }
func (example) Fatalf(format string, a ...any) { panic(fmt.Sprintf(format, a...)) }
func (example) Output() io.Writer              { return io.Discard }
func (example) Helper()                        {}

// openShop is a host on a simulated chain, with one merchant; set may change its Config.
func openShop(ctx context.Context, set func(*cryptopay.Config)) *cryptopaytest.Host {
	return cryptopaytest.Open(example{ctx}, cryptopaytest.Options{Networks: []chain.Network{"ETH"}, Configure: set})
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// Pay out: the amount and the fees are held at once, and the payout is sent and followed
// by the workers.
func Example_payOut() {
	ctx := context.Background()
	s := openShop(ctx, nil)
	s.Customer.Pays(s.Payment("25", "USDTERC20"))

	amount := decimal.RequireFromString("10")
	w, err := s.App.Withdrawals.Create(ctx, s.ID, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &amount, FinalAmount: true, Currency: "USDTERC20", Address: string(s.Chains["ETH"].Customer("supplier"))},
		Key:   "invoice 1", // the same request again gives the same withdrawal
	})
	check(err)
	fmt.Println(w.Status)

	s.Mine(60)
	w, err = s.App.Withdrawals.Get(ctx, s.ID, w.ID)
	check(err)
	fmt.Println(w.Status, s.Chains["ETH"].Balance(s.Chains["ETH"].Customer("supplier"), "USDTERC20"))
	// Output:
	// pending
	// completed 10
}
