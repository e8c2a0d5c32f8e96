package withdrawal

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Reasons that an open withdrawal shows for waiting, beside the payout side's.
const (
	WaitingReview = "review" // Config.Policy wants a person to approve it
	// WaitingApproval: the Rules want people to approve it. WaitingDelayed: they are asked
	// again at a time that they named.
	WaitingApproval = "approval"
	WaitingDelayed  = "delayed"

	WaitingFrozen = "held"    // by an operator
	WaitingHalted = "halted"  // the asset or network is
	WaitingPayout = "payouts" // the payout side does not answer
	WaitingPolicy = "policy"  // the policy does not answer
	// WaitingAltered: its stored rows contradict each other, so somebody edited them.
	// Nothing is sent until an operator has repaired them; Reason has the difference, or the payout side's log.
	// It is failed or cancelled: its recipient was paid all the same, until an operator calls TakeDelivered.
	WaitingAltered = "altered"
	// WaitingDeliveredLess: it is processing, its payment has landed, and the recipient
	// got less than was ordered. Payouts of the currency are halted for the tenant until an
	// operator calls TakeDelivered or PayMissing.
	WaitingDeliveredLess = "delivered_less"
	// WaitingOccupied: it is processing, or completed without confirmations; its payment is not
	// replaced by a dearer one as nodes keep an earlier one in its place. It waits until that has
	// landed or nodes let it go.
	WaitingOccupied = "occupied"
	// WaitingGasShort and WaitingFeeTooHigh: it is processing, or completed without confirmations; the
	// network asks for more than its payment offers, and the operator's coins do not bear it, or its
	// amount is not worth it. As pending it waits for the same.
	WaitingGasShort   = "gas_float_short"
	WaitingFeeTooHigh = "fee_above_cap"
	// WaitingStuck: it is processing, or completed without confirmations, and for an hour or more its
	// payment has been in no block. It is sent again, and replaced where that helps.
	WaitingStuck = "stuck"
	// WaitingReorged: it is processing or completed, and the block of its payment was
	// replaced. The same transaction is sent again until it lands.
	WaitingReorged = "reorged"
)

// Step hands what is due to the payout side and says how many withdrawals it
// worked on; 0 = nothing is due. Many processes may call it at once. An error
// is of some withdrawal that is tried again later, the others were worked on.
func (s *Service) Step(ctx context.Context) (worked int, err error) {
	now := s.now()
	rows, err := s.unread.Claimed(ctx, s.c.Store, storage.Claim{
		Table: Withdrawals.Table, Now: now, Until: now.Add(s.c.Lease), Max: s.c.Batch,
		// Others are left to a process that lists their currency.
		Where: []storage.Cond{{Column: "currency", Op: storage.In, Value: append(s.c.Registry.Codes(), s.c.Retired...)}},
	}, s.c.Log, func(r *storage.RowError) {
		tenant := strings.TrimPrefix(string(r.Partition), string(storage.Tenant("")))
		s.c.Notify(storage.Apart(ctx), Notice{Tenant: tenant, Withdrawal: r.ID, Kind: NoticeUnreadable, Detail: "its stored row cannot be read: put it right in the database"})
	})
	if err != nil {
		return 0, err
	}
	// What is not done in half a lease is left to the next claim.
	p := &pass{s: s, until: now.Add(s.c.Lease / 2), silent: map[string]error{}}
	s.silences.last(rows)
	one := func(r storage.Row) string { return string(r.Partition) + "/" + r.ID }
	errs := storage.Work(ctx, s.c.Store, rows, one, func(ctx context.Context, r storage.Row) error {
		return s.handOver(ctx, Withdrawals.Value(r).Tenant, r.ID, p)
	})
	var failures []error
	for i, err := range errs {
		if err == nil || errors.Is(err, storage.ErrBusy) || errors.Is(err, errLate) {
			continue // it is done, or due again when the lease ends
		}
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "withdrawal_not_handed_over",
			slog.String("tenant", Withdrawals.Value(rows[i]).Tenant), slog.String("withdrawal", rows[i].ID), slog.Any("error", err))
		failures = append(failures, err)
	}
	return len(rows), errors.Join(failures...)
}

// errLate leaves a withdrawal as it is, as its lease may end before it is handed over.
var errLate = errors.New("withdrawal: half of the lease is over")

