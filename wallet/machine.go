package wallet

import "github.com/cryptopay-go/cryptopay/internal/fsm"

// TransferStatus is how far a transfer has come, as the interface shows it.
type TransferStatus string

// The statuses. TransferCompleted and TransferFailed are the ends.
const (
	TransferPending   TransferStatus = "pending"
	TransferCompleted TransferStatus = "completed"
	TransferFailed    TransferStatus = "failed"
)

// TransferStatuses lists all of them, in the order to show.
func TransferStatuses() []TransferStatus {
	return []TransferStatus{TransferPending, TransferCompleted, TransferFailed}
}

// transferTrigger is what can happen to a transfer.
type transferTrigger string

// The triggers.
const (
	onRequest transferTrigger = "request"
	onApply   transferTrigger = "apply"
	onClosed  transferTrigger = "target closed"
)

// TransferMachine is the table that every decision is checked against.
func TransferMachine() *fsm.Machine[TransferStatus, transferTrigger] { return &machine }

type edge = fsm.Edge[TransferStatus, transferTrigger]

var machine = fsm.Machine[TransferStatus, transferTrigger]{
	Name: "transfer",
	About: "A transfer moves money between a merchant's master account and a sub-account. It is requested and applied in " +
		"one commit, which holds its amount on the source and posts the hold to the target. Only a transfer that an " +
		"earlier version accepted is pending in the store. Completing or failing is one event, in the same commit.",
	Initial: TransferPending,
	States:  TransferStatuses(),
	Edges: []edge{
		{From: []TransferStatus{""}, Trigger: onRequest, To: TransferPending, When: "valid and funded", Does: "holds the amount on the source"},
		{From: []TransferStatus{TransferPending}, Trigger: onApply, To: TransferCompleted, When: "the target is open", Does: "posts the hold to the target"},
		{From: []TransferStatus{TransferPending}, Trigger: onClosed, To: TransferFailed, When: "the target was deleted meanwhile", Does: "releases the hold"},
	},
}
