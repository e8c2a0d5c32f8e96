package treasury

import (
	"context"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// What waits for lower costs is found by a cost that was stored when it was judged. A process
// with another Config.MinSweep may have judged it. So each process judges it anew when it
// starts, when costs have fallen by a tenth since, and once a day.
const (
	dearAfter = 24 * time.Hour
	dearParts = 10
)

// passes is how far what waits for lower costs was judged anew, by currency. It is safe for
// concurrent use.
type passes struct {
	mu sync.Mutex
	of map[string]*pass
}

type pass struct {
	typical ledger.Amount // what a sweep cost when it began
	began   time.Time
	after   string // the note that it has come to
	over    bool
}

// next is the note after which the pass of a currency goes on; ok is false where none is due.
func (ps *passes) next(currency string, typical ledger.Amount, now time.Time) (after string, ok bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p := ps.of[currency]
	if p == nil || typical < p.typical-p.typical/dearParts || now.Sub(p.began) >= dearAfter || now.Before(p.began) {
		p = &pass{typical: typical, began: now}
		ps.of[currency] = p
	}
	return p.after, !p.over
}

// came notes the last notes that a pass has found; none are its end.
func (ps *passes) came(currency string, found []storage.Row) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if p := ps.of[currency]; len(found) == 0 {
		p.over = true
	} else {
		p.after = found[len(found)-1].ID
	}
}

// tooDear finds notes that are to be judged anew: of those that wait for lower costs than those
// of now, the ones that a look asks the network about.
func (t *Treasury) tooDear(ctx context.Context, c *chain.Currency, typical ledger.Amount) ([]storage.Row, error) {
	after, ok := t.passes.next(c.Code, typical, t.cfg.Now())
	if !ok {
		return nil, nil
	}
	least, err := typical.MulDiv(t.cfg.MinSweep, farBelow, ledger.Down)
	if err != nil {
		return nil, err
	}
	rows, err := t.unread.Found(ctx, t.cfg.Store, storage.Query{
		Table: SweepNotes.Table, Partition: storage.Network(string(c.Network)), Limit: t.cfg.Batch,
		Where: []storage.Cond{
			{Column: "currency", Op: storage.Eq, Value: c.Code},
			{Column: "due_below", Op: storage.Ge, Value: int64(1)},
			{Column: "due_below", Op: storage.Lt, Value: int64(typical)},
			{Column: "amount", Op: storage.Ge, Value: int64(least)},
			{Column: storage.ColID, Op: storage.Gt, Value: after},
		},
	}, t.cfg.Now(), t.cfg.Log)
	if err == nil {
		t.passes.came(c.Code, rows)
	}
	return rows, err
}
