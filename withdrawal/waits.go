package withdrawal

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// Wait is what was said of why a withdrawal waits: to the merchant at each change, to the
// operator once a reason that lasts. It has the withdrawal's id, and is due when the reason
// has lasted for Config.StuckAfter.
type Wait struct {
	Tenant  string    `db:"tenant"`
	Reason  string    `db:"reason"` // one of the Shown… constants; "" = it waits no more
	Since   time.Time `db:"since"`
	Seq     int64     `db:"event_seq"` // events of it so far
	Alerted bool      `db:"alerted"`   // the operator was told of this reason
}

// Waits is in tenants' partitions.
var Waits = storage.NewTable[Wait]("withdrawal_waits")

// WaitingUpdate is the data of a withdrawal_waiting. Amounts have 8 places.
type WaitingUpdate struct {
	WithdrawalID  string  `json:"withdrawal_id"`
	WaitingReason *string `json:"waiting_reason"` // null when it ends
	WaitingSince  *string `json:"waiting_since"`
	Currency      string  `json:"currency"`
	Amount        string  `json:"amount"`
}

func waitingUpdate(w *Withdrawal, reason string, c *chain.Currency) WaitingUpdate {
	u := WaitingUpdate{WithdrawalID: w.ID, WaitingReason: orNull(reason), Currency: w.Currency, Amount: w.Amount.Format(c.Scale, places)}
	if reason != "" {
		u.WaitingSince = orNull(webhook.Timestamp(w.WaitingSince))
	}
	return u
}

// waits adds to a Change what tells of a new reason to wait, where there is one. While a
// withdrawal is being handed over its reason is not known, and stays as it was told. So it
// is compared with what was told by whatever comes after that, also by an outcome.
func (s *Service) waits(ctx context.Context, p storage.Partition, m *move, c *storage.Change) error {
	reason := m.w.WaitingReason()
	unsaid := m.review || m.was.Stage == Handing
	if reason == m.was.WaitingReason() && !unsaid || m.trying {
		return nil
	}
	told, row, _, err := Waits.One(ctx, s.c.Store, p, m.w.ID)
	if err != nil {
		return err
	}
	if told.Reason == reason {
		return nil
	}
	told = Wait{Tenant: m.w.Tenant, Reason: reason, Since: m.w.WaitingSince, Seq: told.Seq + 1}
	// The merchant's URL for it is that of his settings, where he asked for it: a callback of
	// the withdrawal's own gets its statuses alone.
	event, err := webhook.NewEvent(webhook.WithdrawalWaiting, webhook.Waiting(m.w.ID), told.Seq, "", waitingUpdate(&m.w, reason, m.c), m.now)
	if err != nil {
		return err
	}
	webhook.Put(c, event)
	c.Put = append(c.Put, Waits.Row(m.w.ID, row.Version, s.alertAt(&m.w, reason), told))
	return nil
}

// alertAt is when the operator is told that a withdrawal waits. One that was sent has
// waited for long before it shows a reason, but for that no node answers.
func (s *Service) alertAt(w *Withdrawal, reason string) time.Time {
	switch {
	case reason == "":
		return time.Time{}
	case reason == ShownReorged, reason == ShownStuck && w.Status != Pending && w.Waiting != waitingNode:
		return w.WaitingSince
	}
	return w.WaitingSince.Add(s.c.StuckAfter)
}

// StepWaits tells the operator of withdrawals that have waited for Config.StuckAfter, once
// for each reason, in the log and by a Notice. It returns how many it looked at.
func (s *Service) StepWaits(ctx context.Context) (worked int, err error) {
	now := s.now()
	rows, err := storage.Claimed(ctx, s.c.Store, storage.Claim{
		Table: Waits.Table, Now: now, Until: now.Add(s.c.Lease), Max: s.c.Batch,
	}, s.c.Log)
	if err != nil {
		return 0, err
	}
	one := func(r storage.Row) string { return string(r.Partition) + "/" + r.ID }
	for _, e := range storage.Work(ctx, s.c.Store, rows, one, s.alert) {
		if e != nil && !errors.Is(e, storage.ErrBusy) && !errors.Is(e, storage.ErrConflict) {
			err = errors.Join(err, e)
		}
	}
	return len(rows), err
}

// alert tells of one, unless it waits for something else by now.
func (s *Service) alert(ctx context.Context, r storage.Row) error {
	wait := Waits.Value(r)
	w, err := s.decide(ctx, wait.Tenant, r.ID, func(m *move) error {
		if m.w.WaitingReason() != wait.Reason && (m.w.Stage != Handing || m.w.Status != Pending) {
			m.changed, m.review = true, true // a process died before it could say so
		}
		return nil
	})
	if err != nil || w.WaitingReason() != wait.Reason && w.Stage != Handing {
		return err
	}
	wait.Alerted = true
	long, err := waits(&w, w.Waiting, true, s.now()) // the host hears of it also where this process dies before Notify
	if err != nil {
		return err
	}
	err = storage.CommitOne(ctx, s.c.Store, storage.Change{
		ID: s.c.NewID(), Partition: r.Partition, Put: []storage.Row{Waits.Row(r.ID, r.Version, time.Time{}, wait)}, Tell: []storage.Event{long},
	})
	if err != nil {
		return err
	}
	detail := "it waits since " + webhook.Timestamp(wait.Since) + ": " + wait.Reason
	if w.Waiting == WaitingHalted && w.Status == Pending && w.Stage != Handed && w.Reason != "" {
		detail += " (" + w.Reason + ")"
	}
	s.c.Log.LogAttrs(ctx, slog.LevelWarn, "withdrawal_waiting", slog.String("tenant", w.Tenant), slog.String("withdrawal", w.ID),
		slog.String("currency", w.Currency), slog.String("reason", wait.Reason), slog.Time("since", wait.Since))
	s.c.Notify(storage.Apart(ctx), Notice{Tenant: w.Tenant, Withdrawal: w.ID, Kind: NoticeWaiting, Detail: detail})
	return nil
}
