package incoming_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/storage"
)

// Every depth up to past finality, and each way that a transfer can go: back
// into a block at once, later, or never.
func TestR01_EveryDepth(t *testing.T) {
	t.Parallel()
	for depth := 1; depth <= confs+2; depth++ {
		for _, mempool := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d/%t", depth, mempool), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, eth, uint64(depth))
				if !mempool {
					w.net = w.network(w.store, withoutMempool(w.chain.Client()))
				}
				w.step()
				var txs []string
				for range confs + 3 {
					txs = append(txs, w.pay(w.address(), "ETH", "1"))
					w.mine(1)
					w.step()
				}
				before := w.one(txs[len(txs)-depth])
				require.Equal(t, depth >= confs, before.State == incoming.Final)
				_, err := w.chain.Reorg(depth, txs[len(txs)-1], txs[len(txs)-depth])
				require.NoError(t, err)
				w.step()
				dropped := w.one(txs[len(txs)-depth])
				require.Equal(t, incoming.Gone, dropped.State, "in no block and no mempool")
				w.requireBooks()
				w.mine(1)
				w.step()
				for i, tx := range txs {
					s := w.one(tx)
					switch {
					case i < len(txs)-depth:
						require.NotZero(t, s.Height)
					case i == len(txs)-1 || i == len(txs)-depth:
						require.Equal(t, incoming.Gone, s.State)
					default: // moved to another block
						require.Equal(t, w.chain.Height(), s.Height)
						require.Equal(t, w.chain.Head().Hash, s.BlockHash)
					}
				}
				w.requireBooks()
				require.NoError(t, w.chain.Resend(txs[len(txs)-depth]))
				w.mine(confs)
				w.step()
				again := w.one(txs[len(txs)-depth])
				require.Equal(t, incoming.Final, again.State)
				if before.State == incoming.Final {
					require.Equal(t, 2, again.Generation, "final, gone and mined again is another life")
				} else {
					require.Equal(t, 1, again.Generation)
				}
				require.Equal(t, before.FirstSeen, again.FirstSeen)
				w.requireBooks()
				require.Equal(t, w.truth(), w.summary(w.store))
			})
		}
	}
}

// Whatever happened on the way, what is stored is what the chain is in the end.
func TestR01_Confluence(t *testing.T) {
	t.Parallel()
	for seed := uint64(1); seed <= 40; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			t.Logf("seed %d", seed)
			walk(t, seed)
		})
	}
}

// walk lives through a random history with forks, faults and two readers.
func walk(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 7))
	name := eth
	if seed%3 == 0 {
		name = btc
	}
	currencies := map[chain.Network][]string{eth: {"ETH", "BIG"}, btc: {"BTC"}}[name]
	w := newWorld(t, name, seed)
	losing := &forgetful{Store: w.store, lose: func(int) bool { return rng.IntN(6) == 0 }}
	readers := []*incoming.Network{w.net, w.network(losing, w.chain.Client())}
	if seed%2 == 0 {
		readers = []*incoming.Network{w.network(losing, withoutMempool(w.chain.Client()))}
	}
	w.stepOf(w.network(w.store, w.chain.Client()))
	var txs, heads []string
	for range 120 {
		switch rng.IntN(12) {
		case 0, 1, 2:
			txs = append(txs, w.pay(w.address(), currencies[rng.IntN(len(currencies))], "0.5"))
		case 3:
			if len(txs) > 0 { // a replacement that pays the same address, or nobody of ours
				w.replace(rng, txs[rng.IntN(len(txs))], &txs)
			}
		case 4, 5, 6:
			w.mine(1 + rng.IntN(2))
		case 7:
			heads = append(heads, w.chain.Head().Hash)
			depth := 1 + rng.IntN(confs+3)
			var drop []string
			if len(txs) > 0 && rng.IntN(2) == 0 {
				drop = append(drop, txs[rng.IntN(len(txs))])
			}
			_, _ = w.chain.ReorgTo(depth, max(0, depth-1+rng.IntN(4)), drop...)
		case 8:
			if len(heads) > 0 {
				_, _ = w.chain.Switch(heads[rng.IntN(len(heads))])
			}
		case 9:
			w.chain.ReviveAll()
		case 10:
			f := w.chain.Front().Honest()
			switch rng.IntN(4) {
			case 0:
				f.Lag(int64(1 + rng.IntN(4)))
			case 1:
				f.FailRate(300)
			case 2:
				f.Freeze()
			}
		}
		for _, r := range readers {
			if rng.IntN(2) == 0 {
				w.clock.Advance(time.Second)
				_, _ = r.Step(background) // faults may be in its way
			}
		}
	}
	w.chain.Front().Honest()
	losing.lose = func(int) bool { return false }
	for w.chain.Height() < w.cursor(w.store).Head { // a shorter branch is waited for
		w.mine(1)
	}
	w.mine(2)
	w.clock.Advance(time.Minute) // what was refused or lost is due again
	for range 2 {
		for _, r := range readers {
			w.stepOf(r)
		}
	}
	require.Empty(t, w.cursor(w.store).Halted)
	option := func(*incoming.Config, *sim.Options) {}
	if seed%2 == 0 {
		require.Equal(t, mined(w.truth(option)), mined(w.summary(w.store)))
	} else {
		require.Equal(t, w.truth(option), w.summary(w.store))
	}
	w.requireBooks()
}

