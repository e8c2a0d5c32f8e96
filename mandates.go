package cryptopay

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/house"
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

// storeRow is the row of Fingerprints that has the store's id. Its Sum is the id, the id of
// a key, and a MAC with that key.
const storeRow = "store"

// ErrStoreID reports that the store's id is not what a process with Config.Keys wrote, or is
// gone. Put the row "store" of the table fingerprints back from a backup.
var ErrStoreID = errors.New("cryptopay: the id of the store was edited or deleted: restore the row store of fingerprints")

// ErrUnsealed reports a store that a version before mandates made, or that somebody made look
// so: the database cannot tell.
var ErrUnsealed = errors.New("cryptopay: the store has business and no id: if a version before mandates made it, set Config.UnsealedUntil to a day by which all is sealed")

// errNotOpen reports that an order was given before Open.
var errNotOpen = errors.New("cryptopay: the App is not open")

// identity is what an App knows of its store from Open on. It is shared with the App inside
// of a host's transaction.
type identity struct{ store atomic.Pointer[string] }

// StoreID is the random id that the first process gave the store, which a copy of it keeps; ""
// before Open.
func (a *App) StoreID() string {
	if id := a.identity.store.Load(); id != nil {
		return *id
	}
	return ""
}

// attest makes the Sum of the row of a store's id.
func attest(key []byte, store string) string {
	return store + "/" + mandate.KeyID(key) + "/" + base64.RawURLEncoding.EncodeToString(attestation(key, storeRow, store))
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

// attested returns the id of the store, if one of the keys made its row.
func attested(keys [][]byte, sum string) (store string, ok bool) {
	f := strings.Split(sum, "/")
	if len(f) != 3 {
		return "", false
	}
	store = f[0]
	mac, err := base64.RawURLEncoding.Strict().DecodeString(f[2])
	for _, k := range keys {
		if err == nil && mandate.KeyID(k) == f[1] && hmac.Equal(mac, attestation(k, storeRow, store)) {
			return store, true
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
		store, ok := attested(a.cfg.Keys, sum)
		if !ok && !adopt {
			return "", fmt.Errorf("%w: no key that is configured made the row %s", ErrStoreID, storeRow)
		}
		if !ok { // with another key: what the keys before sealed is to be sealed again
			store, _, _ = strings.Cut(sum, "/")
			c.Put = append(c.Put, Fingerprints.Row(storeRow, row.Version, time.Time{}, Fingerprint{Sum: attest(a.cfg.Keys[0], store)}))
		}
		return store, nil
	}
	had, err := a.hasMandates(ctx)
	if err == nil && had && !adopt {
		err = fmt.Errorf("%w: the row %s is gone", ErrStoreID, storeRow)
	}
	if err == nil && !adopt && a.cfg.UnsealedUntil.IsZero() {
		var fresh bool
		if fresh, err = a.fresh(ctx); err == nil && !fresh {
			err = ErrUnsealed
		}
	}
	if errors.Is(err, ErrStoreID) || errors.Is(err, ErrUnsealed) {
		_, _, there, failed := Fingerprints.One(ctx, a.cfg.Store, storage.System, storeRow)
		if there || failed != nil { // a process that started beside has just given it
			err = cmp.Or(failed, storage.ErrConflict)
		}
	}
	if err != nil {
		return "", err
	}
	store = strings.ReplaceAll(a.cfg.NewID(), "/", "-")
	c.ID = "fingerprints/" + store
	c.Put = append(c.Put, Fingerprints.Row(storeRow, 0, time.Time{}, Fingerprint{Sum: attest(a.cfg.Keys[0], store)}))
	return store, nil
}

// hasMandates reports whether a process of this version has worked on the store.
func (a *App) hasMandates(ctx context.Context) (bool, error) {
	rows, err := a.cfg.Store.Find(ctx, storage.Query{
		Table: withdrawal.Withdrawals.Table, Limit: 1, Where: []storage.Cond{{Column: "mandate", Op: storage.Gt, Value: ""}},
	})
	return len(rows) > 0, err
}

// Unsealed reports whether rows that nobody sealed are accepted now, as those of a version
// before seals: until Config.UnsealedUntil. Nothing in the database counts, because whoever
// edits it could make the store look like one of such a version. For auth.Config.Unsealed.
func (a *App) Unsealed(context.Context) (bool, error) {
	return a.cfg.Clock.Now().Before(a.cfg.UnsealedUntil), nil
}

// mandates seals what pays out of this store, and checks it.
type mandates struct {
	a *App
	// older: versions before mandates wrote such rows, and Unsealed says whether they are taken.
	// Those whose key is lost are taken with them: see AdoptKeys.
	older bool
}

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
	if m.older && (errors.Is(err, mandate.ErrMissing) || errors.Is(err, mandate.ErrKey)) {
		if taken, failed := m.a.Unsealed(ctx); failed != nil || taken {
			return failed
		}
	}
	return err
}

// ending seals what became of transactions of an order of this store.
func (a *App) ending(_ context.Context, e mandate.Ending) (string, error) {
	store := a.identity.store.Load()
	if store == nil {
		return "", errNotOpen
	}
	e.Store = *store
	return a.mandateKeys.SealEnding(e)
}

// sealedBack reports whether a text of this store says of a transaction of an order that it pays
// nobody. A version before sealed none: without a seal its row is believed until Upgraded was
// called, and while Unsealed says so.
func (a *App) sealedBack(ctx context.Context, order string, endings []string, t mandate.Attempt) (bool, error) {
	store := a.identity.store.Load()
	if store == nil {
		return false, errNotOpen
	}
	for _, text := range endings {
		if e, err := a.mandateKeys.CheckEnding(text); err == nil && e.Store == *store && e.Order == order && e.Back == t {
			return true, nil
		}
	}
	if on, err := a.able(ctx, abilityBacks); err != nil || !on {
		return err == nil, err
	}
	return a.Unsealed(ctx)
}

// sealedEndings are those texts of an order that this store's App has made.
func (a *App) sealedEndings(_ context.Context, order string, endings []string) (out []mandate.Ending, err error) {
	store := a.identity.store.Load()
	if store == nil {
		return nil, errNotOpen
	}
	for _, text := range endings {
		if e, err := a.mandateKeys.CheckEnding(text); err == nil && e.Store == *store && e.Order == order {
			out = append(out, e)
		}
	}
	return out, nil
}

// toldOf is outgoing.Config.Told: it reads withdrawals and payments of the house's own. It says nothing
// of those that have failed or were cancelled, nor of withdrawals that Withdrawals.Found completed: the
// transaction that these name is none of their order's.
func (a *App) toldOf(ctx context.Context, orders []chain.Intent) (txs, differ map[string]string, err error) {
	txs, differ = map[string]string{}, map[string]string{}
	note := func(o *chain.Intent, tx string, ordered chain.Intent) {
		switch {
		case o.To != ordered.To || o.Amount != ordered.Amount || o.Memo != ordered.Memo || o.Currency != ordered.Currency || o.Network != ordered.Network || o.All:
			differ[o.ID] = "it is not what its owner has ordered"
		case tx != "":
			txs[o.ID] = tx
		}
	}
	var of [2][]storage.Key // of withdrawals, of payments of the house's own
	byID := make(map[string]*chain.Intent, len(orders))
	for i := range orders {
		o, at := &orders[i], 0
		if house.Is(o.ID) {
			at = 1
		}
		byID[o.ID] = o
		of[at] = append(of[at], storage.Key{Partition: storage.Tenant(o.Tenant), ID: o.ID})
	}
	var unread storage.RowErrors // what cannot be read takes no outcome
	rows, err := byKeys(ctx, a.cfg.Store, withdrawal.Withdrawals.Table, of[0])
	if err = unread.Take(err); err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		w := withdrawal.Withdrawals.Value(row)
		found := w.Status == withdrawal.Completed && w.ProcessedAt.IsZero()
		if found || w.Status == withdrawal.Failed || w.Status == withdrawal.Cancelled {
			continue
		}
		note(byID[row.ID], w.Tx, chain.Intent{
			To: chain.Address(w.Address), Amount: w.Amount, Memo: w.SentMemo, Currency: w.Currency, Network: chain.Network(w.Network),
		})
	}
	rows, err = byKeys(ctx, a.cfg.Store, house.Payments.Table, of[1])
	if err = unread.Take(err); err != nil {
		return nil, nil, err
	}
	for _, row := range rows {
		p := house.Payments.Value(row)
		if p.Status == house.Failed || p.Status == house.Cancelled {
			continue
		}
		note(byID[row.ID], p.Tx, chain.Intent{
			To: chain.Address(p.Address), Amount: p.Amount, Memo: p.Memo, Currency: p.Currency, Network: chain.Network(p.Network),
		})
	}
	return txs, differ, nil
}

// sayUnsealed logs that rows which nobody sealed are accepted.
func (a *App) sayUnsealed(ctx context.Context) error {
	taken, err := a.Unsealed(ctx)
	if taken {
		a.cfg.Log.WarnContext(ctx, "unsealed_rows_accepted",
			slog.Time("until", a.cfg.UnsealedUntil),
			slog.String("hint", "once no process of an older version runs on this store call App.Reseal, and take Config.UnsealedUntil away"))
	}
	return err
}
