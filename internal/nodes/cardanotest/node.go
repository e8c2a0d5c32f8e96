// Package cardanotest is a modelled node of Cardano for tests: blocks, forks, a mempool, and the
// ledger's rules for what moves ada and native tokens, behind the APIs of Ogmios, Kupo and
// Blockfrost, with faults on demand. It reads transactions with a decoder of its own and judges
// them as the ledger does, so a client that is wrong about bytes, fees or the least ada of an
// output does not get past it. It is not Cardano: blocks come when they are told to, and
// nothing else than payments by keys is known to it.
package cardanotest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/btcsuite/btcd/address/v2/bech32"
	"github.com/fxamacker/cbor/v2"
)

// Slots are seconds; a block comes every 20 of them.
const (
	zeroSlot = 4_492_800
	zeroTime = 1_596_059_091
	spacing  = 20
	first    = 11_000_000 // height
	magic    = 764_824_073
)

// purse is what one output of the customer's holds.
const purse = 10_000_000_000_000

type block struct {
	height, slot int64
	hash, parent string
	moves        []*move
	spent        map[ref]out // to undo them
}

// Node is the modelled node. All methods may be called concurrently.
type Node struct {
	mu      sync.Mutex
	blocks  []*block
	utxo    map[ref]out // at the head
	spentBy map[ref]*move
	in      map[string]*block // where a transaction is
	pool    []*move
	count   int
	purses  []ref
	key     ed25519.PrivateKey
	fault   Fault
	changed chan struct{} // closed when the chain changes
}

// Fault is what a node does wrong.
type Fault struct {
	Lag     int  // it is so many blocks behind
	Partial bool // it has blocks, and not the bytes of their transactions
	Fail    bool // it answers nothing
	Lose    bool // it takes the next submission and breaks the connection
	Forget  bool // it takes submissions and forgets them
	Magic   int64
	// Unmatched: Kupo matches none of the addresses.
	Unmatched bool
	// IndexLag is how many blocks Kupo is behind the node.
	IndexLag int
	// Params are what it says of the protocol, in place of what it holds to.
	Params map[string]int64
	// Tamper changes an answer. what is a method of Ogmios's or a path.
	Tamper func(what string, body []byte) []byte
	// Asked is told of each question.
	Asked func(what string)
}

// New makes a node whose chain has a few blocks, the newest some minutes old. seed makes it a
// chain of its own.
func New(seed string) *Node {
	sum := sha256.Sum256([]byte("cardanotest/" + seed))
	n := &Node{
		utxo: map[ref]out{}, spentBy: map[ref]*move{}, in: map[string]*block{}, key: ed25519.NewKeyFromSeed(sum[:]), changed: make(chan struct{}),
	}
	slot := time.Now().Unix() - 600 - zeroTime + zeroSlot
	n.blocks = []*block{{height: first, slot: slot, hash: hash256(sum[:]), parent: hash256([]byte("before"))}}
	genesis := hash256([]byte("genesis" + seed))
	for i := range 400 {
		r := ref{genesis, uint64(i)}
		n.utxo[r] = out{address: Enterprise(n.key.Public().(ed25519.PublicKey)), coin: purse, tokens: map[string]uint64{Coin("Fake"): 1_000_000, Coin(""): 5, Coin("Long name of a token, 32 bytes..")[:56+1+64]: 7}}
		n.purses = append(n.purses, r)
	}
	n.mine(6)
	return n
}

// Coin is the contract of a token of that name, of which the customer has some.
func Coin(name string) string { return fmt.Sprintf("%x.%x", keyHash([]byte("policy")), name) }

// Enterprise is the address of a key, as it is in a transaction.
func Enterprise(key ed25519.PublicKey) []byte { return append([]byte{0x61}, keyHash(key)...) }

