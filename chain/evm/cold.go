package evm

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

var _ chain.ColdFinder = (*Client)(nil)

// maxReturned bounds what came back, in bytes: a transfer is some hundred.
const maxReturned = 64 << 10

// ColdAddress implements chain.ColdSpender: a descriptor is the address itself.
func (c *Client) ColdAddress(descriptor string) (chain.Address, error) {
	a, err := c.ParseAddress(descriptor)
	if err != nil {
		err = fmt.Errorf("%w: %w", chain.ErrRejected, err)
	}
	return a, err
}

// ProposeCold implements chain.ColdSpender. The payload is the transaction without a signature,
// as 0x and hex: 2 and the RLP of EIP-1559, or on Legacy networks the RLP of EIP-155. Its nonce is
// the next one of the address. It may wait for hours until somebody signs it, so the most that it pays
// per gas is up to twice that of EstimateFee: as far as MaxCost, Options.MaxFeePerGas and what
// the address has allow. On Legacy networks the price is paid in full, and is that of EstimateFee.
func (c *Client) ProposeCold(ctx context.Context, descriptor string, o chain.Order) (u chain.Unsigned, tx string, err error) {
	in := o.Intent
	if in.From, err = c.ColdAddress(descriptor); err != nil {
		return u, "", err
	}
	s, err := c.sending(&in, true)
	switch {
	case err != nil:
		return u, "", err
	case s.all || len(o.Coins) > 0:
		return u, "", fmt.Errorf("%w: an amount is required, and no coins", chain.ErrRejected)
	}
	nonce, err := c.coldNonce(ctx, s.from)
	if err != nil {
		return u, "", err
	}
	p, err := c.coldPrice(ctx, s, &in)
	if err != nil {
		return u, "", err
	}
	payload, err := c.payload(s, p, nonce)
	if err != nil {
		return u, "", fmt.Errorf("evm: encoding: %w", err)
	}
	if u, err = c.Inspect(payload); err != nil {
		return u, "", err
	}
	u.Payload = []byte(hexutil.Encode(payload[common.AddressLength:]))
	u.MaxCost, err = c.cost(p.most())
	return u, "", err
}

// coldNonce is the next nonce of an address whose key somebody else has. The error wraps
// errors.ErrUnsupported where a contract is there, and chain.ErrOccupied while a transaction of
// the address waits: one of the two would never land.
func (c *Client) coldNonce(ctx context.Context, a common.Address) (uint64, error) {
	id, code := transport.NewCall("eth_chainId"), transport.NewCall("eth_getCode", a, "latest")
	next, waiting := transport.NewCall("eth_getTransactionCount", a, "latest"), transport.NewCall("eth_getTransactionCount", a, "pending")
	if err := c.node.Do(ctx, id, code, next, waiting); err != nil {
		return 0, err
	}
	if err := c.rightChain(id); err != nil {
		return 0, err
	}
	if code.Err != nil {
		return 0, code.Err
	}
	var there hexutil.Bytes
	if err := json.Unmarshal(code.Out, &there); err != nil {
		return 0, fmt.Errorf("%w: eth_getCode: %w", chain.ErrNode, err)
	}
	// Behind 0xef0100 is the code that the key's owner has chosen (EIP-7702): the key still signs.
	if len(there) > 0 && !bytes.HasPrefix(there, []byte{0xef, 0x01, 0x00}) {
		return 0, fmt.Errorf("evm: the cold address %s is a contract, for which no key signs: %w", checksum(a), errors.ErrUnsupported)
	}
	n, err := quantityOf(next)
	if err != nil {
		return 0, err
	}
	if !n.IsUint64() {
		return 0, fmt.Errorf("%w: nonce %s", chain.ErrNode, n)
	}
	if p, err := quantityOf(waiting); err == nil && p.Cmp(n) > 0 { // not every node knows what waits
		return 0, fmt.Errorf("%w: a transaction of the cold address %s with nonce %s waits: propose again once it is in a block", chain.ErrOccupied, checksum(a), n)
	}
	return n.Uint64(), nil
}

