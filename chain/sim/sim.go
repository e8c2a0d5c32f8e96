// Package sim is a whole network in memory: blocks, a mempool, a fee market,
// tokens and contracts, outside customers, and as many nodes in front of it as
// wanted, each with faults of its own. It is what examples and tests run on,
// and what a host can develop against before it has a node.
//
// A Chain has two sides. The world side (Pay, Mine, Reorg …) is what everybody
// else on the network does. The node side (Client, NewNode) is what the library
// sees of it: a chain.Client that can do everything the contract names, and
// that can be made to lag, lie, fail and lose answers.
//
// It promises:
//
//   - Nothing happens by itself. Blocks come from Mine and Reorg alone, there is
//     no goroutine and no wall clock; the same seed and the same calls give the
//     same hashes.
//   - Money is conserved: Audit proves that what all addresses hold is what was
//     ever brought in less the fees taken, on whichever branch the chain is.
//   - Signatures are real secp256k1 ECDSA and are checked, so the key handling
//     that works here works elsewhere. Everything else is a model: addresses and
//     payloads are sim's own, and no other network reads them.
//   - Snapshot and Restore carry the whole chain from one process to the next.
//
// All methods may be called concurrently.
package sim

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
)

// Options describe a network. Network is required.
type Options struct {
	// Network must be in Registry, with its gas currency.
	Network chain.Network
	// Registry defaults to chain.MainnetRegistry.
	Registry *chain.Registry
	// Family defaults to what Registry says of the network, else AccountFamily.
	Family chain.Family
	// Addresses is how the network writes addresses. Defaults to a format of the
	// simulation's own, which nobody takes for a real one.
	Addresses Format
	// Seed makes hashes, customers and random faults.
	Seed uint64
	// Now gives block times. Defaults to a clock that stands still at the start
	// of 2026, so that BlockTime alone moves them on.
	Now func() time.Time
	// BlockTime is the least time between two blocks. Defaults to 0 with Now, to
	// 12 seconds without.
	BlockTime time.Duration
	// Finality is how many blocks the final height is behind the head; −1 or 0
	// where the network has no such notion. Safe is half of it behind.
	Finality int64
	// Instant makes the head final at once, whatever Finality says.
	Instant bool
	// StartHeight is the height of the first block. Defaults to 1.
	StartHeight int64
	// BlockSize is the most transactions in a block. Defaults to no limit.
	BlockSize int
	// FirstSeen says that nodes keep what they saw first, and take nothing dearer in
	// its place, as Litecoin Core does unless it is told otherwise.
	FirstSeen bool
	// Steady says that blocks come by themselves, as on a real network: a node whose
	// newest block is old stands still. Defaults to a chain.OnDemand chain.
	Steady bool
}

// Chain is a simulated network.
type Chain struct {
	mu        sync.Mutex
	opt       Options
	gas       *chain.Currency
	genesis   string
	rng       *rand.PCG
	seq       uint64 // of whatever is made: salts hashes, orders arrivals
	level     int64  // what a unit of gas or a byte costs at least, see price.go
	kv        map[string]string
	blocks    map[string]*block // every one ever mined, by hash
	main      []*block          // the canonical ones, from StartHeight on
	txs       map[string]*tx    // every one ever made, by hash
	made      []string          // their hashes, in order
	pool      pool
	contracts map[string]Behaviour
	front     *Node
	nodes     uint64
}

// Errors of the world side and of the node's acceptance rules. What a client's
// Broadcast returns wraps none of chain's errors unless the bytes can never be
// accepted.
var (
	ErrNonceTooLow  = errors.New("sim: nonce too low")
	ErrUnderpriced  = errors.New("sim: replacement transaction underpriced")
	ErrFirstSeen    = errors.New("sim: conflicts with a transaction of the mempool")
	ErrSpent        = errors.New("sim: an input is already spent")
	ErrMissing      = errors.New("sim: an input is missing")
	ErrInsufficient = errors.New("sim: insufficient funds for amount and fee")
	ErrUnknownTx    = errors.New("sim: unknown transaction")
	ErrDepth        = errors.New("sim: the chain is not that deep")
)

// New makes a network with one block.
func New(o Options) (*Chain, error) {
	if o.Registry == nil {
		o.Registry = chain.MainnetRegistry()
	}
	info, err := o.Registry.Network(string(o.Network))
	if err != nil {
		return nil, fmt.Errorf("sim: Options.Network: %w", err)
	}
	o.Network = info.Code
	gas, err := o.Registry.Gas(o.Network)
	if err != nil {
		return nil, fmt.Errorf("sim: the gas currency of %s: %w", o.Network, err)
	}
	if o.Family == "" {
		o.Family = info.Family
	}
	if o.Family == "" {
		o.Family = chain.AccountFamily
	}
	if o.Family != chain.AccountFamily && o.Family != chain.UTXOFamily {
		return nil, fmt.Errorf("sim: Options.Family: %q is no family", o.Family)
	}
	if o.Now == nil {
		o.Now = func() time.Time { return time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC) }
		if o.BlockTime == 0 {
			o.BlockTime = 12 * time.Second
		}
	}
	if o.Addresses == nil {
		n, err := o.Registry.Network(string(o.Network))
		o.Addresses = plain{o.Network, err == nil && n.NeedsMemo}
	}
	if o.StartHeight <= 0 {
		o.StartHeight = 1
	}
	c := &Chain{
		opt: o, gas: gas, rng: rand.NewPCG(o.Seed, seedOf(string(o.Network))),
		kv: map[string]string{}, blocks: map[string]*block{}, txs: map[string]*tx{},
		pool: newPool(), contracts: map[string]Behaviour{},
	}
	c.level = c.quietLevel()
	c.genesis = digestHex("genesis", string(o.Network), fmt.Sprint(o.Seed))
	first := &block{Height: o.StartHeight, Hash: c.genesis, Parent: digestHex("void", c.genesis), Time: c.clock()}
	c.blocks[first.Hash], c.main = first, []*block{first}
	c.front = c.newNode()
	return c, nil
}

