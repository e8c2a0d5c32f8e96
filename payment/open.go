package payment

import (
	"context"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

const (
	openPage = 1000
	// openFor is how long the list of open payments is kept. Until then only those that
	// are new are read.
	openFor = time.Minute
	// openBefore is how long the commit of a new payment may take to be seen by others.
	openBefore = 2 * time.Minute
)

// opened is the list of one network's open payments, as it was last read.
type opened struct {
	mu    sync.Mutex
	since time.Time       // when all were read
	found []chain.Address // then and since
	list  []chain.Address // those, and what was found in the time before
	known map[chain.Address]bool
}

// Open lists the addresses of a network that now wait for its native coin, for
// incoming.Config.Open: transfers that only balances show are looked for there at each
// block. It lists them all, and some whose payment ended within the last two minutes. Where
// the store fails, it returns the error and the list as it was.
func (s *Service) Open(ctx context.Context, n chain.Network) ([]chain.Address, error) {
	gas, err := s.c.Registry.Gas(n)
	if err != nil {
		return nil, err
	}
	v, _ := s.opened.LoadOrStore(n, new(opened))
	o := v.(*opened) //nolint:forcetypeassert // nothing else is stored there
	o.mu.Lock()
	defer o.mu.Unlock()
	now := s.now()
	from := o.since.Add(-openBefore)
	if o.since.IsZero() || !now.Before(o.since.Add(openFor)) || now.Before(o.since) {
		from = time.Time{}
	}
	found, err := s.waiting(ctx, gas.Code, from)
	if err != nil {
		return o.list, err
	}
	var before []chain.Address
	if from.IsZero() {
		if now.Sub(o.since) < 2*openFor {
			before = o.found // a payment may have gone back to an earlier status while all were read
		}
		o.found, o.list, o.known, o.since = nil, nil, map[chain.Address]bool{}, now
	}
	o.found = append(o.found, o.add(found)...)
	o.add(before)
	return o.list[:len(o.list):len(o.list)], nil
}

// add lists addresses, each once, and returns those that are new.
func (o *opened) add(addresses []chain.Address) (fresh []chain.Address) {
	for _, a := range addresses {
		if !o.known[a] {
			o.known[a] = true
			fresh = append(fresh, a)
		}
	}
	o.list = append(o.list, fresh...)
	return fresh
}

// waiting reads the addresses of unsettled payments in a currency that were created at
// a time or later: status by status, in the order in which payments go through them, so
// that none slips past that moves on meanwhile. One that goes back may slip past.
func (s *Service) waiting(ctx context.Context, currency string, from time.Time) (out []chain.Address, err error) {
	for _, status := range unsettled {
		found, err := s.waitingIn(ctx, currency, status, from)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// waitingIn reads page by page. A page begins at the time of the last payment before it,
// of which seen were created just then.
func (s *Service) waitingIn(ctx context.Context, currency string, status Status, from time.Time) (out []chain.Address, err error) {
	seen := map[string]bool{}
	for {
		where := []storage.Cond{
			{Column: "currency", Op: storage.Eq, Value: currency}, {Column: "status", Op: storage.Eq, Value: status},
		}
		if !from.IsZero() {
			where = append(where, storage.Cond{Column: "created_at", Op: storage.Ge, Value: from})
		}
		rows, err := s.c.Store.Find(ctx, storage.Query{
			Table: Payments.Table, Limit: openPage + len(seen), Where: where, Order: []storage.Order{{Column: "created_at"}},
		})
		if err != nil {
			return nil, err
		}
		full := len(rows) == openPage+len(seen)
		for _, r := range rows {
			p := Payments.Value(r)
			if seen[r.ID] {
				continue
			}
			if p.CreatedAt.After(from) {
				from = p.CreatedAt
				clear(seen)
			}
			seen[r.ID] = true
			out = append(out, chain.Address(p.Address))
		}
		if !full {
			return out, nil
		}
	}
}
