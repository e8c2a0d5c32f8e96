package utxo

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/ecdsa"
	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
)

var _ chain.ColdSpender = (*Client)(nil)

// maxColdInputs bounds the inputs of a proposal: each brings the whole transaction that made it.
const maxColdInputs = 50

// ProposeCold implements chain.ColdSpender. It spends the largest coins first. The payload is a
// PSBT (BIP 174) of version 0 with the whole transactions that made the coins, the witness script,
// and where each key comes from, so that a hardware wallet finds its keys and recognises the
// change.
func (c *Client) ProposeCold(ctx context.Context, text string, o chain.Order) (u chain.Unsigned, tx string, err error) {
	d, err := c.descriptor(text)
	if err != nil {
		return u, "", err
	}
	in := &o.Intent
	to, err := c.script(in.To)
	switch {
	case err != nil:
		return u, "", rejected("%w", err)
	case in.Currency != c.native.Code:
		return u, "", rejected("%q is not the coin of %s", in.Currency, c.o.Network)
	case !in.All && int64(in.Amount) < c.p.dust(to):
		return u, "", rejected("%d units are below the dust limit of %d", in.Amount, c.p.dust(to))
	}
	rate, err := c.rate(ctx)
	if err != nil {
		return u, "", err
	}
	coins, err := c.unspent(ctx, d, o.Coins)
	if err != nil {
		return u, "", err
	}
	amount := int64(in.Amount)
	if in.All {
		if amount, err = c.coldAll(d, to, rate, coins); err != nil {
			return u, "", err
		}
	}
	p, fee, err := c.coldPlan(d, to, amount, rate, coins)
	if err != nil {
		return u, "", err
	}
	if in.MaxCost > 0 && fee > int64(in.MaxCost) {
		return u, "", &chain.DearError{Need: ledger.Amount(fee), Most: in.MaxCost}
	}
	if err := c.sources(ctx, p, true); err != nil {
		return u, "", err
	}
	payload, err := p.proposal(d)
	if err != nil {
		return u, "", err
	}
	u = chain.Unsigned{Network: c.o.Network, Payload: payload, MaxCost: ledger.Amount(fee)}
	for _, i := range p.tx.TxIn {
		u.Spends = append(u.Spends, fmt.Sprintf("%s:%d", i.PreviousOutPoint.Hash, i.PreviousOutPoint.Index))
	}
	for i, out := range p.tx.TxOut {
		a, _ := c.address(out.PkScript)
		u.Outputs = append(u.Outputs, chain.Output{To: a, Currency: c.native.Code, Amount: ledger.Amount(out.Value), Change: p.change[i]})
	}
	return u, p.tx.TxHash().String(), nil
}

// unspent leaves out the coins that are in no block, and those that the node knows to be spent, also by a
// transaction that waits. What each is worth is proven later, by the transaction that made it.
func (c *Client) unspent(ctx context.Context, d *descriptor, coins []chain.Coin) ([]chain.Coin, error) {
	calls, seen := make([]*transport.Call, len(coins)), map[string]bool{}
	for i, coin := range coins {
		at, err := parseOutpoint(coin.Outpoint)
		if err != nil || seen[coin.Outpoint] || coin.Amount <= 0 {
			return nil, rejected("coin %.80q is none, or named twice", coin.Outpoint)
		}
		seen[coin.Outpoint] = true
		if script, err := c.script(coin.Address); err != nil || !bytes.Equal(script, d.script) {
			return nil, rejected("coin %s does not lie at the descriptor's address", coin.Outpoint)
		}
		calls[i] = transport.NewCall("gettxout", at.Hash.String(), at.Index, true)
	}
	if len(calls) == 0 {
		return nil, nil
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return nil, err
	}
	var out []chain.Coin
	for i, k := range calls {
		if k.Null() {
			continue
		}
		var at struct {
			Confirmations int64 `json:"confirmations"`
		}
		if err := k.Into(&at); err != nil {
			return nil, err
		}
		if at.Confirmations > 0 {
			out = append(out, coins[i])
		}
	}
	slices.SortStableFunc(out, func(a, b chain.Coin) int {
		switch {
		case a.Amount > b.Amount:
			return -1
		case a.Amount < b.Amount:
			return 1
		}
		return strings.Compare(a.Outpoint, b.Outpoint)
	})
	return out, nil
}

