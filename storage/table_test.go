package storage_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

type status string

type all struct {
	S status          `db:"s"`
	I ledger.Amount   `db:"i"`
	B bool            `db:"b"`
	T time.Time       `db:"t"`
	D decimal.Decimal `db:"d"`
	Y []byte          `db:"y"`
	J json.RawMessage `db:"j,json"`
	N string          `db:"-"`
}

var alls = storage.NewTable[all]("alls", storage.Unique("s", "i"), storage.Index("t"))

// What goes in comes out, to the microsecond and with every decimal place.
func TestCodecRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		v := all{
			S: status(rapid.String().Draw(t, "s")), I: ledger.Amount(rapid.Int64().Draw(t, "i")), B: rapid.Bool().Draw(t, "b"),
			T: storage.FromMicros(rapid.Int64Range(-1<<52, 1<<52).Draw(t, "t")),
			D: decimal.New(rapid.Int64().Draw(t, "coefficient"), rapid.Int32Range(-30, 30).Draw(t, "exponent")),
			Y: rapid.SliceOf(rapid.Byte()).Draw(t, "y"), J: json.RawMessage(`{"a":[1,"x"]}`),
		}
		scalars, err := alls.Encode(v)
		require.NoError(t, err)
		for i, s := range scalars { // drivers may bring text as bytes
			if text, ok := s.(string); ok && i%2 == 0 {
				scalars[i] = []byte(text)
			}
		}
		back, err := alls.Decode(scalars)
		require.NoError(t, err)
		got := back.(all)
		require.True(t, v.D.Equal(got.D), "%s is not %s", v.D, got.D)
		got.D = v.D
		if len(v.Y) == 0 {
			v.Y = nil
		}
		require.Equal(t, v, got)
	})
}

func TestDecimalTextIsPlain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{"1e3": "1000", "-0.001": "-0.001", "1.50": "1.50", "0": "0", "12e-1": "1.2", "-5e-3": "-0.005"} {
		scalars, err := alls.Encode(all{D: decimal.RequireFromString(in)})
		require.NoError(t, err)
		require.Equal(t, want, scalars[4], in)
	}
}

func TestDecodeRefuses(t *testing.T) {
	t.Parallel()
	good, err := alls.Encode(all{})
	require.NoError(t, err)
	_, err = alls.Decode(good[1:])
	require.ErrorIs(t, err, storage.ErrMalformed)
	for i, bad := range []any{int64(1), "x", "x", 1.5, "no number", int64(1), "{"} {
		list := append([]any{}, good...)
		list[i] = bad
		_, err := alls.Decode(list)
		require.Error(t, err, "column %d", i)
	}
	for _, bad := range []any{nil, &all{}, 1, struct{}{}} {
		_, err := alls.Encode(bad)
		require.ErrorIs(t, err, storage.ErrMalformed)
	}
}

func TestDeclarations(t *testing.T) {
	t.Parallel()
	require.Panics(t, func() {
		storage.NewTable[struct {
			A string
		}]("t")
	})
	require.Panics(t, func() {
		storage.NewTable[struct {
			A string `db:"part"`
		}]("t")
	})
	require.Panics(t, func() {
		storage.NewTable[struct {
			A string `db:"a"`
			B string `db:"a"`
		}]("t")
	})
	require.Panics(t, func() {
		storage.NewTable[struct {
			A float64 `db:"a"`
		}]("t")
	})
	require.Panics(t, func() { storage.NewTable[all]("t", storage.Index("nothing")) })
}

func TestInFlight(t *testing.T) {
	t.Parallel()
	var f storage.InFlight
	key := &storage.Once{Key: "k"}
	leave, err := f.Enter("p", key)
	require.NoError(t, err)
	_, err = f.Enter("p", key)
	require.ErrorIs(t, err, storage.ErrInProgress)
	other, err := f.Enter("q", key)
	require.NoError(t, err, "another tenant's key")
	other()
	leave()
	leave, err = f.Enter("p", key)
	require.NoError(t, err)
	leave()
	for range 2 {
		_, err = f.Enter("p", &storage.Once{})
		require.NoError(t, err, "no key, nothing to keep apart")
	}
}
