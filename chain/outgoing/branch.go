package outgoing

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// unreadFor is how long after its block a settled order is looked at for want of a reader:
// far less than nodes remember transactions, as one that they forget looks undone.
const unreadFor = 6 * time.Hour

// branch is nil where a node, whose head is head, may be on the chain that deposits were
// read from. After a fork a node may stay on the branch that others have left, and call what
// only it has final: what is settled by its word nobody looks at again. A block that is below
// those that are remembered says nothing, but a head there is of a node that stands still.
// An attempt that the node has in another block than was read is left to a later look, with
// those of which nothing is known then; what was read as the node says is not. An attempt
// whose block was not read yet is marked: should that block be left before it is read, no
// fork is noticed.
func (n *Sender) branch(ctx context.Context, head chain.Block, final ...*attempt) error {
	if n.Trail == nil || len(final) == 0 {
		return nil
	}
	read, err := n.Trail(ctx)
	if err != nil || len(read) == 0 {
		return err
	}
	hash := func(height int64) (string, bool) {
		k, known := slices.BinarySearchFunc(read, height, func(r chain.Block, height int64) int { return cmp.Compare(r.Height, height) })
		if !known {
			return "", false
		}
		return read[k].Hash, true
	}
	last := read[len(read)-1].Height
	if head.Height < read[0].Height {
		return fmt.Errorf("outgoing: %s: %w: its head is %d, and block %d was read", n.info.Code, chain.ErrBehind, head.Height, last)
	}
	if h, known := hash(head.Height); known && h != head.Hash {
		return fmt.Errorf("outgoing: %s: %w: its head is block %d %s, and block %s was read at this height", n.info.Code, chain.ErrBehind, head.Height, head.Hash, h)
	}
	var unsure []*attempt
	var left error
	for _, a := range final {
		b := a.st.Block
		if b.Hash == "" {
			continue // it is in no block
		}
		switch h, known := hash(b.Height); {
		case !known:
			unsure = append(unsure, a)
		case h != b.Hash:
			a.left = fmt.Errorf("outgoing: %s: %w: it calls block %d %s final, and block %s was read at this height", n.info.Code, chain.ErrBehind, b.Height, b.Hash, h)
			left = a.left
		}
		a.ahead = b.Height > last && n.Now().Sub(b.Time) < unreadFor
	}
	for _, a := range unsure {
		a.left = left
	}
	return nil
}
