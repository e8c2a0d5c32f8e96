package evm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/internal/recall"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// price is what Fee.Params holds. All in wei.
type price struct {
	Gas   uint64 `json:"gas"`   // limit, with the margin
	Guess bool   `json:"guess"` // the gas could not be tried yet: Build must
	Tip   int64  `json:"tip"`   // EIP-1559 priority fee; 0 on Legacy networks
	Cap   int64  `json:"cap"`   // the most per gas; the price on Legacy networks
	Now   int64  `json:"now"`   // per gas as things are
	L1    int64  `json:"l1"`    // data fee of a rollup, with the margin
	// An operator's fee for all of Gas, with the margin, and for what will be used of it.
	Operator    int64 `json:"operator,omitempty"`
	OperatorNow int64 `json:"operator_now,omitempty"`
	Bumps       int   `json:"bumps"`            // replacements that the prices are already raised for
	Margin      int64 `json:"margin,omitempty"` // of Gas, in percent; 0: Options.GasMargin
}

// beside is what a transaction at this price takes beside gas, at most.
func (p *price) beside() *big.Int {
	v := big.NewInt(p.L1)
	return v.Add(v, big.NewInt(p.Operator))
}

// most is the most that a transaction at this price can take.
func (p *price) most() *big.Int {
	return p.at(p.Cap)
}

// at is the most that a transaction takes at so many wei per gas.
func (p *price) at(perGas int64) *big.Int {
	v := new(big.Int).Mul(new(big.Int).SetUint64(p.Gas), big.NewInt(perGas))
	return v.Add(v, p.beside())
}

// within lowers the most per gas to what the sender has, where the network takes that now.
func (p *price) within(funds *big.Int) {
	perGas := new(big.Int).Sub(funds, p.beside())
	perGas.Div(perGas, new(big.Int).SetUint64(p.Gas))
	if perGas.Cmp(big.NewInt(p.Now)) >= 0 && perGas.Cmp(big.NewInt(p.Cap)) < 0 {
		p.Cap = perGas.Int64()
	}
}

// used is the gas that a transfer takes: the limit without its margin.
func (c *Client) used(p *price) uint64 {
	return p.Gas / uint64(100+cmp.Or(p.Margin, c.o.GasMargin)) * 100
}

// margin is added to the gas of a transfer, in percent.
func (c *Client) margin(s *sending) int64 {
	if s.sweep {
		return c.sweepMargin
	}
	return c.o.GasMargin
}

// sending is an intent in the terms of the chain.
type sending struct {
	cur      *chain.Currency
	from, to common.Address
	known    bool // from is known
	sweep    bool
	all      bool
	amount   *big.Int // smallest units; of All what the address holds, once read
}

func (s *sending) native() bool { return s.cur.Native() }

func (s *sending) contract() common.Address { return common.HexToAddress(s.cur.Contract) }

// target, value and data are those of the transaction.
func (s *sending) tx() (target common.Address, value *big.Int, data []byte) {
	if s.native() {
		return s.to, s.amount, nil
	}
	data = make([]byte, 68)
	copy(data, selTransfer[:])
	copy(data[16:], s.to[:])
	s.amount.FillBytes(data[36:])
	return s.contract(), new(big.Int), data
}

// someone stands for a recipient that is not known yet: nobody's address, and
// one that holds nothing, so that the dearer case is estimated.
const someone chain.Address = "0x7079000000000000000000000000000000000001"

// sending checks an intent. Errors wrap ErrRejected.
func (c *Client) sending(in *chain.Intent, needFrom bool) (*sending, error) {
	if in.Network != c.o.Network {
		return nil, fmt.Errorf("%w: the intent is for %s, this is %s", chain.ErrRejected, in.Network, c.o.Network)
	}
	if in.Memo != "" {
		return nil, fmt.Errorf("%w: %s has no memos", chain.ErrRejected, c.o.Network)
	}
	recipient := in.To
	if recipient == "" && !needFrom {
		recipient = someone // an estimate for a typical recipient
	}
	cur, to, err := c.holding(in.Currency, recipient)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", chain.ErrRejected, err)
	}
	s := &sending{cur: cur, to: to, sweep: in.Purpose == chain.ForSweep, all: in.All, amount: new(big.Int)}
	if in.From != "" || needFrom {
		if s.from, err = c.own(in.From); err != nil {
			return nil, fmt.Errorf("%w: sender: %w", chain.ErrRejected, err)
		}
		s.known = true
	}
	if in.All {
		return s, nil
	}
	if in.Amount < 0 || in.Amount == 0 && in.Purpose != chain.ForCancel {
		return nil, fmt.Errorf("%w: the amount must be positive", chain.ErrRejected)
	}
	s.amount.Mul(big.NewInt(int64(in.Amount)), pow10(int64(cur.Decimals)-int64(cur.Scale)))
	return s, nil
}

