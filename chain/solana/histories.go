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
	owned := make([][]key, len(list))
	err = follow.Until(len(list), c.o.Parallel, func(i int) (err error) {
		owned[i], err = c.holders(ctx, list[i], head)
		return err
	})
	if err != nil {
		return nil, chain.Block{}, err
	}
	accounts := slices.Concat(owned...)
	looks, err := c.held(ctx, accounts, head)
	if err != nil {
		return nil, chain.Block{}, err
	}
	var mu sync.Mutex
	found := map[int64]bool{}
	err = follow.Until(len(accounts), c.o.Parallel, func(i int) error {
		slots, newest, err := c.naming(ctx, accounts[i], from, end.slot, head)
		mu.Lock()
		defer mu.Unlock()
		for _, s := range slots {
			found[s] = true
		}
		looks[i].newest = newest
		return err
	})
	if err == nil {
		err = c.explained(accounts, looks, from)
	}
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
		if err := c.abreast(ctx, &answer, "getTokenAccountsByOwner", owner.text(), object{"programId": program.text()}, o); err != nil {
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

// look is what an account held at a slot, and the slot of the newest transaction that was listed
// then, by the node's word.
type look struct {
	held         string
	slot, newest int64
}

// held is a look at each account, at the head's slot or later, without its list.
func (c *Client) held(ctx context.Context, accounts []key, head header) (out []look, err error) {
	const most = 100 // in one call
	for part := range slices.Chunk(accounts, most) {
		names := make([]string, len(part))
		for i, k := range part {
			names[i] = string(k.text())
		}
		var answer struct {
			Context struct {
				Slot int64 `json:"slot"`
			} `json:"context"`
			Value []*struct {
				Lamports uint64   `json:"lamports"`
				Data     []string `json:"data"`
			} `json:"value"`
		}
		o := object{"encoding": "base64", "commitment": confirmed, "minContextSlot": head.slot, "dataSlice": object{"offset": amountAt, "length": 8}}
		if err := c.abreast(ctx, &answer, "getMultipleAccounts", names, o); err != nil {
			return nil, err
		}
		if len(answer.Value) != len(part) || answer.Context.Slot < head.slot {
			return nil, fmt.Errorf("%w: it gave other accounts than it was asked for, or of before slot %d", follow.ErrTorn, head.slot)
		}
		for _, v := range answer.Value {
			l := look{slot: answer.Context.Slot}
			if v != nil {
				l.held = fmt.Sprint(v.Lamports, v.Data)
			}
			out = append(out, l)
		}
	}
	return out, nil
}

// explained compares looks with the last ones at the same accounts. What an account holds changes
// by a transaction, so its list must have one that is newer than the last look; and what was listed
// once must be there again, unless blocks were read beyond it. An account that is new to us held
// nothing before its first transaction. Else the node's lists are behind its
// blocks, and blocks are read whole until they are not, or until those are read beyond the change.
func (c *Client) explained(accounts []key, looks []look, from int64) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	now, odd := make(map[key]look, len(accounts)), map[key]look{}
	for i, k := range accounts {
		this := looks[i]
		last, known := c.looks[k]
		if was, is := c.odd[k]; is && was.slot <= from {
			last, known = was, true
		}
		switch {
		case !known && c.looks == nil: // the first look since the start tells nothing
		case this.slot < last.slot: // another reader was faster
		case this.held != last.held && this.newest <= last.slot,
			this.newest < last.newest && last.newest > from:
			err = fmt.Errorf("%w: what %s holds has changed since slot %d, or was listed, by no transaction that is listed", follow.ErrUntold, k.text(), last.slot)
			now[k], odd[k] = last, this
			if was, is := c.odd[k]; is && was.held == this.held {
				odd[k] = was
			}
			continue
		}
		now[k] = this
	}
	c.looks, c.odd = now, odd
	return err
}

// abreast asks something of the newest slots. Where it is refused by one of several nodes behind one
// URL that is a little behind, it is asked again: another may answer.
func (c *Client) abreast(ctx context.Context, v any, method string, params ...any) (err error) {
	const tries = 4
	for range tries {
		if err = c.node.ask(ctx, v, method, params...); !said(err, refusedLagged) {
			break
		}
	}
	return err
}

// naming lists the slots after one, up to another, with a transaction that names an account. The
// node lists the newest first; newest is that of the first, 0 where there is none.
func (c *Client) naming(ctx context.Context, k key, from, to int64, head header) (out []int64, newest int64, err error) {
	before, size := "", firstPage
	for last, page := int64(1)<<62, 0; ; page++ {
		if page == c.most.pages {
			return nil, 0, follow.ErrUntold
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
		if err := c.abreast(ctx, &all, "getSignaturesForAddress", k.text(), o); err != nil {
			return nil, 0, err
		}
		for _, s := range all {
			newest = max(newest, s.Slot)
			switch {
			case s.Slot > last || s.Signature == before:
				return nil, 0, fmt.Errorf("%w: its list of transactions is out of order", follow.ErrTorn)
			case s.Slot <= from:
				return out, newest, nil
			case s.Slot <= to && s.Err == nil:
				out = append(out, s.Slot)
			}
			last = s.Slot
		}
		if len(all) < size {
			return out, newest, nil
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
