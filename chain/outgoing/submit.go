package outgoing

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Errors of Submit and Cancel.
var (
	ErrIntent   = errors.New("outgoing: malformed intent")
	ErrDiffers  = errors.New("outgoing: another intent was submitted under this id")
	ErrNoIntent = errors.New("outgoing: no such intent")
)

// Submit takes an intent over: from nil on it will be sent unless it is
// cancelled first. It is idempotent by Intent.ID: the same intent again is nil,
// whatever is configured by then, and another one under the same id wraps ErrDiffers.
// ErrIntent wraps what can never be sent. For a withdrawal that is remembered: no
// process, however it is configured, can submit the same id later.
func (n *Sender) Submit(ctx context.Context, in chain.Intent) error {
	stored, err := n.stored(ctx, in)
	if stored || err != nil {
		return err
	}
	now := n.Now()
	row, op := Intents.Row(in.ID, 0, now, record(in, now)), onSubmit
	bad := n.check(in)
	if bad != nil {
		if in.Purpose != chain.ForWithdrawal || !n.storable(in) {
			return bad
		}
		row, op = refusal(in, now), onRefuse
	}
	c := storage.Change{ID: changeID(string(op), in.ID), Partition: n.part, Put: []storage.Row{row}}
	if err := n.tellMade(&c); err != nil {
		return err
	}
	err = storage.CommitOne(ctx, n.Store, c)
	if err == nil {
		return bad
	}
	// The answer was lost, or another process was faster.
	if stored, e := n.stored(ctx, in); stored || e != nil {
		return e
	}
	if bad != nil && storage.Final(err) {
		return bad
	}
	return err
}

// stored reports whether an intent was taken over. The error wraps ErrDiffers where
// another one has its id, and ErrIntent where it was refused.
func (n *Sender) stored(ctx context.Context, in chain.Intent) (bool, error) {
	if !n.storable(in) {
		return false, nil
	}
	v, _, ok, err := Intents.One(ctx, n.Store, n.part, in.ID)
	switch {
	case err != nil || !ok:
		return false, err
	case !v.same(in):
		return false, fmt.Errorf("%w: %q", ErrDiffers, in.ID)
	case v.Refused():
		return false, fmt.Errorf("%w %q: it was refused when it was submitted first", ErrIntent, in.ID)
	}
	return true, nil
}

// same reports whether an order is the one that was taken over. Its bound may have been
// raised since, its mandate sealed again with another key, and the hot address that pays it
// replaced.
func (r *IntentRow) same(in chain.Intent) bool {
	had := r.intent(in.ID)
	had.MaxCost, had.Mandate = in.MaxCost, in.Mandate
	if r.Purpose == chain.ForWithdrawal || r.Purpose == chain.ForGas {
		had.From, had.FromKey = in.From, in.FromKey
	}
	return had == in
}

// storable reports whether an intent can be a row of this network.
func (n *Sender) storable(in chain.Intent) bool {
	return in.ID != "" && len(in.ID) <= maxID && !helps(in.ID) && in.Network == n.info.Code
}

const maxID = 150

// Refused reports whether an intent was refused when it was submitted: nothing of it was
// taken over, and its id is used up.
func (r *IntentRow) Refused() bool { return r.State == Cancelled && r.Reason == ReasonRefused }

// refusal is the row of an intent that was refused: it takes the id, and nothing is ever
// done about it.
func refusal(in chain.Intent, now time.Time) storage.Row {
	v := record(in, now)
	v.State, v.Reason = Cancelled, ReasonRefused
	return Intents.Row(in.ID, 0, time.Time{}, v)
}

