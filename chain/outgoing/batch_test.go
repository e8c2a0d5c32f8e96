package outgoing_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// three are orders that are due at the same moment.
func three(w *world) (in []chain.Intent) {
	for i, id := range []string{"a", "b", "c"} {
		in = append(in, w.submit(w.intent(id, ledger.Amount(i+1)*coin)))
	}
	return in
}

// each demands that all were paid once, and settled.
func (w *world) each(in ...chain.Intent) {
	w.t.Helper()
	w.costs()
	for _, x := range in {
		w.paid(x)
		require.Equal(w.t, outgoing.Final, w.state(x.ID))
		require.Equal(w.t, outgoing.Final, w.last(x.ID).State, "its owner knows")
		require.Equal(w.t, x.Amount, w.last(x.ID).Amount)
	}
	w.sound()
}

func TestPaidTogether(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := three(w)
	w.run(12)
	w.each(in...)
	require.Equal(t, 1, w.signer.calls)
	require.Len(t, w.client.sent, 1, "one transaction")
	a, b := w.get("a"), w.get("b")
	require.Empty(t, a.BatchLeader)
	require.Equal(t, "a", b.BatchLeader)
	require.Equal(t, a.Tx, b.Tx)
	require.Equal(t, a.Attempts, b.Attempts)
	require.Positive(t, w.last("a").Cost, "what the network took is told once")
	require.Zero(t, w.last("b").Cost)
	require.Empty(t, w.last("b").CostTx)
	require.Equal(t, []outgoing.State{outgoing.Signed, outgoing.Executed, outgoing.Final}, compact(w.states("b")))
}

// costs demands that owners have heard what the network took for each of our
// transactions, once each.
func (w *world) costs() {
	w.t.Helper()
	told := map[string]ledger.Amount{}
	for _, o := range w.heard {
		if o.CostTx != "" {
			told[o.CostTx] = o.Cost
		}
	}
	for _, r := range w.rows(outgoing.Attempts.Table) {
		if outgoing.Attempts.Value(r).State == outgoing.AttemptFinal {
			require.Positive(w.t, told[r.ID], "what %s cost", r.ID)
		}
	}
}

func compact(in []outgoing.State) (out []outgoing.State) {
	for _, s := range in {
		if len(out) == 0 || out[len(out)-1] != s {
			out = append(out, s)
		}
	}
	return out
}

func TestPaidTogetherIsOneTenantsAndBounded(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*outgoing.Config)
		order  func(*world, *chain.Intent)
		txs    int
	}{
		"bounded":            {func(c *outgoing.Config) { c.MaxPayments = 2 }, nil, 2},
		"each alone":         {func(c *outgoing.Config) { c.MaxPayments = 1 }, nil, 3},
		"other confirmation": {nil, func(_ *world, in *chain.Intent) { in.Confirmations = 4 }, 2},
		"a sweep":            {nil, func(_ *world, in *chain.Intent) { in.Purpose = chain.ForSweep }, 2},
		"from elsewhere": {nil, func(w *world, in *chain.Intent) {
			c := outgoing.Coins.Value(w.rows(outgoing.Coins.Table)[0])
			in.From, in.FromKey = c.Address, c.Key
		}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := funded(t, setup{family: chain.UTXOFamily, change: c.change})
			var in []chain.Intent
			for i, id := range []string{"a", "b", "c"} {
				x := w.intent(id, ledger.Amount(i+1)*coin)
				if c.order != nil && id == "c" {
					c.order(w, &x)
				}
				in = append(in, w.submit(x))
			}
			w.run(14)
			w.each(in...)
			require.Len(t, w.client.sent, c.txs)
		})
	}
}

func TestPaidTogetherIsNotCancelled(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := three(w)
	done, err := w.Net.Cancel(w.ctx, "b")
	require.NoError(t, err)
	require.True(t, done)
	w.signer.fail = []error{errAway}
	_ = w.step()
	require.True(t, w.get("c").Signing, "it is with the signer, in another's transaction")
	done, err = w.Net.Cancel(w.ctx, "c")
	require.NoError(t, err)
	require.False(t, done)
	w.run(14)
	w.each(in[0], in[2])
	w.unpaid(in[1])
	require.Len(t, w.client.sent, 1)
}

