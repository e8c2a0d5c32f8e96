package utxo

import (
	"bytes"
	"errors"
	"fmt"

	btcaddr "github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Assemble puts signatures in: 65 bytes r‖s‖v each, 64 bytes (BIP 340) for a
// Taproot coin. A high s is turned into the low one that nodes take. Every
// finished input is then run as the network will run it.
func (c *Client) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	p, err := c.parsePayload(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	return c.finish(p, sigs)
}

func (c *Client) finish(p *packet, sigs []chain.Signature) (chain.Signed, error) {
	digests, err := c.digests(p)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(sigs) != len(digests) {
		return chain.Signed{}, fmt.Errorf("utxo: %d signatures for %d inputs", len(sigs), len(digests))
	}
	for i, s := range p.from {
		if err := s.sign(p.tx.TxIn[i], digests[i].Hash, sigs[i]); err != nil {
			return chain.Signed{}, fmt.Errorf("utxo: signature %d: %w", i, err)
		}
	}
	if err := p.verify(); err != nil {
		return chain.Signed{}, err
	}
	var buf bytes.Buffer
	if err := p.tx.Serialize(&buf); err != nil {
		return chain.Signed{}, fmt.Errorf("utxo: %w", err)
	}
	return chain.Signed{Tx: p.tx.TxHash().String(), Raw: buf.Bytes()}, nil
}

// sign completes an input.
func (s *source) sign(in *wire.TxIn, digest [32]byte, sig chain.Signature) error {
	k, program := classify(s.out.PkScript)
	if k == p2tr {
		return signTaproot(in, program, digest, sig)
	}
	der, pub, err := ecdsaOf(digest, sig)
	if err != nil {
		return err
	}
	der = append(der, byte(txscript.SigHashAll))
	if k == p2sh {
		_, program = classify(s.redeem)
	}
	if !bytes.Equal(btcaddr.Hash160(pub), program) {
		return errors.New("it is not of the key that the coin belongs to")
	}
	if k == p2pkh {
		b := txscript.NewScriptBuilder().AddData(der).AddData(pub)
		in.SignatureScript, err = b.Script()
		return err
	}
	if k == p2sh {
		if in.SignatureScript, err = txscript.NewScriptBuilder().AddData(s.redeem).Script(); err != nil {
			return err
		}
	}
	in.Witness = wire.TxWitness{der, pub}
	return nil
}

// ecdsaOf turns r‖s‖v into DER with a low s, and finds the key that made it.
func ecdsaOf(digest [32]byte, sig chain.Signature) (der, pub []byte, err error) {
	if len(sig) != 65 || sig[64] > 1 {
		return nil, nil, errors.New("it must be 65 bytes, r‖s‖v with v 0 or 1")
	}
	compact := append([]byte{27 + 4 + sig[64]}, sig[:64]...)
	key, _, err := ecdsa.RecoverCompact(compact, digest[:])
	if err != nil {
		return nil, nil, errors.New("it is none")
	}
	var r, s secp256k1.ModNScalar
	if r.SetByteSlice(sig[:32]) || s.SetByteSlice(sig[32:64]) {
		return nil, nil, errors.New("it is out of range")
	}
	if s.IsOverHalfOrder() {
		s.Negate()
	}
	good := ecdsa.NewSignature(&r, &s)
	if !good.Verify(digest[:], key) {
		return nil, nil, errors.New("it does not verify")
	}
	return good.Serialize(), key.SerializeCompressed(), nil
}

func signTaproot(in *wire.TxIn, program []byte, digest [32]byte, sig chain.Signature) error {
	key, err := schnorr.ParsePubKey(program)
	if err != nil {
		return errors.New("the coin's key is no point of the curve")
	}
	s, err := schnorr.ParseSignature(sig)
	if err != nil || !s.Verify(digest[:], key) {
		return errors.New("it is not a BIP 340 signature of the coin's key")
	}
	in.Witness = wire.TxWitness{bytes.Clone(sig)}
	return nil
}

// verify runs the scripts of all inputs, by the rules for what nodes relay.
func (p *packet) verify() error {
	outs, hashes := p.prevouts()
	for i, s := range p.from {
		e, err := txscript.NewEngine(s.out.PkScript, p.tx, i, txscript.StandardVerifyFlags, nil, hashes, s.out.Value, outs)
		if err == nil {
			err = e.Execute()
		}
		if err != nil {
			return fmt.Errorf("utxo: input %d would be refused: %w", i, err)
		}
	}
	return nil
}
