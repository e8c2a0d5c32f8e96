package cryptopay_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/webhook"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// alerts are what the host is told of.
type alerts struct {
	mu       sync.Mutex
	payouts  []withdrawal.Notice
	sweeping []treasury.Notice
}

func (a *alerts) listen(c *cryptopay.Config) {
	c.Withdrawals.Notify = func(_ context.Context, n withdrawal.Notice) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.payouts = append(a.payouts, n)
	}
	c.Treasury.Notify = func(_ context.Context, n treasury.Notice) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.sweeping = append(a.sweeping, n)
	}
}

// of lists the kinds of notices of one withdrawal.
func (a *alerts) of(id string) []string {
	var out []string
	for _, n := range a.payouts {
		if n.Withdrawal == id {
			out = append(out, n.Kind)
		}
	}
	return out
}

// reasons are those that a merchant was told by withdrawal_waiting, "" = it waits no more.
func (h *host) reasons(id string) []string {
	h.t.Helper()
	h.inbox.mu.Lock()
	defer h.inbox.mu.Unlock()
	var out []string
	for _, d := range h.inbox.got {
		var body struct {
			Event string
			Data  withdrawal.WaitingUpdate
		}
		require.NoError(h.t, json.Unmarshal(d.Body, &body))
		if body.Event != webhook.WithdrawalWaiting || body.Data.WithdrawalID != id {
			continue
		}
		require.Equal(h.t, body.Data.WaitingReason == nil, body.Data.WaitingSince == nil)
		reason := ""
		if body.Data.WaitingReason != nil {
			reason = *body.Data.WaitingReason
		}
		out = append(out, reason)
	}
	return out
}

// TestFT06_WhatWaitsIsTold: each new reason is an event, and its end; what lasts is an alert
// with its reason, once, also over a restart, of payouts and of sweeps.
func TestFT06_WhatWaitsIsTold(t *testing.T) {
	t.Parallel()
	for on, make := range stores() {
		t.Run(on, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			a := &alerts{}
			h := newHostOn(t, make(t), 81, "ETH")
			h.configure = a.listen
			h.restart()
			h.earn("ETH", "300")
			h.mine(30)
			network := cryptopay.HaltScope{Network: "ETH"}
			_, err := h.app.Operate.Halt(ctx, network, because("a look"))
			require.NoError(t, err)
			p := h.create("100", "ETH")
			h.pay(p, "ETH", dec("0.05"))
			id := h.payout(h.tenant, "ETH", "0.01")
			h.mine(40) // ten minutes
			require.Equal(t, []string{"halted"}, h.reasons(id))
			require.Empty(t, a.of(id), "it has not waited for long")
			h.mine(40)
			h.restart()
			h.mine(80)
			require.Equal(t, []string{withdrawal.NoticeWaiting}, a.of(id), "once")
			require.Contains(t, a.payouts[0].Detail, "halted")
			require.Len(t, a.sweeping, 1)
			require.Equal(t, treasury.WaitHalted, a.sweeping[0].Reason)
			_, err = h.app.Operate.Lift(ctx, network, because("looked"))
			require.NoError(t, err)
			h.mine(60)
			h.paidOnce(h.tenant, id)
			require.Equal(t, []string{"halted", ""}, h.reasons(id))
			require.Len(t, a.of(id), 1)
			h.sound()
		})
	}
}

// TestFT06_WaitingFlapsAreNotTold: a payout that cannot be handed over is tried again and
// again: the merchant hears of it once.
func TestFT06_WaitingFlapsAreNotTold(t *testing.T) {
	t.Parallel()
	a := &alerts{}
	h := newHost(t, 82, "ETH")
	h.configure = a.listen
	h.restart()
	p := h.create("300", usdt)
	h.pay(p, usdt, dec("300")) // and the operator has no coins for the network
	h.mine(60)
	id := h.payout(h.tenant, usdt, "100")
	h.mine(120)
	require.Equal(t, "pending gas_short", h.status(h.tenant, id))
	require.Equal(t, []string{"gas_short"}, h.reasons(id))
	require.Equal(t, []string{withdrawal.NoticeWaiting}, a.of(id))
	h.float("ETH", "1")
	h.mine(250)
	require.Equal(t, "completed", h.status(h.tenant, id))
	told := h.reasons(id)
	require.Equal(t, slices.Compact(slices.Clone(told)), told, "each reason once")
	require.Empty(t, told[len(told)-1])
	h.sound()
}

// TestFT06_StuckPayoutIsAnAlert: a day after fees have risen above its bound the operator
// and the merchant have heard of a payout that is in no block.
func TestFT06_StuckPayoutIsAnAlert(t *testing.T) {
	t.Parallel()
	a := &alerts{}
	h, id, _ := stuck(t, memory.New(), "ETH")
	h.configure = func(c *cryptopay.Config) {
		keepsBounds(c)
		a.listen(c)
	}
	h.restart()
	for range 7 * 12 {
		h.clock.Advance(5 * time.Minute)
		h.mine(1)
	}
	require.Equal(t, "processing fee_too_high", h.status(h.tenant, id))
	require.Equal(t, []string{withdrawal.NoticeWaiting}, a.of(id))
	require.Equal(t, []string{"fee_too_high"}, h.reasons(id))
}