// What makes a signer refuse the whole fails alone.
func TestW16_RefusedTogetherGoesAlone(t *testing.T) {
	t.Parallel()
	limit := fmt.Errorf("%w: limit", chain.ErrRefused)
	for name, fail := range map[string][]error{
		"at once":              {limit},
		"after it was seen":    {errAway, limit, limit, limit},
		"after it was signed":  {nil, limit, limit, limit},
		"and the first, twice": {limit, limit},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := funded(t, setup{family: chain.UTXOFamily})
			if fail[0] == nil {
				w.signer.lose = 1
			}
			w.signer.fail = fail
			in := three(w)
			w.run(40)
			w.each(in...)
			for _, x := range in {
				require.Empty(t, w.get(x.ID).BatchLeader)
			}
		})
	}
}

// Orders that waited for coins, and are then refused together, start again alone: in the
// claim in which they were refused.
func TestW16_WaitedAndRefusedTogetherGoesAlone(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := []chain.Intent{w.submit(w.intent("a", 30*coin)), w.submit(w.intent("b", 31*coin)), w.submit(w.intent("c", 32*coin))}
	require.NoError(t, w.step())
	for _, x := range in {
		require.Equal(t, outgoing.ReasonHotBalance, w.last(x.ID).Reason)
	}
	for range 3 {
		w.fund(w.key(), "BTC", 100*coin)
	}
	w.advance(time.Hour)
	w.signer.fail = []error{fmt.Errorf("%w: limit", chain.ErrRefused)}
	require.NoError(t, w.step())
	w.run(20)
	w.each(in...)
}

// A node that refuses the whole for good: its inputs go back, then each is paid alone.
func TestW16_RejectedTogetherGoesAlone(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	w.client.reject = fmt.Errorf("%w: bytes", chain.ErrRejected)
	in := three(w)
	w.run(40)
	w.each(in...)
	for _, o := range w.heard {
		if o.Intent == "b" && o.State == outgoing.Signed && o.Tx == w.get("a").Attempts[1].Tx {
			require.Zero(t, o.Amount, "what goes back pays nobody")
		}
	}
	require.Len(t, w.get("a").Attempts, 3, "together, back, alone")
	require.Len(t, w.get("b").Attempts, 1)
	w.costs()
}

// An order that can never be built, or makes the whole too dear, goes alone, and
// the others do not wait for it.
func TestW14_TooMuchTogetherGoesAlone(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := []chain.Intent{w.submit(w.intent("a", coin)), w.submit(w.intent("b", 100*coin)), w.submit(w.intent("c", coin))}
	w.run(12)
	w.each(in[0], in[2])
	w.unpaid(in[1])
	require.Equal(t, outgoing.ReasonHotBalance, w.last("b").Reason)
	w.fund(w.key(), "BTC", 100*coin)
	w.run(20)
	w.each(in...)
}

// Where all together are too much, the largest are left out first.
func TestW14_TheLargestIsLeftOut(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	a := w.submit(w.intent("a", coin))
	w.submit(w.intent("large", 100*coin))
	var small []chain.Intent
	for i := range 5 {
		small = append(small, w.submit(w.intent(fmt.Sprint("b", i), coin/2+ledger.Amount(i))))
	}
	_, err := w.Net.Step(w.ctx)
	require.NoError(t, err)
	require.Equal(t, w.get("a").Tx, w.get("b0").Tx)
	require.Equal(t, w.get("a").Tx, w.get("b1").Tx)
	w.run(12)
	w.each(append(small, a)...)
	require.Equal(t, outgoing.ReasonHotBalance, w.last("large").Reason)
}

// A stuck transaction is replaced by a dearer one that pays all the same.
func TestW09_ReplacedTogether(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := three(w)
	require.NoError(t, w.step())
	w.stick()
	w.run(40)
	w.each(in...)
	atts := w.get("c").Attempts
	require.Greater(t, len(atts), 1)
	require.Len(t, w.chain.Transfers(in[2].To), 1)
	for range 5 {
		w.chain.ReviveAll()
		w.run(1)
	}
	w.each(in...)
}

// Somebody else took the coins: nobody was paid, and it is told.
func TestW10_TakenTogetherFailsTogether(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := three(w)
	require.NoError(t, w.step())
	w.chain.MineOnly(w.foreign("a"))
	w.run(12)
	for _, x := range in {
		w.unpaid(x)
		require.Equal(t, outgoing.Failed, w.last(x.ID).State)
	}
	require.Empty(t, w.rows(outgoing.InputReservations.Table))
}

