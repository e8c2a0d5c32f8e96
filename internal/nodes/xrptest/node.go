// Package xrptest is a modelled rippled server for tests: accounts with reserves,
// sequences and destination tags, ledgers, partial payments and queued
// transactions, behind the JSON-RPC API of rippled, with faults on demand. It reads
// transactions with a decoder of its own and checks signatures, so a client that is
// wrong about bytes does not get past it. It is not rippled: fees under load are
// set by hand, issued currencies are names, and a ledger is validated as it closes.
package xrptest

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cryptopay-go/cryptopay/chain/address"
)

// Parameters of the chain, in drops.
const (
	BaseFee      = 10
	Reserve      = 1_000_000
	OwnerReserve = 200_000
	firstLedger  = 90_000_000
	closeTime    = 4
	startTime    = 813_000_000 // since 2000
)

// Flags of accounts, as the ledger numbers them.
const (
	RequireTag  = 0x00020000
	DisallowXRP = 0x00080000
	DepositAuth = 0x01000000
)

// Account is an account of the ledger.
type Account struct {
	Drops    int64
	Sequence uint32
	Owned    int64
	Flags    uint32
}

// tx is a transaction: what its JSON says, and what it does.
type tx struct {
	hash     string
	account  string
	sequence uint32
	fee      int64
	last     uint32 // 0: for ever
	json     object
	queued   bool // its fee does not open the ledger: it waits for that
	// nodes are changes to other entries of the ledger than accounts.
	nodes func(at int64) []any
	// run applies it to the accounts and says the result and what was delivered.
	run func(s map[string]Account, at int64) (result string, d delivery)
}

// delivery is what a transaction brought, as the server knows it: nil = not at all.
type delivery struct {
	inMeta any // DeliveredAmount of the metadata
	told   any // delivered_amount, where a method adds it
}

type included struct {
	*tx
	result    string
	delivered delivery
	nodes     []any
	touched   []string // the accounts of nodes
}

// sighted is a transaction that was submitted here, whatever became of it.
type sighted struct {
	*tx
	at int64 // the head then
}

// remembered is for how many ledgers a server knows what was submitted to it: half an hour.
const remembered = 450

type ledger struct {
	index        int64
	hash, parent string
	txs          []included
	after        map[string]Account
}

// Node is the modelled server. All methods may be called concurrently.
type Node struct {
	mu      sync.Mutex
	ledgers []*ledger
	pool    []*tx
	seen    map[string]*sighted // by hash
	counter int
	openFee int64
	fault   Fault
	id      uint32

	// Payer is the outside customer, who never runs dry.
	Payer string
}

// Fault is what a node does wrong.
type Fault struct {
	Lag     int  // it is so many ledgers behind
	Partial bool // it has ledgers, and no transactions
	Fail    bool // it answers nothing but HTTP 200 with an error in it
	Lose    bool // it takes the next submission and breaks the connection
	Swallow bool // it takes submissions and forgets them
	Forget  string
	// Clio makes it answer as Clio does, the other server of the same API.
	Clio bool
	// Cut is a Clio that does not reach the rippled behind it.
	Cut bool
	// Earliest is the first ledger that it has, 0 = all.
	Earliest int64
	// Missing is a ledger that it lacks among those that it has.
	Missing int64
	// Stale is a server that has lost the network: nothing was validated for minutes.
	Stale bool
	// Fresh is a server that just started: it has no validated ledger yet.
	Fresh bool
	// Busy refuses by load, before a question is looked at: HTTP 503.
	Busy bool
	// TooBusy refuses by load, with an error in the answer.
	TooBusy bool
	// Load adds the warning that comes before that.
	Load bool
	// Hold is a server that does not reach the others: ledgers close without what is in its
	// open ledger.
	Hold bool
	// Already is a rippled before 1.7: it knows a transaction of its open ledger again
	// and says tefALREADY, where later ones say tefPAST_SEQ.
	Already bool
	// Unnumbered is a server whose configuration names no network_id.
	Unnumbered bool
	// Took is told of each valid submission, swallowed or not.
	Took func(blob []byte)
	// Tamper changes an answer.
	Tamper func(method string, body []byte) []byte
}

// New makes a node whose chain has a few ledgers. seed makes it a chain of its own.
func New(seed string, networkID uint32) *Node {
	n := &Node{openFee: BaseFee, id: networkID, seen: map[string]*sighted{}, Payer: Address("payer")}
	s := map[string]Account{n.Payer: {Drops: 50_000_000_000_000_000, Sequence: 7}}
	n.ledgers = []*ledger{{index: firstLedger, hash: sum(seed), parent: sum("parent"), after: s}}
	n.mine(6)
	return n
}

