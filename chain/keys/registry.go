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
	p := storage.Network(string(b.Network))
	payload := hex.EncodeToString(b.Payload[:])
	// The id covers all that is bound: under the attempt's name alone two
	// payloads that race would be taken for one Change sent twice.
	id := sha256.Sum256([]byte(b.Attempt + "\n" + b.Intent + "\n" + payload + "\n" + strings.Join(b.Slots, "\n")))
	return storage.Decide(ctx, r.Store, func(ctx context.Context) (storage.Change, error) {
		c := storage.Change{ID: "sign/" + hex.EncodeToString(id[:]), Partition: p}
		a, _, known, err := SignedAttempts.One(ctx, r.Store, p, b.Attempt)
		switch {
		case err != nil:
			return c, err
		case known && (a.Payload != payload || a.Intent != b.Intent):
			return c, refuse("attempt %s was signed for another payload", b.Attempt)
		case known:
			return storage.Change{}, nil
		}
		c.Put = append(c.Put, SignedAttempts.Row(b.Attempt, 0, time.Time{}, SignedAttempt{Intent: b.Intent, Payload: payload}))
		rows, err := r.Store.Rows(ctx, SignedSlots.Table, storage.Keys(p, b.Slots...)...)
		if err != nil {
			return c, err
		}
		bound := map[string]storage.Row{}
		for _, row := range rows {
			bound[row.ID] = row
			if SignedSlots.Value(row).Intent != b.Intent {
				return c, refuse("%s was signed for another intent", row.ID)
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
	})
}
