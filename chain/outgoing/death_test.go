package outgoing_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

func TestW10_FailsOnlyWhenEveryAttemptIsDeadForGood(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.stickAll()
		w.run(25)
		atts := w.attempts("a")
		require.Greater(t, len(atts), 1)
		by := w.foreign("a")
		w.chain.MineOnly(by)
		w.chain.Front().Forget(atts[0].Tx) // nobody can say what became of the first
		w.run(12)
		require.Equal(t, outgoing.Signed, w.state("a"), "one attempt is not proven dead")
		w.chain.Front().Honest()
		w.run(2)
		require.Equal(t, outgoing.Failed, w.state("a"))
		require.Empty(t, w.last("a").CostTx)
		for range 5 {
			w.chain.ReviveAll()
			w.run(1)
		}
		w.unpaid(in)
		require.Empty(t, w.rows(outgoing.InputReservations.Table))
	})
}

func TestW10_ConflictThatIsNotFinalWaits(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		by := w.foreign("a")
		w.chain.MineOnly(by)
		w.run(3)
		require.Equal(t, outgoing.Signed, w.state("a"))
		_, err := w.chain.Reorg(4, by)
		require.NoError(t, err)
		w.run(14)
		w.paid(in)
		w.sound()
	})
}

func TestW10_FinalRevertFailsWithItsCost(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	token := w.intent("token", 2_000_000)
	token.Currency = "USDT"
	w.submit(token)
	require.NoError(t, w.step())
	w.chain.SetBehaviour("0xusdt", sim.Behaviour{Paused: true})
	w.run(3)
	require.Equal(t, outgoing.Signed, w.state("token"), "a revert that is not final is no end")
	w.run(10)
	o := w.last("token")
	require.Equal(t, outgoing.Failed, o.State)
	require.Positive(t, o.Cost)
	require.Equal(t, w.attempts("token")[0].Tx, o.CostTx)
	require.Zero(t, o.Amount)
	w.unpaid(token)
	w.sound()
}

func TestR05_UnminedIsSentAgainAndNotGivenBack(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		w.run(3)
		require.Equal(t, outgoing.Executed, w.state("a"))
		tx := w.last("a").Tx
		_, err := w.chain.Reorg(3, tx)
		require.NoError(t, err)
		w.advance(poll)
		require.NoError(t, w.step())
		require.Equal(t, outgoing.Signed, w.last("a").State)
		require.Contains(t, w.chain.Mempool(), tx, "the same bytes are there again")
		w.run(14)
		w.paid(in)
		require.Equal(t, tx, w.last("a").CostTx)
		require.Equal(t, 1, w.signer.calls)
		w.sound()
	})
}

func TestR05_DeadAfterExecutedIsSentAnewAndNeverFailed(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		w.run(3)
		require.Equal(t, outgoing.Executed, w.state("a"))
		_, err := w.chain.Reorg(3, w.last("a").Tx)
		require.NoError(t, err)
		by := w.foreign("a")
		w.chain.MineOnly(by)
		w.run(30)
		require.NotContains(t, w.states("a"), outgoing.Failed)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.paid(in)
		require.Len(t, w.attempts("a"), 2)
		ok, err := w.Net.Cancel(w.ctx, "a")
		require.NoError(t, err)
		require.False(t, ok)
		w.sound()
	})
}

// numberless is a node that stops telling the nonces of addresses.
type numberless struct {
	fullClient
	err error
}

func (n *numberless) Nonce(ctx context.Context, a chain.Address) (uint64, error) {
	if n.err != nil {
		return 0, n.err
	}
	return n.fullClient.Nonce(ctx, a)
}

// TestW05_NonceIsAskedOncePerProcess: a process that has checked an address against the chain
// sends from it by its own books alone. Another process checks it again.
func TestW05_NonceIsAskedOncePerProcess(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	node := &numberless{fullClient: w.client.fullClient}
	w.client.fullClient = node
	first := w.submit(w.intent("a", coin))
	w.run(12)
	w.paid(first)
	node.err = chain.ErrNode
	second := w.submit(w.intent("b", coin))
	w.run(12)
	w.paid(second)
	w.restart()
	third := w.submit(w.intent("c", coin))
	w.run(6)
	w.unpaid(third)
	node.err = nil
	w.run(20)
	w.paid(third)
	w.sound()
}

