package withdrawal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/internal/person"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Answer is what a person, the Rules or Config.Policy said of a withdrawal.
type Answer string

// The answers. The first two are of people, the others of the Rules, and AnswerAsked of
// Config.Policy, too.
const (
	AnswerApproved Answer = "approved"
	AnswerRefused  Answer = "refused"
	AnswerAsked    Answer = "asked"   // people have to approve it: Decision.Needs
	AnswerDenied   Answer = "denied"  // it failed
	AnswerDelayed  Answer = "delayed" // it is asked about again later
)

// Decision is one answer: of a person by Approve or Refuse, of the Rules, or of Config.Policy.
type Decision struct {
	By     string    `json:"by"` // the id of a credential, or a name that the host gives; "" = no person
	At     time.Time `json:"at"`
	Answer Answer    `json:"decision"`
	Reason string    `json:"reason,omitempty"`
	// Roles are those that a person had, as the caller of Approve said.
	Roles []string `json:"roles,omitempty"`
	// Rule names the rules that answered, "" = a person or Config.Policy did. Needs is who has to
	// approve.
	Rule  string `json:"rule,omitempty"`
	Needs []Need `json:"needs,omitempty"`
	// Seal proves that the decision was made as it stands: a mandate over it and the
	// withdrawal's terms. App.Reseal makes it again.
	Seal string `json:"seal,omitempty"`
}

// Human reports whether a person gave the answer.
func (d *Decision) Human() bool { return d.Answer == AnswerApproved || d.Answer == AnswerRefused }

// Need is how many people with a role have to approve. One person counts once, for one role.
type Need struct {
	Role  string `json:"role,omitempty"` // "" = whoever may approve
	Count int    `json:"count"`
}

// ErrOwnRequest: who asked for a withdrawal does not decide about it.
var ErrOwnRequest = errors.New("withdrawal: who asked for it may not decide about it")

// ofDecision is the kind of the mandate that is the seal of a decision.
const ofDecision chain.Purpose = "decision"

