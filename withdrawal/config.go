package withdrawal

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Payouts is the side that signs and sends. Its methods may be called
// concurrently and by several processes at once.
type Payouts interface {
	// Submit takes an intent over, durably. The same ID again is a success
	// without effect, whatever has become of the intent. *WaitError: nothing was
	// taken, try later. An error that wraps chain.ErrRejected: nothing was taken,
	// and never will be. An error that wraps ErrAltered: another order was taken
	// under this id. Any other error: unknown, submit the same again.
	Submit(ctx context.Context, in chain.Intent) error
	// Cancel ends an intent before anything is signed. true: it is ended for
	// good, and submitting its ID again has no effect. false: too late, or it
	// is unknown whether it can still be ended. An error that wraps ErrNoIntent:
	// it was never submitted.
	Cancel(ctx context.Context, n chain.Network, id string) (bool, error)
}

// Fees quotes what the network will take, in the withdrawal's own currency.
type Fees interface {
	// Quote is the fee for sending an intent, in units of its currency, rounded up. Its
	// Tenant, Network, Currency and Amount are set; To is "" for a typical recipient.
	// Errors become ErrFee.
	Quote(ctx context.Context, in chain.Intent) (ledger.Amount, error)
}

// Tenants is what a withdrawal needs of the merchant's settings.
type Tenants interface {
	// WithdrawalFee is the merchant's platform fee: a percentage of the figure
	// asked for, of at most 6 places, and a flat sum in whole coins of currency.
	WithdrawalFee(ctx context.Context, tenant, currency string) (percent, flat decimal.Decimal, err error)
}

// Wallets finds the account that pays.
type Wallets interface {
	// Resolve finds a wallet by its id or the merchant's own, "" being the
	// master account, and gives the guard that it is open.
	Resolve(ctx context.Context, tenant, ref string) (id string, open storage.Guard, err error)
}

// Verdict is what policy says of a withdrawal that is about to be handed over.
type Verdict string

// The verdicts.
const (
	Allow     Verdict = "allow"
	AskReview Verdict = "review" // wait for Approve or Refuse
	Refuse    Verdict = "refuse"
	Delay     Verdict = "delay" // of Rules: ask again later
)

// Rules are the stored policy of a tenant: package withdrawal/policy. The methods may be called
// concurrently.
type Rules interface {
	// Judge says what the rules make of a withdrawal that is about to be handed over. An error
	// means that they cannot tell now: it waits, and is asked about again.
	Judge(ctx context.Context, w *Withdrawal, now time.Time) (Judgement, error)
	// Vault is the canonical form of an address that no key signs for, where the tenant's list of
	// destinations has it; "" = it does not.
	Vault(ctx context.Context, tenant string, n chain.Network, address string) (chain.Address, error)
}

// Judgement is what Rules say of a withdrawal.
type Judgement struct {
	Verdict Verdict
	Rule    string    // names of the rules that decided, with commas between; "" with Allow
	Reason  string    // why, in words
	Needs   []Need    // with AskReview: who has to approve
	Until   time.Time // with Delay: when to ask again
	// Count are rows that count the withdrawal. They are written in the Change that hands it
	// over, whoever lets it go. Require keeps what was decided on as it was read.
	Count   []storage.Row
	Require []storage.Guard
}

// text is a Judgement as a reason to wait or fail.
func (j *Judgement) text() string { return "rule " + j.Rule + ": " + j.Reason }

// Ceiling bounds what a tenant may withdraw of one currency, in units of it.
// 0 = no bound.
type Ceiling struct {
	Max   ledger.Amount // of one withdrawal, fees included
	Daily ledger.Amount // of all that were created on one day, UTC, fees included
}

// Notice tells the host of something that a person should look at.
type Notice struct {
	Tenant     string
	Withdrawal string
	Kind       string // one of the Notice… constants
	Detail     string
}

// The kinds of notices.
const (
	NoticeReview   = "withdrawal_review"         // waits for Approve or Refuse
	NoticeResent   = "withdrawal_resent"         // completed, then dead, and sent again
	NoticeReorged  = "withdrawal_reorged"        // completed, and the network took its payment back: it is sent again
	NoticeConflict = "withdrawal_contradiction"  // a fact contradicts what was already decided: look at it
	NoticeFailed   = "withdrawal_payment_failed" // the payout side gave up with proof
	NoticeAltered  = "withdrawal_altered"        // its stored rows contradict each other: it is not paid
	// NoticeShort: the recipient got less than was ordered. The withdrawal waits for
	// TakeDelivered or PayMissing, and other payouts of its currency wait with it.
	NoticeShort = "withdrawal_delivered_less"
	// NoticeHouse: a payment of the house's own has waited for Config.StuckAfter for one reason.
	// Withdrawal is that payment's id, Detail names the reason.
	NoticeHouse = "house_payment_waiting"
	// NoticeWaiting: it has waited for Config.StuckAfter for one reason. Detail names it.
	NoticeWaiting = "withdrawal_waiting"
	// NoticeUnreadable: its stored row cannot be decoded, so it is not handed over. Each process
	// reports it once.
	NoticeUnreadable = "withdrawal_unreadable"
)

