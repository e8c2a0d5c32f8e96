package house

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/person"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// Adjustment is a correction of the books: what moves on which accounts of one asset.
type Adjustment struct {
	Tenant   string
	Currency string // combined code
	// Moves are units by account, + on a wallet: we owe more. They sum to 0. Accounts are
	// ledger.Adjustment, ledger.Float, ledger.FeesPlatform, ledger.FeesNetwork, ledger.Chain of
	// the currency's network, and wallets of the tenant.
	Moves map[ledger.Account]ledger.Amount
	// Key tells one correction from another with the same moves: 1 to 100 bytes.
	Key string
}

// Adjusted is what became of an Adjustment.
type Adjusted struct {
	ID         string
	AskedBy    string
	AskedAt    time.Time
	ApprovedBy string // "" = it waits for a second person
	Until      time.Time
	// Balances are those of its accounts in the asset: before, and after it or as they would
	// be, in coins.
	Before, After map[ledger.Account]string
	// Made says that this call has booked it, or noted that it was asked for.
	Made bool
}

// Booked reports whether the books were corrected.
func (a *Adjusted) Booked() bool { return a.ApprovedBy != "" }

// ConfirmWithin is how long a second person may approve an adjustment.
const ConfirmWithin = 24 * time.Hour

// Errors of Adjust.
var (
	// ErrMoves: the moves are none that an adjustment may book.
	ErrMoves = errors.New("house: the moves of the adjustment")
	// ErrTooLate: it was asked for more than a day ago.
	ErrTooLate = errors.New("house: the adjustment was asked for more than a day ago: ask again with another key")
	// ErrForged: the record of who asked is not one that this house wrote.
	ErrForged = errors.New("house: the record of who asked for the adjustment was edited")
)

// asked is what the record of an adjustment that waits has, as its After.
type asked struct {
	Moves map[ledger.Account]string `json:"moves"` // coins
	After map[ledger.Account]string `json:"after"`
	Seal  string                    `json:"seal"` // by the key of mandates, over all that was asked
}

// Adjust notes that a person asks for an adjustment, or books it where another person has
// asked for the same within ConfirmWithin. Names differ where they differ beyond case. Who
// asks again himself is told that it waits. One that is booked is returned as it is. With dry
// everything is checked and nothing is done. ask and book are the records that the Changes
// write.
//
// Errors: ErrMoves, ErrAmount for the Key, ErrTooLate, ErrForged; an
// *ledger.InsufficientFundsError where a wallet has less than is taken; and what wraps
// chain.ErrCurrency. Equity below 0 is no error: payouts of the asset halt then.
func (s *Service) Adjust(ctx context.Context, a Adjustment, who string, dry bool, ask, book *outgoing.Recorded) (out Adjusted, err error) {
	c, err := s.c.Registry.Currency(a.Currency)
	if err != nil {
		return out, err
	}
	if a.Key == "" || len(a.Key) > maxKey {
		return out, ErrAmount
	}
	legs, err := s.legs(ctx, &a, c)
	if err != nil {
		return out, err
	}
	terms := a.terms(legs)
	out.ID = terms.Order
	part := storage.Tenant(a.Tenant)
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		out = Adjusted{ID: terms.Order}
		now := s.c.Now()
		first, _, was, err := outgoing.Operations.One(ctx, s.c.Store, part, terms.Order)
		if err != nil {
			return storage.Change{}, err
		}
		second, _, done, err := outgoing.Operations.One(ctx, s.c.Store, part, bookedID(terms.Order))
		if err != nil {
			return storage.Change{}, err
		}
		// Read first: what moves the equity afterwards moves it, too.
		_, float, err := treasury.Spare(ctx, s.c.Store, a.Tenant, c.Asset())
		if err != nil {
			return storage.Change{}, err
		}
		if out.Before, out.After, err = s.standing(ctx, part, c, legs, !done); err != nil {
			return storage.Change{}, err
		}
		if !was {
			out.AskedBy, out.AskedAt, out.Until, out.Made = who, now, now.Add(ConfirmWithin), !dry
			return s.asks(ask, &out, terms, part, c, legs, now, dry)
		}
		out.AskedBy, out.AskedAt, out.Until = first.By, first.At, first.At.Add(ConfirmWithin)
		switch {
		case done:
			out.ApprovedBy = second.By
			return storage.Change{}, nil
		case person.Same(first.By, who):
			return storage.Change{}, nil
		case now.After(out.Until):
			return storage.Change{}, ErrTooLate
		}
		if err := s.genuine(ctx, &first, terms); err != nil || dry {
			return storage.Change{}, err
		}
		out.ApprovedBy, out.Made = who, true
		return s.books(book, &out, terms, part, legs, float, now)
	})
	if err != nil {
		out.Made = false
	}
	return out, err
}

func bookedID(id string) string { return id + "-booked" }

