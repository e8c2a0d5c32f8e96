// Package outgoing brings decisions to send (chain.Intent) onto a network, and
// promises that each is paid at most once, whatever crashes, whatever a node
// answers, and however many processes work on the same store:
//
//   - a nonce or an input is bound to one intent by a committed row before
//     anything is signed, and the exact bytes to be signed are committed with it;
//   - a signed transaction is committed before it is sent, and is never rebuilt
//     because an answer was lost: the same bytes are sent again;
//   - a replacement keeps the nonce or shares an input with every attempt that may
//     land, so one of them lands, also where a deep reorg took inputs away;
//   - an intent fails only when every attempt of it is dead with proof: a final
//     revert, a final transaction in its place, or its time over for good;
//   - a child that pays for a transaction pays nobody else, and dies with it;
//   - all members of a batch have the leader's state: a Change that moves the leader
//     moves every member, and they leave only when its transaction can never confirm;
//   - coins are merged only for a payout that needs it, or while fees are low, and then
//     those that a day's payouts take are left (Config.Merging);
//   - a nonce that nobody uses any more, and that others wait behind, is filled,
//     never with bytes whose owner has the amount back.
//
// All rows live in the network's partition. Owners hear of what happened by
// Outcomes, delivered to Config.Handle until it returns nil.
package outgoing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Config is what one network's outgoing side needs.
type Config struct {
	Store    storage.Store
	Client   chain.Client
	Registry *chain.Registry
	// Retired lists currencies of this network that Registry no longer lists, by the host's
	// wish. Their intents wait as halted, and what was signed is watched to its end.
	// Defaults to none.
	Retired []string
	// Signer is required to send; a process without one only submits, cancels
	// and reads, and its Step delivers outcomes and watches.
	Signer chain.Signer
	Now    func() time.Time
	Log    *slog.Logger // Defaults to discarding.
	// Handle takes outcomes. Defaults to none: outcomes stay due.
	Handle Handler
	// ChangeAddress gives an address of ours for the rest of a transaction.
	// Required on UTXO networks.
	ChangeAddress func(ctx context.Context, tenant string) (chain.Derived, error)

	// Source says what the transaction that made a coin spends, nil = not known:
	// where that is taken for good, a coin that a deep reorg took away never comes
	// back. Defaults to knowing this of our own transactions alone: an order of
	// which every coin is gone then waits until they are back.
	Source func(ctx context.Context, outpoint string) (spends []string, err error)

	// Halted says why nothing may be sent for this intent now; "" = it may.
	// Asked beside the table Halts, before a transaction is reserved, signed, replaced or
	// sent again. A known Reason is shown as it is, anything else as ReasonHalted. Defaults
	// to never.
	Halted func(ctx context.Context, in chain.Intent) (reason string, err error)
	// Ordered says why a withdrawal was not ordered as it is about to be signed, "" = it was.
	// Asked for a plan that is read from the store again. Defaults to believing the store.
	Ordered func(ctx context.Context, in chain.Intent) (why string, err error)
	// Ending seals what became of transactions of an order that starts again. The signer is
	// shown all texts that the order has: it signs nothing beside a transaction that may still
	// pay it. It also seals which transactions give what an order spends back to ourselves.
	// Defaults to none, for a signer that asks for none.
	Ending func(ctx context.Context, e mandate.Ending) (text string, err error)
	// Back reports whether one of an order's texts of Ending says that a transaction pays nobody: it
	// gives the order's nonce or coins back to ourselves. Defaults to believing the store.
	Back func(ctx context.Context, order string, endings []string, a mandate.Attempt) (bool, error)
	// Sealed returns those of an order's texts of Ending that the host has made. Defaults to none:
	// then a withdrawal whose nonce or coins an unknown transaction took fails.
	Sealed func(ctx context.Context, order string, endings []string) ([]mandate.Ending, error)
	// Told returns, by order id, the hash of the transaction that the order's owner was last told of
	// (txs), and what of the order is not as its owner has ordered it (differ). txs has no order whose
	// owner was told of no transaction. Defaults to believing this package's own rows.
	Told func(ctx context.Context, orders []chain.Intent) (txs, differ map[string]string, err error)
	// Foreign returns the outpoints of those coins that are none of a tenant's, whatever their rows say:
	// they are not spent for him. Defaults to believing the rows.
	Foreign func(ctx context.Context, tenant string, coins ...chain.Coin) (outpoints []string, err error)
	// Guards are rows beside those of Halts that the Changes which reserve, replace, store
	// and send again require unchanged. They are read before Halted is asked. Defaults to none.
	Guards func(ctx context.Context, in chain.Intent) ([]storage.Guard, error)
	// Raise is asked for a higher bound where an intent cannot be sent within its own: most
	// is what it needs now, with some room. It sets the difference aside before it answers,
	// and returns the bound that holds from now on, which is the present one where it
	// refuses. An error says why it cannot be known, or borne, now. Asked again after a
	// crash, it answers the same. Defaults to none: an intent keeps its bound.
	Raise func(ctx context.Context, in chain.Intent, most ledger.Amount) (ledger.Amount, error)
	// Costly says whether the coins that a withdrawal's hot address lacks wait elsewhere
	// because bringing them would cost too much of the withdrawal: it then shows
	// ReasonBelowCost. Asked whenever one waits for coins. Defaults to no.
	Costly func(ctx context.Context, in chain.Intent) (bool, error)
	// Uncovered says whether a withdrawal's hot address lacks coins that nothing brings there, such as
	// those that were spent as gas: it then shows ReasonOperatorFunds instead of ReasonHotBalance. Asked
	// whenever one waits for coins. Defaults to no.
	Uncovered func(ctx context.Context, in chain.Intent) (bool, error)
	// Less is asked once for each order of which a transaction brought the recipient less than was ordered. What it
	// returns is committed with that: rows and events of the network's partition. Defaults to nothing.
	Less func(ctx context.Context, in chain.Intent) (put []storage.Row, tell []storage.Event, err error)
	// GasFor names the currency of the sweep that a gas transfer is for, "" = not known:
	// a halt of it stops the transfer. Defaults to never knowing.
	GasFor func(ctx context.Context, in chain.Intent) (currency string, err error)
	// Trail are the newest blocks that deposits were read from, the oldest first; none where
	// that is not known. It is read before a transaction is taken for final: a node on
	// another branch settles nothing. Defaults to believing the node.
	Trail func(ctx context.Context) ([]chain.Block, error)
	// Payer is asked who pays the network for an intent, on networks that are
	// chain.Sponsored. Defaults to the sender.
	Payer func(ctx context.Context, in chain.Intent) (chain.Derived, error)
	// CheckGasBudget says whether the operator's own coins bear a cost of max more, in
	// units of the gas currency; see InFlight for what is bound already.
	// Defaults to yes.
	CheckGasBudget func(ctx context.Context, in chain.Intent, max ledger.Amount) (bool, error)

	// Poll is how often a transaction on its way is looked at. Defaults to 10 s.
	Poll time.Duration
	// Resend is how often a pending transaction is sent again. Defaults to 5 min.
	Resend time.Duration
	// StuckAfter is how long a transaction may stay out of a block before it is
	// replaced by a dearer one. Defaults to 15 min; an App gives it more where blocks may be late.
	StuckAfter time.Duration
	// TellAfter is how long a signed transaction may stay out of a block before its owner is
	// told, with ReasonStuck. He is told when its next replacement is due, so not before StuckAfter.
	// Defaults to 1 h, as others wait behind its nonce, and to 6 h where coins are outputs: there
	// blocks may be late, and nobody waits behind it.
	TellAfter time.Duration
	// Lease is how long a claimed intent is this process's. Defaults to 1 min.
	Lease time.Duration
	// Backoff is the first pause of a waiting intent; it doubles up to 64 times
	// itself. Defaults to 5 s.
	Backoff time.Duration
	// MaxAttempts bounds the signed transactions of one intent. Defaults to 20. One whose owner was told that it is
	// executed can not be cancelled, and is replaced beyond that, within its bound.
	MaxAttempts int
	// MaxInputs bounds the coins of one transaction. Where a withdrawal needs more, coins of
	// its tenant are merged first. Never more are spent than nodes relay,
	// chain.NetworkInfo.MostInputs: 1,400 coins, 650 on DOGE, 100 on ADA. Defaults to 200, where so many may be: a signer
	// is given the whole transaction that each coin comes from.
	MaxInputs int
	// MayCost is the most that merging coins for a withdrawal and sending it may cost
	// together, in units of the gas currency. Defaults to half of the amount.
	MayCost func(ctx context.Context, in chain.Intent) (ledger.Amount, error)
	// Merging says when coins are merged before a payout needs them, while fees are low.
	// Defaults to the defaults of Merging's fields for each tenant.
	Merging map[MergingOf]Merging
	// Demand is what a tenant has ordered to be paid out in the last day, in units of the gas
	// currency: an early merge leaves coins for as much. Defaults to nothing.
	Demand func(ctx context.Context, tenant string) (ledger.Amount, error)
	// MaxPayments bounds the withdrawals of one tenant that one transaction pays,
	// where coins are outputs: those that are due at the same moment, each
	// recipient of which sees the others. 1 pays each alone. Defaults to 25.
	MaxPayments int
	// Able reports whether every running process knows an ability: one that does not
	// would spoil what the others do with it. Defaults to yes.
	Able func(ctx context.Context, a Ability) (bool, error)
	// DisableCPFP says that a transaction which nodes keep and take no replacement of is
	// left to wait. Defaults to having a child pay for it, where the client is a
	// chain.ParentPayer.
	DisableCPFP bool
	// MaxFee bounds the cost of any transaction in units of the gas currency,
	// whatever its intent allows. Defaults to no bound.
	MaxFee ledger.Amount
	// Batch is how many rows one Step claims at most. Defaults to 64.
	Batch int
}

