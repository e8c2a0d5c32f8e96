// Package trontest is a modelled Tron node for tests: blocks, forks, TRX and
// TRC-20 transfers, bandwidth, energy, activation and expiration, behind the HTTP
// API of java-tron, with faults on demand. It reads transactions with a decoder
// of its own and checks signatures, so a client that is wrong about bytes does
// not get past it. It is not java-tron: prices are the documented ones, a token
// is a ledger and no byte code, and a block becomes solid after a fixed number of
// others.
package trontest

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"maps"
	"math/big"
	"sync"
)

// Account is an address without its first byte, 0x41.
type Account [20]byte

// Parameters of the chain, in sun.
const (
	BytePrice    = 1000
	EnergyPrice  = 100
	Activation   = 1_000_000
	NewBytes     = 100_000
	MaxFeeLimit  = 15_000_000_000
	Solidify     = 18 // blocks above one until it is solid
	blockTime    = 3000
	start        = 1_760_000_000_000
	energyHolder = 64_285
	energyNobody = 130_285
)

// state is what accounts hold after a block.
type state struct {
	height int64
	sun    map[Account]int64 // an account that is there has an entry
	net    map[Account]used
	tokens map[Account]map[Account]*big.Int
}

// used is the free bandwidth that an account had used at a height. It comes back
// evenly over the blocks of a day.
type used struct{ bytes, height int64 }

const blocksOfDay = 24 * 3600 * 1000 / blockTime

func (s *state) clone() *state {
	out := &state{height: s.height, sun: maps.Clone(s.sun), net: maps.Clone(s.net), tokens: map[Account]map[Account]*big.Int{}}
	for c, all := range s.tokens {
		out.tokens[c] = maps.Clone(all)
	}
	return out
}

func (s *state) token(c, a Account) *big.Int {
	if v := s.tokens[c][a]; v != nil {
		return v
	}
	return new(big.Int)
}

// moveToken moves nothing where there is too little.
func (s *state) moveToken(c, from, to Account, v *big.Int) {
	if s.token(c, from).Cmp(v) < 0 {
		return
	}
	s.tokens[c][from] = new(big.Int).Sub(s.token(c, from), v)
	s.tokens[c][to] = new(big.Int).Add(s.token(c, to), v)
}

// receipt is what executing a transaction came to. One that is invalid gets into
// no block.
type receipt struct {
	invalid  string // as a broadcast is answered
	code     string // of an invalid one
	fee      int64  // in all
	net      int64  // bytes of free bandwidth; 0 where they were paid with netFee
	netFee   int64
	energy   int64
	ret      string // "" for what is no contract call
	failed   bool
	returned string // by the contract, hex
	logs     []logEntry
	inner    []inner
}

// never is the receipt of a contract that the node finds invalid.
func never(why string) receipt {
	return receipt{invalid: "Contract validate error : " + why, code: "CONTRACT_VALIDATE_ERROR"}
}

type logEntry struct {
	contract Account
	topics   []string
	data     string
}

type inner struct {
	from, to Account
	sun      int64
	rejected bool
}

// tx is one transaction: its bytes, and what it does.
type tx struct {
	id         string
	raw        []byte
	signature  []byte
	expiration int64
	run        func(s *state) receipt
}

type included struct {
	*tx
	receipt
}

type block struct {
	id, parent string
	height     int64
	millis     int64
	txs        []included
	after      *state
}

// Node is the modelled node. All methods may be called concurrently.
type Node struct {
	mu      sync.Mutex
	blocks  []*block
	pool    []*tx
	known   map[string]bool // in a block now, or waiting
	cached  map[string]bool // was ever broadcast, for Fault.Cache
	counter int64
	fork    int64

	// Payer is the outside customer, who never runs dry.
	Payer Account
	// Token and Foreign are contracts of the same make; Foreign is nobody's currency.
	Token, Foreign, Batcher Account
	// Decimals is what tokens say of themselves, nothing where it is negative.
	Decimals int

	freeNet  int64
	tokenFee int64
	fault    Fault
}

