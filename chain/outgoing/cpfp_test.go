package outgoing_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

var firstSeen = setup{family: chain.UTXOFamily, firstSeen: true}

// stuckOnNodes is a world with an order that nodes keep and do not mine, and take no
// replacement of.
func stuckOnNodes(t *testing.T, change func(*outgoing.Config)) (*world, chain.Intent) {
	s := firstSeen
	s.change = change
	w := funded(t, s)
	in := w.submit(w.intent("a", coin))
	require.NoError(t, w.step())
	w.stick()
	return w, in
}

// until lets rounds go by until something holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for range 60 {
		if holds() {
			return
		}
		w.run(1)
	}
	require.Fail(w.t, "it never came", what)
}

func (w *world) child() outgoing.View {
	v, _, err := w.Net.Get(w.ctx, outgoing.ID{Kind: outgoing.OrderChild, For: "a"}.String())
	require.NoError(w.t, err)
	return v
}

// childless demands that nobody ever helped an intent.
func (w *world) childless(id string) {
	w.t.Helper()
	_, born, err := w.Net.Get(w.ctx, outgoing.ID{Kind: outgoing.OrderChild, For: id}.String())
	require.NoError(w.t, err)
	require.False(w.t, born)
}

// childIs waits for the child to be in a state.
func (w *world) childIs(s outgoing.State) {
	w.t.Helper()
	w.until("a child that is "+string(s), func() bool { return w.child().State == s })
}

func TestW03_ChildPaysForWhatCannotBeReplaced(t *testing.T) {
	t.Parallel()
	w, in := stuckOnNodes(t, nil)
	w.childIs(outgoing.Signed)
	first, child := w.attempts("a")[0], w.child()
	require.Len(t, w.attempts("a"), 2, "a replacement was tried before")
	require.ElementsMatch(t, []string{first.Tx, child.Tx}, w.chain.Mempool())
	w.run(14)
	w.each(in)
	require.Equal(t, first.Tx, w.last("a").CostTx)
	require.Equal(t, outgoing.Final, w.state(child.Intent.ID))
	require.NotContains(t, w.states(child.Intent.ID), outgoing.Executed, "it is nobody's payment")
	cost := w.last("a").Cost + w.last(child.Intent.ID).Cost
	require.LessOrEqual(t, cost, in.MaxCost, "both are bounded by what the order may cost")
	require.Greater(t, w.last(child.Intent.ID).Cost, 50*w.last("a").Cost, "it paid for both")
	own, _, _, err := outgoing.Attempts.One(w.ctx, w.store, storage.Network("BTC"), child.Tx)
	require.NoError(t, err)
	require.Equal(t, outgoing.CoinSpent, w.coinState(own.Spends[0]), "what the parent returned")
	require.Equal(t, outgoing.CoinFree, w.coinState(child.Tx+":0"), "what the child returned")
	next := w.submit(w.intent("b", 15*coin))
	w.chain.SetFeeLevel(0)
	w.run(14)
	w.each(in, next)
}

// A child's coin is spent by nobody else, and what it pays itself is no deposit.
func TestW06_ChildsCoinIsNobodyElses(t *testing.T) {
	t.Parallel()
	w, in := stuckOnNodes(t, nil)
	w.childIs(outgoing.Signed)
	row, _, _, err := outgoing.Attempts.One(w.ctx, w.store, storage.Network("BTC"), w.child().Tx)
	require.NoError(t, err)
	require.Equal(t, outgoing.CoinUnmined, w.coinState(row.Spends[0]))
	all := w.intent("all", 0)
	all.Purpose, all.All = chain.ForSweep, true
	w.submit(all)
	require.NoError(t, w.step())
	require.NotContains(t, w.spends("all")[0], row.Spends[0])
	w.run(14)
	for _, x := range w.chain.Transfers("") {
		if x.Tx != w.child().Tx {
			continue
		}
		internal, _, err := w.Net.Internal(w.ctx, "BTC", []chain.Transfer{x})
		require.NoError(t, err)
		require.Equal(t, []bool{true}, internal)
	}
	w.paid(in)
}

