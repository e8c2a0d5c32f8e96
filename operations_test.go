package cryptopay_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/postgres"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// stick makes the network so dear that what was sent before is in no block, and what
// replaces it within its bound neither.
func (h *host) stick(n chain.Network) (before int64) {
	level := h.chains[n].FeeLevel()
	h.chains[n].SetFeeLevel(40 * level)
	return level
}

// keepsBounds has no order's bound raised by itself.
func keepsBounds(c *cryptopay.Config) {
	c.Outgoing.Raise = func(_ context.Context, in chain.Intent, _ ledger.Amount) (ledger.Amount, error) {
		return in.MaxCost, nil
	}
}

// stuck is a host with a withdrawal that was sent and is in no block. Nobody raises its
// bound but an operator.
func stuck(t testing.TB, store storage.Store, n chain.Network) (h *host, id string, level int64) {
	t.Helper()
	h = newHostOn(t, store, 71, n)
	h.configure = keepsBounds
	h.restart()
	h.earn(string(n), "300")
	h.mine(30)
	id = h.payout(h.tenant, string(n), map[chain.Network]string{"ETH": "0.01", "BTC": "0.001"}[n])
	h.step()
	require.Equal(t, "processing", h.status(h.tenant, id))
	return h, id, h.stick(n)
}

// onStores runs a test on memory and on databases, each store its own. On memory it tries all
// of its cases, and on databases, where one takes a second, the first.
func onStores(t *testing.T, test func(t *testing.T, all bool, open func(*testing.T) storage.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, true, func(*testing.T) storage.Store { return memory.New() })
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, false, func(t *testing.T) storage.Store {
			store, _ := onSQLite(t)
			return store
		})
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		skipServer(t)
		test(t, false, func(t *testing.T) storage.Store {
			store, err := postgres.Open(onPostgres(t), postgres.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = store.Close() })
			return store
		})
	})
}

// released demands that nothing is set aside when nothing is on its way.
func (h *host) released() {
	h.t.Helper()
	rows, err := h.store.Find(h.t.Context(), storage.Query{Table: treasury.Reservations.Table, Partition: storage.Tenant(h.tenant), Limit: 1000})
	require.NoError(h.t, err)
	for _, r := range rows {
		require.False(h.t, treasury.Reservations.Value(r).Open, r.ID)
	}
}

// TestFT06_SpeedUpRaisesTheBound: fees have risen above what a payout may cost. An operator
// raises its bound: it is replaced at once and lands, and the gas that was set aside is
// given back. Wherever a commit of the call fails, too much is set aside and never too
// little, and the call made again does it.
func TestFT06_SpeedUpRaisesTheBound(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, all bool, open func(*testing.T) storage.Store) {
		for _, n := range []chain.Network{"ETH", "BTC"} {
			for failAt := range 4 {
				if failAt > 0 && !all {
					break
				}
				t.Run(string(n)+"/"+string(rune('0'+failAt)), func(t *testing.T) {
					t.Parallel()
					ctx := t.Context()
					f := &failing.Store{Store: open(t)}
					h, id, _ := stuck(t, f, n)
					for range 30 {
						h.clock.Advance(time.Minute)
						h.mine(1)
					}
					require.Contains(t, h.status(h.tenant, id), "processing")
					v, err := h.app.Operate.Transactions(ctx, n, id)
					require.NoError(t, err)
					tries, bound := len(v.Attempts), v.Intent.MaxCost
					require.Positive(t, tries)
					require.Positive(t, v.Attempts[0].MaxCost)

					most := 40 * bound
					f.Counts, f.Calls, f.FailAt = func(c failing.Call) bool { return c.Changes != nil }, 0, failAt
					_, err = h.app.Operate.SpeedUp(ctx, n, id, most, because("he waits for it"))
					f.FailAt = 0
					row, _, _, e := outgoing.Intents.One(ctx, h.store, storage.Network(string(n)), id)
					require.NoError(t, e)
					r, _, _, e := treasury.Reservations.One(ctx, h.store, storage.Tenant(h.tenant), id)
					require.NoError(t, e)
					require.GreaterOrEqual(t, r.Amount, row.MaxCost)
					h.sound()
					if err != nil {
						require.ErrorIs(t, err, failing.ErrGone)
						_, err = h.app.Operate.SpeedUp(ctx, n, id, most, because("he waits for it"))
					}
					require.NoError(t, err)
					h.step()
					v, err = h.app.Operate.Transactions(ctx, n, id)
					require.NoError(t, err)
					require.Equal(t, most, v.Intent.MaxCost)
					require.Len(t, v.Attempts, tries+1, "replaced at once")
					h.mine(60)
					h.paidOnce(h.tenant, id)
					v, err = h.app.Operate.Transactions(ctx, n, id)
					require.NoError(t, err)
					require.Positive(t, v.Cost)
					require.NotEmpty(t, v.CostTx)
					ops, err := h.app.Operate.List(ctx, n, 10, 0)
					require.NoError(t, err)
					require.Len(t, ops, 1, "one call, one record")
					require.Equal(t, []string{"speed_up", "ann", "he waits for it", h.tenant, id}, []string{string(ops[0].Kind), ops[0].By, ops[0].Reason, ops[0].Tenant, ops[0].Object})
					require.NotEqual(t, ops[0].Before, ops[0].After)
					h.released()
					h.sound()
					_, err = h.app.Operate.SpeedUp(ctx, n, id, 0, because("once more"))
					require.ErrorIs(t, err, outgoing.ErrHelp)
				})
			}
		}
	})
}

