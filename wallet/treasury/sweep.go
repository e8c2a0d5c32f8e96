package treasury

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// SweepState is how far the forwarding of one address and asset has come.
type SweepState string

// The states of a sweep. Each is stored before what follows it happens, and
// what follows carries an id derived from the sweep's: a crash repeats a step,
// it never adds one.
const (
	SweepNew      SweepState = "new"      // deposits are marked, nothing sent
	SweepFunding  SweepState = "funding"  // gas is on its way to the deposit address
	SweepMoving   SweepState = "moving"   // the sweep itself is under way
	SweepDone     SweepState = "done"     // it has landed, or another sweep moved its deposits
	SweepDeferred SweepState = "waiting"  // it is looked at again: its SweepNote says why it waits and when it is due
	SweepReplaced SweepState = "replaced" // its own transaction is at its end; another sweep has its deposits

	// sweepGivenUp was the end of a sweep in earlier versions. Its deposits are taken
	// up again.
	sweepGivenUp SweepState = "deferred"
)

// Sweep forwards everything that one deposit address holds of one currency to
// the tenant's hot address. It lives in the network's partition.
type Sweep struct {
	Tenant   string     `db:"tenant"`
	Network  string     `db:"network"`
	Address  string     `db:"address"`
	Key      string     `db:"key_ref"`
	Currency string     `db:"currency"`
	Deposits []string   `db:"deposits,json"` // ids of the Sightings that it forwards
	State    SweepState `db:"state"`
	Fundings int        `db:"fundings"` // gas transfers so far: part of their ids
	Reason   string     `db:"reason"`   // details of what it waits for; of a landed one its fee
	Tx       string     `db:"tx"`
	Created  time.Time  `db:"created_at"`
}

// Sweeps is the table of forwardings, in network partitions.
var Sweeps = storage.NewTable[Sweep]("sweeps", storage.Index("address", "currency"), storage.Index("state"))

// maxDeposits is how many deposits one sweep lists. More of one address have a sweep of
// their own, so that a flood of small deposits does not make a row grow without bound.
const maxDeposits = 200

// job is a sweep that is being worked on: its row, what it says, and its note.
type job struct {
	row  storage.Row
	s    Sweep
	note SweepNote
	was  storage.Row // the note's row; Version 0 where there is none yet
	from SweepState  // as it is stored; "" where it is new
	told SweepNote   // as it is stored
	// until is when half of the lease is over.
	until time.Time
	// replaced: its address was the tenant's hot address until another took its place. Set by turn.
	replaced bool
}

// job reads the note of a sweep.
func (t *Treasury) job(ctx context.Context, row storage.Row) (*job, error) {
	j := &job{row: row, s: Sweeps.Value(row)}
	j.s.Deposits = union(nil, j.s.Deposits...) // earlier versions listed some twice
	var err error
	j.note, j.was, _, err = SweepNotes.One(ctx, t.cfg.Store, storage.Network(j.s.Network), row.ID)
	j.note.Tenant, j.note.Address, j.note.Currency = j.s.Tenant, j.s.Address, j.s.Currency
	j.stored()
	return j, err
}

// union appends those ids to a list that it does not have yet.
func union(list []string, ids ...string) []string {
	for _, id := range ids {
		if !slices.Contains(list, id) {
			list = append(list, id)
		}
	}
	return list
}

// rows are the sweep and its note as they are now.
func (j *job) rows(due time.Time) []storage.Row {
	return []storage.Row{
		Sweeps.Row(j.row.ID, j.row.Version, due, j.s),
		SweepNotes.Row(j.row.ID, j.was.Version, time.Time{}, j.note),
	}
}

