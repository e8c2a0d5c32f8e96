package cryptopay_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	bookkeeping "github.com/cryptopay-go/cryptopay/report/journal"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/mysql"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// also is a configuration, and more of it.
func also(first, then func(*cryptopay.Config)) func(*cryptopay.Config) {
	return func(c *cryptopay.Config) { first(c); then(c) }
}

// chilled gives the tenant's coins of a currency a ceiling: what is above goes to "vault".
func (h *host) chilled(currency, ceiling, target string) {
	h.t.Helper()
	now, err := h.app.Policies.Get(h.t.Context(), h.tenant)
	require.NoError(h.t, err)
	p := now.Policy
	p.Cold = []policy.Cold{{Currency: currency, Address: h.vault(currency), Ceiling: dec(ceiling), Target: dec(target)}}
	_, _, err = h.app.Operate.SetPolicy(h.t.Context(), h.tenant, now.Number, p, because("most of it is safer there"))
	require.NoError(h.t, err)
}

func (h *host) vault(currency string) string {
	return string(h.chains[h.coin(currency).Network].Customer("vault"))
}

// stored is what lies at "vault".
func (h *host) stored(currency string) decimal.Decimal {
	world := h.chains[h.coin(currency).Network]
	return world.Balance(world.Customer("vault"), currency)
}

func (h *host) moves() (out []house.Payment) {
	h.t.Helper()
	all, err := h.app.Operate.HousePayments(h.t.Context(), h.tenant, 100, 0)
	require.NoError(h.t, err)
	for _, p := range all {
		if p.ToCold() {
			out = append(out, p)
		}
	}
	return out
}

// cold is what lies at cold addresses by the books.
func (h *host) cold(currency string) ledger.Amount {
	h.t.Helper()
	v, _, err := treasury.ColdOf(h.t.Context(), h.store, h.tenant, currency)
	require.NoError(h.t, err)
	return v.Amount
}

// cooled demands that what lies at "vault" is exactly what completed moves say and the books
// have, and that customers are owed what they were.
func (h *host) cooled(currency string, owed ledger.Amount) {
	h.t.Helper()
	var sum ledger.Amount
	for _, p := range h.moves() {
		if p.Status == house.Completed {
			sum += p.Amount
		}
	}
	require.Equal(h.t, h.coin(currency).Decimal(sum).String(), h.stored(currency).String(), "each move was made once")
	require.Equal(h.t, sum, h.cold(currency))
	require.Equal(h.t, owed, h.credited(currency))
	h.released()
	h.sound()
}

// TestFT07_HotAboveTheCeilingGoesToCold: what is above the ceiling goes, the target stays, once.
// The books have the same coins as before, less the cost: a move has no legs. So the merchant's
// balance, the house's equity and the journal stay, and the books agree with the chain.
func TestFT07_HotAboveTheCeilingGoesToCold(t *testing.T) {
	t.Parallel()
	for i, code := range []string{"ETH", "BTC", usdt} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			onMemory(t, code == usdt, func(t *testing.T, store storage.Store) {
				ctx := t.Context()
				h := earned(t, store, uint64(600+i), code)
				h.configure = also(h.configure, func(c *cryptopay.Config) { c.Reconcile.Every = 24 * time.Hour })
				h.restart()
				owed := h.credited(code)
				h.mine(10)
				require.Empty(t, h.moves(), "without a ceiling nothing moves")
				ceiling, target := "0.05", "0.02"
				if code == "BTC" {
					ceiling, target = "0.001", "0.0005"
				}
				if code == usdt {
					ceiling, target = "100", "50"
				}
				was := h.stand(code)
				h.chilled(code, ceiling, target)
				h.mine(30)
				require.Len(t, h.moves(), 1)
				m := h.moves()[0]
				cost := was[ledger.FeesNetwork] - h.posted(ledger.FeesNetwork, code)
				was[ledger.FeesNetwork] -= cost
				was[ledger.Chain(m.Network)] += cost
				require.Equal(t, was, h.stand(code), "it has no legs, and its cost")
				require.Equal(t, house.Completed, m.Status, m.Waiting)
				require.Equal(t, h.vault(code), m.Address)
				hot, err := h.app.Treasury.HotCoins(ctx, h.tenant, code)
				require.NoError(t, err)
				left := h.coin(code).Decimal(hot)
				require.True(t, left.GreaterThanOrEqual(dec(target)) && left.LessThanOrEqual(dec(ceiling)), left)
				h.cooled(code, owed)

				var books strings.Builder
				require.NoError(t, bookkeeping.Source{Store: store, Tenant: h.tenant, Scale: h.app.Scale}.HLedger(ctx, &books))
				require.Contains(t, books.String(), "Assets:Chains:"+m.Network)
				require.NotContains(t, books.String(), "settle/"+m.ID)

				_, err = h.app.Treasury.Sync(ctx, h.tenant)
				require.NoError(t, err)
				held, err := h.app.Treasury.Holdings(ctx, h.tenant)
				require.NoError(t, err)
				for _, total := range held.Totals {
					if total.Currency.Code == code {
						require.Equal(t, h.coin(code).Decimal(m.Amount).String(), total.Cold.String())
					}
				}
				h.restart()
				h.days(2)
				require.Empty(t, h.differences(chain.Network(m.Network)), "what left is explained")
				require.Len(t, h.moves(), 1, "what is below the ceiling stays")
			})
		})
	}
}