// The coin that paid them is gone for good: each is sent anew, alone.
func TestR03_LostTogetherAreSentAnew(t *testing.T) {
	t.Parallel()
	var w *world
	w = newWorld(t, setup{family: chain.UTXOFamily, noFinality: true, change: func(c *outgoing.Config) {
		c.Source = func(_ context.Context, outpoint string) ([]string, error) { return w.sourceOf(outpoint) }
	}})
	w.chain.Mine(10)
	on := w.deposit(coin)
	w.chain.Mine(10)
	in := []chain.Intent{w.submit(w.intent("a", coin/3)), w.submit(w.intent("b", coin/3))}
	require.NoError(t, w.step())
	require.Equal(t, "a", w.get("b").BatchLeader)
	w.lose(on)
	w.fund(w.key(), "BTC", 5*coin)
	w.idle(20)
	require.Len(t, w.attempts("b"), 1, "it may come back")
	w.spendTwice(on)
	w.run(50)
	require.NotContains(t, w.states("a"), outgoing.Failed)
	for range 4 {
		w.chain.ReviveAll() // old raw transactions come back to haunt us
		w.run(8)
	}
	w.each(in...)
	require.Empty(t, w.get("b").BatchLeader)
}

// A fork takes the transaction out of its block: all of them are told.
func TestR03_UnminedTogether(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := three(w)
	w.run(3)
	require.Equal(t, outgoing.Executed, w.last("b").State)
	_, err := w.chain.Reorg(4)
	require.NoError(t, err)
	require.NoError(t, w.step())
	w.advance(poll)
	require.NoError(t, w.step())
	w.run(14)
	w.each(in...)
	require.Contains(t, w.states("b"), outgoing.Executed)
}

func TestW02_CrashAnywherePaysTogetherOnce(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for _, trouble := range []string{"", "refused", "rejected", "replaced"} {
		t.Run(trouble, func(t *testing.T) {
			t.Parallel()
			var in []chain.Intent
			crashAnywhere(t, setup{family: chain.UTXOFamily}, func(w *world, run func(int)) {
				in = nil
				for i, id := range []string{"a", "b", "c"} {
					x := w.intent(id, ledger.Amount(i+1)*coin)
					for w.die(func() { w.submit(x) }) {
					}
					in = append(in, x)
				}
				switch trouble {
				case "refused":
					w.signer.fail = []error{fmt.Errorf("%w: limit", chain.ErrRefused)}
				case "rejected":
					w.client.reject = fmt.Errorf("%w: bytes", chain.ErrRejected)
				case "replaced":
					run(1)
					w.stick()
				}
				run(40)
			}, func(w *world) { w.each(in...) })
		})
	}
}

// A process of an older version replaces the transaction, by one that pays its own
// order alone: whom it left out is not told that he was paid.
func TestU02_LeftOutByAnOlderVersionStartsAgain(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	three(w)
	require.NoError(t, w.step())
	row := w.rows(outgoing.Attempts.Table)[0]
	v := outgoing.Attempts.Value(row)
	v.Outputs = slices.DeleteFunc(v.Outputs, func(o chain.Output) bool { return o.To == w.to("c") })
	require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "older", Partition: storage.Network(w.gas), Put: []storage.Row{outgoing.Attempts.Row(row.ID, row.Version, time.Time{}, v)},
	}))
	for w.state("a") != outgoing.Final {
		w.run(1)
	}
	require.Equal(t, outgoing.Final, w.state("b"))
	require.NotContains(t, w.states("c"), outgoing.Final)
	require.Empty(t, w.get("c").BatchLeader)
	require.NotEqual(t, w.get("b").Tx, w.get("c").Tx)
}

// many are ten orders whose coins bear no other choice than one input each.
func many(t *testing.T, change func(*outgoing.Config)) (*world, []chain.Intent) {
	w := newWorld(t, setup{family: chain.UTXOFamily, change: change})
	for range 12 {
		w.fund(w.key(), "BTC", coin)
	}
	w.chain.SetFeeLevel(50) // what change may leave to the miner is little against it
	var in []chain.Intent
	for i := range 10 {
		in = append(in, w.intent(fmt.Sprint("n", i), coin*9/10))
	}
	return w, in
}

