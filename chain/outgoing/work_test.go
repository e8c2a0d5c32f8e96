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
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// Many outcomes are told in as many calls of the store as one is, and those of one sweep
// one after the other.
func TestFP01_OutcomesAreToldTogether(t *testing.T) {
	t.Parallel()
	now := func() time.Time { return time.Unix(1e9, 0) }
	calls := map[int]int{}
	for _, n := range []int{1, 60} {
		s := &failing.Store{Store: memory.New(), Counts: func(failing.Call) bool { return true }}
		require.NoError(t, s.Open(t.Context(), slices.Concat(storage.Tables(), outgoing.Tables())...))
		told, within := map[string]int{}, map[string]bool{}
		net, err := outgoing.New(outgoing.Config{
			Store: s, Client: sim.MustNew(sim.Options{Network: "ETH", Registry: chain.MainnetRegistry(), Seed: 1, Now: now}).Client(),
			Registry: chain.MainnetRegistry(), Now: now,
			Handle: func(ctx context.Context, o outgoing.Outcome) error {
				of := o.Intent[strings.LastIndex(o.Intent, "/")+1:]
				require.False(t, within[of], "two outcomes of %s at once", of)
				within[of] = true
				_, _, _, err := outgoing.Intents.One(ctx, storage.Joined(s), "network/ETH", o.Intent)
				within[of] = false
				told[o.Intent]++
				return err
			},
		})
		require.NoError(t, err)
		tell := func(id string, p chain.Purpose) {
			o := outgoing.Outcome{Intent: id, Purpose: p, Tenant: "t", Network: "ETH", Currency: "ETH", State: outgoing.Settled, At: now()}
			require.NoError(t, storage.CommitOne(t.Context(), s, storage.Change{ID: "tell/" + id, Partition: "network/ETH", Put: []storage.Row{outgoing.Outcomes.Row(id, 0, now(), o)}}))
		}
		for i := range n {
			tell(fmt.Sprint("w", i), chain.ForWithdrawal)
		}
		s.Calls = 0
		worked, err := net.Step(t.Context())
		require.NoError(t, err)
		require.Equal(t, n, worked)
		calls[n] = s.Calls
		tell("s", chain.ForSweep)
		tell("gas/1/s", chain.ForGas)
		worked, err = net.Step(t.Context())
		require.NoError(t, err)
		require.Equal(t, 2, worked)
		worked, err = net.Step(t.Context())
		require.NoError(t, err)
		require.Zero(t, worked)
		require.Len(t, told, n+2)
		for id, times := range told {
			require.Equal(t, 1, times, id)
		}
	}
	require.Equal(t, map[int]int{1: 4, 60: 4}, calls)
}

// Many transactions of one address that have landed are followed in as many calls of the
// store as one is.
func TestFP01_LandedTransactionsAreFollowedTogether(t *testing.T) {
	t.Parallel()
	calls := map[int]int{}
	for _, n := range []int{1, 40} {
		s := &failing.Store{Counts: func(failing.Call) bool { return true }}
		w := funded(t, setup{change: func(c *outgoing.Config) { s.Store, c.Store = c.Store, s }})
		for i := range n {
			w.submit(w.intent(fmt.Sprint("p", i), 1))
		}
		_ = w.step()
		for range 200 { // one of an address is signed at a time
			if w.state(fmt.Sprint("p", n-1)) == outgoing.Signed {
				break
			}
			w.advance(poll)
			_ = w.step()
		}
		w.chain.Mine(10)
		w.advance(poll)
		w.heard, s.Calls = nil, 0
		_, err := w.Net.Step(w.ctx)
		calls[n] = s.Calls
		require.NoError(t, err)
		for i := range n {
			require.Equal(t, outgoing.Settled, w.state(fmt.Sprint("p", i)))
		}
		require.Len(t, w.heard, n)
		w.sound()
	}
	require.Equal(t, calls[1], calls[40])
	require.LessOrEqual(t, calls[1], 12)
}
