package cryptopay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/refund"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/tally"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// shown is every count, total and statistic that the interface shows of the tenant, by
// filter, and the ids of deep pages.
func (h *host) shown() string {
	h.t.Helper()
	ctx, out := h.t.Context(), &strings.Builder{}
	say := func(err error, v ...any) {
		h.t.Helper()
		require.NoError(h.t, err)
		fmt.Fprintln(out, v...)
	}
	currencies, networks, tokens := []string{"", "ETH", "USDTERC20", "USDCERC20"}, []string{"", "ETH"}, []string{"", "ETH", "USDT"}
	at := h.clock.Now()
	day := at.Truncate(24 * time.Hour)
	times := []struct{ from, before time.Time }{
		{},
		{from: at.Add(-26 * time.Hour)},
		{before: at.Add(-5 * time.Hour)},
		{at.Add(-40 * time.Hour), at.Add(-2 * time.Hour)},
		{day.Add(-23 * time.Hour), day.Add(23 * time.Hour)},
		{day.Add(-48 * time.Hour), day},
		{day.Add(time.Hour), day.Add(20 * time.Hour)},
		{at, at.Add(-time.Hour)},
	}
	for _, currency := range currencies {
		for _, network := range networks {
			for _, token := range tokens {
				for _, status := range append([]string{""}, "waiting", "confirming", "confirmed", "sending", "completed", "expired", "failed") {
					_, count, total, err := h.app.Payments.List(ctx, h.tenant, payment.Filter{Status: payment.Status(status), Currency: currency, Blockchain: network, Token: token})
					say(err, "payments", status, currency, network, token, count, total)
				}
				for _, status := range append([]withdrawal.Status{""}, withdrawal.Statuses()...) {
					for _, when := range times {
						_, count, err := h.app.Withdrawals.List(ctx, h.tenant, withdrawal.Filter{
							Status: status, Currency: currency, Blockchain: network, Token: token, From: when.from, Before: when.before,
						})
						say(err, "withdrawals", status, currency, network, token, when, count)
					}
				}
			}
		}
		for _, status := range append([]string{""}, report.Statuses()...) {
			for _, kind := range []string{"", storage.ActivityPayment, storage.ActivityWithdrawal} {
				for _, when := range times {
					lines, count, err := h.app.Reports.Transactions(ctx, h.tenant, report.Filter{
						Type: kind, Status: status, Currency: currency, From: when.from, Before: when.before, Page: 2, PageSize: 3,
					})
					say(err, "transactions", kind, status, currency, when, count)
					for _, l := range lines {
						say(nil, l.ID)
					}
				}
			}
		}
		for _, when := range times {
			s, err := h.app.Reports.Stats(ctx, h.tenant, report.StatsFilter{From: when.from, Before: when.before, Currency: currency})
			say(err, "stats", currency, when)
			for _, side := range []report.StatsSide{s.Payments, s.Withdrawals} {
				say(nil, side.Count, side.USD)
				for _, status := range report.Statuses() {
					say(nil, status, side.ByStatus[status].Count, side.ByStatus[status].USD)
				}
			}
			for _, c := range s.Currencies {
				say(nil, c.Currency, c.Payments.Count, c.Payments.Amount, c.Payments.USD, c.Withdrawals.Count, c.Withdrawals.Amount, c.Withdrawals.USD)
			}
		}
		subs, _, err := h.app.Wallets.List(ctx, h.tenant, 0, 0)
		require.NoError(h.t, err)
		wallets := []string{""}
		for _, w := range subs {
			wallets = append(wallets, w.ID)
		}
		for _, of := range wallets {
			for _, status := range append([]wallet.TransferStatus{""}, wallet.TransferStatuses()...) {
				for _, to := range []wallet.Direction{"", wallet.ToSub, wallet.ToMaster} {
					_, count, err := h.app.Wallets.TransferHistory(ctx, h.tenant, wallet.TransferFilter{Wallet: of, Status: status, Direction: to, Currency: currency})
					say(err, "transfers", of, status, to, currency, count)
				}
			}
			for _, kind := range []ledger.Kind{
				"", ledger.KindDeposit, ledger.KindWithdrawal, ledger.KindTransferIn, ledger.KindTransferOut, ledger.KindFee, ledger.KindRefund, ledger.KindAdjustment,
			} {
				page, count, err := h.app.Wallets.History(ctx, h.tenant, wallet.HistoryFilter{Wallet: of, Currency: currency, Type: kind, Limit: 7, Offset: 2})
				say(err, "history", of, currency, kind, count, page)
			}
		}
	}
	for _, status := range append([]webhook.Status{""}, webhook.Statuses()...) {
		for _, typ := range append([]string{""}, webhook.EventTypes()...) {
			page, count, err := h.app.Webhooks.Log(ctx, h.tenant, webhook.LogFilter{Status: status, Type: typ, Limit: 3, Offset: 5})
			say(err, "deliveries", status, typ, count)
			for _, l := range page {
				say(nil, l.ID)
			}
		}
	}
	for _, status := range append([]refund.Status{""}, refund.Statuses()...) {
		for _, when := range times {
			_, count, err := h.app.Refunds.List(ctx, h.tenant, refund.Filter{Status: status, From: when.from, Before: when.before})
			say(err, "refunds", status, when, count)
		}
	}
	o, err := h.app.Wallets.Overview(ctx, h.tenant)
	say(err, "overview", o.Statistics)
	for _, offset := range []int{1000, 1500, 1990, 2390, 3000} {
		list, _, _, err := h.app.Payments.List(ctx, h.tenant, payment.Filter{Offset: offset, Limit: 10})
		say(err, "payments from", offset)
		for _, p := range list {
			say(nil, p.Address)
		}
		for _, when := range times {
			for _, f := range []report.Filter{{}, {Status: "completed"}, {Currency: "ETH"}, {Type: storage.ActivityPayment}, {Type: storage.ActivityWithdrawal, Status: "completed"}} {
				f.Page, f.PageSize, f.From, f.Before = offset/10+1, 10, when.from, when.before
				lines, _, err := h.app.Reports.Transactions(ctx, h.tenant, f)
				say(err, "transactions from", offset, when, f.Type, f.Status, f.Currency)
				for _, l := range lines {
					say(nil, l.ID)
				}
			}
		}
	}
	return out.String()
}

