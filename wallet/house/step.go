package house

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// Reasons that a payment shows for waiting, beside the payout side's.
const (
	WaitingHalted   = "halted"     // the asset, the tenant or the network is
	WaitingUnlisted = "not_listed" // its address is no longer in Config.Addresses
	WaitingAltered  = "altered"    // its stored rows contradict each other
	waitingPayout   = "payouts"    // the payout side does not answer
)

// move is one decision on a stored payment.
type move struct {
	was, p  Payment
	row     storage.Row
	now     time.Time
	due     time.Time
	changed bool
	going   bool          // it is about to be handed over: whether it waits on is not known
	ends    bool          // it has come to its end
	less    ledger.Amount // of a move to cold, that did not arrive
	post    []ledger.Tx
	by      *outgoing.Recorded // of the call that decides, nil = none
}

// step takes the payment to a status: the table must allow it.
func (m *move) step(on trigger, to Status) error {
	if err := machine.Move(m.p.Status, on, to); err != nil {
		return err
	}
	m.p.Status, m.due, m.changed = to, never, true
	m.reason("")
	switch to {
	case Completed:
		m.p.CompletedAt = m.now
		m.moves(m.p.settleTx(m.now))
	case Failed, Cancelled:
		m.moves(m.p.releaseTx(m.now))
	}
	return nil
}

// moves has money moved by the decision. What moves to cold stays where it is in the books.
func (m *move) moves(tx ledger.Tx) {
	if m.ends = true; !m.p.ToCold() {
		m.post = append(m.post, tx)
	}
}

// wait shows why the payment waits, and has it looked at again at a time.
func (m *move) wait(why string, due time.Time) {
	m.due, m.changed = due, true
	m.reason(why)
}

func (m *move) reason(why string) {
	if m.p.Waiting == why {
		return
	}
	m.p.Waiting, m.p.WaitingSince, m.p.Long, m.changed = why, m.now, false, true
	if why == "" {
		m.p.WaitingSince = time.Time{}
	}
}

// watch has a person told of a payment that waits for one reason for so long: now, or when
// that time has come. One that waits for lower costs is not told of.
func (m *move) watch(after time.Duration) {
	if !m.p.live() || m.p.Waiting == "" || m.p.Waiting == WaitingBelowCost || m.p.Long || m.going {
		return
	}
	at := m.p.WaitingSince.Add(after)
	switch {
	case !m.now.Before(at):
		m.p.Long, m.changed = true, true
	case m.changed && (m.due.Equal(never) || m.due.After(at)):
		m.due = at
	}
}

// decide loads a payment, lets f decide, commits what follows and starts over where the state
// has changed meanwhile. It returns the payment as it stands then, also beside an error of f.
func (s *Service) decide(ctx context.Context, tenant, id string, f func(m *move) error) (Payment, error) {
	part := storage.Tenant(tenant)
	var m move
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		p, row, ok, err := Payments.One(ctx, s.c.Store, part, id)
		if err == nil && !ok {
			err = fmt.Errorf("%w: %q", ErrNotFound, id)
		}
		if err != nil {
			return storage.Change{}, err
		}
		m = move{was: p, p: p, row: row, now: s.c.Now(), due: row.Due}
		if err := f(&m); err != nil {
			return storage.Change{}, err
		}
		if m.watch(s.c.StuckAfter); !m.changed {
			return storage.Change{}, nil
		}
		if m.ends { // money moves by what the row says
			why, err := s.Contradicts(ctx, part, id, &m.was)
			if err != nil || why != "" {
				return storage.Change{}, errors.Join(err, alteredError(why))
			}
		}
		m.p.UpdatedAt = m.now
		c := storage.Change{
			ID: "house/" + s.c.NewID(), Partition: part, Post: m.post,
			Put: []storage.Row{Payments.Row(id, row.Version, m.due, m.p)},
		}
		if m.ends && m.p.ToCold() && m.p.Status == Completed {
			if err := s.arrived(ctx, &c, &m); err != nil {
				return storage.Change{}, err
			}
		}
		if m.p.Status != m.was.Status || m.p.Waiting != m.was.Waiting || m.long() {
			e, err := s.told(&m.p, m.was.Status, m.now)
			if err != nil {
				return storage.Change{}, err
			}
			c.Tell = append(c.Tell, e)
		}
		rows, events, err := m.by.Rows(stood{m.was.Status, m.was.Waiting}, stood{m.p.Status, m.p.Waiting})
		c.Put, c.Tell = append(c.Put, rows...), append(c.Tell, events...)
		return c, err
	})
	if err == nil && m.long() {
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "house_payment_waiting", slog.String("tenant", m.p.Tenant), slog.String("payment", m.p.ID),
			slog.String("currency", m.p.Currency), slog.String("reason", m.p.Waiting), slog.Time("since", m.p.WaitingSince))
		s.c.Notify(storage.Apart(ctx), m.p)
	}
	return m.p, err
}

