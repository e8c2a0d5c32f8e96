package incoming_test

import (
	"encoding/binary"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
)

// blocksOf reads blocks from words and numbers; each is the child of the one
// before where linked.
func blocksOf(words, numbers string, linked bool) (out []chain.Block) {
	hashes := strings.Split(words, ",")
	for i, hash := range hashes[1:] {
		b := chain.Block{Hash: hash, Parent: hashes[i]}
		if i > 0 && !linked {
			b.Parent += "'"
		}
		if len(numbers) >= 16 {
			b.Height = int64(binary.BigEndian.Uint64([]byte(numbers)))
			b.Time = time.UnixMicro(int64(binary.BigEndian.Uint64([]byte(numbers[8:])))).UTC()
			numbers = numbers[16:]
		}
		out = append(out, b)
	}
	return out
}

// storable says whether a trail can hold the blocks: linked, and named by words
// without its separators.
func storable(blocks []chain.Block) bool {
	for i, b := range blocks {
		if i > 0 && b.Parent != blocks[i-1].Hash || strings.ContainsAny(b.Hash+b.Parent, " ;") {
			return false
		}
	}
	return true
}

// finds: the short ways into a trail say what reading all of it does.
func finds(t *testing.T, trail incoming.Trail, blocks []chain.Block, hash string) {
	at := slices.IndexFunc(blocks, func(b chain.Block) bool { return b.Hash == hash })
	height, ok := trail.Height(hash)
	require.Equal(t, at >= 0 && hash != "", ok, "%q in %q", hash, trail)
	if ok {
		require.Equal(t, blocks[at].Height, height, "%q in %q", hash, trail)
	}
	last := len(blocks) > 0 && hash != "" && blocks[len(blocks)-1].Hash == hash
	require.Equal(t, last, trail.Ends(hash), "%q ends %q", hash, trail)
}

// FuzzTrail: blocks come back as they were stored or are not stored at all, what
// can be read and is stored again stays the same, and looking a hash up is as
// good as reading all.
func FuzzTrail(f *testing.F) {
	f.Add("p,a,b,c", "\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x07", true, "p;1 a 5;2 b ", "a")
	f.Add("p,a,b", "", false, ";", "b")
	f.Add(";,a,b ;", "\xff\xff\xff\xff\xff\xff\xff\xff\x80\x00\x00\x00\x00\x00\x00\x00", true, "", "")
	f.Add(",,", "", true, "p;01 a +5;-0 b ", "p")
	f.Add("x a ,b", "", true, "x;1 a 5;2 ab 6;;", "5")
	f.Fuzz(func(t *testing.T, words, numbers string, linked bool, stored, stranger string) {
		if strings.ContainsAny(stranger, " ;") {
			stranger = "" // no hash that is stored
		}
		blocks := blocksOf(words, numbers, linked)
		trail, err := incoming.NewTrail(blocks)
		require.Equal(t, storable(blocks), err == nil, "%+v", blocks)
		if err == nil {
			back, err := trail.Blocks()
			require.NoError(t, err)
			require.Equal(t, blocks, back)
			finds(t, trail, blocks, stranger)
			for _, b := range blocks {
				finds(t, trail, blocks, b.Hash)
			}
		}
		read, err := incoming.Trail(stored).Blocks()
		if err != nil || !storable(read) {
			return
		}
		trail, err = incoming.NewTrail(read)
		require.NoError(t, err)
		again, err := trail.Blocks()
		require.NoError(t, err)
		require.Equal(t, append([]chain.Block{}, read...), append([]chain.Block{}, again...))
	})
}