// TestFT07_ColdCrashAtEachStep: wherever a commit of a move fails, another process goes on, and
// the coins are moved once.
func TestFT07_ColdCrashAtEachStep(t *testing.T) {
	t.Parallel()
	for i, code := range []string{"ETH", "BTC"} {
		for failAt := 1; failAt <= 24; failAt++ {
			fault := failing.Undone
			if failAt%2 == 0 {
				fault = failing.Unheard
			}
			t.Run(fmt.Sprintf("%s/%d/%s", code, (failAt+1)/2, fault), func(t *testing.T) {
				t.Parallel()
				onMemory(t, failAt%7 == 1, func(t *testing.T, store storage.Store) { // the fault is above the store
					ctx := context.WithoutCancel(t.Context())
					f := &failing.Commits{Store: store}
					h := earned(t, f, uint64(610+i), code)
					owed := h.credited(code)
					if code == "BTC" {
						h.chilled(code, "0.001", "0.0005")
					} else {
						h.chilled(code, "0.05", "0.02")
					}
					f.Seen, f.At = 0, map[int]failing.Fault{(failAt + 1) / 2: fault}
					for range 4 {
						h.clock.Advance(15 * time.Second)
						h.chains[h.coin(code).Network].Mine(1)
						if h.app.Step(ctx) != nil {
							break
						}
					}
					f.At = nil
					h.restart()
					h.clock.Advance(2 * time.Minute)
					h.mine(40)
					require.NotEmpty(t, h.moves())
					for _, m := range h.moves() {
						require.Contains(t, []house.Status{house.Completed, house.Cancelled}, m.Status, m.Waiting)
					}
					h.cooled(code, owed)
				})
			})
		}
	}
}

// TestFT07_ColdIsRefused: what a policy may not say of cold names its field.
func TestFT07_ColdIsRefused(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 620, "ETH")
	hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
	require.NoError(t, err)
	for want, c := range map[string]policy.Cold{
		"currency": {Currency: "XYZ", Address: h.vault("ETH")},
		"address":  {Currency: "ETH", Address: "0x1"},
		"gives":    {Currency: "ETH", Address: string(hot)},
		"target":   {Currency: "ETH", Address: h.vault("ETH"), Ceiling: dec("1"), Target: dec("2")},
		"ceiling":  {Currency: "ETH", Address: h.vault("ETH"), Ceiling: dec("-1"), Target: dec("-2")},
	} {
		_, _, err := h.app.Operate.SetPolicy(t.Context(), h.tenant, 0, policy.Policy{Cold: []policy.Cold{c}}, because("x"))
		var bad *policy.InvalidError
		require.ErrorAs(t, err, &bad, want)
		require.Contains(t, bad.Error(), want)
	}
}