// Children of orders that are paid together help them all.
func TestW03_ChildOfOrdersPaidTogether(t *testing.T) {
	t.Parallel()
	w := funded(t, firstSeen)
	in := three(w)
	require.NoError(t, w.step())
	w.stick()
	w.childIs(outgoing.Signed)
	require.LessOrEqual(t, w.child().Intent.MaxCost, in[0].MaxCost, "those it carries settle for themselves")
	w.run(14)
	w.each(in...)
	require.Equal(t, outgoing.Final, w.child().State)
	for _, id := range []string{"b", "c"} {
		w.childless(id)
	}
}

// What becomes of a child whose parent goes another way.
func TestW03_ChildThatIsNotNeeded(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("%w: limit", chain.ErrRefused)
	alone := func(w *world) {
		tx := w.attempts("a")[0].Tx
		w.chain.SetFeeLevel(0)
		w.chain.MineOnly(tx)
		w.run(12)
		require.Equal(w.t, outgoing.Final, w.state("a"))
		require.NotEqual(w.t, outgoing.Final, w.child().State)
	}
	for name, c := range map[string]struct {
		fail error // of the signer, while the child is new
		then func(w *world)
		want outgoing.State
	}{
		"the parent alone, signer away": {errAway, alone, outgoing.Final}, // it may have bound the coin to the child
		"the parent alone, refused":     {refused, alone, outgoing.Cancelled},
		"the parent alone, child sent": {nil, func(w *world) {
			tx := w.attempts("a")[0].Tx
			w.chain.SetFeeLevel(0)
			w.chain.MineOnly(tx)
			w.idle(12)
			require.Equal(w.t, outgoing.Final, w.state("a"))
			require.Equal(w.t, outgoing.CoinReserved, w.coinState(tx+":"+w.place()), "a coin now, and the child's")
		}, outgoing.Final},
		"its rival, signer away": {errAway, rival, outgoing.Failed},
		"its rival, refused":     {refused, rival, outgoing.Failed},
		"its rival, child sent":  {nil, rival, outgoing.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, in := stuckOnNodes(t, nil)
			if c.fail != nil {
				w.until("a replacement", func() bool { return len(w.attempts("a")) == 2 })
				w.signer.fail = slices.Repeat([]error{c.fail}, 1000)
				w.childIs(outgoing.Waiting)
				require.Equal(t, outgoing.ReasonSigner, w.child().Reason)
			} else {
				w.childIs(outgoing.Signed)
			}
			c.then(w)
			w.signer.fail = nil
			w.run(40)
			w.each(in)
			require.Equal(t, c.want, w.child().State)
			if c.want == outgoing.Failed {
				require.Equal(t, outgoing.Failed, w.last(outgoing.ID{Kind: outgoing.OrderChild, For: "a"}.String()).State)
				for _, a := range w.child().Attempts {
					require.Equal(t, outgoing.Dead, a.Fate)
				}
				for _, r := range w.rows(outgoing.Coins.Table) {
					require.NotContains(t, r.ID, w.attempts("a")[0].Tx, "it never was a coin")
				}
			}
		})
	}
}

// TestK05_ChildsCoinThatASignerBoundIsItsOwn: a signer has signed the child, was not heard,
// and refuses from then on. Nobody else may have the coin, so the child gets it back.
func TestK05_ChildsCoinThatASignerBoundIsItsOwn(t *testing.T) {
	t.Parallel()
	w, in := stuckOnNodes(t, nil)
	w.until("a replacement", func() bool { return len(w.attempts("a")) == 2 })
	w.signer.lose, w.signer.fail = 1, append([]error{nil}, slices.Repeat([]error{fmt.Errorf("%w: limit", chain.ErrRefused)}, 1000)...)
	w.until("that the signer was asked", func() bool { return len(w.signer.fail) < 999 })
	w.chain.SetFeeLevel(0)
	w.chain.MineOnly(w.attempts("a")[0].Tx)
	w.run(20)
	require.Equal(t, outgoing.Final, w.state("a"))
	require.Equal(t, outgoing.Waiting, w.child().State)
	w.signer.fail = nil
	w.run(20)
	require.Equal(t, outgoing.Final, w.child().State)
	next := w.submit(w.intent("b", 15*coin))
	w.run(20)
	w.each(in, next)
}