// TestFT06_SpeedUpNeedsTheOperatorsCoins: a bound that the operator's coins do not bear is
// refused, and nothing is changed or recorded; a dry run says what would be.
func TestFT06_SpeedUpNeedsTheOperatorsCoins(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, _ bool, open func(*testing.T) storage.Store) {
		ctx := t.Context()
		h, id, _ := stuck(t, open(t), "ETH")
		v, err := h.app.Operate.Transactions(ctx, "ETH", id)
		require.NoError(t, err)
		var wait *treasury.WaitError
		_, err = h.app.Operate.SpeedUp(ctx, "ETH", id, ledger.MaxAmount/4, because("x"))
		require.ErrorAs(t, err, &wait)
		dry := because("x")
		dry.DryRun = true
		e, err := h.app.Operate.SpeedUp(ctx, "ETH", id, 2*v.Intent.MaxCost, dry)
		require.NoError(t, err)
		require.Equal(t, []ledger.Amount{v.Intent.MaxCost, 2 * v.Intent.MaxCost}, []ledger.Amount{e.Before.MaxCost, e.After.MaxCost})
		again, err := h.app.Operate.Transactions(ctx, "ETH", id)
		require.NoError(t, err)
		require.Equal(t, v, again)
		_, err = h.app.Operate.SpeedUp(ctx, "ETH", "none", 0, because("x"))
		require.ErrorIs(t, err, outgoing.ErrNoIntent)
		ops, err := h.app.Operate.List(ctx, "", 10, 0)
		require.NoError(t, err)
		require.Empty(t, ops)
	})
}

