package treasury

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
)

// The pauses between two looks at a waiting sweep. One that waits for lower costs has no
// pause: it is found when they have fallen.
const (
	firstPause  = time.Minute
	longPause   = time.Hour
	haltedPause = 10 * time.Minute // what a halt kept back goes on soon after it
	longestTry  = 24 * time.Hour   // after transactions that failed, each of which costs; of one that a policy holds back
	triesFactor = 4
)

// postpone stores why a sweep waits and when it is looked at again, and tells its
// deposits that their payment does not wait with them.
func (t *Treasury) postpone(ctx context.Context, j *job, v verdict) error {
	now := t.cfg.Now()
	if j.note.Waiting != v.waiting {
		j.note.Waiting, j.note.Since, j.note.Alerted = v.waiting, now, ""
		t.cfg.Log.InfoContext(ctx, "sweep_waiting", "sweep", j.row.ID, "network", j.s.Network, "tenant", j.s.Tenant,
			"currency", j.s.Currency, "reason", v.waiting, "detail", v.reason)
	}
	if err := j.s.to(SweepDeferred, onWait); err != nil {
		return err
	}
	j.s.Reason = v.reason
	j.note.DueBelow, j.note.Next = v.below, v.next
	if v.waiting == WaitForMore { // until its time is over, or the policy is another
		if look := now.Add(min(max(now.Sub(j.note.Since), longPause), longestTry)); look.Before(v.next) {
			j.note.Next = look
		}
	} else if v.waiting != WaitBelowCost || v.below < 1 {
		j.note.DueBelow = -1
		longest := longPause
		if v.waiting == WaitHalted {
			longest = haltedPause
		}
		j.note.Next = now.Add(min(max(now.Sub(j.note.Since), firstPause), longest))
	} else if j.replaced {
		j.note.Next = now.Add(longestTry) // then the operator is told
	}
	deposits, err := t.deferred(ctx, j)
	if err != nil {
		return err
	}
	alert := t.lasts(ctx, j)
	if err := t.put(ctx, j, j.note.Next, deposits...); err != nil {
		return err
	}
	alert()
	return nil
}

// lasts notes that the operator is told of a sweep that has waited for Config.StuckAfter, and
// returns what tells him once that is stored: nothing where he was told before, or it waits
// for lower costs or for more. That a hot address which was replaced keeps coins is told after a day.
func (t *Treasury) lasts(ctx context.Context, j *job) (alert func()) {
	n, reason, since := &j.note, j.note.Waiting, j.note.Since
	long := t.cfg.StuckAfter
	costs := reason == WaitBelowCost || reason == WaitForMore
	if costs && j.replaced {
		costs, long = false, max(long, longestTry)
	}
	if reason == "" || costs || n.Alerted == reason || t.cfg.Now().Sub(since) < long {
		return func() {}
	}
	n.Alerted = reason
	return func() {
		t.cfg.Log.WarnContext(ctx, "sweep_waiting_long", "sweep", j.row.ID, "network", j.s.Network, "tenant", j.s.Tenant,
			"currency", j.s.Currency, "reason", reason, "detail", j.s.Reason, "since", since)
		t.notify(ctx, Notice{
			Tenant: j.s.Tenant, Network: chain.Network(j.s.Network), Sweep: j.row.ID, Currency: j.s.Currency,
			Reason: reason, Detail: j.s.Reason, Since: since,
		})
	}
}

// deferred is the rows of a sweep's deposits that are told to be deferred.
func (t *Treasury) deferred(ctx context.Context, j *job) ([]storage.Row, error) {
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Keys(storage.Network(j.s.Network), j.s.Deposits...)...)
	var out []storage.Row
	for _, r := range rows {
		if d := incoming.Sightings.Value(r); d.Forward == incoming.Forwarding {
			d.Forward, d.ForwardTx = incoming.Deferred, ""
			out = append(out, incoming.Sightings.Row(r.ID, r.Version, t.cfg.Now(), d))
		}
	}
	return out, err
}

