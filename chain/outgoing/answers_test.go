package outgoing_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// TestL02_AnswerIsWholeOrAnError: whichever question to the store fails, what a network is
// asked is answered with an error, and never with a part of what is there.
func TestL02_AnswerIsWholeOrAnError(t *testing.T) {
	t.Parallel()
	families(t, func(t *testing.T, w *world) {
		w.set.change = func(c *outgoing.Config) { c.MaxInputs, c.MaxPayments = 3, 2 }
		for range 6 {
			w.fund(w.key(), w.gas, coin)
		}
		f := &failing.Store{Store: w.store}
		w.store = f
		w.restart()
		w.submit(w.intent("settled", coin))
		w.run(20)
		require.Equal(t, outgoing.Final, w.state("settled"))
		for _, id := range []string{"a", "b", "c"} {
			w.submit(w.intent(id, coin))
		}
		_ = w.step()
		require.Equal(t, outgoing.Signed, w.state("a"))
		w.halt(outgoing.Scope{Tenant: "t1"})
		w.submit(w.intent("halted", coin))
		_ = w.step()
		require.Equal(t, outgoing.ReasonHalted, w.get("halted").Reason)
		var renamed []chain.Transfer
		all := w.chain.Transfers("")
		for _, x := range all {
			x.Tx += "x"
			renamed = append(renamed, x)
		}
		renamed = append(renamed, chain.Transfer{Tx: "mined", To: w.hot.Address}) // spends nothing
		asked := map[string]func() (any, error){
			"on its way":       func() (any, error) { return w.Net.OnItsWay(w.ctx, outgoing.Scope{}) },
			"in flight":        func() (any, error) { return w.Net.InFlight(w.ctx, "") },
			"in flight of one": func() (any, error) { return w.Net.InFlight(w.ctx, "t1") },
			"a settled order":  func() (any, error) { v, _, err := w.Net.Get(w.ctx, "settled"); return v, err },
			"an order":         func() (any, error) { v, _, err := w.Net.Get(w.ctx, "b"); return v, err },
			"refusals":         func() (any, error) { return w.Net.Refusals(w.ctx, "settled", "a", "halted") },
			"internal": func() (any, error) {
				out, known, err := w.Net.Internal(w.ctx, chain.Network(w.gas), all)
				return [][]bool{out, known}, err
			},
			"internal, renamed": func() (any, error) {
				out, known, err := w.Net.Internal(w.ctx, chain.Network(w.gas), renamed)
				return [][]bool{out, known}, err
			},
			"sent":               func() (any, error) { return w.Net.Sent(w.ctx, map[chain.Address]uint64{w.hot.Address: 0}) },
			"sent lately":        func() (any, error) { return w.Net.Sent(w.ctx, map[chain.Address]uint64{w.hot.Address: 2}) },
			"cancel":             func() (any, error) { return w.Net.Cancel(w.ctx, "b") },
			"speed up":           func() (any, error) { _, v, err := w.Net.SpeedUp(w.ctx, "a", coin, nil); return v, err },
			"cancel transaction": func() (any, error) { _, v, err := w.Net.CancelTransaction(w.ctx, "halted", nil); return v, err },
			"beyond":             func() (any, error) { return w.Net.Beyond(w.ctx) },
		}
		for name, ask := range asked {
			everyQuestion(t, f, name, ask)
		}
	})
}

// everyQuestion lets each question of an answer fail in turn.
func everyQuestion(t *testing.T, f *failing.Store, name string, ask func() (any, error)) {
	t.Helper()
	f.Calls, f.FailAt = 0, 0
	want, err := ask()
	require.NoError(t, err, name)
	for n, questions := 1, f.Calls; n <= questions; n++ {
		f.Calls, f.FailAt = 0, n
		_, err := ask()
		require.ErrorIs(t, err, failing.ErrGone, "%s: question %d of %d, of %s", name, n, questions, f.Failed.Table.Name)
	}
	f.FailAt = 0
	again, err := ask()
	require.NoError(t, err, name)
	require.Equal(t, want, again, name)
}

// What an order is said to cost is the bound of the transaction that pays it then, however
// many coins it takes, and of its merges.
func TestQuoteIsWhatItCosts(t *testing.T) {
	t.Parallel()
	for _, need := range []int{1, 2, 3, 4, 7, 12} {
		t.Run(fmt.Sprint(need), func(t *testing.T) {
			t.Parallel()
			w := crowded(t, narrow(3), 25)
			f := &failing.Store{Store: w.store}
			w.store = f
			w.restart()
			in := w.intent("a", ledger.Amount(need)*coin-coin/2)
			everyQuestion(t, f, "quote", func() (any, error) {
				fee, merges, err := w.Net.Quote(w.ctx, in)
				return []any{fee, merges}, err
			})
			one, err := w.client.EstimateFee(w.ctx, in)
			require.NoError(t, err)
			fee, merges, err := w.Net.Quote(w.ctx, in)
			require.NoError(t, err)
			nobody := in
			nobody.To = ""
			same, _, err := w.Net.Quote(w.ctx, nobody)
			require.NoError(t, err)
			require.Equal(t, fee, same)
			w.submit(in)
			w.comesTo("a", outgoing.Final)
			bound := w.attempts("a")[0].MaxCost
			var merged ledger.Amount
			for _, r := range w.rows(outgoing.Attempts.Table) {
				if v := outgoing.Attempts.Value(r); outgoing.ParseID(v.Intent).Kind == outgoing.OrderMerge {
					merged += v.MaxCost
				}
			}
			require.Equal(t, merged, merges)
			require.Equal(t, one.Max-one.Cost, fee.Max-fee.Cost)
			if merges == 0 {
				require.Equal(t, bound, fee.Cost)
			} else { // of what the merges will return it is only known how much it is
				require.GreaterOrEqual(t, fee.Cost, bound)
				require.Less(t, fee.Cost, bound+bound/4)
			}
		})
	}
}

