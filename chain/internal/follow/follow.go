// Package follow is how chain clients go on from the blocks that they know: which of
// them are still on the node's chain, and what comes after.
//
// What it promises of whatever a node says:
//   - Where a trail still stands is found by hash, never by height: by halving, or in
//     as few requests as a batch allows. That nothing of it does is chain.ErrDeepFork;
//     a head below it is chain.ErrBehind and no fork.
//   - Blocks are given as far as each is the child of the one before, the first of them
//     the child of the last that is known. A first one that is not is an error; one
//     further on ends the reading, and the next Scan finds what became of it.
//   - No more is read than was asked for, nor more at once than the client's Group; less
//     where blocks are so full that the answer is too large.
//   - Addresses are read anew after blocks were fetched and before they are matched.
//   - Where few addresses are watched, the node's histories of them say which blocks are read
//     (Histories). Those are matched like all others, so that transfers are the same.
//   - An attempt of which the node's answers contradict each other is Unknown, alone:
//     it holds up no other. What befalls the whole call stays an error.
package follow

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Block is a block with what a client reads of it.
type Block interface{ At() chain.Block }

// Chain is a node's chain, as a client reads it.
type Chain[B Block] struct {
	Group int // blocks read at once
	// Next reads at most n blocks after last, Linked; none where last is the head.
	// forked says that last is on the chain no more.
	Next func(ctx context.Context, last chain.Block, n int) (next []B, forked bool, err error)
	// Rewind counts the blocks at the trail's end that are not on the chain.
	Rewind func(ctx context.Context, trail []chain.Block) (gone int, err error)
	// Match makes of blocks what they moved to watched addresses.
	Match func(ctx context.Context, next []B, w chain.Watch) ([]chain.ScannedBlock, error)
}

// Scan is that of a chain.Client, for a trail that is not empty.
func (c Chain[B]) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	var out chain.Scan
	last, n := trail[len(trail)-1], max(0, min(limit, c.Group))
	next, forked, err := c.next(ctx, last, n)
	if err == nil && forked {
		if out.Rewound, err = c.Rewind(ctx, trail); err != nil {
			return chain.Scan{}, err
		}
		last = trail[len(trail)-1-out.Rewound]
		if next, forked, err = c.next(ctx, last, n); err == nil && forked {
			err = fmt.Errorf("%w: the chain changed while it was read", chain.ErrNode)
		}
	}
	for ; err == nil && len(next) > 0; next, _, err = c.next(ctx, last, n) {
		if err := w.Sync(ctx); err != nil {
			return chain.Scan{}, fmt.Errorf("chain: reading watched addresses: %w", err)
		}
		scanned, err := c.Match(ctx, next, w)
		for errors.Is(err, transport.ErrTooLong) && len(next) > 1 {
			next = next[:len(next)/2]
			scanned, err = c.Match(ctx, next, w)
		}
		if err != nil {
			return chain.Scan{}, err
		}
		out.Blocks, last = append(out.Blocks, scanned...), next[len(next)-1].At()
		if n = min(limit-len(out.Blocks), c.Group); n <= 0 || len(next) < c.Group {
			return out, nil
		}
	}
	if err != nil {
		return chain.Scan{}, err
	}
	return out, nil
}

// next is Next, of fewer blocks where so many are too large an answer.
func (c Chain[B]) next(ctx context.Context, last chain.Block, n int) (next []B, forked bool, err error) {
	next, forked, err = c.Next(ctx, last, n)
	for errors.Is(err, transport.ErrTooLong) && n > 1 {
		n /= 2
		next, forked, err = c.Next(ctx, last, n)
	}
	return next, forked, err
}

// Steps is a Chain of which the head is known, and each block's place below it.
type Steps[B Block] struct {
	Head  chain.Block
	Group int
	// Stands reports whether a block at or below the head is on the chain.
	Stands func(ctx context.Context, b chain.Block) (bool, error)
	// Read reads n blocks after last, none above the head: at least one, Linked.
	Read  func(ctx context.Context, last chain.Block, n int) ([]B, error)
	Match func(ctx context.Context, next []B, w chain.Watch) ([]chain.ScannedBlock, error)
	// Histories are asked in place of whole blocks where few addresses are watched.
	Histories Histories[B]
}

// Scan is that of a chain.Client.
func (s Steps[B]) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if len(trail) == 0 {
		return chain.Scan{Blocks: []chain.ScannedBlock{{Block: s.Head}}}, nil
	}
	if last := trail[len(trail)-1]; s.Head.Height < last.Height {
		return chain.Scan{}, fmt.Errorf("%w: its head is %d, read already %d", chain.ErrBehind, s.Head.Height, last.Height)
	}
	if few, ok := w.(chain.FewWatch); ok && s.Histories.Most > 0 && s.Histories.Rest.over() {
		if out, told, err := s.named(ctx, trail, few, limit); told || err != nil {
			return out, err
		}
	}
	stood := "" // the hash of a block of which it is known
	next := func(ctx context.Context, last chain.Block, n int) ([]B, bool, error) {
		if last.Hash != stood {
			if on, err := s.Stands(ctx, last); err != nil || !on {
				return nil, true, err
			}
		}
		if n = int(min(int64(n), s.Head.Height-last.Height)); n <= 0 {
			return nil, false, nil
		}
		next, err := s.Read(ctx, last, n)
		if err == nil {
			stood = next[len(next)-1].At().Hash
		}
		return next, false, err
	}
	rewind := func(ctx context.Context, trail []chain.Block) (int, error) {
		gone, err := halve(ctx, trail, s.Stands)
		if err == nil {
			stood = trail[len(trail)-1-gone].Hash
		}
		return gone, err
	}
	return Chain[B]{s.Group, next, rewind, s.Match}.Scan(ctx, trail, w, limit)
}

