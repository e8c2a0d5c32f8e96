package solana

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

const (
	// firstPage is how many signatures are asked for first: a quiet account has none that are
	// new, and each takes some 250 bytes.
	firstPage = 8
	nextPage  = 1000
)

// bounds are how much is asked for at most, where strangers can make lists long. Above pages of
// an account's list, or accounts of an owner, blocks are read whole.
type bounds struct {
	pages, accounts int
	slots           int64 // whose blocks are counted at once: further back, histories come in parts
}

// named lists the slots after a block, up to the end's, in which a transaction that did not
// fail names one of the addresses or a token account of theirs.
func (c *Client) named(ctx context.Context, list []chain.Address, last chain.Block, head header) ([]int64, chain.Block, error) {
	from, err := slotOf(last.Hash)
	if err != nil {
		return nil, chain.Block{}, err
	}
	made, end, err := c.counted(ctx, from, head.Height-last.Height, head)
	if err != nil {
		return nil, chain.Block{}, err
	}
	var mu sync.Mutex
	found := map[int64]bool{}
	err = follow.Each(len(list), c.o.Parallel, func(i int) error {
		accounts, err := c.holders(ctx, list[i], head)
		if err != nil {
			return err
		}
		for _, k := range accounts {
			slots, err := c.naming(ctx, k, from, end.slot, head)
			if err != nil {
				return err
			}
			mu.Lock()
			for _, s := range slots {
				found[s] = true
			}
			mu.Unlock()
		}
		return nil
	})
	if err != nil {
		return nil, chain.Block{}, err
	}
	slots := slices.Sorted(maps.Keys(found))
	for _, s := range slots {
		if !made[s] {
			return nil, chain.Block{}, fmt.Errorf("%w: it names a transaction of slot %d, and no block there", follow.ErrTorn, s)
		}
	}
	return slots, end.Block, nil
}

// counted are the slots of the blocks after a slot, up to the head's, which must be so many. A
// node that lacks some, as after a start from a snapshot, lacks their transactions in the
// histories, too. Where they are more than the node lists at once, they are those up to the end.
func (c *Client) counted(ctx context.Context, from, count int64, head header) (made map[int64]bool, end header, err error) {
	slots, err := c.slots(ctx, from+1, int(min(count, c.most.slots)), confirmed)
	if err != nil {
		return nil, header{}, err
	}
	if int64(len(slots)) != min(count, c.most.slots) {
		return nil, header{}, gap(from)
	}
	if end = head; count > c.most.slots {
		if end, err = c.header(ctx, slots[len(slots)-1], confirmed); err != nil {
			return nil, header{}, err
		}
	}
	if slots[len(slots)-1] != end.slot || head.Height-end.Height != count-int64(len(slots)) {
		return nil, header{}, gap(from)
	}
	made = make(map[int64]bool, len(slots))
	for _, s := range slots {
		made[s] = true
	}
	return made, end, nil
}

// holders are an address and its token accounts, by the node as of the head: those of the
// registered mints also where they do not exist, as one can be opened, paid and closed between
// two looks.
func (c *Client) holders(ctx context.Context, a chain.Address, head header) ([]key, error) {
	owner, ok := parseKey(string(a))
	if !ok {
		return nil, nil // nothing can be paid there
	}
	known := map[key]bool{owner: true}
	for _, t := range c.tokens {
		known[associated(owner, t.program(), t.mint)] = true
	}
	for _, program := range []key{tokenProgram, token2022} {
		var answer struct {
			Value []struct {
				Pubkey string `json:"pubkey"`
			} `json:"value"`
		}
		o := object{"encoding": "base64", "commitment": confirmed, "minContextSlot": head.slot, "dataSlice": object{"offset": 0, "length": 0}}
		if err := c.node.ask(ctx, &answer, "getTokenAccountsByOwner", owner.text(), object{"programId": program.text()}, o); err != nil {
			return nil, err
		}
		for _, v := range answer.Value {
			k, ok := parseKey(v.Pubkey)
			if !ok {
				return nil, fmt.Errorf("%w: a token account without an address", follow.ErrTorn)
			}
			known[k] = true
		}
	}
	if len(known) > c.most.accounts+len(c.tokens) {
		return nil, follow.ErrUntold
	}
	return slices.Collect(maps.Keys(known)), nil
}

// naming lists the slots after one, up to another, with a transaction that names an account.
// The node lists the newest first.
func (c *Client) naming(ctx context.Context, k key, from, to int64, head header) (out []int64, err error) {
	before, size := "", firstPage
	for newest, page := int64(1)<<62, 0; ; page++ {
		if page == c.most.pages {
			return nil, follow.ErrUntold
		}
		o := object{"limit": size, "commitment": confirmed, "minContextSlot": head.slot}
		if before != "" {
			o["before"] = before
		}
		var all []struct {
			Signature string `json:"signature"`
			Slot      int64  `json:"slot"`
			Err       any    `json:"err"`
		}
		if err := c.node.ask(ctx, &all, "getSignaturesForAddress", k.text(), o); err != nil {
			return nil, err
		}
		for _, s := range all {
			switch {
			case s.Slot > newest || s.Signature == before:
				return nil, fmt.Errorf("%w: its list of transactions is out of order", follow.ErrTorn)
			case s.Slot <= from:
				return out, nil
			case s.Slot <= to && s.Err == nil:
				out = append(out, s.Slot)
			}
			newest = s.Slot
		}
		if len(all) < size {
			return out, nil
		}
		before, size = all[len(all)-1].Signature, nextPage
	}
}

// still returns an error where a block is not on the chain any more: what was read may be of
// two branches.
func (c *Client) still(ctx context.Context, b chain.Block) error {
	slot, err := slotOf(b.Hash)
	if err != nil {
		return err
	}
	now, err := c.header(ctx, slot, confirmed)
	if err == nil && now.Hash != b.Hash {
		err = fmt.Errorf("%w: the chain changed while it was read", follow.ErrTorn)
	}
	return err
}
