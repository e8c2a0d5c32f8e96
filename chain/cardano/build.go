package cardano

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"

	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/fxamacker/cbor/v2"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

func rejected(format string, args ...any) error {
	return fmt.Errorf("%w: cardano: %s", chain.ErrRejected, fmt.Sprintf(format, args...))
}

// maxValue is how many bytes the ada and tokens of one output may take.
const maxValue = 5000

// Build spends exactly the order's coins, which must be unspent at the head and be there what
// the order says. Native tokens of the coins return in the change, with as much ada as that
// takes. Change that would hold less ada than an output must goes to the network, within
// the bound of the order. Each attempt can land until Options.Expiry after the head's time.
func (c *Client) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	in := &o.Intent
	switch {
	case in.Currency != c.native.Code:
		return chain.Unsigned{}, rejected("%q is not the coin of %s", in.Currency, c.o.Network)
	case in.Amount < 0 || in.Amount == 0 && !in.All && in.Purpose != chain.ForCancel:
		return chain.Unsigned{}, rejected("an amount is above 0")
	case len(o.Also) > 0 && (in.All || in.Amount == 0 || in.Memo != ""):
		return chain.Unsigned{}, rejected("an order for all, for nothing, or with a memo, pays alone")
	}
	p, err := parseParams(o.Fee.Params)
	if err != nil {
		return chain.Unsigned{}, err
	}
	d, back, err := c.outputs(&o)
	if err != nil {
		return chain.Unsigned{}, err
	}
	sum, err := c.inputs(&o, d)
	if err != nil {
		return chain.Unsigned{}, err
	}
	tokens, of, err := c.check(ctx, &o, d)
	if err != nil {
		return chain.Unsigned{}, err
	}
	head, err := c.node.tip(ctx)
	if err != nil {
		return chain.Unsigned{}, err
	}
	d.ttl = uint64(slotOf(head.Time) + int64(c.o.Expiry.Seconds()) + int64(o.Attempt)) //nolint:gosec // after 1970; no two attempts are the same bytes
	if in.All || in.Amount == 0 {
		err = d.payAll(p, sum, back, tokens, in.Purpose == chain.ForCancel)
	} else {
		err = d.payAmounts(p, sum, back, tokens)
	}
	if err = crowded(err, tokens, of); err != nil {
		return chain.Unsigned{}, err
	}
	payload, err := d.encode(c.o.Network)
	if err != nil {
		return chain.Unsigned{}, err
	}
	u, err := c.Inspect(payload)
	if err != nil {
		return chain.Unsigned{}, err
	}
	most, err := o.MaxCost()
	if err != nil {
		return chain.Unsigned{}, rejected("MaxCost: %v", err)
	}
	if most > 0 && u.MaxCost > most {
		return chain.Unsigned{}, &chain.DearError{Need: u.MaxCost, Most: most}
	}
	return u, nil
}

// outputs begins a transaction with what the order pays, and reads where change goes.
func (c *Client) outputs(o *chain.Order) (d *draft, back []byte, err error) {
	d = &draft{}
	if d.auxiliary, err = writeMemo(o.Intent.Memo); err != nil {
		return nil, nil, rejected("%v", err)
	}
	for i, in := range append([]chain.Intent{o.Intent}, o.Also...) {
		to, err := bytesOf(in.To)
		if err != nil {
			return nil, nil, rejected("recipient of %s: %v", in.ID, err)
		}
		if i > 0 && (in.Currency != c.native.Code || in.Memo != "" || in.All || in.Amount <= 0) {
			return nil, nil, rejected("Order.Also %s is no payment of an amount of %s", in.ID, c.native.Code)
		}
		d.pays = append(d.pays, pay{address: to, coin: uint64(max(in.Amount, 0))}) //nolint:gosec // not below 0
	}
	if o.Intent.Purpose == chain.ForCancel && o.Change == "" {
		return d, d.pays[0].address, nil
	}
	if back, err = bytesOf(o.Change); err != nil {
		return nil, nil, rejected("Order.Change: %v", err)
	}
	return d, back, nil
}

