package cardano

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/btcsuite/btcd/address/v2/bech32"
	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/address"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// The main network: its magic, and a slot of which the time is known. A slot has lasted a
// second since.
const (
	mainMagic = 764_824_073
	zeroSlot  = 4_492_800
	zeroTime  = 1_596_059_091
)

func slotOf(t time.Time) int64    { return t.Unix() - zeroTime + zeroSlot }
func timeOf(slot int64) time.Time { return time.Unix(slot-zeroSlot+zeroTime, 0).UTC() }

// Options configure one Client. Either Ogmios and Kupo are required, or Blockfrost.
type Options struct {
	// Network defaults to "ADA".
	Network  chain.Network
	Registry *chain.Registry // Defaults to chain.MainnetRegistry.

	// Ogmios and Kupo are the HTTP endpoints of an own node's: Ogmios gives blocks, over a
	// WebSocket at the same endpoint, and takes transactions; it is started with
	// --include-transaction-cbor. Kupo tells what spent an output of ours. Start it before the
	// first address is given out: it must match all of our addresses, and must not prune
	// outputs that are spent. Both endpoints may hold a key, and stand in no error.
	Ogmios, Kupo string
	// Blockfrost is the endpoint of a provider that speaks Blockfrost's API in their place,
	// such as https://cardano-mainnet.blockfrost.io/api/v0; Project is its project id.
	Blockfrost, Project string
	// Header is added to each request.
	Header http.Header
	// HTTP sends the requests. Defaults to a client with a Transport of its own,
	// no proxy from the environment, no redirects and a 30 s limit per request.
	HTTP *http.Client
	// MaxBody is the size in bytes above which an answer is refused. Defaults to 64 MiB.
	MaxBody int64
	// CallsPerMinute bounds the calls to a node in any minute, and a sixth of it those in any ten
	// seconds. Each request counts.
	// Calls beyond it wait: see Usage. At least 60; defaults to 0, no bound. It is for Blockfrost alone.
	CallsPerMinute int
	// Group is how many blocks are read at once while catching up. Defaults to 8.
	Group int

	// PublicKey gives the key of an address of ours: a transaction holds it, and an address
	// is only its hash. Required to send. keys.Source.PublicKey is one.
	PublicKey func(a chain.Address, k chain.KeyRef) (chain.PublicKey, error)
	// Stake is the stake address (stake1…) of our own addresses, which then are base
	// addresses. Left out they are enterprise addresses. It must never change: a signer
	// knows no address of ours with another stake.
	Stake string

	// Expiry is how long after the newest block's time a transaction can still land, in
	// whole seconds. Defaults to 10 minutes: less than it takes until a stuck one is
	// replaced, so that nodes no longer have the first.
	Expiry time.Duration
	// MaxFee in lovelace is what a payment from one output may cost at most, with change that
	// is too small to be an output, whatever parameters the node says. Defaults to 5000000, 5 ada.
	MaxFee int64
}

// Client is a chain.Client for Cardano. It is safe for concurrent use.
type Client struct {
	o      Options
	node   node
	budget *transport.Budget
	native *chain.Currency
	format address.Format
	stake  []byte // the hash of the stake key, and its header's bit; nil = enterprise
}

var (
	_ chain.Client    = (*Client)(nil)
	_ chain.Balancer  = (*Client)(nil)
	_ chain.Historian = (*Client)(nil)
	_ chain.Locator   = (*Client)(nil)
	_ chain.Metered   = (*Client)(nil)
	_ chain.Deliverer = (*Client)(nil)
)

