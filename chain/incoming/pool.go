package incoming

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// PoolConfig is what a Pool is made of. Store, Source and Now are required, and
// NewID where networks are Shared.
type PoolConfig struct {
	Store  storage.Store
	Source chain.AddressSource
	Now    func() time.Time
	// NewID makes ids that no other process makes.
	NewID func() string
	// Networks that Step keeps filled.
	Networks []chain.Network
	// Shared lists the networks on which all addresses of a tenant are of one
	// account. Defaults to none.
	Shared map[chain.Network]chain.Multiplexer
	// Single lists the networks on which an address is taken in the call that hands it out, and
	// none ahead: there each address that was taken is asked for (chain.FewWatch), shown or not.
	// Defaults to none.
	Single map[chain.Network]bool
	// Ahead is the most free addresses per network that Fill keeps: at first it keeps 32,
	// later as many as were handed out. Below three quarters of what it keeps Wake says
	// so. Defaults to 256.
	Ahead int
	// Lease is how many addresses are taken for a tenant at once, up to a quarter of Ahead
	// where it uses them up within a minute. A process that ends wastes those it did not
	// hand out. Defaults to 8. It is 1 on networks that are Single.
	Lease int
	// Log reports stored addresses that are not what their keys give. Defaults to
	// discarding.
	Log *slog.Logger
	// Hold is for how long a process may be busy taking free addresses before
	// another may take them instead. Defaults to 30 s.
	Hold time.Duration
	// Patience is how long Take waits for the store. Defaults to 10 s. Who begins as many
	// transactions of his own as his database's pool has connections leaves it none.
	Patience time.Duration
}

// Pool is the directory of addresses. Addresses are derived ahead in blocks and
// stored with a dense sequence before anybody sees them; scanners watch them
// from then on. No address is handed out twice, by any number of processes, and
// no index is derived into the directory twice. All methods may be called
// concurrently.
type Pool struct {
	cfg PoolConfig

	wake chan struct{}

	mu     sync.Mutex
	leases map[leaseKey]*leased
	good   map[shown]struct{}      // addresses that were checked
	made   map[shown]chain.Derived // free ones that this process derived, tenant ""
	ends   map[chain.Network]*end
}

// end is where addresses of a network are added.
type end struct {
	turn chan struct{} // full while somebody derives
	left int           // free ones, as far as this process knows; under Pool.mu
	keep int           // how many free ones Fill keeps, 0 = not known yet; under Pool.mu
}

// low reports whether so few free addresses may be worth deriving more: a good part of a
// block is missing, or it is not known how many there should be.
func (e *end) low(free int) bool { return e.keep == 0 || free <= e.keep*3/4 }

type leaseKey struct {
	network chain.Network
	tenant  string
}

// leased are the addresses that this process took for one tenant and has not
// handed out yet.
type leased struct {
	turn chan struct{} // full while somebody takes
	free []chain.Derived
	size int       // of the lease that was taken last
	at   time.Time // when it was
}

// busyLease is how soon a lease must be used up for the next one to be twice as large.
const busyLease = time.Minute

// next is how many addresses to take: more for a tenant that uses them up quickly, as
// taking them costs some round trips during which its other requests wait.
func (l *leased) next(c *PoolConfig) int {
	now, size := c.Now(), c.Lease
	if l.size > 0 && now.Sub(l.at) < busyLease {
		size = max(size, min(2*l.size, c.Ahead/4))
	}
	l.size, l.at = size, now
	return size
}

// Errors of the Pool.
var (
	// ErrNoAddress says that the source has no more addresses, or keeps losing to others.
	ErrNoAddress = errors.New("incoming: no address could be taken from the pool")
	// ErrNotDerived reports that a stored address is not the one that the source
	// derives: somebody edited the directory. It is not handed out.
	ErrNotDerived = errors.New("incoming: a stored address is not the one that its key gives")
)

