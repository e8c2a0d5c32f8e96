package solana

import (
	"encoding/base64"
	"fmt"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// block is what we read of a block.
type block struct {
	header
	txs        []blockTx
	signatures map[string]bool // where only those were asked for
	named      []named         // what its transactions name, once it was asked for
	seen       int             // which fields
}

// At is the block itself.
func (b *block) At() chain.Block { return b.Block }

// blockTx is a transaction as the node gives it, and what it did. What only matters
// where somebody was paid is kept as text, and read then.
type blockTx struct {
	raw       []byte // base64
	names     named  // where the node told it instead of raw
	id        string // "" where only raw tells it
	later     bool   // a version that is newer than this reader
	none      bool   // the node has not what it did
	lacks     bool   // of what it did, something that every transaction has
	failed    bool
	fee       []byte
	pre, post []byte // JSON lists of lamports
	preTokens []byte
	tokens    []byte // after it
	inner     []byte
	loaded    []byte
}

// readBlock reads the answer to getBlock.
func readBlock(k *transport.Call, slot int64) (*block, error) {
	if k.Err != nil {
		return nil, k.Err
	}
	if k.Null() {
		return nil, fmt.Errorf("%w: it has no block in slot %d", follow.ErrTorn, slot)
	}
	w := walk{transport.NewWalk(k.Out)}
	b := &block{}
	var parent string
	var seconds int64
	b.slot = slot
	w.Object(func(name []byte) {
		switch string(name) {
		case "blockHeight":
			b.Height = w.number()
			b.seen |= 1
		case "blockTime":
			seconds = w.maybe()
		case "blockhash":
			b.blockhash = string(w.Text())
			b.seen |= 2
		case "parentSlot":
			b.parentSlot = w.number()
			b.seen |= 4
		case "previousBlockhash":
			parent = string(w.Text())
			b.seen |= 8
		case "transactions":
			b.seen |= 16
			w.Array(func() { b.txs = append(b.txs, readBlockTx(w)) })
		case "signatures":
			b.seen |= 32
			b.signatures = map[string]bool{}
			w.Array(func() { b.signatures[string(w.Text())] = true })
		default:
			w.Skip()
		}
	})
	if err := w.End(); err != nil {
		return nil, follow.Torn(err)
	}
	hash, ok := parseKey(b.blockhash)
	prev, fits := parseKey(parent)
	if b.seen&15 != 15 || !ok || !fits || hash == prev || b.parentSlot >= slot && slot > 0 {
		return nil, fmt.Errorf("%w: block in slot %d without height, hash or parent", follow.ErrTorn, slot)
	}
	b.Hash, b.Parent, b.Time = name(slot, b.blockhash), name(b.parentSlot, parent), unix(seconds)
	return b, nil
}

// readBlockTx reads one entry of a block, or the answer to getTransaction.
func readBlockTx(w walk) blockTx {
	t := blockTx{none: true}
	w.Object(func(name []byte) {
		switch string(name) {
		case "transaction":
			if w.Peek() == '{' {
				t.names = readNamed(w)
				t.id = t.names.id
				return
			}
			n := 0
			w.Array(func() {
				if n++; n == 1 {
					t.raw = w.Text()
					return
				}
				w.Skip()
			})
		case "meta":
			t.meta(w)
		case "version":
			t.later = later(w.Raw())
		default:
			w.Skip()
		}
	})
	if len(t.raw) == 0 && t.id == "" && !t.later {
		w.Fail()
	}
	return t
}

// later reports whether what a node says of a version is none that is known here. It
// says nothing where it was not asked for versions.
func later(version []byte) bool {
	switch string(version) {
	case `"legacy"`, "0", "1", "null":
		return false
	}
	return true
}

func (t *blockTx) meta(w walk) {
	if w.Peek() == 'n' {
		w.Skip()
		return
	}
	told := false
	w.Object(func(name []byte) {
		switch string(name) {
		case "err":
			t.failed, told = !transport.Null(w.Raw()), true
		case "fee":
			t.fee = w.Raw()
		case "preBalances":
			t.pre = w.Raw()
		case "postBalances":
			t.post = w.Raw()
		case "preTokenBalances":
			t.preTokens = w.Raw()
		case "postTokenBalances":
			t.tokens = w.Raw()
		case "innerInstructions":
			t.inner = w.Raw()
		case "loadedAddresses":
			t.loaded = w.Raw()
		default:
			w.Skip()
		}
	})
	t.none, t.lacks = false, !told || t.pre == nil || t.post == nil
}

// bytes are the transaction's own.
func (t *blockTx) bytes() ([]byte, error) {
	raw := make([]byte, base64.StdEncoding.DecodedLen(len(t.raw)))
	n, err := base64.StdEncoding.Decode(raw, t.raw)
	if err != nil {
		return nil, errWire
	}
	return raw[:n], nil
}

// walk reads answers in place.
type walk struct{ *transport.Walk }

func walkOf(b []byte) walk {
	if b == nil {
		b = []byte("null")
	}
	return walk{transport.NewWalk(b)}
}

// number reads a whole number from 0 to 2^63−1.
func (w walk) number() int64 {
	w.Peek()
	n := w.whole()
	if n > 1<<63-1 {
		w.Fail()
		return 0
	}
	return int64(n)
}

// whole reads a whole number from 0 to 2^64−1.
func (w walk) whole() uint64 { return w.count(w.Literal()) }

func (w walk) count(s []byte) uint64 {
	var n uint64
	for _, d := range s {
		if d < '0' || d > '9' || n > (1<<64-1-uint64(d-'0'))/10 {
			w.Fail()
			return 0
		}
		n = n*10 + uint64(d-'0')
	}
	if len(s) == 0 {
		w.Fail()
	}
	return n
}

// maybe reads a number or null, which is 0.
func (w walk) maybe() int64 {
	if w.Peek() == 'n' {
		w.Skip()
		return 0
	}
	return w.number()
}

// key reads base58 of 32 bytes.
func (w walk) key() key {
	k, ok := parseKey(string(w.Text()))
	if !ok {
		w.Fail()
	}
	return k
}

// gained lists the accounts that have more lamports after than before, and how many
// there are in all. It reads both lists side by side.
func gained(pre, post []byte, into []int) (rich []int, all int, err error) {
	a, b := walkOf(pre), walkOf(post)
	n := 0
	counts := func(w walk, f func(uint64)) { w.Array(func() { w.Peek(); f(w.whole()) }) }
	// One walk drives the other: both hold as many numbers, or the answer is broken.
	if !a.Take('[') {
		a.Fail()
	}
	first := true
	counts(b, func(after uint64) {
		if !first && !a.Take(',') {
			a.Fail()
		}
		first = false
		a.Peek()
		if before := a.whole(); after > before {
			into = append(into, n)
		}
		n++
	})
	if !a.Take(']') {
		a.Fail()
	}
	if a.End() != nil || b.End() != nil {
		return nil, 0, fmt.Errorf("%w: balances before and after a transaction do not match", chain.ErrNode)
	}
	return into, n, nil
}

// tokenBalance is what a token account holds.
type tokenBalance struct {
	account int
	owner   string
	mint    string
	program string
	amount  uint64
}

// tokenBalances reads one of the lists.
func tokenBalances(b []byte) ([]tokenBalance, error) {
	w := walkOf(b)
	var out []tokenBalance
	w.Array(func() {
		t := tokenBalance{account: -1}
		amount := false
		w.Object(func(name []byte) {
			switch string(name) {
			case "accountIndex":
				t.account = int(min(w.number(), 1<<20))
			case "owner":
				t.owner = w.textOrNull()
			case "mint":
				t.mint = string(w.Text())
			case "programId":
				t.program = w.textOrNull()
			case "uiTokenAmount":
				w.Object(func(name []byte) {
					if string(name) == "amount" {
						t.amount, amount = w.count(w.Text()), true
						return
					}
					w.Skip()
				})
			default:
				w.Skip()
			}
		})
		if t.account < 0 || !amount || t.mint == "" {
			w.Fail()
		}
		out = append(out, t)
	})
	return out, w.End()
}

func (w walk) textOrNull() string {
	if w.Peek() == 'n' {
		w.Skip()
		return ""
	}
	return string(w.Text())
}
