package refund

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// CreateInput asks for a refund of a payment.
type CreateInput struct {
	Payment string
	// Amount is what leaves the wallet that was credited, in whole coins of the payment's
	// currency: the withdrawal's fees come off it. All is all that is left to refund. Exactly
	// one of them is given.
	Amount *decimal.Decimal
	All    bool
	// Address is the customer's, as he named it. "" = he names it by the claim link.
	Address     string
	Memo        string // memo or tag of the Address
	Reason      string // the merchant's; at most 1,000 characters
	CallbackURL string
	// By is who asks, as of withdrawal.CreateInput. A Key does not cover it.
	By string
	// Key is the caller's own of this request: sent again with the same content within
	// storage.OnceFor it makes nothing, and answers the first result, Replayed. Defaults to
	// none: each request is a new one. At most storage.MaxOnceKey bytes.
	Key string
}

// The bounds of a request's texts, in characters.
const (
	maxText = 1000
	maxURL  = 2048
)

// Create makes a refund of a payment, or does nothing. Errors: *payment.NotFoundError;
// *StateError where nothing of the payment was credited, or its currency is not offered now;
// *InvalidError, of amount also where more is asked than is left; those of
// withdrawal.Service.Create, also where the customer names the address later; ErrNotUpgraded.
func (s *Service) Create(ctx context.Context, tenant string, in CreateInput) (Refund, error) {
	p := storage.Tenant(tenant)
	asked := in
	asked.By = ""
	once, err := storage.OnceOf(ctx, in.Key, asked)
	if err != nil {
		return Refund{}, err
	}
	leave, err := s.inFlight.Enter(p, once)
	defer leave()
	if err != nil {
		return Refund{}, err
	}
	if first, replay, err := once.Find(ctx, s.c.Store, p, s.c.Now()); err != nil || replay {
		return s.replayed(ctx, tenant, once, first, err)
	}
	if err := s.able(ctx); err != nil {
		return Refund{}, err
	}
	for try := 1; ; try++ {
		r, err := s.create(ctx, tenant, in, once)
		if over := (*tooMuchError)(nil); !errors.As(err, &over) || !in.All || try == maxOvertaken {
			return r, err
		}
	}
}

// maxOvertaken is how often a refund of all that is left is decided anew, where others take of
// it meanwhile.
const maxOvertaken = 32

func (s *Service) able(ctx context.Context) error {
	able, err := s.c.Able(ctx)
	if err == nil && !able {
		err = ErrNotUpgraded
	}
	return err
}

// Check says what is wrong with a request by itself, without looking at the payment:
// *InvalidError with every wrong field.
func (s *Service) Check(in CreateInput) error {
	bad := &InvalidError{}
	if (in.Amount != nil) == in.All {
		bad.Add("amount", "give an amount, or all")
	} else if in.Amount != nil {
		if _, why := fault.Units(*in.Amount, 8); why != "" {
			bad.Add("amount", why)
		}
	}
	if in.Address == "" && in.Memo != "" {
		bad.Add("memo", "belongs to an address")
	}
	s.checkTexts(bad, in.Reason, in.CallbackURL, in.By)
	return bad.Err()
}

func (s *Service) checkTexts(bad *InvalidError, reason, callback, by string) {
	bad.AddLong("reason", reason, maxText)
	bad.AddLong("by", by, maxText)
	bad.AddLong("callback_url", callback, maxURL)
	if callback == "" {
		return
	}
	if err := s.c.CheckURL(callback); err != nil {
		bad.Add("callback_url", err.Error())
	}
}

// tooMuchError is more than is left of a payment.
type tooMuchError struct{ *InvalidError }

func (e *tooMuchError) Unwrap() error { return e.InvalidError }

func (r *Refund) tooMuch(left ledger.Amount) error {
	bad := &InvalidError{}
	bad.Add("amount", "is more than is left to refund: "+left.Decimal(uint8(r.Scale)).String()+" "+r.Currency) //nolint:gosec // a scale is at most 8
	return &tooMuchError{bad}
}

