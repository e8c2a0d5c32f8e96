package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/lane"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// Store is a storage.Store over a SQL database. The dialects' packages make it.
type Store struct {
	reads
	d      *Dialect
	read   *sqlx.DB
	write  *sqlx.DB
	keep   bool          // write is ours: keep one connection and its statements
	wait   time.Duration // see Options.BusyTimeout
	owned  []*sqlx.DB    // closed by Close
	lane   *lane.Lane    // group commit
	tables atomic.Pointer[verdict.Tables]
	seat   chan struct{} // held by whoever writes, where there is one writer
	gate   gate          // leaves a host one of its connections
	kept   []*session    // idle, under mu
	closed bool          // under mu: nothing is kept any more

	mu    sync.Mutex
	parts map[storage.Partition]bool // known to be in the table of partitions
	texts sync.Map                   // statements by shape
}

var (
	_ storage.Store = (*Store)(nil)
	_ lane.Target   = (*Store)(nil)
)

// Options of a Store.
type Options struct {
	Lane lane.Config
	// BusyTimeout is how long a transaction tries to begin while the database
	// is locked elsewhere. Defaults to one try.
	BusyTimeout time.Duration
}

// New makes a Store over pools that the host keeps and closes; read and write
// may be the same. Nothing is asked of the database before Open.
func New(d *Dialect, read, write *sqlx.DB, o Options) *Store {
	if d.OneWriter {
		o.Lane.Shards = 1
	}
	s := &Store{d: d, read: read, write: write, wait: o.BusyTimeout, parts: map[storage.Partition]bool{}, seat: make(chan struct{}, 1)}
	if n := write.Stats().MaxOpenConnections; n > 1 && !d.OneWriter {
		s.gate = make(gate, n-1)
	}
	s.reads = s.pooled(s.gate)
	s.lane = lane.New(s, o.Lane)
	return s
}

// gate lets so many in at a time; nil lets all in.
type gate chan struct{}

