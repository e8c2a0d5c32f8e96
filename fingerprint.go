package cryptopay

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/seal"
)

// KeyError says that a key is not the one that this store was made with. Addresses would
// come from another seed than those that hold money, or stored secrets would not open.
type KeyError struct {
	Field   string        // of Config: Key or Addresses
	Network chain.Network // of Addresses
}

func (e *KeyError) Error() string {
	what := "Config." + e.Field
	if e.Field == "Key" {
		what += " (or Keys)"
	}
	if e.Network != "" {
		what += " on " + string(e.Network)
	}
	if e.Field == "Addresses" {
		return "cryptopay: " + what + " is not what this store was made with: put it back, as what was paid to its addresses lies with that seed (App.AdoptKeys is for a store whose addresses were never used)"
	}
	return "cryptopay: " + what + " is not what this store was made with: put it back, or call App.AdoptKeys once if the change is meant"
}

// Fingerprint tells one key from another without giving it away.
type Fingerprint struct {
	Sum string `db:"sum"` // hex
}

// Fingerprints is in the system's partition: of the newest of Config.Keys under "key", and of
// the source of addresses under "addresses/<network>". Under "store" is the store's id.
var Fingerprints = storage.NewTable[Fingerprint]("fingerprints")

// fingerprint is one of this configuration's.
type fingerprint struct {
	id    string
	sums  []string // the first is written, each is accepted
	wrong *KeyError
	// agrees looks whether a store that has no fingerprint yet was made with the same key.
	agrees func(ctx context.Context) (bool, error)
}

// fingerprints derives the first address of every network: one whose addresses cannot be
// derived is found here, and not by its first customer.
func (a *App) fingerprints(ctx context.Context) ([]fingerprint, error) {
	key := fingerprint{id: keyRow, wrong: &KeyError{Field: "Key"}, agrees: a.keyAgrees}
	for _, k := range a.cfg.Keys {
		mac := hmac.New(sha256.New, k)
		mac.Write([]byte("cryptopay fingerprint"))
		key.sums = append(key.sums, hex.EncodeToString(mac.Sum(nil)[:16]))
	}
	out := []fingerprint{key}
	for _, n := range a.networks {
		if !a.cfg.derives() {
			break
		}
		first, err := a.cfg.Addresses.Derive(ctx, n.name, 0, 1)
		if err == nil && len(first) == 0 {
			err = incoming.ErrNoAddress
		}
		if err != nil {
			return nil, fmt.Errorf("cryptopay: Config.Addresses gives no address of %s: %w", n.name, err)
		}
		sum := sha256.Sum256([]byte(first[0].Address))
		out = append(out, fingerprint{
			id: "addresses/" + string(n.name), sums: []string{hex.EncodeToString(sum[:16])}, wrong: &KeyError{Field: "Addresses", Network: n.name},
			agrees: func(ctx context.Context) (bool, error) { return a.Addresses.Derives(ctx, n.name) },
		})
	}
	return out, nil
}

// keyRow is the id of the fingerprint of the newest key.
const keyRow = "key"

// keyAgrees reports whether a secret and a seal of the store, if it has any, are of Config.Keys.
func (a *App) keyAgrees(ctx context.Context) (bool, error) {
	if opens, err := a.Webhooks.Opens(ctx); err != nil || !opens {
		return false, err
	}
	rows, err := a.cfg.Store.Find(ctx, storage.Query{Table: seal.Seals.Table, Limit: 1})
	if err != nil || len(rows) == 0 {
		return err == nil, err
	}
	s := seal.Seals.Value(rows[0])
	return s.SignedWith(a.sealKeys()...), nil
}

// sameKeys refuses keys that are not those of the store. What the store has no fingerprint
// of is noted where what is stored agrees with it.
func (a *App) sameKeys(ctx context.Context) error {
	return a.noteKeys(ctx, false, func(ctx context.Context, p fingerprint, there bool) error {
		same := false
		if !there {
			var err error
			if same, err = p.agrees(ctx); err != nil {
				return err
			}
		}
		if !same {
			return p.wrong
		}
		return nil
	})
}

// noteKeys stores the fingerprints that the store lacks, or has another one of, unless
// check returns an error for one of them. It gives the store its id, where it has none.
func (a *App) noteKeys(ctx context.Context, adopt bool, check func(ctx context.Context, p fingerprint, there bool) error) error {
	prints, err := a.fingerprints(ctx)
	if err != nil {
		return err
	}
	var store string
	decide := func(ctx context.Context) (storage.Change, error) {
		known, err := a.stored(ctx, prints)
		if err != nil {
			return storage.Change{}, err
		}
		c := storage.Change{Partition: storage.System}
		for _, p := range prints {
			row, there := known[p.id]
			if there && slices.Contains(p.sums, Fingerprints.Value(row).Sum) {
				continue
			}
			if err := check(ctx, p, there); err != nil {
				return storage.Change{}, err
			}
			c.Put = append(c.Put, Fingerprints.Row(p.id, row.Version, time.Time{}, Fingerprint{Sum: p.sums[0]}))
		}
		if store, err = a.identify(ctx, known, adopt, &c); err != nil {
			return storage.Change{}, err
		}
		if c.ID == "" && len(c.Put) > 0 {
			c.ID = "fingerprints/" + a.cfg.NewID()
		}
		return c, nil
	}
	err = storage.Decide(ctx, a.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		c, err := decide(ctx)
		if errors.Is(err, storage.ErrConflict) { // a process that starts beside has given the store its id meanwhile
			c, err = decide(ctx)
		}
		return c, err
	})
	if err == nil {
		a.identity.store.Store(&store)
	}
	return err
}

// AdoptKeys makes Config.Key and Config.Addresses those of this store, where Open refuses
// them with a *KeyError and the change is meant. Call it once, in the place of Open, and Open
// after it. Addresses that were shown before stay watched, and what comes there can be moved
// only by a Signer that has their seed too. Another seed is for a store whose addresses were
// never used: payments that wait at others are refused as altered, and tenants with hot addresses
// pay nothing out, until their seed is adopted again. Secrets that were sealed with another Key stay
// shut. It may be called again.
//
// Withdrawals that were sealed with another Key are refused. Config.UnsealedUntil names a day
// until which they are taken, and App.Reseal seals them: be sure of what the database holds.
func (a *App) AdoptKeys(ctx context.Context, more ...*storage.Table) error {
	if err := a.cfg.Store.Open(ctx, append(Tables(), more...)...); err != nil {
		return err
	}
	return a.noteKeys(ctx, true, func(ctx context.Context, p fingerprint, _ bool) error {
		a.cfg.Log.WarnContext(ctx, "key_adopted", slog.String("fingerprint", p.id))
		return nil
	})
}

// stored reads the fingerprints that the store has of these, and of itself.
func (a *App) stored(ctx context.Context, prints []fingerprint) (map[string]storage.Row, error) {
	ids := []string{storeRow}
	for i := range prints {
		ids = append(ids, prints[i].id)
	}
	rows, err := a.cfg.Store.Rows(ctx, Fingerprints.Table, storage.Keys(storage.System, ids...)...)
	known := make(map[string]storage.Row, len(rows))
	for _, r := range rows {
		known[r.ID] = r
	}
	return known, err
}
