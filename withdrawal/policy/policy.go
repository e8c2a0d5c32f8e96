package policy

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Policy is what the payouts of a tenant are held to. All rules are asked: one that refuses
// wins, then one that delays; where several want approvals, the most for each role is wanted.
type Policy struct {
	// Rules that are nil are those of Config.Default; empty ones are none.
	Rules []Rule `json:"rules"`
	// Cold are the addresses that hot coins go to which are above a ceiling: at most one of
	// each currency. No rule bounds these moves: the money stays the tenant's.
	Cold []Cold `json:"cold,omitempty"`
	// Sweeps say how long coins on deposit addresses wait for cheaper times: at most one of
	// each currency.
	Sweeps []Sweep `json:"sweeps,omitempty"`
}

// Sweep has the coins that customers paid wait at their addresses, for at most Wait, until moving
// them costs at most one part in Multiple of what is moved: fees fall, or more comes. After Wait they
// go as coins without such a line do, at half of their worth at most. A payout that needs them ends
// the wait. A payment does not wait for it: it is credited as ever.
type Sweep struct {
	Currency string   `json:"currency"` // combined code
	Multiple uint64   `json:"multiple"` // 3 to 1,000
	Wait     Duration `json:"wait"`     // 1 minute to 31 days
}

// Rule is one bound. What is beyond it is refused, or waits for people to approve it.
type Rule struct {
	// Name is shown where the rule decides: 1 to 32 of a–z, 0–9, - and _.
	Name string `json:"name"`
	// Of says what is bounded.
	Of Kind `json:"of"`
	// Over is the most that goes out without more ado: USD, or coins of Currency, fees
	// included; of KindCount a whole number.
	Over decimal.Decimal `json:"over,omitzero"`
	// Per is the time in which a sum or a number is bounded, 1 minute to 31 days; of
	// KindDestination how long a destination must have been on the list, 0 to 31 days.
	Per Duration `json:"per,omitzero"`
	// Currency is that of the payouts which the rule is about; "" = of all, valued in USD.
	Currency string `json:"currency,omitempty"`
	// EachDestination has KindSum and KindCount count each destination by itself.
	EachDestination bool `json:"each_destination,omitempty"`
	// Then is what becomes of a payout beyond the bound. Defaults to review.
	Then Action `json:"then,omitempty"`
	// Needs is who has to approve, with review. Defaults to one approver.
	Needs []withdrawal.Need `json:"needs,omitempty"`
}

// Kind is what a Rule bounds.
type Kind string

// The kinds of rules.
const (
	KindAmount      Kind = "amount"      // one payout
	KindSum         Kind = "sum"         // what goes out in Rule.Per
	KindCount       Kind = "count"       // how many go out in Rule.Per
	KindDestination Kind = "destination" // only to what is on the tenant's list: Service.Allow
)

// Action is what becomes of a payout beyond a bound.
type Action string

// The actions.
const (
	Review Action = "review" // people have to approve it
	Refuse Action = "refuse" // it fails, and its money is free again
)

// Duration is a time.Duration that is a text in JSON: "90m", "24h".
type Duration time.Duration

// MarshalText implements encoding.TextMarshaler.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *Duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	if err != nil {
		return fmt.Errorf("policy: %q is no duration: write it as 90m or 24h", text)
	}
	*d = Duration(parsed)
	return nil
}

// The bounds of a Policy.
const (
	maxRules   = 50
	maxNeeds   = 10
	maxPeople  = 10
	maxRole    = 64
	longest    = Duration(31 * 24 * time.Hour)
	shortest   = Duration(time.Minute)
	maxBytes   = 64 << 10
	maxCount   = 1_000_000
	maxDigits  = 30
	maxExplain = 1000
)

// What a Sweep may ask for. Less than 3 is what is asked of all.
const (
	leastMultiple = 3
	mostMultiple  = 1000
)

func (p *Policy) checkSweeps(r *chain.Registry, bad *fault.InvalidError) {
	seen := map[string]bool{}
	for i, s := range p.Sweeps {
		at := fmt.Sprintf("sweeps[%d].", i)
		if _, err := r.Currency(s.Currency); err != nil {
			bad.Add(at+"currency", "is not one that is listed")
		}
		if seen[s.Currency] {
			bad.Add(at+"currency", "has another line already")
		}
		seen[s.Currency] = true
		if s.Multiple < leastMultiple || s.Multiple > mostMultiple {
			bad.Add(at+"multiple", fmt.Sprintf("must be %d to %d", leastMultiple, mostMultiple))
		}
		if s.Wait < shortest || s.Wait > longest {
			bad.Add(at+"wait", "must be 1m to 744h")
		}
	}
}

