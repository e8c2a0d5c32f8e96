package house

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Payment is money of the house's own on its way out. Amounts are in units of Currency.
type Payment struct {
	ID       string         `db:"payment_id"`
	Tenant   string         `db:"tenant"`
	Source   ledger.Account `db:"source"` // that pays: ledger.FeesPlatform, ledger.Float, or cold/<network> for a move there
	Network  string         `db:"network"`
	Currency string         `db:"currency"`
	Address  string         `db:"address"` // canonical, one of Config.Addresses; of a move to cold that of the ceiling
	Memo     string         `db:"memo"`
	Amount   ledger.Amount  `db:"amount"`
	All      bool           `db:"all_funds"` // it was asked for as all that there was

	Status       Status        `db:"status"`
	Stage        stage         `db:"stage"`
	MaxCost      ledger.Amount `db:"max_cost"` // of its order, in units of the network's gas currency
	Waiting      string        `db:"waiting"`  // why it is not completed yet, "" = no reason known
	WaitingSince time.Time     `db:"waiting_since"`
	Long         bool          `db:"waits_long"` // a person was told that it waits for Waiting
	Reason       string        `db:"reason"`     // why it failed
	Tx           string        `db:"tx"`         // "" until signed
	OutcomeAt    time.Time     `db:"outcome_at"`
	By           string        `db:"requested_by"` // who asked for it
	// Mandate proves that the payment was ordered as it stands: see package mandate.
	Mandate string `db:"mandate"`

	CreatedAt   time.Time `db:"created_at"`
	UpdatedAt   time.Time `db:"updated_at"`
	CompletedAt time.Time `db:"completed_at"` // zero until completed
}

// stage is how much the payout side may know of a pending payment.
type stage string

// The stages.
const (
	kept    stage = ""        // nothing
	handing stage = "handing" // its order may be on the way
	tried   stage = "tried"   // its order was not taken, and Waiting says why
	handed  stage = "handed"  // it has the order
)

// live reports whether the payment still holds money.
func (p *Payment) live() bool { return p.Status == Pending || p.Status == Processing }

// Payments is the table, in tenants' partitions. Due is when a pending one is to be handed
// over, or when a person is told that one waits.
var Payments = storage.NewTable[Payment]("house_payments", storage.Index("created_at"), storage.Index("status", "created_at"))

// Tables lists what this package stores.
func Tables() []*storage.Table { return []*storage.Table{Payments.Table} }

// prefix begins the id of every payment, and of its order.
const prefix = "house-"

// Is reports whether an order has the id of a house payment.
func Is(id string) bool { return strings.HasPrefix(id, prefix) }

// Address is an address of the host's own, which the house may pay. Memo is what the network
// carries with it, "" = none.
type Address struct {
	Network chain.Network
	Address chain.Address
	Memo    string
}

// sender sends payments.
type sender interface {
	Submit(ctx context.Context, in chain.Intent) error
	Cancel(ctx context.Context, n chain.Network, id string) (ended bool, err error)
}

// sealer makes and checks mandates of the store.
type sealer interface {
	Make(t mandate.Terms) (string, error)
	Check(ctx context.Context, text string, t mandate.Terms) error
}

// Config wires a Service. All fields are required unless said otherwise.
type Config struct {
	Store    storage.Store
	Registry *chain.Registry
	Treasury sender
	Mandates sealer
	Now      func() time.Time
	NewID    func() string
	Log      *slog.Logger // Defaults to discarding.
	// Addresses are the host's own, to which alone payments go. Without any, none is made.
	Addresses []Address
	// Parse returns an address in its canonical form.
	Parse func(n chain.Network, s string) (chain.Address, error)
	// Own says whether an address is one that this store gives out or pays from.
	Own func(ctx context.Context, n chain.Network, a chain.Address) (bool, error)
	// MaxCost is the most that the network may take for an order, in units of its gas
	// currency.
	MaxCost func(ctx context.Context, in chain.Intent) (ledger.Amount, error)
	// Halted says why paying out a currency is halted for a tenant, "" = it is not.
	Halted func(ctx context.Context, tenant, currency string) (why string, err error)
	// Cold tells the ceilings above which hot coins go to cold addresses. Defaults to none.
	Cold ColdRules
	// Wallet says whether a tenant has a wallet with this id.
	Wallet func(ctx context.Context, tenant, id string) (bool, error)
	// Lease is how long one worker keeps a payment. Defaults to one minute.
	Lease time.Duration
	// RetryDelay is when a payment that waits is looked at again. Defaults to 30 seconds.
	RetryDelay time.Duration
	// StuckAfter is how long a payment may wait for one reason until a person is told, in the
	// log, by an event with Long, and by Notify. Defaults to 15 minutes.
	StuckAfter time.Duration
	// Notify is called after such an event was committed. Defaults to nothing.
	Notify func(ctx context.Context, p Payment)
}

// Service is safe for concurrent use and by several processes on one store.
type Service struct {
	c      Config
	unread storage.Unreadable
}

