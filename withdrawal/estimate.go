package withdrawal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/internal/fault"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Terms is what decides a price. Exactly one of Amount and PriceAmount is given,
// and either Currency or Blockchain with Token (both forms must agree).
type Terms struct {
	Amount        *decimal.Decimal // in whole coins
	PriceAmount   *decimal.Decimal // in PriceCurrency
	PriceCurrency string           // "" = "USD"
	FinalAmount   bool             // the figure is what the recipient gets
	Currency      string
	Blockchain    string
	Token         string
	Address       string // optional for an estimate
}

// Estimate is a price with the currency that it is in.
type Estimate struct {
	Price
	Currency *chain.Currency
}

// Estimate prices a withdrawal and creates nothing. Errors are those of Create
// apart from funds.
func (s *Service) Estimate(ctx context.Context, tenant string, t Terms) (Estimate, error) {
	e, err := s.FeeEstimate(ctx, tenant, t)
	if err == nil {
		err = s.checkPrice(e.Currency, e.Price)
	}
	return e, err
}

// FeeEstimate is Estimate whatever the minimum is, and whether or not the figure
// covers the fees.
func (s *Service) FeeEstimate(ctx context.Context, tenant string, t Terms) (Estimate, error) {
	c, err := s.CheckTerms(t)
	if err != nil {
		return Estimate{}, err
	}
	var to chain.Address
	if t.Address != "" {
		if to, err = s.parse(ctx, tenant, c.Network, t.Address); err != nil {
			return Estimate{}, err
		}
	}
	p, err := s.price(ctx, tenant, c, t, to, s.tenantFee(ctx, tenant, c))
	return Estimate{Price: p, Currency: c}, err
}

// currency looks up what a request names, in either form.
func (s *Service) currency(code, network, token string) (*chain.Currency, error) {
	switch {
	case code == "" && (network == "" || token == ""):
		return nil, fault.Invalid("currency", "is required, or blockchain and token")
	case code == "":
		return s.c.Registry.Pair(network, token)
	}
	c, err := s.c.Registry.Currency(code)
	if err != nil || network == "" && token == "" {
		return c, err
	}
	if n, err := s.c.Registry.Network(network); network != "" && (err != nil || n.Code != c.Network) {
		return nil, fault.Invalid("blockchain", "does not agree with currency")
	}
	if token != "" && token != c.Token {
		return nil, fault.Invalid("token", "does not agree with currency")
	}
	return c, nil
}

// tenantFee is what the tenant's settings charge for a withdrawal, or why they could not
// be read.
type tenantFee struct {
	percent, flat decimal.Decimal
	err           error
}

func (s *Service) tenantFee(ctx context.Context, tenant string, c *chain.Currency) (f tenantFee) {
	f.percent, f.flat, f.err = s.c.Tenants.WithdrawalFee(ctx, tenant, c.Code)
	return f
}

// price reads the rate and the network's quote.
func (s *Service) price(ctx context.Context, tenant string, c *chain.Currency, t Terms, to chain.Address, fee tenantFee) (Price, error) {
	asked, err := s.asked(ctx, c, t, s.rate)
	if err == nil {
		err = fee.err
	}
	if err != nil {
		return Price{}, err
	}
	network, err := s.quote(ctx, tenant, c, to, asked)
	if err != nil {
		return Price{}, err
	}
	return s.priced(c, &t, asked, fee, network)
}

// quote asks what the network will take for a figure.
func (s *Service) quote(ctx context.Context, tenant string, c *chain.Currency, to chain.Address, asked ledger.Amount) (ledger.Amount, error) {
	network, err := s.c.Fees.Quote(ctx, chain.Intent{
		Purpose: chain.ForWithdrawal, Tenant: tenant, Network: c.Network, Currency: c.Code, To: to, Amount: max(asked, 1),
	})
	if err == nil {
		return network, nil
	}
	var address *chain.AddressError
	if errors.As(err, &address) {
		return 0, err
	}
	return 0, fmt.Errorf("%w: %w", ErrFee, err)
}

// priced is the price of a figure under a quote.
func (s *Service) priced(c *chain.Currency, t *Terms, asked ledger.Amount, fee tenantFee, network ledger.Amount) (Price, error) {
	flat, err := c.Units(fee.flat, ledger.Up)
	if err != nil {
		return Price{}, errFeeSetting
	}
	least, err := c.Units(c.MinWithdrawal, ledger.Up)
	if err != nil {
		return Price{}, err
	}
	if most, err := max(asked, least).MulDiv(uint64(s.c.MaxFeeTimes), 1, ledger.Down); network < 0 || err == nil && network > most {
		return Price{}, fmt.Errorf("%w: a quote of %d units for %d is absurd", ErrFee, network, asked)
	}
	p, err := price(asked, t.FinalAmount, fee.percent, flat, network)
	if errors.Is(err, ledger.ErrOverflow) {
		return Price{}, fault.Invalid(t.field(), "is too large")
	}
	return p, err
}

// field is the one that the request's figure stands in.
func (t *Terms) field() string {
	if t.Amount == nil && t.PriceAmount != nil {
		return "price_amount"
	}
	return "amount"
}

// asked is the figure of checked Terms in units of c: converted once by a rate and rounded
// down where it is a price.
func (s *Service) asked(ctx context.Context, c *chain.Currency, t Terms, rateOf rateSource) (ledger.Amount, error) {
	if t.Amount != nil {
		a, bad := fault.Units(*t.Amount, c.Scale)
		if bad != "" {
			return 0, fault.Invalid("amount", bad)
		}
		return a, nil
	}
	fiat := t.PriceCurrency
	or(&fiat, "USD")
	rate, err := rateOf(ctx, c.Token, fiat)
	if err != nil {
		return 0, err
	}
	a, err := ledger.Quo(*t.PriceAmount, rate, c.Scale, ledger.Down)
	switch {
	case err != nil:
		return 0, fault.Invalid("price_amount", "is too large")
	case a <= 0:
		return 0, fault.Invalid("price_amount", "is too small")
	}
	return a, nil
}

