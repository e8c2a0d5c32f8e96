// Package utxo is the chain client of networks that keep value in outputs as
// Bitcoin does: BTC, LTC and DOGE, over the JSON-RPC of Bitcoin Core and its
// descendants or of btcd.
//
// What it promises:
//   - Blocks are read raw and proven by themselves: the hash is that of the
//     header, the transactions hash to the header's Merkle root, and each block is
//     the child of the one before. A node that is behind, is on another chain,
//     leaves something out or contradicts itself is an error and never an empty
//     result.
//   - A transfer's identity is (tx, index of the output); it does not move when
//     the transaction is mined again elsewhere.
//   - A payload to be signed is a PSBT (BIP 174) that holds the whole transactions
//     it spends from, so a signer sees amounts and fee without trusting whoever
//     built it (but see Options.Pruned); Inspect accepts one writing of it only.
//   - What became of a transaction is judged by what spent its inputs, so one
//     that came into a block under another id (its signatures were changed) is
//     recognised, and Conflicted names a transaction found in a block.
//   - Amounts are exact integers; no float. The node's URL and password are in no
//     error.
//
// The node has to keep a transaction index (-txindex=1, --txindex), unless
// Options.Pruned is set. It must not prune blocks that are still to be read. What
// needs an index of addresses is said at Balance and History.
package utxo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// Dialect is how a node's JSON-RPC differs from others'.
type Dialect string

// The dialects.
const (
	Core Dialect = "core" // Bitcoin Core, Litecoin Core, Dogecoin Core
	Btcd Dialect = "btcd"
)

// Options configure one Client. Network, Params and URL are required.
type Options struct {
	Network  chain.Network
	Params   Params          // Mainnet or Testnets gives them
	Registry *chain.Registry // Defaults to chain.MainnetRegistry.

	// URL of the node's HTTP endpoint. It may hold user and password, and is kept
	// out of errors.
	URL string
	// User and Password are used where the URL has none.
	User, Password string
	// Header is added to each request, for nodes that want a token there.
	Header http.Header
	// Dialect defaults to Core.
	Dialect Dialect
	// HTTP sends the requests. Defaults to a client with a Transport of its own,
	// no proxy from the environment, no redirects and a 60 s limit per request.
	HTTP *http.Client
	// MaxBody is the size in bytes above which an answer is refused. Defaults to 64 MiB.
	MaxBody int64
	// Batch is how many calls go into one request; 1 sends no arrays. Defaults to 50.
	Batch int
	// Group is how many blocks are read in one request while catching up. Defaults to 4.
	Group int
	// CallsPerMinute bounds the calls to a node in any minute, and a sixth of it those in any ten
	// seconds. Each call of a batch counts.
	// Calls beyond it wait: see Usage. At least 60; defaults to 0, no bound.
	CallsPerMinute int

	// Target is how many blocks a transaction of ours may wait. Defaults to 3.
	Target int
	// MinRate, FallbackRate and MaxRate replace those of Params where not 0.
	MinRate, FallbackRate, MaxRate int64
	// SearchBlocks is how many blocks back Status looks for what spent an output.
	// Defaults to 1000.
	SearchBlocks int
	// Pruned says that the node keeps no index of transactions, and may drop old blocks
	// (-prune). What became of an attempt is then looked for in blocks, by the coins that it
	// spends, and its cost is what Attempt.MaxCost says. A payload does not hold the
	// transactions that made its coins: who signs has the word of who built it for what they
	// are worth, and a signature is good for that amount alone. A signer that reads such
	// payloads sets it, too. It is not for Params.Legacy, whose signatures are good for any
	// amount.
	Pruned bool
	// MaxMempool is how many bytes of waiting transactions are kept. Defaults to 128 MiB.
	MaxMempool int64
	// PoolFetch is how many new waiting transactions one Pending reads before it
	// says that it is not done. Defaults to 20000.
	PoolFetch int
}

// Client is a chain.Client for one network. It is safe for concurrent use.
type Client struct {
	o      Options
	p      Params
	node   *transport.RPC
	format address.Format
	write  *writer
	native *chain.Currency

	head  atomic.Int64 // that Tip read last
	pool  pool
	mu    sync.Mutex
	taken map[string]taker // spends found in blocks
	// passed is the hash of the head down from which no block was found that spends an output.
	passed map[[36]byte]string
}

var (
	_ chain.Client    = (*Client)(nil)
	_ chain.Mempool   = (*Client)(nil)
	_ chain.Balancer  = (*Client)(nil)
	_ chain.Historian = (*Client)(nil)
	_ chain.Locator   = (*Client)(nil)
	_ chain.Metered   = (*Client)(nil)

	_ chain.ParentPayer = (*Client)(nil)
)