// coldAll is what the largest coins pay after the fee, as many as one transaction spends.
func (c *Client) coldAll(d *descriptor, to []byte, rate int64, coins []chain.Coin) (int64, error) {
	s := new(size)
	s.output(to)
	var sum ledger.Amount
	var err error
	for _, coin := range coins[:min(len(coins), maxColdInputs)] {
		if sum, err = sum.Add(coin.Amount); err != nil {
			return 0, rejected("coins: %w", err)
		}
		s.coldInput(d)
	}
	left := int64(sum) - s.cost(rate)
	if left < c.p.dust(to) {
		return 0, fmt.Errorf("%w: %d units lie there unspent, and the fee is %d", chain.ErrShort, sum, s.cost(rate))
	}
	return left, nil
}

// coldPlan chooses inputs and outputs. The fee is what the outputs do not take.
func (c *Client) coldPlan(d *descriptor, to []byte, amount, rate int64, coins []chain.Coin) (*packet, int64, error) {
	p, s := &packet{network: c.o.Network, tx: wire.NewMsgTx(2)}, new(size)
	p.tx.AddTxOut(wire.NewTxOut(amount, to))
	p.change = []bool{false}
	s.output(to)
	var sum ledger.Amount
	for _, coin := range coins {
		if len(p.from) == maxColdInputs {
			break
		}
		at, err := parseOutpoint(coin.Outpoint)
		if err != nil {
			return nil, 0, err
		}
		if sum, err = sum.Add(coin.Amount); err != nil {
			return nil, 0, rejected("coins: %w", err)
		}
		p.tx.AddTxIn(&wire.TxIn{PreviousOutPoint: at, Sequence: replaceable})
		p.from = append(p.from, source{out: &wire.TxOut{Value: int64(coin.Amount), PkScript: d.script}})
		s.coldInput(d)
		left := int64(sum) - amount
		if left < s.cost(rate) {
			continue
		}
		more := *s
		more.output(d.script)
		if rest := left - more.cost(rate); rest >= c.p.dust(d.script) {
			p.tx.AddTxOut(wire.NewTxOut(rest, d.script))
			p.change = append(p.change, true)
			p.shuffle()
			return p, left - rest, nil
		}
		return p, left, nil
	}
	what := ""
	if len(coins) > maxColdInputs {
		what = fmt.Sprintf(" of the %d largest", maxColdInputs)
	}
	return nil, 0, fmt.Errorf("%w: %d units%s lie there unspent, and %d with the fee are to be paid", chain.ErrShort, sum, what, amount+s.cost(rate))
}

// coldInput adds an input with the signatures that a descriptor wants.
func (s *size) coldInput(d *descriptor) {
	if d.inner == nil {
		s.input(d.script)
		return
	}
	s.ins++
	s.base += 4*(36+1+4) + 1 + 1 + int64(d.need)*(1+72) + int64(lengthOf(len(d.inner))+len(d.inner))
	s.witness = true
}

// proposal writes the PSBT that is signed elsewhere.
func (p *packet) proposal(d *descriptor) ([]byte, error) {
	out, err := psbt.NewFromUnsignedTx(p.tx)
	if err != nil {
		return nil, fmt.Errorf("utxo: proposal: %w", err)
	}
	for i, s := range p.from {
		in := &out.Inputs[i]
		in.NonWitnessUtxo, in.WitnessUtxo, in.WitnessScript, in.Bip32Derivation = s.tx, s.out, d.inner, d.from
	}
	for i, change := range p.change {
		if change {
			out.Outputs[i].WitnessScript, out.Outputs[i].Bip32Derivation = d.inner, d.from
		}
	}
	var buf bytes.Buffer
	if err := out.Serialize(&buf); err != nil {
		return nil, fmt.Errorf("utxo: proposal: %w", err)
	}
	return buf.Bytes(), nil
}

