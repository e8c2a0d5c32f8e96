package house

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// Take is what the house takes out of its own money.
type Take struct {
	Tenant   string
	Currency string        // combined code
	Amount   ledger.Amount // units; what the recipient gets
	All      bool          // all that there is, in place of Amount
	Address  string        // one of Config.Addresses
	Memo     string        // as it is listed with the address
	// Key makes the call idempotent: the same key of a tenant is one payment, however often
	// it is asked for. 1 to 100 bytes.
	Key string
}

// Take accepts a payment of one of the house's accounts, ledger.FeesPlatform or ledger.Float,
// and holds its amount. One that was accepted under the same key is returned as it stands,
// with made false. With dry everything is checked and nothing is done. by is the record that
// the same Change writes, nil = none.
//
// Errors: ErrNoAddresses, ErrAddress, ErrAmount, ErrKey where the key was used for other
// terms, *ShortError where it is more than may be taken; what wraps chain.ErrCurrency or is
// an *chain.AddressError; and those of Config.MaxCost, as where the node does not answer.
func (s *Service) Take(ctx context.Context, source ledger.Account, t Take, who string, dry bool, by *outgoing.Recorded) (p Payment, made bool, err error) {
	c, err := s.c.Registry.Currency(t.Currency)
	if err != nil {
		return p, false, err
	}
	if t.Key == "" || len(t.Key) > maxKey || t.All != (t.Amount == 0) || t.Amount < 0 {
		return p, false, ErrAmount
	}
	to, err := s.listed(ctx, c.Network, t.Address, t.Memo)
	if err != nil {
		return p, false, err
	}
	p = Payment{
		ID: idOf(t.Tenant, string(source), t.Key), Tenant: t.Tenant, Source: source, Network: string(c.Network), Currency: c.Code,
		Address: string(to), Memo: t.Memo, Amount: t.Amount, All: t.All, Status: Pending, By: who,
	}
	part := storage.Tenant(t.Tenant)
	had, _, ok, err := Payments.One(ctx, s.c.Store, part, p.ID)
	if err != nil || ok {
		return s.again(&p, &had, err)
	}
	if p.MaxCost, err = s.most(ctx, &p, source, c); err != nil {
		return p, false, err
	}
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		var ok bool
		if had, _, ok, err = Payments.One(ctx, s.c.Store, part, p.ID); err != nil || ok {
			made = false
			p, _, err = s.again(&p, &had, err)
			return storage.Change{}, err
		}
		change, err := s.accept(ctx, &p, t, c, by)
		if err != nil || dry {
			return storage.Change{}, err
		}
		made = true
		return change, nil
	})
	return p, made && err == nil, err
}

const maxKey = 100

// idOf makes the id of what was asked under a key. Orders of all tenants share a partition.
func idOf(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d/%s", len(p), p)
	}
	return prefix + hex.EncodeToString(h.Sum(nil)[:16])
}

// again is a payment that was accepted before under the key.
func (s *Service) again(p, had *Payment, err error) (Payment, bool, error) {
	if err != nil {
		return *had, false, err
	}
	if had.Currency != p.Currency || had.Address != p.Address || had.Memo != p.Memo || had.All != p.All || !p.All && had.Amount != p.Amount {
		err = ErrKey
	}
	return *had, false, err
}

// listed is the canonical form of an address that the house may pay.
func (s *Service) listed(ctx context.Context, n chain.Network, address, memo string) (chain.Address, error) {
	if len(s.c.Addresses) == 0 {
		return "", ErrNoAddresses
	}
	to, err := s.c.Parse(n, address)
	if err != nil {
		return "", err
	}
	if !slices.Contains(s.c.Addresses, Address{n, to, memo}) {
		return "", fmt.Errorf("%w: %s on %s", ErrAddress, to, n)
	}
	own, err := s.c.Own(ctx, n, to)
	if err == nil && own {
		err = fmt.Errorf("%w: %s is an address that this store gives out or pays from", ErrAddress, to)
	}
	return to, err
}

// most is what the network may take for the payment.
func (s *Service) most(ctx context.Context, p *Payment, source ledger.Account, c *chain.Currency) (ledger.Amount, error) {
	in := p.intent()
	if p.All {
		there, err := s.there(ctx, p.Tenant, source, c.Asset())
		if err != nil {
			return 0, err
		}
		in.Amount = max(there, 1)
	}
	most, err := s.c.MaxCost(ctx, in)
	if err != nil {
		return 0, fmt.Errorf("house: the network fee of the payment: %w", err)
	}
	return most, nil
}

// there is what an account of the house has that no other payment holds.
func (s *Service) there(ctx context.Context, tenant string, source ledger.Account, asset ledger.Asset) (ledger.Amount, error) {
	balances, err := s.c.Store.Balances(ctx, storage.Tenant(tenant), source)
	for i := range balances {
		if balances[i].Asset == asset {
			return balances[i].Available(), err
		}
	}
	return 0, err
}

