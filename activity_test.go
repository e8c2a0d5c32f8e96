package cryptopay_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/report"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// finds is a store that tells what the history is asked, before it answers, and that payments
// were found, after they were.
type finds struct {
	storage.Store
	on    func(q storage.Query)
	after func()
}

func (f *finds) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if f.on != nil && q.Table == storage.Activities.Table {
		f.on(q)
	}
	rows, err := f.Store.Find(ctx, q)
	if f.after != nil && q.Table == payment.Payments.Table {
		f.after()
	}
	return rows, err
}

// uncounted makes the tenant one whose counters do not hold yet.
func (h *host) uncounted() {
	h.t.Helper()
	for _, of := range []string{"payments/", "withdrawals/", "transfers/", "entries/"} {
		rows, err := h.store.Rows(h.t.Context(), storage.Counters.Table, storage.Keys(storage.Tenant(h.tenant), of)...)
		require.NoError(h.t, err)
		if len(rows) > 0 {
			require.NoError(h.t, storage.CommitOne(h.t.Context(), h.store, storage.Change{ID: "uncounted/" + of, Partition: storage.Tenant(h.tenant), Drop: rows}))
		}
	}
}

// lines puts lines of history into the store, without the payments and withdrawals that
// they are of. So they are not counted.
func (h *host) lines(ids []string, line func(i int) storage.Activity) {
	h.t.Helper()
	h.uncounted()
	for part := range slices.Chunk(ids, 200) {
		c := storage.Change{ID: "lines/" + part[0], Partition: storage.Tenant(h.tenant)}
		for i, id := range part {
			c.Put = append(c.Put, storage.Activities.Row(id, 0, time.Time{}, line(i)))
		}
		require.NoError(h.t, storage.CommitOne(h.t.Context(), h.store, c))
	}
}

func names(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("%s-%05d", prefix, i)
	}
	return out
}

