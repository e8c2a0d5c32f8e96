package withdrawal

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// CreateInput is a request to pay out.
type CreateInput struct {
	Terms              // Address is required
	Memo        string // memo or tag; required on networks that need one
	CustomID    string
	CallbackURL string
	AccountID   string // wallet id or the merchant's own; "" = the master account
	// By is who asks: the id of a credential, or a name that the host gives. He may not
	// approve it. "" = unknown, and anybody may approve it. A Key does not cover it.
	By string
	// Key is the caller's own of this request: sent again with the same content within
	// storage.OnceFor it makes nothing, and answers the first result, Replayed. Defaults to
	// none: each request is a new one. At most storage.MaxOnceKey bytes.
	Key string
}

// Create accepts a withdrawal and holds its whole cost, or does nothing. Errors:
// *InvalidError, *chain.AddressError, *InsufficientError, ErrFee, and those that
// wrap chain.ErrCurrency, rates.ErrUnavailable or the wallets' not-found; of
// CreateInput.Key, judged before anything else: those that wrap
// storage.ErrIdempotencyMismatch where its first request said something else,
// storage.ErrInProgress while that runs in this process, or storage.ErrIdempotencyKey.
func (s *Service) Create(ctx context.Context, tenant string, in CreateInput) (Withdrawal, error) {
	p := storage.Tenant(tenant)
	asked := in
	asked.By = ""
	once, err := storage.OnceOf(ctx, in.Key, asked)
	if err != nil {
		return Withdrawal{}, err
	}
	leave, err := s.inFlight.Enter(p, once)
	defer leave()
	if err != nil {
		return Withdrawal{}, err
	}
	// A key used for another body is told before anything else is looked at.
	if first, replay, err := once.Find(ctx, s.c.Store, p, s.c.Now()); err != nil || replay {
		return replayed(once, first, err)
	}
	w, from, err := s.draft(ctx, tenant, in, payer{})
	if err != nil {
		return Withdrawal{}, err
	}
	return s.commit(ctx, w, in.AccountID, from, once)
}

// payer is the wallet that pays, with the guard that it is open, or why there is none.
type payer struct {
	id   string
	open storage.Guard
	err  error
	// parent is what the withdrawal is a part of: see Order.Parent.
	parent string
}

func (s *Service) payer(ctx context.Context, tenant, account string) (p payer) {
	p.id, p.open, p.err = s.c.Wallets.Resolve(ctx, tenant, account)
	return p
}

// draft validates and prices; it writes nothing. What the store has to say is read side by
// side.
func (s *Service) draft(ctx context.Context, tenant string, in CreateInput, named payer) (w Withdrawal, from payer, err error) {
	c, err := s.validate(&in)
	if err != nil {
		return Withdrawal{}, from, err
	}
	from = named
	var to chain.Address
	var fee tenantFee
	err = storage.SideBySide(ctx, s.c.Store, func(ctx context.Context) (err error) {
		to, err = s.destination(ctx, tenant, c.Network, in.Address)
		return err
	}, func(ctx context.Context) error {
		fee = s.tenantFee(ctx, tenant, c)
		return nil
	}, func(ctx context.Context) error {
		if from.id == "" { // else an Order names it
			from = s.payer(ctx, tenant, in.AccountID)
		}
		return nil
	})
	if err != nil {
		return Withdrawal{}, from, err
	}
	w, err = s.drafted(ctx, tenant, in, c, to, fee)
	return w, from, err
}

// drafted is draft with what was read.
func (s *Service) drafted(ctx context.Context, tenant string, in CreateInput, c *chain.Currency, to chain.Address, fee tenantFee) (Withdrawal, error) {
	p, err := s.price(ctx, tenant, c, in.Terms, to, fee)
	if err != nil {
		return Withdrawal{}, err
	}
	w, err := s.written(ctx, tenant, in, c, to, p)
	if err == nil {
		w.Required = s.required(ctx, c, w.Amount, s.worth)
	}
	w.ID = s.c.NewID()
	return w, err
}

// required is how many confirmations complete a withdrawal of an amount: Config.Confirmations, or
// those of the currency's step by the value, where they are more. The payout side settles at the
// currency's own confirmations where the steps do not wait for the network's finality, so no more
// than those are asked for.
func (s *Service) required(ctx context.Context, c *chain.Currency, a ledger.Amount, worth worthSource) int64 {
	base := max(0, s.c.Confirmations(c))
	if base == 0 || len(c.Steps) == 0 {
		return base
	}
	usd, known := worth(ctx, c)
	need := c.Needs(c.Decimal(a).Mul(usd), known).Confirmations
	if !c.Steps[len(c.Steps)-1].WaitFinal {
		need = min(need, c.Confirmations)
	}
	return max(base, need)
}

// worthSource is worth, or what remembers its answers.
type worthSource func(ctx context.Context, c *chain.Currency) (usd decimal.Decimal, known bool)

// worth is the price of a coin in USD now, for required. Without an answer the most confirmations
// are needed.
func (s *Service) worth(ctx context.Context, c *chain.Currency) (usd decimal.Decimal, known bool) {
	usd, err := s.rate(ctx, c.Token, "USD")
	if err != nil {
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "price_unavailable", slog.String("currency", c.Code), slog.Any("error", err))
	}
	return usd, err == nil
}

