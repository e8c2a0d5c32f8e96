package solana

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	sdk "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/programs/system"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// A payload is a message in the form without versions or, where Options.SendVersion1
// says so, of version 1. It is what is signed.

// deadline marks the height of the block whose hash a transaction carries, from which
// its time is counted: it stands in the limit on the size of loaded accounts, where
// everything above 64 MiB means the same to the network. So whoever has the bytes knows
// when they are dead, and the chain itself confirms it: at that height is that hash.
const deadline = 1 << 31

// Build makes the unsigned transaction on the newest finalized blockhash: a transfer of
// lamports, or of tokens between associated token accounts, of which the recipient's is
// opened where it is missing. Every Build is another transaction, and none takes the
// place of another. The error wraps ErrTooDear above the intent's MaxCost or
// Options.MaxFee; ErrShort where the sender, or who pays the network, has too little or
// would be left with less than an account must hold; ErrRejected where the order makes
// no sense, an account is frozen, the recipient is no wallet, or a recipient who has
// nothing yet would get less than an account must hold.
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
	if err := json.Unmarshal(o.Fee.Params, &p); err != nil || p.Unit < 0 || p.Unit > maxPrice {
		return chain.Unsigned{}, fmt.Errorf("%w: the fee is not one of EstimateFee's", chain.ErrRejected)
	}
	v, err := c.view(ctx)
	if err != nil {
		return chain.Unsigned{}, err
	}
	s.salt, s.version1 = saltOf(&o), c.o.SendVersion1
	fee := c.network(s.signers(), priority(s.units(), p.Unit))
	if err := c.afford(ctx, s, fee); err != nil {
		return chain.Unsigned{}, err
	}
	payload, err := s.message(p.Unit, &v.final)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if err := c.sameFee(ctx, payload, fee); err != nil {
		return chain.Unsigned{}, err
	}
	u, err := c.Inspect(payload)
	if err != nil {
		return chain.Unsigned{}, err
	}
	if s.token != nil {
		fee += rent(s.token.program())
	}
	if fee > c.o.MaxFee {
		return chain.Unsigned{}, c.tooDear(fee)
	}
	if limit := o.Intent.MaxCost; limit > 0 && u.MaxCost > limit {
		return chain.Unsigned{}, &chain.DearError{Need: u.MaxCost, Most: limit}
	}
	return u, nil
}

// sameFee asks the node what the message costs: what leaves an account empty must be
// right to the lamport.
func (c *Client) sameFee(ctx context.Context, payload []byte, fee int64) error {
	var answer struct {
		Value *int64 `json:"value"`
	}
	err := c.node.ask(ctx, &answer, "getFeeForMessage", base64.StdEncoding.EncodeToString(payload), object{"commitment": confirmed})
	switch {
	case err != nil:
		return err
	case answer.Value == nil:
		return fmt.Errorf("%w: it does not know the blockhash that it gave", chain.ErrNode)
	case *answer.Value != fee:
		return fmt.Errorf("%w: the network takes %d lamports where %d are expected: set Options.SignatureFee", chain.ErrNode, *answer.Value, fee)
	}
	return nil
}

// afford checks the balances and settles what All means.
func (c *Client) afford(ctx context.Context, s *sending, fee int64) error {
	ask := []key{s.from, s.to, s.payer}
	if s.token != nil {
		ask = append(ask, s.source(), s.target())
	}
	all, err := c.accounts(ctx, confirmed, ask...)
	if err != nil {
		return err
	}
	from, to, payer, target := &all[0], &all[1], &all[2], (*account)(nil)
	if s.token == nil {
		err = s.affordCoins(from, payer, uint64(fee))
	} else {
		target = &all[4]
		if err = s.affordTokens(&all[3]); err == nil && !target.exists() {
			fee += rent(s.token.program())
		}
		if err == nil {
			err = enough(payer, uint64(fee), "the fee and the recipient's account")
		}
	}
	if err != nil {
		return err
	}
	if why := s.refuses(to, target); why != "" {
		return fmt.Errorf("%w: %s", chain.ErrRejected, why)
	}
	return nil
}

