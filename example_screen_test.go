package cryptopay_test

import (
	"context"
	"fmt"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/payment"
)

// Screen deposits: what the host's own check wants looked at counts for nothing until a person
// releases it. Then it counts as if it had never been held.
func Example_screenDeposits() {
	ctx := context.Background()
	s := openShop(ctx, func(c *cryptopay.Config) {
		c.Payments.Screen = func(_ context.Context, d payment.Subject) (payment.Verdict, string, error) {
			if d.Amount.IntPart() >= 1000 { // a host asks a service about d.From here
				return payment.AskReview, "1,000 or more", nil
			}
			return payment.Allow, "", nil
		}
	})
	small, large := s.Payment("25", "USDTERC20"), s.Payment("2500", "USDTERC20")
	fmt.Println(s.Customer.Pays(small).Status, s.Customer.Pays(large).Status)

	held, err := s.App.Payments.Suspense(ctx, s.ID, 10, 0)
	check(err)
	fmt.Println(held[0].Role, held[0].ScreenReason)
	_, _, err = s.App.Operate.ReleaseSuspense(ctx, s.ID, held[0].ID, cryptopay.Call{By: "ann", Reason: "a known customer"})
	check(err)
	s.Settle()
	fmt.Println(s.PaymentNow(large.ID).Status)
	// Output:
	// completed waiting
	// held 1,000 or more
	// completed
}
