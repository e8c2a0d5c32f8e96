package cryptopay

import (
	"context"
	"errors"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// HaltedAsset is a currency whose payouts are halted.
type HaltedAsset struct {
	Currency string
	Reason   string
	Since    time.Time
}

// HaltAsset halts the payouts of a currency for every tenant: withdrawals of it are
// accepted and wait with the reason halted. A withdrawal that was signed before is sent
// and, where fees rise, replaced until it lands, as payouts of other currencies wait
// behind its nonce. The halt is stored and stays until LiftAsset. A currency that is halted already keeps its
// first reason. The library itself halts a token whose logs and balances differ
// (incoming.ReasonContradicted). reason is required. The error wraps chain.ErrCurrency
// for an unknown currency.
func (a *App) HaltAsset(ctx context.Context, currency, reason string) error {
	if reason == "" {
		return errors.New("cryptopay: HaltAsset: reason is required")
	}
	c, err := a.cfg.Registry.Currency(currency)
	if err != nil {
		return err
	}
	if err := incoming.HaltAsset(ctx, a.cfg.Store, c, reason, a.cfg.Clock.Now()); err != nil {
		return err
	}
	a.cfg.Log.ErrorContext(ctx, "asset_halted", "currency", currency, "reason", reason)
	return nil
}

// LiftAsset ends the halt of a currency: what waited for it goes on by itself. Lift a
// halt after the cause was found. It does nothing where the currency is not halted. The
// error wraps chain.ErrCurrency for an unknown currency.
func (a *App) LiftAsset(ctx context.Context, currency string) error {
	c, err := a.cfg.Registry.Currency(currency)
	if err != nil {
		return err
	}
	if err := incoming.LiftAsset(ctx, a.cfg.Store, c); err != nil {
		return err
	}
	a.cfg.Log.WarnContext(ctx, "asset_lifted", "currency", currency)
	return nil
}

// HaltedAssets lists the currencies whose payouts are halted, by network and code.
func (a *App) HaltedAssets(ctx context.Context) ([]HaltedAsset, error) {
	var out []HaltedAsset
	for _, n := range a.networks {
		rows, err := a.cfg.Store.Find(ctx, storage.Query{
			Table: incoming.AssetHalts.Table, Partition: storage.Network(string(n.name)), Limit: 1000,
		})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			h := incoming.AssetHalts.Value(r)
			out = append(out, HaltedAsset{Currency: r.ID, Reason: h.Reason, Since: h.Since})
		}
	}
	return out, nil
}