// refuses says why a recipient cannot take the payment, "" where it can. target is its
// token account, nil for coins.
func (s *sending) refuses(to, target *account) string {
	switch {
	case to.exists() && to.owner != systemProgram:
		return fmt.Sprintf("it is an account of program %s, not a wallet", to.owner.text())
	case target == nil && to.lamports < leastBalance && to.lamports+s.amount < leastBalance:
		return fmt.Sprintf("it has no account yet, and %d lamports do not make one: that takes %d", s.amount, leastBalance)
	case target == nil || !target.exists():
		return ""
	}
	got, ok := target.holding(s.token.program())
	switch {
	case !ok && target.owner == systemProgram:
		return "" // somebody sent coins to where the account will be
	case !ok || got.mint != s.token.mint || got.owner != s.to:
		return "it has given its token account away"
	case got.frozen:
		return "the issuer has frozen its token account"
	case got.wantsMemo && s.memo == "":
		return "it takes nothing without a memo"
	}
	return ""
}

// Deliverable looks at the recipient: a wallet, that can hold what it gets, with a
// token account that is not frozen.
func (c *Client) Deliverable(ctx context.Context, currency string, to chain.Address, memo string, a ledger.Amount) error {
	s, err := c.sending(&chain.Intent{Network: c.o.Network, Currency: currency, To: to, Memo: memo, Amount: a}, false)
	if err != nil {
		return &chain.AddressError{Network: c.o.Network, Address: string(to), Reason: err.Error()}
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	ask := []key{s.to}
	if s.token != nil {
		ask = append(ask, s.target())
	}
	all, err := c.accounts(ctx, confirmed, ask...)
	if err != nil {
		return err
	}
	target := (*account)(nil)
	if s.token != nil {
		target = &all[1]
	}
	if why := s.refuses(&all[0], target); why != "" {
		return &chain.AddressError{Network: c.o.Network, Address: string(to), Reason: why}
	}
	return nil
}

// enough checks that what is left of an account is nothing, or what one must hold.
func enough(a *account, need uint64, what string) error {
	if a.lamports < need {
		return fmt.Errorf("%w: it has %d lamports and needs %d for %s", chain.ErrShort, a.lamports, need, what)
	}
	if left := a.lamports - need; left > 0 && left < leastBalance {
		return fmt.Errorf("%w: %d lamports would be left, where an account must hold %d or nothing", chain.ErrShort, left, leastBalance)
	}
	return nil
}

func (s *sending) affordCoins(from, payer *account, fee uint64) error {
	own := fee
	if s.sponsored() {
		own = 0
		if err := enough(payer, fee, "the fee"); err != nil {
			return err
		}
	}
	if s.all {
		if from.lamports <= own {
			return fmt.Errorf("%w: it has %d lamports, not more than the fee of %d", chain.ErrShort, from.lamports, own)
		}
		s.amount = from.lamports - own
	}
	if s.amount > 1<<62 {
		return fmt.Errorf("%w: more lamports than there are", chain.ErrShort)
	}
	return enough(from, s.amount+own, "the amount and the fee")
}

func (s *sending) affordTokens(source *account) error {
	has, ok := source.holding(s.token.program())
	if !ok || has.mint != s.token.mint || has.owner != s.from {
		return fmt.Errorf("%w: it has no %s", chain.ErrShort, s.cur.Code)
	}
	if s.all {
		s.amount = has.amount
	}
	switch {
	case has.frozen:
		return fmt.Errorf("%w: the issuer of %s has frozen the sender's account", chain.ErrRejected, s.cur.Code)
	case has.amount < s.amount || has.amount == 0:
		return fmt.Errorf("%w: it has %s %s", chain.ErrShort, whole(has.amount, s.cur.Decimals), s.cur.Code)
	}
	return nil
}

// message is the transaction, to be signed.
func (s *sending) message(unit int64, at *header) ([]byte, error) {
	blockhash, ok := parseKey(at.blockhash)
	if !ok || at.Height >= deadline {
		return nil, fmt.Errorf("%w: its blockhash is none", chain.ErrNode)
	}
	builder := sdk.NewTransactionBuilder().SetFeePayer(pub(s.payer)).SetRecentBlockHash(sdk.Hash(blockhash))
	until := deadline | uint32(at.Height)
	if !s.version1 {
		for _, x := range s.budget(unit, until) {
			builder.AddInstruction(x)
		}
	}
	for _, x := range s.instructions() {
		builder.AddInstruction(x)
	}
	tx, err := builder.Build()
	if err != nil {
		return nil, fmt.Errorf("%w: building: %w", chain.ErrRejected, err)
	}
	payload, err := tx.Message.MarshalBinary()
	if err != nil || !s.version1 {
		return payload, err
	}
	m, err := readMessage(payload) // the same accounts and instructions, in the other form
	if err != nil {
		return nil, err
	}
	m.config = configOf(priority(s.units(), unit), s.units(), until)
	return m.write1(), nil
}

func pub(k key) sdk.PublicKey { return sdk.PublicKey(k) }

func instruction(program key, data []byte, accounts ...*sdk.AccountMeta) sdk.Instruction {
	return sdk.NewInstruction(pub(program), accounts, data)
}

// The instructions of the budget, by their first byte.
const (
	budgetUnits = 2
	budgetPrice = 3
	budgetSize  = 4
)

func (s *sending) budget(unit int64, until uint32) []sdk.Instruction {
	return []sdk.Instruction{
		instruction(budgetProgram, binary.LittleEndian.AppendUint32([]byte{budgetUnits}, s.units())),
		instruction(budgetProgram, binary.LittleEndian.AppendUint64([]byte{budgetPrice}, uint64(unit))),
		instruction(budgetProgram, binary.LittleEndian.AppendUint32([]byte{budgetSize}, until)),
	}
}

func (s *sending) instructions() (out []sdk.Instruction) {
	if s.token != nil {
		out = append(out, instruction(ataProgram, []byte{ataCreateIdempotent},
			sdk.Meta(pub(s.payer)).SIGNER().WRITE(), sdk.Meta(pub(s.target())).WRITE(), sdk.Meta(pub(s.to)),
			sdk.Meta(pub(s.token.mint)), sdk.Meta(pub(systemProgram)), sdk.Meta(pub(s.token.program()))))
	}
	if s.memo != "" { // just before the transfer, where accounts that want one look for it
		out = append(out, instruction(memoProgram, []byte(s.memo)))
	}
	if s.token == nil {
		return append(out, system.NewTransferInstruction(s.amount, pub(s.from), pub(s.to)).Build())
	}
	data := append(binary.LittleEndian.AppendUint64([]byte{tokTransferChecked}, s.amount), s.cur.Decimals)
	out = append(out, instruction(s.token.program(), data,
		sdk.Meta(pub(s.source())).WRITE(), sdk.Meta(pub(s.token.mint)), sdk.Meta(pub(s.target())).WRITE(), sdk.Meta(pub(s.from)).SIGNER()))
	if s.closes() {
		out = append(out, instruction(s.token.program(), []byte{tokClose},
			sdk.Meta(pub(s.source())).WRITE(), sdk.Meta(pub(s.payer)).WRITE(), sdk.Meta(pub(s.from)).SIGNER()))
	}
	return out
}

// Assemble puts the signatures in, one per signer, and checks each.
func (c *Client) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	seen, err := c.Inspect(u.Payload)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(sigs) != len(seen.Digests) {
		return chain.Signed{}, fmt.Errorf("solana: %d signatures where %d are required", len(sigs), len(seen.Digests))
	}
	var signed []byte
	for i, d := range seen.Digests {
		k, _ := parseKey(string(d.From))
		if len(sigs[i]) != ed25519.SignatureSize || !ed25519.Verify(k[:], u.Payload, sigs[i]) {
			return chain.Signed{}, fmt.Errorf("solana: signature %d is not by the key of %s", i+1, d.From)
		}
		signed = append(signed, sigs[i]...)
	}
	raw := slices.Concat([]byte{byte(len(sigs))}, signed, u.Payload)
	if u.Payload[0] == version1 {
		raw = slices.Concat(u.Payload, signed)
	}
	return chain.Signed{Tx: signatureText(sigs[0]), Raw: raw}, nil
}

var errNotPlain = errors.New("the transaction is no plain transfer of a registered currency as this client builds it")