// Sender sends on one network. All methods may be called concurrently.
type Sender struct {
	Config
	info   chain.NetworkInfo
	gas    *chain.Currency
	part   storage.Partition
	unread storage.Unreadable
	codes  []string     // currencies that this process decides about
	nonces chain.Noncer // nil where the network has none

	mu       sync.Mutex
	finality bool                            // the network was seen to have a notion of it
	checked  map[chain.Address]bool          // nonce rows compared with the chain by this process
	doubts   map[chain.Address]reportedNonce // first nonces above 0, until they are believed
	unfit    map[string]time.Time            // coins that no transaction can spend: left out until then
	owned    map[owned]bool                  // coins that are known to be a tenant's
}

// New checks the configuration. It does no I/O.
func New(c Config) (*Sender, error) {
	if c.Store == nil || c.Client == nil || c.Registry == nil || c.Now == nil {
		return nil, errors.New("outgoing: Config needs Store, Client, Registry and Now")
	}
	for _, m := range c.Merging {
		if err := m.check(); err != nil {
			return nil, err
		}
	}
	code := c.Client.Network()
	info, err := c.Registry.Network(string(code))
	if err != nil {
		return nil, fmt.Errorf("outgoing: the client's network: %w", err)
	}
	gas, err := c.Registry.Gas(code)
	if err != nil {
		return nil, fmt.Errorf("outgoing: gas currency of %s: %w", code, err)
	}
	if info.Family == chain.UTXOFamily && c.ChangeAddress == nil {
		return nil, fmt.Errorf("outgoing: Config.ChangeAddress is required on %s", code)
	}
	c.Store = storage.Joined(c.Store)
	n := &Sender{Config: c, info: info, gas: gas, part: storage.Network(string(code)), checked: map[chain.Address]bool{}, doubts: map[chain.Address]reportedNonce{}, unfit: map[string]time.Time{}, owned: map[owned]bool{}}
	n.codes = append(n.codes, c.Retired...)
	for _, cur := range c.Registry.On(code) {
		n.codes = append(n.codes, cur.Code)
	}
	if info.Family == chain.AccountFamily {
		n.nonces, _ = c.Client.(chain.Noncer)
	}
	if n.Log == nil {
		n.Log = slog.New(slog.DiscardHandler)
	}
	n.Log = n.Log.With(slog.String("network", string(code)))
	n.Poll = orDefault(n.Poll, 10*time.Second)
	n.Resend = orDefault(n.Resend, 5*time.Minute)
	n.StuckAfter = orDefault(n.StuckAfter, 15*time.Minute)
	late := time.Hour
	if info.Family == chain.UTXOFamily {
		late = 6 * time.Hour
	}
	n.TellAfter = orDefault(n.TellAfter, late)
	n.Lease = orDefault(n.Lease, time.Minute)
	n.Backoff = orDefault(n.Backoff, 5*time.Second)
	n.MaxAttempts = orDefault(n.MaxAttempts, 20)
	if most := info.MostInputs; most > 0 && n.MaxInputs <= 0 {
		n.MaxInputs = min(most, 200)
	}
	n.MaxInputs = orDefault(n.MaxInputs, 200)
	if most := info.MostInputs; most > 0 && n.MaxInputs > most {
		n.Log.Warn("max_inputs_lowered", slog.Int("set", n.MaxInputs), slog.Int("nodes_relay", most))
		n.MaxInputs = most
	}
	n.MaxPayments = orDefault(n.MaxPayments, 25)
	n.Batch = orDefault(n.Batch, 64)
	return n, nil
}

