package sim

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// body is what gets signed: it says all that a transaction does.
type body struct {
	Network chain.Network `json:"network"`
	Chain   string        `json:"chain"` // hash of the first block: signatures of one chain are worth nothing on another

	// Account networks.
	From  chain.Address `json:"from,omitempty"`
	Nonce uint64        `json:"nonce,omitempty"`
	Gas   int64         `json:"gas,omitempty"`
	Max   int64         `json:"max,omitempty"` // the most that a gas may cost, see price.go
	Tip   int64         `json:"tip,omitempty"` // above the level

	// UTXO networks.
	Inputs []input `json:"inputs,omitempty"`

	Outputs []output `json:"outputs"`
	Memo    string   `json:"memo,omitempty"`
	// Immature is how many confirmations what it makes needs at least.
	Immature int64 `json:"immature,omitempty"`
}

type input struct {
	Outpoint string        `json:"outpoint"`
	Address  chain.Address `json:"address"`
	Amount   string        `json:"amount"`
}

type output struct {
	To     chain.Address `json:"to"`
	Asset  string        `json:"contract,omitempty"`
	Amount string        `json:"amount"`
	Change bool          `json:"change,omitempty"`
	Effect Effect        `json:"effect,omitempty"` // of outside customers alone
}

// envelope is a complete transaction. Outside customers do not sign: Outside
// numbers their transactions instead, and no client can broadcast one.
type envelope struct {
	Body    json.RawMessage `json:"body"`
	Sigs    []string        `json:"sigs,omitempty"`
	Outside uint64          `json:"outside,omitempty"`
}

type tx struct {
	Hash    string `json:"hash"`
	Raw     []byte `json:"raw"`
	Arrived uint64 `json:"arrived"`

	outside bool
	same    string // hash of the body alone: equal for all signings of it
	body    body
}

// newTx makes a transaction of its bytes. It does not look at the signatures.
func newTx(raw []byte, arrived uint64) (*tx, error) {
	var e envelope
	if err := strict(raw, &e); err != nil {
		return nil, fmt.Errorf("sim: not a transaction: %w", err)
	}
	b, err := parseBody(e.Body)
	if err != nil {
		return nil, err
	}
	return &tx{
		Hash: digestHex("tx", string(raw)), Raw: raw, Arrived: arrived,
		outside: e.Outside > 0, same: digestHex("body", string(e.Body)), body: b,
	}, nil
}

func parseBody(payload []byte) (body, error) {
	var b body
	if err := strict(payload, &b); err != nil {
		return b, fmt.Errorf("sim: not a payload: %w", err)
	}
	if len(b.Outputs) == 0 {
		return b, errors.New("sim: not a payload: it pays nobody")
	}
	for _, o := range b.Outputs {
		if err := checkAmount(o.Amount); err != nil {
			return b, err
		}
	}
	for _, i := range b.Inputs {
		if err := checkAmount(i.Amount); err != nil {
			return b, err
		}
	}
	return b, nil
}

// strict decodes JSON that has one writing only: what Marshal makes of it.
func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return err
	}
	again, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if !bytes.Equal(again, data) {
		return errors.New("it is not in canonical form")
	}
	return nil
}

// spends lists the nonce or outpoints that a transaction takes.
func (b *body) spends() []string {
	if len(b.Inputs) == 0 {
		return []string{fmt.Sprintf("%s/%d", b.From, b.Nonce)}
	}
	out := make([]string, len(b.Inputs))
	for i, in := range b.Inputs {
		out[i] = in.Outpoint
	}
	return out
}

func (b *body) inputSum() decimal.Decimal {
	sum := decimal.Zero
	for _, i := range b.Inputs {
		sum = sum.Add(amountOf(i.Amount))
	}
	return sum
}

// outputSum is what it pays in the native coin.
func (b *body) outputSum() decimal.Decimal {
	sum := decimal.Zero
	for _, o := range b.Outputs {
		if o.Asset == "" {
			sum = sum.Add(amountOf(o.Amount))
		}
	}
	return sum
}

// ordinal is the place of an output's effect within the transaction: its index
// on UTXO networks; on account networks −1 for the transaction's own value, and
// 0, 1 … for what its calls move.
func (b *body) ordinal(i int) int {
	own := func(o output) bool { return o.Asset == "" && o.Effect != Internal && o.Effect != InnerReverted }
	if len(b.Inputs) == 0 && own(b.Outputs[0]) {
		return i - 1
	}
	return i
}

