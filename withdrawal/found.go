package withdrawal

import (
	"context"
	"errors"

	"github.com/cryptopay-go/cryptopay/storage"
)

// After a restore from an older backup a withdrawal may look unpaid although the chain has
// its payment. An operator then shows the transaction, and the withdrawal ends as it did.

// Found completes a pending withdrawal that a final transaction tx of ours has paid as
// ordered, which this store knows nothing of. It is never sent again. One that tx completed
// already is returned as it is. by makes the record of who decided so and why, and the event that
// tells of it, for the same Change. *StateError where something was signed for it here, or it has
// ended; ErrNotFound; ErrHandingOver while the hand-over is under way. Any other error: unknown,
// ask again. If this process dies in between, the withdrawal may be cancelled.
func (s *Service) Found(ctx context.Context, tenant, id, tx string, by func(before, after Withdrawal) ([]storage.Row, []storage.Event, error)) (Withdrawal, error) {
	found := func(m *move) error {
		m.w.Tx, m.w.Reason, m.w.Stage = tx, "", Handed
		if err := m.step(onFound, Completed); err != nil {
			return err
		}
		rows, events, err := by(m.was, m.w)
		m.with, m.told = append(m.with, rows...), append(m.told, events...)
		return err
	}
	var read int64
	w, err := s.decide(ctx, tenant, id, func(m *move) error {
		read = m.row.Version
		switch {
		case m.w.found() && m.w.Tx == tx:
			return nil
		case m.w.Status != Pending:
			return &StateError{ID: id, Current: m.w.Status}
		case m.w.Stage != Kept:
			return errHandedOver
		}
		return found(m)
	})
	if !errors.Is(err, errHandedOver) {
		return w, err
	}
	said, err := s.endIntent(ctx, &w)
	if err != nil {
		return w, err
	}
	return s.decide(ctx, tenant, id, func(m *move) error {
		if m.w.found() && m.w.Tx == tx {
			return nil
		}
		if err := said.holds(m, read); err != nil {
			return err
		}
		return found(m)
	})
}

// found reports whether Found completed it: no transaction that is known here did.
func (w *Withdrawal) found() bool { return w.Status == Completed && w.ProcessedAt.IsZero() }
