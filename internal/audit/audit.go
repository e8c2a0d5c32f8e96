// Package audit chains the records of what people did, so that a record which somebody with
// access to the database has edited, deleted, inserted or moved is found.
//
//   - Each partition has a chain of its own: entries are numbered from 1 without a gap, and each
//     holds the hash of its content and of the entry before.
//   - The head of a chain is a row with a version. The Change that does something writes its
//     entry and the head, so that of two acts at once one is decided again.
//   - The head has a MAC with a key that is not in the database. Who does not know the key cannot
//     make a chain that ends in it.
//
// Who puts an older head back and deletes what came after it has the chain of an older state,
// as a backup has. Seals of the journal hold the head of their time: see storage/seal.
package audit

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Act is what somebody did. Before and After are what it changed, as JSON shows it; nil = there
// is nothing to show. Neither has a secret.
type Act struct {
	Kind          string
	By, Reason    string
	Tenant        string // "" = of no single tenant
	Object        string // what it is about: the id of a credential, a withdrawal
	Before, After any
	Tell          bool // the host hears of it as of an operator's call: no other event says who did it
}

// The kinds of acts that are no operator's call.
const (
	Approve   = "approve_withdrawal"
	Refuse    = "refuse_withdrawal"
	Hold      = "hold_withdrawal"
	Release   = "release_withdrawal"
	Take      = "take_delivered"
	Pay       = "pay_missing"
	CreateApp = "create_application"
	DeleteApp = "delete_application"
	CreateKey = "create_api_key"
	DeleteKey = "delete_api_key"

	SetWebhooks = "set_webhooks" // URL, events or secret of a tenant

	// What the operator's command does in many Changes, or in none of ours: it is recorded
	// before it begins.
	CreateTenant = "create_tenant"
	Recount      = "recount"
	Reseal       = "reseal"
	Resend       = "resend_webhook"
	RetryEvents  = "retry_events"
	DropEvents   = "discard_events"
)

// Record adds an Act to the Change that does it.
type Record func(ctx context.Context, c *storage.Change, a Act) error

// Link is an entry's place in its chain.
type Link struct {
	Number   int64
	Previous []byte // the Hash of the entry before; empty in the first
	Hash     []byte
}

// Head is the newest entry of a partition's chain.
type Head struct {
	Number int64  `db:"number"`
	Hash   []byte `db:"hash"`
	MAC    []byte `db:"mac"` // empty = the chain was broken when this entry was added
}

// Heads has the head of each chain under HeadID.
var Heads = storage.NewTable[Head]("audit_heads")

// HeadID is the row of a partition's head.
const HeadID = "head"

// Tables lists them.
func Tables() []*storage.Table { return []*storage.Table{Heads.Table} }

// Chain is what chains are made with: keys, newest first, and how an entry is read. It needs a
// key to notice a head that somebody made.
type Chain struct {
	Keys [][]byte
	// Table has the entries, with a column "number": 0 = the row is in no chain.
	Table *storage.Table
	// Read returns the link of a row, and its content.
	Read func(storage.Row) (Link, []string)
}

// Key is the key of heads, derived from a secret of the host's that is used for other things
// too.
func Key(secret []byte) []byte {
	h := hmac.New(sha256.New, secret)
	_, _ = h.Write([]byte("cryptopay/internal/audit"))
	return h.Sum(nil)
}

// Next links new entries with these contents to the chain of a partition, in their order. The
// Change that puts the entries puts the row of the head, too.
func (c *Chain) Next(ctx context.Context, s storage.Store, p storage.Partition, contents ...[]string) ([]Link, storage.Row, error) {
	head, row, ok, err := Heads.One(ctx, s, p, HeadID)
	sound := ok && c.signed(p, &head)
	if err == nil && !ok { // a chain begins, or its head was deleted
		var newest []storage.Row
		newest, err = s.Find(ctx, storage.Query{
			Table: c.Table, Partition: p, Limit: 1, Order: []storage.Order{{Column: "number", Desc: true}},
			Where: []storage.Cond{{Column: "number", Op: storage.Gt, Value: int64(0)}},
		})
		if sound = len(newest) == 0; !sound {
			last, _ := c.Read(newest[0])
			head = Head{Number: last.Number, Hash: last.Hash}
		}
	}
	if err != nil {
		return nil, storage.Row{}, err
	}
	links := make([]Link, len(contents))
	head.MAC = nil // that of a broken chain stays so: nothing that is signed follows from an edit
	for i, content := range contents {
		l := Link{Number: head.Number + 1, Previous: head.Hash}
		l.Hash = hash(p, &l, content)
		head.Number, head.Hash, links[i] = l.Number, l.Hash, l
	}
	if sound && len(c.Keys) > 0 {
		head.MAC = sign(c.Keys[0], p, &head)
	}
	return links, Heads.Row(HeadID, row.Version, time.Time{}, head), nil
}

// Resign signs the head of a partition's chain again where an older key has signed it, and
// reports whether it did.
func (c *Chain) Resign(ctx context.Context, s storage.Store, p storage.Partition) (bool, error) {
	h, row, ok, err := Heads.One(ctx, s, p, HeadID)
	if err != nil || !ok || !c.signed(p, &h) || len(c.Keys) == 0 || hmac.Equal(h.MAC, sign(c.Keys[0], p, &h)) {
		return false, err
	}
	h.MAC = sign(c.Keys[0], p, &h)
	err = storage.CommitOne(ctx, s, storage.Change{
		ID: fmt.Sprintf("resign-audit/%x", h.MAC), Partition: p, Put: []storage.Row{Heads.Row(HeadID, row.Version, time.Time{}, h)},
	})
	if errors.Is(err, storage.ErrConflict) { // an act was added, and signed with the newest
		return false, nil
	}
	return err == nil, err
}

