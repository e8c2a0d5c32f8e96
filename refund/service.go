package refund

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Wallets finds the wallet that pays.
type Wallets interface {
	// OpenWallet finds a wallet by its id, "" being the master account, with the guard that it
	// is open. ok is false where it was closed.
	OpenWallet(ctx context.Context, tenant, ref string) (id string, open storage.Guard, ok bool, err error)
}

// ClaimFor is how long a claim link may be used.
const ClaimFor = 30 * 24 * time.Hour

// Config is what the service is made of. Everything but CheckURL, Wanted, Able and Log is
// required.
type Config struct {
	Store       storage.Store
	Registry    *chain.Registry
	Payments    *payment.Service
	Withdrawals *withdrawal.Service
	Wallets     Wallets
	// Seals seal what a claim link gives, and check it.
	Seals withdrawal.Mandates
	// Tokens are the tokens that the claim link of a refund can have, with the host's newest
	// key first: at least 128 bits that nobody can guess without a key, as text for a path.
	Tokens func(refund string) []string
	Now    func() time.Time
	NewID  func() string

	// CheckURL refuses a callback URL, in words for the merchant. Defaults to no check.
	CheckURL func(url string) error
	// Wanted says whether somebody gets the webhooks of a type. Defaults to yes.
	Wanted func(ctx context.Context, tenant, eventType string) (bool, error)
	// Able says whether every process on the store knows refunds. Defaults to yes.
	Able func(ctx context.Context) (bool, error)
	// Log takes what operators should see. Defaults to discarding.
	Log *slog.Logger
}

// Service makes refunds and follows them. All methods may be called concurrently, and by
// several processes over one store.
type Service struct {
	c        Config
	inFlight storage.InFlight
	unread   storage.Unreadable
}

// New checks the Config and makes a Service. It does no I/O.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Registry == nil || c.Payments == nil || c.Withdrawals == nil || c.Wallets == nil ||
		c.Seals == nil || c.Tokens == nil || c.Now == nil || c.NewID == nil {
		return nil, errors.New("refund: Config needs everything but CheckURL, Wanted, Able and Log")
	}
	if c.CheckURL == nil {
		c.CheckURL = func(string) error { return nil }
	}
	if c.Wanted == nil {
		c.Wanted = func(context.Context, string, string) (bool, error) { return true, nil }
	}
	if c.Able == nil {
		c.Able = func(context.Context) (bool, error) { return true, nil }
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	c.Store = storage.Joined(c.Store)
	return &Service{c: c}, nil
}

// now is the clock as precisely as stores keep it.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Microsecond) }

// maxRef is the length of the longest id that a store holds.
const maxRef = 200

// Get returns one of the tenant's refunds, or ErrNotFound. One whose row somebody edited has no
// Claim here, nor in the answers of List, Of and Create, so that Token gives no link.
func (s *Service) Get(ctx context.Context, tenant, id string) (Refund, error) {
	r, _, err := s.load(ctx, storage.Tenant(tenant), id)
	if err != nil {
		return r, err
	}
	return r, s.conceal(ctx, tenant, &r)
}

// conceal takes the claim link from a refund whose row somebody edited. A link follows from the
// refund's id: who copies the row of another tenant's refund must not be shown its link.
func (s *Service) conceal(ctx context.Context, tenant string, r *Refund) error {
	why, err := s.Altered(ctx, tenant, r)
	if why != "" {
		r.Claim = ""
	}
	return err
}

