package sim

import (
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Balance is what an address holds at the head, in whole coins. Unknown
// currencies hold nothing.
func (c *Chain) Balance(a chain.Address, currency string) decimal.Decimal {
	c.mu.Lock()
	defer c.mu.Unlock()
	asset, err := c.asset(currency, "")
	if err != nil {
		return decimal.Zero
	}
	return amountOf(c.kv[balanceKey(asset, c.account(a))])
}

// moved is a transfer, and whether only a trace shows it.
type moved struct {
	chain.Transfer
	inner bool
}

// knows reports whether a block's transactions are there: a Restore to a state of before
// takes them away.
func (c *Chain) knows(b *block) bool {
	for i := range b.Txs {
		if c.txs[b.Txs[i].Tx] == nil {
			return false
		}
	}
	return true
}

// transfersOf lists what a block moved, to whomever.
func (c *Chain) transfersOf(b *block) []moved {
	var out []moved
	for i := range b.Txs {
		r := &b.Txs[i]
		t := c.txs[r.Tx]
		for _, e := range r.Effects {
			x := chain.Transfer{
				Tx: r.Tx, Ordinal: e.Ordinal, Block: b.public(),
				Currency: c.code(e.Asset), Contract: e.Asset,
				From: e.From, To: e.To, Memo: t.body.Memo, Amount: amountOf(e.Amount),
				Spends: t.body.spends(), Confirmable: t.body.Immature,
			}
			if e.Logged != "" { // as a client finds by the balances
				x.Amount, x.Unproven, x.Contradicted = amountOf(e.Logged), true, true
			}
			out = append(out, moved{x, e.Internal})
		}
	}
	return out
}