// MustNew is New for tests and examples: it panics where New has an error.
func MustNew(o Options) *Chain {
	c, err := New(o)
	if err != nil {
		panic(err)
	}
	return c
}

// Network is the code of the network.
func (c *Chain) Network() chain.Network { return c.opt.Network }

// Family says how the network keeps value.
func (c *Chain) Family() chain.Family { return c.opt.Family }

// Client is a client of the node that every chain has in front of it: see Front.
func (c *Chain) Client() chain.Client { return c.front.Client() }

// Front is the node that Client talks to.
func (c *Chain) Front() *Node { return c.front }

// NewNode opens another node on the same network. It starts honest. Its random
// faults follow from the chain's seed and the number of nodes before it.
func (c *Chain) NewNode() *Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.newNode()
}

// Height of the head.
func (c *Chain) Height() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head().Height
}

// Head is the last block.
func (c *Chain) Head() chain.Block {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.head().public()
}

// id names this chain in what is signed for it.
func (c *Chain) id() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.genesis
}

func (c *Chain) utxo() bool { return c.opt.Family == chain.UTXOFamily }

func (c *Chain) clock() time.Time { return c.opt.Now().UTC().Truncate(time.Second) }

// next numbers whatever is made.
func (c *Chain) next() uint64 {
	c.seq++
	return c.seq
}

// decimals of an asset on chain; an unregistered contract has 18.
func (c *Chain) decimals(asset string) int32 {
	if asset == "" {
		return int32(c.gas.Decimals)
	}
	if x := c.opt.Registry.ByContract(c.opt.Network, asset); x != nil {
		return int32(x.Decimals)
	}
	return 18
}

// code is the currency of an asset, "" where it is none of the registered ones.
func (c *Chain) code(asset string) string {
	if asset == "" {
		return c.gas.Code
	}
	if x := c.opt.Registry.ByContract(c.opt.Network, asset); x != nil {
		return x.Code
	}
	return ""
}

// asset finds what a payment moves: "" is the native coin, else a contract.
func (c *Chain) asset(currency, contract string) (string, error) {
	if contract != "" {
		if x := c.opt.Registry.ByContract(c.opt.Network, contract); x != nil {
			return x.Contract, nil
		}
		return contract, nil
	}
	if currency == "" {
		return "", nil
	}
	x, err := c.opt.Registry.Currency(currency)
	if err != nil {
		return "", err
	}
	if x.Network != c.opt.Network {
		return "", fmt.Errorf("sim: %s is not on %s: %w", currency, c.opt.Network, chain.ErrCurrency)
	}
	return x.Contract, nil
}

func seedOf(parts ...string) uint64 {
	sum := digest(parts...)
	var n uint64
	for _, b := range sum[:8] {
		n = n<<8 | uint64(b)
	}
	return n
}

// digest hashes parts so that no two lists of parts give the same input.
func digest(parts ...string) [32]byte {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:%s,", len(p), p) // a hash takes all
	}
	return [32]byte(h.Sum(nil))
}

func digestHex(parts ...string) string {
	sum := digest(parts...)
	return hex.EncodeToString(sum[:])
}

// text writes a number in plain digits, whatever the host has set in the
// decimal package's globals.
func text(d decimal.Decimal) string {
	digits, exp := d.Coefficient().String(), int(d.Exponent())
	neg := digits[0] == '-'
	if neg {
		digits = digits[1:]
	}
	for exp < 0 && len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits, exp = digits[:len(digits)-1], exp+1
	}
	if digits == "0" {
		return "0"
	}
	for ; exp > 0; exp-- {
		digits += "0"
	}
	if exp < 0 {
		for len(digits) <= -exp {
			digits = "0" + digits
		}
		digits = digits[:len(digits)+exp] + "." + digits[len(digits)+exp:]
	}
	if neg {
		return "-" + digits
	}
	return digits
}

// checkAmount takes what text writes of an amount: no sign, no exponent, bounded.
func checkAmount(s string) error {
	dots := 0
	for _, r := range s {
		if r == '.' {
			dots++
		} else if r < '0' || r > '9' {
			return fmt.Errorf("sim: %q is no amount", s)
		}
	}
	if s == "" || len(s) > 120 || dots > 1 || s[0] == '.' || s[len(s)-1] == '.' {
		return errors.New("sim: not an amount")
	}
	return nil
}
