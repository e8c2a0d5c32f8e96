package keys

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// SignedAttempt is one attempt's only payload.
type SignedAttempt struct {
	Intent  string `db:"intent"`
	Payload string `db:"payload"` // hex SHA-256
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
	return []*storage.Table{SignedAttempts.Table, SignedSlots.Table}
}

// StoreRegistry keeps bindings in a Store. A signer on a machine of its own
// should have a store of its own.
type StoreRegistry struct{ Store storage.Store }

// Bind implements Registry: every binding is an insert under its own key, in
// one Change, so that two signers can never both succeed.
func (r StoreRegistry) Bind(ctx context.Context, b Binding) error {
	return storage.Decide(ctx, r.Store, func(ctx context.Context) (storage.Change, error) {
		a, _, known, err := SignedAttempts.One(ctx, r.Store, b.partition(), b.Attempt)
		if err != nil {
			return storage.Change{}, err
		}
		rows, err := r.Store.Rows(ctx, SignedSlots.Table, storage.Keys(b.partition(), b.Slots...)...)
		if err != nil {
			return storage.Change{}, err
		}
		return b.change(a, known, rows)
	})
}

// BindMany is Bind of each: one look-up for the attempts of a network and one for its
// slots, and one Commit for all that are new. A binding that is in another's way is bound
// by itself.
func (r StoreRegistry) BindMany(ctx context.Context, bs []Binding) []error {
	errs := make([]error, len(bs))
	var attempts, slots []storage.Key
	for i := range bs {
		attempts = append(attempts, storage.Keys(bs[i].partition(), bs[i].Attempt)...)
		slots = append(slots, storage.Keys(bs[i].partition(), bs[i].Slots...)...)
	}
	known, err := r.found(ctx, SignedAttempts.Table, attempts)
	var bound map[storage.Partition]map[string]storage.Row
	if err == nil {
		bound, err = r.found(ctx, SignedSlots.Table, slots)
	}
	var changes []storage.Change
	var of []int
	for i := range bs {
		if err != nil {
			errs[i] = err
			continue
		}
		p := bs[i].partition()
		var rows []storage.Row
		for _, slot := range bs[i].Slots {
			if row, ok := bound[p][slot]; ok {
				rows = append(rows, row)
			}
		}
		var a SignedAttempt
		row, ok := known[p][bs[i].Attempt]
		if ok {
			a = SignedAttempts.Value(row)
		}
		c, refused := bs[i].change(a, ok, rows)
		if errs[i] = refused; refused == nil && c.ID != "" {
			changes, of = append(changes, c), append(of, i)
		}
	}
	if len(changes) == 0 {
		return errs
	}
	for n, err := range r.Store.Commit(ctx, changes...) {
		if err != nil { // not known to be in, or there is another binding now
			err = r.Bind(ctx, bs[of[n]])
		}
		errs[of[n]] = err
	}
	return errs
}

// found reads rows by their partitions and ids.
func (r StoreRegistry) found(ctx context.Context, t *storage.Table, keys []storage.Key) (map[storage.Partition]map[string]storage.Row, error) {
	rows, err := r.Store.Rows(ctx, t, keys...)
	out := map[storage.Partition]map[string]storage.Row{}
	for _, row := range rows {
		if out[row.Partition] == nil {
			out[row.Partition] = map[string]storage.Row{}
		}
		out[row.Partition][row.ID] = row
	}
	return out, err
}

func (b *Binding) partition() storage.Partition { return storage.Network(string(b.Network)) }

// change binds, where a is what the attempt is bound to, if it is known, and rows are
// those of its slots that are bound. It is empty where all is bound already.
func (b *Binding) change(a SignedAttempt, known bool, rows []storage.Row) (storage.Change, error) {
	payload := hex.EncodeToString(b.Payload[:])
	switch {
	case known && (a.Payload != payload || a.Intent != b.Intent):
		return storage.Change{}, refuse("attempt %s was signed for another payload", b.Attempt)
	case known:
		return storage.Change{}, nil
	}
	// The id covers all that is bound: under the attempt's name alone two
	// payloads that race would be taken for one Change sent twice.
	id := sha256.Sum256([]byte(b.Attempt + "\n" + b.Intent + "\n" + payload + "\n" + strings.Join(b.Slots, "\n")))
	c := storage.Change{ID: "sign/" + hex.EncodeToString(id[:]), Partition: b.partition()}
	c.Put = append(c.Put, SignedAttempts.Row(b.Attempt, 0, time.Time{}, SignedAttempt{Intent: b.Intent, Payload: payload}))
	bound := map[string]storage.Row{}
	for _, row := range rows {
		bound[row.ID] = row
		if SignedSlots.Value(row).Intent != b.Intent {
			return storage.Change{}, refuse("%s was signed for another intent", row.ID)
		}
	}
	for _, slot := range b.Slots {
		if row, ok := bound[slot]; ok {
			c.Require = append(c.Require, SignedSlots.Guard(slot, row.Version))
			continue
		}
		c.Put = append(c.Put, SignedSlots.Row(slot, 0, time.Time{}, SignedSlot{Intent: b.Intent}))
	}
	return c, nil
}
