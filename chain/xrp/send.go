package xrp

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// sent is a signed transaction read back from its bytes.
type sent struct {
	*body
	id [32]byte
	u  chain.Unsigned
}

func (t *sent) tx() string { return hex.EncodeToString(t.id[:]) }

// signed reads a signed transaction. An error here is proof: no node of this
// network takes these bytes for this transaction.
func (c *Client) signed(tx string, raw []byte) (*sent, error) {
	b, err := decode(raw)
	if err != nil || b.signature == nil {
		return nil, rejected("not a signed payment of XRP")
	}
	t := &sent{body: b, id: half(prefixID, raw)}
	if t.tx() != tx {
		return nil, rejected("the bytes are those of another transaction")
	}
	bare := *b
	bare.signature = nil
	payload := bare.encode()
	if t.u, err = c.inspect(&bare, payload); err != nil {
		return nil, err
	}
	if !b.signedWell(payload) {
		return nil, rejected("the signature is not the sender's")
	}
	return t, nil
}

// Broadcast submits the stored bytes. The node's words prove nothing: whatever its
// preliminary result is, it is success where the node applied, queued or relayed
// the transaction or has this very one, and an unknown outcome otherwise, also past
// LastLedgerSequence. The error wraps ErrOccupied where the node has another one of the
// same Sequence: in a ledger, in the open ledger, or in its queue where this one does not
// pay a quarter more. ErrRejected comes only from what can be seen in the bytes themselves.
func (c *Client) Broadcast(ctx context.Context, s chain.Stored) error {
	if s.Network() != string(c.o.Network) {
		return fmt.Errorf("xrp: a transaction of %s cannot be sent on %s", s.Network(), c.o.Network)
	}
	t, err := c.signed(s.Tx(), s.Raw())
	if err != nil {
		return err
	}
	if err := c.rightChain(ctx); err != nil {
		return err
	}
	var answer struct {
		Result  string `json:"engine_result"`
		Message string `json:"engine_result_message"`
		Applied bool   `json:"applied"`
		Queued  bool   `json:"queued"`
		Relayed bool   `json:"broadcast"`
		Tx      struct {
			Hash string `json:"hash"`
		} `json:"tx_json"`
	}
	if err := c.node.ask(ctx, "submit", params{"tx_blob": strings.ToUpper(hex.EncodeToString(s.Raw()))}, &answer); err != nil {
		return err
	}
	if answer.Tx.Hash != "" && !strings.EqualFold(answer.Tx.Hash, s.Tx()) {
		return fmt.Errorf("%w: it took the transaction and named another", chain.ErrNode)
	}
	if answer.Applied || answer.Queued || answer.Relayed || slices.Contains(taken, answer.Result) {
		return nil
	}
	refused := &replyError{"submit", c.node.Redact(answer.Result), c.node.Redact(answer.Message)}
	if known, r, err := c.find(ctx, t); err == nil && known && r.validated {
		return nil
	}
	switch at, err := c.place(ctx, t); {
	case err == nil && at == waiting:
		return nil
	case err == nil && at == other:
		return fmt.Errorf("%w: %w", chain.ErrOccupied, refused)
	}
	return refused
}

// taken are the results by which a server says that it has the transaction.
var taken = []string{executed, "terQUEUED", "tefALREADY"}

// find asks for a transaction by its hash; known is false where the node has none. One that
// is not validated need not wait: see place.
func (c *Client) find(ctx context.Context, t *sent) (known bool, r txRead, err error) {
	raw, err := c.node.call(ctx, "tx", params{"transaction": strings.ToUpper(t.tx()), "binary": false})
	if said(err, "txnNotFound") {
		return false, txRead{}, nil
	}
	if err != nil {
		return false, txRead{}, err
	}
	w := newWalk(raw)
	r = readTx(w)
	if err := w.End(); err != nil {
		return false, txRead{}, follow.Torn(err)
	}
	if r.id != t.id {
		return false, txRead{}, fmt.Errorf("%w: it answered with another transaction", follow.ErrTorn)
	}
	return true, r, nil
}