// handOver takes one withdrawal through three commits: it is noted that the
// payout side may know it, it is submitted, it is noted that it was. What dies
// between them is submitted again under the same id. It does not begin after p.until.
func (s *Service) handOver(ctx context.Context, tenant, id string, p *pass) error {
	var (
		policy error
		was    Withdrawal // before this try
	)
	w, err := s.decide(ctx, tenant, id, func(m *move) (err error) {
		was = m.w
		policy, err = s.prepare(ctx, m, p)
		return err
	})
	s.hooks.forget(tenant, id)
	if err != nil {
		return err
	}
	if policy != nil || w.Status != Pending || w.Stage != Handing || w.Waiting != "" {
		return policy
	}
	submitted := s.c.Payouts.Submit(ctx, w.intent())
	if errors.Is(submitted, storage.ErrBusy) {
		return submitted
	}
	w, err = s.decide(ctx, tenant, id, func(m *move) error { return s.noteSubmit(m, &was, submitted) })
	if err == nil && submitted == nil && !w.Live() {
		err = s.takeBack(ctx, &w)
	}
	var wait *WaitError
	if errors.As(submitted, &wait) || errors.Is(submitted, chain.ErrRejected) {
		return err
	}
	return errors.Join(submitted, err)
}

// takeBack ends what was submitted for a withdrawal that ended meanwhile.
func (s *Service) takeBack(ctx context.Context, w *Withdrawal) error {
	if w.Status == Completed {
		return nil // quicker than we could note it
	}
	ended, err := s.c.Payouts.Cancel(ctx, chain.Network(w.Network), w.ID)
	if err == nil && !ended {
		s.c.Notify(storage.Apart(ctx), Notice{
			Tenant: w.Tenant, Withdrawal: w.ID, Kind: NoticeConflict,
			Detail: "it is " + string(w.Status) + ", and the payout side may have something of it under way",
		})
	}
	return err
}

// prepare decides whether a due withdrawal may be handed over now; then its
// stage is Handing. failure is of something that was asked and did not answer:
// w is due again later. After p.until nobody outside is asked.
func (s *Service) prepare(ctx context.Context, m *move, p *pass) (failure, err error) {
	retry := m.now.Add(s.c.RetryDelay)
	switch {
	case m.w.Status != Pending || m.w.Stage == Handed: // it has moved since it was claimed, or somebody edited it
		if bad, err := s.checkIntact(ctx, m); bad || err != nil {
			m.keeps = bad
			return nil, err
		}
		if m.w.Status != Pending && m.w.Waiting == WaitingAltered { // it was repaired
			m.reason("")
		}
		m.changed = true // clears Due
		return nil, nil
	case m.w.Frozen:
		m.wait(WaitingFrozen, never)
		return nil, nil
	case m.w.Review == ReviewWanted:
		m.wait(m.w.awaited(), never)
		return nil, nil
	}
	if bad, err := s.checkIntact(ctx, m); bad || err != nil {
		return nil, err
	}
	if slices.Contains(s.c.Retired, m.w.Currency) {
		m.halted("the currency is retired", retry)
		return nil, nil
	}
	why, failure := s.c.Halted(ctx, m.w.Tenant, m.w.Currency)
	switch {
	case failure != nil:
		m.wait(WaitingPayout, retry)
		return failure, nil
	case why != "":
		m.halted(storable(why), retry)
		return nil, nil
	}
	if late := p.late(&m.w); late != nil {
		return p.missed(m, late)
	}
	if m.w.Stage == Handing { // tried before, and not known to be taken
		goOn, failure, err := s.judgeAgain(ctx, m)
		if !goOn || err != nil {
			return failure, err
		}
	}
	if m.w.Stage == Kept && s.c.Rules != nil {
		goOn, failure, err := s.rule(ctx, m)
		if !goOn || err != nil {
			return failure, err
		}
	}
	if m.w.Stage == Kept {
		goOn, failure, err := s.judge(ctx, m)
		if !goOn || err != nil {
			return failure, err
		}
	}
	if m.w.Stage == Kept {
		if late := p.late(&m.w); late != nil { // others were asked since
			return p.missed(m, late)
		}
		m.w.MaxCost, failure = p.maxCost(ctx, &m.w)
		switch {
		case errors.Is(failure, chain.ErrTooDear): // nothing failed: it is due again when fees may have fallen
			m.wait(WaitingFeeTooHigh, retry)
			return nil, nil
		case failure != nil:
			m.wait(WaitingPayout, retry)
			return failure, nil
		}
		if err := s.approve(&m.w); err != nil {
			return nil, err
		}
	}
	m.with = append(m.with, m.counts...)
	m.w.Stage = Handing
	m.reason("")
	m.trying = true
	m.due, m.changed = m.now.Add(s.c.Lease), true
	return nil, nil
}

// checkIntact keeps back a withdrawal whose stored rows contradict each other, and
// tells the host once.
func (s *Service) checkIntact(ctx context.Context, m *move) (bad bool, err error) {
	why, guards, err := s.altered(ctx, storage.Tenant(m.w.Tenant), &m.w)
	if why == "" || err != nil {
		m.require = guards
		return false, err
	}
	if m.w.Waiting != WaitingAltered {
		m.w.Reason = why
		m.notice(NoticeAltered, why)
	}
	m.wait(WaitingAltered, m.now.Add(s.c.RetryDelay))
	return true, nil
}

