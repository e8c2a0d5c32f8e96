package outgoing_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// narrow is a setup in which a transaction holds so many coins.
func narrow(most int, change ...func(*outgoing.Config)) setup {
	return setup{family: chain.UTXOFamily, change: func(c *outgoing.Config) {
		c.MaxInputs = most
		for _, f := range change {
			f(c)
		}
	}}
}

// crowded has so many coins of one.
func crowded(t testing.TB, s setup, coins int) *world {
	w := newWorld(t, s)
	for range coins {
		w.fund(w.key(), "BTC", coin)
	}
	w.chain.SetFeeLevel(50)
	return w
}

// merges are those of all payouts, by state.
func (w *world) merges() map[outgoing.State]int {
	out := map[outgoing.State]int{}
	for _, r := range w.rows(outgoing.Intents.Table) {
		if outgoing.ParseID(r.ID).Kind == outgoing.OrderMerge {
			out[outgoing.Intents.Value(r).State]++
		}
	}
	return out
}

// comesTo lets time go by until an intent has come to a state.
func (w *world) comesTo(id string, s outgoing.State) {
	w.t.Helper()
	for range 100 {
		if w.state(id) == s {
			return
		}
		w.run(1)
	}
	require.Equal(w.t, s, w.state(id), "it waits for %q", w.get(id).Reason)
}

// As many merges as it takes are made and no more, for each number of coins that is needed.
func TestFT04_AsManyMergesAsItTakes(t *testing.T) {
	t.Parallel()
	for need, merges := range map[int]int{2: 0, 3: 0, 4: 1, 5: 1, 6: 2, 7: 2, 8: 3, 9: 3, 12: 5, 20: 9} {
		t.Run(fmt.Sprint(need), func(t *testing.T) {
			t.Parallel()
			w := crowded(t, narrow(3), 25)
			in := w.submit(w.intent("a", ledger.Amount(need)*coin-coin/2))
			w.comesTo("a", outgoing.Final)
			w.paid(in)
			require.Equal(t, merges, w.merges()[outgoing.Final])
			require.Len(t, w.merges(), min(merges, 1))
			for _, r := range w.rows(outgoing.Attempts.Table) {
				require.LessOrEqual(t, len(outgoing.Attempts.Value(r).Spends), 3)
			}
			if merges > 0 {
				require.Contains(t, w.reasons("a"), outgoing.ReasonConsolidating)
			}
			require.NotContains(t, w.reasons("a"), outgoing.ReasonHotBalance)
			w.sound()
		})
	}
}

// reasons are what the owner of an intent was told that it waits for.
func (w *world) reasons(id string) (out []outgoing.Reason) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, o := range w.heard {
		if o.Intent == id && o.State == outgoing.Waiting {
			out = append(out, o.Reason)
		}
	}
	return out
}

func TestFT04_CrashAnywhereWhileCoinsAreMerged(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, trouble := range []string{"", "refused", "stuck"} {
		t.Run(trouble, func(t *testing.T) {
			t.Parallel()
			var in chain.Intent
			crashAnywhere(t, narrow(2), func(w *world, run func(int)) {
				in = w.intent("a", 18*coin) // of four coins of five
				for w.die(func() { w.submit(in) }) {
				}
				switch trouble {
				case "refused":
					w.signer.fail = []error{nil, fmt.Errorf("%w: limit", chain.ErrRefused)}
				case "stuck":
					w.die(func() { _ = w.step() })
					w.stick()
				}
				run(14)
				w.chain.ReviveAll()
				w.chain.SetFeeLevel(0)
				run(40)
			}, func(w *world) {
				require.Equal(w.t, outgoing.Final, w.last("a").State, "it waits for %q, merges %v", w.get("a").Reason, w.merges())
				w.paid(in)
				require.Equal(w.t, map[outgoing.State]int{outgoing.Final: 2}, w.merges())
				w.sound()
			})
		})
	}
}

