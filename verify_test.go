package cryptopay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
)

// What balances in the ledger can still be about nothing: a hold without an
// owner (L13), and a payout that no withdrawal stands behind.
func TestL13_VerifyNamesWhatNothingExplains(t *testing.T) {
	t.Parallel()
	h := newHost(t, 11, "BTC")
	master := ledger.Wallet(wallet.Master)
	post := func(tx ledger.Tx) {
		tx.At = h.clock.Now()
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: tx.ID, Partition: storage.Tenant(h.tenant), Post: []ledger.Tx{tx}}))
	}
	post(ledger.Tx{ID: "gift", Kind: ledger.KindAdjustment, Legs: []ledger.Leg{
		{Account: ledger.Chain("BTC"), Asset: "BTC", Delta: -100}, {Account: master, Asset: "BTC", Delta: 100},
	}})
	h.sound()
	post(ledger.Tx{ID: "hold/nobody", Kind: ledger.KindWithdrawal, Ref: "nobody", Legs: []ledger.Leg{{Account: master, Asset: "BTC", Hold: 40}}})
	post(ledger.Tx{ID: "settle/stranger", Kind: ledger.KindWithdrawal, Ref: "stranger", Legs: []ledger.Leg{
		{Account: master, Asset: "BTC", Delta: -30}, {Account: ledger.Chain("BTC"), Asset: "BTC", Delta: 30},
	}})
	for sign, what := range map[ledger.Amount]string{1: "credit/ghost", -1: "reverse/ghost"} { // together they come to nothing
		post(ledger.Tx{ID: what, Kind: ledger.KindDeposit, Ref: "ghost", Legs: []ledger.Leg{
			{Account: master, Asset: "BTC", Delta: 20 * sign}, {Account: ledger.Chain("BTC"), Asset: "BTC", Delta: -20 * sign},
		}})
	}
	reports, err := h.app.Verify(t.Context())
	require.NoError(t, err)
	require.Len(t, reports, 1)
	r := reports[0]
	require.False(t, r.Sound())
	require.Empty(t, r.Ledger.Findings, "the ledger by itself sees nothing wrong")
	require.Len(t, r.Holds, 1)
	require.EqualValues(t, 40, r.Holds[0].Held)
	require.Equal(t, []cryptopay.Unexplained{{Kind: "payment", ID: "ghost"}, {Kind: "withdrawal", ID: "stranger", Posted: -30}}, r.Unexplained)
}

// Money that a person gave to a wallet out of suspense is explained by its
// deposit, also after a deep reorg took it away again.
func TestR03_VerifyExplainsWhatWasResolved(t *testing.T) {
	t.Parallel()
	h := newHost(t, 13, "BTC")
	const id = "BTC/tx:0"
	d := payment.Deposit{Network: "BTC", Tx: "tx", Currency: "BTC", Amount: 100, Role: payment.RoleUnmatched, Booking: payment.InSuspense}
	master, outside := ledger.Wallet(wallet.Master), ledger.Chain("BTC")
	version := int64(0)
	put := func(b payment.Booking, tx string, from, to ledger.Account) {
		t.Helper()
		d.Booking = b
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
			ID: tx, Partition: storage.Tenant(h.tenant), Put: []storage.Row{payment.Deposits.Row(id, version, time.Time{}, d)},
			Post: []ledger.Tx{{ID: tx + "/" + id + "/1", Kind: ledger.KindDeposit, Ref: id, At: h.clock.Now(), Legs: []ledger.Leg{
				{Account: from, Asset: "BTC", Delta: -100}, {Account: to, Asset: "BTC", Delta: 100},
			}}},
		}))
		version++
		reports, err := h.app.Verify(t.Context())
		require.NoError(t, err)
		require.Len(t, reports, 1)
		require.Empty(t, reports[0].Ledger.Findings)
		require.Empty(t, reports[0].Unexplained)
	}
	put(payment.InSuspense, "credit", outside, ledger.Suspense)
	put(payment.Resolved, "resolve", ledger.Suspense, master)
	put(payment.Reversed, "reverse", master, outside)

	d.Booking = payment.Resolved
	require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
		ID: "planted", Partition: storage.Tenant(h.tenant), Put: []storage.Row{payment.Deposits.Row(id, version, time.Time{}, d)},
	}))
	r, err := h.app.VerifyTenant(t.Context(), h.tenant)
	require.NoError(t, err)
	require.Equal(t, []cryptopay.Unexplained{{Kind: "deposit", ID: id, Stated: 100}}, r.Unexplained)
}

