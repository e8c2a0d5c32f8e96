package judge

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	money "github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// page is the largest page of every list.
const page = 100

// period is more than a world lasts, and than a clock is off.
const period = 60 * 24 * time.Hour

// reader reads one shop's views.
type reader struct {
	ctx  context.Context
	app  *cryptopay.App
	shop *Shop
	now  time.Time
	err  error
}

// Read fills in what the public views show a shop, and of the ledger the balances
// that no view shows.
func Read(ctx context.Context, app *cryptopay.App, store storage.Store, now time.Time, shop *Shop) error {
	r := &reader{ctx: ctx, app: app, shop: shop, now: now}
	for _, step := range []func(){r.payments, r.addresses, r.payouts, r.lists, r.transfers, r.wallets, r.lines, r.overview, r.taken, r.suspense, r.outbox} {
		if step(); r.err != nil {
			return r.err
		}
	}
	r.books(store)
	return r.err
}

// pages reads a list to its end.
func pages[T any](r *reader, list func(offset int) ([]T, error)) (out []T) {
	for r.err == nil {
		var next []T
		if next, r.err = list(len(out)); len(next) == 0 {
			break
		}
		if out = append(out, next...); len(next) < page {
			break
		}
	}
	return out
}

func (r *reader) payments() {
	all := pages(r, func(offset int) ([]payment.Payment, error) {
		next, count, total, err := r.app.Payments.List(r.ctx, r.shop.ID, payment.Filter{Limit: page, Offset: offset})
		if r.shop.Counts.Payments = total; count != total {
			r.shop.Counts.Payments = -1
		}
		return next, err
	})
	for len(all) > 0 && r.err == nil {
		some := all[:min(page, len(all))]
		all = all[len(some):]
		var done []payment.Progress
		if r.err == nil {
			done, r.err = r.app.Payments.Progress(r.ctx, r.shop.ID, some)
		}
		if r.err != nil {
			return
		}
		for i := range some {
			v := payView(&some[i], done[i])
			r.deposits(&v)
			r.shop.Payments = append(r.shop.Payments, v)
		}
	}
}

func payView(p *payment.Payment, g payment.Progress) Payment {
	return Payment{
		ID: p.ID, Status: string(p.Status), Coin: p.Currency, Address: p.Address, Wallet: p.Wallet, Tx: p.Tx,
		Due: int64(p.Due), Received: int64(p.Received), Net: int64(p.Net), Platform: int64(p.Platform), Network: int64(p.NetworkTaken),
		Quoted: int64(p.NetworkFee), Rate: p.Rate, Percent: p.FeePercent, Price: p.Price, ByUser: p.FeeByUser, Fixed: p.FixedRate,
		Cancelled: p.Cancelled, Value: p.MerchantReceived(), Created: p.CreatedAt, Expires: p.ExpiresAt,
		ShownReceived: int64(g.Received), ShownPending: int64(g.Pending), ShownShort: int64(g.Missing),
		Tolerance: int64(p.Tolerance), Type: string(p.Type), AddressID: p.AddressID, OrderID: p.OrderID,
	}
}

func (r *reader) addresses() {
	for _, a := range pages(r, func(offset int) ([]payment.PermanentAddress, error) {
		next, _, err := r.app.Payments.PermanentAddresses(r.ctx, r.shop.ID, payment.AddressFilter{Limit: page, Offset: offset})
		return next, err
	}) {
		r.shop.Addresses = append(r.shop.Addresses, Address{
			Shop: r.shop.ID, ID: a.ID, Network: a.Network, Address: a.Address, ExternalID: a.ExternalID, Wallet: a.Wallet,
		})
	}
}

func (r *reader) deposits(p *Payment) {
	var all []payment.Deposit
	all, r.err = r.app.Payments.Deposits(r.ctx, r.shop.ID, p.ID)
	for i := range all {
		d := &all[i]
		p.Deposits = append(p.Deposits, Deposit{
			ID: d.ID, Tx: d.Tx, Amount: int64(d.Amount), Net: int64(d.Net),
			Final: d.State == incoming.Final, Gone: d.State == incoming.Gone || d.GivenUp, Credited: d.Booking == payment.InWallet,
		})
	}
}

func (r *reader) payouts() {
	for _, p := range pages(r, func(offset int) ([]withdrawal.Withdrawal, error) {
		next, total, err := r.app.Withdrawals.List(r.ctx, r.shop.ID, withdrawal.Filter{Limit: page, Offset: offset})
		r.shop.Counts.Payouts = total
		return next, err
	}) {
		r.shop.Payouts = append(r.shop.Payouts, payoutView(&p))
	}
}

