package verdict

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Writes is the net effect of a batch: each row, balance and level once.
// Store Drops first, then Rows: a row whose unique keys moved is in both, as one
// to insert, because its old keys may have passed to another row.
type Writes struct {
	Drops    []RowKey
	Rows     []RowWrite
	Txs      []TxWrite
	Balances []BalanceWrite
	Entries  []EntryWrite
	Levels   []LevelWrite
}

// Empty reports whether there is nothing to store.
func (w *Writes) Empty() bool {
	return len(w.Drops)+len(w.Rows)+len(w.Txs)+len(w.Balances)+len(w.Levels) == 0
}

// RowWrite is one row as it is to stand. Insert says that no such row is
// stored when it is written (also where Drops just took it).
type RowWrite struct {
	Table  *storage.Table
	Insert bool
	storage.Stored
}

// TxWrite is one posted transaction.
type TxWrite struct {
	Partition storage.Partition
	ID        string
	Change    string
	Kind      ledger.Kind
	Ref       string
	At        int64 // µs
}

// BalanceWrite is one balance as it is to stand.
type BalanceWrite struct {
	Partition storage.Partition
	ledger.Balance
}

// EntryWrite is one line of an account's history.
type EntryWrite struct {
	Partition storage.Partition
	Account   ledger.Account
	Asset     ledger.Asset
	Seq       int64
	Tx        string
	Delta     ledger.Amount
	After     ledger.Amount
}

// LevelWrite is one counter as it is to stand.
type LevelWrite struct {
	Partition storage.Partition
	Name      string
	Value     int64
}

// Judge gives each Change its verdict and returns the net effect of those that
// happen. A nil verdict with nothing of that Change in Writes means that it was
// there already. The batch may be judged again over another State.
func (b *Batch) Judge(s State) ([]error, *Writes) {
	j := &judge{
		state: s, rows: map[RowKey]*row{}, holders: map[UniqueKey]string{}, txs: map[TxKey]string{},
		balances: map[BalanceKey]*balance{}, levels: map[LevelKey]*level{},
	}
	errs := make([]error, len(b.items))
	for i := range b.items {
		if it := &b.items[i]; it.err != nil {
			errs[i] = it.err
		} else {
			errs[i] = j.one(it)
		}
	}
	return errs, j.net()
}

// judge is the state as the Changes so far have left it.
type judge struct {
	state    State
	rows     map[RowKey]*row
	touched  []*row
	holders  map[UniqueKey]string // "" = freed
	txs      map[TxKey]string
	balances map[BalanceKey]*balance
	moved    []*balance
	levels   map[LevelKey]*level
	counted  []*level
	out      Writes
}

type row struct {
	key   RowKey
	was   Stamp // as loaded
	now   Stamp
	due   int64
	value []any
	dirty bool
}

type balance struct {
	p     storage.Partition
	b     ledger.Balance
	dirty bool
}

type level struct {
	key   LevelKey
	value int64
	dirty bool
}

func (j *judge) row(k RowKey) *row {
	r := j.rows[k]
	if r == nil {
		s := j.state.Row(k)
		r = &row{key: k, was: s, now: s}
		j.rows[k] = r
	}
	return r
}

func (j *judge) holder(k UniqueKey) string {
	if id, ok := j.holders[k]; ok {
		return id
	}
	id, _ := j.state.Holder(k)
	return id
}

func (j *judge) tx(k TxKey) (string, bool) {
	if c, ok := j.txs[k]; ok {
		return c, true
	}
	return j.state.Tx(k)
}

func (j *judge) balance(k BalanceKey) *balance {
	b := j.balances[k]
	if b == nil {
		b = &balance{p: k.Partition, b: j.state.Balance(k)}
		b.b.Account, b.b.Asset = k.Account, k.Asset
		j.balances[k] = b
	}
	return b
}

func (j *judge) level(k LevelKey) *level {
	l := j.levels[k]
	if l == nil {
		l = &level{key: k, value: j.state.Level(k)}
		j.levels[k] = l
	}
	return l
}