// live does random things to the tenant's payments, withdrawals and transfers, over days.
func (h *host) live(seed uint64, acts int) {
	h.t.Helper()
	ctx, random := h.t.Context(), rand.New(rand.NewPCG(seed, seed))
	var subs []string
	for i := range 3 {
		w, err := h.app.Wallets.Create(ctx, h.tenant, wallet.CreateInput{Name: fmt.Sprint("sub", i), ExternalID: fmt.Sprint("sub", i)})
		require.NoError(h.t, err)
		subs = append(subs, w.ID)
	}
	h.float("ETH", "3")
	for _, currency := range []string{"ETH", "USDTERC20"} {
		p := h.create("500", currency)
		c, err := h.app.Config().Registry.Currency(currency)
		require.NoError(h.t, err)
		h.pay(p, currency, c.Decimal(p.Due))
	}
	h.mine(20)
	var open []payment.Payment
	for range acts {
		currency := []string{"ETH", "USDTERC20"}[random.IntN(2)]
		switch random.IntN(8) {
		case 0, 1:
			open = append(open, h.create(fmt.Sprint(20+random.IntN(90)), currency))
		case 2:
			if len(open) > 0 {
				p := open[random.IntN(len(open))]
				c, err := h.app.Config().Registry.Currency(p.Currency)
				require.NoError(h.t, err)
				h.pay(p, p.Currency, c.Decimal(p.Due).Mul(decimal.New(int64(4+random.IntN(10)), -1)).Truncate(int32(c.Scale)))
			}
		case 3:
			if len(open) > 0 && random.IntN(3) == 0 {
				_, _ = h.app.Payments.Cancel(ctx, h.tenant, open[random.IntN(len(open))].ID) // some are paid
			}
		case 4:
			if id := h.withdraw(fmt.Sprint(20+random.IntN(20)), currency); id != "" && random.IntN(3) == 0 {
				_, _ = h.app.Withdrawals.Cancel(ctx, h.tenant, id) // some are sent
			}
		case 5:
			in := wallet.TransferInput{Direction: wallet.ToSub, WalletID: subs[random.IntN(3)], Currency: currency, Amount: decimal.New(int64(1+random.IntN(30)), -3)}
			if random.IntN(3) == 0 {
				in.Direction = wallet.ToMaster
			}
			_, _ = h.app.Wallets.CreateTransfer(ctx, h.tenant, in) // some have not enough
		case 6:
			h.clock.Advance(time.Duration(random.IntN(300)) * time.Minute)
			h.mine(1 + random.IntN(15))
		case 7:
			paid, _, _, err := h.app.Payments.List(ctx, h.tenant, payment.Filter{Status: payment.Completed})
			require.NoError(h.t, err)
			if len(paid) > 0 {
				amount := decimal.New(int64(1+random.IntN(40)), -3)
				in := refund.CreateInput{Payment: paid[random.IntN(len(paid))].ID, Amount: &amount}
				if random.IntN(3) > 0 {
					in.Address = string(h.chains["ETH"].Customer("customer"))
				}
				_, _ = h.app.Refunds.Create(ctx, h.tenant, in) // some ask for too much
			}
		}
	}
	h.step()
}

