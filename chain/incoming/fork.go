package incoming

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// forked makes the Change that follows the chain back to where it forked: a
// Change of its own, so that what is gone is told before it can come again.
// The last so many blocks of the trail are gone, and head is the height of the node's head.
// halted is not nil where one of them is at or below what the network had called final. The
// point may be below that for all that: where histories were read, the trail has gaps. What was
// final in a gap, by Recover, stays.
func (n *Network) forked(ctx context.Context, cur Cursor, version int64, trail []chain.Block, gone int, head int64) (c storage.Change, halted, err error) {
	trail, lost := trail[:len(trail)-gone], trail[len(trail)-gone]
	ancestor := last(trail)
	if lost.Height <= cur.Final {
		return n.halt(cur, version, fmt.Sprintf("the node forked at height %d, below %d that the network had called final", ancestor.Height, cur.Final))
	}
	c, err = n.unwind(ctx, cur, version, trail, max(ancestor.Height, cur.Final))
	if err == nil {
		n.log.Warn("chain_forked", slog.Int64("ancestor", ancestor.Height), slog.Int64("head", cur.Head), slog.Int("sightings", len(c.Put)-1))
		err = n.noteFork(ctx, max(cur.Head, head), ancestor, &c)
	}
	if err == nil {
		err = n.tellFork(&c, cur.Head, ancestor.Height)
	}
	return c, nil, err
}

// Fork is what the payout side has to look at after blocks were replaced in which its
// transactions were already settled. One row per network, due while that is to
// be done.
type Fork struct {
	Height int64     `db:"height"` // of the lowest common block
	Time   time.Time `db:"time"`   // of that block: what was settled before it still is
}

// Forks is the table of them, in network partitions.
var Forks = storage.NewTable[Fork]("forks")

// forkID is the id of a network's only Fork.
const forkID = "fork"

// noteFork adds the Fork to the Change that follows one, where it is so deep that something
// may have been settled above it. head is the highest that is known: transactions are settled
// by a node's head, and deposits may be read far behind it.
func (n *Network) noteFork(ctx context.Context, head int64, ancestor chain.Block, c *storage.Change) error {
	deep := false
	for _, cur := range n.cfg.Registry.On(n.name) {
		deep = deep || head-ancestor.Height >= cur.Confirmations
	}
	if !deep {
		return nil
	}
	f, row, _, err := Forks.One(ctx, n.cfg.Store, n.part, forkID)
	if err != nil {
		return err
	}
	if row.Due.IsZero() || ancestor.Time.Before(f.Time) {
		f = Fork{Height: ancestor.Height, Time: ancestor.Time}
	}
	c.Put = append(c.Put, Forks.Row(forkID, row.Version, n.cfg.Now(), f))
	return nil
}

// unwind makes the Change that goes back to the trail's end, and takes back everything above a
// height.
//
// What was included waits as seen: FinalAt then is the height at which the new
// branch must have it. What was final is gone at once, and keeps FinalAt to be
// known as such when it is mined again.
func (n *Network) unwind(ctx context.Context, cur Cursor, version int64, trail []chain.Block, above int64) (storage.Change, error) {
	now := n.cfg.Now()
	// FinalAt is never below Height, so the index on it finds them.
	rows, err := n.find(ctx,
		storage.Cond{Column: "state", Op: storage.In, Value: []State{Included, Final}},
		anyForward,
		storage.Cond{Column: "final_at", Op: storage.Gt, Value: above},
		storage.Cond{Column: "height", Op: storage.Gt, Value: above})
	if err != nil {
		return storage.Change{}, err
	}
	put := make([]storage.Row, 0, len(rows)+1)
	for _, r := range rows {
		s := Sightings.Value(r)
		if s.State == Final {
			s.State = Gone
			n.log.Error("final_transfer_taken_back", slog.String("sighting", s.Generated()), slog.Int64("height", s.Height))
		} else {
			s.State, s.Height, s.BlockHash, s.BlockTime, s.FinalAt = Seen, 0, "", time.Time{}, cur.Head
		}
		put = append(put, n.row(s, r.Version, now))
	}
	if err := n.follow(&cur, trail); err != nil {
		return storage.Change{}, err
	}
	c := n.change("fork", nil, append(put, Cursors.Row(CursorID, version, time.Time{}, cur))...)
	c.Drop, err = n.findIn(ctx, Holdings.Table, storage.Cond{Column: "height", Op: storage.Ge, Value: above + 1})
	return c, err
}

// halt makes the Change that stops the network until Resume.
func (n *Network) halt(cur Cursor, version int64, why string) (c storage.Change, halted, err error) {
	cur.Halted = why
	c = n.change("halt", nil, Cursors.Row(CursorID, version, time.Time{}, cur))
	err = tellHalt(&c, HaltChanged{Network: n.name, Halted: true, Reason: why, Height: cur.Head}, n.cfg.Now())
	return c, fmt.Errorf("%w: %s: %s", ErrHalted, n.name, why), err
}

