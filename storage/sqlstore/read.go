package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// pool reads outside of any transaction.
type pool struct {
	d    *Dialect
	db   *sqlx.DB
	gate gate
	kept *preparedReads // nil: each is prepared by the driver
}

func (p pool) each(ctx context.Context, q string, args []any, f scan) error {
	leave, err := p.gate.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	q = sqlx.Rebind(p.d.Bind, q)
	query := func() (*sql.Rows, error) { return p.db.QueryContext(ctx, q, args...) }
	if p.kept != nil {
		query = func() (*sql.Rows, error) { return p.kept.query(ctx, p.db, q, args) }
	}
	rows, err := query() //nolint:sqlclosecheck // closed in visit
	if err != nil {
		return err
	}
	return visit(rows, f)
}

// reads is the reading half of a store: from its pool, or inside of a host's
// transaction.
type reads struct {
	s     *Store
	at    runner
	queue *lookups                            // of look-ups that travel together; nil = each by itself
	pipe  func(context.Context, []Stmt) error // sends statements in one round trip; nil = one by one
}

// dueAt is when a row is due: when its lease ends, where it has one.
const dueAt = "(CASE WHEN due > 0 AND lease > due THEN lease ELSE due END)"

// rowHead begins every query for rows: the columns that every table has.
const rowHead = "SELECT part, id, " + versionOf + ", change_id, " + dueAt

// versionOf is a row's version.
const versionOf = "(version + claims)"

// selectRows is the beginning of every query for whole rows.
func (d *Dialect) selectRows(t *storage.Table) string {
	return rowHead + ", " + d.quoteAll(columnsOf(t).all.names) + " FROM " + d.Table(t.Name)
}

func scanStored(t *storage.Table, r Scanner) (storage.Stored, error) {
	c := &columnsOf(t).all
	st := storage.Stored{Scalars: make([]any, len(c.kinds))}
	values := c.dest()
	if err := r.Scan(append([]any{&st.Partition, &st.ID, &st.Version, &st.Change, &st.Due}, values...)...); err != nil {
		if st.ID != "" { // it came, and a column holds what it cannot hold
			err = &storage.RowError{Table: t.Name, Partition: st.Partition, ID: st.ID, Err: err}
		}
		return st, err
	}
	st.Scalars = c.scalars(values)
	return st, nil
}

// column is a column of a condition or an order.
func (d *Dialect) column(name string) string {
	switch name {
	case storage.ColDue:
		return dueAt
	case storage.ColVersion:
		return versionOf
	}
	return d.quote(name)
}

func scanRow(t *storage.Table, r Scanner) (storage.Row, error) {
	st, err := scanStored(t, r)
	if err != nil {
		return storage.Row{}, err
	}
	return st.Row(t)
}

// place is a row's own key, or one of its unique ones.
type place struct {
	unique int // position in Table.Uniques, or below 0
	p      storage.Partition
	key    string
}

func placeOf(k *storage.Sought) place {
	if k.Unique < 0 {
		return place{-1, k.Partition, k.ID}
	}
	return place{k.Unique, k.Partition, verdict.Key(k.Scalars)}
}

// Rows implements storage.Store.
func (r *reads) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	out, err := r.Ask(ctx, storage.Ask{Table: t, Keys: keys})
	if err != nil {
		return nil, err
	}
	return out[0], nil
}

