package incoming

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Config is what a Network is made of. Store, Client, Registry and Now are
// required.
type Config struct {
	Store    storage.Store
	Client   chain.Client
	Registry *chain.Registry
	Now      func() time.Time
	Log      *slog.Logger // Defaults to discarding.

	// MaxBlocks is how many blocks one page may hold. Defaults to 32.
	MaxBlocks int
	// TrailKeep is how many blocks the cursor remembers: no deeper fork is
	// followed without an operator. Must be above every currency's
	// confirmations. Defaults to 256, or twice those confirmations where more.
	TrailKeep int
	// MaxUnlisted bounds, per block, the transfers of tokens that are none of
	// ours that are recorded. Defaults to 100.
	MaxUnlisted int
	// Known lists the contracts that any process on the store lists on this network: their
	// transfers are recorded beyond MaxUnlisted, too. Defaults to none.
	Known func(ctx context.Context) (contracts []string, err error)
	// GoneAfter is how long a transfer must have been in no mempool of any process
	// before it is gone: nodes do not hold the same transactions. Defaults to 0: the first
	// process that misses it says so.
	GoneAfter time.Duration
	// MaxRows is the number of transfers after which a page is cut at the next
	// block's end. Defaults to 2000.
	MaxRows int

	// Price is what one whole coin of a currency is worth in USD, for chain.Currency.Steps; ok is
	// false where it is not known now. nil = it never is, so that the last step holds.
	Price func(ctx context.Context, c *chain.Currency) (usd decimal.Decimal, ok bool)
	// Internal says which transfers a stored attempt of ours made as fund,
	// sweep or change: answer i belongs to transfer i. nil = none are.
	Internal func(ctx context.Context, network chain.Network, transfers []chain.Transfer) ([]bool, error)
	// Handle takes the facts. nil = they stay due, for another process.
	Handle Handler
	// Batch is how many facts are claimed at once. Defaults to 64.
	Batch int
	// Lease is how long a claimed fact is nobody else's, and how long one that
	// failed waits. Defaults to 30 s.
	Lease time.Duration
	// HeadAge is the age of the node's head from which on nothing becomes final
	// any more and Step fails: a stuck node. 0 = never.
	HeadAge time.Duration
	// Open lists addresses whose balances are compared at each block; see chain.Watch.
	Open func(ctx context.Context) []chain.Address
	// RoundEvery is how often what all watched addresses hold of the native coin is
	// compared with the stored transfers, where the client is a chain.Reconciler. Where 64
	// blocks pass in less it is done by then, but a fifth of RoundEvery after the last one
	// at the earliest. Defaults to 5 minutes.
	RoundEvery time.Duration
	// Sent lists, for each of some addresses, the hashes of all transactions that were
	// ever signed for it with nonces from the given one on, landed or not. nil = none
	// were.
	Sent func(ctx context.Context, first map[chain.Address]uint64) (map[chain.Address][]string, error)
	// Watched may be shared by all who read this network in one process.
	// Defaults to a new one.
	Watched *Watched
}

// Errors of a Network.
var (
	// ErrHalted: the chain contradicted what was final, or forked below all that
	// is remembered. An operator must look, and call Resume.
	ErrHalted = errors.New("incoming: the network is halted: check the node, then Resume from a height below the fork")
	// ErrStuck: the node's head is too old or below what was read. Nothing moves
	// until it is not.
	ErrStuck = errors.New("incoming: the node's head does not move: nothing becomes final meanwhile")
)

// Network reads one chain. All methods may be called concurrently, and any
// number of Networks, in any number of processes, may read one chain into one
// store.
type Network struct {
	cfg  Config
	name chain.Network
	part storage.Partition
	log  *slog.Logger

	lists  listing
	unread storage.Unreadable

	mu    sync.Mutex // one Step at a time
	round round      // guarded by mu
	until time.Time  // the node is not asked before; guarded by mu
	// able and unable, guarded by mu, say what the client answered when it was asked
	// whether it compares balances. Neither is set before.
	able, unable bool
	trail        atomic.Pointer[trail]

	state    sync.Mutex // guards what follows
	open     func(ctx context.Context) []chain.Address
	stuck    string
	tip      chain.Tip
	tipSince time.Time // when this process first saw the head of tip

	reorgs, deepest int64
	reconciled      time.Time
}

