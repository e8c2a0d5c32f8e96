package sim

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Mine adds n blocks and returns the new height. The first takes what of the
// mempool pays the level, the best paid first.
func (c *Chain) Mine(n int) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	for range n {
		c.mine(c.pooled())
	}
	return c.head().Height
}

// MineOnly adds a block of at most these transactions of the mempool.
func (c *Chain) MineOnly(hashes ...string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	var some []*tx
	for _, t := range c.pooled() {
		if slices.Contains(hashes, t.Hash) {
			some = append(some, t)
		}
	}
	c.mine(some)
	return c.head().Height
}

// mine puts a block of the candidates on the head.
func (c *Chain) mine(candidates []*tx) {
	parent := c.head()
	b := &block{Height: parent.Height + 1, Parent: parent.Hash, Time: c.timeAfter(parent)}
	s := newStep(func(k string) string { return c.kv[k] })
	c.fill(b, s, candidates)
	hashes := make([]string, 0, len(b.Txs))
	for _, r := range b.Txs {
		hashes = append(hashes, r.Tx)
	}
	b.Hash = digestHex("block", b.Parent, strconv.FormatUint(c.next(), 10), strconv.FormatUint(c.rng.Uint64(), 10), strings.Join(hashes, ","))
	c.push(b, s)
	c.sweepPool()
}

// fill executes candidates by price until none of the rest can be.
func (c *Chain) fill(b *block, s *step, candidates []*tx) {
	left := slices.Clone(candidates)
	if c.utxo() {
		left = c.paying(left)
	}
	slices.SortStableFunc(left, func(x, y *tx) int {
		return cmp.Or(cmp.Compare(c.price(&y.body), c.price(&x.body)), cmp.Compare(x.Arrived, y.Arrived))
	})
	for progress := true; progress; {
		progress = false
		var later []*tx
		for _, t := range left {
			if c.opt.BlockSize > 0 && len(b.Txs) >= c.opt.BlockSize {
				return
			}
			if r, ok := c.execute(t, b.Height, s); ok {
				b.Txs = append(b.Txs, r)
				progress = true
				continue
			}
			later = append(later, t)
		}
		left = later
	}
}

// paying are those of the candidates that pay the level, together with all that they
// wait for, and what those wait for.
func (c *Chain) paying(candidates []*tx) []*tx {
	by := make(map[string]*tx, len(candidates))
	for _, t := range candidates {
		by[t.Hash] = t
	}
	pays := map[string]bool{}
	for _, t := range candidates {
		family := c.ancestors(t, by, map[string]bool{})
		var fee decimal.Decimal
		var size int64
		for _, x := range family {
			fee, size = fee.Add(x.body.inputSum()).Sub(x.body.outputSum()), size+bytesOf(&x.body)
		}
		if fee.LessThan(c.cost(size, c.level)) && t.body.Immature == 0 {
			continue
		}
		for _, x := range family {
			pays[x.Hash] = true
		}
	}
	return slices.DeleteFunc(candidates, func(t *tx) bool { return !pays[t.Hash] })
}

// ancestors are a transaction and those of the candidates that it waits for.
func (c *Chain) ancestors(t *tx, by map[string]*tx, seen map[string]bool) []*tx {
	seen[t.Hash] = true
	out := []*tx{t}
	for _, in := range t.body.Inputs {
		parent, _, _ := strings.Cut(in.Outpoint, ":")
		if p := by[parent]; p != nil && !seen[parent] {
			out = append(out, c.ancestors(p, by, seen)...)
		}
	}
	return out
}

func (c *Chain) timeAfter(parent *block) time.Time {
	t := parent.Time.Add(c.opt.BlockTime)
	if now := c.clock(); now.After(t) {
		return now
	}
	return t
}

// Reorg replaces the last depth blocks by as many empty ones and returns the
// height. The transactions of the replaced blocks are in the mempool again, in
// another order, except the dropped ones, which are gone from it. Resend or
// ReviveAll bring those back.
func (c *Chain) Reorg(depth int, drop ...string) (int64, error) {
	return c.ReorgTo(depth, depth, drop...)
}

// ReorgTo is Reorg with another number of new blocks, which may be fewer.
func (c *Chain) ReorgTo(depth, length int, drop ...string) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if depth < 1 || length < 0 || depth >= len(c.main) {
		return 0, fmt.Errorf("%w: %d blocks of %d", ErrDepth, depth, len(c.main)-1)
	}
	waiting := c.setAside()
	back := c.unwind(len(c.main) - depth)
	for range length {
		c.mine(nil)
	}
	rand.New(c.rng).Shuffle(len(back), func(i, j int) { back[i], back[j] = back[j], back[i] })
	for i, h := range back {
		c.txs[h].Arrived = c.seq + 1 + uint64(i)
	}
	c.seq += uint64(len(back))
	back = append(back, waiting...)
	c.readmit(slices.DeleteFunc(back, func(h string) bool { return slices.Contains(drop, h) }))
	return c.head().Height, nil
}

// setAside empties the mempool while the chain below it changes.
func (c *Chain) setAside() []string {
	var out []string
	for _, t := range c.pooled() {
		out = append(out, t.Hash)
	}
	c.pool = newPool()
	return out
}

