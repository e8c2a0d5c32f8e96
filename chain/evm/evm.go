// Package evm is the chain client of every network that speaks the Ethereum
// JSON-RPC: Ethereum, Polygon, BSC, Arbitrum, Base, Optimism, Avalanche and
// whatever else is configured like them.
//
// What it promises:
//   - A transfer is reported only where the chain executed it: native coin by a
//     receipt with status 1, tokens by Transfer logs of that very contract, ether
//     by an internal call through balances at two block hashes and, where the node
//     can trace, the call itself.
//   - Everything is read by block hash. A node that does not know the hash, is
//     behind, is on another chain, answers in parts, or contradicts itself is an
//     error and never an empty result.
//   - A transfer's identity is (tx, ordinal): −1 the tx's own value, n ≥ 0 the
//     n-th log of that tx, −2−n the n-th value-bearing inner call. None of them
//     moves when the tx is mined again elsewhere.
//   - What the node says of a sent transaction is proof of death only where the
//     transaction that took the nonce was found on the chain itself.
//   - Amounts are exact integers of the chain turned into decimals; no float.
//   - The URL of the node, which often holds a key, is in no error.
package evm

import (
	"context"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/transport"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
)

// Options configure one Client. Networks and Preset give sensible ones, to which
// a URL must be added.
type Options struct {
	Network  chain.Network
	ChainID  int64
	Registry *chain.Registry // Defaults to chain.MainnetRegistry.

	// URL of the node's HTTP endpoint. It may hold a key and is kept out of errors.
	URL string
	// Header is added to each request, for nodes that want a token there.
	Header http.Header
	// HTTP sends the requests. Defaults to a client with a Transport of its own,
	// no proxy from the environment, no redirects and a 30 s limit per request.
	HTTP *http.Client
	// MaxBody is the size in bytes above which an answer is refused. Defaults to 64 MiB.
	MaxBody int64
	// Batch is how many calls go into one request; 1 sends no arrays. Defaults to 40.
	Batch int
	// Group is how many blocks are read at once while catching up. Defaults to 8.
	Group int
	// CallsPerMinute bounds the calls to a node in any minute, and a sixth of it those in any ten
	// seconds. Each call of a batch counts.
	// Calls beyond it wait: see Usage. At least 60; defaults to 0, no bound.
	CallsPerMinute int
	// LogSpan is how many blocks one eth_getLogs of History covers. Defaults to 2000.
	LogSpan int64

	// FinalityTags says that the node's tags for safe and final blocks mean something.
	FinalityTags bool
	// FinalDepth makes a transaction of ours final that many blocks deep, where
	// there are no FinalityTags. Defaults to 0: never final.
	FinalDepth int64

	// Legacy sends transactions with one gas price instead of EIP-1559 fees.
	Legacy bool
	// MaxFeePerGas in wei is the price above which nothing is built. Defaults to 500 gwei.
	MaxFeePerGas int64
	// MinTip and MaxTip bound the priority fee in wei, whatever the node suggests.
	// MaxTip defaults to 50 gwei.
	MinTip, MaxTip int64
	// GasMargin is added to eth_estimateGas, in percent. Defaults to 20, and for sweeps to 5:
	// what a sweep does not use stays at its address.
	GasMargin int64
	// FeeMargin is added to the node's gas price on Legacy networks, in percent,
	// and to an L1 data fee. Defaults to 25.
	FeeMargin int64
	// QuoteGas is the gas assumed by EstimateFee, and only there, for a token
	// transfer that cannot be tried because the sender is unknown or has not
	// enough yet. Defaults to 150000.
	QuoteGas uint64
	// L1Fee says that the network takes a data fee beyond gas, as OP-stack rollups
	// do: getL1Fee of the contract at Oracle is asked for it.
	L1Fee bool
	// DataFeeMethod is a method of the node that estimates the data fee in the place of a
	// contract, such as scroll_estimateL1DataFee. It is given the transaction; "" is none.
	DataFeeMethod string
	// OperatorFee says that the network may take an operator's fee beyond gas and data, as
	// OP-stack rollups may since Isthmus: getOperatorFee of the contract at Oracle is asked
	// for it. What was paid is in the receipts.
	OperatorFee bool
	// Oracle is the contract that L1Fee and OperatorFee ask. Defaults to 0x4200…000F, the
	// GasPriceOracle of OP-stack rollups.
	Oracle string
	// Linea says that the sequencer takes a transaction only at a price by its size and gas:
	// linea_estimateGas is asked for it, in the place of eth_maxPriorityFeePerGas.
	Linea bool
	// CoinToken is a contract through which the network's own coin moves as an ERC-20 token
	// too, as on Celo: its Transfer logs are transfers of the coin. "" is none. It is no
	// currency of its own: that would be the same money twice.
	CoinToken string

	// NoInternal switches off the search for ether that comes by internal calls.
	NoInternal bool
	// NoTrace says not to ask the node for traces: such ether is then Unproven.
	NoTrace bool
	// Source says where a preset was taken from; nothing reads it.
	Source string

	// NoTokenAudit switches the audit of token deposits off: a deposit's logs are then
	// believed as they are. The audit compares them with the change of balanceOf between
	// the two blocks, and costs two calls per address and token of a block. What differs
	// is reported as Unproven and Contradicted. Where the node has thrown the state of
	// these blocks away, the address must hold at least what the logs say by now, else
	// the deposit is Unproven.
	NoTokenAudit bool
}

