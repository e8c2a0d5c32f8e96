package storagetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// changeFaults are stores that do something else than what they were told.
func changeFaults() map[string]fault {
	var n atomic.Int64
	return map[string]fault{
		"guards are not looked at": {
			broken{commit: each(func(c *storage.Change) { c.Require = nil })}, []string{"Guards", "JudgedOrder"},
		},
		"ceilings are not kept": {
			broken{commit: each(func(c *storage.Change) { c.Level = nil })}, []string{"Level", "JudgedOrder"},
		},
		"counts are forgotten": {
			broken{commit: each(func(c *storage.Change) { c.Count = nil })}, []string{"FP05_Count", "FP05_CountTogether", "Model"},
		},
		"a counter counts once in a change": {
			broken{commit: each(func(c *storage.Change) {
				seen := map[string]bool{}
				c.Count = slices.DeleteFunc(slices.Clone(c.Count), func(n storage.Count) bool {
					twice := seen[n.Name]
					seen[n.Name] = true
					return twice
				})
			})},
			[]string{"FP05_Count", "Model"},
		},
		"counters have a floor": {
			broken{commit: each(func(c *storage.Change) {
				c.Count = slices.DeleteFunc(slices.Clone(c.Count), func(n storage.Count) bool { return n.Delta < 0 })
			})},
			[]string{"FP05_Count", "Model"},
		},
		"what did not happen counts": {
			broken{commit: func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
				errs := s.Commit(ctx, changes...)
				for i := range changes {
					if errs[i] != nil && len(changes[i].Count) > 0 {
						alone := storage.Change{ID: fmt.Sprint("count", n.Add(1)), Partition: changes[i].Partition, Count: changes[i].Count}
						alone.Put = []storage.Row{Notes.Row(alone.ID, 0, time.Time{}, Note{})}
						s.Commit(ctx, alone)
					}
				}
				return errs
			}},
			[]string{"FP05_Count"},
		},
		"empty is not looked at": {
			broken{commit: each(func(c *storage.Change) { c.Empty = nil })}, []string{"Empty"},
		},
		"a change sent again happens again": {
			broken{commit: each(func(c *storage.Change) {
				again := n.Add(1)
				c.ID = fmt.Sprint(c.ID[:min(len(c.ID), 50)], "#", again)
				txs := append([]ledger.Tx{}, c.Post...)
				for i := range txs {
					txs[i].ID = fmt.Sprint(txs[i].ID, "#", again)
				}
				c.Post = txs
			})},
			[]string{"ThereAlready", "L02_LostAnswers", "D08_SameChangeTwice"},
		},
		"the slice is atomic": {
			broken{commit: func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
				for i := range changes {
					if err := s.Commit(ctx, changes[i])[0]; err != nil {
						return make([]error, len(changes))
					}
				}
				return make([]error, len(changes))
			}},
			[]string{"SliceIsNotAtomic", "W11_DrainToTheFloor", "C05_Linearizable"},
		},
		"postings are forgotten": {
			broken{commit: each(func(c *storage.Change) {
				if len(c.Put) > 0 {
					c.Post = nil
				}
			})},
			[]string{"D08_SameChangeTwice"},
		},
		"text is folded": {
			broken{commit: each(func(c *storage.Change) {
				rows := append([]storage.Row{}, c.Put...)
				for i := range rows {
					if v, ok := rows[i].Value.(Thing); ok {
						v.Name = strings.TrimRight(strings.ToLower(v.Name), " ")
						rows[i].Value = v
					}
				}
				c.Put = rows
			})},
			[]string{"I03_TextIsBytes", "RoundTrip"},
		},
		"claims do not lease": {
			broken{claim: func(s storage.Store, ctx context.Context, c storage.Claim) ([]storage.Row, error) {
				c.Until = c.Now.Add(1000)
				return s.Claim(ctx, c)
			}},
			[]string{"Claim"},
		},
		"claims do not raise the version": {
			broken{claim: func(s storage.Store, ctx context.Context, c storage.Claim) ([]storage.Row, error) {
				rows, err := s.Claim(ctx, c)
				for i := range rows {
					rows[i].Version--
				}
				return rows, err
			}},
			[]string{"Claim", "ClaimFences", "ClaimsNeverOverlap"},
		},
		"values are shared": {
			broken{read: func(rows []storage.Row) {
				for i := range rows {
					rows[i].Value = rows[0].Value
				}
			}},
			[]string{"NoAliasing"},
		},
		"L11 a wallet below zero hidden in a sum of zero": {
			broken{ledger: func(list []ledger.Balance) {
				for i := range list {
					if list[i].Account.Floored() && list[i].Posted > 0 {
						list[i].Held = list[i].Posted + 1
						return
					}
				}
			}},
			[]string{"ThereAlready", "Entries"},
		},
		"versions are not looked at": {
			broken{commit: func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
				return each(func(c *storage.Change) {
					c.Put, c.Drop = newest(s, ctx, c.Partition, c.Put), newest(s, ctx, c.Partition, c.Drop)
				})(s, ctx, changes)
			}},
			[]string{"Versions", "ClaimFences", "Model"},
		},
		"no floor": {
			broken{
				commit: each(func(c *storage.Change) {
					for i := range c.Post {
						legs := slices.Clone(c.Post[i].Legs)
						for k := range legs {
							legs[k].Account = sunk(legs[k].Account)
						}
						c.Post = slices.Clone(c.Post)
						c.Post[i].Legs = legs
					}
					c.Empty = slices.Clone(c.Empty)
					for i := range c.Empty {
						c.Empty[i] = sunk(c.Empty[i])
					}
				}),
				balances: func(s storage.Store, ctx context.Context, p storage.Partition, accounts []ledger.Account) ([]ledger.Balance, error) {
					accounts = slices.Clone(accounts)
					for i := range accounts {
						accounts[i] = sunk(accounts[i])
					}
					list, err := s.Balances(ctx, p, accounts...)
					for i := range list {
						list[i].Account = ledger.Account(strings.Replace(string(list[i].Account), "wallet:", "wallet/", 1))
					}
					return list, err
				},
			},
			[]string{"Floors", "W11_DrainToTheFloor", "L03_L04_Bank", "C05_Linearizable"},
		},
		"holds are forgotten": {
			broken{commit: legs(func(l *ledger.Leg) { l.Hold = 0 })},
			[]string{"Floors", "Model"},
		},
		"the id of a transaction may be taken twice": {
			broken{commit: each(func(c *storage.Change) {
				c.Post = slices.Clone(c.Post)
				for i := range c.Post {
					c.Post[i].ID = c.Post[i].ID[:min(len(c.Post[i].ID), 60)] + "@" + c.ID[:min(len(c.ID), 60)]
				}
			})},
			[]string{"Model", "JudgedOrder"},
		},
		"an event is lost": {
			broken{commit: each(func(c *storage.Change) {
				if len(c.Put) > 1 {
					c.Put = c.Put[:len(c.Put)-1]
				}
			})},
			[]string{"FindPages", "Model"},
		},
		"what is dropped stays": {
			broken{commit: each(func(c *storage.Change) {
				if len(c.Put)+len(c.Post) > 0 {
					c.Drop = nil
				}
			})},
			[]string{"Model"},
		},
		"counters do not go down": {
			broken{commit: each(func(c *storage.Change) {
				c.Level = slices.DeleteFunc(slices.Clone(c.Level), func(l storage.Level) bool { return l.Delta < 0 })
			})},
			[]string{"Level"},
		},
		"times are cut to seconds": {
			broken{commit: each(func(c *storage.Change) {
				c.Put = slices.Clone(c.Put)
				for i := range c.Put {
					if v, ok := c.Put[i].Value.(Thing); ok {
						v.At = v.At.Truncate(time.Second)
						c.Put[i].Value = v
					}
				}
			})},
			[]string{"RoundTrip"},
		},
		"acknowledged before it is written": {
			broken{commit: late()}, []string{"Versions", "Balances", "C05_Linearizable"},
		},
		"an acknowledged change is lost now and then": {
			broken{commit: func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
				if n.Add(1)%97 == 0 {
					return make([]error, len(changes))
				}
				return s.Commit(ctx, changes...)
			}},
			[]string{"L03_L04_Bank", "W11_DrainToTheFloor", "Model"},
		},
		"partitions are locked in the order of arrival": {
			broken{commit: unsorted()}, []string{"ManyPartitions"},
		},
	}
}

