package treasury

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// wakeNeeded finds payouts that wait for coins, and makes sweeps due that bring them.
// These moves are judged against the payout: together they cost at most the allowed
// share of it. What a tenant's hot address and deposit addresses hold is read once for
// all of its payouts.
func (t *Treasury) wakeNeeded(ctx context.Context, n chain.Network) (woken int, err error) {
	short, order := map[wallet][]storage.Row{}, []wallet{}
	err = t.each(ctx, storage.Query{
		Table: outgoing.Intents.Table, Partition: storage.Network(string(n)),
		Where: []storage.Cond{
			{Column: "state", Op: storage.Eq, Value: outgoing.Waiting},
			{Column: "reason", Op: storage.In, Value: []outgoing.Reason{outgoing.ReasonHotBalance, outgoing.ReasonOperatorFunds, outgoing.ReasonBelowCost}},
			{Column: "purpose", Op: storage.Eq, Value: chain.ForWithdrawal},
		},
	}, func(row storage.Row) error {
		v := outgoing.Intents.Value(row)
		if v.Reason == outgoing.ReasonOperatorFunds && !t.native(v.Currency) {
			return nil // its gas is the operator's to bring
		}
		k := wallet{v.Tenant, v.Currency}
		if short[k] == nil {
			order = append(order, k)
		}
		short[k] = append(short[k], row)
		return nil
	})
	if err != nil {
		return 0, err
	}
	for _, e := range storage.Work(ctx, t.cfg.Store, order, wallet.key, func(ctx context.Context, k wallet) error {
		some, err := t.bring(ctx, short[k])
		woken += some
		return err
	}) {
		err = errors.Join(err, unlessDue(e)) // what is locked elsewhere is looked for again
	}
	return woken, err
}

// wallet is one currency of a tenant, whose payouts draw on the same coins.
type wallet struct{ tenant, currency string }

func (w wallet) key() string { return w.tenant + "/" + w.currency }

func (t *Treasury) native(code string) bool {
	c, err := t.cfg.Registry.Currency(code)
	return err == nil && c.Native()
}

// supply is what can be brought to a tenant's hot address of one currency.
type supply struct {
	currency, gas *chain.Currency
	notes         []storage.Row // of SweepNotes, the largest first
	held          ledger.Amount // by the hot address
	typical       costs
}

// supply reads it; there are no notes where no coins lie on deposit addresses.
func (t *Treasury) supply(ctx context.Context, tenant, currency string, hot chain.Address) (s supply, err error) {
	if s.currency, err = t.cfg.Registry.Currency(currency); err != nil {
		return s, err
	}
	if _, s.gas, err = t.gasOf(s.currency); err != nil {
		return s, err
	}
	q := storage.Query{
		Table: SweepNotes.Table, Partition: storage.Network(string(s.currency.Network)), Limit: pageSize,
		Where: []storage.Cond{
			{Column: "tenant", Op: storage.Eq, Value: tenant},
			{Column: "currency", Op: storage.Eq, Value: currency},
		},
	}
	// In no order it is asked together with those of others.
	if s.notes, err = t.cfg.Store.Find(ctx, q); err == nil && len(s.notes) == pageSize {
		q.Order = []storage.Order{{Column: "amount", Desc: true}}
		s.notes, err = t.cfg.Store.Find(ctx, q)
	}
	slices.SortStableFunc(s.notes, func(a, b storage.Row) int {
		return cmp.Or(cmp.Compare(SweepNotes.Value(b).Amount, SweepNotes.Value(a).Amount), cmp.Compare(a.ID, b.ID))
	})
	if err != nil || len(s.notes) == 0 {
		return s, err
	}
	if s.held, err = t.holds(ctx, s.currency, hot); err != nil {
		return s, err
	}
	s.typical, err = t.typical(ctx, s.currency)
	return s, err
}

// need is what a payout takes out of the hot address, with what it may cost there.
func (s *supply) need(amount, maxCost ledger.Amount) (ledger.Amount, error) {
	if !s.currency.Native() {
		return amount, nil
	}
	return amount.Add(maxCost)
}

