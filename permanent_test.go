package cryptopay_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// permanentOn runs a test of permanent addresses on memory and on SQLite.
func permanentOn(t *testing.T, networks []chain.Network, test func(*testing.T, *cryptopaytest.Host)) {
	t.Helper()
	for name, store := range map[string]func(*testing.T) storage.Store{
		"memory": func(*testing.T) storage.Store { return memory.New() },
		"sqlite": func(t *testing.T) storage.Store {
			path := filepath.Join(t.TempDir(), "shop.db")
			require.NoError(t, sqlite.Migrate(t.Context(), path, append(cryptopay.Tables(), keys.Tables()...)...))
			s, err := sqlite.Open(path, sqlite.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, cryptopaytest.Open(t, cryptopaytest.Options{Store: store(t), Networks: networks}))
		})
	}
}

// TestPermanentAddress_OnEveryKindOfNetwork: what comes is a payment each, is in the wallet,
// and can be paid out: coins, tokens, outputs, and numbers of an account that addresses share.
func TestPermanentAddress_OnEveryKindOfNetwork(t *testing.T) {
	t.Parallel()
	networks := []chain.Network{"ETH", "TRX", "BTC", "XRP"}
	coins := map[string]string{"ETH": "0.1", "USDTERC20": "40", "USDTTRC20": "40", "BTC": "0.01", "XRP": "50"}
	permanentOn(t, networks, func(t *testing.T, h *cryptopaytest.Host) {
		for currency, amount := range coins {
			a := h.PermanentAddress("ann", currency)
			for range 2 {
				_, err := h.Chains[chain.Network(a.Network)].Pay(chain.Address(a.Address), currency, decimal.RequireFromString(amount))
				require.NoError(t, err)
			}
		}
		h.Settle() // what comes now comes to addresses that were forwarded before
		for currency, amount := range coins {
			a := h.PermanentAddress("ann", currency)
			_, err := h.Chains[chain.Network(a.Network)].Pay(chain.Address(a.Address), currency, decimal.RequireFromString(amount))
			require.NoError(t, err)
		}
		h.Settle()
		page, _, _, err := h.App.Payments.List(t.Context(), h.ID, payment.Filter{Limit: 100})
		require.NoError(t, err)
		require.Len(t, page, 3*len(coins))
		for _, p := range page {
			require.Equal(t, payment.Completed, p.Status, "%s", p.Currency)
			require.Equal(t, coins[p.Currency], p.DueCoins().String(), p.Currency)
			require.NotEmpty(t, p.AddressID)
		}
		addresses, total, err := h.App.Payments.PermanentAddresses(t.Context(), h.ID, payment.AddressFilter{ExternalID: "ann"})
		require.NoError(t, err)
		require.Equal(t, int64(len(networks)), total, "one for a network, whatever the currency")
		require.Len(t, addresses, len(networks))
		h.Verify()
		for currency, amount := range coins {
			w := h.Withdraw(decimal.RequireFromString(amount).Mul(decimal.New(25, -1)).String(), currency, func(in *withdrawal.CreateInput) {
				if currency == "XRP" {
					in.Memo = "7"
				}
			})
			require.Equal(t, "completed", string(w.Status), "%s waits for %s", currency, w.Waiting)
		}
		h.Verify()
	})
}

// TestPermanentAddress_TwoInABlockReorgAndRestart: two transactions in one block, one of them
// lost to a fork and back; another process in between; the addresses are checked by Verify.
func TestPermanentAddress_TwoInABlockReorgAndRestart(t *testing.T) {
	t.Parallel()
	permanentOn(t, []chain.Network{"ETH"}, func(t *testing.T, h *cryptopaytest.Host) {
		a := h.PermanentAddress("ann", "USDTERC20")
		eth := h.Chains["ETH"]
		var txs []string
		for _, amount := range []string{"20", "30"} {
			tx, err := eth.Pay(chain.Address(a.Address), "USDTERC20", decimal.RequireFromString(amount))
			require.NoError(t, err)
			txs = append(txs, tx)
		}
		h.Step()
		h.Mine(1)
		require.Len(t, h.PaymentsOf(a), 2)
		_, err := eth.Reorg(1, txs[0])
		require.NoError(t, err)
		h.Mine(30)
		h.Restart()
		status := map[string]payment.Status{}
		for _, p := range h.PaymentsOf(a) {
			status[p.DueCoins().String()] = p.Status
		}
		require.Equal(t, map[string]payment.Status{"20": payment.Failed, "30": payment.Completed}, status)
		h.Clock.Advance(60 * time.Hour)
		require.NoError(t, eth.Resend(txs[0]))
		h.Settle()
		h.Mine(20)
		for _, p := range h.PaymentsOf(a) {
			require.Equal(t, payment.Completed, p.Status)
		}
		h.Verify()
	})
}