// tryPause is the pause after a number of failed transactions in a row.
func tryPause(tries int) time.Duration {
	pause := firstPause
	for ; tries > 1 && pause < longestTry; tries-- {
		pause *= triesFactor
	}
	return min(pause, longestTry)
}

// wakeDue makes waiting sweeps due whose reason has ended: the cost has fallen to what
// they are worth, or a payout needs their coins. It looks once a minute, and asks for one
// estimate per currency that something waits in. Sweeps that an earlier version gave up
// are taken up again. It returns how many it made due.
func (t *Treasury) wakeDue(ctx context.Context, n chain.Network) (woken int, err error) {
	old, err := t.wakeOld(ctx, n)
	if err != nil || !t.rounds.due(string(n), t.cfg.Now()) {
		return old, err
	}
	for _, c := range t.cfg.Registry.On(n) {
		some, failed := t.wakeCheap(ctx, c)
		woken, err = woken+some, errors.Join(err, failed)
	}
	some, failed := t.emptyReplaced(ctx, n)
	woken, err = woken+some, errors.Join(err, failed)
	some, failed = t.wakeNeeded(ctx, n)
	if woken += some; woken >= t.cfg.Batch {
		t.rounds.again(string(n)) // there may be more
	}
	return old + woken, errors.Join(err, failed)
}

// rounds is when the waiting sweeps of each network were last gone through. It is safe
// for concurrent use.
type rounds struct {
	mu   sync.Mutex
	last map[string]time.Time
}

// due reports whether a network's turn has come, and takes it.
func (r *rounds) due(network string, now time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.last[network]; ok && now.Sub(last) < costAge && !now.Before(last) {
		return false
	}
	r.last[network] = now
	return true
}

// again makes a network due at once.
func (r *rounds) again(network string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.last, network)
}

// wakeCheap makes those sweeps of a currency due that are worth what forwarding costs
// now, and begins to judge anew those that are not.
func (t *Treasury) wakeCheap(ctx context.Context, c *chain.Currency) (int, error) {
	q := storage.Query{
		Table: SweepNotes.Table, Partition: storage.Network(string(c.Network)), Limit: 1,
		Where: []storage.Cond{
			{Column: "currency", Op: storage.Eq, Value: c.Code},
			{Column: "due_below", Op: storage.Ge, Value: int64(1)},
		},
	}
	q.IDs = true
	if rows, err := t.cfg.Store.Find(ctx, q); err != nil || len(rows) == 0 {
		return 0, err
	}
	typical, v, err := t.typicalUnits(ctx, c)
	if err != nil || v.waiting != "" {
		return 0, err
	}
	q.IDs, q.Limit, q.Where[1].Value = false, t.cfg.Batch, int64(typical)
	rows, err := t.unread.Found(ctx, t.cfg.Store, q, t.cfg.Now(), t.cfg.Log)
	if err != nil {
		return 0, err
	}
	woken, _, err := t.wakeNotes(ctx, rows)
	return woken, errors.Join(err, t.wakeDear(ctx, c, typical))
}

// wakeNotes makes the sweeps of notes due. left says that some are not, and can be later.
func (t *Treasury) wakeNotes(ctx context.Context, notes []storage.Row) (woken int, left bool, err error) {
	for _, e := range storage.Work(ctx, t.cfg.Store, notes, func(row storage.Row) string { return row.ID }, func(ctx context.Context, row storage.Row) error {
		return t.wakeNote(ctx, row, SweepNotes.Value(row))
	}) {
		if e == nil {
			woken++ // the others are found again in the next round
		}
		left = left || e != nil && !errors.Is(e, storage.ErrConflict) && !errors.As(e, new(*storage.RowError))
		err = errors.Join(err, unlessDue(e))
	}
	return woken, left, err
}

// lost logs that a sweep is gone, which nothing takes away.
func (t *Treasury) lost(ctx context.Context, part storage.Partition, tenant, sweep string) {
	t.cfg.Log.LogAttrs(ctx, slog.LevelError, "sweep_lost", slog.String("partition", string(part)), slog.String("tenant", tenant), slog.String("sweep", sweep))
}

