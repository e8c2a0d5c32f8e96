// Package remote shares one simulated chain between processes: one has the
// sim.Chain and serves it, the others dial it. The chain then outlives the
// processes that use it, as a real one does: for programs that are to be killed,
// and for several that are to work side by side.
//
// It promises what the client that is served promises: the conformance suite
// runs over it. What needs no node (addresses, inspecting and assembling
// payloads) is answered in the caller's process.
//
// It is for tests and development: the wire knows no secrets and asks for none.
// Serve it on loopback only.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/safehttp"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// question is any call of a chain.Client that needs the node.
type question struct {
	Ask      string
	Trail    []chain.Block   `json:",omitzero"`
	Max      int             `json:",omitzero"`
	Intent   chain.Intent    `json:",omitzero"`
	Order    chain.Order     `json:",omitzero"`
	Network  string          `json:",omitzero"`
	Tx       string          `json:",omitzero"`
	Raw      []byte          `json:",omitzero"`
	Attempts []chain.Attempt `json:",omitzero"`
	Currency string          `json:",omitzero"`
	Address  chain.Address   `json:",omitzero"`
	From, To int64           `json:",omitzero"`
	Paid     ledger.Amount   `json:",omitzero"`
}

// answer is what came of it.
type answer struct {
	Tip       chain.Tip        `json:",omitzero"`
	Scan      chain.Scan       `json:",omitzero"`
	Transfers []chain.Transfer `json:",omitzero"`
	Fee       chain.Fee        `json:",omitzero"`
	Unsigned  chain.Unsigned   `json:",omitzero"`
	Statuses  []chain.Status   `json:",omitzero"`
	Balance   decimal.Decimal  `json:",omitzero"`
	Nonce     uint64           `json:",omitzero"`
	Block     chain.Block      `json:",omitzero"`
	Error     string           `json:",omitzero"`
	Is        []string         `json:",omitzero"` // which of sentinels Error is
	Dear      *chain.DearError `json:",omitzero"` // Error, where it is one
}

// sentinels are the errors that callers tell apart.
var sentinels = []error{
	chain.ErrNode, chain.ErrBehind, chain.ErrDeepFork, chain.ErrWrongNet, chain.ErrShort, chain.ErrRejected, chain.ErrTooDear, chain.ErrCurrency,
}

// able is a client with every optional ability, as sim's are.
type able interface {
	chain.Client
	chain.Mempool
	chain.Balancer
	chain.Noncer
	chain.Historian
	chain.Locator
	chain.ParentPayer
	chain.Tagger
}

var _ able = (*client)(nil)

// biggest is the most that is read of a question or an answer, in bytes.
const biggest = 64 << 20

// Handler serves a client of a simulated chain to those who Dial it.
func Handler(c chain.Client) (http.Handler, error) {
	all, ok := c.(able)
	if !ok {
		return nil, fmt.Errorf("remote: a client of type %T lacks abilities that a simulated chain's has", c)
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var q question
		if err := json.NewDecoder(io.LimitReader(r.Body, biggest)).Decode(&q); err != nil {
			http.Error(w, "remote: not a question: "+err.Error(), http.StatusBadRequest)
			return
		}
		a, err := put(r.Context(), all, q)
		if err != nil {
			a = answer{Error: err.Error()}
			_ = errors.As(err, &a.Dear)
			for _, s := range sentinels {
				if errors.Is(err, s) {
					a.Is = append(a.Is, s.Error())
				}
			}
		}
		_ = json.NewEncoder(w).Encode(a) // the caller sees a broken answer
	}), nil
}

