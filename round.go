package cryptopay

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// round is work that comes by all tenants, some at a time, and rests in between.
// Where it is is no matter of record: another process, or this one after a restart,
// begins its own. Tenants with little to do are worked on together.
type round struct {
	a      *App
	every  time.Duration
	batch  int // pieces of work that one step does, about
	tenant func(ctx context.Context, s storage.Store, p storage.Partition, now time.Time) (int, error)

	mu    sync.Mutex
	after string    // the tenant that was looked at last
	rest  time.Time // when the next round may begin
}

// roundTenants is how many one step looks at, and together at most so many.
const (
	roundTenants  = 200
	roundTogether = 64
)

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
	full := len(tenants) == roundTenants
	for some := 1; len(tenants) > 0; {
		lot := tenants[:min(some, len(tenants))]
		tenants = tenants[len(lot):]
		before, so := worked, worked
		seen := r.visit(ctx, lot, now)
		for _, v := range seen {
			worked += v.worked
		}
		for _, v := range seen {
			so += v.worked
			if err := unread.Take(v.err); err != nil {
				return worked, err
			}
			if so >= r.batch {
				return worked, unread.With(nil) // the same tenant again: it may have more
			}
			r.after = v.id
		}
		if some = min(4*some, roundTogether); worked-before > r.batch/4 {
			some = 1
		}
	}
	if full {
		return max(worked, 1), unread.With(nil)
	}
	r.after, r.rest = "", now.Add(r.every)
	return worked, unread.With(nil)
}

// visit is a look at one tenant, and what came of it.
type visit struct {
	id     string
	worked int
	err    error
}

// visit looks at some tenants together. One whose partition is locked is waited for.
func (r *round) visit(ctx context.Context, tenants []storage.Row, now time.Time) []*visit {
	out := make([]*visit, len(tenants))
	for i, t := range tenants {
		out[i] = &visit{id: t.ID}
	}
	look := func(ctx context.Context, v *visit) error {
		v.worked, v.err = r.tenant(ctx, r.a.joined(), storage.Tenant(v.id), now)
		return v.err
	}
	for i, err := range storage.Work(ctx, r.a.cfg.Store, out, func(v *visit) string { return v.id }, look) {
		if errors.Is(err, storage.ErrBusy) {
			did := out[i].worked
			_ = look(ctx, out[i])
			out[i].worked += did
		}
	}
	return out
}