// New checks the options and makes a Client. It does no I/O: the first call that
// does checks that the node is on the right chain, as every later one does.
func New(o Options) (*Client, error) {
	if o.Registry == nil {
		o.Registry = chain.MainnetRegistry()
	}
	switch {
	case o.Network == "":
		return nil, errors.New("utxo: Options.Network is required")
	case len(o.Params.Genesis) != 64 || o.Params.Maturity < 1 || len(o.Params.Address.ScriptHash) == 0:
		return nil, fmt.Errorf("utxo: %s: Options.Params are required: see Mainnet", o.Network)
	case !o.Params.Legacy && o.Params.Address.HRP == "":
		return nil, fmt.Errorf("utxo: %s: without segregated witness Params.Legacy must be set", o.Network)
	case o.Params.Legacy && o.Pruned:
		return nil, fmt.Errorf("utxo: %s: Options.Pruned needs segregated witness: connect a node with an index of transactions", o.Network)
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("utxo: %s: Options.URL must be an http or https URL", o.Network)
	}
	c := &Client{o: withDefaults(o), taken: map[string]taker{}, passed: map[[36]byte]string{}}
	c.p = c.o.Params
	if c.native, err = o.Registry.Gas(o.Network); err != nil {
		return nil, fmt.Errorf("utxo: %s: its coin must be in the Registry: %w", o.Network, err)
	}
	if c.native.Decimals != 8 || c.native.Scale != 8 {
		return nil, fmt.Errorf("utxo: %s: the coin has 8 decimals and is counted in 8 places", o.Network)
	}
	if c.p.MinRate < 1 || c.p.MaxRate < c.p.MinRate || c.p.FallbackRate < c.p.MinRate || c.p.FallbackRate > c.p.MaxRate {
		return nil, fmt.Errorf("utxo: %s: fee rates must be 0 < MinRate ≤ FallbackRate ≤ MaxRate", o.Network)
	}
	c.format = c.p.Address.Format(o.Network, string(o.Network))
	c.write = newWriter(c.p.Address)
	c.pool.txs = map[string][]byte{}
	c.node = newNode(c.o, u)
	if c.node.Budget, err = transport.NewBudget("utxo", o.CallsPerMinute); err != nil {
		return nil, err
	}
	return c, nil
}

func withDefaults(o Options) Options {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.Batch, 50)
	def(&o.Group, 4)
	def(&o.Target, 3)
	def(&o.SearchBlocks, 1000)
	def(&o.PoolFetch, 20_000)
	if o.MaxBody <= 0 {
		o.MaxBody = 64 << 20
	}
	if o.MaxMempool <= 0 {
		o.MaxMempool = 128 << 20
	}
	if o.Dialect == "" {
		o.Dialect = Core
	}
	for v, own := range map[*int64]int64{&o.Params.MinRate: o.MinRate, &o.Params.FallbackRate: o.FallbackRate, &o.Params.MaxRate: o.MaxRate} {
		if own > 0 {
			*v = own
		}
	}
	if o.HTTP == nil {
		o.HTTP = transport.NewHTTP(8, 60*time.Second)
	}
	return o
}

// Network is the code that the client was made for.
func (c *Client) Network() chain.Network { return c.o.Network }

// Usage says how much of Options.CallsPerMinute is used.
func (c *Client) Usage() []chain.Usage { return []chain.Usage{c.node.Budget.Usage()} }

// Tip reads the head. These networks have no finality of their own: Safe and
// Final are −1.
func (c *Client) Tip(ctx context.Context) (chain.Tip, error) {
	height, err := c.height(ctx)
	if err != nil {
		return chain.Tip{}, err
	}
	b, err := c.blockAt(ctx, height)
	if err != nil {
		return chain.Tip{}, err
	}
	c.head.Store(b.Height)
	return chain.Tip{Head: b, Safe: -1, Final: -1}, nil
}

// BlockAt tells which block is at a height now. An error wrapping ErrBehind: the
// node has none yet.
func (c *Client) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	head, err := c.height(ctx)
	if err != nil {
		return chain.Block{}, err
	}
	if height < 0 || height > head {
		return chain.Block{}, fmt.Errorf("%w: no block at height %d, its head is %d", chain.ErrBehind, height, head)
	}
	return c.blockAt(ctx, height)
}

// height is that of the head of the right chain.
func (c *Client) height(ctx context.Context) (int64, error) {
	count := transport.NewCall("getblockcount")
	check := c.checks()
	if err := c.node.Do(ctx, append(check, count)...); err != nil {
		return 0, err
	}
	if err := c.rightChain(check); err != nil {
		return 0, err
	}
	return count.Integer()
}

// blockAt reads the header at a height that the node has.
func (c *Client) blockAt(ctx context.Context, height int64) (chain.Block, error) {
	at := transport.NewCall("getblockhash", height)
	if err := c.node.Do(ctx, at); err != nil {
		return chain.Block{}, err
	}
	hash, err := hashOf(at)
	if err != nil {
		return chain.Block{}, err
	}
	k := transport.NewCall("getblockheader", hash, false)
	if err := c.node.Do(ctx, k); err != nil {
		return chain.Block{}, err
	}
	raw, err := bytesOf(k)
	if err != nil {
		return chain.Block{}, err
	}
	return header(raw, hash, height)
}

// checks are the calls by which a node shows which chain it is on.
func (c *Client) checks() []*transport.Call {
	out := []*transport.Call{transport.NewCall("getblockhash", 0)}
	if c.p.Checkpoint.Height > 0 {
		out = append(out, transport.NewCall("getblockhash", c.p.Checkpoint.Height))
	}
	return out
}

// rightChain judges the answers to checks.
func (c *Client) rightChain(calls []*transport.Call) error {
	for i, want := range []string{c.p.Genesis, c.p.Checkpoint.Hash}[:len(calls)] {
		if i > 0 && outOfRange(calls[i].Err) {
			return fmt.Errorf("%w: it has not reached block %d yet", chain.ErrBehind, c.p.Checkpoint.Height)
		}
		got, err := hashOf(calls[i])
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("%w: its block %v is %s, on %s %s it is %s", chain.ErrWrongNet, calls[i].Params[0], got, c.o.Network, c.p.Name, want)
		}
	}
	return nil
}
