package wallet_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

func TestTenants(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	_, err := w.CreateTenant(w.ctx, wallet.NewTenant{ID: tenant, Settings: wallet.Settings{Name: ptr("Other")}})
	require.ErrorIs(t, err, wallet.ErrTenantExists)
	w.advance(time.Second)
	second, err := w.CreateTenant(w.ctx, wallet.NewTenant{Settings: wallet.Settings{
		Name: ptr("Second"), TransactionFee: ptr(dec("0.5")), WithdrawalPercent: ptr(dec("0.25")), WithdrawalFlat: ptr(dec("1")),
		WithdrawalFlats: map[string]decimal.Decimal{"BTC": dec("0.0001")}, FeePaidByUser: ptr(true),
	}})
	require.NoError(t, err)
	got, err := w.Tenant(w.ctx, second.ID)
	require.NoError(t, err)
	require.Equal(t, "Second 0.5 true", got.Name+" "+got.TransactionFee.String()+" "+map[bool]string{true: "true"}[got.FeePaidByUser])

	for code, want := range map[string]string{"BTC": "0.25 0.0001", usdt: "0.25 1"} {
		percent, flat, err := w.WithdrawalFee(w.ctx, second.ID, code)
		require.NoError(t, err)
		require.Equal(t, want, percent.String()+" "+flat.String())
	}
	list, total, err := w.Tenants(w.ctx, 0, 0)
	require.NoError(t, err)
	require.EqualValues(t, 2, total)
	require.Equal(t, []string{tenant, second.ID}, []string{list[0].ID, list[1].ID})

	w.advance(time.Second)
	updated, err := w.UpdateTenant(w.ctx, second.ID, wallet.Settings{TransactionFee: ptr(dec("1"))})
	require.NoError(t, err)
	require.Equal(t, w.clock(), updated.UpdatedAt)
	require.Equal(t, "Second", updated.Name)
	_, err = w.UpdateTenant(w.ctx, "nobody", wallet.Settings{})
	require.ErrorIs(t, err, wallet.ErrNoTenant)

	var bad *wallet.InvalidError
	_, err = w.UpdateTenant(w.ctx, second.ID, wallet.Settings{
		Name: ptr(""), TransactionFee: ptr(dec("100.1")), WithdrawalPercent: ptr(dec("0.0000001")), WithdrawalFlat: ptr(decimal.New(1, 1_000_000_000)),
		WithdrawalFlats: map[string]decimal.Decimal{"BTC": dec("-1")},
	})
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Fields, 5)
	_, err = w.CreateTenant(w.ctx, wallet.NewTenant{ID: "a/b"})
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Fields, 2)
}

// TestTextsThatNoStoreKeeps: what a careless host passes on as it came, such as a name with a
// NUL or half a character in it, is refused by the name of its field.
func TestTextsThatNoStoreKeeps(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, text := range []string{"a\x00b", "a\xff"} {
		var bad *wallet.InvalidError
		_, err := w.CreateTenant(w.ctx, wallet.NewTenant{ID: text, Settings: wallet.Settings{Name: ptr(text)}})
		require.ErrorAs(t, err, &bad)
		require.Contains(t, bad.Fields, "id")
		require.Contains(t, bad.Fields, "name")
		_, err = w.UpdateTenant(w.ctx, tenant, wallet.Settings{Name: ptr(text)})
		require.ErrorAs(t, err, &bad)
		_, err = w.Create(w.ctx, tenant, wallet.CreateInput{Name: text, ExternalID: text})
		require.ErrorAs(t, err, &bad)
		require.Contains(t, bad.Fields, "name")
		require.Contains(t, bad.Fields, "external_id")
	}
	_, total, err := w.Tenants(w.ctx, 0, 0)
	require.NoError(t, err)
	require.EqualValues(t, 1, total)
}

