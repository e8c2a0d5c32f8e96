// Package memory keeps everything in this process: a Store that checks and
// then applies each Change under one lock. It is the reference model of the
// conformance suite, and what tests, simulations and throw-away hosts use.
//
// Nothing survives the process: "durable" here means until then.
package memory

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// Store is a storage.Store in memory. Make it with New.
type Store struct {
	tables *atomic.Pointer[verdict.Tables] // nil = not open; replaced, never changed

	mu    *sync.Mutex
	held  chan struct{} // closed when the host's transaction ends; nil = there is none
	parts map[storage.Partition]*part
	last  *part // the partition that was asked for last
	due   map[*storage.Table]*dueQueue
	errs  []error // see verdicts

	// Of the Store inside of a Tx:
	mine map[storage.Partition]bool // partitions that are its own copies; else nil
	over atomic.Bool                // the Tx has ended
}

var _ storage.Store = (*Store)(nil)

// New makes an empty store.
func New() *Store {
	return &Store{
		tables: new(atomic.Pointer[verdict.Tables]), mu: new(sync.Mutex), parts: map[storage.Partition]*part{}, due: map[*storage.Table]*dueQueue{},
	}
}

// Open implements storage.Store. Tables of an earlier Open stay open.
func (s *Store) Open(ctx context.Context, tables ...*storage.Table) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	open := verdict.Tables{}
	if old := s.tables.Load(); old != nil {
		maps.Copy(open, *old)
	}
	for _, t := range tables {
		open[t] = true
		if s.due[t] == nil {
			s.due[t] = &dueQueue{}
		}
	}
	s.tables.Store(&open)
	return nil
}

// Close implements storage.Store. What was stored stays for another Open.
func (s *Store) Close() error {
	s.tables.Store(nil)
	return nil
}

func (s *Store) opened(ctx context.Context) (verdict.Tables, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.over.Load() {
		return nil, ErrOver
	}
	open := s.tables.Load()
	if open == nil {
		return nil, storage.ErrClosed
	}
	return *open, nil
}

// part finds a partition; s.mu is held.
func (s *Store) part(p storage.Partition, create bool) *part {
	if s.last != nil && s.last.name == p {
		return s.last
	}
	d := s.parts[p]
	if d == nil {
		if !create {
			return nil
		}
		d = newPart(p)
		s.parts[p] = d
	}
	s.last = d
	return d
}

// Commit implements storage.Store.
func (s *Store) Commit(ctx context.Context, changes ...storage.Change) []error {
	open, err := s.opened(ctx)
	if err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	var batches []*verdict.Batch
	for i := range changes {
		if !onlyPosts(&changes[i]) {
			batches = append(batches, verdict.Prepare(open.Has, changes[i:i+1]))
		}
	}
	hasty := len(changes) > 0
	for i := range changes {
		hasty = hasty && changes[i].NoWait
	}
	if err := s.lock(ctx, !hasty); err != nil {
		return slices.Repeat([]error{err}, len(changes))
	}
	defer s.mu.Unlock()
	errs := s.verdicts(len(changes))
	for i := range changes {
		c := &changes[i]
		if onlyPosts(c) {
			errs[i] = s.post(open, c)
			continue
		}
		errs[i] = s.judge(c, batches[0])
		batches = batches[1:]
	}
	return errs
}

// verdicts makes room for n errors, many callers' at a time; s.mu is held.
func (s *Store) verdicts(n int) []error {
	const slab = 64
	if n > slab/4 {
		return make([]error, n)
	}
	if n > len(s.errs) {
		s.errs = make([]error, slab)
	}
	out := s.errs[:n:n]
	s.errs = s.errs[n:]
	return out
}

func onlyPosts(c *storage.Change) bool {
	return len(c.Post) > 0 && len(c.Put)+len(c.Drop)+len(c.Require)+len(c.Level)+len(c.Count)+len(c.Tell)+len(c.Empty) == 0
}

// judge is the way of every Change that is more than postings.
func (s *Store) judge(c *storage.Change, b *verdict.Batch) error {
	errs, w := b.Judge(state{s})
	if errs[0] != nil || w.Empty() {
		return errs[0]
	}
	p := s.writable(c.Partition)
	if len(w.Txs) > 0 && p.txs.full() {
		return errFull
	}
	for _, k := range w.Drops {
		p.table(k.Table).drop(k.ID)
	}
	for i := range w.Rows {
		r := &w.Rows[i]
		made := &rec{Stored: r.Stored, keys: verdict.Keys(r.Table, r.Scalars)}
		if r.Table.Flat() {
			made.value = new(atomic.Value)
		}
		s.set(p, r.Table, made)
	}
	for i := range w.Balances {
		b := &w.Balances[i].Balance
		p.account(b.Account, b.Asset, true).balance = *b
	}
	left := w.Entries // in the order of Txs
	for i := range w.Txs {
		t := &w.Txs[i]
		n := 0
		for n < len(left) && left[n].Tx == t.ID {
			n++
		}
		at := p.txs.write(&ledger.Tx{ID: t.ID, Kind: t.Kind, Ref: t.Ref}, t.Change, t.At, n)
		p.txs.add(t.ID, at)
		for k := range left[:n] {
			a := p.account(left[k].Account, left[k].Asset, false)
			a.add(left[k].Seq, p.txs.enter(at, k, left[k].After, a.newest))
		}
		left = left[n:]
	}
	for _, l := range w.Levels {
		p.levels[l.Name] = l.Value
	}
	return nil
}

