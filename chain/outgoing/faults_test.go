package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

func (w *world) attempts(id string) []outgoing.AttemptView { return w.get(id).Attempts }

// stick makes the network's price rise so that nothing sent before is mined.
func (w *world) stick() {
	if w.gas == "BTC" {
		w.chain.SetFeeLevel(500)
	} else {
		w.chain.SetFeeLevel(100_000_000_000)
	}
}

// stickAll is stick where the node's estimate does not follow, so that no
// replacement is mined either.
func (w *world) stickAll() {
	fee, err := w.client.fullClient.EstimateFee(w.ctx, w.intent("any", coin))
	require.NoError(w.t, err)
	w.client.fee = func(chain.Fee) chain.Fee { return fee }
	w.stick()
}

// foreign spends what the newest attempt of an intent spends, with our key and
// past this store, and returns the hash.
func (w *world) foreign(id string) string {
	w.t.Helper()
	w.chain.SetFeeLevel(0)
	atts := w.attempts(id)
	row, _, _, err := outgoing.Attempts.One(w.ctx, w.store, storage.Network(w.gas), atts[len(atts)-1].Tx)
	require.NoError(w.t, err)
	for _, a := range atts {
		w.chain.Drop(a.Tx)
	}
	in := w.get(id).Intent
	in.ID, in.To, in.Amount = "foreign/"+id, w.to("thief"), coin/10
	fee, err := w.client.fullClient.EstimateFee(w.ctx, in)
	require.NoError(w.t, err)
	u, err := w.client.Build(w.ctx, chain.Order{
		Intent: in, Fee: fee, Nonce: uint64(max(row.Nonce, 0)), Coins: row.Coins, Change: row.ChangeTo.Address, Attempt: 1,
	})
	require.NoError(w.t, err)
	var sigs []chain.Signature
	for i, d := range u.Digests {
		key := in.FromKey
		if len(row.Coins) > 0 {
			key = row.Coins[i].Key
		}
		c := ecdsa.SignCompact(w.signer.keys[key], d.Hash[:], true)
		sigs = append(sigs, append(append(chain.Signature{}, c[1:]...), c[0]-31))
	}
	s, err := w.client.Assemble(u, sigs)
	require.NoError(w.t, err)
	require.NoError(w.t, w.client.fullClient.Broadcast(w.ctx, proof.NewStored(w.gas, s.Tx, s.Raw)))
	w.alien[s.Tx] = true
	return s.Tx
}

func TestW01_LostBroadcastAnswerSendsTheSameBytes(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.chain.Front().LoseAnswers(3)
		in := w.submit(w.intent("a", coin))
		w.run(12)
		w.paid(in)
		require.Len(t, w.attempts("a"), 1)
		require.Len(t, w.client.sent, 1)
		require.Equal(t, 1, w.signer.calls)
		w.sound()
	})
}

func TestW01_SwallowedBroadcastIsSentAgain(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.chain.Front().Swallow(2)
		in := w.submit(w.intent("a", coin))
		w.run(12)
		w.paid(in)
		require.Len(t, w.client.sent, 1)
		w.sound()
	})
}

// crashAnywhere runs a scenario once for each place where the process can die.
func crashAnywhere(t *testing.T, family chain.Family, scenario func(w *world, run func(int)), check func(w *world)) {
	for at := 1; ; at++ {
		w := funded(t, setup{family: family})
		w.points.dieAt = at
		scenario(w, func(rounds int) {
			for range rounds {
				w.die(func() { w.run(1) })
			}
		})
		require.True(t, w.died || at > 30, "the scenario has failpoints")
		check(w)
		if !w.died {
			t.Logf("%d failpoints", at-1)
		}
		if t.Failed() || !w.died {
			return
		}
	}
}

func TestW02_CrashAnywherePaysOnce(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			var in [2]chain.Intent
			crashAnywhere(t, family, func(w *world, run func(int)) {
				for i, id := range []string{"a", "b"} {
					again := true
					for again { // the host submits again what it is not sure of
						again = w.die(func() { in[i] = w.submit(w.intent(id, ledger.Amount(i+1)*coin)) })
					}
				}
				run(16)
			}, func(w *world) {
				for _, x := range in {
					w.paid(x)
					require.Equal(w.t, outgoing.Settled, w.last(x.ID).State)
				}
				w.sound()
			})
		})
	}
}

