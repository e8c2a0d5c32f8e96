package sqlstore

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Look-ups by key are answered as Changes are committed: callers queue, and one of them
// asks the database for all who queued meanwhile, one statement for each table and kind of
// key, all in one round trip. A lone caller does not wait for others. Each look-up begins
// after it was asked for, so it sees every commit that was acknowledged before.

const (
	lookupLeaders = 2                // round trips at a time
	lookupMost    = 256              // look-ups that one round trip answers
	lookupKeys    = 32               // keys of one that travels with others: more have a round trip of their own
	lookupTime    = 30 * time.Second // of a round trip, as a connection may hang
)

// lookups are the callers who wait for rows by their keys.
type lookups struct {
	mu      sync.Mutex
	queue   []*lookup
	leaders int
}

// lookup is what one caller asks.
type lookup struct {
	tables []*storage.Table
	sought [][]storage.Sought // by table
	found  []map[place]*storage.Stored
	err    error
	wake   chan bool // true: lead; false: it is answered
}

// Ask implements storage.Asker.
func (r *reads) Ask(ctx context.Context, asks ...storage.Ask) ([][]storage.Row, error) {
	l := &lookup{}
	n := 0
	for i := range asks {
		if err := r.s.tableOpen(asks[i].Table); err != nil {
			return nil, err
		}
		sought, err := asks[i].Table.Seek(asks[i].Keys)
		if err != nil {
			return nil, err
		}
		n += len(sought)
		l.tables, l.sought = append(l.tables, asks[i].Table), append(l.sought, sought)
	}
	if err := r.ask(ctx, l, n); err != nil {
		return nil, err
	}
	out := make([][]storage.Row, len(asks))
	for i, t := range l.tables {
		for k := range l.sought[i] {
			st, ok := l.found[i][placeOf(&l.sought[i][k])]
			if !ok {
				continue
			}
			row, err := st.Row(t)
			if err != nil {
				return nil, err
			}
			out[i] = append(out[i], row)
		}
	}
	return out, nil
}

// ask has a look-up of n keys answered, with those of others where it is small.
func (r *reads) ask(ctx context.Context, l *lookup, n int) error {
	if r.queue == nil || n > lookupKeys {
		r.answer(ctx, []*lookup{l})
		return l.err
	}
	l.wake = make(chan bool, 1)
	if r.queue.enter(l) {
		return r.lead(ctx, l)
	}
	select {
	case lead := <-l.wake:
		if lead {
			return r.lead(ctx, l)
		}
		return l.err
	case <-ctx.Done():
		r.queue.leave(l) // where it was taken already, its answer goes nowhere
		return ctx.Err()
	}
}

// lead answers the caller's own look-up and those that wait, then lets another lead.
func (r *reads) lead(ctx context.Context, l *lookup) error {
	defer r.queue.handOver()
	runtime.Gosched() // those whom the last one answered are about to ask
	batch := append([]*lookup{l}, r.queue.take()...)
	defer func() { // also where it panics
		for _, other := range batch[1:] {
			other.wake <- false
		}
	}()
	if len(batch) > 1 { // nobody's cancelled request takes others down
		ctx = context.WithoutCancel(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTime) // those who come later wait for the turn
	defer cancel()
	r.answer(ctx, batch)
	return l.err
}

// enter reports whether the caller leads; else it is queued.
func (q *lookups) enter(l *lookup) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.leaders < lookupLeaders {
		q.leaders++
		return true
	}
	q.queue = append(q.queue, l)
	return false
}

// take returns who waits, as many as one round trip answers.
func (q *lookups) take() []*lookup {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.queue), lookupMost-1)
	batch := q.queue[:n:n]
	q.queue = slices.Clone(q.queue[n:])
	return batch
}

// handOver lets who waits longest lead.
func (q *lookups) handOver() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.queue) == 0 {
		q.leaders--
		return
	}
	next := q.queue[0]
	q.queue = slices.Clone(q.queue[1:])
	next.wake <- true
}

// leave takes back a look-up whose caller does not wait any more. One that was told to
// lead lets another.
func (q *lookups) leave(l *lookup) {
	q.mu.Lock()
	at := slices.Index(q.queue, l)
	if at >= 0 {
		q.queue = slices.Delete(q.queue, at, at+1)
	}
	q.mu.Unlock()
	if at >= 0 {
		return
	}
	select {
	case lead := <-l.wake:
		if lead {
			q.handOver()
		}
	default:
	}
}

// errBrokenOff is what a caller gets whose look-up ended without an answer.
var errBrokenOff = errors.New("sqlstore: the look-up was broken off")

// answer asks the database for all look-ups of a batch, each row once.
func (r *reads) answer(ctx context.Context, batch []*lookup) {
	var tables []*storage.Table
	wanted, found := map[*storage.Table][]storage.Sought{}, map[*storage.Table]map[place]*storage.Stored{}
	seen := map[*storage.Table]map[place]struct{}{}
	for _, l := range batch {
		l.err = errBrokenOff
		for i, t := range l.tables {
			if found[t] == nil {
				tables = append(tables, t)
				found[t], seen[t] = map[place]*storage.Stored{}, map[place]struct{}{}
			}
			for k := range l.sought[i] {
				at := placeOf(&l.sought[i][k])
				if _, doubled := seen[t][at]; !doubled {
					seen[t][at] = struct{}{}
					wanted[t] = append(wanted[t], l.sought[i][k])
				}
			}
		}
	}
	list := &listed{d: r.s.d}
	var err error
	for _, t := range tables {
		err = errors.Join(err, r.sought(ctx, list, t, wanted[t], found[t]))
	}
	if err == nil {
		err = r.send(ctx, list.stmts)
	}
	for _, l := range batch {
		if l.err = err; err != nil {
			continue
		}
		l.found = make([]map[place]*storage.Stored, len(l.tables))
		for i, t := range l.tables {
			l.found[i] = found[t]
		}
	}
}

// listed is a runner that keeps statements for later.
type listed struct {
	d     *Dialect
	stmts []Stmt
}

func (l *listed) each(_ context.Context, q string, args []any, f scan) error {
	l.stmts = append(l.stmts, Stmt{q, args, f})
	return nil
}

// send runs statements in one round trip where they can travel together. What fails so is
// asked again one by one: nothing is changed by reading, and a pool replaces connections
// that were lost.
func (r *reads) send(ctx context.Context, stmts []Stmt) error {
	if len(stmts) > 1 && r.pipe != nil {
		if err := r.pipe(ctx, stmts); err == nil || ctx.Err() != nil {
			return err
		}
	}
	for i := range stmts {
		if err := r.at.each(ctx, stmts[i].Text, stmts[i].Args, stmts[i].Scan); err != nil {
			return err
		}
	}
	return nil
}

// pipe sends statements together on a connection of the pool.
func (p pool) pipe(ctx context.Context, stmts []Stmt) error {
	leave, err := p.gate.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	conn, err := p.db.Connx(ctx)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // gives the connection back
	list := make([]Stmt, len(stmts))
	for i, st := range stmts {
		list[i] = Stmt{sqlx.Rebind(p.d.Bind, st.Text), st.Args, st.Scan}
	}
	return p.d.Together(ctx, conn, list)
}
