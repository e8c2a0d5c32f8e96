package treasury

import (
	"context"
	"errors"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// wakeNeeded finds payouts that wait for coins, and makes sweeps due that bring them.
// These moves are judged against the payout: together they cost at most the allowed
// share of it. What a tenant's hot address and deposit addresses hold is read once for
// all of its payouts.
func (t *Treasury) wakeNeeded(ctx context.Context, n chain.Network) (woken int, err error) {
	type wallet struct{ tenant, currency string }
	short, order := map[wallet][]storage.Row{}, []wallet{}
	err = t.each(ctx, storage.Query{
		Table: outgoing.Intents.Table, Partition: storage.Network(string(n)),
		Where: []storage.Cond{
			{Column: "state", Op: storage.Eq, Value: outgoing.Waiting},
			{Column: "reason", Op: storage.In, Value: []outgoing.Reason{outgoing.ReasonHotShort, outgoing.ReasonGasShort}},
			{Column: "purpose", Op: storage.Eq, Value: chain.ForWithdrawal},
		},
	}, func(row storage.Row) error {
		v := outgoing.Intents.Value(row)
		if v.Reason == outgoing.ReasonGasShort && !t.native(v.Currency) {
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
	for _, k := range order {
		some, failed := t.bring(ctx, short[k])
		woken, err = woken+some, errors.Join(err, failed)
	}
	return woken, err
}

func (t *Treasury) native(code string) bool {
	c, err := t.cfg.Registry.Currency(code)
	return err == nil && c.Native()
}

// bring makes the largest waiting sweeps of a tenant's currency due until they cover
// what its hot address lacks for these payouts, each in turn.
func (t *Treasury) bring(ctx context.Context, payouts []storage.Row) (woken int, err error) {
	first := outgoing.Intents.Value(payouts[0])
	c, err := t.cfg.Registry.Currency(first.Currency)
	if err != nil {
		return 0, err
	}
	_, gas, err := t.gasOf(c)
	if err != nil {
		return 0, err
	}
	notes, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: SweepNotes.Table, Partition: storage.Network(string(first.Network)), Limit: pageSize,
		Order: []storage.Order{{Column: "amount", Desc: true}},
		Where: []storage.Cond{
			{Column: "tenant", Op: storage.Eq, Value: first.Tenant},
			{Column: "currency", Op: storage.Eq, Value: first.Currency},
		},
	})
	if err != nil || len(notes) == 0 {
		return 0, err
	}
	lack, err := t.holds(ctx, c, first.From)
	if err != nil {
		return 0, err
	}
	lack = -lack
	typical, err := t.typical(ctx, c)
	if err != nil {
		return 0, err
	}
	for _, row := range payouts {
		v := outgoing.Intents.Value(row)
		if lack, err = lack.Add(v.Amount); err == nil && c.Native() {
			lack, err = lack.Add(v.MaxCost)
		}
		if err != nil {
			return woken, err
		}
		worth, err := t.inGas(ctx, c, gas, v.Amount)
		if err != nil {
			return woken, nil //nolint:nilerr // without a price nothing is judged, and nothing moved
		}
		allowed, err := worth.MulDiv(1, t.cfg.MinSweep, ledger.Down)
		if err != nil {
			return woken, err
		}
		some, err := t.spare(ctx, row.ID, notes, lack, typical, allowed)
		if woken += some; err != nil {
			return woken, err
		}
	}
	return woken, nil
}

// spare makes sweeps due for a payout, where those that cover what it lacks cost at
// most what is allowed: the Level counts it, whatever was released before. It keeps
// notes as they are stored.
func (t *Treasury) spare(ctx context.Context, payout string, notes []storage.Row, lack ledger.Amount, typical costs, allowed ledger.Amount) (woken int, err error) {
	var chosen []int
	var prices []ledger.Amount
	var sum ledger.Amount
	for i, row := range notes {
		note := SweepNotes.Value(row)
		had := note.allowedFor(payout)
		price, err := note.price(typical)
		if err != nil {
			return 0, err
		}
		switch {
		case lack <= 0:
			continue
		case note.coming():
			price = had
		case note.Waiting != WaitBelowCost, had >= price: // it takes more than a typical one: DueBelow says when it goes
			continue
		default:
			chosen, prices = append(chosen, i), append(prices, price)
		}
		lack -= note.Amount
		if sum, err = sum.Add(price); err != nil {
			return 0, err
		}
	}
	if lack > 0 || sum > allowed {
		return 0, nil
	}
	room := allowed - sum
	for k, i := range chosen {
		more := min(prices[k]/2, room) // fees may rise before its gas has landed
		did, err := t.give(ctx, payout, &notes[i], prices[k], more, allowed)
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
	Reason   string        // one of the Wait… constants
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