func orDefault[T int | time.Duration](v, d T) T {
	if v <= 0 {
		return d
	}
	return v
}

// Step does what is due now: it looks after transactions on their way, starts
// new ones and delivers outcomes, a batch of each. worked is how many rows it
// handled; 0 means that nothing is due. Errors of single intents are joined
// and do not stop the others; those intents are due again later.
func (n *Sender) Step(ctx context.Context) (worked int, err error) {
	watched, err1 := n.watchDue(ctx)
	started, err2 := n.startDue(ctx)
	delivered, err3 := n.deliver(ctx)
	return watched + started + delivered, errors.Join(err1, err2, err3)
}

// claimedIntent is an intent that this process has claimed: version is the fence that
// every write of it requires.
type claimedIntent struct {
	id       string
	v        IntentRow
	was      State  // as it is stored
	waited   Reason // as it is stored
	version  int64
	members  []*claimedIntent // of the batch that it leads
	beside   []*claimedIntent // claimed with it
	isMember bool             // of another's batch
	edited   string           // why it must not start
	disputed bool             // … until a person has decided
	guards   []storage.Guard  // what lets its plan be signed and stored
	moves    bool             // the Change that is being made of its leader writes it
	next     IntentRow        // … so
	leaves   bool             // … and lets it go
}

