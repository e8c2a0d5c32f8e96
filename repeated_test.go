package cryptopay_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// repeats requires that a supplier has got what was ordered, once, and that it was noticed.
func (i *insider) repeats(w string, to chain.Address) {
	i.t.Helper()
	got, err := i.app.Withdrawals.Get(i.t.Context(), i.tenant, w)
	require.NoError(i.t, err)
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(i.t, err)
	require.Equal(i.t, usdt.Decimal(got.Amount).String(), i.chains["ETH"].Balance(to, "USDTERC20").String())
	require.Contains(i.t, i.log.heard(), "order_altered")
}

// The order of a withdrawal that was paid is set back to its start, in its own row: nothing
// of it is paid again, and Verify names it.
func TestFS02_PaidOrderSetBackIsNotPaidAgain(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]string{
		"queued":  "state = 'queued', due = 1",
		"waiting": "state = 'waiting', due = 1, tx = '', nonce = -1, reached = 0",
		"as new":  "state = 'queued', due = 1, tx = '', attempts = 7, nonce = -1, reached = 0, reserved = 0",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			to := i.chains["ETH"].Customer("supplier")
			w := i.withdraw("USDTERC20", "100", to)
			i.work(60)
			i.edit("UPDATE cryptopay_intents SET "+set+" WHERE id = ?", w.ID)
			i.work(60)
			i.repeats(w.ID, to)
			i.named(w.ID)
		})
	}
}

// The same of one whose transaction is on its way, and where its order is deleted and handed
// over once more.
func TestFS02_OrderOnItsWayIsNotPaidTwice(t *testing.T) {
	t.Parallel()
	for name, edits := range map[string][]string{
		"set back": {"UPDATE cryptopay_intents SET state = 'queued', due = 1, nonce = -1 WHERE id = ?"},
		"handed over again": {
			"DELETE FROM cryptopay_intents WHERE id = ?",
			"UPDATE cryptopay_withdrawals SET stage = 'handing', status = 'pending', due = 1 WHERE id = ?",
			"UPDATE cryptopay_activity SET status = 'pending' WHERE id = ?",
		},
		"without what was told": {
			"DELETE FROM cryptopay_outcomes WHERE id = ?",
			"UPDATE cryptopay_intents SET state = 'queued', due = 1, attempts = 7, nonce = -1 WHERE id = ?",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			to := i.chains["ETH"].Customer("supplier")
			w := i.withdraw("USDTERC20", "100", to)
			require.NoError(t, i.app.Step(t.Context()))
			v, err := i.app.Operate.Transactions(t.Context(), "ETH", w.ID)
			require.NoError(t, err)
			require.Len(t, v.Attempts, 1)
			for _, q := range edits {
				i.edit(q, w.ID)
			}
			i.work(60)
			i.repeats(w.ID, to)
		})
	}
}

// The transaction that is about to be signed is edited to have another nonce: of an order
// that was not sent yet, and of one that is replaced. It is not signed, so that nothing lands
// beside what lands.
func TestFS02_PlanIsNotMovedToAnotherNonce(t *testing.T) {
	t.Parallel()
	for _, replaced := range []bool{false, true} {
		t.Run(map[bool]string{false: "first", true: "replacement"}[replaced], func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			configure := i.configure
			mute := func(c *cryptopay.Config) {
				configure(c)
				c.Signer = silent{c.Signer}
			}
			var w string
			if replaced {
				w = i.withdraw("USDTERC20", "100", to).ID
				require.NoError(t, i.app.Step(t.Context()))
			}
			i.configure = mute
			i.restart()
			if replaced {
				world.SetFeeLevel(2 * world.FeeLevel())
				_, err := i.app.Operate.SpeedUp(t.Context(), "ETH", w, 1e7, cryptopay.Call{By: "an operator", Reason: "it waits"})
				require.NoError(t, err)
				_ = i.app.Step(t.Context())
			} else {
				w = i.withdraw("USDTERC20", "100", to).ID
				_ = i.app.Step(t.Context())
			}
			var stored []byte
			require.NoError(t, i.db.Get(&stored, "SELECT plan FROM cryptopay_intents WHERE id = ?", w))
			var plan map[string]any
			var order struct {
				Intent chain.Intent
				Fee    chain.Fee
				Nonce  uint64
			}
			require.NoError(t, json.Unmarshal(stored, &plan))
			require.NoError(t, json.Unmarshal(stored, &order))
			built, err := world.Client().Build(t.Context(), chain.Order{Intent: order.Intent, Fee: order.Fee, Nonce: order.Nonce + 1, Attempt: 1})
			require.NoError(t, err)
			plan["Unsigned"] = built
			edited, err := json.Marshal(plan)
			require.NoError(t, err)
			i.edit("UPDATE cryptopay_intents SET plan = ? WHERE id = ?", edited, w)
			i.configure = configure
			i.restart()
			for range 3 { // before anything is mined
				i.clock.Advance(time.Minute)
				_ = i.app.Step(t.Context())
			}
			require.Contains(t, i.log.heard(), "order_altered")
			i.edit("UPDATE cryptopay_intents SET plan = ? WHERE id = ?", stored, w)
			i.work(60)
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w)
			require.NoError(t, err)
			require.Equal(t, usdt.Decimal(got.Amount).String(), world.Balance(to, "USDTERC20").String())
			next, err := world.Client().(chain.Noncer).Nonce(t.Context(), order.Intent.From)
			require.NoError(t, err)
			require.Equal(t, order.Nonce+1, next, "no other nonce was used")
		})
	}
}

