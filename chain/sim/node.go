package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Node is one node of the network, with the faults that a test gives it. It
// starts honest. Faults are not part of a Snapshot.
type Node struct {
	calls   int64 // that it was asked
	c       *Chain
	rng     *rand.Rand
	lag     int64
	frozen  string // hash
	lie     int64  // added to the head's height in Tip
	final   int64  // what Tip says of finality, −2 = the truth
	fails   int
	failErr error
	rate    int // per mille of calls
	lose    int
	swallow int
	refuse  int
	refuses error
	empty   bool
	partial bool
	blind   bool // no mempool
	noTrace bool
	wrong   bool
	nonce   int64 // added to what it says of nonces
	forgets map[string]bool
	keeps   int64 // how many blocks back it knows receipts and history; 0 = for ever
}

func (c *Chain) newNode() *Node {
	c.nodes++
	return &Node{
		c: c, final: -2, forgets: map[string]bool{},
		rng: rand.New(rand.NewPCG(c.opt.Seed, seedOf("node", fmt.Sprint(c.nodes)))),
	}
}

// Client is a client of this node. Each has no state of its own.
func (n *Node) Client() chain.Client {
	if n.c.shares() != nil {
		return sharing{&client{n: n}}
	}
	return &client{n: n}
}

// set changes a fault under the chain's lock and returns the node, so that
// faults can be chained.
func (n *Node) set(f func()) *Node {
	n.c.mu.Lock()
	defer n.c.mu.Unlock()
	f()
	return n
}

// Honest takes every fault away.
func (n *Node) Honest() *Node {
	return n.set(func() { *n = Node{c: n.c, rng: n.rng, final: -2, forgets: map[string]bool{}} })
}

// Lag makes the node so many blocks behind.
func (n *Node) Lag(blocks int64) *Node { return n.set(func() { n.lag = max(blocks, 0) }) }

// Freeze keeps the node on the block that it now sees as the head, whatever the
// network does: a stuck node, or one on another branch after a reorg.
func (n *Node) Freeze() *Node { return n.set(func() { n.frozen = n.view().head().Hash }) }

// Thaw ends Freeze.
func (n *Node) Thaw() *Node { return n.set(func() { n.frozen = "" }) }

// LieTip makes Tip say a head that much higher (or lower) than the node has.
func (n *Node) LieTip(by int64) *Node { return n.set(func() { n.lie = by }) }

// LieFinal makes Tip and Status say that this height is final; −2 ends it.
func (n *Node) LieFinal(height int64) *Node { return n.set(func() { n.final = height }) }

// LieEmpty makes the node answer blocks as if they had moved nothing. No client
// can see through that: it is what a second node is for.
func (n *Node) LieEmpty(on bool) *Node { return n.set(func() { n.empty = on }) }

// LieNonce makes Nonce answer that much more (or less).
func (n *Node) LieNonce(by int64) *Node { return n.set(func() { n.nonce = by }) }

// Partial makes the node know blocks but not yet what they moved. A client must
// make an error of it.
func (n *Node) Partial(on bool) *Node { return n.set(func() { n.partial = on }) }

// FailNext makes the next calls fail with err, nil = ErrNode alone.
func (n *Node) FailNext(calls int, err error) *Node {
	return n.set(func() { n.fails, n.failErr = calls, err })
}

// FailRate makes calls fail by chance, perMille of a thousand.
func (n *Node) FailRate(perMille int) *Node { return n.set(func() { n.rate = perMille }) }

// LoseAnswers makes the next broadcasts reach the network and then fail: the
// caller cannot know.
func (n *Node) LoseAnswers(broadcasts int) *Node { return n.set(func() { n.lose = broadcasts }) }

// Swallow makes the node accept the next broadcasts and never relay them.
func (n *Node) Swallow(broadcasts int) *Node { return n.set(func() { n.swallow = broadcasts }) }

