// Package stellartest is a modelled Horizon for tests: accounts with reserves,
// sequence numbers and memos, ledgers, payments of several kinds, behind the REST
// API of Horizon, with faults on demand. It reads transactions with a decoder of its
// own and checks signatures, so a client that is wrong about bytes does not get past
// it. It is not Stellar: fees under load are set by hand, other assets are names, and
// a ledger closes when it is told to.
package stellartest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain/address"
)

// Parameters of the chain, in stroops.
const (
	BaseFee     = 100
	BaseReserve = 5_000_000
	firstLedger = 50_000_000
	closeTime   = 5 * time.Second
	protocol    = 28
)

// How many ledgers a transaction waits before stellar-core drops it, and how many it is
// banned for then.
const (
	waits  = 4
	banned = 10
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// Account is an account of the ledger.
type Account struct {
	Stroops  int64
	Sequence int64 // of its last transaction
	Entries  int64
	Selling  int64
	Memo     bool // SEP-29: wants a memo
}

// op is one operation as Horizon shows it.
type op struct {
	json    object
	effects []object
	from    string
	to      string
}

// tx is a transaction: what its JSON says, and what it does.
type tx struct {
	hash     string
	source   string
	sequence int64 // 0: an outside customer's
	fee      int64
	until    int64
	raw      []byte // its envelope
	age      int    // ledgers that it has waited for
	outer    string // hash of the fee bump around it, "" = none
	charged  int64  // by that
	json     object
	run      func(s map[string]Account, ledger int64) (ops []op, ok bool)
}

// name is the hash under which a ledger lists it.
func (t *tx) name() string {
	if t.outer != "" {
		return t.outer
	}
	return t.hash
}

type included struct {
	*tx
	ok    bool
	ops   []op
	order int64
}

type ledger struct {
	index        int64
	hash, parent string
	closed       time.Time
	txs          []included
	after        map[string]Account
}

// Node is the modelled server. All methods may be called concurrently.
type Node struct {
	mu         sync.Mutex
	ledgers    []*ledger
	pool       []*tx
	banned     map[string]int64 // hash -> the last ledger in which it is
	counter    int
	p99        int64
	fault      Fault
	passphrase string

	// Payer is the outside customer, who never runs dry.
	Payer string
}

// Fault is what a node does wrong.
type Fault struct {
	Lag     int  // it is so many ledgers behind
	Partial bool // it has ledgers, and not all of their operations
	Fail    bool // it answers nothing but that its history is too old
	Lose    bool // it takes the next submission and breaks the connection
	Swallow bool // it takes submissions and forgets them
	Forget  string
	// Problem is the name of a problem of Horizon's that is its answer to everything:
	// "rate_limit_exceeded", "timeout", "server_error" …
	Problem string
	// Earliest is the first ledger that it has, 0 = all. Older ones were pruned.
	Earliest int64
	// Backs says how many ledgers further the one of several servers is behind that answers a path.
	Backs func(path string) int
	// Undated leaves out Latest-Ledger, as what stands before it may.
	Undated bool
	// Took is told of each valid submission, swallowed or not.
	Took func(envelope []byte)
	// Tamper changes an answer.
	Tamper func(path string, body []byte) []byte
}

// New makes a node whose chain has a few ledgers. seed makes it a chain of its own.
func New(seed, passphrase string) *Node {
	n := &Node{p99: BaseFee, passphrase: passphrase, Payer: Address("payer"), banned: map[string]int64{}}
	s := map[string]Account{n.Payer: {Stroops: 500_000_000_000_000_000, Sequence: 7}}
	n.ledgers = []*ledger{{index: firstLedger, hash: sum(seed), parent: sum("parent"), closed: start, after: s}}
	n.mine(6)
	return n
}

// Address is the account of a name: nobody has its key.
func Address(name string) string {
	format, _ := address.For("XLM")
	return string(format.Make(sha256.Sum256([]byte("stellartest/" + name))))
}

func sum(parts ...any) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(parts...)))) }