// TestPermanentAddress_InAHostsTransaction: it is there with the host's own row, or not at all.
func TestPermanentAddress_InAHostsTransaction(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	store := h.Store.(*memory.Store)
	in := payment.AddressInput{ExternalID: "ann", Currency: "USDTERC20"}
	for _, commit := range []bool{false, true} {
		tx, err := store.Begin(t.Context())
		require.NoError(t, err)
		_, made, err := h.App.In(store.WithTx(tx)).Payments.PermanentAddress(t.Context(), h.ID, in)
		require.NoError(t, err)
		require.True(t, made)
		if commit {
			require.NoError(t, tx.Commit())
		} else {
			require.NoError(t, tx.Rollback())
		}
		_, total, err := h.App.Payments.PermanentAddresses(t.Context(), h.ID, payment.AddressFilter{})
		require.NoError(t, err)
		require.Equal(t, map[bool]int64{false: 0, true: 1}[commit], total)
	}
	a := h.PermanentAddress("ann", "USDTERC20")
	h.Customer.SendsTo(a, "25", "USDTERC20")
	require.Len(t, h.PaymentsOf(a), 1)
	h.Verify()
}

// TestFU02_PermanentAddressesWaitForTheLastOldProcess: on a store of an earlier version there
// are none until App.Upgraded, as an old process would not credit what comes there.
func TestFU02_PermanentAddressesWaitForTheLastOldProcess(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	const ability = "permanent_addresses"
	row, err := h.Store.Rows(t.Context(), cryptopay.Abilities.Table, storage.Keys(storage.System, ability)...)
	require.NoError(t, err)
	require.Len(t, row, 1)
	require.NoError(t, storage.CommitOne(t.Context(), h.Store, storage.Change{ID: "as it was", Partition: storage.System, Drop: row}))
	h.Restart()
	in := payment.AddressInput{ExternalID: "ann", Currency: "USDTERC20"}
	_, _, err = h.App.Payments.PermanentAddress(t.Context(), h.ID, in)
	require.ErrorIs(t, err, payment.ErrNotUpgraded)
	require.NoError(t, h.App.Upgraded(t.Context()))
	h.Customer.SendsTo(h.PermanentAddress("ann", "USDTERC20"), "25", "USDTERC20")
	require.Len(t, h.PaymentsOf(h.PermanentAddress("ann", "USDTERC20")), 1)
}

// TestPermanentAddress_RetiredByTheHost: late money is in suspense and told to the host, and the
// address is watched for 30 days.
func TestPermanentAddress_RetiredByTheHost(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.New(t)
	a := h.PermanentAddress("ann", "USDTERC20")
	h.Customer.SendsTo(a, "25", "USDTERC20")
	_, err := h.App.Payments.RetireAddress(t.Context(), h.ID, a.ID)
	require.NoError(t, err)
	h.Customer.SendsTo(a, "30", "USDTERC20")
	require.Len(t, h.PaymentsOf(a), 1)
	late := func() int64 {
		_, n, err := h.App.Payments.SuspenseList(t.Context(), h.ID, payment.SuspenseFilter{Reason: payment.ReasonLate})
		require.NoError(t, err)
		return n
	}
	require.Equal(t, int64(1), late())
	var kinds []string
	for _, e := range h.Events() {
		if e.Object == a.ID {
			kinds = append(kinds, e.Kind)
		}
	}
	require.Equal(t, []string{"payment.address_changed", "payment.address_changed"}, kinds)
	h.Clock.Advance(31 * 24 * time.Hour)
	h.Mine(1)
	h.Customer.SendsTo(a, "40", "USDTERC20")
	require.Equal(t, int64(1), late(), "it is not watched any more")
	h.PermanentAddress("ann", "USDTERC20")
	h.Customer.SendsTo(a, "50", "USDTERC20")
	require.Len(t, h.PaymentsOf(a), 2)
	h.Verify()
}
