package xrp

import (
	"context"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
)

// Scan reads the validated ledgers after the trail. A node whose newest is below
// the trail is ErrBehind. Issued currencies are left out.
func (c *Client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	head, err := c.head(ctx)
	if err != nil {
		return chain.Scan{}, err
	}
	return follow.Steps[ledgerRead]{
		Head: head.Block, Group: c.o.Parallel, Stands: follow.Stands(head.Block, c.at),
		Read: func(ctx context.Context, last chain.Block, n int) ([]ledgerRead, error) {
			return follow.Read(ctx, last, n, c.whole)
		},
		Match: follow.ByBlock(func(_ context.Context, l ledgerRead, w chain.Watch) ([]chain.Transfer, error) {
			return c.match(&l, w), nil
		}),
		Histories: follow.Histories[ledgerRead]{
			Most: c.o.FewAddresses, Rest: &c.rest,
			Find: func(ctx context.Context, list []chain.Address, last chain.Block) ([]int64, chain.Block, error) {
				return c.named(ctx, list, last, head.Block)
			},
			Read: follow.Places(c.whole),
		},
	}.Scan(ctx, trail, w, limit)
}

func (c *Client) whole(ctx context.Context, height int64) (ledgerRead, error) {
	return c.ledger(ctx, height, whole)
}

// match makes the transfers of one ledger. What a transaction holds is its author's
// choice, so nothing in it is an error: what is not understood is reported as the
// balances show it.
func (c *Client) match(l *ledgerRead, w chain.Watch) []chain.Transfer {
	var out []chain.Transfer
	for i := range l.txs {
		out = append(out, c.transfers(&l.txs[i], l.Block, w)...)
	}
	return out
}

// executed is the only result that did what the transaction says; tec… took the
// fee alone.
const executed = "tesSUCCESS"

// transfers is what one validated transaction brought to watched addresses: what a
// payment or the deletion of an account delivered, and every other rise of a watched
// account's drops, of whatever type the transaction is.
func (c *Client) transfers(t *txRead, b chain.Block, w chain.Watch) []chain.Transfer {
	out, paid := c.delivered(t, b, w)
	number := 0
	for _, n := range t.nodes {
		if n.now <= n.before {
			continue
		}
		number++ // also of accounts that are not watched: it is part of the transfer's identity
		to := chain.Address(n.account)
		if to == paid || !w.Contains(to) {
			continue
		}
		x := c.transfer(t, b, -1-number, to, n.now-n.before)
		x.Unproven = true // no tag says whom it is for
		out = append(out, x)
	}
	return out
}

// delivered is what a payment or the deletion of an account brought to a watched
// account, by the server's word or the metadata's: rippled's method ledger adds its word
// to payments and checks alone. Where neither says it, out is empty, and the balances tell.
func (c *Client) delivered(t *txRead, b chain.Block, w chain.Watch) (out []chain.Transfer, account chain.Address) {
	kind := string(t.kind)
	if string(t.result) != executed || kind != "Payment" && kind != "AccountDelete" {
		return nil, ""
	}
	amount, native := drops(t.delivered)
	if !native {
		if amount, native = drops(t.inMeta); !native {
			return nil, ""
		}
	}
	to, memo := recipient(t, w)
	if to == "" {
		return nil, ""
	}
	x := c.transfer(t, b, -1, to, amount)
	x.Memo = memo
	return []chain.Transfer{x}, chain.Address(t.destination)
}

// recipient is the watched address that a payment went to, "" where none is: the
// X-address of its tag, else the account alone.
func recipient(t *txRead, w chain.Watch) (to chain.Address, memo string) {
	base := chain.Address(t.destination)
	if !w.Contains(base) {
		return "", ""
	}
	if t.tag < 0 {
		return base, ""
	}
	memo = strconv.FormatInt(t.tag, 10)
	if id, ok := address.XRPAccount(base); ok && t.tag <= math.MaxUint32 {
		if to = tagged(id, uint32(t.tag)); w.Contains(to) {
			return to, memo
		}
	}
	return base, memo
}

func (c *Client) transfer(t *txRead, b chain.Block, ordinal int, to chain.Address, amount int64) chain.Transfer {
	return chain.Transfer{
		Tx: hex.EncodeToString(t.id[:]), Ordinal: ordinal, Block: b, Currency: c.native.Code,
		From: chain.Address(t.account), To: to, Amount: decimal.New(amount, -int32(c.native.Decimals)),
		Spends: []string{t.spends()},
	}
}

// spends names what a transaction consumed: a Sequence of its account's, or a
// ticket, which stands outside of their order.
func (t *txRead) spends() string {
	if t.sequence == 0 && t.ticket > 0 {
		return fmt.Sprintf("%s/ticket/%d", t.account, t.ticket)
	}
	return slot(chain.Address(t.account), t.sequence)
}

func slot(a chain.Address, sequence int64) string { return fmt.Sprintf("%s/%d", a, sequence) }
