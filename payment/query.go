package payment

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
)

// MaxPage is the largest page of a list.
const MaxPage = fault.MaxPage

// Filter selects payments of a list. Empty fields select nothing out.
type Filter struct {
	Status     Status // as shown: waiting includes partially_paid
	Currency   string // combined code
	Blockchain string // network or its alias
	Token      string // symbol
	OrderID    string
	CustomID   string
	From       time.Time // created then or later
	Before     time.Time // created before
	Limit      int       // 1 to 100; 0 = 20
	Offset     int
}

// Get returns one payment of the tenant; *NotFoundError. One that may still be paid, and whose
// address is not ours, is an error.
func (s *Service) Get(ctx context.Context, tenant, id string) (Payment, error) {
	p, _, ok, err := Payments.One(ctx, s.c.Store, storage.Tenant(tenant), id)
	if err == nil && !ok {
		err = &NotFoundError{Field: "transaction_id", ID: id}
	}
	if err != nil {
		return p, err
	}
	wrong, err := s.altered(ctx, tenant, []Payment{p})
	if err = errors.Join(err, wrong[id]); err != nil {
		return Payment{}, err
	}
	return p, nil
}

// altered says which payments that may still be paid have an address that is not ours:
// somebody edited them, and their customers would pay him.
func (s *Service) altered(ctx context.Context, tenant string, list []Payment) (map[string]error, error) {
	if s.c.CheckAddresses == nil {
		return nil, nil
	}
	now := s.c.Now()
	list = slices.DeleteFunc(slices.Clone(list), func(p Payment) bool { return !p.Payable(now) })
	if len(list) == 0 {
		return nil, nil
	}
	wrong, err := s.c.CheckAddresses(ctx, tenant, list)
	for id, err := range wrong {
		s.c.Log.LogAttrs(ctx, slog.LevelError, "payment_address_altered",
			slog.String("tenant", tenant), slog.String("payment", id), slog.Any("error", err))
	}
	return wrong, err
}

// List returns a page of the tenant's payments, newest first, how many match
// the filter, and how many there are in all. One for which Get is an error has no address
// here. Errors: *InvalidError.
func (s *Service) List(ctx context.Context, tenant string, f Filter) (page []Payment, count, total int64, err error) {
	f.Limit = orElse(f.Limit, 20)
	q := storage.Query{
		Table: Payments.Table, Partition: storage.Tenant(tenant),
		Order: []storage.Order{{Column: "created_at", Desc: true}}, Limit: f.Limit, Offset: f.Offset,
	}
	if q.Where, err = s.where(&f); err != nil {
		return nil, 0, 0, err
	}
	if count, total, err = s.count(ctx, &q, &f); err != nil {
		return nil, 0, 0, err
	}
	rows, err := s.c.Store.Find(ctx, q)
	if err != nil {
		return nil, 0, 0, err
	}
	page = make([]Payment, len(rows))
	for i, r := range rows {
		page[i] = Payments.Value(r)
	}
	wrong, err := s.altered(ctx, tenant, page)
	if err != nil {
		return nil, 0, 0, err
	}
	for i := range page {
		if wrong[page[i].ID] != nil {
			page[i].Address = ""
		}
	}
	return page, count, total, nil
}

// count says how many payments match a list's query, and how many there are, and finds the
// place of a deep page. Where no counters hold yet, and for what the merchant called
// payments, it counts rows.
func (s *Service) count(ctx context.Context, q *storage.Query, f *Filter) (count, total int64, err error) {
	n, counted, err := Tally.Totals(ctx, s.c.Store, q.Partition, s.match(f), nil)
	if count, total = n[0], n[1]; err != nil {
		return 0, 0, err
	}
	if !counted {
		if total, err = s.c.Store.Count(ctx, storage.Query{Table: Payments.Table, Partition: q.Partition}); err != nil {
			return 0, 0, err
		}
	}
	rows, created := *q, tally.Range{From: f.From, Before: f.Before}
	switch {
	case f.OrderID != "" || f.CustomID != "":
		count, err = s.c.Store.Count(ctx, *q)
		return count, total, err
	case !counted:
		if count = total; len(q.Where) > 0 {
			count, err = s.c.Store.Count(ctx, *q)
		}
		return count, total, err
	case created != tally.Range{}:
		whole := *f
		whole.From, whole.Before = time.Time{}, time.Time{}
		rows.Where, _ = s.where(&whole) // checked before
		if count, _, err = Tally.Between(ctx, s.c.Store, created, s.now(), s.match(f), rows); err != nil {
			return 0, 0, err
		}
	}
	*q, err = tally.Page(ctx, s.c.Store, *q, rows, created, tally.Side{Tally: Tally, Match: s.match(f)})
	return count, total, err
}

// CheckFilter says what is wrong with a filter: *InvalidError.
func (s *Service) CheckFilter(f Filter) error {
	f.Limit = orElse(f.Limit, 20)
	_, err := s.where(&f)
	return err
}

// match is the filter as keys of the Tally have it. It was checked by where.
func (s *Service) match(f *Filter) tally.Match {
	network := f.Blockchain
	if n, err := s.c.Registry.Network(f.Blockchain); err == nil {
		network = string(n.Code)
	}
	return tally.Match{tally.Is(string(f.Status)), tally.Is(f.Currency), tally.Is(network), tally.Is(f.Token)}
}

