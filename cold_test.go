package cryptopay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	bookkeeping "github.com/cryptopay-go/cryptopay/report/journal"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

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
		if p.Source.IsCold() {
			out = append(out, p)
		}
	}
	return out
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
	require.Equal(h.t, -sum, h.posted(ledger.Cold(string(h.coin(currency).Network)), currency))
	require.Equal(h.t, owed, h.credited(currency))
	h.released()
	h.sound()
}

// TestFT07_HotAboveTheCeilingGoesToCold: what is above the ceiling goes, the target stays, once;
// the merchant's balance and the house's solvency count it, the journal knows both places apart.
func TestFT07_HotAboveTheCeilingGoesToCold(t *testing.T) {
	t.Parallel()
	for i, code := range []string{"ETH", "BTC", usdt} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, store storage.Store) {
				ctx := t.Context()
				h := earned(t, store, uint64(600+i), code)
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
				h.chilled(code, ceiling, target)
				h.mine(30)
				require.Len(t, h.moves(), 1)
				m := h.moves()[0]
				require.Equal(t, house.Completed, m.Status, m.Waiting)
				require.Equal(t, h.vault(code), m.Address)
				hot, err := h.app.Treasury.HotCoins(ctx, h.tenant, code)
				require.NoError(t, err)
				left := h.coin(code).Decimal(hot)
				require.True(t, left.GreaterThanOrEqual(dec(target)) && left.LessThanOrEqual(dec(ceiling)), left)
				h.cooled(code, owed)

				var books strings.Builder
				require.NoError(t, bookkeeping.Source{Store: store, Tenant: h.tenant, Scale: h.app.Scale}.HLedger(ctx, &books))
				require.Contains(t, books.String(), "Assets:Cold:"+m.Network)

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
				h.mine(20)
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
				onBoth(t, func(t *testing.T, store storage.Store) {
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

// TestFT07_ARefillIsBookedByTwoPeople: coins that came back from cold are a top-up until two
// people say what they are; then the books have them hot, and no longer cold.
func TestFT07_ARefillIsBookedByTwoPeople(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := earned(t, memory.New(), 643, "ETH")
	owed := h.credited("ETH")
	h.chilled("ETH", "0.05", "0.02")
	h.mine(30)
	cold, float := h.posted(ledger.Cold("ETH"), "ETH"), h.posted(ledger.Float, "ETH")
	hot, err := h.app.Hot(ctx, "ETH", h.tenant)
	require.NoError(t, err)
	_, err = h.chains["ETH"].Pay(hot, "ETH", dec("0.01"))
	require.NoError(t, err)
	h.mine(20)
	back := h.posted(ledger.Float, "ETH") - float
	require.Positive(t, back)
	refill := house.Adjustment{Tenant: h.tenant, Currency: "ETH", Key: "refill-1", Moves: map[ledger.Account]ledger.Amount{ledger.Float: -back, ledger.Cold("ETH"): back}}
	for _, by := range []string{"ann", "bob"} {
		c := because("it came from the vault")
		c.By = by
		_, _, err = h.app.Operate.Adjust(ctx, refill, c)
		require.NoError(t, err)
	}
	require.Equal(t, []ledger.Amount{float, cold + back, owed}, []ledger.Amount{h.posted(ledger.Float, "ETH"), h.posted(ledger.Cold("ETH"), "ETH"), h.credited("ETH")})
	h.sound()
}
