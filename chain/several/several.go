package several

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// Node is a client and what it is called in logs and errors.
type Node struct {
	Name   string
	Client chain.Client
}

// Config is what a client of several nodes is made of. Nodes and Now are required.
type Config struct {
	// Nodes, the preferred first.
	Nodes []Node
	Now   func() time.Time
	// Log defaults to discarding.
	Log *slog.Logger

	// Agree is how many nodes must tell the same. 1 is failover alone. Defaults to
	// more than half of them.
	Agree int
	// Above says which transfers must be agreed on. A block without such a one is
	// then told as the first node tells it; that it left out one is not noticed. That
	// blocks are gone is always agreed on. Defaults to all, and to noticing that.
	Above func(chain.Transfer) bool

	// MaxLag is how many blocks behind what Agree nodes have a node may be and
	// still be read from. Defaults to 3.
	MaxLag int64
	// Backoff is how long a node is left alone that failed once; it doubles with
	// every failure, up to 64 times itself. A node that names a longer time gets
	// it. Defaults to 1 s.
	Backoff time.Duration
}

// Errors of several nodes. Both wrap chain.ErrNode where they are returned.
var (
	// ErrDisagree: nodes contradict each other. The text names them. Find out
	// which of them lies, and take it out.
	ErrDisagree = errors.New("several: the nodes disagree")
	// ErrTooFew: not as many nodes answer as must agree.
	ErrTooFew = errors.New("several: too few nodes answer")
)

// client is the Client. Methods that not every network has are added by the types
// around it.
type client struct {
	cfg   Config
	nodes []*node
	first chain.Client // for what needs no node

	mu sync.Mutex // guards the nodes' health
}

// A network without nonces must not look as if it had some, nor one without coins
// as if it could say what they cost.
type (
	noncer struct{ *client }
	coster struct{ *client }
	// payer has transactions that another one can pay for.
	payer struct{ coster }
	// sharer has one account for many payments.
	sharer struct {
		noncer
		many chain.Multiplexer
	}
)

type coinCoster interface {
	CoinCosts(o chain.Order) (base, change, least ledger.Amount, coins []ledger.Amount, err error)
}

// Client is what New returns: a chain.Client with the optional abilities that its
// nodes have, and a look at how they are. An ability that some nodes have is asked of
// those alone; where Config.Agree must tell the same and fewer have it, the error is
// ErrTooFew. An ability that no node has is an error that wraps errors.ErrUnsupported.
type Client interface {
	chain.Client
	chain.Mempool
	chain.Balancer
	chain.ManyBalancer
	chain.Historian
	chain.Locator
	chain.Reconciler
	chain.Tagger
	chain.VaultParser
	chain.Sponsored
	chain.Deliverer
	chain.Metered
	Health() []Health
}

// OnDemand implements chain.OnDemand: true where each node's client says so.
func (c *client) OnDemand() bool {
	for _, n := range c.cfg.Nodes {
		if d, ok := n.Client.(chain.OnDemand); !ok || !d.OnDemand() {
			return false
		}
	}
	return true
}