// belowCost is a host whose move to cold waits, as it would cost more than half of itself.
func belowCost(t *testing.T, seed uint64) (h *host, level int64) {
	t.Helper()
	h = earned(t, memory.New(), seed, usdt)
	level = h.chains["ETH"].FeeLevel()
	h.chains["ETH"].SetFeeLevel(level * 150)
	h.chilled(usdt, "240", "239.5")
	h.mine(12)
	require.Len(t, h.moves(), 1)
	m := h.moves()[0]
	require.Equal(t, []any{house.Pending, house.WaitingBelowCost}, []any{m.Status, m.Waiting})
	require.False(t, m.WaitingSince.IsZero())
	require.True(t, h.stored(usdt).IsZero())
	h.sound()
	return h, level
}

// TestFT07_ColdBelowCostWaits: a move that would cost more than half of itself waits, says so,
// and goes once fees have fallen.
func TestFT07_ColdBelowCostWaits(t *testing.T) {
	t.Parallel()
	h, level := belowCost(t, 630)
	owed := h.credited(usdt)
	h.chains["ETH"].SetFeeLevel(level / 4)
	h.mine(40)
	require.Equal(t, house.Completed, h.moves()[0].Status, h.moves()[0].Waiting)
	h.cooled(usdt, owed)
}

// TestFT07_PayoutsComeBeforeCold: a move of which nothing was signed ends where a payout needs
// its coins. The payout is paid.
func TestFT07_PayoutsComeBeforeCold(t *testing.T) {
	t.Parallel()
	h, level := belowCost(t, 631)
	id := h.payout(h.tenant, usdt, "200")
	h.mine(12)
	require.Equal(t, house.Cancelled, h.moves()[0].Status)
	require.Len(t, h.moves(), 1)
	h.chains["ETH"].SetFeeLevel(level)
	h.mine(40)
	h.paidOnce(h.tenant, id)
	require.True(t, h.stored(usdt).IsZero())
	h.released()
	h.sound()
}

// TestFT07_AnEditedColdAddressGetsNothing: somebody who writes to the database moves nothing to
// an address of his.
func TestFT07_AnEditedColdAddressGetsNothing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := earned(t, memory.New(), 641, usdt)
	h.chilled(usdt, "100", "50")
	rows, err := h.store.Find(ctx, storage.Query{Table: policy.Policies.Table, Partition: storage.Tenant(h.tenant), Limit: 10})
	require.NoError(t, err)
	thief := string(h.chains["ETH"].Customer("thief"))
	for _, r := range rows {
		v := policy.Policies.Value(r)
		v.Rules = strings.ReplaceAll(v.Rules, h.vault(usdt), thief)
		require.NotContains(t, v.Rules, h.vault(usdt))
		require.NoError(t, storage.CommitOne(ctx, h.store, storage.Change{
			ID: "thief/" + r.ID, Partition: r.Partition, Put: []storage.Row{policy.Policies.Row(r.ID, r.Version, r.Due, v)},
		}))
	}
	h.mine(30)
	require.Empty(t, h.moves())
	require.True(t, h.chains["ETH"].Balance(h.chains["ETH"].Customer("thief"), usdt).IsZero())
}

// TestFT07_AMoveThatIsStuckIsTheOnlyOne: while a move is in no block, the node still shows its
// coins as hot. No other is begun for them, by this process or another.
func TestFT07_AMoveThatIsStuckIsTheOnlyOne(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 642, usdt)
	owed := h.credited(usdt)
	addresses := h.configure
	h.configure = func(c *cryptopay.Config) { addresses(c); keepsBounds(c) }
	h.restart()
	h.chilled(usdt, "100", "50")
	h.step()
	level := h.stick("ETH")
	other := h.beside(h.configure)
	for range 20 {
		h.clock.Advance(time.Minute)
		require.NoError(t, other.Step(t.Context()))
		h.mine(1)
	}
	require.Len(t, h.moves(), 1)
	require.Equal(t, house.Processing, h.moves()[0].Status, h.moves()[0].Waiting)
	h.chains["ETH"].SetFeeLevel(level)
	h.mine(60)
	require.Equal(t, house.Completed, h.moves()[0].Status)
	h.cooled(usdt, owed)
}

