package sqlstore

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
)

type walked struct {
	Kind string    `db:"kind"`
	At   time.Time `db:"at"`
}

// A page is read along the index that has its order, and no index is named where none has.
func TestFP08_IndexThatIsNamed(t *testing.T) {
	t.Parallel()
	d := &Dialect{UseIndex: " BY %s"}
	table := storage.NewTable[walked]("walked", storage.Index("kind", "at", storage.ColID), storage.Index("at", storage.ColID), storage.Index("kind")).Table
	kind := storage.Cond{Column: "kind", Op: storage.Eq, Value: "a"}
	since := storage.Cond{Column: "at", Op: storage.Ge, Value: time.Unix(1, 0)}
	at := storage.Order{Column: "at"}
	for name, c := range map[string]struct {
		where []storage.Cond
		order []storage.Order
		want  string
	}{
		"the second index has the order": {[]storage.Cond{since}, []storage.Order{at}, " BY " + d.local("walked") + "_i1"},
		"the first has it for one kind":  {[]storage.Cond{kind, since}, []storage.Order{at}, " BY " + d.local("walked") + "_i0"},
		"another order":                  {[]storage.Cond{since}, []storage.Order{{Column: "kind"}, at}, ""},
		"two directions":                 {[]storage.Cond{since}, []storage.Order{at, {Column: "kind", Desc: true}}, ""},
		"no bound":                       {[]storage.Cond{kind}, []storage.Order{at}, ""},
		"by id alone":                    {[]storage.Cond{kind}, nil, ""},
	} {
		q, filters, err := storage.Query{Table: table, Partition: "p", Where: c.where, Order: c.order}.Ready()
		require.NoError(t, err)
		require.Equal(t, c.want, d.named(&q, filters), name)
	}
	// Where no index is declared with the id, all end with it. The one that begins with most of what is fixed is named.
	short := storage.NewTable[walked]("short", storage.Index("at"), storage.Index("kind", "at"), storage.Index("kind")).Table
	for want, where := range map[string][]storage.Cond{"_i0": {since}, "_i1": {kind, since}} {
		q, filters, err := storage.Query{Table: short, Partition: "p", Where: where, Order: []storage.Order{{Column: "at", Desc: true}}}.Ready()
		require.NoError(t, err)
		require.Equal(t, " BY "+d.local("short")+want, d.named(&q, filters))
	}
	q, filters, err := storage.Query{Table: table, Where: []storage.Cond{since}, Order: []storage.Order{at}}.Ready()
	require.NoError(t, err)
	require.Empty(t, d.named(&q, filters), "each index begins with one partition")
}
