package withdrawal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// ReasonCancelled is the Reason of an Outcome that is failed because an operator cancelled
// it after it was signed.
const ReasonCancelled = "cancelled"

// The states that an Outcome can tell. They are the payout side's strings.
const (
	OutcomeQueued    = "queued"    // known, nothing signed
	OutcomeWaiting   = "waiting"   // known, something is missing: see Reason
	OutcomeSigned    = "signed"    // stored with its raw transaction
	OutcomeExecuted  = "executed"  // on chain with the confirmations asked for
	OutcomeSettled   = "settled"   // executed and final
	OutcomeFailed    = "failed"    // every attempt is dead with proof
	OutcomeCancelled = "cancelled" // before anything was signed
)

// Outcome is what the payout side tells about an intent.
type Outcome struct {
	Intent        string // the withdrawal's id
	State         string // one of the Outcome… constants
	Reason        string
	Tx            string // the attempt that counts now; the landed one from executed on
	Confirmations int64
	Amount        ledger.Amount // what reached the recipient, 0 = not known yet
	Batch         string        // of the payments that Tx makes, the same of each; "" = it makes this one alone
	Cost          ledger.Amount // what the network took, in its gas currency
	CostTx        string
	At            time.Time
}

// HandleOutcome makes what follows from an Outcome durable. The same one twice,
// an old one late, or one whose forerunners were never told do no harm. An error
// means that it is to be told again; ErrNotFound that there is no such
// withdrawal.
func (s *Service) HandleOutcome(ctx context.Context, tenant string, o Outcome) error {
	_, err := s.decide(ctx, tenant, o.Intent, func(m *move) error { return m.outcome(o) })
	if errors.Is(err, ErrAltered) {
		err = errors.Join(err, s.showAltered(ctx, tenant, o.Intent, err.Error()))
	}
	if err != nil {
		return fmt.Errorf("withdrawal: outcome %s of %s: %w", o.State, o.Intent, err)
	}
	return nil
}

// showAltered has a withdrawal wait for its repair, and tells the host once.
func (s *Service) showAltered(ctx context.Context, tenant, id, why string) error {
	_, err := s.decide(ctx, tenant, id, func(m *move) error {
		if m.w.Waiting == WaitingAltered {
			return nil
		}
		if m.notice(NoticeAltered, why); m.w.Live() {
			m.w.Reason = why
			m.wait(WaitingAltered, m.due)
		}
		return nil
	})
	return err
}

// outcome is the pure decision. Only the hash that is shown depends on which
// fact is newer; money depends on the statuses alone, as clocks may differ.
func (m *move) outcome(o Outcome) error {
	switch o.State {
	case OutcomeQueued, OutcomeWaiting:
		return m.queued(o)
	case OutcomeSigned:
		return m.signed(o)
	case OutcomeExecuted, OutcomeSettled:
		return m.executed(o)
	case OutcomeFailed:
		return m.dead(o)
	case OutcomeCancelled:
		return m.ended(o)
	}
	return fmt.Errorf("unknown state %q", o.State)
}

// waitingNode is the payout side's reason while no node answers.
const waitingNode = "node"

func (m *move) queued(o Outcome) error {
	shown := m.w.Waiting == WaitingAltered || m.w.Waiting == WaitingDeliveredLess
	altered := o.Reason == WaitingAltered // shown however old it is: somebody may have edited its time, too
	if altered && !shown && (m.w.Live() || m.w.unconfirmed()) {
		m.notice(NoticeAltered, "it waits: the rows of its payout contradict each other, or a transaction that is none of its own may have paid it (order_altered in the log names it)")
	}
	switch m.w.Status {
	case Pending:
		m.known()
		m.wait(o.Reason, m.due)
	case Processing: // nodes refused its transaction for good, and it starts again
		hidden := m.w.Waiting == WaitingDeliveredLess || m.w.Waiting == WaitingAltered && o.Reason == waitingNode
		if (altered || m.newer(o)) && m.w.Waiting != o.Reason && !hidden {
			m.reason(o.Reason)
			m.touch()
		}
		if o.Reason != "" {
			m.newest(o)
		}
	case Completed: // the same
		if o.Reason != waitingNode {
			m.lateReason(o, o.Reason)
		}
	}
	return nil
}

// known notes that the payout side has the intent, whatever a worker could not
// note before it died.
func (m *move) known() {
	if m.w.Stage != Handed {
		m.w.Stage, m.changed = Handed, true
	}
}

