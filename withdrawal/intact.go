package withdrawal

import (
	"context"
	"errors"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Somebody who can write to the database must not be able to raise, redirect or repeat a
// payout by editing one row. So a withdrawal's row is compared, before money leaves, with
// what other rows say of it: its line of the unified history, which the creating Change
// wrote with the same figures, and what the ledger holds on its wallet.

// ErrAltered reports that a withdrawal's stored rows contradict each other.
var ErrAltered = errors.New("withdrawal: its stored rows contradict each other")

// altered says in which way the stored rows of w contradict each other, "" = in none.
// The guards keep them as they were read.
func (s *Service) altered(ctx context.Context, p storage.Partition, w *Withdrawal) (why string, guards []storage.Guard, err error) {
	line, row, ok, err := storage.Activities.One(ctx, s.c.Store, p, w.ID)
	if err != nil {
		return "", nil, err
	}
	if why, err = s.Contradicts(ctx, p, w, &line, ok); why != "" || err != nil || !w.Live() {
		return why, nil, err
	}
	held, err := s.held(ctx, p, w)
	if err == nil && held < w.Requested {
		why = fmt.Sprintf("its wallet holds %d units, less than the %d of this withdrawal", held, w.Requested)
	}
	return why, []storage.Guard{storage.Activities.Guard(w.ID, row.Version)}, err
}

// authorize gives a new withdrawal its mandate.
func (s *Service) authorize(w *Withdrawal, parent string) (err error) {
	w.Mandate = ""
	if s.c.Mandates == nil {
		return nil
	}
	t := w.Terms()
	t.Parent = parent
	w.Mandate, err = s.c.Mandates.Make(t)
	return err
}

// Contradicts is Withdrawal.Contradicts, and says whether the mandate, a decision or the
// approval of w is that of another order, or missing. An error is the store's.
func (s *Service) Contradicts(ctx context.Context, p storage.Partition, w *Withdrawal, line *storage.Activity, ok bool) (why string, err error) {
	if why = w.Contradicts(p, line, ok); why != "" {
		return why, nil
	}
	if why, err = s.unauthorized(ctx, w.Mandate, w.Terms()); why == "" && err == nil {
		why, err = s.forgedDecision(ctx, w)
	}
	if why == "" && err == nil && w.Live() && w.Approved() {
		why, err = s.unapproved(ctx, w)
	}
	return why, err
}

// intact is an error that wraps ErrAltered where the stored rows of a withdrawal contradict
// each other. Where they do not, they stay as they are until the Change.
func (s *Service) intact(ctx context.Context, m *move) error {
	p := storage.Tenant(m.was.Tenant)
	why, guards, err := s.altered(ctx, p, &m.was)
	if err == nil && why != "" {
		err = s.contradicted(ctx, p, m.row, why)
	}
	m.require = append(m.require, guards...)
	return err
}

// ofApproval is the kind of the mandate that is an approval.
const ofApproval chain.Purpose = "approval"

// approve notes that w may go out, so that it can be told from an edit.
func (s *Service) approve(w *Withdrawal) (err error) {
	if s.c.Mandates == nil {
		return nil
	}
	t := w.Terms()
	t.Kind, t.Decision = ofApproval, w.decisions()
	w.Approval, err = s.c.Mandates.Make(t)
	return err
}

// unapproved says why w may not go out although its row says so, "" = it may: neither the
// policy nor a person let it.
func (s *Service) unapproved(ctx context.Context, w *Withdrawal) (why string, err error) {
	t := w.Terms()
	t.Kind, t.Decision = ofApproval, w.decisions()
	if why, err = s.unauthorized(ctx, w.Approval, t); why != "" {
		why = "its approval: " + why
	}
	return why, err
}

// Approved reports whether the row of w says that it may go out, or has gone out.
func (w *Withdrawal) Approved() bool { return w.Stage != Kept || w.Review == ReviewApproved }

// Authorize gives a withdrawal its mandate, the seals of its decisions, and its approval where
// its row says that it was approved: one of an earlier version, or under a new key. It writes
// nothing.
func (s *Service) Authorize(w *Withdrawal) error {
	err := s.authorize(w, w.Terms().Parent)
	for n := range w.Decisions {
		err = errors.Join(err, s.sealDecision(w, n))
	}
	if w.Approval = ""; err == nil && w.Approved() {
		err = s.approve(w)
	}
	return err
}

// unauthorized says why an order is not one that somebody with the host's key gave, "" = it
// is one.
func (s *Service) unauthorized(ctx context.Context, text string, t mandate.Terms) (why string, err error) {
	if s.c.Mandates == nil {
		return "", nil
	}
	err = s.c.Mandates.Check(ctx, text, t)
	if errors.Is(err, mandate.ErrMissing) || errors.Is(err, mandate.ErrForged) || errors.Is(err, mandate.ErrKey) {
		return err.Error(), nil
	}
	return "", err
}

// Contradicts says in which way the row of partition p contradicts itself, Requested
// being Amount + PlatformFee + NetworkFee, or its line of the unified history (ok = it
// has one). "" = in none.
func (w *Withdrawal) Contradicts(p storage.Partition, line *storage.Activity, ok bool) string {
	sum, err := w.Amount.Add(w.PlatformFee)
	if err == nil {
		sum, err = sum.Add(w.NetworkFee)
	}
	switch {
	case storage.Tenant(w.Tenant) != p:
		return "it names another tenant"
	case err != nil || sum != w.Requested || w.Amount <= 0 || w.PlatformFee < 0 || w.NetworkFee < 0:
		return "amount and fees are not what was requested"
	case w.SentMemo != "" && w.SentMemo != w.Memo:
		return "the memo that is sent is not the one that was given"
	case w.Review != ReviewNone && w.Review != ReviewWanted && w.Review != ReviewApproved:
		return "its review is none that is known"
	case !ok:
		return "the unified history has no line of it"
	}
	for _, c := range []struct {
		column string
		same   bool
	}{
		{"kind", line.Kind == storage.ActivityWithdrawal},
		{"status", line.Status == string(w.Status)},
		{"currency", line.Currency == ledger.Asset(w.Currency)},
		{"amount", line.Amount == w.Requested && line.Net == w.Amount},
		{"fee", line.Fee == w.Fee()},
		{"address", line.Address == w.Address},
	} {
		if !c.same {
			return c.column + " is not that of its line of the unified history"
		}
	}
	return ""
}

// held is what the ledger holds on the wallet that pays. The ledger keeps holds as one
// sum per wallet and asset.
func (s *Service) held(ctx context.Context, p storage.Partition, w *Withdrawal) (ledger.Amount, error) {
	balances, err := s.c.Store.Balances(ctx, p, ledger.Wallet(w.Wallet))
	for i := range balances {
		if balances[i].Asset == ledger.Asset(w.Currency) {
			return balances[i].Held, err
		}
	}
	return 0, err
}

// Confirm says why an order to pay must not be signed, "" = it may be, and returns the
// withdrawal of the order. The payout side asks it before it reserves anything: the order
// must be that of a withdrawal that is not cancelled or failed, and whose stored rows agree.
func (s *Service) Confirm(ctx context.Context, in chain.Intent) (w Withdrawal, why string, err error) {
	p := storage.Tenant(in.Tenant)
	w, _, ok, err := Withdrawals.One(ctx, s.c.Store, p, in.ID)
	switch {
	case err != nil:
		return w, "", err
	case !ok:
		return w, "no withdrawal has this order", nil
	}
	w.ID = in.ID
	o := w.intent()
	switch {
	case w.Status == Cancelled || w.Status == Failed:
		return w, "the withdrawal of this order is " + string(w.Status), nil
	case in.Purpose != o.Purpose || in.Network != o.Network || in.Currency != o.Currency || in.To != o.To || in.Memo != o.Memo || in.Amount != o.Amount || in.All:
		return w, "the order is not what its withdrawal says", nil
	}
	why, _, err = s.altered(ctx, p, &w)
	if why == "" && err == nil && !w.Approved() {
		why = "its withdrawal was not approved"
	}
	if why == "" && err == nil && in.Mandate != w.Mandate {
		ordered := w
		ordered.Mandate = in.Mandate
		why, err = s.unauthorized(ctx, in.Mandate, ordered.Terms())
	}
	return w, why, err
}

// alteredError is nil for "".
func alteredError(why string) error {
	if why == "" {
		return nil
	}
	return fmt.Errorf("%w: %s", ErrAltered, why)
}
