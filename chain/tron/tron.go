// Package tron is the chain client of Tron: TRX and TRC-20 tokens over the HTTP
// API of java-tron, with transactions that are built and read back here, byte by
// byte, and never by the node.
//
// What it promises:
//   - A transfer is reported only where the chain executed it: the block's
//     contractRet and the receipt both say SUCCESS, and tokens moved by a Transfer
//     log of that very contract. A status that is not known is not executed.
//     TRC-10 tokens and tokens of other contracts are never a registered currency.
//   - A block is taken with the receipts of all its transactions or not at all. A
//     node that is behind, on another chain, answers in parts, contradicts itself,
//     or says something else with HTTP 200 is an error and never an empty result.
//   - A transfer's identity is (tx, ordinal): −1 the tx's own TRX, n ≥ 0 the n-th
//     log of that tx, −2−n the n-th executed inner call that carries TRX.
//   - What the network calls final are solidified blocks.
//   - Tron has neither nonces nor inputs: two transactions never exclude each
//     other, so none is replaced. One can be called dead once a solidified block
//     is past its expiration and every block that could hold it was read, all of
//     them linked, without finding it. A node's word or silence proves nothing.
//   - The URL and the headers of the node, which often hold a key, are in no error.
//
// It was run against a modelled node (package trontest) and recorded vectors,
// never against java-tron: prices of bandwidth and energy, and when blocks become
// solid, are as documented, not as measured.
package tron

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// The id of the first block of the networks.
const (
	Mainnet = "00000000000000001ebf88508a03865c71d452e25f4d51194196a1d22b6653dc"
	Shasta  = "0000000000000000de1aa88295e1fcf982742f773e0419c5a9c134c994a9059e"
	Nile    = "0000000000000000d698d4192c56cb6be724a558448e2684802de4d6cd8690dc"
)

// trx is one TRX in sun, its smallest unit.
const trx = 1_000_000

// Options configure one Client. URL is required.
type Options struct {
	// Network defaults to "TRX".
	Network  chain.Network
	Registry *chain.Registry // Defaults to chain.MainnetRegistry.
	// Genesis is the id of the chain's first block. Defaults to Mainnet.
	Genesis string

	// URL of the node's HTTP API, without /wallet. It may hold a key and is kept
	// out of errors.
	URL string
	// SolidURL is where /walletsolidity is answered. Defaults to URL; a java-tron
	// of one's own has it on a port of its own.
	SolidURL string
	// Header is added to each request, such as TRON-PRO-API-KEY.
	Header http.Header
	// HTTP sends the requests. Defaults to a client with a Transport of its own,
	// no proxy from the environment, no redirects and a 30 s limit per request.
	HTTP *http.Client
	// MaxBody is the size in bytes above which an answer is refused. Defaults to 64 MiB.
	MaxBody int64
	// CallsPerMinute bounds the calls to a node in any minute, and a sixth of it those in any ten
	// seconds. Each request counts, to SolidURL as well.
	// Calls beyond it wait: see Usage. At least 60; defaults to 0, no bound.
	CallsPerMinute int
	// Group is how many blocks are read in one request while catching up.
	// Defaults to 8, at most 100.
	Group int
	// Parallel is how many requests for receipts are under way at once. Defaults to 4.
	Parallel int
	// HistorySpan is the most blocks that one History reads, each of them whole:
	// Tron has no index by address. Defaults to 28800, a day.
	HistorySpan int64

	// Expiry is how long after the head's time a transaction can still land, in
	// steps of a millisecond. Until then, and until that is solidified, it is not
	// sent anew. Defaults to 2 minutes, at most 12 hours.
	Expiry time.Duration
	// MaxFee in sun is what one transaction may cost at most, whatever the node
	// says of prices. Defaults to 150 TRX.
	MaxFee int64
	// EnergyMargin is added to the energy that a call was tried to take, in
	// percent. Defaults to 20.
	EnergyMargin int64
	// QuoteEnergy is assumed by EstimateFee, and only there, for a token transfer
	// that cannot be tried because the sender is unknown or has not enough yet.
	// Defaults to 131000: USDT to somebody who has none.
	QuoteEnergy int64
	// BytePrice in sun is what Inspect, which asks no node, takes a byte of
	// bandwidth to cost. Defaults to 1000.
	BytePrice int64
	// NoInternal switches off the search for TRX that contracts pay. Nodes keep such
	// calls only where vm.saveInternalTx is on, which it is not by default. Without
	// NoInternal, blocks of a node that keeps none are refused.
	NoInternal bool
}