// hanging is a client whose node takes a question and does not answer.
type hanging struct{ chain.Client }

func (hanging) EstimateFee(ctx context.Context, _ chain.Intent) (chain.Fee, error) {
	<-ctx.Done()
	return chain.Fee{}, errors.New("the host's client says it in words of its own")
}

// TestFP01_AQuoteOfANodeThatHangs ends by itself, as a failure of the node.
func TestFP01_AQuoteOfANodeThatHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := crowded(t, narrow(3), 4)
		in := w.intent("a", coin)
		w.set.change = func(c *outgoing.Config) { c.Client = hanging{w.client} }
		w.restart()
		_, _, err := w.Net.Quote(t.Context(), in)
		require.ErrorIs(t, err, chain.ErrNode)
		gone, stop := context.WithCancel(t.Context())
		stop()
		_, _, err = w.Net.Quote(gone, in)
		require.Error(t, err)
		require.NotErrorIs(t, err, chain.ErrNode, "the caller's own end says nothing of the node")
	})
}

// What cannot be paid with the coins that are there is said to cost what one coin does: it is
// refused elsewhere.
func TestQuoteOfTooMuchIsThatOfOneCoin(t *testing.T) {
	t.Parallel()
	w := crowded(t, narrow(3), 4)
	one, err := w.client.EstimateFee(w.ctx, w.intent("", coin))
	require.NoError(t, err)
	for _, amount := range []ledger.Amount{1, 4 * coin, 5 * coin} { // dust, without a fee, and more than all
		fee, merges, err := w.Net.Quote(w.ctx, w.intent("", amount))
		require.NoError(t, err)
		require.Equal(t, one, fee, amount)
		require.Zero(t, merges)
	}
	for _, of := range []func(*chain.Intent){
		func(in *chain.Intent) { in.Tenant = "" }, func(in *chain.Intent) { in.Tenant = "t2" }, func(in *chain.Intent) { in.Amount = 0 },
		func(in *chain.Intent) { in.Amount, in.All = 0, true },
	} {
		in := w.intent("", 2*coin)
		of(&in)
		fee, merges, err := w.Net.Quote(w.ctx, in)
		require.NoError(t, err)
		require.Equal(t, one, fee)
		require.Zero(t, merges)
	}
	more, _, err := w.Net.Quote(w.ctx, w.intent("", 2*coin))
	require.NoError(t, err)
	require.Greater(t, more.Cost, one.Cost)
}

// What is listed is all there is, at each number of rows around a page.
func TestAnswersOfManyRows(t *testing.T) {
	t.Parallel()
	for _, rows := range []int{499, 500, 501, 1000, 1001} {
		w := newWorld(t, setup{})
		addresses := map[chain.Address]uint64{}
		for i := range rows {
			in := w.intent(fmt.Sprint("n", i), coin)
			in.From = w.to(fmt.Sprint(i))
			addresses[in.From] = 0
			w.submit(in)
		}
		var c storage.Change
		for i, r := range w.rows(outgoing.Intents.Table) {
			v := outgoing.Intents.Value(r)
			if v.Reserved = 1; i > 0 {
				v.State = outgoing.Signed
			}
			a := outgoing.AttemptRow{Intent: r.ID, Number: 1, State: outgoing.Open}
			c.Put = append(c.Put, outgoing.Intents.Row(r.ID, r.Version, time.Time{}, v), outgoing.Attempts.Row("tx/"+r.ID, 0, time.Time{}, a))
		}
		c.ID, c.Partition = "signed", storage.Network(w.gas)
		require.NoError(t, storage.CommitOne(w.ctx, w.store, c))
		sum, err := w.Net.InFlight(w.ctx, "t1")
		require.NoError(t, err)
		require.EqualValues(t, rows, sum)
		way, err := w.Net.OnItsWay(w.ctx, outgoing.Scope{})
		require.NoError(t, err)
		require.Len(t, way, rows-1)
		for _, o := range way {
			require.Equal(t, []string{"tx/" + o.Intent}, o.Txs)
		}
		sent, err := w.Net.Sent(w.ctx, addresses)
		require.NoError(t, err)
		require.Len(t, sent, rows)
	}
}
