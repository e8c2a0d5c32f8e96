package outgoing

import (
	"context"
	"errors"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// covered holds an order back that the address can pay only with coins which
// its transactions on their way already take. A client builds on the balance at
// the head and cannot see those.
func (n *Sender) covered(ctx context.Context, d *candidate) error {
	b, ok := n.Client.(chain.Balancer)
	cur, err := n.Registry.Currency(d.intent.Currency)
	if err != nil {
		return err
	}
	if d.intent.All {
		return n.alone(ctx, d)
	}
	if !ok {
		return nil
	}
	under, err := n.underWay(ctx, d.intent.From)
	if err != nil || len(under) == 0 {
		return err
	}
	coins, gas := cur.Decimal(d.intent.Amount), n.gas.Decimal(d.fee.Max)
	for i := range under {
		if under[i].All && (under[i].Currency == cur.Code || under[i].Currency == n.gas.Code) {
			return &waitError{ReasonHotBalance, fmt.Sprintf("all %s of the address are on their way to another", under[i].Currency)}
		}
		if gas = gas.Add(n.gas.Decimal(under[i].Reserved)); under[i].Currency == cur.Code {
			coins = coins.Add(cur.Decimal(under[i].Amount))
		} else if under[i].Currency == n.gas.Code {
			gas = gas.Add(n.gas.Decimal(under[i].Amount))
		}
	}
	if cur.Native() {
		return holds(ctx, b, cur, d.intent.From, coins, gas)
	}
	if err := holds(ctx, b, cur, d.intent.From, coins, decimal.Zero); err != nil {
		return err
	}
	return holds(ctx, b, n.gas, d.intent.From, decimal.Zero, gas)
}

// alone holds an order for all that an address holds back until everything sent
// from there before is in a block: one of those may take what this one counts
// on, the amount or the gas, as one does that a fork took out of its block.
func (n *Sender) alone(ctx context.Context, d *candidate) error {
	at, err := n.nonces.Nonce(ctx, d.intent.From)
	if err != nil {
		return err
	}
	if at < uint64(d.nonce) {
		if _, err := n.fillGaps(ctx, d.intent.From, int64(at), d.nonce, nil); err != nil {
			return err
		}
		return &waitError{ReasonHotBalance, fmt.Sprintf("what the address sent before is in no block yet: nonce %d of %d", at, d.nonce)}
	}
	return nil
}

// holds checks that an address holds an amount of a currency, and the gas beside it.
func holds(ctx context.Context, b chain.Balancer, cur *chain.Currency, a chain.Address, amount, gas decimal.Decimal) error {
	held, err := b.Balance(ctx, cur.Code, a)
	if err != nil {
		return err
	}
	short := ReasonHotBalance
	if !held.LessThan(amount) {
		short = ReasonOperatorFunds
	}
	if need := amount.Add(gas); held.LessThan(need) {
		return &waitError{short, fmt.Sprintf("%s of %s are needed with what is on its way", need, cur.Code)}
	}
	return nil
}

// underWay lists the intents of an address that are signed and in no block.
func (n *Sender) underWay(ctx context.Context, a chain.Address) ([]IntentRow, error) {
	q := storage.Query{Table: Intents.Table, Partition: n.part, Limit: 1000, Where: []storage.Cond{
		{Column: "from_address", Op: storage.Eq, Value: a},
		{Column: "nonce", Op: storage.Ge, Value: int64(0)},
		{Column: "state", Op: storage.Eq, Value: Signed},
	}}
	rows, err := n.Store.Find(ctx, q)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	at, err := n.nonces.Nonce(ctx, a)
	if err != nil {
		return nil, err
	}
	var out []IntentRow
	for _, r := range rows {
		if v := Intents.Value(r); uint64(v.Nonce) >= at {
			out = append(out, v)
		}
	}
	return out, nil
}

// short tells which of the two an address lacks: the amount or the gas.
func (n *Sender) short(ctx context.Context, d *candidate, err error) error {
	b, ok := n.Client.(chain.Balancer)
	if !errors.Is(err, chain.ErrShort) || d.intent.All && d.intent.Currency == n.gas.Code || !ok {
		return err
	}
	cur, e := n.Registry.Currency(d.intent.Currency)
	if e != nil {
		return err
	}
	held, e := b.Balance(ctx, cur.Code, d.intent.From)
	if e != nil || held.LessThan(cur.Decimal(d.intent.Amount)) || d.intent.All && held.IsZero() {
		return err
	}
	return &waitError{ReasonOperatorFunds, err.Error()}
}
