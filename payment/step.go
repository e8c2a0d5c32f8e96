package payment

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Step decides what time alone decides: payments whose window has ended, as far
// as their chain was read, and those that treasury did not finish. It returns
// how many it worked on; 0 means that nothing is due.
func (s *Service) Step(ctx context.Context) (worked int, err error) {
	now := s.now()
	n, err := s.step(ctx, storage.Claim{
		Table: Payments.Table, Now: now,
		Where: []storage.Cond{{Column: "status", Op: storage.In, Value: []Status{Confirmed, Sending, Completed, Expired, Failed}}, s.listed()},
	}, "", time.Time{})
	worked += n
	n, retireErr := s.stepAddresses(ctx)
	worked, err = worked+n, errors.Join(err, retireErr)
	for _, network := range s.networks {
		cursor, headErr := s.c.Head(ctx, network)
		if headErr != nil || cursor.TipRead.IsZero() {
			err = errors.Join(err, headErr)
			continue
		}
		// Only what lies before the last tip that was read can be decided.
		until := earlier(now, cursor.TipRead.Add(-time.Microsecond))
		n, stepErr := s.step(ctx, storage.Claim{
			Table: Payments.Table, Now: until,
			Where: []storage.Cond{
				{Column: "network", Op: storage.Eq, Value: string(network)},
				{Column: "status", Op: storage.In, Value: unsettled},
				s.listed(),
			},
		}, network, cursor.TipRead)
		worked, err = worked+n, errors.Join(err, stepErr)
	}
	return worked, err
}

// listed is the condition on payments that this process decides about. The others are
// left to a process that lists their currency.
func (s *Service) listed() storage.Cond {
	return storage.Cond{Column: "currency", Op: storage.In, Value: append(s.c.Registry.Codes(), s.c.Retired...)}
}

// claimMax is how many payments are decided together: few enough for half a lease, and many
// enough that what a commit costs by itself is a small part.
const claimMax = 500

// step decides about a batch of due payments; those of a network are about to expire.
func (s *Service) step(ctx context.Context, c storage.Claim, network chain.Network, tipRead time.Time) (int, error) {
	c.Until, c.Max = s.now().Add(s.c.Lease), claimMax
	rows, err := s.unread.Claimed(ctx, s.c.Store, c, s.c.Log, func(r *storage.RowError) {
		tenant := strings.TrimPrefix(string(r.Partition), string(storage.Tenant("")))
		s.tell(ctx, tenant, []Alert{{Kind: AlertUnreadable, Payment: r.ID, Text: "its stored row cannot be read, so it is not worked on: put it right in the database"}})
	})
	if err != nil {
		return 0, err
	}
	undecided, err := s.undecided(ctx, network, rows)
	if err != nil {
		return len(rows), err
	}
	all := len(rows)
	rows = slices.DeleteFunc(rows, func(r storage.Row) bool {
		p := Payments.Value(r)
		return !strings.HasPrefix(string(r.Partition), string(storage.Tenant(""))) || undecided[p.Address]
	})
	tenant := func(r storage.Row) string { return strings.TrimPrefix(string(r.Partition), string(storage.Tenant(""))) }
	one := func(r storage.Row) string { return tenant(r) + "/" + r.ID }
	errs := storage.Work(ctx, s.c.Store, rows, one, func(ctx context.Context, r storage.Row) error { return s.tick(ctx, tenant(r), r, tipRead) })
	for i, err := range errs {
		switch {
		case err != nil && ctx.Err() != nil:
			return all, err
		case err != nil && !errors.Is(err, storage.ErrBusy): // then it is due again
			s.c.Log.LogAttrs(ctx, slog.LevelError, "payment_step_failed", slog.String("tenant", tenant(rows[i])), slog.String("payment", rows[i].ID), slog.String("error", err.Error()))
		}
	}
	return all, nil
}

// undecided reports at which addresses something has come that is not decided yet: their
// payments expire later, if they still do then.
func (s *Service) undecided(ctx context.Context, network chain.Network, rows []storage.Row) (map[string]bool, error) {
	if s.c.Undecided == nil || network == "" || len(rows) == 0 {
		return nil, nil
	}
	addresses := make([]string, len(rows))
	for i, r := range rows {
		p := Payments.Value(r)
		addresses[i] = p.Address
	}
	return s.c.Undecided(ctx, network, addresses...)
}

// tick lets time pass for one claimed payment, and writes its next due time. The claim
// has read the payment. It is read again only where somebody wrote it meanwhile.
func (s *Service) tick(ctx context.Context, tenant string, claimed storage.Row, tipRead time.Time) error {
	read := true
	return s.decide(ctx, tenant, func(ctx context.Context) (*decision, error) {
		x := &decision{p: Payments.Value(claimed), version: claimed.Version}
		var err error
		if read {
			err = s.fill(ctx, tenant, x.p.Network, x, "")
		} else {
			x, err = s.byID(ctx, tenant, claimed.ID)
		}
		read = false
		if err != nil {
			return nil, err
		}
		if err := s.endWatch(ctx, x); err != nil {
			return nil, err
		}
		return x, s.prepare(ctx, tenant, x, nil)
	}, func(x *decision) error {
		x.touched = true
		return x.onTime(tipRead)
	})
}

// endWatch writes into the directory of addresses, once the payment is over,
// for how long its address is still worth looking at.
func (s *Service) endWatch(ctx context.Context, x *decision) error {
	if !x.p.over() || x.p.AddressID != "" || x.watch < 0 || !x.p.WatchedUntil.IsZero() || x.now.Before(x.p.ExpiresAt.Add(holdFor)) {
		return nil
	}
	until := x.p.ExpiresAt.Add(max(x.watch, holdFor))
	err := s.watchUntil(ctx, x.p.Network, x.p.Address, until)
	if err == nil {
		x.p.WatchedUntil = until
	}
	return err
}

// watchUntil writes into the directory when the watching of an address ends; the zero time
// is never.
func (s *Service) watchUntil(ctx context.Context, network, address string, until time.Time) error {
	part := storage.Network(network)
	return storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		a, row, ok, err := incoming.Addresses.One(ctx, s.c.Store, part, address)
		if err != nil || !ok || a.WatchUntil.Equal(until) {
			return storage.Change{}, err
		}
		a.WatchUntil = until
		return storage.Change{
			ID: s.c.NewID(), Partition: part,
			Put: []storage.Row{incoming.Addresses.Row(row.ID, row.Version, row.Due, a)},
		}, nil
	})
}
