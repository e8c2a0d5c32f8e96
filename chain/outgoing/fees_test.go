package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/ledger"
)

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
		require.Equal(t, outgoing.ReasonFeeTooHigh, w.last("a").Reason)
		require.Zero(t, w.signer.calls)
		require.Empty(t, w.rows(outgoing.Nonces.Table))
		require.Len(t, w.heard, 1, "the reason is told once")
		w.client.fee = nil
		w.run(20)
		w.paid(in)
		w.sound()
	}
}

// A bound is raised with some room, and without where the owner's coins bear no more.
func TestFN03_BoundIsRaisedAsFarAsTheCoinsGo(t *testing.T) {
	t.Parallel()
	for _, has := range []ledger.Amount{149, 150, 162, 163} {
		var asked []ledger.Amount
		w := funded(t, setup{change: func(c *outgoing.Config) {
			c.Raise = func(_ context.Context, _ chain.Intent, most ledger.Amount) (ledger.Amount, error) {
				if asked = append(asked, most); most > has {
					return 0, errors.New("not borne")
				}
				return most, nil
			}
		}})
		w.client.fee = func(f chain.Fee) chain.Fee { f.Max, f.Cost = 150_000, 1000; return f }
		in := w.intent("a", coin)
		in.MaxCost, has = 100_000, has*1000
		w.submit(in)
		w.run(20)
		if has < 150_000 {
			require.Equal(t, outgoing.ReasonOperatorFunds, w.last("a").Reason)
			w.unpaid(in)
			continue
		}
		require.Equal(t, []ledger.Amount{162_500, 150_000}[:len(asked)], asked)
		w.paid(in)
		require.Equal(t, []outgoing.State{outgoing.Signed, outgoing.Executed, outgoing.Final}, w.states("a"), "it is sent at once")
		w.sound()
	}
}

// A bound that a transaction of many coins needs is raised as it is built, and it is sent at once.
func TestFN03_BoundOfManyCoinsIsRaised(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{family: chain.UTXOFamily, change: func(c *outgoing.Config) {
		c.Raise = func(_ context.Context, _ chain.Intent, most ledger.Amount) (ledger.Amount, error) { return most, nil }
	}})
	for range 9 {
		w.fund(w.key(), "BTC", coin)
	}
	w.chain.SetFeeLevel(50)
	in := w.intent("a", 8*coin)
	fee, err := w.client.EstimateFee(w.ctx, in)
	require.NoError(t, err)
	in.MaxCost = fee.Max
	w.submit(in)
	w.run(12)
	w.paid(in)
	require.Greater(t, w.last("a").Cost, in.MaxCost)
	require.Equal(t, []outgoing.State{outgoing.Signed, outgoing.Executed, outgoing.Final}, w.states("a"))
	w.sound()
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
	require.Equal(t, outgoing.ReasonHotBalance, w.last("native").Reason)
	require.Equal(t, outgoing.ReasonOperatorFunds, w.last("token").Reason)
	require.Equal(t, outgoing.ReasonHotBalance, w.last("much").Reason)
	require.Empty(t, w.rows(outgoing.InputReservations.Table))
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

// TestW14_AddressThatHoldsTheAmountLacksTheFee: an operator has to bring it, and looks only
// where a reason asks for it.
func TestW14_AddressThatHoldsTheAmountLacksTheFee(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.fund(w.hot, "ETH", coin)
	in := w.submit(w.intent("a", coin))
	w.run(2)
	require.Equal(t, outgoing.ReasonOperatorFunds, w.last("a").Reason)
	w.fund(w.hot, "ETH", coin)
	w.run(20)
	w.paid(in)
	w.sound()
}

func TestW14_NothingToForwardIsNoShortageOfGas(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	from := w.key()
	w.fund(from, "ETH", coin)
	in := w.intent("sweep", 0)
	in.Purpose, in.Currency, in.All, in.From, in.FromKey, in.To = chain.ForSweep, "USDT", true, from.Address, from.Key, w.hot.Address
	w.submit(in)
	w.run(2)
	require.Equal(t, outgoing.ReasonHotBalance, w.last("sweep").Reason)
}

func TestW14_CoinsOnTheirWayAreNotPromisedTwice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, setup{})
	w.fund(w.hot, "ETH", 10*coin)
	a, b := w.submit(w.intent("a", 6*coin)), w.submit(w.intent("b", 6*coin))
	require.NoError(t, w.step())
	require.Equal(t, outgoing.Signed, w.state("a"))
	require.Equal(t, outgoing.ReasonHotBalance, w.last("b").Reason)
	w.fund(w.hot, "ETH", 10*coin)
	w.run(20)
	w.paid(a)
	w.paid(b)
}

