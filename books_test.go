package cryptopay_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// differences lists what stands on a network.
func differences(t testing.TB, store storage.Store, n chain.Network) []reconcile.DifferenceRow {
	t.Helper()
	rows, err := store.Find(t.Context(), storage.Query{Table: reconcile.Differences.Table, Partition: storage.Network(string(n))})
	require.NoError(t, err)
	var out []reconcile.DifferenceRow
	for _, r := range rows {
		out = append(out, reconcile.Differences.Value(r))
	}
	return out
}

func (h *host) differences(n chain.Network) []reconcile.DifferenceRow {
	h.t.Helper()
	return differences(h.t, h.store, n)
}

// plant adds coins to what the books say that a deposit brought.
func plant(t testing.TB, store storage.Store, n chain.Network, address, currency, coins string) {
	t.Helper()
	rows, err := store.Find(t.Context(), storage.Query{Table: incoming.Sightings.Table, Partition: storage.Network(string(n)), Where: []storage.Cond{
		{Column: "address", Op: storage.Eq, Value: address}, {Column: "currency", Op: storage.Eq, Value: currency},
	}})
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	s := incoming.Sightings.Value(rows[0])
	s.Exact = s.Exact.Add(dec(coins))
	c := storage.Change{ID: "planted" + rows[0].ID + coins, Partition: storage.Network(string(n)), Put: []storage.Row{incoming.Sightings.Row(rows[0].ID, rows[0].Version, rows[0].Due, s)}}
	if coin, row, ok, err := outgoing.Coins.One(t.Context(), store, c.Partition, rows[0].ID); ok { // outputs are what the books have there
		require.NoError(t, err)
		cur, err := chain.MainnetRegistry().Currency(currency)
		require.NoError(t, err)
		more, err := cur.Units(dec(coins), ledger.Down)
		require.NoError(t, err)
		coin.Amount += more
		c.Put = append(c.Put, outgoing.Coins.Row(row.ID, row.Version, row.Due, coin))
	}
	require.NoError(t, store.Commit(t.Context(), c)[0])
}

// days lets days pass.
func (h *host) days(n int) {
	h.t.Helper()
	for range n * 24 {
		h.clock.Advance(time.Hour)
		h.mine(30)
	}
}

// TestI26_ADayOfBusinessAlarmsNobody: deposits, sweeps, gas, payouts and days of rest.
func TestI26_ADayOfBusinessAlarmsNobody(t *testing.T) {
	t.Parallel()
	h := rich(t, 61)
	h.withdraw("20", usdt)
	h.mine(60)
	h.days(2)
	require.Empty(t, h.differences("ETH"))
	require.Empty(t, h.differences("BTC"))
	rows, err := h.store.Find(t.Context(), storage.Query{Table: reconcile.Looks.Table, Partition: storage.Network("ETH"), Limit: 1000})
	require.NoError(t, err)
	require.NotEmpty(t, rows)
	for _, r := range rows {
		v := reconcile.Looks.Value(r)
		require.Less(t, h.clock.Now().Sub(v.Looked), 26*time.Hour, "%+v", v)
		require.Empty(t, v.Waits)
	}
	h.sound()
}

// TestFP07_ManyAddressesAreComparedInFewCalls: an allowance of as many calls in a minute as the network has
// currencies is enough to look at 150 addresses in half an hour.
func TestFP07_ManyAddressesAreComparedInFewCalls(t *testing.T) {
	t.Parallel()
	h := newHost(t, 67, "ETH")
	h.configure = func(c *cryptopay.Config) {
		c.Reconcile.Every, c.Reconcile.Calls = 30*time.Minute, len(chain.MainnetRegistry().On("ETH"))
	}
	h.restart()
	for range 150 {
		h.create("20", usdt)
	}
	for range 60 {
		h.clock.Advance(time.Minute)
		h.mine(1)
	}
	rows, err := h.store.Find(t.Context(), storage.Query{Table: reconcile.Looks.Table, Partition: storage.Network("ETH"), Limit: 1000})
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(rows), 150)
	for _, r := range rows {
		v := reconcile.Looks.Value(r)
		require.Less(t, h.clock.Now().Sub(v.Looked), 45*time.Minute, "%s: %+v", r.ID, v)
	}
}

