package reconcile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/audit"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Config wires a Service of one network. Store, Client, Registry and Now are required.
type Config struct {
	Store    storage.Store
	Client   chain.Client
	Registry *chain.Registry
	// Node says how far this process's node is. Defaults to none: a node that stands still is not noticed.
	Node func(ctx context.Context) (incoming.Status, error)
	Now  func() time.Time
	Log  *slog.Logger // Defaults to discarding.

	// Off leaves the chains unread: nothing is compared. Defaults to comparing.
	Off bool
	// Halt has payouts of that currency halt for that tenant while a difference stands. An
	// operator's Lift then says that it is explained. Defaults to telling alone: turn it on when
	// the host's own networks have shown no difference for some days.
	Halt bool
	// Every is how often each address is looked at. Defaults to a day.
	Every time.Duration
	// Calls is how many balances each process reads on each network in a minute, at most.
	// An address takes one for each currency of its network, and so do 100 addresses where the
	// client is a chain.ManyBalancer and its node can do that. Defaults to 300, and to 60 on
	// networks of outputs, where a balance costs a node more.
	Calls int
	// Notify hears of each difference that is named, and when it ends; it must not block.
	// Defaults to logging only.
	Notify func(ctx context.Context, d Difference)
	// Audit is the log that the library's own halts are in. Defaults to none.
	Audit *audit.Chain
	// Lease is how long an address that is looked at is nobody else's. Defaults to a minute.
	Lease time.Duration
}

// Difference is a difference that nothing explains.
type Difference struct {
	DifferenceRow
	Ended string // "gone" or "accepted"; "" = it stands
}

// Service looks at the addresses of one network. It is safe for concurrent use and by several
// processes on one store.
type Service struct {
	cfg        Config
	name       chain.Network
	part       storage.Partition
	log        *slog.Logger
	gas        *chain.Currency
	currencies []*chain.Currency
	outputs    bool
	many       chain.Multiplexer // nil where every address is an account of its own
	depth      int64
	waitFinal  bool

	step    sync.Mutex
	alone   time.Time // until then balances are read one by one: the client could not read many at once
	rest    time.Time // when a node that takes long is asked again
	left    int       // balances that may be read before the minute ends
	refill  time.Time // when that was last counted
	mu      sync.Mutex
	touched map[string]string // orders that have ended, and their tenants
}

// New checks the configuration. It does no I/O.
func New(cfg Config) (*Service, error) {
	if cfg.Store == nil || cfg.Client == nil || cfg.Registry == nil || cfg.Now == nil {
		return nil, errors.New("reconcile: Config needs Store, Client, Registry and Now")
	}
	switch {
	case cfg.Every < 0:
		return nil, errors.New("reconcile: Config.Every must not be negative")
	case cfg.Calls < 0:
		return nil, errors.New("reconcile: Config.Calls must not be negative")
	case cfg.Lease < 0:
		return nil, errors.New("reconcile: Config.Lease must not be negative")
	}
	name := cfg.Client.Network()
	info, err := cfg.Registry.Network(string(name))
	if err != nil {
		return nil, err
	}
	s := &Service{name: name, part: storage.Network(string(name)), outputs: info.Family == chain.UTXOFamily, touched: map[string]string{}}
	if s.gas, err = cfg.Registry.Gas(name); err != nil {
		return nil, err
	}
	s.currencies = cfg.Registry.On(name)
	s.many, _ = cfg.Client.(chain.Multiplexer)
	for _, c := range s.currencies {
		s.depth, s.waitFinal = max(s.depth, c.Confirmations), s.waitFinal || c.WaitFinal
	}
	if cfg.Every == 0 {
		cfg.Every = 24 * time.Hour
	}
	if cfg.Lease == 0 {
		cfg.Lease = time.Minute
	}
	if cfg.Calls == 0 {
		if cfg.Calls = 300; s.outputs {
			cfg.Calls = 60
		}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Notify == nil {
		cfg.Notify = func(context.Context, Difference) {}
	}
	s.cfg, s.log = cfg, cfg.Log.With(slog.String("network", string(name)))
	return s, nil
}

// Reasons of LookRow.Waits beside InFlight.
const (
	WaitsNode        = "node"         // the node did not tell what the address holds
	WaitsUnsupported = "not_readable" // the network's client cannot read balances
	WaitsConfirm     = "confirming"   // a difference was seen, and is read once more
)

const (
	batch = 50
	// perCall is how many balances a chain.ManyBalancer reads in about one call.
	perCall = 100
	// long is what a balance takes that is work to the node: it then rests for fifty times as
	// long.
	long = time.Second
	// aloneFor is how long balances are read one by one before many at once are tried again.
	aloneFor = 10 * time.Minute
	// first is how far back the due time of an address is set that is looked at before others.
	first = 100 * 24 * time.Hour
	// retry is when an address is looked at again whose coins are in flight, or that waits.
	retry = 2 * time.Minute
	// again is when a named difference is looked at again.
	again = 10 * time.Minute
)

// Touched has the addresses looked at soon that an order of a tenant was sent from, or paid for
// by: it has ended. It writes nothing: Step does.
func (s *Service) Touched(tenant, order string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.touched) < maxTouched { // the round of all addresses finds the rest
		s.touched[order] = tenant
	}
}

