package cryptopay

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Workers leave a row of a currency that their process does not list to a process that lists
// it. A currency that somebody wrote into a row is listed by none. So a row that is due for long
// is looked at by whoever finds it, and the host hears of it.
const (
	unlistedAfter = 15 * time.Minute // how long a process that lists the currency has had time
	unlistedEvery = 5 * time.Minute  // how often a process looks
	unlistedMost  = 100              // rows of one table that a look takes
)

// unlistedRows are what workers claim by currency.
var unlistedRows = []struct {
	table    *storage.Table
	currency func(storage.Row) string
}{
	{withdrawal.Withdrawals.Table, func(r storage.Row) string { return withdrawal.Withdrawals.Value(r).Currency }},
	{house.Payments.Table, func(r storage.Row) string { return house.Payments.Value(r).Currency }},
	{outgoing.Intents.Table, func(r storage.Row) string { return outgoing.Intents.Value(r).Currency }},
	{outgoing.Outcomes.Table, func(r storage.Row) string { return outgoing.Outcomes.Value(r).Currency }},
	{treasury.Sweeps.Table, func(r storage.Row) string { return treasury.Sweeps.Value(r).Currency }},
	{wallet.TransferRows.Table, func(r storage.Row) string { return wallet.TransferRows.Value(r).Currency }},
	{payment.Payments.Table, func(r storage.Row) string { return payment.Payments.Value(r).Currency }},
}

// unlisted is the worker that looks at them.
type unlisted struct {
	a    *App
	mu   sync.Mutex
	rest time.Time       // when it may look again
	told map[string]bool // withdrawals that the host was told of, of those that the last look found
}

func (u *unlisted) step(ctx context.Context) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now := u.a.cfg.Clock.Now()
	if now.Before(u.rest) {
		return 0, nil
	}
	u.rest = now.Add(unlistedEvery)
	where := []storage.Cond{{Column: "currency", Op: storage.Ne, Value: ""}} // sweeps of an earlier version have none
	for _, codes := range [][]string{u.a.cfg.Registry.Codes(), u.a.cfg.Retire} {
		for _, code := range codes {
			where = append(where, storage.Cond{Column: "currency", Op: storage.Ne, Value: code})
		}
	}
	var failed error
	told := map[string]bool{}
	for _, of := range unlistedRows {
		rows, err := storage.Peek(ctx, u.a.cfg.Store, storage.Claim{Table: of.table, Where: where, Now: now.Add(-unlistedAfter), Max: unlistedMost})
		var unread storage.RowErrors // reported by whoever claims them
		failed = errors.Join(failed, unread.Take(err))
		for _, row := range rows {
			failed = errors.Join(failed, u.look(ctx, row, of.currency(row), told))
		}
	}
	u.told = told
	return 0, failed
}

// look tells of one row.
func (u *unlisted) look(ctx context.Context, row storage.Row, currency string, told map[string]bool) error {
	why, of, err := u.a.contradicts(ctx, row)
	if err != nil {
		return err
	}
	if why == "" {
		u.a.cfg.Log.WarnContext(ctx, "row_unlisted", slog.String("table", row.Table.Name), slog.String("partition", string(row.Partition)),
			slog.String("id", row.ID), slog.String("currency", currency), slog.Time("due", row.Due))
		return nil
	}
	u.a.tellAltered(ctx, of, why, u.told[of.ID])
	told[of.ID] = true
	return nil
}

// tellAltered logs that the rows of a payout contradict each other, and tells the host of a
// withdrawal unless it was told.
func (a *App) tellAltered(ctx context.Context, of chain.Intent, why string, told bool) {
	who := []any{slog.String("network", string(of.Network)), slog.String("tenant", of.Tenant), slog.String("reason", why)}
	switch {
	case house.Is(of.ID):
		a.cfg.Log.ErrorContext(ctx, "house_payment_altered", append(who, slog.String("payment", of.ID))...)
		return
	case of.Purpose != chain.ForWithdrawal:
		a.cfg.Log.ErrorContext(ctx, "order_altered", append(who, slog.String("intent", of.ID))...)
		return
	}
	a.cfg.Log.ErrorContext(ctx, "order_altered", append(who, slog.String("withdrawal", of.ID))...)
	if !told {
		notify := counted(a, kindOfNotice, a.cfg.Withdrawals.Notify)
		notify(storage.Apart(ctx), withdrawal.Notice{Tenant: of.Tenant, Withdrawal: of.ID, Kind: withdrawal.NoticeAltered, Detail: why})
	}
}

// contradicts says why a row of a payout is not what other rows say of it, "" = it is, or it is
// of something else, and which payout it is of.
func (a *App) contradicts(ctx context.Context, row storage.Row) (why string, of chain.Intent, err error) {
	of = chain.Intent{ID: row.ID, Tenant: tenantOf(row.Partition)}
	switch row.Table {
	case withdrawal.Withdrawals.Table:
		w := withdrawal.Withdrawals.Value(row)
		w.ID, of.Purpose, of.Network = row.ID, chain.ForWithdrawal, chain.Network(w.Network)
		line, _, ok, err := storage.Activities.One(ctx, a.joined(), row.Partition, row.ID)
		if err == nil {
			why, err = a.Withdrawals.Contradicts(ctx, row.Partition, &w, &line, ok)
		}
		return why, of, err
	case house.Payments.Table:
		v := house.Payments.Value(row)
		of.Network = chain.Network(v.Network)
		why, err = a.houseMoney.Contradicts(ctx, row.Partition, row.ID, &v)
	case outgoing.Intents.Table:
		v := outgoing.Intents.Value(row)
		of = v.Order(row.ID)
		if v.Purpose == chain.ForWithdrawal || v.Mandate != "" {
			_, _, why, err = a.order(ctx, of)
		}
	case outgoing.Outcomes.Table:
		o := outgoing.Outcomes.Value(row)
		of.Purpose, of.Tenant, of.Network = o.Purpose, o.Tenant, chain.Network(o.Network)
		v, _, ok, err := outgoing.Intents.One(ctx, a.joined(), row.Partition, row.ID)
		if err == nil && ok && v.Currency != o.Currency {
			why = "its outcome is of " + o.Currency + ", and the order of " + v.Currency
		}
		return why, of, err
	}
	return why, of, err
}
