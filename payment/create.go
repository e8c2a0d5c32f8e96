package payment

import (
	"context"
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Limits of what a request may say.
const (
	maxOrderID     = 100
	maxCustomID    = 64
	maxWalletRef   = 64
	maxDescription = 5000
	maxURL         = 2048
	maxEmail       = 254
	maxWindow      = 1440 * time.Minute
)

// Pricing is what decides how much a customer has to send.
type Pricing struct {
	Amount        string // of PriceCurrency: plain digits, at most 2 places
	PriceCurrency string // defaults to USD
	Currency      string // combined code; or
	Blockchain    string // network or its alias, with
	Token         string // symbol. Both forms given must agree.
	FixedRate     *bool  // defaults to true
	FeeByUser     *bool  // defaults to the tenant's setting
}

// CreateInput is a request for a payment.
type CreateInput struct {
	Pricing
	OrderID       string
	Description   string
	CallbackURL   string
	CustomID      string
	CustomerEmail string
	WalletID      string // wallet_id or external_id; "" = the master account
	ExpiryMinutes *int   // 1 to 1440; defaults to the configured window
	// Key is the caller's own of this request: sent again with the same content within
	// storage.OnceFor it makes nothing, and answers the first result, Replayed. Defaults to
	// none: each request is a new one. At most storage.MaxOnceKey bytes.
	Key string
}

// Quote is a pricing made concrete. Nothing was created.
type Quote struct {
	Price         decimal.Decimal
	PriceCurrency string
	Currency      *chain.Currency
	Due           ledger.Amount   // what the customer must send
	Fee           ledger.Amount   // platform and network fee on it
	Rate          decimal.Decimal // of one coin in PriceCurrency
	RateAt        time.Time       // when the sources named Rate
	ExpiresAt     time.Time       // when Rate is too old to be used, see Config.RateAge
	Min           decimal.Decimal // what a payment in Currency is at least, in whole coins
	FixedRate     bool
	FeeByUser     bool
	// ForwardCost is what forwarding the payment would cost now, as Config.ForwardCost says. 0 =
	// it is not forwarded, or the cost is unknown. Of Estimate.
	ForwardCost ledger.Amount

	usdRate    decimal.Decimal
	percent    decimal.Decimal
	networkFee ledger.Amount
}

// Estimate prices a payment without creating it. Errors as of Create.
func (s *Service) Estimate(ctx context.Context, tenant string, in Pricing) (Quote, error) {
	bad := &InvalidError{}
	pr, err := s.pricing(in, bad)
	if err != nil {
		return Quote{}, err
	}
	var cost ledger.Amount
	q, err := s.quote(ctx, tenant, pr, func(ctx context.Context) (err error) {
		cost, err = s.c.ForwardCost(ctx, pr.currency)
		return err
	})
	q.ForwardCost = cost
	return q, err
}

// BelowCost reports whether forwarding the payment would cost more now than it brings.
func (q *Quote) BelowCost() bool { return q.ForwardCost > q.Due }

// Create makes a payment with an address of its own. Errors: *InvalidError with
// every wrong field, *CurrencyError, *NotFoundError for the wallet or tenant,
// rates.ErrUnavailable (wrapped) where there is no price now; of CreateInput.Key, judged
// before anything else: those that wrap storage.ErrIdempotencyMismatch where its first
// request said something else, storage.ErrInProgress while that runs in this process, or
// storage.ErrIdempotencyKey.
func (s *Service) Create(ctx context.Context, tenant string, in CreateInput) (Payment, error) {
	part := storage.Tenant(tenant)
	once, err := storage.OnceOf(ctx, in.Key, in)
	if err != nil {
		return Payment{}, err
	}
	leave, err := s.inFlight.Enter(part, once)
	if err != nil {
		return Payment{}, err
	}
	defer leave()
	var p Payment
	var guard storage.Guard
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		response, replay, err := once.Find(ctx, s.c.Store, part, s.now())
		if err == nil && replay {
			p = Payment{}
			err = once.Decode(response, &p)
			p.Replayed = true
		}
		if err != nil || replay {
			return storage.Change{}, err
		}
		if p.ID == "" {
			p, guard, err = s.draft(ctx, tenant, in)
		} else { // its address and price stay; the wallet may have been edited
			p.Wallet, guard, err = s.openWallet(ctx, tenant, in.WalletID)
		}
		if err != nil {
			return storage.Change{}, err
		}
		x := &decision{p: p, env: env{rules: s.rules(p.Network)}}
		row := storage.Activities.Row(p.ID, 0, time.Time{}, x.activity())
		made, err := told(&p, "", p.CreatedAt)
		if err != nil {
			return storage.Change{}, err
		}
		c := storage.Change{
			ID: s.c.NewID(), Partition: part, Require: []storage.Guard{guard},
			Put:   []storage.Row{Payments.Row(p.ID, 0, x.due(), p), row},
			Count: Tally.Moved(nil, p.counted()), Tell: []storage.Event{made},
		}
		return c, once.AddTo(&c, p.CreatedAt, p)
	})
	if err == nil && p.Replayed && p.ID != "" {
		err = s.whereToPay(ctx, tenant, &p)
	}
	if err != nil {
		p = Payment{}
	}
	return p, err
}

