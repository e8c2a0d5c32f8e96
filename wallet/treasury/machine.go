package treasury

import (
	"fmt"

	"github.com/cryptopay-go/cryptopay/internal/fsm"
)

// trigger is what happens to a sweep.
type trigger string

// The triggers.
const (
	onPlan    trigger = "plan"    // deposits are to be forwarded
	onDeposit trigger = "deposit" // more deposits have come
	onFund    trigger = "fund"    // gas is missing
	onGas     trigger = "gas"     // its gas has landed, or never will
	onNoGas   trigger = "no-gas"  // the gas that was to be sent is there, or of no use
	onMove    trigger = "move"    // it is worth its cost
	onWait    trigger = "wait"    // it is not worth its cost, or something is missing
	onJoin    trigger = "join"    // an older sweep waits at the same address
	onNothing trigger = "nothing" // its deposits are gone
	onMoved   trigger = "moved"   // another sweep has moved its deposits
	onLanded  trigger = "landed"  // its transaction has landed
	onReopen  trigger = "reopen"  // a fork took its transaction away, and the same is sent again
	onDied    trigger = "died"    // its transaction failed, was called back, or was taken away by a fork
	onGiveUp  trigger = "give-up" // a process of an earlier version gives it up
	onTakeUp  trigger = "take-up" // an earlier version had given it up
)

// Machine is the table of states and moves of a sweep that every decision is checked against.
func Machine() *fsm.Machine[SweepState, trigger] { return &machine }

var (
	looking = []SweepState{SweepNew, SweepDeferred}
	ordered = []SweepState{SweepFunding, SweepMoving}
)

var machine = fsm.Machine[SweepState, trigger]{
	Name: "sweep",
	About: "A sweep forwards what one deposit address holds of one currency to the hot address. At most one sweep of an " +
		"address spends from it at a time. What waits is looked at again, and shows why it waits.",
	Initial: SweepNew,
	States:  []SweepState{SweepNew, SweepFunding, SweepMoving, SweepDeferred, SweepDone, SweepReplaced, sweepGivenUp},
	Edges: []fsm.Edge[SweepState, trigger]{
		{From: []SweepState{""}, Trigger: onPlan, To: SweepNew, Does: "marks the deposits as its own"},
		{From: []SweepState{""}, Trigger: onPlan, To: SweepDeferred, When: "the sweep before it failed", Does: "waits, longer each time"},
		{From: []SweepState{SweepDeferred}, Trigger: onDeposit, To: SweepNew, When: "it had no gas yet, else it is due as it is", Does: "takes them too, and is due"},
		{From: looking, Trigger: onFund, To: SweepFunding, Does: "orders gas from the hot address"},
		{From: []SweepState{SweepMoving}, Trigger: onFund, To: SweepFunding, When: "the price rose, or the gas is gone", Does: "orders more gas"},
		{From: []SweepState{SweepFunding}, Trigger: onGas, To: SweepNew, Does: "is looked at again, and books what the gas cost"},
		{From: ordered, Trigger: onNoGas, To: SweepNew, Does: "calls the gas off, and is looked at again"},
		{From: looking, Trigger: onMove, To: SweepMoving, Does: "orders the transfer of all that the address holds"},
		{From: looking, Trigger: onWait, To: SweepDeferred, Does: "shows why, and when it is looked at again"},
		{From: ordered, Trigger: onWait, To: SweepDeferred, When: "its order cannot be handed over", Does: "shows why, and when it is looked at again"},
		{From: looking, Trigger: onJoin, To: SweepReplaced, Does: "leaves its deposits to that one"},
		{From: looking, Trigger: onNothing, To: SweepReplaced},
		{From: looking, Trigger: onMoved, To: SweepDone, Does: "tells its deposits that they were forwarded"},
		{
			From: []SweepState{SweepNew, SweepFunding, SweepMoving, SweepDeferred, SweepReplaced, sweepGivenUp}, Trigger: onLanded, To: SweepDone,
			Does: "tells its deposits that they were forwarded; what may still be there gets another sweep",
		},
		{
			From: []SweepState{SweepNew, SweepFunding, SweepMoving, SweepDeferred, SweepDone, sweepGivenUp}, Trigger: onDied, To: SweepReplaced,
			Does: "another sweep takes its deposits",
		},
		{From: []SweepState{SweepDone}, Trigger: onReopen, To: SweepMoving, When: "no other sweep uses its address", Does: "shows why, until it has landed again"},
		{From: looking, Trigger: onGiveUp, To: sweepGivenUp, When: "processes of an earlier version run beside this one"},
		{From: []SweepState{sweepGivenUp}, Trigger: onTakeUp, To: SweepReplaced, Does: "leaves its deposits to a new sweep"},
	},
}

// to moves a sweep to another state. The error says that the table has no such move.
func (s *Sweep) to(state SweepState, on trigger) error {
	if err := machine.Move(s.State, on, state); err != nil {
		return fmt.Errorf("treasury: sweep at %s: %w", s.Address, err)
	}
	s.State = state
	return nil
}
