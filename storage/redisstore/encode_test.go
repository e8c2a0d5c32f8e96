package redisstore

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

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
		for _, part := range parts {
			total += len(part)
		}
		require.LessOrEqual(t, total+len(parts), len(s))
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
