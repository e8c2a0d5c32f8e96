package redisstore

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Encoded scalars sort as their values do, also with something behind them, and
// come back as they were.
func TestScalarsSortAsBytes(t *testing.T) {
	t.Parallel()
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.ReplaceAll(rapid.StringOfN(rapid.SampledFrom([]rune{1, 2, 'a', 'b', 0xff, 0x10ffff}), 0, 4, -1).Draw(t, "text"), "\x00", "")
	})
	blob := rapid.SliceOfN(rapid.SampledFrom([]byte{0, 1, 254, 255}), 0, 4)
	check := func(t *rapid.T, kind storage.Kind, a, b any, want int) {
		x, y := string(encodeScalar(nil, a)), string(encodeScalar(nil, b))
		require.Equal(t, want, cmp.Compare(x, y))
		require.Equal(t, want == 0, strings.HasPrefix(x, y) || strings.HasPrefix(y, x), "one begins with the other")
		back, err := decodeScalar(x, kind)
		require.NoError(t, err)
		require.Equal(t, a, back)
		for _, v := range []string{x, y} {
			next := after(v)
			require.True(t, next == "" || next > v+"\xff\xff\xff", "after all that begin with it")
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		s, u := text.Draw(t, "s"), text.Draw(t, "u")
		check(t, storage.Text, s, u, cmp.Compare(s, u))
		n, m := rapid.Int64().Draw(t, "n"), rapid.Int64().Draw(t, "m")
		check(t, storage.Int, n, m, cmp.Compare(n, m))
		b, c := blob.Draw(t, "b"), blob.Draw(t, "c")
		check(t, storage.Bytes, b, c, bytes.Compare(b, c))
	})
}

func TestRowsComeBack(t *testing.T) {
	t.Parallel()
	type wide struct {
		Text string    `db:"text"`
		N    int64     `db:"n"`
		Flag bool      `db:"flag"`
		At   time.Time `db:"at"`
		Blob []byte    `db:"blob"`
	}
	table := storage.NewTable[wide]("wide")
	for _, size := range []int{0, 1, 30, 31, 254, 255, 65534, 65535, 70000} {
		v := wide{Text: strings.Repeat("x", size), N: math.MinInt64, Flag: true, At: time.UnixMicro(-5).UTC(), Blob: bytes.Repeat([]byte{0}, size)}
		if size == 0 {
			v.Blob = nil
		}
		scalars, err := table.Encode(v)
		require.NoError(t, err)
		r := storage.Stored{Partition: "p", ID: "id", Version: math.MaxInt64, Change: "c", Due: -1, Scalars: scalars}
		back, err := unpackRow(table.Table, "p", "id", string(packRow(&r)))
		require.NoError(t, err)
		require.Equal(t, r, *back)
	}
}

func FuzzUnpackTexts(f *testing.F) {
	p := packer{}
	p.array(3)
	p.str("a")
	p.str(strings.Repeat("b", 300))
	p.decimal(-5)
	f.Add(string(p.b))
	f.Add("\xdd\xff\xff\xff\xff")
	f.Add("\x91\xdb\xff\xff\xff\xff")
	f.Fuzz(func(t *testing.T, s string) {
		parts, err := unpackTexts(s)
		if err != nil {
			return
		}
		total := 0
		p := packer{}
		p.array(len(parts))
		for _, part := range parts {
			total += len(part)
			p.str(part)
		}
		require.LessOrEqual(t, total+len(parts), len(s))
		again, err := unpackTexts(string(p.b))
		require.NoError(t, err)
		require.Equal(t, parts, again)
	})
}

// FuzzRow: a row comes back from its packed form; what was packed by nobody is
// refused, or is a row whose packed form is read as the same.
func FuzzRow(f *testing.F) {
	type wide struct {
		Text string          `db:"text"`
		N    int64           `db:"n"`
		D    decimal.Decimal `db:"d"`
		Blob []byte          `db:"blob"`
		List json.RawMessage `db:"list,json"`
	}
	table := storage.NewTable[wide]("wide")
	first := storage.Stored{Partition: "p", ID: "id", Version: 1, Change: "c", Due: 5, Scalars: []any{"x", int64(-1), "1.5", []byte{0, 255}, "{}"}}
	f.Add(string(packRow(&first)), "x", "c", int64(-1), int64(5), []byte{0, 0, 255})
	f.Add("", strings.Repeat("x", 300), "c", int64(1), int64(0), make([]byte, 40_000))
	f.Add("", strings.Repeat("y", 31), "c", int64(1), int64(0), make([]byte, 200))
	f.Add("\x98\xa1+\xa1c\xa1-", "", "", int64(math.MinInt64), int64(math.MaxInt64), []byte{})
	f.Add("\xdd\x00\x00\x00\x08\xa15\xa1c\xa2-1\xa1\x00\xa8abcdefgh\xa21\x00\xa2\x00\x00\xa3{}\x00", "\u00fc", "c", int64(0), int64(0), []byte("\x00\xff"))
	f.Fuzz(func(t *testing.T, packed, text, change string, n, due int64, blob []byte) {
		if storage.ValidText(text) && storage.ValidText(change) {
			row := storage.Stored{
				Partition: "p", ID: "id", Version: n, Change: change, Due: due,
				Scalars: []any{text, n, "1.5", append([]byte{}, blob...), `"` + text + `"`},
			}
			back, err := unpackRow(table.Table, "p", "id", string(packRow(&row)))
			require.NoError(t, err)
			require.Equal(t, row, *back)
		}
		row, err := unpackRow(table.Table, "p", "id", packed)
		if err != nil {
			require.ErrorIs(t, err, errForeign)
			return
		}
		again, err := unpackRow(table.Table, "p", "id", string(packRow(row)))
		require.NoError(t, err)
		require.Equal(t, row, again)
	})
}

