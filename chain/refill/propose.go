package refill

import (
	"cmp"
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
// Where less is true and the cold coins are not enough, it is for what they are.
//
// Errors: *StateError of the tenant's proposal that is open or being sent, or has the nonce of the cold address; ErrUnable; what wraps
// chain.ErrCurrency; chain.ErrShort where the cold coins are not enough, or the cold address cannot pay
// its fee and so much is to be sent there; chain.ErrTooDear where the fee would be worth more than half
// of the amount; chain.ErrOccupied while a transaction of the cold address waits, or another tenant's
// proposal has its nonce; and the node's.
func (s *Service) Propose(ctx context.Context, tenant, currency string, amount ledger.Amount, less bool, who string, dry bool, by *outgoing.Recorded) (Proposal, error) {
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
	p, err := s.build(storage.Apart(ctx), tenant, c, amount, less)
	if err != nil {
		return Proposal{}, err
	}
	p.By = who
	err = storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		number, err := s.next(ctx, tenant, currency)
		if err == nil && p.unnamed() {
			err = s.turn(ctx, tenant, p.Network, p.From)
		}
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
			ID: fmt.Sprintf("%s/%s%s", p.ID, cmp.Or(p.Tx, p.Seal), callOf(by)), Partition: storage.Tenant(tenant), Tell: []storage.Event{e},
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
	if dry || err != nil {
		return p, err
	}
	if first, err := s.settle(ctx, &p); err == nil && first != nil {
		return Proposal{}, occupied(tenant, first)
	}
	return p, nil // where settle failed it is made all the same
}

// settle ends a proposal that was made at the same moment as another one with its nonce, and returns
// that one, nil = there is none. Where this cannot be known now, look does so.
func (s *Service) settle(ctx context.Context, p *Proposal) (*Proposal, error) {
	first, err := s.rival(ctx, p)
	if err != nil || first == nil {
		return nil, err
	}
	_, err = s.decide(ctx, p.Tenant, p.ID, nil, func(p *Proposal, _ time.Time) (time.Time, error) {
		if p.Status != Open {
			return never, errTaken
		}
		return never, p.to(Gone, onRival, rivalled)
	})
	if errors.Is(err, errTaken) {
		return nil, nil
	}
	return first, err
}

// rivalled is why a proposal is Gone whose nonce another proposal has.
const rivalled = "another proposal of the cold address has its nonce"

// rival is a proposal that has the nonce of an open one and goes before it, nil = none: one that came
// back, or that was made before.
func (s *Service) rival(ctx context.Context, p *Proposal) (*Proposal, error) {
	if !p.unnamed() {
		return nil, nil
	}
	all, err := s.under(ctx, p.Network, p.From)
	for i := range all {
		o := &all[i]
		if o.Tenant == p.Tenant && o.ID == p.ID || o.Inputs[0] != p.Inputs[0] {
			continue
		}
		if o.Status == Sending || cmp.Or(o.CreatedAt.Compare(p.CreatedAt), cmp.Compare(o.Tenant, p.Tenant), cmp.Compare(o.ID, p.ID)) < 0 {
			return o, nil
		}
	}
	return nil, err
}

// Show writes the Payload of a proposal as JSON; nil on networks where it has no such form.
func (s *Service) Show(p *Proposal) ([]byte, error) {
	finder, ok := s.c.Clients[p.Network].(chain.ColdFinder)
	if !ok {
		return nil, nil
	}
	out, err := finder.ShowCold(p.From, p.Payload)
	if errors.Is(err, errors.ErrUnsupported) {
		return nil, nil
	}
	return out, err
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
	p, _, err := s.Last(ctx, tenant, currency)
	if err != nil {
		return 0, err
	}
	// An older one is under way again where a fork took it back.
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Proposals.Table, Partition: storage.Tenant(tenant), Limit: 1,
		Where: []storage.Cond{
			{Column: "currency", Op: storage.Eq, Value: currency}, {Column: "status", Op: storage.In, Value: []Status{Open, Sending}},
		},
		Order: []storage.Order{{Column: "number", Desc: true}},
	})
	if err == nil && len(rows) > 0 {
		v := Proposals.Value(rows[0])
		err = &StateError{v.ID, v.Status}
	}
	return p.Number + 1, err
}

// turn is the error of occupied where a proposal of another currency or tenant is under way that has the
// next nonce of a cold address. Where two are made at one moment all the same, one of them goes on: see rival.
func (s *Service) turn(ctx context.Context, tenant string, n chain.Network, from chain.Address) error {
	all, err := s.under(ctx, n, from)
	if err != nil || len(all) == 0 {
		return err
	}
	return occupied(tenant, &all[0])
}

// occupied says to a tenant that a proposal has the next nonce of a cold address. It names none of
// another tenant's.
func occupied(tenant string, p *Proposal) error {
	if p.Tenant != tenant {
		return fmt.Errorf("%w: a refill proposal of another tenant has the next nonce of the cold address %s: propose again once it has ended", chain.ErrOccupied, p.From)
	}
	return &StateError{p.ID, p.Status}
}

