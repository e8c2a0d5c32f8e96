package several

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
)

// node is a node and how it is.
type node struct {
	Node
	failed int       // in a row
	until  time.Time // left alone until then
	behind int64     // blocks, when last asked
	why    string    // of the last failure
}

// Health is how a node is, for operators.
type Health struct {
	Name string
	// Failed counts failures in a row; Error is the last one's text, "" while it
	// answers.
	Failed int
	Error  string
	// Until is when it is asked again; past or zero = it is asked.
	Until time.Time
	// Behind is how many blocks it was behind what Agree nodes have.
	Behind int64
}

// Health tells of each node, in the order of Config.Nodes.
func (c *client) Health() []Health {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]Health, len(c.nodes))
	for i, n := range c.nodes {
		out[i] = Health{Name: n.Name, Failed: n.failed, Error: n.why, Until: n.until, Behind: n.behind}
	}
	return out
}

// Usage implements chain.Metered: what is asked of each node whose client counts it.
func (c *client) Usage() (out []chain.Usage) {
	for _, n := range c.nodes {
		m, able := n.Client.(chain.Metered)
		if !able {
			continue
		}
		for _, u := range m.Usage() {
			if u.Node != "" {
				u.Node = ", " + u.Node
			}
			u.Node = n.Name + u.Node
			out = append(out, u)
		}
	}
	return out
}

// usable lists the nodes to ask, those that lag last.
func (c *client) usable() []*node {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.cfg.Now()
	var fit, lagging []*node
	for _, n := range c.nodes {
		switch {
		case now.Before(n.until):
		case n.behind > c.cfg.MaxLag:
			lagging = append(lagging, n)
		default:
			fit = append(fit, n)
		}
	}
	return append(fit, lagging...)
}

// longest is how many times Backoff a node is left alone at most.
const longest = 64

// note judges an answer of a node by which its health is known. told says that
// the error is the answer: about what was asked and not about the node.
func (c *client) note(ctx context.Context, n *node, err error) (told bool) {
	if err != nil && ctx.Err() != nil {
		return true // the caller's own end says nothing of the node
	}
	if !faulty(err) {
		c.mu.Lock()
		defer c.mu.Unlock()
		n.failed, n.why, n.until = 0, "", time.Time{}
		return true
	}
	c.leave(n, err)
	return false
}

// heed judges an answer that may fail by what was asked as well: a transaction
// that a contract refuses, a state that is not kept. Only a node that is limited,
// or on another chain, is left alone for it.
func (c *client) heed(ctx context.Context, n *node, err error) (told bool) {
	var limited *chain.LimitedError
	if ctx.Err() == nil && (errors.As(err, &limited) || errors.Is(err, chain.ErrWrongNet)) {
		c.leave(n, err)
		return false
	}
	return ctx.Err() != nil || !faulty(err)
}

// leave a node alone for a while.
func (c *client) leave(n *node, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	pause := c.cfg.Backoff * time.Duration(min(1<<min(n.failed, 6), longest))
	n.failed++
	var limited *chain.LimitedError
	if errors.As(err, &limited) {
		pause = max(pause, limited.After)
	}
	if errors.Is(err, chain.ErrWrongNet) {
		pause = longest * c.cfg.Backoff
	}
	n.until, n.why = c.cfg.Now().Add(pause), err.Error()
	c.cfg.Log.Warn("node_left_alone", slog.String("node", n.Name), slog.Duration("pause", pause), slog.Any("error", err))
}

// faulty: the error is the node's, and another one may know better.
func faulty(err error) bool {
	if err == nil || errors.Is(err, errors.ErrUnsupported) {
		return false
	}
	for _, e := range []error{chain.ErrShort, chain.ErrRejected, chain.ErrTooDear, chain.ErrDeepFork, chain.ErrCurrency, chain.ErrNoState} {
		if errors.Is(err, e) {
			return false
		}
	}
	var address *chain.AddressError
	return !errors.As(err, &address)
}

func named(n *node, err error) error { return fmt.Errorf("node %s: %w", n.Name, err) }

// tooFew says that not enough answered, and why the last one did not.
func (c *client) tooFew(got int, last error) error {
	if last == nil {
		last = errors.New("the others are left alone after failures")
	}
	var limited *chain.LimitedError
	if errors.As(last, &limited) {
		// That node is left alone, and another may answer sooner: nobody need wait as long.
		last = errors.New(last.Error())
	}
	if errors.Is(last, chain.ErrBehind) {
		return fmt.Errorf("%w: %d of %d: %w", ErrTooFew, got, c.cfg.Agree, last)
	}
	return fmt.Errorf("%w: %w: %d of %d: %w", chain.ErrNode, ErrTooFew, got, c.cfg.Agree, last)
}

// unanswered is the error of a question about an ability that some nodes lack:
// errors.ErrUnsupported where all do. Otherwise a node that was not asked may have it.
func (c *client) unanswered(got int, lacking []error, last error) error {
	switch n := len(lacking); {
	case n == len(c.nodes):
		return lacking[n-1]
	case n > 0 && last == nil:
		last = fmt.Errorf("%d of %d nodes cannot do this", n, len(c.nodes))
	}
	return c.tooFew(got, last)
}

// either reads from one node whose client has ability A, and from the next where that fails.
func either[A, T any](ctx context.Context, c *client, ask func(A) (T, error)) (T, error) {
	var last error
	var lacking []error
	for _, n := range c.usable() {
		v, err := askAble(n, ask)
		if errors.Is(err, errors.ErrUnsupported) {
			lacking = append(lacking, named(n, err))
			continue
		}
		if c.heed(ctx, n, err) {
			return v, err
		}
		last = named(n, err)
	}
	var none T
	return none, c.unanswered(0, lacking, last)
}

// askAble asks a node for an optional ability of its client. The error is
// errors.ErrUnsupported where the client does not have it.
func askAble[A, T any](n *node, ask func(A) (T, error)) (T, error) {
	able, ok := n.Client.(A)
	if !ok {
		var none T
		return none, fmt.Errorf("several: the client of %s cannot do this: %w", n.Client.Network(), errors.ErrUnsupported)
	}
	return ask(able)
}

// firstAble is the first client that has an ability which needs no node.
func firstAble[A any](c *client) (able A, ok bool) {
	for _, n := range c.nodes {
		if able, ok = n.Client.(A); ok {
			break
		}
	}
	return able, ok
}