// mined leaves out what only a mempool knows.
func mined(list []string) []string {
	var out []string
	for _, s := range list {
		var tx, state string
		_, _ = fmt.Sscan(s, &tx, &state)
		if state != string(incoming.Seen) {
			out = append(out, s)
		}
	}
	return out
}

func (w *world) replace(rng *rand.Rand, old string, txs *[]string) {
	to := w.chain.Customer("nobody of ours")
	if rng.IntN(2) == 0 {
		to = w.address()
	}
	if tx, err := w.chain.Send(sim.Tx{Replaces: old, Payments: []sim.Payment{{To: to, Amount: dec("0.25")}}}); err == nil {
		*txs = append(*txs, tx)
	}
}

func TestR04_FlipFlop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 20)
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(3)
	w.step()
	first := w.one(tx)
	a := w.chain.Head().Hash
	_, err := w.chain.ReorgTo(3, 4)
	require.NoError(t, err)
	b := w.chain.Head().Hash
	for range 2 { // A → B → A …, each as long as it has to be to be followed
		w.step()
		require.Equal(t, incoming.Seen, w.one(tx).State, "back in the mempool")
		_, err = w.chain.Switch(a)
		require.NoError(t, err)
		_, err := w.net.Step(background)
		require.ErrorIs(t, err, incoming.ErrStuck, "a shorter branch is not followed")
		w.empty(1)
		w.step()
		s := w.one(tx)
		require.Equal(t, first.BlockHash, s.BlockHash)
		require.Equal(t, 1, s.Generation)
		a = w.chain.Head().Hash
		_, err = w.chain.Switch(b)
		require.NoError(t, err)
		w.empty(1)
		b = w.chain.Head().Hash
	}
	_, err = w.chain.Switch(a)
	require.NoError(t, err)
	w.mine(confs)
	w.step()
	require.Equal(t, w.truth(), w.summary(w.store))
	w.requireBooks()
}

// empty mines blocks without transactions.
func (w *world) empty(n int) {
	for range n {
		w.clock.Advance(10 * time.Second)
		w.chain.MineOnly()
	}
}

