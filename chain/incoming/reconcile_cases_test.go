package incoming_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/sim"
)

// historic is a purse that has the history of addresses, too.
type historic struct {
	*purse
	chain.Historian
}

// again is a new process on the same store and node.
func (w *world) again(c chain.Client) {
	w.t.Helper()
	w.net = w.network(w.store, c, func(c *incoming.Config, _ *sim.Options) { c.RoundEvery = roundEvery })
}

// TestFN05_RecoverDoesNotBookAgainWhatARoundBooked: the round booked a direct transfer
// that the scan had skipped, because the address was not watched then.
func TestFN05_RecoverDoesNotBookAgainWhatARoundBooked(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 81)
	p.noState = true
	w.again(historic{p, w.chain.Client().(chain.Historian)})
	a := w.address()
	seen := w.pay(a, "ETH", "1")
	w.mine(1)
	p.held[a] = "1"
	w.round()
	require.NoError(t, w.pool.Retire(context.Background(), w.name, a, w.clock.Now()))
	w.mine(1)
	w.pay(a, "ETH", "2")
	w.pay(a, "USDT", "7")
	w.mine(1)
	p.held[a] = "3"
	w.round()
	require.Len(t, w.of(a), 1, "nobody looks at it")
	require.NoError(t, w.pool.Retire(context.Background(), w.name, a, time.Time{}))
	w.again(historic{p, w.chain.Client().(chain.Historian)})
	w.round()
	require.Len(t, w.of(a), 2, "the round books what it holds")
	late := w.pay(a, "ETH", "4") // after the round, and found by the scan
	w.mine(1)
	w.step()

	found, err := w.net.Recover(context.Background(), a, 1, 0)
	require.NoError(t, err)
	require.Equal(t, 1, found, "the tokens, which no round books")
	sum := dec("0")
	for _, s := range w.of(a) {
		if s.Currency == "ETH" {
			sum = sum.Add(s.Exact)
		}
	}
	require.Equal(t, "7", sum.String())
	require.Equal(t, incoming.Included, w.one(late).State)
	require.NotEmpty(t, w.one(seen).Tx)
}

// TestFN05_CoinsUnderANewCodeAreNotBookedAgain: an operator lists the native coin under
// another code.
func TestFN05_CoinsUnderANewCodeAreNotBookedAgain(t *testing.T) {
	t.Parallel()
	w, p := newPurse(t, 82)
	p.noState = true
	a := w.address()
	w.pay(a, "ETH", "3")
	w.pay(a, "USDT", "5")
	w.mine(1)
	p.held[a] = "3"
	w.round()
	require.Len(t, w.of(a), 2)

	renamed, err := chain.NewRegistry(
		[]chain.NetworkInfo{{Code: eth, Family: chain.AccountFamily, Gas: "XETH"}},
		[]chain.Currency{{Code: "XETH", Network: eth, Token: "ETH", Decimals: 18, Scale: 8, Confirmations: confs, Dust: dec("0.0001")}})
	require.NoError(t, err)
	w.reg = renamed
	w.again(p)
	w.round()
	require.Len(t, w.of(a), 2, "nothing came")
	p.held[a] = "4"
	w.round()
	got := w.of(a)
	require.Len(t, got, 3)
	for _, s := range got {
		if s.Unproven {
			require.Equal(t, "1", s.Exact.String(), "what came is booked, and no more")
		}
	}
}
