package evm

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
	"github.com/shopspring/decimal"
)

// want finds the transactions whose receipts are needed: those that pay a
// watched address directly, those with a Transfer log to one, and those sent by
// an address whose balance is compared.
func (r *reading) want(w chain.Watch, open map[common.Address]bool) {
	byLog := map[common.Hash]bool{}
	for i := range r.logs {
		if l := &r.logs[i]; l.transfer() && w.Contains(checksum(l.to())) {
			byLog[l.tx] = true
		}
	}
	for i := range r.txs {
		t := &r.txs[i]
		pays := t.call && t.value.Sign() > 0 && w.Contains(checksum(t.to))
		if byLog[t.hash] || pays || open[t.from] {
			r.wanted = append(r.wanted, i)
			delete(byLog, t.hash)
		}
	}
	// Some networks leave a system transaction out of the block's list. Its
	// receipt decides: it must be of this block like any other.
	for i := range r.logs {
		if h := r.logs[i].tx; byLog[h] {
			r.wanted = append(r.wanted, len(r.txs))
			r.txs = append(r.txs, blockTx{hash: h, value: new(big.Int), nonce: -1})
			delete(byLog, h)
		}
	}
}

// manyReceipts is how many receipts of one block are asked for one by one at most. All
// of a block are one call; they are longer than a few.
const manyReceipts = 4

// blockReceipts reads the receipts of blocks with many wanted transactions, a call for
// each block. What it does not find, or the node does not answer, is left to readReceipts.
func (c *Client) blockReceipts(ctx context.Context, rs []*reading) error {
	var full []*reading
	var calls []*transport.Call
	for _, r := range rs {
		if len(r.wanted) > manyReceipts && !c.apart.Load() {
			full, calls = append(full, r), append(calls, transport.NewCall("eth_getBlockReceipts", r.hash))
		}
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		if errors.Is(err, transport.ErrTooLong) {
			return nil
		}
		return err
	}
	for n, r := range full {
		var limited *chain.LimitedError
		list, err := receiptsOf(calls[n])
		switch {
		case errors.As(err, &limited):
			return err
		case err != nil:
			if unsupported(err) {
				c.apart.Store(true)
			}
			continue
		}
		place := make(map[common.Hash]int, len(r.wanted))
		for _, i := range r.wanted {
			place[r.txs[i].hash] = i
		}
		for k := range list {
			if i, ok := place[list[k].tx]; ok && list[k].block == r.hash {
				r.receipts[i] = &list[k]
			}
		}
	}
	return nil
}

// readReceipts reads the receipts of all wanted transactions, each of which must
// name the very block.
func (c *Client) readReceipts(ctx context.Context, rs []*reading) error {
	if err := c.blockReceipts(ctx, rs); err != nil {
		return err
	}
	var calls []*transport.Call
	for _, r := range rs {
		for _, i := range r.wanted {
			if r.receipts[i] == nil {
				calls = append(calls, transport.NewCall("eth_getTransactionReceipt", r.txs[i].hash))
			}
		}
	}
	if err := c.inLots(ctx, calls); err != nil {
		return err
	}
	for _, r := range rs {
		for _, i := range r.wanted {
			if r.receipts[i] != nil {
				continue
			}
			k := calls[0]
			calls = calls[1:]
			rec, err := receiptOf(k)
			if err != nil {
				return err
			}
			if rec == nil || rec.block != r.hash || rec.tx != r.txs[i].hash {
				return fmt.Errorf("%w: no receipt for transaction %s in block %s", chain.ErrNode, r.txs[i].hash, r.Hash)
			}
			r.receipts[i] = rec
		}
		if err := r.agree(); err != nil {
			return err
		}
	}
	return nil
}

// agree checks that what the logs told of a wanted transaction its receipt tells
// too.
func (r *reading) agree() error {
	byTx := map[common.Hash]*receipt{}
	for _, rec := range r.receipts {
		byTx[rec.tx] = rec
	}
	for i := range r.logs {
		l := &r.logs[i]
		rec := byTx[l.tx]
		if rec == nil {
			continue
		}
		same := func(o logEntry) bool {
			return o.index == l.index && o.contract == l.contract && o.word == l.word && o.topics == l.topics
		}
		if !rec.ok || !slices.ContainsFunc(rec.logs, same) {
			return fmt.Errorf("%w: logs and receipt of %s contradict each other", chain.ErrNode, l.tx)
		}
	}
	return nil
}

// transfers makes the transfers that transactions themselves prove.
func (c *Client) transfers(r *reading, w chain.Watch) {
	for _, i := range r.wanted {
		t, rec := &r.txs[i], r.receipts[i]
		if !rec.ok {
			continue
		}
		if to := checksum(t.to); t.call && t.value.Sign() > 0 && w.Contains(to) {
			x := r.transfer(t, -1, checksum(t.from), to)
			x.Currency, x.Amount = c.native.Code, coins(t.value, c.native.Decimals)
			r.out = append(r.out, x)
		}
		for ordinal := range rec.logs {
			l := &rec.logs[ordinal]
			if !l.transfer() {
				continue
			}
			to := checksum(l.to())
			if !w.Contains(to) {
				continue
			}
			x := r.transfer(t, ordinal, checksum(l.from()), to)
			x.Contract, x.Amount = string(checksum(l.contract)), coins(l.amount(), 0)
			if c.movesCoin(l) {
				x.Currency, x.Contract, x.Amount = c.native.Code, "", coins(l.amount(), c.native.Decimals)
			} else if cur := c.tokens[l.contract]; cur != nil {
				x.Currency, x.Contract = cur.Code, cur.Contract
				x.Amount = coins(l.amount(), cur.Decimals)
			}
			r.out = append(r.out, x)
		}
	}
}

