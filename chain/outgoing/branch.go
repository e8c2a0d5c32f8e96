package outgoing

import (
	"context"
	"fmt"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// unreadFor bounds how long a final intent is polled while its block was not read yet. Nodes
// remember transactions much longer: one that they forget would look undone.
const unreadFor = 6 * time.Hour

// branch compares what a node says of attempts with Config.Trail, the blocks that deposits were
// read from. After a fork a node may stay on the old branch, and call blocks final that only
// this branch has. Nobody polls an intent again that was made final by such an answer.
//
// It returns ErrBehind where the node's head is on another branch, or below all blocks that
// are remembered. It sets attempt.left where the node has an attempt in another block than was
// read: this intent waits, and so do those in blocks of which the trail says nothing. It sets
// attempt.ahead where the block was not read yet. If such a block is replaced before it is
// read, the reader sees no fork, so that its intent is polled until the block was read.
//
// gone are settled attempts that the node has in no block. A node that has not read as far as
// deposits were read may not know the block yet: its word undoes nothing, and left is set. A fork
// that took the block away is at least as long.
func (n *Sender) branch(ctx context.Context, head chain.Block, final, gone []*attempt) error {
	if n.Trail == nil || len(final)+len(gone) == 0 {
		return nil
	}
	read, err := n.Trail(ctx)
	if err != nil || len(read) == 0 {
		return err
	}
	last := read[len(read)-1].Height
	behind := fmt.Errorf("outgoing: %s: %w: its head is %d, and block %d was read", n.info.Code, chain.ErrBehind, head.Height, last)
	if head.Height < last {
		for _, a := range gone {
			a.left = behind
		}
	}
	if head.Height < read[0].Height {
		return behind
	}
	if r, known := chain.AtHeight(read, head.Height); known && r.Hash != head.Hash {
		return fmt.Errorf("outgoing: %s: %w: its head is block %d %s, and block %s was read at this height", n.info.Code, chain.ErrBehind, head.Height, head.Hash, r.Hash)
	}
	var unsure []*attempt
	var left error
	for _, a := range final {
		b := a.st.Block
		if b.Hash == "" {
			continue // it is in no block
		}
		switch r, known := chain.AtHeight(read, b.Height); {
		case !known:
			unsure = append(unsure, a)
		case r.Hash != b.Hash:
			a.left = fmt.Errorf("outgoing: %s: %w: it calls block %d %s final, and block %s was read at this height", n.info.Code, chain.ErrBehind, b.Height, b.Hash, r.Hash)
			left = a.left
		}
		a.ahead = b.Height > last && n.Now().Sub(b.Time) < unreadFor
	}
	for _, a := range unsure {
		a.left = left
	}
	return nil
}
