package seal

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// MaxEntries is how many entries one seal covers at most.
const MaxEntries = 500

// Seal is one link of a partition's chain. It never changes, but for MAC: see Resign.
type Seal struct {
	Number int64     `db:"number"` // 1, 2, 3 … without a gap
	At     time.Time `db:"sealed_at"`
	Ranges []Range   `db:"ranges,json"` // what it covers, by account and asset
	Marks  []byte    `db:"marks"`       // the first 8 bytes of each entry's SHA-256: they tell which one has changed
	Hash   []byte    `db:"hash"`        // SHA-256 over all of that, whole entries, and the hash of the seal before
	MAC    []byte    `db:"mac"`         // HMAC-SHA256 of Hash under the sealer's key; empty without one
	// Audit is the number of the newest entry of the partition's audit log, 0 = there was none,
	// and AuditHash that entry's hash. Hash covers both.
	Audit     int64  `db:"audit"`
	AuditHash []byte `db:"audit_hash"`
}

// Range is a piece of one account's history of one asset.
type Range struct {
	Account ledger.Account `json:"account"`
	Asset   ledger.Asset   `json:"asset"`
	From    int64          `json:"from"` // Seq of the first entry
	To      int64          `json:"to"`   // and of the last
}

// heightRow is up to where one account's history of one asset is sealed.
type heightRow struct {
	Account ledger.Account `db:"account"`
	Asset   ledger.Asset   `db:"asset"`
	Seq     int64          `db:"seq"`
}

// The tables, in the partition that is sealed. The id of a seal is its number, as
// 16 digits.
var (
	Seals      = storage.NewTable[Seal]("seals")
	heightRows = storage.NewTable[heightRow]("seal_heights")
)

// Tables lists them, and the heads of audit logs, which seals hold.
func Tables() []*storage.Table {
	return append(audit.Tables(), Seals.Table, heightRows.Table)
}

// ErrBroken: the journal is not what its seals say, so that nothing can be sealed
// after them. Prove says where.
var ErrBroken = errors.New("seal: the journal is not what was sealed: verify it")

// Key is the key that seals are signed with, derived from a secret of the host's
// that is used for other things too; nil of none.
func Key(secret []byte) []byte {
	if len(secret) == 0 {
		return nil
	}
	h := hmac.New(sha256.New, secret)
	_, _ = h.Write([]byte("cryptopay/storage/seal"))
	return h.Sum(nil)
}

// SignedWith reports whether a seal was signed with one of the keys, or with none.
func (s *Seal) SignedWith(keys ...[]byte) bool {
	return len(s.MAC) == 0 || slices.ContainsFunc(keys, func(k []byte) bool { return hmac.Equal(s.MAC, sign(k, s.Hash)) })
}

// Resign signs the seals of a partition again that an older key has signed: the first key
// is the newest. It returns how many it signed. A seal that none of the keys signed stays as
// it is: Prove names it.
func Resign(ctx context.Context, s storage.Store, p storage.Partition, keys [][]byte) (n int, err error) {
	err = each(ctx, s, Seals.Table, p, func(row storage.Row) error {
		v := Seals.Value(row)
		if len(v.MAC) == 0 || v.SignedWith(keys[0]) || !v.SignedWith(keys...) {
			return nil
		}
		v.MAC = sign(keys[0], v.Hash)
		err := storage.CommitOne(ctx, s, storage.Change{
			ID: fmt.Sprintf("resign/%x", v.MAC), Partition: p, Put: []storage.Row{Seals.Row(row.ID, row.Version, row.Due, v)},
		})
		if errors.Is(err, storage.ErrConflict) { // another process was first
			return nil
		}
		if err == nil {
			n++
		}
		return err
	})
	return n, err
}

// At is the seal with this number; ok is false where there is none.
func At(ctx context.Context, s storage.Store, p storage.Partition, number int64) (seal Seal, ok bool, err error) {
	seal, _, ok, err = Seals.One(ctx, s, p, rowID(number))
	return seal, ok, err
}

