package simulation

import (
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// spared reports whether a withdrawal may stay open at the end because an open promise
// names what keeps it, or because a thief has edited it. The judge asks those promises of it.
func (r *run) spared(id string) bool {
	v := r.truth.payouts[id]
	if v.Status != withdrawal.Pending && v.Status != withdrawal.Processing {
		return false
	}
	if _, ok := r.edits[id]; ok {
		return true
	}
	short := v.WaitingReason() == withdrawal.ShownHotShort || v.WaitingReason() == withdrawal.ShownBelowCost
	if r.taxed[v.Currency] && short {
		return true
	}
	n := r.network(chain.Network(v.Network))
	return n.chain.Family() == chain.UTXOFamily && v.WaitingReason() == withdrawal.ShownFeeTooHigh
}
