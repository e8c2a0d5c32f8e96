package outgoing_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/storage"
)

// fillers counts the intents that only fill a nonce.
func (w *world) fillers() (n int) {
	for _, r := range w.rows(outgoing.Intents.Table) {
		if strings.HasPrefix(r.ID, "fill/") {
			n++
		}
	}
	return n
}

func TestW05_NoncesThatANodeMadeUpAreFilled(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	w.chain.Front().LieNonce(2)
	a, b := w.submit(w.intent("a", coin)), w.submit(w.intent("b", coin))
	require.NoError(t, w.step())
	w.run(3)
	w.chain.Front().LieNonce(0)
	w.run(5)
	w.unpaid(a) // it has nonce 2, and nothing has 0 and 1
	for i := 0; i < 40 && w.fillers() == 0; i++ {
		w.run(1)
	}
	var bound []string
	for _, r := range w.rows(outgoing.InputReservations.Table) {
		bound = append(bound, r.ID)
	}
	require.Subset(t, bound, []string{outgoing.Slot(w.hot.Address, 0), outgoing.Slot(w.hot.Address, 1)})
	w.run(40)
	w.paid(a)
	w.paid(b)
	require.Equal(t, 2, w.fillers())
	for _, id := range []string{"a", "b"} {
		require.Equal(t, outgoing.Final, w.state(id))
		require.Len(t, w.attempts(id), 1, "what waits for a nonce is not made dearer")
	}
	w.sound()
}

func TestW05_FillersSurviveASignerAndAnotherProcess(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	w.chain.Front().LieNonce(3)
	a := w.submit(w.intent("a", coin))
	require.NoError(t, w.step())
	w.chain.Front().LieNonce(0)
	w.run(8)
	w.signer.fail = []error{errAway, chain.ErrRefused, errAway}
	w.run(10)
	w.restart()
	w.run(40)
	w.paid(a)
	require.Equal(t, 3, w.fillers())
	w.sound()
}

func (w *world) sweep(id string, d chain.Derived) chain.Intent {
	in := w.intent(id, 0)
	in.Purpose, in.From, in.FromKey, in.To, in.All = chain.ForSweep, d.Address, d.Key, w.to(id), true
	return in
}

func TestW05_DepositAddressWaitsWhereItsFirstNonceIsDoubtful(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	d := w.key()
	w.fund(d, "ETH", coin)
	w.chain.Front().LieNonce(2)
	w.submit(w.sweep("s", d))
	w.run(5)
	require.Empty(t, w.attempts("s"))
	require.Equal(t, outgoing.ReasonNode, w.last("s").Reason)
	w.chain.Front().LieNonce(0)
	w.run(20)
	require.Equal(t, outgoing.Final, w.state("s"))
	require.Zero(t, w.fillers())
	require.Len(t, w.chain.Transfers(w.to("s")), 1)
	w.sound()
}

func TestW05_DepositAddressWithAHistoryIsUsedAfterAWhile(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	d := w.key()
	w.fund(d, "ETH", 2*coin)
	// Its history was made past this store.
	own := w.store
	w.store = newWorld(t, setup{}).store
	w.restart()
	old := w.intent("old", coin/10)
	old.From, old.FromKey = d.Address, d.Key
	w.submit(old)
	w.run(12)
	w.paid(old)
	w.alien[w.last("old").Tx] = true
	w.store = own
	w.restart()
	w.submit(w.sweep("s", d))
	w.run(5)
	require.Empty(t, w.attempts("s"))
	w.run(40)
	require.Equal(t, outgoing.Final, w.state("s"))
	w.sound()
}

// evict takes a transaction out of its block by a reorg just deep enough, and
// out of every mempool.
func (w *world) evict(tx string) {
	w.t.Helper()
	st, err := w.chain.Outcome(tx)
	require.NoError(w.t, err)
	_, err = w.chain.Reorg(int(w.chain.Height()-st.Block.Height+1), tx)
	require.NoError(w.t, err)
	w.chain.Drop(tx)
}

