package stellar

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// walk reads answers in place, with the notations of Horizon.
type walk struct{ *transport.Walk }

func newWalk(b []byte) walk { return walk{transport.NewWalk(b)} }

// number reads a whole number from 0 to 2^63−1, bare or in quotes; null is 0.
func (w walk) number() int64 {
	s := w.Raw()
	if string(s) == "null" {
		return 0
	}
	if len(s) > 1 && s[0] == '"' {
		s = s[1 : len(s)-1]
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil || n < 0 {
		w.Fail()
		return 0
	}
	return n
}

// word is a text, "" for any other value: fields of types of operations that are not
// known here can have the names of those that are.
func (w walk) word() []byte {
	if w.Peek() != '"' {
		w.Skip()
		return nil
	}
	return w.Text()
}

func (w walk) hash() string {
	var h [32]byte
	if !transport.Unhex(h[:], w.Text()) {
		w.Fail()
	}
	return fmt.Sprintf("%x", h)
}

// ledgerRead is what we read of a ledger's header.
type ledgerRead struct {
	chain.Block
	operations  int64
	baseReserve int64 // stroops
	seen        int
}

// At is the ledger itself.
func (l ledgerRead) At() chain.Block { return l.Block }

func readLedger(w walk) ledgerRead {
	var l ledgerRead
	w.Object(func(key []byte) {
		switch string(key) {
		case "hash":
			l.Hash = w.hash()
			l.seen |= 1
		case "prev_hash":
			l.Parent = w.hash()
			l.seen |= 2
		case "sequence":
			l.Height = w.number()
			l.seen |= 4
		case "closed_at":
			at, err := time.Parse(time.RFC3339, string(w.Text()))
			if err != nil {
				w.Fail()
			}
			l.Time = at.UTC()
			l.seen |= 8
		case "operation_count":
			l.operations = w.number()
			l.seen |= 16
		case "base_reserve_in_stroops":
			l.baseReserve = w.number()
			l.seen |= 32
		default:
			w.Skip()
		}
	})
	return l
}

func (l *ledgerRead) check(w walk) error {
	if err := w.End(); err != nil {
		return err
	}
	if l.seen != 63 || l.baseReserve <= 0 || l.baseReserve > 1000*lumen {
		return fmt.Errorf("%w: a ledger without hash, parent, sequence, time, count or reserve", chain.ErrNode)
	}
	return nil
}

// head is the newest ledger, of the right network.
func (c *Client) head(ctx context.Context) (ledgerRead, error) {
	if err := c.rightChain(ctx); err != nil {
		return ledgerRead{}, err
	}
	raw, err := c.node.get(ctx, "/ledgers?order=desc&limit=1")
	if err != nil {
		return ledgerRead{}, err
	}
	var all []ledgerRead
	w := newWalk(raw)
	w.records(func() { all = append(all, readLedger(w)) })
	if len(all) != 1 {
		return ledgerRead{}, fmt.Errorf("%w: it has no ledgers", chain.ErrNode)
	}
	return all[0], all[0].check(w)
}

// at reads the header of a ledger, which the node must have.
func (c *Client) at(ctx context.Context, height int64) (ledgerRead, error) {
	raw, err := c.node.get(ctx, fmt.Sprintf("/ledgers/%d", height))
	if err != nil {
		return ledgerRead{}, err
	}
	w := newWalk(raw)
	l := readLedger(w)
	if err := l.check(w); err != nil {
		return ledgerRead{}, err
	}
	if l.Height != height {
		return ledgerRead{}, fmt.Errorf("%w: asked for ledger %d, got %d", follow.ErrTorn, height, l.Height)
	}
	return l, nil
}

// records calls f before each record of a page.
func (w walk) records(f func()) {
	found := false
	w.Object(func(key []byte) {
		if string(key) != "_embedded" {
			w.Skip()
			return
		}
		w.Object(func(key []byte) {
			if string(key) != "records" {
				w.Skip()
				return
			}
			found = true
			w.Array(f)
		})
	})
	if !found {
		w.Fail()
	}
}

// operation is what we read of an operation.
type operation struct {
	id      int64 // ledger << 32 | transaction << 12 | operation, counted from 1
	tx      string
	good    bool
	kind    string
	asset   string // "native"
	from    string
	to      string
	muxed   []byte // id of a muxed destination, nil: none
	amount  []byte // of coins, in a text
	changes []change
	memo    memo // of its transaction, where it was read; else without Kind
}

// native is how Horizon names lumens.
const native = "native"

// change is what a contract did to balances.
type change struct{ kind, asset, from, to, muxed, amount string }

func (o *operation) ledger() int64 { return o.id >> 32 }

// ordinal is the operation's place within its transaction: −1 the first one's, n
// the n-th after it.
func (o *operation) ordinal() int {
	if n := int(o.id & 0xfff); n > 1 {
		return n - 1
	}
	return -1
}

func readOperation(w walk) operation {
	var o operation
	seen, account := 0, ""
	w.Object(func(key []byte) {
		switch string(key) {
		case "id":
			o.id = w.number()
			seen |= 1
		case "transaction_hash":
			o.tx = w.hash()
			seen |= 2
		case "transaction_successful":
			o.good = string(w.Raw()) == "true"
		case "type":
			o.kind = string(w.Text())
			seen |= 4
		case "asset_type":
			o.asset = string(w.word())
		case "from", "funder":
			o.from = string(w.word())
		case "to", "into":
			o.to = string(w.word())
		case "account":
			account = string(w.word())
		case "to_muxed_id", "into_muxed_id":
			o.muxed = w.digits()
		case "amount", "starting_balance":
			o.amount = w.word()
		case "asset_balance_changes":
			if w.Peek() != '[' {
				w.Skip()
				return
			}
			w.Array(func() { o.changes = append(o.changes, readChange(w)) })
		default:
			w.Skip()
		}
	})
	switch o.kind {
	case "create_account":
		o.to, o.asset = account, native
	case "account_merge":
		o.from = account
	}
	if seen != 7 || o.id <= 0 {
		w.Fail()
	}
	return o
}

// digits is a number as it is written, bare or in quotes; nil for null.
func (w walk) digits() []byte {
	s := w.Raw()
	if len(s) > 1 && s[0] == '"' {
		return s[1 : len(s)-1]
	}
	if string(s) == "null" {
		return nil
	}
	return s
}

func readChange(w walk) change {
	var x change
	if w.Peek() != '{' {
		w.Skip()
		return x
	}
	w.Object(func(key []byte) {
		switch string(key) {
		case "type":
			x.kind = string(w.word())
		case "asset_type":
			x.asset = string(w.word())
		case "from":
			x.from = string(w.word())
		case "to":
			x.to = string(w.word())
		case "destination_muxed_id":
			x.muxed = string(w.word())
		case "amount":
			x.amount = string(w.word())
		default:
			w.Skip()
		}
	})
	return x
}

// stroops reads an amount of coins with at most seven places.
func stroops(s string) (int64, bool) {
	if len(s) == 0 || len(s) > 24 || s[0] == '-' || s[0] == '+' {
		return 0, false
	}
	for _, r := range s {
		if r != '.' && (r < '0' || r > '9') {
			return 0, false
		}
	}
	d, err := decimal.NewFromString(s)
	if err != nil || d.Exponent() < -7 {
		return 0, false
	}
	v := d.Shift(7).BigInt()
	return v.Int64(), v.IsInt64()
}

// pageSize is the most records that Horizon gives at once.
const pageSize = 200

// operations pages through a list of operations, oldest first, until f says that it
// has seen enough or there are no more.
func (c *Client) operations(ctx context.Context, path string, cursor int64, f func(o *operation) (more bool, err error)) error {
	for {
		raw, err := c.node.get(ctx, fmt.Sprintf("%s?order=asc&limit=%d&include_failed=false&cursor=%d", path, pageSize, cursor))
		if err != nil {
			return err
		}
		var page []operation
		w := newWalk(raw)
		w.records(func() { page = append(page, readOperation(w)) })
		if err := w.End(); err != nil {
			return err
		}
		for i := range page {
			o := &page[i]
			if !o.good || o.id <= cursor {
				return fmt.Errorf("%w: operations that failed, or out of order", chain.ErrNode)
			}
			cursor = o.id
			if more, err := f(o); err != nil || !more {
				return err
			}
		}
		if len(page) < pageSize {
			return nil
		}
	}
}

// memo is what a transaction says beside what it does.
type memo struct {
	Hash string `json:"hash"`
	Kind string `json:"memo_type"` // as Horizon names it
	Text string `json:"memo"`      // hashes in base64
}

// memo reads the memo of a transaction.
func (c *Client) memo(ctx context.Context, tx string) (m memo, err error) {
	raw, err := c.node.get(ctx, "/transactions/"+tx)
	if err != nil {
		return m, err
	}
	if json.Unmarshal(raw, &m) != nil || m.Hash != tx || m.Kind == "" {
		return m, fmt.Errorf("%w: it was asked for transaction %s and answered something else", chain.ErrNode, tx)
	}
	return m, nil
}

// memos reads those of the transactions of a ledger, up to the last that is wanted. A node that
// leaves one out is asked for it by itself.
func (c *Client) memos(ctx context.Context, height int64, wanted map[string]bool) (map[string]memo, error) {
	found := make(map[string]memo, len(wanted))
	for cursor := int64(0); len(found) < len(wanted); {
		var page struct {
			Embedded struct {
				Records []struct {
					memo
					Token string `json:"paging_token"`
				} `json:"records"`
			} `json:"_embedded"`
		}
		if err := c.node.ask(ctx, fmt.Sprintf("/ledgers/%d/transactions?order=asc&limit=%d&include_failed=false&cursor=%d", height, pageSize, cursor), &page); err != nil {
			return nil, err
		}
		records := page.Embedded.Records
		for _, r := range records {
			if wanted[r.Hash] && r.Kind != "" {
				found[r.Hash] = r.memo
			}
		}
		if len(records) < pageSize {
			break
		}
		last, err := strconv.ParseInt(records[len(records)-1].Token, 10, 64)
		if err != nil || last <= cursor {
			return nil, fmt.Errorf("%w: transactions of ledger %d out of order", chain.ErrNode, height)
		}
		cursor = last
	}
	return found, nil
}
