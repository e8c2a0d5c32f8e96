package outgoing_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// deposit brings one coin from a customer who can send it elsewhere later, and
// returns its outpoint.
func (w *world) deposit(amount ledger.Amount) (outpoint string) {
	w.t.Helper()
	cur, err := w.reg.Currency("BTC")
	require.NoError(w.t, err)
	d := w.key()
	tx, err := w.chain.Fund(d.Address, "BTC", cur.Decimal(amount))
	require.NoError(w.t, err)
	w.coin(d, tx+":0", amount)
	for _, x := range w.chain.Transfers(d.Address) {
		w.made[tx+":0"] = x.Spends
	}
	return tx + ":0"
}

// mark is what whoever reads the chain says of a coin.
func (w *world) mark(outpoint string, to outgoing.CoinState) {
	w.t.Helper()
	c, row, ok, err := outgoing.Coins.One(w.ctx, w.store, storage.Network("BTC"), outpoint)
	require.NoError(w.t, err)
	require.True(w.t, ok)
	c.State = to
	require.NoError(w.t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: fmt.Sprintf("mark/%s/%d", outpoint, row.Version), Partition: storage.Network("BTC"),
		Put: []storage.Row{outgoing.Coins.Row(outpoint, row.Version, time.Time{}, c)},
	}))
}

// lose takes coins away in a deep reorg; no transaction of ours waits after it.
func (w *world) lose(outpoints ...string) {
	w.t.Helper()
	drop := w.chain.Transactions(true)
	for _, o := range outpoints {
		drop = append(drop, strings.TrimSuffix(o, ":0"))
	}
	_, err := w.chain.Reorg(20, drop...)
	require.NoError(w.t, err)
	w.chain.Mine(1)
	for _, o := range outpoints {
		w.mark(o, outgoing.CoinGone)
	}
}

// regain has a lost coin mined again.
func (w *world) regain(outpoint string) {
	w.t.Helper()
	tx := strings.TrimSuffix(outpoint, ":0")
	require.NoError(w.t, w.chain.Resend(tx))
	w.chain.MineOnly(tx)
	w.mark(outpoint, outgoing.CoinReserved)
}

// spends lists what each attempt of an intent spends, in order.
func (w *world) spends(id string) (out [][]string) {
	for _, a := range w.attempts(id) {
		row, _, _, err := outgoing.Attempts.One(w.ctx, w.store, storage.Network("BTC"), a.Tx)
		require.NoError(w.t, err)
		out = append(out, row.Spends)
	}
	return out
}

func (w *world) coinState(outpoint string) outgoing.CoinState {
	c, _, _, err := outgoing.Coins.One(w.ctx, w.store, storage.Network("BTC"), outpoint)
	require.NoError(w.t, err)
	return c.State
}

// losing is a world with an order that is signed on coins of one each and in no
// block.
func losing(t *testing.T, coins int, change func(*outgoing.Config)) (w *world, in chain.Intent, on []string) {
	w = newWorld(t, setup{family: chain.UTXOFamily, noFinality: true, change: change})
	w.chain.Mine(10)
	for range coins {
		on = append(on, w.deposit(coin))
	}
	w.chain.Mine(10)
	in = w.submit(w.intent("a", ledger.Amount(coins)*coin-coin/2))
	require.NoError(t, w.step())
	require.Len(t, w.spends("a")[0], coins)
	return w, in, on
}

// idle lets time go by without a block that has anything in it.
func (w *world) idle(rounds int) {
	w.t.Helper()
	for range rounds {
		require.NoError(w.t, w.step())
		w.chain.Drop(w.chain.Mempool()...)
		w.chain.Mine(1)
		w.advance(time.Minute)
	}
}

// over demands that the order was paid once, and that nobody is held up by it.
func (w *world) over(in chain.Intent) {
	w.t.Helper()
	for range 4 {
		w.chain.ReviveAll() // old raw transactions come back to haunt us
		w.run(8)
	}
	require.Equal(w.t, outgoing.Final, w.state(in.ID))
	w.paid(in)
	w.sound()
}