func (s *Store) set(p *part, t *storage.Table, r *rec) {
	p.table(t).set(r)
	if r.Due > 0 {
		s.due[t].push(p, t, r)
	}
}

// state lets verdicts be taken on what is stored; s.mu is held.
type state struct{ s *Store }

func (v state) Row(k verdict.RowKey) verdict.Stamp {
	if p := v.s.part(k.Partition, false); p != nil {
		if r := p.table(k.Table).rows[k.ID]; r != nil {
			st := verdict.Stamp{Version: r.Version, Change: r.Change, Keys: r.keys}
			if verdict.Stamped(k.Table) {
				st.Value = r.Scalars[0].(int64)
			}
			return st
		}
	}
	return verdict.Stamp{}
}

func (v state) Holder(k verdict.UniqueKey) (string, bool) {
	if p := v.s.part(k.Partition, false); p != nil {
		id, ok := p.table(k.Table).uniques[k.Unique][k.Key]
		return id, ok
	}
	return "", false
}

func (v state) Tx(k verdict.TxKey) (string, bool) {
	if p := v.s.part(k.Partition, false); p != nil {
		if at, ok := p.txs.find(k.ID); ok {
			return p.txs.at(at).change, true
		}
	}
	return "", false
}

func (v state) Balance(k verdict.BalanceKey) ledger.Balance {
	if p := v.s.part(k.Partition, false); p != nil {
		if a := p.account(k.Account, k.Asset, false); a != nil {
			return a.balance
		}
	}
	return ledger.Balance{}
}

func (v state) Account(k verdict.AccountKey) []ledger.Balance {
	p := v.s.part(k.Partition, false)
	if p == nil {
		return nil
	}
	out := make([]ledger.Balance, 0, 4)
	for _, a := range p.byAccount[k.Account] {
		out = append(out, a.balance)
	}
	return out
}

func (v state) Level(k verdict.LevelKey) int64 {
	if p := v.s.part(k.Partition, false); p != nil {
		return p.levels[k.Name]
	}
	return 0
}

// Balances implements storage.Store.
func (s *Store) Balances(ctx context.Context, p storage.Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
	if _, err := s.opened(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.part(p, false)
	if d == nil {
		return nil, nil
	}
	var out []ledger.Balance
	if len(accounts) == 0 {
		for _, list := range d.byAccount {
			for _, a := range list {
				out = append(out, a.balance)
			}
		}
	}
	names := slices.Clone(accounts)
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		for _, a := range d.byAccount[name] {
			out = append(out, a.balance)
		}
	}
	slices.SortFunc(out, compareBalances)
	return out, nil
}

// HouseBalances is for storage.Partition.HouseBalances.
func (s *Store) HouseBalances(ctx context.Context, p storage.Partition) ([]ledger.Balance, error) {
	if _, err := s.opened(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.part(p, false)
	if d == nil {
		return nil, nil
	}
	var out []ledger.Balance
	for name, list := range d.byAccount {
		if !name.House() {
			continue
		}
		for _, a := range list {
			out = append(out, a.balance)
		}
	}
	slices.SortFunc(out, compareBalances)
	return out, nil
}

// Entries implements storage.Store.
func (s *Store) Entries(ctx context.Context, p storage.Partition, account ledger.Account, asset ledger.Asset, before int64, max int) ([]ledger.Entry, error) {
	if _, err := s.opened(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.part(p, false)
	if d == nil {
		return nil, nil
	}
	a := d.account(account, asset, false)
	if a == nil || max <= 0 {
		return nil, nil
	}
	seq := a.balance.Seq
	if before > 0 {
		seq = min(seq, before-1)
	}
	var out []ledger.Entry
	for at := a.find(seq, &d.txs); seq > 0 && len(out) < max; seq-- {
		after, older, record := d.txs.entry(at)
		was, _, _ := d.txs.entry(older)
		t := d.txs.at(record)
		out = append(out, ledger.Entry{
			Account: account, Asset: asset, Seq: seq, Tx: t.id, Kind: t.kind, Ref: t.ref,
			Delta: after - was, After: after, At: storage.FromMicros(t.at),
		})
		at = older
	}
	return out, nil
}