// concealed are the refunds of rows, after conceal.
func (s *Service) concealed(ctx context.Context, tenant string, rows []storage.Row) ([]Refund, error) {
	out := values(rows)
	for i := range out {
		if err := s.conceal(ctx, tenant, &out[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (s *Service) load(ctx context.Context, p storage.Partition, id string) (Refund, storage.Row, error) {
	if id == "" || len(id) > maxRef {
		return Refund{}, storage.Row{}, ErrNotFound
	}
	r, row, ok, err := Refunds.One(ctx, s.c.Store, p, id)
	if err == nil && !ok {
		err = ErrNotFound
	}
	r.ID = id
	return r, row, err
}

// Filter selects refunds. Empty fields select nothing out.
type Filter struct {
	Payment string
	Deposit string // that was in suspense
	Status  Status
	From    time.Time // created then or later
	Before  time.Time // created before
	Limit   int       // 1 to 100; 0 = 20
	Offset  int
}

// List returns a page of refunds, newest first, and how many match. Errors: *InvalidError.
func (s *Service) List(ctx context.Context, tenant string, f Filter) ([]Refund, int64, error) {
	f.Limit = cmp.Or(f.Limit, 20)
	if err := s.CheckFilter(f); err != nil {
		return nil, 0, err
	}
	created := tally.Range{From: f.From, Before: f.Before}
	rows := storage.Query{
		Table: Refunds.Table, Partition: storage.Tenant(tenant), Limit: f.Limit, Offset: f.Offset,
		Order: []storage.Order{{Column: "created_at", Desc: true}}, Where: f.where(),
	}
	q := rows
	q.Where = created.Where("created_at", rows.Where)
	total, err := s.count(ctx, &q, rows, created, &f)
	if err != nil {
		return nil, 0, err
	}
	found, err := s.c.Store.Find(ctx, q)
	if err != nil {
		return nil, total, err
	}
	page, err := s.concealed(ctx, tenant, found)
	return page, total, err
}

// maxOf is how many refunds Of reads of a payment, and how many of deposits.
const maxOf = 100

// Of lists the refunds of a payment, and those of deposits that were in suspense, newest
// first: at most 100 of the one and of the others, which are to be at most 100. It counts
// nothing, and there may be neither payment nor deposits.
func (s *Service) Of(ctx context.Context, tenant, payment string, deposits ...string) ([]Refund, error) {
	q := storage.Query{
		Table: Refunds.Table, Partition: storage.Tenant(tenant), Limit: maxOf, Order: []storage.Order{{Column: "created_at", Desc: true}},
		Where: []storage.Cond{{Column: "payment", Op: storage.Eq, Value: payment}},
	}
	rows, err := s.c.Store.Find(ctx, q)
	if err == nil && len(deposits) > 0 {
		var more []storage.Row
		q.Where = []storage.Cond{{Column: "deposit", Op: storage.In, Value: deposits}}
		more, err = s.c.Store.Find(ctx, q)
		rows = append(rows, more...)
	}
	if err != nil {
		return nil, err
	}
	out, err := s.concealed(ctx, tenant, rows)
	slices.SortStableFunc(out, func(a, b Refund) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return out, err
}

// CheckFilter says what is wrong with a filter: *InvalidError.
func (s *Service) CheckFilter(f Filter) error {
	bad := &InvalidError{}
	if f.Status != "" && !slices.Contains(Statuses(), f.Status) {
		bad.Add("status", "is not a status of refunds")
	}
	bad.AddPage(cmp.Or(f.Limit, 20), f.Offset)
	return bad.Err()
}

// where is the filter without its time.
func (f *Filter) where() (out []storage.Cond) {
	if f.Payment != "" {
		out = append(out, storage.Cond{Column: "payment", Op: storage.Eq, Value: f.Payment})
	}
	if f.Deposit != "" {
		out = append(out, storage.Cond{Column: "deposit", Op: storage.Eq, Value: f.Deposit})
	}
	if f.Status != "" {
		out = append(out, storage.Cond{Column: "status", Op: storage.Eq, Value: f.Status})
	}
	return out
}

// count says how many refunds match a list's query, and finds the place of a deep page. rows
// are the same at any time. Where no counters hold yet, and of one payment or deposit, it
// counts rows.
func (s *Service) count(ctx context.Context, q *storage.Query, rows storage.Query, created tally.Range, f *Filter) (int64, error) {
	if f.Payment != "" || f.Deposit != "" {
		return s.c.Store.Count(ctx, *q)
	}
	match := tally.Match{tally.Is(string(f.Status))}
	n, counted, err := Tally.Between(ctx, s.c.Store, created, s.now(), match, rows)
	if err == nil && !counted {
		return s.c.Store.Count(ctx, *q)
	}
	if err == nil {
		*q, err = tally.Page(ctx, s.c.Store, *q, rows, created, tally.Side{Tally: Tally, Match: match})
	}
	return n, err
}

func values(rows []storage.Row) []Refund {
	out := make([]Refund, len(rows))
	for i, row := range rows {
		out[i] = Refunds.Value(row)
		out[i].ID = row.ID
	}
	return out
}

// Token is that of a refund's claim link while it can be used, "" where it cannot, or where
// the key that it was made with is gone.
func (s *Service) Token(r *Refund) string {
	if r.Status == AwaitingAddress {
		for _, token := range s.c.Tokens(r.ID) {
			if digest(token) == r.Claim {
				return token
			}
		}
	}
	return ""
}

// Left is what may still be given back of a payment, in its units: what it received and still
// has, less what its refunds took. Errors: *payment.NotFoundError.
func (s *Service) Left(ctx context.Context, tenant, paymentID string) (ledger.Amount, error) {
	p, _, err := s.payment(ctx, storage.Tenant(tenant), paymentID)
	if err != nil {
		return 0, err
	}
	return s.left(ctx, tenant, &p)
}

func (s *Service) left(ctx context.Context, tenant string, p *payment.Payment) (ledger.Amount, error) {
	left, err := s.over(ctx, tenant, p)
	return max(left, 0), err
}

// over is left, below 0 where a fork has taken away what refunds count on.
func (s *Service) over(ctx context.Context, tenant string, p *payment.Payment) (ledger.Amount, error) {
	left := p.Received
	err := storage.Pages(ctx, s.c.Store, storage.Query{
		Table: Refunds.Table, Partition: storage.Tenant(tenant), Where: []storage.Cond{
			{Column: "payment", Op: storage.Eq, Value: p.ID}, {Column: "status", Op: storage.In, Value: counts()},
		},
	}, func(rows []storage.Row) (err error) {
		for _, r := range values(rows) {
			if err == nil {
				left, err = left.Sub(r.Amount)
			}
		}
		return err
	})
	return left, err
}

func (s *Service) payment(ctx context.Context, p storage.Partition, id string) (payment.Payment, storage.Row, error) {
	missing := &payment.NotFoundError{Field: "transaction_id", ID: id}
	if id == "" || len(id) > maxRef {
		return payment.Payment{}, storage.Row{}, missing
	}
	v, row, ok, err := payment.Payments.One(ctx, s.c.Store, p, id)
	if err == nil && !ok {
		err = missing
	}
	return v, row, err
}

// move takes a refund to a status by a trigger: the table must allow it. It adds the row and
// the events to the Change.
func (s *Service) move(ctx context.Context, tenant string, r *Refund, row storage.Row, t trigger, to Status, c *storage.Change) error {
	from, now := r.Status, s.now()
	var was *tally.Item
	if row.Version > 0 {
		was = r.counted()
	}
	if err := machine.Move(from, t, to); err != nil {
		return err
	}
	r.Status, r.UpdatedAt = to, now
	if r.Waiting = ""; to == AwaitingAddress {
		r.Waiting = WaitingAddress
	}
	r.WaitingSince = time.Time{}
	due := time.Time{}
	if to == AwaitingAddress {
		r.WaitingSince, due = now, r.ExpiresAt
	}
	made, err := told(r, from, now)
	if err != nil {
		return err
	}
	c.Tell = append(c.Tell, made)
	if from != "" { // creation is nobody's news
		if err := s.announce(ctx, tenant, r, from, now, c); err != nil {
			return err
		}
	}
	c.Put, c.Count = append(c.Put, Refunds.Row(r.ID, row.Version, due, *r)), append(c.Count, Tally.Moved(was, r.counted())...)
	return nil
}

// giveBack lowers the level of the payment by what a refund took.
func giveBack(r *Refund, amount ledger.Amount, c *storage.Change) {
	if r.Payment != "" {
		c.Level = append(c.Level, storage.Level{Name: level(r.Payment), Delta: -int64(amount)})
	}
}

// takeRest gives the house back what it has paid for the withdrawal of a rest (see
// withdrawal.Service.PayMissing) that ends unpaid, where its wallet is a refund's own: nobody
// else could take it from there.
func (s *Service) takeRest(w *withdrawal.Withdrawal, c *storage.Change) error {
	if w.Status != withdrawal.Failed && w.Status != withdrawal.Cancelled || !strings.HasPrefix(w.Wallet, walletOf("")) {
		return nil
	}
	post := []ledger.Tx{{ID: "unmissing/" + w.ID, Kind: ledger.KindAdjustment, Ref: w.ID, At: s.now(), Legs: []ledger.Leg{
		{Account: ledger.Wallet(w.Wallet), Asset: ledger.Asset(w.Currency), Delta: -w.Requested},
		{Account: ledger.Adjustment, Asset: ledger.Asset(w.Currency), Delta: w.Requested},
	}}}
	c.Post, c.Count = append(c.Post, post...), append(c.Count, tally.Entries(post)...)
	return nil
}

// Follow is withdrawal.Config.Follow: a refund is what its withdrawal is, from the same Change
// on.
func (s *Service) Follow(ctx context.Context, w withdrawal.Withdrawal, c *storage.Change) error {
	id, ok := OfWithdrawal(&w)
	if !ok {
		return s.takeRest(&w, c)
	}
	r, row, err := s.load(ctx, storage.Tenant(w.Tenant), id)
	if err == nil && w.Parent() != r.parent() && w.Parent() != parentPrefix+id { // as earlier versions wrote it
		err = fmt.Errorf("%w: refund %s names another payment or deposit than its withdrawal", ErrAltered, id)
	}
	if err != nil {
		return err
	}
	if w.Status == withdrawal.Failed || w.Status == withdrawal.Cancelled {
		r.Failure = w.Reason
		giveBack(&r, w.Requested, c)
		if r.Payment == "" {
			if err := s.c.Payments.ReturnSuspended(ctx, w.Tenant, r.Deposit, r.ID, w.Wallet, c); err != nil {
				return err
			}
		}
	}
	return s.move(ctx, w.Tenant, &r, row, onPayout, statusOf(w.Status), c)
}