// rateSource is rate, or what remembers its answers.
type rateSource func(ctx context.Context, token, fiat string) (decimal.Decimal, error)

// rate asks for a price. Errors wrap rates.ErrUnavailable.
func (s *Service) rate(ctx context.Context, token, fiat string) (decimal.Decimal, error) {
	if s.c.Rates == nil {
		return decimal.Decimal{}, fmt.Errorf("%w: no source of prices is configured", rates.ErrUnavailable)
	}
	r, err := s.c.Rates.Rate(ctx, token, fiat)
	return r.Price, err
}

// checkPrice applies the minimum to what the recipient gets.
func (s *Service) checkPrice(c *chain.Currency, p Price) error {
	if p.Amount <= 0 {
		return fault.Invalid("amount", "does not cover the fees of "+coins(c, p.Fee()))
	}
	least, err := c.Units(c.MinWithdrawal, ledger.Up)
	if err != nil || p.Amount < least {
		return fault.Invalid("amount", "the recipient would get less than the minimum of "+ledger.PlainString(c.MinWithdrawal)+" "+c.Code)
	}
	return nil
}

// MinAmount is the least that a recipient may get of a currency, in whole coins.
// An unknown currency is an *InvalidError that names the field.
func (s *Service) MinAmount(code, network, token string) (*chain.Currency, error) {
	c, err := s.currency(code, network, token)
	if !errors.Is(err, chain.ErrCurrency) {
		return c, err
	}
	field := "currency"
	if code == "" {
		field = "token"
		if _, err := s.c.Registry.Network(network); err != nil {
			field = "blockchain"
		}
	}
	return nil, fault.Invalid(field, "is not supported")
}

// Limit is what bounds a tenant's withdrawals of one currency, in its units.
type Limit struct {
	Currency *chain.Currency
	Min      ledger.Amount
	Ceiling                // zero = none
	Used     ledger.Amount // of today's Daily
}

// Limits lists the limits of one currency, or of all where code is "".
func (s *Service) Limits(ctx context.Context, tenant, code string) ([]Limit, error) {
	codes := []string{code}
	if code == "" {
		codes = s.c.Registry.Codes()
	}
	day := s.c.Now().UTC()
	var out []Limit
	var counters []string
	for _, each := range codes {
		c, err := s.c.Registry.Currency(each)
		if err != nil {
			return nil, err
		}
		l := Limit{Currency: c}
		if l.Min, err = c.Units(c.MinWithdrawal, ledger.Up); err != nil {
			return nil, err
		}
		if l.Ceiling, err = s.c.Ceilings(ctx, tenant, each); err != nil {
			return nil, err
		}
		if l.Daily > 0 {
			counters = append(counters, counter(each, day))
		}
		out = append(out, l)
	}
	used, err := s.used(ctx, tenant, counters)
	for i := range out {
		out[i].Used = used[counter(out[i].Currency.Code, day)]
	}
	return out, err
}

// dayPrefix begins the name of each level that counter names.
const dayPrefix = "withdrawal/"

// counter names the level that a day's withdrawals of a currency count in.
func counter(currency string, at time.Time) string {
	return dayPrefix + currency + "/" + at.UTC().Format(time.DateOnly)
}

// used sums what counts in each of some levels.
func (s *Service) used(ctx context.Context, tenant string, names []string) (map[string]ledger.Amount, error) {
	const page = 1000
	sums := map[string]ledger.Amount{}
	if len(names) == 0 {
		return sums, nil
	}
	for r, err := range storage.All(ctx, s.c.Store, storage.Query{
		Table: Withdrawals.Table, Partition: storage.Tenant(tenant), Limit: page,
		Where: []storage.Cond{{Column: "counter", Op: storage.In, Value: names}},
	}) {
		if err == nil {
			w := Withdrawals.Value(r)
			sums[w.Counter], err = sums[w.Counter].Add(w.Requested)
		}
		if err != nil {
			return nil, err
		}
	}
	return sums, nil
}

// Spendable is one currency that the master account could pay out of.
type Spendable struct {
	Currency  *chain.Currency
	Available ledger.Amount
	Min       ledger.Amount
	Max       ledger.Amount // of one withdrawal, 0 = no bound
}

// AvailableCurrencies lists what the master account has to pay out, by code.
func (s *Service) AvailableCurrencies(ctx context.Context, tenant string) ([]Spendable, error) {
	id, _, err := s.c.Wallets.Resolve(ctx, tenant, "")
	if err != nil {
		return nil, err
	}
	balances, err := s.c.Store.Balances(ctx, storage.Tenant(tenant), ledger.Wallet(id))
	if err != nil {
		return nil, err
	}
	out := []Spendable{}
	for _, b := range balances {
		c, err := s.c.Registry.Currency(string(b.Asset))
		if err != nil || b.Available() <= 0 {
			continue // no longer offered, or nothing there
		}
		least, err := c.Units(c.MinWithdrawal, ledger.Up)
		if err != nil {
			return nil, err
		}
		ceiling, err := s.c.Ceilings(ctx, tenant, c.Code)
		if err != nil {
			return nil, err
		}
		out = append(out, Spendable{Currency: c, Available: b.Available(), Min: least, Max: ceiling.Max})
	}
	slices.SortFunc(out, func(a, b Spendable) int { return strings.Compare(a.Currency.Code, b.Currency.Code) })
	return out, nil
}
