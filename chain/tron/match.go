package tron

import (
	"encoding/hex"
	"fmt"
	"math/big"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// transfers makes the transfers of one block.
func (c *Client) transfers(r *reading, w chain.Watch) error {
	for i := range r.txs {
		t := &r.txs[i]
		from := len(r.out)
		x := r.infos[t.id]
		c.direct(r, i, w)
		c.tokenTransfers(r, i, x, w)
		if !c.o.NoInternal {
			c.inner(r, i, x, w)
		}
		if len(r.out) == from {
			continue
		}
		if ok, err := r.executed(i, x); err != nil {
			return err
		} else if !ok {
			r.out = r.out[:from]
		}
	}
	return nil
}

// executed reports whether a transaction did what it says. Block and receipt
// must agree, and the id must be that of the bytes that were read.
func (r *reading) executed(i int, x *info) (bool, error) {
	t, b := &r.txs[i], &r.bodies[i]
	raw := make([]byte, len(t.raw)/2)
	transport.Unhex(raw, t.raw)
	if digest(raw) != t.id {
		return false, fmt.Errorf("%w: transaction %x of block %s is not what its id says", chain.ErrNode, t.id, r.Hash)
	}
	done := t.ret == resultDone
	received := !x.failed && (x.ret == resultDone || x.ret == resultNone && b.kind != kindTrigger && b.kind != kindCreate)
	if done != received && (t.ret == resultDone || x.ret == resultDone) {
		return false, fmt.Errorf("%w: block and receipt contradict each other on transaction %x", chain.ErrNode, t.id)
	}
	return done && received, nil
}

// direct reports what a transaction itself moves: TRX, or a TRC-10 token.
func (c *Client) direct(r *reading, i int, w chain.Watch) {
	b := &r.bodies[i]
	if b.contracts != 1 || b.kind != kindTransfer && b.kind != kindAsset || b.amount <= 0 {
		return
	}
	to, ok := accountFrom(b.to)
	from, known := accountFrom(b.owner)
	if !ok || !known {
		return
	}
	if address := to.text(); w.Contains(address) {
		x := r.transfer(i, -1, from, address)
		if x.Amount = decimal.NewFromInt(b.amount); b.kind == kindTransfer {
			x.Currency, x.Amount = c.native.Code, coins(big.NewInt(b.amount), c.native.Decimals)
		} else {
			x.Contract = "TRC10/" + string(b.asset)
		}
		r.out = append(r.out, x)
	}
}

// tokenTransfers reports what contracts logged.
func (c *Client) tokenTransfers(r *reading, i int, info *info, w chain.Watch) {
	for ordinal := range info.logs {
		l := &info.logs[ordinal]
		if !l.transfer() {
			continue
		}
		address := l.to().text()
		if !w.Contains(address) {
			continue
		}
		x := r.transfer(i, ordinal, l.from(), address)
		amount := new(big.Int).SetBytes(l.word[:])
		if cur := c.tokens[l.contract]; cur != nil {
			x.Currency, x.Contract, x.Amount = cur.Code, cur.Contract, coins(amount, cur.Decimals)
		} else {
			x.Contract, x.Amount = string(l.contract.text()), coins(amount, 0)
		}
		r.out = append(r.out, x)
	}
}

// inner reports TRX that came by calls of contracts, as far as the node saves
// them.
func (c *Client) inner(r *reading, i int, info *info, w chain.Watch) {
	n := 0
	for j := range info.internal {
		in := &info.internal[j]
		if in.rejected || in.sun <= 0 || in.from == in.to {
			continue
		}
		if address := in.to.text(); w.Contains(address) {
			x := r.transfer(i, -2-n, in.from, address)
			x.Currency, x.Amount = c.native.Code, coins(big.NewInt(in.sun), c.native.Decimals)
			r.out = append(r.out, x)
		}
		n++
	}
}

func (r *reading) transfer(i, ordinal int, from account, to chain.Address) chain.Transfer {
	id := hex.EncodeToString(r.txs[i].id[:])
	return chain.Transfer{Tx: id, Ordinal: ordinal, Block: r.Block, From: from.text(), To: to, Spends: []string{spend(id)}}
}

// spend names the transaction itself: it takes nothing else of its sender's that
// another could take before it. Attempts never share one.
func spend(id string) string { return "tx/" + id }
