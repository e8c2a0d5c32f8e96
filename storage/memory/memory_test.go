package memory_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/storagetest"
)

func harness() storagetest.Harness {
	return storagetest.Harness{
		Open:   func(testing.TB) storage.Store { return memory.New() },
		Second: func(_ testing.TB, s storage.Store) storage.Store { return s },
		Begin: func(t testing.TB, s storage.Store) (storage.Tx, func(bool) error) {
			tx, err := s.(*memory.Store).Begin(t.Context())
			require.NoError(t, err)
			t.Cleanup(func() { _ = tx.Rollback() })
			return s.(*memory.Store).WithTx(tx), func(commit bool) error {
				if commit {
					return tx.Commit()
				}
				return tx.Rollback()
			}
		},
		Reopen: func(t testing.TB, s storage.Store) storage.Store {
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	storagetest.Run(t, harness())
}

type thing struct {
	Hash []byte `db:"hash"`
	Kind string `db:"kind"`
}

var things = storage.NewTable[thing]("things", storage.Index("hash"), storage.Index("kind"))

// An index follows its rows, also of a column of bytes.
func TestIndexFollowsItsRows(t *testing.T) {
	t.Parallel()
	ctx, s, p := context.Background(), memory.New(), storage.Tenant("t")
	require.NoError(t, s.Open(ctx, things.Table))
	find := func(c storage.Cond) (ids []string) {
		t.Helper()
		rows, err := s.Find(ctx, storage.Query{Table: things.Table, Partition: p, Where: []storage.Cond{c}})
		require.NoError(t, err)
		for _, r := range rows {
			ids = append(ids, r.ID)
		}
		return ids
	}
	for version, v := range []thing{{[]byte("x"), "a"}, {[]byte("y"), "b"}, {[]byte("y"), "a"}} {
		c := storage.Change{ID: fmt.Sprint(version), Partition: p, Put: []storage.Row{things.Row("1", int64(version), time.Time{}, v)}}
		require.NoError(t, s.Commit(ctx, c)[0])
		for _, hash := range []string{"x", "y"} {
			require.Equal(t, string(v.Hash) == hash, len(find(storage.Cond{Column: "hash", Op: storage.Eq, Value: []byte(hash)})) == 1)
		}
		for _, kind := range []string{"a", "b"} {
			require.Equal(t, v.Kind == kind, len(find(storage.Cond{Column: "kind", Op: storage.Eq, Value: kind})) == 1)
		}
	}
	require.NoError(t, s.Commit(ctx, storage.Change{ID: "drop", Partition: p, Drop: []storage.Row{things.Row("1", 3, time.Time{}, thing{})}})[0])
	require.Empty(t, find(storage.Cond{Column: "kind", Op: storage.Eq, Value: "a"}))
}

// A posting between known accounts goes a short way, which refuses what the long way does.
func TestShortWayRefuses(t *testing.T) {
	t.Parallel()
	ctx, s, p := context.Background(), memory.New(), storage.Tenant("t")
	require.NoError(t, s.Open(ctx))
	post := func(id string, txs ...ledger.Tx) error {
		for i := range txs {
			if txs[i].Legs == nil {
				txs[i].Legs = []ledger.Leg{{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -1}, {Account: ledger.FeesPlatform, Asset: "ETH", Delta: 1}}
			}
		}
		return s.Commit(ctx, storage.Change{ID: id, Partition: p, Post: txs})[0]
	}
	require.NoError(t, post("first", ledger.Tx{ID: "first"}))
	long := strings.Repeat("x", 201)
	for name, err := range map[string]error{
		"no change":          post("", ledger.Tx{ID: "a"}),
		"a long change":      post(long, ledger.Tx{ID: "a"}),
		"no id":              post("a", ledger.Tx{}),
		"a long id":          post("a", ledger.Tx{ID: long}),
		"an id with a zero":  post("a", ledger.Tx{ID: "a\x00"}),
		"a long kind":        post("a", ledger.Tx{ID: "a", Kind: ledger.Kind(long)}),
		"a long reference":   post("a", ledger.Tx{ID: "b", Ref: long}),
		"a zero in the kind": post("a", ledger.Tx{ID: "a", Kind: "\x00"}),
		"twice":              post("a", ledger.Tx{ID: "b"}, ledger.Tx{ID: "b"}),
		"no legs":            post("a", ledger.Tx{ID: "a", Legs: []ledger.Leg{}}),
		"an account twice":   post("a", ledger.Tx{ID: "a", Legs: []ledger.Leg{{Account: ledger.FeesPlatform, Asset: "ETH", Delta: 1}, {Account: ledger.FeesPlatform, Asset: "ETH", Delta: -1}}}),
		"unbalanced":         post("a", ledger.Tx{ID: "a", Legs: []ledger.Leg{{Account: ledger.Chain("ETH"), Asset: "ETH", Delta: -2}, {Account: ledger.FeesPlatform, Asset: "ETH", Delta: 1}}}),
		"nothing":            post("a", ledger.Tx{ID: "a", Legs: []ledger.Leg{{Account: ledger.Chain("ETH"), Asset: "ETH"}, {Account: ledger.FeesPlatform, Asset: "ETH"}}}),
	} {
		require.Error(t, err, name)
	}
	balances, err := s.Balances(ctx, p, ledger.FeesPlatform)
	require.NoError(t, err)
	require.Equal(t, ledger.Amount(1), balances[0].Posted)
	require.NoError(t, post(strings.Repeat("x", 200), ledger.Tx{ID: strings.Repeat("y", 200), Kind: ledger.Kind(strings.Repeat("k", 200)), Ref: strings.Repeat("r", 200)}))
	require.NoError(t, post("two", ledger.Tx{ID: "two/1"}, ledger.Tx{ID: "two/2"}))
}