// Step plans sweeps for the network's newly final deposits, finds waiting ones that are
// due again, and moves those that are due. It returns how many rows it worked on.
func (t *Treasury) Step(ctx context.Context, n chain.Network) (int, error) {
	info, err := t.cfg.Registry.Network(string(n))
	if err != nil {
		return 0, err
	}
	woken, err := t.wakeDue(ctx, n)
	planned, failed := t.plan(ctx, n, info.Family)
	err = errors.Join(err, failed)
	rows, failed := storage.Claimed(ctx, t.cfg.Store, storage.Claim{
		Table: Sweeps.Table, Partition: storage.Network(string(n)),
		Now: t.cfg.Now(), Until: t.cfg.Now().Add(t.cfg.Lease), Max: t.cfg.Batch,
		// Others are left to a process that lists their currency.
		Where: []storage.Cond{{Column: "currency", Op: storage.In, Value: append(t.cfg.Registry.Codes(), "")}},
	}, t.cfg.Log)
	err = errors.Join(err, failed)
	// One sweep of each tenant goes before the others: where its gas cannot be paid for, the
	// others wait without asking a node.
	var first, others []storage.Row
	seen := map[string]bool{}
	for _, row := range rows {
		if tenant := Sweeps.Value(row).Tenant; !seen[tenant] {
			seen[tenant], first = true, append(first, row)
			continue
		}
		others = append(others, row)
	}
	until := t.cfg.Now().Add(t.cfg.Lease / 2)
	for _, some := range [][]storage.Row{first, others} {
		for _, e := range storage.Work(ctx, t.cfg.Store, some, addressOf, func(ctx context.Context, row storage.Row) error {
			return t.advance(ctx, row, until)
		}) {
			err = errors.Join(err, unlessDue(e))
		}
	}
	return woken + planned + len(rows), err
}

// addressOf is the address of a sweep: its sweeps are moved one after the other.
func addressOf(row storage.Row) string { return Sweeps.Value(row).Address }

// unlessDue is nil for an error of what is due again: another process goes on with it, the
// store is busy, half of the lease was over before its turn, or a fork undid a deposit.
func unlessDue(err error) error {
	if errors.Is(err, storage.ErrConflict) || errors.Is(err, storage.ErrBusy) || errors.Is(err, errLate) || errors.Is(err, errUnsettled) {
		return nil
	}
	return err
}

// errLate leaves a sweep as it is, as its lease may end before it is moved.
var errLate = errors.New("treasury: half of the lease is over")

// plan takes final deposits that their payment has already handled. One that
// cannot be taken does not keep the others.
func (t *Treasury) plan(ctx context.Context, n chain.Network, family chain.Family) (int, error) {
	rows, err := t.unread.Found(ctx, t.cfg.Store, storage.Query{
		Table: incoming.Sightings.Table, Partition: storage.Network(string(n)), Limit: t.cfg.Batch,
		Where: []storage.Cond{
			{Column: "forward", Op: storage.Eq, Value: incoming.ForwardNone},
			{Column: "state", Op: storage.Eq, Value: incoming.Final},
			{Column: "purpose", Op: storage.Eq, Value: incoming.UsePayment},
			{Column: "internal", Op: storage.Eq, Value: false},
			{Column: storage.ColDue, Op: storage.Eq, Value: time.Time{}},
			{Column: "currency", Op: storage.In, Value: append(t.cfg.Registry.Codes(), "")}, // others are left to a process that lists them
		},
	}, t.cfg.Now(), t.cfg.Log)
	if err != nil {
		return 0, err
	}
	_, stays := t.shared(n)
	stays = stays || family == chain.UTXOFamily
	at := map[spot]int{}
	var groups [][]storage.Row // of a spot each
	for _, row := range rows {
		s := incoming.Sightings.Value(row)
		i, known := at[spot{s.Address, s.Currency}]
		if !known || stays {
			i = len(groups)
			at[spot{s.Address, s.Currency}], groups = i, append(groups, nil)
		}
		groups[i] = append(groups[i], row)
	}
	address := func(rows []storage.Row) string { return incoming.Sightings.Value(rows[0]).Address }
	worked := 0
	for _, e := range storage.Work(ctx, t.cfg.Store, groups, address, func(ctx context.Context, rows []storage.Row) error {
		s := incoming.Sightings.Value(rows[0])
		if stays {
			return t.keep(ctx, s)
		}
		e := t.begin(ctx, n, spot{s.Address, s.Currency}, rows)
		if errors.Is(e, storage.ErrConflict) {
			return nil
		}
		return e
	}) {
		if e == nil {
			worked++
		}
		if !errors.Is(e, storage.ErrBusy) { // then it is found again
			err = errors.Join(err, e)
		}
	}
	return worked, err
}

