package e2e_test

import (
	"fmt"
	"testing"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/utxo/utxotest"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A shop takes many small payments and pays out once. Each payout needs all coins that
// came since the one before. It is paid, and quoted for what it
// costs: neither less nor half as much again.
func TestCoinsFN02_PayoutOfManySmallCoins(t *testing.T) {
	onMints(t, func(t *testing.T, m *utxotest.Mint) {
		s := openShopWith(t, m, 40, "0.0025")
		for _, coins := range []int{3, 6, 20, 60, 200} {
			s.payOut(coins)
		}
		s.mine(8)
		s.sound()
	})
}

// partsPerPayment is in how many coins a payment comes: it takes no more than 100.
const partsPerPayment = 50

// payOut has payments come in as so many coins of 0.04, and pays all of it out but 0.01.
func (s *shop) payOut(coins int) withdrawal.Withdrawal {
	s.t.Helper()
	var ids []string
	for left := coins; left > 0; left -= min(left, partsPerPayment) {
		parts := min(left, partsPerPayment)
		p := s.order(fmt.Sprint(4 * parts))
		s.mint.Spread(p.Address, dec("0.04"), parts)
		ids = append(ids, p.ID)
	}
	for _, id := range ids {
		s.until("completed", func() bool { return s.payment(id).Status == payment.Completed })
	}
	to, err := s.mint.Client.AddressOf(testPub(fmt.Sprint("payee of ", coins)))
	require.NoError(s.t, err)
	amount := decimal.New(int64(4*coins-1), -2)
	w, err := s.app.Withdrawals.Create(s.t.Context(), s.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: &amount, Currency: string(s.mint.Network), Address: string(to)},
	}, storage.Once{})
	require.NoError(s.t, err)
	quoted := w.NetworkFee
	s.until("withdrawn", func() bool {
		w, err = s.app.Withdrawals.Get(s.t.Context(), s.tenant, w.ID)
		require.NoError(s.t, err)
		return w.Status == withdrawal.Completed
	})
	s.mine(8)
	require.Equal(s.t, decimal.New(int64(w.Amount), -8).String(), s.mint.Received(string(to)).String(), "paid once")
	spends, paid := s.spent(w.ID)
	s.t.Logf("%d coins: %d inputs, quoted %d, paid %d", coins, spends, quoted, paid)
	require.GreaterOrEqual(s.t, spends, coins-1, "it needed them")
	require.GreaterOrEqual(s.t, quoted, paid)
	require.LessOrEqual(s.t, quoted, paid*3/2)
	return w
}

// spent is how many coins a payout and what was done for it spent, and what the network
// took for them.
func (s *shop) spent(id string) (coins int, cost ledger.Amount) {
	s.t.Helper()
	rows, err := s.store.Find(s.t.Context(), storage.Query{
		Table: outgoing.Attempts.Table, Partition: storage.Network(string(s.mint.Network)), Limit: 1000,
		Where: []storage.Cond{{Column: "fate", Op: storage.Eq, Value: outgoing.Landed}},
	})
	require.NoError(s.t, err)
	for _, r := range rows {
		if a := outgoing.Attempts.Value(r); a.Intent == id {
			coins, cost = coins+len(a.Spends), cost+a.MaxCost
		}
	}
	return coins, cost
}
