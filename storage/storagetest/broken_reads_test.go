package storagetest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// told changes every verdict.
func told(f func(c *storage.Change, err error) error) func(storage.Store, context.Context, []storage.Change) []error {
	return func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
		errs := s.Commit(ctx, changes...)
		out := slices.Clone(errs)
		for i := range out {
			out[i] = f(&changes[i], errs[i])
		}
		return out
	}
}

// verdictFaults are stores that say something else than what they did.
func verdictFaults() map[string]fault {
	return map[string]fault{
		"duplicates are fine": {
			broken{commit: told(func(_ *storage.Change, err error) error {
				if dup := (*storage.DuplicateError)(nil); errors.As(err, &dup) {
					return nil
				}
				return err
			})},
			[]string{"Unique", "D08_UniqueInABatch", "Model"},
		},
		"a final verdict is told as a conflict": {
			broken{commit: told(func(_ *storage.Change, err error) error {
				if err != nil && storage.Final(err) {
					return storage.ErrConflict
				}
				return err
			})},
			[]string{"Unique", "Floors", "Level", "W11_DrainToTheFloor"},
		},
		"a conflict is told as an unknown outcome": {
			broken{commit: told(func(_ *storage.Change, err error) error {
				if errors.Is(err, storage.ErrConflict) {
					return errors.New("something went wrong")
				}
				return err
			})},
			[]string{"Versions", "Guards"},
		},
		"what is malformed is fine": {
			broken{commit: told(func(_ *storage.Change, err error) error {
				if errors.Is(err, storage.ErrMalformed) || errors.Is(err, ledger.ErrMalformed) {
					return nil
				}
				return err
			})},
			[]string{"Malformed", "L10_BadPostings"},
		},
		"a refusal does not say what is available": {
			broken{commit: told(func(_ *storage.Change, err error) error {
				if short := (*ledger.InsufficientFundsError)(nil); errors.As(err, &short) {
					other := *short
					other.Available = 0
					return &other
				}
				return err
			})},
			[]string{"Floors", "C05_Linearizable"},
		},
		"a change that is there already is a conflict": {
			broken{commit: knows()}, []string{"ThereAlready", "L02_LostAnswers", "D08_SameChangeTwice"},
		},
		"a refused change is there by half": {
			broken{commit: func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
				errs := s.Commit(ctx, changes...)
				for i := range errs {
					if half := changes[i]; errs[i] != nil && len(half.Put) > 0 {
						half.ID += "/half"
						half.Post, half.Level, half.Empty, half.Drop, half.Require = nil, nil, nil, nil, nil
						s.Commit(ctx, half)
					}
				}
				return errs
			}},
			[]string{"AllOrNothing", "Model"},
		},
		"a name is unique among all partitions": {
			broken{commit: everywhere()}, []string{"UniquePerPartition"},
		},
		"contexts are not looked at": {
			broken{commit: func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
				return s.Commit(context.WithoutCancel(ctx), changes...)
			}},
			[]string{"EndedContext"},
		},
	}
}

// knows refuses what it has seen.
func knows() func(storage.Store, context.Context, []storage.Change) []error {
	var mu sync.Mutex
	seen := map[string]bool{}
	return func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
		mu.Lock()
		defer mu.Unlock()
		errs := make([]error, len(changes))
		for i := range changes {
			if seen[changes[i].ID] {
				errs[i] = storage.ErrConflict
			} else if errs[i] = s.Commit(ctx, changes[i])[0]; errs[i] == nil {
				seen[changes[i].ID] = true
			}
		}
		return errs
	}
}

// everywhere has one index of names for all partitions.
func everywhere() func(storage.Store, context.Context, []storage.Change) []error {
	var mu sync.Mutex
	owner := map[string]storage.Partition{}
	return func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
		mu.Lock()
		defer mu.Unlock()
		for i := range changes {
			for _, r := range changes[i].Put {
				v, ok := r.Value.(Thing)
				if p, taken := owner[v.Name]; ok && taken && p != changes[i].Partition {
					return slices.Repeat([]error{error(&storage.DuplicateError{Table: r.Table.Name, Key: "name", Value: v.Name})}, len(changes))
				}
				owner[v.Name] = changes[i].Partition
			}
		}
		return s.Commit(ctx, changes...)
	}
}

