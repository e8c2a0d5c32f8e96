package policy

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Default is the policy of hosts that set no rules. A payout above 100,000 USD waits for one
// approval, by the rule default-amount, and so does each with which more than 500,000 USD
// would go out in 24 hours, by the rule default-day.
func Default() Policy {
	one := []withdrawal.Need{{Count: 1}}
	return Policy{Rules: []Rule{
		{Name: "default-amount", Of: KindAmount, Over: decimal.New(100_000, 0), Then: Review, Needs: one},
		{Name: "default-day", Of: KindSum, Over: decimal.New(500_000, 0), Per: Duration(24 * time.Hour), Then: Review, Needs: one},
	}}
}
