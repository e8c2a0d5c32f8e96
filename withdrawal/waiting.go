package withdrawal

// The reasons that merchants see for which a withdrawal is not completed yet.
const (
	ShownApproval      = "approval"       // somebody has to approve it
	ShownReview        = "review"         // somebody looks at it
	ShownHalted        = "halted"         // payouts of the asset or network are halted
	ShownHotShort      = "hot_short"      // the hot address does not hold the amount yet
	ShownGasShort      = "gas_short"      // there are no coins to pay the network with
	ShownFeeTooHigh    = "fee_too_high"   // the network asks more than the bound
	ShownConsolidating = "consolidating"  // coins are merged first
	ShownDeliveredLess = "delivered_less" // it was executed, and less than ordered arrived
	ShownBelowCost     = "below_cost"     // moving the coins costs too much of their value
	ShownStuck         = "stuck"          // a node, signer or service does not do its part
	ShownReorged       = "reorged"        // the network took its transaction back
)

// shown maps stored reasons to those that merchants see. The stored ones are this
// package's and the payout side's.
var shown = map[string]string{
	WaitingReview: ShownReview, WaitingFrozen: ShownReview, WaitingPolicy: ShownReview,
	WaitingDelayed: ShownApproval,
	WaitingHalted:  ShownHalted, WaitingPayout: ShownStuck, WaitingOccupied: ShownStuck,

	"gas_float_short": ShownGasShort, "fee_above_cap": ShownFeeTooHigh, "node": ShownStuck, "signer": ShownStuck,

	ShownApproval: ShownApproval, ShownHotShort: ShownHotShort, ShownGasShort: ShownGasShort, ShownFeeTooHigh: ShownFeeTooHigh,
	ShownConsolidating: ShownConsolidating, ShownDeliveredLess: ShownDeliveredLess, ShownBelowCost: ShownBelowCost,
	ShownStuck: ShownStuck, ShownReorged: ShownReorged,
}

// WaitingReason is why the withdrawal is not completed yet, as merchants see it: one
// of the Shown… constants. "" means that it waits for nothing but its turn or its
// confirmations, or has ended. One that is completed shows ShownReorged while the network
// has taken its payment back, ShownDeliveredLess until an operator has decided about
// what it brought less, and where it was completed without confirmations, why no block has its payment.
func (w Withdrawal) WaitingReason() string {
	if w.Waiting == "" || !w.Live() && w.Status != Completed {
		return ""
	}
	if reason, ok := shown[w.Waiting]; ok {
		return reason
	}
	return ShownStuck
}
