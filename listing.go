package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// ListingError: the registry lists a currency otherwise than when this store
// first saw it. All amounts that are stored would be read as other ones.
type ListingError struct {
	Currency string
	Field    string // network, contract, decimals or scale
	Was, Is  string
}

func (e *ListingError) Error() string {
	return fmt.Sprintf("cryptopay: currency %s: its %s was %q when this store first saw it and is %q now: put it back, or list the other under a code of its own",
		e.Currency, e.Field, e.Was, e.Is)
}

// Listing is what a currency's code stands for in this store, for ever.
type Listing struct {
	Network  string `db:"network"`
	Contract string `db:"contract"`
	Decimals int64  `db:"decimals"`
	Scale    int64  `db:"scale"`
}

// Listings is in the system's partition, by currency code.
var Listings = storage.NewTable[Listing]("listings")

func listing(c *chain.Currency) Listing {
	return Listing{Network: string(c.Network), Contract: c.Contract, Decimals: int64(c.Decimals), Scale: int64(c.Scale)}
}

// differs is nil where a currency still is what it was.
func (was Listing) differs(code string, is Listing) error {
	switch {
	case was.Network != is.Network:
		return &ListingError{code, "network", was.Network, is.Network}
	case was.Contract != is.Contract:
		return &ListingError{code, "contract", was.Contract, is.Contract}
	case was.Decimals != is.Decimals:
		return &ListingError{code, "decimals", fmt.Sprint(was.Decimals), fmt.Sprint(is.Decimals)}
	case was.Scale != is.Scale:
		return &ListingError{code, "scale", fmt.Sprint(was.Scale), fmt.Sprint(is.Scale)}
	}
	return nil
}

// list holds the registry against what the store knows its currencies as, and
// notes those that it sees for the first time.
func (a *App) list(ctx context.Context) error {
	codes := a.cfg.Registry.Codes()
	var added []string // to a store that others have worked on
	err := storage.Decide(ctx, a.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		rows, err := a.cfg.Store.Rows(ctx, Listings.Table, storage.Keys(storage.System, codes...)...)
		if err != nil {
			return storage.Change{}, err
		}
		known := map[string]Listing{}
		added = nil
		for _, row := range rows {
			known[row.ID] = Listings.Value(row)
		}
		var wrong []error
		c := storage.Change{Partition: storage.System}
		for _, code := range codes {
			cur, err := a.cfg.Registry.Currency(code)
			if err != nil {
				return storage.Change{}, err
			}
			if was, ok := known[code]; ok {
				wrong = append(wrong, was.differs(code, listing(cur)))
				continue
			}
			c.Put = append(c.Put, Listings.Row(code, 0, time.Time{}, listing(cur)))
			added = append(added, code)
		}
		if err := errors.Join(wrong...); err != nil || len(c.Put) == 0 {
			return storage.Change{}, err
		}
		if fresh, err := a.fresh(ctx); err != nil {
			return storage.Change{}, err
		} else if fresh {
			on, err := a.abilityRows(ctx)
			if err != nil {
				return storage.Change{}, err
			}
			c.Put, added = append(c.Put, on...), nil
		}
		c.ID = "listing/" + a.cfg.NewID()
		return c, nil
	})
	if err == nil && len(added) > 0 {
		a.cfg.Log.WarnContext(ctx, "currencies_listed", slog.Any("currencies", added))
	}
	return err
}

// listed lists the contracts of a network that any process on the store has ever listed.
func (a *App) listed(ctx context.Context, n chain.Network) ([]string, error) {
	var out []string
	err := each(ctx, a.cfg.Store, storage.Query{
		Table: Listings.Table, Partition: storage.System,
		Where: []storage.Cond{{Column: "network", Op: storage.Eq, Value: string(n)}},
	}, func(r storage.Row) error {
		out = append(out, Listings.Value(r).Contract)
		return nil
	})
	return out, err
}