// one judges a Change in the order that storage.Change states, and applies it
// only once nothing can stop it any more.
func (j *judge) one(it *item) error {
	c := it.c
	if j.already(c) {
		return nil
	}
	if !j.versions(c) {
		return storage.ErrConflict
	}
	if err := j.unique(it); err != nil {
		return err
	}
	if err := j.empty(c); err != nil {
		return err
	}
	levels, err := j.raise(c)
	if err != nil {
		return err
	}
	sums, err := j.count(it)
	if err != nil {
		return err
	}
	post, err := j.post(c)
	if err != nil {
		return err
	}
	j.applyRows(it)
	for _, l := range levels {
		j.setLevel(l)
	}
	for i := range sums {
		j.setCounter(&sums[i], c.ID)
	}
	j.tell(it)
	j.applyPost(c, post)
	return nil
}

func (j *judge) already(c *storage.Change) bool {
	for i := range c.Post {
		if by, ok := j.tx(TxKey{c.Partition, c.Post[i].ID}); ok && by == c.ID {
			return true
		}
	}
	for i := range c.Put {
		if s := j.row(RowKey{c.Put[i].Table, c.Partition, c.Put[i].ID}).now; s.Version > 0 && s.Change == c.ID {
			return true
		}
	}
	if len(c.Put)+len(c.Post)+len(c.Level)+len(c.Count)+len(c.Tell) > 0 {
		return false
	}
	for i := range c.Drop {
		if j.row(RowKey{c.Drop[i].Table, c.Partition, c.Drop[i].ID}).now.Version > 0 {
			return false
		}
	}
	return true
}

func (j *judge) versions(c *storage.Change) bool {
	at := func(t *storage.Table, id string) int64 { return j.row(RowKey{t, c.Partition, id}).now.Version }
	for i := range c.Require {
		if at(c.Require[i].Table, c.Require[i].ID) != c.Require[i].Version {
			return false
		}
	}
	for _, rows := range [2][]storage.Row{c.Put, c.Drop} {
		for i := range rows {
			if at(rows[i].Table, rows[i].ID) != rows[i].Version {
				return false
			}
		}
	}
	return true
}

// unique looks at the state that the Change leaves: a key that one of its own
// rows gives up may be taken by another of them.
func (j *judge) unique(it *item) error {
	c := it.c
	var taken map[UniqueKey]string
	for i := range c.Put {
		t := c.Put[i].Table
		for u, key := range it.puts[i].keys {
			k := UniqueKey{t, c.Partition, u, key}
			holder := j.holder(k)
			if holder != "" && holder != c.Put[i].ID && !j.givesUp(it, t, holder, u, key) {
				return duplicate(k, it.puts[i].scalars)
			}
			if len(c.Put) == 1 {
				continue
			}
			if taken == nil {
				taken = map[UniqueKey]string{}
			}
			if _, twice := taken[k]; twice {
				return duplicate(k, it.puts[i].scalars)
			}
			taken[k] = c.Put[i].ID
		}
	}
	return nil
}

func (j *judge) givesUp(it *item, t *storage.Table, id string, unique int, key string) bool {
	for i := range it.c.Drop {
		if it.c.Drop[i].Table == t && it.c.Drop[i].ID == id {
			return true
		}
	}
	for i := range it.c.Put {
		if it.c.Put[i].Table == t && it.c.Put[i].ID == id {
			return it.puts[i].keys[unique] != key
		}
	}
	return false
}

func duplicate(k UniqueKey, scalars []any) error {
	values := UniqueScalars(k.Table, k.Unique, scalars)
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = Key([]any{v})
		if n, ok := v.(int64); ok {
			texts[i] = strings.TrimSuffix(Key([]any{n}), ";")
		}
	}
	return &storage.DuplicateError{Table: k.Table.Name, Key: strings.Join(k.Table.Uniques[k.Unique], ","), Value: strings.Join(texts, ",")}
}

func (j *judge) empty(c *storage.Change) error {
	for _, a := range c.Empty {
		for _, b := range j.state.Account(AccountKey{c.Partition, a}) {
			if b := j.balance(BalanceKey{c.Partition, a, b.Asset}); !b.b.Zero() {
				return &storage.NotEmptyError{Account: a, Asset: b.b.Asset}
			}
		}
		for _, b := range j.moved {
			if b.p == c.Partition && b.b.Account == a && !b.b.Zero() {
				return &storage.NotEmptyError{Account: a, Asset: b.b.Asset}
			}
		}
	}
	return nil
}

