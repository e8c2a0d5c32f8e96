package sqlstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/lane"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

type scan = func(Scanner) error

// runner reads: a session, or a pool.
type runner interface {
	each(ctx context.Context, q string, args []any, f scan) error
}

// Write implements lane.Target; it is for lanes, callers use Commit.
func (s *Store) Write(ctx context.Context, wait bool, changes []storage.Change) (errs []error, err error) {
	open, err := s.opened()
	if err != nil {
		return nil, err
	}
	err = s.tries(ctx, 1, func() error {
		errs, err = s.try(ctx, wait, verdict.Prepare(open.Has, changes), changes)
		return err
	})
	return errs, err
}

// tries does f at least so many times while it is refused.
func (s *Store) tries(ctx context.Context, least int, f func() error) error {
	var err error
	for range max(least, s.d.Tries) {
		if err = f(); !errors.Is(err, lane.ErrRefused) || ctx.Err() != nil {
			break
		}
	}
	return err
}

func (s *Store) try(ctx context.Context, wait bool, batch *verdict.Batch, changes []storage.Change) (errs []error, err error) {
	parts := batch.Partitions()
	err = s.writing(ctx, func(ss *session) error {
		if !s.d.OneWriter {
			if err := s.enter(ctx, ss, parts); err != nil {
				return err
			}
		}
		errs, err = s.batch(ctx, ss, wait, parts, nil, batch, changes)
		return err
	})
	if err != nil {
		return nil, err
	}
	s.remember(parts)
	return errs, nil
}

// batch locks, loads, judges and stores in one transaction. Changes of the partitions in free
// need no lock.
func (s *Store) batch(
	ctx context.Context, ss *session, wait bool, parts, free []storage.Partition, batch *verdict.Batch, changes []storage.Change,
) (errs []error, err error) {
	loaded := false
	err = ss.inTx(ctx, func() error {
		state, got, err := s.lockAndLoad(ctx, ss, wait, parts, free, batch, changes)
		if err != nil {
			return err
		}
		loaded = true
		var w *verdict.Writes
		errs, w = batch.Judge(state)
		if err := s.touch(ctx, ss, got, w); err != nil {
			return err
		}
		return s.save(ctx, ss, w)
	})
	if err != nil && !wait && !loaded && ss.together && len(parts) == 1 && s.d.Classify(err) == ClassBusy {
		return slices.Repeat([]error{lane.ErrSkipped}, len(changes)), nil // LockPart
	}
	return errs, err
}

// enter makes sure that the partitions have their rows to lock. It stands
// before the transaction: an absent row cannot be locked.
func (s *Store) enter(ctx context.Context, ss *session, parts []storage.Partition) error {
	values := s.unknown(parts)
	if len(values) == 0 {
		return nil
	}
	err := s.store(ctx, ss, "INSERT INTO "+s.d.Table("parts")+" (part)", " "+s.d.ignore("part"), texts(1), values)
	if err != nil || s.d.OneWriter {
		return err
	}
	if err := ss.flush(ctx); err != nil {
		ss.rollback() // to know whether the connection still lives
		return ss.before(ctx, err)
	}
	return nil
}

// unknown lists the partitions that may have no row yet.
func (s *Store) unknown(parts []storage.Partition) (values []any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		if !s.parts[p] {
			values = append(values, string(p))
		}
	}
	return values
}

func (s *Store) remember(parts []storage.Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		s.parts[p] = true
	}
}

// lockAndLoad takes the partitions and reads what the verdicts depend on. Changes
// of partitions that were locked elsewhere are failed.
func (s *Store) lockAndLoad(
	ctx context.Context, ss *session, wait bool, parts, free []storage.Partition, batch *verdict.Batch, changes []storage.Change,
) (*verdict.Loaded, map[storage.Partition]bool, error) {
	if s.d.OneWriter {
		if err := s.enter(ctx, ss, parts); err != nil {
			return nil, nil, err
		}
		l, err := s.load(ctx, ss, batch.Needs())
		return l, nil, err
	}
	needs := batch.Needs()
	locks := len(needs.Rows)+len(needs.Uniques) > 0 // more than the partitions
	q := s.d.LockParts
	switch {
	case wait:
		q = s.d.WaitParts
	case ss.together && locks && len(parts) == 1:
		q = s.d.LockPart
	}
	got, err := s.lock(ctx, ss, q, parts)
	if err != nil {
		return nil, nil, err
	}
	skip := func() {
		for i := range changes {
			if p := changes[i].Partition; !got[p] && !slices.Contains(free, p) {
				batch.Fail(i, lane.ErrSkipped)
			}
		}
	}
	// What is locked and what is there can be asked together, unless that would
	// lock rows of a partition that was not got: whoever has it may want them, and
	// the two would wait for each other. One partition that is not got ends it all.
	if !ss.together || locks && len(parts) > 1 {
		if err := ss.flush(ctx); err != nil {
			return nil, nil, err
		}
		skip()
		needs = batch.Needs()
	}
	l, err := s.load(ctx, ss, needs)
	skip()
	return l, got, err
}