// NewPool checks the configuration. It does no I/O.
func NewPool(cfg PoolConfig) (*Pool, error) {
	if cfg.Store == nil || cfg.Source == nil || cfg.Now == nil {
		return nil, errors.New("incoming: PoolConfig needs Store, Source and Now")
	}
	if len(cfg.Shared) > 0 && cfg.NewID == nil {
		return nil, errors.New("incoming: PoolConfig needs NewID where networks are Shared")
	}
	defaultTo(&cfg.Ahead, 256)
	defaultTo(&cfg.Lease, 8)
	defaultTo(&cfg.Hold, 30*time.Second)
	defaultTo(&cfg.Patience, 10*time.Second)
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	cfg.Store = storage.Joined(cfg.Store)
	return &Pool{
		cfg: cfg, wake: make(chan struct{}, 1), leases: map[leaseKey]*leased{}, good: map[shown]struct{}{},
		made: map[shown]chain.Derived{}, ends: map[chain.Network]*end{},
	}, nil
}

// Take hands out an address of the tenant that nobody was ever given. It is
// stored and watched already. Step fills the directory ahead, and Wake calls it early. Take
// derives only where the directory has run dry: the first who finds that derives as many as
// it takes, and the others of this process wait for it. It cannot leave that to Step, as a
// process that only serves requests has none, and before the first Step there is no
// address. The error wraps ErrNoAddress where there is none within the Patience.
func (p *Pool) Take(ctx context.Context, network chain.Network, tenant string) (chain.Derived, error) {
	if tenant == "" {
		return chain.Derived{}, errors.New("incoming: an address is taken for a tenant")
	}
	bounded, cancel := context.WithTimeout(ctx, p.cfg.Patience)
	defer cancel()
	tired := func(err error) (chain.Derived, error) {
		if bounded.Err() != nil && ctx.Err() == nil {
			err = fmt.Errorf("%w: the store gave no answer within %s; your own transactions must be fewer at a time than its pool has connections: %w",
				ErrNoAddress, p.cfg.Patience, err)
		}
		return chain.Derived{}, err
	}
	l := p.lease(leaseKey{network, tenant})
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-bounded.Done():
		return tired(bounded.Err())
	}
	if len(l.free) == 0 {
		count := 1
		if !p.cfg.Single[network] {
			count = l.next(&p.cfg)
		}
		free, err := p.take(bounded, network, tenant, UsePayment, count)
		if err != nil {
			return tired(err)
		}
		l.free = free
	}
	d := l.free[0]
	l.free = l.free[1:]
	return d, nil
}

func (p *Pool) lease(k leaseKey) *leased {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.leases[k]
	if l == nil {
		l = &leased{turn: make(chan struct{}, 1)}
		p.leases[k] = l
	}
	return l
}

// Hot is the tenant's hot address on the network: the same one at every call,
// in every process; taken on the first.
func (p *Pool) Hot(ctx context.Context, network chain.Network, tenant string) (chain.Derived, error) {
	return p.only(ctx, network, tenant, UseHot)
}

// Change is the tenant's address for change on the network, as Hot.
func (p *Pool) Change(ctx context.Context, network chain.Network, tenant string) (chain.Derived, error) {
	return p.only(ctx, network, tenant, UseChange)
}

func (p *Pool) only(ctx context.Context, network chain.Network, tenant string, use Use) (chain.Derived, error) {
	if tenant == "" {
		return chain.Derived{}, errors.New("incoming: an address is taken for a tenant")
	}
	for first := true; ; first = false {
		rows, err := p.cfg.Store.Find(ctx, storage.Query{
			Table: Addresses.Table, Partition: storage.Network(string(network)), Limit: 1,
			Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: tenant}, {Column: "use_for", Op: storage.Eq, Value: use}},
		})
		if err != nil {
			return chain.Derived{}, err
		}
		if len(rows) > 0 {
			return derived(rows[0]), p.Check(ctx, network, rows[0])
		}
		if !first { // it was given, and nobody takes one back
			p.cfg.Log.LogAttrs(ctx, slog.LevelError, "address_lost",
				slog.String("network", string(network)), slog.String("tenant", tenant), slog.String("use", string(use)))
			return chain.Derived{}, fmt.Errorf("%w: %s on %s: the directory has lost the one that was given", ErrNoAddress, use, network)
		}
		got, err := p.take(ctx, network, tenant, use, 1)
		var level *storage.LevelError
		switch {
		case errors.As(err, &level): // another process was first
		case err != nil:
			return chain.Derived{}, err
		default:
			return got[0], nil
		}
	}
}