func (s *Service) create(ctx context.Context, tenant string, in CreateInput, once *storage.Once) (Refund, error) {
	if err := s.Check(in); err != nil {
		return Refund{}, err
	}
	p, _, err := s.payment(ctx, storage.Tenant(tenant), in.Payment)
	if err != nil {
		return Refund{}, err
	}
	c, err := s.refundable(&p)
	if err != nil {
		return Refund{}, err
	}
	amount, err := s.amount(ctx, tenant, &in, &p)
	if err != nil {
		return Refund{}, err
	}
	wallet, _, err := s.wallet(ctx, tenant, p.Wallet)
	if err != nil {
		return Refund{}, err
	}
	r := Refund{
		ID: s.c.NewID(), Payment: p.ID, Amount: amount, Currency: p.Currency, Network: p.Network, Scale: p.Scale, Wallet: wallet,
		Memo: in.Memo, Reason: in.Reason, CallbackURL: in.CallbackURL, RequestedBy: in.By,
	}
	var d *withdrawal.Draft
	if in.Address == "" {
		err = s.offer(ctx, tenant, &r, &p, c)
	} else {
		d, err = s.draft(ctx, tenant, &r, in.Address, in.Memo)
	}
	if err != nil {
		return Refund{}, err
	}
	return s.commit(ctx, tenant, r, d, once, func(ctx context.Context, change *storage.Change) error {
		p, row, err := s.payment(ctx, storage.Tenant(tenant), in.Payment)
		if err != nil {
			return err
		}
		change.Require = append(change.Require, payment.Payments.Guard(p.ID, row.Version))
		change.Level = append(change.Level, storage.Level{Name: level(p.ID), Delta: int64(r.Amount), Max: int64(p.Received)})
		return nil
	})
}

// refundable is the currency of a payment of which something can be given back.
func (s *Service) refundable(p *payment.Payment) (*chain.Currency, error) {
	c, err := s.c.Registry.Currency(p.Currency)
	switch {
	case p.Received <= 0:
		return nil, &StateError{Status: string(p.Shown()), Reason: "nothing of the payment is credited"}
	case err != nil:
		return nil, &StateError{Status: string(p.Shown()), Reason: "its currency is not offered now"}
	}
	return c, nil
}

// amount is what a request asks for, in units.
func (s *Service) amount(ctx context.Context, tenant string, in *CreateInput, p *payment.Payment) (ledger.Amount, error) {
	if in.Amount != nil {
		a, why := fault.Units(*in.Amount, uint8(p.Scale)) //nolint:gosec // a scale is at most 8
		if why != "" {
			return 0, fault.Invalid("amount", why)
		}
		return a, nil
	}
	left, err := s.left(ctx, tenant, p)
	if err == nil && left == 0 {
		err = fault.Invalid("amount", "nothing is left to refund")
	}
	return left, err
}

// wallet is the one that pays: what was credited, or the master account where that was closed.
func (s *Service) wallet(ctx context.Context, tenant, credited string) (string, storage.Guard, error) {
	id, open, ok, err := s.c.Wallets.OpenWallet(ctx, tenant, credited)
	if err == nil && !ok {
		id, open, ok, err = s.c.Wallets.OpenWallet(ctx, tenant, "")
	}
	if err == nil && !ok {
		err = &payment.NotFoundError{Field: "wallet_id", ID: credited}
	}
	return id, open, err
}

// order is the withdrawal of a refund.
func (r *Refund) order(address, memo string) withdrawal.Order {
	coins := r.Coins()
	return withdrawal.Order{
		ID: payoutID(r.ID), Parent: r.parent(), Wallet: r.Wallet,
		CreateInput: withdrawal.CreateInput{
			Terms: withdrawal.Terms{Amount: &coins, Currency: r.Currency, Address: address}, Memo: memo, By: r.RequestedBy,
		},
	}
}

// Coins is the Amount in whole coins.
func (r *Refund) Coins() decimal.Decimal { return r.Amount.Decimal(uint8(r.Scale)) } //nolint:gosec // a scale is at most 8

// parent is the Parent of the refund's withdrawal: the refund, and whose money it gives back. The
// withdrawal's mandate covers it.
func (r *Refund) parent() string { return parentPrefix + r.ID + "/" + cmp.Or(r.Payment, r.Deposit) }

// OfWithdrawal is the refund whose withdrawal w is; ok is false where w is of none.
func OfWithdrawal(w *withdrawal.Withdrawal) (id string, ok bool) {
	of, ok := strings.CutPrefix(w.Parent(), parentPrefix)
	id, _, _ = strings.Cut(of, "/")
	return id, ok
}

