package solana

import (
	"context"
	"encoding/base64"
	"encoding/binary"
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
	now, err := c.held(ctx, accounts, head)
	if err != nil {
		return nil, chain.Block{}, err
	}
	lists := make([][]listed, len(accounts))
	err = follow.Until(len(accounts), c.o.Parallel, func(i int) (err error) {
		lists[i], err = c.naming(ctx, accounts[i], from, now[i].slot, head)
		return err
	})
	if err == nil {
		err = c.explained(ctx, accounts, now, lists, last, head)
	}
	if err != nil {
		return nil, chain.Block{}, err
	}
	found := map[int64]bool{}
	for _, x := range slices.Concat(lists...) {
		if x.Slot > from && x.Slot <= end.slot && x.Err == nil {
			found[x.Slot] = true
		}
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

// holds is what an account holds: nothing where it does not exist.
type holds struct{ lamports, tokens uint64 }

// look is what an account held from a slot on, at each look until now.
type look struct {
	holds
	slot int64
}

// looks are what was seen by one Scan. They do not change.
type looks struct {
	at    string // the hash of the head
	of    map[key]look
	steps map[place]step
}

// listed is a transaction in the list of an account.
type listed struct {
	Signature string `json:"signature"`
	Slot      int64  `json:"slot"`
	Err       any    `json:"err"`
}

// place is a transaction in the list of an account, and step what it made of that account.
type (
	place struct {
		account   key
		signature string
	}
	step struct{ before, after holds }
)

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
				l.lamports = v.Lamports
				if len(v.Data) > 0 { // shorter where it is no token account
					if d, err := base64.StdEncoding.DecodeString(v.Data[0]); err == nil && len(d) == 8 {
						l.tokens = binary.LittleEndian.Uint64(d)
					}
				}
			}
			out = append(out, l)
		}
	}
	return out, nil
}

// explained returns an error where what accounts hold does not follow, transaction by transaction,
// from what their lists name. Then a list is behind the node's blocks, or lacks something, and blocks
// are read whole. It begins with what an account held at the last block: at the last look, else after
// the newest transaction that is listed up to there, else nothing.
//
// A look is of the head's slot or of a later one. So the last look counts where its head was the last
// block, and a look at or before that block saw the same. What no list tells, as where a node has
// dropped what is old, is passed that way once blocks were read whole beyond it.
//
// What no look can show is a change that was undone before the next one. Strangers only add to an
// account, so one of the two is our own.
func (c *Client) explained(ctx context.Context, accounts []key, now []look, lists [][]listed, last chain.Block, head header) error {
	from, err := slotOf(last.Hash)
	if err != nil {
		return err
	}
	c.mu.Lock()
	old := c.looks
	c.mu.Unlock()
	if old.at != last.Hash {
		old.of = nil
	}
	next := looks{head.Hash, make(map[key]look, len(accounts)), map[place]step{}}
	held := make([]holds, len(accounts)) // at the last block
	var ask []place
	slots := map[place]int64{}
	for i, k := range accounts {
		was, seen := old.of[k]
		if seen && was.slot <= from {
			held[i] = was.holds
			lists[i] = slices.DeleteFunc(lists[i], func(x listed) bool { return x.Slot <= from })
		}
		next.of[k] = now[i]
		if seen && was.holds == now[i].holds {
			next.of[k] = was
		}
		for _, x := range lists[i] {
			p := place{k, x.Signature}
			if s, ok := old.steps[p]; ok {
				next.steps[p] = s
				continue
			}
			ask, slots[p] = append(ask, p), x.Slot
		}
	}
	var mu sync.Mutex
	err = follow.Until(len(ask), c.o.Parallel, func(i int) error {
		s, err := c.step(ctx, ask[i], slots[ask[i]])
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			next.steps[ask[i]] = s
		}
		return err
	})
	c.mu.Lock()
	c.looks = next
	c.mu.Unlock()
	if err != nil {
		return err
	}
	for i, k := range accounts {
		at := held[i]
		for _, x := range slices.Backward(lists[i]) {
			s := next.steps[place{k, x.Signature}]
			if x.Slot > from && s.before != at {
				return fmt.Errorf("%w: something is not listed that changed %s before transaction %s", follow.ErrUntold, k.text(), x.Signature)
			}
			at = s.after
		}
		if at != now[i].holds {
			return fmt.Errorf("%w: something is not listed that changed %s", follow.ErrUntold, k.text())
		}
	}
	return nil
}

// step reads what a transaction of a slot made of an account.
func (c *Client) step(ctx context.Context, p place, slot int64) (step, error) {
	const tries = 4 // of several nodes behind one URL, some may be a little behind
	var t *blockTx
	var at int64
	var err error
	for range tries {
		if t, at, err = c.transaction(ctx, p.signature); err != nil || t != nil {
			break
		}
	}
	if err == nil && (t == nil || t.none || t.lacks || at != slot) {
		err = fmt.Errorf("%w: what transaction %s of slot %d did", follow.ErrUntold, p.signature, slot)
	}
	if err != nil {
		return step{}, err
	}
	e, err := effectOf(t)
	if err != nil {
		return step{}, err
	}
	i := slices.Index(e.accounts, p.account)
	before, err := holdsOf(i, t.pre, t.preTokens)
	if err != nil {
		return step{}, err
	}
	after, err := holdsOf(i, t.post, t.tokens)
	return step{before, after}, err
}

// holdsOf is what a transaction says that its i-th account held.
func holdsOf(i int, coins, tokens []byte) (h holds, err error) {
	all, err := lamports(coins)
	if err != nil {
		return holds{}, err
	}
	if i < 0 || i >= len(all) {
		return holds{}, fmt.Errorf("%w: it lists a transaction for an account that it does not name", follow.ErrTorn)
	}
	h.lamports = all[i]
	balances, err := tokenBalances(tokens)
	for _, b := range balances {
		if b.account == i {
			h.tokens = b.amount
		}
	}
	return h, err
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

// naming lists the transactions up to a slot that name an account, the newest first, down to the
// first that is not after another slot. A page that is shorter than was asked for ends the list.
// Validators give one also where their long-term storage does not have the transaction that the page
// was asked for by: what is missing then is not explained.
func (c *Client) naming(ctx context.Context, k key, from, to int64, head header) (out []listed, err error) {
	before, size := "", firstPage
	for last, page := int64(1)<<62, 0; ; page++ {
		if page == c.most.pages {
			return nil, follow.ErrUntold
		}
		o := object{"limit": size, "commitment": confirmed, "minContextSlot": head.slot}
		if before != "" {
			o["before"] = before
		}
		var all []listed
		if err := c.abreast(ctx, &all, "getSignaturesForAddress", k.text(), o); err != nil {
			return nil, err
		}
		for _, x := range all {
			if x.Slot > last || x.Signature == before {
				return nil, fmt.Errorf("%w: its list of transactions is out of order", follow.ErrTorn)
			}
			if last = x.Slot; x.Slot <= to {
				out = append(out, x)
			}
			if x.Slot <= from {
				return out, nil
			}
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
