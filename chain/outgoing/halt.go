package outgoing

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Scope is what a halt stops on a network. A Tenant alone stops all that is sent for it, a
// Currency alone all that is sent in it, both together this tenant's part of it, and
// neither everything.
type Scope struct {
	Tenant   string `json:"tenant,omitempty"`
	Currency string `json:"currency,omitempty"`
	// Wide says that the halt stands on every network and in storage.System, and ends
	// everywhere at once.
	Wide bool `json:"wide,omitempty"`
}

// all reports whether the scope is the whole network.
func (s Scope) all() bool { return s.Tenant == "" && s.Currency == "" }

// Halt is one scope in which nothing new is signed and stored, and nothing is sent again,
// until it is lifted.
type Halt struct {
	Scope
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
	By     string    `json:"by"`
}

// HaltRow is the halts of one network, under HaltsID in its partition. The Changes that
// reserve, replace, store and send again require its version. The row of storage.System
// has the wide ones, for networks that are new.
type HaltRow struct {
	Halts []Halt `db:"halts,json"`
}

// HaltsID is the id of the HaltRow of a partition.
const HaltsID = "halts"

// Halts is the table of halts.
var Halts = storage.NewTable[HaltRow]("halts")

// Stops returns the halt that keeps an intent from being sent, the oldest where there are
// several. currencies are those that it is sent for: its own, and of a gas transfer that
// of the sweep that it pays for. What uses a nonce or coins up and pays nobody is stopped
// only by a halt of the whole network: others wait behind it.
func (r *HaltRow) Stops(in chain.Intent, currencies ...string) (Halt, bool) {
	frees := in.Purpose == chain.ForCancel && !helps(in.ID)
	for _, h := range r.Halts {
		switch {
		case frees && !h.all():
		case h.Tenant != "" && h.Tenant != in.Tenant:
		case h.Currency != "" && h.Currency != in.Currency && !slices.Contains(currencies, h.Currency):
		default:
			return h, true
		}
	}
	return Halt{}, false
}

// limited reports whether some halt is of a part of the network only.
func (r *HaltRow) limited() bool {
	return slices.ContainsFunc(r.Halts, func(h Halt) bool { return h.Currency != "" })
}

// HaltEdit is one change of the halts of a partition, and the operation that records it, under ID.
// Edit returns the halts as they are to be.
type HaltEdit struct {
	ID        string
	Operation Operation
	Edit      func([]Halt) []Halt
}

// SetHalts changes the halts of a partition and adds the operation that does so, also to the
// audit log of the partition, in one Change. edit returns the halts as they are to be; they are
// stored oldest first.
func SetHalts(ctx context.Context, store storage.Store, log *audit.Chain, p storage.Partition, id string, op Operation, edit func([]Halt) []Halt) error {
	return storage.Decide(ctx, store, func(ctx context.Context) (storage.Change, error) {
		if _, _, done, err := Operations.One(ctx, store, p, id); done || err != nil {
			return storage.Change{}, err
		}
		row, stored, _, err := Halts.One(ctx, store, p, HaltsID)
		if err != nil {
			return storage.Change{}, err
		}
		c, err := EditHalts(p, row, stored, HaltEdit{id, op, edit})
		if err == nil {
			err = Audited(ctx, store, log, &c)
		}
		return c, err
	})
}

// EditHalts is the Change that makes edits, in their order, of the halts of a partition that were
// loaded as row and stored. It does no I/O. It writes the halts also where there is no edit, so
// that others who decide on them conflict with it.
func EditHalts(p storage.Partition, row HaltRow, stored storage.Row, edits ...HaltEdit) (storage.Change, error) {
	c, was := storage.Change{Partition: p}, row.Halts
	for _, e := range edits {
		op := e.Operation
		op.Before = describe(row.Halts)
		row.Halts = e.Edit(slices.Clone(row.Halts))
		slices.SortStableFunc(row.Halts, func(a, b Halt) int {
			return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.Tenant, b.Tenant), cmp.Compare(a.Currency, b.Currency))
		})
		op.After = describe(row.Halts)
		by, err := op.told(e.ID)
		if err != nil {
			return c, err
		}
		c.ID = changeID("halts/"+e.ID, "", stored.Version)
		c.Put, c.Tell = append(c.Put, Operations.Row(e.ID, 0, time.Time{}, op)), append(c.Tell, by)
	}
	if len(edits) > 0 {
		tell, err := tellHalts(p, was, row.Halts, edits[0].Operation.At)
		if err != nil {
			return c, err
		}
		c.Tell = append(tell, c.Tell...)
	}
	c.Put = append(c.Put, Halts.Row(HaltsID, stored.Version, time.Time{}, row))
	return c, nil
}