// What the payout side tells of a payout that is on its way is edited: its hold is not
// released, so that nobody is paid and has his balance back.
func TestFS02_EditedOutcomeReleasesNothing(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"failed", "cancelled"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			to := i.chains["ETH"].Customer("supplier")
			w := i.withdraw("USDTERC20", "100", to)
			require.NoError(t, i.app.Step(t.Context()))
			v, err := i.app.Operate.Transactions(t.Context(), "ETH", w.ID)
			require.NoError(t, err)
			require.Len(t, v.Attempts, 1)
			i.edit("UPDATE cryptopay_outcomes SET state = ?, due = 1 WHERE id = ?", state, w.ID)
			i.clock.Advance(time.Minute)
			_ = i.app.Step(t.Context()) // before it is mined
			i.work(60)
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, got.Status)
			i.repeats(w.ID, to)
		})
	}
}

// Three rows that are edited alike say that the transaction of a payout died: its order, what was
// told of it, and its attempt. Nothing here shows that they lie, so the order is sent again.
// The Signer's limits bound that. The host is told at once, and the look at the chain
// finds what is missing.
func TestFS02_OrderWhoseRowsAllSayThatItDiedIsBoundedByTheSigner(t *testing.T) {
	t.Parallel()
	for _, limited := range []bool{false, true} {
		t.Run(map[bool]string{false: "without limits", true: "within limits"}[limited], func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			if limited {
				most, err := usdt.Units(dec("150"), ledger.Down)
				require.NoError(t, err)
				own := memory.New() // of the signer
				require.NoError(t, own.Open(t.Context(), keys.LimitTables()...))
				limits := keys.Limits{
					Pays:  map[string][]keys.Limit{"USDTERC20": {{Amount: most, Per: 24 * time.Hour}}},
					Costs: map[chain.Network][]keys.Limit{"ETH": {{Amount: 1e8, Per: 24 * time.Hour}}},
				}
				signer, err := keys.NewSigner(keys.SignerConfig{
					Seed: i.seed, Chains: map[chain.Network]keys.Chain{"ETH": world.Client()}, Mandates: i.mandates,
					Registry: keys.LimitedRegistry{Store: own, Limits: limits, Now: i.clock.Now},
					KeyOf: func(ctx context.Context, n chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
						return i.app.KeyOf(ctx, n, a)
					},
				})
				require.NoError(t, err)
				configure := i.configure
				i.configure = func(c *cryptopay.Config) {
					configure(c)
					c.Signer = signer
				}
				i.restart()
			}
			w := i.withdraw("USDTERC20", "100", to)
			i.work(60)
			once := usdt.Decimal(w.Amount)
			require.Equal(t, once.String(), world.Balance(to, "USDTERC20").String())
			i.edit("DELETE FROM cryptopay_outcomes WHERE id = ?", w.ID)
			i.edit("UPDATE cryptopay_attempts SET fate = 'dead' WHERE intent = ?", w.ID)
			i.edit("UPDATE cryptopay_intents SET state = 'queued', due = 1, nonce = -1, tx = '', reached = 0 WHERE id = ?", w.ID)
			i.work(60)
			if limited {
				require.Equal(t, once.String(), world.Balance(to, "USDTERC20").String())
				return
			}
			require.Equal(t, once.Add(once).String(), world.Balance(to, "USDTERC20").String())
			require.True(t, i.told[withdrawal.NoticeResent])
			require.Contains(t, i.log.heard(), "books_differ")
		})
	}
}