// New checks the configuration. It does no I/O.
func New(c Config) (*Service, error) {
	if c.Store == nil || c.Registry == nil || c.Treasury == nil || c.Mandates == nil || c.Now == nil || c.NewID == nil ||
		c.Parse == nil || c.Own == nil || c.MaxCost == nil || c.Halted == nil || c.Wallet == nil {
		return nil, errors.New("house: Store, Registry, Treasury, Mandates, Now, NewID and every function are required")
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Lease == 0 {
		c.Lease = time.Minute
	}
	if c.RetryDelay == 0 {
		c.RetryDelay = 30 * time.Second
	}
	if c.StuckAfter == 0 {
		c.StuckAfter = 15 * time.Minute
	}
	if c.Notify == nil {
		c.Notify = func(context.Context, Payment) {}
	}
	c.Addresses = slices.Clone(c.Addresses)
	for i := range c.Addresses {
		a := &c.Addresses[i]
		if _, err := c.Registry.Network(string(a.Network)); err != nil {
			continue // another process serves it
		}
		canonical, err := c.Parse(a.Network, string(a.Address))
		if err != nil {
			return nil, fmt.Errorf("house: the address %q of %s: %w", a.Address, a.Network, err)
		}
		a.Address = canonical
	}
	c.Store = storage.Joined(c.Store)
	return &Service{c: c}, nil
}

// Errors of this package.
var (
	// ErrNoAddresses: no address of the host's own is configured.
	ErrNoAddresses = errors.New("house: no address is configured that the house may pay: list the host's own in Config.HouseAddresses")
	// ErrAddress: the address is not one of the host's own.
	ErrAddress = errors.New("house: the address is none of Config.HouseAddresses")
	// ErrAmount: the amount, or the key, is not one that can be meant.
	ErrAmount = errors.New("house: give an amount above 0, or all; and a key of 1 to 100 bytes")
	// ErrKey: the key was used for something else.
	ErrKey = errors.New("house: the key was used for other terms")
	// ErrNotFound: the tenant has no such payment.
	ErrNotFound = errors.New("house: no such payment")
	// ErrHandingOver: it cannot be told yet whether the payment was handed over; ask again.
	ErrHandingOver = errors.New("house: it is being handed over, ask again in a minute")
	// ErrAltered: the stored rows of a payment contradict each other.
	ErrAltered = errors.New("house: the payment's stored rows contradict each other")
)

// ShortError says how much could be taken.
type ShortError struct {
	Source   ledger.Account
	Currency string
	Asked    string // coins
	Free     string // coins that could be taken
	Why      string // what keeps the rest
}

func (e *ShortError) Error() string {
	return fmt.Sprintf("house: %s %s cannot be taken from %s, at most %s can: %s", e.Asked, e.Currency, e.Source, e.Free, e.Why)
}

// StateError says that a payment is not in a status that allows what was asked.
type StateError struct {
	ID      string
	Current Status
}

func (e *StateError) Error() string {
	return fmt.Sprintf("house: payment %s is %s", e.ID, e.Current)
}

// intent is the order to the payout side. It is made of what is stored and never changes.
func (p *Payment) intent() chain.Intent {
	return chain.Intent{
		ID: p.ID, Purpose: chain.ForWithdrawal, Tenant: p.Tenant, Network: chain.Network(p.Network), Currency: p.Currency,
		To: chain.Address(p.Address), Memo: p.Memo, Amount: p.Amount, MaxCost: p.MaxCost, Confirmations: 1, Mandate: p.Mandate,
	}
}

// terms are what the mandate covers, without the Store.
func (p *Payment) terms() mandate.Terms {
	return mandate.Terms{
		Tenant: p.Tenant, Order: p.ID, Kind: chain.ForWithdrawal, Network: chain.Network(p.Network), Currency: p.Currency,
		To: chain.Address(p.Address), Memo: p.Memo, Amount: p.Amount, Requested: p.Amount, Wallet: string(p.Source), By: p.By,
	}
}

// The legs: a hold, and its end. A move to cold has none: its coins stay the tenant's, at one
// more address, and chain/<network> is minus what is held at all of them.

func (p *Payment) holdTx(at time.Time) ledger.Tx {
	return p.tx("hold", at, ledger.Leg{Account: p.Source, Asset: ledger.Asset(p.Currency), Hold: p.Amount})
}

func (p *Payment) settleTx(at time.Time) ledger.Tx {
	return p.tx("settle", at,
		ledger.Leg{Account: p.Source, Asset: ledger.Asset(p.Currency), Delta: -p.Amount, Hold: -p.Amount},
		ledger.Leg{Account: ledger.Chain(p.Network), Asset: ledger.Asset(p.Currency), Delta: p.Amount})
}

func (p *Payment) releaseTx(at time.Time) ledger.Tx {
	return p.tx("release", at, ledger.Leg{Account: p.Source, Asset: ledger.Asset(p.Currency), Hold: -p.Amount})
}

func (p *Payment) tx(what string, at time.Time, legs ...ledger.Leg) ledger.Tx {
	return ledger.Tx{ID: what + "/" + p.ID, Kind: ledger.KindWithdrawal, Ref: p.ID, At: at, Legs: legs}
}