// Two payouts need merges at the same time: the second waits for those of the first, and
// makes what it lacks then. Also where two processes decide at the same moment.
func TestFT04_TwoPayoutsNeedMerges(t *testing.T) {
	t.Parallel()
	for _, processes := range []int{1, 2} {
		t.Run(fmt.Sprint(processes, " processes"), func(t *testing.T) {
			t.Parallel()
			w := crowded(t, narrow(3, func(c *outgoing.Config) { c.MaxPayments, c.Batch = 1, 1 }), 12)
			a, b := w.submit(w.intent("a", 9*coin/2)), w.submit(w.intent("b", 9*coin/2))
			if processes == 2 {
				other := w.process()
				met := false
				w.store = &meeting{Store: w.store, at: "out/merge/", first: func() {
					if !met {
						met = true
						_, err := other.Step(w.ctx)
						require.NoError(t, err)
					}
				}}
				w.restart()
				_, err := w.Net.Step(w.ctx)
				require.NoError(t, err)
				require.True(t, met)
				require.Equal(t, 1, w.merges()[outgoing.Queued]+w.merges()[outgoing.Signed], "one of the two decided")
			}
			w.comesTo("a", outgoing.Final)
			w.comesTo("b", outgoing.Final)
			w.paid(a)
			w.paid(b)
			require.Equal(t, map[outgoing.State]int{outgoing.Final: 2}, w.merges())
			w.sound()
		})
	}
}

// meeting calls first before a Change whose id begins with at.
type meeting struct {
	storage.Store
	at    string
	first func()
}

func (m *meeting) Commit(ctx context.Context, changes ...storage.Change) []error {
	for i := range changes {
		if len(changes[i].ID) > len(m.at) && changes[i].ID[:len(m.at)] == m.at {
			m.first()
		}
	}
	return m.Store.Commit(ctx, changes...)
}

// Where merging costs more than it may, nothing is merged, and the payout says so for as
// long as fees stay.
func TestFT04_MergingThatCostsTooMuchWaitsForLowerFees(t *testing.T) {
	t.Parallel()
	most := ledger.Amount(1)
	w := crowded(t, narrow(3, func(c *outgoing.Config) {
		c.MayCost = func(context.Context, chain.Intent) (ledger.Amount, error) { return most, nil }
	}), 12)
	in := w.submit(w.intent("a", 7*coin))
	w.run(10)
	require.Equal(t, outgoing.ReasonFeeTooHigh, w.get("a").Reason)
	require.Empty(t, w.merges())
	most = coin
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	w.sound()
}

// A payout that is cancelled takes those of its merges back of which nothing was signed.
// What was sent lands, and its coin is one like others.
func TestFT04_CancelledWhileCoinsAreMerged(t *testing.T) {
	t.Parallel()
	w := crowded(t, narrow(3, func(c *outgoing.Config) { c.Batch = 1 }), 12)
	w.submit(w.intent("a", 9*coin))
	for range 2 { // decide, and sign one
		_, err := w.Net.Step(w.ctx)
		require.NoError(t, err)
	}
	require.Equal(t, map[outgoing.State]int{outgoing.Signed: 1, outgoing.Queued: 2}, w.merges())
	cancelled, err := w.Net.Cancel(w.ctx, "a")
	require.NoError(t, err)
	require.True(t, cancelled)
	w.run(20)
	require.Equal(t, map[outgoing.State]int{outgoing.Final: 1, outgoing.Cancelled: 2}, w.merges())
	w.unpaid(w.intent("a", 9*coin))
	w.sound()
	again := w.submit(w.intent("again", 9*coin/2))
	w.comesTo("again", outgoing.Final)
	w.paid(again)
	require.Equal(t, 1, w.merges()[outgoing.Final], "the coin of the first one serves it")
}