// Client is a chain.Client for Tron. It is safe for concurrent use.
type Client struct {
	o      Options
	node   *node
	native *chain.Currency
	tokens map[account]*chain.Currency

	keeping keeping
}

var (
	_ chain.Client    = (*Client)(nil)
	_ chain.Balancer  = (*Client)(nil)
	_ chain.Historian = (*Client)(nil)
	_ chain.Locator   = (*Client)(nil)
	_ chain.Metered   = (*Client)(nil)
)

// New checks the options and makes a Client. It does no I/O: the first call that
// does checks that the node is on the right chain, as does the next one after
// each failure to reach it.
func New(o Options) (*Client, error) {
	o = withDefaults(o)
	if o.Registry == nil {
		o.Registry = chain.MainnetRegistry()
	}
	switch {
	case o.Group > 100:
		return nil, errors.New("tron: Options.Group must be at most 100: nodes give no more blocks at once")
	case o.Expiry > 12*time.Hour || o.Expiry < 10*time.Second:
		return nil, errors.New("tron: Options.Expiry must be between 10 seconds and 12 hours")
	case len(o.Genesis) != 64:
		return nil, errors.New("tron: Options.Genesis must be the 64 hex digits of the first block's id")
	}
	for _, s := range []string{o.URL, o.SolidURL} {
		u, err := url.Parse(s)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
			return nil, errors.New("tron: Options.URL and SolidURL must be http or https URLs without a query")
		}
	}
	c := &Client{o: o, node: newNode(&o), tokens: map[account]*chain.Currency{}, keeping: keeping{turn: make(chan struct{}, 1)}}
	var err error
	if c.node.Budget, err = transport.NewBudget("tron", o.CallsPerMinute); err != nil {
		return nil, err
	}
	for _, cur := range o.Registry.On(o.Network) {
		if cur.Native() {
			c.native = cur
			continue
		}
		a, err := parseAddress(o.Network, cur.Contract)
		if err != nil {
			return nil, fmt.Errorf("tron: currency %s: contract: %w", cur.Code, err)
		}
		c.tokens[a] = cur
	}
	if c.native == nil || c.native.Decimals != 6 {
		return nil, fmt.Errorf("tron: %s: its native coin, with 6 decimals, must be in the Registry: it pays the fees", o.Network)
	}
	return c, nil
}

func withDefaults(o Options) Options {
	def := func(v *int64, d int64) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&o.MaxBody, 64<<20)
	def(&o.HistorySpan, 28800)
	def(&o.MaxFee, 150*trx)
	def(&o.EnergyMargin, 20)
	def(&o.QuoteEnergy, 131_000)
	def(&o.BytePrice, 1000)
	if o.Network == "" {
		o.Network = "TRX"
	}
	if o.Genesis == "" {
		o.Genesis = Mainnet
	}
	if o.SolidURL == "" {
		o.SolidURL = o.URL
	}
	if o.Group <= 0 {
		o.Group = 8
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	if o.Expiry == 0 {
		o.Expiry = 2 * time.Minute
	}
	if o.HTTP == nil {
		o.HTTP = transport.NewHTTP(8, 30*time.Second)
	}
	return o
}

// Network is the code that the client was made for.
func (c *Client) Network() chain.Network { return c.o.Network }

// Usage says how much of Options.CallsPerMinute is used.
func (c *Client) Usage() []chain.Usage { return []chain.Usage{c.node.Budget.Usage()} }