// A node that changes its branch at every question must not hold a Step.
func TestR04_EndlessFlipFlopEndsTheStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 21)
	m := w.mangled()
	w.net = w.network(w.store, m)
	w.step()
	w.mine(4)
	w.step()
	a := w.chain.Head().Hash
	_, err := w.chain.ReorgTo(3, 3)
	require.NoError(t, err)
	b := w.chain.Head().Hash
	scans := 0
	m.tip = func(tip *chain.Tip) { tip.Head.Hash = "elsewhere" }
	m.change = func(s *chain.Scan) {
		if scans++; s.Rewound == 0 { // as soon as one branch was read it is the other
			a, b = b, a
			_, _ = w.chain.Switch(b)
		}
	}
	for range 3 {
		scans = 0
		_, err = w.net.Step(background)
		require.NoError(t, err)
		require.Less(t, scans, 20)
		require.Greater(t, scans, 4)
	}
	m.change, m.tip = nil, nil
	w.mine(2)
	w.step()
	require.True(t, w.cursor(w.store).Trail.Ends(w.chain.Head().Hash))
}

func TestR04_StartInsideAnOrphanBranch(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 22)
	w.mine(10)
	w.step() // starts at a head that is about to be replaced
	require.Equal(t, int64(11), w.cursor(w.store).Head)
	_, err := w.chain.ReorgTo(3, 4)
	require.NoError(t, err)
	tx := w.pay(w.address(), "ETH", "1")
	w.mine(confs)
	w.step()
	require.Equal(t, incoming.Final, w.one(tx).State)
	require.Equal(t, w.truth(), w.summary(w.store))
}

// A crash at any commit: nothing is lost and nothing counts twice.
func TestR04_CrashAtEveryCommit(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 14; at++ {
		for _, kept := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d/%t", at, kept), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, eth, 23)
				w.step()
				var txs []string
				for range 4 {
					txs = append(txs, w.pay(w.address(), "ETH", "1"))
					w.mine(2)
				}
				w.step()
				_, err := w.chain.ReorgTo(5, 7, txs[3])
				require.NoError(t, err)
				w.mine(4)
				ctx, crash := context.WithCancel(background)
				dying := w.network(&mortal{Store: w.store, at: at, kept: kept, crash: crash}, w.chain.Client())
				for range 10 {
					_, _ = dying.Step(ctx)
				}
				crash()
				w.clock.Advance(time.Minute)
				w.step()
				w.mine(confs)
				w.step()
				require.Equal(t, w.truth(), w.summary(w.store))
				w.requireBooks()
			})
		}
	}
}

// mortal is a store of a process that dies at a commit, just before or after.
type mortal struct {
	storage.Store
	n, at int
	kept  bool
	crash func()
}

func (m *mortal) Commit(ctx context.Context, changes ...storage.Change) []error {
	if m.n++; m.n < m.at {
		return m.Store.Commit(ctx, changes...)
	}
	if m.kept && m.n == m.at {
		m.Store.Commit(ctx, changes...)
	}
	m.crash()
	errs := make([]error, len(changes))
	for i := range errs {
		errs[i] = errors.New("dead")
	}
	return errs
}

// What is recovered from a block just while a fork takes that block back is
// taken back with it.
func TestR01_RecoverDuringAFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 34)
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	a := w.chain.Front().LieEmpty(true)
	w.mine(2)
	to := w.addressOf(tx)
	w.stepOf(w.network(w.store, withoutMempool(w.chain.Client())))
	require.Empty(t, w.sightings(w.store), "missed")
	a.Honest()
	old := w.network(w.store, w.chain.NewNode().Freeze().Client())
	_, err := w.chain.ReorgTo(2, 2+confs, tx)
	require.NoError(t, err)
	w.net = w.network(&before{Store: w.store, hook: func() {
		found, err := old.Recover(background, to, 1, 0, unrecorded)
		require.NoError(t, err)
		require.Equal(t, 1, found)
	}}, w.chain.Client())
	w.step()
	require.Equal(t, incoming.Gone, w.one(tx).State)
	require.Empty(t, w.books)
}