// The block of a merge is replaced: the same transaction lands again, and the payout waits.
func TestFT04_MergeThatAForkTakesBack(t *testing.T) {
	t.Parallel()
	w := crowded(t, narrow(3), 12)
	in := w.submit(w.intent("a", 5*coin))
	require.NoError(t, w.step())
	w.chain.MineOnly(w.get("merge/a/1").Tx)
	w.advance(time.Minute)
	coins := len(w.rows(outgoing.Coins.Table))
	require.NoError(t, w.step())
	require.Equal(t, map[outgoing.State]int{outgoing.Executed: 1, outgoing.Signed: 1}, w.merges())
	require.Equal(t, outgoing.ReasonConsolidating, w.get("a").Reason)
	require.Len(t, w.rows(outgoing.Coins.Table), coins+1)
	_, err := w.chain.Reorg(1)
	require.NoError(t, err)
	w.advance(time.Minute)
	require.NoError(t, w.step())
	require.Equal(t, 2, w.merges()[outgoing.Signed])
	require.Equal(t, outgoing.ReasonConsolidating, w.get("a").Reason)
	require.Len(t, w.rows(outgoing.Coins.Table), coins, "what it returns is no coin now")
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	require.Equal(t, map[outgoing.State]int{outgoing.Final: 2}, w.merges())
	w.sound()
}

// A halt of the tenant keeps merges back, as it keeps what they are for.
func TestFT04_HaltKeepsMergesBack(t *testing.T) {
	t.Parallel()
	w := crowded(t, narrow(3, func(c *outgoing.Config) { c.Batch = 1 }), 12)
	in := w.submit(w.intent("a", 5*coin))
	_, err := w.Net.Step(w.ctx)
	require.NoError(t, err)
	require.Equal(t, map[outgoing.State]int{outgoing.Queued: 2}, w.merges())
	halts := func(h ...outgoing.Halt) {
		w.ops++
		require.NoError(t, outgoing.SetHalts(w.ctx, w.store, nil, storage.Network("BTC"), fmt.Sprint("op ", w.ops), outgoing.Operation{At: w.clock()},
			func([]outgoing.Halt) []outgoing.Halt { return h }))
	}
	halts(outgoing.Halt{Scope: outgoing.Scope{Tenant: "t1"}, Reason: "looked at", Since: w.clock()})
	w.run(5)
	require.Equal(t, map[outgoing.State]int{outgoing.Waiting: 2}, w.merges())
	require.Equal(t, outgoing.ReasonHalted, w.get("a").Reason)
	halts()
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	w.sound()
}

// While a process runs that does not know of merges, none is made.
func TestFT04_NoMergesBesideAnOlderVersion(t *testing.T) {
	t.Parallel()
	old := true
	w := crowded(t, narrow(3, func(c *outgoing.Config) {
		c.Able = func(_ context.Context, a outgoing.Ability) (bool, error) {
			return !old || a != outgoing.AbilityMerges, nil
		}
	}), 12)
	in := w.submit(w.intent("a", 5*coin))
	w.run(5)
	require.Empty(t, w.merges())
	require.Equal(t, outgoing.ReasonHotBalance, w.get("a").Reason)
	old = false
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	w.sound()
}

// The operator's coins do not bear a merge: the payout says so, and goes on when they do.
func TestFT04_MergeThatNobodyCanPayForYet(t *testing.T) {
	t.Parallel()
	var bears ledger.Amount
	asked := map[string]ledger.Amount{}
	w := crowded(t, narrow(3, func(c *outgoing.Config) {
		c.Raise = func(_ context.Context, in chain.Intent, most ledger.Amount) (ledger.Amount, error) {
			if most > bears {
				return 0, fmt.Errorf("only %d", bears)
			}
			asked[in.ID] = most
			return most, nil
		}
	}), 12)
	in := w.submit(w.intent("a", 5*coin))
	w.run(10)
	require.Equal(t, outgoing.ReasonOperatorFunds, w.get("a").Reason)
	require.Equal(t, map[outgoing.State]int{outgoing.Waiting: 2}, w.merges())
	require.Empty(t, w.rows(outgoing.Attempts.Table), "nothing was signed that was not set aside")
	bears = coin
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	for _, r := range w.rows(outgoing.Attempts.Table) {
		if a := outgoing.Attempts.Value(r); outgoing.ParseID(a.Intent).Kind == outgoing.OrderMerge {
			require.LessOrEqual(t, a.MaxCost, asked[a.Intent])
		}
	}
	w.sound()
}

