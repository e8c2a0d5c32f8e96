package withdrawal

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// A payment that has landed and brought the recipient less than was ordered (a token
// that takes a fee) is neither completed nor failed: it waits as WaitingDeliveredLess,
// and the tenant's other payouts of its currency wait with it, until an operator decides.
// Those of every tenant wait until he lifts the halt: see outgoing.Config.Less. One of a
// currency without required confirmations was completed before it landed: it stays
// completed, and waits for the operator in the same way.

// DeliveredLess reports whether a withdrawal of this currency of the tenant's waits for
// TakeDelivered or PayMissing. While one does, no other of the currency is paid out.
func (s *Service) DeliveredLess(ctx context.Context, tenant, currency string) (bool, error) {
	find := func(status Status, more ...storage.Cond) (bool, error) {
		n, err := s.c.Store.Count(ctx, storage.Query{
			Table: Withdrawals.Table, Partition: storage.Tenant(tenant), Where: append(more,
				storage.Cond{Column: "currency", Op: storage.Eq, Value: currency},
				storage.Cond{Column: "status", Op: storage.Eq, Value: status},
				storage.Cond{Column: "waiting", Op: storage.Eq, Value: WaitingDeliveredLess}),
		})
		return n > 0, err
	}
	less, err := find(Processing)
	if c, unknown := s.c.Registry.Currency(currency); err != nil || less || unknown != nil || s.c.Confirmations(c) > 0 {
		return less, err
	}
	// The history of those that are completed is long, and few of them wait.
	return find(Completed, storage.Cond{Column: "waiting_since", Op: storage.Gt, Value: time.Time{}})
}

// TakeDelivered completes a withdrawal that waits as WaitingDeliveredLess: what the
// recipient got is taken for the whole, and the hold is posted as ordered. by names who does
// it, reason says why: both are recorded, and reason is kept with it. One that is completed
// already is returned as it is. Of one that has failed or was cancelled, and was paid all the same, it notes that
// an operator has looked at it: no money moves, and App.Verify names it no more. ErrNotShort where it does not wait for this decision,
// ErrNotFound, *InvalidError.
func (s *Service) TakeDelivered(ctx context.Context, tenant, id, by, reason string) (Withdrawal, error) {
	act := audit.Act{Kind: audit.Take, By: by, Reason: reason, Tell: true}
	if err := checkAct(&act); err != nil {
		return Withdrawal{}, err
	}
	return s.act(ctx, tenant, id, func(m *move) error {
		if m.w.Status == Completed && m.w.Delivered > 0 && m.w.Waiting != WaitingDeliveredLess {
			return nil
		}
		if m.w.Status == Failed || m.w.Status == Cancelled {
			return m.seen(act)
		}
		return m.take(act)
	})
}

// seen notes that an operator has looked at a withdrawal that was paid after it had ended.
func (m *move) seen(act audit.Act) error {
	switch {
	case m.w.PaidAfterEnd() != "":
	case m.w.Delivered > 0:
		return nil // somebody has
	default:
		return fmt.Errorf("%w: %s is %s", ErrNotShort, m.w.ID, m.w.Status)
	}
	m.w.Reason = act.Reason
	m.record(act, m.w.Delivered)
	m.reason("")
	m.touch()
	return nil
}

// PayMissing completes a withdrawal as TakeDelivered does, and makes another of what the
// recipient did not get, which the operator pays: an adjustment credits it to the wallet
// in the same Change that holds it. It returns that one. Its id follows from the first
// one's, so asking again returns it again. Errors are those of TakeDelivered, those of Config.Missing, and
// ErrNoEquity. ErrNotShort, too, where the chain says that less is missing than the withdrawal's row.
func (s *Service) PayMissing(ctx context.Context, tenant, id, by, reason string) (Withdrawal, error) {
	act := audit.Act{Kind: audit.Pay, By: by, Reason: reason, Tell: true}
	if err := checkAct(&act); err != nil {
		return Withdrawal{}, err
	}
	most, err := s.missing(ctx, tenant, id)
	if err != nil {
		return Withdrawal{}, err
	}
	rest, err := s.payMissing(ctx, tenant, id, act, most)
	if errors.Is(err, ErrNotShort) {
		if made, _, missing := s.load(ctx, storage.Tenant(tenant), restID(id)); missing == nil {
			return made, nil
		}
	}
	return rest, err
}

