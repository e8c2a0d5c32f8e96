package incoming_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// archive is a purse that names the transfers between the blocks that it is asked about, as far
// back as it has state.
type archive struct {
	*purse
	chain.Locator
	state int64 // it has that of blocks from this height on
	most  int   // transfers at once, 0 = any number
	fails error // what every question about a block older than the trail returns
	asked []string
}

func (a *archive) Received(_ context.Context, list []chain.Address, from, to chain.Block) (out []chain.Transfer, err error) {
	a.asked = append(a.asked, fmt.Sprintf("%d addresses, %d blocks to %d", len(list), to.Height-from.Height, to.Height))
	if a.fails != nil && len(a.asked) > 1 {
		return nil, a.fails
	}
	if from.Height < a.state {
		return nil, chain.ErrNoState
	}
	for _, t := range a.named {
		if t.Block.Height > from.Height && t.Block.Height <= to.Height {
			out = append(out, t)
		}
	}
	if a.most > 0 && len(out) > a.most {
		return nil, chain.ErrNoState
	}
	return out, nil
}

// newArchive is a world whose last round was done, and a node that keeps all state.
func newArchive(t *testing.T, seed uint64) (*world, *archive) {
	t.Helper()
	w, p := newPurse(t, seed)
	a := &archive{purse: p, Locator: w.chain.Client().(chain.Locator)}
	w.net = w.network(w.store, a, w.fast)
	w.mine(confs)
	w.step()
	w.round()
	return w, a
}

// fast are the options of a chain that makes many blocks between two rounds.
func (w *world) fast(c *incoming.Config, _ *sim.Options) { c.RoundEvery, c.MaxBlocks = roundEvery, 32 }

// inner is a transfer by a contract, so many blocks above the last round. Then 300 blocks are
// made before the next.
func (w *world) inner(a *archive, to chain.Address, amount string, above ...int64) {
	w.t.Helper()
	last := w.cursor(w.store).Head
	w.chain.Mine(300)
	for _, n := range above {
		b, err := a.BlockAt(w.t.Context(), last+n)
		require.NoError(w.t, err)
		a.named = append(a.named, chain.Transfer{
			Tx: fmt.Sprintf("inner %d", b.Height), Ordinal: 7, To: to, Currency: "ETH", Amount: dec(amount), Block: b,
		})
	}
	a.asked = nil
}

// TestFN05_WhatComesBetweenTwoRoundsIsProven: on a chain that makes 300 blocks between two rounds,
// what a contract pays in any of them is found, where the node keeps the state of all.
func TestFN05_WhatComesBetweenTwoRoundsIsProven(t *testing.T) {
	t.Parallel()
	for _, above := range []int64{1, 2, 60, 179, 180, 181, 236, 299, 300} {
		for _, again := range []bool{false, true} {
			t.Run(fmt.Sprintf("at block %d, restarted: %v", above, again), func(t *testing.T) {
				t.Parallel()
				w, a := newArchive(t, 101)
				to := w.address()
				w.inner(a, to, "1.5", above)
				if a.held[to] = "1.5"; again {
					w.net = w.network(w.store, a, w.fast)
				}
				w.round()
				got := w.of(to)
				require.Len(t, got, 1)
				require.False(t, got[0].Unproven, "%v", a.asked)
				require.Equal(t, a.named[0].Block.Hash, got[0].BlockHash)
				require.LessOrEqual(t, len(a.asked), 2, "%v", a.asked)
				a.asked = nil
				w.round()
				require.Len(t, w.of(to), 1, "once")
				require.Empty(t, a.asked)
			})
		}
	}
}

// TestFN05_ALongWayBackIsAFewQuestions: after a long pause each question covers twice as many
// blocks as the one before. It names the addresses alone whose coins are not all found yet.
func TestFN05_ALongWayBackIsAFewQuestions(t *testing.T) {
	t.Parallel()
	w, a := newArchive(t, 102)
	early, late := w.address(), w.address()
	w.inner(a, early, "1", 3)
	w.chain.Mine(1400)
	w.inner(a, late, "2", 1999)
	a.held[early], a.held[late] = "1", "2"
	for _, x := range []chain.Address{early, late} {
		require.Empty(t, w.of(x))
	}
	w.round()
	for _, x := range []chain.Address{early, late} {
		require.Len(t, w.of(x), 1)
		require.False(t, w.of(x)[0].Unproven, "%v", a.asked)
	}
	require.Less(t, len(a.asked), 7)
}

// TestFN05_WhatTheNodeCannotTellStaysUnproven: where the node has no state, or the client no
// locator, what came is booked unproven as before. It costs some questions.
func TestFN05_WhatTheNodeCannotTellStaysUnproven(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		above    int64 // of the last round, where the transfer is
		unproven bool
	}{
		"no state of the block":       {100, true},
		"state of the block":          {172, false},
		"the oldest block with state": {171, true}, // that before it has none
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a := newArchive(t, 103)
			to := w.address()
			a.state = w.cursor(w.store).Head + 171
			w.inner(a, to, "1.5", c.above)
			a.held[to] = "1.5"
			w.round()
			require.Len(t, w.of(to), 1)
			require.Equal(t, c.unproven, w.of(to)[0].Unproven, "%v", a.asked)
			require.LessOrEqual(t, len(a.asked), 16)
		})
	}
	t.Run("no locator", func(t *testing.T) {
		t.Parallel()
		w, a := newArchive(t, 104)
		to := w.address()
		w.inner(a, to, "1.5", 1)
		a.held[to] = "1.5"
		w.net = w.network(w.store, struct {
			chain.Client
			chain.Reconciler
		}{a, a}, w.fast)
		w.round()
		require.Len(t, w.of(to), 1)
		require.True(t, w.of(to)[0].Unproven)
	})
}

// TestFN05_ABusyAddressIsReadInParts: a node that names only some transfers at once is asked about
// fewer blocks.
func TestFN05_ABusyAddressIsReadInParts(t *testing.T) {
	t.Parallel()
	w, a := newArchive(t, 105)
	to := w.address()
	var blocks []int64
	for n := int64(1); n <= 300; n += 3 {
		blocks = append(blocks, n)
	}
	a.most = 20
	w.inner(a, to, "1", blocks...)
	a.held[to] = "100"
	w.round()
	require.Len(t, w.of(to), 100)
	for _, s := range w.of(to) {
		require.False(t, s.Unproven)
	}
	require.LessOrEqual(t, len(a.asked), 16)
}

// TestFN05_AnErrorFarBackIsNoErrorForEver: a node that fails where it is asked about old blocks is
// asked again by the next round. Where it fails once more, what is left is booked unproven.
func TestFN05_AnErrorFarBackIsNoErrorForEver(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"it ends": true, "it stays": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, a := newArchive(t, 106)
			to := w.address()
			a.fails = errors.New("your plan has no old blocks")
			w.inner(a, to, "1.5", 1)
			a.held[to] = "1.5"
			w.round()
			require.Empty(t, w.of(to))
			if a.asked = nil; ends {
				a.fails = nil
			}
			w.round()
			require.Len(t, w.of(to), 1)
			require.Equal(t, !ends, w.of(to)[0].Unproven, "%v", a.asked)
		})
	}
}

// TestFN05_NamedInAnotherBlock: a transfer of an old block that the chain does not have is not
// believed.
func TestFN05_NamedInAnotherBlock(t *testing.T) {
	t.Parallel()
	w, a := newArchive(t, 107)
	to := w.address()
	w.inner(a, to, "1.5", 1)
	a.held[to] = "1.5"
	a.named[0].Block.Hash = "another"
	w.round()
	require.Empty(t, w.of(to))
}
