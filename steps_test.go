package cryptopay_test

import (
	"context"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/rates"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// stepsOf gives ETH steps.
func stepsOf(t testing.TB, steps string) func(*cryptopay.Config) {
	parsed, err := chain.ParseSteps(steps)
	require.NoError(t, err)
	return func(cfg *cryptopay.Config) {
		cfg.Registry = listing(t, func(c *chain.Currency) bool {
			if c.Network == "ETH" {
				c.Steps = parsed
			}
			return true
		})
	}
}

const ethSteps = "0=1, 100=12, 10000=15 final"

// steppedHost is a Host whose ETH has steps. Its chain calls blocks final that are 20 deep.
func steppedHost(t *testing.T, s storage.Store, configure func(*cryptopay.Config)) *cryptopaytest.Host {
	return cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"ETH"}, Store: s, Configure: configure})
}

// onTwoStores runs a test on memory and on SQLite.
func onTwoStores(t *testing.T, test func(t *testing.T, s storage.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { t.Parallel(); test(t, memory.New()) })
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		s, err := sqlite.Open(filepath.Join(t.TempDir(), "steps.db"), sqlite.Options{Migrate: true})
		require.NoError(t, err)
		t.Cleanup(func() { _ = s.Close() })
		test(t, s)
	})
}

// sent pays coins and reads them from the mempool.
func sent(t *testing.T, h *cryptopaytest.Host, p payment.Payment, coins string) string {
	t.Helper()
	tx, err := h.Chains["ETH"].Pay(chain.Address(p.Address), p.Currency, dec(coins))
	require.NoError(t, err)
	h.Step()
	return tx
}

func shownRequired(t *testing.T, h *cryptopaytest.Host, p payment.Payment) int64 {
	t.Helper()
	at, err := h.App.Payments.Progress(t.Context(), h.ID, []payment.Payment{h.PaymentNow(p.ID)})
	require.NoError(t, err)
	return at[0].Required
}

// credited reports whether enough of a payment is final. What then follows is our own sweep.
func credited(p payment.Payment) bool {
	return p.Status == payment.Confirmed || p.Status == payment.Sending || p.Status == payment.Completed
}

// blocksUntil mines until a payment is credited, and counts the blocks that took.
func blocksUntil(t *testing.T, h *cryptopaytest.Host, p payment.Payment) int {
	t.Helper()
	for n := 1; n < 100; n++ {
		h.Mine(1)
		if credited(h.PaymentNow(p.ID)) {
			return n
		}
	}
	require.Fail(t, "the payment is not credited in 100 blocks")
	return 0
}

// TestR06_ConfirmationsRiseWithTheValue: a small payment is credited at its first block, a
// middle one at the depth of its step, and a large one when the network calls it final, too.
// What is awaited is shown from the creation on.
func TestR06_ConfirmationsRiseWithTheValue(t *testing.T) {
	t.Parallel()
	onTwoStores(t, func(t *testing.T, s storage.Store) {
		h := steppedHost(t, s, stepsOf(t, ethSteps))
		for _, c := range []struct {
			usd, coins  string
			shown, took int
		}{{"50", "0.025", 1, 1}, {"100", "0.05", 12, 12}, {"9999", "4.9995", 12, 12}, {"10000", "5", 15, 21}} {
			p := h.Payment(c.usd, "ETH")
			require.EqualValues(t, c.shown, shownRequired(t, h, p), c.usd)
			sent(t, h, p, c.coins)
			require.EqualValues(t, c.shown, shownRequired(t, h, p), c.usd)
			require.Equal(t, c.took, blocksUntil(t, h, p), c.usd)
			require.EqualValues(t, c.shown, shownRequired(t, h, p), c.usd)
			require.EqualValues(t, c.shown, arrival(t, h, p).Required)
		}
		h.Settle()
		h.Verify()
	})
}

func arrival(t *testing.T, h *cryptopaytest.Host, p payment.Payment) payment.Arrival {
	t.Helper()
	page, _, err := h.App.Payments.Arrivals(t.Context(), h.ID, p.ID, 1, 0)
	require.NoError(t, err)
	return page[0]
}

// TestR06_ASmallOrderDoesNotLowerADearDeposit: what came decides, not what was asked.
func TestR06_ASmallOrderDoesNotLowerADearDeposit(t *testing.T) {
	t.Parallel()
	h := steppedHost(t, nil, stepsOf(t, ethSteps))
	p := h.Payment("50", "ETH")
	require.EqualValues(t, 1, shownRequired(t, h, p))
	sent(t, h, p, "6")
	require.EqualValues(t, 15, shownRequired(t, h, p))
	require.Equal(t, 21, blocksUntil(t, h, p))
}

