package incoming

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// How much one Step does at most: a node that flips between branches for ever,
// or a very long way to catch up, must not hold the caller for ever.
const (
	maxPages   = 64
	maxRewinds = 4
)

// read brings the store up to what the node says now.
func (n *Network) read(ctx context.Context) (worked int, err error) {
	// The mempool is read before the tip: what is in neither the mempool nor a
	// block up to that tip is then really in none.
	asked := n.cfg.Now()
	waits, poolErr := n.pending(ctx)
	tip, known, err := n.askTip(ctx)
	if err != nil {
		n.setStuck(err.Error())
		return 0, errors.Join(err, poolErr)
	}
	if waits != nil {
		seen, err := n.seePending(ctx, waits)
		worked += seen
		poolErr = errors.Join(poolErr, err)
	}
	rewinds := 0
	for range maxPages {
		p, err := n.page(ctx, tip)
		worked += p.blocks + p.rows
		if err != nil {
			if !errors.Is(err, ErrHalted) {
				n.setStuck(err.Error())
			}
			return worked, errors.Join(err, poolErr)
		}
		if p.rewound {
			// What was final and is gone is told before it can be final again.
			handled, err := n.deliver(ctx)
			worked += handled
			if rewinds++; err != nil || rewinds > maxRewinds {
				return worked, errors.Join(err, poolErr)
			}
		}
		if p.end {
			break
		}
	}
	// What was paid while nobody looked is found before the time that is read by now
	// ends its payment.
	found, roundErr := n.reconcile(ctx)
	worked += found
	settled, err := n.settle(ctx, tip, known, asked, waits, poolErr == nil && (rewinds == 0 || waits == nil))
	return worked + settled, errors.Join(err, poolErr, roundErr)
}

// askTip reads the tip and refuses one that cannot be. known is what was read
// of the chain before the node was asked: the node must have all of that. What
// another process read meanwhile it need not have had.
func (n *Network) askTip(ctx context.Context) (tip chain.Tip, known Cursor, err error) {
	known, version, err := n.cursor(ctx)
	if err != nil {
		return tip, known, err
	}
	if tip, err = n.cfg.Client.Tip(ctx); err != nil {
		return tip, known, fmt.Errorf("incoming: %s: reading the tip: %w", n.name, err)
	}
	if tip.Head.Hash == "" || tip.Final > tip.Head.Height {
		return tip, known, n.nodeErr("the tip at height %d has no hash, or is below its own final height %d", tip.Head.Height, tip.Final)
	}
	n.setTip(tip)
	switch {
	case known.Halted != "":
		return tip, known, fmt.Errorf("%w: %s: %s", ErrHalted, n.name, known.Halted)
	case version > 0 && tip.Head.Height < known.Head:
		return tip, known, fmt.Errorf("%w: %s: %w: its head is %d, read already %d", ErrStuck, n.name, chain.ErrBehind, tip.Head.Height, known.Head)
	}
	return tip, known, nil
}

func (n *Network) nodeErr(format string, args ...any) error {
	return fmt.Errorf("%w: %s: %s", chain.ErrNode, n.name, fmt.Sprintf(format, args...))
}

// paged is what became of one page.
type paged struct {
	blocks, rows int
	rewound, end bool
}

