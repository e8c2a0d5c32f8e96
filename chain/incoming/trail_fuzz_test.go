package incoming

import (
	"encoding/binary"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
)

// trailOf reads blocks from texts and numbers; blocks that are each other's
// parent where linked.
func trailOf(text, numbers string, linked bool) Trail {
	var t Trail
	words := strings.Split(text, ",")
	for i, hash := range words[1:] {
		b := chain.Block{Hash: hash, Parent: words[i]}
		if i > 0 && !linked {
			b.Parent += "'"
		}
		if len(numbers) >= 16 {
			b.Height = int64(binary.BigEndian.Uint64([]byte(numbers)))
			b.Time = time.UnixMicro(int64(binary.BigEndian.Uint64([]byte(numbers[8:])))).UTC()
			numbers = numbers[16:]
		}
		t = append(t, b)
	}
	return t
}

// storable says whether the form of storage can hold a trail: linked, and texts
// that are UTF-8 without its separators.
func storable(t Trail) bool {
	for i, b := range t {
		if i > 0 && b.Parent != t[i-1].Hash || strings.ContainsAny(b.Hash, " ;") || strings.Contains(b.Parent, ";") {
			return false
		}
		if strings.ToValidUTF8(b.Hash+b.Parent, "") != b.Hash+b.Parent {
			return false
		}
	}
	return true
}

// FuzzTrail: a trail comes back as it was stored or is not stored at all, and
// what can be read is written the same again.
func FuzzTrail(f *testing.F) {
	f.Add("p,a,b,c", "\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x07", true, "\"p;1 a 5;2 b \"")
	f.Add("p,a,b", "", false, "\";\"")
	f.Add(";,a,b ;", "\xff\xff\xff\xff\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\x00\x00", true, "\"\"")
	f.Add(",,", "", true, "\"p;01 a +5;-0 b \"")
	f.Add("", "", true, "null")
	f.Add("\xff,\u00e9", "", true, "{}")
	f.Fuzz(func(t *testing.T, text, numbers string, linked bool, stored string) {
		trail := trailOf(text, numbers, linked)
		b, err := trail.MarshalJSON()
		require.Equal(t, storable(trail), err == nil, "%+v", trail)
		if err == nil {
			var back Trail
			require.NoError(t, json.Unmarshal(b, &back))
			require.Equal(t, trail, back)
		}
		var read Trail
		if json.Unmarshal([]byte(stored), &read) != nil {
			return
		}
		for i := range read {
			require.True(t, i == 0 || read[i].Parent == read[i-1].Hash, "a chain")
		}
		b, err = read.MarshalJSON()
		if err != nil {
			require.False(t, storable(read))
			return
		}
		var again Trail
		require.NoError(t, json.Unmarshal(b, &again))
		require.Equal(t, append(Trail{}, read...), append(Trail{}, again...))
	})
}
