package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/lane"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

type scan = func(*sql.Rows) error

// runner reads: a session, or a pool.
type runner interface {
	each(ctx context.Context, q string, args []any, f func(*sql.Rows) error) error
}

// Write implements lane.Target; it is for lanes, callers use Commit.
func (s *Store) Write(ctx context.Context, wait bool, changes []storage.Change) ([]error, error) {
	open, err := s.opened()
	if err != nil {
		return nil, err
	}
	batch := verdict.Prepare(open.Has, changes)
	parts := batch.Partitions()
	var errs []error
	err = s.writing(ctx, func(ss *session) error {
		if !s.d.OneWriter {
			if err := s.enter(ctx, ss, parts); err != nil {
				return err
			}
		}
		return ss.inTx(ctx, func() error {
			if err := s.lock(ctx, ss, wait, parts, batch, changes); err != nil {
				return err
			}
			state, err := s.load(ctx, ss, batch.Needs())
			if err != nil {
				return err
			}
			var w *verdict.Writes
			errs, w = batch.Judge(state)
			return s.save(ctx, ss, w)
		})
	})
	if err != nil {
		return nil, err
	}
	s.remember(parts)
	return errs, nil
}

// enter makes sure that the partitions have their rows to lock. It stands
// before the transaction: an absent row cannot be locked.
func (s *Store) enter(ctx context.Context, ss *session, parts []storage.Partition) error {
	s.mu.Lock()
	var values []any
	for _, p := range parts {
		if !s.parts[p] {
			values = append(values, string(p))
		}
	}
	s.mu.Unlock()
	return s.store(ctx, ss, "INSERT INTO "+Prefix+"parts (part)", " "+s.d.Ignore, 1, values)
}

func (s *Store) remember(parts []storage.Partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		s.parts[p] = true
	}
}

// lock takes the partitions, in sorted order. What is locked elsewhere is
// passed over unless wait.
func (s *Store) lock(ctx context.Context, ss *session, wait bool, parts []storage.Partition, batch *verdict.Batch, changes []storage.Change) error {
	if s.d.OneWriter {
		return s.enter(ctx, ss, parts)
	}
	q := s.d.LockParts
	if wait {
		q = s.d.WaitParts
	}
	got := map[storage.Partition]bool{}
	for at := 0; at < len(parts); {
		n := min(len(parts)-at, s.most(1))
		args := make([]any, n)
		for i := range args {
			args[i] = string(parts[at+i])
		}
		list := strings.TrimSuffix(strings.Repeat("?,", n), ",")
		err := ss.each(ctx, s.text(q, n, func() string { return fmt.Sprintf(q, list) }), args, func(r *sql.Rows) error {
			var p storage.Partition
			err := r.Scan(&p)
			got[p] = true
			return err
		})
		if err != nil {
			return err
		}
		at += n
	}
	for i := range changes {
		if !got[changes[i].Partition] {
			batch.Fail(i, lane.ErrSkipped)
		}
	}
	return nil
}

