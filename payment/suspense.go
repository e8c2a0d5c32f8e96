package payment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// SuspenseStatus is what has become of money that came otherwise than it was asked for.
type SuspenseStatus string

// The statuses.
const (
	SuspenseOpen     SuspenseStatus = "open"     // nobody has decided about it
	SuspenseCredited SuspenseStatus = "credited" // it is in a wallet
	SuspenseRefunded SuspenseStatus = "refunded" // it was sent back
	SuspenseIgnored  SuspenseStatus = "ignored"  // it stays in suspense
)

// suspenseStatuses lists them.
func suspenseStatuses() []SuspenseStatus {
	return []SuspenseStatus{SuspenseOpen, SuspenseCredited, SuspenseRefunded, SuspenseIgnored}
}

// Why money is in suspense, as merchants see it.
const (
	ReasonLate         = "late"          // it came after the window, or after a cancellation
	ReasonWrongAsset   = "wrong_asset"   // it is not the payment's currency
	ReasonWrongNetwork = "wrong_network" // it came on another network: networks share no address today, so nothing has it
	ReasonBelowMinimum = "below_minimum" // at a permanent address: it is credited when what waits there adds up to the minimum
	ReasonUnmatched    = "unmatched"     // no payment had the address, it cannot be proved, or a person has to look at it
)

var bookingsOf = map[SuspenseStatus][]Booking{
	SuspenseOpen: {InSuspense}, SuspenseCredited: {Resolved}, SuspenseRefunded: {Refunded, Written}, SuspenseIgnored: {Ignored},
}

var rolesOf = map[string][]Role{
	ReasonLate: {RoleUnmatched}, ReasonWrongAsset: {RoleWrongToken}, ReasonWrongNetwork: {}, ReasonBelowMinimum: {RoleSmall}, ReasonUnmatched: {RoleStray, RoleUnproven, RoleExcess, RoleHeld, RoleRefused},
}

// SuspenseStatus is what has become of a deposit's money, "" where it is not in suspense and
// never was, a reorg took it away, or it counts for its payment, as what was released does.
func (d *Deposit) SuspenseStatus() SuspenseStatus {
	if d.Role.counted() {
		return ""
	}
	for status, bookings := range bookingsOf {
		if slices.Contains(bookings, d.Booking) {
			return status
		}
	}
	return ""
}

// SuspenseReason is why a deposit does not count, as merchants see it: one of the Reason…
// constants.
func (d *Deposit) SuspenseReason() string {
	for reason, roles := range rolesOf {
		if slices.Contains(roles, d.Role) {
			return reason
		}
	}
	return ReasonUnmatched
}

// SuspenseTally counts deposits that are, or were, in suspense by status and reason.
var SuspenseTally = &tally.Tally{
	Name: "suspense", Table: Deposits.Table,
	Of: func(r storage.Row) tally.Item {
		d := Deposits.Value(r)
		return *d.counted()
	},
}

// counted has no key where the deposit is not in suspense and never was: it is not counted.
func (d *Deposit) counted() *tally.Item {
	i := &tally.Item{At: d.CreatedAt}
	if status := d.SuspenseStatus(); status != "" {
		i.Key = []string{string(status), d.SuspenseReason()}
	}
	return i
}

// suspended is what a decision changes of the counters of suspense.
func (x *decision) suspended() (out []storage.Count) {
	for _, e := range x.deposits {
		out = append(out, SuspenseTally.Moved(e.was.counted(), e.d.counted())...)
	}
	return out
}

// Suspense lists deposits whose money stands in suspense and waits for a decision, oldest
// first.
func (s *Service) Suspense(ctx context.Context, tenant string, limit, offset int) ([]Deposit, error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Deposits.Table, Partition: storage.Tenant(tenant), Limit: limit, Offset: offset,
		Where: []storage.Cond{{Column: "booking", Op: storage.Eq, Value: InSuspense}, {Column: "role", Op: storage.In, Value: suspenseRoles}},
		Order: []storage.Order{{Column: "created_at"}},
	})
	return values(rows), err
}