// refilled is a host with coins at the cold address "vault", the hot address of its tenant, and the notices that it gets.
func refilled(t *testing.T, store storage.Store, seed uint64, code, ceiling, target string) (h *host, hot chain.Address, told *[]treasury.Notice) {
	t.Helper()
	told = &[]treasury.Notice{}
	h = earned(t, store, seed, code)
	h.configure = also(h.configure, func(c *cryptopay.Config) {
		c.Treasury.Notify = func(_ context.Context, n treasury.Notice) { *told = append(*told, n) }
	})
	h.restart()
	h.chilled(code, ceiling, target)
	h.mine(30)
	hot, err := h.app.Hot(t.Context(), h.coin(code).Network, h.tenant)
	require.NoError(t, err)
	require.Positive(t, h.cold(code))
	*told = nil
	return h, hot, told
}

// from sends coins from "vault", or from a customer of another name.
func (h *host) from(name string, to chain.Address, code, amount string) string {
	h.t.Helper()
	world, s := h.chains[h.coin(code).Network], sim.Tx{From: name, Payments: []sim.Payment{{To: to, Currency: code, Amount: dec(amount)}}}
	if name == "vault" && code == "BTC" {
		for _, m := range h.moves() {
			s.Spends = append(s.Spends, m.Tx+":0")
		}
	}
	tx, err := world.Send(s)
	require.NoError(h.t, err)
	return tx
}

// thaw takes the ceiling away, so that what comes back stays hot.
func (h *host) thaw(code string) { h.t.Helper(); h.chilled(code, "0", "0") }

// TestFT07_ARefillHasNoLegs: coins that come from a cold address are a refill in the Change that
// sees them final. The operator's funds are as before: nobody can take them out as his own. A
// fork that takes them away takes the refill back.
func TestFT07_ARefillHasNoLegs(t *testing.T) {
	t.Parallel()
	for i, c := range [][]string{{"ETH", "0.05", "0.02", "0.01"}, {"BTC", "0.001", "0.0005", "0.0007"}, {usdt, "100", "50", "20"}} {
		t.Run(c[0], func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, store storage.Store) {
				code := c[0]
				h, hot, told := refilled(t, store, uint64(660+i), code, c[1], c[2])
				h.thaw(code)
				was, cold, owed := h.stand(code), h.cold(code), h.credited(code)
				tx := h.from("vault", hot, code, c[3])
				h.mine(15)
				units, err := h.coin(code).Units(dec(c[3]), ledger.Down)
				require.NoError(t, err)
				require.Equal(t, []any{was, cold - units, owed, ledger.Amount(0)}, []any{h.stand(code), h.cold(code), h.credited(code), h.posted(ledger.Suspense, code)})
				require.Empty(t, *told)
				h.sound()
				h.restart()
				h.mine(3)
				require.Equal(t, cold-units, h.cold(code), "once")

				_, err = h.chains[h.coin(code).Network].Reorg(18, tx)
				require.NoError(t, err)
				h.mine(40)
				require.Equal(t, []any{was, cold}, []any{h.stand(code), h.cold(code)}, "a deep fork took it away")
				h.sound()
			})
		})
	}
}

