package world

import (
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// spared reports whether a withdrawal may stay open at the end because an open promise
// names what keeps it, or because a thief has edited it. The outside judge looks at it.
func (r *run) spared(id string) bool {
	v := r.truth.payouts[id]
	if v.Status != withdrawal.Pending && v.Status != withdrawal.Processing {
		return false
	}
	if _, ok := r.edits[id]; ok {
		return true
	}
	if r.taxed[v.Currency] && v.WaitingReason() == withdrawal.ShownHotShort {
		return true
	}
	n := r.network(chain.Network(v.Network))
	return r.rate[Crumbs] > 0 && n.chain.Family() == chain.UTXOFamily && v.WaitingReason() == withdrawal.ShownFeeTooHigh
}

// sparedHold is what such withdrawals hold of a wallet.
func (r *run) sparedHold(k balanceKey) (sum ledger.Amount) {
	for id, v := range r.truth.payouts {
		if k == (balanceKey{storage.Tenant(v.Tenant), ledger.Wallet(v.Wallet), ledger.Asset(v.Currency)}) && r.spared(id) {
			sum += v.Requested
		}
	}
	return sum
}
