package stellar

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// sent is a signed transaction read back from its bytes.
type sent struct {
	*body
	tx string
}

// signed reads a signed transaction. An error here is proof: no node of this network
// takes these bytes for this transaction.
func (c *Client) signed(tx string, raw []byte) (*sent, error) {
	payload, signature, ok := unseal(raw)
	if !ok {
		return nil, rejected("not a signed payment of lumens")
	}
	d := c.digest(payload)
	if hex.EncodeToString(d[:]) != tx {
		return nil, rejected("the bytes are those of another transaction")
	}
	if _, err := c.Inspect(payload); err != nil {
		return nil, err
	}
	b, err := decode(payload)
	if err != nil || !ed25519.Verify(b.source[:], d[:], signature) {
		return nil, rejected("the signature is not the sender's")
	}
	return &sent{b, tx}, nil
}

// Broadcast submits the stored bytes, without waiting for a ledger. PENDING and
// DUPLICATE are success; every other word of the node's is success where it has this
// very transaction in a ledger, and an unknown outcome otherwise, also past its time.
// ErrRejected comes only from what can be seen in the bytes themselves.
func (c *Client) Broadcast(ctx context.Context, s chain.Stored) error {
	if s.Network() != string(c.o.Network) {
		return fmt.Errorf("stellar: a transaction of %s cannot be sent on %s", s.Network(), c.o.Network)
	}
	t, err := c.signed(s.Tx(), s.Raw())
	if err != nil {
		return err
	}
	if err := c.rightChain(ctx); err != nil {
		return err
	}
	const path = "/transactions_async"
	raw, err := c.node.post(ctx, path, url.Values{"tx": {base64.StdEncoding.EncodeToString(s.Raw())}})
	var problem *replyError
	if err != nil && !errors.As(err, &problem) {
		return err
	}
	var answer struct {
		Status string `json:"tx_status"`
		Hash   string `json:"hash"`
		Error  string `json:"error_result_xdr"`
	}
	if json.Unmarshal(raw, &answer) != nil {
		return fmt.Errorf("%w: %s: its answer is not the JSON expected", chain.ErrNode, path)
	}
	if answer.Hash != "" && answer.Hash != s.Tx() {
		return fmt.Errorf("%w: it took the transaction and named another", chain.ErrNode)
	}
	if answer.Status == "PENDING" || answer.Status == "DUPLICATE" {
		return nil
	}
	if known, _, err := c.find(ctx, t.tx); err == nil && known {
		return nil
	}
	if problem != nil {
		return problem
	}
	return &replyError{Path: path, Title: c.node.Redact(answer.Status), Detail: c.node.Redact(answer.Error)}
}

// found is what Horizon says of a transaction in a ledger. Anybody can wrap one in a
// fee bump: lists then have it under the hash of that, and the fee is another's.
type found struct {
	Hash       string `json:"hash"`
	Ledger     int64  `json:"ledger"`
	Successful bool   `json:"successful"`
	Charged    string `json:"fee_charged"`
	Payer      string `json:"fee_account"`
	Source     string `json:"source_account"`
	Sequence   string `json:"source_account_sequence"`
	Inner      struct {
		Hash string `json:"hash"`
	} `json:"inner_transaction"`
}

// name is the hash of the transaction itself, not of a fee bump around it.
func (f *found) name() string {
	if f.Inner.Hash != "" {
		return f.Inner.Hash
	}
	return f.Hash
}

// cost is what it took from its source, in stroops.
func (f *found) cost() (int64, error) {
	if f.Payer != "" && f.Payer != f.Source {
		return 0, nil
	}
	return strconv.ParseInt(f.Charged, 10, 64)
}

// find asks for a transaction by its hash; known is false where the node has none.
func (c *Client) find(ctx context.Context, tx string) (known bool, f found, err error) {
	err = c.node.ask(ctx, "/transactions/"+tx, &f)
	if missing(err) {
		return false, f, nil
	}
	if err == nil && (f.name() != tx || f.Ledger <= 0) {
		err = fmt.Errorf("%w: it answered with another transaction", follow.ErrTorn)
	}
	return err == nil, f, err
}