// whereToPay brings a first answer's place of payment up to what the payment says: the answer
// may have been edited, and the payment's address is derived again.
func (s *Service) whereToPay(ctx context.Context, tenant string, p *Payment) error {
	now, err := s.Get(ctx, tenant, p.ID)
	p.Network, p.Currency, p.Token, p.Address = now.Network, now.Currency, now.Token, now.Address
	return err
}

// Check says what is wrong with a request by itself, without looking at the
// tenant or at prices: *InvalidError with every wrong field, or *CurrencyError.
func (s *Service) Check(in CreateInput) error {
	_, err := s.check(&in)
	return err
}

func (s *Service) check(in *CreateInput) (priced, error) {
	bad := &InvalidError{}
	pr, err := s.pricing(in.Pricing, bad)
	s.checkTexts(in, bad)
	if in.ExpiryMinutes != nil && (*in.ExpiryMinutes < 1 || *in.ExpiryMinutes > 1440) {
		bad.Add("expiry_minutes", "must be from 1 to 1440")
	}
	var unsupported *CurrencyError
	if len(bad.Fields) > 0 {
		if errors.As(err, &unsupported) {
			bad.Add("currency", "is not supported")
		}
		return pr, bad
	}
	return pr, err
}

// masterWallet is the id of the master account, as payments keep it. No request names it so.
const masterWallet = "master"

// openWallet finds the wallet that a request names, "" being the master account: *NotFoundError
// for the wallet, or for the tenant where there is none, who has no wallet either.
func (s *Service) openWallet(ctx context.Context, tenant, ref string) (string, storage.Guard, error) {
	if ref == masterWallet {
		return "", storage.Guard{}, &NotFoundError{Field: "wallet_id", ID: ref}
	}
	id, guard, ok, err := s.c.Wallets.OpenWallet(ctx, tenant, ref)
	if err == nil && !ok {
		missing := &NotFoundError{Field: "wallet_id", ID: ref}
		if _, known, failed := s.c.Tenants.PaymentFees(ctx, tenant); failed != nil {
			return "", guard, failed
		} else if !known {
			missing.Field, missing.ID = "tenant", tenant
		}
		err = missing
	}
	return id, guard, err
}

// draft validates, prices, and takes an address.
func (s *Service) draft(ctx context.Context, tenant string, in CreateInput) (Payment, storage.Guard, error) {
	pr, err := s.check(&in)
	if err != nil {
		return Payment{}, storage.Guard{}, err
	}
	var wallet string
	var guard storage.Guard
	q, err := s.quote(ctx, tenant, pr, func(ctx context.Context) (err error) {
		wallet, guard, err = s.openWallet(ctx, tenant, in.WalletID)
		return err
	})
	if err != nil {
		return Payment{}, guard, err
	}
	window := s.c.Window
	if in.ExpiryMinutes != nil {
		window = time.Duration(*in.ExpiryMinutes) * time.Minute
	}
	c := q.Currency
	address, err := s.c.Addresses.Take(ctx, c.Network, tenant)
	if err != nil {
		return Payment{}, guard, fmt.Errorf("payment: taking an address: %w", err)
	}
	now := s.now()
	p := Payment{
		ID: s.c.NewID(), Status: Machine.Initial, Network: string(c.Network), Address: string(address.Address), Currency: c.Code, Token: c.Token, Scale: int(c.Scale),
		Price: q.Price, PriceCurrency: q.PriceCurrency, Due: q.Due, Rate: q.Rate, USDRate: q.usdRate, FixedRate: q.FixedRate,
		FeeByUser: q.FeeByUser, FeePercent: q.percent, NetworkFee: q.networkFee,
		Wallet: wallet, WalletRef: in.WalletID, OrderID: in.OrderID, Description: in.Description, CallbackURL: in.CallbackURL,
		CustomID: in.CustomID, CustomerEmail: in.CustomerEmail, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(window),
	}
	p.Tolerance, err = s.tolerance(&q)
	return p, guard, err
}