func TestW14_FloatIsAskedBeforeGasIsSpent(t *testing.T) {
	t.Parallel()
	enough := false
	w := funded(t, setup{change: func(c *outgoing.Config) {
		c.CheckGasBudget = func(context.Context, chain.Intent, ledger.Amount) (bool, error) { return enough, nil }
	}})
	in := w.submit(w.intent("a", coin))
	w.run(2)
	require.Equal(t, outgoing.ReasonOperatorFunds, w.last("a").Reason)
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
			if s == outgoing.Final {
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

// TestFT03_CoinsThatNothingBringsAreTheOperators: a withdrawal lacks coins at its hot address, and the host says that
// nothing brings them. It asks the operator before it is signed, and after, when a fork took its coins away. Where the
// host cannot say, and for a gas transfer, it waits for coins as ever.
func TestFT03_CoinsThatNothingBringsAreTheOperators(t *testing.T) {
	t.Parallel()
	nothing := map[string]bool{"waits": true, "signed": true, "gas": true}
	w := newWorld(t, setup{change: func(c *outgoing.Config) {
		c.Uncovered = func(_ context.Context, in chain.Intent) (bool, error) {
			if in.ID == "unknown" {
				return true, errOwner
			}
			return nothing[in.ID], nil
		}
	}})
	cur, err := w.reg.Currency("ETH")
	require.NoError(t, err)
	stray, err := w.chain.Fund(w.hot.Address, "ETH", cur.Decimal(2*coin))
	require.NoError(t, err)
	w.submit(w.intent("signed", coin))
	require.NoError(t, w.step())
	require.Equal(t, outgoing.Signed, w.get("signed").State)
	_, err = w.chain.Reorg(1, stray)
	require.NoError(t, err)
	gas := w.intent("gas", coin)
	gas.Purpose = chain.ForGas
	w.submit(gas)
	for _, id := range []string{"waits", "comes", "unknown"} {
		w.submit(w.intent(id, coin))
	}
	w.run(30)
	for id, says := range map[string]outgoing.Reason{
		"waits": outgoing.ReasonOperatorFunds, "signed": outgoing.ReasonOperatorFunds, "gas": outgoing.ReasonHotBalance,
		"comes": outgoing.ReasonHotBalance, "unknown": outgoing.ReasonHotBalance,
	} {
		require.Equal(t, says, w.last(id).Reason, id)
	}
	nothing["waits"] = false
	w.advance(2 * time.Hour)
	w.run(2)
	require.Equal(t, outgoing.ReasonHotBalance, w.last("waits").Reason, "it is asked again")
}

// TestW14_SignedOrderWhoseCoinsAreGone: a transaction was signed on coins that a fork then took
// away, or on the word of a node that was behind. No node takes it while the address lacks
// them, and an operator looks only where a reason asks for coins.
func TestW14_SignedOrderWhoseCoinsAreGone(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		currency     string
		amount       ledger.Amount
		stray        string
		left, tokens ledger.Amount // that the fork leaves
		says         outgoing.Reason
	}{
		"Amount":      {"ETH", coin, "ETH", coin / 2, 0, outgoing.ReasonHotBalance},
		"Fee":         {"ETH", coin, "ETH", coin, 0, outgoing.ReasonOperatorFunds},
		"FeeOfTokens": {"USDT", 900_000, "ETH", 0, 1_000_000, outgoing.ReasonOperatorFunds},
		"NothingGone": {"ETH", coin, "USDT", 2 * coin, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, setup{})
			if c.left > 0 {
				w.fund(w.hot, "ETH", c.left)
			}
			if c.tokens > 0 {
				w.fund(w.hot, "USDT", c.tokens)
			}
			cur, err := w.reg.Currency(c.stray)
			require.NoError(t, err)
			stray, err := w.chain.Fund(w.hot.Address, c.stray, cur.Decimal(5*coin))
			require.NoError(t, err)
			in := w.intent("a", c.amount)
			in.Currency = c.currency
			w.submit(in)
			require.NoError(t, w.step())
			require.Equal(t, outgoing.Signed, w.get("a").State)
			_, err = w.chain.Reorg(1, stray)
			require.NoError(t, err)
			w.run(30)
			require.Equal(t, c.says, w.last("a").Reason)
			w.fund(w.hot, c.stray, 5*coin)
			w.run(30)
			w.paid(in)
			require.Empty(t, w.get("a").Reason)
			w.sound()
		})
	}
}