// check refuses an intent that could never be sent, or that a unit mistake made.
func (n *Sender) check(in chain.Intent) error {
	bad := func(why string) error { return fmt.Errorf("%w %q: %s", ErrIntent, in.ID, why) }
	if in.ID == "" || len(in.ID) > maxID || helps(in.ID) {
		return bad("ID must have 1 to 150 bytes, and not be as those of children and merges are")
	}
	if in.Network != n.info.Code {
		return bad("Network is not " + string(n.info.Code))
	}
	cur, err := n.Registry.Currency(in.Currency)
	if err != nil || cur.Network != in.Network {
		return bad("Currency is none of this network")
	}
	if !slices.Contains([]chain.Purpose{chain.ForWithdrawal, chain.ForSweep, chain.ForGas, chain.ForCancel}, in.Purpose) {
		return bad("Purpose is unknown")
	}
	if n.info.Family == chain.AccountFamily && in.From == "" {
		return bad("From is required on this network")
	}
	if in.Amount < 0 || in.Amount == 0 && !in.All && in.Purpose != chain.ForCancel {
		return bad("Amount must be positive")
	}
	if in.MaxCost <= 0 || in.Confirmations < 0 {
		return bad("MaxCost must be positive and Confirmations not negative")
	}
	for _, a := range []chain.Address{in.To, in.From} {
		if a == "" && a != in.To {
			continue
		}
		canonical, err := n.Client.ParseAddress(string(a))
		if vaults, able := n.Client.(chain.VaultParser); able && err != nil && in.Purpose == chain.ForWithdrawal && a == in.To {
			canonical, err = vaults.ParseVault(string(a))
		}
		if err != nil || canonical != a {
			return bad("To and From must be addresses in their canonical form")
		}
	}
	return nil
}

// Cancel ends an intent of which nothing was signed. cancelled is true where it
// is cancelled now, also where it was before; false where a transaction of it
// is being signed, was signed, or has ended otherwise, or where something else may have paid it:
// it can then not be stopped. The error wraps ErrNoIntent for an unknown id.
func (n *Sender) Cancel(ctx context.Context, id string) (cancelled bool, err error) {
	err = storage.Decide(ctx, n.Store, func(ctx context.Context) (storage.Change, error) {
		v, row, ok, err := Intents.One(ctx, n.Store, n.part, id)
		if err != nil {
			return storage.Change{}, err
		}
		if !ok {
			return storage.Change{}, fmt.Errorf("%w: %q", ErrNoIntent, id)
		}
		cancelled = v.State == Cancelled
		j := &claimedIntent{id: id, v: v}
		if cancelled || !v.idle() || helps(id) || v.mayBePaid() {
			return storage.Change{}, nil
		}
		if _, _, isMember, err := Batches.One(ctx, n.Store, n.part, id); err != nil || isMember {
			return storage.Change{}, err
		}
		j.v.State, j.v.Reason, j.v.Updated = Cancelled, "", n.Now()
		ending, err := n.ending(ctx, j)
		if err != nil {
			return storage.Change{}, err
		}
		if err := machine.Move(v.State, onCancel, j.v.State); err != nil {
			return storage.Change{}, err
		}
		// The version decides between this and a worker that reserves.
		c := storage.Change{
			ID: changeID("cancel", id, row.Version, ending.Version), Partition: n.part,
			Put: []storage.Row{Intents.Row(id, row.Version, time.Time{}, j.v), ending},
		}
		cancelled = true
		return c, n.tell(&c, id, v.State, v.Reason, &j.v, nil)
	})
	if err != nil {
		return false, err
	}
	return cancelled, nil
}

// Offline is what can be done about a network that this process has no client of: Submit
// refuses every intent that was not taken over before, and Cancel ends those of which
// nothing was signed.
type Offline struct {
	Store   storage.Store
	Network chain.Network
	Now     func() time.Time
}

func (o Offline) network() *Sender {
	return &Sender{
		Config: Config{Store: o.Store, Now: o.Now}, info: chain.NetworkInfo{Code: o.Network}, part: storage.Network(string(o.Network)),
	}
}

// stored is Network.stored without a look at From, FromKey and MaxCost: the treasury of
// the process that submitted the intent has set them.
func (o Offline) stored(ctx context.Context, n *Sender, in chain.Intent) (bool, error) {
	v, _, ok, err := Intents.One(ctx, o.Store, n.part, in.ID)
	if err != nil {
		return false, err
	}
	if ok {
		in.From, in.FromKey, in.MaxCost = v.From, v.FromKey, v.MaxCost
	}
	return n.stored(ctx, in)
}

// Submit is nil for an intent that was taken over, else its error wraps ErrIntent.
func (o Offline) Submit(ctx context.Context, in chain.Intent) error {
	n := o.network()
	stored, err := o.stored(ctx, n, in)
	if stored || err != nil {
		return err
	}
	err = storage.CommitOne(ctx, o.Store, storage.Change{
		ID: changeID("refuse", in.ID), Partition: n.part, Put: []storage.Row{refusal(in, o.Now())},
	})
	if err == nil {
		return fmt.Errorf("%w %q: its network is retired", ErrIntent, in.ID)
	}
	if stored, e := o.stored(ctx, n, in); stored || e != nil {
		return e
	}
	return err
}

