package xrp

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// A payload is the serialised transaction without its signature. Two bytes of
// prefix before it make what is hashed, and signed.

// sending is an intent in the terms of the ledger.
type sending struct {
	from, to account
	tag      *uint32
	amount   int64 // drops
	all      bool
	cancel   bool
}

func rejected(format string, args ...any) error {
	return fmt.Errorf("%w: %s", chain.ErrRejected, fmt.Sprintf(format, args...))
}

// sending checks an intent. Errors wrap ErrRejected.
func (c *Client) sending(in *chain.Intent) (*sending, error) {
	switch {
	case in.Network != c.o.Network:
		return nil, rejected("the intent is for %s, this is %s", in.Network, c.o.Network)
	case in.Currency != c.native.Code:
		return nil, rejected("%q is not the currency of %s", in.Currency, c.o.Network)
	}
	s := &sending{all: in.All, cancel: in.Purpose == chain.ForCancel, amount: int64(in.Amount)}
	var err error
	if s.from, err = c.classic(in.From); err != nil {
		return nil, rejected("sender: %v", err)
	}
	if s.cancel {
		return s, nil
	}
	if s.to, err = c.classic(in.To); err != nil {
		return nil, rejected("recipient: %v", err)
	}
	if s.tag, err = parseTag(in.Memo); err != nil {
		return nil, err
	}
	if s.from == s.to {
		return nil, rejected("an account cannot pay itself")
	}
	if s.all {
		return s, nil
	}
	drops, err := c.drops(in.Amount)
	if s.amount = drops; err != nil || drops <= 0 || drops > maxDrops {
		return nil, rejected("the amount must be positive, and not more XRP than there is")
	}
	return s, nil
}

// classic reads an account without a tag: a tag is the intent's Memo.
func (c *Client) classic(a chain.Address) (account, error) {
	who, tag, err := c.own(a)
	if err == nil && tag != nil {
		err = errors.New("an X-address: give the account, and the tag as the memo")
	}
	return who, err
}

func parseTag(memo string) (*uint32, error) {
	if memo == "" {
		return nil, nil
	}
	n, err := strconv.ParseUint(memo, 10, 32)
	if err != nil || strconv.FormatUint(n, 10) != memo {
		return nil, rejected("the memo must be a destination tag: a whole number of 0 to 4294967295")
	}
	tag := uint32(n)
	return &tag, nil
}

// drops converts ledger units.
func (c *Client) drops(a ledger.Amount) (int64, error) {
	d := c.native.Decimal(a).Shift(int32(c.native.Decimals))
	if !d.IsInteger() || !d.BigInt().IsInt64() {
		return 0, errors.New("xrp: not a whole number of drops")
	}
	return d.IntPart(), nil
}

// Build makes the unsigned transaction: a Payment, or to cancel an AccountSet that
// sets nothing. Each Attempt beyond the first bids a quarter more, as nodes demand
// of what takes a queued one's place. The error wraps ErrTooDear above the intent's
// MaxCost or Options.MaxFee, ErrShort where the sender would fall below its
// reserve, ErrRejected where the order makes no sense or would bounce.
func (c *Client) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	s, err := c.sending(&o.Intent)
	switch {
	case err != nil:
		return chain.Unsigned{}, err
	case len(o.Coins) > 0 || o.Change != "":
		return chain.Unsigned{}, rejected("%s has no coins to choose", c.o.Network)
	}
	if o.Fee.Params == nil {
		if o.Fee, err = c.EstimateFee(ctx, o.Intent); err != nil {
			return chain.Unsigned{}, err
		}
	}
	var p price
	if err := json.Unmarshal(o.Fee.Params, &p); err != nil || p.Fee <= 0 || p.Fee > maxDrops {
		return chain.Unsigned{}, rejected("the fee is not one of EstimateFee's")
	}
	fee := p.raised(o.Attempt)
	if err := c.affordable(fee, o.Intent.MaxCost); err != nil {
		return chain.Unsigned{}, err
	}
	head, err := c.head(ctx)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if err := c.afford(ctx, s, fee); err != nil {
		return chain.Unsigned{}, err
	}
	if o.Nonce == 0 || o.Nonce > 1<<32-1 {
		return chain.Unsigned{}, rejected("the sequence %d is none: they begin at 1", o.Nonce)
	}
	key, err := c.keyOf(&o.Intent, s.from)
	if err != nil {
		return chain.Unsigned{}, err
	}
	b := s.body(key, uint32(o.Nonce), fee) //nolint:gosec // checked above
	if c.o.NetworkID > 1024 {
		b.networkID = c.o.NetworkID // smaller networks tell themselves apart by it, the public ones refuse it
	}
	b.lastLedger = uint32(min(head.Height+int64(c.o.Window), 1<<32-1)) //nolint:gosec // bounded
	return c.Inspect(b.encode())
}

