package move

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"math"
	"strconv"
	"time"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// How many Changes are committed at a time, and how many bytes of records: a row
// that was written often is put as often.
const (
	batch      = 500
	batchBytes = 8 << 20
)

// resends is how often a batch of unknown outcome is sent again.
const resends = 3

// apply brings records to the target. Every Change has an id that follows from
// its record, so that whatever stands there already is there already.
type apply struct {
	end    End
	tables map[string]*storage.Table

	n       int64 // records taken
	digest  hash.Hash
	pos     Position // as stored
	version int64

	part    storage.Partition
	size    int // of the record at hand
	changes []storage.Change
	last    []*storage.Row // the row that change i completes, if any
	bytes   int
}

func newApply(ctx context.Context, e End) (*apply, error) {
	a := &apply{end: e, tables: map[string]*storage.Table{}, digest: sha256.New()}
	for _, t := range e.Tables {
		a.tables[t.Name] = t
	}
	pos, row, begun, err := Positions.One(ctx, e.Store, storage.System, positionID)
	if err != nil {
		return nil, fmt.Errorf("move: reading how far the target came: %w", err)
	}
	if begun {
		a.pos, a.version = pos, row.Version
		return a, nil
	}
	for _, t := range e.Tables {
		n, err := e.Store.Count(ctx, storage.Query{Table: t})
		if err != nil {
			return nil, err
		}
		if n > 0 {
			return nil, fmt.Errorf("%w: it has %d rows of %s", ErrNotEmpty, n, t.Name)
		}
	}
	return a, a.save(ctx) // from here on what is there is of this move
}

// take brings one record, or passes it over where it stands there already.
func (a *apply) take(ctx context.Context, r record, text []byte) error {
	a.n++
	a.size = len(text)
	_, _ = a.digest.Write(text)
	_, _ = a.digest.Write([]byte{'\n'})
	switch {
	case r.Kind == kindHead:
		if err := r.check(a.end.Tables); err != nil {
			return err
		}
	case r.Kind == kindPart:
		a.part = storage.Partition(r.ID)
	}
	if a.n <= a.pos.Records {
		if a.n == a.pos.Records && a.sum() != a.pos.Digest {
			return fmt.Errorf("%w: it is not the one that this target was begun with, or its source has changed since: begin again with an empty target", ErrStream)
		}
		return nil
	}
	switch r.Kind {
	case kindRow:
		return a.row(ctx, &r)
	case kindTx:
		tx := ledger.Tx{ID: r.ID, Kind: r.Shown, Ref: r.Ref, At: storage.FromMicros(r.At)}
		for _, l := range r.Legs {
			tx.Legs = append(tx.Legs, ledger.Leg{Account: l.Account, Asset: l.Asset, Delta: l.Delta})
		}
		return a.put(ctx, storage.Change{ID: r.ID, Partition: a.part, Post: []ledger.Tx{tx}}, nil)
	case kindHeld:
		for _, l := range r.Legs {
			id := a.named("held", string(l.Account), string(l.Asset))
			tx := ledger.Tx{ID: id, Kind: ledger.KindAdjustment, Legs: []ledger.Leg{{Account: l.Account, Asset: l.Asset, Hold: l.Held}}}
			if err := a.put(ctx, storage.Change{ID: id, Partition: a.part, Post: []ledger.Tx{tx}}, nil); err != nil {
				return err
			}
		}
		return nil
	case kindLevel:
		id := a.named("level", r.ID)
		return a.put(ctx, storage.Change{
			ID: id, Partition: a.part, Level: []storage.Level{{Name: r.ID, Delta: r.Value, Max: math.MaxInt64}},
			Put: []storage.Row{Positions.Row(id, 0, time.Time{}, Position{Records: a.n, Done: true})},
		}, nil)
	case kindHead, kindPart, kindEnd:
		return nil
	}
	return fmt.Errorf("%w: record %d is of unknown kind %q", ErrStream, a.n, r.Kind)
}

// named is a short id for names of any length.
func (a *apply) named(what string, names ...string) string {
	h := sha256.New()
	for _, n := range names {
		_, _ = fmt.Fprintf(h, "%d:%s", len(n), n)
	}
	return "move/" + what + "/" + hex.EncodeToString(h.Sum(nil))
}

func (a *apply) sum() string { return hex.EncodeToString(a.digest.Sum(nil)) }

// row puts a row as often as it was written at the source, the last time under
// the id of the Change that did: decisions stand on versions, and some rows note
// those of others. A backend writes a row once per batch, however often it is put.
func (a *apply) row(ctx context.Context, rec *record) error {
	t := a.tables[rec.Table]
	if t == nil {
		return fmt.Errorf("%w: a row of table %s, which its first line does not name", ErrStream, rec.Table)
	}
	r, err := rec.row(t)
	if err != nil {
		return err
	}
	r.Partition = a.part
	return a.lift(ctx, &r, 0)
}

