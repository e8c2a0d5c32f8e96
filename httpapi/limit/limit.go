package limit

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Rule is one limit: at most Max requests in a Window. Counters belong to a key
// and a rule's Name; the rules of one Take have different names.
type Rule struct {
	Name   string
	Max    int
	Window time.Duration
}

// State is where a key stands after a request.
type State struct {
	Limit     int       // Max of the rule that this is about
	Remaining int       // further requests until Reset
	Reset     time.Time // when the whole Limit is back
	Allowed   bool
}

// Limiter counts requests. It may be used concurrently.
type Limiter interface {
	// Take counts one request of a key against all rules, or against none where
	// one of them refuses it. The State is of the rule that is nearest to its
	// end: the one with the least remaining; of several that refuse, the one that
	// does so longest. Without a rule everything is allowed. An error means that
	// nothing is known of the request: ErrRule, or the store of the counters.
	Take(ctx context.Context, key string, now time.Time, rules ...Rule) (State, error)
}

// ErrRule: a rule makes no sense. That is the caller's mistake.
var ErrRule = errors.New("limit: a rule needs a name of its own, Max and Window above 0")

// Check is what a Limiter does with its rules first. It wraps ErrRule.
func Check(rules []Rule) error {
	for i, r := range rules {
		if r.Name == "" || r.Max <= 0 || r.Window <= 0 {
			return fmt.Errorf("%w: %+v", ErrRule, r)
		}
		for _, other := range rules[:i] {
			if other.Name == r.Name {
				return fmt.Errorf("%w: %q comes twice", ErrRule, r.Name)
			}
		}
	}
	return nil
}

// Window is one counter: how many requests since when.
type Window struct {
	Start time.Time
	Count int
}

// At is the window as it stands at an instant: a new one where it has ended.
// Where the clock was set back it starts now, and keeps its count.
func (w Window) At(now time.Time, r Rule) Window {
	if w.Count == 0 || !now.Before(w.Start.Add(r.Window)) {
		return Window{Start: now}
	}
	if now.Before(w.Start) {
		w.Start = now
	}
	return w
}

// Judge says whether a request fits into all windows, standing as they do
// before it: windows[i] belongs to rules[i]. Where it fits, the State already
// counts it. Limiters share it, so that they answer alike.
func Judge(rules []Rule, windows []Window) State {
	s := State{Allowed: true}
	for i, r := range rules {
		w := windows[i]
		v := State{Limit: r.Max, Remaining: r.Max - w.Count - 1, Reset: w.Start.Add(r.Window), Allowed: w.Count < r.Max}
		if !v.Allowed {
			v.Remaining = 0
		}
		if i == 0 || nearer(v, s) {
			s = v
		}
	}
	return s
}

// nearer reports whether a's end is nearer than b's.
func nearer(a, b State) bool {
	if a.Allowed != b.Allowed {
		return b.Allowed
	}
	if a.Remaining != b.Remaining {
		return a.Remaining < b.Remaining
	}
	return a.Reset.After(b.Reset)
}
