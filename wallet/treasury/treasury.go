package treasury

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Sender is the outgoing side of one network.
type Sender interface {
	// Submit takes an intent over; idempotent by its ID.
	Submit(ctx context.Context, in chain.Intent) error
	// Cancel reports whether nothing of the intent was or ever will be signed.
	Cancel(ctx context.Context, id string) (bool, error)
	// CancelTransaction has the nonce of a signed intent go back to ourselves.
	CancelTransaction(ctx context.Context, id string, by *outgoing.Recorded) (before, after outgoing.Help, err error)
	// Replace gives orders of which nothing is signed another hot address in the place of some.
	Replace(ctx context.Context, old []chain.Address, now func(ctx context.Context, tenant string) (chain.Derived, error)) (changed int, err error)
}

// HotAddresses gives each tenant its hot address on a network, made when first
// asked for.
type HotAddresses interface {
	Hot(ctx context.Context, n chain.Network, tenant string) (chain.Derived, error)
	Owner(ctx context.Context, n chain.Network, a chain.Address) (incoming.AddressRow, bool, error)
}

// Config wires a Treasury. All fields are required unless said otherwise.
type Config struct {
	Store     storage.Store
	Registry  *chain.Registry
	Clients   map[chain.Network]chain.Client
	Senders   map[chain.Network]Sender
	Addresses HotAddresses
	Now       func() time.Time
	Log       *slog.Logger // Defaults to discarding.
	Audit     *audit.Chain // The log that the treasury's own help to a transaction is in. Defaults to none.

	// CostMargin multiplies the most that an estimate says, so that a stuck
	// transaction can be replaced at a higher fee. Defaults to 3.
	CostMargin uint64
	// MinSweep is how many times the cost of forwarding it what an address holds must be
	// worth to be forwarded: a sweep and the gas transfers for it together cost at most
	// one part in MinSweep of what is moved, tokens included, at the prices of that
	// moment and by the bounds that were stored. Less waits, visibly (Waiting), adds up
	// with what comes later, and goes when costs fall. Defaults to 2.
	MinSweep uint64
	// Patience is how long a sweep of a tenant's currency waits, from when it was first wanted,
	// for the time at which it costs at most one part in multiple of what it moves, where that
	// is more than MinSweep; it shows WaitForMore. A payout that needs the coins ends the wait.
	// An App asks the tenant's policy (policy.Sweep). Defaults to none.
	Patience func(ctx context.Context, tenant, currency string) (multiple uint64, wait time.Duration, err error)
	// Rates values coins against fees, in USD. It must refuse prices that are too old, as
	// rates.NewGuarded does; an App's Config.RateAge says how old.
	Rates rates.Rates
	// DailyCost is how much forwarding, or merging coins that no payout needs merged, may
	// cost per tenant, network and day (UTC), in USD:
	// the bounds of the transactions, and the gas that is sent to deposit addresses. A
	// transaction that has ended counts with what it cost. What goes beyond waits as
	// daily_cap. Defaults to 500.
	DailyCost decimal.Decimal
	// Lease is how long one worker keeps a sweep. Defaults to one minute.
	Lease time.Duration
	// Batch bounds what one Step takes at a time. Defaults to 100.
	Batch int
	// OnWithdrawal gets every outcome of a withdrawal after its cost is booked.
	OnWithdrawal outgoing.Handler

	// StuckAfter is how long a sweep may wait for one reason until the operator is told, also
	// one that was handed over. One that waits for lower costs is not told of. Defaults to 15
	// minutes.
	StuckAfter time.Duration
	// Notify tells the host of a sweep that has waited for StuckAfter, once for each reason, and
	// of coins that came or are to come back from cold addresses: see Notice.Kind. It must not
	// block. Defaults to logging only.
	Notify func(ctx context.Context, n Notice)
	// Halted says why nothing may be sent for an intent now, "" = it may: a sweep is not
	// begun then, and its payment does not wait for it. Defaults to never.
	Halted func(ctx context.Context, in chain.Intent) (reason string, err error)

	// Proposed returns the proposals of refills that made some of these transactions, by hash.
	// Defaults to none.
	Proposed func(ctx context.Context, tenant string, n chain.Network, txs ...string) (map[string]refill.Proposal, error)
	// Sent returns the proposal of a refill that made a transaction, and what the network took for it: see
	// refill.Service.Sent. Defaults to none.
	Sent func(ctx context.Context, tenant string, n chain.Network, currency, tx string, spends []string) (p refill.Proposal, cost ledger.Amount, ok bool, err error)
	// LostRefill is told of a transaction that paid the tenant and is in no block any more: see
	// refill.Service.Lost. Defaults to nothing.
	LostRefill func(ctx context.Context, tenant string, n chain.Network, tx string) error
	// Cold lists a tenant's wallets that Sync only looks at. Defaults to none.
	Cold func(ctx context.Context, tenant string) ([]ColdWallet, error)
	// Custodian keeps coins elsewhere. Defaults to none.
	Custodian Custodian
}

