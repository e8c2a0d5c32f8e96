package treasury_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A payout of a token was executed, then a reorg takes it away and it reverts for
// good, so it is sent again under the same intent. Two transactions of the intent
// landed, and the network took a fee for each: the books have both.
func TestFQ05_EachLandedTransactionHasItsCost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("1")
	w.pay("USDTERC20", "300")
	w.mine(60)
	amount := dec("100")
	to := w.chain.Customer("supplier")
	v, err := w.app.Withdrawals.Create(t.Context(), w.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &amount, Currency: "USDTERC20", Address: string(to)},
	})
	require.NoError(t, err)
	before := w.posted(ledger.FeesNetwork, "ETH")
	payout := func() outgoing.IntentRow { return w.intents(chain.ForWithdrawal)[0] }
	w.until(func() bool { p := w.intents(chain.ForWithdrawal); return len(p) > 0 && p[0].State == outgoing.Executed })
	contract := w.currency("USDTERC20").Contract
	w.chain.SetBehaviour(contract, paused)
	_, err = w.chain.Reorg(5)
	require.NoError(t, err)
	first := payout().Tx
	reverted := func() bool {
		for _, a := range w.attempts() {
			if outgoing.Attempts.Value(a).Intent == v.ID && outgoing.Attempts.Value(a).State == outgoing.AttemptFinal {
				return true
			}
		}
		return false
	}
	w.until(reverted)
	w.chain.SetBehaviour(contract, sim.Behaviour{})
	w.until(func() bool { return payout().State == outgoing.Final })
	w.mine(1)
	require.NotEqual(t, first, payout().Tx)
	require.False(t, w.chain.Balance(to, "USDTERC20").IsZero())

	fees, landed, order := dec("0"), 0, v.ID
	for _, a := range w.attempts() {
		if v := outgoing.Attempts.Value(a); v.State == outgoing.AttemptFinal && v.Intent == order {
			landed++
			fees = fees.Add(w.currency("ETH").Decimal(w.took(a.ID)))
		}
	}
	require.Equal(t, 2, landed)
	require.Equal(t, fees.String(), before.Sub(w.posted(ledger.FeesNetwork, "ETH")).String())
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// took is the fee that the chain took for a transaction.
func (w *world) took(tx string) ledger.Amount {
	w.t.Helper()
	st, err := w.chain.Outcome(tx)
	require.NoError(w.t, err)
	return st.Cost
}