// Fault is what a node does wrong.
type Fault struct {
	Lag     int    // it is so many blocks behind
	Partial bool   // it has blocks, and no receipts
	Fail    bool   // it answers nothing but HTTP 200 with an error in it
	Lose    bool   // it takes the next broadcast and breaks the connection
	Swallow bool   // it takes broadcasts and forgets them
	Forget  string // it knows nothing of the receipt of this transaction
	// Refuse is the code with which it refuses all broadcasts before it looks at them:
	// SERVER_BUSY, NO_CONNECTION, NOT_ENOUGH_EFFECTIVE_CONNECTION or BLOCK_UNSOLIDIFIED.
	Refuse string
	// Unsent makes it keep what is broadcast, and say NOT_ENOUGH_EFFECTIVE_CONNECTION
	// because no peer took it at once.
	Unsent bool
	// Cache is node.rpc.trxCacheEnable: every second broadcast of a transaction is a
	// duplicate, whatever became of the first.
	Cache bool
	// Lite is a lite full node: it answers questions about history in plain text.
	Lite bool
	// NoConstant is vm.supportConstant = false, which is the default.
	NoConstant bool
	// NoInternal is vm.saveInternalTx = false, which is the default: receipts tell of no
	// inner calls.
	NoInternal bool
	// Busy is java-tron's own limit of requests: HTTP 200 with an error in it.
	Busy bool
	// Took is told of each valid transaction, swallowed or not.
	Took func(id string, raw []byte)
	// Tamper changes an answer.
	Tamper func(path string, body []byte) []byte
}

// New makes a node whose chain has a few blocks. seed makes it a chain of its own.
func New(seed string) *Node {
	n := &Node{known: map[string]bool{}, cached: map[string]bool{}, Decimals: 6}
	n.Payer, n.Token, n.Foreign, n.Batcher = n.named("payer"), n.named("token"), n.named("foreign"), n.named("batcher")
	s := &state{sun: map[Account]int64{n.Payer: 1 << 60}, net: map[Account]used{}, tokens: map[Account]map[Account]*big.Int{}}
	for _, c := range []Account{n.Token, n.Foreign} {
		s.sun[c] = 0
		s.tokens[c] = map[Account]*big.Int{n.Payer: new(big.Int).Lsh(big.NewInt(1), 120)}
	}
	first := sha256.Sum256([]byte(seed))
	n.blocks = []*block{{
		id: blockID(0, first[:]), parent: fmt.Sprintf("%x", sha256.Sum256([]byte("parent"))), after: s,
		txs: []included{{tx: allocation(n.Payer, s.sun[n.Payer])}},
	}}
	n.mine(Solidify + 7)
	return n
}

func (n *Node) named(s string) Account {
	sum := sha256.Sum256([]byte("trontest/" + s))
	return Account(sum[:20])
}

func blockID(height int64, sum []byte) string {
	b := append([]byte(nil), sum[:32]...)
	binary.BigEndian.PutUint64(b, uint64(height))
	return hex.EncodeToString(b)
}

// Genesis is the id of the first block.
func (n *Node) Genesis() string { return n.blocks[0].id }

// Set changes the node's faults.
func (n *Node) Set(change func(f *Fault)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.fault)
}

// TokenFee makes tokens keep so many thousandths of each transfer for their owner, as
// Tether's contract can.
func (n *Node) TokenFee(thousandths int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tokenFee = thousandths
}

// FreeNet gives every account bytes of bandwidth for nothing.
func (n *Node) FreeNet(bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.freeNet = bytes
}

// Mine adds blocks with what waits.
func (n *Node) Mine(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mine(count)
}

func (n *Node) mine(count int) {
	for range count {
		head := n.head()
		b := &block{parent: head.id, height: head.height + 1, millis: head.millis + blockTime, after: head.after.clone()}
		if head.height == 0 {
			b.millis = start
		}
		b.after.height = b.height
		h := sha256.New()
		_, _ = fmt.Fprint(h, head.id, b.millis, n.fork)
		for _, t := range n.pool {
			if t.expiration < earliest(head) {
				delete(n.known, t.id)
				continue
			}
			before := b.after.clone()
			r := t.run(b.after)
			if r.invalid != "" {
				b.after = before
				delete(n.known, t.id)
				continue
			}
			b.txs = append(b.txs, included{t, r})
			_, _ = fmt.Fprint(h, t.id)
		}
		n.pool = nil
		b.id = blockID(b.height, h.Sum(nil))
		n.blocks = append(n.blocks, b)
	}
}

// earliest is the earliest time at which a transaction after this block may expire: that of
// the next block, since java-tron 4.8.0.
func earliest(head *block) int64 { return head.millis + blockTime }

func (n *Node) head() *block { return n.blocks[len(n.blocks)-1] }

// Reorg replaces the last blocks by as many empty ones and one more; their
// transactions wait again, but for the dropped ones.
func (n *Node) Reorg(depth int, drop ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	waiting := n.pool
	n.pool = nil
	var back []*tx
	for _, b := range n.blocks[len(n.blocks)-depth:] {
		for _, t := range b.txs {
			back = append(back, t.tx)
		}
	}
	n.blocks = n.blocks[:len(n.blocks)-depth]
	n.fork++
	n.mine(depth + 1)
	back = append(back, waiting...)
	dropped := map[string]bool{}
	for _, id := range drop {
		dropped[id] = true
	}
	var kept []*tx
	for _, t := range back {
		if dropped[t.id] {
			delete(n.known, t.id)
			continue
		}
		kept = append(kept, t)
	}
	n.pool = kept
}