// lift puts a row from a version on.
func (a *apply) lift(ctx context.Context, r *storage.Row, from int64) error {
	for v := from; v < r.Version; v++ {
		put, id, last := *r, "move/"+strconv.FormatInt(v+1, 10), (*storage.Row)(nil)
		if put.Version = v; v+1 == r.Version {
			id, last = r.Change, r
		}
		if err := a.put(ctx, storage.Change{ID: id, Partition: r.Partition, Put: []storage.Row{put}}, last); err != nil {
			return err
		}
	}
	return nil
}

func (a *apply) put(ctx context.Context, c storage.Change, last *storage.Row) error {
	a.changes, a.last, a.bytes = append(a.changes, c), append(a.last, last), a.bytes+a.size
	if len(a.changes) < 2*batch && a.bytes < 2*batchBytes {
		return nil // enough is committed where a record ends: see step
	}
	return a.flush(ctx)
}

// enough says that a record's end is the time to commit.
func (a *apply) enough() bool { return len(a.changes) >= batch || a.bytes >= batchBytes }

// flush commits what has come together.
func (a *apply) flush(ctx context.Context) error {
	changes, last := a.changes, a.last
	a.changes, a.last, a.bytes = nil, nil, 0
	var moved []*storage.Row
	for try := 1; len(changes) > 0; try++ {
		var again []storage.Change
		var againLast []*storage.Row
		var unknown error
		for i, err := range a.end.Store.Commit(ctx, changes...) {
			isPut := len(changes[i].Level)+len(changes[i].Post) == 0
			switch {
			case err == nil:
			case errors.Is(err, storage.ErrConflict) && isPut && last[i] == nil: // its row's last Change tells
			case errors.Is(err, storage.ErrConflict) && isPut:
				moved = append(moved, last[i])
			case errors.Is(err, storage.ErrConflict) || storage.Final(err):
				return refused(&changes[i], err)
			default:
				again, againLast, unknown = append(again, changes[i]), append(againLast, last[i]), err
			}
		}
		if unknown != nil && (try == resends || ctx.Err() != nil) {
			return fmt.Errorf("move: the target: %w; call again to go on", unknown)
		}
		changes, last = again, againLast
	}
	for _, r := range moved {
		if err := a.settle(ctx, r); err != nil {
			return err
		}
	}
	return nil
}

// settle looks at a row whose last Change conflicts: it may stand somewhere on
// the way, from before an interruption.
func (a *apply) settle(ctx context.Context, r *storage.Row) error {
	got, err := a.end.Store.Rows(ctx, r.Table, storage.Keys(r.Partition, r.ID)...)
	if err != nil {
		return err
	}
	var at int64
	if len(got) > 0 {
		at = got[0].Version
		if at == r.Version && got[0].Change == r.Change {
			return nil
		}
	}
	if at >= r.Version {
		return fmt.Errorf("%w: row %s of %s in %s stands at version %d, and the source's at %d: something else writes to the target",
			ErrNotEmpty, r.ID, r.Table.Name, r.Partition, at, r.Version)
	}
	for v := at; v < r.Version; v++ {
		put, id := *r, "move/"+strconv.FormatInt(v+1, 10)
		if put.Version = v; v+1 == r.Version {
			id = r.Change
		}
		if err := storage.CommitOne(ctx, a.end.Store, storage.Change{ID: id, Partition: r.Partition, Put: []storage.Row{put}}); err != nil {
			return fmt.Errorf("move: row %s of %s in %s: %w", r.ID, r.Table.Name, r.Partition, err)
		}
	}
	return nil
}

// refused explains a verdict that no copy of sound books gets.
func refused(c *storage.Change, err error) error {
	var funds *ledger.InsufficientFundsError
	if errors.As(err, &funds) {
		return fmt.Errorf("%w: %s in %s: %w", ErrBooks, c.ID, c.Partition, err)
	}
	return fmt.Errorf("%w: %s in %s: %w", ErrNotEmpty, c.ID, c.Partition, err)
}

// save keeps how far the target came.
func (a *apply) save(ctx context.Context) error {
	pos := Position{Records: a.n, Digest: a.sum(), Done: a.pos.Done}
	err := storage.CommitOne(ctx, a.end.Store, storage.Change{
		ID: "move/position/" + strconv.FormatInt(a.version, 10), Partition: storage.System,
		Put: []storage.Row{Positions.Row(positionID, a.version, time.Time{}, pos)},
	})
	if err != nil {
		return fmt.Errorf("move: keeping the position: %w; call again to go on", err)
	}
	a.pos, a.version = pos, a.version+1
	return nil
}
