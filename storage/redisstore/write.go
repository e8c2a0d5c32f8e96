package redisstore

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// malformed checks one Change as every backend does.
func malformed(o *open, one []storage.Change) error {
	b := verdict.Prepare(o.tables.Has, one)
	if len(b.Partitions()) > 0 {
		return nil
	}
	errs, _ := b.Judge(verdict.NewLoaded())
	return errs[0]
}

// writer makes the script's input from Changes of one partition; commit.lua says
// what it looks like.
type writer struct {
	o *open
	k keys
	p storage.Partition

	at       []int // positions of the Changes in the batch
	keys     []string
	changes  packer
	balances packer
	count    int // of balances
	places   int // that the Changes take
	byName   map[verdict.BalanceKey]int
	tables   packer
	layouts  []*layout
	buf      []byte
}

func newWriter(o *open, k keys, p storage.Partition) *writer {
	return &writer{
		o: o, k: k, p: p, keys: []string{k.txs(p), k.balances(p), k.dir(p), k.levels(p)},
		byName: map[verdict.BalanceKey]int{},
	}
}

// key names a key and gives its place among KEYS.
func (w *writer) key(name string) int64 {
	w.keys = append(w.keys, name)
	return int64(len(w.keys))
}

// evaluation is the call that commits what was added.
func (w *writer) evaluation() evaluation {
	p := packer{b: make([]byte, 0, 32+len(w.p)+len(w.changes.b)+len(w.balances.b)+len(w.tables.b))}
	p.array(4)
	p.str(string(w.p))
	p.array(3 * w.count)
	p.b = append(p.b, w.balances.b...)
	p.array(len(w.layouts))
	p.b = append(p.b, w.tables.b...)
	p.array(w.places)
	p.b = append(p.b, w.changes.b...)
	return evaluation{keys: w.keys, args: []any{p.b}}
}

// table is the place of a table among those of the call.
func (w *writer) table(t *storage.Table) int64 {
	for i, l := range w.layouts {
		if l.t == t {
			return int64(i + 1)
		}
	}
	l, p, tag := w.o.layouts[t], &w.tables, tagOf(w.p)
	w.layouts = append(w.layouts, l)
	p.array(4)
	p.int(w.key(w.k.rows(t, w.p)))
	p.int(w.key(w.k.due(t, tag)))
	p.int(w.key(w.k.known(t, tag)))
	p.array(len(l.indexes))
	for i := range l.indexes {
		x := &l.indexes[i]
		p.array(2 + len(x.cols))
		p.int(w.key(w.k.index(t, x, w.p)))
		if x.unique >= 0 {
			p.int(1)
		} else {
			p.int(0)
		}
		for _, c := range x.cols {
			p.int(int64(c + 1))
		}
	}
	return int64(len(w.layouts))
}

// balance is the place of a balance among those of the call.
func (w *writer) balance(a ledger.Account, asset ledger.Asset) int64 {
	k := verdict.BalanceKey{Partition: w.p, Account: a, Asset: asset}
	at, ok := w.byName[k]
	if !ok {
		w.count++
		at = w.count
		w.byName[k] = at
		p := &w.balances
		p.head(len(a) + 1 + len(asset))
		p.b = append(append(append(p.b, a...), 0), asset...)
		if a.Floored() {
			p.int(1)
		} else {
			p.int(0)
		}
		p.int(w.key(w.k.history(w.p, a, asset)))
	}
	return int64(at)
}

// add appends a well-formed Change that stands at position at of the batch.
func (w *writer) add(c *storage.Change, at int) error {
	rows := make([][]any, len(c.Put))
	for i := range c.Put {
		var err error
		if rows[i], err = c.Put[i].Table.Encode(c.Put[i].Value); err != nil {
			return err
		}
	}
	w.at = append(w.at, at)
	p := &w.changes
	p.str(c.ID)
	list(p, c.Require, func(g *storage.Guard) {
		p.array(3)
		p.int(w.table(g.Table))
		p.str(g.ID)
		p.decimal(g.Version)
	})
	n := 0
	list(p, c.Put, func(r *storage.Row) {
		w.put(c, r, rows[n])
		n++
	})
	list(p, c.Drop, func(r *storage.Row) {
		p.array(3)
		p.int(w.table(r.Table))
		p.str(r.ID)
		p.decimal(r.Version)
	})
	list(p, c.Level, func(l *storage.Level) {
		p.array(5)
		p.str(l.Name)
		p.halves(l.Delta)
		p.halves(l.Max)
	})
	list(p, c.Empty, func(a *ledger.Account) { p.str(string(*a)) })
	list(p, c.Count, func(n *storage.Count) {
		p.array(4)
		p.int(w.table(storage.Counters.Table))
		p.str(n.Name)
		p.halves(n.Delta)
	})
	w.tell(c)
	n = 0
	for i := range c.Post {
		n += 3 + 6*len(c.Post[i].Legs)
	}
	p.int(int64(n))
	for i := range c.Post {
		w.post(c, &c.Post[i])
	}
	w.places += 9 + n
	return nil
}

func list[T any](p *packer, items []T, each func(*T)) {
	if len(items) == 0 {
		p.none()
		return
	}
	p.array(len(items))
	for i := range items {
		each(&items[i])
	}
}

