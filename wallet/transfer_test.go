package wallet_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/fsm/fsmtest"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

func TestMachine(t *testing.T) {
	t.Parallel()
	fsmtest.Walk(t, wallet.TransferMachine(), "testdata/machine.golden", "MACHINE.md")
}

// transfer to_sub / to_master 10, settled when it is accepted: H +10 on the source, and
// in the same Change H −10, source −10, target +10.
func TestGoldenTransfer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.sub("a")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "100")
	out := w.transfer(wallet.ToSub, "a", "10")
	require.Equal(t, "90/0 10/0", w.has(wallet.Master)+" "+w.has(v.ID))
	w.advance(time.Second)
	back := w.transfer(wallet.ToMaster, v.ID, "10")
	require.Equal(t, "100/0 0/0", w.has(wallet.Master)+" "+w.has(v.ID))

	done, err := w.Transfer(w.ctx, tenant, out.ID)
	require.NoError(t, err)
	require.Equal(t, done, out, "what CreateTransfer returns is what is stored")
	require.Equal(t, []any{wallet.TransferCompleted, w.clock().Add(-time.Second), v.ID, "a"}, []any{done.Status, done.CompletedAt, done.Wallet, done.ExternalID})
	events := w.events(out.ID)
	require.Len(t, events, 1)
	require.JSONEq(t, `{"event":"transfer_status_update","timestamp":"2026-11-20T10:00:00.000Z","data":{
		"transfer_id":"`+out.ID+`","wallet_id":"`+v.ID+`","external_id":"a","transfer_type":"to_sub","currency":"USDTTRC20",
		"amount":"10.00000000","status":"completed","error":null,"callback_url":null,"created_at":"2026-11-20T10:00:00.000Z",
		"updated_at":"2026-11-20T10:00:00.000Z","completed_at":"2026-11-20T10:00:00.000Z","previous_status":"pending"}}`, events[0].Body)
	require.Len(t, w.events(back.ID), 1)
	entries, _, err := w.History(w.ctx, tenant, wallet.HistoryFilter{})
	require.NoError(t, err)
	require.Len(t, entries, 3, "one entry per transfer beside the deposit")
	n, err := w.Step(w.ctx)
	require.NoError(t, err)
	require.Zero(t, n, "nothing is left to a worker")
}

// A transfer that an earlier version accepted is pending and held; Step settles it.
func TestTransferThatWasLeftPending(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.sub("a")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "100")
	transfer := w.accepted(wallet.ToSub, v, "10")
	require.Equal(t, "100/10 none", w.has(wallet.Master)+" "+w.has(v.ID))
	require.ErrorIs(t, w.Delete(w.ctx, tenant, v.ID), wallet.ErrNotEmpty)
	w.advance(time.Second)
	w.step()
	require.Equal(t, "90/0 10/0", w.has(wallet.Master)+" "+w.has(v.ID))
	done, err := w.Transfer(w.ctx, tenant, transfer.ID)
	require.NoError(t, err)
	require.Equal(t, []any{wallet.TransferCompleted, w.clock(), int64(1)}, []any{done.Status, done.CompletedAt, done.Seq})
	events := w.events(transfer.ID)
	require.Len(t, events, 1)
	require.Contains(t, events[0].Body, `"status":"completed"`)
	require.Contains(t, events[0].Body, `"previous_status":"pending"`)
}

func TestTransferErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sub("a")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "10")
	create := func(d wallet.Direction, ref, code, amount string) error {
		_, err := w.CreateTransfer(w.ctx, tenant, wallet.TransferInput{Direction: d, WalletID: ref, Currency: code, Amount: dec(amount)})
		return err
	}
	var bad *wallet.InvalidError
	for _, amount := range []string{"0", "-1", "0.0000001", "9223372036855"} {
		require.ErrorAs(t, create(wallet.ToSub, "a", usdt, amount), &bad, amount)
		require.Contains(t, bad.Fields, "amount")
	}
	require.ErrorAs(t, create("", "", "", "0"), &bad)
	require.Len(t, bad.Fields, 4)
	require.ErrorIs(t, create(wallet.ToSub, "a", "XXX", "1"), chain.ErrCurrency)
	require.ErrorIs(t, create(wallet.ToSub, "b", usdt, "1"), wallet.ErrNotFound)
	var short *wallet.InsufficientError
	require.ErrorAs(t, create(wallet.ToSub, "a", usdt, "10.5"), &short)
	require.Equal(t, "10 10.5", short.Available.String()+" "+short.Requested.String())
	require.ErrorAs(t, create(wallet.ToMaster, "a", usdt, "1"), &short)
	require.Equal(t, "10/0", w.has(wallet.Master))
}

