package withdrawal

import (
	"context"
	"errors"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/internal/person"
	"github.com/cryptopay-go/cryptopay/ledger"
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
	var read int64
	w, err := s.decide(ctx, tenant, id, func(m *move) error {
		read = m.row.Version
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
		return s.recall(ctx, w, read)
	}
	return w, err
}

// recall cancels what the payout side may know: it must give its word first. read is the
// version of the row that w was read from. Should this process die in between, the payout
// side's Outcome cancels it.
func (s *Service) recall(ctx context.Context, w Withdrawal, read int64) (Withdrawal, error) {
	said, err := s.endIntent(ctx, &w)
	if err != nil {
		return w, err
	}
	return s.decide(ctx, w.Tenant, w.ID, func(m *move) error {
		if m.w.Status == Cancelled {
			return nil
		}
		if err := said.holds(m, read); err != nil {
			return err
		}
		return m.step(onCancel, Cancelled)
	})
}

// word is what the payout side said of an intent that was to be ended.
type word struct {
	ended  bool // nothing of it will ever be signed
	absent bool // because the payout side did not take it: a worker may hand it over since
}

// holds is nil where the withdrawal may end by the word, which was given on the row's version
// read.
func (said word) holds(m *move, read int64) error {
	switch {
	case m.w.Status != Pending:
		return &StateError{ID: m.w.ID, Current: m.w.Status}
	case !said.ended: // signed, and the news is still on its way
		return &StateError{ID: m.w.ID, Current: Processing}
	case said.absent && m.row.Version != read:
		return ErrHandingOver
	}
	return nil
}

// endIntent asks the payout side for its word.
func (s *Service) endIntent(ctx context.Context, w *Withdrawal) (said word, err error) {
	var wait *WaitError
	if why, _, err := s.altered(ctx, storage.Tenant(w.Tenant), w); why != "" || err != nil {
		return said, errors.Join(err, alteredError(why))
	}
	if w.Stage == Handing {
		// A worker may be about to submit it, or may come back from a long sleep
		// to do so. Once submitted and ended, the id has no effect any more.
		switch err := s.c.Payouts.Submit(ctx, w.intent()); {
		case errors.Is(err, chain.ErrRejected):
			return word{ended: true, absent: true}, nil
		case err != nil && !errors.As(err, &wait):
			return said, err
		}
	}
	said.ended, err = s.c.Payouts.Cancel(ctx, chain.Network(w.Network), w.ID)
	switch {
	case !errors.Is(err, ErrNoIntent) || wait == nil:
		return said, err
	case w.Waiting == "":
		return said, ErrHandingOver
	}
	// It was not taken, cannot be now, and the worker that tried has noted so:
	// nobody who still holds a lease submits it, unless he writes the row first. One who
	// outslept his lease finds it cancelled and ends what he submitted, see handOver.
	return word{ended: true, absent: true}, nil
}

// Hold freezes a withdrawal that was not handed over yet, until Release. by names who does it,
// reason says why: both are recorded in the same Change. *InvalidError; *StateError where it is
// too late.
func (s *Service) Hold(ctx context.Context, tenant, id, by, reason string) (Withdrawal, error) {
	return s.review(ctx, tenant, id, audit.Act{Kind: audit.Hold, By: by, Reason: reason, Tell: true}, func(m *move) error {
		m.w.Frozen, m.w.Reason = true, reason
		m.wait(WaitingFrozen, never)
		return nil
	})
}

// Release ends a Hold: the withdrawal is due at once. by, reason and errors are as of Hold.
func (s *Service) Release(ctx context.Context, tenant, id, by, reason string) (Withdrawal, error) {
	return s.review(ctx, tenant, id, audit.Act{Kind: audit.Release, By: by, Reason: reason, Tell: true}, func(m *move) error {
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
func (s *Service) review(ctx context.Context, tenant, id string, act audit.Act, f func(m *move) error) (Withdrawal, error) {
	if err := checkAct(&act); err != nil {
		return Withdrawal{}, err
	}
	return s.act(ctx, tenant, id, func(m *move) error {
		if m.w.Status != Pending || m.w.Stage != Kept {
			return &StateError{ID: id, Current: m.w.Status}
		}
		m.changed = true
		m.record(act, m.w.Requested)
		return f(m)
	})
}

// checkAct says what is wrong with the name and the reason of who acts.
func checkAct(act *audit.Act) error {
	bad := &InvalidError{}
	if person.None(act.By) {
		bad.Add("by", "is required")
	}
	bad.AddLong("by", act.By, maxActor)
	bad.AddLong("reason", act.Reason, maxReason)
	return bad.Err()
}

// record notes what a person does about an amount, for the Change that does it.
func (m *move) record(act audit.Act, amount ledger.Amount, roles ...string) {
	act.Tenant, act.Object = m.w.Tenant, m.w.ID
	act.After = decision{
		Amount: m.c.Decimal(amount).String(), Currency: m.w.Currency, Address: m.w.Address, Memo: m.w.Memo, Roles: roles, RequestedBy: m.w.RequestedBy,
	}
	m.act = &act
}
