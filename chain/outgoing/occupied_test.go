package outgoing_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
)

// kept is a world whose node keeps the first transaction of an intent and takes none in its
// place. It is stuck there.
func kept(t *testing.T, w *world) (first string) {
	w.submit(w.intent("a", coin))
	require.NoError(t, w.step())
	first = w.attempts("a")[0].Tx
	w.client.keeps = first
	w.stick()
	w.run(60)
	return first
}

// TestW03_RefusedReplacementLeavesTheFirstAlive: the order waits for the first with the
// node's reason, both are sent again and again, and nothing dearer is signed. Whatever
// happens to the first, the order is paid once.
func TestW03_RefusedReplacementLeavesTheFirstAlive(t *testing.T) {
	t.Parallel()
	for end, happens := range map[string]func(w *world, first string){
		"lands": func(w *world, _ string) { w.chain.SetFeeLevel(0) },
		"gone": func(w *world, first string) {
			w.chain.Drop(first)
			w.client.keeps = ""
		},
		"other process": func(w *world, _ string) {
			w.restart()
			w.chain.SetFeeLevel(0)
		},
	} {
		t.Run(end, func(t *testing.T) {
			t.Parallel()
			families(t, func(t *testing.T, w *world) {
				first := kept(t, w)
				v := w.get("a")
				require.Equal(t, outgoing.Signed, v.State)
				require.Equal(t, outgoing.ReasonOccupied, v.Reason)
				require.Len(t, v.Attempts, 2, "a dearer one would be refused, too")
				require.Equal(t, outgoing.ReasonOccupied, w.last("a").Reason)
				require.Equal(t, outgoing.Open, v.Attempts[0].Fate)
				require.True(t, v.Attempts[0].Sent.After(v.Attempts[1].Stored), "the first is sent again")

				happens(w, first)
				w.run(60)
				w.paid(v.Intent)
				require.Equal(t, outgoing.Final, w.state("a"))
				require.Empty(t, w.last("a").Reason)
				landed := 0
				if end == "gone" {
					landed = 1
				}
				for i, a := range w.attempts("a") {
					require.Equal(t, map[bool]outgoing.AttemptState{true: outgoing.AttemptFinal, false: outgoing.Dead}[i == landed], a.Fate)
				}
				w.sound()
			})
		})
	}
}

// TestW03_ReleasedReplacementIsReplacedInItsTurn: where the node has let the first go, the
// second is outbid StuckAfter later as any other, whether the node takes it or its time is over.
func TestW03_ReleasedReplacementIsReplacedInItsTurn(t *testing.T) {
	t.Parallel()
	for _, over := range []bool{false, true} {
		families(t, func(t *testing.T, w *world) {
			first := kept(t, w)
			w.chain.Drop(first)
			w.client.keeps = ""
			if over {
				w.client.keeps = "nothing"
				w.client.why = fmt.Errorf("%w: tefMAX_LEDGER", chain.ErrNode)
			}
			if w.chain.SetFeeLevel(400_000_000_000); w.gas == "BTC" {
				w.chain.SetFeeLevel(600)
			}
			for i := 0; w.get("a").Reason != ""; i++ {
				require.Less(t, i, 100, "it is kept back for ever")
				_ = w.step()
				w.advance(poll)
			}
			require.Len(t, w.attempts("a"), 2)
			w.advance(stuck)
			for range 2 { // first its owner may hear that it is stuck
				_ = w.step()
				w.advance(poll)
			}
			require.Len(t, w.attempts("a"), 3)
		})
	}
}