func TestR03_DeeperThanTheTrailHalts(t *testing.T) {
	t.Parallel()
	short := func(c *incoming.Config, _ *sim.Options) { c.TrailKeep = confs + 2 }
	w := newWorld(t, eth, 24, short)
	w.step()
	var txs []string
	for range 12 {
		txs = append(txs, w.pay(w.address(), "ETH", "1"))
		w.mine(1)
		w.step()
	}
	before := w.summary(w.store)
	_, err := w.chain.ReorgTo(10, 12, txs[4])
	require.NoError(t, err)
	w.mine(confs + 1)
	_, err = w.net.Step(background)
	require.ErrorIs(t, err, incoming.ErrHalted)
	st, err := w.net.Status(background)
	require.NoError(t, err)
	require.NotEmpty(t, st.Halted)
	_, err = w.net.Step(background)
	require.ErrorIs(t, err, incoming.ErrHalted, "it stays so, for every reader")
	_, err = w.network(w.store, w.chain.Client()).Step(background)
	require.ErrorIs(t, err, incoming.ErrHalted)
	_, err = w.net.Recover(background, w.address(), 1, 0, unrecorded)
	require.ErrorIs(t, err, incoming.ErrHalted)
	require.Equal(t, before, w.summary(w.store), "nothing moved")

	require.Error(t, w.net.Resume(background, 1000, unrecorded))
	require.NoError(t, w.net.Resume(background, 2, unrecorded))
	w.step()
	require.Equal(t, incoming.Gone, w.one(txs[4]).State)
	require.Equal(t, 2, w.one(txs[3]).Generation)
	require.Equal(t, w.truth(short), w.summary(w.store))
	w.requireBooks()
}

// An operator resumes a network whose client knows no blocks by height from a block that is
// remembered.
func TestR03_ResumeWithoutBlocksByHeight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 29)
	w.net = w.network(w.store, struct{ chain.Client }{w.chain.Client()})
	w.step()
	var txs []string
	for range 4 {
		txs = append(txs, w.pay(w.address(), "ETH", "1"))
		w.mine(1)
		w.step()
	}
	require.Error(t, w.net.Resume(background, 0, unrecorded), "it is not remembered")
	from := w.one(txs[1]).Height
	require.NoError(t, w.net.Resume(background, from, unrecorded))
	require.Equal(t, from, w.cursor(w.store).Head)
	for i, tx := range txs {
		want := incoming.Included
		if i > 1 {
			want = incoming.Seen
		}
		require.Equal(t, want, w.one(tx).State)
	}
	w.mine(confs)
	w.step()
	for _, tx := range txs {
		require.Equal(t, incoming.Final, w.one(tx).State)
	}
	w.requireBooks()
}

// The chain forks again four times while one Step reads it. The Step follows all of it.
func TestR04_FourForksAreOneStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 30)
	m := w.mangled()
	w.net = w.network(w.store, m)
	w.step()
	w.mine(4)
	w.step()
	forks := 0
	m.tip = func(tip *chain.Tip) { tip.Head.Hash = "elsewhere" }
	m.change = func(s *chain.Scan) {
		if s.Rewound == 0 && forks < 4 {
			forks++
			_, err := w.chain.ReorgTo(1, 2)
			require.NoError(t, err)
		}
	}
	w.mine(1)
	_, err := w.net.Step(background)
	require.NoError(t, err)
	require.Equal(t, 4, forks)
	require.True(t, w.cursor(w.store).Trail.Ends(w.chain.Head().Hash))
}

func TestR03_ForgettingNodeIsNoFork(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 25)
	m := &amnesiac{mangled: w.mangled()}
	w.net = w.network(w.store, m)
	w.step()
	w.mine(3)
	m.on = true
	_, err := w.net.Step(background)
	require.ErrorIs(t, err, chain.ErrNode)
	require.Empty(t, w.cursor(w.store).Halted, "it has the block, and says that it has not")
	m.on = false
	w.step()
}

type amnesiac struct {
	*mangled
	on bool
}

func (a *amnesiac) Scan(ctx context.Context, trail []chain.Block, w chain.Watch, limit int) (chain.Scan, error) {
	if a.on {
		return chain.Scan{}, chain.ErrDeepFork
	}
	return a.mangled.Scan(ctx, trail, w, limit)
}

