package tron

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// sent is a signed transaction read back from its bytes.
type sent struct {
	body
	id   [32]byte
	from account
	out  chain.Output
}

// signed reads a signed transaction. An error here is proof: no node of this
// network takes these bytes for this transaction.
func (c *Client) signed(tx string, b []byte) (*sent, error) {
	raw, signature, err := unseal(b)
	if err != nil {
		return nil, fmt.Errorf("%w: not a signed transaction", chain.ErrRejected)
	}
	t := &sent{id: digest(raw)}
	if hex.EncodeToString(t.id[:]) != tx {
		return nil, fmt.Errorf("%w: the bytes are those of another transaction", chain.ErrRejected)
	}
	if t.body, err = decodeBody(raw); err != nil || t.contracts != 1 || !t.canonical(raw) {
		return nil, fmt.Errorf("%w: not a transaction of one contract", chain.ErrRejected)
	}
	var ok bool
	if t.from, ok = accountFrom(t.owner); !ok {
		return nil, fmt.Errorf("%w: it has no sender", chain.ErrRejected)
	}
	if by, err := signedBy(t.id, signature); err != nil || by != t.from {
		return nil, fmt.Errorf("%w: the signature is not the sender's", chain.ErrRejected)
	}
	t.out, err = c.output(&t.body)
	return t, err
}

// Broadcast sends the stored bytes. The node's words prove nothing:
// DUP_TRANSACTION_ERROR is success, as it has them; every other refusal is
// success where the node has this very transaction, and an unknown outcome
// otherwise, TRANSACTION_EXPIRATION_ERROR too. ErrRejected comes only from what
// can be seen in the bytes themselves.
func (c *Client) Broadcast(ctx context.Context, s chain.Stored) error {
	if s.Network() != string(c.o.Network) {
		return fmt.Errorf("tron: a transaction of %s cannot be sent on %s", s.Network(), c.o.Network)
	}
	t, err := c.signed(s.Tx(), s.Raw())
	if err != nil {
		return err
	}
	if err := c.rightChain(ctx); err != nil {
		return err
	}
	var answer struct {
		Result  bool   `json:"result"`
		Code    string `json:"code"`
		TxID    string `json:"txid"`
		Message string `json:"message"`
	}
	const path = "/wallet/broadcasthex"
	if err := c.node.ask(ctx, path, map[string]any{"transaction": hex.EncodeToString(s.Raw())}, &answer); err != nil {
		return err
	}
	switch {
	case answer.Result && answer.TxID == s.Tx():
		return nil
	case answer.Result:
		return fmt.Errorf("%w: it took the transaction and named another", chain.ErrNode)
	case answer.Code == "DUP_TRANSACTION_ERROR":
		return nil
	case answer.Code == "":
		return &replyError{path, "neither a result nor a code"}
	}
	if known, err := c.knows(ctx, t); err == nil && known {
		return nil
	}
	return &replyError{path, c.node.Redact(answer.Code + " " + message(answer.Message))}
}

// message reads what some nodes write as hex.
func message(s string) string {
	if b, err := hex.DecodeString(s); err == nil && len(b) > 0 {
		return string(b)
	}
	return s
}

// knows reports whether the node has the transaction, in a block or waiting.
func (c *Client) knows(ctx context.Context, t *sent) (bool, error) {
	r, err := c.infoOf(ctx, t.id)
	if err != nil || !r.none {
		return err == nil, err
	}
	return c.waits(ctx, t.id)
}

// infoOf reads a transaction's receipt; none where the node has none.
func (c *Client) infoOf(ctx context.Context, id [32]byte) (info, error) {
	raw, err := c.node.post(ctx, "/wallet/gettransactioninfobyid", map[string]any{"value": hex.EncodeToString(id[:])})
	if err != nil {
		return info{}, err
	}
	w := newWalk(raw)
	r := readInfo(w)
	if err := w.End(); err != nil {
		return info{}, err
	}
	if !r.none && r.id != id {
		return info{}, fmt.Errorf("%w: it answered with another receipt", follow.ErrTorn)
	}
	return r, nil
}

// waits reports whether the transaction is in the node's pool. Nodes that cannot
// tell say so, which is no.
func (c *Client) waits(ctx context.Context, id [32]byte) (bool, error) {
	var answer struct {
		TxID string `json:"txID"`
	}
	err := c.node.ask(ctx, "/wallet/gettransactionfrompending", map[string]any{"value": hex.EncodeToString(id[:])}, &answer)
	if err != nil && ctx.Err() == nil {
		return false, nil
	}
	return answer.TxID == hex.EncodeToString(id[:]), err
}
