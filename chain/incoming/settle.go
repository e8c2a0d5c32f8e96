package incoming

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// settleChunk is how many Sightings one Change settles.
const settleChunk = 500

// settle says what follows from having read the chain up to tip: the watermark,
// what is final by now and, where the mempool was read after all forks, what is
// gone. asked is when the tip was asked for, known what was read before.
func (n *Network) settle(ctx context.Context, tip chain.Tip, known Cursor, asked time.Time, waits *mempool, mayVanish bool) (worked int, err error) {
	if age := asked.Sub(tip.Head.Time); n.cfg.HeadAge > 0 && age > n.cfg.HeadAge {
		err := fmt.Errorf("%w: %s: its head %d is of %s, more than %s ago", ErrStuck, n.name, tip.Head.Height, tip.Head.Time.UTC().Format(time.RFC3339), n.cfg.HeadAge)
		n.setStuck(err.Error())
		return 0, err
	}
	cur, version, err := n.watermark(ctx, tip, known, asked)
	if err != nil {
		n.setStuck(err.Error())
		return 0, err
	}
	n.setStuck("")
	if version == 0 {
		return 0, nil
	}
	worked, err = n.promote(ctx, cur, version, tip.Final >= 0 || cur.Final > 0)
	if err != nil || !mayVanish || !reached(&cur, tip) {
		return worked, err
	}
	gone, err := n.vanish(ctx, cur, version, waits)
	return worked + gone, err
}

// reached reports whether everything up to the tip was read.
func reached(cur *Cursor, tip chain.Tip) bool {
	if cur.Trail.Ends(tip.Head.Hash) {
		return tip.Head.Height == cur.Head
	}
	height, ok := cur.Trail.Height(tip.Head.Hash)
	return ok && height == tip.Head.Height
}

// watermark stores that the tip was reached, and how far the network itself
// calls its chain final. That never falls: neither what is stored, nor what a
// node says after it was known.
func (n *Network) watermark(ctx context.Context, tip chain.Tip, known Cursor, asked time.Time) (cur Cursor, version int64, err error) {
	moved := false
	err = storage.Decide(ctx, n.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		cur, version, err = n.cursor(ctx)
		if moved = false; err != nil || version == 0 {
			return storage.Change{}, err
		}
		if cur.Halted != "" {
			return storage.Change{}, fmt.Errorf("%w: %s: %s", ErrHalted, n.name, cur.Halted)
		}
		if !reached(&cur, tip) {
			return storage.Change{}, nil
		}
		if tip.Final >= 0 && tip.Final < known.Final {
			return storage.Change{}, fmt.Errorf("%w: %s: %w: it calls %d final where %d was", ErrStuck, n.name, chain.ErrBehind, tip.Final, known.Final)
		}
		if !asked.After(cur.TipRead) && tip.Final <= cur.Final {
			return storage.Change{}, nil
		}
		if asked.After(cur.TipRead) {
			cur.TipRead = asked
		}
		cur.Final = max(cur.Final, tip.Final)
		moved = true
		return n.change("tip", nil, Cursors.Row(CursorID, version, time.Time{}, cur)), nil
	})
	if moved {
		version++
	}
	return cur, version, err
}

// promote makes final what has its confirmations and, where its currency waits
// for that and the network gives it (word), the network's own word.
func (n *Network) promote(ctx context.Context, cur Cursor, version int64, word bool) (worked int, err error) {
	var rows []storage.Row
	for r, err := range storage.All(ctx, readable{n.cfg.Store, n}, storage.Query{
		Table: Sightings.Table, Partition: n.part, Limit: settleChunk,
		Order: []storage.Order{{Column: "final_at"}},
		Where: []storage.Cond{
			{Column: "state", Op: storage.Eq, Value: Included},
			anyForward,
			{Column: "final_at", Op: storage.Le, Value: cur.Head},
			n.lists.mine(),
		},
	}) {
		if err != nil {
			return worked, err
		}
		if rows = append(rows, r); len(rows) < settleChunk {
			continue
		}
		done, all, err := n.promoteRows(ctx, &cur, version, word, rows)
		if worked += done; err != nil || !all {
			return worked, err
		}
		rows = nil
	}
	done, _, err := n.promoteRows(ctx, &cur, version, word, rows)
	return worked + done, err
}

