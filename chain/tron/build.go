package tron

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// A payload is protocol.Transaction.raw, whose SHA-256 is both what is signed
// and the transaction's id.

const (
	signatureSize = 65 + 2 // with its tag
	resultSize    = 64     // what the network counts for a contract's result
)

// bandwidth is how many bytes the network counts for a raw transaction.
func bandwidth(raw []byte) int64 {
	return int64(len(putBytes(nil, 1, raw)) + signatureSize + resultSize)
}

// size is the most bytes that an order's transaction can be counted with.
func (c *Client) size(s *sending) int64 {
	b := s.body(&price{})
	if b.amount = 1 << 62; !s.native() {
		b.feeLimit = maxPrice
	}
	b.refBytes, b.refHash, b.expiration, b.timestamp = make([]byte, 2), make([]byte, 8), 1<<42-1, 1<<42-1
	return bandwidth(b.encode())
}

// body is the transaction without its place in time.
func (s *sending) body(p *price) *body {
	if s.native() {
		return &body{kind: kindTransfer, owner: s.from.full(), to: s.to.full(), amount: s.amount.Int64()}
	}
	return &body{kind: kindTrigger, owner: s.from.full(), to: s.contract.full(), data: s.data(), feeLimit: p.feeLimit()}
}

// stamp puts the transaction in time: it stands on the last solidified block,
// which no fork takes away, and lands by the head's time and Options.Expiry, or
// never. Two orders of the same payment must not come out as the same bytes, of
// which the network would take one: their times differ by a hash of who ordered.
func (c *Client) stamp(b *body, v *view, o *chain.Order) {
	b.refBytes, b.refHash = v.solid.id[6:8], v.solid.id[8:16]
	who := sha256.Sum256(fmt.Appendf(nil, "%q/%d/%d", o.Intent.ID, o.Attempt, o.Nonce))
	b.expiration = v.head.millis + c.o.Expiry.Milliseconds() - int64(binary.BigEndian.Uint64(who[:8])%1000)
	b.timestamp = v.head.millis - int64(binary.BigEndian.Uint64(who[8:16])%600_000)
}

// Build makes the unsigned transaction: a TransferContract, or a
// TriggerSmartContract of the token's transfer with a fee_limit. The price is as
// ordered, except that energy which could not be tried before is tried now, and
// that a recipient may have to be activated meanwhile. Every Build is another
// transaction, and none takes the place of another. The error wraps ErrTooDear
// above the intent's MaxCost or Options.MaxFee, ErrShort where the sender has too
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
	if err := json.Unmarshal(o.Fee.Params, &p); err != nil || !p.sane() {
		return chain.Unsigned{}, fmt.Errorf("%w: the fee is not one of EstimateFee's", chain.ErrRejected)
	}
	v, err := c.view(ctx)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if err := c.afford(ctx, s, &p); err != nil {
		return chain.Unsigned{}, err
	}
	b := s.body(&p)
	c.stamp(b, &v, &o)
	payload := b.encode()
	most := p.most(bandwidth(payload))
	u, err := c.Inspect(payload)
	if err != nil {
		return chain.Unsigned{}, err
	}
	cost, err := c.cost(most)
	if err != nil {
		return chain.Unsigned{}, err
	}
	u.MaxCost = max(u.MaxCost, cost)
	if most > c.o.MaxFee {
		return chain.Unsigned{}, c.tooDear(most)
	}
	if limit := o.Intent.MaxCost; limit > 0 && u.MaxCost > limit {
		return chain.Unsigned{}, &chain.DearError{Need: u.MaxCost, Most: limit}
	}
	return u, nil
}

func (p *price) sane() bool {
	for _, v := range []int64{p.Byte, p.Activate, p.NewBytes, p.Unit, p.Energy, p.Limit} {
		if v < 0 || v > maxPrice {
			return false
		}
	}
	return p.Byte > 0 && p.Byte <= maxPrice/1000 && p.Unit > 0
}

// afford checks the sender's balances, settles what All means, and tries the
// transfer where EstimateFee could not.
func (c *Client) afford(ctx context.Context, s *sending, p *price) error {
	h, err := c.account(ctx, s.from)
	if err != nil {
		return err
	}
	if s.native() {
		return c.affordTRX(ctx, s, p, h.sun)
	}
	has, err := c.holds(ctx, s.cur, s.from)
	if err != nil {
		return err
	}
	if s.all {
		s.amount = has
	}
	if has.Cmp(s.amount) < 0 || has.Sign() == 0 {
		return fmt.Errorf("%w: it has %s %s", chain.ErrShort, coins(has, s.cur.Decimals), s.cur.Code)
	}
	if p.Guess || p.Energy == 0 {
		if err := c.energy(ctx, s, p); err != nil {
			return err
		}
	}
	if need := p.most(c.size(s)); h.sun < need {
		return fmt.Errorf("%w: it has %d sun and needs %d for the fee", chain.ErrShort, h.sun, need)
	}
	return nil
}

func (c *Client) affordTRX(ctx context.Context, s *sending, p *price, has int64) error {
	p.Energy = 0
	now, err := c.price(ctx, s)
	if err != nil {
		return err
	}
	p.Activate, p.NewBytes = max(p.Activate, now.Activate), max(p.NewBytes, now.NewBytes)
	fee := p.most(c.size(s))
	if s.all {
		if s.amount.SetInt64(has - fee); s.amount.Sign() <= 0 {
			return fmt.Errorf("%w: it has %d sun, not more than the fee of up to %d", chain.ErrShort, has, fee)
		}
		return nil
	}
	if need := new(big.Int).Add(s.amount, big.NewInt(fee)); big.NewInt(has).Cmp(need) < 0 {
		return fmt.Errorf("%w: it has %d sun and needs %s", chain.ErrShort, has, need)
	}
	return nil
}

