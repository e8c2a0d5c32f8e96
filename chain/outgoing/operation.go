package outgoing

import (
	"encoding/json"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Operation is the record of one call by which an operator intervened: who, why, and how
// what it touched was before and after. It is written in the Change that does it, or,
// where a call does more than one Change, in the first one. It is kept for ever.
type Operation struct {
	Kind    OperationKind `db:"kind"`
	By      string        `db:"actor"`
	Reason  string        `db:"reason"`
	Network chain.Network `db:"network"` // "" = every one
	Tenant  string        `db:"tenant"`  // "" = of no single tenant
	Object  string        `db:"object"`  // what it is about: an intent, a sweep, an address, a scope
	Before  string        `db:"state_before"`
	After   string        `db:"state_after"`
	// Copied says that the call concerned every network and is recorded in storage.System,
	// too.
	Copied bool      `db:"copied"`
	At     time.Time `db:"at"`
}

// OperationKind says which call an Operation records.
type OperationKind string

// The kinds of operations.
const (
	OpHalt       OperationKind = "halt"
	OpLift       OperationKind = "lift"
	OpSpeedUp    OperationKind = "speed_up"
	OpCancel     OperationKind = "cancel_transaction"
	OpFillNonce  OperationKind = "fill_nonce"
	OpAdoptNonce OperationKind = "adopt_nonce"
	OpRetrySweep OperationKind = "retry_sweep"
	OpResume     OperationKind = "resume_network"
	OpRecover    OperationKind = "recover_deposits"

	OpCreditSuspense OperationKind = "credit_suspense" // of a tenant, in its partition
	OpIgnoreSuspense OperationKind = "ignore_suspense"
	OpRefundSuspense OperationKind = "refund_suspense"

	OpSetPolicy         OperationKind = "set_policy" // of a tenant's payouts
	OpAllowDestination  OperationKind = "allow_destination"
	OpRemoveDestination OperationKind = "remove_destination"

	OpPayOutFees    OperationKind = "pay_out_fees" // of a tenant, in its partition
	OpWithdrawFloat OperationKind = "withdraw_operator_funds"
	OpCancelHouse   OperationKind = "cancel_house_payment"
	OpAskAdjustment OperationKind = "ask_adjustment"
	OpAdjust        OperationKind = "adjust"

	OpResolveTopUp OperationKind = "resolve_top_up" // that may have come back from cold
	OpRefillCost   OperationKind = "book_refill_cost"

	OpRefill OperationKind = "refill" // a proposal is made, taken back or cancelled: of a tenant, in its partition

	OpPayOutSuspense OperationKind = "pay_out_suspense"
)

// Operations is the table of operators' interventions, in the partition of what they are
// about.
var Operations = storage.NewTable[Operation]("operations", storage.Across("at"))

// describe is a value as an Operation shows it.
func describe(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error() // what is described here always encodes
	}
	return string(b)
}

// Recorded is an Operation under its id, to be written in the Change that does it.
type Recorded struct {
	ID string
	Op Operation
}

// Rows is the record and its event. before and after describe what the call changes. A nil
// Recorded has none.
func (r *Recorded) Rows(before, after any) ([]storage.Row, []storage.Event, error) {
	if r == nil {
		return nil, nil, nil
	}
	op := r.Op
	op.Before, op.After = describe(before), describe(after)
	e, err := op.told(r.ID)
	return []storage.Row{Operations.Row(r.ID, 0, time.Time{}, op)}, []storage.Event{e}, err
}

// Add adds the record and its event to a Change. before and after say in words what the call
// changes.
func (r *Recorded) Add(c *storage.Change, before, after string) error {
	op := r.Op
	op.Before, op.After = before, after
	e, err := op.told(r.ID)
	c.Put, c.Tell = append(c.Put, Operations.Row(r.ID, 0, time.Time{}, op)), append(c.Tell, e)
	return err
}
