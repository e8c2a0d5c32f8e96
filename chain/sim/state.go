package sim

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// The state of the network is one map of texts; every block remembers what it
// changed, from what to what. So any block can be undone and done again, and a
// node that is behind or on another branch reads its own past from the same
// map. The keys:
//
//	b/<asset>/<address>  balance in whole coins, absent = 0; asset "" is the native coin
//	n/<address>          next nonce
//	u/<outpoint>         unspent output: "<address> <amount>"
//	s/<spend>            hash of the transaction that took this nonce or outpoint
//	t/<hash>             height of the block that holds the transaction
//	m/<asset>            brought in from outside, ever
//	f/<asset>            taken by fees, ever
type change struct {
	Before string `json:"b,omitempty"`
	After  string `json:"a,omitempty"`
}

type block struct {
	Height  int64             `json:"height"`
	Hash    string            `json:"hash"`
	Parent  string            `json:"parent"`
	Time    time.Time         `json:"time"`
	Txs     []receipt         `json:"txs,omitempty"`
	Changes map[string]change `json:"changes,omitempty"`
}

// receipt is what a block says of one of its transactions.
type receipt struct {
	Tx       string   `json:"tx"`
	OK       bool     `json:"ok"`       // not reverted
	Executed bool     `json:"executed"` // did what it says
	Cost     string   `json:"cost"`
	Effects  []effect `json:"effects,omitempty"`
}

// effect is value that really moved.
type effect struct {
	Ordinal  int           `json:"ordinal"`
	Asset    string        `json:"asset,omitempty"`
	From     chain.Address `json:"from"`
	To       chain.Address `json:"to"`
	Amount   string        `json:"amount"`
	Internal bool          `json:"internal,omitempty"`
	// Logged is what the contract logged, "" where it is what was moved.
	Logged string `json:"logged,omitempty"`
}

func (b *block) public() chain.Block {
	return chain.Block{Height: b.Height, Hash: b.Hash, Parent: b.Parent, Time: b.Time}
}

func (b *block) receipt(hash string) *receipt {
	for i := range b.Txs {
		if b.Txs[i].Tx == hash {
			return &b.Txs[i]
		}
	}
	return nil
}

func (c *Chain) head() *block { return c.main[len(c.main)-1] }

func (c *Chain) onMain(b *block) bool {
	i := b.Height - c.opt.StartHeight
	return i < int64(len(c.main)) && c.main[i] == b
}

// view is the chain as it stands at some block, on the main branch or off it.
type view struct {
	c      *Chain
	fork   int64    // height of the last block that is on the main branch too
	branch []*block // the blocks above
}

func (c *Chain) view(top *block) view {
	var branch []*block
	for !c.onMain(top) {
		branch = append([]*block{top}, branch...)
		top = c.blocks[top.Parent]
	}
	return view{c: c, fork: top.Height, branch: branch}
}

func (v view) head() *block {
	if n := len(v.branch); n > 0 {
		return v.branch[n-1]
	}
	return v.at(v.fork)
}

// at is the block at a height, nil outside the chain.
func (v view) at(height int64) *block {
	switch {
	case height < v.c.opt.StartHeight || height > v.fork+int64(len(v.branch)):
		return nil
	case height <= v.fork:
		return v.c.main[height-v.c.opt.StartHeight]
	default:
		return v.branch[height-v.fork-1]
	}
}

// get reads a key as of the view's head.
func (v view) get(key string) string {
	for i := len(v.branch) - 1; i >= 0; i-- {
		if ch, ok := v.branch[i].Changes[key]; ok {
			return ch.After
		}
	}
	for h := v.fork + 1; h <= v.c.head().Height; h++ {
		if ch, ok := v.c.main[h-v.c.opt.StartHeight].Changes[key]; ok {
			return ch.Before
		}
	}
	return v.c.kv[key]
}

func (v view) balance(asset string, a chain.Address) decimal.Decimal {
	return amountOf(v.get(balanceKey(asset, a)))
}

func (v view) nonce(a chain.Address) uint64 { return nonceOf(v.get("n/" + string(a))) }

// included finds a transaction in the view, nil where it is in no block.
func (v view) included(hash string) (*block, *receipt) {
	height := v.get("t/" + hash)
	if height == "" {
		return nil, nil
	}
	var h int64
	if _, err := fmt.Sscan(height, &h); err != nil {
		return nil, nil
	}
	b := v.at(h)
	if b == nil {
		return nil, nil
	}
	return b, b.receipt(hash)
}

func balanceKey(asset string, a chain.Address) string { return "b/" + asset + "/" + string(a) }

func amountOf(s string) decimal.Decimal {
	if s == "" {
		return decimal.Zero
	}
	return decimal.RequireFromString(s)
}

func nonceOf(s string) uint64 {
	var n uint64
	if s != "" {
		_, _ = fmt.Sscan(s, &n)
	}
	return n
}