// New checks the options and makes a Client. It does no I/O: the first call that
// does checks that the node is on the right chain, as does the next one after
// each failure to reach it.
func New(o Options) (*Client, error) {
	o = withDefaults(o)
	if o.Expiry < 2*time.Minute || o.Expiry > time.Hour {
		return nil, errors.New("cardano: Options.Expiry must be between 2 minutes and an hour")
	}
	c := &Client{o: o}
	var err error
	if c.native, err = o.Registry.Gas(o.Network); err != nil {
		return nil, fmt.Errorf("cardano: %s: its coin must be in the Registry: %w", o.Network, err)
	}
	if c.native.Decimals != 6 || c.native.Scale != 6 {
		return nil, fmt.Errorf("cardano: %s: the coin has 6 decimals and is counted in 6 places", o.Network)
	}
	for _, cur := range o.Registry.On(o.Network) {
		if !cur.Native() {
			return nil, fmt.Errorf("cardano: currency %s: native tokens are not supported", cur.Code)
		}
	}
	if c.format, err = formatOf(o.Network); err != nil {
		return nil, err
	}
	if o.Stake != "" {
		if c.stake, err = parseStake(o.Stake); err != nil {
			return nil, err
		}
	}
	own, provider := o.Ogmios != "" || o.Kupo != "", o.Blockfrost != ""
	if own == provider {
		return nil, errors.New("cardano: Options must name either Ogmios and Kupo, or Blockfrost")
	}
	for name, at := range map[string]string{"Ogmios": o.Ogmios, "Kupo": o.Kupo, "Blockfrost": o.Blockfrost} {
		if u, err := url.Parse(at); own == (name != "Blockfrost") && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "") {
			return nil, fmt.Errorf("cardano: Options.%s must be an http or https URL without a query", name)
		}
	}
	if own && o.CallsPerMinute != 0 {
		return nil, errors.New("cardano: Options.CallsPerMinute is for Blockfrost: an own node has no such limit")
	}
	if c.budget, err = transport.NewBudget("cardano", o.CallsPerMinute); err != nil {
		return nil, err
	}
	if provider {
		c.node = newBlockfrost(&c.o, c.budget)
	} else {
		c.node = newOgmios(&c.o, c.budget)
	}
	return c, nil
}

func withDefaults(o Options) Options {
	if o.Network == "" {
		o.Network = "ADA"
	}
	if o.Registry == nil {
		o.Registry = chain.MainnetRegistry()
	}
	if o.MaxBody <= 0 {
		o.MaxBody = 64 << 20
	}
	if o.Group <= 0 {
		o.Group = 8
	}
	if o.Expiry == 0 {
		o.Expiry = 10 * time.Minute
	}
	if o.MaxFee <= 0 {
		o.MaxFee = 5_000_000
	}
	if o.HTTP == nil {
		o.HTTP = transport.NewHTTP(8, 30*time.Second)
	}
	o.Ogmios, o.Kupo, o.Blockfrost = strings.TrimRight(o.Ogmios, "/"), strings.TrimRight(o.Kupo, "/"), strings.TrimRight(o.Blockfrost, "/")
	return o
}

func formatOf(n chain.Network) (address.Format, error) {
	f, ok := address.For(n)
	if !ok {
		if f, ok = address.For("ADA"); !ok {
			return f, errors.New("cardano: addresses of the network are not known")
		}
	}
	return f, nil
}

// parseStake reads a stake address of a key on the main network.
func parseStake(s string) ([]byte, error) {
	hrp, data, version, err := bech32.DecodeNoLimitWithVersion(s)
	if err == nil && version == bech32.Version0 && hrp == "stake" {
		if raw, err := bech32.ConvertBits(data, 5, 8, false); err == nil && len(raw) == 29 && raw[0] == headerStake {
			return raw[1:], nil
		}
	}
	return nil, errors.New("cardano: Options.Stake must be the stake address of a key on the main network: stake1u…")
}

// Network is the code that the client was made for.
func (c *Client) Network() chain.Network { return c.o.Network }

// Usage says how much of Options.CallsPerMinute is used.
func (c *Client) Usage() []chain.Usage { return []chain.Usage{c.budget.Usage()} }

// ParseAddress validates an address: Shelley's and Byron's of the main network.
func (c *Client) ParseAddress(s string) (chain.Address, error) {
	info, err := c.format.Parse(s)
	if bad := (*chain.AddressError)(nil); errors.As(err, &bad) {
		return "", &chain.AddressError{Network: c.o.Network, Address: bad.Address, Reason: bad.Reason}
	}
	return info.Canonical, err
}

