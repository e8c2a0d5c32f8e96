package keys

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Limit is the most that may be signed for in any stretch of time of a length.
type Limit struct {
	Amount ledger.Amount
	Per    time.Duration // a minute to a year
}

// Limits bound what a Signer signs for, whoever asks.
type Limits struct {
	// Pays bounds payments to others, by currency. All limits of a currency hold. A
	// currency without one is paid to nobody.
	Pays map[string][]Limit
	// Costs bounds what a network may take, in units of its gas currency. A network
	// without one signs nothing.
	Costs map[chain.Network][]Limit
}

const (
	minPer = time.Minute
	maxPer = 366 * 24 * time.Hour
	// windowSteps is how many steps a window is counted in: an amount counts for its
	// window and at most one step more, never less.
	windowSteps = 60
)

// Check refuses limits that bound nothing.
func (l Limits) Check() error {
	for of, list := range l.all() {
		if len(list) == 0 {
			return fmt.Errorf("keys: limits of %s: name at least one", of)
		}
		for _, one := range list {
			if one.Amount < 0 || one.Per < minPer || one.Per > maxPer {
				return fmt.Errorf("keys: limits of %s: Amount must not be negative, and Per must be between a minute and 366 days", of)
			}
		}
	}
	return nil
}

func (l Limits) all() map[string][]Limit {
	out := map[string][]Limit{}
	for currency, list := range l.Pays {
		out[paysOf(currency)] = list
	}
	for n, list := range l.Costs {
		out[costsOf(n)] = list
	}
	return out
}

// What is counted, by name.
func paysOf(currency string) string  { return "pays " + currency }
func costsOf(n chain.Network) string { return "costs " + string(n) }

// signedCharge is what was counted for a nonce or input: of the attempts that are counted
// there at most one can be included in a block, so the most of each counts once.
type signedCharge struct {
	Counted map[string]ledger.Amount `db:"counted,json"`
}

// signedWindow is what was counted against one Limit, oldest first.
type signedWindow struct {
	Steps []windowStep `db:"steps,json"`
}

// signedSignatures are the signatures of an attempt, kept of a Holder alone: those of a Seed
// are made again.
type signedSignatures struct {
	Signatures []chain.Signature `db:"signatures,json"`
}

// windowStep is a part of a window, by its number since 1970, and what was counted in it.
type windowStep struct {
	Number int64         `json:"n"`
	Amount ledger.Amount `json:"a"`
}

// The tables of a LimitedRegistry beside those of a StoreRegistry, in network partitions:
// by nonce or input, by what is limited and for how long, and by attempt.
var (
	signedCharges = storage.NewTable[signedCharge]("signed_charges")
	signedWindows = storage.NewTable[signedWindow]("signed_windows")
	signedBefore  = storage.NewTable[signedSignatures]("signed_signatures")
)

// LimitTables lists what a LimitedRegistry stores.
func LimitTables() []*storage.Table {
	return append(Tables(), signedCharges.Table, signedWindows.Table, signedBefore.Table)
}

// LimitedRegistry is a StoreRegistry that binds only what is within limits. What is bound
// is counted in the Change that binds it, so that no two requests pass a limit together, in
// one process or in several. An attempt that is bound already is neither counted nor refused.
//
// Attempts that spend the same nonce or input exclude each other, and the dearest is
// counted alone. Where a network has neither, as Solana, each attempt counts.
type LimitedRegistry struct {
	Store  storage.Store
	Limits Limits
	Now    func() time.Time
}

// Bind implements Registry.
func (r LimitedRegistry) Bind(ctx context.Context, b Binding) error {
	return r.BindMany(ctx, []Binding{b})[0]
}

// maxBound is how many bindings one Change makes.
const maxBound = 100

// BindMany is Bind of each: one Change for up to a hundred bindings of a network. Where an
// attempt was bound with signatures of a Holder, its binding gets these.
func (r LimitedRegistry) BindMany(ctx context.Context, bs []Binding) []error {
	errs := make([]error, len(bs))
	of := map[chain.Network][]int{}
	for i := range bs {
		of[bs[i].Network] = append(of[bs[i].Network], i)
	}
	for _, n := range slices.Sorted(maps.Keys(of)) {
		for part := range slices.Chunk(of[n], maxBound) {
			r.bindPart(ctx, bs, part, errs)
		}
	}
	return errs
}