// page reads the next blocks and commits what they held with the cursor.
func (n *Network) page(ctx context.Context, tip chain.Tip) (paged, error) {
	var p paged
	var halted error
	var depth int64
	err := storage.Decide(ctx, n.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		p, halted, depth = paged{}, nil, 0
		cur, version, err := n.cursor(ctx)
		if err != nil {
			return storage.Change{}, err
		}
		if cur.Halted != "" {
			return storage.Change{}, fmt.Errorf("%w: %s: %s", ErrHalted, n.name, cur.Halted)
		}
		if h, ok := cur.Trail.Height(tip.Head.Hash); ok && h != tip.Head.Height {
			return storage.Change{}, n.nodeErr("it calls block %d %q its head at height %d", h, tip.Head.Hash, tip.Head.Height)
		}
		if p.end = cur.Trail.Ends(tip.Head.Hash); p.end {
			return storage.Change{}, nil
		}
		trail, err := n.blocks(cur.Trail)
		if err != nil {
			return storage.Change{}, err
		}
		scan, err := n.cfg.Client.Scan(ctx, slices.Clone(trail), &view{n: n}, n.cfg.MaxBlocks)
		if errors.Is(err, chain.ErrDeepFork) {
			var c storage.Change
			c, halted, err = n.deepFork(ctx, cur, version, trail, err)
			return c, err
		}
		if err != nil {
			return storage.Change{}, fmt.Errorf("incoming: %s: scanning from %d: %w", n.name, cur.Head, err)
		}
		if err := n.checkScan(cur.Head, trail, tip, scan); err != nil {
			return storage.Change{}, err
		}
		if scan.Rewound > 0 {
			var c storage.Change
			c, halted, err = n.forked(ctx, cur, version, trail, scan.Rewound, tip.Head.Height)
			p.rewound = halted == nil
			depth = int64(scan.Rewound)
			return c, err
		}
		if p.end = len(scan.Blocks) == 0; p.end {
			return storage.Change{}, nil
		}
		return n.record(ctx, cur, version, trail, scan.Blocks, &p)
	})
	if err != nil {
		return paged{}, err
	}
	if depth > 0 {
		n.reorged(depth)
	}
	if halted != nil {
		n.log.Error("network_halted", slog.Any("error", halted))
		return paged{}, halted
	}
	return p, nil
}

// blocks reads the stored trail, or knows it from the last time.
func (n *Network) blocks(t Trail) ([]chain.Block, error) {
	if known := n.trail.Load(); known != nil && known.text == t {
		return known.blocks, nil
	}
	blocks, err := t.Blocks()
	if err == nil {
		n.trail.Store(&trail{t, blocks})
	}
	return blocks, err
}

// trail is one that was read, for ever: nobody changes its blocks.
type trail struct {
	text   Trail
	blocks []chain.Block
}

// follow moves the cursor to the end of these blocks, of which it keeps the last.
func (n *Network) follow(cur *Cursor, blocks []chain.Block) (err error) {
	blocks = slices.Clone(blocks[max(0, len(blocks)-n.cfg.TrailKeep):])
	if cur.Trail, err = NewTrail(blocks); err != nil {
		return err
	}
	n.trail.Store(&trail{cur.Trail, blocks})
	cur.Head, cur.HeadTime = last(blocks).Height, last(blocks).Time
	return nil
}

// record makes the Change of blocks that follow the cursor, which stands at the
// end of a trail.
func (n *Network) record(ctx context.Context, cur Cursor, version int64, trail []chain.Block, blocks []chain.ScannedBlock, p *paged) (storage.Change, error) {
	if version == 0 {
		trail = n.before(ctx, blocks[0].Block)
	}
	var found []chain.Transfer
	for i := range blocks {
		if i > 0 && len(found) >= n.cfg.MaxRows {
			blocks = blocks[:i]
			break
		}
		for _, t := range blocks[i].Transfers {
			t.Block = blocks[i].Block
			found = append(found, t)
		}
	}
	rows, err := n.merge(ctx, found, fromBlocks)
	if err != nil {
		return storage.Change{}, err
	}
	trail = slices.Clip(trail)
	for _, b := range blocks {
		trail = append(trail, b.Block)
	}
	if err := n.follow(&cur, trail); err != nil {
		return storage.Change{}, err
	}
	p.blocks, p.rows = len(blocks), len(rows)
	p.end = false
	return n.telling(n.change("scan", nil, append(rows, Cursors.Row(CursorID, version, time.Time{}, cur))...))
}

// before lists the blocks that lead to the first one, so that a fork just
// after the start finds its ancestor. Empty where the client cannot tell.
func (n *Network) before(ctx context.Context, first chain.Block) []chain.Block {
	loc, ok := n.cfg.Client.(chain.Locator)
	if !ok {
		return nil
	}
	var back []chain.Block
	for next := first; len(back) < n.cfg.TrailKeep-1 && next.Height > 0; next = back[len(back)-1] {
		b, err := loc.BlockAt(ctx, next.Height-1)
		if err != nil || b.Hash == "" || b.Hash != next.Parent {
			break
		}
		back = append(back, b)
	}
	slices.Reverse(back)
	return back
}