func TestR05_SettledTransactionThatADeepReorgTookIsSentAgain(t *testing.T) {
	t.Parallel()
	for _, all := range []bool{false, true} {
		w := funded(t, setup{noFinality: true})
		a := w.submit(w.intent("a", coin))
		w.run(10)
		require.Equal(t, outgoing.Final, w.state("a"))
		w.run(20)
		w.evict(w.last("a").Tx)
		w.unpaid(a)
		b := w.intent("b", coin)
		if b.All = all; all {
			b.Amount = 0
		}
		w.submit(b)
		w.run(60)
		w.paid(a)
		require.Len(t, w.chain.Transfers(b.To), 1)
		require.Equal(t, outgoing.Final, w.state("b"))
		require.Len(t, w.attempts("a"), 1)
		w.sound()
	}
}

// What a deep reorg took is halted, and a later order waits for its nonce: nothing is sent
// until the halt ends.
func TestR05_TransactionThatADeepReorgTookIsNotSentAgainInAHalt(t *testing.T) {
	t.Parallel()
	halted := ""
	w := funded(t, setup{noFinality: true, change: func(c *outgoing.Config) {
		c.Halted = func(_ context.Context, in chain.Intent) (string, error) {
			if in.ID == "a" {
				return halted, nil
			}
			return "", nil
		}
	}})
	a := w.submit(w.intent("a", coin))
	w.run(30)
	require.Equal(t, outgoing.Final, w.state("a"))
	w.evict(w.last("a").Tx)
	b := w.submit(w.intent("b", coin))
	halted = "a person looks at it"
	w.run(60)
	w.unpaid(a)
	w.unpaid(b)
	halted = ""
	w.run(60)
	w.paid(a)
	w.paid(b)
	w.sound()
}

// sweptAway is a world in which a deep reorg took the settled sweep of an address's coins, and
// a later order of the address, in another currency, waits for its nonce.
func sweptAway(t *testing.T, s setup) (w *world, sweep, behind chain.Intent) {
	t.Helper()
	s.noFinality = true
	w = funded(t, s)
	d := w.key()
	w.fund(d, "ETH", coin)
	w.fund(d, "USDT", 5_000_000)
	sweep = w.sweep("sweep", d)
	sweep.Currency = "USDT"
	w.submit(sweep)
	w.run(30)
	require.Equal(t, outgoing.Final, w.state("sweep"))
	w.evict(w.last("sweep").Tx)
	behind = w.intent("behind", coin/10)
	behind.From, behind.FromKey = d.Address, d.Key
	w.submit(behind)
	return w, sweep, behind
}

// A currency is halted. The settled sweep of it that a deep reorg took moves nothing until
// the halt ends, whatever waits for its nonce.
func TestR05_SweepThatADeepReorgTookIsNotSentAgainInAHalt(t *testing.T) {
	t.Parallel()
	w, sweep, behind := sweptAway(t, setup{})
	halt := outgoing.Scope{Currency: "USDT"}
	w.halt(halt)
	w.run(60)
	w.unpaid(sweep)
	w.unpaid(behind)
	w.lift(halt)
	w.run(60)
	require.Len(t, w.chain.Transfers(sweep.To), 1)
	w.paid(behind)
	w.sound()
}

// The halt of the whole network comes when the process has just asked whether the sweep may
// be sent again: it is not.
func TestR05_HaltBetweenTheQuestionAndASweepSentAgain(t *testing.T) {
	t.Parallel()
	var w *world // nil until the sweep is gone
	var sweep, behind chain.Intent
	asked := false
	w, sweep, behind = sweptAway(t, setup{change: func(c *outgoing.Config) {
		c.Halted = func(_ context.Context, in chain.Intent) (string, error) {
			if in.ID == "sweep" && w != nil && !asked {
				asked = true
				w.halt(outgoing.Scope{})
			}
			return "", nil
		}
	}})
	w.run(60)
	require.True(t, asked)
	w.unpaid(sweep)
	w.unpaid(behind)
	w.lift(outgoing.Scope{})
	w.run(60)
	require.Len(t, w.chain.Transfers(sweep.To), 1)
	w.paid(behind)
	w.sound()
}

