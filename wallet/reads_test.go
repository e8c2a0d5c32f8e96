package wallet_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// TestReadsThatFail: whichever read of an operation fails, its error is the answer, and
// no money has moved.
func TestReadsThatFail(t *testing.T) {
	t.Parallel()
	for name, do := range map[string]func(w *world, sub wallet.Wallet, pending wallet.Transfer) error{
		"create": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, err := w.Create(w.ctx, tenant, wallet.CreateInput{Name: "B", ExternalID: "b", Key: "k"})
			return err
		},
		"create tenant": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, err := w.CreateTenant(w.ctx, wallet.NewTenant{ID: "t2", Settings: wallet.Settings{Name: ptr("Other")}, Key: "k"})
			return err
		},
		"create transfer": func(w *world, sub wallet.Wallet, _ wallet.Transfer) error {
			_, err := w.CreateTransfer(w.ctx, tenant, wallet.TransferInput{Direction: wallet.ToSub, WalletID: sub.ID, Currency: usdt, Amount: dec("1"), Key: "k"})
			return err
		},
		"transfer": func(w *world, _ wallet.Wallet, pending wallet.Transfer) error {
			_, err := w.Transfer(w.ctx, tenant, pending.ID)
			return err
		},
		"transfers": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, _, err := w.TransferHistory(w.ctx, tenant, wallet.TransferFilter{})
			return err
		},
		"history": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, _, err := w.History(w.ctx, tenant, wallet.HistoryFilter{})
			return err
		},
		"history of a type": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, _, err := w.History(w.ctx, tenant, wallet.HistoryFilter{Type: ledger.KindDeposit})
			return err
		},
		"overview": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, err := w.Overview(w.ctx, tenant)
			return err
		},
		"list": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, _, err := w.List(w.ctx, tenant, 0, 0)
			return err
		},
		"tenants": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, _, err := w.Tenants(w.ctx, 0, 0)
			return err
		},
		"tenant": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, err := w.UpdateTenant(w.ctx, tenant, wallet.Settings{Name: ptr("Shop")})
			return err
		},
		"fee": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, _, err := w.WithdrawalFee(w.ctx, tenant, usdt)
			return err
		},
		"get": func(w *world, sub wallet.Wallet, _ wallet.Transfer) error {
			_, err := w.Get(w.ctx, tenant, sub.ID)
			return err
		},
		"number": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, err := w.Get(w.ctx, tenant, "1")
			return err
		},
		"find past": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			_, err := w.FindPast(w.ctx, tenant, "nobody", "")
			if errors.Is(err, wallet.ErrNotFound) {
				return nil
			}
			return err
		},
		"resolve": func(w *world, sub wallet.Wallet, _ wallet.Transfer) error {
			_, _, err := w.Resolve(w.ctx, tenant, sub.ExternalID)
			return err
		},
		"rename": func(w *world, sub wallet.Wallet, _ wallet.Transfer) error {
			_, err := w.Rename(w.ctx, tenant, sub.ID, "C")
			return err
		},
		"delete": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error {
			err := w.Delete(w.ctx, tenant, "2")
			return err
		},
		"step": func(w *world, _ wallet.Wallet, _ wallet.Transfer) error { _, err := w.Step(w.ctx); return err },
	} {
		for n := 1; ; n++ {
			store := &failing.Store{Store: memory.New()}
			w := newWorldOn(t, store)
			sub := w.sub("a")
			w.sub("empty")
			w.post(ledger.KindDeposit, wallet.Master, usdt, "100")
			pending := w.accepted(wallet.ToSub, sub, "10")
			store.Calls, store.FailAt = 0, n
			err := do(w, sub, pending)
			failed := store.Calls >= n
			store.FailAt = 0
			if !failed {
				require.NoError(t, err, name)
				require.Greater(t, n, 1, name)
				break
			}
			require.ErrorIs(t, err, failing.ErrGone, "%s, read %d", name, n)
			require.Equal(t, []string{"100/10", "none"}, []string{w.has(wallet.Master), w.has(sub.ID)}, "%s, read %d", name, n)
		}
	}
}

// TestFieldsNamed: what is wrong is told at its field.
func TestFieldsNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(c *wallet.Config) {
		c.CheckURL = func(string) error { return errors.New("cannot be delivered to") }
	})
	_, _, history := w.History(w.ctx, tenant, wallet.HistoryFilter{Currency: "NOPE"})
	for field, err := range map[string]error{
		"external_id":  w.Check(wallet.CreateInput{Name: "x", ExternalID: wallet.Master}),
		"name":         w.Check(wallet.CreateInput{ExternalID: "x"}),
		"currency":     history,
		"callback_url": w.CheckTransfer(wallet.TransferInput{Direction: wallet.ToSub, WalletID: "a", Currency: usdt, Amount: dec("1"), CallbackURL: "https://x"}),
	} {
		bad := new(wallet.InvalidError)
		require.ErrorAs(t, err, &bad, field)
		require.Len(t, bad.Fields, 1, field)
		require.Contains(t, bad.Fields, field)
	}
}