// checkScan refuses an answer that does not fit together. Nothing moves then.
func (n *Network) checkScan(head int64, trail []chain.Block, tip chain.Tip, s chain.Scan) error {
	switch {
	case s.Rewound < 0 || s.Rewound > 0 && s.Rewound >= len(trail):
		return n.nodeErr("the client rewound %d of %d blocks", s.Rewound, len(trail))
	case len(s.Blocks) > n.cfg.MaxBlocks:
		return n.nodeErr("the client gave %d blocks where %d were asked", len(s.Blocks), n.cfg.MaxBlocks)
	case len(trail) == 0 && len(s.Blocks) != 1:
		return n.nodeErr("the client started with %d blocks instead of the head alone", len(s.Blocks))
	case len(s.Blocks) == 0 && s.Rewound > 0:
		return fmt.Errorf("%w: %s: it rewound %d blocks and has none instead", chain.ErrBehind, n.name, s.Rewound)
	case len(s.Blocks) == 0 && tip.Head.Height > head:
		return n.nodeErr("no blocks after %d, though the head is %d", head, tip.Head.Height)
	}
	var prev chain.Block
	if left := len(trail) - s.Rewound; left > 0 {
		prev = trail[left-1]
	}
	for i := range s.Blocks {
		b := &s.Blocks[i]
		if b.Hash == "" || prev.Hash != "" && (b.Parent != prev.Hash || b.Height <= prev.Height) {
			return n.nodeErr("block %d %q does not follow block %d %q", b.Height, b.Hash, prev.Height, prev.Hash)
		}
		if err := n.checkTransfers(b); err != nil {
			return err
		}
		prev = b.Block
	}
	return nil
}

func (n *Network) checkTransfers(b *chain.ScannedBlock) error {
	for i := range b.Transfers {
		t := &b.Transfers[i]
		if !validTransfer(t) {
			return n.nodeErr("block %d has a transfer without a proper tx: %.80q", b.Height, t.Tx)
		}
		if t.Block.Hash != "" && t.Block.Hash != b.Hash {
			return n.nodeErr("block %d %q has a transfer of block %q", b.Height, b.Hash, t.Block.Hash)
		}
	}
	return nil
}

func last(trail []chain.Block) chain.Block { return trail[len(trail)-1] }

// changeID digests what a Change puts.
func changeID(kind string, put []storage.Row) string {
	var all []byte
	text := func(s string) { all = append(append(strconv.AppendInt(all, int64(len(s)), 10), ':'), s...) }
	for _, r := range put {
		text(r.Table.Name)
		text(r.ID)
		all = fmt.Appendf(all, "%d %d ", r.Version, storage.Micros(r.Due))
		scalars, err := r.Table.Encode(r.Value)
		for _, x := range scalars {
			if s, ok := x.(string); ok {
				text(s)
				continue
			}
			all = fmt.Appendf(all, "%v,", x)
		}
		all = fmt.Appendf(all, "%v\n", err)
	}
	sum := sha256.Sum256(all)
	return kind + "/" + hex.EncodeToString(sum[:20])
}

// view is the Watch that one call of the client gets: a chain.FewWatch.
type view struct {
	n    *Network
	open atomic.Pointer[[]chain.Address]
}

// Sync reads new addresses, and which ones wait for a native coin.
func (v *view) Sync(ctx context.Context) error {
	v.n.state.Lock()
	open := v.n.open
	v.n.state.Unlock()
	if open != nil {
		list := open(ctx)
		v.open.Store(&list)
	}
	return v.n.cfg.Watched.Sync(ctx)
}

// Contains reports whether a may be watched.
func (v *view) Contains(a chain.Address) bool { return v.n.cfg.Watched.Contains(a) }

// Open lists the addresses that wait for a native coin, as of the last Sync.
func (v *view) Open() []chain.Address {
	if list := v.open.Load(); list != nil {
		return *list
	}
	return nil
}

// Few lists the accounts that were handed out and are still watched.
func (v *view) Few(ctx context.Context, most int, at time.Time) ([]chain.Address, bool, error) {
	return v.n.few(ctx, most, at)
}
