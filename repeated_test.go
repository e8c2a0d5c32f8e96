package cryptopay_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
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
	for _, state := range []string{"failed", "cancelled", "executed", "settled"} {
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
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, []any{withdrawal.Processing, withdrawal.WaitingAltered}, []any{got.Status, got.Waiting})
			require.True(t, i.told[w.ID], "the host hears of it")
			require.Contains(t, i.contradictions(), w.ID)
			i.work(60)
			got, err = i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, got.Status)
			require.Empty(t, got.Waiting)
			require.NotContains(t, i.contradictions(), w.ID)
			i.repeats(w.ID, to)
		})
	}
}

// The order of a payout that is on its way is said to have ended, and its outcome to have been told: its
// owner would wait for ever. The host hears of it, and Verify names it.
func TestFS02_OrderThatEndsWithoutAWordIsTold(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"settled", "failed", "cancelled"} {
		t.Run(state, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			w := i.withdraw("USDTERC20", "100", i.chains["ETH"].Customer("supplier"))
			require.NoError(t, i.app.Step(t.Context()))
			require.NotContains(t, i.contradictions(), w.ID)
			undo := i.rowOf("intents", w.ID)
			i.edit("UPDATE cryptopay_intents SET state = ?, due = 0 WHERE id = ?", state, w.ID)
			i.edit("UPDATE cryptopay_outcomes SET state = ?, due = 0 WHERE id = ?", state, w.ID)
			for range 3 {
				i.clock.Advance(time.Hour)
				i.work(2)
			}
			require.True(t, i.told[w.ID], "the host hears of it")
			require.Contains(t, i.contradictions(), w.ID)
			undo()
			i.work(60)
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			require.Equal(t, withdrawal.Completed, got.Status)
			require.NotContains(t, i.contradictions(), w.ID)
		})
	}
}

// Three rows that are edited alike say that the transaction of a payout died: its order, what was
// told of it, and its attempt. The node says otherwise. Where it knows nothing yet, the signer
// signs no other transaction: nothing shows it that the one it has signed is dead.
func TestFS02_OrderWhoseRowsAllSayThatItDiedIsNotPaidAgain(t *testing.T) {
	t.Parallel()
	for _, apart := range []bool{false, true} {
		for _, landed := range []bool{false, true} {
			t.Run(map[bool]string{false: "rows of the signer beside", true: "rows of the signer apart"}[apart]+map[bool]string{false: ", on its way", true: ", paid"}[landed], func(t *testing.T) {
				t.Parallel()
				i := newInsider(t, "USDTERC20")
				world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
				if apart {
					i.apart(i.mandates)
				}
				w := i.withdraw("USDTERC20", "100", to)
				require.NoError(t, i.app.Step(t.Context()))
				if landed {
					i.work(60)
				}
				i.edit("DELETE FROM cryptopay_outcomes WHERE id = ?", w.ID)
				i.edit("UPDATE cryptopay_attempts SET fate = 'dead' WHERE intent = ?", w.ID)
				i.edit("UPDATE cryptopay_intents SET state = 'queued', due = 1, nonce = -1, tx = '', reached = 0 WHERE id = ?", w.ID)
				i.work(60)
				usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
				require.NoError(t, err)
				require.Equal(t, usdt.Decimal(w.Amount).String(), world.Balance(to, "USDTERC20").String())
				require.Contains(t, i.log.heard(), "order_altered")
				require.Equal(t, !landed, strings.Contains(i.log.heard(), "signer_refuses_again"))
				v, err := i.app.Operate.Transactions(t.Context(), "ETH", w.ID)
				require.NoError(t, err)
				require.Equal(t, "altered", string(v.Reason))
			})
		}
	}
}

