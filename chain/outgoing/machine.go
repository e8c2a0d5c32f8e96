package outgoing

import "github.com/cryptopay-go/cryptopay/internal/fsm"

// Trigger is what happens to an order.
type Trigger string

// The triggers.
const (
	OnSubmit     Trigger = "submit"     // its owner hands it over
	OnRefuse     Trigger = "refuse"     // it is refused at the hand-over
	OnCancel     Trigger = "cancel"     // its owner or an operator takes it back
	OnWait       Trigger = "wait"       // something is missing
	OnLater      Trigger = "later"      // those who come first are not through yet
	OnUntold     Trigger = "untold"     // its owner has not heard yet how its last start ended
	OnKeepBack   Trigger = "keep-back"  // its row is not what was ordered
	OnMerge      Trigger = "merge"      // its coins do not fit into one transaction
	OnUnneeded   Trigger = "unneeded"   // the payout that a merge is for needs it no more
	OnRaise      Trigger = "raise"      // it may cost more
	OnReserve    Trigger = "reserve"    // its transaction is planned
	OnSetAside   Trigger = "set-aside"  // others wait for its nonce, and it may not be sent
	OnTakeBack   Trigger = "take-back"  // others wait behind it, and its rows were edited
	OnUseUp      Trigger = "use-up"     // the signer refuses a plan that it may have signed
	OnAbandon    Trigger = "abandon"    // the signer refuses a plan that it has not signed
	OnFail       Trigger = "fail"       // it can never be built
	OnStore      Trigger = "store"      // a signed transaction is stored
	OnReplace    Trigger = "replace"    // a dearer transaction is planned
	OnUnreplaced Trigger = "unreplaced" // no dearer one can be had now
	OnResend     Trigger = "resend"     // the stored bytes are sent again
	OnAccepted   Trigger = "accepted"   // a node has it, and its owner asks for no confirmations
	OnRejected   Trigger = "rejected"   // a node says that its bytes can never land
	OnPlace      Trigger = "place"      // why it is in no block has changed
	OnRefilled   Trigger = "refilled"   // nonces before its own were missing
	OnBeget      Trigger = "beget"      // a child is to pay for it
	OnOrphaned   Trigger = "orphaned"   // some of its attempts can never land
	OnMined      Trigger = "mined"      // a block has it
	OnUnmined    Trigger = "unmined"    // its block was replaced
	OnLand       Trigger = "land"       // an attempt is in a block for good
	OnDie        Trigger = "die"        // no attempt can ever land
	OnEndChild   Trigger = "end-child"  // its parent needs it no more
	OnRecheck    Trigger = "recheck"    // a deep fork may have taken it
	OnReopen     Trigger = "reopen"     // a deep fork has taken it
	OnBatch      Trigger = "carried"    // the leader of its batch has moved
)

// Machine is the table of states and moves of an order that every decision is checked
// against.
func Machine() *fsm.Machine[State, Trigger] { return &machine }

type edge = fsm.Edge[State, Trigger]

var (
	unsent = []State{Queued, Waiting}
	sent   = []State{Signed, Executed}
	alive  = []State{Queued, Waiting, Signed, Executed}
)

