package wallet_test

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet"
)

// transfersAreWhole: whatever is asked in whatever order, a transfer makes only
// the moves of its machine, tells each once, and no unit is made or lost.
func transfersAreWhole(t *rapid.T) {
	w := newWorld(t)
	w.sub("a")
	w.sub("b")
	w.post(ledger.KindDeposit, wallet.Master, usdt, "500")
	last := map[string]wallet.TransferStatus{}
	want := map[string]ledger.Amount{wallet.Master: 500_000000} // posted, by the transfers that completed
	books := func() {
		balances, err := w.store.Balances(w.ctx, storage.Tenant(tenant))
		require.NoError(t, err)
		for _, b := range balances {
			if id, ok := b.Account.WalletID(); ok {
				require.True(t, b.Held >= 0 && b.Posted >= b.Held, "%+v", b)
				require.Equal(t, want[id], b.Posted, "wallet %s", id)
			}
		}
	}
	t.Repeat(map[string]func(*rapid.T){
		"ask": func(t *rapid.T) {
			v, err := w.CreateTransfer(w.ctx, tenant, wallet.TransferInput{
				Direction: rapid.SampledFrom([]wallet.Direction{wallet.ToSub, wallet.ToMaster}).Draw(t, "direction"),
				WalletID:  rapid.SampledFrom([]string{"a", "b", "nobody"}).Draw(t, "wallet"), Currency: usdt,
				Amount: dec(rapid.SampledFrom([]string{"0.000001", "1", "200", "300", "501"}).Draw(t, "amount")),
			})
			if err == nil {
				require.Equal(t, wallet.TransferCompleted, v.Status)
				last[v.ID] = wallet.TransferPending // its event says so
			}
		},
		"left pending": func(t *rapid.T) { // by an earlier version
			v, err := w.Find(w.ctx, tenant, "", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "wallet"))
			if err != nil {
				t.Skip("it is closed")
			}
			direction, source := wallet.ToSub, wallet.Master
			if rapid.Bool().Draw(t, "to master") {
				direction, source = wallet.ToMaster, v.ID
			}
			all, err := w.Balances(w.ctx, tenant, source)
			require.NoError(t, err)
			if len(all[source]) == 0 || all[source][0].Available < 1_000_000 {
				t.Skip("it has too little")
			}
			last[w.accepted(direction, v, "1").ID] = wallet.TransferPending
		},
		"step": func(*rapid.T) { w.advance(time.Minute); w.step() },
		"close": func(t *rapid.T) {
			v, err := w.Find(w.ctx, tenant, "", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "wallet"))
			if err == nil {
				_ = w.Delete(w.ctx, tenant, v.ID)
			}
		},
		"vanish": func(t *rapid.T) { // as if it had been closed while a transfer was on its way
			v, err := w.Find(w.ctx, tenant, "", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "wallet"))
			if err != nil {
				t.Skip("it is closed")
			}
			_, row, _, err := wallet.WalletRows.One(w.ctx, w.store, storage.Tenant(tenant), v.ID)
			require.NoError(t, err)
			v.Closed, v.Key = true, "-"+v.ID
			require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
				ID: w.newID(), Partition: storage.Tenant(tenant), Put: []storage.Row{wallet.WalletRows.Row(v.ID, row.Version, time.Time{}, v)},
			}))
		},
		"open": func(t *rapid.T) {
			_, _ = w.Create(w.ctx, tenant, wallet.CreateInput{Name: "again", ExternalID: rapid.SampledFrom([]string{"a", "b"}).Draw(t, "wallet")})
		},
		"": func(t *rapid.T) {
			for id, was := range last {
				v, err := w.Transfer(w.ctx, tenant, id)
				require.NoError(t, err)
				if v.Status != was {
					allowed := false
					for _, trigger := range wallet.TransferMachine().Triggers() {
						allowed = allowed || slices.Contains(wallet.TransferMachine().Targets(was, trigger), v.Status)
					}
					require.True(t, allowed, "%s: %s to %s", id, was, v.Status)
					require.Len(t, w.events(id), 1)
				} else if was == wallet.TransferPending {
					require.Empty(t, w.events(id))
				}
				if v.Status == wallet.TransferCompleted && was != v.Status {
					from, to := wallet.Master, v.Wallet
					if v.Direction == wallet.ToMaster {
						from, to = to, from
					}
					want[from] -= v.Amount
					want[to] += v.Amount
				}
				last[id] = v.Status
			}
			books()
		},
	})
	w.step()
	for id := range last {
		v, err := w.Transfer(w.ctx, tenant, id)
		require.NoError(t, err)
		require.NotEqual(t, wallet.TransferPending, v.Status)
	}
}

func TestTransfersInAnyOrder(t *testing.T) {
	t.Parallel()
	rapid.Check(t, transfersAreWhole)
}

// FuzzTransfer plays the same with a fuzzer's choices.
func FuzzTransfer(f *testing.F) {
	for seed := range uint64(4) {
		choices := make([]byte, 4096)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(choices)
		f.Add(choices)
	}
	f.Fuzz(rapid.MakeFuzz(transfersAreWhole))
}