// AddressOf is the address of an ed25519 key: a base address with Options.Stake, else an
// enterprise address.
func (c *Client) AddressOf(pub chain.PublicKey) (chain.Address, error) {
	if len(pub) != 32 {
		return "", errors.New("cardano: a public key has 32 bytes")
	}
	h := hash([32]byte(pub))
	if c.stake == nil {
		return chain.Address(encode("addr", append([]byte{headerEnterprise}, h[:]...))), nil
	}
	return chain.Address(encode("addr", append(append([]byte{headerBase}, h[:]...), c.stake...))), nil
}

// Tip reads the head. The network has no finality of its own that is reached within a day:
// Safe and Final are −1.
func (c *Client) Tip(ctx context.Context) (chain.Tip, error) {
	b, err := c.node.tip(ctx)
	return chain.Tip{Head: b, Safe: -1, Final: -1}, err
}

// BlockAt tells which block is at a height now. An error wrapping ErrBehind: the
// node has none yet.
func (c *Client) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	head, err := c.node.tip(ctx)
	if err != nil {
		return chain.Block{}, err
	}
	if height < 0 || height > head.Height {
		return chain.Block{}, fmt.Errorf("%w: no block at height %d, its head is %d", chain.ErrBehind, height, head.Height)
	}
	if height == head.Height {
		return head, nil
	}
	return c.node.at(ctx, head, height)
}

// Balance is what an address holds at the head, of ada. Ada that is bound to native tokens
// counts.
func (c *Client) Balance(ctx context.Context, currency string, a chain.Address) (decimal.Decimal, error) {
	if currency != c.native.Code {
		return decimal.Zero, fmt.Errorf("cardano: %w: %q on %s", chain.ErrCurrency, currency, c.o.Network)
	}
	if _, err := c.ParseAddress(string(a)); err != nil {
		return decimal.Zero, err
	}
	coin, err := c.node.balance(ctx, a)
	return coins(coin), err
}

// Deliverable refuses less ada than an output to the address must hold.
func (c *Client) Deliverable(ctx context.Context, currency string, to chain.Address, _ string, a ledger.Amount) error {
	if currency != c.native.Code {
		return fmt.Errorf("cardano: %w: %q on %s", chain.ErrCurrency, currency, c.o.Network)
	}
	raw, err := bytesOf(to)
	if err != nil {
		return err
	}
	params, err := c.node.parameters(ctx)
	if err != nil {
		return err
	}
	least, err := params.least(&pay{address: raw})
	if err != nil {
		return err
	}
	if int64(a) < least {
		return &chain.AddressError{
			Network: c.o.Network, Address: string(to),
			Reason: fmt.Sprintf("an output to it must hold at least %s ada, the network's minimum", coins(least)),
		}
	}
	return nil
}

// coins are lovelace in ada.
func coins(lovelace int64) decimal.Decimal { return decimal.New(lovelace, -6) }

// addressOf writes an address as it is in a transaction. ok is false for one that nobody can
// be given: a pointer, or of another network.
func addressOf(raw []byte) (chain.Address, bool) {
	if len(raw) == 0 {
		return "", false
	}
	switch kind := raw[0] >> 4; {
	case raw[0] == headerByron:
		return "", false // no address of ours is one of Byron's
	case raw[0]&15 != 1, kind > 3 && kind != 6 && kind != 7, kind <= 3 && len(raw) != 57, kind > 3 && len(raw) != 29:
		return "", false
	}
	return chain.Address(encode("addr", raw)), true
}

// ofKey reports whether an address is that of a key.
func ofKey(raw, key []byte) bool {
	if len(key) != 32 || len(raw) < 29 {
		return false
	}
	h := hash([32]byte(key))
	return (raw[0] == headerBase || raw[0] == headerBaseScript || raw[0] == headerEnterprise) && bytes.Equal(raw[1:29], h[:])
}