// Config is what the service is made of. Store, Registry, Parse, Fees, Tenants,
// Wallets, Payouts, MaxCost, Now and NewID are required.
type Config struct {
	Store    storage.Store
	Registry *chain.Registry
	// Parse validates an address and gives its canonical form; the error is a
	// *chain.AddressError.
	Parse func(n chain.Network, s string) (chain.Address, error)
	// Untag takes an address apart that carries a memo, see chain.Tagger. Defaults
	// to none that does.
	Untag   func(n chain.Network, a chain.Address) (account chain.Address, memo string, ok bool)
	Fees    Fees
	Tenants Tenants
	Wallets Wallets
	Payouts Payouts
	// MaxCost bounds what the network may take for one withdrawal, in units of the
	// network's gas currency. It is asked once per withdrawal, with what is to be handed
	// over.
	// An error that wraps chain.ErrNode says that the node answers nobody: others of the network
	// are not asked about in the same Step.
	MaxCost func(ctx context.Context, in chain.Intent) (ledger.Amount, error)
	// Spare is what of the house's equity in an asset nothing is set aside from, and the row
	// that a Change which decides on it writes. PayMissing asks it. Defaults to the equity by
	// the ledger, and no row.
	Spare func(ctx context.Context, tenant string, asset ledger.Asset) (ledger.Amount, storage.Row, error)
	// Missing asks the chain how much less than was ordered the payment of a withdrawal has brought, in
	// units of its currency. PayMissing pays no more than that. The error says that it is not in a block, or that no
	// node can tell now. Defaults to what was told of the payment.
	Missing func(ctx context.Context, w Withdrawal) (ledger.Amount, error)
	Now     func() time.Time
	NewID   func() string

	// Mandates makes the mandate of each new withdrawal, and checks it before money
	// moves. Defaults to none: nothing is made, and nothing is asked for.
	Mandates Mandates
	// Audit records each person's decision in its Change. Defaults to none: it is kept with the
	// withdrawal alone.
	Audit audit.Record
	// Rates converts price_amount. It is believed as it is: a *rates.Guarded lets no
	// impossible price through. Defaults to none: such requests are refused.
	Rates rates.Rates
	// PriceCurrencies are the fiat currencies that price_amount may be in.
	// Defaults to USD, EUR and GBP.
	PriceCurrencies []string
	// Own says whether an address is one of ours, and for what. Defaults to none.
	Own func(ctx context.Context, n chain.Network, a chain.Address) (use string, own bool, err error)
	// Deliverable refuses what a network would not take or keep, such as a new
	// XRP account below the reserve; the error is a *chain.AddressError. Defaults
	// to no check.
	Deliverable func(ctx context.Context, c *chain.Currency, to chain.Address, memo string, a ledger.Amount) error
	// CheckURL refuses a callback URL, in words for the merchant. Defaults to no
	// check.
	CheckURL func(url string) error
	// Rules are the tenant's stored policy. They are asked before Policy, and count what goes
	// out. Defaults to none.
	Rules Rules
	// Policy judges each withdrawal before it is handed over, whatever people or the Rules have
	// said of it. It is asked again whenever that is tried again. Refuse ends the withdrawal.
	// AskReview has it wait until a person has approved it: an approval since Policy asked first
	// answers it for good, an earlier one does not. Any other Verdict but Allow is as AskReview.
	// What PayMissing made is approved already. Once the payout side was asked to take the
	// withdrawal and did not, as coins were short, Refuse alone counts. An error or a panic has it
	// wait, and so does a call that does not end in 3 seconds, or 0.1 seconds for a minute after one
	// did not: Policy is asked again, or its late answer is taken. Calls may run at the same time;
	// their context ends after 30 seconds. One that goes on all the same is logged as policy_hangs, and
	// is the only one of its withdrawal until the process ends. A reason is cut at 1,000 characters. Defaults to Allow.
	Policy func(ctx context.Context, w Withdrawal) (Verdict, string, error)
	// Ceilings bounds amounts. Defaults to no bounds.
	Ceilings func(ctx context.Context, tenant, currency string) (Ceiling, error)
	// Halted says why paying out a currency is halted, "" = it is not. The operator sees it as the
	// withdrawal's Reason. Defaults to never.
	Halted func(ctx context.Context, tenant, currency string) (why string, err error)
	// Retired lists currencies that Registry no longer lists, by the host's wish. Their
	// withdrawals wait as halted, and can be cancelled. Defaults to none.
	Retired []string
	// Confirmations after which a withdrawal is completed. One that was created under a
	// smaller number waits for this one, or for finality. Where the currency has Steps, that
	// of the value when it is created holds if it asks for more, up to where the payout is
	// settled; a missing price gives the highest. 0 = before it is in a block, whatever the
	// Steps ask. Defaults to 1.
	Confirmations func(c *chain.Currency) int64
	// MaxFeeTimes: a quoted network fee above so many times the figure asked
	// for, or the currency's minimum where that is more, is taken for a fault of
	// the estimator. Defaults to 100.
	MaxFeeTimes int64
	// PickupDelay is how long a new withdrawal can still be cancelled for
	// certain. Defaults to 0.
	PickupDelay time.Duration
	// RetryDelay is when a withdrawal that could not be handed over is tried
	// again. Defaults to 30 seconds.
	RetryDelay time.Duration
	// StuckAfter is how long a withdrawal may wait for one reason until the operator is told.
	// Defaults to 15 minutes.
	StuckAfter time.Duration
	// Lease is how long a worker keeps what it claimed. Defaults to 1 minute.
	Lease time.Duration
	// Batch is how many are claimed at once. Those that could not be begun in half of the
	// Lease are due again when it ends. Defaults to 100.
	Batch int
	// Follow adds to the Change by which a withdrawal with a Parent changes its status what
	// follows for the parent: see Order. It may be called again for the same change. Defaults
	// to nothing.
	Follow func(ctx context.Context, w Withdrawal, c *storage.Change) error
	// Notify tells the host; it must not block. Defaults to nothing.
	Notify func(ctx context.Context, n Notice)
	// Log takes what operators should see. Defaults to discarding.
	Log *slog.Logger
}