// newest gives rows the versions that the store has.
func newest(s storage.Store, ctx context.Context, p storage.Partition, rows []storage.Row) []storage.Row {
	rows = slices.Clone(rows)
	for i := range rows {
		if rows[i].Table == nil {
			continue
		}
		have, err := s.Rows(ctx, rows[i].Table, storage.Keys(p, rows[i].ID)...)
		if err == nil && rows[i].Version != 0 && len(have) > 0 {
			rows[i].Version = have[0].Version
		}
	}
	return rows
}

// sunk is an account without a floor in a wallet's place.
func sunk(a ledger.Account) ledger.Account {
	return ledger.Account(strings.Replace(string(a), "wallet/", "wallet:", 1))
}

// legs changes every leg before it is committed.
func legs(f func(*ledger.Leg)) func(storage.Store, context.Context, []storage.Change) []error {
	return each(func(c *storage.Change) {
		c.Post = slices.Clone(c.Post)
		for i := range c.Post {
			c.Post[i].Legs = slices.Clone(c.Post[i].Legs)
			for k := range c.Post[i].Legs {
				f(&c.Post[i].Legs[k])
			}
		}
	})
}

// late answers at once, and writes when it is called again.
func late() func(storage.Store, context.Context, []storage.Change) []error {
	var mu sync.Mutex
	var waiting []storage.Change
	return func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
		mu.Lock()
		defer mu.Unlock()
		s.Commit(ctx, waiting...)
		waiting = slices.Clone(changes)
		return make([]error, len(changes))
	}
}

// unsorted takes locks as they come, so that two callers wait for each other; it
// gives up as a database does.
func unsorted() func(storage.Store, context.Context, []storage.Change) []error {
	var mu sync.Mutex
	locks := map[storage.Partition]chan bool{}
	lock := func(p storage.Partition) chan bool {
		mu.Lock()
		defer mu.Unlock()
		if locks[p] == nil {
			locks[p] = make(chan bool, 1)
		}
		return locks[p]
	}
	return func(s storage.Store, ctx context.Context, changes []storage.Change) []error {
		held := map[storage.Partition]bool{}
		defer func() {
			for p := range held {
				<-lock(p)
			}
		}()
		for i := range changes {
			p := changes[i].Partition
			if held[p] {
				continue
			}
			select {
			case lock(p) <- true:
				held[p] = true
				time.Sleep(time.Millisecond) // the way to the server
			case <-time.After(100 * time.Millisecond):
				return slices.Repeat([]error{errors.New("deadlock")}, len(changes))
			}
		}
		return s.Commit(ctx, changes...)
	}
}