// take gives a tenant count addresses that nobody was ever given.
func (p *Pool) take(ctx context.Context, network chain.Network, tenant string, use Use, count int) ([]chain.Derived, error) {
	if m := p.cfg.Shared[network]; m != nil && use != UseAccount {
		return p.multiplex(ctx, network, m, tenant, use, count)
	}
	return p.assign(ctx, network, tenant, use, count)
}

// maxTries bounds how often a race is run again.
const maxTries = 16

// assign takes at most count free addresses and gives them to the tenant. They
// are committed as the tenant's when it returns.
//
// A free row is due. Claiming it raises its version, so of two processes that
// believe to hold it only one can write it; one that dies leaves it free.
func (p *Pool) assign(ctx context.Context, network chain.Network, tenant string, use Use, count int) ([]chain.Derived, error) {
	part := storage.Network(string(network))
	for range maxTries {
		rows, err := p.free(ctx, network, count)
		if err != nil {
			return nil, err
		}
		if len(rows) == 0 {
			continue
		}
		c := storage.Change{Partition: part}
		out := make([]chain.Derived, len(rows))
		for i, r := range rows {
			a := Addresses.Value(r)
			a.Tenant, a.Use = tenant, use
			c.Put = append(c.Put, Addresses.Row(r.ID, r.Version, time.Time{}, a))
			out[i] = derived(r)
		}
		c.Level = onlyOne(use, tenant)
		c.ID = changeID("lease", c.Put)
		if err = storage.CommitOne(ctx, p.cfg.Store, c); err == nil && use == UsePayment {
			p.found(network, tenant, out)
		}
		if !errors.Is(err, storage.ErrConflict) {
			return out, err
		}
	}
	return nil, fmt.Errorf("%w: on %s", ErrNoAddress, network)
}

// free claims at most count free addresses. There are none where another process was first, or
// all of them were edited: those are claimed, so the next are others.
func (p *Pool) free(ctx context.Context, network chain.Network, count int) ([]storage.Row, error) {
	rows, err := p.claim(ctx, storage.Network(string(network)), count)
	if err == nil && len(rows) == 0 {
		rows, err = p.claimDry(ctx, network, count)
	}
	if err != nil {
		return nil, err
	}
	p.took(network, len(rows))
	return p.derivedOnly(ctx, network, rows)
}

// claim takes free addresses for a moment.
func (p *Pool) claim(ctx context.Context, part storage.Partition, count int) ([]storage.Row, error) {
	now := p.cfg.Now()
	return storage.Claimed(ctx, p.cfg.Store, storage.Claim{
		Table: Addresses.Table, Partition: part, Now: now, Until: now.Add(p.cfg.Hold), Max: count,
	}, p.cfg.Log)
}

// begin waits until nobody else of this process derives for the network.
func (e *end) begin(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *end) leave() { <-e.turn }

// claimDry is claim where nothing was free: it derives count addresses first, unless
// somebody else did so while it waited for its turn. An item of storage.Work that has the
// turn is not put aside, as the next item may wait for the turn.
func (p *Pool) claimDry(ctx context.Context, network chain.Network, count int) ([]storage.Row, error) {
	ctx = storage.Apart(ctx)
	e := p.end(network)
	if err := e.begin(ctx); err != nil {
		return nil, err
	}
	defer e.leave()
	part := storage.Network(string(network))
	rows, err := p.claim(ctx, part, count)
	if err != nil || len(rows) > 0 {
		return rows, err
	}
	if err := p.derive(ctx, network, count); err != nil {
		return nil, err
	}
	return p.claim(ctx, part, count)
}

func (p *Pool) end(network chain.Network) *end {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := p.ends[network]
	if e == nil {
		e = &end{turn: make(chan struct{}, 1)}
		p.ends[network] = e
	}
	return e
}