// What gives the inputs of many orders back may cost what all of them may.
func TestW16_ManyInputsGoBack(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("%w: limit", chain.ErrRefused)
	for name, trouble := range map[string]func(w *world){
		"rejected":           func(w *world) { w.client.reject = fmt.Errorf("%w: bytes", chain.ErrRejected) },
		"refused after sign": func(w *world) { w.signer.lose, w.signer.fail = 1, []error{nil, refused} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, in := many(t, nil)
			fee, err := w.client.EstimateFee(w.ctx, in[0])
			require.NoError(t, err)
			for i := range in {
				in[i].MaxCost = 2 * fee.Max
				w.submit(in[i])
			}
			trouble(w)
			w.run(200)
			w.each(in...)
		})
	}
}

// Together they may cost what each may, and no more; what is too much together is
// paid in smaller parts.
func TestW14_CostsTogether(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(c *outgoing.Config, one ledger.Amount)
		txs    [2]int // at least, at most
	}{
		"each has its share":          {func(*outgoing.Config, ledger.Amount) {}, [2]int{1, 1}},
		"above the host's bound":      {func(c *outgoing.Config, one ledger.Amount) { c.MaxFee = 3 * one }, [2]int{3, 10}},
		"above the operator's float":  {func(c *outgoing.Config, one ledger.Amount) { c.CheckGasBudget = bears(3 * one) }, [2]int{3, 10}},
		"the float bears one at most": {func(c *outgoing.Config, one ledger.Amount) { c.CheckGasBudget = bears(one) }, [2]int{10, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			probe, x := many(t, nil)
			fee, err := probe.client.EstimateFee(probe.ctx, x[0])
			require.NoError(t, err)
			w, in := many(t, func(cfg *outgoing.Config) { c.change(cfg, fee.Max) })
			for i := range in {
				in[i].MaxCost = 2 * fee.Max
				w.submit(in[i])
			}
			w.run(30)
			w.each(in...)
			require.GreaterOrEqual(t, len(w.client.sent), c.txs[0])
			require.LessOrEqual(t, len(w.client.sent), c.txs[1])
		})
	}
}

func bears(most ledger.Amount) func(context.Context, chain.Intent, ledger.Amount) (bool, error) {
	return func(_ context.Context, _ chain.Intent, more ledger.Amount) (bool, error) { return more <= most, nil }
}

// The float is asked for what the replacement of many takes beyond what they have.
func TestW14_FloatOfAReplacementOfMany(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked ledger.Amount
	w, in := many(t, func(c *outgoing.Config) {
		c.CheckGasBudget = func(_ context.Context, _ chain.Intent, more ledger.Amount) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			asked = max(asked, more)
			return true, nil
		}
	})
	for i := range in {
		w.submit(in[i])
	}
	require.NoError(t, w.step())
	before, err := w.Net.InFlight(w.ctx, "")
	require.NoError(t, err)
	w.chain.SetFeeLevel(500)
	after := before
	for range 40 {
		mu.Lock()
		asked = 0
		mu.Unlock()
		require.NoError(t, w.step())
		w.advance(time.Minute)
		now, err := w.Net.InFlight(w.ctx, "")
		require.NoError(t, err)
		require.GreaterOrEqual(t, asked, now-after)
		after = now
	}
	require.Greater(t, after, before)
}

// TestHaltsAreReadWhereSomethingIsSent: while three that are paid together wait in the
// mempool, and nothing is to be sent, no poll reads what may halt them.
func TestHaltsAreReadWhereSomethingIsSent(t *testing.T) {
	t.Parallel()
	asked, halted := 0, ""
	w := funded(t, setup{family: chain.UTXOFamily, change: func(c *outgoing.Config) {
		c.Halted = func(context.Context, chain.Intent) (string, error) { asked++; return halted, nil }
	}})
	in := three(w)
	w.stickAll()
	require.NoError(t, w.step())
	w.advance(poll)
	require.NoError(t, w.step())
	sent := len(w.client.sent)
	before := asked
	for range 10 {
		w.advance(poll)
		require.NoError(t, w.step())
	}
	require.Equal(t, before, asked, "nothing is sent")
	require.Len(t, w.client.sent, sent)

	halted = "stop"
	w.advance(10 * time.Minute)
	require.NoError(t, w.step())
	require.Greater(t, asked, before)
	require.Len(t, w.client.sent, sent, "it is not sent again while it is halted")
	halted = ""
	w.advance(poll)
	require.NoError(t, w.step())
	require.Greater(t, len(w.client.sent), sent)
	w.chain.SetFeeLevel(0)
	w.run(40)
	w.each(in...)
}

