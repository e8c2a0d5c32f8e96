package incoming

import (
	"context"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// missingRow marks a Sighting of the mempool that the node of one process does not have,
// under the Sighting's id. It is in the network's partition.
type missingRow struct {
	Since time.Time `db:"since"` // when it was last in the mempool of any process, as far as is known
}

// Missing is the table of Sightings that a process misses, in network partitions.
var Missing = storage.NewTable[missingRow]("missing")

// missed divides the Sightings that wait to be mined. gone were in no mempool of any process
// for GoneAfter. marks are rows to put: of what this process misses since now, and of what
// it has while another misses it. drop are marks of what does not wait any more.
func (n *Network) missed(ctx context.Context, rows []storage.Row, waits *mempool) (gone, marks, drop []storage.Row, err error) {
	if waits == nil || n.cfg.GoneAfter <= 0 {
		for _, r := range rows {
			if waits == nil || !waits.keys[r.ID] {
				gone = append(gone, r)
			}
		}
		return gone, nil, nil, nil
	}
	stored, err := n.findIn(ctx, Missing.Table)
	if err != nil {
		return nil, nil, nil, err
	}
	marked := make(map[string]storage.Row, len(stored))
	for _, r := range stored {
		marked[r.ID] = r
	}
	now := n.cfg.Now()
	for _, r := range rows {
		mark, there := marked[r.ID]
		here, age := waits.keys[r.ID], time.Duration(0)
		if there {
			age = now.Sub(Missing.Value(mark).Since)
		}
		switch {
		case !here && there && age >= n.cfg.GoneAfter:
			gone = append(gone, r)
			continue // its mark is dropped with it
		case !here && !there, here && age >= n.cfg.GoneAfter/2:
			marks = append(marks, Missing.Row(r.ID, mark.Version, time.Time{}, missingRow{Since: now}))
		}
		delete(marked, r.ID)
	}
	for _, r := range stored {
		if _, ended := marked[r.ID]; ended {
			drop = append(drop, r)
		}
	}
	return gone, marks, drop, nil
}
