package incoming

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// ErrNotOurs says that the address was never derived into the directory.
var ErrNotOurs = errors.New("incoming: no address of ours")

// ErrAgain reports that blocks or an address cannot be read again as asked.
var ErrAgain = errors.New("incoming: cannot be read again")

// ErrForked says that the chain is another than was read last: a fork is still to be
// followed. What was asked for is asked again after that.
var ErrForked = errors.New("incoming: the chain is not the one that was read: a fork is followed first, try again then")

// Recover reads what an address of ours received between two heights, both
// included, whatever the cursor says; to = 0 means up to what was read. What was
// missed becomes Sightings as if it had been scanned, and goes the same way from
// there; what is known already stays as it is, so it may be repeated. found
// counts what was new, or on a dry run would be. The error wraps ErrAgain where the network was
// read at none of these heights.
func (n *Network) Recover(ctx context.Context, a chain.Address, from, to int64, by Record) (found int, err error) {
	hist, ok := n.cfg.Client.(chain.Historian)
	if !ok {
		return 0, fmt.Errorf("%w: the client of %s has no history of addresses", ErrAgain, n.name)
	}
	if _, _, ok, err := Addresses.One(ctx, n.cfg.Store, n.part, string(a)); err != nil {
		return 0, err
	} else if !ok {
		return 0, fmt.Errorf("%w: %s on %s", ErrNotOurs, a, n.name)
	}
	err = storage.Decide(ctx, n.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		found = 0
		cur, version, err := n.cursor(ctx)
		if err != nil {
			return storage.Change{}, err
		}
		if cur.Halted != "" {
			return storage.Change{}, fmt.Errorf("%w: %s: %s", ErrHalted, n.name, cur.Halted)
		}
		end := cur.Head
		if to != 0 {
			end = min(end, to)
		}
		if version == 0 || from < 0 || from > end { // to find nothing there would say that nothing came
			return storage.Change{}, fmt.Errorf("%w: there are no blocks from %d to %d, as %s was read up to %d", ErrAgain, from, end, n.name, cur.Head)
		}
		list, err := hist.History(ctx, a, from, end)
		if err != nil {
			return storage.Change{}, fmt.Errorf("incoming: %s: reading the history of an address: %w", n.name, err)
		}
		if err := n.checkHistory(ctx, cur, a, from, end, list); err != nil {
			return storage.Change{}, err
		}
		live, err := n.live(ctx, list)
		if err != nil {
			return storage.Change{}, err
		}
		if list, err = n.uncovered(ctx, list, live); err != nil {
			return storage.Change{}, err
		}
		if list, err = n.unnumbered(ctx, a, list); err != nil {
			return storage.Change{}, err
		}
		rows, err := n.merge(ctx, list, fromHistory)
		for _, r := range rows {
			if r.Table == Sightings.Table {
				found++
			}
		}
		if err != nil || by == nil {
			return storage.Change{}, err
		}
		kept, tell, err := by(nil, struct{ Found int }{found})
		if err != nil {
			return storage.Change{}, err
		}
		if found == 0 {
			if len(kept) == 0 {
				return storage.Change{}, nil
			}
			c := n.change("recover", nil, kept...)
			c.Tell = tell
			return c, nil
		}
		// The cursor is written, not only guarded: a fork that is being followed
		// at this moment must see that there is more to take back.
		c := n.change("recover", nil, append(append(rows, kept...), Cursors.Row(CursorID, version, time.Time{}, cur))...)
		c.Tell = tell
		return n.telling(c)
	})
	if err != nil {
		return 0, err
	}
	return found, nil
}

// unnumbered leaves out unproven transfers that are stored under another ordinal, as a client
// of an earlier version counted them. list is the history of one address: what is stored of
// the same transaction and amount and not in it is the same money.
func (n *Network) unnumbered(ctx context.Context, a chain.Address, list []chain.Transfer) ([]chain.Transfer, error) {
	named := map[string]bool{}
	for i := range list {
		if t := &list[i]; t.Unproven {
			named[Key(t.Tx, t.Ordinal)] = true
		}
	}
	if len(named) == 0 {
		return list, nil
	}
	rows, err := n.find(ctx,
		storage.Cond{Column: "address", Op: storage.Eq, Value: string(a)},
		storage.Cond{Column: "state", Op: storage.In, Value: []State{Included, Final}},
		storage.Cond{Column: "unproven", Op: storage.Eq, Value: true})
	if err != nil {
		return nil, err
	}
	stored, former := map[string]bool{}, map[string][]Sighting{}
	for _, row := range rows {
		if s := Sightings.Value(row); named[row.ID] {
			stored[row.ID] = true
		} else {
			former[s.Tx] = append(former[s.Tx], s)
		}
	}
	return slices.DeleteFunc(list, func(t chain.Transfer) bool {
		if !t.Unproven || stored[Key(t.Tx, t.Ordinal)] {
			return false
		}
		same := slices.IndexFunc(former[t.Tx], func(s Sighting) bool {
			return s.BlockHash == t.Block.Hash && s.Contract == clean(t.Contract) && s.Exact.Equal(t.Amount)
		})
		if same >= 0 {
			former[t.Tx] = slices.Delete(former[t.Tx], same, same+1) // it is one transfer
		}
		return same >= 0
	}), nil
}

// checkHistory refuses an answer that does not fit what was asked, or the chain
// as it was read.
func (n *Network) checkHistory(ctx context.Context, cur Cursor, a chain.Address, from, to int64, list []chain.Transfer) error {
	trail, err := n.blocks(cur.Trail)
	if err != nil {
		return err
	}
	read, hashes := make(map[int64]string, len(trail)), map[int64]string{}
	for _, b := range trail {
		read[b.Height] = b.Hash
	}
	loc, _ := n.cfg.Client.(chain.Locator)
	for i := range list {
		t := &list[i]
		if !validTransfer(t) || t.To != a || t.Block.Hash == "" || t.Block.Height < from || t.Block.Height > to {
			return n.nodeErr("its history of an address from %d to %d has a transfer that is not: %.80q at %d", from, to, t.Tx, t.Block.Height)
		}
		if hash, known := read[t.Block.Height]; known && hash != t.Block.Hash {
			return fmt.Errorf("%w: %s: block %d was %q, its history has %q", ErrForked, n.name, t.Block.Height, hash, t.Block.Hash)
		} else if known {
			continue
		}
		hash, known := hashes[t.Block.Height]
		if !known && loc != nil {
			b, err := loc.BlockAt(ctx, t.Block.Height)
			if err != nil {
				return fmt.Errorf("incoming: %s: checking block %d: %w", n.name, t.Block.Height, err)
			}
			hash, known = b.Hash, true
			hashes[t.Block.Height] = hash
		}
		if known && hash != t.Block.Hash {
			return n.nodeErr("its history has block %d %q, the chain %q", t.Block.Height, t.Block.Hash, hash)
		}
	}
	return nil
}