// A deep reorg takes one of two coins away: the order goes on with another one
// beside the coin that is left, so that only one of the two can land, also where
// the lost coin comes back.
func TestR03_LostCoinIsReplacedBesideOneThatIsLeft(t *testing.T) {
	t.Parallel()
	for back := range 6 {
		t.Run(fmt.Sprint(back), func(t *testing.T) {
			t.Parallel()
			w, in, on := losing(t, 2, nil)
			w.lose(on[0])
			w.fund(w.key(), "BTC", coin)
			w.idle(8)
			require.Len(t, w.attempts("a"), 1, "not before it is stuck")
			w.idle(4)
			all := w.spends("a")
			require.Len(t, all, 2)
			require.NotContains(t, all[1], on[0])
			require.Contains(t, all[1], on[1])
			require.Len(t, all[1], 2)
			if back > 0 {
				w.regain(on[0])
				if back%2 == 0 {
					require.NoError(t, w.chain.Resend(w.attempts("a")[0].Tx))
				}
			}
			w.over(in)
			// What was signed and not spent goes to nobody else.
			landed := w.spends("a")[slices.IndexFunc(w.attempts("a"), func(a outgoing.AttemptView) bool { return a.Fate == outgoing.AttemptFinal })]
			for _, o := range slices.Concat(w.spends("a")...) {
				switch {
				case slices.Contains(landed, o):
					require.Equal(t, outgoing.CoinSpent, w.coinState(o))
				case back == 0:
					require.Equal(t, outgoing.CoinGone, w.coinState(o))
				default:
					require.Equal(t, outgoing.CoinDisputed, w.coinState(o))
				}
			}
			other := w.submit(w.intent("b", coin/10))
			w.fund(w.key(), "BTC", coin)
			w.run(10)
			w.paid(other)
			w.sound()
		})
	}
}

// What is sent in the place of an order's transaction has no more inputs than any other.
func TestR03_ReplacementBesideALostCoinKeepsTheBoundOfInputs(t *testing.T) {
	t.Parallel()
	w, in, on := losing(t, 2, func(c *outgoing.Config) { c.MaxInputs = 2 })
	w.lose(on[0])
	for range 2 {
		w.fund(w.key(), "BTC", coin*2/5) // with on[1], only both are enough
	}
	w.idle(14)
	require.Len(t, w.attempts("a"), 1, "three inputs are too many")
	w.fund(w.key(), "BTC", coin)
	w.idle(14)
	for _, spends := range w.spends("a") {
		require.Len(t, spends, 2)
	}
	require.Greater(t, len(w.attempts("a")), 1)
	w.over(in)
}

// What goes on with fewer coins is smaller and may cost less: nobody has what it
// replaces.
func TestR03_ReplacementOnFewerCoinsMayCostLess(t *testing.T) {
	t.Parallel()
	w, in, on := losing(t, 8, nil)
	w.lose(on[1:]...)
	w.fund(w.key(), "BTC", 20*coin)
	w.idle(12)
	all := w.spends("a")
	require.Len(t, all, 2)
	require.Len(t, all[1], 2)
	require.Contains(t, all[1], on[0])
	w.over(in)
}

// All coins of an order are gone, and nothing says that they never come back:
// nothing is sent in its place, and what was signed lands once they are back.
func TestR03_OrderOfLostCoinsWaits(t *testing.T) {
	t.Parallel()
	w, in, on := losing(t, 2, nil)
	w.lose(on...)
	w.fund(w.key(), "BTC", 5*coin)
	w.run(60)
	require.Len(t, w.attempts("a"), 1)
	require.Equal(t, outgoing.Signed, w.state("a"))
	w.regain(on[0])
	w.regain(on[1])
	w.run(10)
	require.Len(t, w.attempts("a"), 1)
	w.over(in)
}

// The coins that two attempts of an order share are gone, too: a third would
// conflict with neither.
func TestR03_EveryOpenAttemptMustConflict(t *testing.T) {
	t.Parallel()
	w, in, on := losing(t, 2, nil)
	w.lose(on[0])
	w.fund(w.key(), "BTC", coin)
	w.idle(12)
	require.Len(t, w.attempts("a"), 2)
	w.mark(on[1], outgoing.CoinGone) // the first has no coin left, the second has
	w.fund(w.key(), "BTC", 5*coin)
	w.idle(40)
	require.Len(t, w.attempts("a"), 2)
	w.mark(on[1], outgoing.CoinReserved)
	w.over(in)
}

// Of two attempts the one can never land, as its coins never come back, and the
// other has a coin left: a third conflicts with that one alone, and the first
// counts no more.
func TestR03_AttemptOfCoinsThatNeverComeBackCountsNoMore(t *testing.T) {
	t.Parallel()
	var w *world
	w, in, on := losing(t, 2, func(c *outgoing.Config) {
		c.Source = func(_ context.Context, outpoint string) ([]string, error) { return w.sourceOf(outpoint) }
	})
	w.lose(on[0])
	w.spendTwice(on[0])
	w.fund(w.key(), "BTC", coin)
	w.idle(12)
	require.Len(t, w.attempts("a"), 2)
	w.mark(on[1], outgoing.CoinGone)
	w.fund(w.key(), "BTC", 5*coin)
	w.idle(40)
	atts := w.attempts("a")
	require.Greater(t, len(atts), 3, "it is still replaced by dearer ones")
	require.Equal(t, outgoing.Dead, atts[0].Fate)
	require.Equal(t, outgoing.Open, atts[1].Fate)
	require.NotContains(t, w.spends("a")[2], on[1])
	w.over(in)
}