func (w *writer) put(c *storage.Change, r *storage.Row, scalars []any) {
	t := w.table(r.Table)
	l := w.o.layouts[r.Table]
	due := storage.Micros(r.Due)
	p := &w.changes
	p.array(6 + len(l.indexes))
	p.int(t)
	p.str(r.ID)
	p.decimal(r.Version)
	p.decimal(r.Version + 1)
	p.decimal(due)
	p.bytes(packRow(&storage.Stored{Version: r.Version + 1, Change: c.ID, Due: due, Scalars: scalars}))
	for i := range l.indexes {
		p.bytes(l.indexes[i].prefix(scalars))
	}
}

// tell writes the events as their rows are to stand, but for the ids: numbers are given by
// the script. Prepare has checked that they can be encoded.
func (w *writer) tell(c *storage.Change) {
	p := &w.changes
	if len(c.Tell) == 0 {
		p.none()
		return
	}
	p.array(3 + len(c.Tell))
	p.int(w.table(storage.Streams.Table))
	p.int(w.table(storage.Events.Table))
	p.decimal(storage.Micros(c.Tell[0].At))
	for i := range c.Tell {
		scalars, _ := storage.Events.Encode(c.Tell[i])
		p.bytes(packRow(&storage.Stored{Version: 1, Change: c.ID, Scalars: scalars}))
	}
}

func (w *writer) post(c *storage.Change, t *ledger.Tx) {
	p := &w.changes
	p.str(t.ID)
	b := w.buf[:0]
	if c.ID != t.ID {
		b = append(b, c.ID...)
	}
	b = append(append(append(append(append(b, 0), t.Kind...), 0), t.Ref...), 0)
	w.buf = strconv.AppendInt(b, storage.Micros(t.At), 10)
	p.bytes(w.buf)
	p.int(int64(6 * len(t.Legs)))
	for i := range t.Legs {
		l := &t.Legs[i]
		p.int(w.balance(l.Account, l.Asset))
		p.decimal(int64(l.Delta))
		p.halves(int64(l.Delta))
		p.halves(int64(l.Hold))
	}
}

// verdicts reads the script's answer.
func (w *writer) verdicts(refused []any, changes []storage.Change, errs []error) error {
	for _, r := range refused {
		a := answer{of: r}
		i := a.number(0)
		if a.bad || i >= len(w.at) {
			return errForeign
		}
		at := w.at[i]
		if errs[at] = w.verdict(&changes[at], &a); a.bad {
			return errForeign
		}
	}
	return nil
}

func (w *writer) verdict(c *storage.Change, a *answer) error {
	switch a.text(1) {
	case "c":
		return storage.ErrConflict
	case "u":
		return w.duplicate(c, a)
	case "t":
		if k := a.number(2); k < len(c.Post) {
			return &storage.DuplicateError{Table: "ledger", Key: storage.ColID, Value: c.Post[k].ID}
		}
	case "b":
		return &storage.RowError{Table: storage.Streams.Table.Name, Partition: c.Partition, ID: storage.StreamID, Err: errForeign}
	case "e":
		return &storage.NotEmptyError{Account: ledger.Account(a.text(2)), Asset: ledger.Asset(a.text(3))}
	case "l":
		if k := a.number(2); k < len(c.Level) {
			_, err := verdict.Raise(&c.Level[k], a.amount(3))
			a.bad = a.bad || err == nil
			return err
		}
	case "n":
		if k := a.number(2); k < len(c.Count) {
			return fmt.Errorf("change %q: counter %q: %w", c.ID, c.Count[k].Name, ledger.ErrOverflow)
		}
	case "f":
		if k, i := a.number(2), a.number(3); k < len(c.Post) && i < len(c.Post[k].Legs) {
			from := ledger.Balance{Posted: ledger.Amount(a.amount(4)), Held: ledger.Amount(a.amount(5))}
			_, err := from.Apply(c.Post[k].Legs[i])
			a.bad = a.bad || err == nil
			return err
		}
	}
	a.bad = true
	return nil
}

// duplicate words the error as Batch.Judge of package verdict does.
func (w *writer) duplicate(c *storage.Change, a *answer) error {
	k, i := a.number(2), a.number(3)
	if k >= len(c.Put) || i >= len(w.o.layouts[c.Put[k].Table].indexes) {
		a.bad = true
		return nil
	}
	t := c.Put[k].Table
	unique := w.o.layouts[t].indexes[i].unique
	scalars, err := t.Encode(c.Put[k].Value)
	if err != nil || unique < 0 {
		a.bad = true
		return err
	}
	values := verdict.UniqueScalars(t, unique, scalars)
	texts := make([]string, len(values))
	for n, v := range values {
		if texts[n] = verdict.Key([]any{v}); isInt(v) {
			texts[n] = strings.TrimSuffix(texts[n], ";")
		}
	}
	return &storage.DuplicateError{Table: t.Name, Key: strings.Join(t.Uniques[unique], ","), Value: strings.Join(texts, ",")}
}

func isInt(v any) bool {
	_, ok := v.(int64)
	return ok
}

// answer is one array of the script's answer; what is not there makes it bad.
type answer struct {
	of  any
	bad bool
}

func (a *answer) item(i int) any {
	if list, ok := a.of.([]any); ok && i < len(list) {
		return list[i]
	}
	a.bad = true
	return nil
}

func (a *answer) number(i int) int {
	n, ok := a.item(i).(int64)
	if !ok || n < 0 {
		a.bad = true
		return 0
	}
	return int(n)
}

func (a *answer) text(i int) string {
	s, ok := a.item(i).(string)
	a.bad = a.bad || !ok
	return s
}

func (a *answer) amount(i int) int64 {
	n, err := strconv.ParseInt(a.text(i), 10, 64)
	if err != nil {
		a.bad = true
	}
	return n
}
