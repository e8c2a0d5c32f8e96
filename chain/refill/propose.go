package refill

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Propose makes the transaction that brings an amount, in units of a currency, from the tenant's cold
// address to its hot one, for somebody to sign elsewhere. With dry nothing is stored. by is the record
// that the same Change writes, nil = none.
//
// Errors: *StateError of the one that is open or being sent; ErrUnable; what wraps
// chain.ErrCurrency; chain.ErrShort where the cold coins are not enough; chain.ErrTooDear where the
// fee would be more than half of the amount; and the node's.
func (s *Service) Propose(ctx context.Context, tenant, currency string, amount ledger.Amount, who string, dry bool, by *outgoing.Recorded) (Proposal, error) {
	c, err := s.c.Registry.Currency(currency)
	if err == nil && amount <= 0 {
		err = errors.New("refill: give an amount above 0")
	}
	if err != nil {
		return Proposal{}, err
	}
	// A proposal is made without the store's lock: building it asks the node.
	if _, err := s.next(ctx, tenant, currency); err != nil {
		return Proposal{}, err
	}
	p, err := s.build(storage.Apart(ctx), tenant, c, amount)
	if err != nil {
		return Proposal{}, err
	}
	p.By = who
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		number, err := s.next(ctx, tenant, currency)
		if err != nil {
			return storage.Change{}, err
		}
		now := s.c.Now().UTC().Truncate(time.Microsecond)
		p.Number, p.ID, p.Status = number, idOf(currency, number), Open
		p.CreatedAt, p.UpdatedAt, p.ExpiresAt = now, now, now.Add(s.c.Lasts)
		if err := s.Authorize(&p); err != nil || dry {
			return storage.Change{}, err
		}
		e, err := s.told(&p, "", now)
		if err != nil {
			return storage.Change{}, err
		}
		change := storage.Change{
			// Two that are made at one moment have the same row, which is new to one of them.
			ID: fmt.Sprintf("%s/%s%s", p.ID, p.Tx, callOf(by)), Partition: storage.Tenant(tenant), Tell: []storage.Event{e},
			Put: []storage.Row{Proposals.Row(p.ID, 0, now.Add(lookEvery), p)},
		}
		if by != nil {
			by.Op.Object = p.ID
		}
		rows, events, err := by.Rows("", p.shown())
		change.Put, change.Tell = append(change.Put, rows...), append(change.Tell, events...)
		return change, err
	})
	if dry {
		p.ID = ""
	}
	return p, err
}

// shown is a proposal as the record of a call shows it.
func (p *Proposal) shown() any {
	return struct {
		Status Status        `json:"status"`
		Tx     string        `json:"tx"`
		To     chain.Address `json:"to"`
	}{p.Status, p.Tx, p.To}
}

// Last is the newest proposal of a tenant's currency; ok is false where there is none.
func (s *Service) Last(ctx context.Context, tenant, currency string) (p Proposal, ok bool, err error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Proposals.Table, Partition: storage.Tenant(tenant), Limit: 1,
		Where: []storage.Cond{{Column: "currency", Op: storage.Eq, Value: currency}},
		Order: []storage.Order{{Column: "number", Desc: true}},
	})
	if err != nil || len(rows) == 0 {
		return p, false, err
	}
	return Proposals.Value(rows[0]), true, nil
}

// next is the number of the next proposal. The error is a *StateError where one is under way.
func (s *Service) next(ctx context.Context, tenant, currency string) (int64, error) {
	p, ok, err := s.Last(ctx, tenant, currency)
	if err == nil && ok && p.live() {
		err = &StateError{p.ID, p.Status}
	}
	return p.Number + 1, err
}

// build asks the node for the transaction, and holds it against what was asked for.
func (s *Service) build(ctx context.Context, tenant string, c *chain.Currency, amount ledger.Amount) (p Proposal, err error) {
	spender, err := s.spender(c.Network)
	if err != nil {
		return p, err
	}
	from, err := s.c.Source(ctx, tenant, c)
	if err != nil {
		return p, err
	}
	at, err := spender.ColdAddress(from.Descriptor)
	if errors.Is(err, errors.ErrUnsupported) {
		err = ErrUnable
	}
	if err == nil && at != from.Address {
		err = fmt.Errorf("refill: the descriptor is of %s, and the cold address is %s", at, from.Address)
	}
	if err != nil {
		return p, err
	}
	u, tx, err := spender.ProposeCold(ctx, from.Descriptor, chain.Order{
		Intent: chain.Intent{Tenant: tenant, Network: c.Network, Currency: c.Code, To: from.Hot, Amount: amount, MaxCost: max(amount/2, 1)},
		Coins:  from.Coins,
	})
	if err != nil {
		return p, err
	}
	p = Proposal{
		Tenant: tenant, Network: c.Network, Currency: c.Code, From: from.Address, To: from.Hot, Amount: amount, Fee: u.MaxCost,
		Inputs: u.Spends, Outputs: u.Outputs, Payload: u.Payload, Tx: tx,
	}
	return p, p.check(from.Coins)
}