// What the network itself called final is final: a node that takes it back
// halts the network, and credits stop.
func TestR03_ForkBelowTheWatermarkHalts(t *testing.T) {
	t.Parallel()
	var said bytes.Buffer
	w := newWorld(t, eth, 26, func(c *incoming.Config, o *sim.Options) {
		o.Finality, c.Log = 3, slog.New(slog.NewTextHandler(&said, nil))
	})
	w.step()
	token := w.pay(w.address(), "USDT", "1")
	w.mine(3)
	w.step()
	require.Equal(t, incoming.Included, w.one(token).State, "it has its 2 confirmations, and waits for the network's word")
	w.mine(1)
	w.step()
	require.Equal(t, incoming.Final, w.one(token).State)
	require.Len(t, w.books, 1)
	require.Equal(t, int64(2), w.cursor(w.store).Final)
	// An undelivered final one stays undelivered once the network is halted.
	_, err := w.chain.ReorgTo(4, 6)
	require.NoError(t, err)
	_, err = w.net.Step(background)
	require.ErrorIs(t, err, incoming.ErrHalted)
	require.Contains(t, said.String(), `level=ERROR msg=network_halted`)
	require.Equal(t, int64(2), w.cursor(w.store).Final)
	require.Equal(t, incoming.Final, w.one(token).State, "a node's word alone takes nothing back")
	w.mine(5)
	_, err = w.net.Step(background)
	require.ErrorIs(t, err, incoming.ErrHalted)
	// The operator has looked.
	require.NoError(t, w.net.Resume(background, 1, unrecorded))
	w.step()
	require.Equal(t, 2, w.one(token).Generation)
	require.Equal(t, incoming.Final, w.one(token).State)
	w.requireBooks()
}

func TestR03_WatermarkNeverFalls(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 27, func(_ *incoming.Config, o *sim.Options) { o.Finality = 3 })
	w.step()
	w.mine(6)
	w.step()
	require.Equal(t, int64(4), w.cursor(w.store).Final)
	token := w.pay(w.address(), "USDT", "1")
	w.mine(4)
	w.chain.Front().LieFinal(2)
	_, err := w.net.Step(background)
	require.ErrorIs(t, err, incoming.ErrStuck)
	require.Equal(t, int64(4), w.cursor(w.store).Final)
	require.Equal(t, incoming.Included, w.one(token).State)
	w.chain.Front().LieFinal(-2)
	w.step()
	require.Equal(t, int64(8), w.cursor(w.store).Final)
	require.Equal(t, incoming.Final, w.one(token).State)
}

// A node that was never caught up with has given no word yet.
func TestR03_NoWordIsNotFinal(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 35)
	m := w.mangled()
	w.net = w.network(w.store, m)
	w.step()
	token, coin := w.pay(w.address(), "USDT", "1"), w.pay(w.address(), "BIG", "1")
	w.mine(5)
	m.tip = func(tip *chain.Tip) { tip.Head.Hash, tip.Final = "elsewhere", 3 }
	w.step()
	require.Equal(t, incoming.Final, w.one(coin).State)
	require.Equal(t, incoming.Included, w.one(token).State)
	m.tip = func(tip *chain.Tip) { tip.Final = 3 }
	w.step()
	require.Equal(t, incoming.Final, w.one(token).State)
}

func TestR03_HaltedNetworkCreditsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 28, func(_ *incoming.Config, o *sim.Options) { o.Finality = 3 })
	quiet := w.network(w.store, w.chain.Client(), func(c *incoming.Config, _ *sim.Options) { c.Handle = nil })
	w.stepOf(quiet)
	w.pay(w.address(), "ETH", "1")
	w.mine(confs)
	w.stepOf(quiet) // final, and told to nobody yet
	_, err := w.chain.ReorgTo(5, 6)
	require.NoError(t, err)
	_, err = quiet.Step(background)
	require.ErrorIs(t, err, incoming.ErrHalted)
	w.clock.Advance(time.Hour)
	_, err = w.net.Step(background)
	require.ErrorIs(t, err, incoming.ErrHalted)
	require.Empty(t, w.books)
	require.Empty(t, w.facts)
}