// payMissing decides anew where another PayMissing of the currency came between the look
// at the equity and the commit. The level of what was paid of a currency tells: each moves
// it, and its ceiling is where it stood before the equity was read.
func (s *Service) payMissing(ctx context.Context, tenant, id string, act audit.Act, most ledger.Amount) (rest Withdrawal, err error) {
	var paid *storage.LevelError
	for range maxOvertaken {
		var stood int64
		if paid != nil {
			stood = paid.Value
		}
		_, err = s.act(ctx, tenant, id, func(m *move) error {
			if missing := m.w.Missing(); missing > most && m.w.Waiting == WaitingDeliveredLess {
				return fmt.Errorf("%w by so much: its row says that %d units are missing, the chain says %d", ErrNotShort, missing, most)
			}
			if err := m.take(act); err != nil {
				return err
			}
			equity, err := s.equity(ctx, m)
			if err == nil && equity < m.w.Missing() {
				err = ErrNoEquity
			}
			if err == nil {
				missing := int64(m.w.Missing())
				m.level = append(m.level, storage.Level{Name: "missing/" + m.w.Currency, Delta: missing, Max: stood + missing})
				rest, err = m.rest(s)
			}
			return err
		})
		if !errors.As(err, &paid) {
			return rest, err
		}
	}
	return rest, err
}

// missing is the most that PayMissing may pay for a withdrawal: what the chain says, where one is asked.
// One that does not wait for a decision is not asked about.
func (s *Service) missing(ctx context.Context, tenant, id string) (ledger.Amount, error) {
	w, _, err := s.load(ctx, storage.Tenant(tenant), id)
	if err != nil || w.Waiting != WaitingDeliveredLess || s.c.Missing == nil {
		return math.MaxInt64, err
	}
	return s.c.Missing(ctx, w)
}

// maxOvertaken is how often a decision on equity is made anew.
const maxOvertaken = 32

// equity is what the operator owns and can spare of a withdrawal's currency: what PayMissing takes must
// not be other merchants' money.
func (s *Service) equity(ctx context.Context, m *move) (ledger.Amount, error) {
	w := &m.w
	if s.c.Spare != nil {
		spare, row, err := s.c.Spare(ctx, w.Tenant, ledger.Asset(w.Currency))
		m.with = append(m.with, row)
		return spare, err
	}
	balances, err := storage.Tenant(w.Tenant).HouseBalances(ctx, s.c.Store)
	var sum ledger.Amount
	for _, b := range balances {
		if err == nil && b.Asset == ledger.Asset(w.Currency) {
			sum, err = sum.Add(b.Available())
		}
	}
	return sum, err
}

// take completes a withdrawal that delivered less.
func (m *move) take(act audit.Act) error {
	if m.w.Waiting != WaitingDeliveredLess || m.w.Status != Processing && m.w.Status != Completed {
		return fmt.Errorf("%w: %s is %s", ErrNotShort, m.w.ID, m.w.Status)
	}
	m.w.Reason = act.Reason
	m.record(act, m.w.Missing())
	m.reason("")
	return m.step(onTaken, Completed)
}

// rest adds the withdrawal of what is missing, and what makes the operator pay it.
func (m *move) rest(s *Service) (Withdrawal, error) {
	w, missing := m.w, m.w.Missing()
	w = Withdrawal{
		ID: restID(w.ID), Tenant: w.Tenant, CustomID: w.CustomID, Wallet: w.Wallet, Currency: w.Currency, Network: w.Network,
		Token: w.Token, Address: w.Address, Memo: w.Memo, SentMemo: w.SentMemo, CallbackURL: w.CallbackURL,
		Requested: missing, Amount: missing, Rank: rank(missing, m.c.Scale),
		Status: Pending, Required: w.Required, Review: ReviewApproved, CreatedAt: m.now, UpdatedAt: m.now,
	}
	err := s.authorize(&w, m.w.ID)
	if err == nil {
		err = s.approve(&w)
	}
	if err != nil {
		return w, err
	}
	made, err := told(&w, "", m.c, m.now)
	if err != nil {
		return w, err
	}
	m.told = append(m.told, made)
	m.post = append(m.post, creditTx(&w, m.now), holdTx(&w, m.now))
	m.count = append(m.count, Tally.Moved(nil, w.counted())...)
	m.with = append(m.with,
		Withdrawals.Row(w.ID, 0, m.now, w),
		storage.Activities.Row(w.ID, 0, time.Time{}, activity(&w, m.c)))
	return w, nil
}

// restID is the id of the withdrawal of what another one did not deliver.
func restID(id string) string { return id + "-rest" }

// creditTx gives a wallet what a withdrawal of a rest pays out, at the operator's cost.
func creditTx(w *Withdrawal, at time.Time) ledger.Tx {
	return ledger.Tx{
		ID: "missing/" + w.ID, Kind: ledger.KindAdjustment, Ref: w.ID, At: at,
		Legs: []ledger.Leg{
			{Account: ledger.Wallet(w.Wallet), Asset: ledger.Asset(w.Currency), Delta: w.Amount},
			{Account: ledger.Adjustment, Asset: ledger.Asset(w.Currency), Delta: -w.Amount},
		},
	}
}
