package utxo

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// question is one attempt being judged.
type question struct {
	id     string
	own    *tx // nil where the attempt's bytes are not at hand
	spends []string
	cost   ledger.Amount // 0 = not known
	info   *txInfo
}

// Status tells what became of attempts. Included needs the transaction in a
// block of the chain; where another one took the inputs, that one is looked for
// in the blocks since: if it does the same, it is the attempt under another id
// (By), else the attempt is Conflicted. A transaction that only waits in a
// mempool is proof of nothing. An attempt of which the node's answers contradict each
// other is Unknown, whatever the others are. With Options.Pruned one in a block is
// found by its Spends or Raw alone.
func (c *Client) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	tip, err := c.Tip(ctx)
	if err != nil {
		return nil, err
	}
	qs := make([]*question, len(attempts))
	var ids []string
	for i, a := range attempts {
		if qs[i] = c.ask(a); qs[i] != nil {
			ids = append(ids, qs[i].id)
		}
	}
	infos, err := c.lookUp(ctx, ids...)
	if err != nil {
		return nil, err
	}
	var open []*question
	for _, q := range qs {
		if q == nil {
			continue
		}
		if q.info, infos = infos[0], infos[1:]; q.info == nil {
			open = append(open, q)
		}
	}
	taken, err := c.takers(ctx, tip.Head, open)
	if err != nil {
		return nil, err
	}
	return follow.Statuses(len(attempts), func(i int) (chain.Status, error) {
		if qs[i] == nil {
			return chain.Status{State: chain.Unknown}, nil
		}
		return c.judge(ctx, tip.Head, qs[i], taken)
	})
}

// ask reads an attempt; nil: it is not understood.
func (c *Client) ask(a chain.Attempt) *question {
	if !isHash(a.Tx) {
		return nil
	}
	q := &question{id: a.Tx, spends: a.Spends, cost: a.MaxCost}
	if len(a.Raw) > 0 {
		t, err := readTx(a.Raw, c.p.MWEB)
		if err != nil || hexHash(t.id) != a.Tx {
			return nil
		}
		q.own, q.spends = &t, t.spends()
	}
	q.spends = slices.DeleteFunc(slices.Clone(q.spends), func(s string) bool {
		_, err := parseOutpoint(s)
		return err != nil
	})
	return q
}

func (c *Client) judge(ctx context.Context, head chain.Block, q *question, taken map[string]taker) (chain.Status, error) {
	unknown := chain.Status{State: chain.Unknown}
	if q.info != nil && q.info.BlockHash == "" {
		return chain.Status{State: chain.Pending}, nil
	}
	if q.info != nil {
		t, err := c.decode(q.info)
		if err != nil {
			return unknown, err
		}
		if hexHash(t.id) != q.id {
			return unknown, fmt.Errorf("%w: asked for transaction %s, got %s", follow.ErrTorn, q.id, hexHash(t.id))
		}
		b, err := c.blockOf(ctx, q.info.BlockHash)
		if err != nil || b.Height > head.Height {
			return unknown, err // mined while we looked: the next look sees it
		}
		return c.included(ctx, head, b, &t, q)
	}
	for _, s := range q.spends {
		by, ok := taken[s]
		if !ok {
			continue
		}
		id := hexHash(by.tx.id)
		if id != q.id && (q.own == nil || !bytes.Equal(by.tx.effect(), q.own.effect())) {
			return placed(head, by.block, chain.Status{State: chain.Conflicted, By: id}), nil
		}
		st, err := c.included(ctx, head, by.block, by.tx, q)
		if id != q.id {
			st.By = id // its signatures were changed on the way
		}
		return st, err
	}
	return unknown, nil
}

func placed(head, b chain.Block, s chain.Status) chain.Status {
	s.Block, s.Confirmations = b, head.Height-b.Height+1
	return s
}

func (c *Client) included(ctx context.Context, head, b chain.Block, t *tx, q *question) (chain.Status, error) {
	cost := q.cost
	if !c.o.Pruned {
		var err error
		if cost, err = c.cost(ctx, t); err != nil {
			return chain.Status{State: chain.Unknown}, err
		}
	}
	return placed(head, b, chain.Status{State: chain.Included, Executed: true, Cost: cost}), nil
}

// blockOf reads the block of a hash that is on the chain.
func (c *Client) blockOf(ctx context.Context, hash string) (chain.Block, error) {
	if !isHash(hash) {
		return chain.Block{}, fmt.Errorf("%w: it names a block %.80q", follow.ErrTorn, hash)
	}
	k := transport.NewCall("getblockheader", hash, true)
	if err := c.node.Do(ctx, k); err != nil {
		return chain.Block{}, err
	}
	var at struct {
		Height int64 `json:"height"`
	}
	if unknownTx(k.Err) {
		return chain.Block{}, follow.Torn(k.Err) // it named that block itself
	}
	if err := k.Into(&at); err != nil {
		return chain.Block{}, err
	}
	b, err := c.blockAt(ctx, at.Height)
	if err == nil && b.Hash != hash {
		err = fmt.Errorf("%w: block %s is not on its chain", follow.ErrTorn, hash)
	}
	return b, err
}

// cost is what the inputs of a mined transaction have more than its outputs.
func (c *Client) cost(ctx context.Context, t *tx) (ledger.Amount, error) {
	var sum ledger.Amount
	var calls []*transport.Call
	var index []uint32
	for _, s := range t.spends() {
		at, err := parseOutpoint(s)
		if err != nil {
			return 0, err
		}
		calls = append(calls, transport.NewCall("getrawtransaction", at.Hash.String(), 0))
		index = append(index, at.Index)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return 0, err
	}
	for i, k := range calls {
		if noIndex(k.Err) {
			return 0, errNoIndex
		}
		if unknownTx(k.Err) {
			return 0, follow.Torn(k.Err) // of a coin that was spent
		}
		raw, err := bytesOf(k)
		if err != nil {
			return 0, err
		}
		made, err := readTx(raw, c.p.MWEB)
		if err != nil || hexHash(made.id) != calls[i].Params[0] {
			return 0, fmt.Errorf("%w: it does not give transaction %v", follow.ErrTorn, calls[i].Params[0])
		}
		value, ok := made.value(index[i])
		if sum, err = sum.Add(ledger.Amount(value)); err != nil || !ok {
			return 0, fmt.Errorf("%w: %v has no output %d", follow.ErrTorn, calls[i].Params[0], index[i])
		}
	}
	for i := range t.nOut {
		value, _ := t.value(uint32(i))
		sum -= ledger.Amount(value)
	}
	if sum < 0 {
		return 0, fmt.Errorf("%w: transaction %s pays more than it spends", follow.ErrTorn, hexHash(t.id))
	}
	return sum, nil
}

// value is what an output is worth.
func (t *tx) value(index uint32) (int64, bool) {
	r := cursor{b: t.outs}
	for i := range t.nOut {
		if v, _ := r.output(); uint32(i) == index {
			return v, v >= 0 && !r.bad
		}
	}
	return 0, false
}

// Unindexed reports whether the node keeps no index of transactions: Options.Pruned.
func (c *Client) Unindexed() bool { return c.o.Pruned }
