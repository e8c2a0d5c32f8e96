package solana

import (
	"fmt"
	"unicode/utf8"
)

// effect is a transaction with all that it did.
type effect struct {
	*transaction
	t         *blockTx
	unread    bool // what it did is known by balances alone
	id        string
	spends    []string
	memo      string
	accounts  []key // also those out of tables
	pre, post []uint64
	lamports  []movement
	moved     []movement // tokens
}

// movement is what one instruction took from one account and gave to another; -1 is
// nobody: tokens that were made or destroyed.
type movement struct {
	from, to int
	amount   uint64
}

// effectOf reads a transaction and whom it names.
func effectOf(t *blockTx) (*effect, error) {
	e := &effect{t: t}
	raw, err := t.bytes()
	if err != nil {
		return nil, err
	}
	if e.transaction, err = readTransaction(raw); err != nil {
		return nil, err
	}
	return e, e.addresses()
}

// addresses are the transaction's own, then what its tables gave.
func (e *effect) addresses() error {
	e.accounts = e.keys
	if e.lookups > 0 {
		writable, readonly, err := loadedOf(e.t.loaded)
		if err != nil {
			return err
		}
		e.accounts = append(append(e.keys[:len(e.keys):len(e.keys)], writable...), readonly...)
	}
	if len(e.accounts) != len(e.keys)+e.lookups {
		return fmt.Errorf("%d addresses out of tables where %d were looked up", len(e.accounts)-len(e.keys), e.lookups)
	}
	return nil
}

// loadedOf reads the addresses that tables gave.
func loadedOf(raw []byte) (writable, readonly []key, err error) {
	w := walkOf(raw)
	w.Object(func(name []byte) {
		switch string(name) {
		case "writable":
			w.Array(func() { writable = append(writable, w.key()) })
		case "readonly":
			w.Array(func() { readonly = append(readonly, w.key()) })
		default:
			w.Skip()
		}
	})
	return writable, readonly, w.End()
}

// complete reads what matters of a transaction that paid somebody of ours.
func (e *effect) complete() error {
	if e.id != "" {
		return nil
	}
	var err error
	if e.pre, err = lamports(e.t.pre); err == nil {
		e.post, err = lamports(e.t.post)
	}
	if err == nil {
		err = e.walk()
	}
	e.id, e.spends = signatureText(e.signatures[0]), []string{spend(e.message)}
	return err
}

func lamports(b []byte) (out []uint64, err error) {
	w := walkOf(b)
	w.Array(func() { w.Peek(); out = append(out, w.whole()) })
	return out, w.End()
}

// walk reads the instructions in the order in which they were executed. Where what
// programs called names accounts that are not there, none of it is believed: the
// balances are what is left.
func (e *effect) walk() error {
	inner := map[int][]call{}
	w := walkOf(e.t.inner)
	w.Array(func() {
		at := -1
		var calls []call
		w.Object(func(name []byte) {
			switch string(name) {
			case "index":
				at = int(min(w.number(), 1<<20))
			case "instructions":
				w.Array(func() { calls = append(calls, readInner(w)) })
			default:
				w.Skip()
			}
		})
		inner[at] = append(inner[at], calls...)
	})
	if err := w.End(); err != nil {
		return err
	}
	for i := range e.calls {
		e.note(&e.calls[i])
		if e.memo == "" {
			e.memo = e.words(&e.calls[i])
		}
		for j := range inner[i] {
			x := &inner[i][j]
			if !x.within(len(e.accounts)) {
				e.unread, e.lamports, e.moved = true, nil, nil
				return nil
			}
			e.note(x)
		}
	}
	return nil
}

// within reports whether an instruction names none but the first accounts.
func (x *call) within(accounts int) bool {
	for _, a := range x.accounts {
		if int(a) >= accounts {
			return false
		}
	}
	return x.program < accounts
}

func readInner(w walk) call {
	x := call{program: -1}
	w.Object(func(name []byte) {
		switch string(name) {
		case "programIdIndex":
			x.program = int(min(w.number(), 1<<20))
		case "accounts":
			w.Array(func() { x.accounts = append(x.accounts, byte(min(w.number(), 255))) })
		case "data":
			x.data = decode58(w.Text())
		default:
			w.Skip()
		}
	})
	if x.program < 0 {
		w.Fail()
	}
	return x
}

// decode58 reads the data of an instruction; of one that is too long to move
// anything nothing is read.
func decode58(s []byte) []byte {
	const longest = 160
	if len(s) > longest {
		return nil
	}
	var b [longest]byte
	at := len(b)
	for i, r := range s {
		v := int(digits[r])
		if v == 0xff {
			return nil
		}
		if v == 0 && at == len(b) && i >= 0 {
			continue // leading zeros are put back below
		}
		for j := len(b) - 1; j >= at || v > 0; j-- {
			if j < 0 {
				return nil
			}
			v += int(b[j]) * 58
			b[j] = byte(v)
			v >>= 8
			at = min(at, j)
		}
	}
	for i := 0; i < len(s) && s[i] == alphabet[0] && at > 0; i++ {
		at--
	}
	return b[at:]
}

// words is what a memo says.
func (e *effect) words(x *call) string {
	if p := e.accounts[x.program]; p != memoProgram && p != memoProgramOld || !utf8.Valid(x.data) {
		return ""
	}
	return string(x.data)
}
