package utxo

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/internal/recall"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// feeParams are Fee.Params.
type feeParams struct {
	Rate   int64 `json:"rate"`             // units per 1000 virtual bytes
	Parent int64 `json:"parent,omitempty"` // units that a parent lacks, beside
}

// mostParent bounds what is paid for a parent: nodes relay no transaction of
// more than 100,000 virtual bytes.
func (p *Params) mostParent() int64 { return 100 * p.MaxRate }

// rateOf is the question for a node's fee rate.
type rateOf struct{ c *Client }

// EstimateFee is what a payment from one output of ours with change costs now.
// A transaction of more inputs costs more: Build says how much. Max leaves room
// for change that is too small to be paid out. ErrTooDear where the node's
// estimate is above MaxRate.
func (c *Client) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	rate, err := recall.Of(ctx, rateOf{c}, func() (int64, error) { return c.rate(ctx) })
	if err != nil {
		return chain.Fee{}, err
	}
	own := c.ownScript()
	to := own
	if in.To != "" {
		if to, err = c.script(in.To); err != nil {
			return chain.Fee{}, err
		}
	}
	var s size
	s.input(own)
	s.output(to)
	s.output(own)
	f := chain.Fee{Currency: c.native.Code, Cost: ledger.Amount(s.cost(rate))}
	f.Max = f.Cost + ledger.Amount(c.p.dust(own))
	f.Params, err = json.Marshal(feeParams{Rate: rate})
	return f, err
}

// ChildFee implements chain.ParentPayer. ErrTooDear where the node's estimate, or an
// eighth more than the parent pays, is above MaxRate.
func (c *Client) ChildFee(ctx context.Context, in chain.Intent, parent []byte, paid ledger.Amount) (chain.Fee, error) {
	t, err := readTx(parent, c.p.MWEB)
	if err != nil || in.Currency != c.native.Code || paid < 0 {
		return chain.Fee{}, rejected("no parent on %s", c.o.Network)
	}
	to, err := c.script(in.To)
	if err != nil {
		return chain.Fee{}, rejected("%w", err)
	}
	rate, err := c.rate(ctx)
	if err != nil {
		return chain.Fee{}, err
	}
	long := (3*int64(len(t.stripped())) + int64(len(parent)) + 3) / 4
	alone := int64(paid) * 1000 / long
	if rate = max(rate, alone+max(alone/8, c.p.Increment)); rate > c.p.MaxRate {
		return chain.Fee{}, fmt.Errorf("%w: both together %d units per 1000 bytes, Options.MaxRate is %d", chain.ErrTooDear, rate, c.p.MaxRate)
	}
	p := feeParams{Rate: rate, Parent: max((long*rate+999)/1000-int64(paid), 0)}
	var s size
	s.input(c.ownScript())
	s.output(to)
	f := chain.Fee{Currency: c.native.Code, Cost: ledger.Amount(s.cost(rate) + p.Parent)}
	f.Max = f.Cost
	f.Params, err = json.Marshal(p)
	return f, err
}

// ownScript is of the form of our own addresses.
func (c *Client) ownScript() []byte {
	if c.p.Legacy {
		return scriptOf(p2pkh, make([]byte, 20))
	}
	return scriptOf(p2wpkh, make([]byte, 20))
}

// rate asks the node for a fee rate. What it says is raised to what it relays,
// and refused above MaxRate.
func (c *Client) rate(ctx context.Context) (int64, error) {
	check := c.checks()
	guess := transport.NewCall("estimatesmartfee", c.o.Target)
	floors := []*transport.Call{transport.NewCall("getmempoolinfo"), transport.NewCall("getnetworkinfo")}
	if c.o.Dialect == Btcd {
		guess, floors = transport.NewCall("estimatefee", c.o.Target), []*transport.Call{transport.NewCall("getinfo")}
	}
	calls := append(append(check[:len(check):len(check)], guess), floors...)
	if err := c.node.Do(ctx, calls...); err != nil {
		return 0, err
	}
	if err := c.rightChain(check); err != nil {
		return 0, err
	}
	rate, err := c.guess(guess)
	if err != nil {
		return 0, err
	}
	for _, k := range floors {
		var f struct {
			Min   json.Number `json:"mempoolminfee"`
			Relay json.Number `json:"relayfee"`
		}
		if k.Err != nil || k.Into(&f) != nil {
			continue // a node that does not say relays what others do
		}
		for _, n := range []json.Number{f.Min, f.Relay} {
			if v, err := units(string(n)); err == nil {
				rate = max(rate, v)
			}
		}
	}
	if rate = max(rate, c.p.MinRate); rate > c.p.MaxRate {
		return 0, fmt.Errorf("%w: the node wants %d units per 1000 bytes, Options.MaxRate is %d", chain.ErrTooDear, rate, c.p.MaxRate)
	}
	return rate, nil
}

