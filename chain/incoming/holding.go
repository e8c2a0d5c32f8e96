package incoming

import (
	"context"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Ids of Holdings that are of no address, or not of its last round.
const (
	// roundID is the last round that came to its end, whichever process did it. Its
	// Height alone counts.
	roundID = "round"
	// beforeID behind an id is an older Holding, to which a fork goes back.
	beforeID = "/before"
)

// kept is a stored Holding, and the older one that a fork leaves.
type kept struct {
	Holding
	known  bool
	before Holding
	// version and earlier are those of the two rows, 0 = there is none.
	version, earlier int64
}

// kept reads Holdings, each with the older one.
func (n *Network) kept(ctx context.Context, ids ...string) (map[string]kept, error) {
	out := make(map[string]kept, len(ids))
	for part := range slices.Chunk(ids, readChunk/2) {
		all := slices.Clone(part)
		for _, id := range part {
			all = append(all, id+beforeID)
		}
		rows, err := n.cfg.Store.Rows(ctx, Holdings.Table, storage.Keys(n.part, all...)...)
		if err != nil {
			return nil, err
		}
		byID := make(map[string]storage.Row, len(rows))
		for _, row := range rows {
			byID[row.ID] = row
		}
		for _, id := range part {
			var k kept
			if row, ok := byID[id+beforeID]; ok {
				k.earlier, k.before, k.Holding, k.known = row.Version, Holdings.Value(row), Holdings.Value(row), true
			}
			if row, ok := byID[id]; ok {
				k.version, k.Holding, k.known = row.Version, Holdings.Value(row), true
			}
			out[id] = k
		}
	}
	return out, nil
}

// replace makes the rows that put next in the place of a Holding. That one becomes the
// older one where forks hardly reach it any more, or where the older one is below the
// oldest block that a fork can reach.
func (r *reckoning) replace(id string, k kept, next Holding) []storage.Row {
	rows := []storage.Row{Holdings.Row(id, k.version, time.Time{}, next)}
	deep := next.Height-k.Height >= r.n.depth(r.gas)
	if k.version > 0 && (k.earlier == 0 || deep || k.before.Height < r.trail[0].Height) {
		rows = append(rows, Holdings.Row(id+beforeID, k.earlier, time.Time{}, k.Holding))
	}
	return rows
}

// done stores that the round came to its end.
func (r *reckoning) done(ctx context.Context) error {
	n := r.n
	return storage.Decide(ctx, n.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		cur, version, err := n.cursor(ctx)
		if err != nil {
			return storage.Change{}, err
		}
		if _, read := cur.Trail.Height(r.at.Hash); cur.Halted != "" || !read {
			return storage.Change{}, errMoved
		}
		stored, err := n.kept(ctx, roundID)
		if err != nil {
			return storage.Change{}, err
		}
		last := stored[roundID]
		if last.version > 0 && last.Height >= r.at.Height {
			return storage.Change{}, nil
		}
		rows := r.replace(roundID, last, Holding{Height: r.at.Height})
		// The cursor is written, not only guarded: a fork that is followed at this moment
		// must find the rows.
		return n.change("rounded", nil, append(rows, Cursors.Row(CursorID, version, time.Time{}, cur))...), nil
	})
}