// spendTwice has the customer who paid a coin spend it elsewhere, in a block.
func (w *world) spendTwice(outpoint string) {
	w.t.Helper()
	tx, err := w.chain.Send(sim.Tx{
		Replaces: strings.TrimSuffix(outpoint, ":0"),
		Payments: []sim.Payment{{To: w.to("himself"), Currency: "BTC", Amount: decimal.New(9, -1)}},
	})
	require.NoError(w.t, err)
	w.chain.MineOnly(tx)
}

// The customer spent what made the coin elsewhere, for good: the order can
// never land as it was signed, and is sent anew.
func TestR03_OrderOfACoinThatNeverComesBackIsSentAnew(t *testing.T) {
	t.Parallel()
	for _, reached := range []bool{false, true} {
		t.Run(fmt.Sprint("executed=", reached), func(t *testing.T) {
			t.Parallel()
			var w *world
			var log strings.Builder
			away := false
			w, in, on := losing(t, 1, func(c *outgoing.Config) {
				c.Log = slog.New(slog.NewTextHandler(&log, nil))
				c.Source = func(_ context.Context, outpoint string) ([]string, error) {
					if away {
						return nil, errAway
					}
					return w.sourceOf(outpoint)
				}
			})
			if reached {
				w.run(3)
				require.Equal(t, outgoing.Executed, w.state("a"))
			}
			w.lose(on[0])
			w.fund(w.key(), "BTC", 5*coin)
			w.idle(20)
			require.Len(t, w.attempts("a"), 1, "it may come back")
			w.spendTwice(on[0])
			w.idle(4)
			require.Len(t, w.attempts("a"), 1, "it is not final")
			require.NotContains(t, log.String(), errAway.Error())
			away = true
			w.run(20)
			require.Len(t, w.attempts("a"), 1, "nobody says what made the coin")
			require.Contains(t, log.String(), errAway.Error())
			away = false
			w.run(40)
			require.Len(t, w.attempts("a"), 2)
			require.NotContains(t, w.spends("a")[1], on[0])
			require.Equal(t, outgoing.Dead, w.attempts("a")[0].Fate)
			require.NotContains(t, w.states("a"), outgoing.Failed)
			w.over(in)
		})
	}
}

// A replacement beside a lost coin lacks only its fee: its owner hears that, although merging
// coins would bring it. A replacement has its coins already, and waits for none.
func TestR03_ReplacementOfALostCoinThatLacksItsFee(t *testing.T) {
	t.Parallel()
	w, in, on := losing(t, 2, func(c *outgoing.Config) { c.MaxInputs = 2 })
	w.lose(on[0])
	for range 6 {
		w.fund(w.key(), "BTC", coin/2)
	}
	w.idle(40)
	require.Equal(t, []any{outgoing.Signed, outgoing.ReasonOperatorFunds}, []any{w.last("a").State, w.last("a").Reason})
	require.Len(t, w.attempts("a"), 1)
	w.fund(w.key(), "BTC", coin)
	w.idle(40)
	require.Greater(t, len(w.attempts("a")), 1)
	w.over(in)
}

// sourceOf is what the transaction that made a coin spends.
func (w *world) sourceOf(outpoint string) ([]string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.made[outpoint], nil
}

// A replacement with other coins that a signer refuses gives them back; one that
// it may have signed keeps them.
func TestK05_RefusedReplacementOfALostCoinGivesBackWhatNobodySaw(t *testing.T) {
	t.Parallel()
	for _, seen := range []bool{false, true} {
		t.Run(fmt.Sprint("seen=", seen), func(t *testing.T) {
			t.Parallel()
			w, in, on := losing(t, 2, nil)
			w.lose(on[0])
			spare := w.deposit(coin)
			refused := fmt.Errorf("%w: limit", chain.ErrRefused)
			if w.signer.fail = []error{refused}; seen {
				w.signer.lose, w.signer.fail = 1, []error{nil, refused}
			}
			w.idle(14)
			require.Len(t, w.attempts("a"), 1)
			require.Empty(t, w.signer.fail)
			want := outgoing.CoinFree
			if seen {
				want = outgoing.CoinReserved
			}
			require.Equal(t, want, w.coinState(spare))
			w.over(in)
		})
	}
}