func TestI01_NumberBombs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sub("a")
	start := time.Now()
	for _, d := range []decimal.Decimal{decimal.New(1, 1<<30), decimal.New(1, -1<<30)} {
		_, err := w.CreateTransfer(w.ctx, tenant, wallet.TransferInput{Direction: wallet.ToSub, WalletID: "a", Currency: usdt, Amount: d})
		var bad *wallet.InvalidError
		require.ErrorAs(t, err, &bad)
	}
	require.Less(t, time.Since(start), time.Second)
}

// The target goes while a transfer to it is on its way: the hold comes back.
func TestTransferToAWalletThatWasDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.sub("a")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "10")
	transfer := w.accepted(wallet.ToSub, v, "10")
	_, row, ok, err := wallet.WalletRows.One(w.ctx, w.store, storage.Tenant(tenant), v.ID)
	require.NoError(t, err)
	require.True(t, ok)
	v.Closed, v.Key = true, "-"
	require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "close", Partition: storage.Tenant(tenant), Put: []storage.Row{wallet.WalletRows.Row(v.ID, row.Version, time.Time{}, v)},
	}))
	w.step()
	got, err := w.Transfer(w.ctx, tenant, transfer.ID)
	require.NoError(t, err)
	require.Equal(t, wallet.TransferFailed, got.Status)
	require.NotEmpty(t, got.Error)
	require.True(t, got.CompletedAt.IsZero())
	require.Equal(t, "10/0", w.has(wallet.Master))
	require.Len(t, w.events(transfer.ID), 1)
}

func TestW11_ConcurrentTransfers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.sub("a")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "100")
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 50 {
		wg.Go(func() {
			_, err := w.CreateTransfer(w.ctx, tenant, wallet.TransferInput{Direction: wallet.ToSub, WalletID: "a", Currency: usdt, Amount: dec("10")})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else {
				var short *wallet.InsufficientError
				require.ErrorAs(t, err, &short)
			}
		})
		wg.Go(func() { _, _ = w.Step(w.ctx) })
	}
	wg.Wait()
	w.advance(time.Minute)
	w.step()
	require.Equal(t, 10, won)
	require.Equal(t, "0/0 100/0", w.has(wallet.Master)+" "+w.has(v.ID))
}

func TestTransferOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sub("a")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "100")
	in := wallet.TransferInput{Direction: wallet.ToSub, ExternalID: "a", Currency: usdt, Amount: dec("10"), Key: "k"}
	first, err := w.CreateTransfer(w.ctx, tenant, in)
	require.NoError(t, err)
	w.step()
	again, err := w.CreateTransfer(w.ctx, tenant, in)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	again.Replayed = false
	require.Equal(t, first, again)
	require.Equal(t, "90/0", w.has(wallet.Master))
}

// The same request comes again while the first is under way: it is told so, and nothing is
// held for it.
func TestTransferOnceWhileTheFirstIsUnderWay(t *testing.T) {
	t.Parallel()
	store := &forgetful{Store: memory.New()}
	w := newWorldOn(t, store)
	w.sub("a")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "100")
	in := wallet.TransferInput{Direction: wallet.ToSub, ExternalID: "a", Currency: usdt, Amount: dec("10"), Key: "k"}
	store.before = func() {
		_, err := w.CreateTransfer(w.ctx, tenant, in)
		require.ErrorIs(t, err, storage.ErrInProgress)
	}
	_, err := w.CreateTransfer(w.ctx, tenant, in)
	require.NoError(t, err)
	require.Nil(t, store.before)
	require.Equal(t, "90/0", w.has(wallet.Master))
}