func (s *Service) draft(ctx context.Context, tenant string, r *Refund, address, memo string) (*withdrawal.Draft, error) {
	return s.c.Withdrawals.Draft(ctx, tenant, r.order(address, memo))
}

// offer gives a refund its claim link. What the withdrawal would be refused for now, whatever
// its address, is said now.
func (s *Service) offer(ctx context.Context, tenant string, r *Refund, p *payment.Payment, c *chain.Currency) error {
	coins := r.Coins()
	left, err := s.left(ctx, tenant, p)
	if err == nil && r.Amount > left {
		err = r.tooMuch(left)
	}
	if err != nil {
		return err
	}
	if _, err := s.c.Withdrawals.Estimate(ctx, tenant, withdrawal.Terms{Amount: &coins, Currency: r.Currency}); err != nil {
		return err
	}
	balances, err := s.c.Store.Balances(ctx, storage.Tenant(tenant), ledger.Wallet(r.Wallet))
	if err != nil {
		return err
	}
	var available ledger.Amount
	for _, b := range balances {
		if b.Asset == c.Asset() {
			available = max(0, b.Available())
		}
	}
	if available < r.Amount {
		return &withdrawal.InsufficientError{Available: c.Decimal(available), Requested: coins, Currency: c.Code, Scale: c.Scale}
	}
	r.Claim, r.ExpiresAt = digest(s.c.Tokens(r.ID)[0]), s.now().Add(ClaimFor)
	r.Seal, err = s.c.Seals.Make(r.terms(tenant))
	return err
}

// commit makes a refund in one Change with its withdrawal, where it has one, and with what is
// added.
func (s *Service) commit(ctx context.Context, tenant string, r Refund, d *withdrawal.Draft, once *storage.Once, add func(context.Context, *storage.Change) error) (Refund, error) {
	p, result, first := storage.Tenant(tenant), r, true
	err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		if !first {
			if stored, _, err := s.load(ctx, p, r.ID); !errors.Is(err, ErrNotFound) {
				result = stored
				return storage.Change{}, err
			}
		}
		first = false
		now := s.now()
		response, replay, err := once.Find(ctx, s.c.Store, p, now)
		if err != nil || replay {
			if err == nil {
				result, err = s.replayed(ctx, tenant, once, response, nil)
			}
			return storage.Change{}, err
		}
		result = r
		change := storage.Change{ID: s.c.NewID(), Partition: p}
		if err := add(ctx, &change); err != nil {
			return storage.Change{}, err
		}
		if err := s.begin(ctx, tenant, &result, d, onCreate, &change, storage.Row{}); err != nil {
			return storage.Change{}, err
		}
		return change, once.AddTo(&change, now, result)
	})
	return result, s.explain(err, &r, d)
}

// errClosed: the wallet that was to pay was closed after the withdrawal was priced.
var errClosed = fmt.Errorf("%w: the wallet was closed meanwhile", storage.ErrConflict)

// begin takes a refund to the state that creation or a claim leads to, with its withdrawal.
func (s *Service) begin(ctx context.Context, tenant string, r *Refund, d *withdrawal.Draft, t trigger, c *storage.Change, row storage.Row) error {
	if t == onCreate {
		r.CreatedAt = s.now()
	}
	if d == nil {
		return s.move(ctx, tenant, r, row, t, AwaitingAddress, c)
	}
	var open storage.Guard
	if r.Payment != "" { // else the wallet is the refund's own
		wallet, guard, err := s.wallet(ctx, tenant, r.Wallet)
		if err == nil && wallet != r.Wallet {
			err = errClosed
		}
		if err != nil {
			return err
		}
		open = guard
	}
	made, w, err := d.Change(ctx, open)
	if err != nil {
		return err
	}
	if w.Requested != r.Amount { // what the level counts, and the Seal covers
		return fmt.Errorf("%w: its withdrawal would take %d units, not %d", ErrAltered, w.Requested, r.Amount)
	}
	join(c, &made)
	r.Withdrawal, r.Address, r.Memo = w.ID, w.Address, w.Memo
	return s.move(ctx, tenant, r, row, t, Pending, c)
}