func TestL01_CrashDuringReplacementPaysOnce(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			var in chain.Intent
			crashAnywhere(t, family, func(w *world, run func(int)) {
				for again := true; again; {
					again = w.die(func() { in = w.submit(w.intent("a", coin)) })
				}
				w.die(func() { _ = w.step() })
				w.stick()
				run(14)
				w.chain.ReviveAll()
				w.chain.SetFeeLevel(0)
				run(14)
			}, func(w *world) {
				w.paid(in)
				require.Equal(w.t, outgoing.Settled, w.last("a").State)
				w.sound()
			})
		})
	}
}

func TestW03_ReplacementsConflictAndOldOnesMayMine(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.stickAll()
		w.run(45)
		atts := w.attempts("a")
		require.Greater(t, len(atts), 1, "it was replaced")
		// All attempts conflict pairwise.
		var common string
		for _, a := range atts {
			row, _, _, err := outgoing.Attempts.One(w.ctx, w.store, storage.Network(w.gas), a.Tx)
			require.NoError(t, err)
			if common == "" {
				common = row.Spends[0]
			}
			require.Contains(t, row.Spends, common)
		}
		// The oldest comes back and wins.
		w.chain.SetFeeLevel(0)
		w.chain.Drop(w.chain.Mempool()...)
		require.NoError(t, w.chain.Resend(atts[0].Tx))
		w.chain.MineOnly(atts[0].Tx)
		for range 12 {
			w.chain.ReviveAll()
			w.run(1)
		}
		w.paid(in)
		require.Equal(t, atts[0].Tx, w.last("a").CostTx)
		require.Equal(t, outgoing.Settled, w.last("a").State)
		w.sound()
	})
}

func TestW03_StuckTransactionIsReplacedByADearerOne(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.stick()
		w.run(30)
		w.paid(in)
		atts := w.attempts("a")
		require.Len(t, atts, 2)
		require.Greater(t, atts[1].Fee.Max, atts[0].Fee.Max)
		require.Equal(t, atts[1].Tx, w.last("a").CostTx)
		require.Equal(t, outgoing.Dead, atts[0].Fate)
		require.Equal(t, outgoing.Landed, atts[1].Fate)
		w.sound()
	})
}

func TestW05_NodeStringsAboutNoncesProveNothing(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"nonce too low", "nonce too high", "nonce gap", "replacement transaction underpriced",
		"already known", "transaction underpriced", "insufficient funds for gas * price + value",
	} {
		t.Run(s, func(t *testing.T) {
			t.Parallel()
			w := funded(t, setup{})
			w.chain.Front().RefuseNext(3, errors.New(s)).LieNonce(-1)
			in := w.submit(w.intent("a", coin))
			in2 := w.submit(w.intent("b", coin))
			w.run(16)
			w.chain.Front().LieNonce(0)
			w.paid(in)
			w.paid(in2)
			require.Len(t, w.attempts("a"), 1)
			require.Len(t, w.attempts("b"), 1)
			w.sound()
		})
	}
}

func TestW05_OwnNoncesAreDense(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	nonces := map[int64]bool{}
	for i := range 12 {
		w.submit(w.intent(fmt.Sprint("n", i), coin/10))
	}
	require.NoError(t, w.step())
	w.chain.Front().LieNonce(5) // what the node says counts no more
	for i := range 4 {
		w.submit(w.intent(fmt.Sprint("m", i), coin/10))
	}
	require.NoError(t, w.step())
	for _, r := range w.rows(outgoing.Attempts.Table) {
		nonces[outgoing.Attempts.Value(r).Nonce] = true
	}
	require.Len(t, nonces, 16)
	for i := range int64(16) {
		require.True(t, nonces[i], "nonce %d", i)
	}
}

func TestW05_RejectedBytesLeaveNoGap(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.client.reject = fmt.Errorf("%w: bad bytes", chain.ErrRejected)
		bad := w.submit(w.intent("bad", coin))
		require.NoError(t, w.step())
		good := w.submit(w.intent("good", coin))
		w.run(4)
		require.NotEqual(t, outgoing.Failed, w.state("bad"), "not before what takes its place is final")
		w.run(12)
		w.paid(good)
		w.unpaid(bad)
		o := w.last("bad")
		require.Equal(t, outgoing.Failed, o.State)
		require.Positive(t, o.Cost)
		atts := w.attempts("bad")
		require.Equal(t, chain.ForCancel, atts[len(atts)-1].Purpose)
		require.Equal(t, atts[len(atts)-1].Tx, o.CostTx)
		w.run(16)
		w.sound()
	})
}

