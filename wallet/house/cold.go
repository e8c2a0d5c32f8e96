package house

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// Cold says where the hot coins of a tenant go that are above a ceiling. Amounts are in units
// of Currency.
type Cold struct {
	Tenant   string
	Currency string
	Address  string // canonical; its key is elsewhere
	Memo     string
	Ceiling  ledger.Amount // 0 = nothing goes there
	Target   ledger.Amount // what stays hot
}

// ColdRules tells the ceilings of tenants.
type ColdRules interface {
	// Claim gives some tenants' ceilings, which no other caller gets until a time.
	Claim(ctx context.Context, until time.Time, most int) ([]Cold, error)
	// Of is that of a tenant and currency. ok is false where there is none.
	Of(ctx context.Context, tenant, currency string) (c Cold, ok bool, err error)
	// Hot is what can be paid from in a currency, as the chain says.
	Hot(ctx context.Context, tenant, currency string) (ledger.Amount, error)
	// Dear says whether a cost, in units of the gas currency, is too much for an amount.
	Dear(ctx context.Context, currency string, amount, cost ledger.Amount) (bool, error)
}

// WaitingBelowCost is the reason of a move to cold whose cost is more than half of it.
const WaitingBelowCost = "below_cost"

const (
	coldEvery = time.Minute
	coldBy    = "cold policy" // asks for moves to cold
)

// StepCold begins moves of hot coins to cold addresses, and ends those that payouts need after
// all. A tenant is looked at once a minute, by one process. It says how many it looked at.
func (s *Service) StepCold(ctx context.Context) (int, error) {
	if s.c.Cold == nil {
		return 0, nil
	}
	rules, err := s.c.Cold.Claim(ctx, s.c.Now().Add(coldEvery), batch)
	if err != nil {
		return 0, err
	}
	tenant := func(c Cold) string { return c.Tenant }
	errs := storage.Work(ctx, s.c.Store, rules, tenant, s.overflow)
	for i, err := range errs {
		if errors.Is(err, storage.ErrBusy) || errors.Is(err, storage.ErrConflict) {
			errs[i] = nil // it is looked at again in a minute
		} else if err != nil {
			s.c.Log.LogAttrs(ctx, slog.LevelWarn, "cold_not_looked_at", slog.String("tenant", rules[i].Tenant), slog.String("currency", rules[i].Currency), slog.Any("error", err))
		}
	}
	return len(rules), errors.Join(errs...)
}

// overflow moves the coins of one ceiling. There is at most one move of a tenant's currency at
// a time: what the chain says of the hot coins is known again once it has landed.
func (s *Service) overflow(ctx context.Context, r Cold) error {
	c, err := s.c.Registry.Currency(r.Currency)
	if err != nil || r.Ceiling <= 0 {
		return nil //nolint:nilerr // another process lists it
	}
	hot, err := s.c.Cold.Hot(storage.Apart(ctx), r.Tenant, r.Currency)
	if err != nil {
		return err
	}
	p := Payment{
		Tenant: r.Tenant, Source: ledger.Cold(string(c.Network)), Network: string(c.Network), Currency: c.Code,
		Address: r.Address, Memo: r.Memo, Status: Pending, By: coldBy,
	}
	had, open, err := s.openMove(ctx, &p)
	if err != nil {
		return err
	}
	free, _, err := s.unpromised(ctx, &p, c, hot)
	if err != nil {
		return err
	}
	if open {
		return s.reconsider(ctx, &had, c, r, free)
	}
	if free <= r.Ceiling {
		return nil
	}
	p.Amount = free - r.Target
	in := p.intent()
	if p.MaxCost, err = s.c.MaxCost(storage.Apart(ctx), in); err != nil {
		return err
	}
	p.ID = idOf(p.Tenant, string(p.Source), p.Currency, s.c.NewID())
	return storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		free, float, err := s.unpromised(ctx, &p, c, hot)
		if err != nil {
			return storage.Change{}, err
		}
		// Whoever begins a move writes float: two never find that there is none.
		if _, open, err := s.openMove(ctx, &p); open || err != nil || free <= r.Ceiling || free <= r.Target {
			return storage.Change{}, err
		}
		p.Amount = free - r.Target
		return s.making(&p, float)
	})
}

