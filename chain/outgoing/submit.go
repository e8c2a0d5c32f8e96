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
// another one under the same id wraps ErrDiffers. ErrIntent wraps what can
// never be sent; nothing is stored then.
func (n *Network) Submit(ctx context.Context, in chain.Intent) error {
	if err := n.check(in); err != nil {
		return err
	}
	now := n.Now()
	row := Intents.Row(in.ID, 0, now, record(in, now))
	err := storage.CommitOne(ctx, n.Store, storage.Change{
		ID: changeID("submit", in.ID), Partition: n.part, Put: []storage.Row{row},
	})
	stored, _, ok, e := Intents.One(ctx, n.Store, n.part, in.ID)
	switch {
	case e != nil:
		return errors.Join(err, e)
	case ok && stored.intent(in.ID) != in:
		return fmt.Errorf("%w: %q", ErrDiffers, in.ID)
	case ok:
		return nil
	}
	return err
}

// check refuses an intent that could never be sent, or that a unit mistake made.
func (n *Network) check(in chain.Intent) error {
	bad := func(why string) error { return fmt.Errorf("%w %q: %s", ErrIntent, in.ID, why) }
	if in.ID == "" || len(in.ID) > 150 || IsChild(in.ID) {
		return bad("ID must have 1 to 150 bytes, and not begin as those of children do")
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
		if canonical, err := n.Client.ParseAddress(string(a)); err != nil || canonical != a {
			return bad("To and From must be addresses in their canonical form")
		}
	}
	return nil
}

// Cancel ends an intent of which nothing was signed. cancelled is true where it
// is cancelled now, also where it was before; false where a transaction of it
// is being signed, was signed, or has ended otherwise: it can then not be
// stopped. The error wraps ErrNoIntent for an unknown id.
func (n *Network) Cancel(ctx context.Context, id string) (cancelled bool, err error) {
	err = storage.Decide(ctx, n.Store, func(ctx context.Context) (storage.Change, error) {
		v, row, ok, err := Intents.One(ctx, n.Store, n.part, id)
		if err != nil {
			return storage.Change{}, err
		}
		if !ok {
			return storage.Change{}, fmt.Errorf("%w: %q", ErrNoIntent, id)
		}
		cancelled = v.State == Cancelled
		j := &job{id: id, v: v}
		if cancelled || !v.idle() || j.child() {
			return storage.Change{}, nil
		}
		if _, _, carried, err := Rides.One(ctx, n.Store, n.part, id); err != nil || carried {
			return storage.Change{}, err
		}
		_, told, _, err := Outcomes.One(ctx, n.Store, n.part, id)
		if err != nil {
			return storage.Change{}, err
		}
		j.v.State, j.v.Reason, j.v.Updated = Cancelled, "", n.Now()
		// The version decides between this and a worker that reserves.
		c := storage.Change{
			ID: changeID("cancel", id, row.Version, told.Version), Partition: n.part,
			Put: []storage.Row{
				Intents.Row(id, row.Version, time.Time{}, j.v),
				Outcomes.Row(id, told.Version, n.Now(), *n.outcome(j)),
			},
		}
		cancelled = true
		return c, nil
	})
	if err != nil {
		return false, err
	}
	return cancelled, nil
}

// View is an intent as it stands.
type View struct {
	Intent   chain.Intent
	State    State
	Reason   Reason
	Tx       string
	Signing  bool   // reserved, and before the signer
	Carrier  string // the intent whose transaction pays this one too; "" = its own
	Due      time.Time
	Attempts []AttemptView // oldest first; the carrier's, where there is one
}

// AttemptView is one signed transaction of an intent.
type AttemptView struct {
	Tx      string
	Purpose chain.Purpose
	Fate    Fate
	Fee     chain.Fee
	Stored  time.Time
	Sent    time.Time
}

// Get reads one intent; ok is false where there is none.
func (n *Network) Get(ctx context.Context, id string) (v View, ok bool, err error) {
	r, row, ok, err := Intents.One(ctx, n.Store, n.part, id)
	if err != nil || !ok {
		return v, false, err
	}
	v = View{Intent: r.intent(id), State: r.State, Reason: r.Reason, Tx: r.Tx, Signing: len(r.Plan) > 0, Due: row.Due}
	ride, _, carried, err := Rides.One(ctx, n.Store, n.part, id)
	if err != nil {
		return v, true, err
	}
	own := id
	if carried {
		v.Carrier, own = ride.Carrier, ride.Carrier
		v.Signing = v.Signing || r.State == Queued || r.State == Waiting
	}
	atts, err := n.attempts(ctx, own)
	for _, a := range atts[own] {
		v.Attempts = append(v.Attempts, AttemptView{
			Tx: a.tx, Purpose: a.v.Purpose, Fate: a.v.Fate, Fee: a.v.Fee, Stored: a.v.Stored, Sent: a.v.Sent,
		})
	}
	return v, true, err
}

// InFlight is the most that what is on its way for a tenant may still cost, in
// units of the gas currency; tenant "" means all tenants.
func (n *Network) InFlight(ctx context.Context, tenant string) (ledger.Amount, error) {
	var sum ledger.Amount
	const page = 500
	for last := ""; ; {
		q := storage.Query{
			Table: Intents.Table, Partition: n.part, Limit: page,
			Where: []storage.Cond{{Column: "reserved", Op: storage.Gt, Value: ledger.Amount(0)}, {Column: storage.ColID, Op: storage.Gt, Value: last}},
		}
		if tenant != "" {
			q.Where = append(q.Where, storage.Cond{Column: "tenant", Op: storage.Eq, Value: tenant})
		}
		q.Where = append(q.Where, storage.Cond{Column: "state", Op: storage.In, Value: []State{Queued, Waiting, Signed, Executed}})
		rows, err := n.Store.Find(ctx, q)
		if err != nil {
			return 0, err
		}
		for _, r := range rows {
			if sum, err = sum.Add(Intents.Value(r).Reserved); err != nil {
				return 0, err
			}
			last = r.ID
		}
		if len(rows) < page {
			return sum, nil
		}
	}
}