// TestI26_AUnitOfDriftHaltsItsAssetAlone: the books say one unit more than the chain holds.
func TestI26_AUnitOfDriftHaltsItsAssetAlone(t *testing.T) {
	t.Parallel()
	h := rich(t, 62)
	h.configure = halting
	h.restart()
	other := h.create("50", "USDCERC20")
	h.pay(other, "USDCERC20", dec("50"))
	h.mine(60)
	require.Equal(t, payment.Completed, h.payment(other.ID).Status)
	h.days(1)
	require.Empty(t, h.differences("ETH"))

	p := h.create("30", usdt)
	h.pay(p, usdt, dec("30"))
	h.mine(1)
	plant(t, h.store, "ETH", p.Address, usdt, "0.000001")
	h.mine(60)
	found := h.differences("ETH")
	require.Len(t, found, 1, "at once on an address that was touched")
	require.Equal(t, []any{p.Address, usdt, reconcile.TokenChanged, "-0.000001"}, []any{found[0].Address, found[0].Currency, found[0].Kind, found[0].Amount.String()})
	figures, err := h.app.Figures(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, figures.Alerts[cryptopay.BooksDiffer])

	waits, goes := h.withdraw("20", usdt), h.withdraw("20", "USDCERC20")
	h.mine(60)
	status := func(id string) []any {
		w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
		require.NoError(t, err)
		return []any{w.Status, w.Waiting}
	}
	require.Equal(t, []any{withdrawal.Pending, withdrawal.WaitingHalted}, status(waits))
	require.Equal(t, []any{withdrawal.Completed, ""}, status(goes))

	_, err = h.app.Operate.Lift(t.Context(), cryptopay.HaltScope{Currency: usdt, Tenant: h.tenant}, because("it is in the cold wallet"))
	require.NoError(t, err)
	h.mine(60)
	require.Equal(t, []any{withdrawal.Completed, ""}, status(waits))
	h.days(2)
	require.Empty(t, h.differences("ETH"), "it is explained")
	figures, err = h.app.Figures(t.Context())
	require.NoError(t, err)
	require.EqualValues(t, 1, figures.Alerts[cryptopay.BooksDiffer])
}

// unit is the smallest amount that the books keep of a currency.
func unit(t *testing.T, currency string) string {
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(t, err)
	return c.Decimal(1).String()
}

// TestI26_AUnitOfDriftOnEveryKindOfNetwork: a unit that the books have and the chain has not is
// found at once at an address that was touched, and within a day at one that was not.
func TestI26_AUnitOfDriftOnEveryKindOfNetwork(t *testing.T) {
	t.Parallel()
	coins := map[chain.Network][2]string{"ETH": {"ETH", "0.5"}, "TRX": {"TRX", "5000"}, "BTC": {"BTC", "0.02"}, "XRP": {"XRP", "500"}}
	for network, coin := range coins {
		t.Run(string(network), func(t *testing.T) {
			t.Parallel()
			for name, open := range stores() {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					for _, touched := range []bool{true, false} {
						if !touched && name != "memory" {
							continue // the days that pass take minutes on a disk
						}
						h := cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{network}, Store: open(t), Configure: halting})
						drift(t, h, network, coin[0], coin[1], touched)
					}
				})
			}
		})
	}
}

// TestI26_AUnitOfDriftOnPostgres is the same over a server.
func TestI26_AUnitOfDriftOnPostgres(t *testing.T) {
	t.Parallel()
	store, err := postgres.Open(onPostgres(t), postgres.Options{})
	require.NoError(t, err)
	defer store.Close() //nolint:errcheck // a test's end
	h := cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"ETH"}, Store: store, Configure: halting})
	drift(t, h, "ETH", usdt, "25", true)
}

// halting has a difference halt payouts.
func halting(c *cryptopay.Config) { c.Reconcile.Halt = true }

func drift(t *testing.T, h *cryptopaytest.Host, network chain.Network, currency, amount string, touched bool) {
	t.Helper()
	a := h.PermanentAddress("ann", currency)
	pass := func(times int, d time.Duration) {
		for range times {
			h.Clock.Advance(d)
			h.Mine(2)
		}
	}
	h.Customer.SendsTo(a, amount, currency)
	day := func() {
		for range 26 {
			h.Clock.Advance(time.Hour)
			h.Mine(15)
		}
	}
	if pass(30, time.Minute); !touched {
		day() // what was there before the first look is taken as it is
	}
	require.Empty(t, differences(t, h.Store, network))
	plant(t, h.Store, network, a.Address, currency, unit(t, currency))
	if touched {
		h.Customer.SendsTo(a, amount, currency)
		pass(30, time.Minute)
	} else {
		day()
	}
	found := differences(t, h.Store, network)
	require.Len(t, found, 1, "touched: %v", touched)
	kind := reconcile.Missing
	if currency == usdt {
		kind = reconcile.TokenChanged
	}
	require.Equal(t, []any{h.ID, currency, kind, "-" + unit(t, currency)}, []any{found[0].Tenant, found[0].Currency, found[0].Kind, found[0].Amount.String()})
	halts, err := h.App.Operate.Halts(t.Context())
	require.NoError(t, err)
	require.Len(t, halts, 1)
	require.Equal(t, outgoing.Scope{Tenant: h.ID, Currency: currency}, halts[0].Scope)

	plant(t, h.Store, network, a.Address, currency, "-"+unit(t, currency)) // it is put right: the halt ends by itself
	pass(40, time.Minute)
	require.Empty(t, differences(t, h.Store, network))
	halts, err = h.App.Operate.Halts(t.Context())
	require.NoError(t, err)
	require.Empty(t, halts)
}

