package solana

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// node speaks the JSON-RPC of one endpoint.
type node struct {
	transport.RPC
	transport.Trust
}

// object is a set of parameters by name.
type object map[string]any

// The commitments that are asked for.
const (
	confirmed = "confirmed"
	finalized = "finalized"
)

// Codes by which a node says that it does not have a block.
const (
	cleanedUp     = -32001 // older than what it keeps
	notAvailable  = -32004 // newer than what it has
	skipped       = -32007 // skipped, or lost when it started from a snapshot
	skippedOld    = -32009 // skipped, or missing in long-term storage
	notYet        = -32014 // it has the block, not yet what it did
	refusedLagged = -32016 // it has not come to the slot that was asked for
)

// said reports whether the node itself answered with one of these codes.
func said(err error, codes ...int64) bool {
	var r *transport.ReplyError
	return errors.As(err, &r) && slices.Contains(codes, r.Code)
}

func (n *node) call(ctx context.Context, method string, params ...any) *transport.Call {
	k := transport.NewCall(method, params...)
	if err := n.Do(ctx, k); err != nil {
		n.Broke()
		k.Err = fmt.Errorf("%s: %w", method, err)
	}
	return k
}

func (n *node) text(ctx context.Context, method string, params ...any) (string, error) {
	return n.call(ctx, method, params...).Text()
}

func (n *node) ask(ctx context.Context, v any, method string, params ...any) error {
	return n.call(ctx, method, params...).Into(v)
}

// header is a block without its transactions.
type header struct {
	chain.Block
	slot, parentSlot int64
	blockhash        string
}

// newest is the header of the newest block at a commitment. Nodes know of a block a
// little before they can tell what it did: it is then the one before.
func (c *Client) newest(ctx context.Context, commitment string) (header, error) {
	slot, err := c.node.call(ctx, "getSlot", object{"commitment": commitment}).Integer()
	if err != nil {
		return header{}, err
	}
	h, err := c.header(ctx, slot, commitment)
	if !said(err, notAvailable, notYet) {
		return h, err
	}
	const back, tries = 64, 4
	slots, e := c.slots(ctx, max(0, slot-back), back, commitment)
	if e != nil {
		return header{}, e
	}
	for i := len(slots) - 1; i >= max(0, len(slots)-tries) && said(err, notAvailable, notYet); i-- {
		if slots[i] <= slot {
			h, err = c.header(ctx, slots[i], commitment)
		}
	}
	return h, err
}

// slots lists at most limit slots from one on that have a block.
func (c *Client) slots(ctx context.Context, from int64, limit int, commitment string) ([]int64, error) {
	var out []int64
	if err := c.node.ask(ctx, &out, "getBlocksWithLimit", from, limit, object{"commitment": commitment}); err != nil {
		return nil, err
	}
	for i, s := range out {
		if s < from || i > 0 && s <= out[i-1] {
			return nil, fmt.Errorf("%w: its list of slots is out of order", follow.ErrTorn)
		}
	}
	return out[:min(limit, len(out))], nil
}

// anyVersion is the highest version of transactions that a node can be asked for. Below
// the version of one of its transactions, a node gives nothing of a block.
const anyVersion = 255

func blockOptions(details, commitment string) object {
	return object{
		"encoding": "base64", "transactionDetails": details, "rewards": false,
		"commitment": commitment, "maxSupportedTransactionVersion": anyVersion,
	}
}

// header reads a block without its transactions.
func (c *Client) header(ctx context.Context, slot int64, commitment string) (header, error) {
	k := c.node.call(ctx, "getBlock", slot, blockOptions("none", commitment))
	b, err := readBlock(k, slot)
	if err != nil {
		return header{}, err
	}
	c.learn(&b.header)
	return b.header, nil
}

// learn keeps where a block's parent is.
func (c *Client) learn(h *header) {
	const enough = 4096
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.places) > enough {
		clear(c.places)
	}
	c.places[h.Height], c.places[h.Height-1] = h.slot, h.parentSlot
}

// at finds the block at a height at or below a head. Nodes know blocks by slot, so
// it is looked for: heights count blocks, and lists of slots count them, too.
func (c *Client) at(ctx context.Context, height int64, head header) (header, error) {
	switch {
	case height > head.Height:
		return header{}, fmt.Errorf("%w: no block at height %d, its head is %d", chain.ErrBehind, height, head.Height)
	case height == head.Height:
		return head, nil
	case height < 0:
		return header{}, fmt.Errorf("%w: no block is below 0", chain.ErrRejected)
	}
	c.mu.Lock()
	slot, known := c.places[height]
	c.mu.Unlock()
	if known {
		h, err := c.header(ctx, slot, confirmed)
		if err == nil && h.Height == height || err != nil && !said(err, skipped, skippedOld, notAvailable) {
			return h, err
		}
	}
	return c.search(ctx, height, head)
}

func (c *Client) search(ctx context.Context, height int64, head header) (header, error) {
	const tries, far = 24, 400_000
	behind := head.Height - height
	for start := head.slot - behind - behind/16 - 8; ; {
		start = max(0, start)
		first, err := c.slots(ctx, start, 1, confirmed)
		if err != nil {
			return header{}, err
		}
		if len(first) == 0 {
			return header{}, fmt.Errorf("%w: it lists no block from slot %d on", follow.ErrTorn, start)
		}
		h, err := c.header(ctx, first[0], confirmed)
		if err != nil {
			return header{}, err
		}
		if h.Height > height {
			if start == 0 {
				return header{}, fmt.Errorf("%w: it does not keep the block at height %d", follow.ErrTorn, height)
			}
			start -= 2*(h.Height-height) + 64
			continue
		}
		for range tries {
			slots, err := c.slots(ctx, h.slot, int(min(far, height-h.Height))+1, confirmed)
			if err != nil {
				return header{}, err
			}
			if len(slots) == 0 || slots[0] != h.slot {
				break
			}
			at := h.Height + int64(len(slots)) - 1
			if h, err = c.header(ctx, slots[len(slots)-1], confirmed); err != nil || h.Height == height {
				return h, err
			}
			if h.Height != at || len(slots) == 1 {
				break
			}
		}
		return header{}, fmt.Errorf("%w: its slots and heights do not agree: it lacks blocks below height %d", follow.ErrTorn, height)
	}
}

// name writes a block's hash as this client does.
func name(slot int64, blockhash string) string { return strconv.FormatInt(slot, 10) + ":" + blockhash }

// slotOf reads the slot out of a block's hash.
func slotOf(hash string) (int64, error) {
	s, _, ok := strings.Cut(hash, ":")
	slot, err := strconv.ParseInt(s, 10, 64)
	if !ok || err != nil || slot < 0 {
		return 0, fmt.Errorf("solana: %.80q is no block of this client's: its hash is slot:blockhash", hash)
	}
	return slot, nil
}

func unix(seconds int64) time.Time {
	if seconds <= 0 {
		return time.Time{}
	}
	return time.Unix(min(seconds, 253402300799), 0).UTC()
}