func TestW06_TwoProcessesOneStore(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		if w.gas == "BTC" {
			for range 20 {
				w.fund(w.key(), "BTC", coin)
			}
		}
		var all []chain.Intent
		for i := range 24 {
			all = append(all, w.submit(w.intent(fmt.Sprint("w", i), coin/4)))
		}
		nets := []*outgoing.Network{w.process(), w.process(), w.process()}
		for range 40 {
			var wg sync.WaitGroup
			for _, n := range nets {
				wg.Go(func() {
					for range 3 {
						_, _ = n.Step(w.ctx)
					}
				})
			}
			wg.Wait()
			w.chain.Mine(1)
			w.advance(time.Minute)
		}
		w.run(10)
		for _, in := range all {
			w.paid(in)
		}
		w.sound()
	})
}

func TestW06_SlotIsBoundToOneIntent(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	w.submit(w.intent("a", coin))
	w.signer.fail = []error{errAway}
	require.NoError(t, w.step())
	// The row is the claim: whoever inserts it again fails.
	row := outgoing.Reservations.Row(outgoing.Slot(w.hot.Address, 0), 0, time.Time{}, outgoing.Reservation{Intent: "b"})
	err := storage.CommitOne(w.ctx, w.store, storage.Change{ID: "steal", Partition: storage.Network("ETH"), Put: []storage.Row{row}})
	require.Error(t, err)
	w.submit(w.intent("b", coin))
	require.NoError(t, w.step())
	require.Empty(t, w.attempts("b"), "nothing overtakes a nonce that is being signed")
	w.run(12)
	w.paid(w.intent("a", coin))
	w.paid(w.intent("b", coin))
	w.sound()
}

func unknownErrorPaysOnce(t *testing.T, text string) {
	w := funded(t, setup{})
	in := w.submit(w.intent("a", coin))
	w.chain.Front().RefuseNext(1, errors.New(text))
	require.NoError(t, w.step())
	require.Equal(t, outgoing.Signed, w.state("a"))
	require.NotEmpty(t, w.rows(outgoing.Reservations.Table), "the reservation stays")
	w.run(12)
	w.paid(in)
	require.Len(t, w.attempts("a"), 1)
	w.sound()
}

func TestW07_UnknownErrorIsNoRejection(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "rejected", "invalid transaction", "bad-txns-inputs-missingorspent", "-25", "{}"} {
		unknownErrorPaysOnce(t, s)
	}
}

func FuzzW07_UnknownError(f *testing.F) {
	f.Add("txn-mempool-conflict")
	f.Add("min relay fee not met")
	f.Fuzz(unknownErrorPaysOnce)
}

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
		require.Empty(t, w.rows(outgoing.Reservations.Table))
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

func TestW14_AbsurdFeeWaitsAndBurnsNoNonce(t *testing.T) {
	t.Parallel()
	for _, cap := range []string{"intent", "host"} {
		w := funded(t, setup{change: func(c *outgoing.Config) {
			if cap == "host" {
				c.MaxFee = coin / 100
			}
		}})
		in := w.intent("a", coin)
		if cap == "host" {
			in.MaxCost = 100 * coin
		}
		w.client.fee = func(f chain.Fee) chain.Fee { f.Max, f.Cost = 50*coin, 50*coin; return f }
		w.submit(in)
		w.run(3)
		require.Equal(t, outgoing.Waiting, w.last("a").State)
		require.Equal(t, outgoing.ReasonTooDear, w.last("a").Reason)
		require.Zero(t, w.signer.calls)
		require.Empty(t, w.rows(outgoing.Nonces.Table))
		require.Len(t, w.heard, 1, "the reason is told once")
		w.client.fee = nil
		w.run(20)
		w.paid(in)
		w.sound()
	}
}

func TestW14_ShortOfCoinsOrGasWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.fund(w.hot, "USDT", 1_000_000)
	native := w.submit(w.intent("native", coin))
	token := w.intent("token", 900_000)
	token.Currency = "USDT"
	w.submit(token)
	much := w.intent("much", 5_000_000)
	much.Currency = "USDT"
	w.submit(much)
	w.run(2)
	require.Equal(t, outgoing.ReasonHotShort, w.last("native").Reason)
	require.Equal(t, outgoing.ReasonGasShort, w.last("token").Reason)
	require.Equal(t, outgoing.ReasonHotShort, w.last("much").Reason)
	require.Empty(t, w.rows(outgoing.Reservations.Table))
	w.fund(w.hot, "ETH", 3*coin)
	w.run(20)
	w.paid(native)
	w.paid(token)
	w.unpaid(much)
	ok, err := w.Net.Cancel(w.ctx, "much")
	require.NoError(t, err)
	require.True(t, ok)
	w.sound()
}

