package verdict

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Sizes in bytes, the same on every backend, so that all indexes can be built.
const (
	MaxChangeID = 200
	MaxID       = 200 // rows, transactions, references, accounts, partitions, levels
	MaxAsset    = 64
	MaxIndexed  = 500 // text in a column that is indexed or unique
)

// RowKey names one row.
type RowKey struct {
	Table     *storage.Table
	Partition storage.Partition
	ID        string
}

// UniqueKey names what one of a table's Uniques keeps apart. Key is made by Key.
type UniqueKey struct {
	Table     *storage.Table
	Partition storage.Partition
	Unique    int // position in Table.Uniques
	Key       string
}

// TxKey names a ledger transaction.
type TxKey struct {
	Partition storage.Partition
	ID        string
}

// BalanceKey names one balance.
type BalanceKey struct {
	Partition storage.Partition
	Account   ledger.Account
	Asset     ledger.Asset
}

// AccountKey names an account with all its balances.
type AccountKey struct {
	Partition storage.Partition
	Account   ledger.Account
}

// LevelKey names a counter.
type LevelKey struct {
	Partition storage.Partition
	Name      string
}

// Key joins scalars of a unique key so that no two lists make the same text.
func Key(scalars []any) string {
	if s, ok := scalars[0].(string); ok && len(scalars) == 1 {
		return s
	}
	var b strings.Builder
	for _, v := range scalars {
		switch v := v.(type) {
		case string:
			b.WriteString(strconv.Itoa(len(v)))
			b.WriteByte(':')
			b.WriteString(v)
		case []byte:
			b.WriteString(strconv.Itoa(len(v)))
			b.WriteByte(':')
			b.Write(v)
		case int64:
			b.WriteString(strconv.FormatInt(v, 10))
			b.WriteByte(';')
		}
	}
	return b.String()
}

// Keys are the unique keys of a row's scalars, in the order of t.Uniques.
func Keys(t *storage.Table, scalars []any) []string {
	if len(t.Uniques) == 0 {
		return nil
	}
	keys := make([]string, len(t.Uniques))
	for i := range t.Uniques {
		keys[i] = Key(UniqueScalars(t, i, scalars))
	}
	return keys
}

// UniqueScalars picks the scalars of the table's i-th unique key.
func UniqueScalars(t *storage.Table, i int, scalars []any) []any {
	out := make([]any, 0, len(t.Uniques[i]))
	for _, name := range t.Uniques[i] {
		for at := range t.Columns {
			if t.Columns[at].Name == name {
				out = append(out, scalars[at])
			}
		}
	}
	return out
}

// Batch is a list of Changes, checked and encoded.
type Batch struct{ items []item }

type item struct {
	c    *storage.Change
	err  error // malformed
	puts []put
	tell [][]any // the scalars of its events
}

type put struct {
	scalars []any
	keys    []string
}

// Prepare checks and encodes the Changes. open says whether a table was opened.
func Prepare(open func(*storage.Table) bool, changes []storage.Change) *Batch {
	b := &Batch{items: make([]item, len(changes))}
	for i := range changes {
		it := &b.items[i]
		it.c = &changes[i]
		if it.puts, it.err = check(open, it.c); it.err == nil {
			it.tell, it.err = checkTell(open, it.c)
		}
	}
	return b
}

// Fail settles Change i with err, as if it were malformed, unless it is: for
// backends that have to pass over some of a batch.
func (b *Batch) Fail(i int, err error) {
	if b.items[i].err == nil {
		b.items[i].err = err
	}
}