// OnItsWay is Sender.OnItsWay. A gas transfer counts as one of its own currency alone.
func (o Offline) OnItsWay(ctx context.Context, s Scope) ([]OnItsWay, error) {
	return o.network().OnItsWay(ctx, s)
}

// Cancel is Sender.Cancel.
func (o Offline) Cancel(ctx context.Context, id string) (bool, error) {
	return o.network().Cancel(ctx, id)
}

// View is an intent as it stands.
type View struct {
	Intent      chain.Intent
	State       State
	Reason      Reason
	Tx          string
	Signing     bool   // reserved, and before the signer
	BatchLeader string // the intent whose transaction pays this one too; "" = its own
	Due         time.Time
	Attempts    []AttemptView // oldest first; the leader's, where another intent leads its batch
	// Cancelling says that its nonce or coins go back to ourselves: it pays nobody any more.
	Cancelling bool
	Cost       ledger.Amount // what the network took for CostTx, in its gas currency
	CostTx     string        // "" = not known yet
}

// AttemptView is one signed transaction of an intent.
type AttemptView struct {
	Tx       string
	Number   int           // of the intent, from 1
	Purpose  chain.Purpose // ForCancel where it pays nobody
	Nonce    int64         // −1 = none
	Fate     AttemptState
	Rejected bool // a node refused it for good
	Fee      chain.Fee
	MaxCost  ledger.Amount
	Stored   time.Time
	Sent     time.Time
}

// Get reads one intent; ok is false where there is none.
func (n *Sender) Get(ctx context.Context, id string) (v View, ok bool, err error) {
	r, row, ok, err := Intents.One(ctx, n.Store, n.part, id)
	if err != nil || !ok {
		return v, false, err
	}
	v = View{
		Intent: r.intent(id), State: r.State, Reason: r.Reason, Tx: r.Tx, Signing: len(r.Plan) > 0, Due: row.Due,
		Cancelling: r.Cancelling && !helps(id),
	}
	o, _, _, err := Outcomes.One(ctx, n.Store, n.part, id)
	if err != nil {
		return v, true, err
	}
	v.Cost, v.CostTx = o.Cost, o.CostTx
	batch, _, isMember, err := Batches.One(ctx, n.Store, n.part, id)
	if err != nil {
		return v, true, err
	}
	own := id
	if isMember {
		v.BatchLeader, own = batch.Leader, batch.Leader
		v.Signing = v.Signing || r.State == Queued || r.State == Waiting
	}
	atts, err := n.attempts(ctx, own)
	for _, a := range atts[own] {
		v.Attempts = append(v.Attempts, AttemptView{
			Tx: a.tx, Number: a.v.Number, Purpose: a.v.Purpose, Nonce: a.v.Nonce, Fate: a.v.State, Rejected: a.v.Rejected,
			Fee: a.v.Fee, MaxCost: a.v.MaxCost, Stored: a.v.Stored, Sent: a.v.Sent,
		})
	}
	return v, true, err
}

// InFlight is the most that what is on its way for a tenant may still cost, in
// units of the gas currency; tenant "" means all tenants.
func (n *Sender) InFlight(ctx context.Context, tenant string) (ledger.Amount, error) {
	q := storage.Query{Table: Intents.Table, Partition: n.part, Where: []storage.Cond{{Column: "reserved", Op: storage.Gt, Value: ledger.Amount(0)}}}
	if tenant != "" {
		q.Where = append(q.Where, storage.Cond{Column: "tenant", Op: storage.Eq, Value: tenant})
	}
	q.Where = append(q.Where, storage.Cond{Column: "state", Op: storage.In, Value: []State{Queued, Waiting, Signed, Executed}})
	var sum ledger.Amount
	for r, err := range storage.All(ctx, n.Store, q) {
		if err == nil {
			sum, err = sum.Add(Intents.Value(r).Reserved)
		}
		if err != nil {
			return 0, err
		}
	}
	return sum, nil
}