const maxTouched = 20_000

// Step finds addresses that are new or were touched, and looks at some that are due. It returns
// how many.
func (s *Service) Step(ctx context.Context) (worked int, err error) {
	if s.cfg.Off {
		return 0, nil
	}
	s.step.Lock()
	defer s.step.Unlock()
	cur, _, known, err := incoming.Cursors.One(ctx, s.cfg.Store, s.part, incoming.CursorID)
	if err != nil || !known || cur.Halted != "" {
		return 0, err
	}
	found, err := s.scout(ctx, &cur)
	if err != nil {
		return 0, err
	}
	looked, err := s.round(ctx, &cur)
	return found + looked, err
}

// allowance is how many balances may be read now.
func (s *Service) allowance() int {
	now := s.cfg.Now()
	if now.Before(s.rest) {
		return 0
	}
	if s.refill.IsZero() || now.Sub(s.refill) >= time.Minute {
		s.left, s.refill = s.cfg.Calls, now
	}
	return s.left
}

// round looks at addresses that are due, in one Commit.
func (s *Service) round(ctx context.Context, cur *incoming.Cursor) (int, error) {
	now := s.cfg.Now()
	size, each := batch, 1
	if s.together() != nil {
		size, each = perCall, perCall
	}
	most := min(size, max(s.allowance(), 0)/len(s.currencies)*each)
	if most == 0 && s.left == s.cfg.Calls && !now.Before(s.rest) {
		most = 1 // fewer calls than currencies: one address a minute
	}
	if most == 0 {
		return 0, nil
	}
	rows, err := storage.Claimed(ctx, s.cfg.Store, storage.Claim{Table: Looks.Table, Partition: s.part, Now: now, Until: now.Add(s.cfg.Lease), Max: most}, s.log)
	if err != nil || len(rows) == 0 {
		return 0, err
	}
	list, gone, err := s.accounts(ctx, rows)
	if err != nil {
		return 0, err
	}
	var unread, judged []*account
	branch, err := s.branch(cur)
	if err != nil {
		return 0, err
	}
	for _, a := range list {
		r := &a.look.Reading
		switch {
		case r.To == 0 && a.owner.Tenant == "": // nobody was shown it
			a.look.Looked, a.row.Due = now, now.Add(s.cfg.Every)
		case r.To == 0:
			unread = append(unread, a)
		case s.final(cur, r):
			switch on, err := branch.has(ctx, r); {
			case err != nil:
				a.row.Due = now.Add(5 * time.Second)
			case on:
				judged = append(judged, a)
			default:
				a.look.Reading, a.row.Due = Reading{}, now // a fork: read again
			}
		default:
			a.row.Due = now.Add(max(5*time.Second, now.Sub(r.At)/4))
		}
	}
	s.readAll(ctx, cur, unread, now)
	if err := s.facts(ctx, judged); err != nil {
		return 0, err
	}
	c := &cases{s: s, now: now, height: cur.Head}
	if err := c.load(ctx, judged); err != nil {
		return 0, err
	}
	for _, a := range judged {
		if err := c.judge(ctx, a); err != nil {
			return 0, err
		}
	}
	return len(rows), s.store(ctx, c, list, gone)
}