// Client is a chain.Client for one EVM network. It is safe for concurrent use.
type Client struct {
	o Options
	// sweepMargin is Options.GasMargin for sweeps.
	sweepMargin int64
	node        *transport.RPC
	native      *chain.Currency
	tokens      map[common.Address]*chain.Currency
	oracle      common.Address
	coin        common.Address           // Options.CoinToken; zero = none
	units       atomic.Bool              // the tokens' decimals are as the Registry says
	head        atomic.Pointer[block]    // the header that Tip read last
	known       atomic.Pointer[standing] // balances after the block that was matched last
	apart       atomic.Bool              // the node does not know eth_getBlockReceipts
	single      atomic.Int64             // reads of balances to come that ask for each, as a bulk read failed
	singleToken atomic.Int64             // the same of balances of tokens
}

var (
	_ chain.Client    = (*Client)(nil)
	_ chain.Balancer  = (*Client)(nil)
	_ chain.Noncer    = (*Client)(nil)
	_ chain.Historian = (*Client)(nil)
	_ chain.Locator   = (*Client)(nil)
	_ chain.Metered   = (*Client)(nil)

	_ chain.Reconciler   = (*Client)(nil)
	_ chain.ManyBalancer = (*Client)(nil)
)

// New checks the options and makes a Client. It does no I/O: the first call
// that does checks that the node is on the right chain, as every later one does.
func New(o Options) (*Client, error) {
	if o.Registry == nil {
		o.Registry = chain.MainnetRegistry()
	}
	switch {
	case o.Network == "":
		return nil, errors.New("evm: Options.Network is required")
	case o.ChainID <= 0:
		return nil, fmt.Errorf("evm: %s: Options.ChainID must be the network's id, such as 1", o.Network)
	case o.URL == "":
		return nil, fmt.Errorf("evm: %s: Options.URL of a node is required", o.Network)
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, fmt.Errorf("evm: %s: Options.URL must be an http or https URL", o.Network)
	}
	sweepMargin := o.GasMargin
	if sweepMargin <= 0 {
		sweepMargin = 5
	}
	c := &Client{o: withDefaults(o), sweepMargin: sweepMargin, tokens: map[common.Address]*chain.Currency{}, oracle: opOracle}
	for field, at := range map[*common.Address]struct{ name, address string }{&c.oracle: {"Oracle", o.Oracle}, &c.coin: {"CoinToken", o.CoinToken}} {
		if at.address == "" {
			continue
		}
		if *field, err = parseAddress(o.Network, at.address); err != nil {
			return nil, fmt.Errorf("evm: Options.%s: %w", at.name, err)
		}
	}
	for _, cur := range o.Registry.On(o.Network) {
		if cur.Native() {
			c.native = cur
			continue
		}
		a, err := parseAddress(o.Network, cur.Contract)
		if err != nil {
			return nil, fmt.Errorf("evm: currency %s: contract: %w", cur.Code, err)
		}
		if a == c.coin {
			return nil, fmt.Errorf("evm: currency %s: its contract is Options.CoinToken: what it moves is the coin itself", cur.Code)
		}
		c.tokens[a] = cur
	}
	if c.native == nil {
		return nil, fmt.Errorf("evm: %s: its native coin must be in the Registry: it pays the gas", o.Network)
	}
	if c.native.Decimals != 18 {
		return nil, fmt.Errorf("evm: %s: the native coin has 18 decimals on chain, not %d", o.Network, c.native.Decimals)
	}
	c.node = newNode(c.o)
	if c.node.Budget, err = transport.NewBudget("evm", o.CallsPerMinute); err != nil {
		return nil, err
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
	def(&o.LogSpan, 2000)
	def(&o.MaxFeePerGas, 500*gwei)
	def(&o.MaxTip, 50*gwei)
	def(&o.GasMargin, 20)
	def(&o.FeeMargin, 25)
	if o.Batch <= 0 {
		o.Batch = 40
	}
	if o.Group <= 0 {
		o.Group = 8
	}
	if o.QuoteGas == 0 {
		o.QuoteGas = 150_000
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

// Tip reads the head and, with FinalityTags, the safe and final heights; 0 while
// the node has none yet. Every call checks the chain id, and the first that works
// the tokens' decimals: chain.ErrUnits where a contract says other ones than the
// Registry. A contract that is not there, or does not say, is let pass: no money
// comes from the one, and decimals() is no duty of ERC-20.
func (c *Client) Tip(ctx context.Context) (chain.Tip, error) {
	id, head := transport.NewCall("eth_chainId"), transport.NewCall("eth_getBlockByNumber", "latest", false)
	safe, final := transport.NewCall("eth_getBlockByNumber", "safe", false), transport.NewCall("eth_getBlockByNumber", tagFinal, false)
	calls := []*transport.Call{id, head}
	if c.o.FinalityTags {
		calls = append(calls, safe, final)
	}
	units := c.decimals()
	for _, u := range units {
		calls = append(calls, u.call)
	}
	if err := c.node.Do(ctx, calls...); err != nil {
		return chain.Tip{}, err
	}
	if err := c.rightChain(id); err != nil {
		return chain.Tip{}, err
	}
	if err := c.rightUnits(units); err != nil {
		return chain.Tip{}, err
	}
	h, err := blockOf(head)
	if err != nil {
		return chain.Tip{}, err
	}
	c.head.Store(&h)
	t := chain.Tip{Head: h.Block, Safe: -1, Final: -1}
	if !c.o.FinalityTags {
		return t, nil
	}
	if t.Safe, err = tagged(safe); err != nil {
		return chain.Tip{}, err
	}
	if t.Final, err = tagged(final); err != nil {
		return chain.Tip{}, err
	}
	// The tags may come from a newer state of the node than the head: a block between
	// the two calls, or two nodes behind one address.
	t.Safe, t.Final = min(t.Safe, t.Head.Height), min(t.Final, t.Head.Height)
	return t, nil
}

// tagged is the height of a tagged block; 0 where the node has none so far.
func tagged(k *transport.Call) (int64, error) {
	if k.Err != nil {
		if unknownBlock(k.Err) {
			return 0, nil
		}
		return 0, k.Err
	}
	if transport.Null(k.Out) {
		return 0, nil
	}
	b, err := blockOf(k)
	return b.Height, err
}

func (c *Client) rightChain(k *transport.Call) error {
	if k.Err != nil {
		return k.Err
	}
	id, err := quantityOf(k)
	if err != nil {
		return err
	}
	if !id.IsInt64() || id.Int64() != c.o.ChainID {
		return fmt.Errorf("%w: node has chain id %s, %s is %d", chain.ErrWrongNet, id, c.o.Network, c.o.ChainID)
	}
	return nil
}

// unit is the question for one token's decimals.
type unit struct {
	token *chain.Currency
	call  *transport.Call
}

// decimals asks every token for its decimals, until all were heard once.
func (c *Client) decimals() (all []unit) {
	if c.units.Load() {
		return nil
	}
	for contract, cur := range c.tokens {
		all = append(all, unit{cur, transport.NewCall("eth_call", map[string]any{"to": contract, "data": hexutil.Bytes(selDecimals[:])}, "latest")})
	}
	return all
}

func (c *Client) rightUnits(all []unit) error {
	heard := true
	for _, u := range all {
		said, err := wordOf(u.call)
		heard = heard && (u.call.Err == nil || transport.Replied(u.call.Err, "revert"))
		if err == nil && said.Cmp(big.NewInt(int64(u.token.Decimals))) != 0 {
			return fmt.Errorf("%w: %s at %s has %s, the Registry says %d: correct or remove it",
				chain.ErrUnits, u.token.Code, u.token.Contract, said, u.token.Decimals)
		}
	}
	if heard {
		c.units.Store(true)
	}
	return nil
}

// BlockAt tells which block is at a height now. An error wrapping ErrBehind: the
// node has none yet.
func (c *Client) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	id, k := transport.NewCall("eth_chainId"), transport.NewCall("eth_getBlockByNumber", quantity(height), false)
	if err := c.node.Do(ctx, id, k); err != nil {
		return chain.Block{}, err
	}
	if err := c.rightChain(id); err != nil {
		return chain.Block{}, err
	}
	if k.Err == nil && transport.Null(k.Out) {
		return chain.Block{}, fmt.Errorf("%w: no block at height %d", chain.ErrBehind, height)
	}
	b, err := blockOf(k)
	if err == nil && b.Height != height {
		err = fmt.Errorf("%w: asked for block %d, got %d", chain.ErrNode, height, b.Height)
	}
	return b.Block, err
}

const gwei = 1_000_000_000

const tagFinal = "finalized" //nolint:misspell // the protocol's spelling

func quantity(n int64) string { return "0x" + big.NewInt(n).Text(16) }
