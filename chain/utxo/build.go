package utxo

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strconv"
	"strings"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// replaceable is the sequence of inputs that says a dearer transaction may take
// this one's place (BIP 125), and sets no time lock.
const replaceable = wire.MaxTxInSequenceNum - 2

func rejected(format string, args ...any) error {
	return fmt.Errorf("%w: utxo: %w", chain.ErrRejected, fmt.Errorf(format, args...))
}

// Build spends exactly the order's coins. It reads the transactions that made
// them (with Options.Pruned the node's set of unspent outputs), and refuses a coin
// that is not what the chain says. Attempt n offers an
// eighth more than attempt n−1 for the same coins, and at least what nodes ask
// of a replacement. Change below the dust limit is left to the miner. Which of
// payment and change comes first is for nobody to guess.
func (c *Client) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	d, err := c.plan(&o)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if err := c.sources(ctx, d, !c.o.Pruned); err != nil {
		return chain.Unsigned{}, err
	}
	payload, err := d.encode()
	if err != nil {
		return chain.Unsigned{}, err
	}
	u, err := c.Inspect(payload)
	if err != nil {
		return chain.Unsigned{}, err
	}
	most, err := o.MaxCost()
	if err != nil {
		return chain.Unsigned{}, rejected("MaxCost: %w", err)
	}
	if most > 0 && u.MaxCost > most {
		return chain.Unsigned{}, &chain.DearError{Need: u.MaxCost, Most: most}
	}
	return u, nil
}

// plan chooses inputs and outputs. It needs no node.
func (c *Client) plan(o *chain.Order) (*packet, error) {
	in := &o.Intent
	to, err := c.script(in.To)
	switch {
	case in.Currency != c.native.Code:
		return nil, rejected("%q is not the coin of %s", in.Currency, c.o.Network)
	case err != nil:
		return nil, rejected("%w", err)
	case in.Memo != "":
		return nil, rejected("%s has no memos", c.o.Network)
	case in.Amount < 0 || in.Amount == 0 && !in.All && in.Purpose != chain.ForCancel:
		return nil, rejected("an amount is above 0")
	}
	fee, err := parseParams(o.Fee.Params)
	if err != nil {
		return nil, err
	}
	if fee.Rate < 1 || fee.Rate > c.p.MaxRate || fee.Parent < 0 || fee.Parent > c.p.mostParent() {
		return nil, fmt.Errorf("%w: %d units per 1000 bytes, and %d for a parent", chain.ErrTooDear, fee.Rate, fee.Parent)
	}
	rate := c.raised(fee.Rate, o.Attempt)
	extra, err := ledger.Amount(fee.Parent).MulDiv(uint64(rate), uint64(fee.Rate), ledger.Up)
	if err != nil {
		return nil, rejected("Fee.Params: %w", err)
	}
	p, s, sum, err := c.inputs(o)
	if err != nil {
		return nil, err
	}
	s.output(to)
	if in.All || in.Amount == 0 {
		if len(o.Also) > 0 {
			return nil, rejected("an order for all, or for nothing, pays alone")
		}
		return p, c.pay(p, to, sum-s.cost(rate)-int64(extra), in.Purpose == chain.ForCancel)
	}
	if fee.Parent > 0 {
		return nil, rejected("a child pays its parent and ourselves alone")
	}
	also, err := c.others(o, s)
	if err != nil {
		return nil, err
	}
	amount, err := o.Amount()
	if err != nil {
		return nil, rejected("amounts: %w", err)
	}
	if sum-int64(amount) < s.cost(rate) {
		return nil, fmt.Errorf("%w: the coins are %d units", chain.ErrShort, sum)
	}
	if err := c.pay(p, to, int64(in.Amount), false); err != nil {
		return nil, err
	}
	for i := range also {
		if err := c.pay(p, also[i], int64(o.Also[i].Amount), false); err != nil {
			return nil, err
		}
	}
	back, err := c.script(o.Change)
	if err != nil {
		return nil, rejected("Order.Change: %w", err)
	}
	s.output(back)
	if rest := sum - int64(amount) - s.cost(rate); rest >= c.p.dust(back) {
		if err := c.pay(p, back, rest, true); err != nil {
			return nil, err
		}
		p.shuffle()
	}
	return p, nil
}

// others are the scripts of what the order pays beside its intent.
func (c *Client) others(o *chain.Order, s *size) ([][]byte, error) {
	scripts := make([][]byte, len(o.Also))
	for i := range o.Also {
		in := &o.Also[i]
		var err error
		switch scripts[i], err = c.script(in.To); {
		case err != nil:
			return nil, rejected("Order.Also %s: %w", in.ID, err)
		case in.Currency != c.native.Code || in.Memo != "" || in.All || in.Amount <= 0:
			return nil, rejected("Order.Also %s is no payment of an amount of %s", in.ID, c.native.Code)
		}
		s.output(scripts[i])
	}
	return scripts, nil
}