// rival lets the dearer transaction into a block after all.
func rival(w *world) {
	if atts := w.attempts("a"); len(atts) > 1 {
		w.chain.Drop(atts[0].Tx)
		_ = w.chain.Resend(atts[1].Tx) // the first may have landed in the meantime
		w.chain.MineOnly(atts[1].Tx)
	}
}

// place is the index of the output that the child spends.
func (w *world) place() string {
	row, _, _, err := outgoing.Attempts.One(w.ctx, w.store, storage.Network("BTC"), w.child().Tx)
	require.NoError(w.t, err)
	_, at, _ := strings.Cut(row.Spends[0], ":")
	return at
}

// A child of which no signer has heard ends with its parent, and its coin is free.
func TestW17_ChildNobodySawIsCalledOff(t *testing.T) {
	t.Parallel()
	var halted bool
	w, in := stuckOnNodes(t, func(c *outgoing.Config) {
		c.Halted = func(_ context.Context, in chain.Intent) (string, error) {
			if halted && (outgoing.ParseID(in.ID).Kind == outgoing.OrderChild) {
				return "by hand", nil
			}
			return "", nil
		}
	})
	halted = true
	w.childIs(outgoing.Waiting)
	require.Equal(t, outgoing.ReasonHalted, w.child().Reason)
	cancelled, err := w.Net.Cancel(w.ctx, outgoing.ID{Kind: outgoing.OrderChild, For: "a"}.String())
	require.NoError(t, err)
	require.False(t, cancelled, "it is nobody's to cancel")
	w.chain.SetFeeLevel(0)
	w.run(20)
	w.each(in)
	require.Equal(t, outgoing.Cancelled, w.child().State)
	halted = false
	w.run(5)
	next := w.submit(w.intent("b", 15*coin))
	w.run(14)
	w.each(in, next)
}

// Where a child would cost more than the order may, or has nothing to pay with, there is none.
func TestW14_NoChildThatIsTooDear(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(*chain.Intent){
		"bound":         func(in *chain.Intent) { in.MaxCost = 100_000 },
		"little change": func(in *chain.Intent) { in.Amount = 5*coin - 100_000 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := funded(t, firstSeen)
			in := w.intent("a", coin)
			order(&in)
			w.submit(in)
			require.NoError(t, w.step())
			w.stick()
			w.run(60)
			require.Greater(t, len(w.attempts("a")), 1, "a replacement is affordable")
			w.childless("a")
			w.chain.SetFeeLevel(0)
			w.run(20)
			w.each(in)
		})
	}
}

func TestL01_CrashWhileAChildPaysPaysOnce(t *testing.T) {
	testenv.Sequential(t)
	t.Parallel()
	for name, end := range map[string]func(w *world){
		"lands": func(*world) {},
		"rival": rival,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var in chain.Intent
			crashAnywhere(t, firstSeen, func(w *world, run func(int)) {
				for again := true; again; {
					again = w.die(func() { in = w.submit(w.intent("a", coin)) })
				}
				w.die(func() { _ = w.step() })
				w.stick()
				run(26)
				end(w)
				run(20)
			}, func(w *world) {
				w.each(in)
			})
		})
	}
}

// A process that goes on after a Change of a child's of which it heard nothing, or a
// signer that refuses it, or does not answer.
func TestW02_UnheardCommitOfAChild(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("%w: limit", chain.ErrRefused)
	for name, fails := range map[string][]error{
		"": nil, "refused": {refused}, "away": {errAway, errAway}, "refused later": {errAway, refused},
	} {
		for _, does := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " ", does), func(t *testing.T) {
				t.Parallel()
				for at := 1; ; at += stride() {
					deaf := &deafStore{at: 1 << 30, does: does}
					w, in := stuckOnNodes(t, func(c *outgoing.Config) {
						if deaf.Store == nil {
							deaf.Store = c.Store
						}
						c.Store = deaf
					})
					w.until("a replacement", func() bool { return len(w.attempts("a")) == 2 })
					deaf.at, deaf.seen = at, 0
					w.signer.fail = fails
					w.run(60)
					w.each(in)
					require.Equal(t, outgoing.Final, w.child().State)
					if t.Failed() || deaf.lost == "" {
						require.Greater(t, at, 5)
						return
					}
				}
			})
		}
	}
}