// TestFT07_WhatMayBeARefillIsHeldApart: coins whose sender cannot be told, while others lie at a
// cold address, are nobody's until a person says whose. They cannot be taken out meanwhile.
func TestFT07_WhatMayBeARefillIsHeldApart(t *testing.T) {
	t.Parallel()
	for i, is := range []treasury.ApartIs{treasury.IsRefill, treasury.IsOperators, ""} {
		t.Run("as "+string(is), func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, store storage.Store) {
				ctx := t.Context()
				h, hot, told := refilled(t, store, uint64(670+i), "BTC", "0.001", "0.0005")
				h.thaw("BTC")
				was, cold, owed := h.stand("BTC"), h.cold("BTC"), h.credited("BTC")
				tx := h.from("somebody", hot, "BTC", "0.0007")
				h.mine(12)
				const came = ledger.Amount(70_000)
				require.Equal(t, []any{was[ledger.Float], cold, came}, []any{h.posted(ledger.Float, "BTC"), h.cold("BTC"), h.posted(ledger.Suspense, "BTC")})
				require.Len(t, *told, 1)
				require.Equal(t, []string{treasury.NoticeApart, treasury.ApartUnknown}, []string{(*told)[0].Kind, (*told)[0].Reason})
				_, _, err := h.app.Operate.WithdrawOperatorFunds(ctx, h.some("BTC", h.coin("BTC").Decimal(was[ledger.Float]+1).String(), "all of it"), because("it is mine"))
				var short *house.ShortError
				require.ErrorAs(t, err, &short)
				h.sound()

				apart, err := h.app.Operate.HeldTopUps(ctx, h.tenant, "", 10)
				require.NoError(t, err)
				require.Len(t, apart, 1)
				require.Equal(t, []any{came, tx, treasury.ApartUnknown, hot}, []any{apart[0].Amount, apart[0].Tx, apart[0].Reason, apart[0].Address})
				require.False(t, apart[0].Since.IsZero())
				_, _, err = h.app.Operate.ResolveTopUp(ctx, h.tenant, apart[0].ID, "mine", because("x"))
				require.ErrorIs(t, err, treasury.ErrApartIs)
				_, _, err = h.app.Operate.ResolveTopUp(ctx, h.tenant, "BTC/x:0/1", treasury.IsRefill, because("x"))
				require.ErrorIs(t, err, treasury.ErrNotApart)
				if is == "" { // a deep fork is faster than the person
					_, err = h.chains["BTC"].Reorg(12, tx)
					require.NoError(t, err)
					h.mine(40)
					require.Zero(t, h.posted(ledger.Suspense, "BTC"))
					require.Equal(t, []any{was, cold}, []any{h.stand("BTC"), h.cold("BTC")})
					h.sound()
					return
				}
				_, id, err := h.app.Operate.ResolveTopUp(ctx, h.tenant, apart[0].ID, is, because("the vault's log says so"))
				require.NoError(t, err)
				require.NotEmpty(t, id)
				_, _, err = h.app.Operate.ResolveTopUp(ctx, h.tenant, apart[0].ID, is, because("again"))
				require.ErrorIs(t, err, treasury.ErrNotApart)
				back := came
				if is == treasury.IsOperators {
					back = 0
				}
				stand := maps.Clone(was)
				stand[ledger.Float] += came - back
				stand[ledger.Chain("BTC")] -= came - back
				h.mine(3)
				require.Equal(t, []any{stand, cold - back, owed}, []any{h.stand("BTC"), h.cold("BTC"), h.credited("BTC")})
				h.sound()

				_, err = h.chains["BTC"].Reorg(15, tx)
				require.NoError(t, err)
				h.mine(40)
				require.Equal(t, []any{was, cold}, []any{h.stand("BTC"), h.cold("BTC")}, "a deep fork took it away")
				h.sound()
			})
		})
	}
}

// TestFT07_MoreThanLiesAtColdIsHeldApart: a cold address sends more than was moved there. Of what
// a person calls a refill, the rest is the operator's own.
func TestFT07_MoreThanLiesAtColdIsHeldApart(t *testing.T) {
	t.Parallel()
	h, hot, told := refilled(t, memory.New(), 680, usdt, "100", "50")
	h.thaw(usdt)
	was, cold := h.stand(usdt), h.cold(usdt)
	h.from("vault", hot, usdt, h.coin(usdt).Decimal(cold+7_000_000).String())
	h.mine(30)
	require.Len(t, *told, 1)
	require.Equal(t, treasury.ApartMore, (*told)[0].Reason)
	apart, err := h.app.Operate.HeldTopUps(t.Context(), h.tenant, "", 10)
	require.NoError(t, err)
	require.Len(t, apart, 1)
	_, _, err = h.app.Operate.ResolveTopUp(t.Context(), h.tenant, apart[0].ID, treasury.IsRefill, because("the vault had some of its own"))
	require.NoError(t, err)
	h.mine(3)
	was[ledger.Float] += 7_000_000
	was[ledger.Chain("ETH")] -= 7_000_000
	require.Equal(t, []any{was, ledger.Amount(0)}, []any{h.stand(usdt), h.cold(usdt)})
	h.sound()
	h.from("somebody", hot, usdt, "5")
	h.mine(30)
	require.Equal(t, was[ledger.Float]+5_000_000, h.posted(ledger.Float, usdt), "nothing lies there any more: it is a top-up")
}