// covers reports whether what is on its way to the hot address and what waits for lower fees
// may come to a sum, as far as one page shows them.
func (s *supply) covers(lack ledger.Amount) bool {
	for _, row := range s.notes {
		if note := SweepNotes.Value(row); lack > 0 && (note.coming() || note.Waiting == WaitBelowCost || note.Waiting == WaitForMore) {
			lack -= note.Amount
		}
	}
	return lack <= 0 || len(s.notes) == pageSize
}

// allowed is what bringing coins for a payout of this amount may cost.
func (t *Treasury) allowed(ctx context.Context, s *supply, amount ledger.Amount) (ledger.Amount, error) {
	worth, err := t.inGas(ctx, s.currency, s.gas, amount)
	if err != nil {
		return 0, err
	}
	return worth.MulDiv(1, t.cfg.MinSweep, ledger.Down)
}

// Costly reports whether the coins that a payout's hot address lacks wait on deposit
// addresses because bringing them costs more than the allowed share of the payout. They are
// brought when fees fall, or more comes. Where its amount lacks more than all of them, they do
// not help it, and the operator is to bring coins. It is for outgoing.Config.Costly.
func (t *Treasury) Costly(ctx context.Context, in chain.Intent) (bool, error) {
	s, err := t.supply(ctx, in.Tenant, in.Currency, in.From)
	if err != nil || !slices.ContainsFunc(s.notes, func(r storage.Row) bool { return SweepNotes.Value(r).Waiting == WaitBelowCost }) {
		return false, err
	}
	need, err := s.need(in.Amount, in.MaxCost)
	if err != nil || need <= s.held || !s.covers(in.Amount-s.held) {
		return false, err
	}
	allowed, err := t.allowed(ctx, &s, in.Amount)
	if err != nil {
		return false, err
	}
	b, err := s.choose(in.ID, need-s.held)
	return b.lack > 0 || b.cost > allowed, err
}

// Uncovered reports whether an operator has to bring coins for a payout: its hot address holds less than
// the payout takes, and was replaced; or the payout is of the network's own coin, and the deposits that
// were not forwarded yet do not bring the rest: it was sent to deposit addresses as gas and lies there.
// It is false where coins lie at cold addresses: the operator is asked for those (NoticeRefill). It is
// for outgoing.Config.Uncovered.
func (t *Treasury) Uncovered(ctx context.Context, in chain.Intent) (bool, error) {
	c, err := t.cfg.Registry.Currency(in.Currency)
	if err != nil {
		return false, err
	}
	info, err := t.cfg.Registry.Network(string(in.Network))
	if err != nil || info.Family == chain.UTXOFamily {
		return false, err
	}
	hot, err := t.cfg.Addresses.Hot(ctx, in.Network, in.Tenant)
	if err != nil {
		return false, err
	}
	replaced := in.From != t.account(in.Network, hot.Address) // nothing is brought there any more
	if !c.Native() && !replaced {
		return false, nil
	}
	held, err := t.holds(ctx, c, in.From)
	if err != nil || held >= in.Amount || replaced {
		return err == nil && held < in.Amount, err
	}
	cold, _, err := ColdOf(ctx, t.cfg.Store, in.Tenant, in.Currency)
	if err != nil || cold.Amount > 0 {
		return false, err
	}
	// Coins go from a deposit to its sweep to the hot address: read in this order none is missed.
	lack := in.Amount - held
	add := func(a ledger.Amount) error {
		if lack -= min(a, lack); lack <= 0 {
			return errCovered
		}
		return nil
	}
	part := storage.Network(string(in.Network))
	err = t.each(ctx, storage.Query{Table: incoming.Sightings.Table, Partition: part, Where: []storage.Cond{
		{Column: "forward", Op: storage.Eq, Value: incoming.ForwardNone},
		{Column: "state", Op: storage.Eq, Value: incoming.Final},
		{Column: "tenant", Op: storage.Eq, Value: in.Tenant},
		{Column: "currency", Op: storage.Eq, Value: in.Currency},
		{Column: "purpose", Op: storage.Eq, Value: incoming.UsePayment},
		{Column: "internal", Op: storage.Eq, Value: false},
	}}, func(r storage.Row) error { return add(max(incoming.Sightings.Value(r).Amount, 0)) }) // no sweep has it yet
	if err != nil {
		return false, uncovered(err)
	}
	err = t.each(ctx, storage.Query{Table: SweepNotes.Table, Partition: part, Where: []storage.Cond{
		{Column: "tenant", Op: storage.Eq, Value: in.Tenant},
		{Column: "currency", Op: storage.Eq, Value: in.Currency},
		{Column: "address", Op: storage.Ne, Value: string(in.From)},
	}}, func(r storage.Row) error { return add(SweepNotes.Value(r).Amount) })
	if err != nil {
		return false, uncovered(err)
	}
	now, err := t.holds(ctx, c, in.From)
	return now-held < lack, err
}

