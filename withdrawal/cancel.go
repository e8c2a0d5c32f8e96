package withdrawal

import (
	"context"
	"errors"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

var (
	never         time.Time
	errHandedOver = errors.New("withdrawal: the payout side may know it")
)

// Cancel ends a pending withdrawal and releases its hold; one that is cancelled
// already is returned as it is. *StateError where it is too late, ErrNotFound,
// ErrHandingOver where it cannot be told yet. Any other error: unknown, ask again.
func (s *Service) Cancel(ctx context.Context, tenant, id string) (Withdrawal, error) {
	w, err := s.decide(ctx, tenant, id, func(m *move) error {
		switch {
		case m.w.Status == Cancelled:
			return nil
		case m.w.Status != Pending:
			return &StateError{ID: id, Current: m.w.Status}
		case m.w.Stage != Kept:
			return errHandedOver
		}
		return m.step(onCancel, Cancelled)
	})
	if errors.Is(err, errHandedOver) {
		return s.recall(ctx, w)
	}
	return w, err
}

// recall cancels what the payout side may know: it must give its word first.
// Should this process die in between, the payout side's Outcome cancels it.
func (s *Service) recall(ctx context.Context, w Withdrawal) (Withdrawal, error) {
	ended, err := s.endIntent(ctx, &w)
	if err != nil {
		return w, err
	}
	return s.decide(ctx, w.Tenant, w.ID, func(m *move) error {
		switch {
		case m.w.Status == Cancelled:
			return nil
		case m.w.Status != Pending:
			return &StateError{ID: m.w.ID, Current: m.w.Status}
		case !ended: // signed, and the news is still on its way
			return &StateError{ID: m.w.ID, Current: Processing}
		}
		return m.step(onCancel, Cancelled)
	})
}

// endIntent asks the payout side for its word.
func (s *Service) endIntent(ctx context.Context, w *Withdrawal) (ended bool, err error) {
	var wait *WaitError
	if why, _, err := s.altered(ctx, storage.Tenant(w.Tenant), w); why != "" || err != nil {
		return false, errors.Join(err, alteredError(why))
	}
	if w.Stage == Handing {
		// A worker may be about to submit it, or may come back from a long sleep
		// to do so. Once submitted and ended, the id has no effect any more.
		switch err := s.c.Payouts.Submit(ctx, w.intent()); {
		case errors.Is(err, chain.ErrRejected):
			return true, nil
		case err != nil && !errors.As(err, &wait):
			return false, err
		}
	}
	ended, err = s.c.Payouts.Cancel(ctx, chain.Network(w.Network), w.ID)
	switch {
	case !errors.Is(err, ErrNoIntent) || wait == nil:
		return ended, err
	case w.Waiting == "":
		return false, ErrHandingOver
	}
	// It was not taken, cannot be now, and the worker that tried has noted so:
	// nobody who still holds a lease submits it. One who outslept his lease finds
	// it cancelled and ends what he submitted, see handOver.
	return true, nil
}

// Hold freezes a withdrawal that was not handed over yet, until Release.
// *StateError where it is too late.
func (s *Service) Hold(ctx context.Context, tenant, id, reason string) (Withdrawal, error) {
	return s.review(ctx, tenant, id, func(m *move) error {
		m.w.Frozen, m.w.Reason = true, reason
		m.wait(WaitingFrozen, never)
		return nil
	})
}

// Release ends a Hold: the withdrawal is due at once.
func (s *Service) Release(ctx context.Context, tenant, id string) (Withdrawal, error) {
	return s.review(ctx, tenant, id, func(m *move) error {
		m.w.Frozen, m.w.Reason = false, ""
		if m.w.Review == ReviewWanted {
			m.wait(m.w.awaited(), never)
		} else {
			m.wait("", m.now)
		}
		return nil
	})
}

// review is a person's decision on what the payout side cannot know yet.
func (s *Service) review(ctx context.Context, tenant, id string, f func(m *move) error) (Withdrawal, error) {
	return s.decide(ctx, tenant, id, func(m *move) error {
		if m.w.Status != Pending || m.w.Stage != Kept {
			return &StateError{ID: id, Current: m.w.Status}
		}
		m.changed = true
		return f(m)
	})
}