func (g gate) enter(ctx context.Context) (leave func(), err error) {
	if g == nil {
		return func() {}, nil
	}
	select {
	case g <- struct{}{}:
		return func() { <-g }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// pooled reads from the reading pool.
func (s *Store) pooled(g gate) reads {
	p := pool{d: s.d, db: s.read, gate: g}
	if s.keep && s.d.OneWriter {
		p.kept = &preparedReads{list: map[string]*sql.Stmt{}}
	}
	r := reads{s: s, at: p}
	if s.d.Together != nil {
		r.queue, r.pipe = &lookups{}, p.pipe
	}
	return r
}

// Own hands the pools over: Close closes them, and connections of the writing
// pool are kept, with what was prepared on them and their settings checked once.
func (s *Store) Own() *Store {
	s.keep = s.d.OneWriter || s.d.Together != nil
	s.gate = nil
	s.reads = s.pooled(nil)
	s.owned = []*sqlx.DB{s.read}
	if s.write != s.read {
		s.owned = append(s.owned, s.write)
	}
	return s
}

// Open implements storage.Store.
func (s *Store) Open(ctx context.Context, tables ...*storage.Table) error {
	if err := s.check(ctx, s.read); err != nil { // writing checks its own
		return err
	}
	all := verdict.Tables{}
	if old := s.tables.Load(); old != nil {
		maps.Copy(all, *old)
	}
	for _, t := range tables {
		all[t] = true
	}
	err := s.writing(ctx, func(ss *session) error { return ss.checkSchema(ctx, tables) })
	if err != nil {
		return fmt.Errorf("sqlstore: opening %s: %w", s.d.Name, err)
	}
	s.tables.Store(&all)
	return nil
}

func (s *Store) check(ctx context.Context, db *sqlx.DB) error {
	conn, err := db.Connx(ctx)
	if err != nil {
		return fmt.Errorf("sqlstore: opening %s: %w", s.d.Name, err)
	}
	defer conn.Close() //nolint:errcheck // gives the connection back
	return s.d.Check(ctx, conn)
}

// Close implements storage.Store. A host's database stays open.
func (s *Store) Close() error {
	s.tables.Store(nil)
	s.seat <- struct{}{}
	defer func() { <-s.seat }()
	s.mu.Lock()
	kept := s.kept
	s.kept, s.closed = nil, true
	s.mu.Unlock()
	var errs []error
	for _, ss := range kept {
		errs = append(errs, ss.close())
	}
	for _, db := range s.owned {
		errs = append(errs, db.Close())
	}
	return errors.Join(errs...)
}

func (s *Store) opened() (verdict.Tables, error) {
	t := s.tables.Load()
	if t == nil {
		return nil, storage.ErrClosed
	}
	return *t, nil
}

func (s *Store) tableOpen(t *storage.Table) error {
	open, err := s.opened()
	if err != nil {
		return err
	}
	if !open.Has(t) {
		return fmt.Errorf("%w: table %s was not opened", storage.ErrMalformed, t.Name)
	}
	return nil
}

// Commit implements storage.Store.
func (s *Store) Commit(ctx context.Context, changes ...storage.Change) []error {
	_, err := s.opened()
	if err == nil {
		err = s.inside(ctx)
	}
	if err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	return s.lane.Commit(ctx, changes...)
}

// writing runs f on a connection of the writing pool, alone where the database
// has one writer.
func (s *Store) writing(ctx context.Context, f func(*session) error) error {
	ss, leave, err := s.enterWriting(ctx)
	if err != nil {
		return err
	}
	whole := false
	defer func() {
		ss.lost = ss.lost || !whole // f panicked
		leave()
	}()
	err = f(ss)
	whole = true
	return err
}

// enterWriting waits for a connection of the writing pool. Where the database has one
// writer nobody else has one until leave is called.
func (s *Store) enterWriting(ctx context.Context) (ss *session, leave func(), err error) {
	if err := s.inside(ctx); err != nil {
		return nil, nil, err
	}
	stand := func() {}
	if s.d.OneWriter {
		select {
		case s.seat <- struct{}{}:
			stand = func() { <-s.seat }
		case <-ctx.Done():
			return nil, nil, fmt.Errorf("%w: %w", storage.ErrBusy, ctx.Err())
		}
	}
	out, err := s.gate.enter(ctx)
	if err != nil {
		stand()
		return nil, nil, fmt.Errorf("%w: %w", storage.ErrBusy, err)
	}
	if ss, err = s.session(ctx); err != nil {
		out()
		stand()
		return nil, nil, err
	}
	return ss, func() {
		if !s.giveBack(ss) {
			_ = ss.close()
		}
		out()
		stand()
	}, nil
}

// session takes an idle connection, or a new one.
func (s *Store) session(ctx context.Context) (*session, error) {
	s.mu.Lock()
	if n := len(s.kept); n > 0 {
		ss := s.kept[n-1]
		s.kept = s.kept[:n-1]
		s.mu.Unlock()
		return ss, nil
	}
	s.mu.Unlock()
	conn, err := s.write.Connx(ctx)
	if err != nil {
		return nil, err
	}
	together := s.d.Together != nil
	ss := s.d.on(conn)
	ss.own, ss.keep, ss.wait, ss.together = s.keep, s.keep && !together, s.wait, together
	if s.keep || s.d.CheckEach { // settings may differ from connection to connection
		if err := s.d.Check(ctx, conn); err != nil {
			return nil, errors.Join(err, ss.close())
		}
	}
	return ss, nil
}

// mostKept is how many idle connections are kept for writing.
const mostKept = 8

func (s *Store) giveBack(ss *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.keep || ss.lost || s.closed || len(s.kept) >= mostKept {
		return false
	}
	s.kept = append(s.kept, ss)
	return true
}

// close gives the connection back, or throws it away where it is lost.
func (s *session) close() error {
	for _, st := range s.stmts {
		_ = st.Close()
	}
	if s.lost {
		_ = s.conn.Raw(func(any) error { return driver.ErrBadConn })
		return nil
	}
	return s.conn.Close()
}

// text keeps a statement that depends on nothing but its shape: what it is
// about, and how many rows it takes.
func (s *Store) text(key string, n int, build func() string) string {
	type shape struct {
		key string
		n   int
	}
	if q, ok := s.texts.Load(shape{key, n}); ok {
		return q.(string)
	}
	q := build()
	s.texts.Store(shape{key, n}, q)
	return q
}

// tuples is "(?,?),(?,?)…": n of width w.
func tuples(n, w int) string {
	one := "(" + strings.TrimSuffix(strings.Repeat("?,", w), ",") + ")"
	return strings.TrimSuffix(strings.Repeat(one+",", n), ",")
}

// texts are the kinds of the keys that most tables have.
func texts(n int) []storage.Kind { return slices.Repeat([]storage.Kind{storage.Text}, n) }

// most is how many rows of width w one statement takes: a power of two, so
// that few different statements are in use.
func (s *Store) most(w int) int {
	n := cmp.Or(s.d.MaxRows, 128)
	for n > 1 && n*w > s.d.MaxParams {
		n /= 2
	}
	return n
}

// lookup reads the rows whose columns, of these kinds, are among keys, in few
// queries. head is everything before WHERE, tail what follows.
func (s *Store) lookup(ctx context.Context, ss runner, head string, columns []string, tail string, kinds []storage.Kind, keys []any, f scan) error {
	for w := len(kinds); len(keys) > 0; {
		var q string
		var args []any
		if s.d.Arrays != nil {
			n := min(len(keys)/w, s.most(w))
			q = s.text(head+tail+strings.Join(columns, ","), w, func() string { return head + s.d.join(columns, kinds) + tail })
			args, keys = transpose(kinds, keys[:n*w]), keys[n*w:]
		} else {
			var among string
			among, args, keys = s.amongTuples(columns, keys)
			q = head + " WHERE " + among + tail
		}
		if err := ss.each(ctx, q, args, f); err != nil {
			return err
		}
	}
	return nil
}

// store writes rows of columns of these kinds, with head before their values and
// tail after: in chunks of powers of two, or as arrays.
func (s *Store) store(ctx context.Context, ss *session, head, tail string, kinds []storage.Kind, values []any) error {
	w := len(kinds)
	n := len(values) / w
	ss.rows += n
	for at := 0; at < n; {
		size := s.most(w)
		var q string
		var args []any
		if s.d.Arrays != nil {
			size = min(size, n-at)
			q = s.text(head+tail, w, func() string { return head + " SELECT * FROM " + s.d.unnest(kinds) + tail })
			args = transpose(kinds, values[at*w:(at+size)*w])
		} else {
			for size > n-at {
				size /= 2
			}
			q = s.text(head+tail, size, func() string { return head + " VALUES " + tuples(size, w) + tail })
			args = values[at*w : (at+size)*w]
		}
		if err := ss.exec(ctx, q, args...); err != nil {
			return err
		}
		at += size
	}
	return nil
}

// rewrite is the tail that overwrites rows of a declared table. What a claim wrote stays
// where it does not matter, so that a row is changed in few places.
func (d *Dialect) rewrite(t *storage.Table, columns []string) string {
	brought := func(c string) string { return fmt.Sprintf(d.Excluded, d.quote(c)) }
	claims, lease := d.Table(t.Name)+".claims", d.Table(t.Name)+".lease"
	return d.upsert([]string{"part", "id"}, columns,
		"version = "+brought("version")+" - "+claims,
		"lease = CASE WHEN "+brought("due")+" > 0 AND "+lease+" > "+brought("due")+" THEN 0 ELSE "+lease+" END")
}

// upsert is the tail that overwrites columns where the key is taken, and what else it sets.
func (d *Dialect) upsert(key []string, columns []string, sets ...string) string {
	for _, c := range columns {
		if !slices.Contains(key, c) {
			sets = append(sets, d.quote(c)+" = "+fmt.Sprintf(d.Excluded, d.quote(c)))
		}
	}
	return " " + fmt.Sprintf(d.Upsert, strings.Join(key, ", "), strings.Join(sets, ", "))
}

// SchemaVersion is the number of the last migration of the dialect that the database has.
func (s *Store) SchemaVersion(ctx context.Context) (version int64, err error) {
	err = s.writing(ctx, func(ss *session) error {
		version, err = ss.schemaVersion(ctx)
		return err
	})
	return version, err
}