// Notice tells the host of a sweep that waits, or of another Kind.
type Notice struct {
	Kind     string // "" = a sweep waits; NoticeApart, NoticeRefill or NoticeDeliveredLess
	Tenant   string
	Network  chain.Network
	Sweep    string
	Currency string
	Reason   string // as Waiting.Reason
	Detail   string
	Since    time.Time
}

// Treasury is safe for concurrent use and by several processes on one store.
type Treasury struct {
	cfg     Config
	costs   costCache
	blocked blocks
	rounds  rounds
	passes  passes
	unread  storage.Unreadable
}

// New checks the configuration. It does no I/O.
func New(cfg Config) (*Treasury, error) {
	switch {
	case cfg.Store == nil, cfg.Registry == nil, cfg.Addresses == nil, cfg.Now == nil, cfg.OnWithdrawal == nil, cfg.Rates == nil:
		return nil, errors.New("treasury: Store, Registry, Addresses, Now, Rates and OnWithdrawal are required")
	case cfg.DailyCost.IsNegative():
		return nil, errors.New("treasury: DailyCost must not be negative")
	case cfg.Log == nil:
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Proposed == nil {
		cfg.Proposed = func(context.Context, string, chain.Network, ...string) (map[string]refill.Proposal, error) {
			return nil, nil
		}
	}
	if cfg.LostRefill == nil {
		cfg.LostRefill = func(context.Context, string, chain.Network, string) error { return nil }
	}
	if cfg.Sent == nil {
		cfg.Sent = func(context.Context, string, chain.Network, string, string, []string) (p refill.Proposal, cost ledger.Amount, ok bool, err error) {
			return p, 0, false, nil
		}
	}
	if cfg.CostMargin == 0 {
		cfg.CostMargin = 3
	}
	if cfg.MinSweep == 0 {
		cfg.MinSweep = 2
	}
	if cfg.Lease == 0 {
		cfg.Lease = time.Minute
	}
	if cfg.StuckAfter == 0 {
		cfg.StuckAfter = 15 * time.Minute
	}
	if cfg.Batch == 0 {
		cfg.Batch = 100
	}
	if cfg.DailyCost.IsZero() {
		cfg.DailyCost = decimal.NewFromInt(500)
	}
	cfg.Store = storage.Joined(cfg.Store)
	return &Treasury{
		cfg: cfg, costs: costCache{last: map[string]costs{}}, blocked: blocks{last: map[[2]string]block{}},
		rounds: rounds{last: map[string]time.Time{}}, passes: passes{of: map[string]pass{}},
	}, nil
}

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{GasFloats.Table, Reservations.Table, TopUps.Table, Sweeps.Table, SweepNotes.Table, holdingRows.Table}
}

// WaitError says that an intent cannot be taken over now, and why.
type WaitError struct {
	Reason outgoing.Reason
	Err    error
}

func (e *WaitError) Error() string { return fmt.Sprintf("treasury: wait: %s: %v", e.Reason, e.Err) }
func (e *WaitError) Unwrap() error { return e.Err }

// Submit takes a payout over: it names the hot address as sender, sets the most
// that the network may take aside, and hands the intent to the network. Safe to
// repeat with the same intent. The error is a *WaitError where the intent must
// wait, and wraps outgoing.ErrIntent where it can never be sent: nothing is set
// aside for it then.
func (t *Treasury) Submit(ctx context.Context, in chain.Intent) error {
	in, err := t.sentBy(ctx, in)
	if err != nil {
		return err
	}
	if in.MaxCost, err = t.reserve(ctx, in); err != nil {
		return err
	}
	err = t.cfg.Senders[in.Network].Submit(ctx, in)
	if errors.Is(err, outgoing.ErrIntent) {
		err = errors.Join(err, t.unreserve(ctx, in))
	}
	return err
}

// sentBy names the hot address as sender where the order names none.
func (t *Treasury) sentBy(ctx context.Context, in chain.Intent) (chain.Intent, error) {
	if _, ok := t.cfg.Senders[in.Network]; !ok {
		return in, fmt.Errorf("treasury: no client for network %s", in.Network)
	}
	info, err := t.cfg.Registry.Network(string(in.Network))
	if err != nil || info.Family != chain.AccountFamily || in.From != "" {
		return in, err
	}
	hot, err := t.cfg.Addresses.Hot(ctx, in.Network, in.Tenant)
	if err != nil {
		return in, err
	}
	in.From, in.FromKey = t.account(in.Network, hot.Address), hot.Key
	return in, nil
}

// shared reports whether the addresses of a network are of accounts that many of
// them share: nothing is forwarded between them.
func (t *Treasury) shared(n chain.Network) (chain.Multiplexer, bool) {
	m, ok := t.cfg.Clients[n].(chain.Multiplexer)
	return m, ok
}