// put asks the client. It is shown everything that moved: the caller's own
// watch chooses.
func put(ctx context.Context, c able, q question) (a answer, err error) {
	switch q.Ask {
	case "tip":
		a.Tip, err = c.Tip(ctx)
	case "scan":
		a.Scan, err = c.Scan(ctx, q.Trail, everything{c}, q.Max)
	case "pending":
		a.Transfers, err = c.Pending(ctx, everything{c})
	case "history":
		a.Transfers, err = c.History(ctx, q.Address, q.From, q.To)
	case "fee":
		a.Fee, err = c.EstimateFee(ctx, q.Intent)
	case "child fee":
		a.Fee, err = c.ChildFee(ctx, q.Intent, q.Raw, q.Paid)
	case "build":
		a.Unsigned, err = c.Build(ctx, q.Order)
	case "broadcast":
		err = c.Broadcast(ctx, proof.NewStored(q.Network, q.Tx, q.Raw))
	case "status":
		a.Statuses, err = c.Status(ctx, q.Attempts...)
	case "balance":
		a.Balance, err = c.Balance(ctx, q.Currency, q.Address)
	case "nonce":
		a.Nonce, err = c.Nonce(ctx, q.Address)
	case "block":
		a.Block, err = c.BlockAt(ctx, q.From)
	default:
		err = fmt.Errorf("remote: unknown question %q", q.Ask)
	}
	return a, err
}

// everything is the watch of a caller who chooses later, also which address of an account.
type everything struct{ chain.Tagger }

func (everything) Sync(context.Context) error { return nil }
func (everything) Open() []chain.Address      { return nil }
func (e everything) Contains(a chain.Address) bool {
	_, _, tagged := e.Untag(a)
	return !tagged
}

// client asks a chain in another process.
type client struct {
	chain.Client // of a chain of the same Options: for what needs no node
	local        chain.Tagger
	many         chain.Multiplexer // nil where each address has an account of its own
	url          string
	http         *http.Client
}

// Dial is a client of the chain that Handler serves at a URL. local is a chain
// made of the same Options, with the same Seed: it is asked only for what needs
// no node. The served node must have traces, as nodes begin with.
func Dial(url string, local *sim.Chain) chain.Client {
	c := local.Client()
	far := &client{Client: c, local: c.(chain.Tagger), url: url, http: safehttp.NewClient(32, 30*time.Second)}
	if m, shares := c.(chain.Multiplexer); shares {
		far.many = m
		return sharing{far}
	}
	return far
}

// sharing is a client of a network on which many addresses share an account.
type sharing struct{ *client }

// Multiplex implements chain.Multiplexer: it needs no node.
func (s sharing) Multiplex(account chain.Address, id uint32) (chain.Address, error) {
	return s.many.Multiplex(account, id)
}

// failure is an error of the other process.
type failure struct {
	text string
	is   []error
}

func (e *failure) Error() string   { return e.text }
func (e *failure) Unwrap() []error { return e.is }

