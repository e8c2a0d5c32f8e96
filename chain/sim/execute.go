package sim

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// execute runs one transaction on a state. ok is false, and nothing is changed,
// where no block could hold it now: a nonce gap, a missing input, too low a fee.
func (c *Chain) execute(t *tx, height int64, under *step) (r receipt, ok bool) {
	s := newStep(under.get)
	if c.utxo() {
		r, ok = c.spendOutputs(t, s)
	} else {
		r, ok = c.spendBalance(t, s)
	}
	if !ok {
		return r, false
	}
	for _, spend := range t.body.spends() {
		s.set("s/"+spend, t.Hash)
	}
	s.set("t/"+t.Hash, strconv.FormatInt(height, 10))
	r.Tx = t.Hash
	under.merge(s)
	return r, true
}

func (c *Chain) spendOutputs(t *tx, s *step) (receipt, bool) {
	b := &t.body
	fee := b.inputSum().Sub(b.outputSum())
	for _, in := range b.Inputs {
		if s.get("s/"+in.Outpoint) != "" {
			return receipt{}, false
		}
		amount := amountOf(in.Amount)
		if t.outside && s.get("u/"+in.Outpoint) == "" {
			s.mint("", in.Address, amount)
		} else if s.get("u/"+in.Outpoint) != outputValue(in.Address, amount) {
			return receipt{}, false
		}
		s.set("u/"+in.Outpoint, "")
		s.add(balanceKey("", in.Address), amount.Neg())
	}
	s.add("f/", fee)
	r := receipt{OK: true, Executed: true, Cost: text(fee)}
	for i, o := range b.Outputs {
		amount := amountOf(o.Amount)
		s.set(fmt.Sprintf("u/%s:%d", t.Hash, i), outputValue(o.To, amount))
		s.add(balanceKey("", o.To), amount)
		r.Effects = append(r.Effects, effect{Ordinal: i, From: b.sender(), To: o.To, Amount: text(amount)})
	}
	return r, true
}

func outputValue(a chain.Address, d decimal.Decimal) string { return string(a) + " " + text(d) }

func (c *Chain) spendBalance(t *tx, s *step) (receipt, bool) {
	b := &t.body
	most := c.cost(b.Gas, b.Max)
	if nonceOf(s.get("n/"+string(b.From))) != b.Nonce || b.Max < c.level {
		return receipt{}, false
	}
	if t.outside {
		c.bring(b, most, s)
	}
	if s.balance("", b.From).LessThan(b.outputSum().Add(most)) {
		return receipt{}, false
	}
	fee := c.cost(b.Gas, c.price(b))
	s.burn("", b.From, fee)
	s.set("n/"+string(b.From), strconv.FormatUint(b.Nonce+1, 10))
	r := receipt{OK: true, Executed: true, Cost: text(fee)}
	calls := newStep(s.get)
	for i := range b.Outputs {
		o := &b.Outputs[i]
		moved, done, reverted := c.call(b.From, o, calls)
		if reverted {
			r.OK, r.Executed, r.Effects = false, false, nil
			return r, true
		}
		r.Executed = r.Executed && done
		if !done {
			continue
		}
		e := effect{
			Ordinal: b.ordinal(i), Asset: o.Asset, From: b.From, To: o.To,
			Amount: text(moved), Internal: o.Effect == Internal,
		}
		if times := c.contracts[o.Asset].Overstates; times > 1 {
			e.Logged = text(moved.Mul(decimal.NewFromInt(times)))
		}
		r.Effects = append(r.Effects, e)
	}
	s.merge(calls)
	return r, true
}

// bring gives an outside customer what the transaction needs and is not there.
func (c *Chain) bring(b *body, fee decimal.Decimal, s *step) {
	need := map[string]decimal.Decimal{"": fee}
	for _, o := range b.Outputs {
		need[o.Asset] = need[o.Asset].Add(amountOf(o.Amount))
	}
	for asset, d := range need {
		if short := d.Sub(s.balance(asset, b.From)); short.IsPositive() {
			s.mint(asset, b.From, short)
		}
	}
}

// call is one payment of an account transaction, by the rules of the contract.
// It returns what arrived, whether it did what it says, and whether the whole
// transaction fails with it.
func (c *Chain) call(from chain.Address, o *output, s *step) (moved decimal.Decimal, done, reverted bool) {
	amount := amountOf(o.Amount)
	rule := c.contracts[o.Asset]
	switch {
	case o.Effect == Reverted:
		return amount, false, true
	case o.Effect == InnerReverted || o.Effect == ReturnsFalse:
		return amount, false, false
	case o.Asset == "":
		s.move("", from, o.To, amount)
		return amount, true, false
	case rule.Paused || slices.Contains(rule.Blocked, from) || slices.Contains(rule.Blocked, o.To):
		return amount, false, true
	case rule.ReturnsFalse:
		return amount, false, false
	case s.balance(o.Asset, from).LessThan(amount):
		return amount, false, true
	}
	cut := amount.Mul(decimal.New(rule.FeeBasisPoints, -4)).RoundUp(c.decimals(o.Asset))
	s.burn(o.Asset, from, cut)
	s.move(o.Asset, from, o.To, amount.Sub(cut))
	return amount.Sub(cut), true, false
}