// lock takes the partitions, in sorted order, by this statement. got is filled by
// the next flush.
func (s *Store) lock(ctx context.Context, ss *session, q string, parts []storage.Partition) (got map[storage.Partition]bool, err error) {
	got = map[storage.Partition]bool{}
	for at := 0; at < len(parts); {
		n := min(len(parts)-at, s.most(1))
		err := ss.each(ctx, s.partsText(q, n), partArgs(parts[at:at+n]), func(r Scanner) error {
			var p storage.Partition
			err := r.Scan(&p)
			got[p] = true
			return err
		})
		if err != nil {
			return nil, err
		}
		at += n
	}
	return got, nil
}

// partsText is a statement about n partitions.
func (s *Store) partsText(q string, n int) string {
	return s.text(q, n, func() string {
		return fmt.Sprintf(q, s.d.Table("parts"), strings.TrimSuffix(strings.Repeat("?,", n), ","))
	})
}

func partArgs(parts []storage.Partition) []any {
	args := make([]any, len(parts))
	for i := range args {
		args[i] = string(parts[i])
	}
	return args
}

// touch writes to the partitions, where locks alone do not hold off everybody.
func (s *Store) touch(ctx context.Context, ss *session, got map[storage.Partition]bool, w *verdict.Writes) error {
	if s.d.Touch == "" || w.Empty() {
		return nil
	}
	return s.touchParts(ctx, ss, slices.Sorted(maps.Keys(got)))
}

func (s *Store) touchParts(ctx context.Context, ss *session, parts []storage.Partition) error {
	for at := 0; at < len(parts); {
		n := min(len(parts)-at, s.most(1))
		if err := ss.exec(ctx, s.partsText(s.d.Touch, n), partArgs(parts[at:at+n])...); err != nil {
			return err
		}
		at += n
	}
	return nil
}

// load reads what the verdicts depend on.
func (s *Store) load(ctx context.Context, ss *session, n *verdict.Needs) (*verdict.Loaded, error) {
	l := verdict.NewLoaded()
	if err := s.loadRows(ctx, ss, n, l); err != nil {
		return nil, err
	}
	if len(n.Uniques) > 0 { // which of them to ask for depends on the rows
		if err := ss.flush(ctx); err != nil {
			return nil, err
		}
	}
	if err := s.loadHolders(ctx, ss, n, l); err != nil {
		return nil, err
	}
	if err := s.loadLedger(ctx, ss, n, l); err != nil {
		return nil, err
	}
	return l, ss.flush(ctx)
}