// Mandates makes and checks mandates of one store. It fills in Terms.Store.
type Mandates interface {
	// Make returns the mandate of a new order.
	Make(t mandate.Terms) (string, error)
	// Check returns why an order is refused: an error of mandate.Keys.Check, or that of
	// the store. One without a mandate may be accepted, if an earlier version made it.
	Check(ctx context.Context, text string, t mandate.Terms) error
}

// Service creates, follows and settles withdrawals. All methods may be called
// concurrently.
type Service struct {
	c        Config
	inFlight storage.InFlight
	unread   storage.Unreadable
	acting   sync.Map // by tenant, what acts of people hold: see act
	hooks    hookCalls
	silences silences
}

// New checks the Config and makes a Service. It does no I/O.
func New(c Config) (*Service, error) {
	switch {
	case c.Store == nil || c.Registry == nil || c.Parse == nil || c.Now == nil || c.NewID == nil:
		return nil, errors.New("withdrawal: Config needs Store, Registry, Parse, Now and NewID")
	case c.Fees == nil || c.Tenants == nil || c.Wallets == nil || c.Payouts == nil || c.MaxCost == nil:
		return nil, errors.New("withdrawal: Config needs Fees, Tenants, Wallets, Payouts and MaxCost")
	}
	setDefaults(&c)
	c.Store = storage.Joined(c.Store)
	return &Service{c: c}, nil
}

func setDefaults(c *Config) {
	or(&c.RetryDelay, 30*time.Second)
	or(&c.Lease, time.Minute)
	or(&c.StuckAfter, 15*time.Minute)
	or(&c.Batch, 100)
	or(&c.MaxFeeTimes, 100)
	if c.PriceCurrencies == nil {
		c.PriceCurrencies = []string{"USD", "EUR", "GBP"}
	}
	if c.Untag == nil {
		c.Untag = func(chain.Network, chain.Address) (chain.Address, string, bool) { return "", "", false }
	}
	if c.Own == nil {
		c.Own = func(context.Context, chain.Network, chain.Address) (string, bool, error) { return "", false, nil }
	}
	if c.Ceilings == nil {
		c.Ceilings = func(context.Context, string, string) (Ceiling, error) { return Ceiling{}, nil }
	}
	if c.Halted == nil {
		c.Halted = func(context.Context, string, string) (string, error) { return "", nil }
	}
	if c.Confirmations == nil {
		c.Confirmations = func(*chain.Currency) int64 { return 1 }
	}
	if c.Follow == nil {
		c.Follow = func(context.Context, Withdrawal, *storage.Change) error { return nil }
	}
	if c.Notify == nil {
		c.Notify = func(context.Context, Notice) {}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
}

func or[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}