// inputs takes the order's coins, and sums them up.
func (c *Client) inputs(o *chain.Order, d *draft) (int64, error) {
	if len(o.Coins) == 0 {
		return 0, fmt.Errorf("%w: the order has no coins", chain.ErrShort)
	}
	if c.o.PublicKey == nil {
		return 0, errors.New("cardano: Options.PublicKey is required to send")
	}
	var sum ledger.Amount
	for _, coin := range o.Coins {
		at, err := parseOutpoint(coin.Outpoint)
		if err != nil || coin.Amount <= 0 {
			return 0, rejected("coin %.80q is none, or has no amount", coin.Outpoint)
		}
		if sum, err = sum.Add(coin.Amount); err != nil || sum > maxLovelace {
			return 0, rejected("its coins are more than there is")
		}
		raw, err := bytesOf(coin.Address)
		if err != nil {
			return 0, rejected("coin %s: %v", coin.Outpoint, err)
		}
		key, err := c.o.PublicKey(coin.Address, coin.Key)
		if err != nil {
			return 0, fmt.Errorf("cardano: the key of %s: %w", coin.Address, err)
		}
		if !ofKey(raw, key) {
			return 0, fmt.Errorf("cardano: Options.PublicKey gave the key of another address than %s", coin.Address)
		}
		d.from = append(d.from, source{at, raw, key})
	}
	slices.SortFunc(d.from, func(a, b source) int { return a.at.compare(b.at) })
	for i := 1; i < len(d.from); i++ {
		if d.from[i].at == d.from[i-1].at {
			return 0, rejected("coin %s is named twice", d.from[i].at)
		}
	}
	return int64(sum), nil
}

// holding is a coin with tokens, and how many bytes those take.
type holding struct {
	outpoint string
	bytes    int
}

// crowded names the coins that hold half of the tokens, or more, where these stop a transaction.
// Else it returns err.
func crowded(err error, tokens assets, of []holding) error {
	if len(of) == 0 {
		return err
	}
	raw, e := writing.Marshal(tokens)
	switch {
	case errors.Is(err, errLong), e != nil, len(raw) > maxValue-10:
		err = rejected("its coins hold more different tokens than one transaction can move")
	case !errors.Is(err, errDearTokens):
		return err
	}
	all := 0
	for _, h := range of {
		all += h.bytes
	}
	slices.SortStableFunc(of, func(a, b holding) int { return b.bytes - a.bytes })
	u := &chain.UnfitError{Err: err}
	for some := 0; 2*some < all; some += of[len(u.Outpoints)-1].bytes {
		u.Outpoints = append(u.Outpoints, of[len(u.Outpoints)].outpoint)
	}
	return u
}

// check holds the coins against the chain, and returns the tokens that they hold, and which do.
func (c *Client) check(ctx context.Context, o *chain.Order, d *draft) (assets, []holding, error) {
	list := make([]outpoint, len(d.from))
	for i, s := range d.from {
		list[i] = s.at
	}
	found, err := c.node.unspent(ctx, list)
	if err != nil {
		return nil, nil, err
	}
	amounts := map[string]ledger.Amount{}
	for _, coin := range o.Coins {
		amounts[coin.Outpoint] = coin.Amount
	}
	var of []holding
	var scripts []string
	tokens := assets{}
	for i, s := range d.from {
		got := found[i]
		switch {
		case got == nil: // another attempt may have spent it, or a fork undone it
			return nil, nil, fmt.Errorf("%w: coin %s is not unspent at its head", chain.ErrNode, s.at)
		case !bytes.Equal(got.address, s.address) || got.coin != uint64(amounts[s.at.String()]): //nolint:gosec // positive
			return nil, nil, rejected("coin %s is another on the chain: %d lovelace", s.at, got.coin)
		case got.script:
			scripts = append(scripts, s.at.String())
		}
		if err := tokens.add(got.tokens); err != nil {
			return nil, nil, &chain.UnfitError{Outpoints: []string{s.at.String()}, Err: rejected("its coins hold %v", err)}
		}
		if raw, err := writing.Marshal(got.tokens); err == nil && len(got.tokens) > 0 {
			of = append(of, holding{s.at.String(), len(raw)})
		}
	}
	if len(scripts) > 0 {
		return nil, nil, &chain.UnfitError{Outpoints: scripts, Ever: true, Err: rejected("its coins hold scripts, which cost more than can be told to spend")}
	}
	return tokens, of, nil
}

