package cryptopay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// attempts are the signed transactions of each intent of a network.
func (h *host) attempts(n string) map[string][]outgoing.AttemptRow {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: outgoing.Attempts.Table, Partition: storage.Network(n), Limit: 1000})
	require.NoError(h.t, err)
	out := map[string][]outgoing.AttemptRow{}
	for _, r := range rows {
		v := outgoing.Attempts.Value(r)
		out[v.Intent] = append(out[v.Intent], v)
	}
	return out
}

// TestL12_EveryTenantIsSealed: a round over more tenants than one step looks at goes on
// until the last of them.
func TestL12_EveryTenantIsSealed(t *testing.T) {
	t.Parallel()
	h := newHost(t, 71, "BTC")
	const tenants = 230
	var posted []string
	for i := range tenants {
		name := fmt.Sprintf("shop-%03d", i)
		made, err := h.app.Wallets.CreateTenant(t.Context(), wallet.NewTenant{ID: name, Settings: wallet.Settings{Name: &name}})
		require.NoError(t, err)
		if i%10 == 9 {
			posted = append(posted, made.ID)
			require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{ID: "give/" + name, Partition: storage.Tenant(made.ID), Post: []ledger.Tx{{
				ID: "give/" + name, Kind: ledger.KindAdjustment, At: h.clock.Now(), Legs: []ledger.Leg{
					{Account: ledger.Chain("BTC"), Asset: "BTC", Delta: -100}, {Account: ledger.Wallet(wallet.Master), Asset: "BTC", Delta: 100},
				},
			}}}))
		}
	}
	h.clock.Advance(time.Hour)
	h.step()
	for _, tenant := range posted {
		_, ok, err := h.app.Seal(t.Context(), tenant, 0)
		require.NoError(t, err)
		require.True(t, ok, "%s was not sealed", tenant)
	}
}

// TestW03_SoManyAttemptsAndNoMore: however long a payout is stuck, it is replaced so often
// as Config.Outgoing says, and is paid once.
func TestW03_SoManyAttemptsAndNoMore(t *testing.T) {
	t.Parallel()
	h := newHost(t, 73, "ETH")
	h.configure = func(c *cryptopay.Config) { c.Outgoing.MaxAttempts = 3 }
	h.restart()
	h.float("ETH", "1")
	p := h.create("300", "ETH")
	h.pay(p, "ETH", dec("0.2"))
	h.mine(60)
	id := h.withdraw("50", "ETH")
	h.step()
	for range 12 {
		h.clock.Advance(20 * time.Minute)
		h.chains["ETH"].MineOnly() // blocks without it
		h.step()
	}
	require.Len(t, h.attempts("ETH")[id], 3)
	h.mine(40)
	w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
	require.NoError(t, err)
	require.Equal(t, withdrawal.Completed, w.Status)
	h.sound()
}

// TestW03_NoMoreInputsThanAllowed: a payout for which one transaction would need more coins
// than Config.Outgoing allows is paid, and no transaction has more of them: its coins are
// merged first.
func TestW03_NoMoreInputsThanAllowed(t *testing.T) {
	t.Parallel()
	h := newHost(t, 74, "BTC")
	h.configure = func(c *cryptopay.Config) { c.Outgoing.MaxInputs = 3 }
	h.restart()
	h.float("BTC", "0.0004")
	for range 8 {
		p := h.create("60", "BTC")
		h.pay(p, "BTC", dec("0.001"))
		h.mine(4)
	}
	small, large := h.withdraw("100", "BTC"), h.withdraw("300", "BTC")
	require.NotEmpty(t, small)
	require.NotEmpty(t, large)
	h.mine(10)
	for intent, list := range h.attempts("BTC") {
		for _, a := range list {
			require.LessOrEqual(t, len(a.Spends), 3, intent)
		}
	}
	for _, id := range []string{small, large} {
		w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
		require.NoError(t, err)
		require.Equal(t, withdrawal.Completed, w.Status)
	}
	h.sound()
}

// TestX01_HundredsExpireAtATime: a host that schedules the workers itself calls each until
// it reports nothing more to do. Then every payment has expired that was due.
func TestX01_HundredsExpireAtATime(t *testing.T) {
	t.Parallel()
	h := newHost(t, 75, "ETH")
	h.step()
	var ids []string
	for range 1100 { // more than two claims take
		ids = append(ids, h.create("10", "ETH").ID)
	}
	h.clock.Advance(2 * time.Hour)
	h.chains["ETH"].Mine(1)
	for _, w := range h.app.Workers() {
		if w.Name != "incoming/ETH" && w.Name != "payments" {
			continue
		}
		for n := 1; n > 0; {
			var err error
			n, err = w.Step(t.Context())
			require.NoError(t, err)
		}
	}
	for _, id := range ids {
		require.Equal(t, payment.Expired, h.payment(id).Status)
	}
}