// Tip reads the head and the last solidified block, which is both safe and final.
func (c *Client) Tip(ctx context.Context) (chain.Tip, error) {
	v, err := c.view(ctx)
	if err != nil {
		return chain.Tip{}, err
	}
	return chain.Tip{Head: v.head.Block, Safe: v.solid.Height, Final: v.solid.Height}, nil
}

// view is one look at the node.
type view struct{ head, solid block }

func (c *Client) view(ctx context.Context) (view, error) {
	if err := c.rightChain(ctx); err != nil {
		return view{}, err
	}
	solid, err := c.header(ctx, solidPath, nil)
	if err != nil {
		return view{}, err
	}
	head, err := c.head(ctx)
	if err != nil {
		return view{}, err
	}
	if solid.Height > head.Height {
		solid = head // two nodes behind one address: the lower height is what both have
	}
	return view{head, solid}, nil
}

const (
	headerPath = "/wallet/getblock"
	solidPath  = "/walletsolidity/getblock"
)

func (c *Client) head(ctx context.Context) (block, error) { return c.header(ctx, headerPath, nil) }

// at reads the header of the block at a height, which the node must have.
func (c *Client) at(ctx context.Context, height int64) (block, error) {
	b, err := c.header(ctx, headerPath, &height)
	if err == nil && b.Height != height {
		err = fmt.Errorf("%w: asked for block %d, got %d", follow.ErrTorn, height, b.Height)
	}
	return b, err
}

// errNoBlock: the node answered properly that there is none.
var errNoBlock = fmt.Errorf("%w: it has no such block", follow.ErrTorn)

func (c *Client) header(ctx context.Context, path string, height *int64) (block, error) {
	ask := map[string]any{"detail": false}
	if height != nil {
		ask["id_or_num"] = fmt.Sprint(*height)
	}
	raw, err := c.node.post(ctx, path, ask)
	if err != nil {
		return block{}, err
	}
	w := newWalk(raw)
	b := readBlock(w)
	return b.checked(w)
}

// rightChain checks the first block's id and the tokens' decimals, once per
// connection that works.
func (c *Client) rightChain(ctx context.Context) error {
	return c.node.Check(func() error {
		b, err := c.at(ctx, 0)
		if err == nil && b.Hash != c.o.Genesis {
			err = fmt.Errorf("%w: its first block is %s, that of %s is %s", chain.ErrWrongNet, b.Hash, c.o.Network, c.o.Genesis)
		}
		if err != nil {
			return err
		}
		return c.rightUnits(ctx)
	})
}

// rightUnits is chain.ErrUnits where a token's contract says other decimals than the
// Registry. One that is not there, or does not say, is let pass: no money comes
// from the one, and decimals() is no duty of TRC-20.
func (c *Client) rightUnits(ctx context.Context) error {
	for contract, cur := range c.tokens {
		said, err := c.number(ctx, contract, contract, selDecimals[:])
		var refused *refusedError
		switch {
		case errors.As(err, &refused), errors.Is(err, errNoNumber):
		case err != nil:
			return err
		case said.Cmp(big.NewInt(int64(cur.Decimals))) != 0:
			return fmt.Errorf("%w: %s at %s has %s, the Registry says %d: correct or remove it",
				chain.ErrUnits, cur.Code, cur.Contract, said, cur.Decimals)
		}
	}
	return nil
}

// BlockAt tells which block is at a height now. An error wrapping ErrBehind: the
// node has none yet.
func (c *Client) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	if err := c.rightChain(ctx); err != nil {
		return chain.Block{}, err
	}
	b, err := c.at(ctx, height)
	if errors.Is(err, errNoBlock) {
		return chain.Block{}, fmt.Errorf("%w: no block at height %d", chain.ErrBehind, height)
	}
	return b.Block, err
}

func coins(v *big.Int, decimals uint8) decimal.Decimal {
	return decimal.NewFromBigInt(v, -int32(decimals))
}
