package solana

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Transactions in a form that is newer than this client. A node gives their bytes, which
// cannot be read, and what they did, which can. Whose balances those are it tells in
// another answer, for a whole block.

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
	if b.named == nil {
		all, err := readNames(c.node.call(ctx, "getBlock", b.slot, blockOptions("accounts", confirmed)), b)
		if err != nil {
			return named{}, err
		}
		b.named = all
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

// readNames reads the answer to getBlock with the accounts of its transactions.
func readNames(k *transport.Call, b *block) ([]named, error) {
	if k.Err != nil {
		return nil, k.Err
	}
	if k.Null() {
		return nil, fmt.Errorf("%w: it has block %s no more", follow.ErrTorn, b.Hash)
	}
	w := walk{transport.NewWalk(k.Out)}
	all, hash := []named{}, ""
	w.Object(func(field []byte) {
		switch string(field) {
		case "blockhash":
			hash = string(w.Text())
		case "transactions":
			w.Array(func() { all = append(all, readNamed(w)) })
		default:
			w.Skip()
		}
	})
	if err := w.End(); err != nil {
		return nil, follow.Torn(err)
	}
	if hash != b.blockhash {
		return nil, fmt.Errorf("%w: another block in slot %d than %s", follow.ErrTorn, b.slot, b.Hash)
	}
	return all, nil
}

func readNamed(w walk) (n named) {
	w.Object(func(field []byte) {
		if string(field) != "transaction" || w.Peek() != '{' {
			w.Skip()
			return
		}
		w.Object(func(field []byte) {
			switch string(field) {
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
		})
	})
	return n
}

func readPubkey(w walk) (text string) {
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
