package treasury

import (
	"fmt"

	"github.com/cryptopay-go/cryptopay/internal/fsm"
)

// Trigger is what happens to a sweep.
type Trigger string

// The triggers.
const (
	OnPlan    Trigger = "plan"    // deposits are to be forwarded
	OnDeposit Trigger = "deposit" // more deposits have come
	OnFund    Trigger = "fund"    // gas is missing
	OnGas     Trigger = "gas"     // its gas has landed, or never will
	OnNoGas   Trigger = "no-gas"  // the gas that was to be sent is there, or of no use
	OnMove    Trigger = "move"    // it is worth its cost
	OnWait    Trigger = "wait"    // it is not worth its cost, or something is missing
	OnJoin    Trigger = "join"    // an older sweep waits at the same address
	OnNothing Trigger = "nothing" // its deposits are gone
	OnMoved   Trigger = "moved"   // another sweep has moved its deposits
	OnLanded  Trigger = "landed"  // its transaction has landed
	OnReopen  Trigger = "reopen"  // a fork took its transaction away, and the same is sent again
	OnDied    Trigger = "died"    // its transaction failed, was called back, or was taken away by a fork
	OnGiveUp  Trigger = "give-up" // a process of an earlier version gives it up
	OnTakeUp  Trigger = "take-up" // an earlier version had given it up
)

// Machine is the table of states and moves of a sweep that every decision is checked against.
func Machine() *fsm.Machine[SweepState, Trigger] { return &machine }

var (
	looking = []SweepState{SweepNew, SweepDeferred}
	ordered = []SweepState{SweepFunding, SweepMoving}
)

var machine = fsm.Machine[SweepState, Trigger]{
	Name: "sweep",
	About: "A sweep forwards what one deposit address holds of one currency to the hot address. At most one sweep of an " +
		"address spends from it at a time. What waits is looked at again, and shows why it waits.",
	Initial: SweepNew,
	States:  []SweepState{SweepNew, SweepFunding, SweepMoving, SweepDeferred, SweepDone, SweepReplaced, sweepGivenUp},
	Edges: []fsm.Edge[SweepState, Trigger]{
		{From: []SweepState{""}, Trigger: OnPlan, To: SweepNew, Does: "marks the deposits as its own"},
		{From: []SweepState{""}, Trigger: OnPlan, To: SweepDeferred, When: "the sweep before it failed", Does: "waits, longer each time"},
		{From: []SweepState{SweepDeferred}, Trigger: OnDeposit, To: SweepNew, Does: "takes them too, and is due"},
		{From: looking, Trigger: OnFund, To: SweepFunding, Does: "orders gas from the hot address"},
		{From: []SweepState{SweepMoving}, Trigger: OnFund, To: SweepFunding, When: "the price rose, or the gas is gone", Does: "orders more gas"},
		{From: []SweepState{SweepFunding}, Trigger: OnGas, To: SweepNew, Does: "is looked at again, and books what the gas cost"},
		{From: ordered, Trigger: OnNoGas, To: SweepNew, Does: "calls the gas off, and is looked at again"},
		{From: looking, Trigger: OnMove, To: SweepMoving, Does: "orders the transfer of all that the address holds"},
		{From: looking, Trigger: OnWait, To: SweepDeferred, Does: "shows why, and when it is looked at again"},
		{From: ordered, Trigger: OnWait, To: SweepDeferred, When: "its order cannot be handed over", Does: "shows why, and when it is looked at again"},
		{From: looking, Trigger: OnJoin, To: SweepReplaced, Does: "leaves its deposits to that one"},
		{From: looking, Trigger: OnNothing, To: SweepReplaced},
		{From: looking, Trigger: OnMoved, To: SweepDone, Does: "tells its deposits that they were forwarded"},
		{
			From: []SweepState{SweepNew, SweepFunding, SweepMoving, SweepDeferred, SweepReplaced, sweepGivenUp}, Trigger: OnLanded, To: SweepDone,
			Does: "tells its deposits that they were forwarded; what may still be there gets another sweep",
		},
		{
			From: []SweepState{SweepNew, SweepFunding, SweepMoving, SweepDeferred, SweepDone, sweepGivenUp}, Trigger: OnDied, To: SweepReplaced,
			Does: "another sweep takes its deposits",
		},
		{From: []SweepState{SweepDone}, Trigger: OnReopen, To: SweepMoving, When: "no other sweep uses its address", Does: "shows why, until it has landed again"},
		{From: looking, Trigger: OnGiveUp, To: sweepGivenUp, When: "processes of an earlier version run beside this one"},
		{From: []SweepState{sweepGivenUp}, Trigger: OnTakeUp, To: SweepReplaced, Does: "leaves its deposits to a new sweep"},
	},
}

// to moves a sweep to another state. The error says that the table has no such move.
func (s *Sweep) to(state SweepState, on Trigger) error {
	if err := machine.Move(s.State, on, state); err != nil {
		return fmt.Errorf("treasury: sweep at %s: %w", s.Address, err)
	}
	s.State = state
	return nil
}
