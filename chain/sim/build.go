package sim

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// params are Fee.Params.
type params struct {
	Max int64 `json:"max"` // per gas or byte
	Tip int64 `json:"tip,omitempty"`
	// Parent is what a parent lacks, in 10^-8 coins: its child pays it, too.
	Parent int64 `json:"parent,omitempty"`
}

func rejected(format string, args ...any) error {
	return fmt.Errorf("%w: sim: %w", chain.ErrRejected, fmt.Errorf(format, args...))
}

// EstimateFee implements chain.Client: of one payment, and on UTXO networks of
// one input and change. Build takes more where it is given more coins.
func (k *client) EstimateFee(ctx context.Context, in chain.Intent) (f chain.Fee, err error) {
	c := k.c()
	asset, err := c.asset(in.Currency, "")
	if err != nil {
		return f, err
	}
	err = k.ask(ctx, func(view) error {
		p := params{Max: 2*c.level + defaultGasTip, Tip: defaultGasTip}
		size, usual := gasOf(asset), c.level+defaultGasTip
		if c.utxo() {
			p, usual = params{Max: c.level}, c.level
			size = bytesOf(&body{Inputs: make([]input, 1), Outputs: make([]output, 2), Memo: in.Memo})
		}
		if f, err = c.fee(p, size, usual); err != nil || !c.utxo() {
			return err
		}
		dust, err := c.feeUnits(dustLimit) // change that is too small is the miner's
		f.Max += dust
		return err
	})
	return f, err
}

// ChildFee implements chain.ParentPayer on networks that keep outputs.
func (k *client) ChildFee(ctx context.Context, in chain.Intent, parent []byte, paid ledger.Amount) (f chain.Fee, err error) {
	c := k.c()
	t, err := newTx(parent, 0)
	if err != nil || !c.utxo() || in.Currency != c.gas.Code {
		return f, rejected("no parent on %s", c.opt.Network)
	}
	err = k.ask(ctx, func(view) error {
		size, had := bytesOf(&t.body), c.gas.Decimal(paid)
		p := params{Max: max(c.level, raise(c.price(&t.body), 2))}
		if lacks := c.cost(size, p.Max).Sub(had); lacks.IsPositive() {
			p.Parent = lacks.Shift(-utxoExp).IntPart()
		}
		own := bytesOf(&body{Inputs: make([]input, 1), Outputs: make([]output, 1)})
		if f, err = c.fee(p, own, p.Max); err != nil {
			return err
		}
		f.Cost, err = c.feeUnits(c.cost(own, p.Max).Add(c.cost(p.Parent, 1)))
		f.Max = f.Cost
		return err
	})
	return f, err
}

func (c *Chain) fee(p params, size, usual int64) (f chain.Fee, err error) {
	f.Currency = c.gas.Code
	if f.Params, err = json.Marshal(p); err != nil {
		return f, err
	}
	if f.Cost, err = c.feeUnits(c.cost(size, usual)); err != nil {
		return f, err
	}
	f.Max, err = c.feeUnits(c.cost(size, p.Max))
	return f, err
}