func TestL14_UnknownTransactionsOfOurKeyStopTheAddress(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	before := memory.New()
	require.NoError(t, before.Open(w.ctx, tables()...))
	paid := w.submit(w.intent("a", coin))
	w.run(12)
	w.paid(paid)
	// The store is an older one: "a" is there, its transaction is not.
	w.store = before
	require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "old", Partition: storage.Network("ETH"),
		Put: []storage.Row{outgoing.Nonces.Row(string(w.hot.Address), 0, time.Time{}, outgoing.NonceRow{})},
	}))
	w.restart()
	w.submit(w.intent("a", coin))
	w.run(10)
	require.Equal(t, outgoing.ReasonHalted, w.last("a").Reason)
	w.paid(paid)
	// A person found "a" on the chain, and goes on.
	ok, err := w.Net.Cancel(w.ctx, "a")
	require.NoError(t, err)
	require.True(t, ok)
	by := &outgoing.Recorded{ID: "adopted", Op: outgoing.Operation{At: w.Net.Now(), Kind: outgoing.OpAdoptNonce, Object: string(w.hot.Address)}}
	for _, want := range []bool{true, false} { // the second time it is there already
		made, err := w.Net.AdoptNonce(w.ctx, w.hot.Address, 1, by)
		require.NoError(t, err)
		require.Equal(t, want, made)
	}
	_, err = w.Net.AdoptNonce(w.ctx, w.hot.Address, 0, by)
	require.Error(t, err)
	b := w.submit(w.intent("b", coin))
	w.run(12)
	w.paid(b)
}

// TestL14_AddressesBeyondTheStore: an address is listed where the chain knows more of it than
// the store, also where the store knows only that something is to be sent from it.
func TestL14_AddressesBeyondTheStore(t *testing.T) {
	t.Parallel()
	for _, known := range []bool{false, true} {
		w := funded(t, setup{})
		w.submit(w.intent("a", coin))
		w.run(12)
		beyond, err := w.Net.Beyond(w.ctx)
		require.NoError(t, err)
		require.Empty(t, beyond)
		w.store = memory.New()
		require.NoError(t, w.store.Open(w.ctx, tables()...))
		if known {
			require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
				ID: "old", Partition: storage.Network("ETH"),
				Put: []storage.Row{outgoing.Nonces.Row(string(w.hot.Address), 0, time.Time{}, outgoing.NonceRow{})},
			}))
		}
		w.restart()
		if !known {
			w.submit(w.intent("b", coin))
		}
		fresh := w.intent("c", coin)
		fresh.From = w.key().Address
		w.submit(fresh)
		beyond, err = w.Net.Beyond(w.ctx)
		require.NoError(t, err)
		require.Equal(t, []outgoing.Nonce{{Address: w.hot.Address, Chain: 1}}, beyond)
	}
}

// Offline refuses what was not taken over before, for good: no process that has a client
// submits it later.
func TestOfflineRefusesForGood(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	had := w.submit(w.intent("had", coin))
	off := outgoing.Offline{Store: w.store, Network: "ETH", Now: w.clock}
	require.NoError(t, off.Submit(w.ctx, had))
	in := w.intent("a", coin)
	require.ErrorIs(t, off.Submit(w.ctx, in), outgoing.ErrIntent)
	require.ErrorIs(t, w.Net.Submit(w.ctx, in), outgoing.ErrIntent)
	require.ErrorIs(t, off.Submit(w.ctx, in), outgoing.ErrIntent)
	w.run(12)
	w.paid(had)
	w.unpaid(in)
}

// A stored plan is one of its order, or says what it is.
func TestMisplanned(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.submit(w.intent("a", coin))
		row := func() outgoing.IntentRow {
			v, _, _, err := outgoing.Intents.One(w.ctx, w.store, storage.Network(w.gas), "a")
			require.NoError(t, err)
			return v
		}
		none := row()
		require.Empty(t, none.Misplanned("a"))
		w.signer.fail = []error{errAway}
		_ = w.step()
		require.True(t, w.get("a").Signing)
		own := row()
		require.Empty(t, own.Misplanned("a"))
		require.NotEmpty(t, own.Misplanned("b"))
		for _, edit := range []func(*outgoing.IntentRow){
			func(r *outgoing.IntentRow) { r.Amount++ }, func(r *outgoing.IntentRow) { r.To += "x" },
			func(r *outgoing.IntentRow) { r.Tenant = "t2" }, func(r *outgoing.IntentRow) { r.Plan = []byte("{") },
		} {
			edited := own
			edit(&edited)
			require.NotEmpty(t, edited.Misplanned("a"))
		}
		edited := own
		edited.MaxCost, edited.Mandate = edited.MaxCost+1, "another"
		require.Empty(t, edited.Misplanned("a"), "these may change")
	})
}