// bindPart binds some of bs, all of one network.
func (r LimitedRegistry) bindPart(ctx context.Context, bs []Binding, part []int, errs []error) {
	err := storage.Decide(ctx, r.Store, func(ctx context.Context) (storage.Change, error) {
		c, err := r.load(ctx, bs, part)
		if err != nil {
			return storage.Change{}, err
		}
		now := r.Now()
		for _, i := range part {
			errs[i] = c.bind(&bs[i], r.Limits, now)
		}
		return c.change(bs[part[0]].partition()), nil
	})
	for _, i := range part {
		if err != nil && errs[i] == nil {
			errs[i] = err
		}
	}
}

// counting is what is bound and counted, and what is to be.
type counting struct {
	orders
	charges map[string]signedCharge
	windows map[string]signedWindow
	before  map[string]signedSignatures

	rows   map[string]storage.Row // as they were read, by table and id
	bound  []string               // what the Change's id covers
	put    map[string]storage.Row
	guards map[string]storage.Guard
}

func (r LimitedRegistry) load(ctx context.Context, bs []Binding, part []int) (*counting, error) {
	c := &counting{charges: map[string]signedCharge{}, windows: map[string]signedWindow{}, before: map[string]signedSignatures{}, put: map[string]storage.Row{}, guards: map[string]storage.Guard{}}
	mine := make([]Binding, len(part))
	var held, slots, windows []string
	for n, i := range part {
		mine[n] = bs[i]
		if len(bs[i].Signatures) > 0 {
			held = append(held, bs[i].Attempt)
		}
		slots = append(slots, bs[i].Slots...)
		for _, o := range bs[i].Pays {
			for _, l := range r.Limits.Pays[o.Currency] {
				windows = append(windows, windowID(paysOf(o.Currency), l))
			}
		}
		for _, l := range r.Limits.Costs[bs[i].Network] {
			windows = append(windows, windowID(costsOf(bs[i].Network), l))
		}
	}
	found, err := StoreRegistry{r.Store}.load(ctx, mine)
	if err != nil {
		return nil, err
	}
	c.orders, c.rows = found.orders, found.rows
	p := mine[0].partition()
	return c, errors.Join(
		look(ctx, r.Store, signedBefore, p, held, c.before, c.rows),
		look(ctx, r.Store, signedCharges, p, slots, c.charges, c.rows),
		look(ctx, r.Store, signedWindows, p, windows, c.windows, c.rows),
	)
}

func windowID(of string, l Limit) string { return of + " " + l.Per.String() }

// bind decides on one binding after those before it.
func (c *counting) bind(b *Binding, limits Limits, now time.Time) error {
	payload := hex.EncodeToString(b.Payload[:])
	if a, known := c.attempts[b.Attempt]; known {
		if a.Payload != payload || a.Intent != b.Intent {
			return refuse("attempt %s was signed for another payload", b.Attempt)
		}
		switch kept := c.before[b.Attempt].Signatures; {
		case len(kept) > 0:
			b.Signatures, b.Tx = kept, a.Tx
		case len(b.Signatures) > 0: // the registry was rebuilt from a log, which has none
			a.Tx = "" // those that were handed out before give it another hash
			c.attempts[b.Attempt], c.before[b.Attempt] = a, signedSignatures{b.Signatures}
			putRow(c, SignedAttempts, b.Attempt, a)
			putRow(c, signedBefore, b.Attempt, c.before[b.Attempt])
			c.bound = append(c.bound, "again", b.Attempt, hex.EncodeToString(slices.Concat(b.Signatures...)))
		}
		return nil
	}
	for _, slot := range b.Slots {
		if s, known := c.slots[slot]; known && s.Intent != b.Intent {
			return refuse("%s was signed for another intent", slot)
		}
	}
	live, err := c.admit(b)
	if err != nil {
		return err
	}
	if err := c.count(b, limits, now); err != nil {
		return err
	}
	for _, order := range b.Orders {
		c.live[order] = live[order]
		putRow(c, signedOrders, order, signedOrder{live[order]})
	}
	c.attempts[b.Attempt] = b.row()
	putRow(c, SignedAttempts, b.Attempt, c.attempts[b.Attempt])
	if len(b.Signatures) > 0 {
		c.before[b.Attempt] = signedSignatures{b.Signatures}
		putRow(c, signedBefore, b.Attempt, c.before[b.Attempt])
	}
	for _, slot := range b.Slots {
		if _, known := c.slots[slot]; known {
			if version := c.rows[rowKey(SignedSlots.Table, slot)].Version; version > 0 {
				c.guards[slot] = SignedSlots.Guard(slot, version)
			}
			continue
		}
		c.slots[slot] = SignedSlot{Intent: b.Intent}
		putRow(c, SignedSlots, slot, c.slots[slot])
	}
	c.bound = append(c.bound, b.Attempt, b.Intent, payload, strings.Join(b.Slots, "\n"))
	return nil
}

