package treasury

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// verdict is what a look at a sweep decided: it ended, it waits, it is moved, or its
// address gets gas first.
type verdict struct {
	ended   bool
	waiting string        // one of the Wait… constants; "" = it goes on
	reason  string        // details for an operator
	below   ledger.Amount // SweepNote.DueBelow
	next    time.Time     // SweepNote.Next of one that waits for more
	bound   ledger.Amount // the most that the sweep may cost
	gas     ledger.Amount // to be sent to the address first; 0 = it has enough
	fund    ledger.Amount // the most that sending it may cost
}

// look judges a sweep by what its address holds and what moving that costs now. Small
// amounts are judged by the cost of a typical sweep alone, without asking a node.
func (t *Treasury) look(ctx context.Context, j *job) (v verdict, err error) {
	if v, blocked := t.blocked.get(j.s.Tenant, j.s.Network, t.cfg.Now()); blocked {
		return v, nil
	}
	if err := t.forget(ctx, j); err != nil {
		return v, err
	}
	n := chain.Network(j.s.Network)
	c, err := t.cfg.Registry.Currency(j.s.Currency)
	if err != nil {
		return v, err
	}
	if ended, err := t.bare(ctx, j); err != nil || ended {
		return verdict{ended: ended}, err
	}
	typical, v, err := t.typicalUnits(ctx, c)
	if err != nil || v.waiting != "" {
		return v, err
	}
	if joined, err := t.join(ctx, j); err != nil || joined {
		return verdict{ended: joined}, err
	}
	last, err := t.lastDone(ctx, n, spot{j.s.Address, j.s.Currency})
	if err != nil {
		return v, err
	}
	if last == nil && j.note.Payout == "" && j.note.Amount >= smallest(c) {
		if far, err := j.note.Amount.MulDiv(farBelow, t.cfg.MinSweep, ledger.Down); err == nil && far < typical {
			return t.belowCost(c, j.note.Amount, typical, max(far, 1)), nil
		}
	}
	in, err := t.order(ctx, j)
	if err != nil {
		return v, err
	}
	if j.note.Amount, err = t.holds(ctx, c, in.From); err != nil {
		return v, err
	}
	if ended, err := t.explain(ctx, j, c, last); err != nil || ended {
		return verdict{ended: ended}, err
	}
	if j.note.Amount < smallest(c) {
		if err := t.still(ctx, j, c); err != nil {
			return v, err
		}
		nothing, err := t.nothing(ctx, j.s)
		if err != nil || !nothing && !j.replaced { // what came to a replaced address may have paid for its tokens
			held := ledger.PlainString(c.Decimal(j.note.Amount))
			return verdict{waiting: WaitEmpty, reason: "the address holds " + held + " " + c.Code, below: -1}, err
		}
		return verdict{ended: true}, t.endEmpty(ctx, j)
	}
	less, err := t.lessThanCame(ctx, j)
	if err != nil {
		return v, err
	}
	if less {
		if err := t.still(ctx, j, c); err != nil {
			return v, err // what came last may be in a block that the node does not have yet
		}
	}
	if v, err = t.weigh(ctx, j, c, in); less && v.waiting == WaitBelowCost {
		v.below = -1 // the rest may still come: it is looked at again, whatever fees do
	}
	return v, err
}

// endEmpty ends a sweep for which there is nothing to move.
func (t *Treasury) endEmpty(ctx context.Context, j *job) error {
	if err := j.s.to(SweepReplaced, onNothing); err != nil {
		return err
	}
	j.s.Reason = "nothing is to be forwarded: its deposits are gone or below the dust limit"
	return t.put(ctx, j, t.cfg.Now())
}

// lessThanCame reports whether an address holds less than a sweep's deposits brought: the
// node is behind, or a fork took some of them away.
func (t *Treasury) lessThanCame(ctx context.Context, j *job) (bool, error) {
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Keys(storage.Network(j.s.Network), j.s.Deposits...)...)
	left := j.note.Amount
	for _, row := range rows {
		d := incoming.Sightings.Value(row)
		if d.State == incoming.Gone {
			continue
		}
		if left -= d.Amount; left < 0 {
			return true, err
		}
	}
	return false, err
}

