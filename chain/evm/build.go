package evm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// A payload is the sender's 20 bytes and then exactly the bytes whose Keccak-256
// is signed: the RLP of EIP-155, or 2 and the RLP of EIP-1559. The sender is in
// front because the bytes do not name it, while nonces are its own.

type dynamicBody struct {
	ChainID *big.Int
	Nonce   uint64
	Tip     *big.Int
	Cap     *big.Int
	Gas     uint64
	To      common.Address
	Value   *big.Int
	Data    []byte
	Access  types.AccessList
}

type legacyBody struct {
	Nonce   uint64
	Price   *big.Int
	Gas     uint64
	To      common.Address
	Value   *big.Int
	Data    []byte
	ChainID *big.Int
	R, S    uint64
}

// payload serialises what would be sent.
func (c *Client) payload(s *sending, p *price, nonce uint64) ([]byte, error) {
	to, value, data := s.tx()
	out := bytes.NewBuffer(s.from.Bytes())
	id, most := big.NewInt(c.o.ChainID), big.NewInt(p.Cap)
	if c.o.Legacy {
		err := rlp.Encode(out, &legacyBody{Nonce: nonce, Price: most, Gas: p.Gas, To: to, Value: value, Data: data, ChainID: id})
		return out.Bytes(), err
	}
	out.WriteByte(types.DynamicFeeTxType)
	err := rlp.Encode(out, &dynamicBody{ChainID: id, Nonce: nonce, Tip: big.NewInt(p.Tip), Cap: most, Gas: p.Gas, To: to, Value: value, Data: data})
	return out.Bytes(), err
}

// unsigned reads a payload back, and refuses one that is not canonical.
func unsigned(payload []byte) (common.Address, *types.Transaction, error) {
	refuse := func(err error) (common.Address, *types.Transaction, error) {
		return common.Address{}, nil, fmt.Errorf("%w: not an unsigned transaction: %w", chain.ErrRejected, err)
	}
	if len(payload) < 22 {
		return refuse(errors.New("too short"))
	}
	from, body := common.Address(payload[:20]), payload[20:]
	var tx *types.Transaction
	if body[0] == types.DynamicFeeTxType {
		var b dynamicBody
		if err := rlp.DecodeBytes(body[1:], &b); err != nil {
			return refuse(err)
		}
		if len(b.Access) != 0 {
			return refuse(errors.New("access lists are not used here"))
		}
		tx = types.NewTx(&types.DynamicFeeTx{ChainID: b.ChainID, Nonce: b.Nonce, GasTipCap: b.Tip, GasFeeCap: b.Cap, Gas: b.Gas, To: &b.To, Value: b.Value, Data: b.Data})
		return from, tx, nil
	}
	var b legacyBody
	if err := rlp.DecodeBytes(body, &b); err != nil {
		return refuse(err)
	}
	if b.R != 0 || b.S != 0 {
		return refuse(errors.New("not to be signed as EIP-155 says"))
	}
	tx = types.NewTx(&types.LegacyTx{Nonce: b.Nonce, GasPrice: b.Price, Gas: b.Gas, To: &b.To, Value: b.Value, Data: b.Data})
	// The chain id of a legacy transaction is in its digest alone; it is checked
	// there, by signing for this network and no other.
	return from, tx, nil
}

// Build makes the unsigned transaction. A later Attempt of the same nonce pays
// at least an eighth more per gas. The fee is as ordered, except that gas which
// could not be tried before is tried now. The error wraps ErrTooDear above the
// intent's MaxCost or Options.MaxFeePerGas, ErrShort where the sender has too
// little, ErrRejected where the order makes no sense.
func (c *Client) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	s, err := c.sending(&o.Intent, true)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if len(o.Coins) > 0 || o.Change != "" {
		return chain.Unsigned{}, fmt.Errorf("%w: %s has no coins to choose", chain.ErrRejected, c.o.Network)
	}
	if o.Fee.Params == nil {
		if o.Fee, err = c.EstimateFee(ctx, o.Intent); err != nil {
			return chain.Unsigned{}, err
		}
	}
	var p price
	if err := json.Unmarshal(o.Fee.Params, &p); err != nil || p.Gas == 0 || p.Cap <= 0 || p.Tip < 0 || p.L1 < 0 || p.Operator < 0 || p.Tip > p.Cap {
		return chain.Unsigned{}, fmt.Errorf("%w: the fee is not one of EstimateFee's", chain.ErrRejected)
	}
	if err := p.bump(o.Attempt, c.o.MaxFeePerGas); err != nil {
		return chain.Unsigned{}, err
	}
	most, err := c.afford(ctx, s, &p, o.Intent.MaxCost, s.sweep && o.Attempt <= 1)
	if err != nil {
		return chain.Unsigned{}, err
	}
	payload, err := c.payload(s, &p, o.Nonce)
	if err != nil {
		return chain.Unsigned{}, fmt.Errorf("evm: encoding: %w", err)
	}
	u, err := c.Inspect(payload)
	if err != nil {
		return chain.Unsigned{}, err
	}
	u.MaxCost = most
	return u, nil
}