// A crash between the two commits of a tenant's creation is healed by the next
// try.
func TestTenantHalfMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "half", Partition: storage.Tenant("t2"), Put: []storage.Row{wallet.WalletRows.Row(wallet.Master, 0, time.Time{}, wallet.Wallet{Name: "Master"})},
	}))
	_, err := w.CreateTenant(w.ctx, wallet.NewTenant{ID: "t2", Settings: wallet.Settings{Name: ptr("x")}})
	require.NoError(t, err)
	id, guard, err := w.Resolve(w.ctx, "t2", "")
	require.NoError(t, err)
	require.Equal(t, wallet.Master, id)
	require.EqualValues(t, 1, guard.Version)
}

// A deleted wallet is found for its history alone, by its own id.
func TestFindPast(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a := w.sub("a")
	require.NoError(t, w.Delete(w.ctx, tenant, a.ID))
	_, err := w.Find(w.ctx, tenant, a.ID, "")
	require.ErrorIs(t, err, wallet.ErrNotFound)
	past, err := w.FindPast(w.ctx, tenant, a.ID, "")
	require.NoError(t, err)
	require.Equal(t, a.ID, past.ID)
	require.True(t, past.Closed)
	for _, ref := range [][2]string{{"", "a"}, {"a", ""}, {wallet.Master, ""}, {"none", ""}, {strings.Repeat("x", 201), ""}} {
		_, err := w.FindPast(w.ctx, tenant, ref[0], ref[1])
		require.ErrorIs(t, err, wallet.ErrNotFound, ref)
	}
	_, err = w.FindPast(w.ctx, "other", a.ID, "")
	require.ErrorIs(t, err, wallet.ErrNotFound)
	b := w.sub("a")
	again, err := w.FindPast(w.ctx, tenant, "a", "")
	require.NoError(t, err)
	require.Equal(t, b.ID, again.ID, "who has the external id now")
}

// What is wrong with a request is told without making it.
func TestChecks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var bad *wallet.InvalidError
	require.ErrorAs(t, w.Check(wallet.CreateInput{Name: "", ExternalID: wallet.Master}), &bad)
	require.Len(t, bad.Fields, 2)
	require.NoError(t, w.Check(wallet.CreateInput{Name: "a", ExternalID: "b"}))
	require.ErrorAs(t, w.CheckTransfer(wallet.TransferInput{Direction: "up"}), &bad)
	require.Len(t, bad.Fields, 4)
	require.ErrorIs(t, w.CheckTransfer(wallet.TransferInput{Direction: wallet.ToSub, WalletID: "a", Currency: "XYZ", Amount: dec("1")}), chain.ErrCurrency)
	require.NoError(t, w.CheckTransfer(wallet.TransferInput{Direction: wallet.ToSub, WalletID: "a", Currency: usdt, Amount: dec("1")}))
}

func TestSubAccounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	a, b := w.sub("a"), w.sub("b")
	require.Equal(t, []int64{1, 2}, []int64{a.Number, b.Number})
	_, err := w.Create(w.ctx, tenant, wallet.CreateInput{Name: "again", ExternalID: "a"})
	require.ErrorIs(t, err, wallet.ErrExternalID)
	_, err = w.Create(w.ctx, "nobody", wallet.CreateInput{Name: "x", ExternalID: "x"})
	require.ErrorIs(t, err, wallet.ErrNoTenant)
	var bad *wallet.InvalidError
	_, err = w.Create(w.ctx, tenant, wallet.CreateInput{Name: "", ExternalID: strings.Repeat("x", 65)})
	require.ErrorAs(t, err, &bad)
	require.Len(t, bad.Fields, 2)

	for _, ref := range []string{"1", a.ID} {
		got, err := w.Get(w.ctx, tenant, ref)
		require.NoError(t, err)
		require.Equal(t, a, got)
	}
	for _, ref := range []string{"a", "3", "01", "+1", ""} {
		_, err := w.Get(w.ctx, tenant, ref)
		require.ErrorIs(t, err, wallet.ErrNotFound, ref)
	}
	for _, ref := range []string{"a", a.ID} {
		id, _, err := w.Resolve(w.ctx, tenant, ref)
		require.NoError(t, err)
		require.Equal(t, a.ID, id)
		got, err := w.Find(w.ctx, tenant, ref, "b")
		require.NoError(t, err, "wallet_id wins")
		require.Equal(t, a, got)
	}
	got, err := w.Find(w.ctx, tenant, "", "b")
	require.NoError(t, err)
	require.Equal(t, b, got)
	_, err = w.Find(w.ctx, tenant, "", "")
	require.ErrorAs(t, err, &bad)
	_, err = w.Get(w.ctx, "t2", a.ID)
	require.ErrorIs(t, err, wallet.ErrNotFound)

	renamed, err := w.Rename(w.ctx, tenant, "1", "New")
	require.NoError(t, err)
	require.Equal(t, "New", renamed.Name)
	_, err = w.Rename(w.ctx, tenant, "0", "New")
	require.ErrorIs(t, err, wallet.ErrNotFound, "the master account has no name to change")
	_, err = w.Rename(w.ctx, tenant, a.ID, "")
	require.ErrorAs(t, err, &bad)

	list, total, err := w.List(w.ctx, tenant, 0, 0)
	require.NoError(t, err)
	require.EqualValues(t, 2, total)
	require.Equal(t, []wallet.Wallet{renamed, b}, list)
	list, total, err = w.List(w.ctx, tenant, 1, 1)
	require.NoError(t, err)
	require.EqualValues(t, 2, total)
	require.Equal(t, []wallet.Wallet{b}, list)
}