func TestR05_RevertedTransactionThatADeepReorgTookIsNotSentAgain(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{noFinality: true})
	w.chain.SetBehaviour("0xusdt", sim.Behaviour{Paused: true})
	a := w.intent("a", 2_000_000)
	a.Currency = "USDT"
	w.submit(a)
	w.run(12)
	require.Equal(t, outgoing.Failed, w.state("a"))
	w.run(20)
	w.evict(w.last("a").CostTx)
	w.chain.SetBehaviour("0xusdt", sim.Behaviour{})
	b := w.submit(w.intent("b", coin))
	w.run(60)
	w.unpaid(a) // its owner has the amount back
	w.unpaid(b) // a person has to look
	require.Zero(t, w.fillers())
	require.Empty(t, w.signer.breach)
}

// raced lets something happen once, when rows of a table are looked for.
type raced struct {
	storage.Store
	table *storage.Table
	then  *func()
}

func (s raced) Find(ctx context.Context, q storage.Query) ([]storage.Row, error) {
	if f := *s.then; f != nil && q.Table == s.table {
		*s.then = nil
		f()
	}
	return s.Store.Find(ctx, q)
}

func TestC01_ClaimLostToWhoEndedTheIntentIsNoError(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	in := w.submit(w.intent("a", coin))
	w.run(3)
	require.Equal(t, outgoing.Executed, w.state("a"))
	w.chain.Mine(12)
	other := w.process()
	var then func()
	w.store = raced{w.store, outgoing.Attempts.Table, &then}
	w.restart()
	w.advance(time.Minute)
	then = func() {
		w.advance(time.Hour)
		_, err := other.Step(w.ctx)
		require.NoError(t, err)
	}
	_, err := w.Net.Step(w.ctx)
	require.NoError(t, err)
	require.Nil(t, then)
	w.run(1)
	require.Equal(t, outgoing.Final, w.state("a"))
	w.paid(in)
	w.sound()
}

// slowSigner answers its first call when then has come to its end.
type slowSigner struct {
	chain.Signer
	then *func()
}

func (s slowSigner) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	sigs, err := s.Signer.Sign(ctx, r)
	if f := *s.then; f != nil {
		*s.then = nil
		f()
	}
	return sigs, err
}

// A process is paused between the signature and the store, for longer than its lease. Another
// one goes on with the plan, and with the next intents of the address, whose nonce row
// then stands elsewhere: the first one has lost its claim, which is no error.
func TestC01_NonceThatAnotherProcessUsedMeanwhileIsNoError(t *testing.T) {
	t.Parallel()
	for _, more := range []int{0, 2} {
		var then func()
		w := funded(t, setup{change: func(c *outgoing.Config) { c.Signer = slowSigner{c.Signer, &then} }})
		in := []chain.Intent{w.submit(w.intent("a", coin))}
		other := w.process()
		then = func() {
			for i := range more {
				in = append(in, w.submit(w.intent(fmt.Sprint("b", i), coin)))
			}
			w.advance(time.Hour)
			_, err := other.Step(w.ctx)
			require.NoError(t, err)
		}
		_, err := w.Net.Step(w.ctx)
		require.NoError(t, err)
		require.Nil(t, then)
		w.run(16)
		for _, x := range in {
			w.paid(x)
			require.Equal(t, outgoing.Final, w.state(x.ID))
		}
		w.sound()
	}
}

func TestR05_NonceOfAnIntentThatWasSentAnewIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{noFinality: true})
	a := w.intent("a", 2_000_000)
	a.Currency = "USDT"
	w.submit(a)
	w.run(3)
	require.Equal(t, outgoing.Executed, w.state("a"))
	first := w.last("a").Tx
	_, err := w.chain.Reorg(3)
	require.NoError(t, err)
	w.chain.SetBehaviour("0xusdt", sim.Behaviour{Paused: true})
	w.run(8)
	w.chain.SetBehaviour("0xusdt", sim.Behaviour{})
	w.run(30)
	w.paid(a)
	require.Greater(t, len(w.attempts("a")), 1)
	w.evict(first)
	w.submit(w.intent("b", coin))
	w.run(60)
	require.LessOrEqual(t, len(w.chain.Transfers(a.To)), 1)
	require.Zero(t, w.fillers())
	require.Empty(t, w.signer.breach)
}