var machine = fsm.Machine[State, Trigger]{
	Name: "order",
	About: "An order, or intent, is one transfer to somebody that outgoing sends once. What was planned is stored before " +
		"a signer sees it, and what was signed before a node does. Attempts of one order share a nonce or an input, so " +
		"at most one of them lands.",
	Initial: Queued,
	States:  []State{Queued, Waiting, Signed, Executed, Final, Failed, Cancelled},
	Edges: []edge{
		{From: []State{""}, Trigger: OnSubmit, To: Queued, When: "it may be sent", Does: "makes it due"},
		{From: []State{""}, Trigger: OnRefuse, To: Cancelled, When: "it may never be sent"},
		{From: unsent, Trigger: OnCancel, To: Cancelled, When: "no signer can have seen it"},
		{From: unsent, Trigger: OnWait, To: Waiting, Does: "shows the reason, and tries again after a pause"},
		{From: unsent, Trigger: OnLater, Does: "tries again soon"},
		{From: unsent, Trigger: OnUntold, Does: "tries again soon"},
		{From: unsent, Trigger: OnKeepBack, To: Waiting, Does: "shows that it was altered; nothing is signed"},
		{From: unsent, Trigger: OnMerge, To: Waiting, Does: "submits orders that merge its coins"},
		{From: unsent, Trigger: OnUnneeded, To: Cancelled, When: "it is a merge"},
		{From: alive, Trigger: OnRaise, When: "what it may cost is set aside", Does: "raises its bound"},
		{From: unsent, Trigger: OnReserve, Does: "stores the plan, with the nonce or the coins that are its own from now on"},
		{From: []State{Waiting}, Trigger: OnSetAside, When: "it was held back several times", Does: "the nonce goes back to ourselves"},
		{From: unsent, Trigger: OnUseUp, Does: "plans a transaction to ourselves with the same nonce or coins"},
		{From: unsent, Trigger: OnAbandon, To: Waiting, When: "it was its first plan", Does: "gives nonce and coins back; who was paid with it starts again"},
		{From: alive, Trigger: OnAbandon, When: "it was a replacement", Does: "the attempts before stay"},
		{From: unsent, Trigger: OnFail, To: Failed},
		{From: []State{Queued, Waiting, Signed}, Trigger: OnStore, To: Signed, Does: "sends it"},
		{From: []State{Executed}, Trigger: OnStore, Does: "sends it"},
		{From: sent, Trigger: OnReplace, Does: "stores the plan"},
		{From: sent, Trigger: OnUnreplaced, Does: "shows why"},
		{From: sent, Trigger: OnResend},
		{From: []State{Signed}, Trigger: OnAccepted, To: Executed},
		{From: sent, Trigger: OnRejected, Does: "its nonce or coins go back to ourselves"},
		{From: sent, Trigger: OnPlace, Does: "shows why"},
		{From: sent, Trigger: OnTakeBack, Does: "its nonce goes back to ourselves"},
		{From: sent, Trigger: OnRefilled, Does: "submits orders that fill them"},
		{From: sent, Trigger: OnBeget, Does: "submits the child"},
		{From: sent, Trigger: OnOrphaned},
		{From: sent, Trigger: OnMined, To: Executed, When: "with the confirmations that its owner asked for"},
		{From: sent, Trigger: OnMined, When: "else", Does: "shows the hash and the confirmations"},
		{From: []State{Executed}, Trigger: OnUnmined, To: Signed, Does: "the same bytes are sent again"},
		{From: sent, Trigger: OnLand, To: Final, When: "it was executed", Does: "books its cost"},
		{From: sent, Trigger: OnLand, To: Failed, When: "it was reverted, or another took its nonce or coins back", Does: "books its cost"},
		{From: sent, Trigger: OnLand, To: Queued, When: "the same, and its owner was told that it is executed, or others were paid with it", Does: "books its cost"},
		{From: sent, Trigger: OnLand, To: Waiting, When: "it was set aside", Does: "books its cost"},
		{From: sent, Trigger: OnDie, To: Failed},
		{From: sent, Trigger: OnDie, To: Queued, When: "it may be sent again"},
		{From: sent, Trigger: OnDie, To: Waiting, When: "it was set aside"},
		{From: alive, Trigger: OnEndChild, To: Failed, When: "nothing of it can land"},
		{From: alive, Trigger: OnEndChild, To: Cancelled, When: "its parent has landed without it"},
		{From: []State{Final}, Trigger: OnRecheck},
		{From: []State{Final}, Trigger: OnReopen, To: Signed, Does: "the attempt that had landed may land again, and those that it had ruled out"},
		{From: alive, Trigger: OnBatch, To: Queued, When: "that one pays it no more", Does: "it starts again alone"},
		{From: alive, Trigger: OnBatch, To: Waiting, When: "that one waits"},
		{From: []State{Queued, Waiting, Signed, Executed, Final}, Trigger: OnBatch, To: Signed, When: "that one is signed, or was taken out of its block"},
		{From: alive, Trigger: OnBatch, To: Executed, When: "that one is executed"},
		{From: alive, Trigger: OnBatch, To: Final, When: "that one is settled"},
		{From: alive, Trigger: OnBatch, To: Failed, When: "that one has failed, by a process that did not know of it"},
		{From: alive, Trigger: OnBatch, To: Cancelled, When: "that one was taken back, by a process that did not know of it"},
	},
}

// AttemptTrigger is what happens to an attempt.
type AttemptTrigger string

// The triggers of attempts.
const (
	OnSign    AttemptTrigger = "sign"    // it is stored
	OnFinal   AttemptTrigger = "final"   // its block is final
	OnRuleOut AttemptTrigger = "ruleout" // it can provably never land
	OnFork    AttemptTrigger = "fork"    // a deep fork took the block that decided
)

// AttemptMachine is the table of what becomes of an attempt.
func AttemptMachine() *fsm.Machine[AttemptState, AttemptTrigger] { return &attempts }

var attempts = fsm.Machine[AttemptState, AttemptTrigger]{
	Name:    "attempt",
	About:   "An attempt is one signed transaction of an order, stored before it is sent and kept for ever.",
	Initial: Open,
	States:  []AttemptState{Open, AttemptFinal, Dead},
	Edges: []fsm.Edge[AttemptState, AttemptTrigger]{
		{From: []AttemptState{""}, Trigger: OnSign, To: Open},
		{From: []AttemptState{Open}, Trigger: OnFinal, To: AttemptFinal},
		{From: []AttemptState{Open}, Trigger: OnRuleOut, To: Dead, When: "a final transaction took what it spends, or its time is over"},
		{From: []AttemptState{AttemptFinal, Dead}, Trigger: OnFork, To: Open},
	},
}

// becomes writes what became of an attempt.
func (a *attempt) becomes(t AttemptTrigger) error {
	to, err := attempts.Next(a.v.State, t)
	if err == nil {
		a.v.State = to
	}
	return err
}