// TestFT06_CancelledPayoutPaysNobody: its nonce or coins go back to ourselves, at a higher
// fee; the withdrawal fails and its hold is released. Also while its tenant is halted.
func TestFT06_CancelledPayoutPaysNobody(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, all bool, open func(*testing.T) storage.Store) {
		for _, n := range []chain.Network{"ETH", "BTC"} {
			for _, halt := range []bool{false, true} {
				if halt && !all {
					break
				}
				t.Run(string(n), func(t *testing.T) {
					t.Parallel()
					ctx := t.Context()
					h, id, level := stuck(t, open(t), n)
					h.mine(3)
					if halt {
						_, err := h.app.Operate.Halt(ctx, cryptopay.HaltScope{Tenant: h.tenant}, because("a look"))
						require.NoError(t, err)
					}
					e, err := h.app.Operate.CancelTransaction(ctx, n, id, because("to the wrong shop"))
					require.NoError(t, err)
					require.False(t, e.Before.Cancelling)
					require.True(t, e.After.Cancelling)
					_, err = h.app.Operate.CancelTransaction(ctx, n, id, because("again"))
					require.ErrorIs(t, err, outgoing.ErrHelp)
					h.chains[n].SetFeeLevel(level)
					h.step()
					v, err := h.app.Operate.Transactions(ctx, n, id)
					require.NoError(t, err)
					require.True(t, v.Cancelling)
					at := slices.IndexFunc(v.Attempts, func(a outgoing.AttemptView) bool { return a.Purpose == chain.ForCancel })
					require.Positive(t, at, "a transaction to ourselves")
					h.mine(60)
					w, err := h.app.Withdrawals.Get(ctx, h.tenant, id)
					require.NoError(t, err)
					require.Equal(t, []any{withdrawal.Failed, withdrawal.ReasonCancelled}, []any{w.Status, w.Reason})
					figures, err := h.app.Figures(ctx)
					require.NoError(t, err)
					require.Zero(t, figures.Alerts[withdrawal.NoticeFailed], "who cancelled it knows")
					supplier := h.chains[n].Customer("supplier")
					require.True(t, h.chains[n].Balance(supplier, string(n)).IsZero())
					h.released()
					h.sound()
					if halt {
						_, err = h.app.Operate.Lift(ctx, cryptopay.HaltScope{Tenant: h.tenant}, because("done"))
						require.NoError(t, err)
					}
					next := h.payout(h.tenant, string(n), map[chain.Network]string{"ETH": "0.01", "BTC": "0.001"}[n])
					h.mine(60)
					h.paidOnce(h.tenant, next)
					h.sound()
				})
			}
		}
	})
}

// TestFT06_CancelledBeforeItIsSigned: a payout that waits is cancelled at once; one whose
// plan a signer may have seen gives its nonce back first.
func TestFT06_CancelledBeforeItIsSigned(t *testing.T) {
	t.Parallel()
	onStores(t, func(t *testing.T, _ bool, open func(*testing.T) storage.Store) {
		ctx := t.Context()
		h := newHostOn(t, open(t), 72, "ETH")
		h.earn("ETH", "300")
		_, err := h.app.Operate.Halt(ctx, cryptopay.HaltScope{Currency: usdt}, because("x"))
		require.NoError(t, err)
		h.configure = func(c *cryptopay.Config) { c.Signer = nil }
		h.restart()
		id := h.payout(h.tenant, "ETH", "0.01")
		h.step()
		e, err := h.app.Operate.CancelTransaction(ctx, "ETH", id, because("a mistake"))
		require.NoError(t, err)
		require.Equal(t, []outgoing.State{outgoing.Queued, outgoing.Cancelled}, []outgoing.State{e.Before.State, e.After.State})
		h.configure = nil
		h.restart()
		h.mine(30)
		require.Equal(t, "cancelled", h.status(h.tenant, id))
		h.released()
		h.sound()
	})
}

// TestFT06_NoncesBeyondOursAreListedAndAdopted: after a restore from an older backup the
// chain knows transactions that the store does not. They are listed, and adopting them lets
// the address send again.
func TestFT06_NoncesBeyondOursAreListedAndAdopted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHost(t, 73, "ETH")
	h.earn("ETH", "300")
	first := h.payout(h.tenant, "ETH", "0.01")
	h.mine(40)
	hot, err := h.app.Hot(ctx, "ETH", h.tenant)
	require.NoError(t, err)
	part := storage.Network("ETH")
	row, stored, _, err := outgoing.Nonces.One(ctx, h.store, part, string(hot))
	require.NoError(t, err)
	require.EqualValues(t, 1, row.Next)
	row.Next = 0
	require.NoError(t, storage.CommitOne(ctx, h.store, storage.Change{
		ID: "restored", Partition: part, Put: []storage.Row{outgoing.Nonces.Row(string(hot), stored.Version, time.Time{}, row)},
	}))
	h.restart()
	next := h.payout(h.tenant, "ETH", "0.02")
	h.mine(10)
	require.Equal(t, "pending halted", h.status(h.tenant, next))
	beyond, err := h.app.Operate.NoncesBeyond(ctx, "ETH")
	require.NoError(t, err)
	require.Equal(t, []outgoing.Nonce{{Address: hot, Ours: 0, Chain: 1}}, beyond)
	_, err = h.app.Operate.AdoptNonces(ctx, "ETH", []chain.Address{"0x1"}, because("x"))
	require.ErrorIs(t, err, outgoing.ErrHelp)
	dry := because("x")
	dry.DryRun = true
	_, err = h.app.Operate.AdoptNonces(ctx, "ETH", nil, dry)
	require.NoError(t, err)
	done, err := h.app.Operate.AdoptNonces(ctx, "ETH", nil, because("all are accounted for"))
	require.NoError(t, err)
	require.Len(t, done, 1)
	recorded := done[0].Operation
	done[0].Operation = ""
	require.Equal(t, beyond, done)
	h.mine(60)
	h.paidOnce(h.tenant, first, next)
	ops, err := h.app.Operate.List(ctx, "ETH", 10, 0)
	require.NoError(t, err)
	require.Len(t, ops, 1)
	require.Equal(t, []string{"adopt_nonce", string(hot), "0", "1", recorded}, []string{string(ops[0].Kind), ops[0].Object, ops[0].Before, ops[0].After, ops[0].ID})
	h.sound()
}

