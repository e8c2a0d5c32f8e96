package memory

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/storage"
)

// Tx is a transaction of a host's own, for its tests: as with one on a database, what is
// committed through Store.WithTx happens when it commits, or not at all. Nobody else sees any
// of it before. It is for one goroutine.
type Tx struct {
	s  *Store
	in *Store // what the store is inside of it
}

// ErrOver: the transaction was committed or rolled back.
var ErrOver = errors.New("memory: the transaction is over")

// holdFor is how long a writer waits for a host's transaction.
const holdFor = 5 * time.Second

// Begin begins a transaction. Until it ends whoever else writes waits for it, for 5 seconds:
// what the host does meanwhile it does through WithTx. Begin itself waits for another one.
func (s *Store) Begin(ctx context.Context) (*Tx, error) {
	if err := s.lock(ctx, true); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	s.held = make(chan struct{})
	in := &Store{tables: s.tables, mu: s.mu, mine: map[storage.Partition]bool{}, parts: maps.Clone(s.parts), due: map[*storage.Table]*dueQueue{}}
	for t, q := range s.due {
		in.due[t] = &dueQueue{rows: slices.Clone(q.rows), tidy: q.tidy}
	}
	return &Tx{s: s, in: in}, nil
}

// Commit makes all of it true at once.
func (t *Tx) Commit() error {
	return t.end(func() {
		for table, q := range t.s.due { // opened meanwhile
			if t.in.due[table] == nil {
				t.in.due[table] = q
			}
		}
		t.s.parts, t.s.due, t.s.last = t.in.parts, t.in.due, nil
	})
}

// Rollback takes all of it back. After Commit it does nothing, and returns ErrOver.
func (t *Tx) Rollback() error { return t.end(func() {}) }

func (t *Tx) end(with func()) error {
	t.s.mu.Lock()
	defer t.s.mu.Unlock()
	if t.in.over.Swap(true) {
		return ErrOver
	}
	with()
	close(t.s.held)
	t.s.held = nil
	return nil
}

// lock takes s.mu while there is no transaction of a host's. ErrBusy where there is one, at
// once or after holdFor.
func (s *Store) lock(ctx context.Context, wait bool) error {
	var late context.Context
	for {
		s.mu.Lock()
		held := s.held
		if held == nil {
			return nil
		}
		s.mu.Unlock()
		if !wait {
			return fmt.Errorf("%w: a host's transaction is open", storage.ErrBusy)
		}
		if late == nil {
			var cancel context.CancelFunc
			late, cancel = context.WithTimeout(context.WithoutCancel(ctx), holdFor)
			defer cancel()
		}
		select {
		case <-held:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", storage.ErrBusy, ctx.Err())
		case <-late.Done():
			return fmt.Errorf("%w: a host's transaction has been open for %s: write through Store.WithTx, or end it", storage.ErrBusy, holdFor)
		}
	}
}

// writable is the partition to write to: inside of a transaction a copy; s.mu is held.
func (s *Store) writable(name storage.Partition) *part {
	p := s.part(name, true)
	if s.mine == nil || s.mine[name] {
		return p
	}
	s.mine[name] = true
	own := p.clone()
	s.parts[name], s.last = own, own
	for _, q := range s.due {
		for i := range q.rows {
			if q.rows[i].p == p {
				q.rows[i].p = own
			}
		}
	}
	return own
}

// clone is a partition that can be written while this one is read.
func (p *part) clone() *part {
	c := newPart(p.name)
	c.txs = p.txs.clone()
	for name, list := range p.byAccount {
		for _, a := range list {
			own := &account{balance: a.balance, newest: a.newest, marks: slices.Clone(a.marks)}
			c.accounts.add(own)
			c.byAccount[name] = append(c.byAccount[name], own)
		}
	}
	for t, d := range p.tables {
		own := c.table(t)
		for _, r := range d.rows {
			own.set(r)
		}
	}
	maps.Copy(c.levels, p.levels)
	return c
}

// clone shares what was written, which never changes. A log that is longer goes on behind
// it: of the two only one is kept.
func (x *txLog) clone() txLog {
	c := *x
	c.chunks = slices.Clone(x.chunks)
	c.runs = slices.Clone(x.runs)
	for i := range c.runs {
		c.runs[i].places = slices.Clone(x.runs[i].places)
	}
	c.strays.slots = slices.Clone(x.strays.slots)
	return c
}

// WithTx is the store inside of a transaction that Begin began.
func (s *Store) WithTx(t *Tx) storage.Tx { return inTx{t.in} }

// inTx is a Store inside of a Tx.
type inTx struct{ *Store }

// Alone implements storage.Tx: nobody else writes meanwhile.
func (inTx) Alone() bool { return true }

// Close implements storage.Store. The transaction is the host's to end.
func (inTx) Close() error { return nil }

// Open implements storage.Store: the store itself must have been opened with these tables.
func (x inTx) Open(ctx context.Context, tables ...*storage.Table) error {
	for _, t := range tables {
		if err := x.tableOpen(ctx, t); err != nil {
			return err
		}
	}
	_, err := x.opened(ctx)
	return err
}
