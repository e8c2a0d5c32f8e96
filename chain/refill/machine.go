package refill

import "github.com/cryptopay-go/cryptopay/internal/fsm"

// Status is how far a proposal is.
type Status string

// The statuses.
const (
	Open      Status = "open"      // to be signed
	Sending   Status = "sending"   // signed, and not final in a block yet
	Landed    Status = "landed"    // final in a block
	Expired   Status = "expired"   // nobody gave it back in time
	Cancelled Status = "cancelled" // by a person, before it came back
	Gone      Status = "gone"      // another transaction or proposal has one of its coins or its nonce, or its own failed
)

// trigger is what happens to a proposal.
type trigger string

// The triggers.
const (
	onMake   trigger = "make"
	onSigned trigger = "signed" // it came back, or somebody else sent it
	onFinal  trigger = "final"
	onLate   trigger = "late"
	onCancel trigger = "cancel"
	onSpent  trigger = "spent"
	onFailed trigger = "failed"
	onRival  trigger = "rival"
	onFork   trigger = "fork"
)

// Machine is the table of states and moves that every decision is checked against.
func Machine() *fsm.Machine[Status, trigger] { return &machine }

type edge = fsm.Edge[Status, trigger]

var machine = fsm.Machine[Status, trigger]{
	Name: "refill proposal",
	About: "A refill proposal is a transaction of cold coins to the hot address that a person signs elsewhere. " +
		"Every change of status is one event, in the same commit. What landed is booked by what comes to the hot address.",
	Initial: Open,
	States:  []Status{Open, Sending, Landed, Expired, Cancelled, Gone},
	Edges: []edge{
		{From: []Status{""}, Trigger: onMake, To: Open, When: "no other of the currency is open or sending"},
		{From: []Status{Open}, Trigger: onSigned, To: Sending, When: "what came back is what was proposed, or a node has it", Does: "stores the signed transaction, which is sent until it lands"},
		{From: []Status{Open, Sending}, Trigger: onFinal, To: Landed, When: "it has the confirmations that make a deposit final"},
		{From: []Status{Open, Sending}, Trigger: onLate, To: Expired, When: "its time is over, it did not come back, and no node has it"},
		{From: []Status{Open}, Trigger: onCancel, To: Cancelled},
		{From: []Status{Open, Sending}, Trigger: onSpent, To: Gone, When: "another transaction that spends one of its coins, or has its nonce, is final"},
		{From: []Status{Open, Sending}, Trigger: onFailed, To: Gone, When: "its transaction is final, and the network did not carry it out"},
		{From: []Status{Open}, Trigger: onRival, To: Gone, When: "another proposal, which came back or was made before, has its nonce"},
		{From: []Status{Landed}, Trigger: onFork, To: Sending, When: "a fork took its block back after it was final", Does: "sends it again"},
	},
}