// Every answer of the store is lost once, and a stranger renames the target
// meanwhile: nothing happens twice, nothing is left.
func TestTransferThroughTrouble(t *testing.T) {
	t.Parallel()
	store := &forgetful{Store: memory.New()}
	w := newWorldOn(t, store)
	v := w.sub("a")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "100")
	store.forgets = true
	rename := func() {
		_, err := w.Rename(w.ctx, tenant, v.ID, "other")
		require.NoError(t, err)
	}
	store.before = rename
	transfer := w.transfer(wallet.ToSub, "a", "10")
	require.Equal(t, "90/0 10/0", w.has(wallet.Master)+" "+w.has(v.ID))
	require.Len(t, w.events(transfer.ID), 1)
	require.Equal(t, wallet.TransferCompleted, transfer.Status)
	older := w.accepted(wallet.ToSub, v, "10")
	store.before = rename
	w.step()
	require.Equal(t, "80/0 20/0", w.has(wallet.Master)+" "+w.has(v.ID))
	require.Len(t, w.events(older.ID), 1)
}

type forgetful struct {
	storage.Store
	forgets bool
	last    string
	before  func()
}

func (f *forgetful) Commit(ctx context.Context, changes ...storage.Change) []error {
	if len(changes) == 0 {
		return nil
	}
	if run := f.before; run != nil {
		f.before = nil
		run()
	}
	errs := f.Store.Commit(ctx, changes...)
	for i, err := range errs {
		if errors.Is(err, storage.ErrConflict) { // a store may say more
			errs[i] = fmt.Errorf("change %s: %w", changes[i].ID, err)
		}
	}
	if f.forgets && errs[0] == nil && f.last != changes[0].ID {
		f.last = changes[0].ID
		errs[0] = errors.New("connection reset")
	}
	return errs
}

func TestTransferHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.sub("a"), w.sub("b")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "100")
	first := w.transfer(wallet.ToSub, "a", "1")
	w.step()
	w.advance(time.Second)
	second := w.transfer(wallet.ToMaster, "a", "1")
	w.advance(time.Second)
	third := w.accepted(wallet.ToSub, b, "1")
	for name, c := range map[string]struct {
		f    wallet.TransferFilter
		want []string
	}{
		"all":       {wallet.TransferFilter{}, []string{third.ID, second.ID, first.ID}},
		"wallet":    {wallet.TransferFilter{Wallet: a.ID}, []string{second.ID, first.ID}},
		"other":     {wallet.TransferFilter{Wallet: b.ID, Currency: usdt}, []string{third.ID}},
		"status":    {wallet.TransferFilter{Status: wallet.TransferCompleted}, []string{second.ID, first.ID}},
		"direction": {wallet.TransferFilter{Direction: wallet.ToMaster}, []string{second.ID}},
		"page":      {wallet.TransferFilter{Limit: 1, Offset: 1}, []string{second.ID}},
		"currency":  {wallet.TransferFilter{Currency: "BTC"}, []string{}},
	} {
		list, _, err := w.TransferHistory(w.ctx, tenant, c.f)
		require.NoError(t, err, name)
		got := []string{}
		for _, v := range list {
			got = append(got, v.ID)
		}
		require.Equal(t, c.want, got, name)
	}
	var bad *wallet.InvalidError
	_, _, err := w.TransferHistory(w.ctx, tenant, wallet.TransferFilter{Status: "x", Direction: "x", Currency: "x", Limit: 101, Offset: -1})
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Fields, 5)
	_, err = w.Transfer(w.ctx, "t2", first.ID)
	require.ErrorIs(t, err, wallet.ErrNotFound)
}

