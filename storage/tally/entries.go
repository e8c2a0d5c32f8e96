package tally

import (
	"context"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

const entries = "entries/"

// Entries is the difference that postings make to the counters of wallets' entries.
func Entries(posts []ledger.Tx) []storage.Count {
	d := deltas{}
	for i := range posts {
		for _, l := range posts[i].Legs {
			if wallet, ok := l.Account.WalletID(); ok && l.Delta != 0 {
				e := ledger.Entry{Asset: l.Asset, Kind: posts[i].Kind, Delta: l.Delta}
				d[ofEntry(wallet, &e)]++
			}
		}
	}
	return d.counts()
}

func ofEntry(wallet string, e *ledger.Entry) string {
	return entries + join([]string{wallet, string(e.Asset), string(e.Shown())})
}

// OfKind returns how many entries of a wallet in some assets are of a kind. ok is false
// where the counters do not add up to the balances' Seq: somebody posted who does not count.
func OfKind(ctx context.Context, s storage.Store, p storage.Partition, balances []ledger.Balance, kind ledger.Kind) (n int64, ok bool, err error) {
	for _, b := range balances {
		of, ok, err := ofKind(ctx, s, p, b, kind)
		if err != nil || !ok {
			return 0, false, err
		}
		n += of
	}
	return n, true, nil
}

// ofKind is OfKind of one balance. Somebody may post between the reads, so it looks again.
func ofKind(ctx context.Context, s storage.Store, p storage.Partition, b ledger.Balance, kind ledger.Kind) (n int64, ok bool, err error) {
	wallet, _ := b.Account.WalletID()
	prefix := entries + join([]string{wallet, string(b.Asset)}) + "/"
	for range 3 {
		sum := int64(0)
		n = 0
		err := walk(ctx, s, p, prefix, end(prefix), false, func(name string, r storage.Row) bool {
			if sum += value(r); name[len(prefix):] == part(string(kind)) {
				n += value(r)
			}
			return true
		})
		if err != nil || sum == b.Seq {
			return n, err == nil, err
		}
		now, err := s.Balances(ctx, p, b.Account)
		if err != nil {
			return 0, false, err
		}
		for i := range now {
			if now[i].Asset == b.Asset {
				b = now[i]
			}
		}
	}
	return 0, false, nil
}

// RecountEntries is Recount for the entries of wallets. Anybody may post meanwhile.
func RecountEntries(ctx context.Context, s storage.Store, p storage.Partition, newID func() string) ([]Difference, error) {
	return allEntries(ctx, s, p, newID)
}

// CheckEntries is RecountEntries without mending anything.
func CheckEntries(ctx context.Context, s storage.Store, p storage.Partition) ([]Difference, error) {
	return allEntries(ctx, s, p, nil)
}

func allEntries(ctx context.Context, s storage.Store, p storage.Partition, newID func() string) (out []Difference, err error) {
	balances, err := s.Balances(ctx, p)
	if err != nil {
		return nil, err
	}
	var unread storage.RowErrors
	known := map[string]bool{}
	for _, b := range balances {
		wallet, ok := b.Account.WalletID()
		if !ok {
			continue
		}
		prefix := entries + join([]string{wallet, string(b.Asset)}) + "/"
		known[prefix] = true
		// Entries never change, so those that were counted once are not read again.
		counted, want := int64(0), deltas{}
		found, err := settled(ctx, s, p, newID, []string{prefix}, func() (map[string]int64, error) {
			return want, since(ctx, s, p, b.Account, b.Asset, &counted, func(e *ledger.Entry) { want[ofEntry(wallet, e)]++ })
		}, nil)
		out = append(out, found...)
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
	for { // counters of accounts that there are not
		var other string
		err := walk(ctx, s, p, entries, end(entries), false, func(name string, r storage.Row) bool {
			prefix := name[:strings.LastIndex(name, "/")+1]
			if name != entries && !known[prefix] {
				other = prefix
			}
			return other == ""
		})
		if err = unread.Take(err); err != nil || other == "" {
			return out, unread.With(err)
		}
		known[other] = true
		found, err := settled(ctx, s, p, newID, []string{other}, func() (map[string]int64, error) { return nil, nil }, nil)
		out = append(out, found...)
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
}

// since reads the entries of an account behind those that were counted already.
func since(ctx context.Context, s storage.Store, p storage.Partition, a ledger.Account, asset ledger.Asset, counted *int64, visit func(*ledger.Entry)) error {
	newest := *counted
	for before := int64(0); ; {
		list, err := s.Entries(ctx, p, a, asset, before, page)
		if err != nil {
			return err
		}
		for i := range list {
			if list[i].Seq <= *counted {
				*counted = newest
				return nil
			}
			newest = max(newest, list[i].Seq)
			visit(&list[i])
		}
		if len(list) < page {
			*counted = newest
			return nil
		}
		before = list[len(list)-1].Seq
	}
}