func values(rows []storage.Row) []Deposit {
	out := make([]Deposit, len(rows))
	for i, r := range rows {
		out[i] = Deposits.Value(r)
	}
	return out
}

// SuspenseFilter selects what is, or was, in suspense. Empty fields select nothing out.
type SuspenseFilter struct {
	Status SuspenseStatus
	Reason string
	Limit  int // 1 to 100; 0 = 20
	Offset int
}

// Suspended is a deposit that is, or was, in suspense. PaymentID is that of the payment that
// has the address, "" where none has.
type Suspended struct {
	Deposit
	PaymentID string
}

// SuspenseList lists what is, or was, in suspense, newest first, and how many match. Errors:
// *InvalidError.
func (s *Service) SuspenseList(ctx context.Context, tenant string, f SuspenseFilter) (page []Suspended, total int64, err error) {
	f.Limit = orElse(f.Limit, 20)
	bad := &InvalidError{}
	bookings, roles := bookingsOf[f.Status], rolesOf[f.Reason]
	if f.Status == "" {
		for _, status := range suspenseStatuses() {
			bookings = append(bookings, bookingsOf[status]...)
		}
	} else if bookings == nil {
		bad.Add("status", "must be open, credited, refunded or ignored")
	}
	if f.Reason != "" && roles == nil {
		bad.Add("reason", "must be late, wrong_asset, wrong_network, below_minimum or unmatched")
	}
	if bad.AddPage(f.Limit, f.Offset); bad.Err() != nil {
		return nil, 0, bad.Err()
	}
	if f.Reason != "" && len(roles) == 0 {
		return nil, 0, nil
	}
	q := storage.Query{
		Table: Deposits.Table, Partition: storage.Tenant(tenant), Limit: f.Limit, Offset: f.Offset,
		Where: []storage.Cond{{Column: "booking", Op: storage.In, Value: bookings}},
		Order: []storage.Order{{Column: "created_at", Desc: true}},
	}
	if f.Reason == "" {
		roles = suspenseRoles
	}
	q.Where = append(q.Where, storage.Cond{Column: "role", Op: storage.In, Value: roles})
	match := tally.Match{tally.Is(string(f.Status)), tally.Is(f.Reason)}
	n, counted, err := SuspenseTally.Totals(ctx, s.c.Store, q.Partition, match)
	if total = n[0]; err == nil && counted {
		q, err = tally.Page(ctx, s.c.Store, q, q, tally.Range{}, tally.Side{Tally: SuspenseTally, Match: match})
	} else if err == nil {
		total, err = s.c.Store.Count(ctx, q)
	}
	if err != nil {
		return nil, 0, err
	}
	rows, err := s.c.Store.Find(ctx, q)
	if err != nil {
		return nil, 0, err
	}
	page, err = s.withPayments(ctx, q.Partition, values(rows)...)
	return page, total, err
}

// withPayments finds the payments that have the addresses of deposits.
func (s *Service) withPayments(ctx context.Context, part storage.Partition, list ...Deposit) ([]Suspended, error) {
	out := make([]Suspended, len(list))
	keys := make([]storage.Key, len(list))
	for i, d := range list {
		out[i].Deposit = d
		keys[i] = ownAddress(part, d.Network, d.Address)
	}
	if len(keys) == 0 {
		return out, nil
	}
	rows, err := s.c.Store.Rows(ctx, Payments.Table, keys...)
	of := map[[2]string]string{}
	for _, r := range rows {
		p := Payments.Value(r)
		of[[2]string{p.Network, p.Address}] = p.ID
	}
	for i := range out {
		out[i].PaymentID = of[[2]string{out[i].Network, out[i].Address}]
	}
	return out, err
}

// SuspendedDeposit returns one deposit that is, or was, in suspense; *NotFoundError.
func (s *Service) SuspendedDeposit(ctx context.Context, tenant, depositID string) (Suspended, error) {
	part := storage.Tenant(tenant)
	d, _, ok, err := Deposits.One(ctx, s.c.Store, part, depositID)
	if err == nil && (!ok || d.SuspenseStatus() == "") {
		err = &NotFoundError{Field: "suspense_id", ID: depositID}
	}
	if err != nil {
		return Suspended{}, err
	}
	list, err := s.withPayments(ctx, part, d)
	return list[0], err
}

