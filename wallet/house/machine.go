package house

import "github.com/cryptopay-go/cryptopay/internal/fsm"

// Status is how far a payment is.
type Status string

// The statuses.
const (
	Pending    Status = "pending"    // its amount is held, nothing is signed
	Processing Status = "processing" // its transaction is stored
	Completed  Status = "completed"  // in a block, and posted
	Failed     Status = "failed"     // it can never land; the hold is released
	Cancelled  Status = "cancelled"  // before anything was signed; the hold is released
)

// statuses are all of them.
func statuses() []Status { return []Status{Pending, Processing, Completed, Failed, Cancelled} }

// trigger is what happens to a payment.
type trigger string

// The triggers.
const (
	onCreate   trigger = "create"   // an operator takes money out
	onCancel   trigger = "cancel"   // by an operator, or the payout side before signing
	onSigned   trigger = "signed"   // the signed transaction is stored
	onExecuted trigger = "executed" // it is on chain with the required confirmations
	onDead     trigger = "dead"     // it can never land
)

// Machine is the table of states and moves that every decision is checked against.
func Machine() *fsm.Machine[Status, trigger] { return &machine }

type edge = fsm.Edge[Status, trigger]

var machine = fsm.Machine[Status, trigger]{
	Name: "house payment",
	About: "A house payment sends fees that were earned, or the operator's float, to an address of the host's own. " +
		"Its amount is held on the account that pays from creation on; every change of status is one event, in the same commit.",
	Initial: Pending,
	States:  statuses(),
	Edges: []edge{
		{From: []Status{""}, Trigger: onCreate, To: Pending, When: "the account and the equity bear it", Does: "holds the amount"},
		{From: []Status{Pending}, Trigger: onCancel, To: Cancelled, When: "provably not signed, and never will be", Does: "releases the hold"},
		{From: []Status{Pending}, Trigger: onSigned, To: Processing, Does: "shows the hash; the hold stays"},
		{From: []Status{Processing}, Trigger: onExecuted, To: Completed, Does: "posts the hold"},
		{From: []Status{Pending, Processing}, Trigger: onDead, To: Failed, When: "provably can never land", Does: "releases the hold; what the network took is booked by its own Tx"},
	},
}
