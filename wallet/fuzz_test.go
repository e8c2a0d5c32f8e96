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
	money := func() (sum ledger.Amount) {
		balances, err := w.store.Balances(w.ctx, storage.Tenant(tenant))
		require.NoError(t, err)
		for _, b := range balances {
			if _, ok := b.Account.WalletID(); ok {
				require.True(t, b.Held >= 0 && b.Posted >= b.Held, "%+v", b)
				sum += b.Posted
			}
		}
		return sum
	}
	t.Repeat(map[string]func(*rapid.T){
		"ask": func(t *rapid.T) {
			v, err := w.CreateTransfer(w.ctx, tenant, wallet.TransferInput{
				Direction: rapid.SampledFrom([]wallet.Direction{wallet.ToSub, wallet.ToMaster}).Draw(t, "direction"),
				WalletID:  rapid.SampledFrom([]string{"a", "b", "nobody"}).Draw(t, "wallet"), Currency: usdt,
				Amount: dec(rapid.SampledFrom([]string{"0.000001", "1", "200", "300", "501"}).Draw(t, "amount")),
			}, storage.Once{})
			if err == nil {
				require.Equal(t, wallet.TransferPending, v.Status)
				last[v.ID] = v.Status
			}
		},
		"step": func(*rapid.T) { w.advance(time.Minute); w.step() },
		"close": func(t *rapid.T) {
			_ = w.Delete(w.ctx, tenant, rapid.SampledFrom([]string{"a", "b"}).Draw(t, "wallet"))
		},
		"open": func(t *rapid.T) {
			_, _ = w.Create(w.ctx, tenant, "again", rapid.SampledFrom([]string{"a", "b"}).Draw(t, "wallet"), storage.Once{})
		},
		"": func(t *rapid.T) {
			require.Equal(t, ledger.Amount(500_000000), money())
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
				last[id] = v.Status
			}
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
