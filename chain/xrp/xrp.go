// Package xrp is the chain client of the XRP Ledger: XRP over the JSON-RPC API of
// rippled and Clio, with transactions that are serialised, signed for and read
// back here, byte by byte, and never by the node.
//
// What it promises:
//   - Only validated ledgers are read, and those are final: there is nothing to
//     wait for after one, and nothing is ever shown that is not in one.
//   - What arrived is delivered_amount and nothing else. Amount is never read, so a
//     partial payment counts for what it brought. Issued currencies are no XRP.
//   - One account takes the payments of many: To is the X-address of account and
//     destination tag where both are watched, and otherwise the account alone, with
//     the tag as Memo. No tag is ever guessed.
//   - XRP that an escrow, a check or a channel brought is reported Unproven, from
//     what the account's balance rose by.
//   - A ledger is taken whole, its transactions numbered without a gap and linked
//     to the one before, or not at all. A node that lacks a ledger, is behind, on
//     another chain, or answers with an error in HTTP 200 is an error.
//   - Where few accounts are watched (Options.FewAddresses), the ledgers that are read are those
//     that the node's lists of their transactions name (account_tx). They are read and matched
//     like all others. Where the node does not have all of the range, all ledgers are read.
//   - Transactions of an account exclude each other by Sequence. A server takes one that
//     pays more in the place of one that waits in its queue, and of none that its open
//     ledger has: it refuses a replacement then (chain.ErrOccupied), until the first is
//     validated or gone. Each also ends by itself with LastLedgerSequence; that alone
//     proves nothing here. An attempt is dead once a validated transaction has taken its
//     Sequence.
//   - A transaction waits where it is in the server's queue or in its open ledger. Through
//     Clio, its rippled is asked.
//   - What is sent leaves the account's reserve in place, and goes nowhere where it
//     would bounce: an account that is not there and not paid enough to exist, one
//     that wants a tag and gets none, one that takes from nobody.
//   - The URL and the headers of the node, which often hold a key, are in no error.
//
// It was run against a modelled node (package xrptest) and vectors of the reference
// library, never against rippled: fees under load are as documented, not as
// measured.
package xrp

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// The network ids of the public networks.
const (
	Mainnet uint32 = 0
	Testnet uint32 = 1
	Devnet  uint32 = 2
)

// xrp is one XRP in drops, its smallest unit. There are 10^11 XRP.
const (
	xrp      = 1_000_000
	maxDrops = 100_000_000_000 * xrp
)

// Options configure one Client. URL is required; PublicKey is for
// whoever sends.
type Options struct {
	// Network defaults to "XRP".
	Network  chain.Network
	Registry *chain.Registry // Defaults to chain.MainnetRegistry.
	// NetworkID defaults to Mainnet. A node that does not say one is taken to be
	// of Mainnet.
	NetworkID uint32

	// URL of the node's JSON-RPC API. It may hold a key and is kept out of errors.
	URL string
	// Header is added to each request.
	Header http.Header
	// HTTP sends the requests. Defaults to a client with a Transport of its own,
	// no proxy from the environment, no redirects and a 30 s limit per request.
	HTTP *http.Client
	// MaxBody is the size in bytes above which an answer is refused. Defaults to 64 MiB.
	MaxBody int64
	// CallsPerMinute bounds the calls to a node in any minute, and a sixth of it those in any ten
	// seconds. Each request counts.
	// Calls beyond it wait: see Usage. At least 60; defaults to 0, no bound.
	CallsPerMinute int
	// Parallel is how many ledgers are asked for at once while catching up.
	// Defaults to 4.
	Parallel int
	// FewAddresses is the most watched accounts at which the node's lists of their transactions
	// say which ledgers Scan reads, in place of all: at each poll a call an account. Defaults to
	// 10; below 0 all ledgers are read.
	FewAddresses int

	// PublicKey gives the key of an account of ours: it is part of what is signed,
	// and an address does not tell it. keys.Source has it. Defaults to none:
	// nothing can be sent.
	PublicKey func(a chain.Address, k chain.KeyRef) (chain.PublicKey, error)
	// Window is how many ledgers after the newest validated one a transaction can
	// still land in. Defaults to 256, about a quarter of an hour.
	Window uint32
	// MaxFee in drops is what one transaction may cost at most, whatever the node
	// says of load. Defaults to 100000, 0.1 XRP.
	MaxFee int64
	// FeeMargin is added to the fee that opens the current ledger, in percent.
	// Defaults to 20.
	FeeMargin int64
}

// Client is a chain.Client for the XRP Ledger. It is safe for concurrent use.
type Client struct {
	o      Options
	node   *node
	native *chain.Currency

	searches follow.Searches[search]
	rest     follow.Rest
}