func (s *Service) where(f *Filter) ([]storage.Cond, error) {
	bad, out := &InvalidError{}, []storage.Cond(nil)
	eq := func(column, value string) {
		out = append(out, storage.Cond{Column: column, Op: storage.Eq, Value: value})
	}
	switch {
	case f.Status == "":
	case f.Status == Waiting:
		out = append(out, storage.Cond{Column: "status", Op: storage.In, Value: []Status{Waiting, PartiallyPaid}})
	case f.Status == PartiallyPaid || !slices.Contains(Machine.States, f.Status):
		bad.Add("status", "is not a payment status")
	default:
		eq("status", string(f.Status))
	}
	if f.Currency != "" {
		if s.currency(f.Currency) == nil {
			bad.Add("currency", "is not supported")
		}
		eq("currency", f.Currency)
	}
	if f.Blockchain != "" {
		n, err := s.c.Registry.Network(f.Blockchain)
		if err != nil {
			bad.Add("blockchain", "is not supported")
		}
		eq("network", string(n.Code))
	}
	if f.Token != "" {
		if !slices.ContainsFunc(s.c.Registry.Codes(), func(code string) bool { return s.currency(code).Token == f.Token }) {
			bad.Add("token", "is not supported")
		}
		eq("token", f.Token)
	}
	if f.OrderID != "" {
		eq("order_id", f.OrderID)
	}
	if f.CustomID != "" {
		eq("custom_id", f.CustomID)
	}
	bad.AddPage(f.Limit, f.Offset)
	return tally.Range{From: f.From, Before: f.Before}.Where("created_at", out), bad.Err()
}

// Deposits lists what was counted for a payment, by first sighting.
func (s *Service) Deposits(ctx context.Context, tenant, id string) ([]Deposit, error) {
	x, err := s.byID(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	out := make([]Deposit, 0, len(x.deposits))
	for _, e := range x.deposits {
		if e.d.Role.counted() { // what the Screen holds belongs to the payment, and counts for nothing
			out = append(out, e.d)
		}
	}
	return out, nil
}

// Patch changes what a merchant may change of a payment; nil leaves a field.
type Patch struct {
	OrderID, Description, CallbackURL, CustomerEmail *string
}

// Update patches a payment that still waits for its money. Errors:
// *InvalidError, *NotFoundError, *StateError.
func (s *Service) Update(ctx context.Context, tenant, id string, patch Patch) (Payment, error) {
	if err := s.checkPatch(patch); err != nil {
		return Payment{}, err
	}
	return s.edit(ctx, tenant, id, func(x *decision) error {
		if x.p.Shown() != Waiting {
			return &StateError{Status: x.p.Shown(), Reason: "cannot be changed"}
		}
		for to, from := range map[*string]*string{
			&x.p.OrderID: patch.OrderID, &x.p.Description: patch.Description,
			&x.p.CallbackURL: patch.CallbackURL, &x.p.CustomerEmail: patch.CustomerEmail,
		} {
			if from != nil {
				*to = *from
			}
		}
		return nil
	})
}

// Erase empties order_description and customer_email of a payment that has ended: what it
// says of a person. Neither is in an event, a webhook or a list that is kept elsewhere.
// Erasing twice is as once. Errors: *NotFoundError, *StateError.
func (s *Service) Erase(ctx context.Context, tenant, id string) (Payment, error) {
	return s.edit(ctx, tenant, id, func(x *decision) error {
		if !x.p.over() {
			return &StateError{Status: x.p.Shown(), Reason: "has not ended, nothing of it can be erased"}
		}
		x.p.Description, x.p.CustomerEmail = "", ""
		return nil
	})
}

func (s *Service) checkPatch(patch Patch) error {
	bad := &InvalidError{}
	text := func(name string, v *string, most int) string {
		if v == nil {
			return ""
		}
		bad.AddLong(name, *v, most)
		return *v
	}
	text("order_id", patch.OrderID, maxOrderID)
	text("order_description", patch.Description, maxDescription)
	s.checkContact(text("callback_url", patch.CallbackURL, maxURL), text("customer_email", patch.CustomerEmail, maxEmail), bad)
	return bad.Err()
}

// Cancel ends a payment for which nothing has come; what comes later goes to
// suspense. Errors: *NotFoundError, *StateError.
func (s *Service) Cancel(ctx context.Context, tenant, id string) (Payment, error) {
	return s.edit(ctx, tenant, id, (*decision).cancel)
}

func (x *decision) cancel() error {
	if !Machine.Can(x.p.Status, onCancel) {
		return &StateError{Status: x.p.Shown(), Reason: "cannot be cancelled"}
	}
	if _, _, live := x.weights(); live > 0 || x.anyLate() {
		return &StateError{Status: x.p.Shown(), Reason: "a deposit has come, cannot be cancelled"}
	}
	x.p.Cancelled, x.p.Closed = true, true
	return x.move(onCancel, Expired)
}

// edit changes a payment by a merchant's wish and returns it as it then is.
func (s *Service) edit(ctx context.Context, tenant, id string, on func(*decision) error) (Payment, error) {
	var p Payment
	err := s.decide(ctx, tenant, func(ctx context.Context) (*decision, error) {
		return s.byID(ctx, tenant, id)
	}, func(x *decision) error {
		if err := on(x); err != nil {
			return err
		}
		x.touched, x.p.UpdatedAt = true, x.now
		p = x.p
		return nil
	})
	if err != nil {
		return Payment{}, err
	}
	return p, nil
}