// accounts reads who the claimed addresses belong to. gone are rows that are not needed: where
// addresses share an account, that is looked at.
func (s *Service) accounts(ctx context.Context, rows []storage.Row) (list []*account, gone []storage.Row, err error) {
	ids := make([]string, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	owners, err := s.cfg.Store.Rows(ctx, incoming.Addresses.Table, storage.Keys(s.part, ids...)...)
	if err != nil {
		return nil, nil, err
	}
	byID := map[string]incoming.AddressRow{}
	for _, r := range owners {
		byID[r.ID] = incoming.Addresses.Value(r)
	}
	for _, r := range rows {
		o, known := byID[r.ID]
		if !known || s.many != nil && o.Tenant != "" && o.Use != incoming.UseAccount {
			gone = append(gone, r)
			continue
		}
		list = append(list, &account{row: r, look: Looks.Value(r), owner: o, address: chain.Address(r.ID)})
	}
	return list, gone, nil
}

// final reports whether what was read can be judged.
func (s *Service) final(cur *incoming.Cursor, r *Reading) bool {
	return cur.Head >= r.To+max(s.depth-1, 0) && (!s.waitFinal || cur.Final == 0 || cur.Final >= r.To)
}

// branch is the chain as it was read.
type branch struct {
	trail []chain.Block
	node  chain.Locator // nil where the client knows no blocks by height
	asked map[int64]string
}

func (s *Service) branch(cur *incoming.Cursor) (*branch, error) {
	trail, err := cur.Trail.Blocks()
	node, _ := s.cfg.Client.(chain.Locator)
	return &branch{trail, node, map[int64]string{}}, err
}

// has reports whether the block at which a balance was read is still one of the chain's. One that is
// too old to tell is as good as gone. In a gap of the trail, where a client reads histories of few
// addresses, the node is asked.
func (b *branch) has(ctx context.Context, r *Reading) (bool, error) {
	read, known := chain.AtHeight(b.trail, r.To)
	switch {
	case known:
		return read.Hash == r.Hash, nil
	case len(b.trail) == 0 || r.To < b.trail[0].Height || b.node == nil:
		return false, nil
	}
	hash, known := b.asked[r.To]
	if !known {
		at, err := b.node.BlockAt(ctx, r.To)
		if err != nil {
			return false, err
		}
		hash = at.Hash
		b.asked[r.To] = hash
	}
	return hash == r.Hash, nil
}

// together is the client where it reads many balances at once, nil where it does not.
func (s *Service) together() chain.ManyBalancer {
	if b, ok := s.cfg.Client.(chain.ManyBalancer); ok && !s.cfg.Now().Before(s.alone) {
		return b
	}
	return nil
}

// readAll asks the chain what addresses hold that were claimed at a time.
func (s *Service) readAll(ctx context.Context, cur *incoming.Cursor, list []*account, claimed time.Time) {
	if b := s.together(); b != nil && len(list) > 0 {
		list = s.readMany(ctx, cur, list, b)
	}
	for _, a := range list {
		switch {
		case s.cfg.Now().Sub(claimed) >= s.cfg.Lease/2:
			a.row.Due = claimed // the node is slow: the lease is for what was read
		case s.left < len(s.currencies) && s.left < s.cfg.Calls:
			a.row.Due = claimed // the rest of this minute's balances is too few
		default:
			s.read(ctx, cur, a)
		}
	}
}

// readMany asks for all at once what addresses hold in each currency. It returns those that are to
// be read one by one: all, where the client cannot read many now, or those of which it does not say
// a balance.
func (s *Service) readMany(ctx context.Context, cur *incoming.Cursor, list []*account, b chain.ManyBalancer) (rest []*account) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease/2)
	defer cancel()
	now := s.cfg.Now()
	addresses := make([]chain.Address, len(list))
	for i, a := range list {
		addresses[i] = a.address
	}
	unsaid := map[*account]bool{}
	for _, c := range s.currencies {
		got, err := b.Balances(ctx, c.Code, addresses)
		s.left--
		if errors.Is(err, errors.ErrUnsupported) {
			s.alone = now.Add(aloneFor)
			return list
		}
		if err == nil && len(got) != len(list) {
			err = fmt.Errorf("%w: %d balances of %d addresses", chain.ErrNode, len(got), len(list))
		}
		if err != nil {
			for _, a := range list {
				a.bad = err
			}
			break
		}
		for i, a := range list {
			if got[i] == nil {
				unsaid[a] = true
			} else {
				a.holds(c, *got[i])
			}
		}
	}
	var read []*account
	for _, a := range list {
		if a.bad == nil && unsaid[a] {
			rest = append(rest, a)
		} else {
			read = append(read, a)
		}
	}
	s.wasRead(ctx, cur, now, read...)
	return rest
}

