package redisstore

import (
	"hash/fnv"
	"slices"
	"strconv"
	"strings"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// tags is how many hash tags partitions spread over, and with it how many
// masters of a cluster can share the work. It is part of the layout: for ever.
const tags = 64

// layoutVersion is raised when stored data changes its form.
const layoutVersion = "1"

// tagOf is the hash tag of a partition: all its keys, and the due rows among
// them, are in the slot of this tag.
func tagOf(p storage.Partition) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(p))
	return int(h.Sum32() % tags)
}

// keys names what is stored.
type keys struct{ prefix string }

func (k keys) of(tag int, kind, rest string) string {
	return k.prefix + ":{" + strconv.Itoa(tag) + "}:" + kind + ":" + rest
}

func (k keys) schema() string                    { return k.of(0, "schema", "tables") }
func (k keys) txs(p storage.Partition) string    { return k.of(tagOf(p), "tx", string(p)) }
func (k keys) dir(p storage.Partition) string    { return k.of(tagOf(p), "dir", string(p)) }
func (k keys) levels(p storage.Partition) string { return k.of(tagOf(p), "level", string(p)) }

func (k keys) balances(p storage.Partition) string { return k.of(tagOf(p), "bal", string(p)) }

func (k keys) history(p storage.Partition, a ledger.Account, asset ledger.Asset) string {
	return k.of(tagOf(p), "his", string(p)+"\x00"+string(a)+"\x00"+string(asset))
}

func (k keys) rows(t *storage.Table, p storage.Partition) string {
	return k.of(tagOf(p), "row", t.Name+":"+string(p))
}

func (k keys) index(t *storage.Table, x *index, p storage.Partition) string {
	return k.of(tagOf(p), "idx", t.Name+":"+x.name+":"+string(p))
}

// due is the table's due rows of all partitions of the tag.
func (k keys) due(t *storage.Table, tag int) string { return k.of(tag, "due", t.Name) }

// known is the partitions of the tag in which the table ever had a row.
func (k keys) known(t *storage.Table, tag int) string { return k.of(tag, "in", t.Name) }

// index is one sorted set per partition: its columns in order, then the id. It
// also holds what is unique: then no two rows begin alike.
type index struct {
	name   string
	cols   []int // positions in Table.Columns
	unique int   // position in Table.Uniques, or -1
}

// layout is how a table is stored.
type layout struct {
	t       *storage.Table
	indexes []index // the first is that of ids alone
}

func layoutOf(t *storage.Table) *layout {
	l := &layout{t: t, indexes: []index{{unique: -1}}}
	add := func(names []string, unique int) {
		if n := len(names) - 1; names[n] == storage.ColID {
			names = names[:n] // the last of every index
		}
		x := index{name: strings.Join(names, ","), unique: unique}
		if slices.ContainsFunc(l.indexes, func(o index) bool { return o.name == x.name }) {
			return
		}
		for _, name := range names {
			x.cols = append(x.cols, slices.IndexFunc(t.Columns, func(c storage.Column) bool { return c.Name == name }))
		}
		l.indexes = append(l.indexes, x)
	}
	for i, names := range t.Uniques {
		add(names, i)
	}
	for _, names := range t.Indexes {
		add(names, -1)
	}
	return l
}

// unique is the index that holds a Unique of the table.
func (l *layout) unique(n int) *index {
	name := strings.Join(l.t.Uniques[n], ",")
	return &l.indexes[slices.IndexFunc(l.indexes, func(x index) bool { return x.name == name })]
}

// declaration is the table in words: two that differ are stored differently.
func (l *layout) declaration() string {
	var b strings.Builder
	for _, c := range l.t.Columns {
		b.WriteString(c.Name + " " + strconv.Itoa(int(c.Kind)) + "; ")
	}
	for _, x := range l.indexes[1:] {
		if x.unique >= 0 {
			b.WriteString("unique ")
		}
		b.WriteString("(" + x.name + ") ")
	}
	return strings.TrimSpace(b.String())
}