// TestW03_ReplacementIsTriedFirst: where nodes take replacements there are no children.
func TestW03_ReplacementIsTriedFirst(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := w.submit(w.intent("a", coin))
	require.NoError(t, w.step())
	w.stickAll()
	w.run(60)
	require.Greater(t, len(w.attempts("a")), 3)
	w.childless("a")
	w.chain.SetFeeLevel(0)
	w.run(14)
	w.each(in)
}

// TestW03_ReplacementNobodyHeardIsSentFirst: a process that was away since it stored a
// replacement does not know yet whether nodes take it.
func TestW03_ReplacementNobodyHeardIsSentFirst(t *testing.T) {
	t.Parallel()
	w := funded(t, setup{family: chain.UTXOFamily})
	in := w.submit(w.intent("a", coin))
	require.NoError(t, w.step())
	w.stick()
	for len(w.attempts("a")) < 2 {
		w.chain.Front().Swallow(1)
		w.advance(time.Minute)
		require.NoError(t, w.step())
	}
	w.advance(2 * stuck)
	require.NoError(t, w.step())
	w.childless("a")
	w.run(20)
	w.each(in)
}

// TestW14_ChildThatHasBecomeTooDear: prices rise after a child is made and before it is
// signed, until what its parent returns pays for no output, or for nothing at all. A coin
// that a signer may have bound to the child waits for it, no other does.
func TestW14_ChildThatHasBecomeTooDear(t *testing.T) {
	t.Parallel()
	refused := fmt.Errorf("%w: limit", chain.ErrRefused)
	for name, c := range map[string]struct {
		fail  []error
		level int64
		want  outgoing.State
	}{
		"dust, unseen":    {[]error{refused}, 796, outgoing.Failed},
		"nothing, unseen": {[]error{refused}, 900, outgoing.Failed},
		"dust, seen":      {[]error{errAway, refused}, 796, outgoing.Waiting},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var halted bool
			s := firstSeen
			s.change = func(c *outgoing.Config) {
				c.Halted = func(_ context.Context, in chain.Intent) (string, error) {
					return map[bool]string{true: "by hand"}[halted && (outgoing.ParseID(in.ID).Kind == outgoing.OrderChild)], nil
				}
			}
			w := funded(t, s)
			in := w.submit(w.intent("a", 5*coin-200_000))
			require.NoError(t, w.step())
			w.stick()
			w.until("a replacement", func() bool { return len(w.attempts("a")) == 2 })
			w.signer.fail = append(c.fail, slices.Repeat([]error{refused}, 1000)...)
			w.until("that the signer was asked", func() bool {
				halted = len(w.signer.fail) <= 1000
				return halted
			})
			w.signer.fail = nil
			w.chain.SetFeeLevel(c.level)
			halted = false
			w.childIs(c.want)
			w.run(30)
			require.Equal(t, c.want, w.child().State)
			require.Greater(t, len(w.attempts("a")), 2, "replacing goes on")
			w.chain.SetFeeLevel(0)
			w.run(30)
			w.each(in)
			if c.want == outgoing.Waiting {
				require.Equal(t, outgoing.Final, w.child().State)
			}
		})
	}
}

// TestW03_WhereNoChildIsAffordableReplacingGoesOn, and lands once nodes take it.
func TestW03_WhereNoChildIsAffordableReplacingGoesOn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*outgoing.Config){"": nil, "none wanted": func(c *outgoing.Config) { c.DisableCPFP = true }} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := firstSeen
			s.change = change
			w := funded(t, s)
			amount := 5*coin - 90_000 // little comes back
			if change != nil {
				amount = coin
			}
			in := w.submit(w.intent("a", amount))
			require.NoError(t, w.step())
			w.stick()
			w.run(40)
			w.chain.SetFeeLevel(600)
			w.chain.SetFirstSeen(false)
			w.run(60)
			w.each(in)
			w.childless("a")
		})
	}
}