// took counts free addresses that were taken, and wakes who fills the directory.
func (p *Pool) took(network chain.Network, n int) {
	e := p.end(network)
	p.mu.Lock()
	e.left -= n
	low := e.low(e.left)
	p.mu.Unlock()
	if low {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	}
}

// Wake says when Step has something to do before its time: a network is low on free
// addresses.
func (p *Pool) Wake() <-chan struct{} { return p.wake }

// onlyOne bounds how many addresses of a use a tenant is given.
func onlyOne(use Use, tenant string) []storage.Level {
	if use == UsePayment {
		return nil
	}
	return []storage.Level{{Name: "address/" + string(use) + "/" + tenant, Delta: 1, Max: 1}}
}

func derived(r storage.Row) chain.Derived {
	a := Addresses.Value(r)
	return chain.Derived{Address: chain.Address(r.ID), Index: uint32(a.Index), Key: chain.KeyRef(a.Key)} //nolint:gosec // stored from a uint32
}

// Owner finds the directory entry of an address in canonical form.
func (p *Pool) Owner(ctx context.Context, network chain.Network, address chain.Address) (AddressRow, bool, error) {
	if address == "" {
		return AddressRow{}, false, nil
	}
	a, _, ok, err := Addresses.One(ctx, storage.Joined(p.cfg.Store), storage.Network(string(network)), string(address))
	return a, ok, err
}

// Derives reports whether the source still gives the first address of a network that was
// stored: whether it is of the same key. It is true where none was.
func (p *Pool) Derives(ctx context.Context, network chain.Network) (bool, error) {
	q := storage.Query{
		Table: Addresses.Table, Partition: storage.Network(string(network)), Limit: 1, Order: []storage.Order{{Column: "seq"}},
	}
	if p.cfg.Shared[network] != nil { // its other addresses are numbers of the account's
		q.Where = []storage.Cond{{Column: "use_for", Op: storage.In, Value: []Use{"", UseAccount}}}
	}
	rows, err := p.cfg.Store.Find(ctx, q)
	if err != nil || len(rows) == 0 {
		return err == nil, err
	}
	stored := derived(rows[0])
	again, err := p.cfg.Source.Derive(storage.Apart(ctx), network, stored.Index, 1)
	if err != nil {
		return false, err
	}
	return len(again) == 1 && again[0].Address == stored.Address, nil
}

// Retire ends the watching of an address: transfers in blocks after until are
// left to Recover. The zero time watches it for ever again. ErrNotOurs where the
// directory does not have it. Idempotent.
func (p *Pool) Retire(ctx context.Context, network chain.Network, address chain.Address, until time.Time) error {
	part := storage.Network(string(network))
	return storage.Decide(ctx, p.cfg.Store, func(ctx context.Context) (storage.Change, error) {
		a, row, ok, err := Addresses.One(ctx, p.cfg.Store, part, string(address))
		switch {
		case err != nil:
			return storage.Change{}, err
		case !ok:
			return storage.Change{}, fmt.Errorf("%w: %s on %s", ErrNotOurs, address, network)
		case storage.Micros(a.WatchUntil) == storage.Micros(until):
			return storage.Change{}, nil
		}
		a.WatchUntil = until
		put := []storage.Row{Addresses.Row(row.ID, row.Version, row.Due, a)}
		return storage.Change{ID: changeID("retire", put), Partition: part, Put: put}, nil
	})
}

// Step fills all Networks; worked counts the addresses derived.
func (p *Pool) Step(ctx context.Context) (worked int, err error) {
	for _, network := range p.cfg.Networks {
		n, ferr := p.fill(ctx, network)
		worked += n
		err = errors.Join(err, ferr)
	}
	return worked, err
}

// Fill derives until the network has as many free addresses as were handed out: 32 at
// least, and Ahead at most.
func (p *Pool) Fill(ctx context.Context, network chain.Network) error {
	_, err := p.fill(ctx, network)
	return err
}