// TestFT07_ARefillsCostIsBooked: what the network took for a refill left cold, too: N −, c +,
// once for each transaction, and never more than lies there.
func TestFT07_ARefillsCostIsBooked(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store storage.Store) {
		h, hot, _ := refilled(t, store, 682, "BTC", "0.001", "0.0005")
		h.thaw("BTC")
		tx := h.from("vault", hot, "BTC", "0.0007")
		h.mine(15)
		was, cold := h.stand("BTC"), h.cold("BTC")
		book := func(cost ledger.Amount, c cryptopay.Call) (string, error) {
			return h.app.Operate.BookRefillCost(t.Context(), h.tenant, "BTC", tx, cost, c)
		}
		for _, cost := range []ledger.Amount{0, -1, cold + 1} {
			_, err := book(cost, because("x"))
			require.ErrorIs(t, err, treasury.ErrNothingCold)
		}
		dry := because("x")
		dry.DryRun = true
		_, err := book(500, dry)
		require.NoError(t, err)
		require.Equal(t, cold, h.cold("BTC"))
		for range 2 {
			_, err := book(500, because("the explorer says so"))
			require.NoError(t, err)
		}
		was[ledger.FeesNetwork] -= 500
		was[ledger.Chain("BTC")] += 500
		require.Equal(t, []any{was, cold - 500}, []any{h.stand("BTC"), h.cold("BTC")})
		h.sound()
	})
}

// TestFT07_VerifyFindsAnEditedNote: who edits what lies at cold addresses by the books, or what is
// held apart, is found.
func TestFT07_VerifyFindsAnEditedNote(t *testing.T) {
	t.Parallel()
	h, hot, _ := refilled(t, memory.New(), 683, "BTC", "0.001", "0.0005")
	h.thaw("BTC")
	h.from("somebody", hot, "BTC", "0.0007")
	h.mine(15)
	h.sound()
	part := storage.Tenant(h.tenant)
	rows, err := h.store.Find(t.Context(), storage.Query{Table: treasury.TopUps.Table, Partition: part, Limit: 100})
	require.NoError(t, err)
	found := 0
	for _, r := range rows {
		v := treasury.TopUps.Value(r)
		if r.ID != "cold/BTC" && !strings.HasPrefix(r.ID, "apart/") {
			continue
		}
		v.Amount++
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
			ID: "thief/" + r.ID, Partition: part, Put: []storage.Row{treasury.TopUps.Row(r.ID, r.Version, r.Due, v)},
		}))
		found++
		report, err := h.app.VerifyTenant(t.Context(), h.tenant)
		require.NoError(t, err)
		require.Len(t, report.Unexplained, found)
	}
	require.Equal(t, 2, found)
}

// TestFT07_VerifyFindsARefillThatNeverCame: who lowers what lies at cold addresses by the books, and
// writes a refill that explains it, is found: no transfer brought it.
func TestFT07_VerifyFindsARefillThatNeverCame(t *testing.T) {
	t.Parallel()
	h, _, _ := refilled(t, memory.New(), 684, usdt, "100", "50")
	h.sound()
	part := storage.Tenant(h.tenant)
	v, row, err := treasury.ColdOf(t.Context(), h.store, h.tenant, usdt)
	require.NoError(t, err)
	const some = 1_000_000
	require.Greater(t, v.Amount, ledger.Amount(some))
	v.Amount -= some
	made := treasury.TopUp{Tx: "made up", Currency: usdt, Amount: some}
	require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
		ID: "thief", Partition: part, Put: []storage.Row{treasury.ColdRow(row, v), treasury.TopUps.Row("refill/ETH/abc:0/1", 0, time.Time{}, made)},
	}))
	report, err := h.app.VerifyTenant(t.Context(), h.tenant)
	require.NoError(t, err)
	require.Len(t, report.Unexplained, 1)
	require.Equal(t, "cold coins", report.Unexplained[0].Kind)
}