// Coins that bring less than it costs to merge them are not merged.
func TestFT04_CoinsThatDoNotPayForThemselves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, narrow(3))
	for range 40 {
		w.fund(w.key(), "BTC", 10_000)
	}
	w.chain.SetFeeLevel(500)
	in := w.submit(w.intent("a", 100_000))
	w.run(10)
	require.Equal(t, outgoing.ReasonFeeTooHigh, w.get("a").Reason)
	require.Empty(t, w.merges())
	w.unpaid(in)
}

// An id says what its order is for, whatever the ids in it look like. What was not made by String is of
// nothing, and an order of somebody else's has no such id.
func TestFR08_IDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]outgoing.ID{
		"merge/a/1":                       {Kind: outgoing.OrderMerge, For: "a", Number: 1},
		"merge/a/b/12":                    {Kind: outgoing.OrderMerge, For: "a/b", Number: 12},
		"merge/early/shop/2026-01-02/0":   {Kind: outgoing.OrderMerge, For: "early/shop/2026-01-02"},
		"merge/merge/a/1/2":               {Kind: outgoing.OrderMerge, For: "merge/a/1", Number: 2},
		"child/merge/a/1":                 {Kind: outgoing.OrderChild, For: "merge/a/1"},
		"fill/0xab/7":                     {Kind: outgoing.OrderFill, For: "0xab/7"},
		"gas/2/sweep/again/1":             {Kind: outgoing.OrderGas, For: "sweep/again/1", Number: 2},
		"merge//1":                        {},
		"merge/a":                         {},
		"merge/a/":                        {},
		"merge/a/01":                      {},
		"merge/a/-1":                      {},
		"merge/a/+1":                      {},
		"merge/a/99999999999999999999999": {},
		"gas/2":                           {},
		"gas//sweep":                      {},
		"gas/x/sweep":                     {},
		"child/":                          {},
		"child":                           {},
		"other/a/1":                       {},
		"a":                               {},
		"":                                {},
	} {
		got := outgoing.ParseID(id)
		require.Equal(t, want, got, id)
		require.Equal(t, want.Kind == outgoing.OrderMerge || want.Kind == outgoing.OrderChild, got.Helps(), id)
		require.Equal(t, id == "merge/early/shop/2026-01-02/0", got.Early(), id)
		if want.Kind != "" {
			require.Equal(t, id, got.String())
		}
	}
	w := funded(t, narrow(3))
	in := w.intent("merge/a/1", coin)
	require.ErrorIs(t, w.Net.Submit(w.ctx, in), outgoing.ErrIntent)
}

// Fees rise before the merges of a payout are sent. Their bounds are raised as far as all
// that the payout may cost allows; the rest waits, and the payout says so.
func TestFT04_MergesThatBecomeTooDear(t *testing.T) {
	t.Parallel()
	const most = 300_000
	w := crowded(t, narrow(3, func(c *outgoing.Config) {
		c.Batch = 1
		c.MayCost = func(context.Context, chain.Intent) (ledger.Amount, error) { return most, nil }
		c.Raise = func(_ context.Context, _ chain.Intent, most ledger.Amount) (ledger.Amount, error) { return most, nil }
	}), 25)
	in := w.submit(w.intent("a", 17*coin/2))
	_, err := w.Net.Step(w.ctx)
	require.NoError(t, err)
	require.Equal(t, map[outgoing.State]int{outgoing.Queued: 3}, w.merges())
	w.chain.SetFeeLevel(400)
	w.run(30)
	require.Equal(t, outgoing.ReasonFeeTooHigh, w.get("a").Reason, "%v", w.merges())
	var bounds ledger.Amount
	for _, r := range w.rows(outgoing.Intents.Table) {
		if outgoing.ParseID(r.ID).Kind == outgoing.OrderMerge {
			bounds += outgoing.Intents.Value(r).MaxCost
		}
	}
	require.LessOrEqual(t, bounds, ledger.Amount(most))
	w.chain.SetFeeLevel(50)
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	w.sound()
}