// The host holds one of them back, or what it goes by has changed.
func TestHaltedIsNotCarried(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	halted, guarded := "b", ""
	set := func(h, g string) {
		mu.Lock()
		defer mu.Unlock()
		halted, guarded = h, g
	}
	w := funded(t, setup{family: chain.UTXOFamily, change: func(c *outgoing.Config) {
		c.Halted = func(_ context.Context, in chain.Intent) (string, error) {
			mu.Lock()
			defer mu.Unlock()
			if in.ID == halted {
				return "frozen", nil
			}
			return "", nil
		}
		c.Guards = func(_ context.Context, in chain.Intent) ([]storage.Guard, error) {
			mu.Lock()
			defer mu.Unlock()
			if in.ID == guarded { // read before somebody changed it
				return []storage.Guard{outgoing.Outcomes.Guard("halts", 7)}, nil
			}
			return nil, nil
		}
	}})
	in := three(w)
	require.NoError(t, w.step())
	require.Equal(t, "a", w.get("c").BatchLeader)
	require.Empty(t, w.get("b").BatchLeader)
	require.Equal(t, outgoing.ReasonHalted, w.last("b").Reason)
	w.stick()
	set("c", "")
	calls := w.signer.calls
	w.run(5)
	require.Equal(t, calls+1, w.signer.calls, "b alone: no dearer one is signed that pays c, which is halted")
	set("", "")
	w.run(40)
	w.each(in...)

	d, e := w.submit(w.intent("d", coin)), w.submit(w.intent("e", coin))
	set("", "e")
	w.run(4)
	w.paid(d)
	w.unpaid(e)
	set("", "")
	w.run(20)
	w.each(d, e)
	require.Empty(t, w.get("e").BatchLeader)
}

// One that can never be built does not keep the others apart.
func TestW14_OneThatCannotBePaidLeavesTheRestTogether(t *testing.T) {
	t.Parallel()
	w, in := many(t, nil)
	in[4].Amount = 1 // dust
	for i := range in {
		w.submit(in[i])
	}
	w.run(20)
	w.unpaid(in[4])
	require.Equal(t, outgoing.Failed, w.state(in[4].ID))
	w.each(append(in[:4:4], in[5:]...)...)
}

// What a client leaves out of a transaction is seen before it is signed.
func TestW15_BuiltWithoutAPaymentIsNotSigned(t *testing.T) {
	t.Parallel()
	for name, bend := range map[string]func(*chain.Order){
		"left out": func(o *chain.Order) { o.Also = o.Also[:max(0, len(o.Also)-1)] },
		"twice":    func(o *chain.Order) { o.Also = append(o.Also, o.Also...) },
		"amount": func(o *chain.Order) {
			if o.Also = slices.Clone(o.Also); len(o.Also) > 0 {
				o.Also[0].Amount--
			}
		},
	} {
		w := bent(t, chain.UTXOFamily, bend)
		in := three(w)
		w.run(20)
		w.each(in...)
		require.Len(t, w.client.sent, 3, "%s: each alone", name)
	}
}

// Those that are carried are fenced from the Change that reserves on, and what
// they were told stays with them.
func TestCarriedRowsAreWritten(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := three(w)
	w.signer.fail = []error{errAway}
	_ = w.step()
	row := func(id string) (v outgoing.IntentRow, due time.Time) {
		v, r, _, err := outgoing.Intents.One(w.ctx, w.store, storage.Network(w.gas), id)
		require.NoError(t, err)
		return v, r.Due
	}
	_, due := row("c")
	require.True(t, due.IsZero(), "nobody else starts it")
	w.run(3)
	v, _ := row("c")
	require.True(t, v.ExecutedReported, "it was told that it is executed")
	require.Equal(t, w.last("a").Confirmations, w.last("c").Confirmations)
	require.Positive(t, w.last("c").Confirmations)
	w.run(12)
	w.each(in...)
	v, due = row("c")
	require.True(t, due.IsZero())
	require.Equal(t, outgoing.Final, v.State)
}

// More of them than one question to the store answers.
func TestPaidTogetherByHundreds(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	w := newWorld(t, setup{family: chain.UTXOFamily, change: func(c *outgoing.Config) { c.MaxPayments, c.Batch = 300, 1000 }})
	for range 3 {
		w.fund(w.key(), "BTC", 5*coin)
	}
	var in []chain.Intent
	for i := range 700 {
		x := w.intent(fmt.Sprintf("n%03d", i), coin/100)
		in = append(in, w.submit(x))
	}
	w.run(12)
	w.each(in...)
	require.Len(t, w.client.sent, 3)
}