// long reports whether a person is told of the payment by this decision.
func (m *move) long() bool { return m.p.Long && !m.was.Long }

// stood is a payment as the record of a call shows it.
type stood struct {
	Status  Status `json:"status"`
	Waiting string `json:"waiting,omitempty"`
}

func alteredError(why string) error {
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrAltered, why)
}

// Step hands due payments to the payout side, and says how many it worked on. Many processes
// may call it at once. An error is of some payment that is tried again later.
func (s *Service) Step(ctx context.Context) (worked int, err error) {
	now := s.c.Now()
	rows, err := s.unread.Claimed(ctx, s.c.Store, storage.Claim{
		Table: Payments.Table, Now: now, Until: now.Add(s.c.Lease), Max: batch,
		Where: []storage.Cond{{Column: "currency", Op: storage.In, Value: s.c.Registry.Codes()}},
	}, s.c.Log, func(*storage.RowError) {})
	if err != nil {
		return 0, err
	}
	until := now.Add(s.c.Lease / 2)
	one := func(r storage.Row) string { return string(r.Partition) + "/" + r.ID }
	errs := storage.Work(ctx, s.c.Store, rows, one, func(ctx context.Context, r storage.Row) error {
		return s.handOver(ctx, Payments.Value(r).Tenant, r.ID, until)
	})
	var failures []error
	for i, err := range errs {
		if err == nil || errors.Is(err, storage.ErrBusy) || errors.Is(err, errLate) {
			continue // it is done, or due again when the lease ends
		}
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "house_payment_not_handed_over",
			slog.String("tenant", Payments.Value(rows[i]).Tenant), slog.String("payment", rows[i].ID), slog.Any("error", err))
		failures = append(failures, err)
	}
	return len(rows), errors.Join(failures...)
}

const batch = 20

// errLate leaves a payment as it is, as its lease may end before it is handed over.
var errLate = errors.New("house: half of the lease is over")

// handOver takes one payment through three commits: it is noted that the payout side may know
// it, it is submitted, it is noted that it was. What dies between them is submitted again
// under the same id.
func (s *Service) handOver(ctx context.Context, tenant, id string, until time.Time) error {
	var (
		goOn    bool
		failure error
	)
	p, err := s.decide(ctx, tenant, id, func(m *move) (err error) {
		goOn, failure, err = s.prepare(ctx, m, until)
		return err
	})
	if err != nil || !goOn {
		return errors.Join(err, failure)
	}
	submitted := s.c.Treasury.Submit(ctx, p.intent())
	if errors.Is(submitted, storage.ErrBusy) {
		return submitted
	}
	p, err = s.decide(ctx, tenant, id, func(m *move) error { return s.noteSubmit(m, submitted) })
	if err == nil && submitted == nil && !p.live() {
		err = s.takeBack(ctx, &p)
	}
	if wait := (*treasury.WaitError)(nil); errors.As(submitted, &wait) || errors.Is(submitted, outgoing.ErrIntent) {
		return err
	}
	return errors.Join(submitted, err)
}

