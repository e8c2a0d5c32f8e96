package memory

import (
	"cmp"
	"hash/maphash"
	"slices"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/verdict"
)

// part is one partition.
type part struct {
	name      storage.Partition
	txs       txLog
	accounts  accountIndex
	byAccount map[ledger.Account][]*account
	tables    map[*storage.Table]*table
	levels    map[string]int64

	places []place // scratch of post: where its transactions stand,
	steps  []step  // and what they did
}

func newPart(name storage.Partition) *part {
	return &part{
		name: name, byAccount: map[ledger.Account][]*account{},
		tables: map[*storage.Table]*table{}, levels: map[string]int64{},
	}
}

// account is one balance with the way to its history: the newest entry, from
// which each leads to the one before, and every 64th.
type account struct {
	balance ledger.Balance
	newest  place // 0 while there is none
	marks   []place
}

const stride = 64

// add notes the entry seq, the newest.
func (a *account) add(seq int64, p place) {
	a.newest = p
	if seq%stride == 0 {
		a.marks = append(a.marks, p)
	}
}

// find is where the entry seq stands, 1 to balance.Seq.
func (a *account) find(seq int64, log *txLog) place {
	if seq <= 0 {
		return 0
	}
	p, n := a.newest, a.balance.Seq
	if m := (seq - 1) / stride; m < int64(len(a.marks)) {
		p, n = a.marks[m], (m+1)*stride
	}
	for ; n > seq; n-- {
		_, p, _ = log.entry(p)
	}
	return p
}

// step is a leg that was applied, and what it found.
type step struct {
	a            *account
	posted, held ledger.Amount
	seq          int64
	newest       place
}

// hashAccount mixes the asset in by its length and first bytes only: an account
// holds few.
func hashAccount(a ledger.Account, asset ledger.Asset) uint64 {
	h := uint64(len(asset))
	for i := range min(len(asset), 8) {
		h = h<<8 | uint64(asset[i])
	}
	return maphash.String(seed, string(a)) ^ h*0x9e3779b97f4a7c15
}

// account finds a balance, or makes an empty one.
func (p *part) account(name ledger.Account, asset ledger.Asset, create bool) *account {
	h := hashAccount(name, asset)
	if a := p.accounts.find(h, name, asset); a != nil || !create {
		return a
	}
	a := &account{balance: ledger.Balance{Account: name, Asset: asset}}
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
	p := s.writable(c.Partition)
	if p.txs.full() {
		return errFull
	}
	taken := -1
	for i := range c.Post {
		if at, ok := p.txs.find(c.Post[i].ID); ok {
			if p.txs.at(at).change == c.ID {
				return nil
			}
			if taken < 0 {
				taken = i
			}
		}
	}
	if taken >= 0 {
		return &storage.DuplicateError{Table: "ledger", Key: storage.ColID, Value: c.Post[taken].ID}
	}
	known, err := p.apply(c)
	if !known {
		return s.judge(c, verdict.Prepare(open.Has, []storage.Change{*c}))
	}
	return err
}

// apply posts all of c, or nothing: where a floor breaks, or where an account
// is not known yet. The ids are known to be new.
func (p *part) apply(c *storage.Change) (known bool, err error) {
	start := p.txs.end(0)
	p.steps, p.places = p.steps[:0], p.places[:0]
	for i := range c.Post {
		t := &c.Post[i]
		moves := 0
		for k := range t.Legs {
			if t.Legs[k].Delta != 0 {
				moves++
			}
		}
		at := p.txs.write(t, c.ID, storage.Micros(t.At), moves)
		p.places = append(p.places, at)
		moves = 0
		for k := range t.Legs {
			l := &t.Legs[k]
			a := p.account(l.Account, l.Asset, false)
			if a == nil {
				p.undo(start)
				return false, nil
			}
			b := &a.balance
			was := step{a, b.Posted, b.Held, b.Seq, a.newest}
			if err := b.Move(l); err != nil {
				p.undo(start)
				return true, err
			}
			p.steps = append(p.steps, was)
			if l.Delta != 0 {
				a.add(b.Seq, p.txs.enter(at, moves, b.Posted, a.newest))
				moves++
			}
		}
	}
	for i, at := range p.places {
		p.txs.add(c.Post[i].ID, at)
	}
	return true, nil
}

// undo takes back the steps, and the transactions from start on.
func (p *part) undo(start place) {
	for _, s := range slices.Backward(p.steps) {
		a := s.a
		a.balance.Posted, a.balance.Held, a.balance.Seq, a.newest = s.posted, s.held, s.seq, s.newest
		a.marks = a.marks[:s.seq/stride]
	}
	p.txs.cut(start)
}

// ready says quickly that the Change is well-formed; false may also mean that
// the full check has to say so. Names of accounts and assets were checked when
// the account was made.
func ready(c *storage.Change) bool {
	if c.ID == "" || !plain(c.ID) {
		return false
	}
	for i := range c.Post {
		t := &c.Post[i]
		if t.ID != c.ID && (t.ID == "" || !plain(t.ID)) ||
			!plain(string(t.Kind)) || !plain(t.Ref) {
			return false
		}
		if !pair(t.Legs) && t.Check() != nil {
			return false
		}
	}
	return len(c.Post) == 1 || distinct(c.Post)
}

// plain reports whether s is ASCII without a NUL, and short enough to be any id.
// Other text may well be valid.
func plain(s string) bool {
	if len(s) > min(verdict.MaxID, verdict.MaxChangeID) {
		return false
	}
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	bad := uint64(0)
	for ; len(s) >= 8; s = s[8:] {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		bad |= (w | (w - ones)) & highs // above ASCII, or a byte of zero
	}
	for i := range len(s) {
		bad |= uint64(s[i]-1) & highs
	}
	return bad == 0
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
		if a == nil || a.balance.Account == name && a.balance.Asset == asset {
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
	i := hashAccount(a.balance.Account, a.balance.Asset) & mask
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