// forget drops the payout that a sweep was made due for, with what the sweep may cost
// for it, once that payout waits no more: it was cancelled, or paid with other coins.
func (t *Treasury) forget(ctx context.Context, j *job) error {
	if j.note.Payout == "" {
		return nil
	}
	v, _, _, err := outgoing.Intents.One(ctx, t.cfg.Store, storage.Network(j.s.Network), j.note.Payout)
	if err == nil && v.State != outgoing.Waiting {
		j.note.Payout, j.note.Allowed = "", 0
	}
	return err
}

// spareGas is the part of the least that a sweep needs which its address gets beside it. What a
// sweep does not use stays there.
const spareGas = 4

// farBelow is how many times cheaper than a typical sweep a sweep may turn out to be. A
// typical one of a token is estimated without trying it.
const farBelow = 3

// smallest is the least amount of a currency that is moved: its dust limit.
func smallest(c *chain.Currency) ledger.Amount {
	dust, err := c.Units(c.Dust, ledger.Up)
	if err != nil || dust < 1 {
		return 1
	}
	return dust
}

func (t *Treasury) belowCost(c *chain.Currency, held, typical, below ledger.Amount) verdict {
	return verdict{
		waiting: WaitBelowCost, below: min(below, typical-1),
		reason: fmt.Sprintf("forwarding %s %s costs more than one part in %d of it", ledger.PlainString(c.Decimal(held)), c.Code, t.cfg.MinSweep),
	}
}

// weigh holds what an address has against what moving it costs.
func (t *Treasury) weigh(ctx context.Context, j *job, c *chain.Currency, in chain.Intent) (v verdict, err error) {
	client, gas, err := t.gasOf(c)
	if err != nil {
		return v, err
	}
	fee, err := client.EstimateFee(ctx, in)
	if err != nil {
		return t.noFee(err)
	}
	worth, err := t.inGasExact(ctx, c, gas, j.note.Amount)
	if err != nil {
		return noPrice(err), nil
	}
	share := decimal.Max(worth.DivRound(decimal.NewFromUint64(t.cfg.MinSweep), 18), units(j.note.Allowed))
	allowed, err := ledger.Quo(share, units(1), 0, ledger.Down)
	if err != nil {
		return noPrice(err), nil
	}
	allowed -= j.note.Spent
	lack, signed, err := t.missing(ctx, c, gas, in, &fee)
	if err != nil {
		return v, err
	}
	if lack > 0 {
		if j.s.Fundings >= maxFundings && !signed && !t.anotherTry(j) {
			return verdict{waiting: WaitGasStays, reason: fmt.Sprintf("short of gas after %d transfers", j.s.Fundings), below: -1}, nil
		}
		if v.fund, err = t.fundingCost(ctx, gas, in.From); err != nil {
			return t.noFee(err)
		}
	}
	room, need := allowed-v.fund, fee.Max
	if j.s.State == SweepMoving {
		need = j.note.MaxCost // what was handed over may be spent
	}
	if lack > 0 { // gas that is there already is of no other use
		need = max(need, j.note.Sent+lack)
	}
	if lack == 0 && signed {
		return v, nil
	}
	if room < need {
		typical, wait, err := t.recent(ctx, c, fee.Max)
		if err != nil || wait.waiting != "" {
			return wait, err
		}
		below := dueBelow(share, typical, need+v.fund+j.note.Spent)
		if has := least(&fee) - lack; lack > 0 && has > 0 && j.note.Sent <= allowed { // or with the gas that is there already
			below = max(below, min(dueBelow(share.Sub(units(j.note.Spent)), typical, fee.Max), dueBelow(units(has), typical, least(&fee))))
		}
		return t.belowCost(c, j.note.Amount, typical, max(1, below)), nil
	}
	if waits, err := t.patient(ctx, j, c, worth, fee.Max, need+v.fund); err != nil || waits.waiting != "" {
		return waits, err
	}
	if v.bound, err = fee.Max.MulDiv(t.cfg.CostMargin, 1, ledger.Up); err != nil {
		return v, err
	}
	v.bound = min(v.bound, room)
	if lack > 0 { // with more, so that a rising price does not ask for a second transfer
		spare := lack / 2
		if fee.Least > 0 {
			spare = fee.Least / spareGas
		}
		v.gas = min(lack+spare, room-j.note.Sent)
	}
	return v, nil
}

