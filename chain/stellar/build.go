package stellar

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// A payload is the transaction in XDR. Behind the hash of the network's passphrase
// and its own type it makes what is hashed: that is both what is signed and the
// transaction's id.

func (c *Client) digest(payload []byte) [32]byte {
	return sha256.Sum256(append(u32(c.id[:len(c.id):len(c.id)], envelopeTx), payload...))
}

// sending is an intent in the terms of the ledger.
type sending struct {
	from, to account
	memo     string
	amount   int64 // stroops
	all      bool
	cancel   bool
	create   bool // the recipient is not there yet
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
	s := &sending{all: in.All, cancel: in.Purpose == chain.ForCancel, memo: in.Memo}
	var err error
	if s.from, err = c.plain(in.From); err != nil {
		return nil, rejected("sender: %v", err)
	}
	if s.cancel {
		return s, nil
	}
	if s.to, err = c.plain(in.To); err != nil {
		return nil, rejected("recipient: %v", err)
	}
	if s.from == s.to {
		return nil, rejected("an account paying itself")
	}
	if len(s.memo) > maxMemoText || !utf8.ValidString(s.memo) || strings.ContainsRune(s.memo, 0) {
		return nil, rejected("the memo must be text of at most %d bytes, or a number", maxMemoText)
	}
	if s.all {
		return s, nil
	}
	if s.amount, err = c.stroops(in.Amount); err != nil || s.amount <= 0 {
		return nil, rejected("the amount must be positive, and not more than there can be")
	}
	return s, nil
}

// plain reads an account without an id.
func (c *Client) plain(a chain.Address) (account, error) {
	who, id, err := c.own(a)
	if err == nil && id != nil {
		err = errors.New("a muxed account: give the account, and the id as the memo")
	}
	return who, err
}

// stroops converts ledger units.
func (c *Client) stroops(a ledger.Amount) (int64, error) {
	d := c.native.Decimal(a).Shift(int32(c.native.Decimals))
	if !d.IsInteger() || !d.BigInt().IsInt64() {
		return 0, errors.New("stellar: not a whole number of stroops")
	}
	return d.IntPart(), nil
}

// Build makes the unsigned transaction: a payment, the making of an account where
// the recipient is not there yet, or to cancel a BumpSequence that does nothing. A
// memo of digits goes as an id, every other one as text. Each Attempt beyond the
// first bids a quarter more. The error wraps ErrTooDear above the intent's MaxCost
// or Options.MaxFee, ErrShort where the sender would fall below its reserve,
// ErrRejected where the order makes no sense or would fail.
func (c *Client) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	s, err := c.sending(&o.Intent)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if len(o.Coins) > 0 || o.Change != "" {
		return chain.Unsigned{}, rejected("%s has no coins to choose", c.o.Network)
	}
	if o.Fee.Params == nil {
		if o.Fee, err = c.EstimateFee(ctx, o.Intent); err != nil {
			return chain.Unsigned{}, err
		}
	}
	var p price
	if err := json.Unmarshal(o.Fee.Params, &p); err != nil || p.Fee <= 0 || p.Fee > maxFee {
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
	if err := c.afford(ctx, &head, s, fee); err != nil {
		return chain.Unsigned{}, err
	}
	if o.Nonce == 0 || o.Nonce > 1<<62 {
		return chain.Unsigned{}, rejected("%d is no sequence number", o.Nonce)
	}
	b := s.body(int64(o.Nonce), uint32(fee))                          //nolint:gosec // both bounded
	b.until = uint64(head.Time.Unix()) + uint64(c.o.Expiry.Seconds()) //nolint:gosec // after 1970
	return c.Inspect(b.encode())
}

func (s *sending) body(sequence int64, fee uint32) *body {
	b := &body{source: s.from, fee: fee, sequence: sequence, op: opBump, amount: sequence}
	if s.cancel {
		return b
	}
	b.op, b.to, b.amount = opPayment, s.to, s.amount
	if s.create {
		b.op = opCreate
	}
	if id, is := number(s.memo); is {
		b.memoKind, b.id = memoID, id
	} else if s.memo != "" {
		b.memoKind, b.text = memoText, s.memo
	}
	return b
}

