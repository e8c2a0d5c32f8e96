package outgoing

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/audit"
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
	// Number is its place in the audit log of its partition, from 1; 0 = a version before the
	// log wrote it. Hash covers all of it and Previous, the Hash of the one before.
	Number   int64  `db:"number"`
	Previous []byte `db:"previous"`
	Hash     []byte `db:"hash"`
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
	OpReplaceHot OperationKind = "replace_hot"

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

	OpPayOutSuspense  OperationKind = "pay_out_suspense"
	OpReleaseSuspense OperationKind = "release_suspense" // of what payment.Config.Screen has held
)

// Operations is the table of operators' interventions, in the partition of what they are
// about.
var Operations = storage.NewTable[Operation]("operations", storage.Across("at"), storage.Index("number"))

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
	// Part is the partition of that Change, and Audit adds the Operation to its audit log. Nil:
	// it is in no log. No other new Operation is in the same Change.
	Part  storage.Partition
	Audit func(c *storage.Change) error
}

// Rows is the record, its place in the audit log, and its event. before and after describe what
// the call changes. A nil Recorded has none. Call it in the decision that it is of, each time
// it is made.
func (r *Recorded) Rows(before, after any) ([]storage.Row, []storage.Event, error) {
	if r == nil {
		return nil, nil, nil
	}
	return r.rows(describe(before), describe(after))
}

func (r *Recorded) rows(before, after string) ([]storage.Row, []storage.Event, error) {
	op := r.Op
	op.Before, op.After = before, after
	e, err := op.told(r.ID)
	c := storage.Change{Partition: r.Part, Put: []storage.Row{Operations.Row(r.ID, 0, time.Time{}, op)}}
	if err == nil && r.Audit != nil {
		err = r.Audit(&c)
	}
	return c.Put, []storage.Event{e}, err
}

// Add adds the record, its place in the audit log, and its event to a Change. before and after
// say in words what the call changes.
func (r *Recorded) Add(c *storage.Change, before, after string) error {
	rows, events, err := r.rows(before, after)
	c.Put, c.Tell = append(c.Put, rows...), append(c.Tell, events...)
	return err
}

// AuditChain is the audit log of a store's operations.
func AuditChain(keys ...[]byte) *audit.Chain {
	return &audit.Chain{Keys: keys, Table: Operations.Table, Read: func(r storage.Row) (audit.Link, []string) {
		op := Operations.Value(r)
		return audit.Link{Number: op.Number, Previous: op.Previous, Hash: op.Hash}, op.texts(r.ID)
	}}
}

// texts are what the hash of an Operation covers.
func (op *Operation) texts(id string) []string {
	return []string{
		id, string(op.Kind), op.By, op.Reason, string(op.Network), op.Tenant, op.Object, op.Before, op.After,
		strconv.FormatBool(op.Copied), strconv.FormatInt(storage.Micros(op.At), 10),
	}
}

// Audited adds the new Operations of a Change to the audit log of its partition. Call it in the
// decision that makes the Change, each time it is made. A nil chain is no log.
func Audited(ctx context.Context, s storage.Store, chain *audit.Chain, c *storage.Change) error {
	var at []int
	var contents [][]string
	for i := range c.Put {
		if r := &c.Put[i]; chain != nil && r.Table == Operations.Table && r.Version == 0 {
			op := Operations.Value(*r)
			at, contents = append(at, i), append(contents, op.texts(r.ID))
		}
	}
	if len(at) == 0 {
		return nil
	}
	links, head, err := chain.Next(ctx, s, c.Partition, contents...)
	if err != nil {
		return err
	}
	for i, n := range at {
		op := Operations.Value(c.Put[n])
		op.Number, op.Previous, op.Hash = links[i].Number, links[i].Previous, links[i].Hash
		c.Put[n] = Operations.Row(c.Put[n].ID, 0, c.Put[n].Due, op)
	}
	c.Put = append(c.Put, head)
	return nil
}