// What lists, statistics and filtered histories show from counters is what counting the
// rows comes to, for every filter.
func TestFP05_CountersAreWhatThereIs(t *testing.T) {
	t.Parallel()
	stores := map[string]func() storage.Store{
		"memory": func() storage.Store { return memory.New() },
		"sqlite": func() storage.Store {
			file := t.TempDir() + "/x.db"
			require.NoError(t, sqlite.Migrate(t.Context(), file))
			s, err := sqlite.Open(file, sqlite.Options{})
			require.NoError(t, err)
			return s
		},
	}
	if testing.Short() {
		delete(stores, "sqlite") // it takes minutes under the race detector
	} else {
		stores["postgres"] = func() storage.Store {
			dsn := onPostgres(t)
			s, err := postgres.Open(dsn, postgres.Options{})
			require.NoError(t, err)
			return s
		}
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			const seed = 11
			h := newHostOn(t, open(), seed, "ETH")
			h.live(seed, 60)
			h.sound()
			counted := h.shown()
			for _, kind := range []string{"payments", "withdrawals", "transfers", "refunds"} {
				require.Regexp(t, "\n"+kind+" .*completed .*[1-9]\n", counted, "seed %d", seed)
			}
			h.uncounted()
			require.Equal(t, h.shown(), counted, "seed %d", seed)
		})
	}
}

// A tenant of an earlier version is counted by rows until nobody writes without counting.
// Then the worker makes its counters, also those of pages far behind.
func TestFP05_CountersOfAnEarlierVersionAreMade(t *testing.T) {
	t.Parallel()
	h := newHost(t, 3, "ETH")
	h.history(2400)
	h.live(3, 20)
	h.forgetCounters()
	h.restart()
	byRows := h.shown()
	_, err := h.app.Recount(t.Context(), h.tenant)
	require.ErrorIs(t, err, cryptopay.ErrNotUpgraded)
	h.step()
	require.False(t, h.counted())
	require.NoError(t, h.app.Upgraded(t.Context()))
	h.restart()
	h.step()
	require.True(t, h.counted())
	h.sound()
	require.Equal(t, byRows, h.shown())
}

// forgetCounters makes the store one that an earlier version has worked on.
func (h *host) forgetCounters() {
	h.t.Helper()
	for {
		rows, err := h.store.Find(h.t.Context(), storage.Query{Table: storage.Counters.Table, Partition: storage.Tenant(h.tenant)})
		require.NoError(h.t, err)
		if len(rows) == 0 {
			break
		}
		require.NoError(h.t, storage.CommitOne(h.t.Context(), h.store, storage.Change{ID: "forget/" + rows[0].ID, Partition: storage.Tenant(h.tenant), Drop: rows}))
	}
	rows, err := h.store.Rows(h.t.Context(), cryptopay.Abilities.Table, storage.Keys(storage.System, "counters", "suspense_counters", "log_counters")...)
	require.NoError(h.t, err)
	if len(rows) > 0 {
		require.NoError(h.t, storage.CommitOne(h.t.Context(), h.store, storage.Change{ID: "forget", Partition: storage.System, Drop: rows}))
	}
}

func (h *host) counted() bool {
	h.t.Helper()
	ok, err := payment.Tally.Marked(h.t.Context(), h.store, storage.Tenant(h.tenant))
	require.NoError(h.t, err)
	return ok
}

