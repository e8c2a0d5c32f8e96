package refund

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Cancel ends a refund that waits for its address, or whose withdrawal can be cancelled; one
// that is cancelled already is returned as it is. Errors: ErrNotFound; *StateError where it is
// too late; those of withdrawal.Service.Cancel; ErrAltered.
func (s *Service) Cancel(ctx context.Context, tenant, id string) (Refund, error) {
	r, err := s.end(ctx, tenant, id, onCancel)
	if err != nil || r.Status != Pending {
		if err == nil && r.Status != Cancelled {
			err = &StateError{Status: string(r.Status), Reason: "it cannot be cancelled any more"}
		}
		return r, err
	}
	_, err = s.c.Withdrawals.Cancel(ctx, tenant, r.Withdrawal)
	if gone := (*withdrawal.StateError)(nil); errors.As(err, &gone) {
		err = &StateError{Status: string(gone.Current), Reason: "it cannot be cancelled any more"}
	}
	if err != nil {
		return r, err
	}
	return s.Get(ctx, tenant, id)
}

// end cancels a refund that waits for its address, and leaves others as they are.
func (s *Service) end(ctx context.Context, tenant, id string, t trigger) (Refund, error) {
	p := storage.Tenant(tenant)
	var out Refund
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (c storage.Change, err error) {
		r, row, err := s.load(ctx, p, id)
		out = r
		if err != nil || r.Status != AwaitingAddress || t == onExpire && s.now().Before(r.ExpiresAt) {
			return c, err
		}
		if err := s.intact(ctx, tenant, &r); err != nil { // its amount is not to be believed
			return c, err
		}
		if t == onExpire {
			r.Failure = FailureExpired
		}
		c.ID, c.Partition = s.c.NewID(), p
		c.Level = append(c.Level, spent(id))
		giveBack(&r, r.Amount, &c)
		err = s.move(ctx, tenant, &r, row, t, Cancelled, &c)
		out = r
		return c, err
	})
	return out, s.explain(err, &out, nil)
}

// Claims are taken for a minute, a few at a time.
const (
	lease = time.Minute
	batch = 100
)

// Step ends refunds whose claim link was not used in time, and says how many it looked at; 0 =
// nothing is due. Many processes may call it at once. An error is of some refund that is tried
// again later.
func (s *Service) Step(ctx context.Context) (int, error) {
	now := s.now()
	rows, err := s.unread.Claimed(ctx, s.c.Store, storage.Claim{Table: Refunds.Table, Now: now, Until: now.Add(lease), Max: batch}, s.c.Log, func(*storage.RowError) {})
	if err != nil {
		return 0, err
	}
	var failures []error
	for _, row := range rows {
		tenant := strings.TrimPrefix(string(row.Partition), string(storage.Tenant("")))
		if _, err := s.end(ctx, tenant, row.ID, onExpire); err != nil && !errors.Is(err, storage.ErrBusy) {
			s.c.Log.LogAttrs(ctx, slog.LevelError, "refund_step_failed", slog.String("tenant", tenant), slog.String("refund", row.ID), slog.Any("error", err))
			failures = append(failures, err)
		}
	}
	return len(rows), errors.Join(failures...)
}
