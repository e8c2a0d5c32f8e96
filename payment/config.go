package payment

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// AddressPool hands out addresses that nobody ever had before. Each is watched
// from before it is returned. May be called concurrently.
type AddressPool interface {
	Take(ctx context.Context, n chain.Network, tenant string) (chain.Derived, error)
}

// Fees are a tenant's settings for its payments.
type Fees struct {
	Percent decimal.Decimal // of what is received; see CheckFee
	ByUser  bool            // added to what the customer sends, by default
}

// Tenants tells what fees a tenant pays; ok is false where there is none.
type Tenants interface {
	PaymentFees(ctx context.Context, tenant string) (f Fees, ok bool, err error)
}

// Wallets finds a wallet of the tenant by its wallet_id or external_id; "" is
// the master account. guard stands for the wallet being open and goes into
// every Change that posts to it; ok is false where there is none that is open.
type Wallets interface {
	OpenWallet(ctx context.Context, tenant, ref string) (id string, guard storage.Guard, ok bool, err error)
}

// Minimums says what payments in some currencies are at least, in units by code. A
// currency that it leaves out has no other minimum than its own.
type Minimums = func(ctx context.Context, currencies ...*chain.Currency) (map[string]ledger.Amount, error)

// LatePolicy says what becomes of money that comes after expiry_time.
type LatePolicy string

// The policies.
const (
	LateSuspense LatePolicy = "suspense" // booked to suspense, the payment stays as it is
	LateCredit   LatePolicy = "credit"   // credited at the rate when seen
)

// Config is what a Service stands on.
type Config struct {
	Store    storage.Store
	Registry *chain.Registry
	// Rates is believed as it is: a *rates.Guarded lets no impossible price through.
	Rates rates.Rates
	// RateAge is the age at which Rates refuses a price, for Quote.ExpiresAt. Defaults to
	// rates.DefaultMaxAge.
	RateAge   time.Duration
	Addresses AddressPool
	Tenants   Tenants
	Wallets   Wallets
	// Head reads how far a network was read: incoming's stored cursor. TipRead is the time
	// up to which it is known what was paid.
	Head func(context.Context, chain.Network) (incoming.Cursor, error)
	// Retired lists currencies that Registry no longer lists, by the host's wish. Their
	// payments still end when their time is over. Defaults to none.
	Retired []string
	// Undecided reports at which of these addresses something has come that was not handed
	// to Handle yet. Defaults to none.
	Undecided func(ctx context.Context, n chain.Network, addresses ...string) (map[string]bool, error)

	// CheckAddresses says which payments of a tenant have an address that is not ours, by
	// their ids: Get and List ask it of payments that may still be paid. Defaults to no check.
	CheckAddresses func(ctx context.Context, tenant string, list []Payment) (wrong map[string]error, err error)

	// Permanent reports whether permanent addresses may be made: a process that does not
	// know them would not credit what comes there. Defaults to yes.
	Permanent func(context.Context) (bool, error)

	Now   func() time.Time
	NewID func() string // UUIDv7
	// Log gets what went wrong in Step. Defaults to discarding.
	Log *slog.Logger
	// Notify is told what a person should look at, after it was committed.
	// Defaults to the log alone.
	Notify func(context.Context, Alert)

	// Window is how long a payment waits where the request says nothing.
	// Defaults to 60 minutes.
	Window time.Duration
	// Tolerance is how much less than due is still full, in percent of what is
	// due, and ToleranceUSD its most, in USD. Default to 0.5 and 5.
	Tolerance, ToleranceUSD *decimal.Decimal
	// Late defaults to LateSuspense.
	Late LatePolicy
	// WatchAfter is how long past its expiry_time a payment's address stays
	// watched, at least 24 hours, within which what was in time may return; below
	// 0 for ever. What comes later is found by recovering the address by hand.
	// Defaults to 30 days.
	WatchAfter *time.Duration
	// NetworkFee quotes what a payment in a currency is charged for the network,
	// in units of that currency, once. Defaults to none.
	NetworkFee func(context.Context, *chain.Currency) (ledger.Amount, error)
	// Minimums are asked beside each currency's own minimum; the greater counts.
	// Defaults to none.
	Minimums Minimums
	// ForwardCost says what forwarding a payment in a currency costs now, in units of it: for
	// Estimate. 0 = it is not forwarded, or the cost is unknown. Defaults to that.
	ForwardCost func(context.Context, *chain.Currency) (ledger.Amount, error)
	// Wanted says whether anybody gets webhooks of a type of a tenant's. It is asked for
	// payment_deposit alone: each deposit makes several. Defaults to yes.
	Wanted func(ctx context.Context, tenant, eventType string) (bool, error)
	// Screen judges each deposit that is final, before it is booked: of payments, at permanent
	// addresses, and money that matches no payment. It gives a Verdict and a reason in words. An
	// error means that it cannot tell now: the deposit stays as it is, and is asked about again
	// after 30 seconds and more, up to 10 minutes. So is one for which it takes longer than 2
	// seconds; its answer is taken then. Its context ends after 30 seconds. It is called
	// concurrently, and again for a deposit whose answer no process could write down before it
	// ended. Give it alike to every process. What is too little to be booked is not asked about, nor what was
	// final before Screen was set. Defaults to Allow.
	Screen func(ctx context.Context, s Subject) (Verdict, string, error)
	// PriceCurrencies are the fiat currencies that prices may be in. Defaults to
	// USD, EUR and GBP.
	PriceCurrencies []string
	// CheckURL refuses callback URLs. Defaults to asking for http or https, a
	// host, and no credentials.
	CheckURL func(string) error

	// MaxCreditUSD is the most that one deposit may be worth to be credited
	// without a person: more goes to suspense. Defaults to 10,000,000.
	MaxCreditUSD *decimal.Decimal
	// MaxDeposits is how many deposits count for one payment; more go to
	// suspense. Defaults to 100.
	MaxDeposits int
	// Lease is how long one process keeps a due payment for itself. Defaults to
	// 1 minute.
	Lease time.Duration
}

