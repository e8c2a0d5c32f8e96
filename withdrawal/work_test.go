package withdrawal_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// Many withdrawals are handed over in as many calls of the store as one is.
func TestFP01_WithdrawalsAreHandedOverTogether(t *testing.T) {
	t.Parallel()
	calls := map[int]int{}
	for _, n := range []int{1, 100} {
		s := &failing.Store{Store: memory.New(), Counts: func(failing.Call) bool { return true }}
		w := newWorldOn(t, s)
		w.fund("master", "USDTTRC20", "100000")
		var ids []string
		for i := range n {
			in := usdt(fmt.Sprint(10 + i))
			in.Address = fmt.Sprint("T", i)
			ids = append(ids, w.create(in).ID)
		}
		s.Calls = 0
		worked, err := w.Step(w.ctx)
		require.NoError(t, err)
		require.Equal(t, n, worked)
		calls[n] = s.Calls
		for _, id := range ids {
			v := w.get(id)
			require.Equal(t, withdrawal.Handed, v.Stage)
			require.Equal(t, v.SentMemo, w.payouts.intents[id].Memo)
			require.Equal(t, v.Amount, w.payouts.intents[id].Amount)
		}
	}
	require.Equal(t, calls[1], calls[100])
	require.LessOrEqual(t, calls[1], 8)
}

// ruled are rules that allow everything, and read the store for it.
type ruled struct{ w **world }

func (r ruled) Judge(ctx context.Context, _ *withdrawal.Withdrawal, _ time.Time) (withdrawal.Judgement, error) {
	_, err := storage.Joined((*r.w).store).Rows(ctx, accounts.Table, storage.Keys(storage.Tenant(tenant), "master")...)
	return withdrawal.Judgement{Verdict: withdrawal.Allow}, err
}

func (ruled) Vault(context.Context, string, chain.Network, string) (chain.Address, error) {
	return "", nil
}

// What cannot be begun in half of the lease is left to whoever claims it next, and nobody
// outside is asked about it. With rules each withdrawal waits for the others before its node
// is asked.
func TestFP01_ALateWithdrawalWaitsForItsNextClaim(t *testing.T) {
	t.Parallel()
	for _, rules := range []bool{false, true} {
		t.Run(fmt.Sprint("rules ", rules), func(t *testing.T) {
			t.Parallel()
			asked := 0
			var w *world
			w = newWorld(t, func(c *withdrawal.Config) {
				c.Lease = time.Minute
				if rules {
					c.Rules = ruled{&w}
				}
				c.MaxCost = func(context.Context, chain.Intent) (ledger.Amount, error) {
					asked++
					w.advance(11 * time.Second)
					return 1000, nil
				}
			})
			w.fund("master", "USDTTRC20", "1000")
			var ids []string
			for range 7 {
				ids = append(ids, w.create(usdt("10")).ID)
			}
			worked, err := w.Step(w.ctx)
			require.NoError(t, err)
			require.Equal(t, 7, worked)
			require.Equal(t, 3, asked)
			require.Len(t, w.payouts.intents, 3)
			w.advance(time.Minute)
			w.step()
			require.Len(t, w.payouts.intents, 6)
			w.advance(time.Minute)
			w.step()
			require.Len(t, w.payouts.intents, 7)
			for _, id := range ids {
				require.Equal(t, withdrawal.Handed, w.get(id).Stage)
			}
			require.Equal(t, 7, asked)
		})
	}
}

// TestFP01_ANodeThatHangsHoldsUpNobodyElse: it is asked once a Step, and after all others, so that the payouts
// of other networks go out however many wait for it and whatever time it takes.
func TestFP01_ANodeThatHangsHoldsUpNobodyElse(t *testing.T) {
	t.Parallel()
	var w *world
	asked, hangs := map[chain.Network]int{}, true
	w = newWorld(t, func(c *withdrawal.Config) {
		c.Lease, c.Batch = time.Minute, 100
		c.Rules = ruled{&w}
		c.MaxCost = func(_ context.Context, in chain.Intent) (ledger.Amount, error) {
			asked[in.Network]++
			if hangs && in.Network != "ETH" {
				w.advance(20 * time.Second)
				return 0, fmt.Errorf("%w: it hangs", chain.ErrNode)
			}
			return 1000, nil
		}
	})
	w.fee["ETH"], w.fee["BTC"] = "0.001", "0.0001"
	w.fund("master", "USDTTRC20", "1000")
	w.fund("master", "BTC", "10")
	w.fund("master", "ETH", "100")
	var dead, well []string
	for range 20 {
		btc := withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: dec("0.1"), Currency: "BTC", Address: "Bdest"}}
		dead = append(dead, w.create(usdt("10")).ID, w.create(btc).ID)
	}
	eth := func() string {
		id := w.create(withdrawal.CreateInput{Terms: withdrawal.Terms{Amount: dec("0.1"), Currency: "ETH", Address: "Edest"}}).ID
		well = append(well, id)
		return id
	}
	eth()
	_, err := w.Step(w.ctx)
	require.ErrorIs(t, err, chain.ErrNode)
	for range 5 {
		clear(asked)
		id := eth()
		w.advance(time.Minute)
		_, err := w.Step(w.ctx)
		require.ErrorIs(t, err, chain.ErrNode)
		require.Equal(t, withdrawal.Handed, w.get(id).Stage)
		require.Equal(t, map[chain.Network]int{"ETH": asked["ETH"], "TRX": 1, "BTC": 1}, asked)
	}
	for _, id := range well {
		require.Equal(t, withdrawal.Handed, w.get(id).Stage)
	}
	for _, id := range dead {
		v := w.get(id)
		require.Equal(t, withdrawal.WaitingPayout, v.Waiting)
	}
	hangs = false
	w.advance(time.Minute)
	w.step()
	for _, id := range dead {
		require.Equal(t, withdrawal.Handed, w.get(id).Stage)
	}
}

// A partition that stays locked elsewhere is no reason that anybody is shown.
func TestFP01_ABusyStoreLeavesAWithdrawalDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.fund("master", "USDTTRC20", "1000")
	id := w.create(usdt("10")).ID
	w.payouts.before = func(chain.Intent) error { return fmt.Errorf("taken: %w", storage.ErrBusy) }
	w.step()
	v := w.get(id)
	require.Empty(t, v.Waiting)
	require.Equal(t, withdrawal.Handing, v.Stage)
	w.payouts.before = nil
	w.advance(time.Minute)
	w.step()
	require.Equal(t, withdrawal.Handed, w.get(id).Stage)
}
