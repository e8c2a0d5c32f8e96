package wallet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/webhook"
)

// Step settles the transfers that a version before this one accepted and left pending, and
// returns how many it worked on; 0 = nothing is due. Many processes may call it at once. An error is of some
// transfer that is tried again later, the others were worked on.
func (s *Service) Step(ctx context.Context) (worked int, err error) {
	now := s.now()
	rows, err := storage.Claimed(ctx, s.c.Store, storage.Claim{
		Table: TransferRows.Table, Now: now, Until: now.Add(s.c.Lease), Max: s.c.Batch,
		// Others are left to a process that lists their currency.
		Where: []storage.Cond{{Column: "currency", Op: storage.In, Value: s.c.Registry.Codes()}},
	}, s.c.Log)
	if err != nil {
		return 0, err
	}
	one := func(r storage.Row) string { return string(r.Partition) + "/" + r.ID }
	var failures []error
	for i, err := range storage.Work(ctx, s.c.Store, rows, one, s.apply) {
		if err != nil && !errors.Is(err, storage.ErrBusy) { // then it is due again when the lease ends
			failures = append(failures, fmt.Errorf("wallet: applying %s: %w", rows[i].ID, err))
		}
	}
	if err = errors.Join(failures...); err != nil {
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "transfers_not_applied", slog.Any("error", err))
	}
	return len(rows), err
}

// apply settles a claimed transfer, and decides anew where its ground has changed.
func (s *Service) apply(ctx context.Context, row storage.Row) error {
	claimed := true
	return storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		if !claimed {
			var err error
			if _, row, err = s.loadTransfer(ctx, row.Partition, row.ID); err != nil || row.Due.IsZero() {
				return storage.Change{}, err
			}
		}
		claimed = false
		return s.decideTransfer(ctx, row, s.now())
	})
}

// decideTransfer is what follows from a claimed row.
func (s *Service) decideTransfer(ctx context.Context, row storage.Row, now time.Time) (storage.Change, error) {
	t := TransferRows.Value(row)
	t.ID = row.ID
	change := storage.Change{ID: s.c.NewID(), Partition: row.Partition}
	if t.Status != TransferPending {
		change.Put = []storage.Row{TransferRows.Row(t.ID, row.Version, time.Time{}, t)}
		return change, nil
	}
	was := t.counted()
	c, err := s.c.Registry.Currency(t.Currency)
	if err != nil {
		return change, err
	}
	_, target, err := s.load(ctx, row.Partition, t.target())
	switch {
	case err == nil:
		change.Require = []storage.Guard{WalletRows.Guard(t.target(), target.Version)}
		err = t.settle(&change, was, row.Version, c.Scale, now)
	case errors.Is(err, ErrNotFound):
		if err = t.step(onClosed, TransferFailed, now); err != nil {
			return change, err
		}
		t.Error = "the wallet was deleted"
		change.Post = []ledger.Tx{releaseTx(&t, now)}
		err = t.end(&change, was, row.Version, c.Scale, now)
	}
	return change, err
}

// settle completes the transfer in a Change: what is held on the source goes to the target.
func (t *Transfer) settle(c *storage.Change, was *tally.Item, version int64, scale uint8, now time.Time) error {
	if err := t.step(onApply, TransferCompleted, now); err != nil {
		return err
	}
	t.CompletedAt = now
	c.Post = append(c.Post, settleTx(t, now))
	return t.end(c, was, version, scale, now)
}

// end puts a transfer that has ended into a Change, with its event, and counts it; was is
// how it was counted before, nil = it was not.
func (t *Transfer) end(c *storage.Change, was *tally.Item, version int64, scale uint8, now time.Time) error {
	event, err := webhook.NewEvent(webhook.TransferStatusUpdate, t.ID, t.Seq, t.CallbackURL,
		Update{Record: t.Record(scale), PreviousStatus: TransferPending}, now)
	if err != nil {
		return err
	}
	c.Count = append(Tally.Moved(was, t.counted()), tally.Entries(c.Post)...)
	c.Put = append(c.Put, TransferRows.Row(t.ID, version, time.Time{}, *t))
	webhook.Put(c, event)
	told, err := t.told(version > 0, scale, now)
	c.Tell = append(c.Tell, told)
	return err
}

// step takes the transfer to a status: the table must allow it.
func (t *Transfer) step(trigger transferTrigger, to TransferStatus, now time.Time) error {
	if err := machine.Move(t.Status, trigger, to); err != nil {
		return err
	}
	t.Status, t.UpdatedAt = to, now
	t.Seq++
	return nil
}