// interloper is a store on which something happens just before the next Change that puts
// into a table is committed.
type interloper struct {
	storage.Store
	table  *storage.Table
	before func()
}

func (s *interloper) Commit(ctx context.Context, changes ...storage.Change) []error {
	if f := s.before; f != nil && len(changes) > 0 && len(changes[0].Put) > 0 && changes[0].Put[0].Table == s.table {
		s.before = nil
		f()
	}
	return s.Store.Commit(ctx, changes...)
}

// TestL03_TransferToAWalletClosedMeanwhile: a wallet is deleted after a transfer to it was
// decided and before it is committed. The transfer is refused as one to no wallet is, and
// holds nothing.
func TestL03_TransferToAWalletClosedMeanwhile(t *testing.T) {
	t.Parallel()
	store := &interloper{Store: memory.New(), table: wallet.TransferRows.Table}
	h := newHostOn(t, store, 76, "ETH")
	p := h.create("100", "ETH")
	h.pay(p, "ETH", dec("0.06"))
	h.mine(60)
	sub, err := h.app.Wallets.Create(t.Context(), h.tenant, wallet.CreateInput{Name: "till", ExternalID: "till-1"})
	require.NoError(t, err)
	store.before = func() { require.NoError(t, h.app.Wallets.Delete(t.Context(), h.tenant, sub.ID)) }
	_, err = h.app.Wallets.CreateTransfer(t.Context(), h.tenant, wallet.TransferInput{
		Direction: wallet.ToSub, WalletID: sub.ID, Currency: "ETH", Amount: dec("0.01"),
	})
	require.ErrorIs(t, err, wallet.ErrNotFound)
	balances, err := h.app.Wallets.Balances(t.Context(), h.tenant, wallet.Master)
	require.NoError(t, err)
	require.Zero(t, balances[wallet.Master][0].Pending)
}

// TestX01_EveryWalletIsInTheOverview: the last of many wallets is asked for its balance,
// too.
func TestX01_EveryWalletIsInTheOverview(t *testing.T) {
	t.Parallel()
	h := newHost(t, 77, "ETH")
	p := h.create("100", "ETH")
	h.pay(p, "ETH", dec("0.06"))
	h.mine(60)
	var last wallet.Wallet
	for i := range 620 {
		var err error
		last, err = h.app.Wallets.Create(t.Context(), h.tenant, wallet.CreateInput{Name: "till", ExternalID: fmt.Sprint("till-", i)})
		require.NoError(t, err)
	}
	_, err := h.app.Wallets.CreateTransfer(t.Context(), h.tenant, wallet.TransferInput{
		Direction: wallet.ToSub, WalletID: last.ID, Currency: "ETH", Amount: dec("0.01"),
	})
	require.NoError(t, err)
	h.step()
	o, err := h.app.Wallets.Overview(t.Context(), h.tenant)
	require.NoError(t, err)
	require.Len(t, o.SubAccounts, 1)
	require.EqualValues(t, 1_000_000, o.SubAccounts[0].Total)
	require.Equal(t, last.ID, o.SubAccounts[0].Accounts[0].Wallet.ID)
}

// TestSyncReadsEveryNetwork: Sync reads the hot addresses of each network.
func TestSyncReadsEveryNetwork(t *testing.T) {
	t.Parallel()
	h := newHost(t, 78, "BTC", "ETH")
	h.float("BTC", "0.5")
	h.float("ETH", "2")
	s, err := h.app.Treasury.Sync(t.Context(), h.tenant)
	require.NoError(t, err)
	require.Empty(t, s.WalletErrors)
	held, err := h.app.Treasury.Holdings(t.Context(), h.tenant)
	require.NoError(t, err)
	hot := map[string]string{}
	for _, sum := range held.Totals {
		hot[sum.Currency.Code] = sum.Hot.String()
	}
	require.Equal(t, "0.5", hot["BTC"])
	require.Equal(t, "2", hot["ETH"])
}

// TestFS06_WhatWasGivenUpIsNotDelivered: of more undelivered events than are kept the
// oldest are failed, and the receiver gets the others alone.
func TestFS06_WhatWasGivenUpIsNotDelivered(t *testing.T) {
	t.Parallel()
	h := newHost(t, 79, "ETH")
	h.configure = func(c *cryptopay.Config) { c.MaxUndelivered = 5 }
	h.restart()
	h.step()
	for range 20 {
		h.create("10", "ETH")
	}
	h.clock.Advance(2 * time.Hour)
	h.chains["ETH"].Mine(1)
	for _, name := range []string{"incoming/ETH", "payments", "webhooks"} {
		for _, w := range h.app.Workers() {
			if w.Name != name {
				continue
			}
			_, err := w.Step(t.Context())
			require.NoError(t, err)
		}
	}
	failed, err := h.app.Webhooks.List(t.Context(), h.tenant, webhook.StatusFailed, 100, 0)
	require.NoError(t, err)
	require.Len(t, failed, 15)
	require.Len(t, h.inbox.got, 5)
}