// What is set aside for gas and what reservations say are two rows of one
// Change; a difference between them is named, whichever side it is on.
func TestL13_VerifyNamesGasThatNothingReserves(t *testing.T) {
	t.Parallel()
	h := newHost(t, 12, "ETH")
	put := func(rows ...storage.Row) {
		t.Helper()
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: fmt.Sprint("planted/", h.random.Uint64()), Partition: storage.Tenant(h.tenant), Put: rows}))
	}
	reservation := func(id string, version, amount int64, open bool) storage.Row {
		return treasury.Reservations.Row(id, version, time.Time{}, treasury.Reservation{Asset: "ETH", Amount: ledger.Amount(amount), Since: h.clock.Now(), Open: open})
	}
	float := func(version, reserved, count int64) storage.Row {
		return treasury.GasFloats.Row("ETH", version, time.Time{}, treasury.GasFloat{Asset: "ETH", Reserved: ledger.Amount(reserved), Count: count})
	}
	found := func() []cryptopay.GasMismatch {
		t.Helper()
		r, err := h.app.VerifyTenant(t.Context(), h.tenant)
		require.NoError(t, err)
		require.Equal(t, len(r.Gas) == 0, r.Sound())
		return r.Gas
	}
	put(reservation("a", 0, 30, true))
	require.Equal(t, []cryptopay.GasMismatch{{Asset: "ETH", Owed: 30, Open: 1}}, found(), "a float that is not there")
	put(float(0, 30, 1), reservation("ended", 0, 5, false))
	require.Empty(t, found())
	put(float(1, 31, 1))
	require.Equal(t, []cryptopay.GasMismatch{{Asset: "ETH", Reserved: 31, Owed: 30, Count: 1, Open: 1}}, found())
	put(float(2, 30, 1), reservation("a", 1, 30, false))
	require.Equal(t, []cryptopay.GasMismatch{{Asset: "ETH", Reserved: 30, Count: 1}}, found(), "a reservation that has ended")
	put(float(3, 0, 1))
	require.Equal(t, []cryptopay.GasMismatch{{Asset: "ETH", Count: 1}}, found(), "the count alone")
	put(float(4, 0, 0))
	require.Empty(t, found())
}

// A reservation that ends while Verify looks is no difference.
func TestL13_VerifyWhileGasIsGivenBack(t *testing.T) {
	t.Parallel()
	s := &readStore{Store: memory.New()}
	h := newHostOn(t, s, 13, "ETH")
	put := func(version, reserved, count int64, open bool) {
		require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: fmt.Sprint("gas/", version), Partition: storage.Tenant(h.tenant), Put: []storage.Row{
			treasury.GasFloats.Row("ETH", version, time.Time{}, treasury.GasFloat{Asset: "ETH", Reserved: ledger.Amount(reserved), Count: count}),
			treasury.Reservations.Row("a", version, time.Time{}, treasury.Reservation{Asset: "ETH", Amount: 30, Since: h.clock.Now(), Open: open}),
		}}))
	}
	put(0, 30, 1, true)
	given := false
	s.before = func(read string) {
		if !given && read == treasury.Reservations.Table.Name {
			given = true
			put(1, 0, 0, false)
		}
	}
	r, err := h.app.VerifyTenant(t.Context(), h.tenant)
	require.NoError(t, err)
	require.True(t, given)
	require.Empty(t, r.Gas)
}