// TestSomethingOutsideStillPosts: a wallet that something outside expects to post to stays.
func TestSomethingOutsideStillPosts(t *testing.T) {
	t.Parallel()
	expected := true
	w := newWorld(t, func(c *wallet.Config) {
		c.Pending = func(_ context.Context, id, _ string) (bool, error) {
			return expected, map[bool]error{false: failing.ErrGone}[id == tenant]
		}
	})
	sub := w.sub("a")
	require.ErrorIs(t, w.Delete(w.ctx, tenant, sub.ID), wallet.ErrNotEmpty)
	expected = false
	require.NoError(t, w.Delete(w.ctx, tenant, sub.ID))
}

// TestPagesAndTies: pages of tenants and of one type of movements, movements of one moment,
// and what a settled transfer is told by.
func TestPagesAndTies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, id := range []string{"t2", "t3"} {
		w.advance(time.Second)
		_, err := w.CreateTenant(w.ctx, wallet.NewTenant{ID: id, Settings: wallet.Settings{Name: ptr("Shop")}})
		require.NoError(t, err)
	}
	for _, c := range []struct {
		limit, offset int
		want          []string
	}{{1, 0, []string{tenant}}, {2, 1, []string{"t2", "t3"}}, {1, 2, []string{"t3"}}, {0, 0, []string{tenant, "t2", "t3"}}} {
		page, total, err := w.Tenants(w.ctx, c.limit, c.offset)
		require.NoError(t, err)
		require.EqualValues(t, 3, total)
		ids := []string{}
		for _, one := range page {
			ids = append(ids, one.ID)
		}
		require.Equal(t, c.want, ids)
	}

	w.post(ledger.KindDeposit, wallet.Master, usdt, "1")
	w.post(ledger.KindDeposit, wallet.Master, "BTC", "2")
	w.post(ledger.KindDeposit, wallet.Master, "TRX", "3")
	all, total, err := w.History(w.ctx, tenant, wallet.HistoryFilter{})
	require.NoError(t, err)
	require.EqualValues(t, 3, total)
	require.Equal(t, []string{"BTC", "TRX", usdt}, []string{all[0].Currency, all[1].Currency, all[2].Currency}, "of one moment, by currency")
	for offset := range 4 {
		page, total, err := w.History(w.ctx, tenant, wallet.HistoryFilter{Type: ledger.KindDeposit, Limit: 1, Offset: offset})
		require.NoError(t, err)
		require.EqualValues(t, 3, total)
		require.Equal(t, all[min(offset, 3):min(offset+1, 3)], page)
	}

	sub, other := w.sub("a"), w.sub("b")
	moved := w.transfer(wallet.ToSub, sub.ID, "1")
	w.step()
	got, err := w.Transfer(w.ctx, tenant, moved.ID)
	require.NoError(t, err)
	require.Equal(t, []any{moved.ID, wallet.TransferCompleted}, []any{got.ID, got.Status})
	all, _, err = w.History(w.ctx, tenant, wallet.HistoryFilter{Wallet: sub.ID})
	require.NoError(t, err)
	require.Len(t, all, 1)
	require.Equal(t, []string{"settle/" + moved.ID, moved.ID}, []string{all[0].Tx, all[0].Ref})
	found, err := w.FindPast(w.ctx, tenant, sub.ID, other.ExternalID)
	require.NoError(t, err)
	require.Equal(t, sub.ID, found.ID, "the wallet id counts")
}

// TestOverviewBeyondCounting: a sum that is no amount is an error.
func TestOverviewBeyondCounting(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for i, external := range []string{"a", "b"} {
		id := w.newID()
		require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{ID: id, Partition: storage.Tenant(tenant), Post: []ledger.Tx{{
			ID: id, Kind: ledger.KindDeposit, At: w.clock(), Legs: []ledger.Leg{
				{Account: ledger.Chain([]string{"TRX", "BTC"}[i]), Asset: usdt, Delta: -6e18}, {Account: ledger.Wallet(w.sub(external).ID), Asset: usdt, Delta: 6e18},
			},
		}}}))
	}
	_, err := w.Overview(w.ctx, tenant)
	require.ErrorIs(t, err, ledger.ErrOverflow)
}
