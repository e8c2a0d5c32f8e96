package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// settledFor is how long ago a transaction must have ended for a reading to hold all of it, at
// least: what reads a balance may be another node than the one that told of the transaction.
const settledFor = time.Minute

// apart is how far the clocks of processes may differ. The clock of another process says when a
// transaction ended: until that is longer ago, it may have ended behind the reading.
const apart = 2*time.Hour + settledFor

// account is one claimed address, and what is stored of it.
type account struct {
	row     storage.Row
	look    LookRow
	owner   incoming.AddressRow
	address chain.Address

	held map[string]decimal.Decimal // what it holds, by currency, while it is read
	bad  error                      // why that is not known

	in     []inflow
	out    []outflow
	coins  []coin
	came   []inflow                   // transfers that were read, where coins are outputs
	moving map[string]decimal.Decimal // coins of outputs that may have left before the reading, by outpoint
}

// inflow is a transfer to the address that is in a block.
type inflow struct {
	currency string
	amount   decimal.Decimal
	height   int64
	seen     time.Time
}

// outflow is one order that the address sends, or pays the network for.
type outflow struct {
	currency  string
	amount    decimal.Decimal
	all       bool            // it takes whatever is there
	fee       decimal.Decimal // in the gas currency
	mayCost   decimal.Decimal
	ended     bool
	again     bool // it has ended so far, and may start again: its base does not hold it
	updated   time.Time
	delivered bool // amount left
}

// coin is an unspent output.
type coin struct {
	outpoint string
	amount   decimal.Decimal
	height   int64 // 0 = not known, long ago
	reserved bool
	disputed bool // it may never be there again
	bare     bool // no coin was made of it
}

// shared reports whether the address stands for all that share an account.
func (a *account) shared() bool { return a.owner.Use == incoming.UseAccount }

// pays reports whether the address sends payouts and pays for what others send.
func (a *account) pays() bool {
	return a.owner.Use == incoming.UseHot || a.owner.Use == incoming.UseRetired || a.shared()
}

// facts reads what is stored of some addresses, a few queries for all of them.
func (s *Service) facts(ctx context.Context, list []*account) error {
	if len(list) == 0 {
		return nil
	}
	for _, a := range list {
		a.renew(s.cfg.Now())
	}
	if s.outputs {
		return s.outputFacts(ctx, list)
	}
	if err := s.arrived(ctx, list); err != nil {
		return err
	}
	return s.sent(ctx, list)
}

// pages calls f with every row of a query, page by page in the order of ids.
func (s *Service) pages(ctx context.Context, q storage.Query, f func(storage.Row)) error {
	q.Partition, q.Limit = s.part, pageSize
	for r, err := range storage.All(ctx, s.cfg.Store, q) {
		if err != nil {
			return fmt.Errorf("reconcile: reading %s: %w", q.Table.Name, err)
		}
		f(r)
	}
	return nil
}

const pageSize = 1000

var inBlocks = storage.Cond{Column: "state", Op: storage.In, Value: []incoming.State{incoming.Included, incoming.Final}}

// arrived reads the transfers to addresses.
func (s *Service) arrived(ctx context.Context, list []*account) error {
	byAddress, byTenant := map[string]*account{}, map[string]*account{}
	var own []*account
	sharedLow := int64(-1)
	for _, a := range list {
		if a.shared() {
			byTenant[a.owner.Tenant] = a
			sharedLow = least(sharedLow, a.look.Height)
			continue
		}
		byAddress[string(a.address)] = a
		own = append(own, a)
	}
	take := func(r storage.Row) {
		v := incoming.Sightings.Value(r)
		a := byAddress[v.Address]
		if a == nil {
			if a = byTenant[v.Tenant]; a == nil {
				return
			}
		}
		// A transfer to itself moves nothing. On Solana it is what a transaction of the address's own
		// brought it, such as a rent: the cost of that transaction has it already.
		own := v.From == string(a.address)
		if v.Currency != "" && v.Height > a.look.Height && !own {
			a.in = append(a.in, inflow{v.Currency, v.Exact, v.Height, v.FirstSeen})
		}
	}
	if err := s.came(ctx, own, take); err != nil || sharedLow < 0 {
		return err
	}
	where := []storage.Cond{inBlocks}
	if sharedLow > 0 {
		where = append(where, anyForward, storage.Cond{Column: "final_at", Op: storage.Gt, Value: sharedLow})
	}
	return s.pages(ctx, storage.Query{Table: incoming.Sightings.Table, Where: where}, take)
}