// payAmounts settles change and fee of a transaction that pays amounts.
func (d *draft) payAmounts(p params, sum int64, back []byte, tokens assets) error {
	var need int64
	for i := range d.pays {
		least, err := p.least(&d.pays[i])
		switch amount := int64(d.pays[i].coin); { //nolint:gosec // of an Amount
		case err != nil:
			return err
		case amount < least:
			return rejected("%d lovelace are below the %d that an output to its recipient must hold", amount, least)
		case amount > maxLovelace-need:
			return fmt.Errorf("%w: more than there is", chain.ErrShort)
		default:
			need += amount
		}
	}
	bare, err := p.settle(d, func(fee int64) bool { return true })
	if err != nil {
		return err
	}
	if sum-need < bare {
		return fmt.Errorf("%w: its coins are %d lovelace, it takes %d", chain.ErrShort, sum, need+bare)
	}
	change := pay{address: back, tokens: tokens, change: true}
	least, err := p.least(&change)
	if err != nil {
		return err
	}
	at := len(d.pays)
	d.pays = append(d.pays, change)
	_, err = p.settle(d, func(fee int64) bool {
		rest := sum - need - fee
		d.pays[at].coin = uint64(max(rest, 0)) //nolint:gosec // not below 0
		return rest >= least
	})
	switch {
	case err == nil:
		return nil
	case !errors.Is(err, errSmall):
		return err
	case len(tokens) > 0:
		return errDearTokens
	}
	d.pays = d.pays[:at]
	d.fee = uint64(sum - need) //nolint:gosec // at least bare
	return nil
}

// payAll pays the first recipient whatever is left of the coins; to ourselves with their
// tokens, else those return.
func (d *draft) payAll(p params, sum int64, back []byte, tokens assets, ours bool) error {
	to := &d.pays[0]
	var kept int64
	switch {
	case ours:
		to.tokens, to.change = tokens, true
	case len(tokens) > 0:
		change := pay{address: back, tokens: tokens, change: true}
		least, err := p.least(&change)
		if err != nil {
			return err
		}
		change.coin, kept = uint64(least), least //nolint:gosec // positive
		d.pays = append(d.pays, change)
		to = &d.pays[0]
	}
	least, err := p.least(to)
	if err != nil {
		return err
	}
	var rest int64
	_, err = p.settle(d, func(fee int64) bool {
		rest = sum - kept - fee
		to.coin = uint64(max(rest, 0)) //nolint:gosec // not below 0
		return rest >= least
	})
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errSmall) && rest <= 0:
		return fmt.Errorf("%w: its coins do not pay the fee", chain.ErrShort)
	case errors.Is(err, errSmall) && len(tokens) > 0:
		return errDearTokens
	case errors.Is(err, errSmall):
		return rejected("%d lovelace are below the %d that an output must hold", rest, least)
	}
	return err
}

// errDearTokens: other coins, or more of them, can be spent.
var errDearTokens = fmt.Errorf("%w: what is left of its coins is too little ada for the tokens that they hold", chain.ErrShort)

// errSmall: an output would hold too little.
var errSmall = errors.New("cardano: too little for an output")