// coldPrice asks for the price of a transfer that an address pays for itself, and gives it room.
func (c *Client) coldPrice(ctx context.Context, s *sending, in *chain.Intent) (*price, error) {
	funds, err := c.holds(ctx, s)
	if err != nil {
		return nil, err
	}
	if funds.Cmp(s.amount) < 0 {
		return nil, fmt.Errorf("%w: the cold address %s has %s %s", chain.ErrShort, checksum(s.from), coins(funds, s.cur.Decimals), s.cur.Code)
	}
	fee, err := c.EstimateFee(ctx, *in)
	if err != nil {
		return nil, err
	}
	var p price
	if err := json.Unmarshal(fee.Params, &p); err != nil {
		return nil, fmt.Errorf("evm: price: %w", err)
	}
	if p.Guess { // it could not be tried
		if p.Gas, err = c.gas(ctx, s); err != nil {
			return nil, err
		}
		p.Guess = false
		if err := c.beyondGas(ctx, s, &p); err != nil {
			return nil, err
		}
	}
	if s.native() {
		funds.Sub(funds, s.amount)
	} else if funds, err = c.holds(ctx, &sending{cur: c.native, from: s.from}); err != nil {
		return nil, err
	}
	most, err := c.cost(p.most())
	if err != nil {
		return nil, err
	}
	if in.MaxCost > 0 && most > in.MaxCost {
		return nil, &chain.DearError{Need: most, Most: in.MaxCost}
	}
	if lacks := new(big.Int).Sub(p.most(), funds); lacks.Sign() > 0 {
		units, err := c.cost(lacks)
		if err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("%w: the cold address pays its own fee of up to %s %s: send at least %s %s more to %s",
			chain.ErrShort, coins(p.most(), 18), c.native.Code, c.native.Decimal(units), c.native.Code, checksum(s.from))
	}
	if !c.o.Legacy {
		p.roomy(c.o.MaxFeePerGas, c.wei(in.MaxCost), funds)
	}
	return &p, nil
}

// wei is an amount of the native coin on chain; nil for 0.
func (c *Client) wei(a ledger.Amount) *big.Int {
	if a == 0 {
		return nil
	}
	return new(big.Int).Mul(big.NewInt(int64(a)), pow10(int64(c.native.Decimals)-int64(c.native.Scale)))
}

// roomy doubles the most per gas, as far as the limits per gas and of the whole, in wei, allow. nil
// is no limit.
func (p *price) roomy(perGas int64, wholes ...*big.Int) {
	most := new(big.Int).Mul(big.NewInt(p.Cap), big.NewInt(2))
	if limit := big.NewInt(perGas); limit.Cmp(most) < 0 {
		most = limit
	}
	for _, whole := range wholes {
		if whole == nil {
			continue
		}
		limit := new(big.Int).Sub(whole, p.beside())
		if limit.Div(limit, new(big.Int).SetUint64(p.Gas)).Cmp(most) < 0 {
			most = limit
		}
	}
	if most.IsInt64() {
		p.Cap = max(p.Cap, most.Int64())
	}
}

// cold reads a payload of ProposeCold back.
func (c *Client) cold(from chain.Address, payload []byte) (owner common.Address, tx *types.Transaction, digest common.Hash, err error) {
	if owner, err = c.own(from); err != nil {
		return owner, nil, digest, err
	}
	raw, err := hexutil.Decode(string(payload))
	if err != nil {
		return owner, nil, digest, fmt.Errorf("%w: the proposal is not in hex: %w", chain.ErrRejected, err)
	}
	whole := append(owner.Bytes(), raw...)
	u, err := c.Inspect(whole)
	if err != nil {
		return owner, nil, digest, err
	}
	_, tx, err = unsigned(whole)
	return owner, tx, u.Digests[0].Hash, err
}

