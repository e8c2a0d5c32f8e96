package cryptopay_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// While the transaction of a payout is on its way its rows are edited, one at a time. Whatever
// becomes of the payout: nobody is paid and has his balance back, and nobody is paid twice.
func TestFS02_EditedTransactionOnItsWayGivesNothingBack(t *testing.T) {
	t.Parallel()
	attempt, order, outcome := "UPDATE cryptopay_attempts SET %s WHERE intent = ?", "UPDATE cryptopay_intents SET %s WHERE id = ?", "UPDATE cryptopay_outcomes SET %s, due = 1 WHERE id = ?"
	var edits []string
	for form, sets := range map[string][]string{
		attempt: {
			"purpose = 'cancel'", "purpose = 'sweep'", "fate = 'dead'", "fate = 'landed'", "nonce = nonce + 1", "spends = '[\"x/1\"]'", "raw = x''",
			"outputs = '[]'", "id = '0x' || substr(id, 4) || '0'", "intent = 'another'", "rejected = 1", "number = 9", "max_cost = 0", "tenant = 'another'",
		},
		order: {
			"state = 'queued', due = 1", "state = 'waiting', due = 1", "state = 'failed'", "state = 'cancelled'", "state = 'settled'", "state = 'executed'", "filling = 1, bump_at = 1", "reached = 1",
			"nonce = nonce + 1", "tx = 'x'", "amount = amount + 1", "max_cost = 1", "attempts = 9", "plan = x'7b7d'",
		},
		outcome: {"state = 'failed'", "state = 'cancelled'", "state = 'settled'", "state = 'queued'", "state = 'waiting'", "amount = amount - 1", "tx = 'x'", "batch = 'x'"},
	} {
		for _, set := range sets {
			edits = append(edits, fmt.Sprintf(form, set))
		}
	}
	edits = append(edits, "DELETE FROM cryptopay_attempts WHERE intent = ?", "DELETE FROM cryptopay_intents WHERE id = ?", "DELETE FROM cryptopay_outcomes WHERE id = ?", "DELETE FROM cryptopay_reservations WHERE intent = ?")
	for _, edit := range edits {
		t.Run(edit, func(t *testing.T) {
			t.Parallel()
			i := newInsider(t, "USDTERC20")
			world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
			w := i.withdraw("USDTERC20", "100", to)
			require.NoError(t, i.app.Step(t.Context()))
			_, err := i.db.Exec(edit, w.ID)
			require.NoError(t, err)
			for range 3 { // before anything is mined
				i.clock.Advance(time.Minute)
				_ = i.app.Step(t.Context())
			}
			i.work(25)
			usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
			require.NoError(t, err)
			got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
			require.NoError(t, err)
			paid := world.Balance(to, "USDTERC20")
			require.True(t, paid.IsZero() || paid.Equal(usdt.Decimal(w.Amount)), "paid %s", paid)
			if edit == fmt.Sprintf(attempt, "purpose = 'cancel'") {
				require.Contains(t, i.log.heard(), "order_altered")
				i.named(w.ID)
				i.edit("UPDATE cryptopay_attempts SET purpose = 'withdrawal' WHERE intent = ?", w.ID)
				i.work(25)
				require.Equal(t, usdt.Decimal(w.Amount).String(), world.Balance(to, "USDTERC20").String())
			}
			switch got.Status {
			case withdrawal.Failed, withdrawal.Cancelled:
				require.True(t, paid.IsZero(), "%s, and paid", got.Status)
			case withdrawal.Completed:
				require.False(t, paid.IsZero(), "completed, and not paid")
			}
		})
	}
}

// Somebody edits several rows of a payout that is on its way, so that they agree with each
// other: nobody is paid and has his balance back.
func TestFS02_EditedRowsThatAgreeGiveNothingBack(t *testing.T) {
	t.Parallel()
	failed := []string{
		"UPDATE cryptopay_attempts SET fate = 'dead' WHERE intent = ?", "UPDATE cryptopay_intents SET state = 'failed', due = 0 WHERE id = ?",
		"UPDATE cryptopay_outcomes SET state = 'failed', due = 1 WHERE id = ?",
	}
	back := "UPDATE cryptopay_attempts SET purpose = 'cancel' WHERE intent = ?"
	for name, edits := range map[string][]string{
		"failed":            failed,
		"failed and landed": {"UPDATE cryptopay_attempts SET fate = 'landed' WHERE intent = ?", failed[1], failed[2]},
		"of another kind":   {"UPDATE cryptopay_intents SET purpose = 'sweep', state = 'failed', due = 0 WHERE id = ?", failed[2]},
		"taken back":        {"UPDATE cryptopay_attempts SET purpose = 'cancel', fate = 'landed' WHERE intent = ?", failed[1], failed[2]},
		"given back":        {back, "UPDATE cryptopay_intents SET filling = 1 WHERE id = ?"},
		"cancelled": {
			failed[0], "UPDATE cryptopay_intents SET state = 'cancelled', due = 0 WHERE id = ?", "UPDATE cryptopay_outcomes SET state = 'cancelled', due = 1 WHERE id = ?",
		},
	} {
		for _, mined := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", mined ", mined), func(t *testing.T) {
				t.Parallel()
				i := newInsider(t, "USDTERC20")
				world, to := i.chains["ETH"], i.chains["ETH"].Customer("supplier")
				w := i.withdraw("USDTERC20", "100", to)
				require.NoError(t, i.app.Step(t.Context()))
				if mined {
					i.mine(1)
				}
				undo := i.rowsOf(w.ID)
				for _, e := range edits {
					i.edit(e, w.ID)
				}
				for range 3 {
					i.clock.Advance(time.Minute)
					_ = i.app.Step(t.Context())
				}
				i.work(25)
				usdt, err := chain.MainnetRegistry().Currency("USDTERC20")
				require.NoError(t, err)
				got, err := i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
				require.NoError(t, err)
				require.Equal(t, usdt.Decimal(w.Amount).String(), world.Balance(to, "USDTERC20").String())
				require.NotContains(t, []withdrawal.Status{withdrawal.Failed, withdrawal.Cancelled}, got.Status)
				require.Contains(t, i.log.heard(), "order_altered")
				undo()
				i.work(25)
				got, err = i.app.Withdrawals.Get(t.Context(), i.tenant, w.ID)
				require.NoError(t, err)
				require.Equal(t, withdrawal.Completed, got.Status)
			})
		}
	}
}

// rowsOf remembers what an order and its transactions say, and returns what writes that again.
func (i *insider) rowsOf(id string) (undo func()) {
	i.t.Helper()
	var intent, outcome struct {
		State, Purpose string
		Filling        bool
	}
	var attempt struct{ Fate, Purpose string }
	require.NoError(i.t, i.db.Get(&intent, "SELECT state, purpose, filling FROM cryptopay_intents WHERE id = ?", id))
	require.NoError(i.t, i.db.Get(&outcome, "SELECT state FROM cryptopay_outcomes WHERE id = ?", id))
	require.NoError(i.t, i.db.Get(&attempt, "SELECT fate, purpose FROM cryptopay_attempts WHERE intent = ?", id))
	return func() {
		i.edit("UPDATE cryptopay_intents SET state = ?, purpose = ?, filling = ?, due = 1 WHERE id = ?", intent.State, intent.Purpose, intent.Filling, id)
		i.edit("UPDATE cryptopay_outcomes SET state = ? WHERE id = ?", outcome.State, id)
		i.edit("UPDATE cryptopay_attempts SET fate = ?, purpose = ? WHERE intent = ?", attempt.Fate, attempt.Purpose, id)
	}
}