// TestI26_MoneyAtARetiredAddressIsExplained: it came while nobody watched, and the address is
// given out again later.
func TestI26_MoneyAtARetiredAddressIsExplained(t *testing.T) {
	t.Parallel()
	for _, looked := range []bool{true, false} {
		h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: halting})
		days := func(n int) {
			for range n * 12 {
				h.Clock.Advance(2 * time.Hour)
				h.Mine(20)
			}
		}
		a := h.PermanentAddress("ann", usdt)
		h.Customer.SendsTo(a, "25", usdt)
		_, err := h.App.Payments.RetireAddress(t.Context(), h.ID, a.ID)
		require.NoError(t, err)
		days(2)
		h.Clock.Advance(31 * 24 * time.Hour)
		h.Mine(1)
		_, err = h.Chains["ETH"].Pay(chain.Address(a.Address), usdt, dec("40"))
		require.NoError(t, err)
		h.Mine(20)
		if looked {
			days(2)
		}
		require.Equal(t, a.Address, h.PermanentAddress("ann", usdt).Address, "it is given out again")
		days(2)
		require.Empty(t, differences(t, h.Store, "ETH"))
		h.Customer.SendsTo(a, "50", usdt)
		days(2)
		require.Empty(t, differences(t, h.Store, "ETH"))
		look, _, _, err := reconcile.Looks.One(t.Context(), h.Store, storage.Network("ETH"), a.Address)
		require.NoError(t, err)
		require.Equal(t, []any{"40", reconcile.Unwatched}, []any{look.Spots[usdt].Explained.String(), look.Spots[usdt].Why})
	}
}

// TestI26_ATokenThatChangesIsFound: an issuer takes a share of what everybody holds. A share of what
// moves is no difference, as what was sent left: delivered_less tells of it.
func TestI26_ATokenThatChangesIsFound(t *testing.T) {
	t.Parallel()
	cur, err := chain.MainnetRegistry().Currency(usdt)
	require.NoError(t, err)
	changed := func(seed uint64, change func(c *sim.Chain)) []reconcile.DifferenceRow {
		h := rich(t, seed)
		change(h.chains["ETH"])
		h.pay(h.create("100", usdt), usdt, dec("100"))
		h.days(2)
		return h.differences("ETH")
	}
	found := changed(63, func(c *sim.Chain) { c.Rebase(cur.Contract, 10) })
	require.NotEmpty(t, found)
	for _, d := range found {
		require.Equal(t, []any{usdt, reconcile.TokenChanged}, []any{d.Currency, d.Kind})
	}
	require.Empty(t, changed(66, func(c *sim.Chain) { c.SetBehaviour(cur.Contract, sim.Behaviour{FeeBasisPoints: 10}) }))
}

// TestI26_ForksAndBatchesAlarmNobody: a deep reorg that mines again what it took, and payouts that
// share a transaction.
func TestI26_ForksAndBatchesAlarmNobody(t *testing.T) {
	t.Parallel()
	h := newHost(t, 64, "BTC", "ETH")
	h.float("ETH", "1")
	h.float("BTC", "1")
	for _, c := range []string{"BTC", usdt} {
		p := h.create("600", c)
		h.pay(p, c, p.DueCoins())
	}
	h.mine(8)
	for range 4 {
		h.mine(3)
		_, err := h.chains["ETH"].Reorg(3)
		require.NoError(t, err)
		_, err = h.chains["BTC"].Reorg(1)
		require.NoError(t, err)
	}
	h.mine(60)
	for range 5 {
		for range 4 {
			require.NotEmpty(t, h.withdraw("20", "BTC"))
		}
		require.NotEmpty(t, h.withdraw("20", usdt))
		h.mine(5)
	}
	h.days(2)
	require.Empty(t, h.differences("BTC"))
	require.Empty(t, h.differences("ETH"))
	h.sound()
}

