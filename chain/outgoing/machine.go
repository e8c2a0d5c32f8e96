package outgoing

import "github.com/cryptopay-go/cryptopay/internal/fsm"

// trigger is what happens to an order.
type trigger string

// The triggers.
const (
	onSubmit     trigger = "submit"     // its owner hands it over
	onRefuse     trigger = "refuse"     // it is refused at the hand-over
	onCancel     trigger = "cancel"     // its owner or an operator takes it back
	onWait       trigger = "wait"       // something is missing
	onLater      trigger = "later"      // those who come first are not through yet
	onUntold     trigger = "untold"     // its owner has not heard yet how its last start ended
	onKeepBack   trigger = "keep-back"  // its row is not what was ordered
	onMerge      trigger = "merge"      // its coins do not fit into one transaction
	onUnneeded   trigger = "unneeded"   // the payout that a merge is for needs it no more
	onRaise      trigger = "raise"      // it may cost more
	onReserve    trigger = "reserve"    // its transaction is planned
	onSetAside   trigger = "set-aside"  // others wait for its nonce, and it may not be sent
	onTakeBack   trigger = "take-back"  // others wait behind it, and its rows were edited
	onUseUp      trigger = "use-up"     // the signer refuses a plan that it may have signed
	onAbandon    trigger = "abandon"    // the signer refuses a plan that it has not signed
	onFail       trigger = "fail"       // it can never be built
	onStore      trigger = "store"      // a signed transaction is stored
	onReplace    trigger = "replace"    // a dearer transaction is planned
	onUnreplaced trigger = "unreplaced" // no dearer one can be had now
	onResend     trigger = "resend"     // the stored bytes are sent again
	onAccepted   trigger = "accepted"   // a node has it, and its owner asks for no confirmations
	onRejected   trigger = "rejected"   // a node says that its bytes can never land
	onPlace      trigger = "place"      // why it is in no block has changed
	onRefilled   trigger = "refilled"   // nonces before its own were missing
	onBeget      trigger = "beget"      // a child is to pay for it
	onOrphaned   trigger = "orphaned"   // some of its attempts can never land
	onMined      trigger = "mined"      // a block has it
	onUnmined    trigger = "unmined"    // its block was replaced
	onLand       trigger = "land"       // an attempt is in a block for good
	onDie        trigger = "die"        // no attempt can ever land
	onEndChild   trigger = "end-child"  // its parent needs it no more
	onRecheck    trigger = "recheck"    // a deep fork may have taken it
	onReopen     trigger = "reopen"     // a deep fork has taken it
	onUndo       trigger = "undo"       // every process knows by now what to do about its cost
	onBatch      trigger = "carried"    // the leader of its batch has moved
)

// Machine is the table of states and moves of an order that every decision is checked
// against.
func Machine() *fsm.Machine[State, trigger] { return &machine }

type edge = fsm.Edge[State, trigger]

var (
	unsent = []State{Queued, Waiting}
	sent   = []State{Signed, Executed}
	alive  = []State{Queued, Waiting, Signed, Executed}
)

