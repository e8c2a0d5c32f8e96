package payment

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Service is the payments of all tenants. Its methods may be called
// concurrently, and by several processes over one store.
type Service struct {
	c         Config
	inTx      bool // in a transaction of the host's own
	networks  []chain.Network
	inFlight  storage.InFlight
	opened    sync.Map // by network, *opened
	unread    storage.Unreadable
	questions questions
}

// New checks the configuration. It does no I/O.
func New(c Config) (*Service, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	_, inTx := c.Store.(storage.Tx)
	c.Store = storage.Joined(c.Store)
	s := &Service{c: c, inTx: inTx}
	seen := map[chain.Network]bool{}
	for _, code := range c.Registry.Codes() {
		if n := s.currency(code).Network; !seen[n] {
			seen[n] = true
			s.networks = append(s.networks, n)
		}
	}
	return s, nil
}

// now is the clock as precisely as stores keep it.
func (s *Service) now() time.Time { return s.c.Now().UTC().Truncate(time.Microsecond) }

// Handle is the incoming.Handler of payment addresses: everything that the fact
// causes is durable when it returns nil. The same fact again changes nothing.
func (s *Service) Handle(ctx context.Context, f incoming.Fact) error {
	proven := f.Final.Sighting()
	return s.handle(ctx, fact{
		sighting: f.Sighting, version: f.Version, head: f.Head,
		final: f.Final.Valid() && proven.Generated() == f.Sighting.Generated() && proven.Amount == f.Sighting.Amount,
	})
}

func (s *Service) handle(ctx context.Context, f fact) error {
	sg := &f.sighting
	if sg.Purpose != incoming.UsePayment && sg.Purpose != incoming.UseAccount || sg.Tenant == "" {
		return fmt.Errorf("payment: sighting %s is of a %s address, not of a tenant's payment", sg.Generated(), sg.Purpose)
	}
	if sg.Internal {
		return nil
	}
	if sg.Currency != "" && s.currency(sg.Currency) == nil {
		return fmt.Errorf("payment: sighting %s: %w", sg.Generated(), errUnlisted)
	}
	if s.c.Screen == nil || !f.final {
		return s.decideFact(ctx, f, nil)
	}
	key, err := s.screen(ctx, &f)
	if err != nil {
		return err
	}
	waits := false
	if err := s.decideFact(ctx, f, &waits); err != nil {
		return err
	}
	s.questions.forget(key)
	switch {
	case waits && f.judged != nil && f.judged.err != nil:
		return s.unanswered(ctx, &f)
	case waits: // what it is has changed since it was asked about
		return errUnscreened
	}
	return nil
}

// about loads what a decision about a fact stands on.
func (s *Service) about(ctx context.Context, tenant string, f *fact) (*decision, error) {
	x, err := s.load(ctx, tenant, &f.sighting)
	if err != nil {
		return nil, err
	}
	return x, s.prepare(ctx, tenant, x, f)
}

// decideFact decides about a fact. unscreened says whether its deposit waits for Screen; it may
// be nil.
func (s *Service) decideFact(ctx context.Context, f fact, unscreened *bool) error {
	return s.decide(ctx, f.sighting.Tenant, func(ctx context.Context) (*decision, error) {
		return s.about(ctx, f.sighting.Tenant, &f)
	}, func(x *decision) error {
		err := x.onFact(f)
		if unscreened != nil {
			*unscreened = x.unscreened
		}
		return err
	})
}

// decide loads, decides and commits, again and again while others change what
// it stands on, or a wallet has less than a reversal wanted to take.
func (s *Service) decide(ctx context.Context, tenant string, load func(context.Context) (*decision, error), on func(*decision) error) error {
	available := ledger.MaxAmount
	var x *decision
	for range maxTakes {
		err := storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
			var err error
			if x, err = load(ctx); err != nil || x == nil {
				return storage.Change{}, err
			}
			x.available = available
			if err := on(x); err != nil {
				return storage.Change{}, err
			}
			return s.change(ctx, tenant, x)
		})
		var short *ledger.InsufficientFundsError
		if errors.As(err, &short) && short.Account.Floored() && short.Available < available {
			available = max(short.Available, 0)
			continue
		}
		if err != nil {
			return err
		}
		if x != nil {
			s.tell(ctx, tenant, x.alerts)
		}
		return nil
	}
	return fmt.Errorf("%w: a wallet's balance kept changing while a deposit was reversed", storage.ErrConflict)
}

// maxTakes is how often a reversal is decided again on what the wallet has.
const maxTakes = 16

// prepare asks the outside for what the decision will need.
func (s *Service) prepare(ctx context.Context, tenant string, x *decision, f *fact) error {
	if x.p.ID == "" || f == nil && len(x.deposits) == 0 { // then nothing is posted
		return nil
	}
	id, _, ok, err := s.c.Wallets.OpenWallet(ctx, tenant, x.p.Wallet)
	if err == nil && !ok { // closed meanwhile: the master account takes its place
		id, _, ok, err = s.c.Wallets.OpenWallet(ctx, tenant, "")
	}
	if err != nil {
		return err
	}
	if !ok {
		return &NotFoundError{Field: "wallet_id", ID: x.p.Wallet}
	}
	x.wallet = id
	if x.at != nil {
		if err := s.terms(ctx, tenant, x); err != nil {
			return err
		}
	}
	if !x.needsPrice(f) {
		return nil
	}
	r, err := s.rate(ctx, x.p.Token, x.p.PriceCurrency)
	if err != nil {
		// Not every decision that could use a price fails without one: those
		// that do say so.
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "price_unavailable", slog.String("payment", x.p.ID), slog.String("error", err.Error()))
		return nil
	}
	if x.price = r.Price; x.at != nil {
		x.p.Rate, x.p.USDRate = r.Price, r.Price
	}
	return nil
}

// rate asks for a price. Errors wrap rates.ErrUnavailable.
func (s *Service) rate(ctx context.Context, token, fiat string) (rates.Rate, error) {
	return s.c.Rates.Rate(storage.Apart(ctx), token, fiat)
}

const usd = "USD"

func (s *Service) tell(ctx context.Context, tenant string, alerts []Alert) {
	for _, a := range alerts {
		a.Tenant = tenant
		s.c.Log.LogAttrs(ctx, slog.LevelWarn, "payment_alert", slog.String("kind", string(a.Kind)), slog.String("tenant", tenant),
			slog.String("payment", a.Payment), slog.String("deposit", a.Deposit), slog.String("text", a.Text))
		s.c.Notify(storage.Apart(ctx), a)
	}
}

// byID loads a payment by its id, as load does by its address.
func (s *Service) byID(ctx context.Context, tenant, id string) (*decision, error) {
	p, row, ok, err := Payments.One(ctx, s.c.Store, storage.Tenant(tenant), id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, &NotFoundError{Field: "transaction_id", ID: id}
	}
	x := &decision{p: p, version: row.Version}
	return x, s.fill(ctx, tenant, p.Network, x, "")
}

func (p *Payment) metadata() json.RawMessage {
	b, err := json.Marshal(struct {
		OrderID       string `json:"order_id"`
		Confirmations int64  `json:"confirmations"`
	}{p.OrderID, p.Confirmations})
	if err != nil {
		return nil
	}
	return b
}