// Break is one thing that is not as it was written. Number is 0 where it is of the whole chain.
type Break struct {
	Number int64
	ID     string // of the row, "" = it is gone
	Detail string
}

// Sealed is an entry that the chain is known to have had.
type Sealed struct {
	Number int64
	Hash   []byte
}

// Verify walks the chain of a partition and names each break. sealed is what a seal says the
// chain has; its zero value says nothing. The error joins *storage.RowErrors. Acts may be added
// meanwhile.
func (c *Chain) Verify(ctx context.Context, s storage.Store, p storage.Partition, sealed Sealed) (out []Break, err error) {
	head, _, ok, err := Heads.One(ctx, s, p, HeadID)
	if err != nil {
		return nil, err
	}
	w := walk{c: c, p: p, marks: []Sealed{sealed, {head.Number, head.Hash}}}
	var unread storage.RowErrors
	if err = unread.Take(w.all(ctx, s)); err != nil {
		return nil, err
	}
	last := head
	if w.last > head.Number { // acts were added meanwhile, or put behind the head
		if last, _, ok, err = Heads.One(ctx, s, p, HeadID); err != nil {
			return nil, err
		}
	}
	switch {
	case !ok && w.last > 0:
		w.find(0, "", "the head is gone")
	case w.last > last.Number:
		w.find(last.Number+1, "", fmt.Sprintf("entries after the head, %d, were not written by this library", last.Number))
	case ok && !c.signed(p, &last):
		w.find(0, "", "no key that is listed signed the head: it was edited, or an entry was added to a broken chain")
	}
	if head.Number > w.last {
		w.gone(w.last+1, head.Number)
	}
	if sealed.Number > max(w.last, head.Number) {
		w.find(sealed.Number, "", fmt.Sprintf("entries after %d are gone: a seal of the journal has entry %d", max(w.last, head.Number), sealed.Number))
	}
	return w.out, unread.With(nil)
}

// walk is one Verify.
type walk struct {
	c     *Chain
	p     storage.Partition
	last  int64
	hash  []byte
	marks []Sealed
	out   []Break
}

// most is how many breaks are listed.
const (
	most = 100
	page = 500
)

func (w *walk) find(number int64, id, detail string) {
	if len(w.out) < most {
		w.out = append(w.out, Break{number, id, detail})
	}
}

func (w *walk) gone(from, to int64) {
	detail := fmt.Sprintf("entry %d is gone", from)
	if to > from {
		detail = fmt.Sprintf("entries %d to %d are gone", from, to)
	}
	w.find(from, "", detail)
}

func (w *walk) all(ctx context.Context, s storage.Store) error {
	var unread storage.RowErrors
	for offset := 0; ; {
		rows, err := s.Find(ctx, storage.Query{
			Table: w.c.Table, Partition: w.p, Limit: page, Offset: offset, Order: []storage.Order{{Column: "number"}},
			Where: []storage.Cond{{Column: "number", Op: storage.Gt, Value: int64(0)}},
		})
		broken := len(unread)
		if err = unread.Take(err); err != nil {
			return err
		}
		for _, r := range rows {
			w.entry(r)
		}
		read := len(rows) + len(unread) - broken
		if read < page {
			return unread.With(nil)
		}
		offset += read
	}
}

func (w *walk) entry(r storage.Row) {
	l, content := w.c.Read(r)
	follows := l.Number == w.last+1
	switch {
	case l.Number <= w.last:
		w.find(l.Number, r.ID, fmt.Sprintf("there are two entries %d", l.Number))
		return
	case !follows:
		w.gone(w.last+1, l.Number-1)
	}
	switch {
	case !bytes.Equal(l.Hash, hash(w.p, &l, content)):
		w.find(l.Number, r.ID, fmt.Sprintf("entry %d was edited", l.Number))
	case follows && !bytes.Equal(l.Previous, w.hash):
		w.find(l.Number, r.ID, fmt.Sprintf("entry %d does not follow from the one before", l.Number))
	case slices.ContainsFunc(w.marks, func(m Sealed) bool { return m.Number == l.Number && !bytes.Equal(m.Hash, l.Hash) }):
		w.find(l.Number, r.ID, fmt.Sprintf("entry %d is another than the head or a seal says", l.Number))
	}
	w.last, w.hash = l.Number, l.Hash
}

// signed reports whether one of the keys signed a head.
func (c *Chain) signed(p storage.Partition, h *Head) bool {
	return len(c.Keys) == 0 || slices.ContainsFunc(c.Keys, func(k []byte) bool { return hmac.Equal(h.MAC, sign(k, p, h)) })
}

func sign(key []byte, p storage.Partition, h *Head) []byte {
	m := hmac.New(sha256.New, key)
	write(m, "cryptopay audit head 1", string(p), string(binary.BigEndian.AppendUint64(nil, uint64(h.Number))), string(h.Hash)) //nolint:gosec // the same bits
	return m.Sum(nil)
}

func hash(p storage.Partition, l *Link, content []string) []byte {
	m := sha256.New()
	write(m, "cryptopay audit entry 1", string(p), string(binary.BigEndian.AppendUint64(nil, uint64(l.Number))), string(l.Previous)) //nolint:gosec // the same bits
	write(m, content...)
	return m.Sum(nil)
}

// write adds each text with its length, so that no two contents make the same bytes.
func write(w io.Writer, texts ...string) {
	for _, t := range texts {
		_, _ = w.Write(binary.BigEndian.AppendUint64(nil, uint64(len(t)))) // a hash never fails
		_, _ = io.WriteString(w, t)
	}
}

// TakenID is the id of the operation by which a restored store takes over a transaction that it did not know.
func TakenID(tx string) string { return "restore/take/" + tx }
