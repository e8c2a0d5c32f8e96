package utxo

import (
	"bytes"
	"crypto/sha256"
	"fmt"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// packet is what a payload says: a PSBT of version 0 with the unsigned
// transaction, for each input where its coin comes from, and two fields of our
// own, which others keep and ignore: the network, and which outputs are change.
type packet struct {
	network chain.Network
	tx      *wire.MsgTx
	from    []source
	change  []bool
}

// source is a coin: the whole transaction that made it, but for Taproot, whose
// signatures hold all amounts, and Options.Pruned; its output; and what a P2SH script
// asks for.
type source struct {
	tx     *wire.MsgTx
	out    *wire.TxOut
	redeem []byte
}

// Keys of our own fields: proprietary (0xfc), our name, a number.
var (
	networkKey = []byte("\xfc\x09cryptopay\x00")
	changeKey  = []byte("\xfc\x09cryptopay\x01")
)

// maxPayload bounds what Inspect looks at.
const maxPayload = 16 << 20

func (p *packet) encode() ([]byte, error) {
	out, err := psbt.NewFromUnsignedTx(p.tx)
	if err != nil {
		return nil, fmt.Errorf("utxo: payload: %w", err)
	}
	out.Unknowns = []*psbt.Unknown{{Key: networkKey, Value: []byte(p.network)}}
	for i, s := range p.from {
		in := &out.Inputs[i]
		in.NonWitnessUtxo, in.RedeemScript = s.tx, s.redeem
		if k, _ := classify(s.out.PkScript); k != p2pkh {
			in.WitnessUtxo = s.out
		}
	}
	for i, change := range p.change {
		if change {
			out.Outputs[i].Unknowns = []*psbt.Unknown{{Key: changeKey, Value: []byte{1}}}
		}
	}
	var buf bytes.Buffer
	if err := out.Serialize(&buf); err != nil {
		return nil, fmt.Errorf("utxo: payload: %w", err)
	}
	return buf.Bytes(), nil
}

// parsePayload reads a payload. What is accepted has one writing only: what encode
// makes of it, so that nothing in it can be changed without anybody noticing.
func (c *Client) parsePayload(payload []byte) (*packet, error) {
	if len(payload) > maxPayload {
		return nil, rejected("the payload is over %d bytes", maxPayload)
	}
	in, err := psbt.NewFromRawBytes(bytes.NewReader(payload), false)
	if err != nil {
		return nil, rejected("the payload is no PSBT: %w", err)
	}
	p := &packet{network: c.o.Network, tx: in.UnsignedTx}
	if len(p.tx.TxIn) == 0 || len(p.tx.TxOut) == 0 {
		return nil, rejected("the payload spends or pays nothing")
	}
	for i := range in.Inputs {
		s, err := c.sourceOf(&in.Inputs[i], p.tx.TxIn[i].PreviousOutPoint)
		if err != nil {
			return nil, rejected("input %d: %w", i, err)
		}
		p.from = append(p.from, s)
	}
	for i := range in.Outputs {
		p.change = append(p.change, len(in.Outputs[i].Unknowns) > 0)
	}
	again, err := p.encode()
	if err != nil || !bytes.Equal(again, payload) {
		return nil, rejected("the payload is of another network, or not written as it should be")
	}
	return p, nil
}

// sourceOf reads where a coin comes from and proves what it is worth, where the payload can.
func (c *Client) sourceOf(in *psbt.PInput, at wire.OutPoint) (source, error) {
	s := source{tx: in.NonWitnessUtxo, out: in.WitnessUtxo, redeem: in.RedeemScript}
	if s.tx != nil {
		if id := s.tx.TxHash(); id != at.Hash || int64(at.Index) >= int64(len(s.tx.TxOut)) {
			return s, fmt.Errorf("the transaction given did not make %s", at)
		}
		s.out = s.tx.TxOut[at.Index] // what is said beside it must be the same, or the writing is another
	}
	if s.out == nil {
		return s, fmt.Errorf("it does not say what %s is", at)
	}
	k, program := classify(s.out.PkScript)
	switch {
	case k == p2tr && s.tx == nil && s.redeem == nil:
	case k == p2wpkh && c.o.Pruned && s.redeem == nil:
	case (k == p2pkh || k == p2wpkh) && s.tx != nil && s.redeem == nil:
	case k == p2sh && s.tx != nil:
		if inner, _ := classify(s.redeem); inner != p2wpkh || !bytes.Equal(btcaddr.Hash160(s.redeem), program) {
			return s, fmt.Errorf("%s is a script that is not known", at)
		}
	default:
		return s, fmt.Errorf("%s is a script that is not known, or the transaction that made it is missing", at)
	}
	return s, nil
}

// Inspect implements chain.Inspector: everything is read from the payload and
// proven by it. Amounts are those of the transactions that made the coins, which
// the payload holds whole. With Options.Pruned it may say the amounts alone.
func (c *Client) Inspect(payload []byte) (chain.Unsigned, error) {
	p, err := c.parsePayload(payload)
	if err != nil {
		return chain.Unsigned{}, err
	}
	u := chain.Unsigned{Network: c.o.Network, Payload: payload}
	var in, out ledger.Amount
	seen := map[wire.OutPoint]bool{}
	for i, s := range p.from {
		at := p.tx.TxIn[i].PreviousOutPoint
		if in, err = in.Add(ledger.Amount(s.out.Value)); err != nil || s.out.Value < 0 || seen[at] {
			return chain.Unsigned{}, rejected("%s is spent twice, or its amount cannot be", at)
		}
		seen[at] = true
		u.Spends = append(u.Spends, fmt.Sprintf("%s:%d", at.Hash, at.Index))
	}
	for i, o := range p.tx.TxOut {
		to, ok := c.address(o.PkScript)
		if !ok || o.Value < 0 {
			return chain.Unsigned{}, rejected("output %d pays no address", i)
		}
		if out, err = out.Add(ledger.Amount(o.Value)); err != nil {
			return chain.Unsigned{}, rejected("outputs: %w", err)
		}
		u.Outputs = append(u.Outputs, chain.Output{To: to, Currency: c.native.Code, Amount: ledger.Amount(o.Value), Change: p.change[i]})
	}
	if u.MaxCost = in - out; u.MaxCost < 0 {
		return chain.Unsigned{}, rejected("the payload pays more than it spends")
	}
	u.Digests, err = c.digests(p)
	return u, err
}

// digests are what must be signed, all of it in one way: the whole transaction.
func (c *Client) digests(p *packet) ([]chain.Digest, error) {
	outs, hashes := p.prevouts()
	all := make([]chain.Digest, len(p.from))
	for i, s := range p.from {
		var sum []byte
		var err error
		script := s.out.PkScript
		switch k, _ := classify(script); k {
		case p2pkh:
			sum, err = txscript.CalcSignatureHash(script, txscript.SigHashAll, p.tx, i)
		case p2tr:
			sum, err = txscript.CalcTaprootSignatureHash(hashes, txscript.SigHashDefault, p.tx, i, outs)
		case p2sh:
			sum, err = txscript.CalcWitnessSigHash(s.redeem, hashes, txscript.SigHashAll, p.tx, i, s.out.Value)
		default:
			sum, err = txscript.CalcWitnessSigHash(script, hashes, txscript.SigHashAll, p.tx, i, s.out.Value)
		}
		if err != nil || len(sum) != sha256.Size {
			return nil, rejected("input %d: %w", i, err)
		}
		from, _ := c.address(script)
		all[i] = chain.Digest{Hash: [32]byte(sum), From: from}
	}
	return all, nil
}

func (p *packet) prevouts() (*txscript.MultiPrevOutFetcher, *txscript.TxSigHashes) {
	outs := txscript.NewMultiPrevOutFetcher(nil)
	for i, s := range p.from {
		outs.AddPrevOut(p.tx.TxIn[i].PreviousOutPoint, s.out)
	}
	return outs, txscript.NewTxSigHashes(p.tx, outs)
}
