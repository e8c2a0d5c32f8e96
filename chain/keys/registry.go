package keys

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// SignedAttempt is one attempt's only payload.
type SignedAttempt struct {
	Intent  string   `db:"intent"`
	Payload string   `db:"payload"`    // hex SHA-256
	Tx      string   `db:"tx"`         // hash of the signed transaction, "" where it is not known
	Slots   []string `db:"slots,json"` // none where an earlier version bound it
}

// SignedSlot is the one intent that a nonce or an input was ever signed for.
type SignedSlot struct {
	Intent string `db:"intent"`
}

// The tables of a StoreRegistry, in network partitions: by attempt id, and by
// nonce or input.
var (
	SignedAttempts = storage.NewTable[SignedAttempt]("signed_attempts")
	SignedSlots    = storage.NewTable[SignedSlot]("signed_slots")
)

// Tables lists what this package stores.
func Tables() []*storage.Table {
	return []*storage.Table{SignedAttempts.Table, SignedSlots.Table, signedOrders.Table}
}

// StoreRegistry keeps bindings in a Store. A signer on a machine of its own
// should have a store of its own.
type StoreRegistry struct{ Store storage.Store }

// Bind implements Registry: every binding is an insert under its own key, in
// one Change, so that two signers can never both succeed.
func (r StoreRegistry) Bind(ctx context.Context, b Binding) error {
	return storage.Decide(ctx, r.Store, func(ctx context.Context) (storage.Change, error) {
		found, err := r.load(ctx, []Binding{b})
		if err != nil {
			return storage.Change{}, err
		}
		return found.change(&b)
	})
}

// BindMany is Bind of each, with few look-ups for all and one Commit for all that are new. A
// binding that is in another's way is bound by itself.
func (r StoreRegistry) BindMany(ctx context.Context, bs []Binding) []error {
	errs := make([]error, len(bs))
	of := map[storage.Partition][]int{}
	for i := range bs {
		of[bs[i].partition()] = append(of[bs[i].partition()], i)
	}
	var changes []storage.Change
	var changed []int
	for _, p := range slices.Sorted(maps.Keys(of)) {
		part := make([]Binding, len(of[p]))
		for n, i := range of[p] {
			part[n] = bs[i]
		}
		found, err := r.load(ctx, part)
		for n, i := range of[p] {
			if errs[i] = err; err != nil {
				continue
			}
			c, refused := found.change(&part[n])
			if errs[i] = refused; refused == nil && c.ID != "" {
				changes, changed = append(changes, c), append(changed, i)
			}
		}
	}
	if len(changes) == 0 {
		return errs
	}
	for n, err := range r.Store.Commit(ctx, changes...) {
		if err != nil { // not known to be in, or there is another binding now
			err = r.Bind(ctx, bs[changed[n]])
		}
		errs[changed[n]] = err
	}
	return errs
}

// bound is what a registry has of some bindings of one network.
type bound struct {
	orders
	rows map[string]storage.Row // of slots and orders, by table and id
}

// load reads what bindings of one network are decided on.
func (r StoreRegistry) load(ctx context.Context, bs []Binding) (*bound, error) {
	f := &bound{orders{map[string][]string{}, map[string]SignedAttempt{}, map[string]SignedSlot{}}, map[string]storage.Row{}}
	var attempts, slots, ofOrders []string
	for i := range bs {
		attempts, slots, ofOrders = append(attempts, asked(&bs[i])...), append(slots, bs[i].Slots...), append(ofOrders, bs[i].Orders...)
	}
	p := bs[0].partition()
	lists := map[string]signedOrder{}
	err := errors.Join(
		look(ctx, r.Store, SignedAttempts, p, attempts, f.attempts, f.rows),
		look(ctx, r.Store, SignedSlots, p, slots, f.slots, f.rows),
		look(ctx, r.Store, signedOrders, p, ofOrders, lists, f.rows),
	)
	if err != nil {
		return nil, err
	}
	for id, list := range lists {
		f.live[id] = list.Live
	}
	var live []string // of orders that were signed before
	for i := range bs {
		live = append(live, f.unread(&bs[i])...)
	}
	return f, look(ctx, r.Store, SignedAttempts, p, live, f.attempts, f.rows)
}

// look reads rows by their ids.
func look[T any](ctx context.Context, s storage.Store, t storage.TableOf[T], p storage.Partition, ids []string, into map[string]T, rows map[string]storage.Row) error {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	if len(ids) == 0 {
		return nil
	}
	found, err := s.Rows(ctx, t.Table, storage.Keys(p, ids...)...)
	for _, row := range found {
		into[row.ID], rows[rowKey(t.Table, row.ID)] = t.Value(row), row
	}
	return err
}

func rowKey(t *storage.Table, id string) string { return t.Name + " " + id }

func (b *Binding) partition() storage.Partition { return storage.Network(string(b.Network)) }

// row is what is stored of an attempt.
func (b *Binding) row() SignedAttempt {
	return SignedAttempt{Intent: b.Intent, Payload: hex.EncodeToString(b.Payload[:]), Tx: b.Tx, Slots: b.Slots}
}

// change binds b. It is empty where all is bound already.
func (f *bound) change(b *Binding) (storage.Change, error) {
	payload := hex.EncodeToString(b.Payload[:])
	if a, known := f.attempts[b.Attempt]; known {
		if a.Payload != payload || a.Intent != b.Intent {
			return storage.Change{}, refuse("attempt %s was signed for another payload", b.Attempt)
		}
		return storage.Change{}, nil
	}
	// The id covers all that is bound: under the attempt's name alone two
	// payloads that race would be taken for one Change sent twice.
	id := sha256.Sum256([]byte(b.Attempt + "\n" + b.Intent + "\n" + payload + "\n" + strings.Join(b.Slots, "\n")))
	c := storage.Change{ID: "sign/" + hex.EncodeToString(id[:]), Partition: b.partition()}
	a := b.row()
	if len(b.Signatures) > 0 {
		a.Tx = "" // a Holder makes other signatures each time, and none are kept here
	}
	c.Put = append(c.Put, SignedAttempts.Row(b.Attempt, 0, time.Time{}, a))
	for _, slot := range b.Slots {
		s, known := f.slots[slot]
		switch {
		case !known:
			c.Put = append(c.Put, SignedSlots.Row(slot, 0, time.Time{}, SignedSlot{Intent: b.Intent}))
		case s.Intent != b.Intent:
			return storage.Change{}, refuse("%s was signed for another intent", slot)
		default:
			c.Require = append(c.Require, SignedSlots.Guard(slot, f.rows[rowKey(SignedSlots.Table, slot)].Version))
		}
	}
	live, err := f.admit(b)
	if err != nil {
		return storage.Change{}, err
	}
	for _, order := range b.Orders {
		c.Put = append(c.Put, signedOrders.Row(order, f.rows[rowKey(signedOrders.Table, order)].Version, time.Time{}, signedOrder{live[order]}))
	}
	return c, nil
}