// legs checks the moves of an adjustment, and puts them in order.
func (s *Service) legs(ctx context.Context, a *Adjustment, c *chain.Currency) ([]ledger.Leg, error) {
	bad := func(why string, args ...any) ([]ledger.Leg, error) {
		return nil, fmt.Errorf("%w: "+why, append([]any{ErrMoves}, args...)...)
	}
	var legs []ledger.Leg
	for account, delta := range a.Moves {
		id, wallet := account.WalletID()
		switch {
		case delta == 0:
			return bad("%s moves by nothing", account)
		case wallet:
			if ok, err := s.c.Wallet(ctx, a.Tenant, id); err != nil || !ok {
				return nil, cmp.Or(err, fmt.Errorf("%w: the tenant has no open wallet %q", ErrMoves, id))
			}
		case account == ledger.Suspense:
			return bad("money in suspense is credited, refunded or ignored, each by a call of its own")
		case account.Owed() || !account.House() && account != ledger.Chain(string(c.Network)):
			return bad("%q is no account that one may book on in %s", account, c.Code)
		}
		legs = append(legs, ledger.Leg{Account: account, Asset: c.Asset(), Delta: delta})
	}
	slices.SortFunc(legs, func(x, y ledger.Leg) int { return strings.Compare(string(x.Account), string(y.Account)) })
	tx := ledger.Tx{ID: "adjust", Legs: legs}
	if err := tx.Check(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrMoves, err)
	}
	return legs, nil
}

// terms are what an adjustment's seal covers, but who asked for it.
func (a *Adjustment) terms(legs []ledger.Leg) mandate.Terms {
	var moves []string
	for _, l := range legs {
		moves = append(moves, fmt.Sprintf("%q %d", l.Account, l.Delta))
	}
	t := mandate.Terms{Tenant: a.Tenant, Kind: "adjustment", Currency: a.Currency, Decision: strings.Join(moves, ", ")}
	t.Order = strings.Replace(idOf("adjust", a.Tenant, a.Currency, a.Key, t.Decision), prefix, "adjust-", 1)
	return t
}

// standing is how the accounts of an adjustment stand, and would after it.
func (s *Service) standing(ctx context.Context, p storage.Partition, c *chain.Currency, legs []ledger.Leg, move bool) (before, after map[ledger.Account]string, err error) {
	accounts := make([]ledger.Account, len(legs))
	for i := range legs {
		accounts[i] = legs[i].Account
	}
	balances, err := s.c.Store.Balances(ctx, p, accounts...)
	before, after = map[ledger.Account]string{}, map[ledger.Account]string{}
	for i := range legs {
		var b ledger.Balance
		for _, have := range balances {
			if have.Account == legs[i].Account && have.Asset == c.Asset() {
				b = have
			}
		}
		before[legs[i].Account] = c.Decimal(b.Posted).String()
		if err == nil && move {
			err = b.Move(&legs[i])
		}
		after[legs[i].Account] = c.Decimal(b.Posted).String()
	}
	return before, after, err
}

// asks is the Change by which a first person asks.
func (s *Service) asks(ask *outgoing.Recorded, out *Adjusted, t mandate.Terms, p storage.Partition, c *chain.Currency, legs []ledger.Leg, now time.Time, dry bool) (storage.Change, error) {
	if dry || ask == nil {
		return storage.Change{}, nil
	}
	t.By = out.AskedBy
	seal, err := s.c.Mandates.Make(t)
	if err != nil {
		return storage.Change{}, err
	}
	ask.ID, ask.Op.Object, ask.Op.At = out.ID, out.ID, now
	moves := map[ledger.Account]string{}
	for _, l := range legs {
		moves[l.Account] = c.Decimal(l.Delta).String()
	}
	rows, events, err := ask.Rows(out.Before, asked{moves, out.After, seal})
	return storage.Change{ID: "adjust/" + s.c.NewID(), Partition: p, Put: rows, Tell: events}, err
}

// genuine checks that this house wrote who asked.
func (s *Service) genuine(ctx context.Context, first *outgoing.Operation, t mandate.Terms) error {
	var was asked
	if err := json.Unmarshal([]byte(first.After), &was); err != nil {
		return fmt.Errorf("%w: %w", ErrForged, err)
	}
	t.By = first.By
	why, err := unauthorized(s.c.Mandates.Check(ctx, was.Seal, t))
	if err == nil && why != "" {
		err = fmt.Errorf("%w: %s", ErrForged, why)
	}
	return err
}

// books is the Change by which a second person approves.
func (s *Service) books(book *outgoing.Recorded, out *Adjusted, t mandate.Terms, p storage.Partition, legs []ledger.Leg, float storage.Row, now time.Time) (storage.Change, error) {
	post := []ledger.Tx{{ID: "adjust/" + t.Order, Kind: ledger.KindAdjustment, Ref: t.Order, At: now, Legs: legs}}
	book.ID, book.Op.Object, book.Op.At = bookedID(t.Order), t.Order, now
	rows, events, err := book.Rows(out.Before, out.After)
	return storage.Change{
		ID: "adjust/" + s.c.NewID(), Partition: p, Post: post, Count: tally.Entries(post), Put: append(rows, float), Tell: events,
	}, err
}
