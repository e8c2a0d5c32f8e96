package cryptopay_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// busy is a shop with money, and another process whose reads of the store have something happen
// before one in so many of them: payments, transfers, withdrawals and their end.
func busy(t *testing.T, every int) (h *host, app *cryptopay.App, moved func() int) {
	t.Helper()
	h = newHost(t, 77, "ETH")
	h.float("ETH", "1")
	h.mine(20)
	h.pay(h.create("5000", "ETH"), "ETH", dec("2.5"))
	h.mine(40)
	sub, err := h.app.Wallets.Create(t.Context(), h.tenant, wallet.CreateInput{Name: "till", ExternalID: "till"})
	require.NoError(t, err)
	var open []string
	var parts payment.Payment
	s, n, dice := &readStore{Store: h.store}, 0, rand.New(rand.NewPCG(1, uint64(every)))
	app = h.beside(func(c *cryptopay.Config) { c.Store = s })
	s.before = func(string) {
		if dice.IntN(every) > 0 {
			return
		}
		switch n++; n % 4 {
		case 1:
			open = append(open, h.payout(h.tenant, "ETH", "0.01"))
		case 2:
			_, err := h.app.Wallets.CreateTransfer(t.Context(), h.tenant, wallet.TransferInput{WalletID: sub.ID, Direction: wallet.ToSub, Currency: "ETH", Amount: dec("0.001")})
			require.NoError(t, err)
		case 3:
			_, err := h.app.Withdrawals.Cancel(t.Context(), h.tenant, open[0])
			require.NoError(t, err)
			open = open[1:]
		case 0: // in parts
			if n%32 == 4 {
				parts = h.create("400", "ETH")
			}
			h.pay(parts, "ETH", dec("0.01"))
			h.mine(13)
		}
	}
	return h, app, func() int { return n }
}

// TestL13_VerifyIsExactWhileOthersWrite: whatever is paid, moved, ordered and taken back between
// any two reads, nothing is found that is not wrong.
func TestL13_VerifyIsExactWhileOthersWrite(t *testing.T) {
	t.Parallel()
	for _, every := range []int{2, 5, 11} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			t.Parallel()
			h, app, moved := busy(t, every)
			for range 3 {
				r, err := app.VerifyTenant(t.Context(), h.tenant)
				require.NoError(t, err)
				require.True(t, r.Sound(), "%+v", r)
			}
			require.Greater(t, moved(), 8)
			h.sound()
		})
	}
}

// TestL13_VerifyFindsWhatIsWrongWhileOthersWrite: and what is wrong is named, and nothing beside it.
func TestL13_VerifyFindsWhatIsWrongWhileOthersWrite(t *testing.T) {
	t.Parallel()
	for _, every := range []int{3, 11} {
		t.Run(fmt.Sprint(every), func(t *testing.T) {
			t.Parallel()
			h, app, _ := busy(t, every)
			commit := func(c storage.Change) {
				t.Helper()
				c.ID, c.Partition = fmt.Sprint("planted/", h.random.Uint64()), storage.Tenant(h.tenant)
				require.NoError(t, storage.CommitOne(t.Context(), h.store, c))
			}
			order := h.payout(h.tenant, "ETH", "0.02")
			h.mine(40)
			w, row, known, err := withdrawal.Withdrawals.One(t.Context(), h.store, storage.Tenant(h.tenant), order)
			require.NoError(t, err)
			require.True(t, known)
			require.Equal(t, withdrawal.Completed, w.Status)
			w.Requested += 7
			commit(storage.Change{Put: []storage.Row{withdrawal.Withdrawals.Row(order, row.Version, time.Time{}, w)}})
			master := ledger.Wallet(wallet.Master)
			commit(storage.Change{Post: []ledger.Tx{{ID: "hold/nobody", Kind: ledger.KindWithdrawal, Ref: "nobody", At: h.clock.Now(), Legs: []ledger.Leg{{Account: master, Asset: "ETH", Hold: 40}}}}})
			commit(storage.Change{Post: []ledger.Tx{{ID: "settle/stranger", Kind: ledger.KindWithdrawal, Ref: "stranger", At: h.clock.Now(), Legs: []ledger.Leg{
				{Account: master, Asset: "ETH", Delta: -30}, {Account: ledger.Chain("ETH"), Asset: "ETH", Delta: 30},
			}}}})

			r, err := app.VerifyTenant(t.Context(), h.tenant)
			require.NoError(t, err)
			require.ElementsMatch(t, []cryptopay.Unexplained{
				{Kind: "withdrawal", ID: order, Posted: -(w.Requested - 7), Stated: -w.Requested}, {Kind: "withdrawal", ID: "stranger", Posted: -30},
			}, r.Unexplained)
			require.Len(t, r.Holds, 1)
			require.EqualValues(t, 40, r.Holds[0].Held-r.Holds[0].Owed)
			require.Equal(t, master, r.Holds[0].Account)
		})
	}
}