// Verify names a counter that somebody edited, of every kind, and Recount mends it.
func TestFP05_AnEditedCounterIsFoundAndMended(t *testing.T) {
	t.Parallel()
	h := newHost(t, 5, "ETH")
	h.live(5, 60)
	h.sound()
	right := h.shown()
	rows, err := h.store.Find(t.Context(), storage.Query{Table: storage.Counters.Table, Partition: storage.Tenant(h.tenant), Limit: 1000})
	require.NoError(t, err)
	kinds := map[string]bool{}
	for i, r := range rows {
		kind, rest, _ := strings.Cut(r.ID, "/")
		if kinds[kind] || rest == "" {
			continue
		}
		kinds[kind] = true
		v, r, _, err := storage.Counters.One(t.Context(), h.store, storage.Tenant(h.tenant), r.ID)
		require.NoError(t, err)
		v.Value += 3
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
			ID: fmt.Sprint("edit/", i), Partition: storage.Tenant(h.tenant), Put: []storage.Row{storage.Counters.Row(r.ID, r.Version, time.Time{}, v)},
		}))
		report, err := h.app.VerifyTenant(t.Context(), h.tenant)
		require.NoError(t, err)
		require.False(t, report.Sound())
		require.True(t, slices.ContainsFunc(report.Counters, func(d tally.Difference) bool {
			return d.Counter == r.ID && d.Have == v.Value && d.Want == v.Value-3
		}), "%s: %v", r.ID, report.Counters)
		mended, err := h.app.Recount(t.Context(), h.tenant)
		require.NoError(t, err)
		require.NotEmpty(t, mended)
		h.sound()
		require.Equal(t, right, h.shown(), r.ID)
	}
	require.Len(t, kinds, 15, "%v", kinds)
}

// versions is a Store to which processes of two versions write: the old one does not count.
type versions struct {
	storage.Store
	random *rand.Rand
	old    bool // some Changes are the old one's
	left   int  // Changes until the process dies; below 0 = it lives
	done   bool // the one in which it dies happens
}

var errDies = errors.New("the process dies")

func (v *versions) Commit(ctx context.Context, changes ...storage.Change) []error {
	if v.left == 0 {
		errs := slices.Repeat([]error{errDies}, len(changes))
		if v.done {
			v.done = false
			v.Store.Commit(ctx, changes...)
		}
		return errs
	}
	v.left--
	changes = slices.Clone(changes)
	for i := range changes {
		if v.old && v.random.IntN(2) == 0 {
			changes[i].Count = nil
		}
	}
	return v.Store.Commit(ctx, changes...)
}

// rows is how many rows of the tenant's a table has, by status.
func (h *host) rows(t *storage.Table, status func(storage.Row) string) map[string]int64 {
	h.t.Helper()
	out := map[string]int64{}
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: t, Partition: storage.Tenant(h.tenant), Limit: 10_000})
	require.NoError(h.t, err)
	for _, r := range rows {
		out[""]++
		out[status(r)]++
	}
	return out
}

// A process of an earlier version, which does not count, beside one of this version. No
// list ever shows what the counters say, until Upgraded was called and the rows were
// counted again. The process that counts them dies at each of its writes.
func TestFP05_TwoVersionsAndACrashAtEachWriteOfRecount(t *testing.T) {
	t.Parallel()
	const seed = 18
	v := &versions{Store: memory.New(), random: rand.New(rand.NewPCG(seed, seed)), left: -1}
	h := newHostOn(t, v, seed, "ETH")
	h.forgetCounters()
	h.restart()
	v.old = true
	h.live(seed, 50)
	v.old = false
	require.False(t, h.counted())
	right := func() {
		t.Helper()
		for status, n := range h.rows(payment.Payments.Table, func(r storage.Row) string { p := payment.Payments.Value(r); return string(p.Shown()) }) {
			_, count, _, err := h.app.Payments.List(t.Context(), h.tenant, payment.Filter{Status: payment.Status(status)})
			require.NoError(t, err)
			require.Equal(t, n, count, "seed %d: payments %s", seed, status)
		}
		for status, n := range h.rows(withdrawal.Withdrawals.Table, func(r storage.Row) string { return string(withdrawal.Withdrawals.Value(r).Status) }) {
			_, count, err := h.app.Withdrawals.List(t.Context(), h.tenant, withdrawal.Filter{Status: withdrawal.Status(status)})
			require.NoError(t, err)
			require.Equal(t, n, count, "seed %d: withdrawals %s", seed, status)
		}
	}
	right()
	byRows := h.shown()
	require.NoError(t, h.app.Upgraded(t.Context()))
	require.Equal(t, byRows, h.shown(), "the ability alone makes no counter right")
	crashes := 0
	for ; !h.counted(); crashes++ {
		require.Less(t, crashes, 200)
		v.left, v.done = 1, crashes%2 == 0
		_, err := h.app.Recount(t.Context(), h.tenant)
		v.left = -1
		if err == nil {
			break
		}
		require.ErrorIs(t, err, errDies)
		h.restart()
		right()
	}
	require.Greater(t, crashes, 3)
	_, err := h.app.Recount(t.Context(), h.tenant)
	require.NoError(t, err)
	require.True(t, h.counted())
	require.Equal(t, byRows, h.shown(), "seed %d", seed)
	h.sound()
}