// join adds what one Change does to another of the same partition.
func join(c, with *storage.Change) {
	c.Require = append(c.Require, with.Require...)
	c.Put = append(c.Put, with.Put...)
	c.Post = append(c.Post, with.Post...)
	c.Level = append(c.Level, with.Level...)
	c.Count = append(c.Count, with.Count...)
	c.Tell = append(c.Tell, with.Tell...)
}

// explain turns a verdict of the store into what the merchant should know.
func (s *Service) explain(err error, r *Refund, d *withdrawal.Draft) error {
	var over *storage.LevelError
	switch {
	case errors.As(err, &over) && over.Name == level(r.Payment):
		return r.tooMuch(ledger.Amount(max(0, over.Max-over.Value)))
	case over != nil && over.Name == spent(r.ID).Name:
		return fmt.Errorf("%w: its claim link was used, or has ended", ErrAltered)
	}
	if d != nil {
		err = d.Explain(err)
	}
	return err
}

// replayed is the Refund that a first request was answered with. The answer may have been edited,
// as a row may: see conceal.
func (s *Service) replayed(ctx context.Context, tenant string, once *storage.Once, response []byte, err error) (Refund, error) {
	var r Refund
	if err == nil {
		err = once.Decode(response, &r)
	}
	if err == nil {
		err = s.conceal(ctx, tenant, &r)
	}
	r.Replayed = err == nil
	return r, err
}

// SuspenseInput asks for a refund of money in suspense: the whole deposit, less the
// withdrawal's fees.
type SuspenseInput struct {
	Deposit     string
	Address     string
	Memo        string
	Reason      string
	CallbackURL string
	By          string
}

// OfSuspense makes a refund of money in suspense, or does nothing. by records the decision in
// the same Change. Errors: *payment.NotFoundError; *payment.StateError where it does not wait
// in suspense; *StateError where its currency is not offered now; those of
// withdrawal.Service.Create; ErrNotUpgraded.
func (s *Service) OfSuspense(ctx context.Context, tenant string, in SuspenseInput, by ...payment.Recorded) (Refund, error) {
	r, d, err := s.ofSuspense(ctx, tenant, in)
	if err != nil {
		return Refund{}, err
	}
	return s.commit(ctx, tenant, r, d, &storage.Once{}, func(ctx context.Context, c *storage.Change) error {
		_, err := s.c.Payments.TakeSuspended(ctx, tenant, in.Deposit, r.ID, r.Wallet, c, by...)
		return err
	})
}

// CheckSuspense looks at a refund of money in suspense as OfSuspense does, and makes nothing.
func (s *Service) CheckSuspense(ctx context.Context, tenant string, in SuspenseInput) error {
	_, _, err := s.ofSuspense(ctx, tenant, in)
	return err
}

func (s *Service) ofSuspense(ctx context.Context, tenant string, in SuspenseInput) (Refund, *withdrawal.Draft, error) {
	bad := &InvalidError{}
	if in.Address == "" {
		bad.Add("address", "is required")
	}
	s.checkTexts(bad, in.Reason, in.CallbackURL, in.By)
	if err := errors.Join(bad.Err(), s.able(ctx)); err != nil {
		return Refund{}, nil, err
	}
	of, err := s.c.Payments.SuspendedDeposit(ctx, tenant, in.Deposit)
	if err != nil {
		return Refund{}, nil, err
	}
	c, err := s.c.Registry.Currency(of.Currency)
	switch status := of.SuspenseStatus(); {
	case status != payment.SuspenseOpen:
		return Refund{}, nil, &payment.StateError{Status: payment.Status(status), Reason: "it does not wait in suspense"}
	case err != nil:
		return Refund{}, nil, &StateError{Status: string(status), Reason: "its currency is not offered now"}
	}
	r := Refund{
		ID: s.c.NewID(), Deposit: of.ID, Amount: of.Amount, Currency: of.Currency, Network: of.Network, Scale: int(c.Scale),
		Reason: in.Reason, CallbackURL: in.CallbackURL, RequestedBy: in.By,
	}
	r.Wallet = walletOf(r.ID)
	d, err := s.draft(ctx, tenant, &r, in.Address, in.Memo)
	return r, d, err
}
