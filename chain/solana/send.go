package solana

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
)

// sent is a signed transaction of ours, read back from its bytes.
type sent struct {
	*payment
	id string
}

// signed reads a signed transaction. An error here is proof: it is none of ours that
// any node of this network takes for this transaction.
func (c *Client) signed(tx string, raw []byte) (*sent, error) {
	reject := func(why string) (*sent, error) { return nil, fmt.Errorf("%w: %s", chain.ErrRejected, why) }
	t, err := readTransaction(raw)
	if err != nil {
		return reject("not a signed transaction")
	}
	for i, s := range t.signatures {
		if !ed25519.Verify(t.keys[i][:], t.message, s) {
			return reject("a signature is not its signer's")
		}
	}
	if signatureText(t.signatures[0]) != tx {
		return reject("the bytes are those of another transaction")
	}
	p, err := c.readPayment(t.message)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", chain.ErrRejected, err)
	}
	return &sent{payment: p, id: tx}, nil
}

// Broadcast sends the stored bytes. The node's words prove nothing: every refusal is
// success where the node has this very transaction, and an unknown outcome otherwise,
// "Blockhash not found" too. ErrRejected comes only from what can be seen in the bytes
// themselves.
func (c *Client) Broadcast(ctx context.Context, s chain.Stored) error {
	if s.Network() != string(c.o.Network) {
		return fmt.Errorf("solana: a transaction of %s cannot be sent on %s", s.Network(), c.o.Network)
	}
	if _, err := c.signed(s.Tx(), s.Raw()); err != nil {
		return err
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	got, err := c.node.text(ctx, "sendTransaction", base64.StdEncoding.EncodeToString(s.Raw()), object{
		"encoding": "base64", "preflightCommitment": confirmed,
	})
	if err == nil {
		if got != s.Tx() {
			err = fmt.Errorf("%w: it took the transaction and named another", chain.ErrNode)
		}
		return err
	}
	if all, e := c.statuses(ctx, c.node, s.Tx()); e == nil && all[0] != nil {
		return nil
	}
	return err
}

// said is what a node says of a signature.
type saidOf struct {
	Slot   int64  `json:"slot"`
	Status string `json:"confirmationStatus"`
}

// statuses asks about signatures; nil for one that the node does not know.
func (c *Client) statuses(ctx context.Context, n *node, ids ...string) ([]*saidOf, error) {
	var answer struct {
		Value []*saidOf `json:"value"`
	}
	if err := n.ask(ctx, &answer, "getSignatureStatuses", ids, object{"searchTransactionHistory": true}); err != nil {
		return nil, err
	}
	if len(answer.Value) != len(ids) {
		return nil, fmt.Errorf("%w: %d signatures were asked for, %d answered", chain.ErrNode, len(ids), len(answer.Value))
	}
	return answer.Value, nil
}