// TestR06_DepositsAddUp: a sum in parts needs what it would need in one, in one block and in
// several.
func TestR06_DepositsAddUp(t *testing.T) {
	t.Parallel()
	for _, apart := range []int{0, 3} {
		onTwoStores(t, func(t *testing.T, s storage.Store) {
			h := steppedHost(t, s, stepsOf(t, ethSteps))
			p := h.Payment("12000", "ETH")
			sent(t, h, p, "3")
			h.Mine(apart)
			sent(t, h, p, "3")
			require.EqualValues(t, 15, shownRequired(t, h, p))
			require.Equal(t, 21, blocksUntil(t, h, p), apart)
			page, _, err := h.App.Payments.Arrivals(t.Context(), h.ID, p.ID, 2, 0)
			require.NoError(t, err)
			require.EqualValues(t, 15, page[0].Required)
			require.EqualValues(t, 15, page[1].Required)
		})
	}
}

// TestR06_AFinalPartStillAddsUp: parts below the lowest step, one after the other, do not pass
// under it: those that are final and young count.
func TestR06_AFinalPartStillAddsUp(t *testing.T) {
	t.Parallel()
	h := steppedHost(t, nil, stepsOf(t, ethSteps))
	p := h.Payment("160", "ETH")
	sent(t, h, p, "0.04")
	h.Mine(1)
	require.True(t, arrival(t, h, p).Proven)
	sent(t, h, p, "0.04")
	require.Equal(t, 12, blocksUntil(t, h, p))
}

// silentRates can be without any price.
type silentRates struct {
	rates.Rates
	silent atomic.Bool
}

func (r *silentRates) Rate(ctx context.Context, token, fiat string) (rates.Rate, error) {
	if r.silent.Load() {
		return rates.Rate{}, rates.ErrUnavailable
	}
	return r.Rates.Rate(ctx, token, fiat)
}

// TestR06_WithoutAPriceTheHighestStepHolds: nobody knows what a deposit is worth.
func TestR06_WithoutAPriceTheHighestStepHolds(t *testing.T) {
	t.Parallel()
	prices := &silentRates{}
	h := steppedHost(t, nil, func(cfg *cryptopay.Config) {
		stepsOf(t, ethSteps)(cfg)
		prices.Rates = cfg.Rates
		cfg.Rates = prices
	})
	p := h.Payment("50", "ETH")
	prices.silent.Store(true)
	sent(t, h, p, "0.025")
	h.Mine(1)
	require.EqualValues(t, 15, arrival(t, h, p).Required)
	require.EqualValues(t, 15, shownRequired(t, h, p))
	prices.silent.Store(false)
	require.Equal(t, 20, blocksUntil(t, h, p))
}

// TestR06_AReorgAfterALowStep: what was credited at one confirmation is taken back as after
// every deep reorg, and where it comes again it needs the highest step.
func TestR06_AReorgAfterALowStep(t *testing.T) {
	t.Parallel()
	onTwoStores(t, func(t *testing.T, s storage.Store) {
		h := steppedHost(t, s, stepsOf(t, ethSteps))
		p := h.Payment("50", "ETH")
		tx := sent(t, h, p, "0.025")
		require.Equal(t, 1, blocksUntil(t, h, p))
		_, err := h.Chains["ETH"].Reorg(1, tx)
		require.NoError(t, err)
		h.Mine(1)
		require.True(t, credited(h.PaymentNow(p.ID))) // the status stays, and what was credited is taken back
		require.Zero(t, h.PaymentNow(p.ID).Received)
		require.NoError(t, h.Chains["ETH"].Resend(tx))
		h.Mine(1)
		require.EqualValues(t, 15, arrival(t, h, p).Required)
		require.Zero(t, h.PaymentNow(p.ID).Received)
		h.Mine(20)
		require.NotZero(t, h.PaymentNow(p.ID).Received)
		h.Settle()
		h.Verify()
	})
}

// TestR06_ChangedStepsHoldForWhatIsNotFinal: raised steps hold for what is in a block already;
// lowered ones, and no steps at all, take nothing back of what a deposit was given.
func TestR06_ChangedStepsHoldForWhatIsNotFinal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string
		final         int
	}{
		"raised":   {"0=6, 1000=12", "0=18, 1000=19", 18},
		"lowered":  {"0=18, 1000=19", "0=6, 1000=12", 18},
		"left out": {"0=18, 1000=19", "", 18},
		"new":      {"", "0=18, 1000=19", 18},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			steps := c.before
			h := steppedHost(t, nil, func(cfg *cryptopay.Config) {
				if steps != "" {
					stepsOf(t, steps)(cfg)
				}
			})
			p := h.Payment("50", "ETH")
			sent(t, h, p, "0.025")
			h.Mine(3)
			steps = c.after
			h.Restart()
			h.Mine(c.final - 4)
			require.False(t, credited(h.PaymentNow(p.ID)))
			h.Mine(1)
			require.True(t, credited(h.PaymentNow(p.ID)))
		})
	}
}

