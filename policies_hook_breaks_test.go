package cryptopay_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// hookWorld is a host with 3,000 USDT whose hook is asked about each payout.
func hookWorld(t *testing.T, hook func(w *withdrawal.Withdrawal) (withdrawal.Verdict, string, error)) *cryptopaytest.Host {
	t.Helper()
	h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: func(cfg *cryptopay.Config) {
		cfg.Withdrawals.Policy = func(_ context.Context, w withdrawal.Withdrawal) (withdrawal.Verdict, string, error) { return hook(&w) }
	}})
	h.Customer.Pays(h.Payment("3000", "USDTERC20"))
	return h
}

func payout(t *testing.T, h *cryptopaytest.Host, name string) withdrawal.Withdrawal {
	t.Helper()
	w, err := h.App.Withdrawals.Create(t.Context(), h.ID, withdrawal.CreateInput{
		Terms: withdrawal.Terms{Amount: ptr(dec("100")), Currency: "USDTERC20", Address: string(h.Chains["ETH"].Customer(name))}, CustomID: name,
	})
	require.NoError(t, err)
	return w
}

// A hook that panics about one payout, or never comes back, has that one wait, as its merchant sees.
// Other payouts go out, and that one does once the hook answers.
func TestPolicy_HookThatHangsOrPanicsHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"panics", "hangs"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var well atomic.Bool
			back := make(chan struct{})
			h := hookWorld(t, func(w *withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
				switch {
				case w.CustomID == "good" || well.Load():
				case name == "panics":
					panic("the host's fault")
				default:
					<-back
				}
				return withdrawal.Allow, "", nil
			})
			bad, good := payout(t, h, "bad"), payout(t, h, "good")
			for range 60 {
				_ = h.App.Step(t.Context()) // it says that the hook did not answer
				h.Chains["ETH"].Mine(1)
				h.Clock.Advance(16e9)
			}
			require.Equal(t, withdrawal.Completed, h.WithdrawalNow(good.ID).Status)
			bad = h.WithdrawalNow(bad.ID)
			require.Equal(t, []any{withdrawal.Pending, withdrawal.WaitingPolicy}, []any{bad.Status, bad.Waiting})
			well.Store(true)
			close(back)
			h.Settle()
			require.Equal(t, withdrawal.Completed, h.WithdrawalNow(bad.ID).Status)
			h.Verify()
		})
	}
}

// A hook that never ends, whatever its context says, is called once for its payout. The log says so while
// it hangs, and the answer counts should it come after all.
func TestPolicy_HookThatNeverEndsIsCalledOnce(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	back := make(chan struct{})
	said := new(bytes.Buffer)
	h := cryptopaytest.Open(t, cryptopaytest.Options{Configure: func(cfg *cryptopay.Config) {
		cfg.Log = slog.New(slog.NewTextHandler(said, nil))
		cfg.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
			calls.Add(1)
			<-back
			return withdrawal.Refuse, "at last", nil
		}
	}})
	h.Customer.Pays(h.Payment("3000", "USDTERC20"))
	w := payout(t, h, "bad")
	for range 70 {
		_ = h.App.Step(t.Context()) // it says that the hook did not answer
		h.Clock.Advance(30 * time.Second)
	}
	require.EqualValues(t, 1, calls.Load())
	require.Equal(t, 3, strings.Count(said.String(), "msg=policy_hangs tenant="+h.ID+" withdrawal="+w.ID), said)
	close(back)
	h.Settle()
	require.Equal(t, []any{withdrawal.Failed, "at last"}, []any{h.WithdrawalNow(w.ID).Status, h.WithdrawalNow(w.ID).Reason})
	require.EqualValues(t, 1, calls.Load())
	h.Verify()
}