// New checks the Config. It does no I/O. The Client is a chain.Noncer where its
// nodes are: they must all have nonces, or none.
func New(cfg Config) (Client, error) {
	if len(cfg.Nodes) == 0 || cfg.Now == nil {
		return nil, errors.New("several: Config.Nodes and Config.Now are required")
	}
	if cfg.Agree == 0 {
		cfg.Agree = len(cfg.Nodes)/2 + 1
	}
	if cfg.Agree < 1 || cfg.Agree > len(cfg.Nodes) {
		return nil, fmt.Errorf("several: %d of %d nodes cannot agree", cfg.Agree, len(cfg.Nodes))
	}
	if cfg.MaxLag <= 0 {
		cfg.MaxLag = 3
	}
	if cfg.Backoff <= 0 {
		cfg.Backoff = time.Second
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	c := &client{cfg: cfg, first: cfg.Nodes[0].Client}
	nonces, costs := 0, 0
	names := map[string]bool{}
	for _, n := range cfg.Nodes {
		switch {
		case n.Client == nil || n.Name == "" || names[n.Name]:
			return nil, fmt.Errorf("several: node %q needs a client and a name of its own", n.Name)
		case n.Client.Network() != c.first.Network():
			return nil, fmt.Errorf("several: node %q is of %s, the first of %s", n.Name, n.Client.Network(), c.first.Network())
		}
		names[n.Name] = true
		c.nodes = append(c.nodes, &node{Node: n})
		if _, ok := n.Client.(chain.Noncer); ok {
			nonces++
		}
		if _, ok := n.Client.(coinCoster); ok {
			costs++
		}
	}
	c.cfg.Log = cfg.Log.With(slog.String("network", string(c.first.Network())))
	switch len(cfg.Nodes) {
	case nonces:
		if many, ok := firstAble[chain.Multiplexer](c); ok {
			return sharer{noncer{c}, many}, nil
		}
		return noncer{c}, nil
	case costs:
		if _, ok := firstAble[chain.ParentPayer](c); ok {
			return payer{coster{c}}, nil
		}
		return coster{c}, nil
	}
	if nonces+costs > 0 {
		return nil, errors.New("several: the nodes' clients must be of one kind")
	}
	return c, nil
}

// What needs no node is the first client's.

func (c *client) Network() chain.Network { return c.first.Network() }

func (c *client) ParseAddress(s string) (chain.Address, error) { return c.first.ParseAddress(s) }

func (c *client) AddressOf(pub chain.PublicKey) (chain.Address, error) { return c.first.AddressOf(pub) }

func (c *client) Inspect(payload []byte) (chain.Unsigned, error) { return c.first.Inspect(payload) }

func (c *client) Assemble(u chain.Unsigned, sigs []chain.Signature) (chain.Signed, error) {
	return c.first.Assemble(u, sigs)
}

func (c *client) Untag(a chain.Address) (account chain.Address, memo string, ok bool) {
	if t, ok := firstAble[chain.Tagger](c); ok {
		return t.Untag(a)
	}
	return "", "", false
}

// ParseVault is the answer of the first client that is a chain.VaultParser.
func (c *client) ParseVault(s string) (chain.Address, error) {
	if v, ok := firstAble[chain.VaultParser](c); ok {
		return v.ParseVault(s)
	}
	return "", &chain.AddressError{Network: c.Network(), Address: s, Reason: "is of no program: there are none here"}
}

// Sponsored is the answer of the first client that is chain.Sponsored.
func (c *client) Sponsored(in chain.Intent) bool {
	s, ok := firstAble[chain.Sponsored](c)
	return ok && s.Sponsored(in)
}

// Multiplex is the answer of the first client that is a chain.Multiplexer.
func (c sharer) Multiplex(a chain.Address, id uint32) (chain.Address, error) {
	return c.many.Multiplex(a, id)
}

// ChildFee is one node's word, as EstimateFee is.
func (c payer) ChildFee(ctx context.Context, in chain.Intent, parent []byte, paid ledger.Amount) (chain.Fee, error) {
	return either(ctx, c.client, func(p chain.ParentPayer) (chain.Fee, error) {
		return p.ChildFee(ctx, in, parent, paid)
	})
}

// ColdAddress is the first client's that is a chain.ColdSpender.
func (c *client) ColdAddress(descriptor string) (chain.Address, error) {
	if s, ok := firstAble[chain.ColdSpender](c); ok {
		return s.ColdAddress(descriptor)
	}
	return "", unskilled(c)
}

// ProposeCold is one node's word: what a coin is worth is proven by the transaction that made it,
// and a nonce that is not the next one never lands.
func (c *client) ProposeCold(ctx context.Context, descriptor string, o chain.Order) (chain.Unsigned, string, error) {
	type made struct {
		u  chain.Unsigned
		tx string
	}
	m, err := either(ctx, c, func(s chain.ColdSpender) (made, error) {
		u, tx, err := s.ProposeCold(ctx, descriptor, o)
		return made{u, tx}, err
	})
	return m.u, m.tx, err
}

// AcceptCold is the first client's that is a chain.ColdSpender.
func (c *client) AcceptCold(from chain.Address, payload, signed []byte) (chain.Signed, error) {
	if s, ok := firstAble[chain.ColdSpender](c); ok {
		return s.AcceptCold(from, payload, signed)
	}
	return chain.Signed{}, unskilled(c)
}

// FindCold is told where Agree nodes tell the same.
func (c *client) FindCold(ctx context.Context, from chain.Address, payload []byte, hint string) (string, chain.Status, error) {
	type found struct {
		tx string
		st chain.Status
	}
	f, err := agree(ctx, c, "what became of a transaction of "+string(from), func(s chain.ColdFinder) (found, error) {
		tx, st, err := s.FindCold(ctx, from, payload, hint)
		return found{tx, st}, err
	}, func(x, y found) bool {
		return x.tx == y.tx && x.st.Block.Hash == y.st.Block.Hash && sameFate(x.st, y.st) && x.st.Cost == y.st.Cost
	})
	return f.tx, f.st, err
}

// ShowCold is the first client's that is a chain.ColdFinder.
func (c *client) ShowCold(from chain.Address, payload []byte) ([]byte, error) {
	if s, ok := firstAble[chain.ColdFinder](c); ok {
		return s.ShowCold(from, payload)
	}
	return nil, unskilled(c)
}

func unskilled(c *client) error {
	return fmt.Errorf("several: no client of %s can do this: %w", c.Network(), errors.ErrUnsupported)
}

// CoinCosts is the first client's.
func (c coster) CoinCosts(o chain.Order) (base, change, least ledger.Amount, coins []ledger.Amount, err error) {
	return c.first.(coinCoster).CoinCosts(o)
}

// Unindexed reports whether one of the nodes keeps no index of transactions: its word may be the
// one that counts.
func (c *client) Unindexed() bool {
	return slices.ContainsFunc(c.nodes, func(n *node) bool {
		u, ok := n.Client.(interface{ Unindexed() bool })
		return ok && u.Unindexed()
	})
}

// Until is the first client's: when a signed transaction can land no more; ok is false where
// none is so soon over.
func (c *client) Until(raw []byte) (at time.Time, ok bool) {
	t, able := c.first.(interface {
		Until(raw []byte) (time.Time, bool)
	})
	if !able {
		return time.Time{}, false
	}
	return t.Until(raw)
}

// Nonce is told where Agree nodes tell the same.
func (c noncer) Nonce(ctx context.Context, a chain.Address) (uint64, error) {
	return agree(ctx, c.client, "the nonce of "+string(a), func(n chain.Noncer) (uint64, error) {
		return n.Nonce(ctx, a)
	}, func(x, y uint64) bool { return x == y })
}
