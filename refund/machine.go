package refund

import (
	"github.com/cryptopay-go/cryptopay/internal/fsm"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Status is how far a refund has come: AwaitingAddress, or what its withdrawal is.
type Status string

// The statuses. Completed, Failed and Cancelled are the ends.
const (
	AwaitingAddress Status = "awaiting_address" // the customer has the claim link
	Pending         Status = "pending"
	Processing      Status = "processing"
	Completed       Status = "completed"
	Failed          Status = "failed"
	Cancelled       Status = "cancelled" // also a claim link that was not used in time
)

// Statuses lists all of them, in the order to show.
func Statuses() []Status {
	return []Status{AwaitingAddress, Pending, Processing, Completed, Failed, Cancelled}
}

// counts lists the statuses in which a refund counts towards what its payment may give back.
func counts() []Status { return []Status{AwaitingAddress, Pending, Processing, Completed} }

// trigger is what can happen to a refund.
type trigger string

// The triggers.
const (
	onCreate trigger = "create"
	onClaim  trigger = "claim"  // the customer names an address
	onExpire trigger = "expire" // the claim link's time is over
	onCancel trigger = "cancel" // by the merchant
	onPayout trigger = "payout" // the withdrawal has changed its status
)

// Machine is the table of states and moves that every decision is checked against.
func Machine() *fsm.Machine[Status, trigger] { return &machine }

type edge = fsm.Edge[Status, trigger]

var machine = fsm.Machine[Status, trigger]{
	Name: "refund",
	About: "A refund gives a customer money back, by a withdrawal. Without an address it waits for the customer to name one. " +
		"From then on it is what its withdrawal is: it changes in the same commit. Every change of status is one event.",
	Initial: Pending,
	States:  Statuses(),
	Edges: []edge{
		{From: []Status{""}, Trigger: onCreate, To: Pending, When: "valid, left to refund and funded, with an address", Does: "raises the payment's level, or takes the money out of suspense; orders the withdrawal"},
		{From: []Status{""}, Trigger: onCreate, To: AwaitingAddress, When: "valid and left to refund, without an address", Does: "raises the payment's level"},
		{From: []Status{AwaitingAddress}, Trigger: onClaim, To: Pending, When: "in time, funded, and still received", Does: "orders the withdrawal"},
		{From: []Status{AwaitingAddress}, Trigger: onExpire, To: Cancelled, When: "after 30 days", Does: "gives the level back"},
		{From: []Status{AwaitingAddress}, Trigger: onCancel, To: Cancelled, Does: "gives the level back"},
		{From: []Status{Cancelled}, Trigger: onCancel, When: "asked again", Does: "nothing"},
		{From: []Status{Pending}, Trigger: onPayout, To: Processing, When: "the withdrawal is"},
		{From: []Status{Pending, Processing}, Trigger: onPayout, To: Completed, When: "the withdrawal is"},
		{From: []Status{Pending}, Trigger: onPayout, To: Cancelled, When: "the withdrawal is", Does: "gives the level back, or puts the money back into suspense"},
		{From: []Status{Pending, Processing}, Trigger: onPayout, To: Failed, When: "the withdrawal is", Does: "gives the level back, or puts the money back into suspense"},
	},
}

// statusOf is the status of a refund whose withdrawal has this one.
func statusOf(s withdrawal.Status) Status { return Status(s) }