// inputs are the order's coins.
func (c *Client) inputs(o *chain.Order) (*packet, *size, int64, error) {
	if len(o.Coins) == 0 {
		return nil, nil, 0, fmt.Errorf("%w: the order has no coins", chain.ErrShort)
	}
	p, s := &packet{network: c.o.Network, tx: wire.NewMsgTx(2)}, new(size)
	var sum ledger.Amount
	seen := map[string]bool{}
	for _, coin := range o.Coins {
		at, err := parseOutpoint(coin.Outpoint)
		if err != nil || seen[coin.Outpoint] {
			return nil, nil, 0, rejected("coin %.80q is none, or named twice", coin.Outpoint)
		}
		seen[coin.Outpoint] = true
		script, err := c.script(coin.Address)
		if err != nil {
			return nil, nil, 0, rejected("coin %s: %w", coin.Outpoint, err)
		}
		if coin.Amount <= 0 {
			return nil, nil, 0, rejected("coin %s has no amount", coin.Outpoint)
		}
		if k, _ := classify(script); k == p2sh || k == p2wsh {
			return nil, nil, 0, rejected("coin %s: what a %s script asks for is not known", coin.Outpoint, k)
		}
		if sum, err = sum.Add(coin.Amount); err != nil {
			return nil, nil, 0, rejected("coins: %w", err)
		}
		p.tx.AddTxIn(&wire.TxIn{PreviousOutPoint: at, Sequence: replaceable})
		p.from = append(p.from, source{out: &wire.TxOut{Value: int64(coin.Amount), PkScript: script}})
		s.input(script)
	}
	return p, s, int64(sum), nil
}

// pay adds an output.
func (c *Client) pay(p *packet, script []byte, value int64, change bool) error {
	if least := c.p.dust(script); value < least {
		if len(p.tx.TxOut) == 0 && value <= 0 {
			return fmt.Errorf("%w: the coins do not pay the fee", chain.ErrShort)
		}
		return rejected("%d units are below the dust limit of %d", value, least)
	}
	p.tx.AddTxOut(wire.NewTxOut(value, script))
	p.change = append(p.change, change)
	return nil
}

// shuffle puts the change, which is last, into a place that depends on the coins
// alone: the same for all attempts, and known to nobody beforehand.
func (p *packet) shuffle() {
	h := sha256.New()
	for _, in := range p.tx.TxIn {
		_, _ = h.Write(in.PreviousOutPoint.Hash[:])
		_, _ = h.Write(binary.LittleEndian.AppendUint32(nil, in.PreviousOutPoint.Index))
	}
	last := len(p.tx.TxOut) - 1
	at := last - int(binary.LittleEndian.Uint32(h.Sum(nil))%uint32(last+1)) //nolint:gosec // few outputs
	p.tx.TxOut[at], p.tx.TxOut[last] = p.tx.TxOut[last], p.tx.TxOut[at]
	p.change[at], p.change[last] = p.change[last], p.change[at]
}

// sources checks each coin against the transaction that made it. whole has the packet keep these
// transactions; without it only coins have theirs whose signatures are good for any amount.
func (c *Client) sources(ctx context.Context, p *packet, whole bool) error {
	if c.o.Pruned {
		return c.withoutIndex(ctx, p, whole)
	}
	calls := make([]*transport.Call, len(p.from))
	for i, in := range p.tx.TxIn {
		calls[i] = transport.NewCall("getrawtransaction", in.PreviousOutPoint.Hash.String(), 0)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return err
	}
	for i, k := range calls {
		at := p.tx.TxIn[i].PreviousOutPoint
		if noIndex(k.Err) {
			return errNoIndex
		}
		t, err := c.given(k, at.Hash.String())
		if err != nil {
			return err
		}
		if err := p.madeBy(i, &t); err != nil {
			return err
		}
	}
	return nil
}

// madeBy checks a coin against the transaction that made it, and keeps that.
func (p *packet) madeBy(i int, t *tx) error {
	at, made := p.tx.TxIn[i].PreviousOutPoint, wire.NewMsgTx(2)
	if err := made.DeserializeNoWitness(bytes.NewReader(t.stripped())); err != nil || int(at.Index) >= len(made.TxOut) {
		return rejected("coin %s does not exist", at)
	}
	want := p.from[i].out
	if err := sameCoin(at, made.TxOut[at.Index], want); err != nil {
		return err
	}
	if kind, _ := classify(want.PkScript); kind != p2tr { // Taproot signs all amounts
		p.from[i].tx = made
	}
	return nil
}

// sameCoin refuses a coin that is not what was believed.
func sameCoin(at wire.OutPoint, got, want *wire.TxOut) error {
	if got.Value != want.Value || !bytes.Equal(got.PkScript, want.PkScript) {
		return rejected("coin %s is another on the chain: %d units", at, got.Value)
	}
	return nil
}

var errNoIndex = fmt.Errorf("%w: it keeps no index of transactions: start it with -txindex=1 (btcd: --txindex), or set Options.Pruned", chain.ErrNode)

func parseOutpoint(s string) (o wire.OutPoint, err error) {
	id, index, _ := strings.Cut(s, ":")
	h, ok := parseHash(id)
	n, err := strconv.ParseUint(index, 10, 32)
	if !ok || err != nil || strconv.FormatUint(n, 10) != index {
		return o, fmt.Errorf("utxo: %.80q is no outpoint", s)
	}
	o.Hash, o.Index = h, uint32(n)
	return o, nil
}
