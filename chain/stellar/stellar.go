// Package stellar is the chain client of Stellar: lumens over the REST API of
// Horizon, with transactions that are written in XDR, signed for and read back
// here, byte by byte, and never by the node.
//
// What it promises:
//   - A ledger is taken with all its operations, counted against what its header
//     says, and linked to the one before, or not at all. Closed ledgers are final.
//   - What arrived is what the destination received: the amount of a payment, the
//     destination's side of a path payment, the starting balance of an account that
//     is made, the effect of a merge. Other assets are no lumens; claimable balances
//     are nobody's until they are claimed.
//   - One account takes the payments of many: To is the muxed account of its id,
//     given as M… or as a memo, where both are watched, and otherwise the account
//     alone with what memo there was. A memo of text that is just the digits of an
//     id names it, too; nothing else is guessed.
//   - Lumens that a contract moved are reported Unproven.
//   - Where few accounts are watched (Options.FewAddresses), a ledger is read where one of them
//     was changed: Horizon says when, and lists the operations that name it. Such ledgers are read
//     and matched like all others. Where Horizon does not say how far it had read the chain when
//     it answered (Latest-Ledger), all ledgers are read.
//   - Transactions of an account exclude each other by sequence number, so a stuck
//     one is replaced by one of the same number. Each also ends by itself with its
//     time bounds; that alone proves nothing here. An attempt is dead once another
//     transaction in a ledger has taken its number. One that a stranger wrapped in a
//     fee bump is still the same, and costs nothing.
//   - What is sent leaves the account's reserve in place. Who is not there yet is
//     made by the payment, where it is enough for that.
//   - The URL and the headers of the node, which often hold a key, are in no error.
//
// It was run against a modelled node (package stellartest) and vectors of the
// reference library, never against Horizon: fees under load are as documented, not
// as measured.
package stellar

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/follow"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
)

// The passphrases of the public networks: their hash is part of what is signed.
const (
	Mainnet = "Public Global Stellar Network ; September 2015"
	Testnet = "Test SDF Network ; September 2015"
)

// lumen is one XLM in stroops, its smallest unit.
const lumen = 10_000_000

// Options configure one Client. URL is required.
type Options struct {
	// Network defaults to "XLM".
	Network  chain.Network
	Registry *chain.Registry // Defaults to chain.MainnetRegistry.
	// Passphrase defaults to Mainnet.
	Passphrase string

	// URL of Horizon. It may hold a key and is kept out of errors.
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
	// FewAddresses is the most watched accounts at which Horizon's word on them says which ledgers
	// Scan reads, in place of all: at each poll a request an account. Defaults to 10; below 0 all
	// ledgers are read.
	FewAddresses int

	// Expiry is how long after the newest ledger's time a transaction can still
	// land, in whole seconds. Defaults to 10 minutes: less than it takes until a
	// stuck one is replaced, so that nodes no longer have the first.
	Expiry time.Duration
	// MaxFee in stroops is what one transaction may cost at most, whatever the node
	// says of load. Defaults to 1000000, 0.1 XLM.
	MaxFee int64
	// FeeMargin is added to what all but one in a hundred transactions paid of
	// late, in percent. Defaults to 20.
	FeeMargin int64
}

// Client is a chain.Client for Stellar. It is safe for concurrent use.
type Client struct {
	o      Options
	node   *node
	id     [32]byte // of the network
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
	if o.Expiry < 30*time.Second || o.Expiry > time.Hour {
		return nil, errors.New("stellar: Options.Expiry must be between 30 seconds and an hour")
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" {
		return nil, errors.New("stellar: Options.URL must be an http or https URL without a query")
	}
	c := &Client{o: o, node: newNode(&o), id: sha256.Sum256([]byte(o.Passphrase))}
	if c.node.Budget, err = transport.NewBudget("stellar", o.CallsPerMinute); err != nil {
		return nil, err
	}
	for _, cur := range o.Registry.On(o.Network) {
		if !cur.Native() {
			return nil, fmt.Errorf("stellar: currency %s: issued assets are not supported", cur.Code)
		}
		c.native = cur
	}
	if c.native == nil || c.native.Decimals != 7 {
		return nil, fmt.Errorf("stellar: %s: its native coin, with 7 decimals, must be in the Registry", o.Network)
	}
	return c, nil
}

func withDefaults(o Options) Options {
	if o.Network == "" {
		o.Network = "XLM"
	}
	if o.Passphrase == "" {
		o.Passphrase = Mainnet
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
	if o.Expiry == 0 {
		o.Expiry = 10 * time.Minute
	}
	if o.MaxFee <= 0 {
		o.MaxFee = lumen / 10
	}
	if o.FeeMargin <= 0 {
		o.FeeMargin = 20
	}
	if o.HTTP == nil {
		o.HTTP = transport.NewHTTP(8, 30*time.Second)
	}
	return o
}

func newNode(o *Options) *node {
	n := &node{
		Endpoint: transport.Endpoint{HTTP: o.HTTP, Header: o.Header, Max: o.MaxBody, Refusals: []int{201, 400, 404, 409, 503}},
		url:      strings.TrimRight(o.URL, "/"),
	}
	n.Hide(o.URL)
	return n
}

// Network is the code that the client was made for.
func (c *Client) Network() chain.Network { return c.o.Network }

// Usage says how much of Options.CallsPerMinute is used.
func (c *Client) Usage() []chain.Usage { return []chain.Usage{c.node.Budget.Usage()} }

// Tip reads the newest ledger that Horizon has taken in, which is head, safe and
// final at once.
func (c *Client) Tip(ctx context.Context) (chain.Tip, error) {
	head, err := c.head(ctx)
	if err != nil {
		return chain.Tip{}, err
	}
	return chain.Tip{Head: head.Block, Safe: head.Height, Final: head.Height}, nil
}

// BlockAt tells which ledger has a sequence. An error wrapping ErrBehind: there is
// none yet.
func (c *Client) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	head, err := c.head(ctx)
	if err != nil {
		return chain.Block{}, err
	}
	if height > head.Height {
		return chain.Block{}, fmt.Errorf("%w: no ledger %d", chain.ErrBehind, height)
	}
	l, err := c.at(ctx, height)
	return l.Block, err
}

// rightChain checks the network's passphrase, once per connection that works.
func (c *Client) rightChain(ctx context.Context) error {
	return c.node.Check(func() error {
		var root struct {
			Passphrase string `json:"network_passphrase"`
		}
		err := c.node.ask(ctx, "/", &root)
		switch {
		case err != nil:
			return err
		case root.Passphrase == "":
			return fmt.Errorf("%w: it does not say which network it is of", chain.ErrNode)
		case root.Passphrase != c.o.Passphrase:
			return fmt.Errorf("%w: it is of %q, %s is %q", chain.ErrWrongNet, c.node.Redact(root.Passphrase), c.o.Network, c.o.Passphrase)
		}
		return nil
	})
}

func coins(stroops int64) decimal.Decimal { return decimal.New(stroops, -7) }