// TestFT07_AKnownSenderIsNoRefill: where the sender is told, and is no cold address, a top-up is
// the operator's own at once.
func TestFT07_AKnownSenderIsNoRefill(t *testing.T) {
	t.Parallel()
	h, hot, told := refilled(t, memory.New(), 681, usdt, "100", "50")
	was, cold := h.posted(ledger.Float, usdt), h.cold(usdt)
	h.from("somebody", hot, usdt, "5")
	h.mine(30)
	require.Equal(t, []any{was + 5_000_000, cold}, []any{h.posted(ledger.Float, usdt), h.cold(usdt)})
	require.Empty(t, *told)
	h.sound()
}

// TestFT07_APayoutWaitsForARefill: a payout that needs more than is hot waits as hot_short. The
// operator is told how much is to come back, once. A refill ends it.
func TestFT07_APayoutWaitsForARefill(t *testing.T) {
	t.Parallel()
	h, hot, told := refilled(t, memory.New(), 690, usdt, "100", "50")
	id := h.payout(h.tenant, usdt, "200")
	for range 30 {
		h.clock.Advance(10 * time.Minute)
		h.mine(1)
	}
	w := h.withdrawal(id)
	require.Equal(t, withdrawal.ShownHotShort, w.WaitingReason())
	require.False(t, w.WaitingSince.IsZero())
	require.Len(t, *told, 1, "once, and not each hour")
	n := (*told)[0]
	require.Equal(t, []any{treasury.NoticeRefill, usdt, w.WaitingSince}, []any{n.Kind, n.Currency, n.Since})
	held, err := h.app.Treasury.HotCoins(t.Context(), h.tenant, usdt)
	require.NoError(t, err)
	need := h.coin(usdt).Decimal(w.Requested - held).String()
	require.Contains(t, n.Detail, need+" "+usdt)
	require.Contains(t, n.Detail, string(hot))
	h.restart()
	h.mine(10)
	require.Len(t, *told, 1, "also by another process")

	h.thaw(usdt)
	h.from("vault", hot, usdt, need)
	h.mine(60)
	h.paidOnce(h.tenant, id)
	h.sound()
	other := h.payout(h.tenant, usdt, "20")
	for range 5 {
		h.clock.Advance(10 * time.Minute)
		h.mine(1)
	}
	require.Equal(t, withdrawal.ShownHotShort, h.withdrawal(other).Waiting)
	require.Len(t, *told, 2, "it is another need")
}

// sparing is a store that says which queries look through payments of the house's.
type sparing struct {
	storage.Store
	looked atomic.Int64
}

func (s *sparing) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if q.Table == house.Payments.Table {
		s.looked.Add(1)
	}
	return s.Store.Find(ctx, q)
}

// Peek asks the store itself for what is due.
func (s *sparing) Peek(ctx context.Context, c storage.Claim) ([]storage.Row, error) {
	return storage.Peek(ctx, s.Store, c)
}

// TestFT07_ColdFindsItsMoveByKey: however many moves there were, a look at the ceiling searches
// none of them.
func TestFT07_ColdFindsItsMoveByKey(t *testing.T) {
	t.Parallel()
	s := &sparing{Store: memory.New()}
	h := earned(t, s, 700, "ETH")
	h.chilled("ETH", "0.05", "0.02")
	h.mine(30)
	hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
	require.NoError(t, err)
	h.from("somebody", hot, "ETH", "1")
	h.mine(30)
	require.Zero(t, s.looked.Load())
	require.Len(t, h.moves(), 2)
}

