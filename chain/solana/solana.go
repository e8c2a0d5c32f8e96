// Package solana is the chain client of Solana: SOL, SPL tokens and those Token-2022
// mints that move exactly what they say, over the JSON-RPC of a validator.
//
// What it promises:
//   - A transfer is reported only where the chain executed it (meta.err is null), and
//     only by what balances before and after it say. Where the instructions, also those
//     that programs called, explain the difference to the lamport, each movement is a
//     transfer of its own; else the difference is one. Addresses out of lookup tables
//     count as any other.
//   - Tokens count at the owner's associated token account alone. What comes by another
//     token account of the same owner is reported as Unproven.
//   - Transactions without a version and of versions 0 and 1 are read. What one of a later
//     version brought is reported as Unproven, by balances; whatever else is in it, its
//     block is read.
//   - Where few addresses are watched (Options.FewAddresses), the blocks that are read are those
//     that the node's histories name, of the addresses and of every token account of theirs. They
//     are read and matched like all others. What these accounts hold must follow from what their
//     histories name, transaction by transaction. Where it does not, or the node does not have every
//     block between, by its own count, or keeps no histories, all blocks are read.
//   - A mint with a transfer fee or hook, a permanent delegate, frozen accounts from the
//     start, confidential transfers, or anything else that is not known to be harmless is
//     refused before the first block is read, by its name.
//   - Blocks are read as soon as two thirds of the stake have confirmed them. What the
//     network calls final is finalized. A block's height counts blocks, not slots, and
//     its hash is "slot:blockhash". Each links to the one before by both: a slot that was
//     skipped is told from one that the node does not have, which is an error.
//   - A transaction of ours lands within 151 blocks of the finalized one whose hash it
//     carries, or never. It is called dead once those blocks are finalized, each the child
//     of the one before, and none of them holds it. A node's word or silence proves
//     nothing. So no two attempts of one intent are ever alive together; durable nonces
//     are not used.
//   - The URL and the headers of the node, which often hold a key, are in no error.
//
// Transactions are built with github.com/gagliardetto/solana-go and read back by a
// reader of our own, so that a mistake of either shows. It was run against the real
// runtime (LiteSVM) behind a modelled RPC, never against a validator: blocks, forks,
// commitment and expiry are as documented, not as measured.
package solana

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// The genesis hashes of the clusters.
const (
	Mainnet = "5eykt4UsFv8P8NJdTREpY1vzqKqZKvdpKuc147dw2N9d"
	Testnet = "4uhcVJyU9pJkvQyS88uRDiswHXSCkY3zQawwpjk2NsNY"
	Devnet  = "EtWTRABZaYq6iMfeYKouRu166VU2xqa1wcaWoxPkrZBG"
)

// Options configure one Client. URL is required.
type Options struct {
	// Network defaults to "SOL".
	Network  chain.Network
	Registry *chain.Registry // Defaults to chain.MainnetRegistry.
	// Genesis is the cluster's genesis hash. Defaults to Mainnet.
	Genesis string

	// URL of the node's JSON-RPC. It may hold a key and is kept out of errors. The
	// node must keep transaction history.
	URL string
	// Witnesses are URLs of other nodes with history that must know nothing of a
	// transaction before it is called dead. Defaults to none: the blocks themselves,
	// as URL gives them, are the proof.
	Witnesses []string
	// Header is added to each request.
	Header http.Header
	// HTTP sends the requests. Defaults to a client with a Transport of its own,
	// no proxy from the environment, no redirects and a 30 s limit per request.
	HTTP *http.Client
	// MaxBody is the size in bytes above which an answer is refused. Defaults to 64 MiB.
	MaxBody int64
	// CallsPerMinute bounds the calls to a node in any minute, and a sixth of it those in any ten
	// seconds. Each request counts, to URL and to each of Witnesses on its own.
	// Calls beyond it wait: see Usage. At least 60; defaults to 0, no bound.
	CallsPerMinute int
	// Parallel is how many blocks are read at once. Defaults to 4.
	Parallel int
	// FewAddresses is the most watched addresses at which the node's histories of them and of
	// their token accounts say which blocks Scan reads, in place of all blocks: at each poll some
	// five calls an address. Defaults to 10; below 0 all blocks are read.
	FewAddresses int
	// HistoryLimit is the most transactions that one History reads. Defaults to 10000.
	HistoryLimit int

	// MinPrice and MaxPrice bound what is paid for one compute unit, in millionths of a
	// lamport, whatever the node says that others pay. Default to 1000 and 1000000.
	MinPrice, MaxPrice int64
	// SignatureFee is what the network takes for one signature, in lamports. Build
	// refuses where the node says otherwise. Defaults to 5000.
	SignatureFee int64
	// SendVersion1 says that Build makes transactions of version 1 (SIMD-0385) instead of
	// the form without versions: for clusters that take no others (SIMD-0646 proposes it).
	// Both are read, and signed, whatever is said here. Defaults to false.
	SendVersion1 bool
	// MaxFee in lamports is what one transaction may cost at most, with the rent of a
	// token account that it opens. Defaults to 10000000.
	MaxFee int64

	// Log gets transaction_skipped (WARN) for a transaction of a later version whose
	// balances cannot be read either. Defaults to none.
	Log *slog.Logger
}