// afford checks that the sender keeps its reserve, settles what All means, and
// whether the recipient must be made.
func (c *Client) afford(ctx context.Context, head *ledgerRead, s *sending, fee int64) error {
	h, err := c.account(ctx, s.from)
	if err != nil {
		return err
	}
	free := h.spendable(head)
	if s.all {
		s.amount = free - fee
	}
	need := fee
	if !s.cancel {
		need += s.amount
	}
	if !h.exists || free < need || need < fee || !s.cancel && s.amount <= 0 {
		return fmt.Errorf("%w: %d stroops above its reserve, it needs %d", chain.ErrShort, free, need)
	}
	if s.cancel {
		return nil
	}
	why, err := c.fails(ctx, head, s)
	if err == nil && why != "" {
		err = rejected("%s %s", s.to.text(), why)
	}
	return err
}

// Inspect tells what a payload does, from its bytes alone: a payment of lumens, the
// making of an account, or nothing at all. Whatever else it might do, and any byte
// that was not looked at, is refused with ErrRejected.
func (c *Client) Inspect(payload []byte) (chain.Unsigned, error) {
	b, err := decode(payload)
	if err != nil {
		return chain.Unsigned{}, rejected("not an unsigned payment of lumens in its canonical form")
	}
	_, digits := number(b.text)
	switch {
	case b.sequence <= 0 || b.until == 0 || b.fee == 0:
		return chain.Unsigned{}, rejected("it has no sequence number, no end or no fee")
	case b.memoKind == memoText && (b.text == "" || digits || strings.ContainsRune(b.text, 0)):
		return chain.Unsigned{}, rejected("its memo has another writing")
	case b.op == opBump && (b.amount != b.sequence || b.memoKind != memoNone):
		return chain.Unsigned{}, rejected("it moves the sequence number")
	case b.op != opBump && (b.amount <= 0 || b.source == b.to):
		return chain.Unsigned{}, rejected("it pays nothing, or its own sender")
	}
	cost, err := c.units(int64(b.fee), ledger.Up)
	if err != nil {
		return chain.Unsigned{}, rejected("its fee: %v", err)
	}
	from := b.source.text()
	u := chain.Unsigned{
		Network: c.o.Network, Payload: payload, Spends: []string{slot(from, b.sequence)}, MaxCost: cost,
		Digests: []chain.Digest{{Hash: c.digest(payload), From: from}}, Memo: b.text,
	}
	if b.memoKind == memoID {
		u.Memo = strconv.FormatUint(b.id, 10)
	}
	if b.op != opBump {
		amount, err := c.units(b.amount, ledger.Down)
		if err != nil {
			return chain.Unsigned{}, rejected("its amount: %v", err)
		}
		u.Outputs = []chain.Output{{To: b.to.text(), Currency: c.native.Code, Amount: amount}}
	}
	return u, nil
}

func (c *Client) units(stroops int64, r ledger.Rounding) (ledger.Amount, error) {
	return c.native.Units(coins(stroops), r)
}

// Assemble puts the signature in, and checks that it is the sender's: 64 bytes of
// Ed25519 over the digest.
func (c *Client) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	seen, err := c.Inspect(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(sigs) != 1 || len(sigs[0]) != ed25519.SignatureSize {
		return chain.Signed{}, errors.New("stellar: one signature of 64 bytes is required")
	}
	b, err := decode(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	d := seen.Digests[0].Hash
	if !ed25519.Verify(b.source[:], d[:], sigs[0]) {
		return chain.Signed{}, fmt.Errorf("stellar: the signature is not by the key of %s", seen.Digests[0].From)
	}
	return chain.Signed{Tx: hex.EncodeToString(d[:]), Raw: seal(u.Payload, b.source, sigs[0])}, nil
}