// Recorded makes the row that says who decided about a deposit and why, and the event that
// tells of it. The Change of the decision writes both.
type Recorded func(before, after Deposit) ([]storage.Row, []storage.Event, error)

// Resolve ends a suspense by a person's word: the money goes to a wallet of the
// tenant (wallet_id or external_id), in full and without fees. What the same
// deposit left that wallet owing is repaid first. Of two who decide at once one wins.
// Errors: *NotFoundError, *StateError where it does not wait in suspense.
func (s *Service) Resolve(ctx context.Context, tenant, depositID, wallet string, by ...Recorded) (Deposit, error) {
	return s.unsuspend(ctx, tenant, depositID, by, func(ctx context.Context, x *decision, e *entry, c *storage.Change) error {
		id, guard, err := s.openWallet(ctx, tenant, wallet)
		if err != nil {
			return err
		}
		debtor := e.d.Wallet
		e.d.Wallet, e.d.Booking, e.d.Net = id, Resolved, e.d.Amount
		c.Require = []storage.Guard{guard}
		err = x.post(ledger.Tx{
			ID: e.d.generated("resolve"), Kind: ledger.KindDeposit, Ref: e.d.ID, At: x.now,
			Legs: append(legs(e.d.Currency, ledger.Suspense, -e.d.Amount), legs(e.d.Currency, ledger.Wallet(id), e.d.Amount)...),
		})
		if err != nil {
			return err
		}
		return x.recover(e, debtor, e.d.Amount)
	})
}

// Ignore ends a suspense by a person's word: the money stays in the ledger's suspense
// account, and nobody is asked about it any more. Errors as of Resolve.
func (s *Service) Ignore(ctx context.Context, tenant, depositID string, by ...Recorded) (Deposit, error) {
	return s.unsuspend(ctx, tenant, depositID, by, func(_ context.Context, _ *decision, e *entry, _ *storage.Change) error {
		e.d.Booking = Ignored
		return nil
	})
}

// Refund books that a person has sent suspended money back outside of this
// library, or is about to. Errors as of Resolve.
func (s *Service) Refund(ctx context.Context, tenant, depositID string, by ...Recorded) (Deposit, error) {
	return s.unsuspend(ctx, tenant, depositID, by, func(_ context.Context, x *decision, e *entry, _ *storage.Change) error {
		e.d.Booking = Refunded
		return x.post(ledger.Tx{
			ID: e.d.generated("resolve"), Kind: ledger.KindRefund, Ref: e.d.ID, At: x.now,
			Legs: append(legs(e.d.Currency, ledger.Suspense, -e.d.Amount), legs(e.d.Currency, ledger.Chain(e.d.Network), e.d.Amount)...),
		})
	})
}

// TakeSuspended adds to a Change of a refund what takes a deposit's money out of suspense and
// into the refund's own wallet, that of its withdrawal, in full. ReturnSuspended with the same
// refund takes it back. Errors as of Resolve; a *StateError also where an earlier reversal of
// the deposit left a wallet owing: that is for Resolve.
func (s *Service) TakeSuspended(ctx context.Context, tenant, depositID, refund, wallet string, c *storage.Change, by ...Recorded) (Deposit, error) {
	return s.unsuspended(ctx, tenant, depositID, by, func(_ context.Context, x *decision, e *entry, _ *storage.Change) error {
		if e.d.Owed > 0 {
			return &StateError{Status: Status(SuspenseOpen), Reason: "a fork has left a wallet owing this deposit: credit it"}
		}
		e.d.Booking = Refunded
		return x.post(ledger.Tx{
			ID: "refund/" + refund, Kind: ledger.KindRefund, Ref: e.d.ID, At: x.now,
			Legs: append(legs(e.d.Currency, ledger.Suspense, -e.d.Amount), legs(e.d.Currency, ledger.Wallet(wallet), e.d.Amount)...),
		})
	}, c)
}

