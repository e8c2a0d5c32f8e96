package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// tallies are what is counted of every tenant, beside the entries of its wallets, and the
// abilities that say since when every process does.
var tallies = []struct {
	*tally.Tally
	since outgoing.Ability
}{
	{payment.Tally, abilityCounters},
	{withdrawal.Tally, abilityCounters},
	{wallet.Tally, abilityCounters},
	{payment.SuspenseTally, abilitySuspense},
	{webhook.Tally, abilityLog},
	{refund.Tally, abilityLog},
}

func allTallies() (list []*tally.Tally) {
	for _, t := range tallies {
		list = append(list, t.Tally)
	}
	return list
}

// counted lists the tallies that every process counts. all says that this is each of them.
func (a *App) counted(ctx context.Context) (list []*tally.Tally, all bool, err error) {
	for _, t := range tallies {
		on, err := a.able(ctx, t.since)
		if err != nil || !on { // later versions count what earlier ones do
			return list, false, err
		}
		list = append(list, t.Tally)
	}
	return list, true, nil
}

// marks are the rows by which a new tenant's counters hold from its first Change on. While
// processes may run that do not count there are none.
func (a *App) marks(ctx context.Context) ([]storage.Row, error) {
	list, _, err := a.counted(ctx)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	return tally.Mark(list...), nil
}

// ErrNotUpgraded reports that Recount was called while processes may run that do not count
// what they write: their writes would make its counters wrong.
var ErrNotUpgraded = errors.New("cryptopay: processes that do not count may run on this store: call App.Upgraded once none does")

// Recount counts what a tenant has again, mends the counters that differ, and says which
// did. Lists and statistics use them from then on. Other processes may work meanwhile. It
// is for a tenant of which Verify finds Counters. Errors: ErrNotUpgraded; tally.ErrMoving
// where the tenant's rows change faster than they are counted: call it again later;
// *storage.RowErrors of rows that cannot be read, whose groups are left as they are.
func (a *App) Recount(ctx context.Context, tenant string) ([]tally.Difference, error) {
	on, err := a.able(ctx, abilityCounters)
	if err == nil && !on {
		err = ErrNotUpgraded
	}
	if err != nil {
		return nil, err
	}
	return a.recount(ctx, storage.Tenant(tenant))
}

func (a *App) recount(ctx context.Context, p storage.Partition) ([]tally.Difference, error) {
	var out []tally.Difference
	var unread storage.RowErrors
	list, _, err := a.counted(ctx)
	if err != nil {
		return nil, err
	}
	for _, t := range list {
		found, err := t.Recount(ctx, a.cfg.Store, p, a.cfg.NewID)
		out = append(out, found...)
		if err = unread.Take(err); err != nil {
			return out, err
		}
	}
	found, err := tally.RecountEntries(ctx, a.cfg.Store, p, a.cfg.NewID)
	out = append(out, found...)
	if err = unread.With(err); err != nil {
		return out, err
	}
	return out, storage.Decide(ctx, a.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		missing, err := a.unmarked(ctx, p, list)
		if err != nil || len(missing) == 0 {
			return storage.Change{}, err
		}
		return storage.Change{ID: a.cfg.NewID(), Partition: p, Put: missing}, nil
	})
}

// unmarked are the markers of tallies that a tenant does not have yet.
func (a *App) unmarked(ctx context.Context, p storage.Partition, list []*tally.Tally) ([]storage.Row, error) {
	all := tally.Mark(list...)
	ids := make([]string, len(all))
	for i := range all {
		ids[i] = all[i].ID
	}
	there, err := a.cfg.Store.Rows(ctx, storage.Counters.Table, storage.Keys(p, ids...)...)
	return slices.DeleteFunc(all, func(r storage.Row) bool {
		return slices.ContainsFunc(there, func(t storage.Row) bool { return t.ID == r.ID })
	}), err
}

// countersEvery is how long the worker waits between two looks at tenants whose counters
// do not hold.
const countersEvery = time.Minute

// countersAgain is how long it waits before it counts tenants again that were written to
// all the time: that reads all of their rows.
const countersAgain = time.Hour

// counting is the worker that makes the counters of tenants which an earlier version made.
// One round over all tenants is enough: later ones have theirs from the beginning.
type counting struct {
	a     *App
	mu    sync.Mutex
	after string // the tenant that was looked at last
	left  bool   // of this round, some are to be looked at again
	done  bool
	rest  time.Time
}

func (c *counting) step(ctx context.Context) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.a.cfg.Clock.Now()
	if c.done || now.Before(c.rest) {
		return 0, nil
	}
	list, all, err := c.a.counted(ctx)
	if err != nil || !all {
		c.rest = now.Add(countersEvery)
		return 0, err
	}
	tenants, unread, err := storage.Others(ctx, c.a.cfg.Store, storage.Query{
		Table: wallet.TenantRows.Table, Partition: storage.System, Limit: roundTenants, IDs: true,
		Where: []storage.Cond{{Column: storage.ColID, Op: storage.Gt, Value: c.after}},
	})
	if err != nil {
		return 0, err
	}
	var keys []storage.Key
	marks := tally.Mark(list...)
	for _, t := range tenants {
		for _, m := range marks {
			keys = append(keys, storage.Key{Partition: storage.Tenant(t.ID), ID: m.ID})
		}
	}
	there, err := c.a.cfg.Store.Rows(ctx, storage.Counters.Table, keys...)
	if err != nil {
		return 0, err
	}
	marked := map[storage.Partition]int{}
	for _, r := range there {
		marked[r.Partition]++
	}
	worked := 0
	failures := []error{unread.With(nil)}
	for _, t := range tenants {
		if p := storage.Tenant(t.ID); marked[p] < len(marks) {
			failures = append(failures, c.make(ctx, p))
			if ctx.Err() != nil {
				break
			}
			worked++
		}
		c.after = t.ID
	}
	if err = errors.Join(failures...); ctx.Err() != nil {
		return worked, err
	}
	if len(tenants) == roundTenants {
		return max(worked, 1), err
	}
	c.after, c.done, c.rest, c.left = "", !c.left, now.Add(countersAgain), false
	return worked, err
}

// make makes one tenant's counters. One that is written to all the time, or that cannot be
// read, comes again.
func (c *counting) make(ctx context.Context, p storage.Partition) error {
	_, err := c.a.recount(ctx, p)
	if errors.Is(err, tally.ErrMoving) {
		c.left = true
		c.a.cfg.Log.WarnContext(ctx, "counters_not_made", slog.String("partition", string(p)), slog.Any("error", err))
		return nil
	}
	if err != nil {
		c.left = true
		return fmt.Errorf("counting %s: %w", p, err)
	}
	return nil
}
