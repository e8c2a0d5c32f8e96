package cardano

import (
	"context"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/fxamacker/cbor/v2"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// signed reads a signed transaction of ours. An error here is proof: no node takes the bytes
// for this transaction.
func signed(id string, raw []byte) (*tx, error) {
	t, err := readTx(raw)
	if err != nil {
		return nil, rejected("%v", err)
	}
	if t.id != id {
		return nil, rejected("the bytes are those of another transaction")
	}
	if len(t.spends) == 0 || len(t.outputs) == 0 {
		return nil, rejected("it spends or pays nothing")
	}
	var parts []cbor.RawMessage
	var sets map[uint64]cbor.RawMessage
	if reading.Unmarshal(raw, &parts) != nil || reading.Unmarshal(parts[1], &sets) != nil {
		return nil, rejected("it is not signed")
	}
	all, err := elements(sets[0])
	if err != nil || len(all) == 0 {
		return nil, rejected("it is not signed")
	}
	hash, _ := hex.DecodeString(id)
	for _, raw := range all {
		var w wireWitness
		if reading.Unmarshal(raw, &w) != nil || len(w.Key) != ed25519.PublicKeySize || !ed25519.Verify(w.Key, hash, w.Signature) {
			return nil, rejected("a signature is none of it")
		}
	}
	return t, nil
}

// Until is when a signed transaction of ours can land no more; ok is false for what is none.
// Nodes then forget it, and take another in its place that pays no more.
func (c *Client) Until(raw []byte) (at time.Time, ok bool) {
	var parts []cbor.RawMessage
	if reading.Unmarshal(raw, &parts) != nil || len(parts) == 0 {
		return time.Time{}, false
	}
	d, err := readBody(parts[0])
	if err != nil || d.ttl > maxLovelace {
		return time.Time{}, false
	}
	return timeOf(int64(d.ttl)), true //nolint:gosec // checked
}

// Broadcast submits the stored bytes. Whatever the node refuses them for, what counts is
// whether it has this very transaction, in a block or waiting for one: everything else is an
// unknown outcome, also past their time. ErrRejected comes only from what can be seen in the
// bytes themselves.
func (c *Client) Broadcast(ctx context.Context, s chain.Stored) error {
	if s.Network() != string(c.o.Network) {
		return fmt.Errorf("cardano: a transaction of %s cannot be sent on %s", s.Network(), c.o.Network)
	}
	t, err := signed(s.Tx(), s.Raw())
	if err != nil {
		return err
	}
	id, refused := c.node.submit(ctx, s.Raw())
	if refused == nil {
		if id != s.Tx() {
			return fmt.Errorf("%w: it took the transaction and named another", chain.ErrNode)
		}
		return nil
	}
	var said *transport.ReplyError
	if !errors.As(refused, &said) {
		return refused
	}
	if waits, err := c.node.waits(ctx, s.Tx()); err == nil && waits {
		return nil
	}
	by, err := c.node.spenders(ctx, t.spends[:1])
	if err == nil && by[0].err == nil && by[0].tx == s.Tx() {
		return nil
	}
	return refused
}

// Status tells what became of attempts, by what spent their inputs: Included where a block has
// them, Conflicted where one has another transaction with an input of theirs. That the time
// of an attempt is over is Unknown: no node's silence proves that it did not land. So is one
// of which the answers contradict each other, whatever the others are.
func (c *Client) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	head, err := c.node.tip(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]*tx, len(attempts))
	var list []outpoint
	for i, a := range attempts {
		if all[i], err = signed(a.Tx, a.Raw); err != nil {
			all[i] = nil // not understood
			continue
		}
		list = append(list, all[i].spends...)
	}
	by, err := c.node.spenders(ctx, list)
	if err != nil {
		return nil, err
	}
	return follow.Statuses(len(attempts), func(i int) (chain.Status, error) {
		if all[i] == nil {
			return chain.Status{State: chain.Unknown}, nil
		}
		n := len(all[i].spends)
		own := by[:n]
		by = by[n:]
		return c.judge(ctx, head, all[i], own)
	})
}

func (c *Client) judge(ctx context.Context, head chain.Block, t *tx, by []spender) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	for _, s := range by {
		if s.err != nil {
			return unknown, s.err
		}
	}
	var other spender
	own := 0
	for _, s := range by {
		switch {
		case s.tx == "" || s.block.Height > head.Height: // above the view
		case s.tx == t.id:
			own++
			other.block = s.block
		case other.tx == "":
			other = s
		}
	}
	switch {
	case own > 0 && (own < len(by) || other.tx != ""):
		return unknown, fmt.Errorf("%w: it says that %s spent some of its inputs", follow.ErrTorn, t.id)
	case own > 0:
		return placed(head, other.block, chain.Status{State: chain.Included, Executed: true, Cost: ledger.Amount(t.fee)}), nil //nolint:gosec // of ours
	case other.tx != "":
		return placed(head, other.block, chain.Status{State: chain.Conflicted, By: other.tx}), nil
	}
	waits, err := c.node.waits(ctx, t.id)
	if err != nil || !waits {
		return unknown, err
	}
	return chain.Status{State: chain.Pending}, nil
}

func placed(head, b chain.Block, s chain.Status) chain.Status {
	s.Block, s.Confirmations = b, head.Height-b.Height+1
	return s
}
