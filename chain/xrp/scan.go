package xrp

import (
	"context"
	"encoding/hex"
	"fmt"
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
			return follow.Read(ctx, last, n, func(ctx context.Context, height int64) (ledgerRead, error) { return c.ledger(ctx, height, whole) })
		},
		Match: follow.ByBlock(func(_ context.Context, l ledgerRead, w chain.Watch) ([]chain.Transfer, error) { return c.match(&l, w) }),
	}.Scan(ctx, trail, w, limit)
}

// match makes the transfers of one ledger.
func (c *Client) match(l *ledgerRead, w chain.Watch) ([]chain.Transfer, error) {
	var out []chain.Transfer
	for i := range l.txs {
		found, err := c.transfers(&l.txs[i], l.Block, w)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// executed is the only result that did what the transaction says; tec… took the
// fee alone.
const executed = "tesSUCCESS"

// transfers is what one validated transaction brought to watched addresses.
func (c *Client) transfers(t *txRead, b chain.Block, w chain.Watch) ([]chain.Transfer, error) {
	if string(t.result) != executed {
		return nil, nil
	}
	if kind := string(t.kind); kind != "Payment" && kind != "AccountDelete" {
		return c.gains(t, b, w), nil
	}
	to, memo, err := recipient(t, w)
	if err != nil || to == "" {
		return nil, err
	}
	amount, native := drops(t.delivered)
	if !native {
		if len(t.delivered) > 0 && t.delivered[0] == '{' {
			return nil, nil // an issued currency
		}
		return nil, fmt.Errorf("%w: it does not say what transaction %x delivered", chain.ErrNode, t.id)
	}
	x := c.transfer(t, b, -1, to, amount)
	x.Memo = memo
	return []chain.Transfer{x}, nil
}

// recipient is the watched address that a payment went to, "" where none is: the
// X-address of its tag, else the account alone.
func recipient(t *txRead, w chain.Watch) (to chain.Address, memo string, err error) {
	base := chain.Address(t.destination)
	if !w.Contains(base) {
		return "", "", nil
	}
	if t.tag < 0 {
		return base, "", nil
	}
	id, ok := address.XRPAccount(base)
	if !ok || t.tag > 1<<32-1 {
		return "", "", fmt.Errorf("%w: transaction %x has a malformed destination", chain.ErrNode, t.id)
	}
	memo = strconv.FormatInt(t.tag, 10)
	if to = tagged(id, uint32(t.tag)); w.Contains(to) { //nolint:gosec // checked above
		return to, memo, nil
	}
	return base, memo, nil
}

// gains are the drops that transactions of other kinds brought to watched
// accounts: whom they are for, no tag says.
func (c *Client) gains(t *txRead, b chain.Block, w chain.Watch) []chain.Transfer {
	var out []chain.Transfer
	for _, n := range t.nodes {
		if n.now <= n.before || !w.Contains(chain.Address(n.account)) {
			continue
		}
		x := c.transfer(t, b, -2-len(out), chain.Address(n.account), n.now-n.before)
		x.Unproven = true
		out = append(out, x)
	}
	return out
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
