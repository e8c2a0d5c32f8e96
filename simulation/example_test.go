package simulation_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/simulation"
)

// A shop tests its own checkout against everything that can go wrong: its orders
// are one more actor, what must be true of them one more check.
func Example() {
	orders := map[string]string{} // of the shop's own database: order → payment
	checkout := simulation.Actor{Name: "checkout", Weight: 10, Act: func(t *simulation.Turn) (string, error) {
		in := payment.CreateInput{OrderID: fmt.Sprint("order-", len(orders)), Pricing: payment.Pricing{
			Amount: "25.00", Currency: t.Currencies()[0],
		}}
		p, err := t.App.Payments.Create(context.Background(), t.Tenant, in)
		if err != nil {
			return "not now", err
		}
		orders[t.Tenant+"/"+in.OrderID] = p.ID
		return in.OrderID, nil
	}}
	delivered := func(t *simulation.Turn) error { // nothing is delivered that was not paid
		all, _, _, err := t.App.Payments.List(context.Background(), t.Tenant, payment.Filter{Status: payment.Completed, Limit: 100})
		for _, p := range all {
			if p.Received < p.Due-p.Tolerance {
				return errors.New(p.OrderID + " was delivered and not paid")
			}
		}
		return err // what a check asks is always answered
	}
	for seed := uint64(1); seed <= 3; seed++ {
		clear(orders)
		r := simulation.World{Seed: seed, Options: simulation.Options{
			Actors: []simulation.Actor{checkout}, Check: delivered,
			Nemeses: []simulation.Nemesis{simulation.Reorgs, simulation.Drops, simulation.Lag, simulation.Crashes, simulation.LostCommits}, // nil = by the seed
		}}.Run(context.Background())
		if r.Failure != nil {
			fmt.Println(r.Story(40))
		}
	}
	fmt.Println("every order is right")
	// Output: every order is right
}