// DefaultPriceCurrencies is Config.PriceCurrencies where it is left out.
func DefaultPriceCurrencies() []string { return []string{"USD", "EUR", "GBP"} }

// withDefaults fills in what is open and says what is missing.
func (c Config) withDefaults() (Config, error) {
	for what, missing := range map[string]bool{
		"Store": c.Store == nil, "Registry": c.Registry == nil, "Rates": c.Rates == nil, "Addresses": c.Addresses == nil,
		"Tenants": c.Tenants == nil, "Wallets": c.Wallets == nil, "Head": c.Head == nil, "Now": c.Now == nil, "NewID": c.NewID == nil,
	} {
		if missing {
			return c, fmt.Errorf("payment: Config.%s is needed", what)
		}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Notify == nil {
		c.Notify = func(context.Context, Alert) {}
	}
	c.Window = orElse(c.Window, time.Hour)
	c.Lease = orElse(c.Lease, time.Minute)
	c.MaxDeposits = orElse(c.MaxDeposits, 100)
	c.Late = orElse(c.Late, LateSuspense)
	c.RateAge = orElse(c.RateAge, rates.DefaultMaxAge)
	c.Tolerance = orPointer(c.Tolerance, decimal.New(5, -1))
	c.ToleranceUSD = orPointer(c.ToleranceUSD, decimal.New(5, 0))
	if c.WatchAfter == nil {
		month := 30 * 24 * time.Hour
		c.WatchAfter = &month
	}
	c.MaxCreditUSD = orPointer(c.MaxCreditUSD, decimal.New(10_000_000, 0))
	if c.PriceCurrencies == nil {
		c.PriceCurrencies = DefaultPriceCurrencies()
	}
	if c.CheckURL == nil {
		c.CheckURL = checkURL
	}
	if c.Minimums == nil {
		c.Minimums = func(context.Context, ...*chain.Currency) (map[string]ledger.Amount, error) { return nil, nil }
	}
	if c.ForwardCost == nil {
		c.ForwardCost = func(context.Context, *chain.Currency) (ledger.Amount, error) { return 0, nil }
	}
	if c.Permanent == nil {
		c.Permanent = func(context.Context) (bool, error) { return true, nil }
	}
	if c.Wanted == nil {
		c.Wanted = func(context.Context, string, string) (bool, error) { return true, nil }
	}
	if c.NetworkFee == nil {
		c.NetworkFee = func(context.Context, *chain.Currency) (ledger.Amount, error) { return 0, nil }
	}
	switch {
	case c.Late != LateSuspense && c.Late != LateCredit:
		return c, fmt.Errorf("payment: Config.Late is %q, not suspense or credit", c.Late)
	case c.Tolerance.Sign() < 0 || c.Tolerance.GreaterThanOrEqual(hundred) || c.ToleranceUSD.Sign() < 0:
		return c, errors.New("payment: Config.Tolerance must be from 0 to below 100 percent, ToleranceUSD at least 0")
	case c.RateAge < 0:
		return c, errors.New("payment: Config.RateAge is below 0")
	case c.Window < time.Minute || c.Window > maxWindow:
		return c, fmt.Errorf("payment: Config.Window must be from 1 minute to %s", maxWindow)
	}
	return c, nil
}

func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}

func orPointer(v *decimal.Decimal, other decimal.Decimal) *decimal.Decimal {
	if v == nil {
		return &other
	}
	return v
}