// errCovered ends a walk over coins that cover what is asked for.
var errCovered = errors.New("covered")

// uncovered is the error of such a walk.
func uncovered(err error) error {
	if errors.Is(err, errCovered) {
		return nil
	}
	return err
}

// bring makes the largest waiting sweeps of a tenant's currency due until they cover
// what its hot address lacks for these payouts, each in turn.
func (t *Treasury) bring(ctx context.Context, payouts []storage.Row) (woken int, err error) {
	first := outgoing.Intents.Value(payouts[0])
	s, err := t.supply(ctx, first.Tenant, first.Currency, first.From)
	if err != nil || len(s.notes) == 0 {
		return 0, err
	}
	lack := -s.held
	for _, row := range payouts {
		v := outgoing.Intents.Value(row)
		need, err := s.need(v.Amount, v.MaxCost)
		if err == nil {
			lack, err = lack.Add(need)
		}
		if err != nil {
			return woken, err
		}
		allowed, err := t.allowed(ctx, &s, v.Amount)
		if err != nil {
			return woken, nil //nolint:nilerr // without a price nothing is judged, and nothing moved
		}
		some, err := t.spare(ctx, row.ID, &s, lack, allowed)
		if woken += some; err != nil {
			return woken, err
		}
	}
	return woken, nil
}

// brought is what covers the lack of a payout.
type brought struct {
	lack   ledger.Amount   // that nothing covers
	cost   ledger.Amount   // of all that comes for the payout
	chosen []int           // of the supply's notes: those to make due
	prices []ledger.Amount // of each
}

// choose takes the largest of a supply until the lack of a payout is covered.
func (s *supply) choose(payout string, lack ledger.Amount) (b brought, err error) {
	b.lack = lack
	for i, row := range s.notes {
		note := SweepNotes.Value(row)
		had := note.allowedFor(payout)
		price, err := note.price(s.typical)
		if err != nil {
			return b, err
		}
		switch {
		case b.lack <= 0:
			continue
		case note.coming():
			price = had
		case note.Waiting == WaitForMore: // it is worth its cost, and costs the payout nothing
			price = 0
			b.chosen, b.prices = append(b.chosen, i), append(b.prices, price)
		case note.Waiting != WaitBelowCost, had >= price: // it takes more than a typical one: DueBelow says when it goes
			continue
		default:
			b.chosen, b.prices = append(b.chosen, i), append(b.prices, price)
		}
		b.lack -= note.Amount
		if b.cost, err = b.cost.Add(price); err != nil {
			return b, err
		}
	}
	return b, nil
}

