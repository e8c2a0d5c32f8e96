package treasury_test

import (
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// left is what deposit addresses hold of the network's own coin, and sent what was sent to them as gas.
func (w *world) left() (left, sent decimal.Decimal) {
	w.t.Helper()
	at := map[string]bool{}
	for _, d := range w.deposits() {
		if string(w.hot) != d.Address && !at[d.Address] {
			at[d.Address], left = true, left.Add(w.chain.Balance(chain.Address(d.Address), string(w.n)))
		}
	}
	for _, v := range w.intents(chain.ForGas) {
		sent = sent.Add(w.currency(string(w.n)).Decimal(v.Amount))
	}
	return left, sent
}

// takes orders a payout of so many coins.
func (w *world) takes(currency, amount string) string {
	w.t.Helper()
	a := dec(amount)
	v, err := w.app.Withdrawals.Create(w.t.Context(), w.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &a, FinalAmount: true, Currency: currency, Address: string(w.chain.Customer("supplier"))},
	})
	require.NoError(w.t, err)
	return v.ID
}

// A payout takes all that the wallet has. The operator's coins, by the books enough for its fee, rest as gas on deposit
// addresses. He is asked for coins until they are there.
func TestFT03_PayoutThatLacksWhatIsLeftAsksTheOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.pay("ETH", "200")
	w.pass(20)
	w.fund("0.005")
	for range 3 {
		for range 8 {
			w.pay("USDTERC20", "100")
		}
		w.pass(40)
	}
	left, sent := w.left()
	require.True(t, left.GreaterThan(dec("0.003")), "%s of %s", left, sent)
	amount := dec("0.0999")
	require.True(t, w.chain.Balance(w.hot, "ETH").LessThan(amount))
	id := w.takes("ETH", amount.String())
	w.pass(10)
	v := w.intents(chain.ForWithdrawal)[0]
	require.Equal(t, outgoing.Waiting, v.State)
	require.Equal(t, outgoing.ReasonOperatorFunds, v.Reason)
	shown, err := w.app.Withdrawals.Get(t.Context(), w.tenant, id)
	require.NoError(t, err)
	require.Equal(t, withdrawal.ShownGasShort, shown.WaitingReason())
	require.False(t, shown.WaitingSince.IsZero())
	w.clock.Advance(12 * time.Hour)
	w.pass(10)
	require.Equal(t, outgoing.ReasonOperatorFunds, w.intents(chain.ForWithdrawal)[0].Reason)
	w.fund("0.01")
	w.clock.Advance(2 * time.Hour)
	w.pass(40)
	w.paidOut(id)
	w.conserved("ETH", "USDTERC20")
	w.released()
}

// A payout that lacks coins which a deposit brings is not the operator's to help: on its way to the hot address, and
// while that costs too much. Nor is one that he is to bring coins back for from a cold address.
func TestFT03_PayoutWhoseCoinsComeDoesNotAskTheOperator(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ETH")
	w.fund("0.005")
	ask := func(amount ledger.Amount) bool {
		asks, err := w.app.Treasury.Uncovered(t.Context(), chain.Intent{
			ID: "w1", Purpose: chain.ForWithdrawal, Tenant: w.tenant, Network: "ETH", Currency: "ETH", From: w.hot, Amount: amount,
		})
		require.NoError(t, err)
		return asks
	}
	units := func(coins string) ledger.Amount {
		a, err := w.currency("ETH").Units(dec(coins), ledger.Down)
		require.NoError(t, err)
		return a
	}
	require.False(t, ask(units("0.005")), "it is there")
	require.True(t, ask(units("0.005")+1))
	w.pay("ETH", "200") // 0.1 ETH
	w.until(func() bool { return len(w.sweeps()) == 1 && w.sweeps()[0].State == treasury.SweepMoving })
	require.False(t, ask(units("0.105")))
	require.True(t, ask(units("0.105")+1))
	came := incoming.Sighting{
		Tx: "tx", Network: "ETH", Tenant: w.tenant, Currency: "ETH", Amount: 1, State: incoming.Final, Purpose: incoming.UsePayment, Forward: incoming.ForwardNone,
	}
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "came", Partition: storage.Network("ETH"), Put: []storage.Row{incoming.Sightings.Row(came.Key(), 0, time.Time{}, came)},
	}))
	require.False(t, ask(units("0.105")+1), "no sweep has it yet")
	require.True(t, ask(units("0.105")+2))
	require.NoError(t, storage.CommitOne(t.Context(), w.store, storage.Change{
		ID: "cold", Partition: storage.Tenant(w.tenant), Put: []storage.Row{treasury.ColdRow(storage.Row{}, treasury.TopUp{Currency: "ETH", Amount: 1})},
	}))
	require.False(t, ask(units("0.105")+2))
	none, err := w.app.Treasury.Uncovered(t.Context(), chain.Intent{Tenant: w.tenant, Network: "ETH", Currency: "USDTERC20", From: w.hot, Amount: 1})
	require.NoError(t, err)
	require.False(t, none, "a token is no gas")
}