// deepFork halts where the client finds nothing of the trail on the chain. Where
// it can be asked block by block and knows one after all, it contradicts itself,
// and nothing moves.
func (n *Network) deepFork(ctx context.Context, cur Cursor, version int64, trail []chain.Block, cause error) (c storage.Change, halted, err error) {
	if len(trail) == 0 {
		return c, nil, fmt.Errorf("incoming: %s: %w", n.name, cause)
	}
	if loc, ok := n.cfg.Client.(chain.Locator); ok {
		for _, b := range slices.Backward(trail) {
			at, err := loc.BlockAt(ctx, b.Height)
			if err != nil {
				continue
			}
			if at.Hash == b.Hash {
				return c, nil, n.nodeErr("it forgets the trail, but has block %d %q of it", b.Height, b.Hash)
			}
		}
	}
	return n.halt(cur, version, fmt.Sprintf("the chain forked below height %d, the oldest that is remembered", trail[0].Height))
}

// Resume ends a halt by an operator's decision: the chain is read again from
// the block after height from, which must be on the chain and at or below the
// fork. What was found above it is taken back, as in any fork, and credited again
// where it is found again: for deposits that were missed use Recover instead. A
// network that is not halted is rewound, too: a test network that was reset. The
// error says so where from is above what was read, or where the client cannot
// tell the block at that height.
func (n *Network) Resume(ctx context.Context, from int64, by Record) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	err := storage.Decide(ctx, n.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		cur, version, err := n.cursor(ctx)
		if err != nil {
			return storage.Change{}, err
		}
		if version == 0 || from > cur.Head || from < 0 {
			return storage.Change{}, fmt.Errorf("%w: %s was read up to %d, not %d", ErrAgain, n.name, cur.Head, from)
		}
		trail, err := n.trailTo(ctx, cur, from)
		if err != nil {
			return storage.Change{}, err
		}
		if by == nil {
			return storage.Change{}, nil
		}
		c, err := n.unwind(ctx, cur, version, trail, from)
		if err != nil {
			return c, err
		}
		before, halted, head := cur, cur.Halted, cur.Head
		at := len(c.Put) - 1
		cur = Cursors.Value(c.Put[at])
		// The one place where the watermark falls: an operator says so.
		cur.Halted, cur.Final = "", min(cur.Final, from)
		put, drop := c.Put, c.Drop
		put[at] = Cursors.Row(CursorID, version, time.Time{}, cur)
		kept, tell, err := by(before.read(), cur.read())
		if err != nil {
			return c, err
		}
		c = n.change("resume", nil, append(put, kept...)...)
		c.Drop, c.Tell = drop, tell
		if halted != "" {
			err = tellHalt(&c, HaltChanged{Network: n.name, Reason: halted, Height: cur.Head}, n.cfg.Now())
		}
		if from < head {
			err = errors.Join(err, n.tellFork(&c, head, from))
		}
		return c, errors.Join(err, n.noteFork(ctx, cur.Head+1<<32, last(trail), &c))
	})
	if err == nil && by != nil {
		n.log.Warn("network_resumed_by_operator", slog.Int64("from", from))
	}
	return err
}

// Record makes the row that keeps an operator's call, and the event that tells of it. before
// and after describe what the call changes. The Change of the call writes both. A nil Record
// is a dry run: everything is checked, and nothing is written.
type Record func(before, after any) ([]storage.Row, []storage.Event, error)

// read is how far a network was read, as an operator's record shows it.
func (c *Cursor) read() any {
	return struct {
		Head, Final int64
		Halted      string
	}{c.Head, c.Final, c.Halted}
}

// trailTo is a trail that ends at height from, as the chain is now.
func (n *Network) trailTo(ctx context.Context, cur Cursor, from int64) ([]chain.Block, error) {
	if loc, ok := n.cfg.Client.(chain.Locator); ok {
		b, err := loc.BlockAt(ctx, from)
		if err != nil {
			return nil, fmt.Errorf("incoming: %s: looking up block %d: %w", n.name, from, err)
		}
		if b.Hash == "" || b.Height != from {
			return nil, n.nodeErr("block %d was asked, and %d %q given", from, b.Height, b.Hash)
		}
		return append(n.before(ctx, b), b), nil
	}
	trail, err := n.blocks(cur.Trail)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(trail, func(b chain.Block) bool { return b.Height == from })
	if i < 0 {
		return nil, fmt.Errorf("%w: the client of %s knows no blocks by height, and %d is not remembered", ErrAgain, n.name, from)
	}
	return trail[:i+1], nil
}