type raised struct {
	l     *level
	value int64
}

func (j *judge) raise(c *storage.Change) ([]raised, error) {
	if len(c.Level) == 0 {
		return nil, nil
	}
	out := make([]raised, 0, len(c.Level))
	for i := range c.Level {
		d := &c.Level[i]
		r := raised{l: j.level(LevelKey{c.Partition, d.Name})}
		r.value = r.l.value
		for k := range out { // the same counter twice in one Change
			if out[k].l == r.l {
				r.value = out[k].value
			}
		}
		v, err := Raise(d, r.value)
		if err != nil {
			return nil, err
		}
		r.value = v
		out = append(out, r)
	}
	return out, nil
}

// Raise moves a counter that stands at value, or says *storage.LevelError.
func Raise(d *storage.Level, value int64) (int64, error) {
	if d.Delta > 0 && (value > math.MaxInt64-d.Delta || value+d.Delta > d.Max) {
		return value, &storage.LevelError{Name: d.Name, Value: value, Delta: d.Delta, Max: d.Max}
	}
	return max(value+d.Delta, 0), nil
}

func (j *judge) setLevel(r raised) {
	r.l.value = r.value
	if !r.l.dirty {
		r.l.dirty = true
		j.counted = append(j.counted, r.l)
	}
}

type sum struct {
	r     *row
	value int64
}

// count adds up the counters as they will stand, each once.
func (j *judge) count(it *item) ([]sum, error) {
	c := it.c
	if len(c.Count) == 0 {
		return nil, nil
	}
	out := make([]sum, 0, len(c.Count))
	for i := range c.Count {
		r := j.row(RowKey{storage.Counters.Table, c.Partition, c.Count[i].Name})
		at := slices.IndexFunc(out, func(s sum) bool { return s.r == r })
		if at < 0 {
			at = len(out)
			out = append(out, sum{r, j.standing(it, r)})
		}
		v, err := ledger.Amount(out[at].value).Add(ledger.Amount(c.Count[i].Delta))
		if err != nil {
			return nil, fmt.Errorf("change %q: counter %q: %w", c.ID, c.Count[i].Name, err)
		}
		out[at].value = int64(v)
	}
	return out, nil
}

// standing is what a counter's row holds once the Change's own rows are applied.
func (j *judge) standing(it *item, r *row) int64 {
	for i := range it.c.Drop {
		if it.c.Drop[i].Table == r.key.Table && it.c.Drop[i].ID == r.key.ID {
			return 0
		}
	}
	for i := range it.c.Put {
		if it.c.Put[i].Table == r.key.Table && it.c.Put[i].ID == r.key.ID {
			return it.puts[i].scalars[0].(int64)
		}
	}
	return r.now.Value
}

func (j *judge) setCounter(s *sum, change string) {
	s.r.now.Version++
	s.r.now.Change, s.r.now.Value = change, s.value
	s.r.due, s.r.value = 0, []any{s.value}
	j.touch(s.r)
}

// tell numbers the events behind those of the partition's stream, and makes it due.
func (j *judge) tell(it *item) {
	c := it.c
	if len(it.tell) == 0 {
		return
	}
	stream := j.row(RowKey{storage.Streams.Table, c.Partition, storage.StreamID})
	last := stream.now.Value
	for _, scalars := range it.tell {
		last++
		event := j.row(RowKey{storage.Events.Table, c.Partition, storage.EventID(last)})
		event.now, event.value = Stamp{Version: 1, Change: c.ID}, scalars
		j.touch(event)
	}
	stream.now.Version++
	stream.now.Change, stream.now.Value = c.ID, last
	stream.due, stream.value = storage.Micros(c.Tell[0].At), []any{last}
	j.touch(stream)
}

// step is one leg as it will be applied.
type step struct {
	b     *balance
	after ledger.Balance
	tx    int
	leg   *ledger.Leg
}

