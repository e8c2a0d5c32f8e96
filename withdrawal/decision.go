package withdrawal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Answer is what a person said of a withdrawal.
type Answer string

// The answers.
const (
	AnswerApproved Answer = "approved"
	AnswerRefused  Answer = "refused"
)

// Decision is one person's answer, by Approve or Refuse.
type Decision struct {
	By     string    `json:"by"` // the id of a credential, or a name that the host gives
	At     time.Time `json:"at"`
	Answer Answer    `json:"decision"`
	Reason string    `json:"reason,omitempty"`
	// Seal proves that the decision was made as it stands: a mandate over it and the
	// withdrawal's terms. App.Reseal makes it again.
	Seal string `json:"seal,omitempty"`
}

// ErrOwnRequest: who asked for a withdrawal does not decide about it.
var ErrOwnRequest = errors.New("withdrawal: who asked for it may not decide about it")

// ofDecision is the kind of the mandate that is the seal of a decision.
const ofDecision chain.Purpose = "decision"

// says is what the seal of the nth decision covers beside the terms.
func (d *Decision) says(n int) string {
	text, err := json.Marshal([]any{n, d.By, storage.Micros(d.At), d.Answer, d.Reason})
	if err != nil {
		return "" // texts and numbers always encode
	}
	return string(text)
}

// decisions is what an approval covers of the decisions.
func (w *Withdrawal) decisions() (all string) {
	for n := range w.Decisions {
		all += w.Decisions[n].says(n) + "\n"
	}
	return all
}

// ApprovalsRequired is how many people have to approve the withdrawal: 1 where the policy
// asked for it, else 0.
func (w *Withdrawal) ApprovalsRequired() int {
	if w.Review == ReviewWanted || w.Review == ReviewApproved && len(w.Decisions) > 0 {
		return 1
	}
	return 0
}

// Decided reports whether somebody has given this answer.
func (w *Withdrawal) Decided(by string, a Answer) bool {
	for _, d := range w.Decisions {
		if d.By == by && d.Answer == a {
			return true
		}
	}
	return false
}

// Approve lets a withdrawal go out without asking the policy (again). A Hold stays in force.
// by names the person or credential that decides, and is kept with the reason, which may be
// "". The same answer of the same person again changes nothing.
//
// Errors: *InvalidError for by and reason, ErrNotFound, ErrOwnRequest where by asked for the
// withdrawal, *StateError where it is too late, and one that wraps ErrAltered where its
// stored rows contradict each other.
func (s *Service) Approve(ctx context.Context, tenant, id, by, reason string) (Withdrawal, error) {
	return s.answer(ctx, tenant, id, Decision{By: by, Answer: AnswerApproved, Reason: reason}, func(m *move) error {
		if err := s.intact(ctx, m); err != nil {
			return err
		}
		m.w.Review = ReviewApproved
		if err := s.approve(&m.w); err != nil || m.w.Frozen {
			return err
		}
		m.w.Reason = ""
		m.wait("", m.now)
		return nil
	})
}

// Refuse ends a withdrawal that was not handed over as failed, and releases its hold. by and
// the errors are as of Approve; the reason is required.
func (s *Service) Refuse(ctx context.Context, tenant, id, by, reason string) (Withdrawal, error) {
	return s.answer(ctx, tenant, id, Decision{By: by, Answer: AnswerRefused, Reason: reason}, func(m *move) error {
		m.w.Reason = reason
		return m.step(onRefuse, Failed)
	})
}

// answer adds a decision to what the payout side cannot know yet, and does what follows.
func (s *Service) answer(ctx context.Context, tenant, id string, d Decision, f func(m *move) error) (Withdrawal, error) {
	bad := &InvalidError{}
	if d.By == "" {
		bad.Add("by", "is required")
	}
	if d.Answer == AnswerRefused && d.Reason == "" {
		bad.Add("reason", "is required")
	}
	bad.AddLong("by", d.By, maxActor)
	bad.AddLong("reason", d.Reason, maxReason)
	if err := bad.Err(); err != nil {
		return Withdrawal{}, err
	}
	return s.decide(ctx, tenant, id, func(m *move) error {
		switch {
		case d.By == m.w.RequestedBy:
			return ErrOwnRequest
		case m.w.Decided(d.By, d.Answer):
			return s.intact(ctx, m)
		case m.w.Status != Pending || m.w.Stage != Kept:
			return &StateError{ID: id, Current: m.w.Status}
		}
		if err := s.decideBy(m, d); err != nil {
			return err
		}
		return f(m)
	})
}

// decideBy notes a decision, seals it and tells of it.
func (s *Service) decideBy(m *move, d Decision) error {
	d.At = m.now
	n := len(m.w.Decisions)
	m.w.Decisions = append(m.w.Decisions[:n:n], d)
	m.touch()
	if err := s.sealDecision(&m.w, n); err != nil {
		return err
	}
	e, err := decided(&m.w, &d, m.now)
	m.told = append(m.told, e)
	return err
}

// sealDecision makes the seal of the nth decision.
func (s *Service) sealDecision(w *Withdrawal, n int) (err error) {
	if s.c.Mandates == nil {
		return nil
	}
	t := w.Terms()
	t.Kind, t.Decision = ofDecision, w.Decisions[n].says(n)
	w.Decisions[n].Seal, err = s.c.Mandates.Make(t)
	return err
}

// forgedDecision says which decision nobody made, "" = none.
func (s *Service) forgedDecision(ctx context.Context, w *Withdrawal) (why string, err error) {
	if s.c.Mandates == nil {
		return "", nil
	}
	for n := range w.Decisions {
		d := &w.Decisions[n]
		t := w.Terms()
		t.Kind, t.Decision = ofDecision, d.says(n)
		why = "it has no seal" // none was ever made without one
		if d.Seal != "" {
			why, err = s.unauthorized(ctx, d.Seal, t)
		}
		if why != "" || err != nil {
			return fmt.Sprintf("decision %d, of %q: %s", n+1, d.By, why), err
		}
	}
	return "", nil
}
