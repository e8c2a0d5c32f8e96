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
// share of it.
func (t *Treasury) wakeNeeded(ctx context.Context, n chain.Network) (woken int, err error) {
	rows, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: outgoing.Intents.Table, Partition: storage.Network(string(n)), Limit: t.cfg.Batch,
		Where: []storage.Cond{
			{Column: "state", Op: storage.Eq, Value: outgoing.Waiting},
			{Column: "reason", Op: storage.Eq, Value: outgoing.ReasonHotShort},
			{Column: "purpose", Op: storage.Eq, Value: chain.ForWithdrawal},
		},
	})
	if err != nil {
		return 0, err
	}
	type wallet struct{ tenant, currency string }
	needs, count := map[wallet]ledger.Amount{}, 0
	for _, row := range rows {
		v := outgoing.Intents.Value(row)
		k := wallet{v.Tenant, v.Currency}
		if needs[k], err = needs[k].Add(v.Amount); err != nil {
			return count, err
		}
		some, failed := t.bring(ctx, row.ID, v, needs[k])
		count, err = count+some, errors.Join(err, failed)
	}
	return count, err
}

// bring makes the largest waiting sweeps of a tenant's currency due until they cover
// what its hot address lacks of need.
func (t *Treasury) bring(ctx context.Context, id string, v outgoing.IntentRow, need ledger.Amount) (int, error) {
	c, err := t.cfg.Registry.Currency(v.Currency)
	if err != nil {
		return 0, err
	}
	_, gas, err := t.gasOf(c)
	if err != nil {
		return 0, err
	}
	waiting, err := t.cfg.Store.Find(ctx, storage.Query{
		Table: SweepNotes.Table, Partition: storage.Network(string(v.Network)), Limit: pageSize,
		Order: []storage.Order{{Column: "amount", Desc: true}},
		Where: []storage.Cond{
			{Column: "tenant", Op: storage.Eq, Value: v.Tenant},
			{Column: "currency", Op: storage.Eq, Value: v.Currency},
		},
	})
	if err != nil || len(waiting) == 0 {
		return 0, err
	}
	hot, err := t.holds(ctx, c, v.From)
	if err != nil {
		return 0, err
	}
	lack := need - hot
	if c.Native() {
		lack += v.MaxCost
	}
	typical, err := t.typical(ctx, c)
	if err != nil {
		return 0, err
	}
	each, err := typical.sum()
	if err != nil {
		return 0, err
	}
	worth, err := t.inGas(ctx, c, gas, v.Amount)
	if err != nil {
		return 0, nil //nolint:nilerr // without a price nothing is judged, and nothing moved
	}
	allowed, err := worth.MulDiv(1, t.cfg.MinSweep, ledger.Down)
	if err != nil {
		return 0, err
	}
	return t.spare(ctx, id, waiting, lack, each, allowed)
}

// spare makes sweeps due for a payout, where those that cover what it lacks cost at
// most what is allowed: the Level counts it, whatever was released before.
func (t *Treasury) spare(ctx context.Context, payout string, waiting []storage.Row, lack, each, allowed ledger.Amount) (int, error) {
	var chosen []storage.Row
	for _, row := range waiting {
		note := SweepNotes.Value(row)
		switch {
		case lack <= 0:
		case note.Waiting == WaitBelowCost && note.Payout == "":
			chosen = append(chosen, row)
			fallthrough
		case note.Payout != "" || note.Waiting == "": // on its way
			lack -= note.Amount
		}
	}
	if lack > 0 || len(chosen) == 0 || each > allowed/ledger.Amount(len(chosen)) {
		return 0, nil
	}
	for i, row := range chosen {
		note := SweepNotes.Value(row)
		note.Payout, note.Allowed = payout, each
		level := storage.Level{Name: "moved-for/" + payout, Delta: int64(each), Max: int64(allowed)}
		err := t.wakeNote(ctx, row, note, level)
		if full := (*storage.LevelError)(nil); errors.As(err, &full) {
			return i, nil
		}
		if err != nil && !errors.Is(err, storage.ErrConflict) {
			return i, err
		}
	}
	return len(chosen), nil
}

// Waiting is one address whose coins wait to be forwarded.
type Waiting struct {
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
	sweeps, err := t.cfg.Store.Rows(ctx, Sweeps.Table, storage.Network(string(n)), ids...)
	if err != nil {
		return nil, err
	}
	detail := map[string]string{}
	for _, row := range sweeps {
		detail[row.ID] = Sweeps.Value(row).Reason
	}
	out := make([]Waiting, 0, len(rows))
	for _, row := range rows {
		note := SweepNotes.Value(row)
		c, err := t.cfg.Registry.Currency(note.Currency)
		if err != nil {
			continue // a currency that was taken out of the configuration
		}
		out = append(out, Waiting{
			Tenant: tenant, Network: n, Address: chain.Address(note.Address), Currency: c, Amount: note.Amount,
			Reason: note.Waiting, Detail: detail[row.ID], Since: note.Since, Next: note.Next, DueBelow: note.DueBelow,
		})
	}
	return out, nil
}
