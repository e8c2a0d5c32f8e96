package cryptopay_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// accountReads is a store that counts the balances it gives, and has something happen behind the
// first page of cursors.
type accountReads struct {
	storage.Store
	balances int
	then     func()
}

func (s *accountReads) Balances(ctx context.Context, p storage.Partition, accounts ...ledger.Account) ([]ledger.Balance, error) {
	out, err := s.Store.Balances(ctx, p, accounts...)
	s.balances += len(out)
	return out, err
}

func (s *accountReads) HouseBalances(ctx context.Context, p storage.Partition) ([]ledger.Balance, error) {
	out, err := p.HouseBalances(ctx, s.Store)
	s.balances += len(out)
	return out, err
}

func (s *accountReads) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	rows, err := s.Store.Find(ctx, q)
	if then := s.then; then != nil && q.Table == incoming.Cursors.Table {
		s.then = nil
		then()
	}
	return rows, err
}

// A withdrawal reads the balances of its own wallet and of the house, however many wallets its tenant
// has.
func TestFA07_AWithdrawalReadsNoOtherWalletsBalance(t *testing.T) {
	t.Parallel()
	s := &accountReads{Store: memory.New()}
	h := newHostOn(t, s, 77, "ETH")
	h.float("ETH", "1")
	p := h.create("100", usdt)
	h.pay(p, usdt, dec("100"))
	h.mine(60)
	c := storage.Change{ID: "wallets", Partition: storage.Tenant(h.tenant)}
	for i := range 3000 {
		c.Post = append(c.Post, ledger.Tx{ID: fmt.Sprint("w", i), Kind: ledger.KindDeposit, At: h.clock.Now(), Legs: []ledger.Leg{
			{Account: ledger.Wallet(fmt.Sprintf("w%05d", i)), Asset: usdt, Delta: 1}, {Account: ledger.Chain("ETH"), Asset: usdt, Delta: -1},
		}})
	}
	require.NoError(t, storage.CommitOne(t.Context(), s.Store, c))
	s.balances = 0
	w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: ptr(dec("20")), Currency: usdt, Address: string(h.chains["ETH"].Customer("supplier"))},
	})
	require.NoError(t, err)
	h.mine(30)
	require.Equal(t, withdrawal.Completed, h.withdrawal(w.ID).Status)
	require.Less(t, s.balances, 1000)
}

// A cursor that goes away while partitions are listed hides none of the others.
func TestFR05_PartitionsWhileACursorGoes(t *testing.T) {
	t.Parallel()
	s := &accountReads{Store: memory.New()}
	require.NoError(t, s.Open(t.Context(), cryptopay.Tables()...))
	const networks = 1203
	part := func(i int) storage.Partition { return storage.Network(fmt.Sprintf("own%05d", i)) }
	for i := range networks {
		require.NoError(t, storage.CommitOne(t.Context(), s.Store, storage.Change{
			ID: "made", Partition: part(i), Put: []storage.Row{incoming.Cursors.Row(incoming.CursorID, 0, time.Time{}, incoming.Cursor{})},
		}))
	}
	s.then = func() {
		require.NoError(t, storage.CommitOne(t.Context(), s.Store, storage.Change{
			ID: "gone", Partition: part(0), Drop: []storage.Row{incoming.Cursors.Row(incoming.CursorID, 1, time.Time{}, incoming.Cursor{})},
		}))
	}
	met := map[storage.Partition]int{}
	for p, err := range cryptopay.Partitions(t.Context(), s) {
		require.NoError(t, err)
		met[p]++
	}
	for i := 1; i < networks; i++ {
		require.Equal(t, 1, met[part(i)], i)
	}
}