func TestW14_CoinsOnTheirWayAreNotPromisedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.fund(w.hot, "ETH", 10*coin)
	a, b := w.submit(w.intent("a", 6*coin)), w.submit(w.intent("b", 6*coin))
	require.NoError(t, w.step())
	require.Equal(t, outgoing.Signed, w.state("a"))
	require.Equal(t, outgoing.ReasonHotShort, w.last("b").Reason)
	w.fund(w.hot, "ETH", 10*coin)
	w.run(20)
	w.paid(a)
	w.paid(b)
}

func TestW14_FloatIsAskedBeforeGasIsSpent(t *testing.T) {
	t.Parallel()
	enough := false
	w := funded(t, setup{change: func(c *outgoing.Config) {
		c.Float = func(context.Context, chain.Intent, ledger.Amount) (bool, error) { return enough, nil }
	}})
	in := w.submit(w.intent("a", coin))
	w.run(2)
	require.Equal(t, outgoing.ReasonGasShort, w.last("a").Reason)
	require.Zero(t, w.signer.calls)
	enough = true
	w.run(20)
	w.paid(in)
}

func TestW14_RaceOfReplacementsSettlesOnceAtTheMinedFee(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		w.stickAll()
		w.run(25)
		atts := w.attempts("a")
		require.Greater(t, len(atts), 1)
		w.chain.SetFeeLevel(0)
		// First the newest is mined, then a reorg puts the oldest in its place.
		require.NoError(t, w.chain.Resend(atts[len(atts)-1].Tx))
		w.run(2)
		require.Equal(t, outgoing.Executed, w.state("a"))
		_, err := w.chain.Reorg(3, atts[len(atts)-1].Tx)
		require.NoError(t, err)
		w.chain.Drop(w.chain.Mempool()...)
		require.NoError(t, w.chain.Resend(atts[0].Tx))
		w.chain.MineOnly(atts[0].Tx)
		w.run(12)
		w.paid(in)
		o := w.last("a")
		require.Equal(t, atts[0].Tx, o.CostTx)
		st, err := w.chain.Outcome(atts[0].Tx)
		require.NoError(t, err)
		require.Equal(t, st.Cost, o.Cost)
		settled := 0
		for _, s := range w.states("a") {
			if s == outgoing.Settled {
				settled++
			}
		}
		require.Equal(t, 1, settled)
		w.sound()
	})
}

func TestW15_AmountsArriveExactly(t *testing.T) {
	t.Parallel()
	const seed = 15
	r := rand.New(rand.NewPCG(seed, seed))
	families(t, func(t *testing.T, w *world) {
		mu.Lock()
		amounts := []ledger.Amount{546, 1_000, 12_345_678, 99_999_999}
		for range 6 {
			amounts = append(amounts, 1_000+ledger.Amount(r.Int64N(int64(coin))))
		}
		mu.Unlock()
		for i, a := range amounts {
			in := w.submit(w.intent(fmt.Sprint("x", i), a))
			w.run(10)
			w.paid(in)
			require.Equal(t, a, w.last(in.ID).Amount, "seed %d", seed)
		}
		w.sound()
	})
}

var mu sync.Mutex

func TestW17_CancelOnlyBeforeSigning(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		a := w.submit(w.intent("a", coin))
		for range 2 {
			ok, err := w.Net.Cancel(w.ctx, "a")
			require.NoError(t, err)
			require.True(t, ok)
		}
		b := w.submit(w.intent("b", coin))
		require.NoError(t, w.step())
		ok, err := w.Net.Cancel(w.ctx, "b")
		require.NoError(t, err)
		require.False(t, ok)
		_, err = w.Net.Cancel(w.ctx, "none")
		require.ErrorIs(t, err, outgoing.ErrNoIntent)
		w.run(12)
		w.unpaid(a)
		w.paid(b)
		require.Equal(t, []outgoing.State{outgoing.Cancelled}, w.states("a"))
		w.sound()
	})
}

// cancelDuring cancels from within the signer or the client, where a worker is
// in the middle of an intent.
type cancelDuring struct {
	chain.Signer
	do func()
}

func (c cancelDuring) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	c.do()
	return c.Signer.Sign(ctx, r)
}