// unwind pops blocks until keep are left and returns their transactions.
func (c *Chain) unwind(keep int) []string {
	var back []string
	for len(c.main) > keep {
		b := c.pop()
		for i := len(b.Txs) - 1; i >= 0; i-- {
			if c.txs[b.Txs[i].Tx].body.Immature == 0 {
				back = append(back, b.Txs[i].Tx)
			}
		}
	}
	slices.Reverse(back)
	return back
}

// readmit puts transactions of abandoned blocks into the mempool, parents first
// whatever the order.
func (c *Chain) readmit(hashes []string) {
	for progress := true; progress && len(hashes) > 0; {
		progress = false
		var later []string
		for _, h := range hashes {
			if c.admit(c.txs[h], true) != nil {
				later = append(later, h)
				continue
			}
			progress = true
		}
		hashes = later
	}
	c.sweepPool()
}

// Switch makes the branch that ends at a block, by hash, the chain again, as
// when two miners race. Transactions of the abandoned branch return to the
// mempool. ErrDepth where there never was such a block.
func (c *Chain) Switch(head string) (int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.blocks[head]
	if b == nil {
		return 0, fmt.Errorf("%w: no block %s", ErrDepth, head)
	}
	v := c.view(b)
	waiting := c.setAside()
	back := c.unwind(int(v.fork - c.opt.StartHeight + 1))
	for _, x := range v.branch {
		c.redo(x)
	}
	c.readmit(append(back, waiting...))
	return c.head().Height, nil
}

// Resend puts a transaction of anybody's, made at any time, into the mempool
// again. Already there or in a block is success.
func (c *Chain) Resend(hash string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.txs[hash]
	if t == nil {
		return fmt.Errorf("%w: %s", ErrUnknownTx, hash)
	}
	return c.admit(t, false)
}

// ReviveAll sends every transaction ever made again, as anybody who kept the
// bytes can, for ever, in any order. Where two conflict, chance decides which
// stays: miners owe nobody the rules of relay. It returns how many came back.
func (c *Chain) ReviveAll() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	revived := 0
	coin, left := rand.New(c.rng), slices.Clone(c.made)
	coin.Shuffle(len(left), func(i, j int) { left[i], left[j] = left[j], left[i] })
	for progress := true; progress; { // again, as what spends another's output comes after it
		progress = false
		left = slices.DeleteFunc(left, func(h string) bool {
			t := c.txs[h]
			if c.kv["t/"+h] != "" || c.pool.has[h] || t.body.Immature > 0 {
				return true
			}
			if c.admit(t, coin.IntN(2) == 0) != nil {
				return false
			}
			revived++
			progress = true
			return true
		})
	}
	return revived
}

// Drop takes transactions out of the mempool, as nodes do that are full or were
// restarted. Resend and ReviveAll bring them back.
func (c *Chain) Drop(hashes ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, h := range hashes {
		c.evict(h)
	}
}

// Malleate replaces a signed transaction of the mempool by one that does the
// same under another hash, and returns that hash.
func (c *Chain) Malleate(hash string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.txs[hash]
	if t == nil || !c.pool.has[hash] {
		return "", fmt.Errorf("%w: %s is not in the mempool", ErrUnknownTx, hash)
	}
	raw, err := twist(t.Raw)
	if err != nil {
		return "", err
	}
	other, err := newTx(raw, c.next())
	if err != nil {
		return "", err
	}
	c.remember(other)
	return other.Hash, c.admit(other, true)
}

// Mempool lists the hashes of the mempool as they arrived.
func (c *Chain) Mempool() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, t := range c.pooled() {
		out = append(out, t.Hash)
	}
	return out
}

// Transactions lists the hashes of all that was ever made, in order. With ours
// only those that clients have broadcast.
func (c *Chain) Transactions(ours bool) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for _, h := range c.made {
		if !ours || !c.txs[h].outside {
			out = append(out, h)
		}
	}
	return out
}

// Outcome is what became of a transaction on the canonical chain, told by its
// hash alone. Errors: ErrUnknownTx.
func (c *Chain) Outcome(hash string) (chain.Status, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.txs[hash]
	if t == nil {
		return chain.Status{}, fmt.Errorf("%w: %s", ErrUnknownTx, hash)
	}
	return c.status(c.view(c.head()), c.finalHeight(c.head().Height), chain.Attempt{Tx: hash, Spends: t.body.spends()}, false)
}

// Sender is who signed a transaction of an account network; "" where it is unknown, or its
// network has outputs.
func (c *Chain) Sender(hash string) chain.Address {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t := c.txs[hash]; t != nil {
		return t.body.From
	}
	return ""
}

// Transfers lists what really moved on the canonical chain, oldest first, to
// one address, or to all for "".
func (c *Chain) Transfers(to chain.Address) []chain.Transfer {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []chain.Transfer
	account, memo, tagged := c.untag(to)
	for _, b := range c.main {
		for _, x := range c.transfersOf(b) {
			if to == "" || x.To == to || tagged && x.To == account && x.Memo == memo {
				out = append(out, x.Transfer)
			}
		}
	}
	return out
}