// patient holds a sweep back that may go, until it costs as little of its worth as the tenant's
// policy wants, or its time is over. One that has cost something goes, and so does one that a
// payout needs. worth, move (of the sweep alone) and cost are in units of the gas currency.
func (t *Treasury) patient(ctx context.Context, j *job, c *chain.Currency, worth decimal.Decimal, move, cost ledger.Amount) (v verdict, err error) {
	if t.cfg.Patience == nil || j.replaced || j.note.Payout != "" || j.note.Spent > 0 || j.s.Fundings > 0 || j.s.State == SweepMoving {
		return v, nil
	}
	multiple, wait, err := t.cfg.Patience(ctx, j.s.Tenant, c.Code)
	until := j.s.Created.Add(wait)
	if err != nil || multiple <= t.cfg.MinSweep || !t.cfg.Now().Before(until) {
		return v, err
	}
	share := worth.DivRound(decimal.NewFromUint64(multiple), 18)
	if share.GreaterThanOrEqual(units(cost)) {
		return v, nil
	}
	typical, v, err := t.recent(ctx, c, move)
	if err != nil || v.waiting != "" {
		return v, err
	}
	return verdict{
		waiting: WaitForMore, below: max(1, dueBelow(share, typical, cost)), next: until,
		reason: fmt.Sprintf("forwarding %s %s costs more than one part in %d of it, which the policy waits for until %s", ledger.PlainString(c.Decimal(j.note.Amount)), c.Code, multiple, until.UTC().Format(time.RFC3339)),
	}, nil
}

// dueBelow is the cost of a typical sweep, in units of the currency, at which a sweep that is
// too dear costs what it may, where both fall at one ratio. What it may cost has fractions of
// units: of a gas currency whose price was told too high it is less than one.
func dueBelow(may decimal.Decimal, typical, cost ledger.Amount) ledger.Amount {
	x, err := ledger.Quo(may.Mul(units(typical)), units(max(1, cost)), 0, ledger.Down)
	if err != nil {
		return typical - 1
	}
	return min(typical-1, max(0, x))
}

func units(a ledger.Amount) decimal.Decimal { return decimal.NewFromInt(int64(a)) }

// anotherTry reports whether a sweep that stayed short of gas may ask for one transfer
// more: it may each day, within what the sweep may cost.
func (t *Treasury) anotherTry(j *job) bool {
	return j.note.Waiting == WaitGasStays && t.cfg.Now().Sub(j.note.Since) >= longestTry
}

func (t *Treasury) gasOf(c *chain.Currency) (chain.Client, *chain.Currency, error) {
	client, ok := t.cfg.Clients[c.Network]
	if !ok {
		return nil, nil, fmt.Errorf("%w: no client for network %s", chain.ErrCurrency, c.Network)
	}
	gas, err := t.cfg.Registry.Gas(c.Network)
	return client, gas, err
}

// noFee is the verdict where the network gives no estimate. A node that cannot be asked
// at all is an error, and the look is repeated after the lease.
func (t *Treasury) noFee(err error) (verdict, error) {
	if errors.Is(err, chain.ErrTooDear) || errors.Is(err, chain.ErrRejected) || errors.Is(err, chain.ErrShort) {
		return verdict{waiting: WaitNoFee, reason: err.Error(), below: -1}, nil
	}
	return verdict{}, err
}

func noPrice(err error) verdict {
	return verdict{waiting: WaitNoPrice, reason: err.Error(), below: -1}
}

// holds is what an address holds of a currency, in its units.
func (t *Treasury) holds(ctx context.Context, c *chain.Currency, a chain.Address) (ledger.Amount, error) {
	d, err := t.Held(ctx, c.Network, c.Code, a)
	if err != nil {
		return 0, err
	}
	return c.Units(d, ledger.Down)
}