// wakeNote makes the sweep of a note due now.
func (t *Treasury) wakeNote(ctx context.Context, row storage.Row, note SweepNote, with ...storage.Level) error {
	s, at, ok, err := Sweeps.One(ctx, t.cfg.Store, row.Partition, row.ID)
	if err != nil {
		return err
	}
	if !ok { // somebody deleted it: put back, it is found by its note again
		t.lost(ctx, row.Partition, note.Tenant, row.ID)
		return storage.ErrConflict
	}
	note.DueBelow, note.Next = -1, time.Time{}
	c := storage.Change{
		ID: fmt.Sprintf("%s/due/%d", row.ID, row.Version), Partition: row.Partition, Level: with,
		Put: []storage.Row{SweepNotes.Row(row.ID, row.Version, time.Time{}, note)},
	}
	if s.State == SweepDeferred {
		c.Put = append(c.Put, Sweeps.Row(at.ID, at.Version, t.cfg.Now(), s))
	}
	return storage.CommitOne(ctx, t.cfg.Store, c)
}

// wakeOld finds sweeps that an earlier version gave up, or that its processes still give
// up beside this one.
func (t *Treasury) wakeOld(ctx context.Context, n chain.Network) (int, error) {
	rows, err := t.unread.Found(ctx, t.cfg.Store, storage.Query{
		Table: Sweeps.Table, Partition: storage.Network(string(n)), Limit: t.cfg.Batch,
		Where: []storage.Cond{
			{Column: "state", Op: storage.Eq, Value: sweepGivenUp},
			{Column: storage.ColDue, Op: storage.Eq, Value: time.Time{}},
		},
	}, t.cfg.Now(), t.cfg.Log)
	if err != nil {
		return 0, err
	}
	for _, row := range rows {
		if err := t.takeUp(ctx, row); err != nil && !errors.Is(err, storage.ErrConflict) {
			return 0, err
		}
	}
	return len(rows), nil
}

// takeUp ends a sweep that was given up, and leaves its deposits to a new one, unless
// another has them already.
func (t *Treasury) takeUp(ctx context.Context, row storage.Row) error {
	s := Sweeps.Value(row)
	p := storage.Network(s.Network)
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Keys(p, s.Deposits...)...)
	if err != nil {
		return err
	}
	at := spot{s.Address, s.Currency}
	landed := at.at(chain.Network(s.Network), SweepDone) // and not marked yet
	landed.Where = append(landed.Where, storage.Cond{Column: storage.ColDue, Op: storage.Ne, Value: time.Time{}})
	taken := map[string]bool{}
	for _, q := range []storage.Query{at.at(chain.Network(s.Network), live...), landed} {
		err := t.each(ctx, q, func(other storage.Row) error {
			for _, id := range Sweeps.Value(other).Deposits {
				taken[id] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if err := s.to(SweepReplaced, onTakeUp); err != nil {
		return err
	}
	c := storage.Change{
		ID: fmt.Sprintf("%s/up/%d", row.ID, row.Version), Partition: p,
		Put: []storage.Row{Sweeps.Row(row.ID, row.Version, t.cfg.Now(), s)}, // due: its gas is called off
	}
	if err := t.tell(&c, &job{row: row, s: s, from: sweepGivenUp}); err != nil {
		return err
	}
	for _, r := range rows {
		d := incoming.Sightings.Value(r)
		listed := d.Currency != "" && d.Amount > 0 && !taken[r.ID]
		if listed && (d.Forward == incoming.Deferred || d.Forward == incoming.Forwarding) {
			d.Forward = incoming.ForwardNone
			c.Put = append(c.Put, incoming.Sightings.Row(r.ID, r.Version, t.cfg.Now(), d))
		}
	}
	return storage.CommitOne(ctx, t.cfg.Store, c)
}