// came calls f with the transfers to addresses that came above their bases, and with some below.
func (s *Service) came(ctx context.Context, list []*account, f func(storage.Row)) error {
	for _, g := range spans(list) {
		where := []storage.Cond{{Column: "address", Op: storage.In, Value: g.addresses}, inBlocks}
		if g.low > 0 {
			where = []storage.Cond{where[0], {Column: "height", Op: storage.Gt, Value: g.low}, inBlocks}
		}
		if err := s.pages(ctx, storage.Query{Table: incoming.Sightings.Table, Where: where}, f); err != nil {
			return err
		}
	}
	return nil
}

// span is a group of addresses that are asked for together.
type span struct {
	addresses []string
	low       int64     // the lowest base of them
	cut       time.Time // the earliest one
}

// spans groups addresses by about how many blocks ago their bases end: what is read above the lowest
// base of a group is of no more than about twice the blocks that each of them needs. Addresses
// without a base are a group of their own. There are a few groups, however many addresses.
func spans(list []*account) []*span {
	groups := map[int]*span{}
	for _, a := range list {
		by := 0
		if a.look.Height > 0 {
			by = 1 + bits.Len64(uint64(max(a.look.Reading.To-a.look.Height, 0))) //nolint:gosec // not below 0
		}
		g := groups[by]
		if g == nil {
			g = &span{low: a.look.Height, cut: a.look.Cut}
			groups[by] = g
		}
		g.addresses = append(g.addresses, string(a.address))
		if g.low = min(g.low, a.look.Height); a.look.Cut.Before(g.cut) {
			g.cut = a.look.Cut
		}
	}
	out := make([]*span, 0, len(groups))
	for _, by := range slices.Sorted(maps.Keys(groups)) {
		out = append(out, groups[by])
	}
	return out
}

// anyForward lets a query by state and final_at go along their index.
var anyForward = storage.Cond{Column: "forward", Op: storage.In, Value: []incoming.Forward{
	incoming.ForwardNone, incoming.Forwarding, incoming.Forwarded, incoming.Deferred, incoming.NotNeeded,
}}

func least(a, b int64) int64 {
	if a < 0 || b < a {
		return b
	}
	return a
}

// open are the states of an order that may still land.
var open = []outgoing.State{outgoing.Queued, outgoing.Waiting, outgoing.Signed, outgoing.Executed}

// orders reads the orders of addresses, or of their tenants where they pay for those, each once:
// what has changed since a time and what is open.
func (s *Service) orders(ctx context.Context, list []*account) (map[string]outgoing.IntentRow, error) {
	found := map[string]outgoing.IntentRow{}
	take := func(r storage.Row) { found[r.ID] = outgoing.Intents.Value(r) }
	var from []*account
	var tenants []string
	var since time.Time
	for _, a := range list {
		if !a.pays() && !s.outputs {
			from = append(from, a)
			continue
		}
		cut := a.look.Cut
		if s.outputs {
			cut = a.look.Reading.holds().Add(settledFor - apart)
		}
		if len(tenants) == 0 || cut.Before(since) {
			since = cut
		}
		tenants = append(tenants, a.owner.Tenant)
	}
	for _, g := range spans(from) {
		addresses := make([]chain.Address, len(g.addresses))
		for i, a := range g.addresses {
			addresses[i] = chain.Address(a)
		}
		of := storage.Cond{Column: "from_address", Op: storage.In, Value: addresses}
		queries := [][]storage.Cond{{of}}
		if !g.cut.IsZero() {
			queries = [][]storage.Cond{{of, {Column: "updated_at", Op: storage.Ge, Value: g.cut}}, {of, {Column: "state", Op: storage.In, Value: open}}}
		}
		for _, where := range queries {
			if err := s.pages(ctx, storage.Query{Table: outgoing.Intents.Table, Where: where}, take); err != nil {
				return nil, err
			}
		}
	}
	if len(tenants) == 0 {
		return found, nil
	}
	of := storage.Cond{Column: "tenant", Op: storage.In, Value: tenants}
	err := s.pages(ctx, storage.Query{Table: outgoing.Intents.Table, Where: []storage.Cond{of, {Column: "updated_at", Op: storage.Ge, Value: since}}}, take)
	if err == nil {
		err = s.pages(ctx, storage.Query{Table: outgoing.Intents.Table, Where: []storage.Cond{of, {Column: "state", Op: storage.In, Value: open}}}, take)
	}
	return found, err
}