// Newest is the last seal of a partition; ok is false where there is none.
func Newest(ctx context.Context, s storage.Store, p storage.Partition) (seal Seal, ok bool, err error) {
	rows, err := s.Find(ctx, newestQuery(p))
	if err != nil || len(rows) == 0 {
		return Seal{}, false, err
	}
	return Seals.Value(rows[0]), true, nil
}

// Next seals what has been posted to a partition since its newest seal, as far as
// one seal goes, and says how many entries that were: 0 when all is sealed, or when
// another process did it meanwhile. ErrBroken where the journal is shorter than what
// is sealed of it.
func Next(ctx context.Context, s storage.Store, p storage.Partition, key []byte, now time.Time) (Seal, int, error) {
	heights, err := readHeights(ctx, s, p) // before the balances: a journal only grows, so that one behind its height is short
	if err != nil {
		return Seal{}, 0, err
	}
	balances, err := s.Balances(ctx, p)
	if err != nil {
		return Seal{}, 0, err
	}
	if !slices.ContainsFunc(balances, func(b ledger.Balance) bool { return b.Seq != heights[lineOf(&b)].seq }) {
		return Seal{}, 0, nil
	}
	last, _, err := Newest(ctx, s, p) // where another process sealed since, a height's version tells, or it sealed other accounts
	if err != nil {
		return Seal{}, 0, err
	}
	head, _, _, err := audit.Heads.One(ctx, s, p, audit.HeadID)
	var unread storage.RowErrors
	if err = unread.Take(err); err == nil && len(unread) > 0 {
		err = fmt.Errorf("%w: the head of the audit log cannot be read: %w", ErrBroken, unread.With(nil))
	}
	if err != nil {
		return Seal{}, 0, err
	}
	next := Seal{Number: last.Number + 1, At: now, Audit: head.Number, AuditHash: head.Hash}
	sum := begin(p, &next, last.Hash)
	var puts []storage.Row
	left := int64(MaxEntries)
	for i := range balances {
		b := &balances[i]
		if b.Seq == heights[lineOf(b)].seq {
			continue
		}
		r := Range{b.Account, b.Asset, heights[lineOf(b)].seq + 1, min(b.Seq, heights[lineOf(b)].seq+left)}
		entries, err := sealable(ctx, s, p, r)
		if err != nil {
			return Seal{}, 0, err
		}
		sum.add(r, entries)
		next.Ranges = append(next.Ranges, r)
		puts = append(puts, heightRows.Row(heightID(lineOf(b)), heights[lineOf(b)].version, time.Time{}, heightRow{r.Account, r.Asset, r.To}))
		if left -= r.To - r.From + 1; left == 0 {
			break
		}
	}
	next.Marks, next.Hash = sum.marks, sum.end()
	next.MAC = sign(key, next.Hash)
	err = storage.CommitOne(ctx, s, storage.Change{
		ID: "seal/" + rowID(next.Number) + "/" + hex.EncodeToString(next.Hash[:16]), Partition: p,
		Put: append(puts, Seals.Row(rowID(next.Number), 0, time.Time{}, next)),
	})
	if errors.Is(err, storage.ErrConflict) { // sealed by another process
		return Seal{}, 0, nil
	}
	if err != nil {
		return Seal{}, 0, err
	}
	return next, int(MaxEntries - left), nil
}

// sealable reads the entries of a range, oldest first, and makes sure that they
// are all there.
func sealable(ctx context.Context, s storage.Store, p storage.Partition, r Range) ([]ledger.Entry, error) {
	if r.To < r.From {
		return nil, fmt.Errorf("%w: %s has %d entries in %s, and %d are sealed", ErrBroken, r.Account, r.To, r.Asset, r.From-1)
	}
	entries, err := s.Entries(ctx, p, r.Account, r.Asset, r.To+1, int(r.To-r.From+1))
	if err != nil {
		return nil, err
	}
	slices.Reverse(entries)
	for i := range entries {
		if entries[i].Seq != r.From+int64(i) {
			return nil, fmt.Errorf("%w: %s has no entry %d in %s", ErrBroken, r.Account, r.From+int64(i), r.Asset)
		}
	}
	if int64(len(entries)) != r.To-r.From+1 {
		return nil, fmt.Errorf("%w: %s lacks entries before %d in %s", ErrBroken, r.Account, r.To+1, r.Asset)
	}
	return entries, nil
}