// holds notes what an address holds of a currency.
func (a *account) holds(c *chain.Currency, d decimal.Decimal) {
	if d.IsNegative() {
		a.bad = fmt.Errorf("%w: a balance below zero", chain.ErrNode)
	}
	if a.held == nil {
		a.held = map[string]decimal.Decimal{}
	}
	a.held[c.Code] = d
}

// wasRead notes what addresses hold, at the head that follows, or why that is not known.
func (s *Service) wasRead(ctx context.Context, cur *incoming.Cursor, now time.Time, list ...*account) {
	var tip chain.Tip
	var err error
	if slices.ContainsFunc(list, func(a *account) bool { return a.bad == nil }) {
		tip, err = s.cfg.Client.Tip(ctx)
	}
	if err == nil && tip.Head.Height < cur.Head {
		err = chain.ErrBehind
	}
	since := now
	if err == nil && s.cfg.Node != nil {
		var st incoming.Status
		if st, err = s.cfg.Node(ctx); err == nil && st.Tip == tip.Head.Height {
			since = st.TipSince
		}
	}
	for _, a := range list {
		if a.bad == nil {
			a.bad = err
		}
		if a.bad != nil {
			s.unread(ctx, a, a.bad, now)
			continue
		}
		r := Reading{At: now, From: cur.Head, To: tip.Head.Height, Hash: tip.Head.Hash, Head: since, Held: a.held}
		a.look.Reading, a.row.Due = r, now
		if !s.final(cur, &r) {
			a.row.Due = now.Add(5 * time.Second)
		}
	}
}

// read asks the chain what an address holds in each currency.
func (s *Service) read(ctx context.Context, cur *incoming.Cursor, a *account) {
	now := s.cfg.Now()
	b, able := s.cfg.Client.(chain.Balancer)
	if !able {
		a.waits(WaitsUnsupported, now, s.cfg.Every)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Lease/2)
	defer cancel()
	for _, c := range s.currencies {
		began := s.cfg.Now()
		d, err := b.Balance(ctx, c.Code, a.address)
		s.left--
		if now := s.cfg.Now(); now.Sub(began) > long { // such as a search through all coins of a network
			s.rest = now.Add(50 * now.Sub(began))
		}
		if a.bad = err; err == nil {
			a.holds(c, d)
		}
		if a.bad != nil {
			break
		}
	}
	s.wasRead(ctx, cur, now, a)
}

func (s *Service) unread(ctx context.Context, a *account, err error, now time.Time) {
	if errors.Is(err, errors.ErrUnsupported) {
		a.waits(WaitsUnsupported, now, s.cfg.Every)
		return
	}
	s.log.WarnContext(ctx, "balance_not_read", slog.String("address", string(a.address)), slog.Any("error", err))
	pause := retry
	if a.look.Waits == WaitsNode { // longer each time
		pause = max(pause, min(now.Sub(a.look.Since), s.cfg.Every))
	}
	a.waits(WaitsNode, now, pause)
}

// waits notes why a look has not come to its end.
func (a *account) waits(why string, now time.Time, again time.Duration) {
	if a.look.Waits != why {
		a.look.Waits, a.look.Since = why, now
	}
	a.look.Reading, a.row.Due = Reading{}, now.Add(again)
}