func payoutView(p *withdrawal.Withdrawal) Payout {
	return Payout{
		ID: p.ID, Status: string(p.Status), Coin: p.Currency, Address: p.Address, CustomID: p.CustomID, Wallet: p.Wallet, Tx: p.Tx,
		Requested: int64(p.Requested), Amount: int64(p.Amount), Platform: int64(p.PlatformFee), Network: int64(p.NetworkFee),
		Reason: p.WaitingReason(), Since: p.WaitingSince, Created: p.CreatedAt, Completed: p.CompletedAt,
	}
}

// lists reads the lists of payouts whose ids are known.
func (r *reader) lists() {
	for i := range r.shop.Lists {
		l := &r.shop.Lists[i]
		p, err := r.app.Withdrawals.Payout(r.ctx, r.shop.ID, l.ID)
		if errors.Is(err, withdrawal.ErrNotFound) {
			continue
		}
		if r.err = err; err != nil {
			return
		}
		for k := range p.Withdrawals {
			l.Lines = append(l.Lines, payoutView(&p.Withdrawals[k]))
		}
		l.Count = map[string]int{}
		for status, n := range p.Counts() {
			l.Count[string(status)] = n
		}
	}
}

func (r *reader) transfers() {
	for _, t := range pages(r, func(offset int) ([]wallet.Transfer, error) {
		next, _, err := r.app.Wallets.TransferHistory(r.ctx, r.shop.ID, wallet.TransferFilter{Limit: page, Offset: offset})
		return next, err
	}) {
		r.shop.Transfers = append(r.shop.Transfers, Transfer{
			ID: t.ID, Status: string(t.Status), Direction: string(t.Direction), Wallet: t.Wallet, Coin: t.Currency, Amount: int64(t.Amount),
		})
	}
}

func (r *reader) wallets() {
	subs, _, err := r.app.Wallets.List(r.ctx, r.shop.ID, 0, 0)
	if r.err = err; err != nil {
		return
	}
	ids := []string{wallet.Master}
	for i := range subs {
		ids = append(ids, subs[i].ID)
	}
	balances, err := r.app.Wallets.Balances(r.ctx, r.shop.ID, ids...)
	if r.err = err; err != nil {
		return
	}
	for _, id := range ids {
		w := Wallet{ID: id, Balances: map[string]Balance{}}
		for _, b := range balances[id] {
			w.Balances[b.Currency] = Balance{int64(b.Amount), int64(b.Pending), int64(b.Available)}
		}
		for _, e := range pages(r, func(offset int) ([]wallet.HistoryEntry, error) {
			next, count, err := r.app.Wallets.History(r.ctx, r.shop.ID, wallet.HistoryFilter{Wallet: id, Limit: page, Offset: offset})
			w.Count = count
			return next, err
		}) {
			w.History = append(w.History, Entry{Coin: e.Currency, Kind: string(e.Type), Ref: e.Ref, Amount: int64(e.Amount), After: int64(e.BalanceAfter)})
		}
		r.shop.Wallets = append(r.shop.Wallets, w)
	}
}

func (r *reader) lines() {
	for number := 1; r.err == nil; number++ {
		next, count, err := r.app.Reports.Transactions(r.ctx, r.shop.ID, report.Filter{Page: number, PageSize: page})
		r.err, r.shop.Counts.Lines = err, count
		for i := range next {
			t := &next[i]
			r.shop.Lines = append(r.shop.Lines, Line{
				ID: t.ID, Kind: t.Kind, Status: t.Status, Coin: string(t.Currency), Reference: t.Reference,
				Amount: int64(t.Amount), Fee: int64(t.Fee), Net: int64(t.Net),
			})
		}
		if len(next) < page {
			return
		}
	}
}

func (r *reader) overview() {
	o, err := r.app.Wallets.Overview(r.ctx, r.shop.ID)
	if r.err = err; err != nil {
		return
	}
	c := &r.shop.Counts
	c.Deposits, c.Withdrawals, c.SubWallet = o.Statistics.Deposits, o.Statistics.Withdrawals, o.Statistics.SubAccounts
	r.shop.Overview = map[string]Total{}
	for i := range o.SubAccounts {
		r.shop.Overview[o.SubAccounts[i].Currency] = Total{int64(o.SubAccounts[i].Total), int64(o.SubAccounts[i].Pending)}
	}
	stats, err := r.app.Reports.Stats(r.ctx, r.shop.ID, report.StatsFilter{From: r.now.Add(-period), Before: r.now.Add(period)})
	if r.err = err; err != nil {
		return
	}
	c.StatPayments, c.StatPayouts = map[string]int64{}, map[string]int64{}
	for status, v := range stats.Payments.ByStatus {
		c.StatPayments[status] = v.Count
	}
	for status, v := range stats.Withdrawals.ByStatus {
		c.StatPayouts[status] = v.Count
	}
	fees, err := r.app.Wallets.PlatformFees(r.ctx, r.shop.ID)
	r.err, r.shop.Earned = err, map[string]int64{}
	for _, f := range fees {
		r.shop.Earned[f.Currency] = int64(f.Amount)
	}
}

