package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Library is who a halt is by that this package has set, and ReasonDiffer why.
const (
	Library      = "cryptopay"
	ReasonDiffer = "books_differ"
)

// The ways in which a difference ends.
const (
	EndedGone     = "gone"
	EndedAccepted = "accepted"
)

// cases are the differences of a claim.
type cases struct {
	s      *Service
	now    time.Time
	height int64
	halts  outgoing.HaltRow
	open   map[string]storage.Row // stored differences of the claimed addresses
	rows   map[string][]change    // by address: what its Change writes
	edits  []outgoing.HaltEdit    // of halts, by differences that are named
}

type change struct {
	row   storage.Row
	drop  bool
	d     DifferenceRow
	ended string
	event storage.Event
	quiet bool // its amount has changed
	halts bool // it halts payouts, or a halt may end with it
}

// load reads the differences of addresses and the network's halts.
func (c *cases) load(ctx context.Context, list []*account) error {
	c.open, c.rows = map[string]storage.Row{}, map[string][]change{}
	if len(list) == 0 {
		return nil
	}
	var ids []string
	for _, a := range list {
		for _, cur := range c.s.currencies {
			ids = append(ids, differenceID(string(a.address), cur.Code))
		}
	}
	for part := range slices.Chunk(ids, pageSize) {
		rows, err := c.s.cfg.Store.Rows(ctx, Differences.Table, storage.Keys(c.s.part, part...)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			c.open[r.ID] = r
		}
	}
	if len(c.open) == 0 {
		return nil
	}
	var err error
	c.halts, _, _, err = outgoing.Halts.One(ctx, c.s.cfg.Store, c.s.part, outgoing.HaltsID)
	return err
}