// settle finds the fee: what the transaction costs with that fee in it. apply puts what
// depends on the fee into it, and says whether it can be.
func (p params) settle(d *draft, apply func(fee int64) bool) (int64, error) {
	fee := int64(0)
	for range 10 { // a smaller amount is never a longer transaction, so this ends
		d.fee = uint64(fee) //nolint:gosec // not below 0
		fits := apply(fee)
		cost, err := p.fee(d)
		if err != nil {
			return 0, fmt.Errorf("%w: %w", chain.ErrRejected, err)
		}
		if cost <= fee {
			if !fits {
				return 0, errSmall
			}
			return fee, nil
		}
		fee = cost
	}
	return 0, errors.New("cardano: no fee is that of its own transaction")
}

// wirePayload is what a signer gets: the body that is signed, what its hash stands for, and
// the keys and addresses of its inputs, which it lacks. A checksum of all of it comes last, so
// that an accident to what no signature covers is found.
type wirePayload struct {
	_         struct{} `cbor:",toarray"`
	Network   string
	Body      []byte
	Auxiliary []byte
	From      []wireSource
	Change    []int // places of outputs
	Sum       []byte
}

type wireSource struct {
	_       struct{} `cbor:",toarray"`
	Address []byte
	Key     []byte
}

func (d *draft) encode(n chain.Network) ([]byte, error) {
	body, err := d.body()
	if err != nil {
		return nil, err
	}
	w := wirePayload{Network: string(n), Body: body, Auxiliary: d.auxiliary}
	for _, s := range d.from {
		w.From = append(w.From, wireSource{Address: s.address, Key: s.key})
	}
	for i := range d.pays {
		if d.pays[i].change {
			w.Change = append(w.Change, i)
		}
	}
	raw, err := writing.Marshal(w)
	if err != nil {
		return nil, err
	}
	sum := digest(raw)
	w.Sum = sum[:]
	return writing.Marshal(w)
}

// maxPayload bounds what Inspect looks at.
const maxPayload = 1 << 20

// parsePayload reads a payload. What is accepted has one writing only: what encode makes of it.
func (c *Client) parsePayload(payload []byte) (*draft, error) {
	var w wirePayload
	if len(payload) > maxPayload || reading.Unmarshal(payload, &w) != nil {
		return nil, rejected("the payload is none of this client's")
	}
	d, err := readBody(w.Body)
	if err != nil || len(d.from) != len(w.From) || len(d.from) == 0 || len(d.pays) == 0 {
		return nil, rejected("the payload's transaction cannot be read, or spends or pays nothing")
	}
	if len(w.Auxiliary) > 0 {
		d.auxiliary = w.Auxiliary
	}
	for i, s := range w.From {
		if d.from[i].address, d.from[i].key = s.Address, s.Key; !ofKey(s.Address, s.Key) {
			return nil, rejected("input %d is not of the key that is given for it", i)
		}
		if i > 0 && d.from[i-1].at.compare(d.from[i].at) >= 0 {
			return nil, rejected("its inputs are out of order, or one is there twice")
		}
	}
	for _, i := range w.Change {
		if i < 0 || i >= len(d.pays) {
			return nil, rejected("output %d is not there", i)
		}
		d.pays[i].change = true
	}
	again, err := d.encode(c.o.Network)
	if err != nil || !bytes.Equal(again, payload) {
		return nil, rejected("the payload is of another network, or not written as it should be")
	}
	return d, nil
}

// readBody reads the body of a transaction of ours.
func readBody(raw []byte) (*draft, error) {
	var body map[uint64]cbor.RawMessage
	if err := reading.Unmarshal(raw, &body); err != nil {
		return nil, err
	}
	d := &draft{}
	spends, err := readInputs(body[keyInputs])
	if err != nil {
		return nil, err
	}
	for _, at := range spends {
		d.from = append(d.from, source{at: at})
	}
	outs, err := elements(body[keyOutputs])
	if err != nil {
		return nil, err
	}
	for _, raw := range outs {
		o, err := readOutput(raw)
		if err != nil {
			return nil, err
		}
		d.pays = append(d.pays, pay{address: o.address, coin: o.coin, tokens: o.tokens})
	}
	return d, errors.Join(reading.Unmarshal(body[keyFee], &d.fee), reading.Unmarshal(body[keyTTL], &d.ttl))
}

