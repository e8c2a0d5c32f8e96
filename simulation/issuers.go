package simulation

import (
	"context"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// issue lets the issuer of a token do what its contract allows him: take a fee of each
// transfer, freeze an address, pause, change the unit that balances are counted in.
func (r *run) issue() string {
	n := r.anyNet()
	c := currency(pick(r.rng, n.coins))
	if c.Native() {
		return ""
	}
	switch r.rng.IntN(6) {
	case 0, 1:
		fee := int64(10 + r.rng.IntN(290))
		n.sim.SetBehaviour(c.Contract, sim.Behaviour{FeeBasisPoints: fee})
		r.taxed[c.Code] = true
		return fmt.Sprintf("%s takes %d of 10,000", c.Code, fee)
	case 2:
		of := r.anyMerchant().hot[n.name]
		if a := r.anyPayment(); a != nil && a.net == n && r.rng.IntN(3) > 0 {
			of = a.address
		}
		n.sim.SetBehaviour(c.Contract, sim.Behaviour{Blocked: []chain.Address{of}})
		r.outside.judge.Refusing()
		return fmt.Sprintf("%s freezes %s", c.Code, short(string(of)))
	case 3:
		n.sim.SetBehaviour(c.Contract, sim.Behaviour{Paused: true})
		r.outside.judge.Refusing()
		return c.Code + " pauses"
	case 4:
		share := int64(1 + r.rng.IntN(400))
		n.sim.Rebase(c.Contract, share)
		r.taxed[c.Code] = true
		return fmt.Sprintf("%s rebases by -%d of 10,000", c.Code, share)
	}
	n.sim.SetBehaviour(c.Contract, sim.Behaviour{})
	return c.Code + " is honest"
}

// takeShort is what an operator decides about payouts that brought less than was ordered:
// the recipient has to be content.
func (m *merchant) takeShort(t *task, n *network) {
	r := m.r
	if r.rate[Issuers] == 0 {
		return
	}
	for _, p := range m.payouts {
		v, ok := r.accepted(p)
		if !ok || v.Network != string(n.name) || v.WaitingReason() != withdrawal.ShownDeliveredLess {
			continue
		}
		r.took[v.ID] = true
		_, err := t.p.app.Withdrawals.TakeDelivered(context.Background(), m.id, v.ID, "ann", "the issuer took a fee")
		r.excuse(t, err)
	}
}
