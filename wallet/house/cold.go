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
	// Claim gives some tenants' ceilings, which no other caller gets for a time.
	Claim(ctx context.Context, lease time.Duration, most int) ([]Cold, error)
	// Of is that of a tenant and currency. ok is false where there is none.
	Of(ctx context.Context, tenant, currency string) (c Cold, ok bool, err error)
	// Hot is what can be paid from in a currency, as the chain says.
	Hot(ctx context.Context, tenant, currency string) (ledger.Amount, error)
	// Short is how much withdrawals of a currency want that wait for coins on the hot address,
	// and since when the first of them does.
	Short(ctx context.Context, tenant, currency string) (sum ledger.Amount, since time.Time, err error)
	// NeedRefill tells the operator once how much is to come back from cold, 0 = nothing.
	NeedRefill(ctx context.Context, tenant, currency string, need ledger.Amount, since time.Time) error
	// Propose has a refill of an amount proposed, where that can be signed elsewhere and none is
	// under way. Without needed, as no payout waits for it, what is on its way back to us comes
	// first.
	Propose(ctx context.Context, tenant, currency string, lack ledger.Amount, needed bool)
	// Dear says whether a cost, in units of the gas currency, is too much for an amount.
	Dear(ctx context.Context, currency string, amount, cost ledger.Amount) (bool, error)
}

// coldSource is the source of payments that move coins to cold addresses of a network. It is no
// account of the ledger: by its rules a move between addresses of the tenant's has no legs.
func coldSource(network string) ledger.Account { return ledger.Account("cold/" + network) }

// ToCold reports whether the payment moves coins to a cold address.
func (p *Payment) ToCold() bool { return p.Source == coldSource(p.Network) }

// WaitingBelowCost is the reason of a move to cold whose cost is more than half of it.
const WaitingBelowCost = "below_cost"

const (
	coldEvery = time.Minute
	// failedPause is when the next move begins after one that failed, to the same address.
	failedPause = 6 * time.Hour
	coldBy      = "cold policy" // asks for moves to cold
)