// prepare decides whether a due payment may be handed over now; then its stage is handing. It
// goes on showing what it has waited for until it is known whether that has ended.
func (s *Service) prepare(ctx context.Context, m *move, until time.Time) (goOn bool, failure, err error) {
	retry := m.now.Add(s.c.RetryDelay)
	if m.p.Status != Pending || m.p.Stage == handed {
		m.due, m.changed = never, true
		return false, nil, nil
	}
	why, err := s.altered(ctx, storage.Tenant(m.was.Tenant), m.row.ID, &m.p)
	if err != nil {
		return false, nil, err
	}
	if why != "" {
		if m.p.Waiting != WaitingAltered {
			s.c.Log.ErrorContext(ctx, "house_payment_altered", "tenant", m.p.Tenant, "payment", m.p.ID, "reason", why)
		}
		m.wait(WaitingAltered, retry)
		return false, nil, nil
	}
	if m.p.ToCold() {
		if why, failure := s.mayMove(storage.Apart(ctx), m); why != "" {
			m.wait(why, retry)
			return false, failure, nil
		}
	} else if !slices.Contains(s.c.Addresses, Address{chain.Network(m.p.Network), chain.Address(m.p.Address), m.p.Memo}) {
		m.wait(WaitingUnlisted, retry)
		return false, nil, nil
	}
	halted, failure := s.c.Halted(ctx, m.p.Tenant, m.p.Currency)
	switch {
	case failure != nil:
		m.wait(waitingPayout, retry)
		return false, failure, nil
	case halted != "":
		m.wait(WaitingHalted, retry)
		return false, nil, nil
	}
	if s.c.Now().After(until) {
		return false, nil, errLate
	}
	m.p.Stage, m.due, m.changed, m.going = handing, m.now.Add(s.c.Lease), true, true
	return true, nil, nil
}

// noteSubmit records what the payout side answered.
func (s *Service) noteSubmit(m *move, submitted error) error {
	if m.p.Status != Pending || m.p.Stage != handing {
		return nil // an outcome was faster
	}
	retry := m.now.Add(s.c.RetryDelay)
	var wait *treasury.WaitError
	switch {
	case submitted == nil:
		m.p.Stage = handed
		m.wait("", never)
	case errors.Is(submitted, outgoing.ErrIntent):
		m.p.Reason = submitted.Error()
		return m.step(onDead, Failed)
	case errors.As(submitted, &wait):
		m.p.Stage = tried
		m.wait(string(wait.Reason), retry)
	case errors.Is(submitted, outgoing.ErrDiffers):
		m.wait(WaitingAltered, retry)
	default:
		m.wait(waitingPayout, retry)
	}
	return nil
}

// takeBack ends what was submitted for a payment that ended meanwhile.
func (s *Service) takeBack(ctx context.Context, p *Payment) error {
	if p.Status == Completed {
		return nil // quicker than we could note it
	}
	ended, err := s.c.Treasury.Cancel(ctx, chain.Network(p.Network), p.ID)
	if err == nil && !ended {
		s.contradicted(ctx, p, "it has ended, and the payout side may have something of it under way")
	}
	return err
}

// Cancel ends a pending payment and releases its hold; one that is cancelled already is
// returned as it is. *StateError where it is too late, ErrNotFound, ErrHandingOver where it
// cannot be told yet. Any other error: unknown, ask again. by is the record that the Change
// writes, nil = none.
func (s *Service) Cancel(ctx context.Context, tenant, id string, by *outgoing.Recorded) (Payment, error) {
	var read int64
	p, err := s.decide(ctx, tenant, id, func(m *move) error {
		m.by, read = by, m.row.Version
		switch {
		case m.p.Status == Cancelled:
			return nil
		case m.p.Status != Pending:
			return &StateError{id, m.p.Status}
		case m.p.Stage != kept:
			return errHandedOver
		}
		return m.step(onCancel, Cancelled)
	})
	if !errors.Is(err, errHandedOver) {
		return p, err
	}
	// The payout side may know it, and must give its word first. Should this process die in
	// between, the payout side's outcome cancels it.
	ended, absent, err := s.endOrder(ctx, &p)
	if err != nil {
		return p, err
	}
	return s.decide(ctx, tenant, id, func(m *move) error {
		m.by = by
		switch {
		case m.p.Status == Cancelled:
			return nil
		case m.p.Status != Pending:
			return &StateError{id, m.p.Status}
		case !ended: // signed, and the news is still on its way
			return &StateError{id, Processing}
		case absent && m.row.Version != read: // a worker may have handed it over since
			return ErrHandingOver
		}
		return m.step(onCancel, Cancelled)
	})
}

// endOrder asks the payout side for its word. ended is true where nothing of the order will
// ever be signed, and absent where that is because the payout side did not take it.
func (s *Service) endOrder(ctx context.Context, p *Payment) (ended, absent bool, err error) {
	if why, err := s.altered(ctx, storage.Tenant(p.Tenant), p.ID, p); why != "" || err != nil {
		return false, false, errors.Join(err, alteredError(why))
	}
	var wait *treasury.WaitError
	if p.Stage != handed {
		// A worker may be about to submit it, or may come back from a long sleep to do so.
		// Once submitted and ended, the id has no effect any more.
		switch err := s.c.Treasury.Submit(ctx, p.intent()); {
		case errors.Is(err, outgoing.ErrIntent):
			return true, true, nil
		case err != nil && !errors.As(err, &wait):
			return false, false, err
		}
	}
	ended, err = s.c.Treasury.Cancel(ctx, chain.Network(p.Network), p.ID)
	switch {
	case !errors.Is(err, outgoing.ErrNoIntent) || wait == nil:
		return ended, false, err
	case p.Stage != tried:
		return false, false, ErrHandingOver
	}
	// It was not taken, cannot be now, and the worker that tried has noted so. One who outslept
	// his lease finds it cancelled and ends what he submitted.
	return true, true, nil
}