// TestR06_ProcessesOfDifferentStepsSideBySide: one process has steps, the other none. Whoever
// reads a deposit first, it is final once, and not before either's least.
func TestR06_ProcessesOfDifferentStepsSideBySide(t *testing.T) {
	t.Parallel()
	onTwoStores(t, func(t *testing.T, s storage.Store) {
		turn := 0
		h := steppedHost(t, s, func(cfg *cryptopay.Config) {
			if turn++; turn%2 == 0 {
				stepsOf(t, ethSteps)(cfg)
			}
		})
		for i, usd := range []string{"50", "500", "20000"} {
			p := h.Payment(usd, "ETH")
			sent(t, h, p, []string{"0.025", "0.25", "10"}[i])
			for n := 1; ; n++ {
				require.Less(t, n, 60)
				h.Mine(1)
				if credited(h.PaymentNow(p.ID)) {
					require.GreaterOrEqual(t, n, []int{1, 12, 15}[i])
					break
				}
				h.Restart()
			}
			h.Settle()
			require.Equal(t, h.PaymentNow(p.ID).Due, h.PaymentNow(p.ID).Received)
		}
		h.Verify()
	})
}

// TestR06_PermanentAddressesAndSuspense: a deposit that makes a payment, and one that no payment
// takes, need the confirmations of their value as others do.
func TestR06_PermanentAddressesAndSuspense(t *testing.T) {
	t.Parallel()
	h := steppedHost(t, nil, stepsOf(t, ethSteps))
	a := h.PermanentAddress("customer 1", "ETH")
	_, err := h.Chains["ETH"].Pay(chain.Address(a.Address), "ETH", dec("0.025"))
	require.NoError(t, err)
	h.Mine(1)
	made := h.PaymentsOf(a)
	require.Len(t, made, 1)
	require.True(t, credited(made[0]))
	_, err = h.Chains["ETH"].Pay(chain.Address(a.Address), "ETH", dec("6"))
	require.NoError(t, err)
	h.Mine(1)
	made = h.PaymentsOf(a)
	require.Len(t, made, 2)
	require.EqualValues(t, 15, shownRequired(t, h, made[0]))
	require.Equal(t, 20, blocksUntil(t, h, made[0]))

	p := h.Payment("50", "ETH")
	_, err = h.Chains["ETH"].Pay(chain.Address(p.Address), "USDTERC20", dec("20000"))
	require.NoError(t, err)
	h.Mine(1)
	require.EqualValues(t, 15, arrival(t, h, p).Required)
	h.Mine(19)
	require.False(t, arrival(t, h, p).Proven)
	h.Mine(1)
	require.Equal(t, payment.InSuspense, arrival(t, h, p).Booking)
	h.Settle()
	h.Verify()
}

// ordered makes a withdrawal of so many ETH, and mines nothing.
func ordered(t *testing.T, h *cryptopaytest.Host, coins string) withdrawal.Withdrawal {
	t.Helper()
	amount := dec(coins)
	w, err := h.App.Withdrawals.Create(t.Context(), h.ID, withdrawal.CreateInput{Terms: withdrawal.Terms{
		Amount: &amount, FinalAmount: true, Currency: "ETH", Address: string(h.Chains["ETH"].Customer("supplier")),
	}})
	require.NoError(t, err)
	return w
}

// TestFM10_PayoutsWaitByTheirValue: a payout is completed at the depth of its value's step, which it
// shows from its creation on. A price that moves later changes nothing.
func TestFM10_PayoutsWaitByTheirValue(t *testing.T) {
	t.Parallel()
	onTwoStores(t, func(t *testing.T, s storage.Store) {
		h := steppedHost(t, s, stepsOf(t, ethSteps))
		h.Customer.Pays(h.Payment("100000", "ETH"))
		h.Settle()
		for _, row := range []struct {
			coins string // at 2,000 USD
			want  int64
		}{{"0.01", 1}, {"0.5", 12}, {"10", 15}} {
			w := ordered(t, h, row.coins)
			require.Equal(t, row.want, w.Required)
			h.Rates.Set("ETH", "USD", dec("200"))
			h.Step()
			for n := int64(1); ; n++ {
				h.Mine(1)
				now := h.WithdrawalNow(w.ID)
				require.Equal(t, row.want, now.Required)
				require.Equal(t, n >= row.want, now.Status == withdrawal.Completed, "block %d of %s", n, row.coins)
				if now.Status == withdrawal.Completed {
					require.Equal(t, row.want, now.Confirmations)
					break
				}
			}
			h.Rates.Set("ETH", "USD", dec("2000"))
		}
		h.Settle()
		h.Verify()
	})
}

// TestFM10_AForkTakesALargePayoutBackBeforeItIsCompleted: what a fork of a usual depth undoes was
// not called completed, and it is paid once.
func TestFM10_AForkTakesALargePayoutBackBeforeItIsCompleted(t *testing.T) {
	t.Parallel()
	h := steppedHost(t, nil, stepsOf(t, ethSteps))
	h.Customer.Pays(h.Payment("100000", "ETH"))
	h.Settle()
	w := ordered(t, h, "10")
	h.Step()
	h.Mine(5)
	require.Equal(t, withdrawal.Processing, h.WithdrawalNow(w.ID).Status)
	_, err := h.Chains["ETH"].Reorg(5)
	require.NoError(t, err)
	h.Mine(1)
	require.Equal(t, withdrawal.Processing, h.WithdrawalNow(w.ID).Status)
	h.Settle()
	require.Equal(t, withdrawal.Completed, h.WithdrawalNow(w.ID).Status)
	h.Verify()
}