// sent reads what addresses sent.
func (s *Service) sent(ctx context.Context, list []*account) error {
	orders, err := s.orders(ctx, list)
	if err != nil {
		return err
	}
	byAddress, byTenant := map[chain.Address]*account{}, map[string]*account{}
	for _, a := range list {
		byAddress[a.address] = a
		if a.pays() {
			byTenant[a.owner.Tenant] = a
		}
	}
	outcomes := map[string]outgoing.Outcome{}
	for part := range slices.Chunk(sorted(orders), pageSize) {
		rows, err := s.cfg.Store.Rows(ctx, outgoing.Outcomes.Table, storage.Keys(s.part, part...)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			outcomes[r.ID] = outgoing.Outcomes.Value(r)
		}
	}
	costs, left, live, err := s.costs(ctx, orders, outcomes)
	if err != nil {
		return err
	}
	sponsor, _ := s.cfg.Client.(chain.Sponsored)
	for _, id := range sorted(orders) {
		v, o := orders[id], outcomes[id]
		o.Amount = max(o.Amount, left[id]) // a token that takes a fee brings less than leaves
		f, moves := s.outflow(&v, &o, live[id])
		if !moves {
			continue
		}
		if f.fee = s.gas.Decimal(costs[id]); f.ended {
			f.mayCost = f.fee
		}
		in := v.Order(id)
		payer := byAddress[v.From]
		if sponsor != nil && sponsor.Sponsored(in) {
			payer = byTenant[v.Tenant]
		}
		if a := byAddress[v.From]; a != nil && f.counts(a) {
			own := f
			if payer != a {
				own.fee, own.mayCost = decimal.Zero, decimal.Zero
			}
			a.out = append(a.out, own)
		}
		if payer != nil && payer.address != v.From && f.counts(payer) {
			f.amount, f.all, f.delivered = decimal.Zero, false, false
			payer.out = append(payer.out, f)
		}
	}
	return nil
}

// costs adds up what the landed transactions of orders cost, and says what left with the last
// one that pays, and which may land yet. One order may have several: a transaction that took the place of its own first
// ones.
func (s *Service) costs(ctx context.Context, orders map[string]outgoing.IntentRow, outcomes map[string]outgoing.Outcome) (sum, left map[string]ledger.Amount, live map[string]bool, err error) {
	sum, left, live = make(map[string]ledger.Amount, len(orders)), map[string]ledger.Amount{}, map[string]bool{}
	var failed error
	for part := range slices.Chunk(sorted(orders), pageSize/2) {
		err := s.pages(ctx, storage.Query{Table: outgoing.Attempts.Table, Where: []storage.Cond{{Column: "intent", Op: storage.In, Value: part}}}, func(r storage.Row) {
			v := outgoing.Attempts.Value(r)
			live[v.Intent] = live[v.Intent] || v.State == outgoing.Open
			if v.State != outgoing.AttemptFinal {
				return
			}
			if o := outcomes[v.Intent]; v.Cost == 0 && o.CostTx == r.ID {
				v.Cost = o.Cost // an earlier version did not store it here
			}
			if o := outcomes[v.Intent]; o.Amount > 0 && v.Purpose != chain.ForCancel && len(v.Outputs) == 1 {
				left[v.Intent] = v.Outputs[0].Amount
			}
			total, err := sum[v.Intent].Add(v.Cost)
			if sum[v.Intent] = total; err != nil {
				failed = err
			}
		})
		if err = errors.Join(err, failed); err != nil {
			return nil, nil, nil, err
		}
	}
	return sum, left, live, nil
}

// counts reports whether the address's base does not hold it already.
func (f *outflow) counts(a *account) bool {
	return !f.ended || f.again || a.look.Cut.IsZero() || f.updated.After(a.look.Cut)
}

// outflow is what an order takes; moves is false where nothing of it was ever signed. live says that
// a transaction of it may land.
func (s *Service) outflow(v *outgoing.IntentRow, o *outgoing.Outcome, live bool) (f outflow, moves bool) {
	f = outflow{currency: v.Currency, all: v.All, updated: v.Updated}
	amount := func(a ledger.Amount) decimal.Decimal {
		c, err := s.cfg.Registry.Currency(v.Currency)
		if err != nil {
			return decimal.Zero // it is not listed here: its balance is not read, and what it costs is
		}
		return c.Decimal(a)
	}
	switch v.State {
	case outgoing.Cancelled: // what took the place of its transactions has cost its fee
		f.ended = true
		return f, v.Attempts > 0
	case outgoing.Final, outgoing.Failed:
		f.ended, f.delivered = true, v.State == outgoing.Final
		if f.amount = amount(o.Amount); !f.delivered {
			f.amount = decimal.Zero
		}
		return f, true
	case outgoing.Queued, outgoing.Waiting:
		switch {
		case live || len(v.Plan) > 0:
		case v.Attempts == 0:
			return f, false
		default: // all of them are at their end, and have cost what they did
			f.ended, f.again = true, true
			return f, true
		}
	}
	f.amount, f.mayCost = amount(max(v.Amount, o.Amount)), s.gas.Decimal(max(v.MaxCost, v.Reserved))
	return f, true
}