// An export gives every line once, newest first, though many lines share a
// moment and others are added while it is read; and asks for no more the
// further it gets.
func TestExportReadsByKey(t *testing.T) {
	t.Parallel()
	h := newHost(t, 1, "ETH")
	watched := &finds{Store: h.store}
	h.store = watched
	h.restart()
	now := h.clock.Now()
	line := func(at time.Time) func(int) storage.Activity {
		return func(int) storage.Activity {
			return storage.Activity{Kind: storage.ActivityPayment, Status: "waiting", Currency: "ETH", Amount: 5, Net: 5, CreatedAt: at}
		}
	}
	want := slices.Concat(names("c", 700), names("b", 1300), names("a", 1))
	h.lines(names("c", 700), line(now))
	h.lines(names("b", 1300), line(now.Add(-time.Second))) // more than two pages of one moment
	h.lines(names("a", 1), line(now.Add(-time.Minute)))

	asked := 0
	watched.on = func(q storage.Query) {
		asked++
		require.Zero(t, q.Offset)
		require.LessOrEqual(t, q.Limit, 500)
		h.lines([]string{fmt.Sprintf("new-%d", asked)}, line(now.Add(time.Duration(asked)*time.Second)))
		h.lines([]string{fmt.Sprintf("d-%d", asked)}, line(now)) // sorts before what was read of that moment
	}
	list, err := h.app.Reports.Export(t.Context(), h.tenant, report.Filter{Page: 7, PageSize: 3, Before: now.Add(time.Millisecond)})
	require.NoError(t, err)
	var got []string
	for line, err := range list {
		require.NoError(t, err)
		require.EqualValues(t, 8, line.Scale)
		if line.ID != "d-1" { // added before the first answer
			got = append(got, line.ID)
		}
	}
	slices.Reverse(want[:700])
	slices.Reverse(want[700:2000])
	require.Equal(t, want, got)
	require.Less(t, asked, 12)

	watched.on = nil
	n := 0
	for range list { // again, and not to the end
		if n++; n == 3 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	list, err = h.app.Reports.Export(ctx, h.tenant, report.Filter{})
	require.NoError(t, err)
	cancel()
	n = 0
	for _, err := range list {
		n++
		require.ErrorIs(t, err, context.Canceled)
	}
	require.Equal(t, 1, n)
}

// Pages of one type, status or currency are found by the payments and withdrawals behind
// the lines: they are those that all lines have, in the order of all lines.
func TestTransactionsAreFoundByWhatTheyAreOf(t *testing.T) {
	t.Parallel()
	h := newHost(t, 1, "ETH")
	at, p := h.clock.Now(), storage.Tenant(h.tenant)
	type line struct {
		id, kind, status, currency string
		at                         time.Time
	}
	var all []line
	c := storage.Change{ID: "lines", Partition: p}
	for i := range 60 {
		// Ids go against time, and four lines share a moment.
		l := line{fmt.Sprintf("%03d", 100-i), storage.ActivityPayment, "", []string{"ETH", "USDTERC20"}[i/3%2], at.Add(time.Duration(i/4-100) * time.Minute)}
		if i%3 == 0 {
			w := withdrawal.Withdrawal{Status: []withdrawal.Status{withdrawal.Completed, withdrawal.Failed}[i/3%2], Currency: l.currency, Network: "ETH", CreatedAt: l.at}
			l.kind, l.status = storage.ActivityWithdrawal, string(w.Status)
			c.Put = append(c.Put, withdrawal.Withdrawals.Row(l.id, 0, time.Time{}, w))
		} else {
			v := payment.Payment{
				Status:   []payment.Status{payment.Waiting, payment.PartiallyPaid, payment.Completed, payment.Failed}[i%4],
				Currency: l.currency, Network: "ETH", Address: l.id, CreatedAt: l.at,
			}
			l.status = string(v.Shown())
			c.Put = append(c.Put, payment.Payments.Row(l.id, 0, time.Time{}, v))
		}
		a := storage.Activity{Kind: l.kind, Status: l.status, Currency: ledger.Asset(l.currency), CreatedAt: l.at}
		c.Put = append(c.Put, storage.Activities.Row(l.id, 0, time.Time{}, a))
		all = append(all, l)
	}
	require.NoError(t, storage.CommitOne(t.Context(), h.store, c))
	_, err := h.app.Recount(t.Context(), h.tenant)
	require.NoError(t, err)
	slices.SortFunc(all, func(x, y line) int { return cmp.Or(y.at.Compare(x.at), cmp.Compare(y.id, x.id)) })
	found := 0
	for _, kind := range []string{"", storage.ActivityPayment, storage.ActivityWithdrawal} {
		for _, status := range append([]string{""}, report.Statuses()...) {
			for _, currency := range []string{"", "ETH", "USDTERC20"} {
				for _, when := range [][2]time.Time{{}, {at.Add(-97 * time.Minute), at.Add(-90 * time.Minute)}} {
					var want, have []string
					for _, l := range all {
						in := (when[0].IsZero() || !l.at.Before(when[0])) && (when[1].IsZero() || l.at.Before(when[1]))
						if in && (kind == "" || l.kind == kind) && (status == "" || l.status == status) && (currency == "" || l.currency == currency) {
							want = append(want, l.id)
						}
					}
					for page := 1; page < 12; page++ {
						lines, count, err := h.app.Reports.Transactions(t.Context(), h.tenant, report.Filter{
							Type: kind, Status: status, Currency: currency, From: when[0], Before: when[1], Page: page, PageSize: 6,
						})
						require.NoError(t, err)
						require.EqualValues(t, len(want), count)
						for _, l := range lines {
							have = append(have, l.ID)
						}
					}
					require.Equal(t, want, have, "%q %q %q %s", kind, status, currency, when)
					found += len(have)
				}
			}
		}
	}
	require.Greater(t, found, 500)
}

// A payment that moves on while a page of its former status is read is not in that page.
func TestTransactionsOfAStatusHaveIt(t *testing.T) {
	t.Parallel()
	h := newHost(t, 1, "ETH")
	stays, moves := h.create("50", "ETH"), h.create("50", "ETH")
	watched := &finds{Store: h.store}
	h.store = watched
	h.restart()
	watched.after = func() {
		watched.after = nil
		_, err := h.app.Payments.Cancel(t.Context(), h.tenant, moves.ID)
		require.NoError(t, err)
	}
	lines, _, err := h.app.Reports.Transactions(t.Context(), h.tenant, report.Filter{Status: "waiting"})
	require.NoError(t, err)
	require.Nil(t, watched.after)
	require.Len(t, lines, 1)
	require.Equal(t, stays.ID, lines[0].ID)
}

func TestTransactionsArePaged(t *testing.T) {
	t.Parallel()
	h := newHost(t, 1, "ETH")
	at := h.clock.Now()
	h.lines(names("p", 45), func(i int) storage.Activity {
		a := storage.Activity{Kind: storage.ActivityPayment, Status: "completed", Currency: "ETH", CreatedAt: at.Add(time.Duration(i) * time.Second)}
		if i%3 == 0 {
			a.Kind, a.Status, a.Currency = storage.ActivityWithdrawal, "pending", "USDTERC20"
		}
		return a
	})
	ask := func(f report.Filter) ([]string, int64) {
		t.Helper()
		page, count, err := h.app.Reports.Transactions(t.Context(), h.tenant, f)
		require.NoError(t, err)
		require.NotNil(t, page)
		ids := []string{}
		for _, p := range page {
			ids = append(ids, p.ID)
		}
		return ids, count
	}
	all := names("p", 45)
	slices.Reverse(all)
	for page, want := range map[int][]string{0: all[:20], 1: all[:20], 2: all[20:40], 3: all[40:], 4: {}, 1<<62 + 1: {}} {
		ids, count := ask(report.Filter{Page: page})
		require.Equal(t, want, ids, "page %d", page)
		require.EqualValues(t, 45, count)
	}
	for _, row := range []struct {
		filter report.Filter
		count  int64
	}{
		{report.Filter{Type: storage.ActivityPayment}, 30},
		{report.Filter{Type: storage.ActivityWithdrawal}, 15},
		{report.Filter{Status: "pending"}, 15},
		{report.Filter{Status: "cancelled"}, 0},
		{report.Filter{Type: storage.ActivityPayment, Status: "pending"}, 0},
		{report.Filter{Currency: "USDTERC20"}, 15},
		{report.Filter{From: at.Add(40 * time.Second)}, 5},
		{report.Filter{Before: at.Add(40 * time.Second)}, 40},
		{report.Filter{From: at.Add(time.Second), Before: at.Add(2 * time.Second)}, 1},
	} {
		_, count := ask(row.filter)
		require.Equal(t, row.count, count, "%+v", row.filter)
	}
	other, count, err := h.app.Reports.Transactions(t.Context(), "other", report.Filter{})
	require.NoError(t, err)
	require.Zero(t, count)
	require.Empty(t, other)

	var bad *report.InvalidError
	wrong := report.Filter{Type: "deposit", Status: "partially_paid", Currency: "XXX", Page: -1, PageSize: 101}
	_, _, err = h.app.Reports.Transactions(t.Context(), h.tenant, wrong)
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Fields, 5)
	_, err = h.app.Reports.Export(t.Context(), h.tenant, wrong)
	require.ErrorAs(t, err, &bad)
	_, err = h.app.Reports.Stats(t.Context(), h.tenant, report.StatsFilter{Currency: "XXX"})
	require.ErrorAs(t, err, &bad)
	require.Equal(t, []string{
		"waiting", "confirming", "confirmed", "sending", "completed", "expired", "failed", "pending", "processing", "cancelled",
	}, report.Statuses())
}