// afford tries the transfer where EstimateFee could not, checks the limits and then the
// sender's balances, and settles what All means. It returns the most that the network may
// take. What is too dear is said before what is short: the sender gets what is missing only
// where the limit allows to spend it. With less a token's transaction has less room for a
// rising price where the sender has too little for all of it.
func (c *Client) afford(ctx context.Context, s *sending, p *price, limit ledger.Amount, less bool) (most ledger.Amount, err error) {
	has, err := c.holds(ctx, s)
	if err != nil {
		return 0, err
	}
	if s.all {
		s.amount = new(big.Int).Set(has)
	}
	if has.Cmp(s.amount) < 0 || s.all && has.Sign() == 0 {
		return 0, fmt.Errorf("%w: it has %s %s", chain.ErrShort, coins(has, s.cur.Decimals), s.cur.Code)
	}
	if p.Guess {
		g, err := c.gas(ctx, s)
		if err != nil {
			return 0, err
		}
		p.Gas, p.Guess = g, false
		if err := c.beyondGas(ctx, s, p); err != nil {
			return 0, err
		}
	}
	funds := has
	if !s.native() {
		if funds, err = c.holds(ctx, &sending{cur: c.native, from: s.from}); err != nil {
			return 0, err
		}
		if less {
			p.within(funds)
		}
	}
	if p.Cap > c.o.MaxFeePerGas {
		return 0, fmt.Errorf("%w: %d wei for gas, the limit is %d", chain.ErrTooDear, p.Cap, c.o.MaxFeePerGas)
	}
	if most, err = c.cost(p.most()); err != nil {
		return 0, err
	}
	if limit > 0 && most > limit {
		return 0, &chain.DearError{Need: most, Most: limit}
	}
	need := new(big.Int).Add(s.amount, p.most())
	if !s.native() {
		need = p.most()
	} else if s.all {
		need = p.most()
		if s.amount.Sub(has, need).Sign() <= 0 {
			return 0, fmt.Errorf("%w: it has %s %s, less than the fee", chain.ErrShort, coins(has, 18), c.native.Code)
		}
	}
	if funds.Cmp(need) < 0 {
		return 0, fmt.Errorf("%w: it has %s %s and needs %s", chain.ErrShort, coins(funds, 18), c.native.Code, coins(need, 18))
	}
	return most, nil
}

// Inspect tells what a payload does, from its bytes and the Registry alone: a
// plain transfer of the native coin, or transfer() of a registered token.
// Whatever else it might do is refused with ErrRejected. Amounts are rounded
// down to ledger units. MaxCost does not know a rollup's data fee and operator's fee.
func (c *Client) Inspect(payload []byte) (chain.Unsigned, error) {
	from, tx, err := unsigned(payload)
	if err != nil {
		return chain.Unsigned{}, err
	}
	digest := crypto.Keccak256Hash(payload[20:])
	if c.signer().Hash(tx) != digest {
		return chain.Unsigned{}, fmt.Errorf("%w: the transaction is for another chain than %s, or not canonical", chain.ErrRejected, c.o.Network)
	}
	out, err := c.output(tx)
	if err != nil {
		return chain.Unsigned{}, err
	}
	most := new(big.Int).Mul(new(big.Int).SetUint64(tx.Gas()), tx.GasFeeCap())
	cost, err := c.cost(most)
	if err != nil {
		return chain.Unsigned{}, fmt.Errorf("%w: its cost: %w", chain.ErrRejected, err)
	}
	sender := checksum(from)
	return chain.Unsigned{
		Network: c.o.Network, Payload: payload, Spends: []string{string(sender) + "/" + fmt.Sprint(tx.Nonce())},
		Outputs: []chain.Output{out}, MaxCost: cost, Digests: []chain.Digest{{Hash: digest, From: sender}},
	}, nil
}

func (c *Client) signer() types.Signer { return types.LatestSignerForChainID(big.NewInt(c.o.ChainID)) }

// output is the one payment that a transaction makes.
func (c *Client) output(tx *types.Transaction) (chain.Output, error) {
	cur, to, amount := c.native, *tx.To(), tx.Value()
	if data := tx.Data(); len(data) > 0 {
		cur = c.tokens[to]
		var pad [12]byte
		if cur == nil || amount.Sign() != 0 || len(data) != 68 || [4]byte(data) != selTransfer || [12]byte(data[4:16]) != pad {
			return chain.Output{}, fmt.Errorf("%w: the transaction is no plain transfer of a registered currency", chain.ErrRejected)
		}
		to, amount = common.Address(data[16:36]), new(big.Int).SetBytes(data[36:])
	}
	units, err := cur.Units(coins(amount, cur.Decimals), ledger.Down)
	if err != nil {
		return chain.Output{}, fmt.Errorf("%w: its amount: %w", chain.ErrRejected, err)
	}
	return chain.Output{To: checksum(to), Currency: cur.Code, Amount: units}, nil
}

// Assemble puts the signature in, and checks that it is the sender's and of the
// low-s form that nodes ask for.
func (c *Client) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	seen, err := c.Inspect(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(sigs) != 1 || len(sigs[0]) != 65 || sigs[0][64] > 1 {
		return chain.Signed{}, errors.New("evm: one signature of 65 bytes is required, r‖s‖v with v 0 or 1")
	}
	from, tx, err := unsigned(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	sig := sigs[0]
	r, s := new(big.Int).SetBytes(sig[:32]), new(big.Int).SetBytes(sig[32:64])
	if !crypto.ValidateSignatureValues(sig[64], r, s, true) {
		return chain.Signed{}, errors.New("evm: the signature is out of range or not in low-s form")
	}
	key, err := crypto.SigToPub(seen.Digests[0].Hash[:], sig)
	if err != nil || crypto.PubkeyToAddress(*key) != from {
		return chain.Signed{}, fmt.Errorf("evm: the signature is not by the key of %s", seen.Digests[0].From)
	}
	signed, err := tx.WithSignature(c.signer(), sig)
	if err != nil {
		return chain.Signed{}, fmt.Errorf("evm: signature: %w", err)
	}
	raw, err := signed.MarshalBinary()
	if err != nil {
		return chain.Signed{}, fmt.Errorf("evm: encoding: %w", err)
	}
	return chain.Signed{Tx: signed.Hash().Hex(), Raw: raw}, nil
}
