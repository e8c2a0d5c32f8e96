package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// usage is the table of what went out by a rule in its time: a row for each rule and unit, and
// each destination where the rule counts them apart.
var usage = storage.NewTable[use]("policy_uses")

// use is what a rule counted. Slots are kept for a rule's time, and no longer.
type use struct {
	Rule  string    `db:"rule"`
	Slots []slot    `db:"slots,json"` // oldest first
	At    time.Time `db:"at"`         // of the newest
}

// slot is what went out in a part of a rule's time.
type slot struct {
	From  time.Time       `json:"from"`
	To    time.Time       `json:"to"`
	Sum   decimal.Decimal `json:"sum"`
	Count int64           `json:"count"`
}

// parts is in how many slots a rule's time is divided. What went out counts until its whole
// slot is as old as that time.
const parts = 24

// Judge implements withdrawal.Rules. A payout is counted where it is handed over, whether rules
// or people let it go; one that fails afterwards goes on counting for the rule's time.
func (s *Service) Judge(ctx context.Context, w *withdrawal.Withdrawal, now time.Time) (withdrawal.Judgement, error) {
	v, at, err := s.get(ctx, w.Tenant)
	if err != nil {
		return withdrawal.Judgement{}, err
	}
	j := judging{s: s, w: w, now: now}
	j.verdict.Require = []storage.Guard{Policies.Guard(current, at.Version)}
	for i := range v.Rules {
		if v.Rules[i].about(w.Currency) {
			j.rules = append(j.rules, &v.Rules[i])
		}
	}
	if err := j.read(ctx); err != nil {
		return withdrawal.Judgement{}, err
	}
	if !slices.ContainsFunc(j.rules, (*Rule).windows) {
		return j.judgement(nil), nil
	}
	return j.counted(ctx)
}

// counted judges by what went out before. Payouts of one Work are judged in their order, each
// as if those before it that may go had gone out: so all of them are counted in one Commit. Where
// one of these does not go out in that Commit, those after it conflict and are judged again.
func (j *judging) counted(ctx context.Context) (withdrawal.Judgement, error) {
	type answer struct {
		judgement withdrawal.Judgement
		err       error
	}
	a := storage.Together(ctx, "policy/"+j.w.Tenant, j, func(ctx context.Context, all []*judging) []answer {
		out := make([]answer, len(all))
		uses, err := j.s.usesOf(ctx, all)
		for i, one := range all {
			if out[i].err = err; err == nil {
				out[i].judgement = one.judgement(uses)
			}
		}
		return out
	})
	return a.judgement, a.err
}