// Set changes the node's faults.
func (n *Node) Set(change func(f *Fault)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.fault)
}

// P99 is what all but one in a hundred transactions paid, from now on.
func (n *Node) P99(stroops int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.p99 = stroops
}

// Change alters an account, from the next ledger on.
func (n *Node) Change(who string, f func(a *Account)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mine(1)
	h := n.head()
	a := h.after[who]
	f(&a)
	h.after[who] = a
}

// Of is an account as it is now.
func (n *Node) Of(who string) Account {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.head().after[who]
}

// Mine closes ledgers with what waits.
func (n *Node) Mine(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mine(count)
}

// Bump has the outside customer wrap a transaction of the pool in a fee bump, as
// anybody can, and returns the hash of that. It charges the customer so much.
func (n *Node) Bump(hash string, charged int64) (outer string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, t := range n.pool {
		if t.hash == hash {
			t.outer, t.charged = sum("bump", hash), charged
			return t.outer
		}
	}
	panic("stellartest: no transaction " + hash + " waits")
}

func (n *Node) head() *ledger { return n.ledgers[len(n.ledgers)-1] }

func (n *Node) mine(count int) {
	for range count {
		head := n.head()
		l := &ledger{index: head.index + 1, parent: head.hash, closed: head.closed.Add(closeTime), after: maps.Clone(head.after)}
		slices.SortStableFunc(n.pool, func(a, b *tx) int { return cmp.Compare(a.sequence, b.sequence) })
		var left []*tx
		for _, t := range n.pool {
			a := l.after[t.source]
			switch {
			case t.until > 0 && t.until < l.closed.Unix():
			case t.sequence == 0 || t.sequence == a.Sequence+1 && a.Stroops >= BaseFee:
				l.apply(t)
			case t.sequence > a.Sequence && t.age+1 < waits:
				t.age++
				left = append(left, t)
			case t.sequence > a.Sequence:
				n.banned[t.hash] = l.index + banned - 1
			}
		}
		n.pool = left
		l.hash = sum(l.parent, l.index, len(l.txs))
		n.ledgers = append(n.ledgers, l)
	}
}

// apply runs a transaction; one that fails costs its fee and its number.
func (l *ledger) apply(t *tx) {
	if a := l.after[t.source]; t.sequence > 0 {
		if a.Sequence = t.sequence; t.outer == "" {
			a.Stroops -= BaseFee
		}
		l.after[t.source] = a
	}
	charged := maps.Clone(l.after)
	x := included{tx: t, order: int64(len(l.txs) + 1)}
	if x.ops, x.ok = t.run(l.after, l.index); !x.ok {
		l.after = charged
	}
	for i := range x.ops {
		id := l.index<<32 | x.order<<12 | int64(i+1)
		j := x.ops[i].json
		j["id"], j["paging_token"], j["transaction_successful"] = fmt.Sprint(id), fmt.Sprint(id), x.ok
		j["transaction_hash"], j["source_account"], j["created_at"] = t.name(), t.source, l.closed.Format(time.RFC3339)
		j["type_i"] = operationTypes[j["type"].(string)]
		if !x.ok {
			undone(j)
		}
	}
	l.txs = append(l.txs, x)
}

var operationTypes = map[string]int{
	"create_account": 0, "payment": 1, "path_payment_strict_receive": 2, "account_merge": 8, "bump_sequence": 11,
	"path_payment_strict_send": 13, "create_claimable_balance": 14, "invoke_host_function": 24, Tomorrow: 99,
}

// undone is what an operation of a failed transaction is shown without: what only its
// result would tell.
func undone(j object) {
	switch j["type"] {
	case "path_payment_strict_send":
		j["amount"] = coins(0)
	case "path_payment_strict_receive":
		j["source_amount"] = coins(0)
	case "invoke_host_function":
		j["asset_balance_changes"] = nil
	}
}
