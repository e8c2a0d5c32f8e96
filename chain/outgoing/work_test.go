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
		require.NoError(t, s.Open(t.Context(), tables()...))
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
			o := outgoing.Outcome{Intent: id, Purpose: p, Tenant: "t", Network: "ETH", Currency: "ETH", State: outgoing.Final, At: now()}
			v := outgoing.IntentRow{Purpose: p, Tenant: "t", Network: "ETH", Currency: "ETH", State: outgoing.Final, Nonce: -1}
			require.NoError(t, storage.CommitOne(t.Context(), s, storage.Change{ID: "tell/" + id, Partition: "network/ETH", Put: []storage.Row{
				outgoing.Outcomes.Row(id, 0, now(), o), outgoing.Intents.Row(id, 0, time.Time{}, v),
			}}))
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
	require.Equal(t, map[int]int{1: 5, 60: 5}, calls)
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
			require.Equal(t, outgoing.Final, w.state(fmt.Sprint("p", i)))
		}
		require.Len(t, w.heard, n)
		w.sound()
	}
	require.Equal(t, calls[1], calls[40])
	require.LessOrEqual(t, calls[1], 12)
}

// Orders of many addresses start in lots that grow: each lot takes as many calls of the
// store as one order does. A signer that can sign many is asked once for a lot.
func TestFP01_OrdersAreStartedTogether(t *testing.T) {
	t.Parallel()
	calls, asked := map[int]int{}, map[int][]int{}
	for _, n := range []int{1, 64} {
		s := &failing.Store{Counts: func(failing.Call) bool { return true }}
		w := newWorld(t, setup{change: func(c *outgoing.Config) {
			s.Store, c.Store = c.Store, s
			c.Signer = manySigner{c.Signer, func(many int) { asked[n] = append(asked[n], many) }}
		}})
		for i := range n {
			from := w.key()
			w.fund(from, "ETH", 2*coin)
			in := w.intent(fmt.Sprint("p", i), coin)
			in.From, in.FromKey = from.Address, from.Key
			w.submit(in)
		}
		s.Calls = 0
		_, err := w.Net.Step(w.ctx)
		require.NoError(t, err)
		calls[n] = s.Calls
		for i := range n {
			require.Equal(t, outgoing.Signed, w.state(fmt.Sprint("p", i)))
		}
		w.run(10)
		for i := range n {
			require.Equal(t, outgoing.Final, w.state(fmt.Sprint("p", i)))
		}
		w.sound()
	}
	require.Equal(t, map[int][]int{1: {1}, 64: {4, 16, 44}}, asked)
	require.LessOrEqual(t, calls[1], 16)
	require.LessOrEqual(t, calls[64], 3*calls[1])
}

// manySigner signs many by asking for each.
type manySigner struct {
	chain.Signer
	asked func(many int)
}

func (s manySigner) SignMany(ctx context.Context, rs []chain.SignRequest) ([][]chain.Signature, []error) {
	s.asked(len(rs))
	out, errs := make([][]chain.Signature, len(rs)), make([]error, len(rs))
	for i := range rs {
		out[i], errs[i] = s.Sign(ctx, rs[i])
	}
	return out, errs
}

// A signer that answers for fewer than it was asked has answered for none: each order
// waits with its plan, and is paid once.
func TestFP01_SignerThatAnswersTooFew(t *testing.T) {
	t.Parallel()
	few := true
	w := newWorld(t, setup{change: func(c *outgoing.Config) {
		c.Signer = fewSigner{manySigner{c.Signer, func(int) {}}, &few}
	}})
	var all []chain.Intent
	for i := range 3 {
		from := w.key()
		w.fund(from, "ETH", 2*coin)
		in := w.intent(fmt.Sprint("p", i), coin)
		in.From, in.FromKey = from.Address, from.Key
		all = append(all, w.submit(in))
	}
	require.NoError(t, w.step())
	for _, in := range all {
		require.Equal(t, outgoing.Waiting, w.state(in.ID))
		require.Equal(t, outgoing.ReasonSigner, w.last(in.ID).Reason)
		require.True(t, w.get(in.ID).Signing)
	}
	few = false
	w.run(12)
	for _, in := range all {
		w.paid(in)
	}
	require.Len(t, w.signer.payloads, len(all), "each was signed as one payload")
	w.sound()
}

type fewSigner struct {
	manySigner
	few *bool
}

func (s fewSigner) SignMany(ctx context.Context, rs []chain.SignRequest) ([][]chain.Signature, []error) {
	out, errs := s.manySigner.SignMany(ctx, rs)
	if *s.few {
		return out[:len(out)-1], errs[:len(errs)-1]
	}
	return out, errs
}

// A node is so slow that the lease of all that were claimed does not last for them. Each
// is started all the same, once, and no lease ends in the middle of a lot.
func TestFP01_ASlowNodeGetsSmallLots(t *testing.T) {
	t.Parallel()
	const n = 40
	var w *world
	var late, built int
	w = newWorld(t, setup{change: func(c *outgoing.Config) {
		c.Client = slowClient{c.Client.(fullClient), func() {
			built++
			w.advance(2 * time.Second)
		}}
	}})
	for i := range n {
		from := w.key()
		w.fund(from, "ETH", 2*coin)
		in := w.intent(fmt.Sprint("p", i), coin)
		in.From, in.FromKey = from.Address, from.Key
		w.submit(in)
	}
	for range 20 {
		claimed := w.clock()
		_, err := w.Net.Step(w.ctx)
		require.NoError(t, err)
		if w.clock().Sub(claimed) > time.Minute {
			late++
		}
		w.advance(2 * time.Minute)
		if w.state(fmt.Sprint("p", n-1)) == outgoing.Signed {
			break
		}
	}
	for i := range n {
		require.Contains(t, []outgoing.State{outgoing.Signed, outgoing.Executed, outgoing.Final}, w.state(fmt.Sprint("p", i)))
	}
	require.Zero(t, late, "a lot lasted longer than its lease")
	require.Equal(t, n, built)
	w.run(10)
	w.sound()
}

type slowClient struct {
	fullClient
	built func()
}

func (c slowClient) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	c.built()
	return c.fullClient.Build(ctx, o)
}

// Another process holds the network's rows for a moment. The order waits for it, and is
// not put off until its lease ends.
func TestFP01_AnOrderWaitsForItsPartition(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"out/reserve/", "out/store/"} {
		busy := &busyStore{of: op}
		w := funded(t, setup{change: func(c *outgoing.Config) { busy.Store, c.Store = c.Store, busy }})
		in := w.submit(w.intent("a", coin))
		_, err := w.Net.Step(w.ctx)
		require.NoError(t, err)
		require.True(t, busy.was, "the order did not meet the other process")
		require.Equal(t, outgoing.Signed, w.state("a"))
		w.run(12)
		w.paid(in)
		require.Len(t, w.signer.payloads, 1)
		w.sound()
	}
}

// busyStore is one whose partition another process holds whenever a Change of a kind does
// not wait.
type busyStore struct {
	storage.Store
	of  string
	was bool
}

func (s *busyStore) Commit(ctx context.Context, changes ...storage.Change) []error {
	for i := range changes {
		if changes[i].NoWait && strings.HasPrefix(changes[i].ID, s.of) {
			s.was = true
			return slices.Repeat([]error{storage.ErrBusy}, len(changes))
		}
	}
	return s.Store.Commit(ctx, changes...)
}