func TestStatsCountWhatMoved(t *testing.T) {
	t.Parallel()
	h := newHost(t, 1, "ETH")
	h.step()
	ctx := t.Context()
	pay := func(currency, price, share string) payment.Payment {
		t.Helper()
		c, err := chain.MainnetRegistry().Currency(currency)
		require.NoError(t, err)
		p, err := h.app.Payments.Create(ctx, h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: price, Currency: currency}})
		require.NoError(t, err)
		if share != "0" {
			_, err = h.chains["ETH"].Pay(chain.Address(p.Address), currency, c.Decimal(p.Due).Mul(dec(share)))
			require.NoError(t, err)
		}
		h.step()
		return p
	}
	pay("USDTERC20", "100", "1")
	pay("ETH", "500", "1.2")
	pay("ETH", "40", "0.5") // partially paid, shown as waiting
	pay("ETH", "7000", "0") // only asked for
	h.mine(30)

	ask := func(f report.StatsFilter) report.Stats {
		t.Helper()
		s, err := h.app.Reports.Stats(ctx, h.tenant, f)
		require.NoError(t, err)
		return s
	}
	usd := func(v report.Volume) string {
		require.NotNil(t, v.USD)
		return fmt.Sprintf("%d × %s", v.Count, ledger.FixedString(*v.USD, 2))
	}
	s := ask(report.StatsFilter{})
	require.Equal(t, 30*24*time.Hour+time.Millisecond, s.Before.Sub(s.From), "now is in it")
	require.Equal(t, "4 × 720.00", usd(s.Payments.Volume))
	require.Equal(t, "2 × 700.00", usd(s.Payments.ByStatus["completed"]), "their sweeps wait for gas, they do not")
	require.Equal(t, "2 × 20.00", usd(s.Payments.ByStatus["waiting"]))

	// Prices of coins move; what was sold stays sold at its price.
	h.rates.Set("ETH", "USD", dec("3000"))
	_, err := h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{Terms: withdrawal.Terms{
		Amount: ptr(dec("0.1")), Currency: "ETH", Address: string(h.chains["ETH"].Customer("supplier")),
	}})
	require.NoError(t, err)
	gone, err := h.app.Withdrawals.Create(ctx, h.tenant, withdrawal.CreateInput{Terms: withdrawal.Terms{
		Amount: ptr(dec("0.05")), Currency: "ETH", Address: string(h.chains["ETH"].Customer("supplier")),
	}})
	require.NoError(t, err)
	_, err = h.app.Withdrawals.Cancel(ctx, h.tenant, gone.ID)
	require.NoError(t, err)
	s = ask(report.StatsFilter{})
	require.Equal(t, "4 × 720.00", usd(s.Payments.Volume))
	require.Equal(t, "2 × 300.00", usd(s.Withdrawals.Volume))
	require.Equal(t, "1 × 300.00", usd(s.Withdrawals.ByStatus["pending"]))
	require.Equal(t, "1 × 0.00", usd(s.Withdrawals.ByStatus["cancelled"]))
	require.Len(t, s.Currencies, 2)
	eth := s.Currencies[0]
	require.Equal(t, "ETH", eth.Currency)
	require.Equal(t, "0.31000000 0.10000000", eth.Payments.Amount.Format(eth.Scale, 8)+" "+eth.Withdrawals.Amount.Format(eth.Scale, 8))
	require.Equal(t, "3 × 620.00", usd(eth.Payments.Volume))

	require.Equal(t, "1 × 100.00", usd(ask(report.StatsFilter{Currency: "USDTERC20"}).Payments.Volume))
	s = ask(report.StatsFilter{Before: h.clock.Now().Add(-time.Hour)})
	require.Equal(t, "0 × 0.00", usd(s.Payments.Volume))
	require.Empty(t, s.Payments.ByStatus)
	require.Empty(t, s.Currencies)

	// Without a price there is no sum, rather than a wrong one.
	h.quoted = func(r rates.Rate) rates.Rate { r.Price = decimal.Decimal{}; return r }
	s = ask(report.StatsFilter{})
	require.Nil(t, s.Withdrawals.USD)
	require.EqualValues(t, 2, s.Withdrawals.Count)
	require.Equal(t, "1 × 0.00", usd(s.Withdrawals.ByStatus["cancelled"]))
	require.Equal(t, "4 × 720.00", usd(s.Payments.Volume))
}

// Currencies that the host no longer lists stay readable.
func TestScaleOfWhatIsNoLongerListed(t *testing.T) {
	t.Parallel()
	h := newHost(t, 1, "ETH")
	scale, err := h.app.Scale("USDTERC20")
	require.NoError(t, err)
	require.EqualValues(t, 6, scale)
	_, err = h.app.Scale("SHELLS")
	require.ErrorIs(t, err, chain.ErrCurrency)

	// A token of the host's own, which another process listed.
	row := cryptopay.Listings.Row("SHELLS", 0, time.Time{}, cryptopay.Listing{Network: "ETH", Contract: "0x01", Decimals: 18, Scale: 5})
	require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: "listed", Partition: storage.System, Put: []storage.Row{row}}))
	scale, err = h.app.Scale("SHELLS")
	require.NoError(t, err)
	require.EqualValues(t, 5, scale)
}