// readFaults are stores that show something else than what they have.
func readFaults() map[string]fault {
	return map[string]fault{
		"rows come in the order of their ids": {
			broken{read: func(rows []storage.Row) {
				slices.SortFunc(rows, func(a, b storage.Row) int { return strings.Compare(a.ID, b.ID) })
			}},
			[]string{"Rows"},
		},
		"keys of all partitions are looked for in the first one's": {
			broken{keys: func(keys []storage.Key) []storage.Key {
				for i := range keys {
					keys[i].Partition = keys[0].Partition
				}
				return keys
			}},
			[]string{"RowsByKeys"},
		},
		"rows by what is unique are not found": {
			broken{keys: func(keys []storage.Key) []storage.Key {
				return slices.DeleteFunc(keys, func(k storage.Key) bool { return k.Unique != nil })
			}},
			[]string{"RowsByKeys"},
		},
		"rows by keys have a limit": {
			broken{keys: func(keys []storage.Key) []storage.Key { return keys[:min(len(keys), 500)] }},
			[]string{"RowsByKeys"},
		},
		"pages all begin at the beginning": {
			broken{find: func(s storage.Store, ctx context.Context, q storage.Query) ([]storage.Row, error) {
				q.Offset = 0
				return s.Find(ctx, q)
			}},
			[]string{"FindPages"},
		},
		"only the first order counts": {
			broken{find: func(s storage.Store, ctx context.Context, q storage.Query) ([]storage.Row, error) {
				q.Order = q.Order[:min(1, len(q.Order))]
				return s.Find(ctx, q)
			}},
			[]string{"FindPages"},
		},
		"a condition is passed over": {
			broken{find: func(s storage.Store, ctx context.Context, q storage.Query) ([]storage.Row, error) {
				q.Where = q.Where[:min(1, len(q.Where))]
				return s.Find(ctx, q)
			}},
			[]string{"Find"},
		},
		"one tenant finds another's": {
			broken{find: func(s storage.Store, ctx context.Context, q storage.Query) ([]storage.Row, error) {
				q.Partition = ""
				return s.Find(ctx, q)
			}},
			[]string{"Find", "FindEverywhere"},
		},
		"only the first partition is searched": {
			broken{find: func(s storage.Store, ctx context.Context, q storage.Query) ([]storage.Row, error) {
				q.Partitions = q.Partitions[:min(1, len(q.Partitions))]
				return s.Find(ctx, q)
			}},
			[]string{"FindInPartitions"},
		},
		"no partition means all": {
			broken{find: func(s storage.Store, ctx context.Context, q storage.Query) ([]storage.Row, error) {
				if len(q.Partitions) == 0 {
					q.Partitions = nil
				}
				return s.Find(ctx, q)
			}},
			[]string{"FindInPartitions"},
		},
		"counting ends with the page": {
			broken{count: func(s storage.Store, ctx context.Context, q storage.Query) (int64, error) {
				n, err := s.Count(ctx, q)
				return min(n, page), err
			}},
			[]string{"FindPages"},
		},
		"histories come oldest first": {
			broken{entries: func(list []ledger.Entry) []ledger.Entry {
				slices.Reverse(list)
				return list
			}},
			[]string{"Entries", "Balances"},
		},
		"a history has a gap": {
			broken{entries: func(list []ledger.Entry) []ledger.Entry {
				return slices.DeleteFunc(list, func(e ledger.Entry) bool { return e.Seq == 2 })
			}},
			[]string{"Entries", "W11_DrainToTheFloor"},
		},
		"balances are a little old": {
			broken{balances: old()}, []string{"Balances", "C05_Linearizable"},
		},
		"balances are read one after the other": {
			broken{balances: func(s storage.Store, ctx context.Context, p storage.Partition, accounts []ledger.Account) ([]ledger.Balance, error) {
				all, err := s.Balances(ctx, p, accounts...)
				for i := range all {
					now, err := s.Balances(ctx, p, all[i].Account)
					if err != nil {
						return nil, err
					}
					for _, b := range now {
						if b.Asset == all[i].Asset {
							all[i] = b
						}
					}
					time.Sleep(200 * time.Microsecond) // a look then takes as long as many transfers
				}
				return all, err
			}},
			[]string{"L03_L04_Bank"},
		},
	}
}

// old shows what was there at the last look.
func old() func(storage.Store, context.Context, storage.Partition, []ledger.Account) ([]ledger.Balance, error) {
	var mu sync.Mutex
	last := map[string][]ledger.Balance{}
	return func(s storage.Store, ctx context.Context, p storage.Partition, accounts []ledger.Account) ([]ledger.Balance, error) {
		mu.Lock()
		defer mu.Unlock()
		key := string(p)
		for _, a := range accounts {
			key += " " + string(a)
		}
		now, err := s.Balances(ctx, p, accounts...)
		shown, seen := last[key]
		last[key] = now
		if !seen {
			shown = now
		}
		return slices.Clone(shown), err
	}
}

// claimFaults are stores whose leases are none.
func claimFaults() map[string]fault {
	claimed := func(f func(c *storage.Claim)) broken {
		return broken{claim: func(s storage.Store, ctx context.Context, c storage.Claim) ([]storage.Row, error) {
			f(&c)
			return s.Claim(ctx, c)
		}}
	}
	return map[string]fault{
		"what is not due is claimed": {
			claimed(func(c *storage.Claim) {
				c.Now = c.Now.Add(time.Minute)
				c.Until = c.Until.Add(time.Minute)
			}),
			[]string{"Claim"},
		},
		"claims have no bound":          {claimed(func(c *storage.Claim) { c.Max = 1000 }), []string{"Claim"}},
		"claims look at no conditions":  {claimed(func(c *storage.Claim) { c.Where = nil }), []string{"Claim"}},
		"claims pass over no partition": {claimed(func(c *storage.Claim) { c.Except = nil }), []string{"Claim"}},
		"claims come newest first": {
			broken{claim: func(s storage.Store, ctx context.Context, c storage.Claim) ([]storage.Row, error) {
				rows, err := s.Claim(ctx, c)
				slices.Reverse(rows)
				return rows, err
			}},
			[]string{"Claim"},
		},
	}
}