// spot is one currency of one address.
type spot struct{ address, currency string }

// live are the states of a sweep that has not ended.
var live = []SweepState{SweepNew, SweepFunding, SweepMoving, SweepDeferred}

// at selects the sweeps of a spot in some states, and those without a currency that an earlier
// version made at its address. The states are told by the others: a database that has an index by
// state would read all sweeps of the network along it.
func (k spot) at(n chain.Network, states ...SweepState) storage.Query {
	q := storage.Query{
		Table: Sweeps.Table, Partition: storage.Network(string(n)),
		Where: []storage.Cond{
			{Column: "address", Op: storage.Eq, Value: k.address},
			{Column: "currency", Op: storage.In, Value: []string{k.currency, ""}},
		},
	}
	for _, s := range []SweepState{SweepNew, SweepFunding, SweepMoving, SweepDeferred, SweepDone, SweepReplaced, sweepGivenUp} {
		if !slices.Contains(states, s) {
			q.Where = append(q.Where, storage.Cond{Column: "state", Op: storage.Ne, Value: s})
		}
	}
	return q
}

// sweepsAt reads the sweeps of a spot in some states. Those that have ended grow with what the
// address has ever done.
func (t *Treasury) sweepsAt(ctx context.Context, n chain.Network, k spot, states ...SweepState) (out []storage.Row, err error) {
	err = t.each(ctx, k.at(n, states...), func(r storage.Row) error {
		out = append(out, r)
		return nil
	})
	return out, err
}

// swept reports whether a sweep of a spot has landed.
func (t *Treasury) swept(ctx context.Context, n chain.Network, k spot) (bool, error) {
	q := k.at(n, SweepDone)
	q.Limit = 1
	rows, err := t.cfg.Store.Find(ctx, q)
	return len(rows) > 0, err
}

// begin gives the deposits of one address and currency to the sweep that waits there, or
// to a new one. The deposits are marked in the same Change. A deposit below the dust limit
// is left where it is. One that a fork took away and that was mined again may be listed
// already.
func (t *Treasury) begin(ctx context.Context, n chain.Network, k spot, rows []storage.Row) error {
	first := incoming.Sightings.Value(rows[0])
	owner, ok, err := t.cfg.Addresses.Owner(ctx, n, chain.Address(first.Address))
	if err != nil || !ok {
		return errors.Join(err, fmt.Errorf("treasury: %s is no address of ours", first.Address))
	}
	swept, err := t.swept(ctx, n, k)
	if err != nil {
		return err
	}
	j, err := t.waitingAt(ctx, n, k, len(rows))
	if err != nil {
		return err
	}
	if j == nil {
		id, err := t.freeID(ctx, n, "sweep/"+first.Generated())
		if err != nil {
			return err
		}
		j = &job{row: storage.Row{ID: id}}
		j.s = Sweep{
			Tenant: first.Tenant, Network: string(n), Address: first.Address, Key: owner.Key,
			Currency: first.Currency, Created: t.cfg.Now(),
		}
		j.note = SweepNote{Tenant: first.Tenant, Address: first.Address, Currency: first.Currency}
	}
	c := storage.Change{ID: fmt.Sprintf("%s/begin/%d", j.row.ID, j.row.Version), Partition: storage.Network(string(n))}
	taken := false
	for _, row := range rows {
		s := incoming.Sightings.Value(row)
		if t.isDust(s) {
			s.Forward = incoming.Deferred
			c.Put = append(c.Put, incoming.Sightings.Row(row.ID, row.Version, t.cfg.Now(), s))
			continue
		}
		s.Forward, taken = incoming.Forwarding, true
		if !slices.Contains(j.s.Deposits, row.ID) {
			j.s.Deposits = append(j.s.Deposits, row.ID)
			if !swept { // else an earlier sweep may have taken it, as after a reorg: the first look tells
				if j.note.Amount, err = j.note.Amount.Add(s.Amount); err != nil {
					return err
				}
			}
		}
		c.Put = append(c.Put, incoming.Sightings.Row(row.ID, row.Version, t.cfg.Now(), s))
	}
	if taken {
		due := t.cfg.Now()
		if j.note.Waiting == WaitRefused && j.note.Next.After(due) {
			due = j.note.Next // each try costs, and anybody can send something to an address
		} else {
			on := onDeposit
			if j.s.State == "" {
				on = onPlan
			}
			if j.s.Fundings == 0 { // else it would hold its address, and another one may do so
				if err := j.s.to(SweepNew, on); err != nil {
					return err
				}
			}
			j.note.DueBelow = -1
		}
		if err := t.write(&c, j, due); err != nil {
			return err
		}
	}
	return storage.CommitOne(ctx, t.cfg.Store, c)
}

