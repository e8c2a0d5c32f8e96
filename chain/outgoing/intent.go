package outgoing

import (
	"context"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// State is how far an intent has come.
type State string

// The states of an intent. A signed intent has been stored with its raw
// transaction and may be on the network at any moment.
const (
	Queued    State = "queued"    // nothing reserved, nothing signed; can be cancelled
	Waiting   State = "waiting"   // queued, but something is missing: see Reason; can be cancelled
	Signed    State = "signed"    // signed and stored, sent or about to be
	Executed  State = "executed"  // in a block with the confirmations its owner asked for
	Final     State = "settled"   // executed and final: the end
	Failed    State = "failed"    // every attempt is dead with proof: the end
	Cancelled State = "cancelled" // before anything was signed: the end
)

// Reason says what an intent waits for.
type Reason string

// The reasons. They are shown to operators and in withdrawal views. ReasonRefused and
// ReasonCancelled are those of an intent that has failed, ReasonDeliveredLess of one that
// was executed.
const (
	ReasonHotBalance    Reason = "hot_short"       // the hot address does not hold the amount
	ReasonOperatorFunds Reason = "gas_float_short" // no coins of the operator's to pay the network
	// ReasonBelowCost is that of a withdrawal whose hot address lacks coins that wait
	// elsewhere: bringing them would cost too much of it (Config.Costly).
	ReasonBelowCost  Reason = "below_cost"
	ReasonHalted     Reason = "halted"        // the network or asset is halted
	ReasonNode       Reason = "node"          // the node does not answer
	ReasonSigner     Reason = "signer"        // the signer refuses or does not answer
	ReasonFeeTooHigh Reason = "fee_above_cap" // the network's price is above MaxCost
	// ReasonAltered: no withdrawal says what this order says, as somebody edited one of them. Or a
	// transaction took what a withdrawal's spend of which no row is: a person says whether it has
	// paid the withdrawal.
	ReasonAltered Reason = "altered"
	ReasonRefused Reason = "refused" // by a signer or a node, for good: its nonce or inputs went back to ourselves
	// ReasonCancelled is that of an intent that was signed when an operator cancelled it: its
	// nonce or inputs went back to ourselves.
	ReasonCancelled Reason = "cancelled"
	// ReasonConsolidating is that of an intent which needs more coins than one transaction
	// holds: some of them are merged first.
	ReasonConsolidating Reason = "consolidating"
	// ReasonOccupied is that of a signed intent whose replacement nodes do not take, as they
	// keep an earlier attempt in its place. Both are sent again, and nothing dearer is signed
	// until the earlier one has landed or nodes have let it go.
	ReasonOccupied Reason = "occupied"
	// ReasonStuck is that of a signed intent which is in no block Config.TellAfter after its
	// first attempt was signed. It is replaced and sent again as ever.
	ReasonStuck Reason = "stuck"
	// ReasonReorged is that of a signed intent whose transaction was in a block that the
	// network has replaced. It is sent again until it lands.
	ReasonReorged Reason = "reorged"
	// ReasonDeliveredLess is that of an executed or settled intent of which the recipient
	// got less than was ordered: Outcome.Amount.
	ReasonDeliveredLess Reason = "delivered_less"
)

// Outcome is the fact queue towards an intent's owner, in the network's
// partition under the intent's id: put in the same Change as the step that
// caused it, Due until the owner has handled it. While one is not believed, its owner is handed
// another in its place, again and again, which is not stored: it waits, for ReasonAltered or ReasonNode.
type Outcome struct {
	Intent        string        `db:"intent"`
	Purpose       chain.Purpose `db:"purpose"`
	Tenant        string        `db:"tenant"`
	Network       string        `db:"network"`
	Currency      string        `db:"currency"`
	State         State         `db:"state"`
	Reason        Reason        `db:"reason"`
	Tx            string        `db:"tx"` // the attempt that counts now; the landed one from Executed on
	Confirmations int64         `db:"confirmations"`
	// Amount is what reached the recipient, in units of Currency (for All: what
	// was there less the fee).
	Amount ledger.Amount `db:"amount"`
	// Cost is what the network took for the landed tx, in units of its gas
	// currency, known from Settled on and changed only by a deep reorg (Undone), and for a Failed intent
	// whose revert or cancel landed. CostTx is the tx that took it.
	Cost   ledger.Amount `db:"cost"`
	CostTx string        `db:"cost_tx"`
	At     time.Time     `db:"at"`
	// Batch is the same for all intents that Tx pays: the id of the one that leads
	// the others. "" where Tx pays this one alone.
	Batch string `db:"batch"`
	// Undone are landings that forks took away after they were told as Settled, or put into another block in which they
	// cost, or brought, another sum, the oldest first. What each cost and lost is to be taken back.
	Undone []Landing `db:"undone,json"`
}

// Landing is a transaction that landed, and what it cost in units of its network's gas currency.
type Landing struct {
	Tx   string        `json:"tx"`
	Cost ledger.Amount `json:"cost"`
	// Missing is how much less than was ordered reached the recipient, in units of Outcome.Currency.
	Missing ledger.Amount `json:"missing,omitempty"`
}

// Outcomes is the table of facts for owners, in network partitions.
var Outcomes = storage.NewTable[Outcome]("outcomes", storage.Index("tenant", "state"))

// Handler takes one Outcome and makes what follows durable before it returns
// nil. It may see the same Outcome twice, and may miss intermediate states.
type Handler func(ctx context.Context, o Outcome) error