// Stands makes a Steps.Stands of how a client reads the block at a height.
func Stands[B Block](head chain.Block, at func(ctx context.Context, height int64) (B, error)) func(context.Context, chain.Block) (bool, error) {
	return func(ctx context.Context, b chain.Block) (bool, error) {
		if head.Height == b.Height {
			return head.Hash == b.Hash, nil
		}
		here, err := at(ctx, b.Height)
		if err != nil {
			return false, err
		}
		return here.At().Hash == b.Hash, nil
	}
}

// halve counts the blocks at the trail's end that do not stand. Below one that does,
// all do.
func halve(ctx context.Context, trail []chain.Block, stands func(context.Context, chain.Block) (bool, error)) (int, error) {
	var failed error
	stood := sort.Search(len(trail), func(i int) bool {
		if failed != nil {
			return true
		}
		on, err := stands(ctx, trail[i])
		failed = err
		return err != nil || !on
	})
	if failed == nil && stood == 0 {
		failed = deep(trail)
	}
	return len(trail) - stood, failed
}

// Back counts the blocks at a trail's end that are not on the chain, from its end on.
// hashes reads those of the chain at the heights of at most batch blocks at once.
func Back(ctx context.Context, trail []chain.Block, batch int, hashes func(ctx context.Context, at []chain.Block) ([]string, error)) (int, error) {
	for end := len(trail); end > 0; end = max(0, end-batch) {
		from := max(0, end-batch)
		here, err := hashes(ctx, trail[from:end])
		if err != nil {
			return 0, err
		}
		for i := end - 1; i >= from; i-- {
			if here[i-from] == trail[i].Hash {
				return len(trail) - 1 - i, nil
			}
		}
	}
	return 0, deep(trail)
}

func deep(trail []chain.Block) error {
	return fmt.Errorf("%w: %d blocks back to height %d", chain.ErrDeepFork, len(trail), trail[0].Height)
}

// Linked are the blocks as far as they come one after the other, the first of them after
// last. Where not even that one does, it is an error.
func Linked[B Block](last chain.Block, next []B) ([]B, error) {
	for i, x := range next {
		b := x.At()
		if b.Height == last.Height+1 && b.Parent == last.Hash {
			last = b
			continue
		}
		if i == 0 {
			return nil, fmt.Errorf("%w: block %d is not the child of block %d, %s: the chain changed while it was read", ErrTorn, b.Height, last.Height, last.Hash)
		}
		return next[:i], nil // what is whole counts
	}
	return next, nil
}

// Read reads the n blocks after last, all at once, and gives what is Linked.
func Read[B Block](ctx context.Context, last chain.Block, n int, read func(ctx context.Context, height int64) (B, error)) ([]B, error) {
	next := make([]B, n)
	err := Each(n, n, func(i int) (err error) {
		next[i], err = read(ctx, last.Height+1+int64(i))
		return err
	})
	if err != nil {
		return nil, err
	}
	return Linked(last, next)
}

// Each does n things, at most so many of them at once, and returns all of their errors.
func Each(n, parallel int, do func(i int) error) error {
	errs, room := make([]error, n), make(chan struct{}, parallel)
	var wg sync.WaitGroup
	for i := range n {
		room <- struct{}{}
		wg.Go(func() {
			errs[i] = do(i)
			<-room
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// Until is Each that begins nothing more once something has failed.
func Until(n, parallel int, do func(i int) error) error {
	var failed atomic.Bool
	return Each(n, parallel, func(i int) error {
		if failed.Load() {
			return nil
		}
		err := do(i)
		if err != nil {
			failed.Store(true)
		}
		return err
	})
}

// ByBlock makes a Match of how one block is matched.
func ByBlock[B Block](match func(ctx context.Context, b B, w chain.Watch) ([]chain.Transfer, error)) func(context.Context, []B, chain.Watch) ([]chain.ScannedBlock, error) {
	return func(ctx context.Context, next []B, w chain.Watch) ([]chain.ScannedBlock, error) {
		out := make([]chain.ScannedBlock, len(next))
		for i, b := range next {
			found, err := match(ctx, b, w)
			if err != nil {
				return nil, err
			}
			out[i] = chain.ScannedBlock{Block: b.At(), Transfers: found}
		}
		return out, nil
	}
}

// Only is the Watch of a few addresses.
type Only []chain.Address

// Sync has nothing to read.
func (Only) Sync(context.Context) error { return nil }

// Contains looks at each of them.
func (o Only) Contains(a chain.Address) bool { return slices.Contains(o, a) }

// Open is all of them.
func (o Only) Open() []chain.Address { return o }