// load reads what the verdicts depend on.
func (s *Store) load(ctx context.Context, ss *session, n *verdict.Needs) (*verdict.Loaded, error) {
	l := verdict.NewLoaded()
	if err := s.loadRows(ctx, ss, n, l); err != nil {
		return nil, err
	}
	if err := s.loadHolders(ctx, ss, n, l); err != nil {
		return nil, err
	}
	return l, s.loadLedger(ctx, ss, n, l)
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
		head := "SELECT " + s.d.quoteAll(append([]string{"part", "id", "version", "change_id"}, cols.names...)) + " FROM " + TableName(t)
		err := s.lookup(ctx, ss, head, "part, id", s.d.RowLock, texts(2), keys[t], func(r *sql.Rows) error {
			k := verdict.RowKey{Table: t}
			var st verdict.Stamp
			values := cols.dest()
			if err := r.Scan(append([]any{&k.Partition, &k.ID, &st.Version, &st.Change}, values...)...); err != nil {
				return err
			}
			st.Keys = verdict.Keys(t, cols.spread(t, values))
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
		head := "SELECT part, id, " + s.d.quoteAll(names) + " FROM " + TableName(u.t)
		err := s.lookup(ctx, ss, head, "part, "+s.d.quoteAll(names), s.d.RowLock, append(texts(1), cols.kinds...), keys[u], func(r *sql.Rows) error {
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
	err := s.lookup(ctx, ss, "SELECT part, id, change_id FROM "+Prefix+"ledger_txs", "part, id", "", texts(2), txs, func(r *sql.Rows) error {
		var k verdict.TxKey
		var change string
		err := r.Scan(&k.Partition, &k.ID, &change)
		l.Txs[k] = change
		return err
	})
	if err != nil {
		return err
	}
	const balance = "SELECT part, account, asset, posted, held, seq FROM " + Prefix + "balances"
	err = s.lookup(ctx, ss, balance, "part, account, asset", "", texts(3), balances, func(r *sql.Rows) error {
		p, b, err := scanBalance(r)
		l.Balances[verdict.BalanceKey{Partition: p, Account: b.Account, Asset: b.Asset}] = b
		return err
	})
	if err != nil {
		return err
	}
	err = s.lookup(ctx, ss, balance, "part, account", "", texts(2), accounts, func(r *sql.Rows) error {
		p, b, err := scanBalance(r)
		l.Balances[verdict.BalanceKey{Partition: p, Account: b.Account, Asset: b.Asset}] = b
		k := verdict.AccountKey{Partition: p, Account: b.Account}
		l.Accounts[k] = append(l.Accounts[k], b)
		return err
	})
	if err != nil {
		return err
	}
	return s.lookup(ctx, ss, "SELECT part, name, value FROM "+Prefix+"levels", "part, name", "", texts(2), levels, func(r *sql.Rows) error {
		var k verdict.LevelKey
		var v int64
		err := r.Scan(&k.Partition, &k.Name, &v)
		l.Levels[k] = v
		return err
	})
}

func scanBalance(r *sql.Rows) (p storage.Partition, b ledger.Balance, err error) {
	err = r.Scan(&p, &b.Account, &b.Asset, &b.Posted, &b.Held, &b.Seq)
	return p, b, err
}

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
	if err := s.store(ctx, ss, s.d.insert()+Prefix+"ledger_txs (part, id, change_id, kind, ref, at)", "", 6, values); err != nil {
		return err
	}
	values = make([]any, 0, len(w.Balances)*6)
	for i := range w.Balances {
		b := &w.Balances[i]
		values = append(values, string(b.Partition), string(b.Account), string(b.Asset), int64(b.Posted), int64(b.Held), b.Seq)
	}
	tail := s.d.upsert([]string{"part", "account", "asset"}, []string{"posted", "held", "seq"})
	if err := s.store(ctx, ss, "INSERT INTO "+Prefix+"balances (part, account, asset, posted, held, seq)", tail, 6, values); err != nil {
		return err
	}
	values = make([]any, 0, len(w.Entries)*7)
	for i := range w.Entries {
		e := &w.Entries[i]
		values = append(values, string(e.Partition), string(e.Account), string(e.Asset), e.Seq, e.Tx, int64(e.Delta), int64(e.After))
	}
	if err := s.store(ctx, ss, s.d.insert()+Prefix+"entries (part, account, asset, seq, tx, delta, balance_after)", "", 7, values); err != nil {
		return err
	}
	values = make([]any, 0, len(w.Levels)*3)
	for i := range w.Levels {
		values = append(values, string(w.Levels[i].Partition), w.Levels[i].Name, w.Levels[i].Value)
	}
	tail = s.d.upsert([]string{"part", "name"}, []string{"value"})
	return s.store(ctx, ss, "INSERT INTO "+Prefix+"levels (part, name, value)", tail, 3, values)
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
		into := TableName(t) + " (" + s.d.quoteAll(names) + ")"
		if err := s.store(ctx, ss, s.d.insert()+into, "", len(names), inserts[t]); err != nil {
			return err
		}
		if err := s.store(ctx, ss, "INSERT INTO "+into, s.d.upsert([]string{"part", "id"}, names), len(names), updates[t]); err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) drop(ctx context.Context, ss *session, t *storage.Table, keys []any) error {
	for len(keys) > 0 {
		n := min(len(keys)/2, s.most(2))
		q := "DELETE FROM " + TableName(t) + " WHERE (part, id) IN (" + s.d.tuples(texts(2), n) + ")"
		if err := ss.exec(ctx, q, keys[:n*2]...); err != nil {
			return err
		}
		keys = keys[n*2:]
	}
	return nil
}
