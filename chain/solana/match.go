package solana

import (
	"context"
	"errors"
	"fmt"
	"math/big"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// match makes the transfers of a block to watched addresses.
func (c *Client) match(ctx context.Context, b *block, w chain.Watch) ([]chain.Transfer, error) {
	var out []chain.Transfer
	var room [32]int
	for i := range b.txs {
		found, err := c.matchOne(ctx, b, i, w, room[:0])
		if err != nil {
			return nil, err
		}
		for _, x := range found {
			x.Block = b.Block
			out = append(out, x)
		}
	}
	return out, nil
}

// paid is whom a transaction may have paid.
type paid struct {
	rich   []int          // accounts with more lamports than before
	all    int            // how many accounts it has
	tokens []tokenBalance // token accounts of watched owners
}

// matchOne makes the transfers of one transaction of a block. A transaction of a version
// that is not known here is judged by its balances, and passed where that cannot be
// done: whatever is in it, the block is read.
func (c *Client) matchOne(ctx context.Context, b *block, i int, w chain.Watch, room []int) ([]chain.Transfer, error) {
	t := &b.txs[i]
	switch {
	case t.none || t.lacks && !t.later:
		return nil, fmt.Errorf("%w: block %s without what its transactions did: the node keeps no history, or not yet of this block", chain.ErrNode, b.Hash)
	case t.lacks:
		c.pass(b, i, "its outcome or balances are missing")
		return nil, nil
	case t.failed:
		return nil, nil
	}
	p, err := c.paid(t, w, room)
	switch {
	case err != nil && t.later:
		c.pass(b, i, err.Error())
		return nil, nil
	case err != nil:
		return nil, err
	case len(p.rich) == 0 && len(p.tokens) == 0:
		return nil, nil
	case t.later:
		return c.byBalances(ctx, b, i, p, w)
	case len(t.raw) == 0:
		return c.alone(ctx, b, i, p, w)
	}
	found, err := c.transfers(t, p, w)
	if errors.Is(err, errVersion) {
		return c.byBalances(ctx, b, i, p, w)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: a transaction of block %s: %w", chain.ErrNode, b.Hash, err)
	}
	return found, nil
}

func (c *Client) paid(t *blockTx, w chain.Watch, room []int) (p paid, err error) {
	if p.rich, p.all, err = gained(t.pre, t.post, room); err == nil {
		p.tokens, err = c.paidTokens(t, w)
	}
	return p, err
}

// paidTokens lists the token accounts of watched owners.
func (c *Client) paidTokens(t *blockTx, w chain.Watch) ([]tokenBalance, error) {
	if len(t.tokens) < 3 {
		return nil, nil // an empty list, as of most transactions
	}
	all, err := tokenBalances(t.tokens)
	if err != nil {
		return nil, err
	}
	n := 0
	for _, b := range all {
		if b.owner != "" && w.Contains(chain.Address(b.owner)) {
			all[n] = b
			n++
		}
	}
	return all[:n], nil
}

// transfers makes those of one transaction, which it reads.
func (c *Client) transfers(t *blockTx, p paid, w chain.Watch) ([]chain.Transfer, error) {
	e, err := effectOf(t)
	if err != nil {
		return nil, err
	}
	if p.all != len(e.accounts) {
		return nil, fmt.Errorf("balances of %d accounts where it has %d", p.all, len(e.accounts))
	}
	var out []chain.Transfer
	for _, i := range p.rich {
		if a := e.accounts[i].text(); w.Contains(a) {
			if err := e.complete(); err != nil {
				return nil, err
			}
			out = append(out, c.coins(e, i, a)...)
		}
	}
	if len(p.tokens) == 0 {
		return out, nil
	}
	if err := e.complete(); err != nil {
		return nil, err
	}
	before, err := tokenBalances(t.preTokens)
	if err != nil {
		return nil, err
	}
	for _, b := range p.tokens {
		if b.account >= len(e.accounts) {
			return nil, errWire
		}
		out = append(out, c.tokensOf(e, b, before)...)
	}
	return out, nil
}

// coins are the transfers of lamports to an account that gained some. Where the
// instructions account for all of it, each is one; else it is one in all, as when a
// program gave up coins of its own.
func (c *Client) coins(e *effect, i int, to chain.Address) []chain.Transfer {
	taken := uint64(0)
	if i == 0 {
		taken = uint64(walkOf(e.t.fee).maybe())
	}
	var out []chain.Transfer
	if !e.unread && explained(e.lamports, i, e.pre[i], e.post[i], taken) {
		for n, m := range e.lamports {
			if m.to == i && m.from != i && m.amount > 0 {
				out = append(out, e.coin(c, -1-n, e.accounts[m.from].text(), to, m.amount))
			}
		}
		return out
	}
	return append(out, e.coin(c, -1-len(e.lamports)-i, e.payer(), to, e.post[i]-e.pre[i]))
}

// explained reports whether movements come to the difference of an account.
func explained(all []movement, account int, pre, post, taken uint64) bool {
	sum := new(big.Int).SetUint64(pre)
	v := new(big.Int)
	found := false
	for _, m := range all {
		if m.to == account {
			sum.Add(sum, v.SetUint64(m.amount))
			found = true
		}
		if m.from == account {
			sum.Sub(sum, v.SetUint64(m.amount))
		}
	}
	sum.Sub(sum, v.SetUint64(taken))
	return found && sum.Cmp(v.SetUint64(post)) == 0
}

func (e *effect) coin(c *Client, ordinal int, from, to chain.Address, amount uint64) chain.Transfer {
	x := e.transfer(ordinal, from, to)
	x.Currency, x.Amount = c.native.Code, whole(amount, c.native.Decimals)
	return x
}

func (e *effect) transfer(ordinal int, from, to chain.Address) chain.Transfer {
	return chain.Transfer{Tx: e.id, Ordinal: ordinal, From: from, To: to, Memo: e.memo, Spends: e.spends, Unproven: e.unread}
}

// payer is who paid for the transaction, "" where it is not known.
func (e *effect) payer() chain.Address {
	if len(e.accounts) == 0 {
		return ""
	}
	return e.accounts[0].text()
}

func whole(amount uint64, decimals uint8) decimal.Decimal {
	return decimal.NewFromBigInt(new(big.Int).SetUint64(amount), -int32(decimals))
}

// tokensOf are the transfers of tokens to a token account of a watched owner. They are
// proven where it is the account that belongs to owner, program and mint.
func (c *Client) tokensOf(e *effect, b tokenBalance, before []tokenBalance) []chain.Transfer {
	owner, ok := parseKey(b.owner)
	mint, fits := parseKey(b.mint)
	program, known := parseKey(b.program)
	had, same := uint64(0), true
	for _, p := range before {
		if p.account == b.account {
			if same = p.owner == b.owner && p.mint == b.mint; same {
				had = p.amount
			}
		}
	}
	if b.amount <= had {
		return nil
	}
	t := c.tokens[mint]
	if !fits || t != nil && known && t.program() != program {
		t = nil // it is not what the Registry means
	}
	proven := !e.unread && ok && fits && known && e.accounts[b.account] == associated(owner, program, mint)
	one := func(ordinal int, from chain.Address, amount uint64) chain.Transfer {
		x := e.transfer(ordinal, from, chain.Address(b.owner))
		x.Contract, x.Amount, x.Unproven = b.mint, whole(amount, 0), !proven
		if t != nil {
			x.Currency, x.Amount = t.Code, whole(amount, t.Decimals)
		}
		return x
	}
	if same && !e.unread && explained(e.moved, b.account, had, b.amount, 0) {
		var out []chain.Transfer
		for n, m := range e.moved {
			if m.to == b.account && m.from != m.to && m.amount > 0 {
				out = append(out, one(n, e.ownerOf(m.from, before), m.amount))
			}
		}
		return out
	}
	return []chain.Transfer{one(len(e.moved)+b.account, e.payer(), b.amount-had)}
}

// ownerOf is whose tokens an account held; the account itself where that is not told,
// and who paid for the transaction where they were made.
func (e *effect) ownerOf(account int, before []tokenBalance) chain.Address {
	if account < 0 {
		return e.accounts[0].text()
	}
	for _, p := range before {
		if p.account == account && p.owner != "" {
			return chain.Address(p.owner)
		}
	}
	return e.accounts[account].text()
}