// movesCoin reports whether a log tells of the network's own coin: see Options.CoinToken.
func (c *Client) movesCoin(l *logEntry) bool {
	return c.coin != (common.Address{}) && l.contract == c.coin
}

func (r *reading) transfer(t *blockTx, ordinal int, from, to chain.Address) chain.Transfer {
	x := chain.Transfer{Tx: t.hash.Hex(), Ordinal: ordinal, Block: r.Block, From: from, To: to}
	if t.nonce >= 0 {
		x.Spends = []string{spend(checksum(t.from), t.nonce)}
	}
	return x
}

// spend names what a transaction takes from its sender: the nonce.
func spend(a chain.Address, nonce int64) string {
	return string(a) + "/" + strconv.FormatInt(nonce, 10)
}

func coins(v *big.Int, decimals uint8) decimal.Decimal {
	return decimal.NewFromBigInt(v, -int32(decimals))
}

// mark reports the deposits of a token at an address as ones that are not to be credited.
func (r *reading) mark(h holder, contradicted bool) {
	for i := range r.out {
		if x := &r.out[i]; common.HexToAddress(x.Contract) == h.contract && common.HexToAddress(string(x.To)) == h.owner {
			x.Unproven, x.Contradicted = true, contradicted
		}
	}
}

// holders are the tokens and addresses of a block's deposits of listed tokens.
func (r *reading) holders() (out []holder) {
	seen := map[holder]bool{}
	for i := range r.out {
		x := &r.out[i]
		if x.Currency == "" || x.Contract == "" {
			continue
		}
		h := holder{common.HexToAddress(x.Contract), common.HexToAddress(string(x.To))}
		if !seen[h] {
			seen[h] = true
			out = append(out, h)
		}
	}
	return out
}

// audit compares the token deposits with the change of balanceOf over their blocks. A
// token that moves more or less than it logs, or does not say, is not to be credited.
func (c *Client) audit(ctx context.Context, rs []*reading) error {
	lists := make([]asked, 0, 2*len(rs))
	for _, r := range rs {
		h := r.holders()
		lists = append(lists, asked{holders: h, block: at(r.parent)}, asked{holders: h, block: at(r.hash)})
	}
	if err := c.holdings(ctx, lists); err != nil {
		return err
	}
	old := map[*reading][]holder{}
	now := []asked{{block: "latest"}}
	for i, r := range rs {
		for _, h := range lists[2*i].holders {
			before, after := lists[2*i].said[h], lists[2*i+1].said[h]
			switch {
			case before.gone || after.gone:
				old[r], now[0].holders = append(old[r], h), append(now[0].holders, h)
			case before.n == nil || after.n == nil || new(big.Int).Sub(after.n, before.n).Cmp(r.logged(h.contract, h.owner)) != 0:
				r.mark(h, true)
			}
		}
	}
	return c.auditOld(ctx, old, now)
}

// auditOld judges deposits of blocks whose state the node no longer has by what their
// addresses hold now. A shortfall proves nothing against the token, as the address may
// have been swept since.
func (c *Client) auditOld(ctx context.Context, old map[*reading][]holder, now []asked) error {
	if err := c.holdings(ctx, now); err != nil {
		return err
	}
	for r, list := range old {
		for _, h := range list {
			switch holds := now[0].said[h]; {
			case holds.gone:
				r.mark(h, false)
			case holds.n == nil:
				r.mark(h, true)
			case holds.n.Cmp(r.logged(h.contract, h.owner)) < 0:
				r.mark(h, false)
			}
		}
	}
	return nil
}

// held is what a token says of a balance: nil where it does not say. gone is true where
// the node has thrown that state away.
func held(k *transport.Call) (n *big.Int, gone bool, err error) {
	switch {
	case stateGone(k.Err):
		return nil, true, nil
	case transport.Replied(k.Err, "revert", "invalid opcode", "out of gas"):
		return nil, false, nil
	case k.Err != nil:
		return nil, false, k.Err
	}
	if n, err = wordOf(k); err != nil {
		return nil, false, nil //nolint:nilerr // no contract any more, or one that answers otherwise
	}
	return n, false, nil
}

// logged is what the block's logs say that an owner got, less what it gave.
func (r *reading) logged(contract, owner common.Address) *big.Int {
	sum := new(big.Int)
	for i := range r.logs {
		l := &r.logs[i]
		if !l.transfer() || l.contract != contract {
			continue
		}
		if l.to() == owner {
			sum.Add(sum, l.amount())
		}
		if l.from() == owner {
			sum.Sub(sum, l.amount())
		}
	}
	return sum
}