// making is the Change that accepts a payment and holds its amount.
func (s *Service) making(p *Payment, float storage.Row) (c storage.Change, err error) {
	now := s.c.Now()
	p.CreatedAt, p.UpdatedAt = now, now
	if p.Mandate, err = s.c.Mandates.Make(p.terms()); err != nil {
		return c, err
	}
	c = storage.Change{
		ID: "house/" + s.c.NewID(), Partition: storage.Tenant(p.Tenant), Post: []ledger.Tx{p.holdTx(now)},
		Put: []storage.Row{Payments.Row(p.ID, 0, now, *p), float},
	}
	e, err := s.told(p, "", now)
	c.Tell = append(c.Tell, e)
	return c, err
}

// reconsider ends a move that nothing of was signed: payouts need its coins, or it costs too
// much and there is more to move by now.
func (s *Service) reconsider(ctx context.Context, p *Payment, c *chain.Currency, r Cold, free ledger.Amount) error {
	if p.Status != Pending {
		return nil
	}
	needed := free < r.Target+p.Amount
	if !needed && p.Waiting == WaitingBelowCost && free-r.Target > p.Amount {
		dear, err := s.c.Cold.Dear(storage.Apart(ctx), c.Code, free-r.Target, p.MaxCost)
		if err != nil {
			return err
		}
		needed = !dear
	}
	if !needed {
		return nil
	}
	_, err := s.Cancel(ctx, p.Tenant, p.ID, nil)
	if late := (*StateError)(nil); errors.As(err, &late) || errors.Is(err, ErrHandingOver) {
		return nil
	}
	return err
}

// openMove finds the move of a tenant's currency that has not ended.
func (s *Service) openMove(ctx context.Context, p *Payment) (had Payment, ok bool, err error) {
	rows, err := s.c.Store.Find(ctx, storage.Query{
		Table: Payments.Table, Partition: storage.Tenant(p.Tenant), Limit: 1, Where: []storage.Cond{
			{Column: "status", Op: storage.In, Value: []Status{Pending, Processing}},
			{Column: "source", Op: storage.Eq, Value: p.Source},
			{Column: "currency", Op: storage.Eq, Value: p.Currency},
		},
	})
	if err != nil || len(rows) == 0 {
		return had, false, err
	}
	return Payments.Value(rows[0]), true, nil
}

// unpromised is what of the hot coins nobody is about to be paid, and no network fee may take:
// a move's own included. float is the row that whoever decides on it writes.
func (s *Service) unpromised(ctx context.Context, p *Payment, c *chain.Currency, hot ledger.Amount) (free ledger.Amount, float storage.Row, err error) {
	_, float, err = treasury.Spare(ctx, s.c.Store, p.Tenant, c.Asset())
	if err != nil {
		return 0, float, err
	}
	balances, err := s.c.Store.Balances(ctx, storage.Tenant(p.Tenant))
	if err != nil {
		return 0, float, err
	}
	free = hot
	for i := range balances {
		if b := &balances[i]; b.Asset == c.Asset() && !b.Account.IsCold() {
			if free, err = free.Sub(b.Held); err != nil {
				return 0, float, err
			}
		}
	}
	if c.Native() {
		if free, err = free.Sub(treasury.GasFloats.Value(float).Reserved); err == nil {
			free, err = free.Sub(p.MaxCost)
		}
	}
	return free, float, err
}

// mayMove says what a move to cold waits for, "" = it may go. The first look sets its bound at
// the present fees.
func (s *Service) mayMove(ctx context.Context, m *move) (why string, failure error) {
	r, ok, err := s.c.coldOf(ctx, m.p.Tenant, m.p.Currency)
	if err != nil {
		return waitingPayout, err
	}
	if !ok || r.Address != m.p.Address || r.Memo != m.p.Memo {
		return WaitingUnlisted, nil
	}
	if m.p.Stage == kept {
		if m.p.MaxCost, err = s.c.MaxCost(ctx, m.p.intent()); err != nil {
			return waitingPayout, err
		}
	}
	dear, err := s.c.Cold.Dear(ctx, m.p.Currency, m.p.Amount, m.p.MaxCost)
	switch {
	case err != nil:
		return waitingPayout, err
	case dear:
		return WaitingBelowCost, nil
	}
	return "", nil
}

func (c *Config) coldOf(ctx context.Context, tenant, currency string) (Cold, bool, error) {
	if c.Cold == nil {
		return Cold{}, false, nil
	}
	return c.Cold.Of(ctx, tenant, currency)
}
