package outgoing_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// nemesis does one harmful or harmless thing to the world.
func nemesis(w *world, r *rand.Rand, submitted *[]chain.Intent) {
	front := w.chain.Front()
	switch r.IntN(20) {
	case 0, 1, 2:
		in := w.intent(fmt.Sprint("i", len(*submitted)), coin/10+ledger.Amount(r.Int64N(int64(coin/10))))
		if w.gas == "ETH" && r.IntN(3) == 0 {
			in.Currency, in.Amount = "USDT", 1+ledger.Amount(r.Int64N(1_000_000))
		}
		in.Confirmations = r.Int64N(5)
		for again := true; again; {
			again = w.die(func() { w.submit(in) })
		}
		*submitted = append(*submitted, in)
	case 3:
		if n := len(*submitted); n > 0 {
			w.die(func() { _, _ = w.Net.Cancel(w.ctx, (*submitted)[r.IntN(n)].ID) })
		}
	case 4:
		w.points.dieAt = len(w.points.seen) + 1 + r.IntN(12)
	case 5:
		w.restart()
	case 6, 7, 8:
		w.chain.Mine(1)
	case 9:
		if pool := w.chain.Mempool(); len(pool) > 0 {
			w.chain.Drop(pool[r.IntN(len(pool))])
		}
	case 10:
		w.chain.ReviveAll()
	case 11:
		_, _ = w.chain.Reorg(1+r.IntN(4), w.chain.Transactions(true)...)
	case 12:
		front.LoseAnswers(1 + r.IntN(2))
	case 13:
		front.Swallow(1)
	case 14:
		front.RefuseNext(1, errors.New([]string{"nonce too low", "underpriced", "rejected", "?"}[r.IntN(4)]))
	case 15:
		front.FailNext(1+r.IntN(3), nil)
	case 16:
		w.signer.fail = append(w.signer.fail, []error{errAway, fmt.Errorf("%w: limit", chain.ErrRefused)}[r.IntN(2)])
	case 17:
		w.signer.lose++
	case 18:
		if r.IntN(2) == 0 {
			w.chain.SetFeeLevel(0)
		} else if r.IntN(3) == 0 {
			w.stick()
		}
	case 19:
		if r.IntN(4) == 0 {
			w.client.reject = fmt.Errorf("%w: bytes", chain.ErrRejected)
		}
		front.Lag(int64(r.IntN(3)))
	}
}

// After any mixture of faults and crashes, each intent is settled and paid once
// or ended and never paid, and nothing stays reserved.
func TestNemesis_PaidOnceWhateverHappens(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(family, "/seed ", seed), func(t *testing.T) {
				t.Parallel()
				w := funded(t, setup{family: family, firstSeen: family == chain.UTXOFamily && seed%2 == 1})
				w.chain.Mine(10) // what we hold is final
				r := rand.New(rand.NewPCG(seed, 99))
				var all []chain.Intent
				for range 160 {
					nemesis(w, r, &all)
					w.die(func() { _ = w.step() })
					w.advance(time.Duration(r.IntN(200)) * time.Second)
				}
				w.points.dieAt, w.client.reject, w.signer.fail, w.signer.lose = 0, nil, nil, 0
				w.chain.Front().Honest()
				w.chain.SetFeeLevel(0)
				w.run(120)
				for _, in := range all {
					switch s := w.state(in.ID); s {
					case outgoing.Final:
						w.paid(in)
					case outgoing.Cancelled, outgoing.Failed:
						w.unpaid(in)
					default:
						require.Fail(t, "no end", "%s is %s, %s", in.ID, s, w.get(in.ID).Reason)
					}
					require.Equal(t, w.state(in.ID), w.last(in.ID).State)
				}
				w.sound()
			})
		}
	}
}