// isDust reports a deposit that is recorded and not counted: a Currency of the Registry is
// missing, or the amount is below its dust limit.
func (t *Treasury) isDust(d incoming.Sighting) bool {
	c, err := t.cfg.Registry.Currency(d.Currency)
	return err != nil || d.Amount <= 0 || d.Exact.LessThan(c.Dust)
}

// waitingAt finds the sweep of a spot that more deposits can join, nil where there is none.
func (t *Treasury) waitingAt(ctx context.Context, n chain.Network, k spot, more int) (*job, error) {
	rows, err := t.sweepsAt(ctx, n, k, SweepDeferred)
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if s := Sweeps.Value(row); s.Currency != "" && len(s.Deposits)+more <= maxDeposits {
			return t.job(ctx, row)
		}
	}
	return nil, nil
}

// freeID is an id that no sweep has, the first of those that are made of one.
func (t *Treasury) freeID(ctx context.Context, n chain.Network, id string) (string, error) {
	const atOnce = 20
	ids := []string{id}
	for next := 1; ; {
		for len(ids) < atOnce {
			ids = append(ids, id+replacing+strconv.Itoa(next))
			next++
		}
		rows, err := t.cfg.Store.Rows(ctx, Sweeps.Table, storage.Keys(storage.Network(string(n)), ids...)...)
		if err != nil {
			return "", err
		}
		for _, free := range ids {
			if !slices.ContainsFunc(rows, func(r storage.Row) bool { return r.ID == free }) {
				return free, nil
			}
		}
		ids = nil
	}
}

// advance moves one claimed sweep a step on. After until no node is asked about it.
func (t *Treasury) advance(ctx context.Context, row storage.Row, until time.Time) error {
	j, err := t.job(ctx, row)
	if err != nil {
		return err
	}
	j.until = until
	switch j.s.State {
	case SweepNew, SweepDeferred:
		return t.move(ctx, j)
	case SweepFunding, SweepMoving:
		return t.send(ctx, j) // whoever wrote the state may have died before it sent
	case SweepDone, SweepReplaced:
		return t.mark(ctx, j)
	case sweepGivenUp:
		return t.takeUp(ctx, row)
	default:
		return fmt.Errorf("treasury: sweep %s is in state %q", row.ID, j.s.State)
	}
}

// move decides what the sweep does next, stores that, and only then does it.
func (t *Treasury) move(ctx context.Context, j *job) error {
	lock, behind, err := t.turn(ctx, j)
	if err != nil {
		return err
	}
	if behind != "" {
		if ended, err := t.bare(ctx, j); err != nil || ended {
			return err
		}
		j.s.Reason = behind
		j.note.waits(WaitTurn, t.cfg.Now())
		j.note.Next, j.note.DueBelow = time.Time{}, -1
		alert := t.lasts(ctx, j)
		if err := t.put(ctx, j, t.cfg.Now().Add(t.cfg.Lease)); err != nil {
			return err
		}
		alert()
		return nil
	}
	if t.cfg.Now().After(j.until) {
		return errLate
	}
	v, err := t.halted(ctx, j)
	if err == nil && v.waiting == "" {
		v, err = t.look(ctx, j)
	}
	if err != nil || v.ended {
		return err
	}
	if v.waiting != "" {
		return t.postpone(ctx, j, v)
	}
	j.note.Next, j.note.DueBelow = time.Time{}, -1
	next, on := SweepMoving, onMove
	if j.note.MaxCost = v.bound; v.gas > 0 {
		next, on = SweepFunding, onFund
		j.s.Fundings++
		if err := j.note.fund(v.gas, v.fund); err != nil {
			return err
		}
	}
	if err := j.s.to(next, on); err != nil {
		return err
	}
	j.s.Reason = ""
	err = t.put(ctx, j, t.cfg.Now().Add(t.cfg.Lease), lock)
	if errors.Is(err, storage.ErrConflict) {
		return nil // the address or the claim is another's: due again when the lease ends
	}
	if err != nil {
		return err
	}
	j.row.Version++
	j.was.Version++
	j.stored()
	return t.send(ctx, j)
}