type cancelBuild struct {
	*fragileClient
	do func()
}

func (c cancelBuild) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	c.do()
	return c.fragileClient.Build(ctx, o)
}

func TestW17_CancelRacesTheWorker(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"build", "sign"} {
		for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
			w := funded(t, setup{family: family})
			var cancelled bool
			do := func() {
				ok, err := w.Net.Cancel(w.ctx, "a")
				require.NoError(t, err)
				cancelled = cancelled || ok
			}
			w.set.change = func(c *outgoing.Config) {
				if where == "build" {
					c.Client = cancelBuild{w.client, do}
				} else {
					c.Signer = cancelDuring{w.signer, do}
				}
			}
			w.restart()
			in := w.submit(w.intent("a", coin))
			w.run(14)
			require.Equal(t, where == "build", cancelled)
			if cancelled {
				w.unpaid(in)
				require.Equal(t, outgoing.Cancelled, w.last("a").State)
			} else {
				w.paid(in)
			}
			w.sound()
		}
	}
}

func TestW17_ConcurrentCancelHasOneWinner(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	const many = 40
	won := make([]bool, many)
	var wg sync.WaitGroup
	for i := range many {
		w.submit(w.intent(fmt.Sprint("c", i), coin/100))
	}
	wg.Go(func() {
		for range 5 {
			_, _ = w.Net.Step(w.ctx)
		}
	})
	wg.Go(func() {
		for i := many - 1; i >= 0; i-- {
			ok, err := w.Net.Cancel(w.ctx, fmt.Sprint("c", i))
			won[i] = ok && err == nil
		}
	})
	wg.Wait()
	w.run(20)
	for i := range many {
		in := w.intent(fmt.Sprint("c", i), coin/100)
		if won[i] {
			w.unpaid(in)
			require.Equal(t, outgoing.Cancelled, w.state(in.ID))
		} else {
			w.paid(in)
		}
	}
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
		require.Equal(t, outgoing.Settled, w.state("a"))
		w.paid(in)
		require.Len(t, w.attempts("a"), 2)
		ok, err := w.Net.Cancel(w.ctx, "a")
		require.NoError(t, err)
		require.False(t, ok)
		w.sound()
	})
}

func TestK05_SignerThatSignedAndDidNotAnswer(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.signer.lose = 3
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		require.Equal(t, outgoing.ReasonSigner, w.last("a").Reason)
		w.client.fee = func(f chain.Fee) chain.Fee { f.Max *= 2; return f } // a plan made now would differ
		other := w.submit(w.intent("b", coin))
		w.restart()
		w.run(20)
		w.paid(in)
		w.paid(other)
		require.Len(t, w.signer.payloads, 2, "each was signed as one payload")
		w.sound()
	})
}

func TestK05_RefusedIntentLeavesNoGap(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.signer.fail = []error{fmt.Errorf("%w: above its limit", chain.ErrRefused)}
		in := w.submit(w.intent("a", coin))
		require.NoError(t, w.step())
		require.Equal(t, outgoing.Waiting, w.state("a"))
		require.Equal(t, outgoing.ReasonSigner, w.last("a").Reason)
		require.Empty(t, w.rows(outgoing.Reservations.Table))
		b := w.submit(w.intent("b", coin))
		require.NoError(t, w.step())
		require.Equal(t, outgoing.Signed, w.state("b"), "the nonce is free for the next")
		ok, err := w.Net.Cancel(w.ctx, "a")
		require.NoError(t, err)
		require.True(t, ok)
		w.run(12)
		w.paid(b)
		w.unpaid(in)
		w.sound()
	})
}

func TestL14_UnknownTransactionsOfOurKeyStopTheAddress(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{})
	before := memory.New()
	require.NoError(t, before.Open(w.ctx, outgoing.Tables()...))
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
	require.NoError(t, w.Net.AdoptNonce(w.ctx, w.hot.Address, 1))
	require.Error(t, w.Net.AdoptNonce(w.ctx, w.hot.Address, 0))
	b := w.submit(w.intent("b", coin))
	w.run(12)
	w.paid(b)
}

func TestNodeFailuresOnlyDelay(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.chain.Front().FailRate(300)
		var all []chain.Intent
		for i := range 6 {
			all = append(all, w.submit(w.intent(fmt.Sprint("f", i), coin/4)))
		}
		w.run(60)
		w.chain.Front().Honest()
		w.run(20)
		for _, in := range all {
			w.paid(in)
		}
		w.sound()
	})
}