// priced is a pricing whose fields are each valid.
type priced struct {
	in       Pricing
	price    decimal.Decimal
	fiat     string
	currency *chain.Currency
}

// pricing checks the fields of a pricing, adding to bad what is wrong. The
// error is bad itself, or a *CurrencyError where only that is wrong.
func (s *Service) pricing(in Pricing, bad *InvalidError) (priced, error) {
	pr := priced{in: in, fiat: in.PriceCurrency}
	var err error
	pr.price, err = ledger.ParseDecimal(in.Amount)
	switch {
	case in.Amount == "":
		bad.Add("amount", "is required")
	case err != nil:
		bad.Add("amount", "must be a plain decimal number of at most 40 digits")
	case pr.price.Sign() <= 0:
		bad.Add("amount", "must be greater than 0")
	case !pr.price.Equal(pr.price.Truncate(2)):
		bad.Add("amount", "must have at most 2 decimal places")
	}
	if pr.fiat == "" {
		pr.fiat = usd
	}
	if !slices.Contains(s.c.PriceCurrencies, pr.fiat) {
		bad.Add("price_currency", "is not supported")
	}
	var unsupported error
	pr.currency, unsupported = s.chosen(in, bad)
	if len(bad.Fields) == 0 {
		return pr, unsupported
	}
	if unsupported != nil {
		bad.Add("currency", "is not supported")
	}
	return pr, bad
}

// chosen finds the currency by either form, or both where they agree.
func (s *Service) chosen(in Pricing, bad *InvalidError) (*chain.Currency, error) {
	pair := in.Blockchain != "" || in.Token != ""
	var c *chain.Currency
	switch {
	case pair && in.Token == "":
		bad.Add("token", "is required with blockchain")
		return nil, nil
	case pair && in.Blockchain == "":
		bad.Add("blockchain", "is required with token")
		return nil, nil
	case !pair && in.Currency == "":
		bad.Add("currency", "is required, or blockchain and token")
		return nil, nil
	case pair:
		var err error
		if c, err = s.c.Registry.Pair(in.Blockchain, in.Token); err != nil {
			return nil, &CurrencyError{Currency: in.Blockchain + " " + in.Token, Supported: s.c.Registry.Codes()}
		}
		if in.Currency == "" {
			return c, nil
		}
	}
	named := s.currency(in.Currency)
	if named == nil {
		return nil, &CurrencyError{Currency: in.Currency, Supported: s.c.Registry.Codes()}
	}
	if c != nil && c != named {
		bad.Add("currency", "does not agree with blockchain and token")
	}
	return named, nil
}

// quote prices: the rate, the fees, and what is due. What the store has to say is read
// side by side with what beside reads, whose error comes first.
func (s *Service) quote(ctx context.Context, tenant string, pr priced, beside ...func(context.Context) error) (Quote, error) {
	c := pr.currency
	var fees Fees
	var least map[string]decimal.Decimal
	err := storage.SideBySide(ctx, s.c.Store, append(beside, func(ctx context.Context) (err error) {
		fees, err = s.fees(ctx, tenant)
		return err
	}, func(ctx context.Context) (err error) {
		least, err = s.Minimums(ctx, c)
		return err
	})...)
	if err != nil {
		return Quote{}, err
	}
	q := Quote{
		Price: pr.price, PriceCurrency: pr.fiat, Currency: c, FixedRate: pr.in.FixedRate == nil || *pr.in.FixedRate,
		FeeByUser: fees.ByUser, percent: fees.Percent,
	}
	if pr.in.FeeByUser != nil {
		q.FeeByUser = *pr.in.FeeByUser
	}
	q.Min = least[c.Code]
	price, err := s.rate(ctx, c.Token, pr.fiat)
	if err != nil {
		return q, err
	}
	q.Rate, q.RateAt, q.ExpiresAt = price.Price, price.At, price.At.Add(s.c.RateAge)
	if pr.fiat != usd {
		if price, err = s.rate(ctx, c.Token, usd); err != nil {
			return q, err
		}
	}
	q.usdRate = price.Price
	if q.networkFee, err = s.c.NetworkFee(ctx, c); err != nil {
		return q, fmt.Errorf("payment: quoting the network fee: %w", err)
	}
	if q.networkFee < 0 {
		return q, fmt.Errorf("payment: the network fee of %s was quoted below 0", c.Code)
	}
	return q, q.price()
}