// under lists the proposals of all tenants that are under way and have a nonce of a cold address.
func (s *Service) under(ctx context.Context, n chain.Network, from chain.Address) (out []Proposal, err error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Proposals.Table, Limit: newest,
		Where: []storage.Cond{
			{Column: "network", Op: storage.Eq, Value: string(n)},
			{Column: "from_address", Op: storage.Eq, Value: string(from)},
			{Column: "status", Op: storage.In, Value: []Status{Open, Sending}},
		},
	})
	if bad := (*storage.RowError)(nil); errors.As(err, &bad) {
		err = nil // nobody waits for what cannot be read: it is reported by its own tenant's work
	}
	for _, r := range rows {
		if p := Proposals.Value(r); p.unnamed() {
			out = append(out, p)
		}
	}
	return out, err
}

// build asks the node for the transaction, and holds it against what was asked for.
func (s *Service) build(ctx context.Context, tenant string, c *chain.Currency, amount ledger.Amount, less bool) (p Proposal, err error) {
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
	accounts := s.accounts(c.Network)
	if err == nil && accounts {
		err = s.turn(ctx, tenant, c.Network, from.Address)
	}
	if less && accounts && from.Lies > 0 {
		amount = min(amount, from.Lies)
	}
	if err == nil && accounts && amount > from.Lies {
		err = fmt.Errorf("%w: by the books %s %s lies at the cold address", chain.ErrShort, c.Decimal(from.Lies), c.Code)
	}
	if err == nil && at != from.Address {
		err = fmt.Errorf("refill: the descriptor is of %s, and the cold address is %s", at, from.Address)
	}
	if err != nil {
		return p, err
	}
	p, err = s.buildFor(ctx, spender, tenant, c, &from, chain.Intent{Amount: amount})
	if !less || !errors.Is(err, chain.ErrShort) {
		return p, err
	}
	switch {
	case !accounts:
		return s.buildFor(ctx, spender, tenant, c, &from, chain.Intent{All: true})
	case !c.Native(): // it lacks what the network takes
		return p, err
	}
	fee, err := s.c.Clients[c.Network].EstimateFee(ctx, chain.Intent{Tenant: tenant, Network: c.Network, Currency: c.Code, From: from.Address, To: from.Hot, Amount: amount})
	if err != nil {
		return p, err
	}
	// Twice, as the price may have risen when the transaction is made.
	twice, err := fee.Max.Add(fee.Max)
	if err != nil {
		return p, err
	}
	rest, err := from.Lies.Sub(twice)
	if err != nil {
		return p, err
	}
	if amount = min(amount, rest); amount <= 0 {
		return p, fmt.Errorf("%w: by the books %s %s lies at the cold address, and up to %s is the fee", chain.ErrShort, c.Decimal(from.Lies), c.Code, c.Decimal(fee.Max))
	}
	return s.buildFor(ctx, spender, tenant, c, &from, chain.Intent{Amount: amount})
}

// buildFor asks a client for the transaction of an amount, or of all coins less the fee.
func (s *Service) buildFor(ctx context.Context, spender chain.ColdSpender, tenant string, c *chain.Currency, from *Source, in chain.Intent) (p Proposal, err error) {
	if !in.All {
		if in.MaxCost, err = s.mostCost(ctx, c, in.Amount); err != nil {
			return p, err
		}
	}
	in.Tenant, in.Network, in.Currency, in.To = tenant, c.Network, c.Code, from.Hot
	u, tx, err := spender.ProposeCold(ctx, from.Descriptor, chain.Order{Intent: in, Coins: from.Coins})
	if errors.Is(err, errors.ErrUnsupported) {
		err = fmt.Errorf("%w: %w", ErrUnable, err)
	}
	if err != nil {
		return p, err
	}
	if in.All && len(u.Outputs) == 1 {
		in.Amount, in.MaxCost = u.Outputs[0].Amount, max(u.Outputs[0].Amount/2, 1)
		if u.MaxCost > in.MaxCost {
			return p, &chain.DearError{Need: u.MaxCost, Most: in.MaxCost}
		}
	}
	p = Proposal{
		Tenant: tenant, Network: c.Network, Currency: c.Code, From: from.Address, To: from.Hot, Amount: in.Amount, Fee: u.MaxCost,
		Inputs: u.Spends, Outputs: u.Outputs, Payload: u.Payload, Tx: tx,
	}
	if s.accounts(c.Network) {
		return p, p.checkAccount(in.MaxCost)
	}
	return p, p.check(from.Coins, in.MaxCost)
}

// accounts reports whether a network keeps value in accounts.
func (s *Service) accounts(n chain.Network) bool {
	info, err := s.c.Registry.Network(string(n))
	return err == nil && info.Family == chain.AccountFamily
}