// Partitions lists what the well-formed Changes touch, sorted.
func (b *Batch) Partitions() []storage.Partition {
	var out []storage.Partition
	for i := range b.items {
		if b.items[i].err == nil {
			out = append(out, b.items[i].c.Partition)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func malformed(c *storage.Change, format string, args ...any) error {
	return fmt.Errorf("%w: change %q: %s", storage.ErrMalformed, c.ID, fmt.Sprintf(format, args...))
}

func text(s string, max int) bool { return s != "" && len(s) <= max && storage.ValidText(s) }

func check(open func(*storage.Table) bool, c *storage.Change) ([]put, error) {
	switch {
	case !text(c.ID, MaxChangeID):
		return nil, malformed(c, "its id must be 1 to %d bytes of text", MaxChangeID)
	case !text(string(c.Partition), MaxID):
		return nil, malformed(c, "it names no partition")
	case len(c.Put)+len(c.Drop)+len(c.Post) == 0:
		return nil, malformed(c, "it holds no put, drop or post")
	}
	if err := checkPosts(c); err != nil {
		return nil, err
	}
	for _, g := range c.Require {
		if g.Table == nil || !open(g.Table) || !text(g.ID, MaxID) || g.Version < 0 {
			return nil, malformed(c, "guard of %q", g.ID)
		}
	}
	for _, l := range c.Level {
		if !text(l.Name, MaxID) {
			return nil, malformed(c, "level without a usable name")
		}
	}
	for _, n := range c.Count {
		switch {
		case !open(storage.Counters.Table):
			return nil, malformed(c, "table %s was not opened", storage.Counters.Name)
		case !text(n.Name, MaxID):
			return nil, malformed(c, "counter without a usable name")
		}
	}
	for _, a := range c.Empty {
		if !text(string(a), MaxID) {
			return nil, malformed(c, "account to be empty without a usable name")
		}
	}
	if err := checkRows(open, c); err != nil {
		return nil, err
	}
	return encode(c)
}

// checkPosts is the part of the check that concerns the ledger.
func checkPosts(c *storage.Change) error {
	for i := range c.Post {
		tx := &c.Post[i]
		if err := tx.Check(); err != nil {
			return fmt.Errorf("change %q: %w", c.ID, err)
		}
		if !text(tx.ID, MaxID) || !optional(string(tx.Kind)) || !optional(tx.Ref) {
			return malformed(c, "ledger transaction %q", tx.ID)
		}
		for j := range tx.Legs {
			if l := &tx.Legs[j]; !text(string(l.Account), MaxID) || !text(string(l.Asset), MaxAsset) {
				return malformed(c, "ledger transaction %q: leg %d", tx.ID, j)
			}
		}
		for j := range i {
			if c.Post[j].ID == tx.ID {
				return malformed(c, "ledger transaction %q twice", tx.ID)
			}
		}
	}
	return nil
}

// checkTell checks and encodes the events.
func checkTell(open func(*storage.Table) bool, c *storage.Change) ([][]any, error) {
	if len(c.Tell) == 0 {
		return nil, nil
	}
	for _, t := range []*storage.Table{storage.Events.Table, storage.Streams.Table} {
		if !open(t) {
			return nil, malformed(c, "table %s was not opened", t.Name)
		}
	}
	out := make([][]any, len(c.Tell))
	for i := range c.Tell {
		v := &c.Tell[i]
		if !text(v.Kind, MaxID) || !optional(v.Object) || v.At.IsZero() {
			return nil, malformed(c, "event %d must have a kind and a time", i)
		}
		scalars, err := storage.Events.Encode(*v)
		if err != nil {
			return nil, fmt.Errorf("change %q: event %d: %w", c.ID, i, err)
		}
		for _, s := range scalars {
			if s, ok := s.(string); ok && !storage.ValidText(s) {
				return nil, malformed(c, "event %d holds no text that can be stored", i)
			}
		}
		out[i] = scalars
	}
	return out, nil
}

func optional(s string) bool { return s == "" || text(s, MaxID) }

func checkRows(open func(*storage.Table) bool, c *storage.Change) error {
	type rowID struct {
		t  *storage.Table
		id string
	}
	var seen map[rowID]bool
	if len(c.Put)+len(c.Drop) > 1 {
		seen = make(map[rowID]bool, len(c.Put)+len(c.Drop))
	}
	one := func(r *storage.Row, least int64) error {
		switch {
		case r.Table == nil:
			return malformed(c, "row %q without a table", r.ID)
		case !open(r.Table):
			return malformed(c, "table %s was not opened", r.Table.Name)
		case !text(r.ID, MaxID):
			return malformed(c, "row of %s: its id must be 1 to %d bytes of text", r.Table.Name, MaxID)
		case r.Version < least:
			return malformed(c, "row %q of %s: version %d", r.ID, r.Table.Name, r.Version)
		case seen[rowID{r.Table, r.ID}]:
			return malformed(c, "row %q of %s twice", r.ID, r.Table.Name)
		}
		if seen != nil {
			seen[rowID{r.Table, r.ID}] = true
		}
		return nil
	}
	for i := range c.Put {
		if err := one(&c.Put[i], 0); err != nil {
			return err
		}
	}
	for i := range c.Drop {
		if err := one(&c.Drop[i], 1); err != nil {
			return err
		}
	}
	return nil
}

func encode(c *storage.Change) ([]put, error) {
	if len(c.Put) == 0 {
		return nil, nil
	}
	puts := make([]put, len(c.Put))
	for i := range c.Put {
		r := &c.Put[i]
		scalars, err := r.Table.Encode(r.Value)
		if err != nil {
			return nil, fmt.Errorf("change %q: %w", c.ID, err)
		}
		for at, v := range scalars {
			if s, ok := v.(string); ok && !storage.ValidText(s) {
				return nil, malformed(c, "row %q of %s: %s is no text that can be stored", r.ID, r.Table.Name, r.Table.Columns[at].Name)
			}
		}
		if err := checkIndexed(c, r, scalars); err != nil {
			return nil, err
		}
		puts[i] = put{scalars: scalars, keys: Keys(r.Table, scalars)}
	}
	return puts, nil
}

func checkIndexed(c *storage.Change, r *storage.Row, scalars []any) error {
	for at := range r.Table.Columns {
		n := 0
		switch v := scalars[at].(type) {
		case string:
			n = len(v)
		case []byte:
			n = len(v)
		}
		if n > MaxIndexed && Indexed(r.Table, r.Table.Columns[at].Name) {
			return malformed(c, "row %q of %s: %s is indexed and longer than %d bytes", r.ID, r.Table.Name, r.Table.Columns[at].Name, MaxIndexed)
		}
	}
	return nil
}

// Indexed reports whether a column is part of an index or unique key, or is kept as if it
// were.
func Indexed(t *storage.Table, column string) bool {
	for _, lists := range [][][]string{t.Uniques, t.Indexes, t.Across, {t.Short}} {
		for _, cols := range lists {
			for _, name := range cols {
				if name == column {
					return true
				}
			}
		}
	}
	return false
}