// fees returns what the tenant pays: *NotFoundError.
func (s *Service) fees(ctx context.Context, tenant string) (Fees, error) {
	f, ok, err := s.c.Tenants.PaymentFees(ctx, tenant)
	if err == nil && !ok {
		err = &NotFoundError{Field: "tenant", ID: tenant}
	}
	if err == nil {
		err = CheckFee(f.Percent)
	}
	return f, err
}

// Minimums returns what payments in some currencies are at least now, in whole coins by
// code.
func (s *Service) Minimums(ctx context.Context, currencies ...*chain.Currency) (map[string]decimal.Decimal, error) {
	units, err := s.c.Minimums(ctx, currencies...)
	out := make(map[string]decimal.Decimal, len(currencies))
	for _, c := range currencies {
		out[c.Code] = decimal.Max(c.Min, c.Decimal(units[c.Code]))
	}
	return out, err
}

// price computes what is due, and refuses what is outside the currency's limits.
func (q *Quote) price() error {
	c, tooMuch := q.Currency, &InvalidError{}
	coins, err := ledger.Quo(q.Price, q.Rate, c.Scale, ledger.Up)
	if err == nil && q.FeeByUser {
		q.Due, err = ledger.Quo(q.Price.Mul(hundred.Add(q.percent)), q.Rate.Mul(hundred), c.Scale, ledger.Up)
		if err == nil {
			q.Due, err = q.Due.Add(q.networkFee)
		}
	} else {
		q.Due = coins
	}
	switch value := c.Decimal(coins); {
	case err != nil || q.Due > ledger.MaxCredit || value.GreaterThan(c.Most()):
		tooMuch.Add("amount", fmt.Sprintf("is above the maximum of %s %s", ledger.PlainString(c.Most()), c.Code))
	case value.LessThan(q.Min):
		tooMuch.Add("amount", fmt.Sprintf("is below the minimum of %s %s", ledger.PlainString(q.Min), c.Code))
	}
	if err := tooMuch.Err(); err != nil {
		return err
	}
	p := Payment{FeeByUser: q.FeeByUser, FeePercent: q.percent, NetworkFee: q.networkFee}
	parts, err := p.divide(q.Due)
	q.Fee = q.Due - parts.net
	return err
}

// tolerance is how much less than due is still full: a percentage, at most a
// sum in USD.
func (s *Service) tolerance(q *Quote) (ledger.Amount, error) {
	c := q.Currency
	part, err := ledger.Quo(c.Decimal(q.Due).Mul(*s.c.Tolerance), hundred, c.Scale, ledger.Down)
	if err != nil {
		return 0, err
	}
	most, err := ledger.Quo(*s.c.ToleranceUSD, q.usdRate, c.Scale, ledger.Down)
	if errors.Is(err, ledger.ErrOverflow) {
		return part, nil
	}
	return min(part, most), err
}

var email = regexp.MustCompile(`^[^@\s]+@[^@\s]+\.[^@\s]+$`)

func (s *Service) checkTexts(in *CreateInput, bad *InvalidError) {
	for _, f := range []struct {
		name, text string
		max        int
	}{
		{"order_id", in.OrderID, maxOrderID},
		{"custom_id", in.CustomID, maxCustomID},
		{"wallet_id", in.WalletID, maxWalletRef},
		{"order_description", in.Description, maxDescription},
		{"callback_url", in.CallbackURL, maxURL},
		{"customer_email", in.CustomerEmail, maxEmail},
	} {
		bad.AddLong(f.name, f.text, f.max)
	}
	s.checkContact(in.CallbackURL, in.CustomerEmail, bad)
}

func (s *Service) checkContact(callback, mailbox string, bad *InvalidError) {
	if callback != "" {
		if err := s.c.CheckURL(callback); err != nil {
			bad.Add("callback_url", "must be an https URL that can be delivered to")
		}
	}
	if mailbox != "" {
		if a, err := mail.ParseAddress(mailbox); err != nil || a.Address != mailbox || !email.MatchString(mailbox) {
			bad.Add("customer_email", "must be an email address")
		}
	}
}

// checkURL is the least that is asked of a callback URL.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
		return errors.New("not an http or https URL with a host and without credentials")
	}
	return nil
}