// TestI26_WhatDifferedBeforeTheFirstLookHaltsNothing: a store of an earlier version may differ from
// its chains for reasons that it did not keep. That is logged and taken as it is; what differs
// from then on is named.
func TestI26_WhatDifferedBeforeTheFirstLookHaltsNothing(t *testing.T) {
	t.Parallel()
	log, off := &alarms{}, true
	h := cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"ETH"}, Configure: func(c *cryptopay.Config) {
		c.Reconcile.Off, c.Log = off, slog.New(slog.NewTextHandler(log, nil))
	}})
	pass := func(times int, d time.Duration) {
		for range times {
			h.Clock.Advance(d)
			h.Mine(5)
		}
	}
	a := h.PermanentAddress("ann", "ETH")
	h.Customer.SendsTo(a, "0.5", "ETH")
	pass(30, time.Minute)
	plant(t, h.Store, "ETH", a.Address, "ETH", "0.1")
	off = false
	h.Restart()
	pass(26, time.Hour)
	require.Empty(t, differences(t, h.Store, "ETH"))
	require.Contains(t, log.heard(), "books_differed_earlier")
	plant(t, h.Store, "ETH", a.Address, "ETH", "0.01")
	pass(26, time.Hour)
	found := differences(t, h.Store, "ETH")
	require.Len(t, found, 1)
	require.Equal(t, "-0.01", found[0].Amount.String())
}

// TestI26_ACancelledSweepHasCostItsFee: the transaction that takes the place of the cancelled one
// pays nobody but the network, and the books say so.
func TestI26_ACancelledSweepHasCostItsFee(t *testing.T) {
	t.Parallel()
	h := rich(t, 68)
	world := h.chains["ETH"]
	p := h.create("100", "ETH")
	h.pay(p, "ETH", p.DueCoins())
	level := world.FeeLevel()
	var sweep string
	for range 60 {
		h.mine(1)
		rows, err := h.store.Find(t.Context(), storage.Query{Table: outgoing.Intents.Table, Partition: storage.Network("ETH"), Where: []storage.Cond{
			{Column: "from_address", Op: storage.Eq, Value: chain.Address(p.Address)}, {Column: "state", Op: storage.Eq, Value: outgoing.Signed},
		}})
		require.NoError(t, err)
		if len(rows) == 1 {
			sweep = rows[0].ID
			break
		}
	}
	require.NotEmpty(t, sweep)
	world.SetFeeLevel(3 * level) // no block takes what was sent
	h.mine(2)
	_, err := h.app.Operate.CancelTransaction(t.Context(), "ETH", sweep, because("a look"))
	require.NoError(t, err)
	for range 100 {
		h.clock.Advance(15 * time.Minute)
		h.mine(1)
	}
	order, _, _, err := outgoing.Intents.One(t.Context(), h.store, storage.Network("ETH"), sweep)
	require.NoError(t, err)
	require.Equal(t, outgoing.Failed, order.State)
	h.days(2)
	require.Empty(t, h.differences("ETH"))
	h.sound()
}

// TestI26_AProcessWithoutACurrencyDoesNotReadItAsNone: while a currency is new, one process lists
// it and another does not. What the other has read of an address says nothing of that currency.
func TestI26_AProcessWithoutACurrencyDoesNotReadItAsNone(t *testing.T) {
	t.Parallel()
	h := rich(t, 67)
	other := h.beside(without(t, "USDCERC20", false))
	p := h.create("50", "USDCERC20")
	h.pay(p, "USDCERC20", dec("50"))
	h.mine(60)
	require.Equal(t, payment.Completed, h.payment(p.ID).Status)
	judge := h.beside(func(cfg *cryptopay.Config) { // its own node tells no balances: it judges what the other has read
		for i, client := range cfg.Chains {
			cfg.Chains[i] = &balanceless{client.(able)}
		}
	})
	for range 100 {
		h.clock.Advance(15 * time.Minute)
		h.mineWith(other, "ETH", 1)
		h.mineWith(judge, "ETH", 25)
		require.Empty(t, h.differences("ETH"))
	}
}

// balanceless is a client whose node tells no balances.
type balanceless struct{ able }

func (*balanceless) Balance(context.Context, string, chain.Address) (decimal.Decimal, error) {
	return decimal.Zero, chain.ErrNode
}