// No reference of a merchant's means the master account by accident.
func TestTheMasterAccountHasNoName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var bad *wallet.InvalidError
	_, err := w.Create(w.ctx, tenant, wallet.CreateInput{Name: "x", ExternalID: wallet.Master})
	require.ErrorAs(t, err, &bad)
	_, _, err = w.Resolve(w.ctx, tenant, wallet.Master)
	require.ErrorIs(t, err, wallet.ErrNotFound)
	w.post(ledger.KindDeposit, wallet.Master, usdt, "1")
	_, err = w.CreateTransfer(w.ctx, tenant, wallet.TransferInput{
		Direction: wallet.ToSub, WalletID: wallet.Master, Currency: usdt, Amount: dec("1"),
	})
	require.ErrorIs(t, err, wallet.ErrNotFound)
}

func TestCreateConcurrently(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() { w.sub(string(rune('A' + i))) })
	}
	wg.Wait()
	list, _, err := w.List(w.ctx, tenant, 0, 0)
	require.NoError(t, err)
	for i, v := range list {
		require.EqualValues(t, i+1, v.Number)
	}
	require.Len(t, list, 60)
}

func TestCreateOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := wallet.CreateInput{Name: "x", ExternalID: "x", Key: "k"}
	first, err := w.Create(w.ctx, tenant, in)
	require.NoError(t, err)
	again, err := w.Create(w.ctx, tenant, in)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.ID, again.ID)
	_, err = w.Create(w.ctx, tenant, wallet.CreateInput{Key: "k"})
	require.ErrorIs(t, err, storage.ErrIdempotencyMismatch)
	require.ErrorContains(t, err, `"k"`)
	// A key is the tenant's, whatever it is used for.
	_, err = w.CreateTransfer(w.ctx, tenant, wallet.TransferInput{Direction: wallet.ToSub, WalletID: first.ID, Currency: usdt, Amount: dec("1"), Key: "k"})
	require.ErrorIs(t, err, storage.ErrIdempotencyMismatch)
	for _, key := range []string{strings.Repeat("k", 201), "a\x00b", "\xff"} {
		_, err = w.Create(w.ctx, tenant, wallet.CreateInput{Name: "y", ExternalID: "y", Key: key})
		require.ErrorIs(t, err, storage.ErrIdempotencyKey)
	}
}