// Client is a chain.Client for Solana. It is safe for concurrent use.
type Client struct {
	o         Options
	node      *node
	witnesses []*node
	native    *chain.Currency
	tokens    map[key]*token

	checking sync.Mutex
	most     bounds
	rest     follow.Rest

	mu     sync.Mutex
	places map[int64]int64 // slots of heights, as last seen; verified on use
	looks  looks           // of the last Scan by histories
}

// token is a registered mint, and what the chain says of it once it was checked.
type token struct {
	*chain.Currency
	mint key
	made atomic.Pointer[key] // the program, nil until it was checked
}

// program is the token program of the mint; the zero key where it was not looked at
// yet, as in a signer that has no node.
func (t *token) program() key {
	if p := t.made.Load(); p != nil {
		return *p
	}
	return key{}
}

var (
	_ chain.Client    = (*Client)(nil)
	_ chain.Balancer  = (*Client)(nil)
	_ chain.Historian = (*Client)(nil)
	_ chain.Locator   = (*Client)(nil)
	_ chain.Metered   = (*Client)(nil)
	_ chain.Sponsored = (*Client)(nil)
	_ chain.Deliverer = (*Client)(nil)
)

// New checks the options and makes a Client. It does no I/O: the first call that
// does checks that the node is on the right chain and that every registered mint is
// one that can be used, as does the next one after each failure to reach the node.
func New(o Options) (*Client, error) {
	o = withDefaults(o)
	if o.Registry == nil {
		o.Registry = chain.MainnetRegistry()
	}
	switch {
	case o.MinPrice > o.MaxPrice || o.MaxPrice > maxPrice:
		return nil, fmt.Errorf("solana: Options.MinPrice must be at most MaxPrice, and that at most %d", int64(maxPrice))
	case o.SignatureFee > maxLamports || o.MaxFee > maxLamports:
		return nil, errors.New("solana: Options.SignatureFee and MaxFee are in lamports, 10^9 of which are one SOL: too much")
	}
	if _, ok := parseKey(o.Genesis); !ok {
		return nil, errors.New("solana: Options.Genesis must be the base58 hash of the cluster's genesis")
	}
	c := &Client{o: o, tokens: map[key]*token{}, places: map[int64]int64{}, most: bounds{pages: 10, accounts: 32, slots: 100_000}}
	for i, s := range append([]string{o.URL}, o.Witnesses...) {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return nil, errors.New("solana: Options.URL and Witnesses must be http or https URLs")
		}
		n := &node{RPC: transport.RPC{Endpoint: transport.Endpoint{HTTP: o.HTTP, Header: o.Header, Max: o.MaxBody}, URL: s, Batch: 1}}
		if n.Budget, err = transport.NewBudget("solana", o.CallsPerMinute); err != nil {
			return nil, err
		}
		n.Hide(s)
		if c.node == nil {
			c.node = n
		} else if i > 0 {
			c.witnesses = append(c.witnesses, n)
		}
	}
	for _, cur := range o.Registry.On(o.Network) {
		if cur.Native() {
			c.native = cur
			continue
		}
		mint, ok := parseKey(cur.Contract)
		if !ok {
			return nil, fmt.Errorf("solana: currency %s: contract: not the base58 address of a mint", cur.Code)
		}
		c.tokens[mint] = &token{Currency: cur, mint: mint}
	}
	if c.native == nil || c.native.Decimals != 9 {
		return nil, fmt.Errorf("solana: %s: its native coin, with 9 decimals, must be in the Registry: it pays the fees", o.Network)
	}
	return c, nil
}