// AcceptCold implements chain.ColdSpender. signed is a PSBT in base64 or as it is, with signatures
// or finalised, or the signed transaction in hex or as it is.
func (c *Client) AcceptCold(_ chain.Address, payload, signed []byte) (chain.Signed, error) {
	p, err := psbt.NewFromRawBytes(bytes.NewReader(payload), false)
	if err != nil {
		return chain.Signed{}, fmt.Errorf("utxo: proposal: %w", err)
	}
	got, given, err := returned(signed)
	if err != nil {
		return chain.Signed{}, err
	}
	if err := c.same(p.UnsignedTx, got); err != nil {
		return chain.Signed{}, err
	}
	tx := p.UnsignedTx.Copy()
	outs := txscript.NewMultiPrevOutFetcher(nil)
	for i := range p.Inputs {
		outs.AddPrevOut(tx.TxIn[i].PreviousOutPoint, p.Inputs[i].WitnessUtxo)
	}
	hashes := txscript.NewTxSigHashes(tx, outs)
	for i := range p.Inputs {
		if tx.TxIn[i].Witness, err = witness(tx, i, &p.Inputs[i], given[i], hashes); err != nil {
			return chain.Signed{}, err
		}
	}
	for i := range p.Inputs { // the same by the rules of the network
		prev := p.Inputs[i].WitnessUtxo
		e, err := txscript.NewEngine(prev.PkScript, tx, i, txscript.StandardVerifyFlags, nil, hashes, prev.Value, outs)
		if err == nil {
			err = e.Execute()
		}
		if err != nil {
			return chain.Signed{}, rejected("input %d: %w", i, err)
		}
	}
	var buf bytes.Buffer
	if err := tx.Serialize(&buf); err != nil {
		return chain.Signed{}, fmt.Errorf("utxo: proposal: %w", err)
	}
	return chain.Signed{Tx: tx.TxHash().String(), Raw: buf.Bytes()}, nil
}

// returned reads what a signer gave back: the transaction, and for each input everything in it that
// may be a signature.
func returned(signed []byte) (tx *wire.MsgTx, given [][][]byte, err error) {
	if len(signed) > maxPayload {
		return nil, nil, rejected("what came back is over %d bytes", maxPayload)
	}
	raw := signed
	if text := strings.Join(strings.Fields(string(signed)), ""); strings.HasPrefix(text, "cHNidP") {
		if raw, err = base64.StdEncoding.DecodeString(text); err != nil {
			return nil, nil, rejected("what came back is no base64: %w", err)
		}
	} else if b, err := hex.DecodeString(text); err == nil {
		raw = b
	}
	if !bytes.HasPrefix(raw, []byte("psbt\xff")) {
		tx, r := wire.NewMsgTx(2), bytes.NewReader(raw)
		if err := tx.Deserialize(r); err != nil || r.Len() > 0 {
			return nil, nil, rejected("what came back is neither a PSBT nor a transaction")
		}
		for _, in := range tx.TxIn {
			if len(in.SignatureScript) > 0 {
				return nil, nil, rejected("the inputs have signatures outside the witness")
			}
			given = append(given, in.Witness)
		}
		return tx, given, nil
	}
	r := bytes.NewReader(raw)
	back, err := psbt.NewFromRawBytes(r, false)
	if err != nil || r.Len() > 0 {
		return nil, nil, rejected("what came back is no PSBT of version 0: %v", err)
	}
	for i := range back.Inputs {
		in := &back.Inputs[i]
		if in.SighashType != 0 && in.SighashType != txscript.SigHashAll {
			return nil, nil, rejected("input %d asks for the signature hash type %#x, and it must be ALL", i, uint32(in.SighashType))
		}
		var all [][]byte
		for _, s := range in.PartialSigs {
			all = append(all, s.Signature)
		}
		final, err := stack(in.FinalScriptWitness)
		if err != nil {
			return nil, nil, rejected("input %d: its witness cannot be read", i)
		}
		given = append(given, append(all, final...))
	}
	return back.UnsignedTx, given, nil
}

// stack reads the witness of a finalised input.
func stack(raw []byte) (out [][]byte, err error) {
	if len(raw) == 0 {
		return nil, nil
	}
	r := &cursor{b: raw}
	for n := r.varint(); n > 0 && !r.bad; n-- {
		out = append(out, r.skip(r.varint()))
	}
	if r.bad || r.i != len(raw) {
		return nil, errTx
	}
	return out, nil
}