func (m *move) signed(o Outcome) error {
	switch m.w.Status {
	case Pending:
		m.show(o)
		if err := m.step(onSigned, Processing); err != nil {
			return err
		}
		m.slow(o) // what it was told before may have been lost
	case Processing:
		if m.newer(o) && o.Tx != m.w.Tx {
			if err := m.step(onReplaced, Processing); err != nil {
				return err
			}
		}
		if m.newer(o) && m.w.Waiting == WaitingDeliveredLess {
			m.w.Delivered = 0 // a fork took that payment back, and it is sent again
			m.wait("", never)
			m.touch()
		}
		m.slow(o)
		m.show(o)
	case Completed:
		if m.newer(o) && o.Reason == WaitingReorged && m.w.Waiting != WaitingReorged {
			m.reason(WaitingReorged)
			m.touch()
			m.notice(NoticeReorged, "the block of its payment "+m.w.Tx+" was replaced: it is sent again until it lands")
			m.show(o)
		}
		resent := m.newer(o) && o.At.After(m.w.OutcomeAt) && o.Tx != m.w.Tx
		m.lateReason(o, slowReason(o))
		if resent {
			m.show(o)
			m.notice(NoticeResent, "sent again as "+o.Tx)
			return m.step(onReplaced, Completed)
		}
	default:
		if m.newer(o) { // else it was signed before it died
			m.contradiction(o)
		}
	}
	return nil
}

func (m *move) executed(o Outcome) error {
	deep := o.State == OutcomeSettled || o.Confirmations >= m.required
	switch m.w.Status {
	case Pending, Processing:
		if m.w.Status == Pending {
			m.show(o)
			if err := m.step(onSigned, Processing); err != nil {
				return err
			}
		}
		late := !m.newer(o)
		m.slow(o)
		m.show(o)
		switch {
		case !deep:
			return nil
		case o.Reason == WaitingDeliveredLess && late:
			return nil
		case o.Reason == WaitingDeliveredLess:
			return m.short(o)
		}
		m.w.Delivered = 0
		if o.Amount != 0 && o.Amount != m.w.Amount {
			m.notice(NoticeConflict, fmt.Sprintf("the recipient got %d units where %d were ordered, in %s", o.Amount, m.w.Amount, o.Tx))
		}
		if o.Tx != "" {
			m.w.Tx = o.Tx // the one that landed, whichever was newest
		}
		return m.step(onExecuted, Completed)
	case Completed:
		if m.newer(o) {
			m.shortLate(o)
		}
		if m.newer(o) && m.w.Waiting != "" && m.w.Waiting != WaitingDeliveredLess && o.Confirmations > 0 {
			m.reason("")
			m.touch()
		}
		if m.newer(o) && (o.Confirmations > m.w.Confirmations || o.Tx != "" && o.Tx != m.w.Tx) {
			m.show(o)
			return m.step(onExecuted, Completed)
		}
	default:
		if o.State == OutcomeSettled || m.newer(o) { // else a fork took it back before it died
			m.contradiction(o)
			m.paidAfterEnd(o)
		}
	}
	return nil
}

// slow shows why a payment that was signed is in no block, for as long as the payout side
// says so.
func (m *move) slow(o Outcome) {
	if why := slowReason(o); m.newer(o) && why != m.w.Waiting && m.w.Waiting != WaitingDeliveredLess {
		m.reason(why)
		m.touch()
	}
}

// slowReason is why a payment that was signed is in no block, "" where nothing is the matter.
func slowReason(o Outcome) string {
	if slices.Contains([]string{WaitingOccupied, WaitingStuck, WaitingHalted, WaitingReorged, WaitingGasShort, WaitingFeeTooHigh}, o.Reason) {
		return o.Reason
	}
	return ""
}

// unconfirmed reports whether w was completed without confirmations.
func (w *Withdrawal) unconfirmed() bool {
	return w.Status == Completed && w.Required == 0 && !w.found()
}

// lateReason shows why no block has the payment of a withdrawal that was completed without
// confirmations. One that a fork took back shows that until it is in a block again.
func (m *move) lateReason(o Outcome, why string) {
	if !m.w.unconfirmed() || !m.newer(o) {
		return
	}
	m.changed = m.changed || o.At.After(m.w.OutcomeAt)
	m.newest(o)
	if why != m.w.Waiting && m.w.Waiting != WaitingReorged && m.w.Waiting != WaitingDeliveredLess {
		m.reason(why)
		m.touch()
	}
}

