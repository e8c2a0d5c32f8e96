package cryptopay_test

import (
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// A payout is called off by a transaction that pays nobody. The App seals which one that is. Where
// an earlier version has signed it, its row is believed until all processes are of this version.
func TestFS02_FU02_WhatCallsAPayoutOffIsSealed(t *testing.T) {
	t.Parallel()
	const ability = "sealed_cancels"
	for _, n := range []chain.Network{"ETH", "BTC"} {
		for name, c := range map[string]struct{ earlier, upgraded, waits bool }{
			"sealed by nobody":                    {waits: true},
			"by an earlier version":               {earlier: true},
			"by an earlier version, then no more": {earlier: true, upgraded: true},
		} {
			t.Run(string(n)+", "+name, func(t *testing.T) {
				t.Parallel()
				ctx, log := t.Context(), &alarms{}
				h, id, level := stuck(t, memory.New(), n)
				_, err := h.app.Operate.CancelTransaction(ctx, n, id, because("to the wrong shop"))
				require.NoError(t, err)
				h.chains[n].SetFeeLevel(level)
				h.step()
				sealed := h.setEndings(n, id, nil)
				require.Len(t, sealed, 1)
				if c.earlier {
					_, row, there, err := cryptopay.Abilities.One(ctx, h.store, storage.System, ability)
					require.NoError(t, err)
					require.True(t, there)
					require.NoError(t, storage.CommitOne(ctx, h.store, storage.Change{ID: "earlier", Partition: storage.System, Drop: []storage.Row{row}}))
				}
				configure := h.configure
				h.configure = func(cfg *cryptopay.Config) {
					if configure != nil {
						configure(cfg)
					}
					cfg.Log = slog.New(slog.NewTextHandler(log, nil))
				}
				h.restart()
				if c.upgraded {
					require.NoError(t, h.app.Upgraded(ctx))
					require.Equal(t, sealed, h.setEndings(n, id, sealed))
				}
				h.mine(60)
				if c.waits {
					require.Equal(t, "processing", h.status(h.tenant, id))
					require.Contains(t, log.heard(), "order_altered")
					h.setEndings(n, id, sealed)
					h.mine(60)
				}
				w, err := h.app.Withdrawals.Get(ctx, h.tenant, id)
				require.NoError(t, err)
				require.Equal(t, []any{withdrawal.Failed, withdrawal.ReasonCancelled}, []any{w.Status, w.Reason})
				require.True(t, h.chains[n].Balance(h.chains[n].Customer("supplier"), string(n)).IsZero())
				h.released()
				h.sound()
			})
		}
	}
}

// setEndings replaces the Endings of an order in the store, and returns those that it had.
func (h *host) setEndings(n chain.Network, id string, texts []string) []string {
	h.t.Helper()
	p := storage.Network(string(n))
	v, row, there, err := outgoing.Intents.One(h.t.Context(), h.store, p, id)
	require.NoError(h.t, err)
	require.True(h.t, there)
	was := v.Endings
	v.Endings = texts
	require.NoError(h.t, storage.CommitOne(h.t.Context(), h.store, storage.Change{
		ID: "edit/" + time.Duration(row.Version).String(), Partition: p, Put: []storage.Row{outgoing.Intents.Row(id, row.Version, row.Due, v)},
	}))
	return was
}

// A payout was called off, and its first transaction lands all the same. Somebody has edited that
// one's row: it is said to be the one that pays nobody.
func TestFS02_SealOfACancelIsOfOneTransaction(t *testing.T) {
	t.Parallel()
	ctx, log, n := t.Context(), &alarms{}, chain.Network("ETH")
	h, id, level := stuck(t, memory.New(), n)
	_, err := h.app.Operate.CancelTransaction(ctx, n, id, because("to the wrong shop"))
	require.NoError(t, err)
	h.chains[n].SetFeeLevel(level)
	h.step()
	v, err := h.app.Operate.Transactions(ctx, n, id)
	require.NoError(t, err)
	pays, back := v.Attempts[0], v.Attempts[len(v.Attempts)-1]
	require.Equal(t, []chain.Purpose{chain.ForWithdrawal, chain.ForCancel}, []chain.Purpose{pays.Purpose, back.Purpose})
	p := storage.Network(string(n))
	edit := func(tx string, change func(*outgoing.AttemptRow)) {
		a, row, _, err := outgoing.Attempts.One(ctx, h.store, p, tx)
		require.NoError(t, err)
		change(&a)
		require.NoError(t, storage.CommitOne(ctx, h.store, storage.Change{
			ID: "edit/" + tx + time.Duration(row.Version).String(), Partition: p, Put: []storage.Row{outgoing.Attempts.Row(tx, row.Version, time.Time{}, a)},
		}))
	}
	edit(pays.Tx, func(a *outgoing.AttemptRow) { a.Purpose, a.Number = chain.ForCancel, back.Number })
	edit(back.Tx, func(a *outgoing.AttemptRow) { a.Number = pays.Number })
	h.configure = func(cfg *cryptopay.Config) { cfg.Log = slog.New(slog.NewTextHandler(log, nil)) }
	h.restart()
	h.chains[n].Drop(back.Tx)
	require.NoError(t, h.chains[n].Resend(pays.Tx))
	h.chains[n].MineOnly(pays.Tx)
	h.mine(60)
	require.False(t, h.chains[n].Balance(h.chains[n].Customer("supplier"), string(n)).IsZero())
	require.Equal(t, "processing", h.status(h.tenant, id))
	require.Contains(t, log.heard(), "order_altered")
}

// TestFN08_APayoutThatIsPaidAfterItWasCancelled: an operator has cancelled a payout, and a deep fork lets its first
// transaction land. The host hears of it once, and App.Verify names it until an operator has looked at it.
func TestFN08_APayoutThatIsPaidAfterItWasCancelled(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			h, id, level := stuck(t, memory.New(), n)
			world := h.chains[n]
			_, err := h.app.Operate.CancelTransaction(ctx, n, id, because("to the wrong shop"))
			require.NoError(t, err)
			before := world.Height()
			world.SetFeeLevel(level)
			h.step()
			v, err := h.app.Operate.Transactions(ctx, n, id)
			require.NoError(t, err)
			pays, back := v.Attempts[0], v.Attempts[len(v.Attempts)-1]
			require.Equal(t, []chain.Purpose{chain.ForWithdrawal, chain.ForCancel}, []chain.Purpose{pays.Purpose, back.Purpose})
			h.mine(60)
			require.Equal(t, "failed", h.status(h.tenant, id))
			h.sound()
			heard := func() float64 {
				t.Helper()
				figures, err := h.app.Figures(ctx)
				require.NoError(t, err)
				return float64(figures.Alerts[withdrawal.NoticeConflict])
			}
			named := func() (out []string) {
				t.Helper()
				reports, err := h.app.Verify(ctx)
				require.NoError(t, err)
				for _, r := range reports {
					for _, c := range r.Contradictions {
						require.Equal(t, id, c.ID, c.Detail)
						require.False(t, r.Sound())
						out = append(out, c.Detail)
					}
				}
				return out
			}
			require.Zero(t, heard())
			require.Empty(t, named())

			_, err = world.Reorg(int(world.Height()-before), back.Tx)
			require.NoError(t, err)
			require.NoError(t, world.Resend(pays.Tx))
			world.MineOnly(pays.Tx)
			h.clock.Advance(time.Minute)
			_ = h.app.Step(ctx) // the network is halted
			_, err = h.app.Operate.ResumeNetwork(ctx, n, before, because("a deep fork"))
			require.NoError(t, err)
			h.mine(40)
			require.False(t, world.Balance(world.Customer("supplier"), string(n)).IsZero())
			require.Equal(t, "failed", h.status(h.tenant, id), "merchants see no reason to wait")
			require.InDelta(t, 1, heard(), 0)
			require.Equal(t, []string{"it is failed, and its transaction " + pays.Tx + " has paid its recipient"}, named())
			w, err := h.app.Withdrawals.Get(ctx, h.tenant, id)
			require.NoError(t, err)
			require.Equal(t, pays.Tx, w.Tx)

			w, err = h.app.Withdrawals.TakeDelivered(ctx, h.tenant, id, "ann", "the shop owes it")
			require.NoError(t, err)
			require.Equal(t, []any{withdrawal.Failed, "", "the shop owes it"}, []any{w.Status, w.Waiting, w.Reason})
			require.Empty(t, named(), "an operator has looked at it")
			again, err := h.app.Withdrawals.TakeDelivered(ctx, h.tenant, id, "bob", "twice")
			require.NoError(t, err)
			require.Equal(t, w, again)
			h.mine(5)
			require.InDelta(t, 1, heard(), 0)
			h.released()
		})
	}
}