var name = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// check fills in what a Policy leaves out. The error names each field that is wrong.
func (p *Policy) check(r *chain.Registry) error {
	bad := &fault.InvalidError{}
	if len(p.Rules) > maxRules {
		bad.Add("rules", fmt.Sprintf("must be at most %d", maxRules))
	}
	seen := map[string]bool{}
	for i := range p.Rules {
		rule := &p.Rules[i]
		at := fmt.Sprintf("rules[%d].", i)
		if !name.MatchString(rule.Name) {
			bad.Add(at+"name", "must be 1 to 32 of a-z, 0-9, - and _")
		}
		if seen[rule.Name] {
			bad.Add(at+"name", "is the name of another rule")
		}
		seen[rule.Name] = true
		rule.check(at, r, bad)
	}
	p.checkSweeps(r, bad)
	return bad.Err()
}

func (r *Rule) check(at string, registry *chain.Registry, bad *fault.InvalidError) {
	if !slices.Contains([]Kind{KindAmount, KindSum, KindCount, KindDestination}, r.Of) {
		bad.Add(at+"of", "must be amount, sum, count or destination")
		return
	}
	if r.Currency != "" {
		if _, err := registry.Currency(r.Currency); err != nil {
			bad.Add(at+"currency", "is not one that is listed")
		}
	}
	r.checkOver(at, bad)
	switch windows := r.windows(); {
	case windows && (r.Per < shortest || r.Per > longest):
		bad.Add(at+"per", "must be 1m to 744h")
	case r.Of == KindDestination && (r.Per < 0 || r.Per > longest):
		bad.Add(at+"per", "must be 0s to 744h")
	case r.Of == KindAmount && r.Per != 0:
		bad.Add(at+"per", "is not for a rule about one payout")
	}
	if r.EachDestination && !r.windows() {
		bad.Add(at+"each_destination", "is for rules about a sum or a number")
	}
	r.checkThen(at, bad)
}

func (r *Rule) checkOver(at string, bad *fault.InvalidError) {
	switch {
	case r.Of == KindDestination && !r.Over.IsZero():
		bad.Add(at+"over", "is not for a rule about destinations")
	case r.Over.IsNegative():
		bad.Add(at+"over", "must not be negative")
	case r.Of == KindCount && (!r.Over.IsInteger() || r.Over.GreaterThan(decimal.NewFromInt(maxCount))):
		bad.Add(at+"over", fmt.Sprintf("must be a whole number of at most %d", maxCount))
	case long(r.Over):
		bad.Add(at+"over", fmt.Sprintf("has more than %d digits", maxDigits))
	}
}

func (r *Rule) checkThen(at string, bad *fault.InvalidError) {
	switch r.Then {
	case "":
		r.Then = Review
	case Review:
	case Refuse:
		if len(r.Needs) > 0 {
			bad.Add(at+"needs", "is for rules that ask people")
		}
		return
	default:
		bad.Add(at+"then", "must be review or refuse")
	}
	if len(r.Needs) == 0 {
		r.Needs = []withdrawal.Need{{Count: 1}}
	}
	if len(r.Needs) > maxNeeds {
		bad.Add(at+"needs", fmt.Sprintf("must be at most %d", maxNeeds))
	}
	roles := map[string]bool{}
	for i, n := range r.Needs {
		at := fmt.Sprintf("%sneeds[%d].", at, i)
		if n.Count < 1 || n.Count > maxPeople {
			bad.Add(at+"count", fmt.Sprintf("must be 1 to %d", maxPeople))
		}
		bad.AddLong(at+"role", n.Role, maxRole)
		if roles[n.Role] {
			bad.Add(at+"role", "is named twice")
		}
		roles[n.Role] = true
	}
}

// windows reports whether the rule counts what went out before.
func (r *Rule) windows() bool { return r.Of == KindSum || r.Of == KindCount }

// about reports whether the rule bounds payouts of a currency.
func (r *Rule) about(currency string) bool { return r.Currency == "" || r.Currency == currency }

// unit is what amounts of the rule are in.
func (r *Rule) unit() string {
	if r.Currency == "" {
		return "USD"
	}
	return r.Currency
}

// text is the policy as it is stored and sealed.
func (p *Policy) text() (string, error) {
	b, err := json.Marshal(p)
	if err == nil && len(b) > maxBytes {
		err = fault.Invalid("rules", fmt.Sprintf("must be at most %d bytes of JSON", maxBytes))
	}
	return string(b), err
}
