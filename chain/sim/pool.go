package sim

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/shopspring/decimal"
)

// pool is the mempool: at most one transaction per nonce or outpoint.
type pool struct {
	has    map[string]bool   // by hash
	spends map[string]string // nonce or outpoint → hash
}

func newPool() pool { return pool{has: map[string]bool{}, spends: map[string]string{}} }

func (c *Chain) enpool(t *tx) {
	c.pool.has[t.Hash] = true
	for _, s := range t.body.spends() {
		c.pool.spends[s] = t.Hash
	}
}

func (c *Chain) depool(t *tx) {
	delete(c.pool.has, t.Hash)
	for _, s := range t.body.spends() {
		delete(c.pool.spends, s)
	}
}

// evict takes a transaction out of the mempool, and what spends its outputs.
func (c *Chain) evict(hash string) {
	if c.pool.has[hash] {
		for _, h := range c.descendants(hash) {
			c.depool(c.txs[h])
		}
	}
}

// pooled lists the mempool as it arrived.
func (c *Chain) pooled() []*tx {
	out := make([]*tx, 0, len(c.pool.has))
	for h := range c.pool.has {
		out = append(out, c.txs[h])
	}
	slices.SortFunc(out, func(a, b *tx) int { return cmp.Compare(a.Arrived, b.Arrived) })
	return out
}

// admit takes a transaction into the mempool, by the rules that nodes have.
// Known already, in a block or in the mempool, is success. force breaks the
// rules of relay that a miner does not owe: what conflicts gives way, whatever
// it pays, and money may be missing.
func (c *Chain) admit(t *tx, force bool) error {
	if c.kv["t/"+t.Hash] != "" || c.pool.has[t.Hash] {
		return nil
	}
	b := &t.body
	if !c.utxo() && b.Nonce < nonceOf(c.kv["n/"+string(b.From)]) {
		return fmt.Errorf("%w: next %s, transaction has %d", ErrNonceTooLow, c.kv["n/"+string(b.From)], b.Nonce)
	}
	rivals, err := c.rivals(t)
	if err != nil {
		return err
	}
	if !force {
		if err := c.replaces(b, rivals); err != nil {
			return err
		}
	}
	if !force && !t.outside && !c.utxo() {
		if c.view(c.head()).balance("", b.From).LessThan(b.outputSum().Add(c.cost(b.Gas, b.Max))) {
			return ErrInsufficient
		}
	}
	if c.utxo() && b.inputSum().LessThan(b.outputSum()) {
		return ErrInsufficient
	}
	for _, hash := range rivals {
		c.evict(hash)
	}
	c.enpool(t)
	return nil
}

// replaces says why a transaction does not take the place of those in the mempool
// that spend the same: it must outrank each, and on networks that keep outputs pay
// more than all that goes with them.
func (c *Chain) replaces(b *body, rivals []string) error {
	if len(rivals) > 0 && c.opt.FirstSeen {
		return ErrFirstSeen
	}
	var paid decimal.Decimal
	for _, hash := range rivals {
		if !c.outranks(b, &c.txs[hash].body) {
			return ErrUnderpriced
		}
		for _, h := range c.descendants(hash) {
			paid = paid.Add(c.txs[h].body.inputSum()).Sub(c.txs[h].body.outputSum())
		}
	}
	if c.utxo() && len(rivals) > 0 && b.inputSum().Sub(b.outputSum()).LessThanOrEqual(paid) {
		return ErrUnderpriced
	}
	return nil
}

// descendants are a transaction of the mempool and what waits for it.
func (c *Chain) descendants(hash string) []string {
	out := []string{hash}
	for i := 0; i < len(out) && c.utxo(); i++ {
		for n := range c.txs[out[i]].body.Outputs {
			if child := c.pool.spends[fmt.Sprintf("%s:%d", out[i], n)]; child != "" && !slices.Contains(out, child) {
				out = append(out, child)
			}
		}
	}
	return out
}

// rivals lists what of the mempool takes the same nonce or inputs, after a look
// at whether the inputs are there at all.
func (c *Chain) rivals(t *tx) ([]string, error) {
	var out []string
	for i, spend := range t.body.spends() {
		if c.utxo() {
			if by := c.kv["s/"+spend]; by != "" {
				return nil, fmt.Errorf("%w: %s by %s", ErrSpent, spend, by)
			}
			if !t.outside && !c.exists(t.body.Inputs[i]) {
				return nil, fmt.Errorf("%w: %s", ErrMissing, spend)
			}
		}
		if by := c.pool.spends[spend]; by != "" && !slices.Contains(out, by) {
			out = append(out, by)
		}
	}
	return out, nil
}

// exists reports whether an input is an unspent output, of a block or of the
// mempool, and is what the transaction says it is.
func (c *Chain) exists(in input) bool {
	want := outputValue(in.Address, amountOf(in.Amount))
	if c.kv["u/"+in.Outpoint] == want {
		return true
	}
	hash, index, _ := strings.Cut(in.Outpoint, ":")
	if !c.pool.has[hash] {
		return false
	}
	for i, o := range c.txs[hash].body.Outputs {
		if fmt.Sprint(i) == index && outputValue(o.To, amountOf(o.Amount)) == want {
			return true
		}
	}
	return false
}

// sweepPool takes out what was mined, and what can no longer be: its nonce or
// outpoints are taken by a block.
func (c *Chain) sweepPool() {
	all := c.pooled()
	for _, t := range all {
		if c.kv["t/"+t.Hash] != "" {
			c.depool(t) // mined: what spends its outputs stays
		}
	}
	for _, t := range all {
		if _, err := c.rivals(t); err != nil || !c.utxo() && t.body.Nonce < nonceOf(c.kv["n/"+string(t.body.From)]) {
			c.evict(t.Hash)
		}
	}
}