var machine = fsm.Machine[State, trigger]{
	Name: "order",
	About: "An order, or intent, is one transfer to somebody that outgoing sends once. What was planned is stored before " +
		"a signer sees it, and what was signed before a node does. Attempts of one order share a nonce or an input, so " +
		"at most one of them lands.",
	Initial: Queued,
	States:  []State{Queued, Waiting, Signed, Executed, Final, Failed, Cancelled},
	Edges: []edge{
		{From: []State{""}, Trigger: onSubmit, To: Queued, When: "it may be sent", Does: "makes it due"},
		{From: []State{""}, Trigger: onRefuse, To: Cancelled, When: "it may never be sent"},
		{From: unsent, Trigger: onCancel, To: Cancelled, When: "no signer can have seen it"},
		{From: unsent, Trigger: onWait, To: Waiting, Does: "shows the reason, and tries again after a pause"},
		{From: unsent, Trigger: onLater, Does: "tries again soon"},
		{From: unsent, Trigger: onUntold, Does: "tries again soon"},
		{From: unsent, Trigger: onKeepBack, To: Waiting, Does: "shows that it was altered; nothing is signed"},
		{From: unsent, Trigger: onMerge, To: Waiting, Does: "submits orders that merge its coins"},
		{From: unsent, Trigger: onUnneeded, To: Cancelled, When: "it is a merge"},
		{From: alive, Trigger: onRaise, When: "what it may cost is set aside", Does: "raises its bound"},
		{From: unsent, Trigger: onReserve, Does: "stores the plan, with the nonce or the coins that are its own from now on"},
		{From: []State{Waiting}, Trigger: onSetAside, When: "it was held back several times", Does: "the nonce goes back to ourselves"},
		{From: unsent, Trigger: onUseUp, Does: "plans a transaction to ourselves with the same nonce or coins"},
		{From: unsent, Trigger: onAbandon, To: Waiting, When: "it was its first plan", Does: "gives nonce and coins back; who was paid with it starts again"},
		{From: alive, Trigger: onAbandon, When: "it was a replacement", Does: "the attempts before stay"},
		{From: unsent, Trigger: onFail, To: Failed},
		{From: []State{Queued, Waiting, Signed}, Trigger: onStore, To: Signed, Does: "sends it"},
		{From: []State{Executed}, Trigger: onStore, Does: "sends it"},
		{From: sent, Trigger: onReplace, Does: "stores the plan"},
		{From: sent, Trigger: onUnreplaced, Does: "shows why"},
		{From: sent, Trigger: onResend},
		{From: []State{Signed}, Trigger: onAccepted, To: Executed},
		{From: sent, Trigger: onRejected, Does: "its nonce or coins go back to ourselves"},
		{From: sent, Trigger: onPlace, Does: "shows why"},
		{From: []State{Executed}, Trigger: onPlace, To: Signed, When: "its owner asked for no confirmations, and no block takes it", Does: "shows why"},
		{From: sent, Trigger: onTakeBack, Does: "its nonce goes back to ourselves"},
		{From: sent, Trigger: onRefilled, Does: "submits orders that fill them"},
		{From: sent, Trigger: onBeget, Does: "submits the child"},
		{From: sent, Trigger: onOrphaned},
		{From: sent, Trigger: onMined, To: Executed, When: "with the confirmations that its owner asked for"},
		{From: sent, Trigger: onMined, When: "else", Does: "shows the hash and the confirmations"},
		{From: []State{Executed}, Trigger: onUnmined, To: Signed, Does: "the same bytes are sent again"},
		{From: sent, Trigger: onLand, To: Final, When: "it was executed", Does: "books its cost"},
		{From: sent, Trigger: onLand, To: Failed, When: "it was reverted, or another took its nonce or coins back", Does: "books its cost"},
		{From: sent, Trigger: onLand, To: Queued, When: "the same, and its owner was told that it is executed, or others were paid with it", Does: "books its cost"},
		{From: sent, Trigger: onLand, To: Waiting, When: "it was set aside", Does: "books its cost"},
		{From: sent, Trigger: onDie, To: Failed},
		{From: sent, Trigger: onDie, To: Queued, When: "it may be sent again"},
		{From: sent, Trigger: onDie, To: Waiting, When: "it was set aside, or a transaction that is none of its own may have paid it"},
		{From: alive, Trigger: onEndChild, To: Failed, When: "nothing of it can land"},
		{From: alive, Trigger: onEndChild, To: Cancelled, When: "its parent has landed without it"},
		{From: []State{Final}, Trigger: onRecheck, Does: "books its cost anew, where that is another in the new block"},
		{From: []State{Final}, Trigger: onReopen, To: Signed, Does: "the attempt that had landed may land again, and those that it had ruled out; its cost is taken back"},
		{From: sent, Trigger: onUndo, When: "it was reopened before every process knew how to take its cost back", Does: "its cost is taken back"},
		{From: alive, Trigger: onBatch, To: Queued, When: "that one pays it no more", Does: "it starts again alone"},
		{From: alive, Trigger: onBatch, To: Waiting, When: "that one waits"},
		{From: []State{Queued, Waiting, Signed, Executed, Final}, Trigger: onBatch, To: Signed, When: "that one is signed, or was taken out of its block"},
		{From: alive, Trigger: onBatch, To: Executed, When: "that one is executed"},
		{From: alive, Trigger: onBatch, To: Final, When: "that one is settled"},
		{From: alive, Trigger: onBatch, To: Failed, When: "that one has failed, by a process that did not know of it"},
		{From: alive, Trigger: onBatch, To: Cancelled, When: "that one was taken back, by a process that did not know of it"},
	},
}

// attemptTrigger is what happens to an attempt.
type attemptTrigger string

// The triggers of attempts.
const (
	onSign    attemptTrigger = "sign"    // it is stored
	onFinal   attemptTrigger = "final"   // its block is final
	onRuleOut attemptTrigger = "ruleout" // it can provably never land
	onFork    attemptTrigger = "fork"    // a deep fork took the block that decided
)

// AttemptMachine is the table of what becomes of an attempt.
func AttemptMachine() *fsm.Machine[AttemptState, attemptTrigger] { return &attempts }

var attempts = fsm.Machine[AttemptState, attemptTrigger]{
	Name:    "attempt",
	About:   "An attempt is one signed transaction of an order, stored before it is sent and kept for ever.",
	Initial: Open,
	States:  []AttemptState{Open, AttemptFinal, Dead},
	Edges: []fsm.Edge[AttemptState, attemptTrigger]{
		{From: []AttemptState{""}, Trigger: onSign, To: Open},
		{From: []AttemptState{Open}, Trigger: onFinal, To: AttemptFinal},
		{From: []AttemptState{Open}, Trigger: onRuleOut, To: Dead, When: "a final transaction took what it spends, or its time is over"},
		{From: []AttemptState{AttemptFinal, Dead}, Trigger: onFork, To: Open},
	},
}

// becomes writes what became of an attempt.
func (a *attempt) becomes(t attemptTrigger) error {
	to, err := attempts.Next(a.v.State, t)
	if err == nil {
		a.v.State = to
	}
	return err
}