func pow10(n int64) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(n), nil) }

// priceOf is the question for a node's price of gas.
type priceOf struct{ c *Client }

// EstimateFee asks the node for the price of gas and tries the transfer for its
// gas. Where the sender is not known or does not hold enough, the gas of a token
// transfer is Options.QuoteGas, and Build tries again. The error wraps ErrTooDear
// where the price is above Options.MaxFeePerGas.
func (c *Client) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	s, err := c.sending(&in, false)
	if err != nil {
		return chain.Fee{}, err
	}
	if s.all && s.known {
		if s.amount, err = c.holds(ctx, s); err != nil {
			return chain.Fee{}, err
		}
	}
	now, err := recall.Of(ctx, priceOf{c}, func() (price, error) {
		p, err := c.price(ctx)
		if err != nil {
			return price{}, err
		}
		return *p, nil
	})
	if err != nil {
		return chain.Fee{}, err
	}
	p := &now
	p.Margin = c.margin(s)
	if p.Gas, err = c.gas(ctx, s); err != nil {
		var refused *refusedError
		if !errors.As(err, &refused) {
			return chain.Fee{}, err
		}
		if p.Guess, p.Gas = true, c.o.QuoteGas; s.native() {
			zero := *s
			zero.all, zero.amount = false, new(big.Int)
			if p.Gas, err = c.gas(ctx, &zero); err != nil {
				return chain.Fee{}, err
			}
		}
	}
	if err := c.linea(ctx, s, p); err != nil {
		return chain.Fee{}, err
	}
	if err := c.beyondGas(ctx, s, p); err != nil {
		return chain.Fee{}, err
	}
	return c.fee(p)
}

// fee writes a price in units of the gas currency, rounded up.
func (c *Client) fee(p *price) (chain.Fee, error) {
	cost := new(big.Int).Mul(new(big.Int).SetUint64(c.used(p)), big.NewInt(p.Now))
	expected, err := c.cost(cost.Add(cost, big.NewInt(p.L1)).Add(cost, big.NewInt(p.OperatorNow)))
	if err != nil {
		return chain.Fee{}, err
	}
	most, err := c.cost(p.most())
	if err != nil {
		return chain.Fee{}, err
	}
	least, err := c.cost(p.at(p.Now))
	if err != nil {
		return chain.Fee{}, err
	}
	params, err := json.Marshal(p)
	return chain.Fee{Currency: c.native.Code, Cost: expected, Max: most, Least: least, Params: params}, err
}

// cost turns wei into units of the gas currency, rounded up.
func (c *Client) cost(wei *big.Int) (ledger.Amount, error) {
	return c.native.Units(coins(wei, c.native.Decimals), ledger.Up)
}

// price reads the market and keeps it within the limits.
func (c *Client) price(ctx context.Context) (*price, error) {
	id, head := transport.NewCall("eth_chainId"), transport.NewCall("eth_getBlockByNumber", "latest", false)
	market := transport.NewCall("eth_maxPriorityFeePerGas")
	if c.o.Legacy {
		market = transport.NewCall("eth_gasPrice")
	}
	if err := c.node.Do(ctx, id, head, market); err != nil {
		return nil, err
	}
	if err := c.rightChain(id); err != nil {
		return nil, err
	}
	asked, err := quantityOf(market)
	if unsupported(err) && !c.o.Legacy {
		asked, err = big.NewInt(c.o.MinTip), nil
	}
	if err != nil {
		return nil, err
	}
	limit := big.NewInt(c.o.MaxFeePerGas)
	if c.o.Legacy {
		asked.Mul(asked, big.NewInt(100+c.o.FeeMargin)).Div(asked, big.NewInt(100))
		if asked.Cmp(limit) > 0 {
			return nil, fmt.Errorf("%w: gas costs %s wei, the limit is %s", chain.ErrTooDear, asked, limit)
		}
		return &price{Cap: max(1, asked.Int64()), Now: max(1, asked.Int64())}, nil
	}
	b, err := blockOf(head)
	if err != nil {
		return nil, err
	}
	if b.baseFee == nil {
		return nil, fmt.Errorf("%w: its blocks have no base fee: set Options.Legacy", chain.ErrNode)
	}
	// An absurd suggestion is cut, a base fee cannot be: below it nothing is mined.
	tip := max(c.o.MinTip, 1)
	if asked.Cmp(big.NewInt(tip)) > 0 {
		tip = c.o.MaxTip
		if asked.Cmp(big.NewInt(tip)) < 0 {
			tip = asked.Int64()
		}
	}
	now := new(big.Int).Add(b.baseFee, big.NewInt(tip))
	if now.Cmp(limit) > 0 {
		return nil, fmt.Errorf("%w: gas costs %s wei, the limit is %s", chain.ErrTooDear, now, limit)
	}
	most := new(big.Int).Add(now, b.baseFee) // room for the base fee to double
	if most.Cmp(limit) > 0 {
		most = limit
	}
	return &price{Tip: tip, Cap: most.Int64(), Now: now.Int64()}, nil
}