func (j *judge) post(c *storage.Change) ([]step, error) {
	if len(c.Post) == 0 {
		return nil, nil
	}
	for i := range c.Post {
		if _, ok := j.tx(TxKey{c.Partition, c.Post[i].ID}); ok {
			return nil, &storage.DuplicateError{Table: "ledger", Key: storage.ColID, Value: c.Post[i].ID}
		}
	}
	var steps []step
	for i := range c.Post {
		for k := range c.Post[i].Legs {
			l := &c.Post[i].Legs[k]
			b := j.balance(BalanceKey{c.Partition, l.Account, l.Asset})
			from := b.b
			if i > 0 { // an earlier Tx of this Change may have moved it
				for n := len(steps) - 1; n >= 0; n-- {
					if steps[n].b == b {
						from = steps[n].after
						break
					}
				}
			}
			after, err := from.Apply(*l)
			if err != nil {
				return nil, err
			}
			steps = append(steps, step{b, after, i, l})
		}
	}
	return steps, nil
}

func (j *judge) applyPost(c *storage.Change, steps []step) {
	for i := range c.Post {
		tx := &c.Post[i]
		j.txs[TxKey{c.Partition, tx.ID}] = c.ID
		j.out.Txs = append(j.out.Txs, TxWrite{c.Partition, tx.ID, c.ID, tx.Kind, tx.Ref, storage.Micros(tx.At)})
	}
	for i := range steps {
		s := &steps[i]
		s.b.b = s.after
		if !s.b.dirty {
			s.b.dirty = true
			j.moved = append(j.moved, s.b)
		}
		if s.leg.Delta != 0 {
			j.out.Entries = append(j.out.Entries, EntryWrite{
				Partition: c.Partition, Account: s.leg.Account, Asset: s.leg.Asset, Seq: s.after.Seq,
				Tx: c.Post[s.tx].ID, Delta: s.leg.Delta, After: s.after.Posted,
			})
		}
	}
}

func (j *judge) applyRows(it *item) {
	c := it.c
	for i := range c.Drop {
		r := j.row(RowKey{c.Drop[i].Table, c.Partition, c.Drop[i].ID})
		j.release(r, nil)
		r.now, r.value = Stamp{}, nil
		j.touch(r)
	}
	for i := range c.Put {
		r := j.row(RowKey{c.Put[i].Table, c.Partition, c.Put[i].ID})
		j.release(r, it.puts[i].keys)
	}
	for i := range c.Put {
		r := j.row(RowKey{c.Put[i].Table, c.Partition, c.Put[i].ID})
		r.now = Stamp{Version: c.Put[i].Version + 1, Change: c.ID, Keys: it.puts[i].keys}
		r.due, r.value = storage.Micros(c.Put[i].Due), it.puts[i].scalars
		if Stamped(r.key.Table) {
			r.now.Value = r.value[0].(int64)
		}
		for u, key := range r.now.Keys {
			j.holders[UniqueKey{r.key.Table, r.key.Partition, u, key}] = r.key.ID
		}
		j.touch(r)
	}
}

// release frees the row's unique keys that are not among keep.
func (j *judge) release(r *row, keep []string) {
	for u, key := range r.now.Keys {
		if keep == nil || keep[u] != key {
			j.holders[UniqueKey{r.key.Table, r.key.Partition, u, key}] = ""
		}
	}
}

func (j *judge) touch(r *row) {
	if !r.dirty {
		r.dirty = true
		j.touched = append(j.touched, r)
	}
}

// net is what the batch leaves, with each row, balance and level once.
func (j *judge) net() *Writes {
	for _, r := range j.touched {
		replace := r.was.Version > 0 && (r.now.Version == 0 || !slices.Equal(r.was.Keys, r.now.Keys))
		if replace {
			j.out.Drops = append(j.out.Drops, r.key)
		}
		if r.now.Version == 0 {
			continue
		}
		j.out.Rows = append(j.out.Rows, RowWrite{
			Table: r.key.Table, Insert: replace || r.was.Version == 0,
			Stored: storage.Stored{Partition: r.key.Partition, ID: r.key.ID, Version: r.now.Version, Change: r.now.Change, Due: r.due, Scalars: r.value},
		})
	}
	for _, b := range j.moved {
		j.out.Balances = append(j.out.Balances, BalanceWrite{b.p, b.b})
	}
	for _, l := range j.counted {
		j.out.Levels = append(j.out.Levels, LevelWrite{l.key.Partition, l.key.Name, l.value})
	}
	return &j.out
}
