package wallet_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// A reorg takes a deposit away that was moved on already. The wallet holds nothing
// and owes the deposit, so it stays until the debt is repaid.
func TestFQ06_WalletThatOwesIsNotDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	v := w.sub("a")
	w.post(ledger.KindDeposit, v.ID, usdt, "10")
	w.transfer(wallet.ToMaster, v.ID, "10")
	w.step()
	owe := func(id string, units ledger.Amount) {
		require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{ID: id, Partition: storage.Tenant(tenant), Post: []ledger.Tx{{
			ID: id, Kind: ledger.KindAdjustment, At: w.clock(), Legs: []ledger.Leg{
				{Account: ledger.Chain("TRX"), Asset: usdt, Delta: units},
				{Account: ledger.Receivable(v.ID), Asset: usdt, Delta: -units},
			},
		}}}))
	}
	owe("reversal", 10_000_000)
	require.Equal(t, "0/0", w.has(v.ID))
	require.ErrorIs(t, w.Delete(w.ctx, tenant, v.ID), wallet.ErrNotEmpty)
	got, err := w.Get(w.ctx, tenant, v.ID)
	require.NoError(t, err)
	require.False(t, got.Closed)
	owe("repayment of a part", -9_999_999)
	require.ErrorIs(t, w.Delete(w.ctx, tenant, v.ID), wallet.ErrNotEmpty, "one unit is owed")
	owe("repayment", -1)
	require.NoError(t, w.Delete(w.ctx, tenant, v.ID))
}

// The target of a transfer is closed after it was read and before the transfer is
// committed: nothing is posted to a closed wallet.
func TestFQ12_TargetClosedBetweenReadAndCommit(t *testing.T) {
	t.Parallel()
	w, transfer, v := closing(t)
	w.step()
	got, err := w.Transfer(w.ctx, tenant, transfer.ID)
	require.NoError(t, err)
	require.Equal(t, wallet.TransferFailed, got.Status)
	require.Equal(t, "10/0", w.has(wallet.Master))
	require.Equal(t, "none", w.has(v.ID))
}

// A failed transfer has a higher event number than the pending one. A receiver
// orders its events by it.
func TestFQ12_FailureHasItsEventNumber(t *testing.T) {
	t.Parallel()
	w, transfer, _ := closing(t)
	w.step()
	got, err := w.Transfer(w.ctx, tenant, transfer.ID)
	require.NoError(t, err)
	require.Equal(t, wallet.TransferFailed, got.Status)
	events := w.events(transfer.ID)
	require.Len(t, events, 1)
	require.Equal(t, transfer.Seq+1, got.Seq)
	require.Equal(t, got.Seq, events[0].Seq)
}

// closing is a world with one transfer whose target is closed just before the next
// commit.
func closing(t *testing.T) (*world, wallet.Transfer, wallet.Wallet) {
	t.Helper()
	store := &forgetful{}
	w := newWorld(t)
	store.Store = w.store
	s, err := wallet.New(wallet.Config{Store: store, Registry: registry, Now: w.clock, NewID: w.newID})
	require.NoError(t, err)
	w.Service = s
	v := w.sub("a")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "10")
	transfer := w.accepted(wallet.ToSub, v, "10")
	store.before = func() {
		_, row, _, err := wallet.WalletRows.One(w.ctx, w.store, storage.Tenant(tenant), v.ID)
		require.NoError(t, err)
		closed := v
		closed.Closed, closed.Key = true, "-"
		require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
			ID: "close", Partition: storage.Tenant(tenant),
			Put: []storage.Row{wallet.WalletRows.Row(v.ID, row.Version, time.Time{}, closed)},
		}))
	}
	return w, transfer, v
}
