package treasury

import (
	"context"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// What is too dear is found by a cost that was stored when it was judged, and a process with
// another Config.MinSweep may have judged it. So each process judges it anew when it starts, an
// hour later, when the last that judged otherwise has ended, then once a day, and when costs have
// fallen by a tenth: Config.Batch of them a minute, until it has judged all.
const (
	dearSoon  = time.Hour
	dearLater = 24 * time.Hour
	dearParts = 10
)

// passes holds the pass of each currency: the last time that this process judged anew what is too
// dear. It is safe for concurrent use.
type passes struct {
	mu sync.Mutex
	of map[string]pass
}

type pass struct {
	typical ledger.Amount // what a sweep cost when it began
	began   time.Time
	lasts   time.Duration // until the next one
	after   string        // the note that it has come to
	over    bool
}

// due is the pass of a currency that is to go on; ok is false where none is.
func (ps *passes) due(currency string, typical ledger.Amount, now time.Time) (p pass, ok bool) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p, known := ps.of[currency]
	ended := p.over && now.Sub(p.began) >= p.lasts
	if !known || ended || typical < p.typical-p.typical/dearParts || now.Before(p.began) {
		lasts := dearLater
		if !known || p.lasts == dearSoon && !ended { // the next is soon still
			lasts = dearSoon
		}
		p = pass{typical: typical, began: now, lasts: lasts}
		ps.of[currency] = p
	}
	return p, !p.over
}

// came notes the notes that a pass has woken; none are its end.
func (ps *passes) came(currency string, p pass, found []storage.Row) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if !ps.of[currency].began.Equal(p.began) {
		return // another has begun
	}
	if p.over = len(found) == 0; !p.over {
		p.after = found[len(found)-1].ID
	}
	ps.of[currency] = p
}

// wakeDear makes the next sweeps of a pass due. It takes those that wait for lower costs than those
// of now, and hold enough that their look asks the network.
func (t *Treasury) wakeDear(ctx context.Context, c *chain.Currency, typical ledger.Amount) error {
	p, ok := t.passes.due(c.Code, typical, t.cfg.Now())
	if !ok {
		return nil
	}
	least, err := p.typical.MulDiv(t.cfg.MinSweep, farBelow, ledger.Down)
	if err != nil {
		return nil //nolint:nilerr // nobody holds as much as that
	}
	rows, err := t.unread.Found(ctx, t.cfg.Store, storage.Query{
		Table: SweepNotes.Table, Partition: storage.Network(string(c.Network)), Limit: t.cfg.Batch,
		Where: []storage.Cond{
			{Column: "currency", Op: storage.Eq, Value: c.Code},
			{Column: "due_below", Op: storage.Ge, Value: int64(1)},
			{Column: "due_below", Op: storage.Lt, Value: int64(typical)},
			{Column: "waiting", Op: storage.Eq, Value: WaitBelowCost},
			{Column: "amount", Op: storage.Ge, Value: int64(least)},
			{Column: storage.ColID, Op: storage.Gt, Value: p.after},
		},
	}, t.cfg.Now(), t.cfg.Log)
	if err != nil {
		return err
	}
	_, left, err := t.wakeNotes(ctx, rows)
	if !left {
		t.passes.came(c.Code, p, rows)
	}
	return err
}