func TestD15_ReplacedInheritsItsFirstSighting(t *testing.T) {
	t.Parallel()
	for _, name := range []chain.Network{eth, btc} {
		w := newWorld(t, name, 29)
		w.step()
		a := w.address()
		old := w.pay(a, "", "1")
		w.step()
		seen := w.one(old).FirstSeen
		w.clock.Advance(time.Hour)
		bumped := w.send(sim.Tx{Replaces: old, Payments: []sim.Payment{{To: a, Amount: dec("1")}}})
		w.step()
		require.Equal(t, incoming.Gone, w.one(old).State, "replaced")
		require.Equal(t, seen, w.one(bumped).FirstSeen)
		require.Equal(t, old, w.one(bumped).InheritedFrom)
		// And once more, unseen in the mempool, to another address besides.
		w.clock.Advance(time.Hour)
		last := w.send(sim.Tx{Replaces: bumped, Payments: []sim.Payment{{To: a, Amount: dec("1")}, {To: w.address(), Amount: dec("1")}}})
		w.mine(confs)
		w.step()
		for _, s := range w.sightings(w.store) {
			switch {
			case s.Tx != last:
				require.Equal(t, incoming.Gone, s.State)
			case s.Address == string(a):
				require.Equal(t, seen, s.FirstSeen)
			default:
				require.NotEqual(t, seen, s.FirstSeen, "only to the same address")
				require.Empty(t, s.InheritedFrom)
			}
		}
		require.Len(t, w.books, 2)
		w.requireBooks()
	}
}

func TestD15_ConflictInABlockIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, btc, 30)
	w.step()
	a := w.address()
	old := w.pay(a, "BTC", "1")
	w.step()
	require.Equal(t, incoming.Seen, w.one(old).State)
	// No mempool to ask from now on: only the block says that it is dead.
	w.net = w.network(w.store, withoutMempool(w.chain.Client()))
	w.step()
	require.Equal(t, incoming.Seen, w.one(old).State)
	bumped := w.send(sim.Tx{Replaces: old, Payments: []sim.Payment{{To: a, Amount: dec("0.9")}}})
	w.mine(1)
	w.step()
	require.Equal(t, incoming.Gone, w.one(old).State)
	require.Equal(t, old, w.one(bumped).InheritedFrom)
	w.mine(confs)
	w.step()
	require.Len(t, w.books, 1)
	w.requireBooks()
}

func TestD15_ImmatureWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, btc, 31)
	w.step()
	tx := w.send(sim.Tx{Immature: 20, Payments: []sim.Payment{{To: w.address(), Amount: dec("1")}}})
	w.mine(18)
	w.step()
	require.Equal(t, incoming.Included, w.one(tx).State)
	w.mine(1)
	w.step()
	require.Equal(t, incoming.Final, w.one(tx).State)
}

func TestMempool_VanishedIsGoneAndMayReturn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 32)
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	w.step()
	seen := w.one(tx).FirstSeen
	w.chain.Drop(tx)
	w.step()
	require.Equal(t, incoming.Gone, w.one(tx).State)
	require.NoError(t, w.chain.Resend(tx))
	w.step()
	require.Equal(t, incoming.Seen, w.one(tx).State)
	// A mempool that cannot be read says nothing.
	w.chain.Front().FailNext(1, nil)
	_, err := w.net.Step(background)
	require.Error(t, err)
	require.Equal(t, incoming.Seen, w.one(tx).State)
	w.mine(1)
	w.step()
	s := w.one(tx)
	require.Equal(t, incoming.Included, s.State)
	require.Equal(t, seen, s.FirstSeen)
	_, err = w.chain.Reorg(1)
	require.NoError(t, err)
	w.chain.Front().FailNext(1, nil)
	_, err = w.net.Step(background)
	require.Error(t, err)
	require.Equal(t, incoming.Seen, w.one(tx).State, "thrown back, and not known to be nowhere")
	w.mine(1)
	w.step()
	require.Equal(t, incoming.Included, w.one(tx).State)
	require.Equal(t, 1, s.Generation)
}