// written is drafted with its price, and without an id and what it needs to be completed.
func (s *Service) written(ctx context.Context, tenant string, in CreateInput, c *chain.Currency, to chain.Address, p Price) (Withdrawal, error) {
	err := s.checkPrice(c, p)
	if err == nil && s.c.Deliverable != nil {
		err = s.c.Deliverable(ctx, c, to, in.Memo, p.Amount)
	}
	if err != nil {
		return Withdrawal{}, err
	}
	sent := in.Memo
	if n, err := s.c.Registry.Network(string(c.Network)); err != nil || !n.NeedsMemo {
		sent = ""
	}
	return Withdrawal{
		Tenant: tenant, CustomID: in.CustomID, CallbackURL: in.CallbackURL,
		Currency: c.Code, Network: string(c.Network), Token: c.Token, Address: string(to), Memo: in.Memo, SentMemo: sent,
		Requested: p.Requested, Amount: p.Amount, PlatformFee: p.PlatformFee, NetworkFee: p.NetworkFee,
		Rank: rank(p.Amount, c.Scale), Status: Pending, RequestedBy: in.By,
	}, nil
}

// commit makes the withdrawal and its hold true at once.
func (s *Service) commit(ctx context.Context, w Withdrawal, account string, from payer, once *storage.Once) (Withdrawal, error) {
	c, err := s.c.Registry.Currency(w.Currency)
	if err != nil {
		return Withdrawal{}, err
	}
	p := storage.Tenant(w.Tenant)
	result, first := w, true
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		if !first {
			if stored, _, err := s.load(ctx, p, w.ID); !errors.Is(err, ErrNotFound) {
				result = stored
				return storage.Change{}, err
			}
			from = s.payer(ctx, w.Tenant, account)
		}
		first = false
		now := s.now()
		response, replay, err := once.Find(ctx, s.c.Store, p, now)
		if err != nil || replay {
			if err == nil {
				result, err = replayed(once, response, nil)
			}
			return storage.Change{}, err
		}
		change, made, err := s.creation(ctx, w, from, c, now)
		if err != nil {
			return storage.Change{}, err
		}
		result = made
		return change, once.AddTo(&change, now, made)
	})
	return result, explain(err, c)
}

// creation is the Change that accepts w.
func (s *Service) creation(ctx context.Context, w Withdrawal, from payer, c *chain.Currency, now time.Time) (storage.Change, Withdrawal, error) {
	if from.err != nil {
		return storage.Change{}, w, from.err
	}
	ceiling, err := s.c.Ceilings(ctx, w.Tenant, w.Currency)
	if err != nil {
		return storage.Change{}, w, err
	}
	change := storage.Change{ID: s.c.NewID(), Partition: storage.Tenant(w.Tenant)}
	if err := s.accept(&change, &w, from, c, ceiling, now); err != nil {
		return storage.Change{}, w, err
	}
	change.Post = []ledger.Tx{holdTx(&w, now)}
	if from.open.Table != nil {
		change.Require = []storage.Guard{from.open}
	}
	if w.Counter != "" {
		change.Level = []storage.Level{{Name: w.Counter, Delta: int64(w.Requested), Max: int64(ceiling.Daily)}}
	}
	return change, w, nil
}

// accept adds to a Change what makes w, but for its hold, what it takes of a day, and the
// guard of its wallet.
func (s *Service) accept(change *storage.Change, w *Withdrawal, from payer, c *chain.Currency, ceiling Ceiling, now time.Time) error {
	if ceiling.Max > 0 && w.Requested > ceiling.Max {
		return fault.Invalid("amount", "is above the maximum of "+coins(c, ceiling.Max))
	}
	w.Wallet, w.CreatedAt, w.UpdatedAt = from.id, now, now
	if err := s.authorize(w, from.parent); err != nil {
		return err
	}
	if ceiling.Daily > 0 {
		w.Counter = counter(w.Currency, now)
	}
	made, err := told(w, "", c, now)
	if err != nil {
		return err
	}
	change.Count = append(change.Count, Tally.Moved(nil, w.counted())...)
	change.Tell = append(change.Tell, made)
	change.Put = append(change.Put,
		Withdrawals.Row(w.ID, 0, now.Add(s.c.PickupDelay), *w),
		storage.Activities.Row(w.ID, 0, time.Time{}, activity(w, c)),
	)
	return nil
}

// explain turns a verdict of the store into what the merchant should know.
func explain(err error, c *chain.Currency) error {
	var funds *ledger.InsufficientFundsError
	var level *storage.LevelError
	switch {
	case errors.As(err, &funds):
		return &InsufficientError{
			Available: c.Decimal(max(0, funds.Available)), Requested: c.Decimal(funds.Requested), Currency: c.Code, Scale: c.Scale,
		}
	case errors.As(err, &level) && strings.HasPrefix(level.Name, dayPrefix):
		left := ledger.Amount(max(0, level.Max-level.Value))
		return fault.Invalid("amount", "is above what is left of today's limit: "+coins(c, left))
	}
	return err
}

// replayed is the Withdrawal that a first request was answered with.
func replayed(once *storage.Once, response []byte, err error) (Withdrawal, error) {
	var w Withdrawal
	if err == nil {
		err = once.Decode(response, &w)
	}
	w.Replayed = err == nil
	return w, err
}

// now is the clock in the precision of the store.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Microsecond) }