// InheritHalts makes a partition's HaltRow, and copies the wide halts of storage.System that
// it lacks. SetHalts of a wide halt comes to storage.System first, and then to each partition
// that has a HaltRow: so either it meets the row that is made here, or it is read here.
func InheritHalts(ctx context.Context, store storage.Store, p storage.Partition, now time.Time) error {
	err := storage.Decide(ctx, store, func(ctx context.Context) (storage.Change, error) {
		_, _, there, err := Halts.One(ctx, store, p, HaltsID)
		if err != nil || there {
			return storage.Change{}, err
		}
		return storage.Change{
			ID: changeID("halts/open", string(p), 0), Partition: p,
			Put: []storage.Row{Halts.Row(HaltsID, 0, time.Time{}, HaltRow{})},
		}, nil
	})
	if err != nil {
		return err
	}
	return storage.Decide(ctx, store, func(ctx context.Context) (storage.Change, error) {
		row, stored, _, err := Halts.One(ctx, store, p, HaltsID)
		if err != nil {
			return storage.Change{}, err
		}
		// Read after the row: lifting a wide halt writes this row after that of the system, so
		// it meets the version that is required here.
		wide, _, _, err := Halts.One(ctx, store, storage.System, HaltsID)
		if err != nil {
			return storage.Change{}, err
		}
		was := row.Halts
		for _, h := range wide.Halts {
			if !slices.ContainsFunc(row.Halts, func(o Halt) bool { return o.Scope == h.Scope }) {
				row.Halts = append(slices.Clone(row.Halts), h)
			}
		}
		if len(row.Halts) == len(was) {
			return storage.Change{}, nil
		}
		tell, err := tellHalts(p, was, row.Halts, now)
		return storage.Change{
			ID: changeID("halts/inherit", string(p), stored.Version), Partition: p, Tell: tell,
			Put: []storage.Row{Halts.Row(HaltsID, stored.Version, time.Time{}, row)},
		}, err
	})
}

// OnItsWay is an intent with transactions that may land although nothing new is sent.
type OnItsWay struct {
	Network  chain.Network
	Intent   string
	Purpose  chain.Purpose
	Tenant   string
	Currency string
	State    State
	Txs      []string // the signed transactions that may land, oldest first
}

// OnItsWay lists what was stored before and may still land, within a scope, by intent.
func (n *Sender) OnItsWay(ctx context.Context, s Scope) ([]OnItsWay, error) {
	const page = 500
	var out []OnItsWay
	for last := ""; ; {
		q := storage.Query{Table: Intents.Table, Partition: n.part, Limit: page, Where: []storage.Cond{
			{Column: "state", Op: storage.In, Value: []State{Signed, Executed}},
			{Column: storage.ColID, Op: storage.Gt, Value: last},
		}}
		rows, err := n.Store.Find(ctx, q)
		if err != nil {
			return nil, err
		}
		ids := make([]string, len(rows))
		for i, r := range rows {
			ids[i], last = r.ID, r.ID
		}
		byIntent, err := n.attempts(ctx, ids...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			v := Intents.Value(r)
			currencies, err := n.currencies(ctx, v.intent(r.ID))
			if err != nil {
				return nil, err
			}
			one := HaltRow{Halts: []Halt{{Scope: s}}}
			paid := v.intent(r.ID)
			if paid.Purpose == chain.ForCancel && !helps(r.ID) && !s.all() {
				continue
			}
			if _, in := one.Stops(paid, currencies...); !in {
				continue
			}
			o := OnItsWay{Network: n.info.Code, Intent: r.ID, Purpose: v.Purpose, Tenant: v.Tenant, Currency: v.Currency, State: v.State}
			for _, a := range byIntent[r.ID] {
				if a.v.State == Open {
					o.Txs = append(o.Txs, a.tx)
				}
			}
			out = append(out, o)
		}
		if len(rows) < page {
			return out, nil
		}
	}
}

// currencies are those that an intent is sent for.
func (n *Sender) currencies(ctx context.Context, in chain.Intent) ([]string, error) {
	if in.Purpose != chain.ForGas || n.GasFor == nil {
		return []string{in.Currency}, nil
	}
	for_, err := n.GasFor(ctx, in)
	return []string{in.Currency, for_}, err
}

// Stopped says why an intent may not be sent now, "" where it may: for whoever would
// rather wait than submit it. An error is no answer.
func (n *Sender) Stopped(ctx context.Context, in chain.Intent) (string, error) {
	_, err := n.allowed(ctx, in)
	var w *waitError
	if errors.As(err, &w) {
		return w.why, nil
	}
	return "", err
}

// unhalted requires that no halt stops an intent.
func (n *Sender) unhalted(ctx context.Context, in chain.Intent) (storage.Guard, error) {
	row, stored, _, err := Halts.One(ctx, n.Store, n.part, HaltsID)
	if err != nil {
		return storage.Guard{}, err
	}
	var currencies []string
	if row.limited() {
		if currencies, err = n.currencies(ctx, in); err != nil {
			return storage.Guard{}, err
		}
	}
	if h, stops := row.Stops(in, currencies...); stops {
		return storage.Guard{}, &waitError{ReasonHalted, h.Reason}
	}
	return Halts.Guard(HaltsID, stored.Version), nil
}

// halted reports whether an error says that a halt is what an intent waits for.
func halted(err error) bool { return waitsFor(err, ReasonHalted) }

func waitsFor(err error, reason Reason) bool {
	var w *waitError
	return errors.As(err, &w) && w.reason == reason
}