// TestW03_ChildThatNodesTakeNot holds up no replacing.
func TestW03_ChildThatNodesTakeNot(t *testing.T) {
	t.Parallel()
	w, in := stuckOnNodes(t, nil)
	w.childIs(outgoing.Signed)
	for range 90 {
		w.chain.Drop(w.child().Tx)
		w.run(1)
		w.chain.SetFeeLevel(2000)
	}
	require.Greater(t, len(w.attempts("a")), 3)
	w.chain.SetFirstSeen(false)
	w.run(60)
	w.each(in)
}

// TestW03_ChildOfWhatNodesHaveLost: nodes keep the second transaction after all, and it is
// too cheap as well. Its child would be another; that of the first is not made dearer in vain.
func TestW03_ChildOfWhatNodesHaveLost(t *testing.T) {
	t.Parallel()
	w, in := stuckOnNodes(t, nil)
	w.childIs(outgoing.Signed)
	w.chain.SetFeeLevel(2000)
	w.chain.Drop(w.chain.Mempool()...)
	require.NoError(t, w.chain.Resend(w.attempts("a")[1].Tx))
	w.run(60)
	require.Len(t, w.child().Attempts, 1)
	require.Greater(t, len(w.attempts("a")), 3, "replacing goes on")
	w.chain.SetFirstSeen(false)
	w.run(60)
	w.each(in)
	require.Equal(t, outgoing.Failed, w.child().State)
}

// TestW04_ChildOfAChangedTransaction: somebody changes the signature of the parent, or of
// the child, and that is mined.
func TestW04_ChildOfAChangedTransaction(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		of   func(w *world) string
		want outgoing.State
	}{
		"parent": {func(w *world) string { return w.attempts("a")[0].Tx }, outgoing.Failed},
		"child":  {func(w *world) string { return w.child().Tx }, outgoing.Final},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, in := stuckOnNodes(t, nil)
			w.childIs(outgoing.Signed)
			hash, err := w.chain.Malleate(c.of(w))
			require.NoError(t, err)
			w.alien[hash] = true
			w.run(3)
			w.chain.SetFeeLevel(0)
			w.run(40)
			w.paid(in)
			w.sound()
			require.Equal(t, c.want, w.child().State)
			next := w.submit(w.intent("b", 15*coin))
			w.run(20)
			w.paid(next)
			w.sound()
		})
	}
}

// TestR03_ChildOfATransactionThatADeepReorgTook: the parent had landed for good, and its
// rival does in its place.
func TestR03_ChildOfATransactionThatADeepReorgTook(t *testing.T) {
	t.Parallel()
	w, _ := stuckOnNodes(t, nil)
	w.childIs(outgoing.Signed)
	atts := w.attempts("a")
	coin := atts[0].Tx + ":" + w.place()
	w.chain.SetFeeLevel(0)
	w.chain.MineOnly(atts[0].Tx)
	w.idle(12)
	require.Equal(t, outgoing.CoinReserved, w.coinState(coin))
	_, err := w.chain.Reorg(15, atts[0].Tx, w.child().Tx)
	require.NoError(t, err)
	w.mark(coin, outgoing.CoinGone)
	require.NoError(t, w.chain.Resend(atts[1].Tx))
	w.chain.MineOnly(atts[1].Tx)
	w.idle(60)
	require.Equal(t, outgoing.Failed, w.child().State)
	w.sound()
}

// TestW03_DearerChildOfALandedParent pays for itself alone.
func TestW03_DearerChildOfALandedParent(t *testing.T) {
	t.Parallel()
	w, in := stuckOnNodes(t, nil)
	w.childIs(outgoing.Signed)
	w.chain.SetFeeLevel(0)
	w.chain.MineOnly(w.attempts("a")[0].Tx)
	w.idle(12)
	require.Equal(t, outgoing.Final, w.state("a"))
	w.chain.SetFirstSeen(false)
	w.chain.SetFeeLevel(2000)
	w.run(40)
	w.each(in)
	require.Less(t, w.last(outgoing.ID{Kind: outgoing.OrderChild, For: "a"}.String()).Cost, ledger.Amount(2000*141+1000))
	require.Equal(t, outgoing.Final, w.child().State)
}

