package incoming

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Trail is a list of blocks, oldest first, each the parent of the next, as one
// short text: the first block's parent, then height, hash and time of each block,
// "parent;7 hash µs;8 hash µs". Every step of every worker reads it, and most need
// only its end: that is found without reading the rest.
type Trail string

var errTrail = errors.New("incoming: not a stored trail")

// NewTrail writes blocks down. The error says so where they do not follow one
// another, or where a hash holds a blank or a semicolon.
func NewTrail(blocks []chain.Block) (Trail, error) {
	if len(blocks) == 0 {
		return "", nil
	}
	if strings.ContainsAny(blocks[0].Parent, " ;") {
		return "", errTrail
	}
	var b strings.Builder
	b.Grow(len(blocks) * (len(blocks[0].Hash) + 32))
	var digits [20]byte
	b.WriteString(blocks[0].Parent)
	for i := range blocks {
		if strings.ContainsAny(blocks[i].Hash, " ;") || i > 0 && blocks[i].Parent != blocks[i-1].Hash {
			return "", errTrail
		}
		b.WriteByte(';')
		b.Write(strconv.AppendInt(digits[:0], blocks[i].Height, 10))
		b.WriteByte(' ')
		b.WriteString(blocks[i].Hash)
		b.WriteByte(' ')
		if !blocks[i].Time.IsZero() {
			b.Write(strconv.AppendInt(digits[:0], blocks[i].Time.UnixMicro(), 10))
		}
	}
	return Trail(b.String()), nil
}

// Blocks reads what NewTrail wrote.
func (t Trail) Blocks() ([]chain.Block, error) {
	if t == "" {
		return nil, nil
	}
	parent, rest, _ := strings.Cut(string(t), ";")
	out := make([]chain.Block, 0, strings.Count(rest, ";")+1)
	for rest != "" {
		var entry string
		entry, rest, _ = strings.Cut(rest, ";")
		b, err := block(entry)
		if err != nil {
			return nil, err
		}
		b.Parent = parent
		out, parent = append(out, b), b.Hash
	}
	return out, nil
}

// Leaves reports whether the trail has another block at a block's height. It is false for a
// height that the trail does not have.
func (t Trail) Leaves(b chain.Block) (bool, error) {
	blocks, err := t.Blocks()
	if err != nil || b.Hash == "" {
		return false, err
	}
	read, known := chain.AtHeight(blocks, b.Height)
	return known && read.Hash != b.Hash, nil
}

// block reads one entry: height, hash and time.
func block(entry string) (b chain.Block, err error) {
	height, entry, ok := strings.Cut(entry, " ")
	hash, micros, ok2 := strings.Cut(entry, " ")
	if b.Height, err = strconv.ParseInt(height, 10, 64); !ok || !ok2 || err != nil {
		return b, errTrail
	}
	b.Hash = hash
	if micros != "" {
		us, err := strconv.ParseInt(micros, 10, 64)
		if err != nil {
			return b, errTrail
		}
		b.Time = time.UnixMicro(us).UTC()
	}
	return b, nil
}

// Ends reports whether the block of this hash is the last one.
func (t Trail) Ends(hash string) bool {
	at := strings.LastIndexByte(string(t), ' ')
	return hash != "" && at > 0 && strings.HasSuffix(string(t[:at]), " "+hash)
}

// Height finds a block by its hash.
func (t Trail) Height(hash string) (height int64, ok bool) {
	at := strings.Index(string(t), " "+hash+" ")
	if hash == "" || at < 0 {
		return 0, false
	}
	height, err := strconv.ParseInt(string(t[strings.LastIndexByte(string(t[:at]), ';')+1:at]), 10, 64)
	return height, err == nil
}
