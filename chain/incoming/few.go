package incoming

import (
	"context"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

const (
	// mostSearched is how many addresses a network may have for the few that are still watched to
	// be searched for: no index finds those.
	mostSearched = 100_000
	// mostAccounts is how many accounts are kept of a network where addresses share them.
	mostAccounts = 1000
)

// few lists the addresses that were handed out and whose watch has not ended at a time; few is false
// where they are more than most. A free address is left out: whoever gets it pays later.
func (n *Network) few(ctx context.Context, most int, at time.Time) (list []chain.Address, few bool, err error) {
	seen := map[chain.Address]bool{}
	add := func(rows []storage.Row) bool {
		for _, r := range rows {
			if a := chain.Address(r.ID); !seen[a] {
				seen[a] = true
				list = append(list, a)
			}
		}
		return len(list) <= most
	}
	if accounts, many, shared := n.cfg.Watched.shared(); shared {
		if many {
			return nil, false, nil
		}
		rows, err := n.cfg.Store.Rows(ctx, Addresses.Table, storage.Keys(n.part, accounts...)...)
		if err != nil {
			return nil, false, err
		}
		handed := rows[:0]
		for _, r := range rows {
			if Addresses.Value(r).Tenant != "" {
				handed = append(handed, r)
			}
		}
		few = add(handed)
		return list, few, nil
	}
	if n.cfg.Watched.Len() > mostSearched {
		return nil, false, nil
	}
	for _, until := range []storage.Cond{
		{Column: "watch_until", Op: storage.Eq, Value: time.Time{}},
		{Column: "watch_until", Op: storage.Ge, Value: at},
		// Once more: the watch of one may have become endless between the two.
		{Column: "watch_until", Op: storage.Eq, Value: time.Time{}},
	} {
		rows, err := n.cfg.Store.Find(ctx, storage.Query{
			Table: Addresses.Table, Partition: n.part, Limit: most + 1, IDs: true,
			Where: []storage.Cond{{Column: "tenant", Op: storage.Gt, Value: ""}, until},
		})
		if err != nil || !add(rows) {
			return nil, false, err
		}
	}
	return list, true, nil
}

// account has Sync keep the accounts that addresses are of.
func (w *Watched) account(of chain.Tagger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.tagger == nil {
		w.tagger, w.accounts, w.end = of, map[chain.Address]bool{}, 0 // what was read already is read once more
	}
}

// shared lists the accounts of all addresses that were read; many: they are more than are kept.
// ok is false where addresses do not share accounts.
func (w *Watched) shared() (accounts []string, many, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for a := range w.accounts {
		accounts = append(accounts, string(a))
	}
	return accounts, len(w.accounts) > mostAccounts, w.tagger != nil
}

// noted keeps the account of an address that was read. The caller holds mu.
func (w *Watched) noted(a chain.Address) {
	if w.tagger == nil || len(w.accounts) > mostAccounts {
		return
	}
	if account, _, tagged := w.tagger.Untag(a); tagged {
		a = account
	}
	w.accounts[a] = true
}