func (r *reader) taken() {
	for _, p := range pages(r, func(offset int) ([]money.Payment, error) {
		return r.app.Operate.HousePayments(r.ctx, r.shop.ID, page, offset)
	}) {
		r.shop.Taken = append(r.shop.Taken, Taken{ID: p.ID, Status: string(p.Status), Coin: p.Currency, Address: p.Address, Amount: int64(p.Amount)})
	}
}

func (r *reader) suspense() {
	for _, d := range pages(r, func(offset int) ([]payment.Deposit, error) {
		return r.app.Payments.Suspense(r.ctx, r.shop.ID, page, offset)
	}) {
		r.shop.Suspense = append(r.shop.Suspense, Suspended{ID: d.ID, Coin: d.Currency, Address: d.Address, Tx: d.Tx, Reason: d.SuspenseReason(), Amount: int64(d.Amount)})
	}
}

// outbox reads the webhooks that wait or were given up.
func (r *reader) outbox() {
	all := []webhook.Status{webhook.StatusPending, webhook.StatusFailed}
	if r.shop.Verified {
		all = append(all, webhook.StatusDelivered)
	}
	for _, status := range all {
		for _, row := range pages(r, func(offset int) ([]storage.Row, error) {
			return r.app.Webhooks.List(r.ctx, r.shop.ID, status, page, offset)
		}) {
			e := webhook.Events.Value(row)
			l := Letter{
				ID: row.ID, Object: e.Object, Body: e.Body, Seq: e.Seq, Attempts: e.Attempts, Failed: status == webhook.StatusFailed,
				Done: status == webhook.StatusDelivered, Created: e.Created, Next: row.Due, Ended: e.Done, Error: e.Error,
			}
			if l.Done {
				r.shop.Sent = append(r.shop.Sent, l)
			} else {
				r.shop.Outbox = append(r.shop.Outbox, l)
			}
		}
	}
}

// merging takes out of Shop.Aside what is set aside for merges of small coins that are on their
// way: they are made at any time, and no view shows them.
func (r *reader) merging(store storage.Store, part storage.Partition) error {
	rows, err := store.Find(r.ctx, storage.Query{Table: treasury.Reservations.Table, Partition: part, Limit: 1000, Where: []storage.Cond{
		{Column: storage.ColID, Op: storage.Gt, Value: "merge/early/"}, {Column: storage.ColID, Op: storage.Lt, Value: "merge/early0"},
	}})
	for _, row := range rows {
		v := treasury.Reservations.Value(row)
		order, _, _, failed := outgoing.Intents.One(r.ctx, store, storage.Network(v.Asset), row.ID)
		err = errors.Join(err, failed)
		if v.Open && slices.Contains([]outgoing.State{outgoing.Queued, outgoing.Waiting, outgoing.Signed, outgoing.Executed}, order.State) {
			r.shop.Aside[v.Asset] -= int64(v.Amount)
		}
	}
	return err
}

// books reads what the ledger says that is owed, held, and refunded.
func (r *reader) books(store storage.Store) {
	part := storage.Tenant(r.shop.ID)
	all, err := store.Balances(r.ctx, part)
	r.shop.Books, r.shop.Aside = map[string]Booked{}, map[string]int64{}
	floats, err2 := store.Find(r.ctx, storage.Query{Table: treasury.GasFloats.Table, Partition: part, Limit: page})
	for _, row := range floats {
		r.shop.Aside[row.ID] = int64(treasury.GasFloats.Value(row).Reserved)
	}
	err = errors.Join(err, err2, r.merging(store, part))
	r.shop.Owed, r.shop.Held, r.shop.Left = map[string]int64{}, map[string]int64{}, map[string]int64{}
	if r.err = err; err != nil {
		return
	}
	const chains, receivables = "chain/", "receivable/"
	for _, b := range all {
		name := string(b.Account)
		r.shop.Books[name+"/"+string(b.Asset)] = Booked{int64(b.Posted), int64(b.Held)}
		switch {
		case len(name) > len(chains) && name[:len(chains)] == chains:
			r.shop.Held[name[len(chains):]+"/"+string(b.Asset)] = -int64(b.Posted)
		case b.Account.Owed():
			r.shop.Owed[name[len(receivables):]+"/"+string(b.Asset)] = int64(b.Posted)
		case b.Account == ledger.Suspense && b.Seq > 0:
			r.refunded(store, part, b)
		}
	}
}

// refunded adds up what people paid back out of suspense.
func (r *reader) refunded(store storage.Store, part storage.Partition, b ledger.Balance) {
	entries, err := store.Entries(r.ctx, part, b.Account, b.Asset, 0, int(b.Seq))
	r.err = err
	for _, e := range entries {
		if e.Kind == ledger.KindRefund {
			r.shop.Left[string(b.Asset)] -= int64(e.Delta)
		}
	}
}