// store writes all looks of a claim in one Commit. Those that halt payouts or end a halt are one
// Change with it: no halt is without its difference. A row that somebody else has written meanwhile
// is looked at again.
func (s *Service) store(ctx context.Context, c *cases, list []*account, gone []storage.Row) error {
	var all []storage.Change
	var looks [][]*account // by Change
	var joint storage.Change
	var halting []*account
	for _, a := range list {
		change := storage.Change{
			ID: fmt.Sprintf("look/%s/%d", a.row.ID, a.row.Version), Partition: s.part,
			Put: []storage.Row{Looks.Row(a.row.ID, a.row.Version, a.row.Due, a.look)},
		}
		switch {
		case !c.add(&change, a):
			all, looks = append(all, change), append(looks, []*account{a})
		case len(halting) == 0:
			joint, halting = change, []*account{a}
		default:
			joint.Put, joint.Drop, joint.Tell = append(joint.Put, change.Put...), append(joint.Drop, change.Drop...), append(joint.Tell, change.Tell...)
			halting = append(halting, a)
		}
	}
	if len(halting) > 0 {
		if err := c.moveHalts(ctx, &joint); err != nil {
			return err
		}
		all, looks = append(all, joint), append(looks, halting)
	}
	if len(gone) > 0 {
		all = append(all, storage.Change{ID: fmt.Sprintf("look/%s/%d", gone[0].ID, gone[0].Version), Partition: s.part, Drop: gone})
	}
	var failed error
	for i, err := range s.cfg.Store.Commit(ctx, all...) {
		if err != nil && !errors.Is(err, storage.ErrConflict) {
			failed = errors.Join(failed, err)
		}
		if err == nil && i < len(looks) {
			for _, a := range looks[i] {
				c.tell(ctx, a)
			}
		}
	}
	return failed
}