// TestHaltWhileAChildIsPlannedIsSeen: what must not change while a child is planned.
func TestHaltWhileAChildIsPlannedIsSeen(t *testing.T) {
	t.Parallel()
	halts, halted, version := outgoing.Nonces, "", int64(0) // any table will do for the record of halts
	w, in := stuckOnNodes(t, func(c *outgoing.Config) {
		c.Guards = func(context.Context, chain.Intent) ([]storage.Guard, error) {
			return []storage.Guard{halts.Guard("halts", version)}, nil
		}
		c.Halted = func(context.Context, chain.Intent) (string, error) { return halted, nil }
	})
	change := w.set.change
	w.set.change = func(c *outgoing.Config) {
		change(c)
		c.Client = cancelBuild{w.client, func() {
			if _, born, _ := w.Net.Get(w.ctx, outgoing.ID{Kind: outgoing.OrderChild, For: "a"}.String()); born && version == 0 {
				require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
					ID: "halt", Partition: storage.Network("BTC"), Put: []storage.Row{halts.Row("halts", 0, time.Time{}, outgoing.NonceRow{})},
				}))
				halted, version = "all", 1
			}
		}}
	}
	w.restart()
	w.childIs(outgoing.Waiting)
	require.Equal(t, outgoing.ReasonHalted, w.child().Reason)
	require.Empty(t, w.child().Attempts)
	halted = ""
	w.run(30)
	require.NoError(t, storage.CommitOne(w.ctx, w.store, storage.Change{
		ID: "over", Partition: storage.Network("BTC"), Drop: []storage.Row{{Table: halts.Table, ID: "halts", Version: 1}},
	}))
	w.each(in)
}

// The halt comes while the signer signs a child: the child is not stored until it is lifted.
func TestFT05_HaltWhileAChildIsSigned(t *testing.T) {
	t.Parallel()
	w, in := stuckOnNodes(t, nil)
	halted := false
	w.set.change = func(c *outgoing.Config) {
		c.Signer = cancelDuring{w.signer, func() {
			if _, born, _ := w.Net.Get(w.ctx, outgoing.ID{Kind: outgoing.OrderChild, For: "a"}.String()); born && !halted {
				halted = true
				w.halt(outgoing.Scope{})
			}
		}}
	}
	w.restart()
	w.until("a child that is signed", func() bool { return halted })
	w.run(3)
	require.Empty(t, w.child().Attempts)
	require.Equal(t, outgoing.ReasonHalted, w.child().Reason)
	w.lift(outgoing.Scope{})
	w.run(30)
	w.each(in)
}

// A long id is a child's parent, too.
func TestChildOfALongID(t *testing.T) {
	t.Parallel()
	w := funded(t, firstSeen)
	in := w.intent("a", coin)
	in.ID = strings.Repeat("7", 150)
	w.submit(in)
	require.NoError(t, w.step())
	w.stick()
	w.run(60)
	require.Equal(t, outgoing.Final, w.state(outgoing.ID{Kind: outgoing.OrderChild, For: in.ID}.String()))
	w.each(in)
}

// A child has no child: what that costs would have to pay for the first parent, too.
func TestW03_ChildHasNone(t *testing.T) {
	t.Parallel()
	w, in := stuckOnNodes(t, nil)
	w.childIs(outgoing.Signed)
	w.chain.SetFeeLevel(2000)
	w.run(60)
	require.Greater(t, len(w.child().Attempts), 1)
	w.childless(outgoing.ID{Kind: outgoing.OrderChild, For: "a"}.String())
	w.chain.SetFeeLevel(0)
	w.run(20)
	w.each(in)
}

// A child that has become too cheap itself is replaced, where nodes take that by now.
func TestW03_ChildIsRaisedToo(t *testing.T) {
	t.Parallel()
	w, in := stuckOnNodes(t, nil)
	w.childIs(outgoing.Signed)
	w.chain.SetFeeLevel(2000)
	w.chain.SetFirstSeen(false)
	w.run(30)
	w.each(in)
	require.Greater(t, len(w.child().Attempts), 1)
	require.Equal(t, outgoing.Final, w.child().State)
}

func TestIntentsOfAHostAreNoChildren(t *testing.T) {
	t.Parallel()
	w := funded(t, firstSeen)
	in := w.intent(outgoing.ID{Kind: outgoing.OrderChild, For: "x"}.String(), coin)
	require.ErrorIs(t, w.Net.Submit(w.ctx, in), outgoing.ErrIntent)
}
