package chain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// Step says what a deposit needs to be final from a value on; see Currency.Steps.
type Step struct {
	From          decimal.Decimal // USD
	Confirmations int64
	// WaitFinal asks, beyond Confirmations, for the network's own finality where the client
	// reports it.
	WaitFinal bool
}

// Needs is the step of a deposit that is worth so many USD. Without Steps it is what the
// currency asks of every deposit. Where the value is not known it is the highest step.
func (c *Currency) Needs(usd decimal.Decimal, known bool) Step {
	if len(c.Steps) == 0 {
		return Step{Confirmations: c.Confirmations, WaitFinal: c.WaitFinal}
	}
	if !known {
		return c.Steps[len(c.Steps)-1]
	}
	need := c.Steps[0]
	for _, s := range c.Steps {
		if usd.GreaterThanOrEqual(s.From) {
			need = s
		}
	}
	return need
}

// Waits reports whether a deposit that needs so many confirmations waits for the network's own
// finality, too. A step is known again by its confirmations, which rise from step to step.
func (c *Currency) Waits(confirmations int64) bool {
	if len(c.Steps) == 0 {
		return c.WaitFinal
	}
	return slices.ContainsFunc(c.Steps, func(s Step) bool { return s.WaitFinal && confirmations >= s.Confirmations })
}

// Deepest is the most confirmations that the currency asks of anything.
func (c *Currency) Deepest() int64 {
	deepest := c.Confirmations
	for _, s := range c.Steps {
		deepest = max(deepest, s.Confirmations)
	}
	return deepest
}

// CheckSteps returns what is wrong with the Steps, as NewRegistry does.
func (c *Currency) CheckSteps() error {
	for i, s := range c.Steps {
		last := i == len(c.Steps)-1
		switch {
		case i == 0 && !s.From.IsZero():
			return errors.New("the first step must be from 0 USD on")
		case s.Confirmations < 1:
			return errors.New("at least 1 confirmation is required at every step")
		case i > 0 && (!s.From.GreaterThan(c.Steps[i-1].From) || s.Confirmations <= c.Steps[i-1].Confirmations):
			return errors.New("the values and the confirmations must rise from step to step")
		case i > 0 && c.Steps[i-1].WaitFinal && !s.WaitFinal:
			return errors.New("a step above one that waits for the network's finality must wait for it, too")
		case last && (s.Confirmations < c.Confirmations || c.WaitFinal && !s.WaitFinal):
			return fmt.Errorf("the last step must ask for no less than the currency does: %d confirmations", c.Confirmations)
		}
	}
	return nil
}

// ParseSteps reads steps as settings write them: "0=1, 100=12, 10000=64 final". Each entry is
// the value in USD from which on it holds, and its confirmations; final asks for the network's
// own finality, too. NewRegistry checks what they are together.
func ParseSteps(v string) ([]Step, error) {
	var out []Step
	for _, entry := range strings.Split(v, ",") {
		from, need, _ := strings.Cut(strings.TrimSpace(entry), "=")
		need, final := strings.CutSuffix(strings.TrimSpace(need), " final")
		usd, err := ledger.ParseDecimal(strings.TrimSpace(from))
		n, nerr := strconv.ParseInt(strings.TrimSpace(need), 10, 32)
		if err != nil || nerr != nil || usd.IsNegative() || n < 1 {
			return nil, fmt.Errorf("must be USD=CONFIRMATIONS,…, such as 0=1,100=12,10000=64 final: not %q", strings.TrimSpace(entry))
		}
		out = append(out, Step{From: usd, Confirmations: n, WaitFinal: final})
	}
	return out, nil
}

// StepsOf reads the steps of a network's currencies as ParseSteps does, and two words beside:
// none, and suggested, which is SuggestedSteps.
func StepsOf(n Network, v string) ([]Step, error) {
	switch v {
	case "none":
		return nil, nil
	case "suggested":
		if steps := SuggestedSteps(n); steps != nil {
			return steps, nil
		}
		return nil, fmt.Errorf("there are no suggested ones for %s", n)
	}
	return ParseSteps(v)
}

// SuggestedSteps are steps that a host may take for the currencies of a network. None are on
// unless it does. There are none where a deposit is final at once, or where fewer confirmations
// than are shipped are no safe suggestion and more bring nothing: AVAX, TRX, SOL, XRP, XLM.
// docs/networks.md has the reasons.
func SuggestedSteps(n Network) []Step {
	steps, err := ParseSteps(suggested[n])
	if err != nil {
		return nil
	}
	return steps
}

// suggested are the steps by network, from 0, 100 and 10,000 USD on.
var suggested = map[Network]string{
	"ETH": "0=1,100=12,10000=64 final", // no reorg of more than one block since the merge is usual; two epochs finalize
	"BTC": "0=1,100=2,10000=6",         // a block is stale once in some hundreds; six are the custom for large sums
	"LTC": "0=3,100=6,10000=24",        // forks of its extension blocks were deeper than those of Bitcoin
	// Blocks a minute apart: forks of one or two are usual.
	"DOGE":    "0=6,100=20,10000=60",
	"ADA":     "0=5,100=15,10000=60",         // 5 to 10 blocks are settled against everything but an attack
	"BSC":     "0=3,100=15,10000=120 final",  // two blocks are final by votes; without votes 120 are two thirds
	"POLYGON": "0=16,100=64,10000=256 final", // had forks of more than a hundred blocks before milestones
	// The sequencer's word comes first. Ethereum's comes with the tag.
	"ARB": "0=1,100=20,10000=40 final", "BASE": "0=1,100=20,10000=40 final", "OPTIMISM": "0=1,100=20,10000=40 final",
}