// TestFT07_ColdOnEveryStore: a move, a refill, money held apart and a payout that waits for cold
// coins on real servers.
func TestFT07_ColdOnEveryStore(t *testing.T) {
	t.Parallel()
	open := map[string]func(t *testing.T) storage.Store{
		"postgres": func(t *testing.T) storage.Store {
			skipServer(t)
			s, err := postgres.Open(onPostgres(t), postgres.Options{})
			require.NoError(t, err)
			return s
		},
		"mariadb": func(t *testing.T) storage.Store {
			skipServer(t)
			s, err := mysql.Open(onMariaDB(t), mysql.Options{})
			require.NoError(t, err)
			return s
		},
		"redis": func(t *testing.T) storage.Store { return onRedis(t) },
	}
	for name, f := range open {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, store := t.Context(), f(t)
			t.Cleanup(func() { _ = store.Close() })
			h, hot, told := refilled(t, store, 710, "BTC", "0.001", "0.0005")
			owed, float := h.credited("BTC"), h.posted(ledger.Float, "BTC")
			h.cooled("BTC", owed)
			h.thaw("BTC")
			cold := h.cold("BTC")
			h.from("vault", hot, "BTC", "0.0002")
			h.from("somebody", hot, "BTC", "0.0003")
			h.mine(15)
			require.Equal(t, []ledger.Amount{cold - 20_000, 30_000, float}, []ledger.Amount{h.cold("BTC"), h.posted(ledger.Suspense, "BTC"), h.posted(ledger.Float, "BTC")})
			h.sound()
			apart, err := h.app.Operate.HeldTopUps(ctx, h.tenant, "", 10)
			require.NoError(t, err)
			require.Len(t, apart, 1)
			_, _, err = h.app.Operate.ResolveTopUp(ctx, h.tenant, apart[0].ID, treasury.IsRefill, because("the vault's log says so"))
			require.NoError(t, err)
			require.Equal(t, cold-50_000, h.cold("BTC"))
			id := h.payout(h.tenant, "BTC", "0.0025")
			for range 3 {
				h.clock.Advance(10 * time.Minute)
				h.mine(1)
			}
			require.Equal(t, withdrawal.ShownHotShort, h.withdrawal(id).Waiting)
			kinds := []string{}
			for _, n := range *told {
				kinds = append(kinds, n.Kind)
			}
			require.Equal(t, []string{treasury.NoticeApart, treasury.NoticeRefill}, kinds)
			h.sound()
		})
	}
}

// TestFT07_RefillCrashAtEachStep: wherever a commit fails while coins come back, they are booked
// once, as what they are.
func TestFT07_RefillCrashAtEachStep(t *testing.T) {
	t.Parallel()
	for failAt := 1; failAt <= 16; failAt++ {
		fault := failing.Undone
		if failAt%2 == 0 {
			fault = failing.Unheard
		}
		t.Run(fmt.Sprintf("%d/%s", (failAt+1)/2, fault), func(t *testing.T) {
			t.Parallel()
			ctx := context.WithoutCancel(t.Context())
			f := &failing.Commits{Store: memory.New()}
			h, hot, _ := refilled(t, f, 720, "BTC", "0.001", "0.0005")
			h.thaw("BTC")
			float, cold := h.posted(ledger.Float, "BTC"), h.cold("BTC")
			h.from("vault", hot, "BTC", "0.0004")
			h.from("somebody", hot, "BTC", "0.0002")
			f.Counts = func(c *storage.Change) bool { return c.Partition == storage.Tenant(h.tenant) }
			f.Seen, f.At = 0, map[int]failing.Fault{(failAt + 1) / 2: fault}
			for range 15 {
				h.clock.Advance(15 * time.Second)
				h.chains["BTC"].Mine(1)
				if h.app.Step(ctx) != nil {
					break
				}
			}
			f.At = nil
			h.restart()
			h.clock.Advance(2 * time.Minute)
			h.mine(15)
			require.Equal(t, []ledger.Amount{float, cold - 40_000, 20_000}, []ledger.Amount{h.posted(ledger.Float, "BTC"), h.cold("BTC"), h.posted(ledger.Suspense, "BTC")})
			h.sound()

			apart, err := h.app.Operate.HeldTopUps(ctx, h.tenant, "", 10)
			require.NoError(t, err)
			require.Len(t, apart, 1)
			f.Seen, f.At = 0, map[int]failing.Fault{1: fault}
			_, _, err = h.app.Operate.ResolveTopUp(ctx, h.tenant, apart[0].ID, treasury.IsOperators, because("it is mine"))
			require.Error(t, err)
			f.At = nil
			if _, _, err = h.app.Operate.ResolveTopUp(ctx, h.tenant, apart[0].ID, treasury.IsOperators, because("it is mine")); fault == failing.Unheard {
				require.ErrorIs(t, err, treasury.ErrNotApart)
			} else {
				require.NoError(t, err)
			}
			require.Equal(t, []ledger.Amount{float + 20_000, 0}, []ledger.Amount{h.posted(ledger.Float, "BTC"), h.posted(ledger.Suspense, "BTC")})
			h.sound()
		})
	}
}