// RefuseNext makes the node refuse the next broadcasts with an error of its
// own, without relaying them. It is proof of nothing.
func (n *Node) RefuseNext(broadcasts int, err error) *Node {
	return n.set(func() { n.refuse, n.refuses = broadcasts, err })
}

// Forget makes the node not know transactions that the network has.
func (n *Node) Forget(hashes ...string) *Node {
	return n.set(func() {
		for _, h := range hashes {
			n.forgets[h] = true
		}
	})
}

// Prune makes the node forget receipts and history that are older than so many blocks, as
// nodes do that keep no archive; 0 ends it. It still knows its blocks.
func (n *Node) Prune(blocks int64) *Node { return n.set(func() { n.keeps = max(blocks, 0) }) }

// pruned reports whether a height is too old for this node.
func (n *Node) pruned(v view, height int64) bool {
	return n.keeps > 0 && height <= v.head().Height-n.keeps
}

// Blind makes the node show no mempool.
func (n *Node) Blind(on bool) *Node { return n.set(func() { n.blind = on }) }

// Traces says whether the node can trace inner calls. Without, an internal
// transfer is seen only as a difference of balances of addresses that the watch
// lists as open, and comes as unproven. A node starts with traces.
func (n *Node) Traces(on bool) *Node { return n.set(func() { n.noTrace = !on }) }

// WrongChain makes the node one of another chain.
func (n *Node) WrongChain(on bool) *Node { return n.set(func() { n.wrong = on }) }

var errBroken = errors.New("sim: the connection broke")

// call stands before every answer: what fails, fails here. The chain's lock is
// held.
func (n *Node) call(ctx context.Context) error {
	n.calls++
	if err := ctx.Err(); err != nil {
		return err
	}
	if n.wrong {
		return chain.ErrWrongNet
	}
	if n.fails > 0 {
		n.fails--
		if n.failErr != nil {
			return fmt.Errorf("%w: %w", chain.ErrNode, n.failErr)
		}
		return fmt.Errorf("%w: %w", chain.ErrNode, errBroken)
	}
	if n.rate > 0 && n.rng.IntN(1000) < n.rate {
		return fmt.Errorf("%w: %w", chain.ErrNode, errBroken)
	}
	return nil
}

// view is the chain as this node has it.
func (n *Node) view() view {
	if b := n.c.blocks[n.frozen]; b != nil {
		return n.c.view(b)
	}
	top := max(int64(len(n.c.main))-1-n.lag, 0)
	return n.c.view(n.c.main[top])
}

// finalAt is the final height as the node says it.
func (n *Node) finalAt(head int64) int64 {
	if n.final != -2 {
		return n.final
	}
	return n.c.finalHeight(head)
}

func (c *Chain) finalHeight(head int64) int64 { return c.behind(head, c.opt.Finality) }

func (c *Chain) safeHeight(head int64) int64 { return c.behind(head, c.opt.Finality/2) }

func (c *Chain) behind(head, lag int64) int64 {
	switch {
	case c.opt.Instant:
		return head
	case c.opt.Finality <= 0:
		return -1
	default:
		return max(head-lag, c.opt.StartHeight)
	}
}

// waiting reports whether a transaction is in the mempool as this node sees it:
// what the network has mined above the node's head waits for it still.
func (n *Node) waiting(v view, hash string) bool {
	if n.blind || n.forgets[hash] {
		return false
	}
	if n.c.pool.has[hash] {
		return true
	}
	return n.c.kv["t/"+hash] != "" && v.get("t/"+hash) == ""
}

// mempool lists what waits as this node sees it.
func (n *Node) mempool(v view) []*tx {
	all := n.c.pooled()
	for h := v.fork + 1; h <= n.c.head().Height; h++ {
		for _, r := range n.c.main[h-n.c.opt.StartHeight].Txs {
			all = append(all, n.c.txs[r.Tx])
		}
	}
	return slices.DeleteFunc(all, func(t *tx) bool { return !n.waiting(v, t.Hash) })
}
