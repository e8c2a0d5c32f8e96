package wallet

import (
	"context"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Fee is what was earned in one currency, in units of its scale. It falls where
// a deep reorg takes a deposit away.
type Fee struct {
	Currency string
	Amount   ledger.Amount
}

// PlatformFees lists what the platform earned of a tenant and has not taken out,
// by currency. A currency that never had a fee is left out.
func (s *Service) PlatformFees(ctx context.Context, tenant string) ([]Fee, error) {
	balances, err := s.c.Store.Balances(ctx, storage.Tenant(tenant), ledger.FeesPlatform)
	if err != nil {
		return nil, err
	}
	out := make([]Fee, 0, len(balances))
	for _, b := range balances {
		out = append(out, Fee{Currency: string(b.Asset), Amount: b.Posted})
	}
	return out, nil
}
