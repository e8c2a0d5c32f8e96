package outgoing_test

import (
	"testing"

	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
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
func crashAnywhere(t *testing.T, s setup, scenario func(w *world, run func(int)), check func(w *world)) {
	for at := 1; ; at += stride() {
		w := funded(t, s)
		w.points.dieAt = at
		scenario(w, func(rounds int) {
			for range rounds {
				w.die(func() { w.run(1) })
			}
		})
		require.True(t, w.died || at > 20, "the scenario has failpoints")
		check(w)
		if !w.died {
			t.Logf("fewer than %d failpoints", at)
		}
		if t.Failed() || !w.died {
			return
		}
	}
}

func TestW02_CrashAnywherePaysOnce(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			var in [2]chain.Intent
			crashAnywhere(t, setup{family: family}, func(w *world, run func(int)) {
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
					require.Equal(w.t, outgoing.Final, w.last(x.ID).State)
				}
				w.sound()
			})
		})
	}
}

func TestL01_CrashDuringReplacementPaysOnce(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		t.Run(string(family), func(t *testing.T) {
			t.Parallel()
			var in chain.Intent
			crashAnywhere(t, setup{family: family}, func(w *world, run func(int)) {
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
				require.Equal(w.t, outgoing.Final, w.last("a").State)
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
		require.Equal(t, outgoing.Final, w.last("a").State)
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
		require.Equal(t, outgoing.AttemptFinal, atts[1].Fate)
		w.sound()
	})
}