// outputFacts reads the unspent outputs of addresses.
func (s *Service) outputFacts(ctx context.Context, list []*account) error {
	byAddress := map[string]*account{}
	var tenants []string
	addresses := make([]chain.Address, 0, len(list))
	for _, a := range list {
		byAddress[string(a.address)] = a
		a.moving = map[string]decimal.Decimal{}
		addresses = append(addresses, a.address)
		if a.owner.Tenant != "" {
			tenants = append(tenants, a.owner.Tenant)
		}
	}
	slices.Sort(tenants)
	tenants = slices.Compact(tenants)
	has := map[string]bool{} // outpoints of which a coin is known
	err := s.pages(ctx, storage.Query{Table: outgoing.Coins.Table, Where: []storage.Cond{
		{Column: "tenant", Op: storage.In, Value: tenants},
		{Column: "state", Op: storage.In, Value: []outgoing.CoinState{outgoing.CoinFree, outgoing.CoinReserved, outgoing.CoinDisputed}},
		{Column: "address", Op: storage.In, Value: addresses},
	}}, func(r storage.Row) {
		v := outgoing.Coins.Value(r)
		if a := byAddress[string(v.Address)]; a != nil {
			has[r.ID] = true
			a.coins = append(a.coins, coin{r.ID, s.gas.Decimal(v.Amount), 0, v.State != outgoing.CoinFree, v.State == outgoing.CoinDisputed, false})
		}
	})
	if err != nil {
		return err
	}
	if err := s.heights(ctx, list); err != nil {
		return err
	}
	if err := s.unkept(ctx, list, byAddress, has); err != nil {
		return err
	}
	orders, err := s.orders(ctx, list)
	if err != nil {
		return err
	}
	for part := range slices.Chunk(sorted(orders), pageSize/2) {
		err := s.pages(ctx, storage.Query{Table: outgoing.Attempts.Table, Where: []storage.Cond{{Column: "intent", Op: storage.In, Value: part}}}, func(r storage.Row) {
			for _, c := range outgoing.Attempts.Value(r).Coins {
				if a := byAddress[string(c.Address)]; a != nil {
					a.moving[c.Outpoint] = s.gas.Decimal(c.Amount)
				}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// heights reads in which blocks coins came.
func (s *Service) heights(ctx context.Context, list []*account) error {
	at := map[string]*coin{}
	for _, a := range list {
		for i := range a.coins {
			at[a.coins[i].outpoint] = &a.coins[i]
		}
	}
	for part := range slices.Chunk(sorted(at), pageSize) {
		rows, err := s.cfg.Store.Rows(ctx, incoming.Sightings.Table, storage.Keys(s.part, part...)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			v := incoming.Sightings.Value(r)
			if at[r.ID].height = v.Height; v.State == incoming.Gone || v.State == incoming.Seen {
				at[r.ID].height = never
			}
		}
	}
	return nil
}

// never is above every height: what is in no block.
const never = int64(1) << 62

// unkept adds the outputs that are no coins by their rows: they are below the dust limit, or final
// only now, or a fork has brought them back.
func (s *Service) unkept(ctx context.Context, list []*account, byAddress map[string]*account, has map[string]bool) error {
	fresh, back, made := map[string]incoming.Sighting{}, map[string]bool{}, map[string]outgoing.CoinState{}
	err := s.came(ctx, list, func(r storage.Row) {
		v := incoming.Sightings.Value(r)
		a := byAddress[v.Address]
		if v.Height <= a.look.Height {
			return
		}
		a.came = append(a.came, inflow{v.Currency, v.Exact, v.Height, v.FirstSeen})
		if !has[r.ID] && v.Currency != "" {
			fresh[r.ID] = v
		}
	})
	if err != nil {
		return err
	}
	for part := range slices.Chunk(sorted(fresh), pageSize) {
		rows, err := s.cfg.Store.Rows(ctx, outgoing.Coins.Table, storage.Keys(s.part, part...)...)
		if err != nil {
			return err
		}
		for _, r := range rows {
			switch state := outgoing.Coins.Value(r).State; state {
			case outgoing.CoinUnmined:
			case outgoing.CoinGone: // it is in a block again, and maybe so is what had spent it
				back[r.ID] = true
			case outgoing.CoinSpent:
				delete(fresh, r.ID)
			case outgoing.CoinFree, outgoing.CoinReserved, outgoing.CoinDisputed: // since the coins were read
				made[r.ID] = state
			}
		}
	}
	for _, id := range sorted(fresh) {
		v := fresh[id]
		a := byAddress[v.Address]
		reserved := back[id] || made[id] != "" && made[id] != outgoing.CoinFree
		a.coins = append(a.coins, coin{id, v.Exact, v.Height, reserved, false, !back[id] && made[id] == ""})
	}
	return nil
}