// ReturnSuspended adds to the Change that ends a refund's withdrawal unpaid what puts the money
// back, and the deposit waits in suspense again. Where a fork has taken the deposit away
// meanwhile the house has borne it, and gets the money instead.
func (s *Service) ReturnSuspended(ctx context.Context, tenant, depositID, refund, wallet string, c *storage.Change) error {
	part := storage.Tenant(tenant)
	e, err := s.entryOf(ctx, part, depositID)
	if err != nil {
		return err
	}
	back := ledger.Suspense
	switch e.d.Booking {
	case Refunded:
		e.d.Booking = InSuspense
	case Written:
		e.d.Booking, back = Reversed, ledger.Adjustment
	default:
		return fmt.Errorf("payment: the money of deposit %s is with refund %s, and its row says %q", depositID, refund, e.d.Booking)
	}
	x := &decision{env: env{now: s.now(), available: ledger.MaxAmount}, deposits: []*entry{e}}
	err = x.post(ledger.Tx{
		ID: "unrefund/" + refund, Kind: ledger.KindRefund, Ref: e.d.ID, At: x.now,
		Legs: append(legs(e.d.Currency, ledger.Wallet(wallet), -e.d.Amount), legs(e.d.Currency, back, e.d.Amount)...),
	})
	if err != nil {
		return err
	}
	return x.decided(e, nil, c)
}

// unsuspend decides about a deposit in suspense; on says how, and adds to the Change
// what the decision stands on.
func (s *Service) unsuspend(ctx context.Context, tenant, id string, by []Recorded, on func(context.Context, *decision, *entry, *storage.Change) error) (Deposit, error) {
	var out Deposit
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (c storage.Change, err error) {
		out, err = s.unsuspended(ctx, tenant, id, by, on, &c)
		c.ID, c.Partition = s.c.NewID(), storage.Tenant(tenant)
		return c, err
	})
	if err != nil {
		return Deposit{}, err
	}
	return out, nil
}

// entryOf is a deposit as it is stored, *NotFoundError.
func (s *Service) entryOf(ctx context.Context, part storage.Partition, id string) (*entry, error) {
	d, row, ok, err := Deposits.One(ctx, s.c.Store, part, id)
	if err == nil && !ok {
		err = &NotFoundError{Field: "deposit_id", ID: id}
	}
	return &entry{d: d, was: d, version: row.Version}, err
}

// unsuspended adds a decision about a deposit in suspense to a Change.
func (s *Service) unsuspended(ctx context.Context, tenant, id string, by []Recorded, on func(context.Context, *decision, *entry, *storage.Change) error, c *storage.Change) (Deposit, error) {
	e, err := s.entryOf(ctx, storage.Tenant(tenant), id)
	if err != nil {
		return Deposit{}, err
	}
	if e.d.SuspenseStatus() != SuspenseOpen {
		return Deposit{}, &StateError{Status: Status(e.d.SuspenseStatus()), Reason: fmt.Sprintf("deposit %s does not wait in suspense", id)}
	}
	x := &decision{env: env{now: s.now(), available: ledger.MaxAmount}, deposits: []*entry{e}}
	if err := on(ctx, x, e, c); err != nil {
		return Deposit{}, err
	}
	return e.d, x.decided(e, by, c)
}

// decided adds to a Change what was decided about a deposit. Its postings come after those
// that are there.
func (x *decision) decided(e *entry, by []Recorded, c *storage.Change) error {
	e.d.UpdatedAt = x.now
	events, err := e.tell(x.now)
	if err != nil {
		return err
	}
	c.Tell = append(c.Tell, events...)
	c.Post, c.Count = append(c.Post, x.posts...), slices.Concat(c.Count, tally.Entries(x.posts), x.suspended())
	c.Put = append(c.Put, Deposits.Row(e.d.ID, e.version, time.Time{}, e.d))
	for _, record := range by {
		rows, told, err := record(e.was, e.d)
		if err != nil {
			return err
		}
		c.Put, c.Tell = append(c.Put, rows...), append(c.Tell, told...)
	}
	return nil
}