// A tenant is made once under a key, also where its id is made for it, and where the same
// key comes in two processes at once.
func TestCreateTenantOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	in := wallet.NewTenant{Settings: wallet.Settings{Name: ptr("Other")}, Key: "k"}
	first, err := w.CreateTenant(w.ctx, in)
	require.NoError(t, err)
	require.False(t, first.Replayed)
	again, err := w.CreateTenant(w.ctx, in)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.ID, again.ID)
	require.Equal(t, "Other", again.Name)
	require.Equal(t, first.CreatedAt, again.CreatedAt)
	_, total, err := w.Tenants(w.ctx, 0, 0)
	require.NoError(t, err)
	require.EqualValues(t, 2, total)
	in.Name = ptr("Another")
	_, err = w.CreateTenant(w.ctx, in)
	require.ErrorIs(t, err, storage.ErrIdempotencyMismatch)
	_, err = w.CreateTenant(w.ctx, wallet.NewTenant{ID: first.ID, Settings: wallet.Settings{Name: ptr("Other")}, Key: "l"})
	require.ErrorIs(t, err, wallet.ErrTenantExists, "its id is taken, under another key")

	store := &forgetful{Store: memory.New()}
	var config wallet.Config
	w = newWorldOn(t, store, func(c *wallet.Config) { config = *c })
	other, err := wallet.New(config)
	require.NoError(t, err)
	in.Key = "both"
	store.before = func() {
		first, err = other.CreateTenant(w.ctx, in)
		require.NoError(t, err)
	}
	again, err = w.CreateTenant(w.ctx, in)
	require.NoError(t, err)
	require.True(t, again.Replayed)
	require.Equal(t, first.ID, again.ID)
}

func TestDelete(t *testing.T) {
	t.Parallel()
	busy := true
	w := newWorld(t, func(c *wallet.Config) {
		c.Pending = func(context.Context, string, string) (bool, error) { return busy, nil }
	})
	v := w.sub("a")
	w.post(ledger.KindDeposit, v.ID, usdt, "10")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "10")
	require.ErrorIs(t, w.Delete(w.ctx, tenant, v.ID), wallet.ErrNotEmpty, "an open payment")
	busy = false
	require.ErrorIs(t, w.Delete(w.ctx, tenant, v.ID), wallet.ErrNotEmpty, "a balance")
	w.accepted(wallet.ToMaster, v, "10")
	require.ErrorIs(t, w.Delete(w.ctx, tenant, v.ID), wallet.ErrNotEmpty, "a transfer away")
	w.step()
	in := w.accepted(wallet.ToSub, v, "1")
	require.ErrorIs(t, w.Delete(w.ctx, tenant, v.ID), wallet.ErrNotEmpty, "a transfer to come")
	w.step()
	require.NotEqual(t, in.ID, w.transfer(wallet.ToMaster, "a", "1").ID)
	_, open, err := w.Resolve(w.ctx, tenant, "a")
	require.NoError(t, err)
	require.NoError(t, w.Delete(w.ctx, tenant, v.ID))
	require.ErrorIs(t, w.Delete(w.ctx, tenant, v.ID), wallet.ErrNotFound)
	require.ErrorIs(t, w.Delete(w.ctx, tenant, "0"), wallet.ErrNotFound)
	_, _, err = w.Resolve(w.ctx, tenant, "a")
	require.ErrorIs(t, err, wallet.ErrNotFound)
	_, err = w.Guard(w.ctx, tenant, v.ID)
	require.ErrorIs(t, err, wallet.ErrNotFound)

	// What was decided while it was open does not post any more.
	err = storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "late", Partition: storage.Tenant(tenant), Require: []storage.Guard{open},
		Post: []ledger.Tx{{ID: "late", Legs: []ledger.Leg{
			{Account: ledger.Wallet(v.ID), Asset: usdt, Delta: 1}, {Account: ledger.Chain("TRX"), Asset: usdt, Delta: -1},
		}}},
	})
	require.ErrorIs(t, err, storage.ErrConflict)

	history, total, err := w.History(w.ctx, tenant, wallet.HistoryFilter{Wallet: v.ID})
	require.NoError(t, err)
	require.EqualValues(t, 4, total, "history stays")
	require.Len(t, history, 4)
	again := w.sub("a")
	require.EqualValues(t, 2, again.Number, "the external id is free, the number is not")
}
