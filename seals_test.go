package cryptopay_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/seal"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// Journals are sealed by themselves, and Verify names what an insider edited in the
// database: here a row of which the books and the payments know nothing.
func TestL12_VerifyNamesWhatWasEdited(t *testing.T) {
	t.Parallel()
	store, dsn := onSQLite(t)
	h := newHostOn(t, store, 5, "BTC")
	pay := func(reference string) {
		t.Helper()
		p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{
			Pricing: payment.Pricing{Amount: "250", Currency: "BTC"}, OrderID: reference,
		})
		require.NoError(t, err)
		_, err = h.chains["BTC"].Pay(chain.Address(p.Address), "BTC", dec("0.01"))
		require.NoError(t, err)
		h.mine(8)
	}
	h.step()
	pay("first")
	_, ok, err := h.app.Seal(t.Context(), h.tenant, 0)
	require.NoError(t, err)
	require.False(t, ok, "the next round is in an hour")
	h.clock.Advance(time.Hour)
	h.step()
	kept, ok, err := h.app.Seal(t.Context(), h.tenant, 0)
	require.NoError(t, err)
	require.True(t, ok)
	pay("second")
	h.clock.Advance(time.Hour)
	h.step()
	h.sound()
	again, ok, err := h.app.Seal(t.Context(), h.tenant, kept.Number)
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, kept, again)

	db := sqlx.MustOpen("sqlite", dsn)
	defer db.Close() //nolint:errcheck // a test's end
	var tx string
	require.NoError(t, db.Get(&tx, "SELECT tx FROM cryptopay_entries WHERE account = 'wallet/master' AND seq = 1"))
	_, err = db.Exec("UPDATE cryptopay_ledger_txs SET at = at - 86400000000 WHERE id = ?", tx)
	require.NoError(t, err)
	r, err := h.app.VerifyTenant(t.Context(), h.tenant)
	require.NoError(t, err)
	require.False(t, r.Sound())
	require.Empty(t, r.Ledger.Findings)
	require.Empty(t, r.Unexplained)
	require.Len(t, r.Seals.Findings, 1)
	require.Equal(t, seal.FaultEntry, r.Seals.Findings[0].Fault)
	require.EqualValues(t, 1, r.Seals.Findings[0].Seal)
	require.Equal(t, tx, r.Seals.Findings[0].Tx)
	reports, err := cryptopay.VerifyStore(t.Context(), store)
	require.NoError(t, err)
	require.Equal(t, r.Seals, reports[0].Seals)

	_, err = db.Exec("UPDATE cryptopay_ledger_txs SET at = at + 86400000000 WHERE id = ?", tx)
	require.NoError(t, err)
	_, err = db.Exec("UPDATE cryptopay_seals SET mac = x'00' WHERE number = 1")
	require.NoError(t, err)
	r, err = h.app.VerifyTenant(t.Context(), h.tenant)
	require.NoError(t, err)
	require.Equal(t, []seal.Finding{{Fault: seal.FaultKey, Seal: 1}}, r.Seals.Findings)
	reports, err = cryptopay.VerifyStore(t.Context(), store)
	require.NoError(t, err)
	require.True(t, reports[0].Sound(), "without the Key nobody can tell")
}

// shortened is a store in which one partition's balances are of earlier.
type shortened struct {
	storage.Store
	p storage.Partition
}

func (s *shortened) Balances(ctx context.Context, p storage.Partition, a ...ledger.Account) ([]ledger.Balance, error) {
	list, err := s.Store.Balances(ctx, p, a...)
	for i := range list {
		if p == s.p {
			list[i].Seq = 0
		}
	}
	return list, err
}

// One tenant's broken journal holds up no other's, and sealing can be switched off.
func TestL12_BrokenJournalHoldsUpNobody(t *testing.T) {
	t.Parallel()
	store := &shortened{Store: memory.New()}
	h := newHostOn(t, store, 6, "BTC")
	name := "last"
	other, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{ID: "zz-last", Settings: wallet.Settings{Name: &name}})
	require.NoError(t, err)
	give := func(id, tenant string) {
		t.Helper()
		require.NoError(t, storage.CommitOne(t.Context(), store, storage.Change{ID: id, Partition: storage.Tenant(tenant), Post: []ledger.Tx{{
			ID: id, Kind: ledger.KindAdjustment, At: h.clock.Now(), Legs: []ledger.Leg{
				{Account: ledger.Chain("BTC"), Asset: "BTC", Delta: -100}, {Account: ledger.Wallet(wallet.Master), Asset: "BTC", Delta: 100},
			},
		}}}))
	}
	newest := func(tenant string) int64 {
		t.Helper()
		s, _, err := h.app.Seal(t.Context(), tenant, 0)
		require.NoError(t, err)
		return s.Number
	}
	give("one", h.tenant)
	h.step()
	require.EqualValues(t, 1, newest(h.tenant))
	store.p = storage.Tenant(h.tenant)
	give("two", h.tenant)
	give("three", other.ID)
	h.clock.Advance(time.Hour)
	h.step()
	require.EqualValues(t, 1, newest(h.tenant))
	require.EqualValues(t, 1, newest(other.ID))

	store.p = ""
	h.configure = func(c *cryptopay.Config) { c.SealEvery = -1 }
	h.restart()
	h.clock.Advance(time.Hour)
	h.step()
	require.EqualValues(t, 1, newest(h.tenant))
	require.False(t, slices.ContainsFunc(h.app.Workers(), func(w cryptopay.Worker) bool { return w.Name == "seals" }))
}
