package cryptopay_test

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	books "github.com/cryptopay-go/cryptopay/report/journal"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// What payments, payouts, fees and gas came to is books that accountants' programs take.
func TestX15_JournalForAccountants(t *testing.T) {
	t.Parallel()
	for _, currency := range []string{"USDTERC20", "BTC"} {
		t.Run(currency, func(t *testing.T) {
			t.Parallel()
			store := memory.New()
			inAndOut(t, store, currency)
			tenants, err := store.Find(t.Context(), storage.Query{Table: wallet.TenantRows.Table, Partition: storage.System})
			require.NoError(t, err)
			require.Len(t, tenants, 1)
			b := books.Source{Store: store, Tenant: tenants[0].ID, Scale: func(code string) (uint8, error) {
				c, err := chain.MainnetRegistry().Currency(code)
				if err != nil {
					return 0, err
				}
				return c.Scale, nil
			}}
			var hledger, beancount bytes.Buffer
			require.NoError(t, b.HLedger(t.Context(), &hledger))
			require.Contains(t, hledger.String(), "Liabilities:Wallets:W-")
			require.NoError(t, testenv.HLedger(t, hledger.Bytes()))
			require.NoError(t, b.Beancount(t.Context(), &beancount))
			require.NoError(t, testenv.BeanCheck(t, beancount.Bytes()))
		})
	}
}