// newestID is the id of a partition's last seal, "" where there is none. That seal may be
// one that cannot be read.
func newestID(ctx context.Context, s storage.Store, p storage.Partition) (id string, err error) {
	rows, broken, err := storage.Others(ctx, s, newestQuery(p))
	for _, r := range rows {
		id = r.ID
	}
	for _, r := range broken {
		id = max(id, r.ID)
	}
	return id, err
}

func newestQuery(p storage.Partition) storage.Query {
	return storage.Query{
		Table: Seals.Table, Partition: p, Order: []storage.Order{{Column: storage.ColID, Desc: true}}, Limit: 1,
	}
}

func rowID(number int64) string { return fmt.Sprintf("%016d", number) }

// line names one account's history of one asset.
type line struct {
	account ledger.Account
	asset   ledger.Asset
}

func lineOf(b *ledger.Balance) line { return line{b.Account, b.Asset} }

// heightID is short, however long the names are.
func heightID(l line) string {
	sum := sha256.Sum256(text(text(nil, string(l.account)), string(l.asset)))
	return hex.EncodeToString(sum[:16])
}

type height struct{ seq, version int64 }

func readHeights(ctx context.Context, s storage.Store, p storage.Partition) (map[line]height, error) {
	out := map[line]height{}
	err := each(ctx, s, heightRows.Table, p, func(r storage.Row) error {
		h := heightRows.Value(r)
		out[line{h.Account, h.Asset}] = height{h.Seq, r.Version}
		return nil
	})
	return out, err
}

// each calls f with all rows of a partition by id; see storage.Pages.
func each(ctx context.Context, s storage.Store, t *storage.Table, p storage.Partition, f func(storage.Row) error) error {
	return storage.Pages(ctx, s, storage.Query{Table: t, Partition: p, Limit: 200}, func(rows []storage.Row) error {
		for _, r := range rows {
			if err := f(r); err != nil {
				return err
			}
		}
		return nil
	})
}

// sum makes a seal's hash. Every text in it is preceded by its length, so that no
// two contents make the same bytes.
type sum struct {
	buf   []byte
	marks []byte
}

// markBytes is what a seal keeps of each entry's own hash.
const markBytes = 8

func begin(p storage.Partition, s *Seal, before []byte) *sum {
	m := &sum{buf: text(nil, "cryptopay seal 1")}
	m.buf = text(text(m.buf, string(p)), string(before))
	m.buf = number(number(m.buf, s.Number), storage.Micros(s.At))
	if s.Audit != 0 || len(s.AuditHash) > 0 { // seals of a version before the log have none
		m.buf = text(number(text(m.buf, "audit"), s.Audit), string(s.AuditHash))
	}
	return m
}

func (m *sum) add(r Range, entries []ledger.Entry) {
	m.buf = text(text(m.buf, string(r.Account)), string(r.Asset))
	m.buf = number(number(m.buf, r.From), r.To)
	for i := range entries {
		d := digest(&entries[i])
		m.buf = append(m.buf, d[:]...)
		m.marks = append(m.marks, d[:markBytes]...)
	}
}

func (m *sum) end() []byte {
	h := sha256.Sum256(m.buf)
	return h[:]
}

// digest is the hash of one entry, with all that a store tells of it.
func digest(e *ledger.Entry) [sha256.Size]byte { return sha256.Sum256(leaf(e)) }

func leaf(e *ledger.Entry) []byte {
	b := make([]byte, 0, 256)
	b = text(text(b, string(e.Account)), string(e.Asset))
	b = text(text(text(b, e.Tx), string(e.Kind)), e.Ref)
	b = number(number(b, e.Seq), int64(e.Delta))
	return number(number(b, int64(e.After)), storage.Micros(e.At))
}

func text(b []byte, s string) []byte { return append(number(b, int64(len(s))), s...) }

func number(b []byte, n int64) []byte { return binary.BigEndian.AppendUint64(b, uint64(n)) }

func sign(key, hash []byte) []byte {
	if len(key) == 0 {
		return nil
	}
	h := hmac.New(sha256.New, key)
	_, _ = h.Write(hash)
	return h.Sum(nil)
}