func (s *Store) loadRows(ctx context.Context, ss *session, n *verdict.Needs, l *verdict.Loaded) error {
	keys := map[*storage.Table][]any{}
	var order []*storage.Table
	for _, k := range n.Rows {
		if keys[k.Table] == nil {
			order = append(order, k.Table)
		}
		keys[k.Table] = append(keys[k.Table], string(k.Partition), k.ID)
	}
	for _, t := range order {
		cols := columnsOf(t).unique
		if verdict.Stamped(t) {
			cols = columnsOf(t).all
		}
		head := "SELECT part, id, " + versionOf + ", change_id"
		if len(cols.names) > 0 {
			head += ", " + s.d.quoteAll(cols.names)
		}
		head += " FROM " + s.d.Table(t.Name)
		err := s.lookup(ctx, ss, head, []string{"part", "id"}, s.d.RowLock, texts(2), keys[t], func(r Scanner) error {
			k := verdict.RowKey{Table: t}
			var st verdict.Stamp
			values := cols.dest()
			if err := r.Scan(append([]any{&k.Partition, &k.ID, &st.Version, &st.Change}, values...)...); err != nil {
				return err
			}
			scalars := cols.spread(t, values)
			st.Keys = verdict.Keys(t, scalars)
			if verdict.Stamped(t) {
				st.Value = scalars[0].(int64)
			}
			l.Rows[k] = st
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// loadHolders asks for the holders of those unique keys that their rows do not
// hold already.
func (s *Store) loadHolders(ctx context.Context, ss *session, n *verdict.Needs, l *verdict.Loaded) error {
	type unique struct {
		t *storage.Table
		n int
	}
	keys := map[unique][]any{}
	var order []unique
	held := l.Held()
	for i, k := range n.Uniques {
		if id, ok := held[k]; ok {
			l.Holders[k] = id
			continue
		}
		u := unique{k.Table, k.Unique}
		if keys[u] == nil {
			order = append(order, u)
		}
		keys[u] = append(append(keys[u], string(k.Partition)), n.Values[i]...)
	}
	for _, u := range order {
		names := u.t.Uniques[u.n]
		cols := columnsNamed(u.t, names)
		quoted := []string{"part"}
		for _, name := range names {
			quoted = append(quoted, s.d.quote(name))
		}
		head := "SELECT part, id, " + s.d.quoteAll(names) + " FROM " + s.d.Table(u.t.Name)
		err := s.lookup(ctx, ss, head, quoted, s.d.RowLock, append(texts(1), cols.kinds...), keys[u], func(r Scanner) error {
			k := verdict.UniqueKey{Table: u.t, Unique: u.n}
			var id string
			values := cols.dest()
			if err := r.Scan(append([]any{&k.Partition, &id}, values...)...); err != nil {
				return err
			}
			k.Key = verdict.Key(cols.scalars(values))
			l.Holders[k] = id
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) loadLedger(ctx context.Context, ss *session, n *verdict.Needs, l *verdict.Loaded) error {
	var txs, balances, accounts, levels []any
	for _, k := range n.Txs {
		txs = append(txs, string(k.Partition), k.ID)
	}
	for _, k := range n.Balances {
		balances = append(balances, string(k.Partition), string(k.Account), string(k.Asset))
	}
	for _, k := range n.Accounts {
		accounts = append(accounts, string(k.Partition), string(k.Account))
	}
	for _, k := range n.Levels {
		levels = append(levels, string(k.Partition), k.Name)
	}
	err := s.lookup(ctx, ss, "SELECT part, id, change_id FROM "+s.d.Table("ledger_txs"), []string{"part", "id"}, ss.steady, texts(2), txs, func(r Scanner) error {
		var k verdict.TxKey
		var change string
		err := r.Scan(&k.Partition, &k.ID, &change)
		l.Txs[k] = change
		return err
	})
	if err != nil {
		return err
	}
	balance := "SELECT part, account, asset, posted, held, seq FROM " + s.d.Table("balances")
	err = s.lookup(ctx, ss, balance, []string{"part", "account", "asset"}, ss.steady, texts(3), balances, func(r Scanner) error {
		p, b, err := scanBalance(r)
		l.Balances[verdict.BalanceKey{Partition: p, Account: b.Account, Asset: b.Asset}] = b
		return err
	})
	if err != nil {
		return err
	}
	err = s.lookup(ctx, ss, balance, []string{"part", "account"}, ss.steady, texts(2), accounts, func(r Scanner) error {
		p, b, err := scanBalance(r)
		l.Balances[verdict.BalanceKey{Partition: p, Account: b.Account, Asset: b.Asset}] = b
		k := verdict.AccountKey{Partition: p, Account: b.Account}
		l.Accounts[k] = append(l.Accounts[k], b)
		return err
	})
	if err != nil {
		return err
	}
	return s.lookup(ctx, ss, "SELECT part, name, value FROM "+s.d.Table("levels"), []string{"part", "name"}, ss.steady, texts(2), levels, func(r Scanner) error {
		var k verdict.LevelKey
		var v int64
		err := r.Scan(&k.Partition, &k.Name, &v)
		l.Levels[k] = v
		return err
	})
}

func scanBalance(r Scanner) (p storage.Partition, b ledger.Balance, err error) {
	err = r.Scan(&p, &b.Account, &b.Asset, &b.Posted, &b.Held, &b.Seq)
	return p, b, err
}

// The kinds of the kernel's own columns, in the order in which they are written.
var (
	txKinds      = append(texts(5), storage.Time)
	balanceKinds = append(texts(3), storage.Int, storage.Int, storage.Int)
	entryKinds   = append(texts(3), storage.Int, storage.Text, storage.Int, storage.Int)
	levelKinds   = append(texts(2), storage.Int)
	rowKinds     = append(texts(2), storage.Int, storage.Text, storage.Time)
)

// save writes the net effect.
func (s *Store) save(ctx context.Context, ss *session, w *verdict.Writes) error {
	if err := s.saveRows(ctx, ss, w); err != nil {
		return err
	}
	values := make([]any, 0, len(w.Txs)*6)
	for i := range w.Txs {
		t := &w.Txs[i]
		values = append(values, string(t.Partition), t.ID, t.Change, string(t.Kind), t.Ref, t.At)
	}
	if err := s.store(ctx, ss, s.d.insert()+s.d.Table("ledger_txs")+" (part, id, change_id, kind, ref, at)", "", txKinds, values); err != nil {
		return err
	}
	values = make([]any, 0, len(w.Balances)*6)
	for i := range w.Balances {
		b := &w.Balances[i]
		values = append(values, string(b.Partition), string(b.Account), string(b.Asset), int64(b.Posted), int64(b.Held), b.Seq)
	}
	tail := s.d.upsert([]string{"part", "account", "asset"}, []string{"posted", "held", "seq"})
	if err := s.store(ctx, ss, "INSERT INTO "+s.d.Table("balances")+" (part, account, asset, posted, held, seq)", tail, balanceKinds, values); err != nil {
		return err
	}
	values = make([]any, 0, len(w.Entries)*7)
	for i := range w.Entries {
		e := &w.Entries[i]
		values = append(values, string(e.Partition), string(e.Account), string(e.Asset), e.Seq, e.Tx, int64(e.Delta), int64(e.After))
	}
	if err := s.store(ctx, ss, s.d.insert()+s.d.Table("entries")+" (part, account, asset, seq, tx, delta, balance_after)", "", entryKinds, values); err != nil {
		return err
	}
	values = make([]any, 0, len(w.Levels)*3)
	for i := range w.Levels {
		values = append(values, string(w.Levels[i].Partition), w.Levels[i].Name, w.Levels[i].Value)
	}
	tail = s.d.upsert([]string{"part", "name"}, []string{"value"})
	return s.store(ctx, ss, "INSERT INTO "+s.d.Table("levels")+" (part, name, value)", tail, levelKinds, values)
}

func (s *Store) saveRows(ctx context.Context, ss *session, w *verdict.Writes) error {
	drops := map[*storage.Table][]any{}
	inserts := map[*storage.Table][]any{}
	updates := map[*storage.Table][]any{}
	var order []*storage.Table
	seen := map[*storage.Table]bool{}
	mark := func(t *storage.Table) {
		if !seen[t] {
			seen[t] = true
			order = append(order, t)
		}
	}
	for _, k := range w.Drops {
		mark(k.Table)
		drops[k.Table] = append(drops[k.Table], string(k.Partition), k.ID)
	}
	for i := range w.Rows {
		r := &w.Rows[i]
		mark(r.Table)
		into := updates
		if r.Insert {
			into = inserts
		}
		into[r.Table] = append(append(into[r.Table], string(r.Partition), r.ID, r.Version, r.Change, r.Due), r.Scalars...)
	}
	for _, t := range order {
		if err := s.drop(ctx, ss, t, drops[t]); err != nil {
			return err
		}
		c := columnsOf(t)
		names := append([]string{"part", "id", "version", "change_id", "due"}, c.all.names...)
		kinds := slices.Concat(rowKinds, c.all.kinds)
		into := s.d.Table(t.Name) + " (" + s.d.quoteAll(names) + ")"
		if err := s.store(ctx, ss, s.d.insert()+into, "", kinds, inserts[t]); err != nil {
			return err
		}
		if err := s.store(ctx, ss, "INSERT INTO "+into, s.d.rewrite(t, slices.Concat([]string{"change_id", "due"}, c.all.names)), kinds, updates[t]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) drop(ctx context.Context, ss *session, t *storage.Table, keys []any) error {
	for len(keys) > 0 {
		var among string
		var args []any
		among, args, keys = s.among([]string{"part", "id"}, texts(2), keys)
		if err := ss.exec(ctx, "DELETE FROM "+s.d.Table(t.Name)+" WHERE "+among, args...); err != nil {
			return err
		}
	}
	return nil
}
