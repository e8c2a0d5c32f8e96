package outgoing_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// costed is a client that says what coins cost.
type costed struct {
	chain.Client
	base, change, least, each ledger.Amount
}

func (c costed) CoinCosts(o chain.Order) (base, change, least ledger.Amount, coins []ledger.Amount, err error) {
	for range o.Coins {
		coins = append(coins, c.each)
	}
	return c.base, c.change, c.least, coins, nil
}

// spent are the amounts of the coins that the only attempt spends.
func (w *world) spent() (out []ledger.Amount) {
	rows := w.rows(outgoing.Attempts.Table)
	require.Len(w.t, rows, 1)
	for _, c := range outgoing.Attempts.Value(rows[0]).Coins {
		out = append(out, c.Amount)
	}
	return out
}

func selecting(t *testing.T, c costed, coins ...ledger.Amount) *world {
	w := newWorld(t, setup{family: chain.UTXOFamily, change: func(o *outgoing.Config) {
		c.Client = o.Client
		o.Client = c
	}})
	for _, n := range coins {
		w.fund(w.key(), "BTC", n)
	}
	return w
}

func TestSmallestCoinThatDoesIsSpent(t *testing.T) {
	t.Parallel()
	w := selecting(t, costed{base: 300, change: 200, least: 546, each: 400}, coin, 4*coin, 2*coin, 3*coin)
	in := w.submit(w.intent("a", 3*coin/2))
	require.NoError(t, w.step())
	require.Equal(t, []ledger.Amount{2 * coin}, w.spent())
	w.run(14)
	w.paid(in)
	w.sound()
}

// TestCoinCostsThatAreTooLowOnlyCostAnotherTry: what Build says is what counts.
func TestCoinCostsThatAreTooLowOnlyCostAnotherTry(t *testing.T) {
	t.Parallel()
	w := selecting(t, costed{}, 2*coin, coin)
	in := w.submit(w.intent("a", 2*coin))
	require.NoError(t, w.step())
	require.Equal(t, []ledger.Amount{2 * coin, coin}, w.spent())
	w.run(14)
	w.paid(in)
	w.sound()
}

// TestDustIsNeverSpent: a coin that costs more than it brings stays where it is.
func TestDustIsNeverSpent(t *testing.T) {
	t.Parallel()
	w := selecting(t, costed{base: 300, change: 200, least: 546, each: 5000}, coin, 4000, 4000, 4000)
	w.submit(w.intent("a", coin-2000))
	require.NoError(t, w.step())
	require.Empty(t, w.rows(outgoing.Attempts.Table))
	require.Equal(t, outgoing.ReasonOperatorFunds, w.last("a").Reason, "the amount is there, and not its fee")
	w.submit(w.intent("b", coin-20_000))
	require.NoError(t, w.step())
	require.Equal(t, []ledger.Amount{coin}, w.spent())
}
