package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/seal"
)

// seals is the worker that seals the tenants' journals.
func (a *App) seals() []Worker {
	if a.cfg.SealEvery < 0 {
		return nil
	}
	key := seal.Key(a.cfg.Keys[0])
	r := &round{a: a, every: a.cfg.SealEvery, batch: seal.MaxEntries, tenant: func(ctx context.Context, store storage.Store, p storage.Partition, now time.Time) (int, error) {
		s, n, err := seal.Next(ctx, store, p, key, now)
		if errors.Is(err, seal.ErrBroken) { // one tenant's, and nothing that trying again would mend
			a.cfg.Log.ErrorContext(ctx, "journal_not_sealed", slog.String("partition", string(p)), slog.Any("error", err))
			return 0, nil
		}
		if n > 0 {
			a.cfg.Log.InfoContext(ctx, "journal_sealed", slog.String("partition", string(p)), slog.Int64("number", s.Number), slog.String("hash", fmt.Sprintf("%x", s.Hash)))
		}
		return n, err
	}}
	return []Worker{{Name: "seals", Every: min(time.Minute, a.cfg.SealEvery), Step: r.step}}
}

// sealKeys are what seals may be signed with, newest first.
func (a *App) sealKeys() [][]byte {
	var out [][]byte
	for _, k := range a.cfg.Keys {
		out = append(out, seal.Key(k))
	}
	return out
}

// Seal is the seal of a tenant's journal with this number, or the newest where it
// is 0; ok is false where there is none. Number and Hash of the newest, kept where
// nobody who can write to this database can write, are proof for later: as long as
// Verify finds nothing and the seal of that number has that hash, everything that it
// and those before it cover is what it was.
func (a *App) Seal(ctx context.Context, tenant string, number int64) (s seal.Seal, ok bool, err error) {
	if number == 0 {
		return seal.Newest(ctx, a.cfg.Store, storage.Tenant(tenant))
	}
	return seal.At(ctx, a.cfg.Store, storage.Tenant(tenant), number)
}

// ProveBalance shows that the newest sealed balance of a wallet (wallet.Master of the master
// account) in a currency stands in a seal, with all that it takes to compute the seal's hash
// from it; ok is false where no seal has one yet. Entry.After of what it returns is that balance,
// in units of the currency's scale, and what is held of it is part of it.
//
// It reads one seal and what that covers, at most seal.MaxEntries entries, however long the
// journal is. It returns wallet.ErrNotFound, chain.ErrCurrency, and seal.ErrBroken where the journal is not what was sealed.
func (a *App) ProveBalance(ctx context.Context, tenant, walletID, currency string) (in seal.Inclusion, ok bool, err error) {
	if _, err := a.Scale(currency); err != nil {
		return in, false, err
	}
	w, err := a.Wallets.Get(ctx, tenant, walletID)
	if err != nil {
		return in, false, err
	}
	return seal.Include(ctx, a.cfg.Store, storage.Tenant(tenant), ledger.Wallet(w.ID), ledger.Asset(currency), a.sealKeys())
}