// losses is what deep reorgs have done to customers' coins so far.
type losses struct {
	coins []string
	gone  map[string]bool // and not back, as far as the store was told
}

// strike takes a coin away that nothing in a block spends, brings one back, or
// has its customer spend it elsewhere.
func (l *losses) strike(w *world, r *rand.Rand) {
	o := l.coins[r.IntN(len(l.coins))]
	tx := strings.TrimSuffix(o, ":0")
	switch {
	case !l.gone[o] && !w.spentInBlock(o):
		w.chain.SetFeeLevel(0)
		if _, err := w.chain.Reorg(40, tx); err != nil {
			return
		}
		w.chain.Mine(8) // the rest is in a block again, for good
		if s := w.coinState(o); s == outgoing.CoinFree || s == outgoing.CoinReserved {
			l.gone[o] = true
			w.mark(o, outgoing.CoinGone)
		}
	case l.gone[o] && r.IntN(3) > 0:
		if r.IntN(2) == 0 {
			_ = w.chain.Resend(tx)
			w.chain.Mine(1)
		}
		l.tell(w, o)
	case l.gone[o]:
		twice, err := w.chain.Send(sim.Tx{Replaces: tx, Payments: []sim.Payment{{To: w.to("himself"), Currency: "BTC", Amount: decimal.New(5, -1)}}})
		if err == nil {
			w.chain.MineOnly(twice)
		}
	}
}

// tell has the store know that a coin is back, where it is.
func (l *losses) tell(w *world, o string) {
	st, err := w.chain.Outcome(strings.TrimSuffix(o, ":0"))
	require.NoError(w.t, err)
	c, _, _, err := outgoing.Coins.One(w.ctx, w.store, storage.Network("BTC"), o)
	require.NoError(w.t, err)
	if st.State != chain.Included || c.State != outgoing.CoinGone {
		return
	}
	delete(l.gone, o)
	held, _, ok, err := outgoing.InputReservations.One(w.ctx, w.store, storage.Network("BTC"), o)
	require.NoError(w.t, err)
	switch {
	case c.Intent == "":
		w.mark(o, outgoing.CoinFree)
	case ok && held.Intent == c.Intent:
		w.mark(o, outgoing.CoinReserved)
	default:
		w.mark(o, outgoing.CoinDisputed)
	}
}

func (w *world) spentInBlock(outpoint string) bool {
	for _, r := range w.rows(outgoing.Attempts.Table) {
		if !slices.Contains(outgoing.Attempts.Value(r).Spends, outpoint) {
			continue
		}
		if st, err := w.chain.Outcome(r.ID); err == nil && st.State == chain.Included {
			return true
		}
	}
	return false
}

// Coins come and go in deep reorgs among all the other faults: each order is
// paid once or never, and none is left behind.
func TestR03_NemesisOfLostCoins(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for seed := range uint64(nemesisSeeds) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			var w *world
			w = newWorld(t, setup{family: chain.UTXOFamily, noFinality: true, firstSeen: seed%2 == 1, change: func(c *outgoing.Config) {
				c.Source = func(_ context.Context, outpoint string) ([]string, error) { return w.sourceOf(outpoint) }
			}})
			r := rand.New(rand.NewPCG(seed, 77))
			w.chain.Mine(50)
			l := &losses{gone: map[string]bool{}}
			for range 14 {
				l.coins = append(l.coins, w.deposit(coin/20+ledger.Amount(r.Int64N(int64(coin/10)))))
			}
			w.chain.Mine(10)
			var all []chain.Intent
			for range 160 {
				if r.IntN(4) == 0 {
					l.strike(w, r)
				} else {
					nemesis(w, r, &all)
				}
				w.die(func() { _ = w.step() })
				w.advance(time.Duration(r.IntN(200)) * time.Second)
			}
			w.points.dieAt, w.client.reject, w.signer.fail, w.signer.lose = 0, nil, nil, 0
			w.chain.Front().Honest()
			w.chain.SetFeeLevel(0)
			w.fund(w.key(), "BTC", 20*coin)
			w.run(20)
			for _, o := range l.coins {
				_ = w.chain.Resend(strings.TrimSuffix(o, ":0"))
			}
			w.chain.Mine(1)
			for _, o := range l.coins {
				l.tell(w, o)
			}
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
			}
			w.sound()
		})
	}
}

const nemesisSeeds = 12