// step collects what one block, or one transaction of it, changes.
type step struct {
	under func(key string) string
	made  map[string]string
}

func newStep(under func(string) string) *step { return &step{under: under, made: map[string]string{}} }

func (s *step) get(key string) string {
	if v, ok := s.made[key]; ok {
		return v
	}
	return s.under(key)
}

func (s *step) set(key, value string) { s.made[key] = value }

func (s *step) add(key string, d decimal.Decimal) {
	sum := amountOf(s.get(key)).Add(d)
	if sum.IsZero() {
		s.set(key, "")
		return
	}
	s.set(key, text(sum))
}

func (s *step) balance(asset string, a chain.Address) decimal.Decimal {
	return amountOf(s.get(balanceKey(asset, a)))
}

func (s *step) move(asset string, from, to chain.Address, d decimal.Decimal) {
	s.add(balanceKey(asset, from), d.Neg())
	s.add(balanceKey(asset, to), d)
}

// mint brings coins in from outside.
func (s *step) mint(asset string, to chain.Address, d decimal.Decimal) {
	s.add("m/"+asset, d)
	s.add(balanceKey(asset, to), d)
}

// burn takes coins out: fees.
func (s *step) burn(asset string, from chain.Address, d decimal.Decimal) {
	s.add("f/"+asset, d)
	s.add(balanceKey(asset, from), d.Neg())
}

// merge puts a transaction's changes into its block's.
func (s *step) merge(t *step) {
	for k, v := range t.made {
		s.made[k] = v
	}
}

// push puts a new block on the head.
func (c *Chain) push(b *block, s *step) {
	b.Changes = make(map[string]change, len(s.made))
	for k, after := range s.made {
		if before := c.kv[k]; before != after {
			b.Changes[k] = change{Before: before, After: after}
		}
	}
	c.blocks[b.Hash] = b
	c.redo(b)
}

func (c *Chain) redo(b *block) {
	for k, ch := range b.Changes {
		c.put(k, ch.After)
	}
	c.main = append(c.main, b)
}

// pop undoes the head.
func (c *Chain) pop() *block {
	b := c.head()
	for k, ch := range b.Changes {
		c.put(k, ch.Before)
	}
	c.main = c.main[:len(c.main)-1]
	return b
}

func (c *Chain) put(key, value string) {
	if value == "" {
		delete(c.kv, key)
		return
	}
	c.kv[key] = value
}

// Audit proves that money is conserved: for every asset, what all addresses
// hold is what was brought in less what fees took; nothing is negative; and on
// UTXO networks an address holds exactly its unspent outputs.
func (c *Chain) Audit() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	held, outputs := map[string]decimal.Decimal{}, map[string]decimal.Decimal{}
	for k, v := range c.kv {
		kind, rest := k[:2], k[2:]
		switch kind {
		case "b/":
			asset, _ := splitLast(rest)
			d := amountOf(v)
			if d.IsNegative() {
				return fmt.Errorf("sim: audit: %s is %s", k, v)
			}
			held[asset] = held[asset].Add(d)
		case "u/":
			a, d := parseOutput(v)
			outputs[string(a)] = outputs[string(a)].Add(d)
		}
	}
	assets := map[string]bool{}
	for k := range c.kv {
		if k[:2] == "m/" || k[:2] == "f/" {
			assets[k[2:]] = true
		}
	}
	for asset := range held {
		assets[asset] = true
	}
	for asset := range assets {
		want := amountOf(c.kv["m/"+asset]).Sub(amountOf(c.kv["f/"+asset]))
		if !held[asset].Equal(want) {
			return fmt.Errorf("sim: audit: of asset %q %s are held, %s were brought in and not taken", asset, text(held[asset]), text(want))
		}
	}
	if c.utxo() {
		return c.auditOutputs(outputs)
	}
	return nil
}

func (c *Chain) auditOutputs(outputs map[string]decimal.Decimal) error {
	addresses := 0
	for k, v := range c.kv {
		if k[:2] != "b/" {
			continue
		}
		addresses++
		if _, a := splitLast(k[2:]); !outputs[a].Equal(amountOf(v)) {
			return fmt.Errorf("sim: audit: %s holds %s, its outputs are %s", a, v, text(outputs[a]))
		}
	}
	if addresses != len(outputs) {
		return errors.New("sim: audit: outputs of an address without a balance")
	}
	return nil
}

// splitLast splits "<asset>/<address>"; assets may contain slashes, addresses not.
func splitLast(s string) (string, string) {
	for i := len(s) - 1; i >= 0; i-- {
		if s[i] == '/' {
			return s[:i], s[i+1:]
		}
	}
	return "", s
}

// orphans lists the blocks of abandoned branches, in a fixed order.
func (c *Chain) orphans() []*block {
	var out []*block
	for _, b := range c.blocks {
		if !c.onMain(b) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b *block) int {
		return cmp.Or(cmp.Compare(a.Height, b.Height), cmp.Compare(a.Hash, b.Hash))
	})
	return out
}