// readable is a network's store without the rows that cannot be read: they are logged.
type readable struct {
	storage.Store
	n *Network
}

// Find implements storage.Store.
func (s readable) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	return s.n.unread.Found(ctx, s.Store, q, s.n.cfg.Now(), s.n.log)
}

// promoteRows makes final what can be of these; all is false where something moved meanwhile.
func (n *Network) promoteRows(ctx context.Context, cur *Cursor, version int64, word bool, rows []storage.Row) (done int, all bool, err error) {
	found := make([]*Sighting, len(rows))
	for i, r := range rows {
		s := Sightings.Value(r)
		found[i] = &s
	}
	needs, err := n.weighed(ctx, found, cur.Head, false)
	if err != nil {
		return 0, false, err
	}
	var put []storage.Row
	for i, r := range rows {
		s := *found[i]
		at := max(n.finalAt(&s), s.Height+needs[i]-1)
		if c := n.listed(s.Currency); at <= cur.Head && c != nil && n.waits(c, &s, at) && word && s.Height > cur.Final {
			continue // for the network's word
		}
		if at > s.FinalAt { // more confirmations are required than when it was included
			if s.FinalAt = at; at > cur.Head {
				put = append(put, Sightings.Row(r.ID, r.Version, r.Due, s))
				continue
			}
		}
		s.State = Final
		put = append(put, n.row(s, r.Version, n.cfg.Now()))
	}
	done, err = n.commitAt(ctx, "final", version, put)
	return done, done == len(put), err
}

// vanish takes down what is neither in a block nor in the mempool. What a fork
// threw back is given until the new branch is as long as the old one was.
func (n *Network) vanish(ctx context.Context, cur Cursor, version int64, waits *mempool) (worked int, err error) {
	where := []storage.Cond{{Column: "state", Op: storage.Eq, Value: Seen}, anyForward, {Column: "final_at", Op: storage.Le, Value: cur.Head}}
	if waits == nil { // without a mempool to ask, only forks make a transfer seen
		where = append(where, storage.Cond{Column: "final_at", Op: storage.Gt, Value: int64(0)})
	}
	rows, err := n.find(ctx, where...)
	if err != nil {
		return 0, err
	}
	missed, marks, drop, err := n.missed(ctx, rows, waits)
	if err != nil {
		return 0, err
	}
	var put []storage.Row
	for _, r := range missed {
		s := Sightings.Value(r)
		s.State, s.FinalAt = Gone, 0
		n.log.Info("transfer_gone", slog.String("sighting", s.Generated()))
		put = append(put, n.row(s, r.Version, n.cfg.Now()))
	}
	if worked, err = n.commitAt(ctx, "gone", version, put, drop...); err != nil {
		return worked, err
	}
	marked, err := n.commitAt(ctx, "missing", version, marks)
	return worked + marked, err
}

// commitAt commits rows in chunks, on the condition that the cursor still
// stands at version. It stops without an error where something moved meanwhile:
// the next Step decides again.
func (n *Network) commitAt(ctx context.Context, kind string, version int64, put []storage.Row, drop ...storage.Row) (done int, err error) {
	for len(put)+len(drop) > 0 {
		part := put[:min(len(put), settleChunk)]
		put = put[len(part):]
		c := n.change(kind, []storage.Guard{Cursors.Guard(CursorID, version)}, part...)
		c.ID, c.Drop = changeID(kind, slices.Concat(part, drop)), drop
		drop = nil
		if err := storage.CommitOne(ctx, n.cfg.Store, c); err != nil {
			if raced(err) {
				return done, nil
			}
			return done, err
		}
		done += len(part)
	}
	return done, nil
}