func (j *claimedIntent) intent() chain.Intent { return j.v.intent(j.id) }

// listed is the condition on intents and outcomes that this process may decide about. The
// others are left to a process that lists their currency.
func (n *Sender) listed() storage.Cond {
	return storage.Cond{Column: "currency", Op: storage.In, Value: n.codes}
}

func (n *Sender) claim(ctx context.Context, hold time.Duration, states ...State) ([]*claimedIntent, error) {
	now := n.Now()
	rows, err := n.unread.Claimed(ctx, n.Store, storage.Claim{
		Table: Intents.Table, Partition: n.part, Now: now, Until: now.Add(hold), Max: n.Batch,
		Where: []storage.Cond{{Column: "state", Op: storage.In, Value: states}, n.listed()},
	}, n.Log, func(*storage.RowError) {})
	if err != nil {
		return nil, fmt.Errorf("outgoing: claiming intents: %w", err)
	}
	jobs := make([]*claimedIntent, len(rows))
	for i, r := range rows {
		v := Intents.Value(r)
		jobs[i] = &claimedIntent{id: r.ID, v: v, was: v.State, waited: v.Reason, version: r.Version, beside: jobs}
	}
	return jobs, n.loadBatches(ctx, jobs)
}

// firstLot is how many orders are started together at first. The next lot is larger, as
// long as the lease of all that were claimed lasts for it.
const firstLot = 4

func (n *Sender) startDue(ctx context.Context) (int, error) {
	if n.Signer == nil {
		return 0, nil
	}
	jobs, err := n.claim(ctx, n.Lease, Queued, Waiting)
	claimed, until := len(jobs), n.Now().Add(n.Lease*3/4)
	if err == nil {
		jobs, err = n.setBack(ctx, jobs)
	}
	if err != nil {
		return claimed, err
	}
	for some := firstLot; len(jobs) > 0; {
		left := until.Sub(n.Now())
		if ctx.Err() != nil || left < 0 {
			break // whoever claims next goes on
		}
		lot := jobs[:min(some, len(jobs))]
		jobs = jobs[len(lot):]
		err = errors.Join(err, n.startLot(ctx, lot))
		now := until.Sub(n.Now())
		if some *= 4; left > now {
			some = min(some, max(1, len(lot)*int(now/(left-now))))
		}
	}
	return claimed, err
}