// AcceptCold implements chain.ColdSpender. signed is the signed transaction, in hex or as it is.
func (c *Client) AcceptCold(from chain.Address, payload, signed []byte) (chain.Signed, error) {
	refuse := func(format string, args ...any) (chain.Signed, error) {
		return chain.Signed{}, fmt.Errorf("%w: evm: %w", chain.ErrRejected, fmt.Errorf(format, args...))
	}
	owner, want, digest, err := c.cold(from, payload)
	if err != nil {
		return chain.Signed{}, err
	}
	if len(signed) > maxReturned {
		return refuse("what came back is over %d bytes", maxReturned)
	}
	raw := signed
	if b, err := hex.DecodeString(strings.TrimPrefix(strings.Join(strings.Fields(string(signed)), ""), "0x")); err == nil {
		raw = b
	}
	var got types.Transaction
	if err := got.UnmarshalBinary(raw); err != nil {
		return refuse("what came back is not a signed transaction: %w", err)
	}
	if differs := c.differs(want, &got); differs != "" {
		return refuse("%s", differs)
	}
	by, err := types.Sender(c.signer(), &got)
	switch {
	case err != nil:
		return refuse("its signature: %w", err)
	case by != owner:
		return refuse("it is signed by the key of %s, and the cold address is %s", checksum(by), from)
	case c.signer().Hash(&got) != digest:
		return refuse("it is not the transaction that was proposed")
	}
	if raw, err = got.MarshalBinary(); err != nil {
		return refuse("encoding: %w", err)
	}
	return chain.Signed{Tx: got.Hash().Hex(), Raw: raw}, nil
}

// differs names the first field in which a transaction is not the one that was proposed, "" = none.
func (c *Client) differs(want, got *types.Transaction) string {
	to := func(t *types.Transaction) string {
		if t.To() == nil {
			return "nobody"
		}
		return string(checksum(*t.To()))
	}
	for _, f := range []struct {
		name      string
		want, got any
	}{
		{"type", want.Type(), got.Type()},
		{"chain id", big.NewInt(c.o.ChainID), got.ChainId()},
		{"nonce", want.Nonce(), got.Nonce()},
		{"to", to(want), to(got)},
		{"value", want.Value(), got.Value()},
		{"data", hexutil.Encode(want.Data()), hexutil.Encode(got.Data())},
		{"gas limit", want.Gas(), got.Gas()},
		{"fee cap per gas", want.GasFeeCap(), got.GasFeeCap()},
		{"tip per gas", want.GasTipCap(), got.GasTipCap()},
		{"access list", 0, len(got.AccessList())},
	} {
		if w, g := fmt.Sprint(f.want), fmt.Sprint(f.got); w != g {
			return fmt.Sprintf("its %s is %.200s, proposed was %.200s", f.name, g, w)
		}
	}
	return ""
}

// ShowCold implements chain.ColdFinder. It is what eth_signTransaction and account_signTransaction
// take.
func (c *Client) ShowCold(from chain.Address, payload []byte) ([]byte, error) {
	_, tx, _, err := c.cold(from, payload)
	if err != nil {
		return nil, err
	}
	out := struct {
		Type    hexutil.Uint64 `json:"type"`
		ChainID *hexutil.Big   `json:"chainId"`
		From    string         `json:"from"`
		To      string         `json:"to"`
		Nonce   hexutil.Uint64 `json:"nonce"`
		Value   *hexutil.Big   `json:"value"`
		Input   hexutil.Bytes  `json:"input"`
		Gas     hexutil.Uint64 `json:"gas"`
		Cap     *hexutil.Big   `json:"maxFeePerGas,omitempty"`
		Tip     *hexutil.Big   `json:"maxPriorityFeePerGas,omitempty"`
		Price   *hexutil.Big   `json:"gasPrice,omitempty"`
	}{
		Type: hexutil.Uint64(tx.Type()), ChainID: (*hexutil.Big)(big.NewInt(c.o.ChainID)), From: string(from), To: string(checksum(*tx.To())), Nonce: hexutil.Uint64(tx.Nonce()),
		Value: (*hexutil.Big)(tx.Value()), Input: tx.Data(), Gas: hexutil.Uint64(tx.Gas()),
	}
	if tx.Type() == types.DynamicFeeTxType {
		out.Cap, out.Tip = (*hexutil.Big)(tx.GasFeeCap()), (*hexutil.Big)(tx.GasTipCap())
	} else {
		out.Price = (*hexutil.Big)(tx.GasPrice())
	}
	return json.MarshalIndent(out, "", "  ")
}

