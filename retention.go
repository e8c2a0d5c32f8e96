package cryptopay

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// Retention says for how long rows are kept that have come to their end and that
// nothing stands on any more. Zero = for ever. First responses of idempotent
// requests go after a day in any case.
//
// What Verify proves the books by, what a deep reorg may need again, and what
// keeps a transaction from being signed or sent twice is kept whatever is said
// here: payments, deposits, withdrawals, transfers, activity, sightings,
// addresses, intents, attempts, outcomes, coins, sweeps and the ledger.
type Retention struct {
	// Events is how long a webhook stays in the outbox after it was delivered, or
	// passed over as nobody wanted it. At least 24 hours.
	Events time.Duration
	// FailedEvents is the same for those whose whole schedule was tried; they can
	// be replayed as long as they are kept. At least 24 hours.
	FailedEvents time.Duration
	// Stream is how long an event stays after every consumer has handled it: for consumers
	// to come, and for App.Subscribe. At least 24 hours. Defaults to 30 days; below 0 is for
	// ever.
	Stream time.Duration
}

func (r Retention) check() error {
	for _, d := range []time.Duration{r.Events, r.FailedEvents} {
		if d != 0 && d < storage.OnceFor {
			return fmt.Errorf("cryptopay: Config.Retention keeps rows for %s: say at least %s, or 0 to keep them", d, storage.OnceFor)
		}
	}
	if 0 < r.Stream && r.Stream < storage.OnceFor {
		return fmt.Errorf("cryptopay: Config.Retention.Stream keeps events for %s: say at least %s, or below 0 to keep them", r.Stream, storage.OnceFor)
	}
	return nil
}

const (
	retainEvery = time.Hour // between two rounds over all tenants
	retainBatch = 500       // rows that one Step purges, about
)

// retention is the worker that purges, where anything is to be purged.
func (a *App) retention() []Worker {
	if a.cfg.Retention.Events == 0 && a.cfg.Retention.FailedEvents == 0 {
		return nil
	}
	r := &round{a: a, every: retainEvery, batch: retainBatch, tenant: a.purge}
	return []Worker{{Name: "retention", Every: time.Minute, Step: r.step}}
}

// purge purges at most retainBatch rows of each kind.
func (a *App) purge(ctx context.Context, s storage.Store, p storage.Partition, now time.Time) (int, error) {
	keep, worked := a.cfg.Retention, 0
	var unread storage.RowErrors
	for _, k := range []struct {
		status webhook.Status
		keep   time.Duration
	}{
		{webhook.StatusDelivered, keep.Events},
		{webhook.StatusSkipped, keep.Events},
		{webhook.StatusFailed, keep.FailedEvents},
	} {
		if k.keep == 0 {
			continue
		}
		rows, broken, err := storage.Others(ctx, s, storage.Query{
			Table: webhook.Events.Table, Partition: p, Limit: retainBatch, Order: []storage.Order{{Column: "created_at"}},
			Where: []storage.Cond{
				{Column: "status", Op: storage.Eq, Value: k.status},
				{Column: "created_at", Op: storage.Lt, Value: now.Add(-k.keep)}, // along the index
				{Column: "done_at", Op: storage.Lt, Value: now.Add(-k.keep)},
			},
		})
		if err != nil {
			return worked, err
		}
		_ = unread.Take(broken.With(nil))
		n, err := drop(ctx, s, p, rows, webhook.Lost)
		if worked += n; err != nil {
			return worked, err
		}
	}
	return worked, unread.With(nil)
}

// drop forgets rows as they were read: one that is in use again meanwhile, as
// by a replay, has another version and stays. counts says what each was counted as.
func drop(ctx context.Context, s storage.Store, p storage.Partition, rows []storage.Row, counts func(storage.Row) []storage.Count) (int, error) {
	if len(rows) == 0 {
		return 0, nil
	}
	changes := make([]storage.Change, len(rows))
	for i, row := range rows {
		id := row.ID
		if len(id) > maxRetainID {
			id = id[len(id)-maxRetainID:]
		}
		changes[i] = storage.Change{
			ID: "retain/" + strconv.FormatInt(row.Version, 36) + "/" + id, Partition: p, Drop: []storage.Row{row}, Count: counts(row),
		}
	}
	n := 0
	for _, err := range s.Commit(ctx, changes...) {
		switch {
		case err == nil:
			n++
		case !errors.Is(err, storage.ErrConflict):
			return n, err
		}
	}
	return n, nil
}

// maxRetainID leaves room for the rest of a Change's id.
const maxRetainID = 150
