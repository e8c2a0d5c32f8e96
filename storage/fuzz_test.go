package storage_test

import (
	"encoding/json"
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
)

// FuzzColumns: scalars that a backend may bring are refused or decode to a
// value; encoding that gives the same money and numbers, and from then on
// nothing changes any more.
func FuzzColumns(f *testing.F) {
	f.Add("s", int64(5), int64(1), int64(-1), "1.50", []byte{0, 1}, `{"a":[1,"x"]}`)
	f.Add("", int64(math.MinInt64), int64(7), int64(math.MaxInt64), "-0.000", []byte{}, `null`)
	f.Add("\xff\x00", int64(-1), int64(0), int64(0), "1e5", []byte(nil), `{`)
	f.Add("x", int64(0), int64(2), int64(1), "+1", []byte("x"), ` [ 1 ] `)
	f.Add("x", int64(0), int64(2), int64(1), "00012345678901234567890123456789012345678901234567890.5", []byte("x"), `""`)
	f.Add("x", int64(0), int64(2), int64(1), "1", []byte("x"), "1E1000") // more than a float64 holds
	f.Fuzz(func(t *testing.T, s string, i, b, at int64, d string, y []byte, j string) {
		v, err := alls.Decode([]any{s, i, b, at, d, y, j})
		if err != nil {
			_, bad := ledger.ParsePlain(d)
			require.True(t, bad != nil || !json.Valid([]byte(j)), "%v", err)
			return
		}
		scalars, err := alls.Encode(v)
		require.NoError(t, err)
		require.Equal(t, []any{s, i, min(1, max(b, -b)&math.MaxInt64), at}, scalars[:4])
		want, ok := new(big.Rat).SetString(d)
		require.True(t, ok)
		got, ok := new(big.Rat).SetString(scalars[4].(string))
		require.True(t, ok)
		require.Zero(t, want.Cmp(got), "%s became %s", d, scalars[4])
		require.Equal(t, string(y), string(scalars[5].([]byte)))
		require.Equal(t, tree(t, j), tree(t, scalars[6].(string)))
		again, err := alls.Decode(scalars)
		require.NoError(t, err)
		second, err := alls.Encode(again)
		require.NoError(t, err)
		require.Equal(t, scalars, second)
	})
}

// tree is a JSON text as Go values, numbers as they are written.
func tree(t *testing.T, text string) (v any) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}