// usesOf reads what the rules of judgements about one tenant's payouts counted, by id.
func (s *Service) usesOf(ctx context.Context, all []*judging) (map[string]storage.Row, error) {
	var ids []string
	for _, j := range all {
		for _, r := range j.rules {
			if id := j.id(r); r.windows() && !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	rows, err := s.c.Store.Rows(ctx, usage.Table, storage.Keys(storage.Tenant(all[0].w.Tenant), ids...)...)
	uses := make(map[string]storage.Row, len(rows))
	for _, r := range rows {
		uses[r.ID] = r
	}
	return uses, err
}

// judgement asks all rules. uses is what they counted; where the payout may go, it is then
// among it.
func (j *judging) judgement(uses map[string]storage.Row) withdrawal.Judgement {
	for _, r := range j.rules {
		j.rule(r, uses)
	}
	v := j.sum()
	for _, r := range v.Count {
		if v.Verdict != withdrawal.Allow { // those before it may not go out
			v.Require = append(v.Require, usage.Guard(r.ID, r.Version))
			continue
		}
		r.Version++ // as its Change leaves it
		uses[r.ID] = r
	}
	return v
}

// judging is one Judge.
type judging struct {
	s       *Service
	w       *withdrawal.Withdrawal
	now     time.Time
	rules   []*Rule
	coins   decimal.Decimal // of the payout, fees included
	usd     decimal.Decimal // its value, where a rule asks
	listed  *Destination    // nil = it is not on the list
	verdict withdrawal.Judgement

	refused, delayed, asked []said
}

// said is a rule that is not content.
type said struct {
	rule *Rule
	why  string
}

// id names the row that counts for a rule.
func (j *judging) id(r *Rule) string {
	each := "all"
	if r.EachDestination {
		each = j.destination()
	}
	return r.Name + "/" + string(r.Of) + "/" + r.unit() + "/" + each
}

func (j *judging) destination() string {
	return destinationID(chain.Network(j.w.Network), j.w.Address, j.w.SentMemo)
}

// read reads all that the rules need.
func (j *judging) read(ctx context.Context) error {
	var values, lists bool
	for _, r := range j.rules {
		values = values || r.Currency == "" && (r.Of == KindAmount || r.Of == KindSum)
		lists = lists || r.Of == KindDestination
	}
	c, err := j.s.c.Registry.Currency(j.w.Currency)
	if err != nil {
		return err
	}
	j.coins = c.Decimal(j.w.Requested)
	if values {
		price, err := j.s.c.Rates.Rate(storage.Apart(ctx), c.Token, "USD")
		if err != nil {
			return fmt.Errorf("policy: value of the payout: %w", err)
		}
		j.usd = j.coins.Mul(price.Price)
	}
	if lists {
		return j.readList(ctx, storage.Tenant(j.w.Tenant))
	}
	return nil
}

func (j *judging) readList(ctx context.Context, p storage.Partition) error {
	d, at, ok, err := Destinations.One(ctx, j.s.c.Store, p, j.destination())
	if err != nil {
		return err
	}
	j.verdict.Require = append(j.verdict.Require, Destinations.Guard(j.destination(), at.Version))
	if !ok || !d.RemovedAt.IsZero() {
		return nil
	}
	same := d.Network == chain.Network(j.w.Network) && d.Address == j.w.Address && d.Memo == j.w.SentMemo
	if err = j.s.sealed(ctx, d.Seal, d.terms(j.w.Tenant)); err == nil && same {
		j.listed = &d
	}
	if errors.Is(err, ErrAltered) { // who edits a list has nothing on it
		err = nil
	}
	return err
}

// amount is the payout in the unit of a rule.
func (j *judging) amount(r *Rule) decimal.Decimal {
	if r.Currency == "" {
		return j.usd
	}
	return j.coins
}

// rule judges by one rule.
func (j *judging) rule(r *Rule, uses map[string]storage.Row) {
	switch r.Of {
	case KindAmount:
		if a := j.amount(r); a.GreaterThan(r.Over) {
			j.says(r, fmt.Sprintf("it is %s %s, above %s", shown(a), r.unit(), r.Over))
		}
		return
	case KindDestination:
		j.ruleDestination(r)
		return
	}
	stored, used := uses[j.id(r)], use{}
	if stored.Version > 0 {
		used = usage.Value(stored)
	}
	sum, count := used.within(j.now, r.Per)
	per := time.Duration(r.Per).String()
	switch {
	case r.Of == KindSum && sum.Add(j.amount(r)).GreaterThan(r.Over):
		j.says(r, fmt.Sprintf("with %s %s that went out in %s it would be %s, above %s", shown(sum), r.unit(), per, shown(sum.Add(j.amount(r))), r.Over))
	case r.Of == KindCount && decimal.NewFromInt(count+1).GreaterThan(r.Over):
		j.says(r, fmt.Sprintf("%d went out in %s, of at most %s", count, per, r.Over))
	}
	used.add(j.now, r, j.amount(r))
	j.verdict.Count = append(j.verdict.Count, usage.Row(j.id(r), stored.Version, time.Time{}, used))
}

func (j *judging) ruleDestination(r *Rule) {
	if j.listed == nil {
		j.says(r, "the destination is not on the list")
		return
	}
	if from := j.listed.At.Add(time.Duration(r.Per)); from.After(j.now) {
		j.delayed = append(j.delayed, said{r, "the destination is on the list, and may be paid from " + from.UTC().Format(time.RFC3339)})
		if from.After(j.verdict.Until) {
			j.verdict.Until = from
		}
	}
}

// says notes that a rule is not content.
func (j *judging) says(r *Rule, why string) {
	if r.Then == Refuse {
		j.refused = append(j.refused, said{r, why})
		return
	}
	j.asked = append(j.asked, said{r, why})
}

// sum makes one answer of those of all rules.
func (j *judging) sum() withdrawal.Judgement {
	v := j.verdict
	of := func(verdict withdrawal.Verdict, all []said) withdrawal.Judgement {
		names, reasons := make([]string, len(all)), make([]string, len(all))
		for i, a := range all {
			names[i], reasons[i] = a.rule.Name, a.why
		}
		v.Verdict, v.Rule, v.Reason = verdict, strings.Join(names, ","), strings.Join(reasons, "; ")
		return v
	}
	switch {
	case len(j.refused) > 0:
		return of(withdrawal.Refuse, j.refused)
	case len(j.delayed) > 0:
		return of(withdrawal.Delay, j.delayed)
	case len(j.asked) > 0:
		v.Needs = needs(j.asked)
		return of(withdrawal.AskReview, j.asked)
	}
	v.Verdict = withdrawal.Allow
	return v
}

// needs is the most that rules want of each role, in the order of their first mention.
func needs(all []said) (out []withdrawal.Need) {
	for _, a := range all {
	next:
		for _, n := range a.rule.Needs {
			for i := range out {
				if out[i].Role == n.Role {
					out[i].Count = max(out[i].Count, n.Count)
					continue next
				}
			}
			out = append(out, n)
		}
	}
	return out
}

// within is what went out in a time that ends now.
func (u *use) within(now time.Time, per Duration) (sum decimal.Decimal, count int64) {
	for _, s := range u.Slots {
		if s.To.After(now.Add(-time.Duration(per))) {
			sum, count = sum.Add(s.Sum), count+s.Count
		}
	}
	return sum, count
}

// add counts a payout.
func (u *use) add(now time.Time, r *Rule, amount decimal.Decimal) {
	per := time.Duration(r.Per)
	width := per / parts
	from := now.Truncate(width)
	u.Rule, u.At = r.Name, now
	var kept []slot
	for _, s := range u.Slots {
		if s.To.After(now.Add(-per)) { // in a new list: a judgement of another payout may hold the old one
			kept = append(kept, s)
		}
	}
	u.Slots = kept
	if n := len(u.Slots); n > 0 && !u.Slots[n-1].From.Before(from) {
		u.Slots[n-1].Sum, u.Slots[n-1].Count = u.Slots[n-1].Sum.Add(amount), u.Slots[n-1].Count+1
		return
	}
	u.Slots = append(u.Slots, slot{from.UTC(), from.Add(width).UTC(), amount, 1})
}

// shown is an amount with at most 8 places.
func shown(d decimal.Decimal) string { return d.Round(8).String() }
