package cryptopay

import (
	"context"
	"errors"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// forkSlack is how far before the fork block's own time an order may have been settled
// above it: miners' clocks run ahead by up to two hours.
const forkSlack = 3 * time.Hour

// forks has orders looked at again whose transactions a deep fork may have undone.
func (a *App) forks(ctx context.Context, n *network) (int, error) {
	now := a.cfg.Clock.Now()
	rows, err := storage.Claimed(ctx, a.cfg.Store, storage.Claim{
		Table: incoming.Forks.Table, Partition: storage.Network(string(n.name)), Now: now, Until: now.Add(time.Minute), Max: 1,
	}, a.cfg.Log)
	if err != nil {
		return 0, err
	}
	for _, r := range rows {
		f := incoming.Forks.Value(r)
		switch err := n.out.Recheck(ctx, f.Time.Add(-forkSlack)); {
		case errors.Is(err, storage.ErrBusy):
			continue // it is due again when the lease ends
		case err != nil:
			return len(rows), err
		}
		err := storage.CommitOne(ctx, a.cfg.Store, storage.Change{
			ID: a.cfg.NewID(), Partition: r.Partition, Put: []storage.Row{incoming.Forks.Row(r.ID, r.Version, time.Time{}, f)},
		})
		if err != nil && !errors.Is(err, storage.ErrConflict) { // it forked again meanwhile, and is due
			return len(rows), err
		}
	}
	return len(rows), nil
}
