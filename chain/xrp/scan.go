package xrp

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strconv"
	"sync"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
)

// Scan reads the validated ledgers after the trail. A node whose newest is below
// the trail is ErrBehind. Issued currencies are left out.
func (c *Client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	head, err := c.head(ctx)
	if err != nil {
		return chain.Scan{}, err
	}
	if len(trail) == 0 {
		return chain.Scan{Blocks: []chain.ScannedBlock{{Block: head.Block}}}, nil
	}
	last := trail[len(trail)-1]
	if head.Height < last.Height {
		return chain.Scan{}, fmt.Errorf("%w: its newest validated ledger is %d, read already %d", chain.ErrBehind, head.Height, last.Height)
	}
	out := chain.Scan{}
	if on, err := c.stands(ctx, last, &head); err != nil {
		return chain.Scan{}, err
	} else if !on {
		if out.Rewound, err = c.rewind(ctx, trail); err != nil {
			return chain.Scan{}, err
		}
		last = trail[len(trail)-1-out.Rewound]
	}
	for limit > len(out.Blocks) && last.Height < head.Height {
		upTo := min(head.Height, last.Height+int64(min(c.o.Parallel, limit-len(out.Blocks))))
		next, err := c.ledgers(ctx, last, upTo)
		if err != nil {
			return chain.Scan{}, err
		}
		if err := w.Sync(ctx); err != nil {
			return chain.Scan{}, fmt.Errorf("xrp: reading watched addresses: %w", err)
		}
		for i := range next {
			found, err := c.match(&next[i], w)
			if err != nil {
				return chain.Scan{}, err
			}
			out.Blocks = append(out.Blocks, chain.ScannedBlock{Block: next[i].Block, Transfers: found})
		}
		last = next[len(next)-1].Block
	}
	return out, nil
}

// stands reports whether a ledger is on the node's chain.
func (c *Client) stands(ctx context.Context, b chain.Block, head *ledgerRead) (bool, error) {
	if head.Height == b.Height {
		return head.Hash == b.Hash, nil
	}
	here, err := c.at(ctx, b.Height)
	return here.Hash == b.Hash, err
}

// rewind counts the ledgers at the trail's end that are not on the chain. What
// was validated never goes away: this is for a node that said so of another chain.
func (c *Client) rewind(ctx context.Context, trail []chain.Block) (int, error) {
	var failed error
	gone := sort.Search(len(trail), func(i int) bool {
		if failed != nil {
			return true
		}
		here, err := c.at(ctx, trail[i].Height)
		failed = err
		return err != nil || here.Hash != trail[i].Hash
	})
	if failed != nil {
		return 0, failed
	}
	if gone == 0 {
		return 0, fmt.Errorf("%w: %d ledgers back to %d", chain.ErrDeepFork, len(trail), trail[0].Height)
	}
	return len(trail) - gone, nil
}

// ledgers reads all of the ledgers after last up to an index that the node has,
// several at once, each the child of the one before.
func (c *Client) ledgers(ctx context.Context, last chain.Block, upTo int64) ([]ledgerRead, error) {
	out := make([]ledgerRead, upTo-last.Height)
	errs := make([]error, len(out))
	var wg sync.WaitGroup
	for i := range out {
		wg.Go(func() { out[i], errs[i] = c.ledger(ctx, last.Height+1+int64(i), whole) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	for i := range out {
		if out[i].Parent != last.Hash {
			return nil, fmt.Errorf("%w: ledger %d is not the child of %s", chain.ErrNode, out[i].Height, last.Hash)
		}
		last = out[i].Block
	}
	return out, nil
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
