package cryptopay_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// A policy has large withdrawals wait for a person, who is told of them.
func Example_review() {
	ctx := context.Background()
	s := openShop(ctx, func(c *cryptopay.Config) {
		c.Withdrawals.Policy = func(_ context.Context, w withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
			return withdrawal.AskReview, "every withdrawal is looked at", nil
		}
		c.Withdrawals.Notify = func(_ context.Context, n withdrawal.Notice) { fmt.Println(n.Kind+":", n.Detail) }
	})
	s.Customer.Pays(s.Payment("25", "USDTERC20"))
	amount := decimal.RequireFromString("10")
	w, err := s.App.Withdrawals.Create(ctx, s.ID, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &amount, Currency: "USDTERC20", Address: string(s.Chains["ETH"].Customer("supplier"))},
	})
	check(err)
	s.Mine(5)
	w, err = s.App.Withdrawals.Get(ctx, s.ID, w.ID)
	check(err)
	fmt.Println(w.Status, w.WaitingReason())

	_, err = s.App.Withdrawals.Approve(ctx, s.ID, w.ID, "approver", "")
	check(err)
	s.Mine(60)
	w, err = s.App.Withdrawals.Get(ctx, s.ID, w.ID)
	check(err)
	fmt.Println(w.Status)
	// Output:
	// withdrawal_review: every withdrawal is looked at
	// pending review
	// completed
}

// A policy has payouts of more than 20 USD wait for two people, one of them a treasurer. Who
// asked for a payout does not approve it.
func Example_approvals() {
	ctx := context.Background()
	s := openShop(ctx, func(c *cryptopay.Config) {
		c.Policy = policy.Policy{Rules: []policy.Rule{{
			Name: "large", Of: policy.KindAmount, Over: decimal.RequireFromString("20"),
			Needs: []withdrawal.Need{{Role: "treasurer", Count: 1}, {Count: 1}},
		}}}
	})
	s.Customer.Pays(s.Payment("100", "USDTERC20"))
	asks := func(in *withdrawal.CreateInput) { in.By = "ann" }
	fmt.Println(s.Withdraw("10", "USDTERC20", asks).Status)

	w := s.Withdraw("50", "USDTERC20", asks)
	fmt.Println(w.Status, w.WaitingReason(), w.Rule(), w.ApprovalsRequired())
	_, err := s.App.Withdrawals.Approve(ctx, s.ID, w.ID, "ann", "it is urgent")
	fmt.Println(errors.Is(err, withdrawal.ErrOwnRequest))
	_, err = s.App.Withdrawals.Approve(ctx, s.ID, w.ID, "bob", "invoice 7 is in order")
	check(err)
	_, err = s.App.Withdrawals.Approve(ctx, s.ID, w.ID, "eve", "paid from the June budget", "treasurer")
	check(err)
	s.Settle()
	w = s.WithdrawalNow(w.ID)
	fmt.Println(w.Status, s.SupplierHas("USDTERC20"))
	for _, d := range w.Decisions {
		if d.Human() {
			fmt.Printf("%s by %s: %s\n", d.Answer, d.By, d.Reason)
		}
	}
	// Output:
	// completed
	// pending approval large 2
	// true
	// completed 60
	// approved by bob: invoice 7 is in order
	// approved by eve: paid from the June budget
}

// Money that matches no payment goes to suspense, and a person decides.
func Example_suspense() {
	ctx := context.Background()
	s := openShop(ctx, func(c *cryptopay.Config) {
		c.Payments.Notify = func(_ context.Context, a payment.Alert) { fmt.Println(a.Kind) }
	})
	p, err := s.App.Payments.Create(ctx, s.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "USDTERC20"}})
	check(err)
	_, err = s.Chains["ETH"].Pay(chain.Address(p.Address), "USDCERC20", decimal.RequireFromString("25")) // the wrong token
	check(err)
	s.Mine(20)

	found, err := s.App.Payments.Suspense(ctx, s.ID, 10, 0)
	check(err)
	fmt.Println(found[0].Exact, found[0].Currency, found[0].Role)
	d, err := s.App.Payments.Resolve(ctx, s.ID, found[0].ID, "") // to the master account
	check(err)
	fmt.Println(d.Booking)
	// Output:
	// suspense
	// 25 USDCERC20 wrong_token
	// resolved
}

// hears is the host's own Notifier.
type hears struct{}

func (hears) Notify(_ context.Context, deliveries []webhook.Delivery) []webhook.Result {
	for _, d := range deliveries {
		fmt.Println(d.Type, d.URL == "")
	}
	return make([]webhook.Result, len(deliveries)) // each without an error: delivered
}

// The host hears of every event itself, also of those that no merchant has a URL for.
func Example_notifier() {
	ctx := context.Background()
	s := openShop(ctx, func(c *cryptopay.Config) { c.Notifier = hears{} })
	p, err := s.App.Payments.Create(ctx, s.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "USDTERC20"}})
	check(err)
	_, err = s.Chains["ETH"].Pay(chain.Address(p.Address), "USDTERC20", decimal.RequireFromString("25"))
	check(err)
	check(s.App.Step(ctx))
	// Output:
	// deposit_received true
	// payment_status_update true
	// payment_deposit true
}

// A server works until a signal comes. Run claims nothing new then, ends what is in
// flight, and returns nil.
func ExampleApp_Run() {
	ctx, stop := context.WithCancel(context.Background()) // in a server: signal.NotifyContext
	s := openShop(ctx, nil)
	stopped := make(chan error)
	go func() { stopped <- s.App.Run(ctx) }()

	stop() // the signal
	fmt.Println(<-stopped)
	// Output:
	// <nil>
}

// A test moves the clock and calls Step. It waits for nothing.
func ExampleManualClock() {
	ctx := context.Background()
	s := openShop(ctx, nil)
	p, err := s.App.Payments.Create(ctx, s.ID, payment.CreateInput{Pricing: payment.Pricing{Amount: "25", Currency: "ETH"}})
	check(err)
	s.Clock.Advance(2 * time.Hour) // the window is over
	check(s.App.Step(ctx))
	p, err = s.App.Payments.Get(ctx, s.ID, p.ID)
	check(err)
	fmt.Println(p.Status)
	// Output:
	// expired
}

// An operator stops all payouts, and lets them go again.
func ExampleOperate_Halt() {
	ctx := context.Background()
	s := openShop(ctx, nil)
	by := cryptopay.Call{By: "alice", Reason: "a node is being replaced"}
	_, err := s.App.Operate.Halt(ctx, cryptopay.HaltScope{Network: "ETH"}, by)
	check(err)
	halts, err := s.App.Operate.Halts(ctx)
	check(err)
	for _, h := range halts {
		fmt.Println(h.Network, h.By, h.Reason)
	}
	_, err = s.App.Operate.Lift(ctx, cryptopay.HaltScope{Network: "ETH"}, by)
	check(err)
	halts, err = s.App.Operate.Halts(ctx)
	check(err)
	fmt.Println(len(halts))
	// Output:
	// ETH alice a node is being replaced
	// 0
}
