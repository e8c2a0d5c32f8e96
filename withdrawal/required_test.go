package withdrawal_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// stepped is the registry with steps of BTC, whose payouts are settled at so many confirmations.
func stepped(t *testing.T, steps string, settled int64) func(*withdrawal.Config) {
	t.Helper()
	var all []chain.Currency
	var networks []chain.NetworkInfo
	for _, code := range registry.Codes() {
		c, err := registry.Currency(code)
		require.NoError(t, err)
		next := *c
		if code == "BTC" {
			next.Steps, err = chain.ParseSteps(steps)
			require.NoError(t, err)
			next.Confirmations = settled
		}
		all = append(all, next)
	}
	for _, code := range []string{"TRX", "ETH", "BTC", "XRP", "XLM"} {
		n, err := registry.Network(code)
		require.NoError(t, err)
		networks = append(networks, n)
	}
	made, err := chain.NewRegistry(networks, all)
	require.NoError(t, err)
	return func(c *withdrawal.Config) { c.Registry = made }
}

func bitcoin(amount string) withdrawal.CreateInput {
	return withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: dec(amount), Currency: "BTC", Address: "bc1"}}
}

// TestFM10_PayoutsNeedConfirmationsByTheirValue: a payout's value when it is created decides, as a
// deposit's does. It is completed no later than the payout side settles it.
func TestFM10_PayoutsNeedConfirmationsByTheirValue(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		steps    string
		settled  int64
		required int64    // Config.Confirmations
		want     [4]int64 // of 90, 100, 9,999.60 and 10,000 USD
	}{
		"settled at the highest step":      {"0=1,100=3,10000=6", 6, 1, [4]int64{1, 3, 3, 6}},
		"settled before the highest step":  {"0=1,100=3,10000=6", 2, 1, [4]int64{1, 2, 2, 2}},
		"settled when the network says so": {"0=1,100=3,10000=6 final", 2, 1, [4]int64{1, 3, 3, 6}},
		"the host wants more":              {"0=1,100=3,10000=6", 6, 4, [4]int64{4, 4, 4, 6}},
		"the host wants none":              {"0=1,100=3,10000=6", 6, 0, [4]int64{}},
		"the host wants fewer than none":   {"0=1,100=3,10000=6", 6, -1, [4]int64{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, stepped(t, row.steps, row.settled))
			w.required, w.percent, w.fee["BTC"] = row.required, "0", "0"
			w.fund("master", "BTC", "10")
			var in []withdrawal.CreateInput
			for i, amount := range []string{"0.0015", "0.00166667", "0.16666", "0.16666667"} {
				v := w.create(bitcoin(amount))
				require.Equal(t, row.want[i], v.Required, amount)
				require.Equal(t, row.want[i], w.get(v.ID).Required, amount)
				in = append(in, bitcoin(amount))
			}
			p, err := w.CreatePayout(w.ctx, tenant, "", in)
			require.NoError(t, err)
			for i, v := range p.Withdrawals {
				require.Equal(t, row.want[i], v.Required, "of a payout of several: %d", i)
			}
		})
	}
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	require.EqualValues(t, 1, w.create(usdt("100")).Required, "a currency without steps")
}

// TestFM10_ALaterPriceDoesNotMoveAPayout: what was stored with a payout is what it is submitted with
// and what completes it.
func TestFM10_ALaterPriceDoesNotMoveAPayout(t *testing.T) {
	t.Parallel()
	w := newWorld(t, stepped(t, "0=1,100=3,10000=6", 6))
	w.percent, w.fee["BTC"] = "0", "0"
	w.fund("master", "BTC", "10")
	v := w.create(bitcoin("0.01")) // 600 USD
	w.price = "6000000"
	w.step()
	require.EqualValues(t, 3, w.get(v.ID).Required)
	require.EqualValues(t, 3, w.payouts.intents[v.ID].Confirmations)
	for n := int64(1); n <= 3; n++ {
		require.NoError(t, w.HandleOutcome(w.ctx, tenant, withdrawal.Outcome{
			Intent: v.ID, State: withdrawal.OutcomeExecuted, Tx: "tx", Confirmations: n, Amount: v.Amount, At: w.clock(),
		}))
		require.Equal(t, n == 3, w.get(v.ID).Status == withdrawal.Completed, n)
	}
}

// noPrice counts how often it is asked.
type noPrice struct{ asked atomic.Int64 }

func (n *noPrice) Rate(context.Context, string, string) (rates.Rate, error) {
	n.asked.Add(1)
	return rates.Rate{}, errors.New("the sources are away")
}

// TestFM10_WithoutAPriceTheHighestStepHolds: the payout is made all the same, and the log says why
// it waits longer. The price is asked for once for all payouts of a request.
func TestFM10_WithoutAPriceTheHighestStepHolds(t *testing.T) {
	t.Parallel()
	none := &noPrice{}
	for name, source := range map[string]rates.Rates{"no source": nil, "no answer": none} {
		var log strings.Builder
		w := newWorldOn(t, memory.New(), stepped(t, "0=1,100=3,10000=6", 6), func(c *withdrawal.Config) {
			c.Rates, c.Log = source, slog.New(slog.NewTextHandler(&log, nil))
		})
		w.percent, w.fee["BTC"] = "0", "0"
		w.fund("master", "BTC", "10")
		require.EqualValues(t, 6, w.create(bitcoin("0.001")).Required, name)
		require.Contains(t, log.String(), "level=WARN msg=price_unavailable currency=BTC", name)
		asked := none.asked.Load()
		p, err := w.CreatePayout(w.ctx, tenant, "", []withdrawal.CreateInput{bitcoin("0.001"), bitcoin("0.002"), bitcoin("0.003")})
		require.NoError(t, err)
		for _, v := range p.Withdrawals {
			require.EqualValues(t, 6, v.Required, name)
		}
		require.LessOrEqual(t, none.asked.Load()-asked, int64(1), name)
		require.Equal(t, 2, strings.Count(log.String(), "price_unavailable"), name)
	}
}