// short keeps a withdrawal that delivered less than ordered for an operator: the
// payment is final or will be, so neither is it failed nor the hold released.
func (m *move) short(o Outcome) error {
	if m.w.Waiting == WaitingDeliveredLess && m.w.Delivered == o.Amount {
		return nil
	}
	m.w.Delivered = o.Amount
	m.wait(WaitingDeliveredLess, never)
	m.noticeShort(o)
	return m.step(onShort, Processing)
}

// shortLate keeps a withdrawal that was completed before it landed for an operator, where
// it delivered less, unless one has decided on it already.
func (m *move) shortLate(o Outcome) {
	waits := m.w.Waiting == WaitingDeliveredLess
	if o.Reason != WaitingDeliveredLess {
		if waits && o.Confirmations > 0 { // a fork took that payment back, and the one in its place brought all
			m.w.Delivered, m.changed = 0, true
			m.reason("")
		}
		return
	}
	decided := !waits && (m.w.Delivered > 0 || o.Amount == 0 && m.w.Reason != "")
	if o.Amount == m.w.Delivered && (waits || decided) {
		return
	}
	if !decided {
		m.reason(WaitingDeliveredLess)
	}
	m.w.Delivered, m.changed = o.Amount, true
	m.noticeShort(o)
}

func (m *move) noticeShort(o Outcome) {
	m.notice(NoticeShort, fmt.Sprintf("the recipient got %s of %s %s, in %s",
		m.c.Decimal(o.Amount), m.c.Decimal(m.w.Amount), m.w.Currency, o.Tx))
}

func (m *move) dead(o Outcome) error {
	switch m.w.Status {
	case Pending, Processing:
		m.w.Reason = o.Reason
		m.newest(o)
		if o.Reason != ReasonCancelled { // else the operator knows
			m.notice(NoticeFailed, o.Reason)
		}
		return m.step(onDead, Failed)
	case Completed:
		m.lateReason(o, "") // an operator hears of it
		m.contradiction(o)
	}
	return nil
}

func (m *move) ended(o Outcome) error {
	switch m.w.Status {
	case Pending:
		m.w.Reason = o.Reason
		m.newest(o)
		return m.step(onCancel, Cancelled)
	case Completed:
		if !m.w.found() { // else its order ended because another transaction had paid it
			m.lateReason(o, "")
			m.contradiction(o)
		}
	case Processing:
		m.contradiction(o)
	}
	return nil
}

// contradiction tells the host of a fact that cannot be true beside what was
// already decided. Money is not moved again: the books say what was promised,
// reconciliation what is there.
func (m *move) contradiction(o Outcome) {
	m.notice(NoticeConflict, fmt.Sprintf("told to be %s (tx %q) while it is %s", o.State, o.Tx, m.w.Status))
}

// paidAfterEnd has a withdrawal that has ended unpaid, and was paid all the same, wait for an operator, unless one
// has looked at it already. Merchants see its transaction alone.
func (m *move) paidAfterEnd(o Outcome) {
	if m.w.Waiting == WaitingAltered || m.w.Delivered > 0 {
		return
	}
	m.show(o)
	m.w.Delivered = cmp.Or(o.Amount, m.w.Amount)
	m.reason(WaitingAltered)
	m.touch()
}

// PaidAfterEnd says that the withdrawal has ended unpaid, and that its recipient was paid all the same. "" = it is not
// so, or an operator has looked at it.
func (w Withdrawal) PaidAfterEnd() string {
	if w.Waiting != WaitingAltered || w.Status != Failed && w.Status != Cancelled {
		return ""
	}
	return "it is " + string(w.Status) + ", and its transaction " + w.Tx + " has paid its recipient"
}

// newer reports whether o is not older than what was shown last.
func (m *move) newer(o Outcome) bool { return !o.At.Before(m.w.OutcomeAt) }

func (m *move) newest(o Outcome) {
	if o.At.After(m.w.OutcomeAt) {
		m.w.OutcomeAt = o.At
	}
}

// show takes over hash and confirmations, unless something newer was shown.
func (m *move) show(o Outcome) {
	if !m.newer(o) {
		return
	}
	if o.Tx != "" && o.Tx != m.w.Tx {
		m.w.Tx, m.history = o.Tx, true
		m.touch()
	}
	if o.Batch != m.w.BatchID {
		m.w.BatchID = o.Batch
		m.touch()
	}
	if o.Confirmations != m.w.Confirmations {
		m.w.Confirmations = o.Confirmations
		m.touch()
	}
	m.newest(o)
}
