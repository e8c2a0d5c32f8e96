package solana

import (
	"context"
	"errors"
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
	// mostPages bounds what one account is asked for: a stranger can make its list long. Above
	// it blocks are read whole.
	mostPages = 10
	// mostSlots bounds the list of slots in which the node's blocks are counted.
	mostSlots = 100_000
)

// errWhole: blocks have to be read whole.
var errWhole = fmt.Errorf("solana: histories do not tell: %w", errors.ErrUnsupported)

// named lists the slots after a block, up to the head's, in which a transaction that did not
// fail names one of the addresses or a token account of theirs.
func (c *Client) named(ctx context.Context, list []chain.Address, last chain.Block, head header) ([]int64, error) {
	from, err := slotOf(last.Hash)
	if err != nil {
		return nil, err
	}
	made, err := c.counted(ctx, from, head.Height-last.Height, head)
	if err != nil {
		return nil, err
	}
	var mu sync.Mutex
	found := map[int64]bool{}
	err = follow.Each(len(list), c.o.Parallel, func(i int) error {
		accounts, err := c.holders(ctx, list[i], head)
		if err != nil {
			return err
		}
		for _, k := range accounts {
			slots, err := c.naming(ctx, k, from, head)
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
		if said(err, noMethod, excluded, noHistory) {
			err = fmt.Errorf("%w: %w", errWhole, err)
		}
		return nil, err
	}
	slots := slices.Sorted(maps.Keys(found))
	for _, s := range slots {
		if !made[s] {
			return nil, fmt.Errorf("%w: it names a transaction of slot %d, and no block there", follow.ErrTorn, s)
		}
	}
	return slots, nil
}

// counted are the slots of the blocks after a slot, up to the head's, which must be so many. A
// node that lacks some, as after a start from a snapshot, lacks their transactions in the
// histories, too.
func (c *Client) counted(ctx context.Context, from, count int64, head header) (map[int64]bool, error) {
	if count > mostSlots {
		return nil, errWhole
	}
	slots, err := c.slots(ctx, from+1, int(count)+1, confirmed)
	if err != nil {
		return nil, err
	}
	made := make(map[int64]bool, len(slots))
	for _, s := range slots {
		if s <= head.slot {
			made[s] = true
		}
	}
	if int64(len(made)) != count || !made[head.slot] {
		return nil, gap(from)
	}
	return made, nil
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
	if len(known) > mostPages*len(c.tokens)+mostPages { // a stranger can open any number for an owner
		return nil, errWhole
	}
	return slices.Collect(maps.Keys(known)), nil
}

// naming lists the slots after one, up to the head's, with a transaction that names an account.
// The node lists the newest first.
func (c *Client) naming(ctx context.Context, k key, from int64, head header) (out []int64, err error) {
	before, size := "", firstPage
	for newest, page := int64(1)<<62, 0; ; page++ {
		if page == mostPages {
			return nil, errWhole
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
			case s.Slot <= head.slot && s.Err == nil:
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

// below reads blocks up to the head, and looks that it is still the head's branch they are of.
func (c *Client) below(ctx context.Context, slots []int64, head header) ([]*block, error) {
	blocks, err := c.read(ctx, slots, "full", confirmed)
	if err != nil {
		return nil, err
	}
	now, err := c.header(ctx, head.slot, confirmed)
	if err == nil && now.Hash != head.Hash {
		err = fmt.Errorf("%w: the chain changed while it was read", follow.ErrTorn)
	}
	return blocks, err
}