// check holds what a client made against what was asked of it.
func (p *Proposal) check(coins []chain.Coin) error {
	var in, out ledger.Amount
	var err error
	for _, o := range p.Inputs {
		at := slices.IndexFunc(coins, func(c chain.Coin) bool { return c.Outpoint == o })
		if at < 0 {
			return fmt.Errorf("refill: %w: the transaction spends %s, which is none of the coins", chain.ErrNode, o)
		}
		if in, err = in.Add(coins[at].Amount); err != nil {
			return err
		}
	}
	paid := 0
	for _, o := range p.Outputs {
		switch {
		case !o.Change && o.To == p.To && o.Amount == p.Amount:
			paid++
		case !o.Change || o.To != p.From:
			return fmt.Errorf("refill: %w: the transaction pays %d units to %s", chain.ErrNode, o.Amount, o.To)
		}
		if out, err = out.Add(o.Amount); err != nil {
			return err
		}
	}
	if paid != 1 || p.Fee <= 0 || in-out != p.Fee || p.Fee > max(p.Amount/2, 1) || p.Tx == "" || len(p.Payload) == 0 {
		return fmt.Errorf("refill: %w: the transaction is not the one that was asked for", chain.ErrNode)
	}
	return nil
}

// spender is the client of a network; ErrUnable where it cannot do this.
func (s *Service) spender(n chain.Network) (chain.ColdSpender, error) {
	if _, ok := s.c.Clients[n]; !ok {
		return nil, fmt.Errorf("%w: no client for network %s is configured", chain.ErrCurrency, n)
	}
	spender, ok := s.c.Clients[n].(chain.ColdSpender)
	if !ok {
		return nil, ErrUnable
	}
	return spender, nil
}

// Get returns a proposal; ErrNotFound.
func (s *Service) Get(ctx context.Context, tenant, id string) (Proposal, error) {
	p, _, ok, err := Proposals.One(ctx, s.c.Store, storage.Tenant(tenant), id)
	if err == nil && !ok {
		err = fmt.Errorf("%w: %q", ErrNotFound, id)
	}
	return p, err
}

// List returns a tenant's proposals, newest first.
func (s *Service) List(ctx context.Context, tenant string, limit, offset int) ([]Proposal, error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Proposals.Table, Partition: storage.Tenant(tenant), Limit: limit, Offset: offset,
		Order: []storage.Order{{Column: "created_at", Desc: true}},
	})
	out := make([]Proposal, len(rows))
	for i, r := range rows {
		out[i] = Proposals.Value(r)
	}
	return out, err
}

// Of returns the proposals that made some of these transactions, by their hash. Where two are of
// one transaction, as one is proposed again, it is one of them. One that somebody edited is left out.
func (s *Service) Of(ctx context.Context, tenant string, n chain.Network, txs ...string) (map[string]Proposal, error) {
	part, out := storage.Tenant(tenant), map[string]Proposal{}
	for some := range slices.Chunk(txs, askAtOnce) {
		rows, err := s.c.Store.Find(ctx, storage.Query{
			Table: Proposals.Table, Partition: part, Limit: 10 * askAtOnce,
			Where: []storage.Cond{{Column: "tx", Op: storage.In, Value: some}},
		})
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			p := Proposals.Value(r)
			if _, has := out[p.Tx]; has || p.Network != n {
				continue
			}
			why, err := s.Contradicts(ctx, part, r.ID, &p)
			if err != nil {
				return nil, err
			}
			if why == "" {
				out[p.Tx] = p
			}
		}
	}
	return out, nil
}

// askAtOnce bounds the transactions that one query asks about.
const askAtOnce = 100

// Change lists the coins that a tenant's proposals give back to a cold address where they have landed, of
// the newest proposals of a currency. One that has ended otherwise may have been signed and sent by its
// owner since: a node says whether its coins are there.
func (s *Service) Change(ctx context.Context, tenant, currency string, a chain.Address) (coins []chain.Coin, err error) {
	part := storage.Tenant(tenant)
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Proposals.Table, Partition: part, Limit: 1000,
		Where: []storage.Cond{{Column: "currency", Op: storage.Eq, Value: currency}},
		Order: []storage.Order{{Column: "number", Desc: true}},
	})
	if err != nil {
		return nil, err
	}
	for _, r := range rows {
		p := Proposals.Value(r)
		if p.live() || p.From != a {
			continue
		}
		if why, err := s.Contradicts(ctx, part, r.ID, &p); err != nil || why != "" {
			if err != nil {
				return nil, err
			}
			continue
		}
		for i, o := range p.Outputs {
			if o.Change && o.To == a {
				coins = append(coins, chain.Coin{Outpoint: fmt.Sprintf("%s:%d", p.Tx, i), Address: a, Amount: o.Amount})
			}
		}
	}
	return coins, nil
}

// lookEvery is how often the node is asked what became of a proposal.
const lookEvery = time.Minute