// spare makes sweeps due for a payout, where those that cover what it lacks cost at
// most what is allowed: the Level counts it, whatever was released before. It keeps
// the supply's notes as they are stored.
func (t *Treasury) spare(ctx context.Context, payout string, s *supply, lack, allowed ledger.Amount) (woken int, err error) {
	b, err := s.choose(payout, lack)
	if err != nil || b.lack > 0 || b.cost > allowed {
		return 0, err
	}
	room := allowed - b.cost
	for k, i := range b.chosen {
		more := min(b.prices[k]/2, room) // fees may rise before its gas has landed
		did, err := t.give(ctx, payout, &s.notes[i], b.prices[k], more, allowed)
		if err != nil || !did {
			return woken, err
		}
		room -= more
		woken++
	}
	return woken, nil
}

// give makes one sweep due for a payout.
func (t *Treasury) give(ctx context.Context, payout string, row *storage.Row, price, more, allowed ledger.Amount) (bool, error) {
	for _, most := range []ledger.Amount{price + more, price} {
		note := SweepNotes.Value(*row)
		level := storage.Level{Name: "moved-for/" + payout, Delta: int64(most - note.allowedFor(payout)), Max: int64(allowed)}
		note.Payout, note.Allowed = payout, most
		err := t.wakeNote(ctx, *row, note, level)
		if full := (*storage.LevelError)(nil); errors.As(err, &full) {
			continue
		}
		if err == nil {
			note.DueBelow = -1
			*row = SweepNotes.Row(row.ID, row.Version+1, time.Time{}, note)
		}
		if errors.Is(err, storage.ErrConflict) {
			return true, nil // another process works on it
		}
		return err == nil, err
	}
	return false, nil
}

// Waiting is one address whose coins wait to be forwarded.
type Waiting struct {
	Sweep    string // its id
	Tenant   string
	Network  chain.Network
	Address  chain.Address
	Currency *chain.Currency
	Amount   ledger.Amount // what the address held when it was last looked at, in the currency's units
	Reason   string        // one of the Wait… constants, or the outgoing.Reason of its order
	Detail   string
	Since    time.Time
	Next     time.Time // of the next look; zero = when forwarding costs at most DueBelow
	// DueBelow is the cost of a typical sweep, in the currency's units, at or below which
	// the coins are forwarded; −1 where they do not wait for that.
	DueBelow ledger.Amount
}

// Waiting lists a tenant's coins on deposit addresses of one network that wait to be
// forwarded, each with its reason and with what ends it, in the order of currencies and
// the largest amounts first. limit is at most 1000.
func (t *Treasury) Waiting(ctx context.Context, tenant string, n chain.Network, limit, offset int) ([]Waiting, error) {
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: SweepNotes.Table, Partition: storage.Network(string(n)), Limit: min(limit, pageSize), Offset: offset,
		Order: []storage.Order{{Column: "currency"}, {Column: "amount", Desc: true}},
		Where: []storage.Cond{
			{Column: "tenant", Op: storage.Eq, Value: tenant},
			{Column: "waiting", Op: storage.Ne, Value: ""},
		},
	})
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	sweeps, err := t.cfg.Store.Rows(ctx, Sweeps.Table, storage.Keys(storage.Network(string(n)), ids...)...)
	if err != nil {
		return nil, err
	}
	detail, due := map[string]string{}, map[string]time.Time{}
	for _, row := range sweeps {
		detail[row.ID], due[row.ID] = Sweeps.Value(row).Reason, row.Due
	}
	out := make([]Waiting, 0, len(rows))
	for _, row := range rows {
		note := SweepNotes.Value(row)
		c, err := t.cfg.Registry.Currency(note.Currency)
		if err != nil {
			continue // a currency that was taken out of the configuration
		}
		if note.Next.IsZero() && note.DueBelow < 1 { // made due, or decided and not sent yet
			note.Next = due[row.ID]
		}
		out = append(out, Waiting{
			Sweep:  row.ID,
			Tenant: tenant, Network: n, Address: chain.Address(note.Address), Currency: c, Amount: note.Amount,
			Reason: note.Waiting, Detail: detail[row.ID], Since: note.Since, Next: note.Next, DueBelow: note.DueBelow,
		})
	}
	return out, nil
}
