package policy

import (
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// DefaultAmount is the most that goes out at once without an approval where a host sets no
// rules, in USD.
const DefaultAmount = 100_000

// Default is the policy of hosts that set no rules: a payout above DefaultAmount waits for one
// approval. It bounds no sum of a day: payouts of one tenant that are counted wait for each
// other, which is a host's choice.
func Default() Policy {
	return Policy{Rules: []Rule{{
		Name: "default-amount", Of: KindAmount, Over: decimal.New(DefaultAmount, 0), Then: Review, Needs: []withdrawal.Need{{Count: 1}},
	}}}
}