// same names the first thing in which a transaction is another than was proposed.
func (c *Client) same(want, got *wire.MsgTx) error {
	shown := func(o *wire.TxOut) string {
		a, ok := c.address(o.PkScript)
		if !ok {
			a = "no address"
		}
		return fmt.Sprintf("%d units to %s", o.Value, a)
	}
	switch {
	case got.Version != want.Version:
		return rejected("its version is %d, proposed was %d", got.Version, want.Version)
	case got.LockTime != want.LockTime:
		return rejected("its lock time is %d, proposed was %d", got.LockTime, want.LockTime)
	case len(got.TxIn) != len(want.TxIn):
		return rejected("it has %d inputs, proposed were %d", len(got.TxIn), len(want.TxIn))
	case len(got.TxOut) != len(want.TxOut):
		return rejected("it has %d outputs, proposed were %d", len(got.TxOut), len(want.TxOut))
	}
	for i, in := range want.TxIn {
		if o := got.TxIn[i].PreviousOutPoint; o != in.PreviousOutPoint {
			return rejected("input %d spends %s, proposed was %s", i, o, in.PreviousOutPoint)
		}
		if s := got.TxIn[i].Sequence; s != in.Sequence {
			return rejected("the sequence of input %d is %d, proposed was %d", i, s, in.Sequence)
		}
	}
	for i, o := range want.TxOut {
		if g := got.TxOut[i]; g.Value != o.Value || !bytes.Equal(g.PkScript, o.PkScript) {
			return rejected("output %d pays %s, proposed was %s", i, shown(g), shown(o))
		}
	}
	return nil
}

// witness makes the witness of an input from signatures that are good, in the order of the keys. One
// that is of no key of the input, or not over the whole transaction, is an error.
func witness(tx *wire.MsgTx, i int, in *psbt.PInput, given [][]byte, hashes *txscript.TxSigHashes) (wire.TxWitness, error) {
	script, need := in.WitnessScript, 1
	var keys [][]byte
	if script == nil {
		script, keys = in.WitnessUtxo.PkScript, [][]byte{in.Bip32Derivation[0].PubKey}
	} else {
		of, err := multisigOf(script)
		if err != nil {
			return nil, err
		}
		need, keys = int(script[0]-txscript.OP_1+1), of
	}
	sum, err := txscript.CalcWitnessSigHash(script, hashes, txscript.SigHashAll, tx, i, in.WitnessUtxo.Value)
	if err != nil {
		return nil, rejected("input %d: %w", i, err)
	}
	byKey := make([][]byte, len(keys))
	for _, sig := range given {
		isKey := slices.ContainsFunc(keys, func(k []byte) bool { return bytes.Equal(k, sig) })
		if len(sig) == 0 || isKey || bytes.Equal(sig, script) {
			continue // the rest of a witness
		}
		parsed, err := ecdsa.ParseDERSignature(sig[:len(sig)-1])
		switch t := txscript.SigHashType(sig[len(sig)-1]); {
		case err != nil:
			return nil, rejected("input %d: something in it is no signature", i)
		case t != txscript.SigHashAll:
			return nil, rejected("input %d: a signature has the hash type %#x, and it must be ALL", i, uint32(t))
		}
		at := slices.IndexFunc(keys, func(k []byte) bool {
			pub, err := btcec.ParsePubKey(k)
			return err == nil && parsed.Verify(sum, pub)
		})
		if at < 0 {
			return nil, rejected("input %d: a signature is of none of its keys, or of another transaction", i)
		}
		byKey[at] = sig
	}
	var good [][]byte
	for _, sig := range byKey {
		if sig != nil {
			good = append(good, sig)
		}
	}
	if len(good) < need {
		return nil, rejected("input %d has %d of %d signatures", i, len(good), need)
	}
	if in.WitnessScript == nil {
		return wire.TxWitness{good[0], keys[0]}, nil
	}
	return slices.Concat(wire.TxWitness{nil}, good[:need], wire.TxWitness{script}), nil
}

// multisigOf are the keys of a witness script that multisig made.
func multisigOf(script []byte) (keys [][]byte, err error) {
	t := txscript.MakeScriptTokenizer(0, script)
	for t.Next() {
		if t.Data() != nil {
			keys = append(keys, t.Data())
		}
	}
	if t.Err() != nil || len(keys) == 0 {
		return nil, rejected("the proposal's script cannot be read")
	}
	return keys, nil
}