// busyOnce is a store whose partition another process has locked when one Change comes
// that does not wait, as often as it is sent.
type busyOnce struct {
	storage.Store
	op  string // how the Change's id starts
	met int
}

func (s *busyOnce) Commit(ctx context.Context, all ...storage.Change) []error {
	errs := make([]error, len(all))
	var rest []storage.Change
	var at []int
	for i, c := range all {
		if s.met < 3 && c.NoWait && strings.HasPrefix(c.ID, s.op) {
			s.met++
			errs[i] = storage.ErrBusy
			continue
		}
		rest, at = append(rest, c), append(at, i)
	}
	if len(rest) > 0 {
		for i, err := range s.Store.Commit(ctx, rest...) {
			errs[at[i]] = err
		}
	}
	return errs
}

// C05: the partition was locked when an order reserved its coins. It is tried again by
// itself, unless another order's transaction pays it by then.
func TestC05_BusyOrderIsPaidTogetherOrAloneNotBoth(t *testing.T) {
	t.Parallel()
	for _, family := range []chain.Family{chain.AccountFamily, chain.UTXOFamily} {
		for _, busy := range []string{"a", "b", "c"} {
			t.Run(string(family)+"/"+busy, func(t *testing.T) {
				t.Parallel()
				w := funded(t, setup{family: family})
				busy := &busyOnce{Store: w.store, op: "out/reserve/" + busy + "/"}
				w.store = busy
				w.restart()
				in := three(w)
				w.run(14)
				if family == chain.AccountFamily || busy.op == "out/reserve/a/" { // who is carried reserves nothing
					require.Equal(t, 3, busy.met)
				}
				w.each(in...)
				for _, x := range in {
					require.Equal(t, []outgoing.State{outgoing.Signed, outgoing.Executed, outgoing.Final}, compact(w.states(x.ID)), x.ID)
				}
			})
		}
	}
}

// C05: whatever a process believes of an order that another one's transaction pays, the
// store refuses to reserve coins for it.
func TestC05_CarriedOrderReservesNothing(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := three(w)
	w.signer.fail = []error{errAway}
	_ = w.step()
	require.True(t, w.get("b").Signing)
	_, row, _, err := outgoing.Intents.One(w.ctx, w.store, storage.Network("BTC"), "b")
	require.NoError(t, err)
	row.Due = w.clock()
	require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{ID: "due", Partition: storage.Network("BTC"), Put: []storage.Row{row}}))
	w.run(14)
	w.each(in...)
	require.Len(t, w.client.sent, 1)
}

// C05: the partition was locked when a node had refused what was signed and stored a moment
// ago. That is on its way for all we know: it is not started once more.
func TestC05_BusyOrderThatWasSignedIsNotStartedAgain(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		busy := &busyOnce{Store: w.store, op: "out/rejected/a/"}
		w.store = busy
		w.restart()
		w.client.reject = fmt.Errorf("%w: bytes", chain.ErrRejected)
		in := w.submit(w.intent("a", coin))
		w.run(30)
		require.Equal(t, 3, busy.met)
		require.Len(t, w.attempts("a"), 1)
		w.each(in)
	})
}

// TestFT06_RejectedTogetherAndCalledOff: a node refuses what pays three, its inputs are on their
// way back, and an operator calls the first of them off. The others are paid alone, and that one
// is not: nobody is told that it is being cancelled when it is not.
func TestFT06_RejectedTogetherAndCalledOff(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	w.client.reject = fmt.Errorf("%w: bytes", chain.ErrRejected)
	in := three(w)
	require.NoError(t, w.step())
	require.Equal(t, outgoing.Signed, w.state("a"))
	cancel := func(id string) error {
		_, _, err := w.Net.CancelTransaction(w.ctx, "a", &outgoing.Recorded{ID: id, Op: outgoing.Operation{At: w.Net.Now(), Kind: outgoing.OpCancel, Object: "a", By: "ann", Reason: "a mistake"}})
		return err
	}
	require.NoError(t, cancel("once"))
	require.ErrorIs(t, cancel("twice"), outgoing.ErrHelp)
	w.run(40)
	require.Equal(t, outgoing.Failed, w.state("a"))
	w.unpaid(in[0])
	w.each(in[1:]...)
	w.costs()
}
