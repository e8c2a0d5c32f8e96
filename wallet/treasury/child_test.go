package treasury_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// stuckPayout is a payout that nodes keep and do not mine, with a child that pays for it.
func stuckPayout(t *testing.T) (w *world, id string) {
	w = newWorld(t, "BTC")
	w.chain.SetFirstSeen(true)
	w.mine(5)
	w.fund("0.01")
	w.pay("BTC", "300")
	w.mine(10)
	amount := dec("200")
	v, err := w.app.Withdrawals.Create(t.Context(), w.tenant, withdrawal.CreateInput{
		Terms: withdrawal.Terms{PriceAmount: &amount, Currency: "BTC", Address: string(w.chain.Customer("supplier"))},
	})
	require.NoError(t, err)
	w.step()
	w.chain.SetFeeLevel(8)
	return w, v.ID
}

// wait lets time go by in which nothing is mined.
func (w *world) wait() {
	w.clock.Advance(time.Minute)
	w.step()
}

// parentAlone lets a miner take what was sent first, and nothing else.
func (w *world) parentAlone() {
	w.t.Helper()
	w.chain.SetFeeLevel(0)
	w.chain.MineOnly(w.chain.Mempool()[0])
	for range 12 {
		w.clock.Advance(time.Minute)
		w.chain.Drop(w.chain.Mempool()...)
		w.chain.Mine(1)
		w.step()
	}
	require.Equal(w.t, outgoing.Final, w.intents(chain.ForWithdrawal)[0].State)
}

func (w *world) reservation(id string) (treasury.Reservation, bool) {
	r, _, ok, err := treasury.Reservations.One(w.t.Context(), w.store, storage.Tenant(w.tenant), id)
	require.NoError(w.t, err)
	return r, ok
}

// W14: what a child may cost is bounded by what was set aside for its parent, and stays
// set aside until its own end.
func TestW14_ChildKeepsWhatItMayCost(t *testing.T) {
	t.Parallel()
	w, id := stuckPayout(t)
	var child outgoing.IntentRow
	for range 60 {
		w.wait()
		if all := w.intents(chain.ForCancel); len(all) > 0 && all[0].State == outgoing.Signed {
			child = all[0]
			break
		}
	}
	require.Equal(t, outgoing.Signed, child.State)
	set, _ := w.reservation(id)
	require.LessOrEqual(t, child.MaxCost, set.Amount)
	_, ok := w.reservation(outgoing.ID{Kind: outgoing.OrderChild, For: id}.String())
	require.False(t, ok, "its parent has it yet")

	w.parentAlone()
	left, ok := w.reservation(outgoing.ID{Kind: outgoing.OrderChild, For: id}.String())
	require.True(t, ok && left.Open)
	require.Equal(t, child.MaxCost, left.Amount)
	reports, err := w.app.Verify(t.Context())
	require.NoError(t, err)
	require.True(t, reports[0].Sound(), "%+v", reports[0])

	for range 20 {
		w.wait()
		w.mine(1)
	}
	require.Equal(t, outgoing.Final, w.intents(chain.ForCancel)[0].State)
	w.released()
	w.conserved("BTC")
}

// W14: fees go on rising while a child pays. What it may cost stays within what was set aside
// for its parent, beside what that may cost itself.
func TestW14_ChildOfAPayoutIsNotRaisedBeyondWhatItsParentHas(t *testing.T) {
	t.Parallel()
	w, id := stuckPayout(t)
	raised, level := false, w.chain.FeeLevel()
	var first ledger.Amount
	for i := range 200 {
		if i > 40 && i%5 == 0 && level < 2_000 {
			level += max(1, level/8)
			w.chain.SetFeeLevel(level)
		}
		w.wait()
		all := w.intents(chain.ForCancel)
		if len(all) == 0 {
			continue
		}
		if first == 0 {
			first = all[0].MaxCost
		}
		raised = raised || all[0].MaxCost > first
		set, ok := w.reservation(id)
		require.True(t, ok)
		kept, _, _, err := outgoing.Attempts.One(t.Context(), w.store, storage.Network("BTC"), w.chain.Mempool()[0])
		require.NoError(t, err)
		require.LessOrEqual(t, all[0].MaxCost+kept.MaxCost, set.Amount, "round %d, fee level %d", i, level)
	}
	require.True(t, raised, "it is never raised")
}

// L01: the process dies at every commit, before it or after, while a child pays.
func TestL01_ChildSurvivesDeathAtEveryCommit(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			t.Parallel()
			for at := 1; ; at += stride() {
				w, _ := stuckPayout(t)
				w.store.commits, w.store.dieAt, w.store.after = 0, at, after
				life := w.store
				for range 50 {
					w.wait()
				}
				w.mine(30)
				for range 5 {
					w.wait()
				}
				require.Equal(t, outgoing.Final, w.intents(chain.ForWithdrawal)[0].State)
				require.Equal(t, outgoing.Final, w.intents(chain.ForCancel)[0].State)
				require.Equal(t, 1, w.landed(w.chain.Customer("supplier"), "BTC"))
				w.released()
				w.conserved("BTC")
				if t.Failed() || !life.dead {
					require.Greater(t, at, 15)
					return
				}
			}
		})
	}
}

// A child whose end is told before its parent's leaves nothing set aside.
func TestChildThatEndsFirst(t *testing.T) {
	t.Parallel()
	w, id := stuckPayout(t)
	for range 40 {
		w.wait()
	}
	require.Equal(t, outgoing.Signed, w.intents(chain.ForCancel)[0].State)
	for range 2 { // told twice
		require.NoError(t, w.app.Treasury.HandleOutcome(t.Context(), outgoing.Outcome{
			Intent: outgoing.ID{Kind: outgoing.OrderChild, For: id}.String(), Purpose: chain.ForCancel, Tenant: w.tenant, Network: "BTC", Currency: "BTC", State: outgoing.Failed, At: w.clock.Now(),
		}))
	}
	_, ok := w.reservation(id)
	require.True(t, ok)
	w.parentAlone()
	w.released()
}
