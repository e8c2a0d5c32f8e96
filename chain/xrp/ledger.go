package xrp

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// walk reads answers in place, with the notations of rippled.
type walk struct{ *transport.Walk }

func newWalk(b []byte) walk { return walk{transport.NewWalk(b)} }

// number reads a whole number from 0 to 2^63−1, bare or in quotes: API versions
// differ.
func (w walk) number() int64 {
	s := w.Raw()
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

func (w walk) hash() (h [32]byte) {
	if !transport.Unhex(h[:], w.Text()) {
		w.Fail()
	}
	return h
}

// ledgerRead is what we read of a ledger.
type ledgerRead struct {
	chain.Block
	txs []txRead
	ids [][32]byte // where only hashes were asked for

	root      [32]byte // of the tree of transactions; zero where there are none
	closed    bool
	validated bool
	seen      int
}

// At is the ledger itself.
func (l ledgerRead) At() chain.Block { return l.Block }

// txRead is what we read of a transaction in a ledger.
type txRead struct {
	id          [32]byte
	kind        []byte // TransactionType
	account     []byte
	destination []byte
	tag         int64 // −1: none
	sequence    int64
	ticket      int64
	index       int64 // in the ledger, −1: not told
	result      []byte
	delivered   []byte // raw JSON of delivered_amount, which some methods add; nil: not told
	inMeta      []byte // raw JSON of DeliveredAmount, the metadata's own; nil: not told
	nodes       []balance
	ledger      int64 // where a list of transactions says it
	validated   bool
	meta        bool
}

// balance is what a transaction did to one account's drops.
type balance struct {
	account     []byte
	before, now int64
}

// rippleEpoch is 2000-01-01 in Unix seconds.
const rippleEpoch = 946_684_800

// detail says how much of a ledger is asked for.
type detail int

const (
	headerOnly detail = iota
	hashes
	whole
)

// ledger reads one validated ledger, by index or "validated".
func (c *Client) ledger(ctx context.Context, which any, d detail) (ledgerRead, error) {
	raw, err := c.node.call(ctx, "ledger", params{"ledger_index": which, "transactions": d != headerOnly, "expand": d == whole})
	if err != nil {
		return ledgerRead{}, err
	}
	l, err := readLedger(raw, d)
	if n, ok := which.(int64); err == nil && ok && l.Height != n {
		err = fmt.Errorf("%w: asked for ledger %d, got %d", follow.ErrTorn, n, l.Height)
	}
	return l, err
}

func readLedger(raw []byte, d detail) (ledgerRead, error) {
	var l ledgerRead
	w := newWalk(raw)
	w.Object(func(key []byte) {
		switch string(key) {
		case "validated":
			l.validated = string(w.Raw()) == "true"
		case "ledger":
			w.Object(func(key []byte) { l.field(w, key, d) })
		default:
			w.Skip()
		}
	})
	if err := w.End(); err != nil {
		return ledgerRead{}, follow.Torn(err)
	}
	return l, l.check(d)
}

func (l *ledgerRead) field(w walk, key []byte, d detail) {
	switch string(key) {
	case "ledger_hash":
		h := w.hash()
		l.Hash = fmt.Sprintf("%x", h)
		l.seen |= 1
	case "parent_hash":
		h := w.hash()
		l.Parent = fmt.Sprintf("%x", h)
		l.seen |= 2
	case "ledger_index":
		l.Height = w.number()
		l.seen |= 4
	case "close_time":
		l.Time = time.Unix(rippleEpoch+min(w.number(), 1<<33), 0).UTC()
		l.seen |= 8
	case "transaction_hash":
		l.root = w.hash()
		l.seen |= 16
	case "closed":
		l.closed = string(w.Raw()) == "true"
	case "transactions":
		switch d {
		case whole:
			w.Array(func() { l.txs = append(l.txs, readTx(w)) })
		case hashes:
			w.Array(func() { l.ids = append(l.ids, w.hash()) })
		default:
			w.Skip()
		}
	default:
		w.Skip()
	}
}

// check holds a ledger against itself: validated, and with all that is in it.
// Transactions are numbered from 0, and only an empty tree has a root of zeros.
func (l *ledgerRead) check(d detail) error {
	switch {
	case l.seen != 31:
		return fmt.Errorf("%w: a ledger without hash, parent, index, time or root", follow.ErrTorn)
	case !l.validated || !l.closed:
		return fmt.Errorf("%w: ledger %d is not validated", follow.ErrTorn, l.Height)
	case d == headerOnly:
		return nil
	}
	if n := len(l.txs) + len(l.ids); (n == 0) != (l.root == [32]byte{}) {
		return fmt.Errorf("%w: %d transactions of ledger %d do not fit its root", follow.ErrTorn, n, l.Height)
	}
	numbered := make([]bool, len(l.txs))
	for i := range l.txs {
		t := &l.txs[i]
		if !t.meta || t.index < 0 || t.index >= int64(len(numbered)) || numbered[t.index] {
			return fmt.Errorf("%w: the transactions of ledger %d are not all there", follow.ErrTorn, l.Height)
		}
		numbered[t.index] = true
	}
	slices.SortFunc(l.txs, func(a, b txRead) int { return int(a.index - b.index) })
	return nil
}

// readTx reads a transaction with its metadata, in the forms of ledger, tx and
// account_tx of either API version.
func readTx(w walk) txRead {
	t := txRead{tag: -1, index: -1}
	w.Object(func(key []byte) { t.field(w, key) })
	return t
}

func (t *txRead) field(w walk, key []byte) {
	switch string(key) {
	case "tx", "tx_json":
		w.Object(func(key []byte) { t.field(w, key) })
	case "meta", "metaData":
		t.meta = true
		w.Object(func(key []byte) { t.metaField(w, key) })
	case "hash":
		t.id = w.hash()
	case "TransactionType":
		t.kind = w.Text()
	case "Account":
		t.account = w.Text()
	case "Destination":
		t.destination = w.Text()
	case "DestinationTag":
		t.tag = w.number()
	case "Sequence":
		t.sequence = w.number()
	case "TicketSequence":
		t.ticket = w.number()
	case "ledger_index":
		t.ledger = w.number()
	case "validated":
		t.validated = string(w.Raw()) == "true"
	default:
		w.Skip()
	}
}

func (t *txRead) metaField(w walk, key []byte) {
	switch string(key) {
	case "TransactionIndex":
		t.index = w.number()
	case "TransactionResult":
		t.result = w.Text()
	case "delivered_amount":
		t.delivered = w.Raw()
	case "DeliveredAmount":
		t.inMeta = w.Raw()
	case "AffectedNodes":
		w.Array(func() {
			w.Object(func(key []byte) {
				if n, ok := readNode(w, string(key) == "CreatedNode"); ok {
					t.nodes = append(t.nodes, n)
				}
			})
		})
	default:
		w.Skip()
	}
}

// readNode reads one changed ledger entry; ok is false for whatever is no
// account.
func readNode(w walk, created bool) (n balance, ok bool) {
	var kind []byte
	changed := false
	w.Object(func(key []byte) {
		switch string(key) {
		case "LedgerEntryType":
			kind = w.Text()
		case "FinalFields", "NewFields":
			w.Object(func(key []byte) {
				switch string(key) {
				case "Account":
					n.account = plain(w.Raw())
				case "Balance":
					n.now, _ = drops(w.Raw())
				default:
					w.Skip()
				}
			})
		case "PreviousFields":
			w.Object(func(key []byte) {
				if string(key) == "Balance" {
					n.before, changed = drops(w.Raw())
					return
				}
				w.Skip()
			})
		default:
			w.Skip()
		}
	})
	if !changed && !created {
		n.before = n.now
	}
	return n, string(kind) == "AccountRoot" && len(n.account) > 0
}

// plain is a text without its quotes, nil for another value.
func plain(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	return raw[1 : len(raw)-1]
}

// drops reads an amount of XRP: a text of digits. ok is false for an issued
// currency, which is an object, and for "unavailable".
func drops(raw []byte) (n int64, ok bool) {
	s := plain(raw)
	if len(s) == 0 || len(s) > 18 || bytes.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, false
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	return n, err == nil && n <= maxDrops
}