func TestInternal_IsAskedAndKept(t *testing.T) {
	t.Parallel()
	ours := w0{}
	w := newWorld(t, eth, 33, func(c *incoming.Config, _ *sim.Options) { c.Internal = ours.internal })
	w.step()
	tx := w.pay(w.address(), "ETH", "1")
	other := w.pay(w.address(), "ETH", "1")
	ours[tx] = true
	w.mine(1)
	w.step()
	require.True(t, w.one(tx).Internal)
	require.False(t, w.one(other).Internal)
}

type w0 map[string]bool

func (o w0) internal(_ context.Context, _ chain.Network, list []chain.Transfer) ([]bool, error) {
	out := make([]bool, len(list))
	for i := range list {
		out[i] = o[list[i].Tx]
	}
	return out, nil
}

// What is recovered on a chain that has forked since it was read would be of blocks that
// nobody has followed: the node is not at fault, and it is asked again later.
func TestR05_RecoverWaitsUntilAForkIsFollowed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 6)
	a := w.address()
	w.mine(3)
	w.step()
	tx := w.pay(a, "ETH", "1")
	w.mine(2)
	w.step()
	_, err := w.chain.ReorgTo(2, 1)
	require.NoError(t, err)
	w.mine(1)
	before := w.summary(w.store)
	_, err = w.net.Recover(background, a, 1, 0, unrecorded)
	require.ErrorIs(t, err, incoming.ErrForked)
	require.NotErrorIs(t, err, chain.ErrNode)
	require.Equal(t, before, w.summary(w.store))
	w.step()
	found, err := w.net.Recover(background, w.addressOf(tx), 1, 0, unrecorded)
	require.NoError(t, err)
	require.Zero(t, found, "it was read with the fork")
}

// namer is a client whose history of addresses the test makes.
type namer struct {
	*mangled
	history []chain.Transfer
}

func (n *namer) History(context.Context, chain.Address, int64, int64) ([]chain.Transfer, error) {
	return slices.Clone(n.history), nil
}

// TestL02_StoreFailsOnceInRecover: an earlier version stored a transfer under another ordinal.
// Recover does not book it again, whichever read of the store fails.
func TestL02_StoreFailsOnceInRecover(t *testing.T) {
	t.Parallel()
	w := newWorld(t, eth, 7)
	x := &namer{mangled: w.mangled()}
	w.net = w.network(w.store, x)
	w.step()
	a := w.address()
	inner := chain.Transfer{Tx: "inner", Ordinal: -2, To: a, Currency: "ETH", Amount: dec("1.5"), Unproven: true}
	x.change = func(s *chain.Scan) {
		if inner.Block.Hash == "" && len(s.Blocks) > 0 {
			inner.Block = s.Blocks[0].Block
			s.Blocks[0].Transfers = append(s.Blocks[0].Transfers, inner)
		}
	}
	w.mine(2)
	w.step()
	before := w.summary(w.store)
	require.Len(t, before, 1)
	inner.Ordinal = -3
	x.history = []chain.Transfer{inner}
	for n := 1; ; n++ {
		f := &failing.Store{Store: w.store, Counts: everyCall, FailAt: n}
		found, err := w.network(f, x).Recover(background, a, 1, 0, unrecorded)
		require.Zero(t, found, "question %d", n)
		require.Equal(t, before, w.summary(w.store), "question %d", n)
		if f.Calls < n {
			require.NoError(t, err)
			require.Greater(t, n, 4)
			return
		}
		require.ErrorIs(t, err, failing.ErrGone, "question %d", n)
	}
}