// FindCold implements chain.ColdFinder. A transaction is the payload's where its bytes without the
// signature are. Where the nonce was used so long ago that the node has thrown that state away, and it
// has no receipt for hint, the nonce is another's that has no name.
func (c *Client) FindCold(ctx context.Context, from chain.Address, payload []byte, hint string) (string, chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	owner, want, digest, err := c.cold(from, payload)
	if err != nil {
		return "", unknown, err
	}
	v, err := c.view(ctx)
	if err != nil {
		return "", unknown, err
	}
	waits := false
	if hint != "" {
		st, is, err := c.named(ctx, v, owner, digest, hint)
		if err != nil || is && st.State == chain.Included {
			return hint, st, err
		}
		waits = is && st.State == chain.Pending
	}
	t := &sent{want, owner}
	at, err := c.passed(ctx, v, t)
	switch {
	case err != nil:
		return "", unknown, err
	case at.height < 0 && waits:
		return hint, chain.Status{State: chain.Pending}, nil
	case at.height < 0 || !at.exact && hint == "":
		return "", unknown, nil
	case !at.exact:
		return "", chain.Status{State: chain.Conflicted, Confirmations: v.head.Height - at.height + 1}, nil
	}
	st, err := c.taker(ctx, v, t, at.height)
	if err != nil || st.State != chain.Conflicted {
		return "", unknown, err
	}
	took, is, err := c.named(ctx, v, owner, digest, st.By)
	switch {
	case err != nil:
		return "", unknown, err
	case is && took.State == chain.Included:
		return st.By, took, nil
	case is:
		return "", unknown, nil // its receipt is not there yet
	}
	return "", st, nil
}

// named looks at a transaction by its hash. is reports whether it is the one that a digest was
// signed of. It is Pending, Included or Unknown.
func (c *Client) named(ctx context.Context, v view, owner common.Address, digest common.Hash, hash string) (st chain.Status, is bool, err error) {
	st.State = chain.Unknown
	h := common.HexToHash(hash)
	receipt, byHash := transport.NewCall("eth_getTransactionReceipt", h), transport.NewCall("eth_getTransactionByHash", h)
	if err := c.node.Do(ctx, receipt, byHash); err != nil {
		return st, false, err
	}
	if byHash.Err != nil {
		return st, false, byHash.Err
	}
	if transport.Null(byHash.Out) {
		return st, false, nil
	}
	var tx types.Transaction
	if tx.UnmarshalJSON(byHash.Out) != nil {
		return st, false, nil //nolint:nilerr // of a kind that is not proposed here
	}
	if tx.Hash() != h {
		return st, false, fmt.Errorf("%w: it answered with another transaction", chain.ErrNode)
	}
	by, err := types.Sender(c.signer(), &tx)
	if err != nil || by != owner || c.signer().Hash(&tx) != digest {
		return st, false, nil //nolint:nilerr // it is another one
	}
	rec, err := receiptOf(receipt)
	if err != nil {
		return st, true, err
	}
	if rec == nil {
		if mined, err := inBlock(byHash.Out); err != nil || mined {
			return st, true, err
		}
		return chain.Status{State: chain.Pending}, true, nil
	}
	if rec.tx != h {
		return st, true, fmt.Errorf("%w: it answered with another receipt", follow.ErrTorn)
	}
	st, err = c.included(ctx, v, &sent{&tx, by}, rec)
	return st, true, err
}