// TestFT06_NonceIsFilledByHand: a nonce that nothing of ours has is filled, and what waits
// behind it lands. One that is used, or that nothing waits behind, is refused.
func TestFT06_NonceIsFilledByHand(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHost(t, 74, "ETH")
	h.earn("ETH", "300")
	hot, err := h.app.Hot(ctx, "ETH", h.tenant)
	require.NoError(t, err)
	h.chains["ETH"].Front().LieNonce(1)
	id := h.payout(h.tenant, "ETH", "0.01")
	h.step()
	h.chains["ETH"].Front().LieNonce(0)
	h.mine(5)
	require.Equal(t, "processing", h.status(h.tenant, id), "it has nonce 1, and nothing has 0")
	for _, wrong := range []int64{-1, 1, 2} {
		_, err = h.app.Operate.FillNonce(ctx, "ETH", hot, wrong, 0, because("x"))
		require.ErrorIs(t, err, outgoing.ErrHelp, wrong)
	}
	op, err := h.app.Operate.FillNonce(ctx, "ETH", hot, 0, 0, because("the node was wrong"))
	require.NoError(t, err)
	require.NotEmpty(t, op)
	h.mine(40)
	h.paidOnce(h.tenant, id)
	h.sound()
}

// TestFT06_SweepIsRetriedByHand: a sweep that waits goes on at once.
func TestFT06_SweepIsRetriedByHand(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := newHost(t, 75, "ETH")
	h.earn("ETH", "300")
	h.mine(30)
	before := h.signed()[chain.ForSweep]
	_, err := h.app.Operate.Halt(ctx, cryptopay.HaltScope{Network: "ETH"}, because("x"))
	require.NoError(t, err)
	p := h.create("100", "ETH")
	h.pay(p, "ETH", dec("0.05"))
	h.mine(60)
	waiting, err := h.app.Treasury.Waiting(ctx, h.tenant, "ETH", 10, 0)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	require.Equal(t, treasury.WaitHalted, waiting[0].Reason)
	_, err = h.app.Operate.Lift(ctx, cryptopay.HaltScope{Network: "ETH"}, because("x"))
	require.NoError(t, err)
	_, _, err = h.app.Operate.RetrySweep(ctx, "ETH", "none", because("x"))
	require.ErrorIs(t, err, treasury.ErrNoSweep)
	op, waited, err := h.app.Operate.RetrySweep(ctx, "ETH", waiting[0].Sweep, because("go on"))
	require.NoError(t, err)
	require.NotEmpty(t, op)
	require.Contains(t, waited, "halted")
	h.step()
	require.Equal(t, before+1, h.signed()[chain.ForSweep])
	_, _, err = h.app.Operate.RetrySweep(ctx, "ETH", waiting[0].Sweep, because("go on"))
	require.ErrorIs(t, err, treasury.ErrNotWaiting)
	h.mine(40)
	h.sound()
}