// New checks the configuration. It does no I/O.
func New(cfg Config) (*Network, error) {
	if cfg.Store == nil || cfg.Client == nil || cfg.Registry == nil || cfg.Now == nil {
		return nil, errors.New("incoming: Config needs Store, Client, Registry and Now")
	}
	name := cfg.Client.Network()
	info, err := cfg.Registry.Network(string(name))
	if err != nil || info.Code != name {
		return nil, fmt.Errorf("incoming: the client's network %q is not in the Registry: %w", name, chain.ErrCurrency)
	}
	deepest := int64(0)
	for _, c := range cfg.Registry.On(name) {
		deepest = max(deepest, c.Deepest())
	}
	if cfg.TrailKeep == 0 {
		cfg.TrailKeep = int(max(256, 2*deepest))
	}
	if int64(cfg.TrailKeep) <= deepest {
		return nil, fmt.Errorf("incoming: %s: TrailKeep %d must be above the %d confirmations that a currency needs", name, cfg.TrailKeep, deepest)
	}
	defaultTo(&cfg.MaxBlocks, 32)
	defaultTo(&cfg.MaxUnlisted, 100)
	defaultTo(&cfg.MaxRows, 2000)
	defaultTo(&cfg.Batch, 64)
	defaultTo(&cfg.Lease, 30*time.Second)
	defaultTo(&cfg.RoundEvery, 5*time.Minute)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Watched == nil {
		cfg.Watched = NewWatched(cfg.Store, name)
	}
	if _, ok := cfg.Client.(chain.Reconciler); ok {
		cfg.Watched.keep()
	}
	if shares, ok := cfg.Client.(chain.Multiplexer); ok {
		cfg.Watched.account(shares)
	}
	return &Network{
		cfg: cfg, name: name, part: storage.Network(string(name)), open: cfg.Open, lists: listingOf(cfg.Registry, info),
		log: cfg.Log.With(slog.String("network", string(name))),
	}, nil
}

func defaultTo[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}

// Name is the network's code.
func (n *Network) Name() chain.Network { return n.name }

// Watches reports whether an address is in the directory, as Watched.Contains.
func (n *Network) Watches(a chain.Address) bool { return n.cfg.Watched.Contains(a) }

// SetOpen replaces Config.Open.
func (n *Network) SetOpen(open func(ctx context.Context) []chain.Address) {
	n.state.Lock()
	defer n.state.Unlock()
	n.open = open
}

// Step does one round: it reads what the chain has new, says what became final
// or is gone, and hands what changed to the Handler. worked counts blocks read,
// Sightings changed and facts handled; 0 with nil means that there is nothing
// to do now. A long way behind, a Step goes only a part of it. Where the node
// fails, facts that are stored already are handed out all the same. A node that says for
// how long it wants not to be asked (*chain.LimitedError) is not asked for so long:
// Status.Stuck says until when, and Step returns no error meanwhile.
func (n *Network) Step(ctx context.Context) (worked int, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	// What is due already goes first: that a transfer is gone is then told
	// before it is found again.
	first, err := n.deliver(ctx)
	if err != nil {
		return first, err
	}
	listed, err := n.relist(ctx)
	if err != nil {
		return first, err
	}
	read, err := 0, error(nil)
	if !n.cfg.Now().Before(n.until) {
		read, err = n.read(ctx)
		n.heed(err)
	}
	handled, herr := n.deliver(ctx)
	return first + listed + read + handled, errors.Join(err, herr)
}

// heed leaves a node alone for as long as it says that it was asked too often, and shows
// why nothing moves until then.
func (n *Network) heed(err error) {
	var limited *chain.LimitedError
	if errors.As(err, &limited) && limited.After > 0 {
		n.until = n.cfg.Now().Add(limited.After)
		n.setStuck(fmt.Sprintf("%v; it is asked again at %s", err, n.until.UTC().Format(time.RFC3339)))
	}
}