// StepCold begins moves of hot coins to cold addresses, and ends those that payouts need after
// all. A tenant is looked at once a minute, by one process. It says how many it looked at.
func (s *Service) StepCold(ctx context.Context) (int, error) {
	if s.c.Cold == nil {
		return 0, nil
	}
	rules, err := s.c.Cold.Claim(ctx, coldEvery, batch)
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

// overflow moves the coins of one ceiling, and has the operator told where payouts need coins
// back. There is at most one move of a tenant's currency at a time: what the chain says of the
// hot coins is known again once it has landed.
func (s *Service) overflow(ctx context.Context, r Cold) error {
	c, err := s.c.Registry.Currency(r.Currency)
	if err != nil {
		return nil //nolint:nilerr // another process lists it
	}
	hot, err := s.c.Cold.Hot(storage.Apart(ctx), r.Tenant, r.Currency)
	if err != nil {
		return err
	}
	p := Payment{
		Tenant: r.Tenant, Source: coldSource(string(c.Network)), Network: string(c.Network), Currency: c.Code,
		Address: r.Address, Memo: r.Memo, Status: Pending, By: coldBy,
	}
	had, _, open, err := s.openMove(ctx, &p)
	if err != nil {
		return err
	}
	free, err := s.unpromised(ctx, &p, c, hot)
	if err != nil {
		return err
	}
	needed, err := s.needed(ctx, r, c, hot, free)
	if err != nil {
		return err
	}
	if lack := r.Target - free; !open && lack > 0 && (needed || free < r.Target/2) {
		s.c.Cold.Propose(storage.Apart(ctx), r.Tenant, r.Currency, lack, needed)
	}
	if open {
		return s.reconsider(ctx, &had, c, r, free)
	}
	if had.Status == Failed && r.takes(&had) && s.c.Now().Before(had.UpdatedAt.Add(failedPause)) {
		return nil // as where the address cannot be paid: each try may cost its fee
	}
	if r.Ceiling <= 0 || free <= r.Ceiling {
		return nil
	}
	p.Amount = free - r.Target
	in := p.intent()
	if p.MaxCost, err = s.c.MaxCost(storage.Apart(ctx), in); err != nil {
		return err
	}
	p.ID = idOf(p.Tenant, string(p.Source), p.Currency, s.c.NewID())
	return storage.Decide(ctx, s.c.Store, func(ctx context.Context) (storage.Change, error) {
		// Who begins a move writes the note of the last: two never find that there is none.
		_, last, open, err := s.openMove(ctx, &p)
		if err != nil || open {
			return storage.Change{}, err
		}
		free, err := s.unpromised(ctx, &p, c, hot)
		if err != nil || free <= r.Ceiling || free <= r.Target {
			return storage.Change{}, err
		}
		p.Amount = free - r.Target
		at, fresh, err := treasury.ColdAt(ctx, s.c.Store, p.Tenant, p.Network, p.Address, p.ID)
		if err != nil {
			return storage.Change{}, err
		}
		last.note.Tx = p.ID
		put := []storage.Row{treasury.ColdRow(last.row, last.note)}
		if fresh {
			put = append(put, at)
		}
		return s.making(&p, put...)
	})
}

// needed has the operator told how much payouts need back from cold, once they wait for it, and says
// whether they do.
func (s *Service) needed(ctx context.Context, r Cold, c *chain.Currency, hot, free ledger.Amount) (bool, error) {
	sum, since, err := s.c.Cold.Short(ctx, r.Tenant, r.Currency)
	if err != nil {
		return false, err
	}
	if sum == 0 {
		return false, s.c.Cold.NeedRefill(ctx, r.Tenant, r.Currency, 0, since)
	}
	info, err := s.c.Registry.Network(string(c.Network))
	if err != nil {
		return false, err
	}
	need := -free
	if info.Family == chain.UTXOFamily { // coins of payouts under way are not counted as hot
		need, err = sum.Sub(hot)
	}
	if err != nil || need <= 0 || s.c.Now().Before(since.Add(coldEvery)) { // coins of deposits may be on their way
		return false, err
	}
	return true, s.c.Cold.NeedRefill(ctx, r.Tenant, r.Currency, need, since)
}

// coldNote is what lies at a tenant's cold addresses, and its row.
type coldNote struct {
	note treasury.TopUp
	row  storage.Row
}

// arrived adds to the Change that completes a move what lies at cold addresses by then. Where less
// came than was sent, as with a token that keeps a part, the rest is a cost of the house.
func (s *Service) arrived(ctx context.Context, c *storage.Change, m *move) error {
	note, row, err := treasury.ColdOf(ctx, s.c.Store, m.p.Tenant, m.p.Currency)
	if err == nil {
		note.Amount, err = note.Amount.Add(m.p.Amount - m.less)
	}
	if err != nil {
		return err
	}
	c.Put = append(c.Put, treasury.ColdRow(row, note))
	if m.less > 0 {
		id := "cost/" + m.p.Network + "/less/" + m.p.ID
		asset := ledger.Asset(m.p.Currency)
		c.Put = append(c.Put, treasury.SpentRow(id, treasury.TopUp{Tx: m.p.Tx, Currency: m.p.Currency, Amount: m.less}))
		c.Post = append(c.Post, ledger.Tx{ID: id, Kind: ledger.KindFee, Ref: m.p.ID, At: m.now, Legs: []ledger.Leg{
			{Account: ledger.FeesNetwork, Asset: asset, Delta: -m.less}, {Account: ledger.Chain(m.p.Network), Asset: asset, Delta: m.less},
		}})
	}
	return nil
}

// making is the Change that accepts a payment, and holds its amount where it leaves the books.
func (s *Service) making(p *Payment, with ...storage.Row) (c storage.Change, err error) {
	now := s.c.Now()
	p.CreatedAt, p.UpdatedAt = now, now
	if p.Mandate, err = s.c.Mandates.Make(p.terms()); err != nil {
		return c, err
	}
	c = storage.Change{
		ID: "house/" + s.c.NewID(), Partition: storage.Tenant(p.Tenant), Put: append([]storage.Row{Payments.Row(p.ID, 0, now, *p)}, with...),
	}
	if !p.ToCold() {
		c.Post = []ledger.Tx{p.holdTx(now)}
	}
	e, err := s.told(p, "", now)
	c.Tell = append(c.Tell, e)
	return c, err
}

// reconsider ends a move that nothing of was signed: payouts need its coins, its address is no
// longer the policy's, its coins are below the ceiling by now, or it costs too much and there is
// more to move.
func (s *Service) reconsider(ctx context.Context, p *Payment, c *chain.Currency, r Cold, free ledger.Amount) error {
	if p.Status != Pending {
		return nil
	}
	needed := !r.takes(p) || free <= r.Ceiling || free-p.Amount < r.Target
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

// openMove finds the move of a tenant's currency that has not ended, by the note of the last.
func (s *Service) openMove(ctx context.Context, p *Payment) (had Payment, last coldNote, ok bool, err error) {
	if last.note, last.row, err = treasury.ColdOf(ctx, s.c.Store, p.Tenant, p.Currency); err != nil || last.note.Tx == "" {
		return had, last, false, err
	}
	had, _, ok, err = Payments.One(ctx, s.c.Store, storage.Tenant(p.Tenant), last.note.Tx)
	return had, last, ok && had.live(), err
}

// unpromised is what of the hot coins nobody is about to be paid, and no network fee may take:
// a move's own included. It is below 0 where more is promised than is hot.
func (s *Service) unpromised(ctx context.Context, p *Payment, c *chain.Currency, hot ledger.Amount) (free ledger.Amount, err error) {
	float, _, _, err := treasury.GasFloats.One(ctx, s.c.Store, storage.Tenant(p.Tenant), c.Code)
	if err != nil {
		return 0, err
	}
	balances, err := s.c.Store.Balances(ctx, storage.Tenant(p.Tenant))
	if err != nil {
		return 0, err
	}
	free = hot
	for i := range balances {
		if b := &balances[i]; b.Asset == c.Asset() {
			if free, err = free.Sub(b.Held); err != nil {
				return 0, err
			}
		}
	}
	if c.Native() {
		if free, err = free.Sub(float.Reserved); err == nil {
			free, err = free.Sub(p.MaxCost)
		}
	}
	return free, err
}

// mayMove says what a move to cold waits for, "" = it may go. Each look sets its bound at the
// present fees until something is set aside for it.
func (s *Service) mayMove(ctx context.Context, m *move) (why string, failure error) {
	r, ok, err := s.c.coldOf(ctx, m.p.Tenant, m.p.Currency)
	if err != nil {
		return waitingPayout, err
	}
	if !ok || !r.takes(&m.p) {
		return WaitingUnlisted, nil
	}
	if m.p.Stage == kept || m.p.Stage == tried { // nothing is set aside for it yet
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

// Listed reports whether an order may still be signed as far as cold addresses go: it is no move to
// one, or to that of the policy.
func (s *Service) Listed(ctx context.Context, in chain.Intent) (bool, error) {
	p, _, ok, err := Payments.One(ctx, s.c.Store, storage.Tenant(in.Tenant), in.ID)
	if err != nil || !ok || !p.ToCold() {
		return err == nil, err
	}
	r, ok, err := s.c.coldOf(ctx, p.Tenant, p.Currency)
	return ok && r.takes(&p), err
}

// takes reports whether a move still goes where the ceiling says.
func (r *Cold) takes(p *Payment) bool {
	return r.Ceiling > 0 && r.Address == p.Address && r.Memo == p.Memo
}

func (c *Config) coldOf(ctx context.Context, tenant, currency string) (Cold, bool, error) {
	if c.Cold == nil {
		return Cold{}, false, nil
	}
	return c.Cold.Of(ctx, tenant, currency)
}
