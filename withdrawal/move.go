package withdrawal

import (
	"context"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// move is one decision on a stored withdrawal: what follows from one fact.
// Its methods change w and collect what goes into the Change with it.
type move struct {
	was Withdrawal // as it is stored
	w   Withdrawal
	c   *chain.Currency
	// required is the number of confirmations for completion: the stored one, or today's
	// where that is higher.
	required int64
	now      time.Time
	row      storage.Row // as it is stored
	due      time.Time   // of the row
	keeps    bool        // the row stays due, whatever it says of itself
	trying   bool        // it is handed over: whether it goes on waiting is not known yet
	review   bool        // what was told of its waiting may be another reason
	changed  bool        // w differs from what is stored
	history  bool        // so does its line of the unified history
	events   []storage.Row
	told     []storage.Event
	with     []storage.Row // of another withdrawal, and what counts this one
	counts   []storage.Row // what counts it once it is handed over
	post     []ledger.Tx
	level    []storage.Level
	count    []storage.Count // of another withdrawal
	require  []storage.Guard // rows that the decision relied on
	notices  []Notice
	act      *audit.Act // of the person who decides
}

// step takes the withdrawal to a status by a trigger: the table must allow it.
// A change of status is one event.
func (m *move) step(trigger trigger, to Status) error {
	previous := m.w.Status
	if err := machine.Move(previous, trigger, to); err != nil {
		return err
	}
	m.touch()
	if previous == to {
		return nil
	}
	m.w.Status = to
	m.w.Seq++
	m.history = true
	switch to {
	case Processing:
		m.w.ProcessedAt, m.w.Stage = m.now, Handed
		m.reason("")
		m.w.Reason = "" // of a halt, which an earlier version does not take back
	case Completed:
		m.w.CompletedAt = m.now
		m.reason("")
		m.post = append(m.post, settleTx(&m.w, m.now))
	case Failed, Cancelled:
		m.post = append(m.post, releaseTx(&m.w, m.now))
		m.uncount()
		m.reason("")
	}
	row, err := event(&m.w, previous, m.c, m.now)
	if err != nil {
		return err
	}
	made, err := told(&m.w, previous, m.c, m.now)
	m.events, m.told = append(m.events, row), append(m.told, made)
	return err
}

// uncount gives back what a withdrawal that did not happen took of a day.
func (m *move) uncount() {
	if m.w.Counter != "" {
		m.level = append(m.level, storage.Level{Name: m.w.Counter, Delta: -int64(m.w.Requested)})
		m.w.Counter = ""
	}
}

// touch says that w is to be written, and that merchants see the difference.
func (m *move) touch() {
	m.changed = true
	m.w.UpdatedAt = m.now
}

// wait keeps w open for a reason that operators see, and due again at a time
// (zero: only when something happens).
func (m *move) wait(reason string, due time.Time) {
	if m.w.Waiting != reason || !m.due.Equal(due) {
		m.due, m.changed = due, true
		m.reason(reason)
	}
}

// halted keeps w open while paying out its currency is halted.
func (m *move) halted(why string, due time.Time) {
	m.w.Reason = why
	m.wait(WaitingHalted, due)
}

// reason sets why w waits, and since when.
func (m *move) reason(why string) {
	if why == m.w.Waiting {
		return
	}
	if m.was.Status == Pending && m.w.Waiting == WaitingHalted && m.w.Reason == m.was.Reason {
		m.w.Reason = "" // why it was halted
	}
	m.w.Waiting, m.w.WaitingSince = why, m.now
	if why == "" {
		m.w.WaitingSince = time.Time{}
	}
}

func (m *move) notice(kind, detail string) {
	m.notices = append(m.notices, Notice{Tenant: m.w.Tenant, Withdrawal: m.w.ID, Kind: kind, Detail: detail})
}

// decide loads a withdrawal, lets f decide, commits what follows and starts
// over where the state has changed meanwhile. It returns the withdrawal as it
// stands then, also beside an error of f.
func (s *Service) decide(ctx context.Context, tenant, id string, f func(m *move) error) (Withdrawal, error) {
	p := storage.Tenant(tenant)
	var done move
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		w, row, err := s.load(ctx, p, id)
		if err != nil {
			return storage.Change{}, err
		}
		done = move{was: w, w: w, now: s.now(), row: row, due: row.Due}
		done.c = s.listing(&w)
		done.required = max(w.Required, s.c.Confirmations(done.c))
		if err = f(&done); err != nil || !done.changed {
			return storage.Change{}, err
		}
		return s.change(ctx, p, &done, row)
	})
	if err != nil {
		return done.w, err
	}
	for _, n := range done.notices {
		s.c.Notify(storage.Apart(ctx), n)
	}
	return done.w, nil
}

// act is decide for what a person does. Those of a tenant take turns in this process, as each of
// them writes the head of one audit log.
func (s *Service) act(ctx context.Context, tenant, id string, f func(m *move) error) (Withdrawal, error) {
	v, _ := s.acting.LoadOrStore(tenant, make(chan struct{}, 1))
	turn, _ := v.(chan struct{}) // nothing else is stored
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return Withdrawal{}, ctx.Err()
	}
	defer func() { <-turn }()
	return s.decide(storage.Apart(ctx), tenant, id, f) // nobody of a Work waits while he has the turn
}

func (s *Service) change(ctx context.Context, p storage.Partition, m *move, row storage.Row) (storage.Change, error) {
	due := m.due
	if (m.w.Status != Pending || m.w.Stage == Handed) && !m.keeps {
		due = time.Time{}
	}
	events, err := m.tell()
	if err != nil {
		return storage.Change{}, err
	}
	c := storage.Change{
		ID: s.c.NewID(), Partition: p, Require: m.require, Post: m.post, Level: m.level, Tell: events,
		Count: slices.Concat(Tally.Moved(m.was.counted(), m.w.counted()), m.count, tally.Entries(m.post)),
		Put:   append([]storage.Row{Withdrawals.Row(m.w.ID, row.Version, due, m.w)}, m.with...),
	}
	webhook.Put(&c, m.events...)
	if m.history {
		line, stored, ok, err := storage.Activities.One(ctx, s.c.Store, p, m.w.ID)
		if err == nil && len(m.post) > 0 { // money moves by what the row says
			var why string
			if why, err = s.Contradicts(ctx, p, &m.was, &line, ok); err == nil && why != "" {
				err = s.contradicted(ctx, p, row, why)
			}
		}
		if err != nil {
			return storage.Change{}, err
		}
		c.Put = append(c.Put, storage.Activities.Row(m.w.ID, stored.Version, time.Time{}, activity(&m.w, m.c)))
	}
	if m.w.Status != m.was.Status && m.w.Parent() != "" {
		if err := s.c.Follow(ctx, m.w, &c); err != nil {
			return storage.Change{}, err
		}
	}
	if err := s.waits(ctx, p, m, &c); err != nil || m.act == nil || s.c.Audit == nil {
		return c, err
	}
	return c, s.c.Audit(ctx, &c, *m.act)
}

// contradicted is the error of rows that contradict each other, nil where the withdrawal was
// written between the two reads: then its Change conflicts, and all is read again.
func (s *Service) contradicted(ctx context.Context, p storage.Partition, row storage.Row, why string) error {
	_, now, err := s.load(ctx, p, row.ID)
	if err == nil && now.Version == row.Version {
		err = alteredError(why)
	}
	return err
}