// Address is the classic address of a name: nobody has its key.
func Address(name string) string {
	format, _ := address.For("XRP")
	return string(format.Make(sha256.Sum256([]byte("xrptest/" + name))))
}

func sum(parts ...any) string {
	return strings.ToUpper(fmt.Sprintf("%x", sha256.Sum256([]byte(fmt.Sprint(parts...)))))
}

// Set changes the node's faults.
func (n *Node) Set(change func(f *Fault)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.fault)
}

// OpenFee is what opens the current ledger from now on.
func (n *Node) OpenFee(drops int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.openFee = drops
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

// Restart has the server forget what waits and what was submitted to it.
func (n *Node) Restart() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pool = slices.DeleteFunc(n.pool, func(t *tx) bool { return t.sequence > 0 })
	clear(n.seen)
}

// Mine closes ledgers with what waits.
func (n *Node) Mine(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mine(count)
}

func (n *Node) head() *ledger { return n.ledgers[len(n.ledgers)-1] }

func (n *Node) mine(count int) {
	for range count {
		head := n.head()
		l := &ledger{index: head.index + 1, parent: head.hash, after: maps.Clone(head.after)}
		n.pool = slices.DeleteFunc(n.pool, func(t *tx) bool { return t.last > 0 && int64(t.last) < l.index })
		slices.SortStableFunc(n.pool, func(a, b *tx) int { return cmp.Compare(a.sequence, b.sequence) })
		var left []*tx
		for _, t := range n.pool {
			switch a := l.after[t.account]; {
			case t.queued && t.fee < n.openFee || n.fault.Hold && t.sequence > 0:
				left = append(left, t)
			case t.sequence == 0 || t.sequence == a.Sequence && a.Drops >= t.fee:
				l.apply(t)
			case t.sequence >= a.Sequence && a.Sequence > 0:
				left = append(left, t)
			}
		}
		n.pool = left
		l.hash = sum(l.parent, l.index, len(l.txs))
		n.ledgers = append(n.ledgers, l)
	}
}

// execute runs a transaction; one that fails costs its fee and its sequence.
func (t *tx) execute(s map[string]Account, at int64) (result string, d delivery, after map[string]Account) {
	charged := func(s map[string]Account) map[string]Account {
		if a, ok := s[t.account]; ok {
			a.Drops, a.Sequence = a.Drops-t.fee, a.Sequence+1
			s[t.account] = a
		}
		return s
	}
	after = charged(maps.Clone(s))
	if result, d = t.run(after, at); result != "tesSUCCESS" {
		return result, delivery{}, charged(maps.Clone(s))
	}
	return result, d, after
}

// apply puts a transaction into the ledger.
func (l *ledger) apply(t *tx) {
	before := l.after
	result, delivered, after := t.execute(before, l.index)
	l.after = after
	x := included{tx: t, result: result, delivered: delivered}
	for _, who := range slices.Sorted(maps.Keys(union(before, after))) {
		was, there := before[who]
		now, stays := after[who]
		if there && stays && now == was {
			continue
		}
		x.touched = append(x.touched, who)
		x.nodes = append(x.nodes, node(who, was, now, there, stays, l.index))
	}
	if t.nodes != nil && result == "tesSUCCESS" {
		x.nodes = append(x.nodes, t.nodes(l.index)...)
	}
	l.txs = append(l.txs, x)
}

// node is what the metadata says of a changed account: a new one without what is zero,
// a changed one with the former values of what changed, if anything did.
func node(who string, was, now Account, there, stays bool, at int64) object {
	entry := object{"LedgerEntryType": "AccountRoot", "LedgerIndex": sum(who)}
	kind := "ModifiedNode"
	if !there {
		fields := now.fields(who)
		for _, k := range []string{"Flags", "OwnerCount"} {
			if fmt.Sprint(fields[k]) == "0" {
				delete(fields, k)
			}
		}
		entry["NewFields"] = fields
		return object{"CreatedNode": entry}
	}
	if !stays { // as it was when it went: empty
		kind, now = "DeletedNode", Account{Sequence: was.Sequence + 1, Flags: was.Flags}
	}
	last, old := now.fields(who), was.fields(who)
	changed := object{}
	for k, v := range old {
		if fmt.Sprint(v) != fmt.Sprint(last[k]) {
			changed[k] = v
		}
	}
	entry["FinalFields"] = last
	if len(changed) > 0 {
		entry["PreviousFields"] = changed
	}
	entry["PreviousTxnID"], entry["PreviousTxnLgrSeq"] = sum("before", who, at), at-1
	return object{kind: entry}
}

func (a Account) fields(who string) object {
	return object{"Account": who, "Balance": fmt.Sprint(a.Drops), "Flags": a.Flags, "OwnerCount": a.Owned, "Sequence": a.Sequence}
}

func union(a, b map[string]Account) map[string]Account {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}