// sought reads rows into found, in one look-up for all keys of a kind: by id, or by one Unique.
func (r *reads) sought(ctx context.Context, at runner, t *storage.Table, keys []storage.Sought, found map[place]*storage.Stored) error {
	wanted := make([][]any, 1+len(t.Uniques)) // by 1 + place.unique
	for i := range keys {
		k := &keys[i]
		list := &wanted[1+k.Unique]
		*list = append(*list, string(k.Partition))
		if k.Unique < 0 {
			*list = append(*list, k.ID)
		}
		*list = append(*list, k.Scalars...)
	}
	for n, list := range wanted {
		if len(list) == 0 {
			continue
		}
		by, kinds := []string{"part", "id"}, texts(2)
		if n > 0 {
			names := t.Uniques[n-1]
			by, kinds = []string{"part"}, append(texts(1), columnsNamed(t, names).kinds...)
			for _, name := range names {
				by = append(by, r.s.d.quote(name))
			}
		}
		err := r.s.lookup(ctx, at, r.s.d.selectRows(t), by, "", kinds, list, func(sc Scanner) error {
			st, err := scanStored(t, sc)
			at := place{n - 1, st.Partition, st.ID}
			if n > 0 {
				at.key = verdict.Key(verdict.UniqueScalars(t, n-1, st.Scalars))
			}
			found[at] = &st
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// where writes the conditions of a query.
func (d *Dialect) where(parts []storage.Partition, filters []storage.Filter) (string, []any) {
	return d.conditions("part", parts, filters, func(f *storage.Filter) string { return d.column(f.Column) })
}

// conditions writes those of a query or claim.
func (d *Dialect) conditions(part string, parts []storage.Partition, filters []storage.Filter, column func(*storage.Filter) string, more ...string) (string, []any) {
	var args []any
	terms := more
	switch {
	case parts == nil:
	case len(parts) == 0:
		terms = append(terms, "1 = 0")
	case len(parts) == 1:
		terms, args = append(terms, part+" = ?"), append(args, string(parts[0]))
	default:
		n := 2 // a list is filled up with its last one, so that few different texts are in use
		for n < len(parts) {
			n *= 2
		}
		terms = append(terms, part+" IN "+tuples(1, n))
		for i := range n {
			args = append(args, string(parts[min(i, len(parts)-1)]))
		}
	}
	for i := range filters {
		f := &filters[i]
		switch {
		case f.Op == storage.In && len(f.Values) == 0:
			terms = append(terms, "1 = 0")
		case f.Op == storage.In:
			terms = append(terms, column(f)+" IN ("+strings.TrimSuffix(strings.Repeat("?,", len(f.Values)), ",")+")")
		default:
			terms = append(terms, column(f)+" "+string(f.Op)+" ?")
		}
		args = append(args, f.Values...)
	}
	if len(terms) == 0 {
		return "", nil
	}
	return " WHERE " + strings.Join(terms, " AND "), args
}

// Find implements storage.Store.
func (r *reads) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	q, filters, err := q.Ready()
	if err != nil {
		return nil, err
	}
	if err := r.s.tableOpen(q.Table); err != nil {
		return nil, err
	}
	byID := !slices.ContainsFunc(q.Order, func(o storage.Order) bool { return o.Column != storage.ColID })
	sorted := r.s.d.Sorted != "" && byID && narrows(q.Table, filters)
	later := sorted && laterPage(filters, q.Order[0].Desc)
	cond, args := r.s.d.conditions("part", q.Partitions, filters, func(f *storage.Filter) string {
		if later && f.Column == storage.ColID {
			return fmt.Sprintf(r.s.d.Sorted, r.s.d.column(f.Column))
		}
		return r.s.d.column(f.Column)
	})
	order := make([]string, 0, len(q.Order)+1)
	for _, o := range q.Order {
		by := r.s.d.column(o.Column)
		if sorted {
			by = fmt.Sprintf(r.s.d.Sorted, by)
		}
		if o.Desc {
			by += " DESC"
		}
		order = append(order, by)
	}
	if len(q.Partitions) != 1 {
		order = append(order, "part")
	}
	tail := cond + " ORDER BY " + strings.Join(order, ", ") + " " + cmp.Or(r.s.d.Page, r.s.d.limit()+" OFFSET ?")
	args = append(args, q.Limit, q.Offset)
	tail = r.s.d.named(&q, filters) + tail
	if q.IDs {
		return r.bare(ctx, q.Table, rowHead+" FROM "+r.s.d.Table(q.Table.Name)+tail, args)
	}
	return r.rows(ctx, q.Table, r.s.d.selectRows(q.Table)+tail, args)
}

// narrows reports whether conditions fix the first column of an index: what the index has
// is read then, and not the partition. A query that names the id as its order walks the
// partition all the same.
func narrows(t *storage.Table, filters []storage.Filter) bool {
	for _, columns := range slices.Concat(t.Indexes, t.Uniques) {
		for i := range filters {
			if f := &filters[i]; f.Column == columns[0] && (f.Op == storage.Eq || f.Op == storage.In) {
				return true
			}
		}
	}
	return false
}

// laterPage reports whether conditions on the id say only where a page begins: most rows of a
// partition may be behind it. Else they may select less than an index does.
func laterPage(filters []storage.Filter, desc bool) bool {
	from, at := storage.Gt, storage.Ge
	if desc {
		from, at = storage.Lt, storage.Le
	}
	begins := false
	for i := range filters {
		if f := &filters[i]; f.Column == storage.ColID {
			if f.Op != from && f.Op != at {
				return false
			}
			begins = true
		}
	}
	return begins
}

// named names the index that a query by key walks along, where the planner has to be told.
func (d *Dialect) named(q *storage.Query, filters []storage.Filter) string {
	if d.UseIndex == "" || len(q.Partitions) != 1 {
		return ""
	}
	fixed, bounded := map[string]bool{}, map[string]bool{}
	for i := range filters {
		switch filters[i].Op {
		case storage.Eq:
			fixed[filters[i].Column] = true
		case storage.Lt, storage.Le, storage.Gt, storage.Ge:
			bounded[filters[i].Column] = true
		}
	}
	most, best := -1, -1 // the one that begins with most columns that are fixed
	for i, columns := range q.Table.Indexes {
		n := 0
		for n < len(columns) && fixed[columns[n]] {
			n++
		}
		if n > most && walks(columns[n:], q.Order, fixed, bounded) {
			most, best = n, i
		}
	}
	if best < 0 {
		return ""
	}
	return fmt.Sprintf(d.UseIndex, d.local(q.Table.Name)+fmt.Sprint("_i", best))
}

// walks says whether an index of these columns has the rows in this order, and begins with
// a column that is bounded. Columns that are fixed have no order. The id follows the last
// column: the indexes of a server that has to be told end with the primary key.
func walks(columns []string, order []storage.Order, fixed, bounded map[string]bool) bool {
	for _, o := range order {
		if fixed[o.Column] {
			continue
		}
		if len(columns) == 0 && o.Column == storage.ColID && bounded == nil && o.Desc == order[0].Desc {
			return true
		}
		if len(columns) == 0 || columns[0] != o.Column || o.Desc != order[0].Desc {
			return false
		}
		if columns = columns[1:]; bounded != nil && !bounded[o.Column] {
			return false
		}
		bounded = nil // asked of the first alone
	}
	return bounded == nil
}

func (r *reads) bare(ctx context.Context, t *storage.Table, q string, args []any) ([]storage.Row, error) {
	var out []storage.Row
	err := r.at.each(ctx, q, args, func(sc Scanner) error {
		var st storage.Stored
		err := sc.Scan(&st.Partition, &st.ID, &st.Version, &st.Change, &st.Due)
		out = append(out, st.Bare(t))
		return err
	})
	return out, err
}

func (r *reads) rows(ctx context.Context, t *storage.Table, q string, args []any) ([]storage.Row, error) {
	var out []storage.Row
	var unread error
	err := r.at.each(ctx, q, args, func(sc Scanner) error {
		row, err := scanRow(t, sc)
		if broken := (*storage.RowError)(nil); errors.As(err, &broken) {
			unread = errors.Join(unread, err)
			return nil
		}
		out = append(out, row)
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, unread
}

// Count implements storage.Store.
func (r *reads) Count(ctx context.Context, q storage.Query) (int64, error) {
	q, filters, err := q.Ready()
	if err != nil {
		return 0, err
	}
	if err := r.s.tableOpen(q.Table); err != nil {
		return 0, err
	}
	cond, args := r.s.d.where(q.Partitions, filters)
	var n int64
	err = r.at.each(ctx, "SELECT count(*) FROM "+r.s.d.Table(q.Table.Name)+cond, args, func(sc Scanner) error { return sc.Scan(&n) })
	return n, err
}

// Claim implements storage.Store.
func (s *Store) Claim(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	cond, args, err := s.due(c)
	if err != nil {
		return nil, err
	}
	some := false // an empty poll must not take the writer's seat
	err = s.at.each(ctx, "SELECT 1 FROM "+s.d.Table(c.Table.Name)+cond+" ORDER BY due, part, id LIMIT 1", args, func(Scanner) error {
		some = true
		return nil
	})
	if err != nil || !some {
		return nil, err
	}
	var out []storage.Row
	var unread error
	err = s.tries(ctx, 3, func() error { // refused: a deadlock, or another node was first
		return s.writing(ctx, func(ss *session) (err error) {
			out, unread, err = s.take(ctx, ss, c, cond, args)
			return err
		})
	})
	return out, errors.Join(unread, err)
}

// Peek implements storage.Peeker.
func (s *Store) Peek(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	cond, args, err := s.due(c)
	if err != nil {
		return nil, err
	}
	q := s.d.selectRows(c.Table) + cond + " ORDER BY due, part, id " + s.d.limit()
	return s.rows(ctx, c.Table, q, append(args, c.Max))
}

// due is the condition for rows that may be claimed.
func (s *Store) due(c storage.Claim) (cond string, args []any, err error) {
	filters, err := c.Ready()
	if err != nil {
		return "", nil, err
	}
	if err := s.tableOpen(c.Table); err != nil {
		return "", nil, err
	}
	terms, args := []string{"due > 0", "due <= ?", "lease <= ?"}, []any{storage.Micros(c.Now), storage.Micros(c.Now)}
	if len(c.Except) > 0 {
		terms = append(terms, "part NOT IN ("+strings.TrimSuffix(strings.Repeat("?,", len(c.Except)), ",")+")")
		for _, p := range c.Except {
			args = append(args, string(p))
		}
	}
	var parts []storage.Partition
	if c.Partition != "" {
		parts = []storage.Partition{c.Partition}
	}
	cond, more := s.d.conditions(cmp.Or(s.d.HidePart, "part"), parts, filters, s.d.unindexed, terms...)
	return cond, append(args, more...), nil
}

// limit ends a query for the first rows: its argument is how many.
func (d *Dialect) limit() string { return cmp.Or(d.Limit, "LIMIT ?") }

// unindexed is a column of a claim's condition: rows that are due are found by their time.
func (d *Dialect) unindexed(f *storage.Filter) string {
	if form, ok := d.Unindexed[f.Kind]; ok {
		return fmt.Sprintf(form, d.column(f.Column))
	}
	return d.column(f.Column)
}

// take claims rows in one transaction. Those that cannot be read are not returned.
func (s *Store) take(ctx context.Context, ss *session, c storage.Claim, cond string, args []any) (out []storage.Row, unread, err error) {
	columns := "SELECT lease, part, id, " + versionOf + ", change_id, due, " + s.d.quoteAll(columnsOf(c.Table).all.names)
	q := columns + " FROM " + s.d.Table(c.Table.Name) + cond + " ORDER BY due, part, id " + s.d.limit() + s.d.ClaimLock
	var leases []int64
	err = ss.inTx(ctx, func() error {
		err := ss.each(ctx, q, append(args, c.Max), func(r Scanner) error {
			l := leased{Scanner: r}
			row, err := scanRow(c.Table, &l)
			var broken *storage.RowError
			if errors.As(err, &broken) {
				row, unread, err = storage.Row{Partition: broken.Partition, ID: broken.ID}, errors.Join(unread, err), nil
			}
			out, leases = append(out, row), append(leases, l.until)
			return err
		})
		if err == nil {
			err = ss.flush(ctx)
		}
		if err != nil {
			return err
		}
		return s.lease(ctx, ss, c, out, leases)
	})
	if err != nil {
		return nil, nil, err
	}
	return slices.DeleteFunc(out, func(r storage.Row) bool { return r.Table == nil }), unread, nil
}

// leased is a row that follows the end of its last lease.
type leased struct {
	Scanner
	until int64
}

func (l *leased) Scan(dest ...any) error { return l.Scanner.Scan(append([]any{&l.until}, dest...)...) }

// inPlace is how many leases a row that nobody writes keeps its place among those that are
// due. Then it goes behind the others: rows that nobody can finish must not keep the first
// places for ever.
const inPlace = 8

// lease moves the claimed rows' version and the end of their leases, here and in the
// table. leases are the ends of their last ones.
func (s *Store) lease(ctx context.Context, ss *session, c storage.Claim, rows []storage.Row, leases []int64) error {
	now, until := storage.Micros(c.Now), storage.Micros(c.Until)
	stay, move := make([]any, 0, 2*len(rows)), []any(nil)
	for i := range rows {
		keys := &stay
		if leases[i] > 0 && now-storage.Micros(rows[i].Due) > inPlace*(until-now) {
			keys = &move
		}
		*keys = append(*keys, string(rows[i].Partition), rows[i].ID)
		rows[i].Version++
		rows[i].Due = storage.FromMicros(until)
	}
	if err := s.until(ctx, ss, c, "lease", stay); err != nil {
		return err
	}
	if err := s.until(ctx, ss, c, "due", move); err != nil {
		return err
	}
	if s.d.Touch == "" {
		return nil
	}
	var parts []storage.Partition
	for i := range rows {
		parts = append(parts, rows[i].Partition)
	}
	slices.Sort(parts)
	return s.touchParts(ctx, ss, slices.Compact(parts))
}

// until writes the end of a claim's leases to a column of the rows with these keys.
func (s *Store) until(ctx context.Context, ss *session, c storage.Claim, column string, keys []any) error {
	for len(keys) > 0 {
		var among string
		var args []any
		among, args, keys = s.among([]string{"part", "id"}, texts(2), keys)
		q := "UPDATE " + s.d.Table(c.Table.Name) + " SET " + column + " = ?, claims = claims + 1 WHERE " + among
		if err := ss.exec(ctx, q, append([]any{storage.Micros(c.Until)}, args...)...); err != nil {
			return err
		}
	}
	return nil
}

// Balances implements storage.Store.
func (r *reads) Balances(ctx context.Context, p storage.Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
	if _, err := r.s.opened(); err != nil {
		return nil, err
	}
	q := "SELECT part, account, asset, posted, held, seq FROM " + r.s.d.Table("balances") + " WHERE part = ?"
	args := []any{string(p)}
	if len(accounts) > 0 {
		q += " AND account IN (" + strings.TrimSuffix(strings.Repeat("?,", len(accounts)), ",") + ")"
		for _, a := range accounts {
			args = append(args, string(a))
		}
	}
	var out []ledger.Balance
	err := r.at.each(ctx, q+" ORDER BY account, asset", args, func(sc Scanner) error {
		_, b, err := scanBalance(sc)
		out = append(out, b)
		return err
	})
	return out, err
}

// HouseBalances is for storage.Partition.HouseBalances. It reads two ranges of the primary key.
func (r *reads) HouseBalances(ctx context.Context, p storage.Partition) ([]ledger.Balance, error) {
	if _, err := r.s.opened(); err != nil {
		return nil, err
	}
	q := "SELECT part, account, asset, posted, held, seq FROM " + r.s.d.Table("balances") + " WHERE part = ? AND "
	owed := string(ledger.Receivable(""))
	args := []any{
		string(p), string(ledger.FeesPlatform), string(ledger.FeesNetwork), string(ledger.Float), string(ledger.Adjustment),
		string(p), owed, owed[:len(owed)-1] + string(owed[len(owed)-1]+1),
	}
	var out []ledger.Balance
	err := r.at.each(ctx, q+"account IN (?,?,?,?) UNION ALL "+q+"account >= ? AND account < ? ORDER BY account, asset", args, func(sc Scanner) error {
		_, b, err := scanBalance(sc)
		out = append(out, b)
		return err
	})
	return out, err
}

// Entries implements storage.Store.
func (r *reads) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, max int) ([]ledger.Entry, error) {
	if _, err := r.s.opened(); err != nil {
		return nil, err
	}
	if max <= 0 {
		return nil, nil
	}
	q := "SELECT e.seq, e.tx, t.kind, t.ref, e.delta, e.balance_after, t.at FROM " + r.s.d.Table("entries") + " e JOIN " + r.s.d.Table("ledger_txs") +
		" t ON t.part = e.part AND t.id = e.tx WHERE e.part = ? AND e.account = ? AND e.asset = ?"
	args := []any{string(p), string(a), string(asset)}
	if before > 0 {
		q += " AND e.seq < ?"
		args = append(args, before)
	}
	var out []ledger.Entry
	err := r.at.each(ctx, q+" ORDER BY e.seq DESC "+r.s.d.limit(), append(args, max), func(sc Scanner) error {
		e := ledger.Entry{Account: a, Asset: asset}
		var at int64
		err := sc.Scan(&e.Seq, &e.Tx, &e.Kind, &e.Ref, &e.Delta, &e.After, &at)
		e.At = storage.FromMicros(at)
		out = append(out, e)
		return err
	})
	return out, err
}