// rule asks the Rules, also of what people have approved: it counts.
func (s *Service) rule(ctx context.Context, m *move) (goOn bool, failure, err error) {
	j, failure := s.c.Rules.Judge(ctx, &m.w, m.now)
	if failure != nil {
		m.wait(WaitingPolicy, m.now.Add(s.c.RetryDelay))
		return false, failure, nil
	}
	m.require, m.counts = append(m.require, j.Require...), j.Count
	switch {
	case j.Verdict == Allow || m.w.stands(&j):
		if m.w.Waiting == WaitingDelayed {
			m.w.Reason = ""
		}
		return true, nil, nil
	case j.Verdict == Refuse:
		if err := s.ruled(m, AnswerDenied, &j); err != nil {
			return false, nil, err
		}
		m.w.Reason = j.text()
		return false, nil, m.step(onRefuse, Failed)
	case j.Verdict == Delay:
		m.w.Reason = j.text()
		m.wait(WaitingDelayed, j.Until)
		err := s.ruled(m, AnswerDelayed, &j)
		if err == nil && m.w.Review == ReviewApproved { // it covers the decisions
			err = s.approve(&m.w)
		}
		return false, nil, err
	}
	// Anything that is not a clear yes waits for people.
	if err := s.ruled(m, AnswerAsked, &j); err != nil {
		return false, nil, err
	}
	m.w.Review, m.w.Reason = ReviewWanted, j.text()
	m.wait(WaitingApproval, never)
	m.notice(NoticeReview, m.w.Reason)
	return false, nil, nil
}

// awaited is the reason to wait of a withdrawal that people have to decide about.
func (w *Withdrawal) awaited() string {
	if asked, _ := w.newest(byAny); asked != nil && byRules(asked) {
		return WaitingApproval
	}
	return WaitingReview
}

// judge asks the policy, also of what people have approved.
func (s *Service) judge(ctx context.Context, m *move) (goOn bool, failure, err error) {
	verdict, reason, failure := s.askPolicy(ctx, &m.w)
	switch {
	case failure != nil:
		m.wait(WaitingPolicy, m.now.Add(s.c.RetryDelay))
		return false, failure, nil
	case verdict == Refuse:
		m.w.Reason = reason
		return false, nil, m.step(onRefuse, Failed)
	case verdict == Allow || m.w.answered():
		return true, nil, nil
	}
	// Anything that is not a clear yes waits for a person.
	if err := s.note(m, Decision{Answer: AnswerAsked, Reason: reason, Needs: []Need{{Count: 1}}}); err != nil {
		return false, nil, err
	}
	m.w.Review, m.w.Reason = ReviewWanted, reason
	m.wait(WaitingReview, never)
	m.notice(NoticeReview, reason)
	return false, nil, nil
}

// judgeAgain asks the policy about a withdrawal that was tried before, which may have been long ago.
// A refusal ends it where the payout side does not have it, or ends it.
func (s *Service) judgeAgain(ctx context.Context, m *move) (goOn bool, failure, err error) {
	verdict, reason, failure := s.askPolicy(ctx, &m.w)
	switch {
	case failure != nil:
		m.wait(WaitingPolicy, m.now.Add(s.c.RetryDelay))
		return false, failure, nil
	case verdict != Refuse:
		return true, nil, nil
	}
	ended, failure := s.c.Payouts.Cancel(ctx, chain.Network(m.w.Network), m.w.ID)
	switch {
	case errors.Is(failure, ErrNoIntent):
	case failure != nil:
		m.wait(WaitingPayout, m.now.Add(s.c.RetryDelay))
		return false, failure, nil
	case !ended:
		return true, nil, nil // it is signed, and the news is on its way
	}
	m.w.Reason = reason
	return false, nil, m.step(onRefuse, Failed)
}

// noteSubmit records what the payout side answered. A reason that was there before
// the try has not begun anew.
func (s *Service) noteSubmit(m *move, was *Withdrawal, submitted error) error {
	if m.w.Status != Pending || m.w.Stage != Handing {
		return nil // an outcome was faster
	}
	m.review = true
	retry := m.now.Add(s.c.RetryDelay)
	var wait *WaitError
	switch {
	case submitted == nil:
		m.w.Stage, m.changed = Handed, true
		m.reason("")
	case errors.Is(submitted, chain.ErrRejected):
		m.w.Reason = submitted.Error()
		m.notice(NoticeFailed, m.w.Reason)
		return m.step(onDead, Failed)
	case errors.As(submitted, &wait):
		m.wait(wait.Reason, retry)
	case errors.Is(submitted, ErrAltered):
		if m.w.Waiting != WaitingAltered {
			m.w.Reason = "the payout side has another order under its id"
			m.notice(NoticeAltered, m.w.Reason)
		}
		m.wait(WaitingAltered, retry)
	default:
		m.wait(WaitingPayout, retry)
	}
	if m.w.Waiting == was.Waiting {
		m.w.WaitingSince = was.WaitingSince
	}
	return nil
}