func text(address []byte) string {
	if address[0]>>4 == 8 {
		return fmt.Sprintf("%x", address)
	}
	data, err := bech32.ConvertBits(address, 8, 5, true)
	if err != nil {
		panic(err)
	}
	s, err := bech32.Encode("addr", data)
	if err != nil {
		panic(err)
	}
	return s
}

func bytesOf(address string) []byte {
	_, data, err := bech32.DecodeNoLimit(address)
	if err != nil {
		panic(err)
	}
	raw, err := bech32.ConvertBits(data, 5, 8, false)
	if err != nil {
		panic(err)
	}
	return raw
}

// Set changes the node's faults.
func (n *Node) Set(change func(f *Fault)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(&n.fault)
}

// Pay is a payment of the customer's.
type Pay struct {
	To       string
	Lovelace int64
	Tokens   map[string]uint64 // by contract
	Script   bool              // a reference script is kept in the output
}

// Send makes one transaction of the customer's, which waits. lines are its message.
func (n *Node) Send(lines []string, pays ...Pay) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var outs []any
	left, tokens := int64(purse), maps.Clone(n.utxo[n.purses[n.count]].tokens)
	from := n.purses[n.count]
	n.count++
	for _, p := range pays {
		left -= p.Lovelace
		for k, v := range p.Tokens {
			tokens[k] -= v
		}
		o := map[uint64]any{0: bytesOf(p.To), 1: value(p.Lovelace, p.Tokens)}
		if p.Script {
			raw, err := cbor.Marshal([]any{0, []any{0, make([]byte, 28)}})
			if err != nil {
				panic(err)
			}
			o[3] = cbor.Tag{Number: 24, Content: raw}
		}
		outs = append(outs, o)
	}
	maps.DeleteFunc(tokens, func(_ string, v uint64) bool { return v == 0 })
	const fee = 1_000_000
	outs = append(outs, []any{Enterprise(n.key.Public().(ed25519.PublicKey)), value(left-fee, tokens)})
	id := unhex(from.tx)
	body := map[uint64]any{0: []any{[]any{id, from.index}}, 1: outs, 2: fee}
	var aux any
	if lines != nil {
		raw, err := cbor.Marshal(map[uint64]any{674: map[string]any{"msg": lines}})
		if err != nil {
			panic(err)
		}
		body[7], aux = unhex(hash256(raw)), cbor.RawMessage(raw)
	}
	return n.sign(body, aux, n.key)
}

// sign makes a transaction wait, which the ledger must take.
func (n *Node) sign(body map[uint64]any, aux any, key ed25519.PrivateKey) string {
	raw, err := cbor.Marshal(body)
	if err != nil {
		panic(err)
	}
	id := hash256(raw)
	all, err := cbor.Marshal([]any{
		cbor.RawMessage(raw), map[uint64]any{0: []any{[]any{[]byte(key.Public().(ed25519.PublicKey)), ed25519.Sign(key, unhex(id))}}}, true, aux,
	})
	if err != nil {
		panic(err)
	}
	if _, err := n.submit(all); err != nil {
		panic(err)
	}
	return id
}

func value(coin int64, tokens map[string]uint64) any {
	if len(tokens) == 0 {
		return coin
	}
	all := map[cbor.ByteString]map[cbor.ByteString]uint64{}
	for k, v := range tokens {
		policy, name := cbor.ByteString(unhex(k[:56])), cbor.ByteString(unhex(k[57:]))
		if all[policy] == nil {
			all[policy] = map[cbor.ByteString]uint64{}
		}
		all[policy][name] = v
	}
	return []any{coin, all}
}

// Submit offers a signed transaction to the mempool; the error names the rule that it breaks.
func (n *Node) Submit(raw []byte) (string, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.submit(raw)
}

func (n *Node) submit(raw []byte) (string, error) {
	m, err := decode(raw)
	if err != nil {
		return "", err
	}
	if err := m.judge(n.waiting(), uint64(n.blocks[len(n.blocks)-1].slot)); err != nil {
		return "", err
	}
	if !n.fault.Forget {
		n.pool = append(n.pool, m)
	}
	return m.id, nil
}