// Build implements chain.Client. Attempt n pays an eighth more per gas or byte
// than attempt n−1 with the same Fee, so that nodes take it in its place.
func (k *client) Build(ctx context.Context, o chain.Order) (u chain.Unsigned, err error) {
	c := k.c()
	cur, err := c.opt.Registry.Currency(o.Intent.Currency)
	if err != nil {
		return u, rejected("%w", err)
	}
	if cur.Network != c.opt.Network {
		return u, rejected("%s is not on %s", cur.Code, c.opt.Network)
	}
	if _, err := k.ParseAddress(string(o.Intent.To)); err != nil {
		return u, rejected("%w", err)
	}
	if o.Intent.Amount < 0 || o.Intent.Amount == 0 && !o.Intent.All && o.Intent.Purpose != chain.ForCancel {
		return u, rejected("an amount is above 0")
	}
	var p params
	if err := strict(o.Fee.Params, &p); err != nil || p.Max < 1 || p.Max > maxPrice || p.Tip < 0 || p.Tip > p.Max || p.Parent < 0 || p.Parent > maxPrice {
		return u, rejected("Fee.Params are not those of EstimateFee")
	}
	for _, price := range []*int64{&p.Max, &p.Tip, &p.Parent} {
		*price = min(raise(*price, o.Attempt), maxPrice)
	}
	b := body{Network: c.opt.Network, Chain: c.id(), Memo: o.Intent.Memo}
	if len(o.Also) > 0 && (!c.utxo() || o.Intent.All || o.Intent.Amount == 0) {
		return u, rejected("the order pays alone")
	}
	if c.utxo() {
		err = c.buildOutputs(&b, o, cur, p)
		if e := ctx.Err(); e != nil {
			err = e
		}
	} else {
		err = k.ask(ctx, func(v view) error { return c.buildBalance(v, &b, o, cur, p) })
	}
	if err != nil {
		return u, err
	}
	payload, err := json.Marshal(b)
	if err != nil {
		return u, err
	}
	if u, err = k.Inspect(payload); err != nil {
		return u, err
	}
	limit, err := o.MaxCost()
	if err != nil {
		return chain.Unsigned{}, rejected("MaxCost: %w", err)
	}
	if limit > 0 && u.MaxCost > limit {
		return chain.Unsigned{}, &chain.DearError{Need: u.MaxCost, Most: limit}
	}
	return u, nil
}

func (c *Chain) buildBalance(v view, b *body, o chain.Order, cur *chain.Currency, p params) error {
	in := o.Intent
	if _, err := c.opt.Addresses.Parse(string(in.From)); err != nil {
		return rejected("%w", err)
	}
	b.From, b.Nonce, b.Gas, b.Max, b.Tip = in.From, o.Nonce, gasOf(cur.Contract), p.Max, p.Tip
	if in.All && cur.Native() {
		b.Tip = b.Max // pays exactly the most, so that nothing is left behind
	}
	most, coins := c.cost(b.Gas, b.Max), v.balance("", in.From)
	amount := cur.Decimal(in.Amount)
	switch {
	case in.All && cur.Native():
		amount = coins.Sub(most)
	case in.All:
		amount = v.balance(cur.Contract, in.From)
	}
	need := most
	if cur.Native() {
		need = need.Add(amount)
	} else if held := v.balance(cur.Contract, in.From); held.LessThan(amount) {
		return fmt.Errorf("%w: %s of %s, it has %s", chain.ErrShort, text(amount), cur.Code, text(held))
	}
	if in.All && !amount.IsPositive() || coins.LessThan(need) {
		return fmt.Errorf("%w: %s and the fee of %s, it has %s of %s", chain.ErrShort, text(amount), text(most), text(coins), c.gas.Code)
	}
	b.Outputs = []output{{To: in.To, Asset: cur.Contract, Amount: text(amount)}}
	return nil
}

func (c *Chain) buildOutputs(b *body, o chain.Order, cur *chain.Currency, p params) error {
	in, sum := o.Intent, decimal.Zero
	if !cur.Native() {
		return rejected("%s is no coin", cur.Code)
	}
	if len(o.Coins) == 0 {
		return fmt.Errorf("%w: the order has no coins", chain.ErrShort)
	}
	for _, coin := range o.Coins {
		d := c.gas.Decimal(coin.Amount)
		sum = sum.Add(d)
		b.Inputs = append(b.Inputs, input{Outpoint: coin.Outpoint, Address: coin.Address, Amount: text(d)})
	}
	pay := output{To: in.To}
	b.Outputs = []output{pay}
	if in.All || in.Amount == 0 {
		b.Outputs[0].Change = in.Purpose == chain.ForCancel
		return c.settle(b, 0, sum.Sub(c.cost(bytesOf(b), p.Max)).Sub(c.cost(p.Parent, 1)))
	}
	amount := c.gas.Decimal(in.Amount)
	if err := c.settle(b, 0, amount); err != nil {
		return err
	}
	for i := range o.Also {
		also := &o.Also[i]
		if _, err := c.opt.Addresses.Parse(string(also.To)); err != nil || also.Currency != cur.Code || also.All || also.Amount <= 0 {
			return rejected("Order.Also %s is no payment of an amount of %s", also.ID, cur.Code)
		}
		b.Outputs = append(b.Outputs, output{To: also.To})
		if err := c.settle(b, i+1, c.gas.Decimal(also.Amount)); err != nil {
			return err
		}
		amount = amount.Add(c.gas.Decimal(also.Amount))
	}
	alone := sum.Sub(amount).Sub(c.cost(bytesOf(b), p.Max))
	if alone.IsNegative() {
		return fmt.Errorf("%w: the coins are %s", chain.ErrShort, text(sum))
	}
	last := len(b.Outputs)
	b.Outputs = append(b.Outputs, output{To: o.Change, Change: true})
	rest := sum.Sub(amount).Sub(c.cost(bytesOf(b), p.Max))
	if rest.LessThan(dustLimit) { // too small to be worth an output: the miner's
		b.Outputs = b.Outputs[:last]
		return nil
	}
	if _, err := c.opt.Addresses.Parse(string(o.Change)); err != nil {
		return rejected("Order.Change: %w", err)
	}
	return c.settle(b, last, rest)
}

