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