// halted keeps a sweep back that may not be sent now.
func (t *Treasury) halted(ctx context.Context, j *job) (verdict, error) {
	if t.cfg.Halted == nil {
		return verdict{}, nil
	}
	in, err := t.order(ctx, j)
	if err != nil {
		return verdict{}, err
	}
	why, err := t.cfg.Halted(ctx, in)
	if err != nil || why == "" {
		return verdict{}, err
	}
	return verdict{waiting: WaitHalted, reason: why, below: -1}, nil
}

// fund notes one more gas transfer and its bound.
func (n *SweepNote) fund(amount, bound ledger.Amount) (err error) {
	n.Gas, n.GasCost = amount, bound
	if n.Sent, err = n.Sent.Add(amount); err == nil {
		n.Spent, err = n.Spent.Add(bound)
	}
	return err
}

// unfund takes the last gas transfer back: it will never be made.
func (n *SweepNote) unfund() {
	n.Sent, n.Spent = max(0, n.Sent-n.Gas), max(0, n.Spent-n.GasCost)
	n.Gas, n.GasCost = 0, 0
}

// turn says whether the sweep may use its address now: each takes all that is
// there, so two at once would spend the same coins, or one the other's gas. behind is what
// goes before it, "" = it may. The row of the address, written in the Change that takes the
// turn, is the lock.
func (t *Treasury) turn(ctx context.Context, j *job) (lock storage.Row, behind string, err error) {
	id, s, p := j.row.ID, j.s, storage.Network(j.s.Network)
	a, lock, ok, err := incoming.Addresses.One(ctx, t.cfg.Store, p, s.Address)
	if err != nil || !ok {
		return lock, "", errors.Join(err, fmt.Errorf("treasury: %s is no address of ours", s.Address))
	}
	j.replaced = a.Use == incoming.UseRetired
	rows, err := t.cfg.Store.Find(ctx, storage.Query{Table: Sweeps.Table, Partition: p, Limit: pageSize, Where: []storage.Cond{
		{Column: "address", Op: storage.Eq, Value: s.Address},
		{Column: "state", Op: storage.In, Value: []SweepState{SweepFunding, SweepMoving, SweepNew}},
	}})
	if err != nil {
		return lock, "", err
	}
	if slices.ContainsFunc(rows, func(row storage.Row) bool { return row.ID != id && Sweeps.Value(row).holds() }) {
		return lock, behindAnother, nil
	}
	if j.replaced && t.native(s.Currency) && slices.ContainsFunc(rows, func(row storage.Row) bool { return Sweeps.Value(row).Currency != s.Currency }) {
		return lock, behindAnother, nil // its tokens are paid for with its coins
	}
	if j.replaced {
		if paying, err := t.pays(ctx, j); err != nil || paying {
			return lock, behindPayouts, err
		}
	}
	return incoming.Addresses.Row(lock.ID, lock.Version, lock.Due, a), "", nil
}

// behindAnother is the Sweep.Reason of one that waits for its turn.
const behindAnother = "another sweep of the address is under way"

// behindPayouts is that of one whose address was replaced and pays something yet.
const behindPayouts = "orders that the address pays go first"

// holds reports whether a sweep uses its address: it was handed over, or gas was sent for
// it. One that waits for its turn does not: two would wait for each other.
func (s Sweep) holds() bool {
	return s.State == SweepFunding || s.State == SweepMoving || s.State == SweepNew && s.Fundings > 0 && s.Reason != behindAnother
}