// HandleOutcome makes what follows from an outcome of the payout side durable. The same one
// twice, an old one late, or one whose forerunners were never told do no harm. An error means
// that it is to be told again.
func (s *Service) HandleOutcome(ctx context.Context, o outgoing.Outcome) error {
	conflict := ""
	p, err := s.decide(ctx, o.Tenant, o.Intent, func(m *move) (err error) {
		conflict, err = m.outcome(o)
		return err
	})
	if err != nil {
		return fmt.Errorf("house: outcome %s of %s: %w", o.State, o.Intent, err)
	}
	if conflict != "" {
		s.contradicted(ctx, &p, conflict)
	}
	return nil
}

// contradicted tells of a fact that cannot be true beside what was decided. Money is not
// moved again: the books say what was promised, reconciliation what is there.
func (s *Service) contradicted(ctx context.Context, p *Payment, what string) {
	s.c.Log.ErrorContext(ctx, "house_payment_contradicted", "tenant", p.Tenant, "payment", p.ID, "status", string(p.Status), "reason", what)
}

// outcome is the pure decision. Money depends on the statuses alone, as clocks may differ.
func (m *move) outcome(o outgoing.Outcome) (conflict string, err error) {
	newer := !o.At.Before(m.p.OutcomeAt)
	if newer && o.At.After(m.p.OutcomeAt) && o.State != outgoing.Queued {
		m.p.OutcomeAt, m.changed = o.At, true
	}
	landed := o.State == outgoing.Executed || o.State == outgoing.Final
	if (newer || landed) && o.Tx != "" && o.Tx != m.p.Tx {
		m.p.Tx, m.changed = o.Tx, true
	}
	switch {
	case o.State == outgoing.Queued || o.State == outgoing.Waiting:
		if m.p.Status == Pending {
			m.p.Stage = handed
			m.wait(string(o.Reason), never)
		}
		if m.p.Status == Processing && (newer || o.Reason == outgoing.ReasonAltered) { // it starts again, or a person has to look
			m.reason(string(o.Reason))
		}
	case o.State == outgoing.Signed || landed:
		if m.p.Status == Pending {
			m.p.Stage = handed
			if err := m.step(onSigned, Processing); err != nil {
				return "", err
			}
		}
		switch {
		case m.p.Status == Processing && landed && (o.State == outgoing.Final || o.Confirmations >= 1):
			// One that delivered less is the house's own loss: it is posted as ordered, and shows it.
			if o.Amount > 0 && o.Amount < m.p.Amount && m.p.ToCold() {
				m.less = m.p.Amount - o.Amount
			}
			err := m.step(onExecuted, Completed)
			m.reason(string(o.Reason))
			return "", err
		case m.p.live() || m.p.Status == Completed:
			if newer {
				m.reason(string(o.Reason))
			}
		case newer || o.State == outgoing.Final:
			return fmt.Sprintf("told to be %s (tx %q)", o.State, o.Tx), nil
		}
	case o.State == outgoing.Failed, o.State == outgoing.Cancelled:
		to, on := Failed, onDead
		if o.State == outgoing.Cancelled && m.p.Status == Pending {
			to, on = Cancelled, onCancel
		}
		if !m.p.live() {
			if m.p.Status == Completed {
				return fmt.Sprintf("told to be %s (tx %q)", o.State, o.Tx), nil
			}
			return "", nil
		}
		m.p.Reason = string(o.Reason)
		return "", m.step(on, to)
	}
	return "", nil
}

// unauthorized says why an order is not one that somebody with the host's key gave, "" = it
// is one.
func unauthorized(err error) (string, error) {
	if errors.Is(err, mandate.ErrMissing) || errors.Is(err, mandate.ErrForged) || errors.Is(err, mandate.ErrKey) {
		return err.Error(), nil
	}
	return "", err
}
