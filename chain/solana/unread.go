package solana

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Transactions in a form that is newer than this client. A node gives their bytes, which
// cannot be read, and what they did, which can. Whose balances those are it tells in
// another answer, for a whole block.
//
// Such a transfer is named by its account's place: -1-place for coins, place for tokens. A
// client that learns to read a version above 1 must go on naming its transfers so, one
// for each account that has more than before: under other names RecoverDeposits would
// find what a person has credited already, and credit it again.

// named is what a transaction names, as the node reads it.
type named struct {
	id       string
	accounts []key // as many as it has balances
	bad      bool  // an account is none
}

// byBalances makes the transfers of a transaction whose bytes cannot be read: what each
// watched account has more than before, none of it proven.
func (c *Client) byBalances(ctx context.Context, b *block, i int, p paid, w chain.Watch) ([]chain.Transfer, error) {
	n, err := c.namesOf(ctx, b, i)
	if err != nil {
		return nil, err
	}
	t := &b.txs[i]
	e := &effect{t: t, id: n.id, unread: true}
	if e.id == "" {
		c.pass(b, i, "the node does not name it")
		return nil, nil
	}
	var out []chain.Transfer
	if n.bad || len(n.accounts) != p.all {
		c.pass(b, i, fmt.Sprintf("the node names %d accounts where %d have balances: its coins are not seen", len(n.accounts), p.all))
	} else {
		e.accounts = n.accounts
		if e.pre, err = lamports(t.pre); err == nil {
			e.post, err = lamports(t.post)
		}
		if err != nil {
			return nil, err
		}
		for _, k := range p.rich {
			if a := e.accounts[k].text(); w.Contains(a) {
				out = append(out, c.coins(e, k, a)...)
			}
		}
	}
	before, err := tokenBalances(t.preTokens)
	if err != nil {
		c.pass(b, i, "its token balances before it cannot be read: its tokens are not seen")
		p.tokens = nil
	}
	for _, k := range p.tokens {
		out = append(out, c.tokensOf(e, k, before)...)
	}
	return out, nil
}

// namesOf is what a transaction of a block names. The node is asked once for a block.
func (c *Client) namesOf(ctx context.Context, b *block, i int) (named, error) {
	if t := &b.txs[i]; len(t.names.accounts) > 0 {
		return t.names, nil
	}
	if b.named == nil {
		again, err := c.names(ctx, b.slot)
		if err != nil {
			return named{}, err
		}
		if again.Hash != b.Hash {
			return named{}, fmt.Errorf("%w: another block in slot %d than %s", follow.ErrTorn, b.slot, b.Hash)
		}
		b.named = []named{}
		for k := range again.txs {
			b.named = append(b.named, again.txs[k].names)
		}
	}
	id := b.txs[i].id
	if id == "" {
		if len(b.named) != len(b.txs) {
			return named{}, fmt.Errorf("%w: block %s with %d transactions, then with %d", follow.ErrTorn, b.Hash, len(b.txs), len(b.named))
		}
		return b.named[i], nil
	}
	for _, n := range b.named {
		if n.id == id {
			return n, nil
		}
	}
	return named{}, fmt.Errorf("%w: block %s without transaction %s, which it gave before", follow.ErrTorn, b.Hash, id)
}

// Codes by which a node refuses the form of a question.
const (
	badRequest = -32600
	noMethod   = -32601
	badParams  = -32602
)

// names reads a block with what its transactions name. A node that does not know
// transactionDetails "accounts" is asked for all of the block, in the form that it has read
// itself: keys, and beside them what tables gave.
func (c *Client) names(ctx context.Context, slot int64) (*block, error) {
	b, err := readBlock(c.node.call(ctx, "getBlock", slot, blockOptions("accounts", confirmed)), slot)
	if !said(err, badRequest, noMethod, badParams) {
		return b, err
	}
	all := blockOptions("full", confirmed)
	all["encoding"] = "json"
	if b, err = readBlock(c.node.call(ctx, "getBlock", slot, all), slot); err != nil {
		return nil, err
	}
	for i := range b.txs {
		t := &b.txs[i]
		if t.loaded == nil {
			continue
		}
		writable, readonly, err := loadedOf(t.loaded)
		t.names.accounts = append(append(t.names.accounts, writable...), readonly...)
		t.names.bad = t.names.bad || err != nil
	}
	return b, nil
}

// alone makes the transfers of a transaction of a block whose whole answer was too long:
// it is asked for by itself where it may have paid somebody. What is too long even so is
// judged by balances.
func (c *Client) alone(ctx context.Context, b *block, i int, p paid, w chain.Watch) ([]chain.Transfer, error) {
	n := &b.txs[i].names
	may := len(p.tokens) > 0 || n.bad || len(n.accounts) != p.all
	for _, k := range p.rich {
		may = may || w.Contains(n.accounts[k].text())
	}
	if !may {
		return nil, nil
	}
	t, slot, err := c.transaction(ctx, n.id)
	switch {
	case errors.Is(err, transport.ErrTooLong):
		return c.byBalances(ctx, b, i, p, w)
	case err != nil:
		return nil, err
	case t == nil || slot != b.slot || len(t.raw) == 0:
		return nil, fmt.Errorf("%w: it names transaction %s in block %s and does not give it", follow.ErrTorn, n.id, b.Hash)
	}
	return c.matchOne(ctx, &block{header: b.header, txs: []blockTx{*t}}, 0, w, nil)
}

// readNamed reads the names of one transaction: an object in place of its bytes, which has
// the keys itself or in its message.
func readNamed(w walk) (n named) {
	var read func(field []byte)
	read = func(field []byte) {
		switch string(field) {
		case "message":
			if w.Peek() == '{' {
				w.Object(read)
				return
			}
			w.Skip()
		case "signatures":
			w.Array(func() {
				if s := w.Text(); n.id == "" {
					n.id = string(s)
				}
			})
		case "accountKeys":
			w.Array(func() {
				k, ok := parseKey(readPubkey(w))
				n.accounts, n.bad = append(n.accounts, k), n.bad || !ok
			})
		default:
			w.Skip()
		}
	}
	w.Object(read)
	return n
}

func readPubkey(w walk) (text string) {
	if w.Peek() == '"' {
		return string(w.Text())
	}
	w.Object(func(field []byte) {
		if string(field) == "pubkey" {
			text = string(w.Text())
			return
		}
		w.Skip()
	})
	return text
}

// pass logs that a transaction of a newer form was passed over, or a part of it.
func (c *Client) pass(b *block, i int, why string) {
	c.o.Log.Warn("transaction_skipped", slog.String("network", string(c.o.Network)), slog.String("block", b.Hash),
		slog.Int("index", i), slog.String("tx", b.txs[i].id), slog.String("reason", why))
}
