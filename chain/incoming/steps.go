package incoming

import (
	"context"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/storage"
)

// stepped reports whether what a Sighting needs depends on its value: it is a deposit of a
// customer's in a currency with steps. Moves of our own need the currency's confirmations.
func stepped(c *chain.Currency, s *Sighting) bool {
	return c != nil && len(c.Steps) > 0 && !s.Internal && (s.Purpose == UsePayment || s.Purpose == UseAccount)
}

// waits reports whether a Sighting that is final at height at waits for the network's own
// finality, too.
func (n *Network) waits(c *chain.Currency, s *Sighting, at int64) bool {
	if stepped(c, s) {
		return c.Waits(at - s.Height + 1)
	}
	return c.WaitFinal
}

// Required is the number of confirmations that an included Sighting was given to be final; 0
// for one that is in no block.
func (s *Sighting) Required() int64 {
	if s.State != Included && s.State != Final {
		return 0
	}
	return s.FinalAt - s.Height + 1
}

// weigh gives what is newly in a block the confirmations of its step. What a fork threw back
// gets those of the highest: so they never fall, and what was undone once is not taken lightly.
func (n *Network) weigh(ctx context.Context, b *batch) error {
	var fresh []*sighted
	var head int64
	for _, key := range b.order {
		s := b.byKey[key]
		if s.fresh && s.State == Included && stepped(n.listed(s.Currency), &s.Sighting) {
			fresh, head = append(fresh, s), max(head, s.Height)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	all := make([]*Sighting, 0, len(fresh))
	for _, s := range fresh {
		all = append(all, &s.Sighting)
	}
	needs, err := n.weighed(ctx, all, head, true)
	if err != nil {
		return err
	}
	for i, s := range fresh {
		if s.returned {
			needs[i] = n.listed(s.Currency).Needs(decimal.Zero, false).Confirmations
		}
		s.FinalAt = s.Height + max(needs[i], s.least) - 1
	}
	return nil
}

// weighed returns the confirmations of each Sighting's step, 0 where there is nothing to ask. The
// value of a Sighting is that of all that its address got in blocks which the highest step does
// not call final at head: else a large sum in many parts would need what a small one does. fresh
// ones have no step yet, so a price that is missing gives them the highest; another one keeps
// what it was given.
func (n *Network) weighed(ctx context.Context, found []*Sighting, head int64, fresh bool) ([]int64, error) {
	needs := make([]int64, len(found))
	var addresses []string
	var deepest int64
	asked := map[string]bool{}
	open := func(c *chain.Currency, s *Sighting) bool { // at the highest step nothing is left to ask
		return stepped(c, s) && (fresh || s.Required() < c.Steps[len(c.Steps)-1].Confirmations)
	}
	for _, s := range found {
		c := n.listed(s.Currency)
		if !open(c, s) {
			continue
		}
		deepest = max(deepest, c.Deepest())
		if !asked[s.Address] {
			asked[s.Address] = true
			addresses = append(addresses, s.Address)
		}
	}
	if len(addresses) == 0 {
		return needs, nil
	}
	young, err := n.young(ctx, addresses, head-deepest)
	if err != nil {
		return nil, err
	}
	for _, s := range found { // as they are now, and not as they are stored
		if young[s.Address] == nil {
			young[s.Address] = map[string]*Sighting{}
		}
		if asked[s.Address] {
			young[s.Address][s.Key()] = s
		}
	}
	worth := n.pricing(ctx)
	for i, s := range found {
		c := n.listed(s.Currency)
		if !open(c, s) {
			continue
		}
		sum, known := decimal.Zero, true
		for _, o := range young[s.Address] {
			v, ok := worth(o)
			sum, known = sum.Add(v), known && ok
		}
		if !known && !fresh && len(young[s.Address]) == 1 {
			needs[i] = s.Required()
			continue
		}
		needs[i] = c.Needs(sum, known).Confirmations
	}
	return needs, nil
}

// young reads what addresses got in blocks above a height, by address and key.
func (n *Network) young(ctx context.Context, addresses []string, above int64) (map[string]map[string]*Sighting, error) {
	out := map[string]map[string]*Sighting{}
	for part := range slices.Chunk(addresses, readChunk) {
		rows, err := n.find(ctx, // FinalAt is never below Height, so the index on it finds them
			storage.Cond{Column: "state", Op: storage.In, Value: []State{Included, Final}},
			anyForward,
			storage.Cond{Column: "final_at", Op: storage.Gt, Value: above},
			storage.Cond{Column: "height", Op: storage.Gt, Value: above},
			storage.Cond{Column: "address", Op: storage.In, Value: part})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			s := Sightings.Value(r)
			if out[s.Address] == nil {
				out[s.Address] = map[string]*Sighting{}
			}
			out[s.Address][r.ID] = &s
		}
	}
	return out, nil
}

// pricing values Sightings in USD, and asks for each price once. What is of no listed currency
// is worth nothing to anybody here.
func (n *Network) pricing(ctx context.Context) func(s *Sighting) (usd decimal.Decimal, known bool) {
	type price struct {
		usd decimal.Decimal
		ok  bool
	}
	prices := map[string]price{}
	return func(s *Sighting) (decimal.Decimal, bool) {
		c := n.listed(s.Currency)
		if c == nil || s.Internal {
			return decimal.Zero, true
		}
		p, asked := prices[c.Code]
		if !asked {
			if n.cfg.Price != nil {
				p.usd, p.ok = n.cfg.Price(ctx, c)
			}
			p.ok = p.ok && p.usd.IsPositive()
			prices[c.Code] = p
		}
		return s.Exact.Mul(p.usd), p.ok
	}
}

// Required reads how many confirmations each of these Sightings of a network was given, by its
// key. One that is in no block, or is not there, is left out.
func Required(ctx context.Context, store storage.Store, network chain.Network, keys ...string) (map[string]int64, error) {
	out := make(map[string]int64, len(keys))
	for part := range slices.Chunk(keys, readChunk) {
		rows, err := store.Rows(ctx, Sightings.Table, storage.Keys(storage.Network(string(network)), part...)...)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if s := Sightings.Value(r); s.Required() > 0 {
				out[r.ID] = s.Required()
			}
		}
	}
	return out, nil
}