// mostCost is the most that a refill of an amount may cost, in units of the gas currency: what half of the amount is worth.
func (s *Service) mostCost(ctx context.Context, c *chain.Currency, amount ledger.Amount) (ledger.Amount, error) {
	if !c.Native() {
		if s.c.Worth == nil {
			return 0, ErrUnable
		}
		var err error
		if amount, err = s.c.Worth(ctx, c.Code, amount); err != nil {
			return 0, err
		}
	}
	return max(amount/2, 1), nil
}

// checkAccount holds what a client made against what was asked of it, on a network of accounts.
func (p *Proposal) checkAccount(most ledger.Amount) error {
	if len(p.Inputs) != 1 || p.Inputs[0] == "" || (p.Tx == "") != p.unnamed() || p.Fee <= 0 || p.Fee > most || len(p.Payload) == 0 ||
		len(p.Outputs) != 1 || p.Outputs[0] != (chain.Output{To: p.To, Currency: p.Currency, Amount: p.Amount}) {
		return fmt.Errorf("refill: %w: the transaction is not the one that was asked for", chain.ErrNode)
	}
	return nil
}

// check holds what a client made against what was asked of it, on a network of outputs.
func (p *Proposal) check(coins []chain.Coin, most ledger.Amount) error {
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
	if paid != 1 || p.Fee <= 0 || in-out != p.Fee || p.Fee > most || p.Tx == "" || len(p.Payload) == 0 {
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

// List returns a tenant's proposals, newest first, and how many there are.
func (s *Service) List(ctx context.Context, tenant string, limit, offset int) (page []Proposal, total int64, err error) {
	q := storage.Query{
		Table: Proposals.Table, Partition: storage.Tenant(tenant), Limit: limit, Offset: offset,
		Order: []storage.Order{{Column: "created_at", Desc: true}},
	}
	rows, err := s.c.Store.Find(ctx, q)
	if err == nil {
		total, err = s.c.Store.Count(ctx, q)
	}
	page = make([]Proposal, len(rows))
	for i, r := range rows {
		page[i] = Proposals.Value(r)
	}
	return page, total, err
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

// newest bounds the proposals of a currency that are looked through.
const newest = 1000

// Sent returns the proposal that made a transaction which paid the tenant in a currency, and what the
// network took for it, in units of its gas currency. spends is what the transaction consumed. ok is
// false where no proposal made it. On a network of accounts a node is asked: the error is the node's, or
// chain.ErrBehind where it does not know the transaction.
func (s *Service) Sent(ctx context.Context, tenant string, n chain.Network, currency, tx string, spends []string) (p Proposal, cost ledger.Amount, ok bool, err error) {
	named, err := s.Of(ctx, tenant, n, tx)
	if err != nil {
		return p, 0, false, err
	}
	p, ok = named[tx]
	if !s.accounts(n) {
		return p, p.Fee, ok, nil
	}
	var all []Proposal
	if ok {
		all = append(all, p)
	}
	rows, err := s.newest(ctx, tenant, currency)
	if err != nil {
		return p, 0, false, err
	}
	for _, r := range rows {
		v := Proposals.Value(r)
		if !v.unnamed() || v.Network != n || !slices.Contains(spends, v.Inputs[0]) {
			continue
		}
		why, err := s.Contradicts(ctx, storage.Tenant(tenant), r.ID, &v)
		if err != nil {
			return p, 0, false, err
		}
		if why == "" {
			all = append(all, v)
		}
	}
	for i := range all {
		finder, ok := s.c.Clients[n].(chain.ColdFinder)
		if !ok {
			return p, 0, false, fmt.Errorf("%w: no client of network %s that finds transactions", ErrUnable, n)
		}
		found, st, err := finder.FindCold(storage.Apart(ctx), all[i].From, all[i].Payload, tx)
		if err != nil {
			return p, 0, false, fmt.Errorf("refill: transaction of proposal %s: %w", all[i].ID, err)
		}
		switch {
		case found == tx && st.State == chain.Included:
			return all[i], st.Cost, true, nil
		case st.State == chain.Unknown || st.State == chain.Pending: // it has the nonce, and is in a block
			return p, 0, false, fmt.Errorf("refill: %w: the node does not know transaction %s, which has the place of proposal %s", chain.ErrBehind, tx, all[i].ID)
		}
	}
	return Proposal{}, 0, false, nil
}

func (s *Service) newest(ctx context.Context, tenant, currency string) ([]storage.Row, error) {
	return s.c.Store.Find(ctx, storage.Query{
		Table: Proposals.Table, Partition: storage.Tenant(tenant), Limit: newest,
		Where: []storage.Cond{{Column: "currency", Op: storage.Eq, Value: currency}},
		Order: []storage.Order{{Column: "number", Desc: true}},
	})
}

// Change lists the coins that a tenant's proposals give back to a cold address where they have landed, of
// the newest proposals of a currency. One that has ended otherwise may have been signed and sent by its
// owner since: a node says whether its coins are there.
func (s *Service) Change(ctx context.Context, tenant, currency string, a chain.Address) (coins []chain.Coin, err error) {
	part := storage.Tenant(tenant)
	rows, err := s.newest(ctx, tenant, currency)
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
