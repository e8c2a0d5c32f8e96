package simulation

import (
	"context"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/simulation/internal/judge"
)

// regular is a customer who asks for his permanent address at a merchant, as he does each
// time, and pays to it.
func (r *run) regular() string {
	m, c := r.anyMerchant(), r.coin()
	in := payment.AddressInput{ExternalID: fmt.Sprint("regular ", r.rng.IntN(2)), Currency: c.Code}
	if len(m.wallets) > 0 && r.rng.IntN(3) == 0 {
		in.WalletID = pick(r.rng, m.wallets)
	}
	said := "not heard"
	ok := r.ask("permanent address", func(t *task) {
		a, _, err := t.p.app.Payments.PermanentAddress(context.Background(), m.id, in)
		if err != nil {
			said = "refused"
			m.heard(t, err, nil)
			return
		}
		r.outside.judge.Given(judge.Address{
			Shop: m.id, ID: a.ID, Network: a.Network, Address: a.Address, ExternalID: in.ExternalID,
		})
		said = r.visit(c, chain.Address(a.Address))
	})
	if !ok {
		return "all busy"
	}
	return fmt.Sprintf("%s of merchant %d: %s", in.ExternalID, m.n, said)
}

// visit pays once to a permanent address: enough, too little, or twice at once.
func (r *run) visit(c *chain.Currency, to chain.Address) string {
	n := r.network(c.Network)
	times := func(f int64) decimal.Decimal {
		return decimal.Max(c.Min.Mul(decimal.New(f, -2)), c.Dust.Mul(decimal.New(3, 0))).RoundUp(int32(c.Scale))
	}
	amounts := []decimal.Decimal{times(100 + int64(r.rng.IntN(4000)))}
	switch r.rng.IntN(4) {
	case 0:
		amounts = []decimal.Decimal{times(10 + int64(r.rng.IntN(60)))}
	case 1:
		amounts = append(amounts, times(20+int64(r.rng.IntN(300))))
	}
	var txs []sim.Tx
	for _, x := range amounts {
		p := sim.Payment{To: to, Currency: c.Code, Amount: x}
		if len(txs) > 0 && n.chain.Family() == chain.UTXOFamily { // two outputs of one transaction
			txs[0].Payments = append(txs[0].Payments, p)
		} else {
			txs = append(txs, sim.Tx{Payments: []sim.Payment{p}})
		}
	}
	for _, tx := range txs {
		hash, err := n.chain.Send(tx)
		if err != nil {
			return "not accepted: " + err.Error()
		}
		r.counts["regulars"]++
		r.first[string(n.name)+hash] = r.now
	}
	return fmt.Sprintf("sends %s %s", amounts, c.Code)
}