// judge ends the look at an address: what it holds agrees, is explained, is read once more, or
// is a difference with a name.
func (c *cases) judge(ctx context.Context, a *account) error {
	// Money that came after the watch had ended is explained, also where the address is watched
	// again by now.
	unwatched := passed(a.owner.WatchUntil, c.now) || passed(a.look.Until, c.now)
	waits, due := "", c.now.Add(c.s.cfg.Every)
	if a.owner.WatchUntil.After(c.now) && a.owner.WatchUntil.Before(due) {
		due = a.owner.WatchUntil.Add(time.Second)
	}
	partial := false
	for _, cur := range c.s.currencies {
		if _, asked := a.look.Reading.Held[cur.Code]; !asked {
			partial = true // who read the address does not list the currency: it need not be 0
			continue
		}
		l := a.sum(cur, cur.Code == c.s.gas.Code, c.s.outputs)
		l.unwatched = unwatched
		v := judge(l)
		spot := a.look.Spots[cur.Code]
		id := differenceID(string(a.address), cur.Code)
		stored, standing := c.open[id]
		earlier, whole := a.look.Earlier && !spot.Seen, a.look.Height == 0 // whole: from all that is stored of the address
		switch {
		case v.kind == InFlight:
			waits = either(waits, string(InFlight))
			if whole {
				spot.Suspect, spot.Readings, spot.Whole = "", 0, c.now
				a.put(cur.Code, spot)
			}
			continue
		case !v.kind.Named():
			switch {
			case v.kind == Rounding && spot.Why != "": // it says nothing of what else is explained
				spot.Explained = spot.Explained.Add(v.amount)
			case v.kind == Agrees && (!whole || spot.Counted || !spot.Explained.IsPositive()):
			case v.kind == Agrees:
				a.explain(cur.Code, &spot, decimal.Zero, spot.Why)
			case v.kind != Rounding && !whole:
				waits = WaitsConfirm
				continue
			default:
				a.explain(cur.Code, &spot, v.amount, v.kind)
			}
			spot.Suspect, spot.Readings = "", 0
			if standing {
				if err := c.end(a, stored, EndedGone); err != nil {
					return err
				}
			}
		case earlier && v.moving:
			waits = either(waits, string(InFlight))
			continue
		case earlier && spot.Suspect == v.kind && spot.Readings > 0 && whole:
			a.explain(cur.Code, &spot, v.amount, Earlier)
			spot.Suspect, spot.Readings = "", 0
			c.s.log.WarnContext(ctx, "books_differed_earlier", slog.String("tenant", a.owner.Tenant), slog.String("address", string(a.address)),
				slog.String("currency", cur.Code), slog.String("kind", string(v.kind)), slog.String("amount", v.amount.String()))
		case standing && v.moving:
			waits = either(waits, string(InFlight))
			if d := Differences.Value(stored); !d.Halted || halted(c.halts, d.Tenant, cur.Code) { // else an operator has explained what is stored
				c.update(a, stored, l.held, v)
			}
			continue
		case standing && !whole && Differences.Value(stored).Halted && !halted(c.halts, Differences.Value(stored).Tenant, cur.Code):
			waits = WaitsConfirm
			continue
		case standing && Differences.Value(stored).Halted && !halted(c.halts, Differences.Value(stored).Tenant, cur.Code):
			seen := accepted(Differences.Value(stored).Amount, v.amount)
			a.explain(cur.Code, &spot, seen, Accepted)
			spot.Suspect, spot.Readings = "", 0
			if !seen.Equal(v.amount) { // there is more by now, which he has not seen
				waits = WaitsConfirm
			}
			if err := c.end(a, stored, EndedAccepted); err != nil {
				return err
			}
		case standing:
			due = c.now.Add(again)
			c.update(a, stored, l.held, v)
		case spot.Suspect == v.kind && spot.Readings > 0 && whole:
			due = c.now.Add(again)
			if v.kind == Missing && !cur.Native() {
				v.kind = c.token(ctx, a)
			}
			if err := c.name(a, id, cur, l.held, v); err != nil {
				return err
			}
			spot.Suspect, spot.Readings = "", 0
		default:
			waits = WaitsConfirm
			spot.Suspect, spot.Readings = v.kind, spot.Readings+1
		}
		spot.Seen = a.look.Earlier && (spot.Seen || spot.Suspect == "")
		a.put(cur.Code, spot)
	}
	if waits == "" {
		a.fold(c.s.currencies, c.s.gas.Code, c.s.depth)
		a.look.Looked, a.look.Waits, a.look.Since, a.look.Until, a.look.Earlier = c.now, "", time.Time{}, a.owner.WatchUntil, a.look.Earlier && partial
		a.ended()
		if a.look.Reading.Again {
			due = c.now.Add(settledFor - first)
		}
		a.look.Reading, a.row.Due = Reading{}, due
		return nil
	}
	pause := retry
	if waits == string(InFlight) { // one that always has something in flight may never come to an end
		a.fold(c.s.currencies, c.s.gas.Code, c.s.depth)
	}
	if waits == WaitsConfirm {
		a.unfold()
		if pause = c.s.confirmAfter(); pause == 0 {
			pause = -first
		}
	}
	a.waits(waits, c.now, pause)
	return nil
}

// ended forgets what was noted for the time until the look came to its end.
func (a *account) ended() {
	for code, s := range a.look.Spots {
		s.Sent, s.Whole, s.Seen = 0, time.Time{}, s.Seen && a.look.Earlier
		a.put(code, s)
	}
}

// either is why a look waits of which one currency waits already: what is to be confirmed is read at once.
func either(waits, why string) string {
	if waits == WaitsConfirm {
		return waits
	}
	return why
}

// accepted is what of a difference an operator has explained who lifted its halt: no more than was
// stored of it then.
func accepted(stored, now decimal.Decimal) decimal.Decimal {
	switch {
	case stored.Sign() != now.Sign():
		return decimal.Zero
	case now.Abs().LessThan(stored.Abs()):
		return now
	}
	return stored
}

func passed(t, now time.Time) bool { return !t.IsZero() && now.After(t) }