// send submits what the sweep's state says, which is harmless to repeat: the id
// is derived from the sweep, and what was taken over before stays as it was.
func (t *Treasury) send(ctx context.Context, j *job) error {
	in, err := t.order(ctx, j)
	if err == nil && j.s.State == SweepFunding {
		in, err = t.gas(ctx, j, in)
	}
	if errors.Is(err, errNothing) || errors.Is(err, errEnough) {
		undone, err := t.callOff(ctx, j.row.ID, j.s, j.note.Gas)
		if err != nil {
			return err
		}
		if undone {
			j.note.unfund()
		}
		if err := j.s.to(SweepNew, onNoGas); err != nil {
			return err
		}
		return t.put(ctx, j, t.cfg.Now())
	}
	if err != nil {
		return err
	}
	waiting := "" // for what, though it was handed over
	if j.s.State == SweepMoving {
		var done bool
		if waiting, done, err = t.unstick(ctx, j, in); done || err != nil {
			return err
		}
	}
	if err := t.Submit(ctx, in); err != nil && !errors.Is(err, outgoing.ErrDiffers) {
		return t.unsent(ctx, j, err)
	}
	if j.s.State == SweepFunding {
		gas, _, _, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(j.s.Network), in.ID)
		if err != nil {
			return err
		}
		j.s.Reason, waiting = string(gas.Reason), orderWaits(in.Purpose, gas.State, gas.Reason)
	}
	j.note.waits(waiting, t.cfg.Now())
	alert := t.lasts(ctx, j)
	err = t.put(ctx, j, t.cfg.Now().Add(10*t.cfg.Lease)) // its outcome wakes it before
	if errors.Is(err, storage.ErrConflict) {
		return nil // its outcome was faster
	}
	if err == nil {
		alert()
	}
	return err
}

// unsent keeps a sweep that cannot be paid for now, visibly.
func (t *Treasury) unsent(ctx context.Context, j *job, cause error) error {
	var w *WaitError
	if !errors.As(cause, &w) {
		return cause
	}
	if j.s.State == SweepFunding {
		j.s.Fundings--
		j.note.unfund()
	}
	v := verdict{waiting: string(w.Reason), reason: cause.Error()}
	if w.Reason == outgoing.ReasonOperatorFunds || w.Reason == WaitDailyCap {
		t.blocked.set(j.s.Tenant, j.s.Network, v, t.cfg.Now().Add(t.cfg.Lease))
	}
	return t.postpone(ctx, j, v)
}

// order is the sweep's intent.
func (t *Treasury) order(ctx context.Context, j *job) (in chain.Intent, err error) {
	n := chain.Network(j.s.Network)
	hot, err := t.cfg.Addresses.Hot(ctx, n, j.s.Tenant)
	in = chain.Intent{
		ID: j.row.ID, Purpose: chain.ForSweep, Tenant: j.s.Tenant, Network: n, Currency: j.s.Currency,
		From: chain.Address(j.s.Address), FromKey: chain.KeyRef(j.s.Key), To: hot.Address, All: true, Confirmations: 1,
		MaxCost: j.note.MaxCost,
	}
	if t.sponsored(in) { // outgoing has the hot address pay, too
		in.Payer, in.PayerKey = hot.Address, hot.Key
	}
	return in, err
}

// sponsored reports whether the hot address can pay the network for an intent of
// another address, which then needs no gas.
func (t *Treasury) sponsored(in chain.Intent) bool {
	c, able := t.cfg.Clients[in.Network].(chain.Sponsored)
	return able && c.Sponsored(in)
}

// put stores a sweep and its note; the claim's version is the fence.
func (t *Treasury) put(ctx context.Context, j *job, due time.Time, with ...storage.Row) error {
	c := storage.Change{ID: fmt.Sprintf("%s/v%d", j.row.ID, j.row.Version), Partition: storage.Network(j.s.Network)}
	if err := t.write(&c, j, due); err != nil {
		return err
	}
	c.Put = append(c.Put, with...)
	return storage.CommitOne(ctx, t.cfg.Store, c)
}