// count adds what a binding may take to every window that it concerns, or refuses and
// adds nothing.
func (c *counting) count(b *Binding, limits Limits, now time.Time) error {
	due := map[string]ledger.Amount{costsOf(b.Network): b.Cost}
	all := map[string][]Limit{costsOf(b.Network): limits.Costs[b.Network]}
	for _, o := range b.Pays {
		of := paysOf(o.Currency)
		sum, err := due[of].Add(o.Amount)
		if err != nil {
			return refuse("%s pays more %s than can be counted", b.Attempt, o.Currency)
		}
		due[of], all[of] = sum, limits.Pays[o.Currency]
	}
	at := b.Slots[0]
	if i := slices.IndexFunc(b.Slots, func(slot string) bool { _, ok := c.charges[slot]; return ok }); i >= 0 {
		at = b.Slots[i] // all attempts that are counted here spend it
	}
	counted := maps.Clone(c.charges[at].Counted)
	if counted == nil {
		counted = map[string]ledger.Amount{}
	}
	windows := map[string]signedWindow{}
	for _, of := range slices.Sorted(maps.Keys(due)) {
		if len(all[of]) == 0 {
			return refuse("no limit is set for %s", of)
		}
		more := due[of] - counted[of] // neither is negative
		if more <= 0 {
			continue
		}
		counted[of] = due[of]
		for _, l := range all[of] {
			id := windowID(of, l)
			w, err := c.windows[id].add(more, l, now)
			if err != nil {
				return refuse("%s %d would pass the limit of %d in %s: %v", of, more, l.Amount, l.Per, err)
			}
			windows[id] = w
		}
	}
	if len(windows) == 0 {
		return nil
	}
	for id, w := range windows {
		c.windows[id] = w
		putRow(c, signedWindows, id, w)
	}
	c.charges[at] = signedCharge{Counted: counted}
	putRow(c, signedCharges, at, c.charges[at])
	return nil
}

// add counts an amount now. It leaves out steps that ended before the window.
func (w signedWindow) add(more ledger.Amount, l Limit, now time.Time) (signedWindow, error) {
	size := int64(l.Per / windowSteps)
	number, from := now.UnixNano()/size, now.UnixNano()-int64(l.Per)
	var out signedWindow
	sum := more
	for _, s := range w.Steps {
		if (s.Number+1)*size <= from {
			continue
		}
		var err error
		if sum, err = sum.Add(s.Amount); err != nil {
			return w, err
		}
		out.Steps = append(out.Steps, s)
	}
	if sum > l.Amount {
		return w, fmt.Errorf("%d are taken", sum-more)
	}
	last := len(out.Steps) - 1
	if last < 0 || out.Steps[last].Number < number { // else also where the clock went back
		out.Steps, last = append(out.Steps, windowStep{Number: number}), last+1
	}
	out.Steps[last].Amount += more
	return out, nil
}

func putRow[T any](c *counting, t storage.TableOf[T], id string, v T) {
	key := rowKey(t.Table, id)
	c.put[key] = t.Row(id, c.rows[key].Version, time.Time{}, v)
}

// change is what was bound, empty where nothing is new.
func (c *counting) change(p storage.Partition) storage.Change {
	if len(c.bound) == 0 {
		return storage.Change{}
	}
	id := sha256.Sum256([]byte(strings.Join(c.bound, "\n")))
	out := storage.Change{ID: "sign/" + hex.EncodeToString(id[:]), Partition: p}
	for _, key := range slices.Sorted(maps.Keys(c.put)) {
		out.Put = append(out.Put, c.put[key])
	}
	for _, key := range slices.Sorted(maps.Keys(c.guards)) {
		out.Require = append(out.Require, c.guards[key])
	}
	return out
}