// confirmAfter is how long after a difference was seen it is read again. Where coins can come
// unseen they are found in rounds, two of which must have passed.
func (s *Service) confirmAfter() time.Duration {
	if _, ok := s.cfg.Client.(chain.Reconciler); ok {
		return 12 * time.Minute
	}
	return 0
}

// token tells a token whose amounts change by themselves from coins that somebody sent: the
// address has sent nothing that is not ours.
func (c *cases) token(ctx context.Context, a *account) Kind {
	n, able := c.s.cfg.Client.(chain.Noncer)
	if !able {
		return Missing
	}
	next, err := n.Nonce(ctx, a.address)
	if err != nil {
		return Missing
	}
	ours, _, _, err := outgoing.Nonces.One(ctx, c.s.cfg.Store, c.s.part, string(a.address))
	if err != nil || int64(next) > ours.Next { //nolint:gosec // a nonce
		return Missing
	}
	return TokenChanged
}

// name has the difference stored with the look, and halts payouts where the host wants that.
func (c *cases) name(a *account, id string, cur *chain.Currency, held decimal.Decimal, v verdict) error {
	d := DifferenceRow{
		Network: string(c.s.name), Tenant: a.owner.Tenant, Address: string(a.address), Currency: cur.Code,
		Kind: v.kind, Amount: v.amount, Held: held, Height: a.look.Reading.To, Since: c.now, Looked: c.now, Halted: c.s.cfg.Halt,
	}
	if d.Halted {
		scope := d.scope()
		c.edit(fmt.Sprintf("%s/%s/%d", ReasonDiffer, id, a.look.Reading.At.UnixMicro()), outgoing.OpHalt, &d, func(halts []outgoing.Halt) []outgoing.Halt {
			if slices.ContainsFunc(halts, func(h outgoing.Halt) bool { return h.Scope == scope }) {
				return halts
			}
			return append(halts, outgoing.Halt{Scope: scope, Reason: ReasonDiffer, Since: c.now, By: Library})
		})
	}
	e, err := told(&d, "", c.now)
	c.rows[a.row.ID] = append(c.rows[a.row.ID], change{row: Differences.Row(id, 0, time.Time{}, d), d: d, event: e, halts: d.Halted})
	return err
}

// scope is what a difference halts.
func (d *DifferenceRow) scope() outgoing.Scope {
	return outgoing.Scope{Tenant: d.Tenant, Currency: d.Currency}
}

func (c *cases) edit(id string, kind outgoing.OperationKind, d *DifferenceRow, edit func([]outgoing.Halt) []outgoing.Halt) {
	c.edits = append(c.edits, outgoing.HaltEdit{ID: id, Edit: edit, Operation: outgoing.Operation{
		Kind: kind, By: Library, Reason: ReasonDiffer + ": " + string(d.Kind) + " " + d.Amount.String() + " " + d.Currency + " at " + d.Address,
		Network: c.s.name, Tenant: d.Tenant, Object: d.id(), At: c.now,
	}})
}

// end takes a difference away.
func (c *cases) end(a *account, stored storage.Row, how string) error {
	d := Differences.Value(stored)
	e, err := told(&d, how, c.now)
	c.rows[a.row.ID] = append(c.rows[a.row.ID], change{row: stored, drop: true, d: d, ended: how, event: e, halts: d.Halted && how == EndedGone})
	return err
}