// refusedError: the transfer, tried, does not go through as things are now.
type refusedError struct{ cause error }

func (e *refusedError) Error() string {
	return "evm: the network refuses this transfer as things are now: " + e.cause.Error()
}

func (e *refusedError) Unwrap() error { return e.cause }

// leastGas is below what a transfer needs anywhere: 21,000, and less from EIP-2780 on.
const leastGas = 1000

// gas tries the transfer and adds the margin. What the node answers is a
// *refusedError.
func (c *Client) gas(ctx context.Context, s *sending) (uint64, error) {
	if !s.known && !s.native() {
		return 0, &refusedError{errors.New("the sender is not known yet")}
	}
	probe := *s
	if s.all && s.native() {
		probe.amount = new(big.Int).Set(s.amount)
		if probe.amount.Sign() > 0 {
			probe.amount.SetInt64(1) // not all: the fee must be left
		}
	}
	target, value, data := probe.tx()
	tx := map[string]any{"to": target, "value": (*hexutil.Big)(value)}
	if s.known {
		tx["from"] = s.from
	}
	if data != nil {
		tx["data"] = hexutil.Bytes(data)
	}
	k := transport.NewCall("eth_estimateGas", tx)
	if err := c.node.Do(ctx, k); err != nil {
		return 0, err
	}
	if k.Err != nil {
		return 0, &refusedError{k.Err}
	}
	g, err := quantityOf(k)
	if err != nil {
		return 0, err
	}
	if g.Cmp(big.NewInt(leastGas)) < 0 || g.Cmp(big.NewInt(30_000_000)) > 0 {
		return 0, fmt.Errorf("%w: a transfer is said to need %s gas", chain.ErrNode, g)
	}
	return (g.Uint64()*uint64(100+c.margin(s)) + 99) / 100, nil
}

// opOracle is the predeploy of OP-stack rollups that knows the data fee.
var opOracle = common.HexToAddress("0x420000000000000000000000000000000000000F")

// beyondGas adds what a rollup takes beside gas, asked for in one request.
func (c *Client) beyondGas(ctx context.Context, s *sending, p *price) error {
	data, err := c.dataFee(s, p)
	if err != nil {
		return err
	}
	var calls, operator []*transport.Call
	if data != nil {
		calls = append(calls, data)
	}
	if c.o.OperatorFee {
		operator = []*transport.Call{c.operatorFee(p.Gas), c.operatorFee(c.used(p))}
		calls = append(calls, operator...)
	}
	if len(calls) == 0 {
		return nil
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return err
	}
	if data != nil {
		read := wordOf // what the oracle answers
		if c.o.DataFeeMethod != "" {
			read = quantityOf
		}
		if p.L1, err = fees(data, read, "a data fee", c.o.FeeMargin); err != nil {
			return err
		}
	}
	if operator != nil {
		// The network takes it for the whole gas limit first, and gives back the part for gas
		// that was not used.
		if p.Operator, err = fees(operator[0], wordOf, "an operator's fee", c.o.FeeMargin); err != nil {
			return err
		}
		p.OperatorNow, err = fees(operator[1], wordOf, "an operator's fee", 0)
	}
	return err
}

// dataFee asks for the data fee of a rollup: the oracle, or the node itself, which knows how
// it compresses. It is nil where the network takes none.
func (c *Client) dataFee(s *sending, p *price) (*transport.Call, error) {
	if c.o.DataFeeMethod != "" {
		target, value, data := s.tx()
		tx := map[string]any{
			"from": s.from, "to": target, "value": (*hexutil.Big)(value), "gas": hexutil.Uint64(p.Gas), "nonce": hexutil.Uint64(math.MaxUint32),
			"maxFeePerGas": hexutil.Uint64(p.Cap), "maxPriorityFeePerGas": hexutil.Uint64(p.Tip), //nolint:gosec // above 0
		}
		if data != nil {
			tx["data"] = hexutil.Bytes(data)
		}
		return transport.NewCall(c.o.DataFeeMethod, tx, "latest"), nil
	}
	if !c.o.L1Fee {
		return nil, nil //nolint:nilnil // documented
	}
	raw, err := c.payload(s, p, math.MaxUint32)
	if err != nil {
		return nil, err
	}
	raw = append(raw, make([]byte, 80)...) // room for the signature
	for i := len(raw) - 80; i < len(raw); i++ {
		raw[i] = byte(i*37 + 1) // a signature does not compress
	}
	data := make([]byte, 4+64, 4+64+len(raw)+31)
	copy(data, selL1Fee[:])
	data[35] = 32
	big.NewInt(int64(len(raw))).FillBytes(data[36:68])
	data = append(data, raw...)
	for (len(data)-4)%32 != 0 {
		data = append(data, 0)
	}
	return c.oracleCall(data), nil
}