var (
	_ chain.Client      = (*Client)(nil)
	_ chain.Balancer    = (*Client)(nil)
	_ chain.Noncer      = (*Client)(nil)
	_ chain.Historian   = (*Client)(nil)
	_ chain.Locator     = (*Client)(nil)
	_ chain.Metered     = (*Client)(nil)
	_ chain.Tagger      = (*Client)(nil)
	_ chain.Multiplexer = (*Client)(nil)
	_ chain.Deliverer   = (*Client)(nil)
)

// New checks the options and makes a Client. It does no I/O: the first call that
// does checks that the node is on the right chain, as does the next one after
// each failure to reach it.
func New(o Options) (*Client, error) {
	o = withDefaults(o)
	if o.Registry == nil {
		o.Registry = chain.MainnetRegistry()
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("xrp: Options.URL must be an http or https URL")
	}
	c := &Client{o: o, node: newNode(&o)}
	if c.node.Budget, err = transport.NewBudget("xrp", o.CallsPerMinute); err != nil {
		return nil, err
	}
	for _, cur := range o.Registry.On(o.Network) {
		if !cur.Native() {
			return nil, fmt.Errorf("xrp: currency %s: issued currencies are not supported", cur.Code)
		}
		c.native = cur
	}
	if c.native == nil || c.native.Decimals != 6 {
		return nil, fmt.Errorf("xrp: %s: its native coin, with 6 decimals, must be in the Registry", o.Network)
	}
	return c, nil
}

func withDefaults(o Options) Options {
	if o.Network == "" {
		o.Network = "XRP"
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 64 << 20
	}
	if o.Parallel <= 0 {
		o.Parallel = 4
	}
	if o.FewAddresses == 0 {
		o.FewAddresses = 10
	}
	if o.Window == 0 {
		o.Window = 256
	}
	if o.MaxFee <= 0 {
		o.MaxFee = xrp / 10
	}
	if o.FeeMargin <= 0 {
		o.FeeMargin = 20
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

// Tip reads the newest validated ledger, which is head, safe and final at once.
func (c *Client) Tip(ctx context.Context) (chain.Tip, error) {
	head, err := c.head(ctx)
	if err != nil {
		return chain.Tip{}, err
	}
	return chain.Tip{Head: head.Block, Safe: head.Height, Final: head.Height}, nil
}

// BlockAt tells which ledger has an index. An error wrapping ErrBehind: the node
// has not validated one yet.
func (c *Client) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	head, err := c.head(ctx)
	if err != nil {
		return chain.Block{}, err
	}
	if height > head.Height {
		return chain.Block{}, fmt.Errorf("%w: no validated ledger %d", chain.ErrBehind, height)
	}
	b, err := c.at(ctx, height)
	return b.Block, err
}

// head is the newest validated ledger, of the right network.
func (c *Client) head(ctx context.Context) (ledgerRead, error) {
	if err := c.rightChain(ctx); err != nil {
		return ledgerRead{}, err
	}
	return c.ledger(ctx, "validated", headerOnly)
}

// at reads the header of a validated ledger, which the node must have.
func (c *Client) at(ctx context.Context, height int64) (ledgerRead, error) {
	return c.ledger(ctx, height, headerOnly)
}

// state is what the node says of itself and of the network's reserves, in drops.
type state struct {
	State struct {
		NetworkID *uint32 `json:"network_id"`
		Validated *struct {
			BaseFee int64 `json:"base_fee"`
			Base    int64 `json:"reserve_base"`
			Owner   int64 `json:"reserve_inc"`
		} `json:"validated_ledger"`
	} `json:"state"`
}

func (c *Client) state(ctx context.Context) (*state, error) {
	var s state
	if err := c.node.ask(ctx, "server_state", nil, &s); err != nil {
		return nil, err
	}
	v := s.State.Validated
	if v == nil || v.BaseFee <= 0 || v.Base < 0 || v.Owner < 0 || v.BaseFee > maxDrops || v.Base > maxDrops || v.Owner > maxDrops/1000 {
		return nil, fmt.Errorf("%w: it has no validated ledger, or absurd reserves", chain.ErrNode)
	}
	return &s, nil
}

// rightChain checks the network's id, once per connection that works.
func (c *Client) rightChain(ctx context.Context) error {
	return c.node.Check(func() error {
		s, err := c.state(ctx)
		if err != nil {
			return err
		}
		id := Mainnet
		if s.State.NetworkID != nil {
			id = *s.State.NetworkID
		}
		if id != c.o.NetworkID {
			return fmt.Errorf("%w: its network id is %d, that of %s is %d", chain.ErrWrongNet, id, c.o.Network, c.o.NetworkID)
		}
		return nil
	})
}

func coins(drops int64) decimal.Decimal { return decimal.New(drops, -6) }

func newNode(o *Options) *node {
	n := &node{Endpoint: transport.Endpoint{HTTP: o.HTTP, Header: o.Header, Max: o.MaxBody}, url: o.URL}
	n.Hide(o.URL)
	return n
}