// TestL13_WhatMovesIsLookedAtAgain: more is paid to a payment, and credited, before each
// time that its row is read.
func TestL13_WhatMovesIsLookedAtAgain(t *testing.T) {
	t.Parallel()
	h := newHost(t, 78, "ETH")
	p := h.create("4000", "ETH")
	s := &readStore{Store: h.store}
	app := h.beside(func(c *cryptopay.Config) { c.Store = s })
	part := func() {
		h.pay(p, "ETH", dec("0.01"))
		h.mine(8)
	}
	h.pay(p, "ETH", dec("2"))
	part()
	part() // from now on each brings one that is final
	parts := 0
	s.before = func(read string) {
		if parts < 15 && read == "payments" {
			parts++
			part()
		}
	}
	r, err := app.VerifyTenant(t.Context(), h.tenant)
	require.NoError(t, err)
	require.Equal(t, 15, parts)
	require.True(t, r.Sound(), "%+v", r)
}

// TestL13_HoldThatCameAndWent: a withdrawal is ordered and taken back between the same two reads of
// two looks.
func TestL13_HoldThatCameAndWent(t *testing.T) {
	t.Parallel()
	h := newHost(t, 79, "ETH")
	h.pay(h.create("4000", "ETH"), "ETH", dec("2"))
	h.mine(40)
	s := &readStore{Store: h.store}
	app := h.beside(func(c *cryptopay.Config) { c.Store = s })
	open, times := "", 0
	s.before = func(read string) {
		switch {
		case read == "balances" && open == "" && times < 2:
			open = h.payout(h.tenant, "ETH", "0.01")
		case read == "withdrawals" && open != "":
			_, err := h.app.Withdrawals.Cancel(t.Context(), h.tenant, open)
			require.NoError(t, err)
			open = ""
			times++
		}
	}
	r, err := app.VerifyTenant(t.Context(), h.tenant)
	require.NoError(t, err)
	require.Equal(t, 2, times)
	require.True(t, r.Sound(), "%+v", r)
}

// readStore is a store on which others work between two reads: it calls before, with the table's name,
// "balances" or "entries", and then reads.
type readStore struct {
	storage.Store
	before func(read string)
}

func (s *readStore) tell(read string) {
	if do := s.before; do != nil {
		s.before = nil // what it does reads as well
		do(read)
		s.before = do
	}
}

func (s *readStore) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	s.tell(q.Table.Name)
	return s.Store.Find(ctx, q)
}

func (s *readStore) Rows(ctx context.Context, t *storage.Table, keys ...storage.Key) ([]storage.Row, error) {
	s.tell(t.Name)
	return s.Store.Rows(ctx, t, keys...)
}

func (s *readStore) Balances(ctx context.Context, p storage.Partition, of ...ledger.Account) ([]ledger.Balance, error) {
	s.tell("balances")
	return s.Store.Balances(ctx, p, of...)
}

func (s *readStore) Entries(ctx context.Context, p storage.Partition, a ledger.Account, asset ledger.Asset, before int64, most int) ([]ledger.Entry, error) {
	s.tell("entries")
	return s.Store.Entries(ctx, p, a, asset, before, most)
}