// Bounds of what options and nodes may say: beyond them sums could overflow.
const (
	maxPrice    = 1_000_000_000 // millionths of a lamport: a thousand lamports for a compute unit
	maxLamports = 1_000_000_000_000
)

func withDefaults(o Options) Options {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.MaxBody, 64<<20)
	def(&o.MinPrice, 1000)
	def(&o.MaxPrice, 1_000_000)
	def(&o.SignatureFee, 5000)
	def(&o.MaxFee, 10_000_000)
	if o.Network == "" {
		o.Network = "SOL"
	}
	if o.Genesis == "" {
		o.Genesis = Mainnet
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	if o.FewAddresses == 0 {
		o.FewAddresses = 10
	}
	if o.HistoryLimit <= 0 {
		o.HistoryLimit = 10_000
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.HTTP == nil {
		o.HTTP = transport.NewHTTP(16, 30*time.Second)
	}
	return o
}

// FewAddresses is the most addresses that the client asks for the histories of; 0 = it reads all
// blocks. See chain.FewWatch.
func (c *Client) FewAddresses() int { return max(0, c.o.FewAddresses) }

// Network is the code that the client was made for.
func (c *Client) Network() chain.Network { return c.o.Network }

// Usage says how much of Options.CallsPerMinute is used, of URL first.
func (c *Client) Usage() []chain.Usage {
	out := []chain.Usage{c.node.Budget.Usage()}
	for i, n := range c.witnesses {
		u := n.Budget.Usage()
		u.Node = fmt.Sprintf("witness %d", i+1)
		out = append(out, u)
	}
	return out
}

// Tip reads the newest confirmed block and the newest finalized one. Safe is the
// head: what two thirds of the stake have confirmed was never taken back yet.
func (c *Client) Tip(ctx context.Context) (chain.Tip, error) {
	v, err := c.view(ctx)
	if err != nil {
		return chain.Tip{}, err
	}
	return chain.Tip{Head: v.head.Block, Safe: v.head.Height, Final: v.final.Height}, nil
}

// view is one look at the node.
type view struct{ head, final header }

func (c *Client) view(ctx context.Context) (view, error) {
	if err := c.ready(ctx); err != nil {
		return view{}, err
	}
	final, err := c.newest(ctx, finalized)
	if err != nil {
		return view{}, err
	}
	head, err := c.newest(ctx, confirmed)
	if err != nil {
		return view{}, err
	}
	if final.Height > head.Height || final.slot > head.slot {
		return view{}, fmt.Errorf("%w: its finalized block %d is above the head %d", chain.ErrNode, final.Height, head.Height)
	}
	return view{head, final}, nil
}

// ready checks the cluster and the mints, once per connection that works.
func (c *Client) ready(ctx context.Context) error {
	return c.node.Check(func() error {
		c.checking.Lock()
		defer c.checking.Unlock()
		if err := c.rightChain(ctx, c.node); err != nil {
			return err
		}
		return c.checkMints(ctx)
	})
}

func (c *Client) rightChain(ctx context.Context, n *node) error {
	got, err := n.text(ctx, "getGenesisHash")
	if err == nil && got != c.o.Genesis {
		err = fmt.Errorf("%w: its genesis is %.50q, that of %s is %s", chain.ErrWrongNet, got, c.o.Network, c.o.Genesis)
	}
	return err
}

// BlockAt tells which block is at a height now. An error wrapping ErrBehind: the
// node has none yet.
func (c *Client) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	if err := c.ready(ctx); err != nil {
		return chain.Block{}, err
	}
	head, err := c.newest(ctx, confirmed)
	if err != nil {
		return chain.Block{}, err
	}
	h, err := c.at(ctx, height, head)
	return h.Block, err
}