// account is who sends for an address: where many share one, the account.
func (t *Treasury) account(n chain.Network, a chain.Address) chain.Address {
	if m, ok := t.shared(n); ok {
		if account, _, tagged := m.Untag(a); tagged {
			return account
		}
	}
	return a
}

// Cancel withdraws an intent from its network and reports whether nothing of it
// was or ever will be signed. The reservation is given back when the network's
// outcome arrives.
func (t *Treasury) Cancel(ctx context.Context, n chain.Network, id string) (bool, error) {
	sender, ok := t.cfg.Senders[n]
	if !ok {
		return false, fmt.Errorf("treasury: no client for network %s", n)
	}
	return sender.Cancel(ctx, id)
}

// HandleHot is the incoming handler for hot and change addresses: what no
// attempt of ours made is a top-up of the operator's float, also when only balances
// show it, and when it is taken away again by a deep reorg.
func (t *Treasury) HandleHot(ctx context.Context, f incoming.Fact) error {
	s := f.Sighting
	if s.Internal {
		return nil
	}
	gone := s.State == incoming.Gone
	for g := 1; g < s.Generation || g == s.Generation && gone && s.FinalAt > 0; g++ {
		old := s
		old.Generation = g
		if err := t.undoTopUp(ctx, old); err != nil {
			return err
		}
	}
	switch {
	case gone:
		if err := t.cfg.LostRefill(ctx, s.Tenant, chain.Network(s.Network), s.Tx); err != nil {
			return err
		}
		return t.Lost(ctx, s)
	case !f.Final.Valid() || s.Currency == "" || s.Amount <= 0:
		return nil
	case s.Unproven: // no customer's, whoever sent it: what the address holds is the operator's
		t.cfg.Log.WarnContext(ctx, "top_up_unproven", slog.String("network", s.Network), slog.String("address", s.Address), slog.String("amount", s.Exact.String()))
	}
	booked, err := t.returned(ctx, s)
	if err == nil && !booked {
		err = t.topUp(ctx, s)
	}
	if err != nil {
		return err
	}
	return t.settleHot(ctx, f)
}

// topUp books an operator's own deposit, unless it was taken back already: a
// fact that comes that late is refused, and told anew as it is by then.
func (t *Treasury) topUp(ctx context.Context, s incoming.Sighting) error {
	id := "topup/" + s.Generated()
	c := t.floats(id, s, s.Currency, s.Amount)
	c.Require = []storage.Guard{TopUps.Guard(reversal(s), 0)}
	c.Require = append(c.Require, notReturned(s)...)
	return storage.CommitOne(ctx, t.cfg.Store, c)
}

func reversal(s incoming.Sighting) string { return "topup-reverse/" + s.Generated() }

// floats moves the operator's coins in by amount, or out where it is below 0.
func (t *Treasury) floats(id string, s incoming.Sighting, currency string, amount ledger.Amount) storage.Change {
	return storage.Change{
		ID: id, Partition: storage.Tenant(s.Tenant),
		Post: []ledger.Tx{{ID: id, Kind: ledger.KindAdjustment, Ref: s.Tx, At: t.cfg.Now(), Legs: []ledger.Leg{
			{Account: ledger.Chain(s.Network), Asset: ledger.Asset(currency), Delta: -amount},
			{Account: ledger.Float, Asset: ledger.Asset(currency), Delta: amount},
		}}},
		Put: []storage.Row{TopUps.Row(id, 0, time.Time{}, TopUp{Tx: s.Tx, Currency: currency, Amount: amount})},
	}
}

// undoTopUp takes a booked top-up back as it was booked. One that was not is
// noted with amount 0, so that it never will be.
func (t *Treasury) undoTopUp(ctx context.Context, s incoming.Sighting) error {
	return storage.Decide(ctx, t.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		part, id := storage.Tenant(s.Tenant), reversal(s)
		if _, _, done, err := TopUps.One(ctx, t.cfg.Store, part, id); err != nil || done {
			return storage.Change{}, err
		}
		was, row, booked, err := TopUps.One(ctx, t.cfg.Store, part, "topup/"+s.Generated())
		if err != nil {
			return storage.Change{}, err
		}
		if c, found, err := t.undoReturned(ctx, s, was, row); err != nil || found {
			return c, err
		}
		if booked {
			return t.floats(id, s, was.Currency, -was.Amount), nil
		}
		return storage.Change{
			ID: fmt.Sprintf("%s/none", id), Partition: part,
			Require: append(notReturned(s), TopUps.Guard("topup/"+s.Generated(), row.Version)),
			Put:     []storage.Row{TopUps.Row(id, 0, time.Time{}, TopUp{Tx: s.Tx, Currency: s.Currency})},
		}, nil
	})
}

// settleHot makes a top-up spendable where coins are outputs.
func (t *Treasury) settleHot(ctx context.Context, f incoming.Fact) error {
	info, err := t.cfg.Registry.Network(f.Sighting.Network)
	if err != nil || info.Family != chain.UTXOFamily {
		return err
	}
	return t.keep(ctx, f.Sighting)
}