func (p *Pool) fill(ctx context.Context, network chain.Network) (int, error) {
	ctx = storage.Apart(ctx)
	e := p.end(network)
	if err := e.begin(ctx); err != nil {
		return 0, err
	}
	defer e.leave()
	count, err := p.cfg.Store.Count(ctx, storage.Query{
		Table: Addresses.Table, Partition: storage.Network(string(network)),
		Where: []storage.Cond{{Column: "tenant", Op: storage.Eq, Value: ""}},
	})
	if err != nil {
		return 0, err
	}
	free := int(count)
	p.mu.Lock()
	e.left = free
	low := e.low(free)
	p.mu.Unlock()
	if !low {
		return 0, nil
	}
	next, _, err := p.last(ctx, storage.Network(string(network)))
	if err != nil {
		return 0, err
	}
	used := int(next) - 1 - free
	p.mu.Lock()
	e.keep = min(max(used, atFirst), p.cfg.Ahead)
	n := e.keep - free
	low = e.low(free)
	p.mu.Unlock()
	if !low {
		return 0, nil
	}
	return n, p.derive(ctx, network, n)
}

// atFirst is how many free addresses a network has that nobody uses yet. They are watched
// and audited like all others, so they are few.
const atFirst = 32

// derive adds count addresses at the directory's end. The row with the highest
// sequence says where that is; seq is unique, so that of two processes one
// finds the end moved and derives behind it.
func (p *Pool) derive(ctx context.Context, network chain.Network, count int) error {
	part := storage.Network(string(network))
	for range maxTries {
		seq, index, err := p.last(ctx, part)
		if err != nil {
			return err
		}
		if index > math.MaxUint32-int64(count) {
			return fmt.Errorf("%w: the key of %s has no index after %d", ErrNoAddress, network, index)
		}
		list, err := p.cfg.Source.Derive(storage.Apart(ctx), network, uint32(index), count)
		if err != nil {
			return fmt.Errorf("incoming: deriving addresses of %s: %w", network, err)
		}
		if len(list) == 0 {
			return fmt.Errorf("%w: the source has none of %s from index %d on", ErrNoAddress, network, index)
		}
		now := p.cfg.Now()
		c := storage.Change{Partition: part}
		for i, d := range list {
			if d.Address == "" || int64(d.Index) < index {
				return fmt.Errorf("%w: the source of %s gave index %d where %d was asked", ErrNoAddress, network, d.Index, index)
			}
			index = int64(d.Index) + 1
			c.Put = append(c.Put, Addresses.Row(string(d.Address), 0, now, AddressRow{
				Seq: seq + int64(i), Index: int64(d.Index), Key: string(d.Key), Created: now,
			}))
		}
		c.ID = changeID("derive", c.Put)
		err = storage.CommitOne(ctx, p.cfg.Store, c)
		if raced(err) && p.moved(ctx, part, seq) {
			continue
		}
		if err == nil {
			p.derivedHere(network, list)
		}
		return err
	}
	return fmt.Errorf("%w: others kept deriving for %s", ErrNoAddress, network)
}

// raced reports whether another process may have written the same rows first.
func raced(err error) bool {
	var dup *storage.DuplicateError
	return errors.Is(err, storage.ErrConflict) || errors.As(err, &dup)
}

// last is the next sequence and the next index of the directory.
func (p *Pool) last(ctx context.Context, part storage.Partition) (seq, index int64, err error) {
	rows, err := p.cfg.Store.Find(ctx, storage.Query{
		Table: Addresses.Table, Partition: part, Limit: 1, Order: []storage.Order{{Column: "seq", Desc: true}},
	})
	if err != nil || len(rows) == 0 {
		return 1, 0, err
	}
	a := Addresses.Value(rows[0])
	return a.Seq + 1, a.Index + 1, nil
}

// moved reports whether the directory's end is past seq: then a race was lost,
// and not an address derived that is there already.
func (p *Pool) moved(ctx context.Context, part storage.Partition, seq int64) bool {
	now, _, err := p.last(ctx, part)
	return err == nil && now > seq
}
