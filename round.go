package cryptopay

import (
	"context"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// round is work that comes by all tenants, some at a time, and rests in between.
// Where it is is no matter of record: another process, or this one after a restart,
// begins its own.
type round struct {
	a      *App
	every  time.Duration
	batch  int // pieces of work that one step does, about
	tenant func(ctx context.Context, p storage.Partition, now time.Time) (int, error)

	mu    sync.Mutex
	after string    // the tenant that was looked at last
	rest  time.Time // when the next round may begin
}

// roundTenants is how many one step looks at.
const roundTenants = 200

// step looks at some tenants. It returns 0 when a round is over and until the next
// is due. It goes on past rows that cannot be read, and joins their *storage.RowErrors.
func (r *round) step(ctx context.Context) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.a.cfg.Clock.Now()
	if now.Before(r.rest) {
		return 0, nil
	}
	tenants, unread, err := storage.Others(ctx, r.a.cfg.Store, storage.Query{
		Table: wallet.TenantRows.Table, Partition: storage.System, Limit: roundTenants, IDs: true,
		Where: []storage.Cond{{Column: storage.ColID, Op: storage.Gt, Value: r.after}},
	})
	if err != nil {
		return 0, err
	}
	worked := 0
	for _, t := range tenants {
		n, err := r.tenant(ctx, storage.Tenant(t.ID), now)
		worked += n
		if err = unread.Take(err); err != nil {
			return worked, err
		}
		if worked >= r.batch {
			return worked, unread.With(nil) // the same tenant again: it may have more
		}
		r.after = t.ID
	}
	if len(tenants) == roundTenants {
		return max(worked, 1), unread.With(nil)
	}
	r.after, r.rest = "", now.Add(r.every)
	return worked, unread.With(nil)
}