// The same with what nobody made, or was made for another order: it shows nothing.
func TestFS02_EndingOfAnotherOrderShowsNothing(t *testing.T) {
	t.Parallel()
	i := newInsider(t, "USDTERC20")
	i.apart(i.mandates)
	world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
	w := i.withdraw("USDTERC20", "100", to)
	i.work(60)
	ours := cryptopay.MandateKeys(hostKey)
	other := cryptopay.MandateKeys([]byte("another key, of thirty-two bytes"))
	var tx string
	require.NoError(t, i.db.Get(&tx, "SELECT id FROM cryptopay_attempts WHERE intent = ?", w.ID))
	var spends []byte
	require.NoError(t, i.db.Get(&spends, "SELECT spends FROM cryptopay_attempts WHERE intent = ?", w.ID))
	var slots []string
	require.NoError(t, json.Unmarshal(spends, &slots))
	right := mandate.Ending{
		Store: i.app.StoreID(), Network: "ETH", Order: w.ID, Dead: []mandate.Attempt{{ID: w.ID + "/1", Tx: tx, Spends: mandate.SpendsOf(slots)}},
	}
	var texts []string
	for name, e := range map[string]mandate.Ending{
		"another store":   {Store: "copy", Network: right.Network, Order: right.Order, Dead: right.Dead},
		"another network": {Store: right.Store, Network: "BSC", Order: right.Order, Dead: right.Dead},
		"another order":   {Store: right.Store, Network: right.Network, Order: "other", Dead: right.Dead},
		"another hash":    {Store: right.Store, Network: right.Network, Order: right.Order, Dead: []mandate.Attempt{{ID: w.ID + "/1", Tx: "0x1", Spends: right.Dead[0].Spends}}},
		"another nonce":   {Store: right.Store, Network: right.Network, Order: right.Order, Dead: []mandate.Attempt{{ID: w.ID + "/1", Tx: tx, Spends: mandate.SpendsOf([]string{"x/1"})}}},
		"another attempt": {Store: right.Store, Network: right.Network, Order: right.Order, Dead: []mandate.Attempt{{ID: w.ID + "/2", Tx: tx, Spends: right.Dead[0].Spends}}},
		"it has landed":   {Store: right.Store, Network: right.Network, Order: right.Order, Landed: right.Dead[0]},
		"an unknown one":  {Store: right.Store, Network: right.Network, Order: right.Order, Landed: mandate.Attempt{ID: w.ID + "/9", Tx: "0x9", Spends: right.Dead[0].Spends}},
	} {
		text, err := ours.SealEnding(e)
		require.NoError(t, err, name)
		texts = append(texts, text)
	}
	forged, err := other.SealEnding(right)
	require.NoError(t, err)
	posing, err := mandate.Keys{{ID: ours[0].ID, Secret: other[0].Secret}}.SealEnding(right)
	require.NoError(t, err)
	set := func(endings ...string) {
		text, err := json.Marshal(endings)
		require.NoError(t, err)
		i.edit("DELETE FROM cryptopay_outcomes WHERE id = ?", w.ID)
		i.edit("UPDATE cryptopay_attempts SET fate = 'dead' WHERE intent = ?", w.ID)
		i.edit("UPDATE cryptopay_intents SET state = 'queued', due = 1, nonce = -1, tx = '', reached = 0, plan = x'', endings = ? WHERE id = ?", string(text), w.ID)
		i.work(60)
	}
	usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
	require.NoError(t, err)
	once := usdt.Decimal(w.Amount)
	set(append(texts, forged, posing, "", "ending-1", "ending-1/a/b/c")...)
	require.Equal(t, once.String(), world.Balance(to, "USDTERC20").String())
	require.Contains(t, i.log.heard(), "signer_refuses_again")
	i.named(w.ID)
	genuine, err := ours.SealEnding(right) // which only a holder of the key can make
	require.NoError(t, err)
	set(genuine)
	require.Equal(t, once.Add(once).String(), world.Balance(to, "USDTERC20").String(), "it is this text that decides")
	require.True(t, i.told[withdrawal.NoticeResent])
	require.Contains(t, i.log.heard(), "books_differ")
}