// Inspect implements chain.Inspector. The fee stands in the body that is signed, and the network
// refuses a transaction whose inputs are not its outputs and its fee.
func (c *Client) Inspect(payload []byte) (chain.Unsigned, error) {
	d, err := c.parsePayload(payload)
	if err != nil {
		return chain.Unsigned{}, err
	}
	body, err := d.body()
	if err != nil {
		return chain.Unsigned{}, rejected("%v", err)
	}
	u := chain.Unsigned{Network: c.o.Network, Payload: payload, Memo: readMemo(d.auxiliary), MaxCost: ledger.Amount(d.fee)} //nolint:gosec // checked below
	if again, err := writeMemo(u.Memo); err != nil || !bytes.Equal(again, d.auxiliary) {
		return chain.Unsigned{}, rejected("it says more than a memo")
	}
	if d.fee == 0 || d.fee > maxLovelace || d.ttl == 0 {
		return chain.Unsigned{}, rejected("it has no fee or no end, or a fee that cannot be")
	}
	var sum uint64
	for i, p := range d.pays {
		to, ok := textOf(p.address)
		if sum += p.coin; !ok || sum > maxLovelace {
			return chain.Unsigned{}, rejected("output %d pays no address, or more than there is", i)
		}
		if len(p.tokens) > 0 && !p.change {
			return chain.Unsigned{}, rejected("output %d pays somebody tokens", i)
		}
		u.Outputs = append(u.Outputs, chain.Output{To: to, Currency: c.native.Code, Amount: ledger.Amount(p.coin), Change: p.change}) //nolint:gosec // at most all there is
	}
	hash := digest(body)
	for _, s := range d.from {
		from, ok := addressOf(s.address)
		if !ok {
			return chain.Unsigned{}, rejected("%s is of no address", s.at)
		}
		u.Spends = append(u.Spends, s.at.String())
		u.Digests = append(u.Digests, chain.Digest{Hash: hash, From: from})
	}
	return u, nil
}

// textOf writes an address that is paid, also one of Byron's.
func textOf(raw []byte) (chain.Address, bool) {
	if a, ok := addressOf(raw); ok {
		return a, true
	}
	format, err := formatOf("ADA")
	if err != nil {
		return "", false
	}
	info, err := format.Parse(base58.Encode(raw))
	return info.Canonical, err == nil
}

// Assemble puts signatures in, and checks each: 64 bytes of ed25519 over the hash of the body,
// one for each input. Inputs of one key have one signature in the transaction.
func (c *Client) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	d, err := c.parsePayload(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(sigs) != len(d.from) {
		return chain.Signed{}, fmt.Errorf("cardano: %d signatures for %d inputs", len(sigs), len(d.from))
	}
	body, err := d.body()
	if err != nil {
		return chain.Signed{}, err
	}
	id := digest(body)
	of := map[string][]byte{}
	for i, s := range d.from {
		if len(sigs[i]) != ed25519.SignatureSize || !ed25519.Verify(s.key, id[:], sigs[i]) {
			return chain.Signed{}, fmt.Errorf("cardano: signature %d is not by the key of its input", i)
		}
		if of[string(s.key)] == nil {
			of[string(s.key)] = sigs[i]
		}
	}
	var signatures [][]byte
	for _, k := range d.keys() {
		signatures = append(signatures, of[string(k)])
	}
	raw, err := d.seal(signatures)
	return chain.Signed{Tx: hex.EncodeToString(id[:]), Raw: raw}, err
}