// What a server must be, in the words of INFO and CONFIG GET that no server at
// hand would say.
func TestL06_ServersThatCannotBeHad(t *testing.T) {
	t.Parallel()
	good := func() (info, settings map[string]string) {
		return map[string]string{"redis_version": "7.0.15", "role": "master", "connected_slaves": "0", "cluster_enabled": "0"},
			map[string]string{"appendonly": "yes", "appendfsync": "always", "maxmemory-policy": "noeviction", "no-appendfsync-on-rewrite": "no"}
	}
	s := New(nil, Options{})
	info, settings := good()
	require.NoError(t, s.judgeServer(info, settings, false))
	for _, version := range []string{"6.2.14", "", "x", "255.255.255"} {
		info, settings := good()
		info["redis_version"] = version
		err := s.judgeServer(info, settings, false)
		require.Equal(t, version == "255.255.255", err == nil, version)
	}
	for name := range settings { // a server that does not say is not trusted
		if name == "no-appendfsync-on-rewrite" {
			continue // its default is what it must be
		}
		info, settings := good()
		delete(settings, name)
		require.Error(t, s.judgeServer(info, settings, false), name)
	}
	info, settings = good()
	require.Error(t, s.judgeServer(info, settings, true), "a cluster's client, and a server alone")
	require.Contains(t, fmt.Sprint(s.judgeServer(info, settings, true)), "NewClient")
}

// What a script could never have answered is an error, and nothing of it counts.
func TestForeignAnswersAreErrors(t *testing.T) {
	t.Parallel()
	legs := []ledger.Leg{{Account: "wallet/a", Asset: "C", Delta: -5}, {Account: "chain/net", Asset: "C", Delta: 5}}
	c := storage.Change{
		ID: "c", Partition: "p", Put: []storage.Row{{Table: storage.Counters.Table, ID: "x", Value: storage.Counter{}}},
		Post:  []ledger.Tx{{ID: "tx", Legs: legs}},
		Level: []storage.Level{{Name: "l", Delta: 5, Max: 7}},
		Count: []storage.Count{{Name: "n", Delta: 1}},
	}
	w := &writer{o: &open{layouts: map[*storage.Table]*layout{storage.Counters.Table: layoutOf(storage.Counters.Table)}}, at: []int{0}}
	for what, parts := range map[string][]any{
		"no place": {"c"}, "a place below 0": {int64(-1), "c"}, "no such Change": {int64(1), "c"}, "no verdict": {int64(0)},
		"a verdict that is no text": {int64(0), int64(7)}, "another verdict": {int64(0), "x"},
		"no transaction": {int64(0), "t"}, "no such transaction": {int64(0), "t", int64(1)},
		"no account": {int64(0), "e"}, "an account that is no text": {int64(0), "e", int64(1), "C"}, "no asset": {int64(0), "e", "a"},
		"no level": {int64(0), "l"}, "no such level": {int64(0), "l", int64(1), "3"}, "a level without amount": {int64(0), "l", int64(0)},
		"a level that is no number": {int64(0), "l", int64(0), "x"}, "a level that has room": {int64(0), "l", int64(0), "2"},
		"no counter": {int64(0), "n"}, "no such counter": {int64(0), "n", int64(1)},
		"no posting": {int64(0), "f"}, "no such posting": {int64(0), "f", int64(1), int64(0), "0", "0"}, "no such leg": {int64(0), "f", int64(0), int64(2), "0", "0"},
		"a balance that is no number": {int64(0), "f", int64(0), int64(0), "x", "0"}, "a balance that bears it": {int64(0), "f", int64(0), int64(0), "5", "0"},
		"no row": {int64(0), "u", int64(1), int64(0)}, "no index": {int64(0), "u", int64(0), int64(9)}, "an index that is not unique": {int64(0), "u", int64(0), int64(0)},
	} {
		require.ErrorIs(t, w.verdicts([]any{parts}, []storage.Change{c}, make([]error, 1)), errForeign, what)
	}
	for what, parts := range map[string][]any{
		"conflict": {int64(0), "c"}, "transaction": {int64(0), "t", int64(0)}, "account": {int64(0), "e", "a", "C"},
		"level": {int64(0), "l", int64(0), "3"}, "counter": {int64(0), "n", int64(0)}, "leg": {int64(0), "f", int64(0), int64(0), "4", "0"},
	} {
		errs := make([]error, 1)
		require.NoError(t, w.verdicts([]any{parts}, []storage.Change{c}, errs), what)
		require.Error(t, errs[0], what)
	}
}