// operatorFee asks for the operator's fee of a rollup on an amount of gas.
func (c *Client) operatorFee(gas uint64) *transport.Call {
	data := make([]byte, 36)
	copy(data, selOperatorFee[:])
	new(big.Int).SetUint64(gas).FillBytes(data[4:])
	return c.oracleCall(data)
}

func (c *Client) oracleCall(data []byte) *transport.Call {
	return transport.NewCall("eth_call", map[string]any{"to": c.oracle, "data": hexutil.Bytes(data)}, "latest")
}

// fees reads an answer in wei and adds a margin in percent.
func fees(k *transport.Call, read func(*transport.Call) (*big.Int, error), what string, margin int64) (int64, error) {
	v, err := read(k)
	if err != nil {
		return 0, err
	}
	v.Mul(v, big.NewInt(100+margin)).Div(v, big.NewInt(100))
	if !v.IsInt64() {
		return 0, fmt.Errorf("%w: %s of %s wei", chain.ErrTooDear, what, v)
	}
	return v.Int64(), nil
}

// linea sets the price at which Linea's sequencer takes a transfer. The price per gas grows
// with the bytes and falls with the gas: where the transfer itself cannot be tried, its bytes
// are priced as a call of somebody without code, which needs less gas.
func (c *Client) linea(ctx context.Context, s *sending, p *price) error {
	if !c.o.Linea {
		return nil
	}
	target, value, data := s.tx()
	tx := map[string]any{"to": target, "value": (*hexutil.Big)(value)}
	if data != nil {
		tx["data"] = hexutil.Bytes(data)
	}
	if s.known {
		tx["from"] = s.from
	}
	if p.Guess || s.all && s.native() {
		tx["to"], tx["value"] = common.HexToAddress(string(someone)), (*hexutil.Big)(new(big.Int))
	}
	k := transport.NewCall("linea_estimateGas", tx)
	if err := c.node.Do(ctx, k); err != nil {
		return err
	}
	if k.Err != nil {
		return k.Err
	}
	var base, tip *big.Int
	w := newWalk(k.Out)
	w.Object(func(key []byte) {
		switch string(key) {
		case "baseFeePerGas":
			base = w.big()
		case "priorityFeePerGas":
			tip = w.big()
		default:
			w.Skip()
		}
	})
	if err := w.End(); err != nil || base == nil || tip == nil {
		return fmt.Errorf("%w: linea_estimateGas names no price", chain.ErrNode)
	}
	// The price moves with that of data on Ethereum until the sequencer looks.
	tip.Mul(tip, big.NewInt(100+c.o.FeeMargin)).Div(tip, big.NewInt(100))
	now := new(big.Int).Add(base, tip)
	most := new(big.Int).Add(now, base)
	if most.Cmp(big.NewInt(c.o.MaxFeePerGas)) > 0 {
		return fmt.Errorf("%w: gas costs %s wei, the limit is %d", chain.ErrTooDear, most, c.o.MaxFeePerGas)
	}
	p.Tip, p.Now, p.Cap = max(1, tip.Int64()), max(1, now.Int64()), max(1, most.Int64())
	return nil
}

// holds reads what the sender has of what it is to send.
func (c *Client) holds(ctx context.Context, s *sending) (*big.Int, error) {
	d, err := c.Balance(ctx, s.cur.Code, checksum(s.from))
	if err != nil {
		return nil, err
	}
	return d.Shift(int32(s.cur.Decimals)).BigInt(), nil
}

// bump raises prices for the n-th attempt: nodes take a replacement only for an
// eighth more of both. What is stuck pays less than gas costs now: where the limit is an
// eighth above that, it is enough.
func (p *price) bump(attempt int, limit int64) error {
	enough := p.Now + p.Now/8 + 1
	for ; p.Bumps < attempt-1; p.Bumps++ {
		if p.Cap > math.MaxInt64/2 || p.Tip > math.MaxInt64/2 {
			return chain.ErrTooDear
		}
		p.Cap += p.Cap/8 + 1
		if p.Tip > 0 {
			p.Tip += p.Tip/8 + 1
		}
		p.Now += p.Now/8 + 1
	}
	if p.Cap > limit && enough <= limit {
		p.Cap, p.Tip = limit, min(p.Tip, limit)
	}
	p.Now = min(p.Now, p.Cap)
	return nil
}