// scout makes rows of new addresses, and has those looked at that were touched.
func (s *Service) scout(ctx context.Context, cur *incoming.Cursor) (int, error) {
	place, row, known, err := Places.One(ctx, s.cfg.Store, s.part, placeID)
	if err != nil {
		return 0, err
	}
	if !known { // what moved before is looked at in the first round
		place.FinalAt = cur.Head
		last, err := s.cfg.Store.Find(ctx, storage.Query{
			Table: incoming.Addresses.Table, Partition: s.part, Limit: 1, Order: []storage.Order{{Column: "seq", Desc: true}},
		})
		if err != nil {
			return 0, err
		}
		for _, r := range last {
			place.Earlier = incoming.Addresses.Value(r).Seq
		}
	}
	now := s.cfg.Now()
	next := place
	put := map[string]storage.Row{}
	fresh, err := s.cfg.Store.Find(ctx, storage.Query{
		Table: incoming.Addresses.Table, Partition: s.part, Limit: pageSize,
		Where: []storage.Cond{{Column: "seq", Op: storage.Gt, Value: place.Seq}}, Order: []storage.Order{{Column: "seq"}},
	})
	if err != nil {
		return 0, err
	}
	for i, r := range fresh {
		v := incoming.Addresses.Value(r)
		if next.Seq = v.Seq; s.many != nil && v.Tenant != "" && v.Use != incoming.UseAccount {
			continue
		}
		// Spread over the round, so that not all are due at once ever after.
		due := now.Add(s.cfg.Every * time.Duration(i%batch+1) / batch)
		put[r.ID] = Looks.Row(r.ID, 0, due, LookRow{Looked: now, Earlier: v.Tenant != "" && v.Seq <= place.Earlier})
	}
	moved, err := s.moved(ctx, place.FinalAt, cur.Head)
	if err != nil {
		return 0, err
	}
	next.FinalAt = moved.upTo
	ended, err := s.ended(ctx, moved.addresses)
	if err != nil {
		return 0, err
	}
	if next == place && len(moved.addresses) == 0 {
		return 0, nil
	}
	ids := sorted(moved.addresses)
	for len(ids) > 0 {
		part := ids[:min(len(ids), pageSize)]
		ids = ids[len(part):]
		rows, err := s.cfg.Store.Rows(ctx, Looks.Table, storage.Keys(s.part, part...)...)
		if err != nil {
			return 0, err
		}
		for _, r := range rows {
			v, due := Looks.Value(r), now.Add(settledFor-first)
			switch {
			case v.Reading.To == 0 && r.Due.After(due):
				put[r.ID] = Looks.Row(r.ID, r.Version, due, v)
			case v.Reading.To > 0 && !v.Reading.Again:
				v.Reading.Again = true
				put[r.ID] = Looks.Row(r.ID, r.Version, r.Due, v)
			}
		}
		for id, r := range put {
			if r.Version == 0 && moved.addresses[id] {
				r.Due = now.Add(settledFor - first)
				put[id] = r
			}
		}
	}
	c := storage.Change{ID: fmt.Sprintf("looks/%d", row.Version), Partition: s.part, Put: []storage.Row{Places.Row(placeID, row.Version, time.Time{}, next)}}
	for _, id := range sorted(put) {
		c.Put = append(c.Put, put[id])
	}
	switch err := storage.CommitOne(ctx, s.cfg.Store, c); {
	case errors.Is(err, storage.ErrConflict): // another process has done it, or looks at one of them
		return 0, nil
	case err != nil:
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, order := range ended {
		delete(s.touched, order)
	}
	return len(put), nil
}

// ended adds the addresses that orders were sent from which have ended, and that paid for them.
func (s *Service) ended(ctx context.Context, addresses map[string]bool) ([]string, error) {
	s.mu.Lock()
	touched := maps.Clone(s.touched)
	s.mu.Unlock()
	orders := sorted(touched)
	if len(orders) > pageSize {
		orders = orders[:pageSize]
	}
	if len(orders) == 0 {
		return nil, nil
	}
	var tenants []string
	for _, o := range orders {
		tenants = append(tenants, touched[o])
	}
	slices.Sort(tenants)
	uses := []incoming.Use{incoming.UseHot, incoming.UseRetired, incoming.UseChange, incoming.UseAccount}
	err := s.pages(ctx, storage.Query{Table: incoming.Addresses.Table, IDs: true, Where: []storage.Cond{
		{Column: "tenant", Op: storage.In, Value: slices.Compact(tenants)}, {Column: "use_for", Op: storage.In, Value: uses},
	}}, func(r storage.Row) { addresses[r.ID] = true })
	if err != nil {
		return nil, err
	}
	if s.outputs {
		err := s.pages(ctx, storage.Query{Table: outgoing.Attempts.Table, Where: []storage.Cond{{Column: "intent", Op: storage.In, Value: orders}}}, func(r storage.Row) {
			for _, c := range outgoing.Attempts.Value(r).Coins {
				addresses[string(c.Address)] = true
			}
		})
		return orders, err
	}
	rows, err := s.cfg.Store.Rows(ctx, outgoing.Intents.Table, storage.Keys(s.part, orders...)...)
	for _, r := range rows {
		addresses[string(outgoing.Intents.Value(r).From)] = true
	}
	return orders, err
}

// movements are the addresses of transfers that became final.
type movements struct {
	addresses map[string]bool
	upTo      int64
}

// moved reads the transfers that became final above a height, up to another.
func (s *Service) moved(ctx context.Context, above, head int64) (movements, error) {
	m := movements{map[string]bool{}, max(above, head)}
	if head <= above {
		return m, nil
	}
	const most = 5000
	read, last := 0, above
	for r, err := range storage.All(ctx, s.cfg.Store, storage.Query{
		Table: incoming.Sightings.Table, Partition: s.part, Limit: pageSize,
		Where: []storage.Cond{inBlocks, anyForward, {Column: "final_at", Op: storage.Gt, Value: above}, {Column: "final_at", Op: storage.Le, Value: head}},
		Order: []storage.Order{{Column: "final_at"}},
	}) {
		if err != nil {
			return m, err
		}
		v := incoming.Sightings.Value(r)
		if read >= most && v.FinalAt > last { // the rest the next time; those of one height are read together
			m.upTo = last
			break
		}
		read, last = read+1, v.FinalAt
		m.addresses[s.account(v.Address)] = true
		if v.Internal && v.From != "" {
			m.addresses[s.account(v.From)] = true
		}
	}
	return m, nil
}

// account is the address that holds what came to another.
func (s *Service) account(a string) string {
	if s.many != nil {
		if to, _, ok := s.many.Untag(chain.Address(a)); ok {
			return string(to)
		}
	}
	return a
}

// halted reports whether a tenant's payouts of a currency are halted for a difference.
func halted(h outgoing.HaltRow, tenant, currency string) bool {
	for _, x := range h.Halts {
		if x.Scope == (outgoing.Scope{Tenant: tenant, Currency: currency}) {
			return true
		}
	}
	return false
}