// TestFT04_MergesCountWithWhatTheyCost: fees rise while the first merges of a payout are in no
// block, and their bounds are raised to all that it may cost. Nodes keep what they saw first,
// which lands when fees have fallen, and costs little of that: so there is room for those that
// it needs next.
func TestFT04_MergesCountWithWhatTheyCost(t *testing.T) {
	t.Parallel()
	const most = 200_000
	w := crowded(t, narrow(3, func(c *outgoing.Config) {
		c.MayCost = func(context.Context, chain.Intent) (ledger.Amount, error) { return most, nil }
		c.Raise = func(_ context.Context, _ chain.Intent, most ledger.Amount) (ledger.Amount, error) { return most, nil }
	}), 25)
	w.chain.SetFirstSeen(true)
	in := w.submit(w.intent("a", 20*coin-coin/2))
	require.NoError(t, w.step())
	require.Equal(t, map[outgoing.State]int{outgoing.Signed: 6}, w.merges())
	bounds := func() (sum ledger.Amount) {
		for _, r := range w.rows(outgoing.Intents.Table) {
			if outgoing.ParseID(r.ID).Kind == outgoing.OrderMerge {
				sum += outgoing.Intents.Value(r).MaxCost
			}
		}
		return sum
	}
	w.chain.SetFeeLevel(150)
	for range 4 {
		w.advance(stuck)
		require.NoError(t, w.step())
	}
	require.Greater(t, bounds(), ledger.Amount(most*3/4))
	w.chain.SetFeeLevel(50)
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	require.Equal(t, map[outgoing.State]int{outgoing.Final: 9}, w.merges())
	var cost ledger.Amount
	for _, r := range w.rows(outgoing.Outcomes.Table) {
		if outgoing.ParseID(r.ID).Kind == outgoing.OrderMerge {
			cost += outgoing.Outcomes.Value(r).Cost
		}
	}
	require.Equal(t, cost, bounds())
	w.sound()
}

// Fees rise after merges were sent, and stay: dearer ones are sent in their place, up to what
// they may cost, and the payout goes.
func TestFT04_MergesAreReplacedWhenFeesRise(t *testing.T) {
	t.Parallel()
	w := crowded(t, narrow(3, func(c *outgoing.Config) {
		c.Raise = func(_ context.Context, _ chain.Intent, most ledger.Amount) (ledger.Amount, error) { return most, nil }
	}), 14)
	in := w.submit(w.intent("a", 5*coin))
	require.NoError(t, w.step())
	first := []string{w.get("merge/a/1").Tx, w.get("merge/a/2").Tx}
	w.chain.SetFeeLevel(500)
	for range 60 {
		w.chain.Drop(first...) // no block has room for them at this price
		w.run(1)
		w.advance(10 * time.Minute)
	}
	for k := range first {
		m := w.get(fmt.Sprintf("merge/a/%d", k+1))
		require.Equal(t, outgoing.Final, m.State, "it waits for %q", m.Reason)
		require.NotEqual(t, first[k], m.Tx)
	}
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	w.sound()
}