// Status is how far a network was read, for operators.
type Status struct {
	Network  chain.Network
	Head     int64     // height up to which the chain was read
	HeadTime time.Time // that block's time
	Final    int64     // what the network itself called final; 0 where it does not
	Tip      int64     // the node's head when this process last asked; 0 = not yet
	TipSince time.Time // when this process first saw that head: long ago where the node stands still
	TipRead  time.Time // when a tip was last read whose blocks are all processed
	Stuck    string    // why nothing moves, as this process sees it; "" = it does
	Halted   string    // why an operator is needed; "" = none is
	// Reorgs is how often this process found blocks replaced that it had read, and Deepest
	// how many at the most.
	Reorgs, Deepest int64
	// Reconciled is when this process last compared what all watched addresses hold of the
	// native coin with the stored transfers; zero where it has not, or the client cannot.
	Reconciled time.Time
	// Usage is what this process asks each node, where the client is a chain.Metered.
	Usage []chain.Usage
}

// Waits says which calls of this process wait until a node may be asked more, or fail as the node wants not to be
// asked, for how long, and what ends it; "" = none.
func (s *Status) Waits() string {
	for _, u := range s.Usage {
		if u.Resting > 0 {
			return fmt.Sprintf("%s says that it was asked too often, and is not asked for %s: ask less (CallsPerMinute), or another",
				cmp.Or(u.Node, "the node"), u.Resting.Round(time.Second))
		}
		if u.Waiting > 0 {
			return fmt.Sprintf("calls to %s have waited for %s: %d a minute are allowed (CallsPerMinute), ask less or allow more",
				cmp.Or(u.Node, "the node"), u.Waited.Round(time.Second), u.Most)
		}
	}
	return ""
}

// Status reads the stored cursor, and adds what this process knows of the node.
func (n *Network) Status(ctx context.Context) (Status, error) {
	cur, _, err := n.cursor(ctx)
	if err != nil {
		return Status{}, err
	}
	var usage []chain.Usage
	if m, able := n.cfg.Client.(chain.Metered); able {
		usage = m.Usage()
	}
	n.state.Lock()
	defer n.state.Unlock()
	return Status{
		Network: n.name, Head: cur.Head, HeadTime: cur.HeadTime, Final: cur.Final,
		Tip: n.tip.Head.Height, TipSince: n.tipSince, TipRead: cur.TipRead, Stuck: n.stuck, Halted: cur.Halted, Reorgs: n.reorgs, Deepest: n.deepest,
		Reconciled: n.reconciled, Usage: usage,
	}, nil
}

// Trail returns the newest blocks that were read, the oldest first; none before the first
// was, and while the network is halted. It reads one row. Safe for concurrent use.
func (n *Network) Trail(ctx context.Context) ([]chain.Block, error) {
	cur, _, err := n.cursor(ctx)
	if err != nil || cur.Halted != "" {
		return nil, err
	}
	return n.blocks(cur.Trail)
}

// cursor reads the stored cursor and its version; 0 where there is none yet.
func (n *Network) cursor(ctx context.Context) (Cursor, int64, error) {
	cur, row, _, err := Cursors.One(ctx, n.cfg.Store, n.part, CursorID)
	return cur, row.Version, err
}

// setStuck notes why nothing moves, and logs when that changes.
func (n *Network) setStuck(why string) {
	n.state.Lock()
	defer n.state.Unlock()
	if why != "" && why != n.stuck {
		n.log.Error("network_stuck", slog.String("reason", why))
	}
	n.stuck = why
}

// reorged notes that blocks were replaced.
func (n *Network) reorged(depth int64) {
	n.state.Lock()
	defer n.state.Unlock()
	n.reorgs, n.deepest = n.reorgs+1, max(n.deepest, depth)
}

func (n *Network) compared(at time.Time) {
	n.state.Lock()
	defer n.state.Unlock()
	n.reconciled = at
}

func (n *Network) setTip(t chain.Tip) {
	n.state.Lock()
	defer n.state.Unlock()
	if t.Head.Height != n.tip.Head.Height || t.Head.Hash != n.tip.Head.Hash {
		n.tipSince = n.cfg.Now()
	}
	n.tip = t
}

// change makes the Change of these rows. Its id is the digest of its content,
// versions included: so the same id is always the same Change, and two
// processes that decide the very same thing commit it once.
func (n *Network) change(kind string, require []storage.Guard, put ...storage.Row) storage.Change {
	return storage.Change{ID: changeID(kind, put), Partition: n.part, Require: require, Put: put}
}
