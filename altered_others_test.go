package cryptopay_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// pays creates a payment and pays it in full.
func (i *insider) pays() payment.Payment {
	i.t.Helper()
	p, err := i.app.Payments.Create(i.t.Context(), i.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "500", Currency: "USDTERC20"}})
	require.NoError(i.t, err)
	_, err = i.chains["ETH"].Pay(chain.Address(p.Address), "USDTERC20", dec("500"))
	require.NoError(i.t, err)
	return p
}

// A deposit that somebody has edited so that it cannot be read costs that one: those of
// others become final and are forwarded.
func TestFS02_DepositThatCannotBeReadStopsNobody(t *testing.T) {
	t.Parallel()
	for name, final := range map[string]bool{"before it is final": false, "before it is forwarded": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			broken := i.pays()
			const of = " WHERE address = ? AND currency = 'USDTERC20'"
			set := "UPDATE cryptopay_sightings SET exact = 'x'"
			if i.work(3); final { // as a deposit is that was handled, and has no sweep yet
				i.work(60)
				set += ", forward = '', due = 0"
			}
			i.edit(set+of, broken.Address)
			p := i.pays()
			i.work(60)
			got, err := i.app.Payments.Get(t.Context(), i.tenant, p.ID)
			require.NoError(t, err)
			require.Equal(t, payment.Completed, got.Status)
			require.Zero(t, i.chains["ETH"].Balance(chain.Address(p.Address), "USDTERC20").Sign(), "it is forwarded")
			require.Contains(t, i.log.heard(), "row_unreadable")
			if !final {
				i.edit("UPDATE cryptopay_sightings SET exact = '500'"+of, broken.Address)
				i.work(60)
				got, err = i.app.Payments.Get(t.Context(), i.tenant, broken.ID)
				require.NoError(t, err)
				require.Equal(t, payment.Completed, got.Status)
			}
		})
	}
}

// A transaction that somebody has edited so that it cannot be read costs its payout: it is
// neither watched nor sent again, and those of others are.
func TestFS02_AttemptThatCannotBeReadStopsNobody(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	world := i.chains["ETH"]
	supplier := world.Customer("supplier")
	broken := i.withdraw("USDTERC20", "100", supplier)
	var spends string
	for range 20 {
		if i.work(1); i.db.Get(&spends, "SELECT spends FROM cryptopay_attempts WHERE intent = ?", broken.ID) == nil {
			break
		}
	}
	i.edit("UPDATE cryptopay_attempts SET spends = 'x' WHERE intent = ?", broken.ID)
	w := i.withdraw("USDTERC20", "200", world.Customer("another"))
	i.work(60)
	got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, got.Status)
	got, err = i.app.Withdrawals.Get(t.Context(), i.tenant, broken.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Processing, got.Status)
	told := strings.Count(i.log.heard(), "msg=row_unreadable network=ETH table=attempts")
	require.Positive(t, told)
	require.LessOrEqual(t, told, 17, "once a minute, and not at each look")
	i.edit("UPDATE cryptopay_attempts SET spends = ? WHERE intent = ?", spends, broken.ID)
	i.work(30)
	got, err = i.app.Withdrawals.Get(t.Context(), i.tenant, broken.ID)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, got.Status)
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	require.Equal(t, usdt.Decimal(got.Amount).String(), world.Balance(supplier, "USDTERC20").String(), "once")
}

// A payout whose row somebody has edited, once a transaction in BTC that pays others as well is
// out, costs that payout: no node has the transaction any more, and the others are paid anew.
func TestFS02_EditedPayoutCostsNoOtherOfItsTransaction(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "BTC")
	world := i.chains["BTC"]
	altered := i.withdraw("BTC", "0.004", world.Customer("supplier"))
	others := []withdrawal.Withdrawal{i.withdraw("BTC", "0.005", world.Customer("another")), i.withdraw("BTC", "0.006", world.Customer("third"))}
	i.step()
	sent := world.Mempool()
	require.Len(t, sent, 1, "one transaction pays all")
	i.edit("UPDATE cryptopay_withdrawals SET address = ? WHERE id = ?", i.thief, altered.ID)
	world.Drop(sent...)
	i.work(200)
	for _, w := range others {
		got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Completed, got.Status, got.Waiting)
	}
	require.Contains(t, i.log.heard(), "msg=coins_taken_back network=BTC")
	require.Zero(t, world.Balance(i.thief, "BTC").Sign())
	require.Zero(t, world.Balance(chain.Address(altered.Address), "BTC").Sign())
	i.named(altered.ID)
}