// Two processes find the same payments ended at the same time: each is counted once.
func TestFP05_PaymentsThatTwoWorkersExpireAreCountedOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, 19, "ETH")
	const n = 60
	h.orders(n, "ETH")
	other := h.beside(h.configure)
	h.clock.Advance(25 * time.Hour)
	h.chains["ETH"].Mine(1)
	var both errgroup.Group
	for _, app := range []*cryptopay.App{h.app, other} {
		both.Go(func() error { return app.Step(t.Context()) })
	}
	require.NoError(t, both.Wait())
	h.step()
	for status, want := range map[payment.Status]int64{payment.Expired: n, payment.Waiting: 0, "": n} {
		_, count, total, err := h.app.Payments.List(t.Context(), h.tenant, payment.Filter{Status: status})
		require.NoError(t, err)
		require.Equal(t, want, count, "%s", status)
		require.EqualValues(t, n, total)
	}
	h.sound()
}

// Somebody deletes rows: Verify names the counters that count them still, and Recount mends them.
func TestFP05_DeletedRowsAreCountedNoMore(t *testing.T) {
	t.Parallel()
	h := newHost(t, 23, "ETH")
	all := h.orders(3, "ETH")
	row, err := h.store.Rows(t.Context(), payment.Payments.Table, storage.Keys(storage.Tenant(h.tenant), all[0].ID, all[1].ID, all[2].ID)...)
	require.NoError(t, err)
	for i, left := range []int64{2, 1, 0} {
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: fmt.Sprint("delete/", i), Partition: storage.Tenant(h.tenant), Drop: row[i : i+1]}))
		report, err := h.app.VerifyTenant(t.Context(), h.tenant)
		require.NoError(t, err)
		require.NotEmpty(t, report.Counters)
		_, err = h.app.Recount(t.Context(), h.tenant)
		require.NoError(t, err)
		_, count, total, err := h.app.Payments.List(t.Context(), h.tenant, payment.Filter{Status: payment.Waiting})
		require.NoError(t, err)
		require.Equal(t, [2]int64{left, left}, [2]int64{count, total})
		report, err = h.app.VerifyTenant(t.Context(), h.tenant)
		require.NoError(t, err)
		require.Empty(t, report.Counters)
	}
}

// unreadable is a Store in which payments of one partition cannot be read.
type unreadable struct {
	storage.Store
	part storage.Partition
}

var errUnreadable = errors.New("a row cannot be read")

func (u *unreadable) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if q.Table == payment.Payments.Table && q.Partition == u.part && u.part != "" {
		return nil, errUnreadable
	}
	return u.Store.Find(ctx, q)
}

// A tenant whose rows cannot be read keeps no other tenant's counters from being made.
func TestFP05_OneTenantThatCannotBeCountedStopsNoOther(t *testing.T) {
	t.Parallel()
	u := &unreadable{Store: memory.New()}
	h := newHostOn(t, u, 37, "ETH")
	name := "another"
	other, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	first, second := min(h.tenant, other.ID), max(h.tenant, other.ID)
	for _, h.tenant = range []string{first, second} {
		h.orders(2, "ETH")
		h.forgetCounters()
	}
	h.restart()
	require.NoError(t, h.app.Upgraded(t.Context()))
	u.part = storage.Tenant(first)
	require.ErrorIs(t, h.app.Step(t.Context()), errUnreadable)
	h.tenant = second
	require.True(t, h.counted())
	u.part, h.tenant = "", first
	require.False(t, h.counted())
	h.clock.Advance(2 * time.Hour)
	h.step()
	require.True(t, h.counted())
	h.sound()
}