func (s *sending) body(key []byte, sequence uint32, fee int64) *body {
	b := &body{kind: typeAccountSet, flags: flagCanonical, sequence: sequence, fee: uint64(fee), key: key, account: s.from} //nolint:gosec // positive
	if !s.cancel {
		b.kind, b.dest, b.tag, b.amount = typePayment, s.to, s.tag, uint64(s.amount) //nolint:gosec // positive
	}
	return b
}

// keyOf is the public key that goes into the transaction.
func (c *Client) keyOf(in *chain.Intent, from account) ([]byte, error) {
	if c.o.PublicKey == nil {
		return nil, errors.New("xrp: Options.PublicKey is required to send")
	}
	pub, err := c.o.PublicKey(in.From, in.FromKey)
	if err != nil {
		return nil, fmt.Errorf("xrp: the key of %s: %w", in.From, err)
	}
	key, err := signingKey(pub)
	if err == nil && accountOf(key) != from {
		err = fmt.Errorf("xrp: Options.PublicKey gave the key of another account than %s", in.From)
	}
	return key, err
}

// afford checks that the sender keeps its reserve, settles what All means, and
// that the recipient would take it.
func (c *Client) afford(ctx context.Context, s *sending, fee int64) error {
	free, err := c.spendable(ctx, s.from)
	if err != nil {
		return err
	}
	if s.all {
		s.amount = free - fee
	}
	need := fee
	if !s.cancel {
		need += s.amount
	}
	if free < need || !s.cancel && s.amount <= 0 {
		return fmt.Errorf("%w: %d drops above its reserve, it needs %d", chain.ErrShort, free, need)
	}
	if s.cancel {
		return nil
	}
	why, err := c.bounces(ctx, s)
	if err == nil && why != "" {
		err = rejected("%s %s", s.to.text(), why)
	}
	return err
}

// Inspect tells what a payload does, from its bytes alone: a payment of XRP, or
// nothing at all. Whatever else it might do, and any byte that was not looked at,
// is refused with ErrRejected. The key must be the account's own: regular keys and
// lists of signers are not used here.
func (c *Client) Inspect(payload []byte) (chain.Unsigned, error) {
	b, err := decode(payload)
	if err != nil || b.signature != nil {
		return chain.Unsigned{}, rejected("not an unsigned payment of XRP in its canonical form")
	}
	return c.inspect(b, payload)
}