// sender is who a transfer comes from.
func (b *body) sender() chain.Address {
	if len(b.Inputs) > 0 {
		return b.Inputs[0].Address
	}
	return b.From
}

// digests are what must be signed, and by whom.
func digests(b *body, payload []byte) []chain.Digest {
	if len(b.Inputs) == 0 {
		return []chain.Digest{{Hash: digest("sign", string(payload)), From: b.From}}
	}
	out := make([]chain.Digest, len(b.Inputs))
	for i, in := range b.Inputs {
		out[i] = chain.Digest{Hash: digest("sign", string(payload), fmt.Sprint(i)), From: in.Address}
	}
	return out
}

// seal puts signatures and payload together.
func seal(payload []byte, sigs []chain.Signature) ([]byte, error) {
	e := envelope{Body: payload}
	for _, s := range sigs {
		e.Sigs = append(e.Sigs, hex.EncodeToString(s))
	}
	return json.Marshal(e)
}

// verify checks a client's transaction: that it is for this chain and signed by
// all whose coins it takes. What fails here can never be accepted by any node.
func (c *Chain) verify(t *tx) error {
	var e envelope
	if err := strict(t.Raw, &e); err != nil {
		return err
	}
	switch {
	case t.outside:
		return errors.New("sim: only the world makes transactions of outside customers")
	case t.body.Network != c.opt.Network || t.body.Chain != c.genesis:
		return errors.New("sim: signed for another chain")
	case c.utxo() != (len(t.body.Inputs) > 0):
		return errors.New("sim: a transaction of the other family")
	case t.body.Immature != 0 || slices.ContainsFunc(t.body.Outputs, func(o output) bool { return o.Effect != Plain }):
		return errors.New("sim: only the world makes such transactions")
	}
	if err := c.wellFormed(&t.body); err != nil {
		return err
	}
	need := digests(&t.body, e.Body)
	if len(e.Sigs) != len(need) {
		return fmt.Errorf("sim: %d signatures for %d digests", len(e.Sigs), len(need))
	}
	for i, d := range need {
		sig, err := hex.DecodeString(e.Sigs[i])
		if err != nil {
			return fmt.Errorf("sim: signature %d is not hex", i)
		}
		if by, ok := c.opt.signedBy(sig, d.Hash); !ok || by != d.From || !lowS(sig) {
			return fmt.Errorf("sim: signature %d is not one of %s", i, d.From)
		}
	}
	return nil
}

// wellFormed checks what no later block can mend.
func (c *Chain) wellFormed(b *body) error {
	seen := map[string]bool{}
	for _, s := range b.spends() {
		if seen[s] {
			return fmt.Errorf("sim: %s is spent twice", s)
		}
		seen[s] = true
	}
	if c.utxo() && b.inputSum().LessThan(b.outputSum()) {
		return errors.New("sim: it pays more than it spends")
	}
	var gas int64
	for _, o := range b.Outputs {
		gas += gasOf(o.Asset)
		if d := amountOf(o.Amount); !d.Equal(d.Truncate(c.decimals(o.Asset))) || c.utxo() && o.Asset != "" {
			return fmt.Errorf("sim: %s of asset %q cannot be paid here", o.Amount, o.Asset)
		}
	}
	if !c.utxo() && (b.Gas < gas || b.Tip < 0 || b.Tip > b.Max || b.Max > maxPrice) {
		return errors.New("sim: its gas or the price of it is out of range")
	}
	return nil
}

// twist makes the other valid signatures of a signed transaction, as anybody
// who sees it can.
func twist(raw []byte) ([]byte, error) {
	var e envelope
	if err := strict(raw, &e); err != nil {
		return nil, err
	}
	for i, s := range e.Sigs {
		sig, err := hex.DecodeString(s)
		if err != nil || len(sig) != 65 {
			return nil, errors.New("sim: not a signature")
		}
		var n secp256k1.ModNScalar
		n.SetByteSlice(sig[32:64])
		high := n.Negate().Bytes()
		copy(sig[32:64], high[:])
		sig[64] ^= 1
		e.Sigs[i] = hex.EncodeToString(sig)
	}
	if len(e.Sigs) == 0 {
		return nil, errors.New("sim: it has no signature to change")
	}
	return json.Marshal(e)
}

// parseOutput reads the value of a "u/" key.
func parseOutput(v string) (chain.Address, decimal.Decimal) {
	a, amount, _ := strings.Cut(v, " ")
	return chain.Address(a), amountOf(amount)
}