// TestFT06_CompletedWithoutConfirmationsAndStuck: a host completes withdrawals when a node has
// their payment. Fees rise before a block takes one: the merchant and the operator hear why, the
// operator can help it, and it is paid once.
func TestFT06_CompletedWithoutConfirmationsAndStuck(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			a := &alerts{}
			h := newHost(t, 84, n)
			h.configure = func(c *cryptopay.Config) {
				keepsBounds(c)
				a.listen(c)
				c.Withdrawals.Confirmations = func(*chain.Currency) int64 { return 0 }
			}
			h.restart()
			h.earn(string(n), "300")
			h.mine(30)
			id := h.payout(h.tenant, string(n), map[chain.Network]string{"ETH": "0.01", "BTC": "0.001"}[n])
			h.step()
			level := h.stick(n)
			h.chains[n].SetFeeLevel(100 * h.chains[n].FeeLevel())
			for range 8 * 12 {
				h.clock.Advance(5 * time.Minute)
				h.mine(1)
			}
			require.Contains(t, []string{"completed stuck", "completed fee_too_high"}, h.status(h.tenant, id))
			require.NotEmpty(t, a.of(id))
			require.Subset(t, []string{withdrawal.NoticeWaiting}, a.of(id))
			require.Contains(t, h.reasons(id), "stuck")
			v, err := h.app.Operate.Transactions(t.Context(), n, id)
			require.NoError(t, err)
			require.Equal(t, outgoing.Signed, v.State)
			_, err = h.app.Operate.SpeedUp(t.Context(), n, id, 2*v.Intent.MaxCost, because("he waits"))
			require.NoError(t, err)
			h.chains[n].SetFeeLevel(level)
			h.mine(40)
			require.Equal(t, "completed", h.status(h.tenant, id))
			told := h.reasons(id)
			require.Empty(t, told[len(told)-1])
			h.paidOnce(h.tenant, id)
			h.sound()
		})
	}
}

// unending is a chain without a notion of finality: depth alone tells.
func unending(h *host, n chain.Network) *sim.Chain {
	return sim.MustNew(sim.Options{Network: n, Registry: chain.MainnetRegistry(), Seed: 83, Now: h.clock.Now})
}

// TestFN08_CompletedPayoutThatAReorgUndoesIsTold: by the state of the withdrawal, an event
// and an alert, until it lands again; on both families, after one confirmation and after
// it was settled.
func TestFN08_CompletedPayoutThatAReorgUndoesIsTold(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		for _, deep := range []bool{false, true} {
			name := string(n) + "/executed"
			if deep {
				name = string(n) + "/settled"
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				a := &alerts{}
				h := newHost(t, 83, n)
				h.configure = a.listen
				h.chains[n] = unending(h, n)
				h.restart()
				h.earn(string(n), "300")
				h.mine(40)
				id := h.payout(h.tenant, string(n), map[chain.Network]string{"ETH": "0.01", "BTC": "0.001"}[n])
				for h.status(h.tenant, id) != "completed" {
					h.mine(1)
				}
				state := func() outgoing.State {
					v, err := h.app.Operate.Transactions(t.Context(), n, id)
					require.NoError(t, err)
					return v.State
				}
				for deep && state() != outgoing.Final {
					h.mine(1)
				}
				w, err := h.app.Withdrawals.Get(t.Context(), h.tenant, id)
				require.NoError(t, err)
				st, err := h.chains[n].Outcome(w.Tx)
				require.NoError(t, err)
				depth := int(h.chains[n].Height() - st.Block.Height + 1)
				_, err = h.chains[n].ReorgTo(depth, depth+1, w.Tx)
				require.NoError(t, err)
				h.chains[n].Drop(w.Tx)
				before := h.clock.Now()
				h.chains[n].SetFeeLevel(40 * h.chains[n].FeeLevel()) // it is in no block for a while
				for range 5 {
					h.mine(1)
				}
				require.Equal(t, "completed reorged", h.status(h.tenant, id))
				w, err = h.app.Withdrawals.Get(t.Context(), h.tenant, id)
				require.NoError(t, err)
				require.False(t, w.WaitingSince.Before(before))
				require.Equal(t, []string{"reorged"}, h.reasons(id))
				require.Contains(t, a.of(id), withdrawal.NoticeReorged)
				require.Contains(t, h.chains[n].Mempool(), w.Tx, "it is sent again")
				_, err = h.app.Operate.SpeedUp(t.Context(), n, id, 0, because("x"))
				require.NoError(t, err)
				h.mine(2)
				txs, err := h.app.Operate.Transactions(t.Context(), n, id)
				require.NoError(t, err)
				require.Greater(t, len(txs.Attempts), 1, "a dearer one is signed")
				h.chains[n].SetFeeLevel(h.chains[n].FeeLevel() / 40)
				h.mine(40)
				require.Equal(t, "completed", h.status(h.tenant, id))
				require.Equal(t, []string{"reorged", ""}, h.reasons(id))
				h.paidOnce(h.tenant, id)
				require.Equal(t, outgoing.Final, state())
				h.sound()
			})
		}
	}
}
