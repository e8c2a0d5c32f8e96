package journal_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/report/journal"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// A tenant's books as hledger reads them. A host gives its own store, and App.Scale.
func ExampleSource_HLedger() {
	ctx, store := context.Background(), memory.New()
	if err := store.Open(ctx); err != nil {
		log.Fatal(err)
	}
	store.Commit(ctx, storage.Change{ID: "1", Partition: storage.Tenant("shop"), Post: []ledger.Tx{{
		ID: "credit/1", Kind: ledger.KindDeposit, Ref: "payment-1", At: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC),
		Legs: []ledger.Leg{
			{Account: ledger.Chain("eth"), Asset: "USDTERC20", Delta: -100_000000},
			{Account: ledger.Wallet("master"), Asset: "USDTERC20", Delta: 99_000000},
			{Account: ledger.FeesPlatform, Asset: "USDTERC20", Delta: 1_000000},
		},
	}}})
	books := journal.Source{Store: store, Tenant: "shop", Scale: func(string) (uint8, error) { return 6, nil }}
	if err := books.HLedger(ctx, os.Stdout); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 2026-11-26 * (credit/1) deposit payment-1
	//     Assets:Chains:ETH  100.000000 "USDTERC20"
	//     Income:Fees:Platform  -1.000000 "USDTERC20"
	//     Liabilities:Wallets:W-master  -99.000000 "USDTERC20"
	//
	// 2026-11-26 * balances
	//     Assets:Chains:ETH  0.000000 "USDTERC20" = 100.000000 "USDTERC20"
	//     Income:Fees:Platform  0.000000 "USDTERC20" = -1.000000 "USDTERC20"
	//     Liabilities:Wallets:W-master  0.000000 "USDTERC20" = -99.000000 "USDTERC20"
}