// waiting is the set of outputs after what waits.
func (n *Node) waiting() map[ref]out {
	if len(n.pool) == 0 {
		return n.utxo
	}
	after := maps.Clone(n.utxo)
	for _, m := range n.pool {
		m.apply(after)
	}
	return after
}

// Mine adds blocks; the first holds what waits and can still land.
func (n *Node) Mine(count int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mine(count)
}

func (n *Node) mine(count int) {
	for range count {
		last := n.blocks[len(n.blocks)-1]
		b := &block{height: last.height + 1, slot: last.slot + spacing, parent: last.hash, spent: map[ref]out{}}
		for _, m := range n.pool {
			if m.judge(n.utxo, uint64(b.slot)) != nil {
				continue // its time is over, or what it spends is
			}
			for _, r := range m.inputs {
				b.spent[r], n.spentBy[r] = n.utxo[r], m
			}
			m.apply(n.utxo)
			b.moves, n.in[m.id] = append(b.moves, m), b
		}
		n.pool = nil
		n.add(b)
	}
}

var forks struct {
	sync.Mutex
	n int
}

func (n *Node) add(b *block) {
	forks.Lock()
	forks.n++
	mark := forks.n
	forks.Unlock()
	b.hash = hash256(fmt.Append(nil, b.parent, b.height, mark))
	n.blocks = append(n.blocks, b)
	close(n.changed)
	n.changed = make(chan struct{})
}

// Reorg replaces the last blocks by as many empty ones and one more. What was in them waits
// again, but for what is dropped.
func (n *Node) Reorg(depth int, drop ...string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var back []*move
	for range depth {
		b := n.blocks[len(n.blocks)-1]
		n.blocks = n.blocks[:len(n.blocks)-1]
		for _, m := range slices.Backward(b.moves) {
			for i := range m.outs {
				delete(n.utxo, ref{m.id, uint64(i)})
			}
			for _, r := range m.inputs {
				n.utxo[r] = b.spent[r]
				delete(n.spentBy, r)
			}
			delete(n.in, m.id)
			back = append(back, m)
		}
	}
	slices.Reverse(back)
	waited := n.pool
	n.pool = nil
	n.mine(depth)
	for _, m := range append(back, waited...) {
		if !slices.Contains(drop, m.id) && m.judge(n.waiting(), uint64(n.blocks[len(n.blocks)-1].slot)) == nil {
			n.pool = append(n.pool, m)
		}
	}
}

// Received is what an address holds at the head, in lovelace.
func (n *Node) Received(address string) (sum int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range n.utxo {
		if text(o.address) == address {
			sum += int64(o.coin)
		}
	}
	return sum
}

// Tokens are what an address holds of native tokens at the head, by contract.
func (n *Node) Tokens(address string) map[string]uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	all := map[string]uint64{}
	for _, o := range n.utxo {
		if text(o.address) == address {
			for k, v := range o.tokens {
				all[k] += v
			}
		}
	}
	return all
}

// Raw are the bytes of a transaction in a block or waiting; nil = there is none.
func (n *Node) Raw(id string) []byte {
	n.mu.Lock()
	defer n.mu.Unlock()
	if m := n.find(id); m != nil {
		return m.raw
	}
	return nil
}

// Waiting lists what waits for a block.
func (n *Node) Waiting() (ids []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, m := range n.pool {
		ids = append(ids, m.id)
	}
	return ids
}

func (n *Node) find(id string) *move {
	if b := n.in[id]; b != nil {
		for _, m := range b.moves {
			if m.id == id {
				return m
			}
		}
	}
	for _, m := range n.pool {
		if m.id == id {
			return m
		}
	}
	return nil
}

// seen are the blocks as far as a node that is behind has them.
func (n *Node) seen() []*block { return n.blocks[:max(len(n.blocks)-n.fault.Lag, 1)] }