// settle gives an output its amount.
func (c *Chain) settle(b *body, i int, amount decimal.Decimal) error {
	if amount.LessThan(dustLimit) {
		if i == 0 && !amount.IsPositive() {
			return fmt.Errorf("%w: the coins do not pay the fee", chain.ErrShort)
		}
		return rejected("%s is below the network's dust limit of %s", text(amount), text(dustLimit))
	}
	b.Outputs[i].Amount = text(amount)
	return nil
}

// Inspect implements chain.Inspector.
func (k *client) Inspect(payload []byte) (u chain.Unsigned, err error) {
	c := k.c()
	b, err := parseBody(payload)
	if err != nil {
		return u, rejected("%w", err)
	}
	if b.Network != c.opt.Network || b.Chain != c.id() || c.utxo() != (len(b.Inputs) > 0) {
		return u, rejected("the payload is for another chain")
	}
	u = chain.Unsigned{
		Network: b.Network, Payload: payload, Spends: b.spends(), Memo: b.Memo,
		Digests: digests(&b, payload),
	}
	most := c.cost(b.Gas, b.Max)
	if c.utxo() {
		most = b.inputSum().Sub(b.outputSum())
	}
	if most.IsNegative() {
		return u, rejected("the payload pays more than it spends")
	}
	if u.MaxCost, err = c.feeUnits(most); err != nil {
		return u, err
	}
	for _, o := range b.Outputs {
		out, err := c.inspectOutput(o)
		if err != nil {
			return chain.Unsigned{}, err
		}
		u.Outputs = append(u.Outputs, out)
	}
	return u, nil
}

func (c *Chain) inspectOutput(o output) (out chain.Output, err error) {
	cur, err := c.opt.Registry.Currency(c.code(o.Asset))
	if err != nil {
		return out, rejected("the payload moves contract %q, which is no registered currency", o.Asset)
	}
	if _, err := c.opt.Addresses.Parse(string(o.To)); err != nil {
		return out, rejected("%w", err)
	}
	amount, err := cur.Units(amountOf(o.Amount), ledger.Down)
	if err != nil {
		return out, rejected("%w", err)
	}
	return chain.Output{To: o.To, Currency: cur.Code, Amount: amount, Change: o.Change}, nil
}

// Assemble implements chain.Client.
func (k *client) Assemble(u chain.Unsigned, sigs []chain.Signature) (s chain.Signed, err error) {
	seen, err := k.Inspect(u.Payload)
	if err != nil {
		return s, err
	}
	if len(sigs) != len(seen.Digests) {
		return s, fmt.Errorf("sim: %d signatures for %d digests", len(sigs), len(seen.Digests))
	}
	for i, d := range seen.Digests {
		if by, ok := k.c().opt.signedBy(sigs[i], d.Hash); !ok || by != d.From {
			return s, fmt.Errorf("sim: signature %d is not one of %s", i, d.From)
		}
		if !lowS(sigs[i]) {
			return s, errors.New("sim: a signature has the high s that nodes do not relay")
		}
	}
	if s.Raw, err = seal(u.Payload, sigs); err != nil {
		return s, err
	}
	s.Tx = digestHex("tx", string(s.Raw))
	return s, nil
}