// guess reads an estimate; FallbackRate where the node has none.
func (c *Client) guess(k *transport.Call) (int64, error) {
	if k.Err != nil {
		return c.p.FallbackRate, nil //nolint:nilerr // so a node says that it has seen too little
	}
	number := json.Number(k.Out)
	if c.o.Dialect == Core {
		var smart struct {
			Rate json.Number `json:"feerate"`
		}
		if err := k.Into(&smart); err != nil {
			return 0, err
		}
		if number = smart.Rate; number == "" {
			return c.p.FallbackRate, nil
		}
	}
	// Estimates have more places than coins.
	d, err := decimal.NewFromString(string(number))
	if err != nil || len(number) > 40 || d.Exponent() < -60 || d.Exponent() > 10 {
		return 0, fmt.Errorf("%w: its fee estimate is not a number", chain.ErrNode)
	}
	if !d.IsPositive() {
		return c.p.FallbackRate, nil
	}
	if d.GreaterThan(decimal.New(c.p.MaxRate, -8)) {
		return 0, fmt.Errorf("%w: the node estimates %s coins per 1000 bytes, Options.MaxRate is %d units", chain.ErrTooDear, d, c.p.MaxRate)
	}
	return d.Shift(8).Ceil().IntPart(), nil
}

// raised is the rate of an attempt: each offers an eighth more than the one
// before, and at least what nodes ask of a replacement.
func (c *Client) raised(rate int64, attempt int) int64 {
	for range min(attempt-1, 100) {
		rate = min(rate+max(rate/8, c.p.Increment), c.p.MaxRate)
	}
	return rate
}

func parseParams(raw []byte) (p feeParams, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&p); err != nil || d.More() {
		return p, fmt.Errorf("%w: Fee.Params are not those of EstimateFee", chain.ErrRejected)
	}
	return p, nil
}

// size adds up the weight of a transaction (BIP 141), with signatures at their
// longest.
type size struct {
	ins, outs int
	base      int64 // weight of inputs and outputs
	witness   bool
	plain     int64 // inputs without a witness: a byte each where others have one
}

func (s *size) input(script []byte) {
	s.ins++
	s.base += 4 * (36 + 1 + 4)
	switch k, _ := classify(script); k {
	case p2wpkh:
		s.base, s.witness = s.base+1+1+72+1+33, true
	case p2tr:
		s.base, s.witness = s.base+1+1+64, true
	case p2sh: // of a P2WPKH
		s.base, s.witness = s.base+4*23+1+1+72+1+33, true
	default:
		s.base += 4 * (1 + 72 + 1 + 33)
		s.plain++
	}
}

func (s *size) output(script []byte) {
	s.outs++
	s.base += 4 * int64(8+1+len(script))
}

// virtual is the size in virtual bytes.
func (s *size) virtual() int64 {
	weight := s.base + 4*int64(4+4+lengthOf(s.ins)+lengthOf(s.outs))
	if s.witness {
		weight += 2 + s.plain
	}
	return (weight + 3) / 4
}

// cost at a rate per 1000 virtual bytes, rounded up.
func (s *size) cost(rate int64) int64 { return (s.virtual()*rate + 999) / 1000 }

func lengthOf(n int) int {
	switch {
	case n < 0xfd:
		return 1
	case n <= 0xffff:
		return 3
	default:
		return 5
	}
}

// dust is the least value that an output may have.
func (p *Params) dust(script []byte) int64 {
	if p.Dust > 0 {
		return p.Dust
	}
	spend := int64(32 + 4 + 1 + 107 + 4)
	if k, _ := classify(script); k == p2wpkh || k == p2wsh || k == p2tr {
		spend = 32 + 4 + 1 + 107/4 + 4
	}
	return (int64(8+1+len(script)) + spend) * p.DustRate / 1000
}

// CoinCosts is what Build would charge for an order, part by part, so that coins
// can be chosen by what they bring: without coins and change, for change, the
// least that change can be, and for each of Order.Coins. Together they are never
// below what Build charges.
func (c *Client) CoinCosts(o chain.Order) (base, change, least ledger.Amount, coins []ledger.Amount, err error) {
	fee, err := parseParams(o.Fee.Params)
	if err != nil {
		return 0, 0, 0, nil, err
	}
	to, err := c.script(o.Intent.To)
	if err != nil {
		return 0, 0, 0, nil, rejected("%w", err)
	}
	back, err := c.script(o.Change)
	if err != nil {
		return 0, 0, 0, nil, rejected("Order.Change: %w", err)
	}
	rate := c.raised(fee.Rate, o.Attempt)
	// Weight is rounded up to bytes, and bytes to units, for each part alone.
	price := func(weight int64) ledger.Amount {
		return ledger.Amount(((weight+3)/4*rate + 999) / 1000)
	}
	var pay, extra size
	pay.output(to)
	if _, err := c.others(&o, &pay); err != nil {
		return 0, 0, 0, nil, err
	}
	extra.output(back)
	const marker = 2
	frame := int64(4 * (4 + 4 + 3 + lengthOf(2+len(o.Also))))
	base, change = price(pay.base+frame+marker), price(extra.base)
	least = ledger.Amount(c.p.dust(back))
	for _, coin := range o.Coins {
		script, err := c.script(coin.Address)
		if err != nil {
			return 0, 0, 0, nil, rejected("coin %s: %w", coin.Outpoint, err)
		}
		var one size
		one.input(script)
		coins = append(coins, price(one.base+one.plain))
	}
	return base, change, least, coins, nil
}