// History: newest first over all currencies, each |amount| the step of the
// balance, holds not shown.
func TestHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.sub("a")
	for i := range 450 {
		code := usdt
		if i%3 == 0 {
			code = "BTC"
		}
		w.post(ledger.KindDeposit, wallet.Master, code, "1")
		w.advance(time.Second)
	}
	w.transfer(wallet.ToSub, "a", "5")
	w.step()
	w.advance(time.Second)
	w.transfer(wallet.ToMaster, "a", "2")
	w.step()

	page, total, err := w.History(w.ctx, tenant, wallet.HistoryFilter{})
	require.NoError(t, err)
	require.EqualValues(t, 452, total)
	require.Len(t, page, 50)
	require.Equal(t, []ledger.Kind{ledger.KindTransferIn, ledger.KindTransferOut}, []ledger.Kind{page[0].Type, page[1].Type})
	require.Equal(t, []string{"2", "-5", "297"}, []string{short(page[0].Amount), short(page[1].Amount), short(page[0].BalanceAfter)})

	var all []wallet.HistoryEntry
	for offset := 0; offset < 500; offset += 100 {
		page, _, err := w.History(w.ctx, tenant, wallet.HistoryFilter{Limit: 100, Offset: offset})
		require.NoError(t, err)
		all = append(all, page...)
	}
	require.Len(t, all, 452)
	before := map[string]ledger.Amount{}
	for i := len(all) - 1; i >= 0; i-- {
		e := all[i]
		require.Equal(t, before[e.Currency]+e.Amount, e.BalanceAfter)
		before[e.Currency] = e.BalanceAfter
		if i > 0 {
			require.False(t, all[i-1].At.Before(e.At))
		}
	}
	page, total, err = w.History(w.ctx, tenant, wallet.HistoryFilter{Currency: usdt, Limit: 1, Offset: 301})
	require.NoError(t, err)
	require.EqualValues(t, 302, total)
	require.Equal(t, "1", short(page[0].BalanceAfter))
	page, total, err = w.History(w.ctx, tenant, wallet.HistoryFilter{Currency: usdt, Offset: 302})
	require.NoError(t, err)
	require.EqualValues(t, 302, total)
	require.Empty(t, page)
	page, total, err = w.History(w.ctx, tenant, wallet.HistoryFilter{Type: ledger.KindTransferOut})
	require.NoError(t, err)
	require.EqualValues(t, 1, total)
	require.Equal(t, "-5", short(page[0].Amount))

	var bad *wallet.InvalidError
	_, _, err = w.History(w.ctx, tenant, wallet.HistoryFilter{Type: "x", Currency: "x", Limit: 101, Offset: -1})
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Fields, 4)
}

func TestOverview(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.sub("a"), w.sub("b")
	w.sub("c")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "100")
	w.post(ledger.KindDeposit, a.ID, usdt, "5")
	w.post(ledger.KindDeposit, b.ID, usdt, "6")
	w.post(ledger.KindDeposit, b.ID, "BTC", "1")
	w.accepted(wallet.ToMaster, b, "2")
	now := w.clock()
	for id, kind := range map[string]string{"p": storage.ActivityPayment, "x": storage.ActivityWithdrawal} {
		require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{ID: id, Partition: storage.Tenant(tenant), Put: []storage.Row{
			storage.Activities.Row(id, 0, time.Time{}, storage.Activity{Kind: kind, Status: "completed", CreatedAt: now}),
		}}))
	}
	o, err := w.Overview(w.ctx, tenant)
	require.NoError(t, err)
	require.Len(t, o.Account, 1)
	require.Equal(t, []string{"BTC", usdt}, []string{o.SubAccounts[0].Currency, o.SubAccounts[1].Currency})
	sub := o.SubAccounts[1]
	require.Equal(t, "11 2", short(sub.Total)+" "+short(sub.Pending))
	require.Equal(t, []string{a.ID, b.ID}, []string{sub.Accounts[0].Wallet.ID, sub.Accounts[1].Wallet.ID})
	require.Equal(t, "4", short(sub.Accounts[1].Available))
	require.Equal(t, wallet.Statistics{Currencies: 2, SubAccounts: 3, Deposits: 1, Withdrawals: 1}, o.Statistics)
}