// typicalUnits is the cost of a typical sweep of a currency, in units of that currency
// and at least 1; the verdict says why it is not known.
func (t *Treasury) typicalUnits(ctx context.Context, c *chain.Currency) (ledger.Amount, verdict, error) {
	cost, err := t.typical(ctx, c)
	if err != nil {
		v, err := t.noFee(err)
		return 0, v, err
	}
	sum, err := cost.sum()
	if err != nil {
		return 0, verdict{}, err
	}
	units, err := t.fromGas(ctx, c, cost.gas, sum)
	if err != nil {
		return 0, noPrice(err), nil
	}
	return max(1, units), verdict{}, nil
}

// explain finds deposits of a sweep that are not on the address any more because an
// earlier sweep of ours moved them, as each takes all that is there: they are marked as
// forwarded by it. It ends the sweep where none is left. A deposit of which half is there
// was not moved: it may have paid the network for other transactions of the address. Nor
// was the newest one where all sweeps of the spot have moved less than came: one may have
// landed on other deposits than it was signed for.
func (t *Treasury) explain(ctx context.Context, j *job, c *chain.Currency, last *Sweep) (ended bool, err error) {
	if last == nil || len(j.s.Deposits) == 0 {
		return false, nil
	}
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Keys(storage.Network(j.s.Network), j.s.Deposits...)...)
	if err != nil {
		return false, err
	}
	slices.SortStableFunc(rows, func(a, b storage.Row) int { // the newest first
		return incoming.Sightings.Value(b).BlockTime.Compare(incoming.Sightings.Value(a).BlockTime)
	})
	left, stay := j.note.Amount, []string{}
	var moved []storage.Row
	for _, row := range rows {
		d := incoming.Sightings.Value(row)
		if d.State != incoming.Final && d.State != incoming.Included {
			continue
		}
		if d.Amount/2 <= left && left > 0 {
			left = max(0, left-d.Amount)
			stay = append(stay, row.ID)
			continue
		}
		left = 0
		d.Forward, d.ForwardTx, d.ForwardFee = incoming.Forwarded, last.Tx, last.Reason
		moved = append(moved, incoming.Sightings.Row(row.ID, row.Version, t.cfg.Now(), d))
	}
	if len(stay) == 0 && len(moved) > 0 && c.Decimal(j.note.Amount).GreaterThanOrEqual(c.Dust) && j.note.Amount > 0 {
		rest, err := t.unmoved(ctx, j, c)
		if err != nil {
			return false, err
		}
		if rest > 0 && c.Decimal(rest).GreaterThanOrEqual(c.Dust) {
			stay, moved = append(stay, moved[0].ID), moved[1:]
		}
	}
	if len(moved) == 0 && len(stay) > 0 {
		return false, nil
	}
	if err := t.still(ctx, j, c); err != nil {
		return false, err
	}
	j.s.Deposits = stay
	if len(stay) > 0 {
		return true, t.put(ctx, j, t.cfg.Now(), moved...) // looked at again, with what is left
	}
	if err := j.s.to(SweepDone, onMoved); err != nil {
		return false, err
	}
	j.s.Tx, j.s.Reason, j.note.Amount = last.Tx, last.Reason, 0
	return true, t.put(ctx, j, t.cfg.Now(), moved...)
}

// unmoved is how much of all deposits of a spot no landed sweep has moved, nor paid the
// network with.
func (t *Treasury) unmoved(ctx context.Context, j *job, c *chain.Currency) (rest ledger.Amount, err error) {
	n := chain.Network(j.s.Network)
	p := storage.Network(j.s.Network)
	err = t.each(ctx, storage.Query{Table: incoming.Sightings.Table, Partition: p, Where: []storage.Cond{
		{Column: "address", Op: storage.Eq, Value: j.s.Address},
		{Column: "currency", Op: storage.Eq, Value: j.s.Currency},
		{Column: "state", Op: storage.In, Value: []incoming.State{incoming.Included, incoming.Final}},
	}}, func(row storage.Row) (err error) {
		rest, err = rest.Add(incoming.Sightings.Value(row).Amount)
		return err
	})
	if err != nil {
		return 0, err
	}
	landed, err := t.sweepsAt(ctx, n, spot{j.s.Address, j.s.Currency}, SweepDone)
	if err != nil {
		return 0, err
	}
	for part := range slices.Chunk(landed, askAtOnce) {
		ids := make([]string, len(part))
		for i, row := range part {
			ids[i] = row.ID
		}
		outcomes, err := t.cfg.Store.Rows(ctx, outgoing.Outcomes.Table, storage.Keys(p, ids...)...)
		if err != nil {
			return 0, err
		}
		for _, row := range outcomes {
			o := outgoing.Outcomes.Value(row)
			if o.State != outgoing.Executed && o.State != outgoing.Final {
				continue
			}
			if rest, err = rest.Sub(o.Amount); err == nil && c.Native() {
				rest, err = rest.Sub(o.Cost)
			}
			if err != nil {
				return 0, err
			}
		}
	}
	return rest, nil
}