// moveHalts adds to the Change of all looks that name or end a difference what that does to halts: a
// halt ends with the last difference of its tenant and currency.
func (c *cases) moveHalts(ctx context.Context, to *storage.Change) error {
	row, stored, _, err := outgoing.Halts.One(ctx, c.s.cfg.Store, c.s.part, outgoing.HaltsID)
	if err != nil {
		return err
	}
	ends, tenants, currencies := map[outgoing.Scope][]DifferenceRow{}, []string{}, []string{}
	for _, id := range sorted(c.rows) {
		for _, x := range c.rows[id] {
			if x.halts && x.drop {
				ends[x.d.scope()] = append(ends[x.d.scope()], x.d)
				tenants, currencies = append(tenants, x.d.Tenant), append(currencies, x.d.Currency)
			}
		}
	}
	if len(ends) > 0 {
		// Read after the halts: who ends another one meanwhile has written them.
		stand := map[outgoing.Scope]int{}
		err := c.s.pages(ctx, storage.Query{Table: Differences.Table, Where: []storage.Cond{
			{Column: "tenant", Op: storage.In, Value: tenants}, {Column: "currency", Op: storage.In, Value: currencies},
		}}, func(r storage.Row) {
			d := Differences.Value(r)
			stand[d.scope()]++
		})
		if err != nil {
			return err
		}
		c.lift(ends, stand)
	}
	h, err := outgoing.EditHalts(c.s.part, row, stored, c.edits...)
	if err == nil {
		err = outgoing.Audited(ctx, c.s.cfg.Store, c.s.cfg.Audit, &h)
	}
	to.Put, to.Tell = append(to.Put, h.Put...), append(to.Tell, h.Tell...)
	return err
}

// lift ends the halts of tenants' currencies of which no other difference stands.
func (c *cases) lift(ends map[outgoing.Scope][]DifferenceRow, stand map[outgoing.Scope]int) {
	for _, rows := range c.rows {
		for _, x := range rows {
			if !x.drop && !x.quiet {
				stand[x.d.scope()]++ // it is named by this very look
			}
			if x.drop && !x.halts {
				stand[x.d.scope()]--
			}
		}
	}
	for scope, gone := range ends {
		if stand[scope] > len(gone) {
			continue
		}
		d := &gone[0]
		c.edit(fmt.Sprintf("%s/%s/%d/gone", ReasonDiffer, d.id(), c.now.UnixMicro()), outgoing.OpLift, d, func(halts []outgoing.Halt) []outgoing.Halt {
			return slices.DeleteFunc(halts, func(h outgoing.Halt) bool { return h.Scope == scope && h.By == Library && h.Reason == ReasonDiffer })
		})
	}
	slices.SortFunc(c.edits, func(a, b outgoing.HaltEdit) int { return cmp.Compare(a.ID, b.ID) })
}

// update notes what a standing difference has become.
func (c *cases) update(a *account, stored storage.Row, held decimal.Decimal, v verdict) {
	d := Differences.Value(stored)
	d.Amount, d.Held, d.Height, d.Looked = v.amount, held, a.look.Reading.To, c.now
	c.rows[a.row.ID] = append(c.rows[a.row.ID], change{row: Differences.Row(stored.ID, stored.Version, time.Time{}, d), d: d, quiet: true})
}

// add puts what was decided of an address's differences into its Change. It reports whether that
// moves halts.
func (c *cases) add(to *storage.Change, a *account) (halts bool) {
	for _, x := range c.rows[a.row.ID] {
		halts = halts || x.halts
		if x.drop {
			to.Drop = append(to.Drop, x.row)
		} else {
			to.Put = append(to.Put, x.row)
		}
		if !x.quiet {
			to.Tell = append(to.Tell, x.event)
		}
	}
	return halts
}

// tell has the host hear of what was stored.
func (c *cases) tell(ctx context.Context, a *account) {
	for _, x := range c.rows[a.row.ID] {
		if x.quiet {
			continue
		}
		about := []slog.Attr{
			slog.String("tenant", x.d.Tenant), slog.String("address", x.d.Address), slog.String("currency", x.d.Currency),
			slog.String("kind", string(x.d.Kind)), slog.String("amount", x.d.Amount.String()), slog.String("held", x.d.Held.String()),
		}
		if x.ended == "" {
			c.s.log.LogAttrs(ctx, slog.LevelError, "books_differ", about...)
		} else {
			c.s.log.LogAttrs(ctx, slog.LevelWarn, "books_differ_ended", append(about, slog.String("ended", x.ended))...)
		}
		c.s.cfg.Notify(storage.Apart(ctx), Difference{x.d, x.ended})
	}
}