func (c *Client) inspect(b *body, payload []byte) (chain.Unsigned, error) {
	switch {
	case accountOf(b.key) != b.account:
		return chain.Unsigned{}, rejected("the signing key is not the account's own")
	case b.flags&^flagCanonical != 0:
		return chain.Unsigned{}, rejected("it has flags that are not used here")
	case b.sequence == 0 || b.lastLedger == 0 || b.fee == 0:
		return chain.Unsigned{}, rejected("it has no sequence, no last ledger or no fee")
	case b.networkID != 0 && b.networkID != c.o.NetworkID || b.networkID == 0 && c.o.NetworkID > 1024:
		return chain.Unsigned{}, rejected("it is for another network")
	case b.kind == typePayment && (b.amount == 0 || b.account == b.dest):
		return chain.Unsigned{}, rejected("it pays nothing, or its own sender")
	case b.kind == typeAccountSet && b.tag != nil:
		return chain.Unsigned{}, rejected("it has a tag and pays nobody")
	}
	cost, err := c.units(b.fee, ledger.Up)
	if err != nil {
		return chain.Unsigned{}, rejected("its fee: %v", err)
	}
	from := b.account.text()
	u := chain.Unsigned{
		Network: c.o.Network, Payload: payload, Spends: []string{slot(from, int64(b.sequence))}, MaxCost: cost,
		Digests: []chain.Digest{{Hash: half(prefixSign, payload), From: from}},
	}
	if b.tag != nil {
		u.Memo = strconv.FormatUint(uint64(*b.tag), 10)
	}
	if b.kind == typePayment {
		amount, err := c.units(b.amount, ledger.Down)
		if err != nil {
			return chain.Unsigned{}, rejected("its amount: %v", err)
		}
		u.Outputs = []chain.Output{{To: b.dest.text(), Currency: c.native.Code, Amount: amount}}
	}
	return u, nil
}

// units converts drops, which are at most maxDrops.
func (c *Client) units(drops uint64, r ledger.Rounding) (ledger.Amount, error) {
	return c.native.Units(coins(int64(drops)), r) //nolint:gosec // bounded where it was read
}

// Assemble puts the signature in, and checks that it is the sender's: 65 bytes of
// secp256k1 in low-s form over the digest, or 64 of Ed25519, which the ledger wants
// over the bytes that the digest is of.
func (c *Client) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	seen, err := c.Inspect(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	b, err := decode(u.Payload)
	if err != nil || len(sigs) != 1 {
		return chain.Signed{}, errors.New("xrp: one signature is required")
	}
	if b.signature, err = signature(sigs[0], b.key); err != nil {
		return chain.Signed{}, err
	}
	if !b.signedWell(u.Payload) {
		return chain.Signed{}, fmt.Errorf("xrp: the signature is not by the key of %s", seen.Digests[0].From)
	}
	raw := b.encode()
	id := half(prefixID, raw)
	return chain.Signed{Tx: hex.EncodeToString(id[:]), Raw: raw}, nil
}

// signature is how the ledger writes one: DER of secp256k1, as it is of Ed25519.
func signature(s chain.Signature, key []byte) ([]byte, error) {
	if key[0] == ed25519Prefix {
		if len(s) != ed25519.SignatureSize {
			return nil, errors.New("xrp: one signature of 64 bytes is required for an Ed25519 key")
		}
		return append([]byte{}, s...), nil
	}
	var r, low secp256k1.ModNScalar
	if len(s) != 65 || s[64] > 1 || r.SetByteSlice(s[:32]) || low.SetByteSlice(s[32:64]) || r.IsZero() || low.IsZero() || low.IsOverHalfOrder() {
		return nil, errors.New("xrp: one signature of 65 bytes in low-s form is required, r‖s‖v with v 0 or 1")
	}
	return ecdsa.NewSignature(&r, &low).Serialize(), nil
}

// signedWell reports whether the signature in b is of the payload by b's key.
func (b *body) signedWell(payload []byte) bool {
	if b.key[0] == ed25519Prefix {
		return ed25519.Verify(b.key[1:], append(append([]byte{}, prefixSign...), payload...), b.signature)
	}
	key, err := secp256k1.ParsePubKey(b.key)
	if err != nil {
		return false
	}
	s, err := ecdsa.ParseDERSignature(b.signature)
	digest := half(prefixSign, payload)
	return err == nil && s.Verify(digest[:], key)
}