// says is what the seal of the nth decision covers beside the terms.
func (d *Decision) says(n int) string {
	said := []any{n, d.By, storage.Micros(d.At), d.Answer, d.Reason}
	if len(d.Roles) > 0 || d.Rule != "" || len(d.Needs) > 0 { // decisions of earlier versions have none of them
		said = append(said, d.Roles, d.Rule, d.Needs)
	}
	text, err := json.Marshal(said)
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

// newest is the newest answer that people have to approve the withdrawal, of those that f names,
// nil = there is none, and what was decided since then.
func (w *Withdrawal) newest(f func(d *Decision) bool) (asked *Decision, since []Decision) {
	for n := len(w.Decisions) - 1; n >= 0; n-- {
		if d := &w.Decisions[n]; d.Answer == AnswerAsked && f(d) {
			return d, w.Decisions[n+1:]
		}
	}
	return nil, w.Decisions
}

// Who asks: the Rules, Config.Policy, or either.
func byRules(d *Decision) bool  { return d.Rule != "" }
func byPolicy(d *Decision) bool { return d.Rule == "" }
func byAny(*Decision) bool      { return true }

// asked is newest of the Rules.
func (w *Withdrawal) asked() (newest *Decision, since []Decision) { return w.newest(byRules) }

// ApprovalsRequired is how many people have to approve the withdrawal: as many as the Rules
// say, 1 more where Config.Policy asked after them, 1 where it alone asked, else 0.
func (w *Withdrawal) ApprovalsRequired() (all int) {
	asked, since := w.asked()
	if asked != nil {
		all = asked.count()
		for i := range since {
			if since[i].Answer == AnswerAsked {
				all += since[i].count()
			}
		}
		return all
	}
	if w.Review == ReviewWanted || w.Review == ReviewApproved && len(w.Decisions) > 0 {
		return 1
	}
	return 0
}

// count is how many people a question wants.
func (d *Decision) count() (all int) {
	for _, n := range d.Needs {
		all += n.Count
	}
	return all
}

// stands reports whether w may go out although the Rules say j now: people have approved it
// since the same rules asked, or it was made approved, as PayMissing does. A refusal or a delay
// wins over people.
func (w *Withdrawal) stands(j *Judgement) bool {
	asked, _ := w.asked()
	switch {
	case w.Review != ReviewApproved:
		return false
	case len(w.Decisions) == 0:
		return true
	case j.Verdict != AskReview || asked == nil:
		return false
	}
	seen := strings.Split(asked.Rule, ",")
	return !slices.ContainsFunc(strings.Split(j.Rule, ","), func(rule string) bool { return !slices.Contains(seen, rule) })
}

// answered reports whether w may go out although Config.Policy asks for a review: a person has
// approved it since it asked first, or it was made approved. What an earlier version noted of
// approvals does not say that Config.Policy had asked. There one stands if no rule asked for it.
func (w *Withdrawal) answered() bool {
	if w.Review != ReviewApproved {
		return false
	}
	mine, since := w.newest(byPolicy)
	if mine == nil {
		ruled, _ := w.asked()
		return ruled == nil
	}
	return slices.ContainsFunc(since, func(d Decision) bool { return d.Answer == AnswerApproved })
}

// Rule names the rules that asked about the withdrawal, delayed or refused it last; "" = none
// did.
func (w *Withdrawal) Rule() string {
	for n := len(w.Decisions) - 1; n >= 0; n-- {
		if w.Decisions[n].Rule != "" {
			return w.Decisions[n].Rule
		}
	}
	return ""
}

// enough reports whether the people who have approved w since the Rules asked are those whom
// they want, and those since Config.Policy asked, whom it wants.
func (w *Withdrawal) enough() bool {
	for _, by := range []func(*Decision) bool{byRules, byPolicy} {
		if asked, since := w.newest(by); asked != nil && !asked.content(since) {
			return false
		}
	}
	return true
}

// content reports whether a question has the approvals that it wants, in what was decided since.
func (d *Decision) content(since []Decision) bool {
	var seats []string // one for each approval that is needed, with its role
	for _, n := range d.Needs {
		for range n.Count {
			seats = append(seats, n.Role)
		}
	}
	var people []*Decision // with their newest approval: it may come with another role
	for n := len(since) - 1; n >= 0; n-- {
		if d := &since[n]; d.Answer == AnswerApproved && !slices.ContainsFunc(people, func(p *Decision) bool { return person.Same(p.By, d.By) }) {
			people = append(people, d)
		}
	}
	taken := make([]int, len(people)) // the seat of each, from 1; 0 = none
	for seat := range seats {
		if !seated(seats, people, taken, seat, make([]bool, len(people))) {
			return false
		}
	}
	return true
}

// seated gives a seat to one of the people; who sits elsewhere may move on.
func seated(seats []string, people []*Decision, taken []int, seat int, tried []bool) bool {
	for i, d := range people {
		if tried[i] || seats[seat] != "" && !slices.Contains(d.Roles, seats[seat]) {
			continue
		}
		tried[i] = true
		if taken[i] == 0 || seated(seats, people, taken, taken[i]-1, tried) {
			taken[i] = seat + 1
			return true
		}
	}
	return false
}

// Decided reports whether somebody has given this answer, in these roles, since the Rules or
// Config.Policy asked last.
func (w *Withdrawal) Decided(by string, a Answer, roles ...string) bool {
	_, since := w.newest(byAny)
	return slices.ContainsFunc(since, func(d Decision) bool {
		return person.Same(d.By, by) && d.Answer == a && !slices.ContainsFunc(roles, func(r string) bool { return !slices.Contains(d.Roles, r) })
	})
}

// Approve says that a withdrawal may go out. It goes once as many people have approved it as
// the Rules want, and one since Config.Policy asked, where it does. An approval counts for what
// was asked before it: if other rules ask when it is handed over, or Config.Policy does for the
// first time, people approve it anew, and what they refuse or delay then is refused or waits.
// One that nobody has asked for is kept, has the withdrawal handed over at once, and answers
// nothing that is asked then. A Hold stays in force. by names the person or
// credential that decides, and is kept with the reason, which may be "". Names that differ only
// in case and in spaces around them are one person, who counts once. The roles are what the
// caller knows that person to have: an approval without a role that is needed is kept and does
// not count for it, and the same person may approve again with the role. Else the same answer
// of the same person again changes nothing.
//
// Errors: *InvalidError for by, roles and reason, ErrNotFound, ErrOwnRequest where by asked for
// the withdrawal, *StateError where it is too late, one that wraps ErrAltered where its
// stored rows contradict each other, and those of the Rules.
func (s *Service) Approve(ctx context.Context, tenant, id, by, reason string, roles ...string) (Withdrawal, error) {
	first := func(m *move) error {
		if err := s.intact(ctx, m); err != nil {
			return err
		}
		return s.ask(ctx, m)
	}
	return s.answer(ctx, tenant, id, Decision{By: by, Answer: AnswerApproved, Reason: reason, Roles: roles}, first, func(m *move) error {
		if !m.w.enough() {
			return nil // others have to approve it, too
		}
		if m.w.Review != ReviewNone { // else nobody has asked, so nothing proves that it may go out
			m.w.Review = ReviewApproved
			if err := s.approve(&m.w); err != nil {
				return err
			}
		}
		if m.w.Frozen {
			return nil
		}
		m.w.Reason = ""
		m.wait("", m.now)
		return nil
	})
}

// ask asks the Rules who has to approve a withdrawal that they were not asked about yet, so
// that nobody is quicker than they are.
func (s *Service) ask(ctx context.Context, m *move) error {
	if asked, _ := m.w.asked(); s.c.Rules == nil || asked != nil {
		return nil
	}
	j, err := s.c.Rules.Judge(ctx, &m.w, m.now)
	switch {
	case err != nil:
		return err
	case j.Verdict == Refuse || j.Verdict == Delay:
		return &StateError{ID: m.w.ID, Current: m.w.Status, Reason: j.text()}
	case j.Verdict == Allow:
		return nil
	}
	m.require = append(m.require, j.Require...)
	m.w.Review, m.w.Reason = ReviewWanted, j.text()
	m.reason(WaitingApproval)
	m.due = never
	return s.ruled(m, AnswerAsked, &j)
}

// ruled notes an answer of the Rules, once.
func (s *Service) ruled(m *move, a Answer, j *Judgement) error {
	n := len(m.w.Decisions)
	if n > 0 && m.w.Decisions[n-1].Answer == a && m.w.Decisions[n-1].Rule == j.Rule {
		return nil
	}
	return s.note(m, Decision{Answer: a, Reason: j.Reason, Rule: j.Rule, Needs: j.Needs})
}

// note adds a decision, and seals it.
func (s *Service) note(m *move, d Decision) error {
	d.At = m.now
	n := len(m.w.Decisions)
	m.w.Decisions = append(m.w.Decisions[:n:n], d)
	m.touch()
	return s.sealDecision(&m.w, n)
}

// Refuse ends a withdrawal that was not handed over as failed, and releases its hold. by and
// the errors are as of Approve; the reason is required.
func (s *Service) Refuse(ctx context.Context, tenant, id, by, reason string) (Withdrawal, error) {
	return s.answer(ctx, tenant, id, Decision{By: by, Answer: AnswerRefused, Reason: reason}, nil, func(m *move) error {
		m.w.Reason = reason
		return m.step(onRefuse, Failed)
	})
}

// answer adds a decision to what the payout side cannot know yet, and does what follows. first
// comes before it, nil = nothing does.
func (s *Service) answer(ctx context.Context, tenant, id string, d Decision, first, f func(m *move) error) (Withdrawal, error) {
	bad := &InvalidError{}
	if person.None(d.By) {
		bad.Add("by", "is required")
	}
	if d.Answer == AnswerRefused && d.Reason == "" {
		bad.Add("reason", "is required")
	}
	bad.AddLong("by", d.By, maxActor)
	bad.AddLong("reason", d.Reason, maxReason)
	if len(d.Roles) > maxRoles {
		bad.Add("roles", fmt.Sprintf("must be at most %d", maxRoles))
	}
	for _, r := range d.Roles {
		bad.AddLong("roles", r, maxActor)
	}
	if err := bad.Err(); err != nil {
		return Withdrawal{}, err
	}
	return s.act(ctx, tenant, id, func(m *move) error {
		switch {
		case person.Same(d.By, m.w.RequestedBy):
			return ErrOwnRequest
		case m.w.Decided(d.By, d.Answer, d.Roles...):
			return s.intact(ctx, m)
		case m.w.Status != Pending || m.w.Stage != Kept:
			return &StateError{ID: id, Current: m.w.Status}
		}
		if first != nil {
			if err := first(m); err != nil {
				return err
			}
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
	if err := s.note(m, d); err != nil {
		return err
	}
	kind := audit.Approve
	if d.Answer == AnswerRefused {
		kind = audit.Refuse
	}
	m.record(audit.Act{Kind: kind, By: d.By, Reason: d.Reason}, m.w.Requested, d.Roles...)
	e, err := decided(&m.w, &d, m.now)
	m.told = append(m.told, e)
	return err
}

// decision is what a person decides about, as the record of it shows it.
type decision struct {
	Amount      string   `json:"amount"`
	Currency    string   `json:"currency"`
	Address     string   `json:"address"`
	Memo        string   `json:"memo,omitempty"`
	Roles       []string `json:"roles,omitempty"`
	RequestedBy string   `json:"requested_by,omitempty"`
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