// accept decides on a payment, and sets its amount where all was asked for.
func (s *Service) accept(ctx context.Context, p *Payment, t Take, c *chain.Currency, by *outgoing.Recorded) (storage.Change, error) {
	// The row of what is set aside is read first: what moves the equity afterwards moves it, too.
	spare, float, err := treasury.Spare(ctx, s.c.Store, p.Tenant, c.Asset())
	if err != nil {
		return storage.Change{}, err
	}
	there, err := s.there(ctx, p.Tenant, p.Source, c.Asset())
	if err != nil {
		return storage.Change{}, err
	}
	free, why := there, "the account has no more that is not on its way out"
	if c.Native() { // its own fee comes out of the same equity
		if spare, err = spare.Sub(p.MaxCost); err != nil {
			return storage.Change{}, err
		}
	}
	if spare < free {
		free, why = spare, "the rest covers what is owed to customers, what is set aside for network fees, and this payment's own fee"
	}
	free = max(free, 0)
	if p.Amount = t.Amount; t.All {
		p.Amount = free
	}
	if p.Amount <= 0 || p.Amount > free {
		asked := "all"
		if !t.All {
			asked = c.Decimal(t.Amount).String()
		}
		return storage.Change{}, &ShortError{p.Source, c.Code, asked, c.Decimal(free).String(), why}
	}
	change, err := s.making(p, float)
	if err != nil {
		return change, err
	}
	if by != nil {
		by.Op.Object = p.ID
		rows, events, err := by.Rows(s.note(p, there, 0), s.note(p, there-p.Amount, p.Amount))
		if err != nil {
			return change, err
		}
		change.Put, change.Tell = append(change.Put, rows...), append(change.Tell, events...)
	}
	return change, nil
}

// note is the account that pays as the record of a call shows it, in coins.
func (s *Service) note(p *Payment, available, taken ledger.Amount) any {
	return struct {
		Account   ledger.Account `json:"account"`
		Currency  string         `json:"currency"`
		Available string         `json:"available"`
		Taken     string         `json:"taken"`
		Address   string         `json:"address"`
	}{p.Source, p.Currency, s.coins(p.Currency, available), s.coins(p.Currency, taken), p.Address}
}

// Get returns a payment; ErrNotFound.
func (s *Service) Get(ctx context.Context, tenant, id string) (Payment, error) {
	p, _, ok, err := Payments.One(ctx, s.c.Store, storage.Tenant(tenant), id)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	return p, err
}

// List returns a tenant's payments, newest first.
func (s *Service) List(ctx context.Context, tenant string, limit, offset int) ([]Payment, error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Payments.Table, Partition: storage.Tenant(tenant), Limit: limit, Offset: offset,
		Order: []storage.Order{{Column: "created_at", Desc: true}},
	})
	out := make([]Payment, len(rows))
	for i, r := range rows {
		out[i] = Payments.Value(r)
	}
	return out, err
}

// Contradicts says in which way the row of a payment is not what was ordered, "" = in none.
// The error is the store's.
func (s *Service) Contradicts(ctx context.Context, part storage.Partition, id string, p *Payment) (why string, err error) {
	switch {
	case p.ID != id || storage.Tenant(p.Tenant) != part:
		return "it names another tenant or payment", nil
	case p.Source != ledger.FeesPlatform && p.Source != ledger.Float && !p.ToCold():
		return "it pays from an account that is not the house's to take", nil
	case p.Amount <= 0:
		return "its amount is not above 0", nil
	}
	return unauthorized(s.c.Mandates.Check(ctx, p.Mandate, p.terms()))
}

// altered is Contradicts, and compares what is held.
func (s *Service) altered(ctx context.Context, part storage.Partition, id string, p *Payment) (why string, err error) {
	if why, err = s.Contradicts(ctx, part, id, p); why != "" || err != nil || !p.live() || p.ToCold() {
		return why, err
	}
	balances, err := s.c.Store.Balances(ctx, part, p.Source)
	for i := range balances {
		if b := &balances[i]; b.Asset == ledger.Asset(p.Currency) && b.Held >= p.Amount {
			return "", err
		}
	}
	return "its account does not hold its amount", err
}

// Confirm says why an order must not be signed, "" = it may be: it must be that of a payment
// that is not cancelled or failed, and whose stored rows agree.
func (s *Service) Confirm(ctx context.Context, in chain.Intent) (p Payment, why string, err error) {
	part := storage.Tenant(in.Tenant)
	p, _, ok, err := Payments.One(ctx, s.c.Store, part, in.ID)
	switch o := p.intent(); {
	case err != nil:
		return p, "", err
	case !ok:
		return p, "no payment of the house has this order", nil
	case p.Status == Cancelled || p.Status == Failed:
		return p, "the payment of this order is " + string(p.Status), nil
	case in.Purpose != o.Purpose || in.Network != o.Network || in.Currency != o.Currency || in.To != o.To || in.Memo != o.Memo || in.Amount != o.Amount || in.All:
		return p, "the order is not what its payment says", nil
	}
	if why, err = s.altered(ctx, part, in.ID, &p); why != "" || err != nil || in.Mandate == p.Mandate {
		return p, why, err
	}
	why, err = unauthorized(s.c.Mandates.Check(ctx, in.Mandate, p.terms()))
	return p, why, err
}

// Authorize gives a payment its mandate under the newest key. It writes nothing.
func (s *Service) Authorize(p *Payment) (err error) {
	p.Mandate, err = s.c.Mandates.Make(p.terms())
	return err
}

var errHandedOver = errors.New("house: the payout side may know it")

var never time.Time
