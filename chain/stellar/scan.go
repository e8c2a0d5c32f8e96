package stellar

import (
	"context"
	"fmt"
	"strconv"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// block is a ledger with all its operations.
type block struct {
	ledgerRead
	ops []operation
}

// Scan reads the ledgers after the trail. A node whose newest is below the trail is
// ErrBehind. Other assets than lumens are left out.
func (c *Client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	head, err := c.head(ctx)
	if err != nil {
		return chain.Scan{}, err
	}
	return follow.Steps[block]{
		Head: head.Block, Group: c.o.Parallel, Stands: follow.Stands(head.Block, c.at),
		Read: func(ctx context.Context, last chain.Block, n int) ([]block, error) {
			return follow.Read(ctx, last, n, c.block)
		},
		Match: follow.ByBlock(func(ctx context.Context, b block, w chain.Watch) ([]chain.Transfer, error) {
			return c.match(ctx, &b, w)
		}),
		Histories: follow.Histories[block]{
			Most: c.o.FewAddresses, Rest: &c.rest,
			Find: func(ctx context.Context, list []chain.Address, last chain.Block) ([]int64, chain.Block, error) {
				return c.named(ctx, list, last, head.Block)
			},
			Read: follow.Places(c.block),
		},
	}.Scan(ctx, trail, w, limit)
}

// block reads one ledger whole: as many operations as its header counts, all of it.
func (c *Client) block(ctx context.Context, height int64) (block, error) {
	l, err := c.at(ctx, height)
	if err != nil {
		return block{}, err
	}
	b := block{ledgerRead: l}
	err = c.operations(ctx, fmt.Sprintf("/ledgers/%d/operations", height), 0, func(o *operation) (bool, error) {
		if o.ledger() != height {
			return false, fmt.Errorf("%w: an operation of ledger %d among those of %d", chain.ErrNode, o.ledger(), height)
		}
		b.ops = append(b.ops, *o)
		return true, nil
	})
	if err == nil && int64(len(b.ops)) != l.operations {
		err = fmt.Errorf("%w: %d of the %d operations of ledger %d", chain.ErrNode, len(b.ops), l.operations, height)
	}
	return b, err
}

// match makes the transfers of one ledger.
func (c *Client) match(ctx context.Context, b *block, w chain.Watch) ([]chain.Transfer, error) {
	if err := c.withMemos(ctx, b, w); err != nil {
		return nil, err
	}
	var out []chain.Transfer
	for i := range b.ops {
		found, err := c.transfers(ctx, &b.ops[i], b.Block, w)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// fewMemos are asked for one by one. More are read with all transactions of the ledger, 200 in a
// request: what somebody pays us in many transactions does not cost as many requests.
const fewMemos = 5

// withMemos reads the memos of a ledger's payments to watched addresses, where they are many.
func (c *Client) withMemos(ctx context.Context, b *block, w chain.Watch) error {
	wanted := map[string]bool{}
	for i := range b.ops {
		if o := &b.ops[i]; o.pays() && o.muxed == nil && w.Contains(chain.Address(o.to)) {
			wanted[o.tx] = true
		}
	}
	if len(wanted) <= fewMemos {
		return nil
	}
	found, err := c.memos(ctx, b.Height, wanted)
	for i := range b.ops {
		if m, ok := found[b.ops[i].tx]; ok {
			b.ops[i].memo = m
		}
	}
	return err
}

// pays reports whether an operation can bring lumens to the account that it names.
func (o *operation) pays() bool {
	switch o.kind {
	case "create_account", "account_merge":
		return true
	case "payment", "path_payment_strict_receive", "path_payment_strict_send":
		return o.asset == native
	}
	return false
}

// transfers is what one operation brought to watched addresses.
func (c *Client) transfers(ctx context.Context, o *operation, b chain.Block, w chain.Watch) ([]chain.Transfer, error) {
	switch o.kind {
	case "create_account", "account_merge", "payment", "path_payment_strict_receive", "path_payment_strict_send":
	default:
		return c.moved(o, b, w)
	}
	base := chain.Address(o.to)
	if !o.pays() || !w.Contains(base) {
		return nil, nil
	}
	amount := string(o.amount)
	if o.kind == "account_merge" {
		var err error
		if amount, err = c.merged(ctx, o); err != nil {
			return nil, err
		}
	}
	x, err := c.transfer(o, b, o.ordinal(), o.from, base, amount)
	if err != nil {
		return nil, err
	}
	if x.To, x.Memo, err = c.recipient(ctx, o, base, w); err != nil {
		return nil, err
	}
	return []chain.Transfer{x}, nil
}

// recipient is the watched address that a payment went to: the muxed account of its
// id, else the account alone.
func (c *Client) recipient(ctx context.Context, o *operation, base chain.Address, w chain.Watch) (to chain.Address, memo string, err error) {
	m := memoOf(o)
	if m.Kind == "" {
		if m, err = c.memo(ctx, o.tx); err != nil {
			return "", "", err
		}
	}
	id, is := number(m.Text)
	if !is || m.Kind != "id" && m.Kind != "text" {
		return base, m.Text, nil
	}
	return multiplexed(base, id, w), m.Text, nil
}

// memoOf is what is known of an operation's memo; "" Kind = nothing.
func memoOf(o *operation) memo {
	if o.muxed != nil {
		return memo{Kind: "id", Text: string(o.muxed)}
	}
	return o.memo
}

// multiplexed is the watched muxed account of an account and an id, else the account alone.
func multiplexed(base chain.Address, id uint64, w chain.Watch) chain.Address {
	if key, ok := address.StellarKey(base); ok {
		if to := address.StellarMuxed(key, id); w.Contains(to) {
			return to
		}
	}
	return base
}

// merged reads what an account that was merged into another left it.
func (c *Client) merged(ctx context.Context, o *operation) (string, error) {
	path := fmt.Sprintf("/operations/%d/effects?limit=%d", o.id, pageSize)
	raw, err := c.node.get(ctx, path)
	if err != nil {
		return "", err
	}
	amount, n := "", 0
	w := newWalk(raw)
	w.records(func() {
		var kind, account, asset, sum string
		w.Object(func(key []byte) {
			switch string(key) {
			case "type":
				kind = string(w.word())
			case "account":
				account = string(w.word())
			case "asset_type":
				asset = string(w.word())
			case "amount":
				sum = string(w.word())
			default:
				w.Skip()
			}
		})
		if kind == "account_credited" && account == o.to && asset == native {
			amount, n = sum, n+1
		}
	})
	if err := w.End(); err != nil {
		return "", err
	}
	if n != 1 {
		return "", fmt.Errorf("%w: it does not say what merge %d left", chain.ErrNode, o.id)
	}
	return amount, nil
}

// moved are the lumens that a contract brought to watched accounts: whom they are
// for, no memo says.
func (c *Client) moved(o *operation, b chain.Block, w chain.Watch) ([]chain.Transfer, error) {
	var out []chain.Transfer
	for i, x := range o.changes {
		to := chain.Address(x.to)
		if x.asset != native || x.to == x.from || !w.Contains(to) {
			continue
		}
		// Below the ordinals of operations: a transaction has at most a hundred.
		t, err := c.transfer(o, b, -2-i-1000*int(o.id&0xfff), x.from, to, x.amount)
		if err != nil {
			return nil, err
		}
		t.Unproven, t.Memo = true, x.muxed
		if id, is := number(x.muxed); is {
			t.To = multiplexed(to, id, w)
		}
		out = append(out, t)
	}
	return out, nil
}

func (c *Client) transfer(o *operation, b chain.Block, ordinal int, from string, to chain.Address, amount string) (chain.Transfer, error) {
	n, ok := stroops(amount)
	if !ok {
		return chain.Transfer{}, fmt.Errorf("%w: operation %d moves %q", chain.ErrNode, o.id, amount)
	}
	return chain.Transfer{
		Tx: o.tx, Ordinal: ordinal, Block: b, Currency: c.native.Code, From: chain.Address(from), To: to,
		Amount: coins(n), Spends: []string{"tx/" + o.tx}, // what came in names its number nowhere here
	}, nil
}

func slot(a chain.Address, sequence int64) string {
	return string(a) + "/" + strconv.FormatInt(sequence, 10)
}