// The hook is asked once for each try, and about a payout that it has asked a person about again
// once that was approved. Its reason is kept as long as it can be read.
func TestPolicy_HookIsAskedOncePerTry(t *testing.T) {
	t.Parallel()
	asked := map[string]int{}
	failing := true
	h := hookWorld(t, func(w *withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
		asked[fmt.Sprint(w.CustomID, len(w.Decisions))]++
		if w.CustomID == "fails" && failing {
			failing = false
			return "", "", errors.New("its database is away")
		}
		if w.CustomID == "asks" {
			return withdrawal.AskReview, strings.Repeat("é", 200_000), nil
		}
		return withdrawal.Allow, "", nil
	})
	payout(t, h, "fine")
	fails, asks := payout(t, h, "fails"), payout(t, h, "asks")
	_ = h.App.Step(t.Context())
	h.Settle()
	require.Equal(t, strings.Repeat("é", 1000), h.WithdrawalNow(asks.ID).Reason)
	_, err := h.App.Withdrawals.Approve(t.Context(), h.ID, asks.ID, "bob", "")
	require.NoError(t, err)
	h.Settle()
	for _, id := range []string{fails.ID, asks.ID} {
		require.Equal(t, withdrawal.Completed, h.WithdrawalNow(id).Status)
	}
	require.Equal(t, map[string]int{"fine0": 1, "fails0": 2, "asks0": 1, "asks2": 1}, asked)
}

// A payout that the operator's coins were too short for is tried again for hours. What the hook
// says then counts: a recipient who was sanctioned meanwhile is not paid, and the merchant has his
// money back.
func TestPolicy_HookRefusesWhatWaitsForCoins(t *testing.T) {
	t.Parallel()
	for _, now := range []withdrawal.Verdict{withdrawal.Refuse, withdrawal.AskReview, withdrawal.Allow} {
		t.Run(string(now), func(t *testing.T) {
			t.Parallel()
			verdict := withdrawal.Allow
			h := newHostOn(t, memory.New(), 9, "ETH")
			h.configure = func(cfg *cryptopay.Config) {
				cfg.Withdrawals.Policy = func(context.Context, withdrawal.Withdrawal) (withdrawal.Verdict, string, error) {
					return verdict, "the recipient is sanctioned", nil
				}
			}
			h.restart()
			h.step()
			p, err := h.app.Payments.Create(t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "1000", Currency: "USDTERC20"}})
			require.NoError(t, err)
			_, err = h.chains["ETH"].Pay(chain.Address(p.Address), "USDTERC20", dec("1000"))
			require.NoError(t, err)
			h.mine(30)
			to := h.chains["ETH"].Customer("supplier")
			w, err := h.app.Withdrawals.Create(t.Context(), h.tenant, withdrawal.CreateInput{
				Terms: withdrawal.Terms{Amount: ptr(dec("100")), Currency: "USDTERC20", Address: string(to)},
			})
			require.NoError(t, err)
			h.mine(10)
			get := func() withdrawal.Withdrawal {
				t.Helper()
				v, err := h.app.Withdrawals.Get(t.Context(), h.tenant, w.ID)
				require.NoError(t, err)
				return v
			}
			require.Equal(t, withdrawal.ShownGasShort, get().WaitingReason())
			verdict = now
			hot, err := h.app.Hot(t.Context(), "ETH", h.tenant)
			require.NoError(t, err)
			_, err = h.chains["ETH"].Fund(hot, "ETH", dec("2"))
			require.NoError(t, err)
			h.mine(100)
			if now != withdrawal.Refuse { // nobody is asked any more
				require.Equal(t, withdrawal.Completed, get().Status)
				return
			}
			require.Equal(t, []any{withdrawal.Failed, "the recipient is sanctioned"}, []any{get().Status, get().Reason})
			require.Zero(t, h.chains["ETH"].Balance(to, "USDTERC20").Sign())
			balances, err := h.app.Wallets.Balances(t.Context(), h.tenant, "master")
			require.NoError(t, err)
			require.Zero(t, balances["master"][0].Pending)
			h.sound()
		})
	}
}
