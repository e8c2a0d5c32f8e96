package memory

import (
	"cmp"
	"hash/maphash"
	"math/bits"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// part is one partition.
type part struct {
	name      storage.Partition
	txs       txIndex
	accounts  accountIndex
	byAccount map[ledger.Account][]*account
	tables    map[*storage.Table]*table
	levels    map[string]int64
	steps     []step   // scratch of post
	hashes    []uint64 // and of its transactions' ids
}

func newPart(name storage.Partition) *part {
	return &part{
		name: name, byAccount: map[ledger.Account][]*account{},
		tables: map[*storage.Table]*table{}, levels: map[string]int64{},
	}
}

// account is one balance with its history; the Seq of an entry is its place.
type account struct {
	hash    uint64
	balance ledger.Balance
	entries []entry
}

// entry is 24 bytes without a pointer, for histories are long.
type entry struct {
	tx           uint32
	delta, after ledger.Amount
}

type txRec struct {
	id, change string
	kind       ledger.Kind
	ref        string
	at         int64
}

type step struct {
	a     *account
	leg   *ledger.Leg
	tx    uint32
	after ledger.Balance
}

var seed = maphash.MakeSeed()

func hashOf(s string) uint64 { return maphash.String(seed, s) }

func hashAccount(a ledger.Account, asset ledger.Asset) uint64 {
	return maphash.String(seed, string(a)) ^ bits.RotateLeft64(maphash.String(seed, string(asset)), 31)
}

// account finds a balance, or makes an empty one.
func (p *part) account(name ledger.Account, asset ledger.Asset, create bool) *account {
	h := hashAccount(name, asset)
	if a := p.accounts.find(h, name, asset); a != nil || !create {
		return a
	}
	a := &account{hash: h, balance: ledger.Balance{Account: name, Asset: asset}}
	p.accounts.add(a)
	p.byAccount[name] = append(p.byAccount[name], a)
	return a
}

// post is the short way of a Change that holds postings only. It gives the
// verdicts of package verdict; the conformance suite compares the two.
func (s *Store) post(open verdict.Tables, c *storage.Change) error {
	if !ready(c) {
		b := verdict.Prepare(open.Has, []storage.Change{*c})
		return s.judge(c, b) // states what is malformed, or takes the long way
	}
	p := s.part(c.Partition, true)
	hashes, taken := p.hashes[:0], -1
	for i := range c.Post {
		h := hashOf(c.Post[i].ID)
		if n, ok := p.txs.find(h, c.Post[i].ID); ok {
			if p.txs.at(n).change == c.ID {
				return nil
			}
			if taken < 0 {
				taken = i
			}
		}
		hashes = append(hashes, h)
	}
	p.hashes = hashes
	if taken >= 0 {
		return &storage.DuplicateError{Table: "ledger", Key: storage.ColID, Value: c.Post[taken].ID}
	}
	steps := p.steps[:0]
	for i := range c.Post {
		tx := &c.Post[i]
		for k := range tx.Legs {
			l := &tx.Legs[k]
			a := p.account(l.Account, l.Asset, false)
			if a == nil {
				return s.judge(c, verdict.Prepare(open.Has, []storage.Change{*c}))
			}
			from := &a.balance
			if i > 0 {
				for n := len(steps) - 1; n >= 0; n-- {
					if steps[n].a == a {
						from = &steps[n].after
						break
					}
				}
			}
			after, err := from.Apply(*l)
			if err != nil {
				p.steps = steps
				return err
			}
			steps = append(steps, step{a: a, leg: l, tx: uint32(i), after: after})
		}
	}
	p.steps = steps
	p.apply(c, steps)
	return nil
}

func (p *part) apply(c *storage.Change, steps []step) {
	first := p.txs.n
	for i := range c.Post {
		tx := &c.Post[i]
		p.txs.add(p.hashes[i], txRec{id: tx.ID, change: c.ID, kind: tx.Kind, ref: tx.Ref, at: storage.Micros(tx.At)})
	}
	for i := range steps {
		st := &steps[i]
		b := &st.a.balance
		b.Posted, b.Held, b.Seq = st.after.Posted, st.after.Held, st.after.Seq
		if st.leg.Delta != 0 {
			st.a.entries = append(st.a.entries, entry{tx: first + st.tx, delta: st.leg.Delta, after: b.Posted})
		}
	}
}

// ready says quickly that the Change is well-formed; false may also mean that
// the full check has to say so. Names of accounts and assets were checked when
// the account was made.
func ready(c *storage.Change) bool {
	if !storage.ValidText(c.ID) || len(c.ID) == 0 || len(c.ID) > verdict.MaxChangeID {
		return false
	}
	for i := range c.Post {
		tx := &c.Post[i]
		if len(tx.ID) == 0 || len(tx.ID) > verdict.MaxID || !storage.ValidText(tx.ID) ||
			len(tx.Kind) > verdict.MaxID || !storage.ValidText(string(tx.Kind)) ||
			len(tx.Ref) > verdict.MaxID || !storage.ValidText(tx.Ref) {
			return false
		}
		if !pair(tx.Legs) && tx.Check() != nil {
			return false
		}
	}
	return len(c.Post) == 1 || distinct(c.Post)
}

// pair recognises the commonest well-formed transaction.
func pair(l []ledger.Leg) bool {
	return len(l) == 2 && (l[0].Delta > 0) != (l[1].Delta > 0) && l[0].Delta != 0 && l[0].Delta == -l[1].Delta &&
		l[0].Asset == l[1].Asset && l[0].Account != l[1].Account
}

func distinct(txs []ledger.Tx) bool {
	for i := range txs {
		for j := range i {
			if txs[i].ID == txs[j].ID {
				return false
			}
		}
	}
	return true
}

// txIndex keeps transactions in order and finds them by id: open addressing
// over 8-byte slots (half of the hash, and the place + 1), so that growing
// reads no strings and the collector scans no table.
type txIndex struct {
	slots  []uint64
	chunks [][]txRec
	n      uint32
}

const chunk = 1 << 12

func (x *txIndex) at(n uint32) *txRec { return &x.chunks[n/chunk][n%chunk] }

func (x *txIndex) find(h uint64, id string) (uint32, bool) {
	if len(x.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(x.slots) - 1)
	tag := h >> 32
	for i := h & mask; ; i = (i + 1) & mask {
		s := x.slots[i]
		if s == 0 {
			return 0, false
		}
		if s>>32 == tag {
			if n := uint32(s) - 1; x.at(n).id == id {
				return n, true
			}
		}
	}
}

func (x *txIndex) add(h uint64, r txRec) {
	if int(x.n)*2 >= len(x.slots) {
		x.grow()
	}
	if x.n%chunk == 0 {
		x.chunks = append(x.chunks, make([]txRec, 0, chunk))
	}
	last := &x.chunks[len(x.chunks)-1]
	*last = append(*last, r)
	x.n++
	x.insert(h, x.n)
}

func (x *txIndex) insert(h uint64, place uint32) {
	mask := uint64(len(x.slots) - 1)
	i := h & mask
	for x.slots[i] != 0 {
		i = (i + 1) & mask
	}
	x.slots[i] = h&^uint64(1<<32-1) | uint64(place)
}

func (x *txIndex) grow() {
	x.slots = make([]uint64, max(16, len(x.slots)*2))
	for n := range x.n {
		x.insert(hashOf(x.at(n).id), n+1)
	}
}

// accountIndex finds accounts by name and asset, in the same way.
type accountIndex struct {
	slots []*account
	n     int
}

func (x *accountIndex) find(h uint64, name ledger.Account, asset ledger.Asset) *account {
	if len(x.slots) == 0 {
		return nil
	}
	mask := uint64(len(x.slots) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		a := x.slots[i]
		if a == nil || a.hash == h && a.balance.Account == name && a.balance.Asset == asset {
			return a
		}
	}
}

func (x *accountIndex) add(a *account) {
	if x.n*2 >= len(x.slots) {
		old := x.slots
		x.slots = make([]*account, max(16, len(old)*2))
		for _, o := range old {
			if o != nil {
				x.insert(o)
			}
		}
	}
	x.n++
	x.insert(a)
}

func (x *accountIndex) insert(a *account) {
	mask := uint64(len(x.slots) - 1)
	i := a.hash & mask
	for x.slots[i] != nil {
		i = (i + 1) & mask
	}
	x.slots[i] = a
}

func compareBalances(a, b ledger.Balance) int {
	if c := cmp.Compare(a.Account, b.Account); c != 0 {
		return c
	}
	return cmp.Compare(a.Asset, b.Asset)
}
