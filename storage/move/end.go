package move

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Errors of a move.
var (
	// ErrBusy: the source was written to while it was read. Stop what writes to it
	// and begin again with an empty target.
	ErrBusy = errors.New("move: the source is still written to: stop every process that uses it, and begin again with an empty target")
	// ErrStream: the stream is damaged, cut off, of another version, or not the one
	// that this target was begun with.
	ErrStream = errors.New("move: unusable stream")
	// ErrNotEmpty: the target holds something that this move did not bring.
	ErrNotEmpty = errors.New("move: the target is not empty: give it an empty store")
	// ErrIncomplete: the partitions or tables named do not hold all that is stored.
	ErrIncomplete = errors.New("move: not everything in the store was named")
	// ErrBooks: the source's history does not come out right.
	ErrBooks = errors.New("move: the source's books are broken: prove them with Verify before moving")
	// ErrUnfinished: the store is the target of a move that has not ended.
	ErrUnfinished = errors.New("move: this store was filled by half: call the move again with the same source to go on, or give it an empty store")
	// ErrDifferent: source and target are not equal. The Report says where.
	ErrDifferent = errors.New("move: source and target differ")
)

// End is a store at one end of a move. It must be open: with Tables, and a target
// also with Positions.
type End struct {
	Store storage.Store
	// Tables are all that the store holds rows of. Without one that has rows, the
	// copy is not whole and nobody notices.
	Tables []*storage.Table
	// Partitions yields every partition, in ascending order of bytes, each once; an
	// empty one more is harmless. A partition with rows that is left out is
	// ErrIncomplete. For an App: cryptopay.Partitions.
	Partitions func(context.Context, storage.Store) iter.Seq2[storage.Partition, error]
	// Levels names the levels that a row tells of; nil = there are none. For an
	// App: cryptopay.LevelsOf.
	Levels func(storage.Row) []string
}

// Position is how far a target came.
type Position struct {
	Records int64  `db:"records"` // of the stream that stand in the target
	Digest  string `db:"digest"`  // of those
	Done    bool   `db:"done"`    // all stand there; compared or not
}

// Positions is the table of Position, in the target. It also holds one row per
// level, as what brought it. Nothing needs it once the move has ended.
var Positions = storage.NewTable[Position]("move_positions")

// positionID is the row that says how far the target came.
const positionID = "position"

// Unfinished is ErrUnfinished where the store, which is open, is the target of a
// move that was interrupted; nil where it is none, or holds all that was sent.
func Unfinished(ctx context.Context, s storage.Store) error {
	switch err := s.Open(ctx, Positions.Table); {
	case errors.Is(err, storage.ErrSchema): // nothing was ever moved into it
		return nil
	case err != nil:
		return err
	}
	pos, _, begun, err := Positions.One(ctx, s, storage.System, positionID)
	if err != nil || !begun || pos.Done {
		return err
	}
	return fmt.Errorf("%w (%d records stand there)", ErrUnfinished, pos.Records)
}

// page is how many rows are read at a time.
const page = 500

// rows reads a table of one partition, by id.
func rows(ctx context.Context, s storage.Store, t *storage.Table, p storage.Partition, f func(storage.Row) error) error {
	for last := ""; ; {
		got, err := s.Find(ctx, storage.Query{
			Table: t, Partition: p, Limit: page, Where: []storage.Cond{{Column: storage.ColID, Op: storage.Gt, Value: last}},
		})
		if err != nil {
			return fmt.Errorf("move: reading %s of %s: %w", t.Name, p, err)
		}
		for _, r := range got {
			if r.ID <= last {
				return fmt.Errorf("move: %s of %s does not come in the order of ids", t.Name, p)
			}
			last = r.ID
			if err := f(r); err != nil {
				return err
			}
		}
		if len(got) < page {
			return nil
		}
	}
}

// entries reads at most max entries of an account from seq from on, oldest first,
// none past the balance b.
func entries(ctx context.Context, s storage.Store, p storage.Partition, b *ledger.Balance, from int64, max int64) ([]ledger.Entry, error) {
	n := min(max, b.Seq-from+1)
	if n <= 0 {
		return nil, nil
	}
	got, err := s.Entries(ctx, p, b.Account, b.Asset, from+n, int(n))
	if err != nil {
		return nil, fmt.Errorf("move: reading the history of %s in %s: %w", b.Account, p, err)
	}
	slices.Reverse(got)
	for i := range got {
		if got[i].Seq != from+int64(i) {
			return nil, fmt.Errorf("%w: entry %d of %s %s in %s is missing", ErrBooks, from+int64(i), b.Account, b.Asset, p)
		}
	}
	if int64(len(got)) != n {
		return nil, fmt.Errorf("%w: the history of %s %s in %s ends before entry %d", ErrBooks, b.Account, b.Asset, p, from+n-1)
	}
	return got, nil
}

// balances are the partition's, without those that nothing ever moved.
func balances(ctx context.Context, s storage.Store, p storage.Partition) ([]ledger.Balance, error) {
	all, err := s.Balances(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("move: reading the balances of %s: %w", p, err)
	}
	return slices.DeleteFunc(all, func(b ledger.Balance) bool { return b.Seq == 0 && b.Zero() }), nil
}

// level reads a counter through a Change that can never happen: its ceiling is
// below zero, no counter is, and levels are judged before postings.
func level(ctx context.Context, s storage.Store, p storage.Partition, name string) (int64, error) {
	const id = "move/never"
	err := s.Commit(ctx, storage.Change{
		ID: id, Partition: p, Level: []storage.Level{{Name: name, Delta: 1, Max: -1}},
		Post: []ledger.Tx{{ID: id, Kind: ledger.KindAdjustment, Legs: []ledger.Leg{
			{Account: ledger.Adjustment, Asset: "never", Delta: 1}, {Account: ledger.Suspense, Asset: "never", Delta: -1},
		}}},
	})[0]
	var is *storage.LevelError
	if errors.As(err, &is) {
		return is.Value, nil
	}
	return 0, fmt.Errorf("move: reading level %s of %s: %w", name, p, err)
}