// startLot starts orders together: those of one sender, which reserve its nonces or its
// coins, one after the other.
func (n *Sender) startLot(ctx context.Context, lot []*claimedIntent) (err error) {
	sender := func(j *claimedIntent) string { return cmp.Or(string(j.v.From), j.v.Tenant) }
	for i, e := range storage.Work(ctx, n.Store, lot, sender, func(ctx context.Context, j *claimedIntent) (err error) {
		if !j.isMember && ctx.Err() == nil {
			err = n.start(ctx, j)
		}
		return err
	}) {
		if errors.Is(e, storage.ErrBusy) && len(lot[i].members) == 0 && !lot[i].isMember {
			e = n.startAgain(ctx, lot[i])
		}
		err = errors.Join(err, n.named(lot[i], e))
	}
	return err
}

// startAgain starts an order by itself that another process was in the way of: now it
// waits for that one. One that was signed by then is on its way, and not started.
func (n *Sender) startAgain(ctx context.Context, j *claimedIntent) error {
	v, row, ok, err := Intents.One(ctx, n.Store, n.part, j.id)
	if err != nil || !ok || row.Version != j.version || v.State != Queued && v.State != Waiting {
		return err
	}
	j.v = v
	return n.start(ctx, j)
}

// named says which intent an error belongs to. A lost claim is none: another
// process goes on with it. Nor is a store that is busy: the intent is due again.
func (n *Sender) named(j *claimedIntent, err error) error {
	if err == nil || errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrBusy) {
		return nil
	}
	return fmt.Errorf("outgoing: %s intent %s: %w", n.info.Code, j.id, err)
}

// deliver hands due outcomes to their owners.
func (n *Sender) deliver(ctx context.Context) (int, error) {
	if n.Handle == nil {
		return 0, nil
	}
	now := n.Now()
	rows, err := storage.Claimed(ctx, n.Store, storage.Claim{
		Table: Outcomes.Table, Partition: n.part, Now: now, Until: now.Add(n.Lease), Max: n.Batch,
		Where: []storage.Cond{n.listed()},
	}, n.Log)
	if err != nil {
		return 0, fmt.Errorf("outgoing: claiming outcomes: %w", err)
	}
	rows, refused, err := n.truthful(ctx, rows)
	if err != nil {
		return 0, err
	}
	outcomes := make([]Outcome, len(rows), len(rows)+len(refused))
	for i, r := range rows {
		outcomes[i] = Outcomes.Value(r)
	}
	outcomes = append(outcomes, refused...)
	var told []storage.Change
	for i, e := range storage.Work(ctx, n.Store, outcomes, object, n.Handle) {
		if i >= len(rows) { // refused: it stays due
			if e != nil && !errors.Is(e, storage.ErrBusy) {
				err = errors.Join(err, fmt.Errorf("outgoing: owner of intent %s: %w", outcomes[i].Intent, e))
			}
			continue
		}
		r := rows[i]
		switch {
		case errors.Is(e, storage.ErrBusy): // due again when the lease ends
		case e != nil:
			err = errors.Join(err, fmt.Errorf("outgoing: owner of intent %s: %w", r.ID, e))
		default:
			told = append(told, storage.Change{
				ID: changeID("told", r.ID, r.Version), Partition: n.part,
				Put: []storage.Row{Outcomes.Row(r.ID, r.Version, time.Time{}, outcomes[i])},
			})
		}
	}
	if len(told) == 0 {
		return len(rows), err
	}
	for i, e := range n.Store.Commit(ctx, told...) {
		// A newer outcome put meanwhile makes this a conflict, and is due itself. What is not
		// known to be in is due again, and told again.
		if e != nil && !errors.Is(e, storage.ErrConflict) && !errors.Is(e, storage.ErrBusy) {
			err = errors.Join(err, fmt.Errorf("outgoing: outcome of intent %s: %w", told[i].Put[0].ID, e))
		}
	}
	return len(rows), err
}

// object names what an outcome is about: a sweep and the gas transfers to its address are
// one thing.
func object(o Outcome) string {
	id := o.Intent
	if gas := ParseID(id); gas.Kind == OrderGas && o.Purpose == chain.ForGas {
		id = gas.For
	}
	return o.Tenant + "/" + id
}