// merged lets time go by until merges have a confirmation and are not final, and returns them.
func (w *world) merged(most int) (out []outgoing.View) {
	w.t.Helper()
	for range 20 {
		if out = nil; w.merges()[outgoing.Executed] > 0 {
			for k := range most {
				out = append(out, w.get(fmt.Sprintf("merge/a/%d", k+1)))
			}
			return out
		}
		w.run(1)
	}
	require.Fail(w.t, "no merge has a confirmation", "%v", w.merges())
	return nil
}

// What a merge returns is spent as soon as the merge has a confirmation: the payout is in a
// block before its merges are final.
func TestFT04_MergedCoinsAreSpentAtTheirFirstConfirmation(t *testing.T) {
	t.Parallel()
	w := crowded(t, narrow(3), 12)
	in := w.submit(w.intent("a", 5*coin))
	w.merged(2)
	require.Equal(t, outgoing.Signed, w.state("a"))
	require.Equal(t, map[outgoing.State]int{outgoing.Executed: 2}, w.merges())
	all := ledger.Amount(0)
	for _, r := range w.rows(outgoing.Coins.Table) { // as treasury adds them up
		if c := outgoing.Coins.Value(r); c.State == outgoing.CoinFree || c.State == outgoing.CoinReserved {
			all += c.Amount
		}
	}
	require.LessOrEqual(t, all, 12*coin, "no coin counts twice")
	require.Greater(t, all, 11*coin)
	w.comesTo("a", outgoing.Final)
	w.paid(in)
	require.Equal(t, map[outgoing.State]int{outgoing.Final: 2}, w.merges())
	w.sound()
}

// A fork takes the blocks of merges whose coins a payout spends. Where they are mined again
// the payout lands as it was signed. Where a dearer merge lands in the place of one, the
// payout is paid with other coins, once.
func TestFT04_ForkTakesMergesWhoseCoinsAreSpent(t *testing.T) {
	t.Parallel()
	for _, again := range []bool{true, false} {
		t.Run(fmt.Sprint("mined again ", again), func(t *testing.T) {
			t.Parallel()
			w := crowded(t, narrow(3), 14)
			in := w.submit(w.intent("a", 5*coin))
			had := w.merged(2)
			require.Equal(t, outgoing.Signed, w.state("a"))
			signed := w.attempts("a")[0].Tx
			_, err := w.chain.Reorg(3)
			require.NoError(t, err)
			w.advance(time.Minute)
			require.NoError(t, w.step())
			require.Equal(t, map[outgoing.State]int{outgoing.Signed: 2}, w.merges())
			require.Equal(t, outgoing.CoinGone, w.coinState(had[0].Tx+":0"))
			if !again {
				w.forget()
				for range 30 {
					require.NoError(t, w.step())
					w.chain.Drop(had[0].Tx, had[1].Tx, signed)
					w.chain.Mine(1)
					w.advance(10 * time.Minute)
				}
			}
			w.comesTo("a", outgoing.Final)
			w.comesTo("merge/a/1", outgoing.Final)
			w.comesTo("merge/a/2", outgoing.Final)
			if again {
				require.Equal(t, signed, w.get("a").Tx)
			} else {
				require.NotEqual(t, had[0].Tx, w.get("merge/a/1").Tx)
			}
			w.over(in)
		})
	}
}

// A transaction has no more coins than nodes relay, whatever Config.MaxInputs says.
func TestFN02_NoMoreCoinsThanNodesRelay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ set, holds int }{{0, 5}, {3, 3}, {9, 5}} {
		s := narrow(c.set)
		s.most = 5
		w := crowded(t, s, 8)
		in := w.submit(w.intent("a", 7*coin))
		w.comesTo("a", outgoing.Final)
		w.paid(in)
		largest := 0
		for _, r := range w.rows(outgoing.Attempts.Table) {
			largest = max(largest, len(outgoing.Attempts.Value(r).Spends))
		}
		require.Equal(t, c.holds, largest, "of MaxInputs %d", c.set)
		w.sound()
	}
}