// Inspect tells what a payload does, from its bytes and the Registry alone: a
// plain transfer of TRX, or transfer() of a registered token. Whatever else it
// might do, and any byte that was not looked at, is refused with ErrRejected.
// Amounts are rounded down to ledger units. MaxCost takes bandwidth to cost
// Options.BytePrice, and does not know whether the recipient must be activated.
func (c *Client) Inspect(payload []byte) (chain.Unsigned, error) {
	refuse := func(why string) (chain.Unsigned, error) {
		return chain.Unsigned{}, fmt.Errorf("%w: %s", chain.ErrRejected, why)
	}
	b, err := decodeBody(payload)
	if err != nil || b.contracts != 1 || !b.canonical(payload) {
		return refuse("not an unsigned transaction of one contract in its canonical form")
	}
	from, ok := accountFrom(b.owner)
	if !ok || len(b.refBytes) != 2 || len(b.refHash) != 8 || b.expiration <= 0 || b.timestamp < 0 || b.feeLimit < 0 {
		return refuse("the transaction has no sender, no block to stand on or no expiration")
	}
	if b.permission != 0 || len(b.memo) != 0 {
		return refuse("permissions and memos are not used here")
	}
	out, err := c.output(&b)
	if err != nil {
		return chain.Unsigned{}, err
	}
	net := bandwidth(payload) * c.o.BytePrice
	if b.feeLimit > maxPrice {
		return refuse("its fee_limit is absurd")
	}
	cost, err := c.cost(net + b.feeLimit)
	if err != nil {
		return chain.Unsigned{}, fmt.Errorf("%w: its cost: %w", chain.ErrRejected, err)
	}
	d := digest(payload)
	return chain.Unsigned{
		Network: c.o.Network, Payload: payload, Spends: []string{spend(hex.EncodeToString(d[:]))},
		Outputs: []chain.Output{out}, MaxCost: cost, Digests: []chain.Digest{{Hash: d, From: from.text()}},
	}, nil
}

// newAccount is what the network takes, in sun, for a transfer of TRX to an account that is
// not there: its parameters getCreateNewAccountFeeInSystemContract and getCreateAccountFee.
const newAccount = 1_100_000

// MostCost implements chain.Coster: every recipient of TRX may have to be activated.
func (c *Client) MostCost(payload []byte) (ledger.Amount, error) {
	u, err := c.Inspect(payload)
	if err != nil || u.Outputs[0].Currency != c.native.Code {
		return u.MaxCost, err
	}
	more, err := c.cost(newAccount)
	if err != nil {
		return 0, err
	}
	return u.MaxCost.Add(more)
}

// output is the one payment that a transaction makes.
func (c *Client) output(b *body) (chain.Output, error) {
	none := fmt.Errorf("%w: the transaction is no plain transfer of a registered currency", chain.ErrRejected)
	to, ok := accountFrom(b.to)
	if !ok {
		return chain.Output{}, none
	}
	cur, amount := c.native, big.NewInt(b.amount)
	switch {
	case b.kind == kindTransfer && string(b.url) == urlTransfer && b.amount > 0 && b.feeLimit == 0:
	case b.kind == kindTrigger && string(b.url) == urlTrigger && b.callValue == 0 && b.tokenValue == 0 && b.tokenID == 0:
		cur = c.tokens[to]
		var pad [12]byte
		if cur == nil || len(b.data) != 68 || [4]byte(b.data) != selTransfer || [12]byte(b.data[4:16]) != pad {
			return chain.Output{}, none
		}
		to, amount = account(b.data[16:36]), new(big.Int).SetBytes(b.data[36:])
	default:
		return chain.Output{}, none
	}
	units, err := cur.Units(coins(amount, cur.Decimals), ledger.Down)
	if err != nil {
		return chain.Output{}, fmt.Errorf("%w: its amount: %w", chain.ErrRejected, err)
	}
	return chain.Output{To: to.text(), Currency: cur.Code, Amount: units}, nil
}

// Assemble puts the signature in, and checks that it is the sender's and of the
// low-s form.
func (c *Client) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	seen, err := c.Inspect(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(sigs) != 1 || len(sigs[0]) != 65 || sigs[0][64] > 1 {
		return chain.Signed{}, errors.New("tron: one signature of 65 bytes is required, r‖s‖v with v 0 or 1")
	}
	var s secp256k1.ModNScalar
	if s.SetByteSlice(sigs[0][32:64]) || s.IsOverHalfOrder() {
		return chain.Signed{}, errors.New("tron: the signature is out of range or not in low-s form")
	}
	signature := append([]byte(nil), sigs[0]...)
	signature[64] += 27
	from := seen.Digests[0].From
	if by, err := signedBy(seen.Digests[0].Hash, signature); err != nil || by.text() != from {
		return chain.Signed{}, fmt.Errorf("tron: the signature is not by the key of %s", from)
	}
	return chain.Signed{Tx: hex.EncodeToString(seen.Digests[0].Hash[:]), Raw: seal(u.Payload, signature)}, nil
}

// signedBy recovers the account of a signature r‖s‖v with v 27 or 28.
func signedBy(d [32]byte, signature []byte) (account, error) {
	if len(signature) != 65 || signature[64] != 27 && signature[64] != 28 {
		return account{}, errors.New("tron: not a signature of r‖s‖v")
	}
	compact := append([]byte{signature[64]}, signature[:64]...)
	key, _, err := ecdsa.RecoverCompact(compact, d[:])
	if err != nil {
		return account{}, fmt.Errorf("tron: signature: %w", err)
	}
	return accountOf(key), nil
}
