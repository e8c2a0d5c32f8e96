package webhook

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

const (
	trimEvery = time.Minute
	trimBatch = 500
)

// trim keeps a tenant's undelivered events below Config.MaxUndelivered: what is
// older than the newest of them is given up, and can be replayed. It looks at most
// once in trimEvery, and notes in gone what it gave up.
//
// It is the oldest that go, and not the newest that are refused: the Change that
// makes an event commits in any case, so a merchant whose receiver is dead can
// take payments.
func (s *Service) trim(ctx context.Context, p storage.Partition, now time.Time, gone map[rowKey]bool) error {
	if !s.trims.due(p, now) {
		return nil
	}
	for given := 0; ; {
		rows, err := s.cfg.Store.Find(ctx, storage.Query{
			Table: Events.Table, Partition: p, Limit: trimBatch, Offset: s.cfg.MaxUndelivered,
			Where: []storage.Cond{{Column: "status", Op: storage.Eq, Value: StatusPending}},
			Order: []storage.Order{{Column: "created_at", Desc: true}},
		})
		if err != nil {
			return fmt.Errorf("webhook: undelivered events of %s: %w", p, err)
		}
		changes := make([]storage.Change, len(rows))
		for i, row := range rows {
			e := Events.Value(row)
			e.Status, e.Done = StatusFailed, now
			e.Error = fmt.Sprintf(givenUp+"more than %d newer events were undelivered", s.cfg.MaxUndelivered)
			changes[i] = s.change(row, e, time.Time{})
			gone[keyOf(row)] = true
		}
		before := given
		if len(changes) > 0 {
			for _, err := range s.cfg.Store.Commit(ctx, changes...) {
				switch {
				case err == nil:
					given++
				case !errors.Is(err, storage.ErrConflict):
					return err
				}
			}
		}
		if len(rows) == trimBatch && given > before {
			continue
		}
		if given > 0 {
			s.cfg.Log.WarnContext(ctx, "webhooks_given_up", slog.String("tenant", tenantOf(p)), slog.Int("events", given))
		}
		return nil
	}
}