// add puts a transaction of nobody’s key into the pool.
func (n *Node) add(t *tx) string {
	sum := sha256.Sum256(t.raw)
	t.id = hex.EncodeToString(sum[:])
	n.known[t.id] = true
	n.pool = append(n.pool, t)
	return t.id
}

// bandwidth takes the bytes of a transaction out of what the account has for nothing,
// or, where that is too little for all of them, burns sun for all of them. What makes
// an account pays a price of its own and never uses free bandwidth.
func (n *Node) bandwidth(s *state, from Account, size int64, makes bool) receipt {
	has, there := s.sun[from]
	if !there {
		return never("account does not exist")
	}
	fee := size * BytePrice
	switch has := n.netUsed(s, from); {
	case makes:
		fee = NewBytes
	case size <= n.freeNet-has:
		s.net[from] = used{has + size, s.height}
		return receipt{net: size}
	}
	if has < fee {
		return receipt{invalid: "Account resource insufficient error.", code: "BANDWITH_ERROR"} //nolint:misspell // as java-tron spells it
	}
	s.sun[from] -= fee
	return receipt{fee: fee, netFee: fee}
}

// transfer runs a TransferContract. The receipt is invalid where the state is of no
// more use.
func (n *Node) transfer(s *state, from, to Account, sun, size int64) receipt {
	_, there := s.sun[to]
	r := n.bandwidth(s, from, size, !there)
	var makes int64
	if !there {
		makes = Activation
	}
	switch {
	case r.invalid != "":
		return r
	case from == to:
		return never("Cannot transfer TRX to yourself.")
	case sun <= 0:
		return never("Amount must be greater than 0.")
	case s.tokens[to] != nil:
		return never("Cannot transfer TRX to a smartContract.")
	case s.sun[from] < sun+makes:
		return never("Validate TransferContract error, balance is not sufficient.")
	}
	s.sun[from] -= sun + makes
	s.sun[to] += sun
	r.fee += makes
	return r
}

// call runs a transfer() of a token, with the energy paid out of the fee limit and out
// of what the sender has left after the bandwidth: too little of either is no reason to
// refuse a transaction, it runs out of energy.
func (n *Node) call(s *state, from, contract, to Account, v *big.Int, size, limit int64) receipt {
	r := n.bandwidth(s, from, size, false)
	if r.invalid != "" {
		return r
	}
	most := min(limit, s.sun[from]) / EnergyPrice
	r.ret, r.energy = "SUCCESS", s.energy(contract, to)
	if s.token(contract, from).Cmp(v) < 0 {
		r.ret, r.energy = "REVERT", r.energy/10
	}
	if r.energy > most {
		r.ret, r.energy = "OUT_OF_ENERGY", most
	}
	r.failed = r.ret != "SUCCESS"
	r.fee += r.energy * EnergyPrice
	s.sun[from] -= r.energy * EnergyPrice
	if r.failed {
		return r
	}
	s.moveToken(contract, from, to, v)
	r.returned = n.returns(contract)
	r.logs = []logEntry{transferLog(contract, from, to, v)}
	if fee := new(big.Int).Div(new(big.Int).Mul(v, big.NewInt(n.tokenFee)), big.NewInt(1000)); fee.Sign() > 0 {
		// As TetherToken.sol does: the recipient gets the rest, the owner the fee, each
		// with a log of its own.
		s.moveToken(contract, to, n.Batcher, fee)
		r.logs = []logEntry{transferLog(contract, from, to, new(big.Int).Sub(v, fee)), transferLog(contract, from, n.Batcher, fee)}
	}
	return r
}

// returns is what transfer() of a token returns where it succeeds: Tether's contract on
// Tron returns false.
func (n *Node) returns(contract Account) string {
	if contract == n.Token {
		return word(nil)
	}
	return word([]byte{1})
}

func (s *state) energy(contract, to Account) int64 {
	if s.token(contract, to).Sign() > 0 {
		return energyHolder
	}
	return energyNobody
}

const transferTopic = "ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"

func transferLog(contract, from, to Account, v *big.Int) logEntry {
	return logEntry{contract, []string{transferTopic, word(from[:]), word(to[:])}, word(v.Bytes())}
}

func word(b []byte) string { return fmt.Sprintf("%064x", b) }
