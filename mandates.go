package cryptopay

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Somebody who can write to the database can write rows that agree with each other. So what
// gives an order is sealed with Config.Keys, which are not in the database: see package
// mandate. A mandate holds in one store: the first process that opens a store gives it a
// random id.

// MandateKeys are what a Signer checks mandates with: keys.SignerConfig.Mandates. They are
// derived from Config.Keys, newest first, and open nothing else.
func MandateKeys(keys ...[]byte) mandate.Keys {
	out := make(mandate.Keys, len(keys))
	for i, k := range keys {
		out[i] = mandate.Derive(k)
	}
	return out
}

// The rows of Fingerprints that are about the store itself. Their Sum is a text, the id of
// a key, and a MAC with that key.
const (
	storeRow  = "store"  // its id
	sealedRow = "sealed" // all that an earlier version stored has been sealed
)

// ErrStoreID reports that the store's id, or the row that says that all is sealed, is not
// what a process with Config.Keys wrote, or is gone. Put the rows "store" and "sealed" of
// the table fingerprints back from a backup.
var ErrStoreID = errors.New("cryptopay: the id of the store was edited or deleted: restore the rows of fingerprints")

// errNotOpen reports that an order was given before Open.
var errNotOpen = errors.New("cryptopay: the App is not open")

// identity is what an App knows of its store from Open on. The fields are shared with the
// App inside of a host's transaction.
type identity struct {
	store  atomic.Pointer[string]
	sealed atomic.Bool // it was found sealed, and stays so
}

// attest makes the Sum of a row about the store.
func attest(key []byte, text string, about ...string) string {
	return text + "/" + mandate.KeyID(key) + "/" + base64.RawURLEncoding.EncodeToString(attestation(key, slices.Concat(about, []string{text})...))
}

// attestation covers each text with its length.
func attestation(key []byte, texts ...string) []byte {
	h := hmac.New(sha256.New, key)
	for _, t := range append([]string{"cryptopay store"}, texts...) {
		_ = binary.Write(h, binary.BigEndian, uint64(len(t))) // a hash never fails
		_, _ = io.WriteString(h, t)
	}
	return h.Sum(nil)
}

// attested returns the text of a row about the store, if one of the keys made it.
func attested(keys [][]byte, sum string, about ...string) (text string, ok bool) {
	f := strings.Split(sum, "/")
	if len(f) != 3 {
		return "", false
	}
	text = f[0]
	mac, err := base64.RawURLEncoding.Strict().DecodeString(f[2])
	for _, k := range keys {
		if err == nil && mandate.KeyID(k) == f[1] && hmac.Equal(mac, attestation(k, slices.Concat(about, []string{text})...)) {
			return text, true
		}
	}
	return "", false
}

// identify returns the store's id. It adds to a Change what gives a store its id that has
// none yet.
func (a *App) identify(ctx context.Context, known map[string]storage.Row, adopt bool, c *storage.Change) (store string, err error) {
	row, there := known[storeRow]
	if there {
		sum := Fingerprints.Value(row).Sum
		store, ok := attested(a.cfg.Keys, sum, storeRow)
		if !ok && !adopt {
			return "", fmt.Errorf("%w: no key that is configured made the row %s", ErrStoreID, storeRow)
		}
		if !ok { // with another key: what the keys before sealed is to be sealed again
			store, _, _ = strings.Cut(sum, "/")
			c.Put = append(c.Put, Fingerprints.Row(storeRow, row.Version, time.Time{}, Fingerprint{Sum: attest(a.cfg.Keys[0], store, storeRow)}))
			if mark, marked := known[sealedRow]; marked {
				c.Drop = append(c.Drop, mark)
			}
		}
		return store, nil
	}
	had, err := a.hasMandates(ctx)
	if err == nil && had && !adopt {
		err = fmt.Errorf("%w: the row %s is gone", ErrStoreID, storeRow)
	}
	if err != nil {
		return "", err
	}
	store = strings.ReplaceAll(a.cfg.NewID(), "/", "-")
	c.ID = "fingerprints/" + store
	c.Put = append(c.Put, Fingerprints.Row(storeRow, 0, time.Time{}, Fingerprint{Sum: attest(a.cfg.Keys[0], store, storeRow)}))
	fresh, err := a.fresh(ctx)
	if _, marked := known[sealedRow]; fresh && !marked {
		c.Put = append(c.Put, Fingerprints.Row(sealedRow, 0, time.Time{}, a.sealedMark(store)))
	}
	return store, err
}

// sealedMark says that all in a store is sealed.
func (a *App) sealedMark(store string) Fingerprint {
	return Fingerprint{Sum: attest(a.cfg.Keys[0], "yes", sealedRow, store)}
}

// hasMandates reports whether a process of this version has worked on the store.
func (a *App) hasMandates(ctx context.Context) (bool, error) {
	rows, err := a.cfg.Store.Find(ctx, storage.Query{
		Table: withdrawal.Withdrawals.Table, Limit: 1, Where: []storage.Cond{{Column: "mandate", Op: storage.Gt, Value: ""}},
	})
	return len(rows) > 0, err
}

// Unsealed reports whether rows that nobody sealed are accepted now: those that a version
// before seals wrote. Config.UnsealedUntil decides; without it they are accepted in a store
// that an earlier version made, until App.Reseal has sealed them. For
// auth.Config.Unsealed.
func (a *App) Unsealed(ctx context.Context) (bool, error) {
	if until := a.cfg.UnsealedUntil; !until.IsZero() {
		return a.cfg.Clock.Now().Before(until), nil
	}
	if a.identity.sealed.Load() {
		return false, nil
	}
	store := a.identity.store.Load()
	if store == nil {
		return false, errNotOpen
	}
	v, _, there, err := Fingerprints.One(ctx, a.joined(), storage.System, sealedRow)
	if err != nil {
		return false, err
	}
	if _, ok := attested(a.cfg.Keys, v.Sum, sealedRow, *store); there && !ok {
		return false, fmt.Errorf("%w: no key that is configured made the row %s", ErrStoreID, sealedRow)
	}
	if there {
		a.identity.sealed.Store(true)
	}
	return !there, nil
}

// mandates seals withdrawals of this store, and checks them.
type mandates struct{ a *App }

func (m mandates) Make(t mandate.Terms) (string, error) {
	store := m.a.identity.store.Load()
	if store == nil {
		return "", errNotOpen
	}
	t.Store = *store
	return m.a.mandateKeys.Make(t), nil
}

func (m mandates) Check(ctx context.Context, text string, t mandate.Terms) error {
	store := m.a.identity.store.Load()
	if store == nil {
		return errNotOpen
	}
	t.Store = *store
	err := m.a.mandateKeys.Check(text, t)
	if errors.Is(err, mandate.ErrMissing) || errors.Is(err, mandate.ErrKey) {
		if taken, failed := m.a.Unsealed(ctx); failed != nil || taken {
			return failed
		}
	}
	return err
}

// sayUnsealed logs that rows which nobody sealed are accepted.
func (a *App) sayUnsealed(ctx context.Context) error {
	taken, err := a.Unsealed(ctx)
	if taken {
		a.cfg.Log.WarnContext(ctx, "unsealed_rows_accepted",
			slog.String("hint", "call App.Upgraded and then App.Reseal, once no process of an older version runs on this store"))
	}
	return err
}
