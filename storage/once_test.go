package storage_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/storage"
)

// content is an input with each kind of field.
type content struct {
	Amount decimal.Decimal
	Price  *decimal.Decimal
	Fees   map[string]decimal.Decimal
	Tags   []string
	Part   *nested
	At     time.Time
	Flag   *bool
	Key    string
}

type nested struct{ Name, Later string }

func fingerprint(t *testing.T, in content) string {
	t.Helper()
	once, err := storage.OnceOf(t.Context(), "key", in)
	require.NoError(t, err)
	return once.Fingerprint
}

// TestOnceOf_SameContent: a caller that reads its request from a store or a queue again may have
// another writing of the same content.
func TestOnceOf_SameContent(t *testing.T) {
	t.Parallel()
	d := func(s string) decimal.Decimal { return decimal.RequireFromString(s) }
	price, longer, no := d("2.5"), d("2.500"), false
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, pair := range map[string][2]content{
		"places":          {{Amount: d("1.0")}, {Amount: d("1.00")}},
		"exponent":        {{Amount: d("1e3")}, {Amount: d("1000")}},
		"zero":            {{Amount: d("0")}, {Amount: d("0.00")}},
		"places, pointer": {{Price: &price}, {Price: &longer}},
		"places, map":     {{Fees: map[string]decimal.Decimal{"BTC": price}}, {Fees: map[string]decimal.Decimal{"BTC": longer}}},
		"empty map":       {{}, {Fees: map[string]decimal.Decimal{}}},
		"empty list":      {{}, {Tags: []string{}}},
		"zone":            {{At: at}, {At: at.In(time.FixedZone("", 3600))}},
	} {
		require.Equal(t, fingerprint(t, pair[0]), fingerprint(t, pair[1]), name)
	}
	for name, pair := range map[string][2]content{
		"amount":      {{Amount: d("1")}, {Amount: d("10")}},
		"sign":        {{Amount: d("1")}, {Amount: d("-1")}},
		"false":       {{}, {Flag: &no}},
		"zero is one": {{}, {Price: &decimal.Decimal{}}},
		"part":        {{}, {Part: &nested{}}},
		"list":        {{Tags: []string{"a", "b"}}, {Tags: []string{"b", "a"}}},
		"map":         {{Fees: map[string]decimal.Decimal{"BTC": price}}, {Fees: map[string]decimal.Decimal{"ETH": price}}},
	} {
		require.NotEqual(t, fingerprint(t, pair[0]), fingerprint(t, pair[1]), name)
	}
}

// TestOnceOf_LaterField: a version that adds a field also compares with what one before has
// stored, wherever the field is.
func TestOnceOf_LaterField(t *testing.T) {
	t.Parallel()
	type content struct { // as an earlier version had it
		Part *struct{ Name string }
		Key  string
	}
	before, err := storage.OnceOf(t.Context(), "key", content{Part: &struct{ Name string }{"a"}})
	require.NoError(t, err)
	require.Equal(t, before.Fingerprint, fingerprint(t, ofPart("a")))
}

func ofPart(name string) content { return content{Part: &nested{Name: name}} }

// TestOnceOf_Huge: a figure of few characters is not written out before anybody has judged it.
func TestOnceOf_Huge(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := storage.OnceOf(t.Context(), "key", content{Amount: decimal.New(1, 10_000_000)})
	require.NoError(t, err)
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20))
}