// join leaves the deposits of a sweep to an older one that waits at the same spot, so
// that the two do not each spend on moving the same coins.
func (t *Treasury) join(ctx context.Context, j *job) (bool, error) {
	others, err := t.sweepsAt(ctx, chain.Network(j.s.Network), spot{j.s.Address, j.s.Currency}, SweepDeferred)
	if err != nil {
		return false, err
	}
	for _, row := range others {
		s := Sweeps.Value(row)
		first := s.Created.Before(j.s.Created) || s.Created.Equal(j.s.Created) && row.ID < j.row.ID
		if s.Currency != j.s.Currency || !first || j.s.Fundings > 0 || len(s.Deposits)+len(j.s.Deposits) > maxDeposits {
			continue
		}
		older, err := t.job(ctx, row)
		if err != nil {
			return false, err
		}
		older.s.Deposits = union(slices.Clone(s.Deposits), j.s.Deposits...)
		if older.note.Amount, err = older.note.Amount.Add(j.note.Amount); err != nil {
			return false, err
		}
		due := row.Due
		if due.IsZero() { // it waits for lower costs, and there is more to move now
			due = t.cfg.Now()
		}
		if err := j.s.to(SweepReplaced, onJoin); err != nil {
			return false, err
		}
		j.s.Reason = "its deposits went to " + row.ID
		return true, t.put(ctx, j, t.cfg.Now(), older.rows(due)...)
	}
	return false, nil
}

// nothing reports whether a fork took all deposits of a sweep away, apart from those
// below the dust limit. One that is mined again gets a sweep of its own.
func (t *Treasury) nothing(ctx context.Context, s Sweep) (bool, error) {
	rows, err := t.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Keys(storage.Network(s.Network), s.Deposits...)...)
	for _, row := range rows {
		if d := incoming.Sightings.Value(row); d.State != incoming.Gone && !t.isDust(d) {
			return false, err
		}
	}
	return true, err
}

// lastDone is the newest landed sweep of a spot, nil where none has. Few are asked for together with
// those of other spots, which a query with an order cannot be.
func (t *Treasury) lastDone(ctx context.Context, n chain.Network, k spot) (last *Sweep, err error) {
	const few = 50
	q := k.at(n, SweepDone)
	q.Where = append(q.Where, storage.Cond{Column: "tx", Op: storage.Ne, Value: ""})
	q.Limit = few
	rows, err := t.cfg.Store.Find(ctx, q)
	if err == nil && len(rows) == few {
		q.Order, q.Limit = []storage.Order{{Column: "created_at", Desc: true}}, 1
		rows, err = t.cfg.Store.Find(ctx, q)
	}
	if err != nil {
		return nil, err
	}
	for _, row := range rows {
		if s := Sweeps.Value(row); last == nil || last.Created.Before(s.Created) {
			last = &s
		}
	}
	return last, nil
}

// blocks is why nothing can be paid for a tenant on a network, so that a thousand waiting
// sweeps do not each find out. It is safe for concurrent use.
type blocks struct {
	mu   sync.Mutex
	last map[[2]string]block
}

type block struct {
	verdict verdict
	until   time.Time
}

func (b *blocks) set(tenant, network string, v verdict, until time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.last[[2]string{tenant, network}] = block{v, until}
}

func (b *blocks) clear(tenant, network string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.last, [2]string{tenant, network})
}

func (b *blocks) get(tenant, network string, now time.Time) (verdict, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	k := [2]string{tenant, network}
	if x, ok := b.last[k]; ok {
		if now.Before(x.until) {
			return x.verdict, true
		}
		delete(b.last, k)
	}
	return verdict{}, false
}
