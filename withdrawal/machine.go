package withdrawal

import "github.com/cryptopay-go/cryptopay/internal/fsm"

// Status is how far a withdrawal has come, as the interface shows it.
type Status string

// The statuses. Completed, Failed and Cancelled are the ends.
const (
	Pending    Status = "pending"    // created, its whole cost is held
	Processing Status = "processing" // signed and stored; may be on the network at any moment
	Completed  Status = "completed"  // executed with the confirmations asked for; posted
	Failed     Status = "failed"     // can provably never land; hold released
	Cancelled  Status = "cancelled"  // before anything was signed; hold released
)

// Statuses lists all of them, in the order to show.
func Statuses() []Status { return []Status{Pending, Processing, Completed, Failed, Cancelled} }

// trigger is what can happen to a withdrawal.
type trigger string

// The triggers.
const (
	onCreate   trigger = "create"
	onCancel   trigger = "cancel"   // by the merchant or operator, or the payout side before signing
	onRefuse   trigger = "refuse"   // by the approver or by policy
	onSigned   trigger = "signed"   // the signed transaction is stored
	onReplaced trigger = "replaced" // another attempt of the same payment counts now
	onExecuted trigger = "executed" // on chain with the required confirmations
	onShort    trigger = "short"    // on chain with the required confirmations, and less than ordered arrived
	onTaken    trigger = "taken"    // an operator takes what was delivered for the whole
	onFound    trigger = "found"    // an operator shows a final transaction of ours that paid it, which nothing here made
	onDead     trigger = "dead"     // every attempt is dead with proof, or rejected before broadcast
)

// Machine is the table of states and moves that every decision is checked
// against.
func Machine() *fsm.Machine[Status, trigger] { return &machine }

type edge = fsm.Edge[Status, trigger]

var machine = fsm.Machine[Status, trigger]{
	Name: "withdrawal",
	About: "A withdrawal sends a merchant's money to an outside address. Its requested amount is held from " +
		"creation on; every change of status is one event and one line of the unified history, in the same commit.",
	Initial: Pending,
	States:  Statuses(),
	Edges: []edge{
		{From: []Status{""}, Trigger: onCreate, To: Pending, When: "valid and funded", Does: "holds the requested amount"},
		{From: []Status{Pending}, Trigger: onCancel, To: Cancelled, When: "provably not signed, and never will be", Does: "releases the hold"},
		{From: []Status{Cancelled}, Trigger: onCancel, When: "asked again", Does: "nothing"},
		{From: []Status{Pending}, Trigger: onRefuse, To: Failed, When: "not handed over yet", Does: "releases the hold"},
		{From: []Status{Pending}, Trigger: onSigned, To: Processing, When: "raw transaction stored, before it is sent", Does: "shows the hash; the hold stays"},
		{From: []Status{Processing}, Trigger: onReplaced, When: "a replacement was signed", Does: "shows the new hash, no event; the hold stays"},
		{From: []Status{Completed}, Trigger: onReplaced, When: "all attempts died after completion and it is sent again", Does: "shows the new hash; tells the host; no posting"},
		{From: []Status{Processing}, Trigger: onExecuted, To: Completed, When: "with the required confirmations", Does: "posts the hold: recipient, platform fee, network fee"},
		{From: []Status{Processing}, Trigger: onShort, When: "with the required confirmations, but the recipient got less than ordered", Does: "tells the host; payouts of the currency halt; the hold stays"},
		{From: []Status{Processing}, Trigger: onTaken, To: Completed, When: "it delivered less, and an operator has decided", Does: "posts the hold as ordered; what is missing may be another withdrawal, which the house pays"},
		{From: []Status{Completed}, Trigger: onTaken, When: "it was completed without confirmations and delivered less, and an operator has decided", Does: "no posting of its own; what is missing may be another withdrawal, which the house pays"},
		{From: []Status{Pending}, Trigger: onFound, To: Completed, When: "provably not signed here, and a transaction that this store does not know has paid it: after a restore from an older backup", Does: "posts the hold: recipient, platform fee, network fee"},
		{From: []Status{Completed}, Trigger: onExecuted, When: "deeper in the chain", Does: "updates confirmations and hash"},
		{From: []Status{Pending, Processing}, Trigger: onDead, To: Failed, When: "provably can never land", Does: "releases the hold; what the network took is booked to the house by its own Tx"},
	},
}