// ask sends one question. What fails on the way is ErrNode: an unknown outcome.
func (c *client) ask(ctx context.Context, q question) (a answer, err error) {
	body, err := json.Marshal(q)
	if err != nil {
		return a, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, bytes.NewReader(body))
	if err != nil {
		return a, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		if ctx.Err() != nil {
			return a, ctx.Err()
		}
		return a, fmt.Errorf("%w: %w", chain.ErrNode, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was read to its end
	if err := json.NewDecoder(io.LimitReader(res.Body, biggest)).Decode(&a); err != nil {
		return a, fmt.Errorf("%w: remote: not an answer (status %d): %w", chain.ErrNode, res.StatusCode, err)
	}
	if a.Error == "" {
		return a, nil
	}
	f := &failure{text: a.Error}
	for _, s := range sentinels {
		for _, is := range a.Is {
			if s.Error() == is {
				f.is = append(f.is, s)
			}
		}
	}
	if a.Dear != nil {
		f.is = append(f.is, a.Dear)
	}
	return answer{}, f
}

// Tip implements chain.Client.
func (c *client) Tip(ctx context.Context) (chain.Tip, error) {
	a, err := c.ask(ctx, question{Ask: "tip"})
	return a.Tip, err
}

// Scan implements chain.Client.
func (c *client) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if limit < 1 {
		return chain.Scan{}, errors.New("remote: Scan of less than one block")
	}
	a, err := c.ask(ctx, question{Ask: "scan", Trail: trail, Max: limit})
	if err != nil || len(trail) == 0 {
		return a.Scan, err
	}
	// Only now: an address handed out before any of these blocks was fetched is
	// known after it.
	if err := w.Sync(ctx); err != nil {
		return chain.Scan{}, err
	}
	for i := range a.Scan.Blocks {
		a.Scan.Blocks[i].Transfers = c.watched(a.Scan.Blocks[i].Transfers, w)
	}
	return a.Scan, nil
}

func (c *client) watched(all []chain.Transfer, w chain.Watch) []chain.Transfer {
	var out []chain.Transfer
	for _, x := range all {
		if t, watched := sim.Arrived(c.many, w, x); watched {
			out = append(out, t)
		}
	}
	return out
}

// OnDemand implements chain.OnDemand: blocks are made by whoever serves the chain.
func (c *client) OnDemand() bool { return true }

// Pending implements chain.Mempool.
func (c *client) Pending(ctx context.Context, w chain.Watch) ([]chain.Transfer, error) {
	a, err := c.ask(ctx, question{Ask: "pending"})
	if err != nil {
		return nil, err
	}
	if err := w.Sync(ctx); err != nil {
		return nil, err
	}
	return c.watched(a.Transfers, w), nil
}

// History implements chain.Historian.
func (c *client) History(ctx context.Context, at chain.Address, from, to int64) ([]chain.Transfer, error) {
	a, err := c.ask(ctx, question{Ask: "history", Address: at, From: from, To: to})
	return a.Transfers, err
}

// EstimateFee implements chain.Client.
func (c *client) EstimateFee(ctx context.Context, in chain.Intent) (chain.Fee, error) {
	a, err := c.ask(ctx, question{Ask: "fee", Intent: in})
	return a.Fee, err
}

// ChildFee implements chain.ParentPayer.
func (c *client) ChildFee(ctx context.Context, in chain.Intent, parent []byte, paid ledger.Amount) (chain.Fee, error) {
	a, err := c.ask(ctx, question{Ask: "child fee", Intent: in, Raw: parent, Paid: paid})
	return a.Fee, err
}

// Untag implements chain.Tagger: it needs no node.
func (c *client) Untag(a chain.Address) (chain.Address, string, bool) { return c.local.Untag(a) }

// Build implements chain.Client.
func (c *client) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	a, err := c.ask(ctx, question{Ask: "build", Order: o})
	return a.Unsigned, err
}

// Broadcast implements chain.Client.
func (c *client) Broadcast(ctx context.Context, s chain.Stored) error {
	_, err := c.ask(ctx, question{Ask: "broadcast", Network: s.Network(), Tx: s.Tx(), Raw: s.Raw()})
	return err
}

// Status implements chain.Client.
func (c *client) Status(ctx context.Context, attempts ...chain.Attempt) ([]chain.Status, error) {
	a, err := c.ask(ctx, question{Ask: "status", Attempts: attempts})
	return a.Statuses, err
}

// Balance implements chain.Balancer.
func (c *client) Balance(ctx context.Context, currency string, at chain.Address) (decimal.Decimal, error) {
	a, err := c.ask(ctx, question{Ask: "balance", Currency: currency, Address: at})
	return a.Balance, err
}

// Nonce implements chain.Noncer.
func (c *client) Nonce(ctx context.Context, at chain.Address) (uint64, error) {
	a, err := c.ask(ctx, question{Ask: "nonce", Address: at})
	return a.Nonce, err
}

// BlockAt implements chain.Locator.
func (c *client) BlockAt(ctx context.Context, height int64) (chain.Block, error) {
	a, err := c.ask(ctx, question{Ask: "block", From: height})
	return a.Block, err
}
