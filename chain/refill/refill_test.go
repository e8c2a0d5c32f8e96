package refill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/storage/sqlstore/sqlite"
	"github.com/cryptopay-go/cryptopay/storage/stream"
)

// node is a network on which cold coins are spent: what is signed is the payload behind "signed ".
type node struct {
	chain.Client
	w      *world
	built  int
	sent   map[string]int // how often each transaction was taken
	state  chain.Status
	refuse error // of the next Broadcast; the node has taken it all the same where keeps
	keeps  bool
	fee    ledger.Amount
}

func (n *node) Network() chain.Network { return "BTC" }

func (n *node) ColdAddress(descriptor string) (chain.Address, error) {
	return chain.Address(descriptor), nil
}

func (n *node) ProposeCold(_ context.Context, descriptor string, o chain.Order) (chain.Unsigned, string, error) {
	if n.fee > o.Intent.MaxCost {
		return chain.Unsigned{}, "", &chain.DearError{Need: n.fee, Most: o.Intent.MaxCost}
	}
	n.built++
	tx := fmt.Sprint("tx", n.built)
	coin := o.Coins[0]
	return chain.Unsigned{
		Network: "BTC", Payload: []byte("pay " + tx), Spends: []string{coin.Outpoint}, MaxCost: n.fee,
		Outputs: []chain.Output{{To: o.Intent.To, Amount: o.Intent.Amount}, {To: chain.Address(descriptor), Amount: coin.Amount - o.Intent.Amount - n.fee, Change: true}},
	}, tx, nil
}

func (n *node) AcceptCold(_ chain.Address, payload, signed []byte) (chain.Signed, error) {
	if !bytes.Equal(signed, append([]byte("signed "), payload...)) {
		return chain.Signed{}, fmt.Errorf("%w: output 0 is another", chain.ErrRejected)
	}
	return chain.Signed{Tx: string(bytes.TrimPrefix(payload, []byte("pay "))), Raw: signed}, nil
}

func (n *node) Status(context.Context, ...chain.Attempt) ([]chain.Status, error) {
	return []chain.Status{n.state}, nil
}

// Broadcast demands that what is sent is stored.
func (n *node) Broadcast(ctx context.Context, s chain.Stored) error {
	n.w.t.Helper()
	rows, err := n.w.store.Find(ctx, storage.Query{
		Table: refill.Proposals.Table, Partition: storage.Tenant("t"), Limit: 10, Where: []storage.Cond{{Column: "tx", Op: storage.Eq, Value: s.Tx()}},
	})
	require.NoError(n.w.t, err)
	require.Len(n.w.t, rows, 1)
	require.Equal(n.w.t, s.Raw(), refill.Proposals.Value(rows[0]).Raw)
	err, n.refuse = n.refuse, nil
	if err == nil || n.keeps {
		n.sent[s.Tx()]++
		n.state = chain.Status{State: chain.Pending}
	}
	return err
}

// seals are those of a store.
type seals struct{ keys mandate.Keys }

func (s seals) Make(t mandate.Terms) (string, error) { t.Store = "s"; return s.keys.Make(t), nil }

func (s seals) Check(_ context.Context, text string, t mandate.Terms) error {
	t.Store = "s"
	return s.keys.Check(text, t)
}

// heard counts the events of Changes that were committed, once each.
type heard struct {
	storage.Store
	moves map[string][]storage.Event // by Change
}

func (h *heard) Commit(ctx context.Context, changes ...storage.Change) []error {
	errs := h.Store.Commit(ctx, changes...)
	for i, c := range changes {
		if errs[i] == nil {
			h.moves[c.ID] = c.Tell
		}
	}
	return errs
}

// world is a tenant with 10,000 units at a cold address.
type world struct {
	t     *testing.T
	store storage.Store
	heard *heard
	node  *node
	now   time.Time
	s     *refill.Service
}

const lasts = time.Hour

func newWorld(t *testing.T, store storage.Store, between func(storage.Store) storage.Store) *world {
	t.Helper()
	require.NoError(t, store.Open(t.Context(), append(append(storage.Tables(), stream.Tables()...), append(outgoing.Tables(), refill.Proposals.Table)...)...))
	w := &world{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	w.heard = &heard{store, map[string][]storage.Event{}}
	w.store = w.heard
	w.node = &node{w: w, sent: map[string]int{}, fee: 10, state: chain.Status{State: chain.Unknown}}
	used := w.store
	if between != nil {
		used = between(used)
	}
	var err error
	w.s, err = refill.New(refill.Config{
		Store: used, Registry: chain.MainnetRegistry(), Clients: map[chain.Network]chain.Client{"BTC": w.node}, Lasts: lasts,
		Seals: seals{mandate.Keys{mandate.Derive(bytes.Repeat([]byte{1}, 32))}}, Now: func() time.Time { return w.now },
		Source: func(context.Context, string, *chain.Currency) (refill.Source, error) {
			return refill.Source{Address: "cold", Descriptor: "cold", Hot: "hot", Coins: []chain.Coin{{Outpoint: "made:0", Address: "cold", Amount: 10_000}}}, nil
		},
	})
	require.NoError(t, err)
	return w
}

func (w *world) propose() refill.Proposal {
	w.t.Helper()
	p, err := w.s.Propose(w.t.Context(), "t", "BTC", 4000, false, "ann", false, nil)
	require.NoError(w.t, err)
	return p
}

func (w *world) get(id string) refill.Proposal {
	w.t.Helper()
	p, err := w.s.Get(w.t.Context(), "t", id)
	require.NoError(w.t, err)
	return p
}

func (w *world) all() []refill.Proposal {
	w.t.Helper()
	all, total, err := w.s.List(w.t.Context(), "t", 10, 0)
	require.NoError(w.t, err)
	require.EqualValues(w.t, len(all), total)
	return all
}

func (w *world) later(d time.Duration) {
	w.t.Helper()
	w.now = w.now.Add(d)
	_, err := w.s.Step(w.t.Context())
	require.NoError(w.t, err)
}

func (w *world) take(p refill.Proposal) (refill.Proposal, bool) {
	w.t.Helper()
	p, made, err := w.s.Take(w.t.Context(), "t", p.ID, signed(p), false, nil)
	require.NoError(w.t, err)
	return p, made
}

// halts has an operator halt the network, or lift that.
func (w *world) halts(all ...outgoing.Halt) {
	w.t.Helper()
	op := outgoing.Operation{By: "ann", Reason: "a look", At: w.now}
	require.NoError(w.t, outgoing.SetHalts(w.t.Context(), w.store, nil, storage.Network("BTC"), fmt.Sprint(len(all), " halts at ", w.now), op, func([]outgoing.Halt) []outgoing.Halt { return all }))
}

// While an operator has halted the network, no process takes a signed refill, or sends one again.
func TestFT05_HaltedRefillIsNotSent(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		w := newWorld(t, store(), nil)
		p := w.propose()
		w.halts(outgoing.Halt{Reason: "keys may be stolen", By: "ann", Since: w.now})
		_, _, err := w.s.Take(t.Context(), "t", p.ID, signed(p), false, nil)
		require.ErrorIs(t, err, outgoing.ErrHelp)
		require.ErrorContains(t, err, "keys may be stolen")
		w.later(time.Minute)
		require.Equal(t, refill.Open, w.get(p.ID).Status)
		w.halts()
		taken, _ := w.take(p)
		w.later(0)
		require.Equal(t, map[string]int{p.Tx: 1}, w.node.sent)
		w.node.state = chain.Status{State: chain.Unknown} // nodes forget it
		w.halts(outgoing.Halt{Scope: outgoing.Scope{Tenant: "t"}, Reason: "a look", By: "ann", Since: w.now})
		w.later(time.Minute)
		w.later(time.Minute)
		require.Equal(t, map[string]int{p.Tx: 1}, w.node.sent)
		require.Equal(t, "halted", w.get(p.ID).Reason)
		again, made := w.take(p)
		require.False(t, made, "it was taken before")
		require.Equal(t, taken.Tx, again.Tx)
		w.halts()
		w.later(time.Minute)
		require.Equal(t, map[string]int{p.Tx: 2}, w.node.sent)
		w.later(time.Minute)
		require.Empty(t, w.get(p.ID).Reason)
	})
}

func signed(p refill.Proposal) []byte { return append([]byte("signed "), p.Payload...) }

// told are the statuses that the host heard of, in any order, once each.
func (w *world) told() map[refill.Status]int {
	w.t.Helper()
	out := map[refill.Status]int{}
	for _, events := range w.heard.moves {
		for _, e := range events {
			b, err := refill.Kinds()[e.Kind](e.Data)
			require.NoError(w.t, err)
			out[b.(refill.ProposalChanged).To]++
		}
	}
	return out
}

func onBoth(t *testing.T, f func(t *testing.T, store func() storage.Store)) {
	t.Helper()
	t.Parallel()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		f(t, func() storage.Store { return memory.New() })
	})
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		n := 0
		f(t, func() storage.Store {
			n++
			file := filepath.Join(t.TempDir(), fmt.Sprint(n, ".db"))
			require.NoError(t, sqlite.Migrate(t.Context(), file))
			s, err := sqlite.Open(file, sqlite.Options{})
			require.NoError(t, err)
			t.Cleanup(func() { _ = s.Close() })
			return s
		})
	})
}

var final = chain.Status{State: chain.Included, Executed: true, Confirmations: 100}

// TestRefill: made, taken once, sent until a node has it, landed. A copy is the same, and another one
// changes nothing.
func TestRefill(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		w, ctx := newWorld(t, store(), nil), t.Context()
		dry, err := w.s.Propose(ctx, "t", "BTC", 4000, false, "ann", true, nil)
		require.NoError(t, err)
		require.Empty(t, dry.ID)
		p := w.propose()
		require.Equal(t, []refill.Proposal{p}, w.all())
		_, err = w.s.Propose(ctx, "t", "BTC", 1, false, "ann", false, nil)
		require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Open}, err)
		_, _, err = w.s.Take(ctx, "t", p.ID, []byte("signed something else"), false, nil)
		require.ErrorIs(t, err, chain.ErrRejected)
		_, made, err := w.s.Take(ctx, "t", p.ID, signed(p), true, nil)
		require.NoError(t, err)
		require.False(t, made)
		_, _, err = w.s.Cancel(ctx, "t", p.ID, true, nil)
		require.NoError(t, err)
		require.Equal(t, p, w.get(p.ID), "nothing has changed")

		taken, made := w.take(p)
		require.True(t, made)
		require.Equal(t, refill.Sending, taken.Status)
		again, made := w.take(p)
		require.False(t, made)
		require.Equal(t, taken, again)
		_, _, err = w.s.Cancel(ctx, "t", p.ID, false, nil)
		require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Sending}, err, "it may land")

		w.node.refuse = chain.ErrNode // it is lost
		w.later(0)
		require.Equal(t, "not_taken", w.get(p.ID).Reason)
		w.node.refuse, w.node.keeps = chain.ErrNode, true // its outcome is unknown
		w.later(time.Minute)
		w.later(time.Minute)
		require.Empty(t, w.get(p.ID).Reason)
		require.Equal(t, map[string]int{p.Tx: 1}, w.node.sent)
		w.node.state = chain.Status{State: chain.Unknown} // nodes forget it
		w.later(time.Minute)
		require.Equal(t, map[string]int{p.Tx: 2}, w.node.sent)
		w.node.state = chain.Status{State: chain.Pending} // and keep it, for long
		w.later(5 * time.Hour)
		require.Empty(t, w.get(p.ID).Reason)
		w.later(time.Hour)
		w.later(time.Hour)
		require.Equal(t, "not_mined", w.get(p.ID).Reason)
		w.node.state = chain.Status{State: chain.Included, Executed: true, Confirmations: 1}
		w.later(2 * lasts)
		require.Equal(t, refill.Sending, w.get(p.ID).Status)
		w.node.state = final
		w.later(time.Minute)
		require.Equal(t, refill.Landed, w.get(p.ID).Status)
		_, made = w.take(p)
		require.False(t, made)
		require.Equal(t, map[refill.Status]int{refill.Open: 1, refill.Sending: 5, refill.Landed: 1}, w.told(), "and each reason")
		coins, err := w.s.Change(ctx, "t", "BTC", "cold")
		require.NoError(t, err)
		require.Equal(t, []chain.Coin{{Outpoint: p.Tx + ":1", Address: "cold", Amount: 5990}}, coins)
		require.Equal(t, "refill-BTC-2", w.propose().ID)
	})
}

// TestRefillEnds: in each way that a proposal ends without landing its coins are free for the next.
func TestRefillEnds(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		w, ctx := newWorld(t, store(), nil), t.Context()
		late := w.propose()
		w.now = w.now.Add(lasts)
		_, _, err := w.s.Take(ctx, "t", late.ID, signed(late), false, nil)
		require.Equal(t, &refill.StateError{ID: late.ID, Current: refill.Expired}, err)
		w.later(0)
		require.Equal(t, refill.Expired, w.get(late.ID).Status)

		ended := w.propose()
		_, made, err := w.s.Cancel(ctx, "t", ended.ID, false, nil)
		require.NoError(t, err)
		require.True(t, made)
		_, made, err = w.s.Cancel(ctx, "t", ended.ID, false, nil)
		require.NoError(t, err)
		require.False(t, made)

		for _, back := range []bool{false, true} {
			gone := w.propose()
			if back {
				w.take(gone)
			}
			w.node.state = chain.Status{State: chain.Conflicted, By: "another", Confirmations: 1}
			w.later(time.Minute)
			require.NotEqual(t, refill.Gone, w.get(gone.ID).Status, "a fork may bring it back")
			w.node.state.Confirmations = 100
			w.later(time.Minute)
			require.Equal(t, refill.Gone, w.get(gone.ID).Status)
			require.Contains(t, w.get(gone.ID).Reason, "another")
			w.node.state = chain.Status{State: chain.Unknown}
			_, _, err = w.s.Take(ctx, "t", gone.ID, signed(gone), false, nil)
			require.Equal(t, &refill.StateError{ID: gone.ID, Current: refill.Gone}, err)
		}

		hand := w.propose()
		w.node.state = chain.Status{State: chain.Pending}
		w.later(time.Minute)
		require.Equal(t, refill.Sending, w.get(hand.ID).Status, "its owner has sent it")
		w.node.state = chain.Status{State: chain.Unknown}
		w.later(lasts)
		require.Equal(t, refill.Expired, w.get(hand.ID).Status, "it went away again, and never came back")

		kept := w.propose()
		w.node.state = chain.Status{State: chain.Pending}
		w.later(time.Minute)
		_, made = w.take(kept)
		require.True(t, made, "from now on it is sent again")
		w.node.state = chain.Status{State: chain.Unknown}
		w.later(2 * lasts)
		require.Equal(t, 1, w.node.sent[kept.Tx])
		require.Equal(t, refill.Sending, w.get(kept.ID).Status)
		require.Equal(t, map[refill.Status]int{refill.Open: 6, refill.Sending: 3, refill.Expired: 2, refill.Cancelled: 1, refill.Gone: 2}, w.told())
	})
}

// TestRefillRefuses: what cannot be meant, or costs more than half of what it moves.
func TestRefillRefuses(t *testing.T) {
	t.Parallel()
	w, ctx := newWorld(t, memory.New(), nil), t.Context()
	_, err := w.s.Propose(ctx, "t", "BTC", 0, false, "ann", false, nil)
	require.ErrorContains(t, err, "above 0")
	_, err = w.s.Propose(ctx, "t", "XXX", 1, false, "ann", false, nil)
	require.ErrorIs(t, err, chain.ErrCurrency)
	_, err = w.s.Propose(ctx, "t", "ETH", 1, false, "ann", false, nil)
	require.ErrorIs(t, err, chain.ErrCurrency, "no client")
	w.node.fee = 2001
	_, err = w.s.Propose(ctx, "t", "BTC", 4000, false, "ann", false, nil)
	require.ErrorIs(t, err, chain.ErrTooDear)
	_, err = w.s.Get(ctx, "t", "refill-BTC-1")
	require.ErrorIs(t, err, refill.ErrNotFound)
}

// TestRefillEdited: whoever writes to the database alone has nothing taken back, sent or booked by
// what he wrote.
func TestRefillEdited(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		for name, edit := range map[string]func(p *refill.Proposal){
			"recipient": func(p *refill.Proposal) { p.To = "thief" },
			"amount":    func(p *refill.Proposal) { p.Amount = 1 },
			"fee":       func(p *refill.Proposal) { p.Fee = 9 },
			"payload":   func(p *refill.Proposal) { p.Payload = []byte("pay tx9") },
			"tx":        func(p *refill.Proposal) { p.Tx = "tx9" },
			"inputs":    func(p *refill.Proposal) { p.Inputs = []string{"theirs:0"} },
			"outputs":   func(p *refill.Proposal) { p.Outputs[0].To = "thief" },
			"time":      func(p *refill.Proposal) { p.ExpiresAt = p.ExpiresAt.Add(time.Hour) },
			"seal":      func(p *refill.Proposal) { p.Seal = "" },
			"number":    func(p *refill.Proposal) { p.Number = 7 },
		} {
			w, ctx := newWorld(t, store(), nil), t.Context()
			p := w.propose()
			_, row, _, err := refill.Proposals.One(ctx, w.store, storage.Tenant("t"), p.ID)
			require.NoError(t, err)
			edit(&p)
			require.NoError(t, storage.CommitOne(ctx, w.store, storage.Change{
				ID: "edited", Partition: row.Partition, Put: []storage.Row{refill.Proposals.Row(row.ID, row.Version, row.Due, p)},
			}), name)
			_, _, err = w.s.Take(ctx, "t", row.ID, signed(p), false, nil)
			require.ErrorIs(t, err, refill.ErrAltered, name)
			made, err := w.s.Of(ctx, "t", "BTC", p.Tx)
			require.NoError(t, err)
			require.Empty(t, made, name)
			w.node.state = final
			w.later(time.Minute)
			require.Equal(t, refill.Open, w.get(row.ID).Status, name)
			require.Empty(t, w.node.sent)
		}
	})
}

// TestRefillCrashes: whatever befalls any commit of a refill, at each step, it is made once, sent once it
// is stored, landed and told of once.
func TestRefillCrashes(t *testing.T) {
	crashes(t, "BTC", signed, func(t *testing.T, store storage.Store, between func(storage.Store) storage.Store) (*world, func(refill.Proposal)) {
		w := newWorld(t, store, between)
		return w, func(p refill.Proposal) {
			if w.node.sent[p.Tx] > 0 {
				w.node.state = final
			}
		}
	})
}

// TestAccountRefillCrashes is the same on a network of accounts.
func TestAccountRefillCrashes(t *testing.T) {
	sign := func(p refill.Proposal) []byte { return by("ann", p) }
	crashes(t, "ETH", sign, func(t *testing.T, store storage.Store, between func(storage.Store) storage.Store) (*world, func(refill.Proposal)) {
		w, n := newAccounts(t, store, between)
		return w, func(p refill.Proposal) {
			if tx := "0x" + string(sign(p)); n.sent[tx] > 0 {
				n.mined, n.state = tx, included(100)
			}
		}
	})
}

// crashes has each fault befall each commit of a refill. open makes the world on a store, and what has the
// refill's transaction in a final block once it was sent.
func crashes(
	t *testing.T, currency string, sign func(refill.Proposal) []byte,
	open func(*testing.T, storage.Store, func(storage.Store) storage.Store) (w *world, mine func(refill.Proposal)),
) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		for _, fault := range failing.Faults {
			met := 0
			for at := 1; at <= 4; at++ {
				var c *failing.Commits
				w, mine := open(t, store(), func(s storage.Store) storage.Store {
					c = &failing.Commits{Store: s, At: map[int]failing.Fault{at: fault}, Meanwhile: func() {}}
					return c
				})
				ctx := t.Context()
				busy := (*refill.StateError)(nil)
				asked(t, func() bool {
					_, err := w.s.Propose(ctx, "t", currency, 4000, false, "ann", false, nil)
					return err == nil || errors.As(err, &busy)
				})
				all := w.all()
				require.Len(t, all, 1)
				asked(t, func() bool {
					_, _, err := w.s.Take(ctx, "t", all[0].ID, sign(all[0]), false, nil)
					return err == nil
				})
				for i := 0; w.get(all[0].ID).Status != refill.Landed; i++ {
					require.Less(t, i, 20)
					mine(all[0])
					w.now = w.now.Add(2 * time.Minute)
					_, _ = w.s.Step(ctx) // an error is of what is done again
				}
				met += len(c.Met)
				require.Len(t, w.all(), 1)
				require.Equal(t, map[refill.Status]int{refill.Open: 1, refill.Sending: 1, refill.Landed: 1}, w.told(), "%s at %d", fault, at)
			}
			require.GreaterOrEqual(t, met, 3, fault)
		}
	})
}

// asked has a caller ask until he gets an answer.
func asked(t *testing.T, f func() bool) {
	t.Helper()
	for range 10 {
		if f() {
			return
		}
	}
	t.Fatal("no answer")
}

// TestRefillTakenWhileAnotherSendsIt: a worker of another process sees the transaction at a node at the
// moment at which it is taken back here. It is stored all the same, and sent again once no node has it.
func TestRefillTakenWhileAnotherSendsIt(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		c := &failing.Commits{At: map[int]failing.Fault{2: failing.Passed}}
		w := newWorld(t, store(), func(s storage.Store) storage.Store { c.Store = s; return c })
		p := w.propose()
		c.Meanwhile = func() {
			w.node.state = chain.Status{State: chain.Pending}
			w.later(2 * time.Minute)
			require.Equal(t, refill.Sending, w.get(p.ID).Status)
		}
		_, made := w.take(p)
		require.True(t, made)
		require.Len(t, c.Met, 1)
		w.node.state = chain.Status{State: chain.Unknown}
		w.later(2 * lasts)
		require.Equal(t, 1, w.node.sent[p.Tx])
		require.Equal(t, refill.Sending, w.get(p.ID).Status)
	})
}

// TestRefillProposedByTwo: two people propose at the same moment. One proposal is made, and the other person
// gets an error that names it.
func TestRefillProposedByTwo(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		c := &failing.Commits{At: map[int]failing.Fault{1: failing.Passed}}
		w := newWorld(t, store(), func(s storage.Store) storage.Store { c.Store = s; return c })
		recorded := func(id string) *outgoing.Recorded {
			return &outgoing.Recorded{ID: id, Op: outgoing.Operation{Kind: outgoing.OpRefill, At: w.now}, Part: storage.Tenant("t")}
		}
		c.Meanwhile = func() {
			w.node.built = 0
			_, err := w.s.Propose(t.Context(), "t", "BTC", 4000, false, "bob", false, recorded("bob's"))
			require.NoError(t, err)
		}
		_, err := w.s.Propose(t.Context(), "t", "BTC", 4000, false, "ann", false, recorded("ann's"))
		busy := (*refill.StateError)(nil)
		require.ErrorAs(t, err, &busy)
		require.Equal(t, "bob", w.get("refill-BTC-1").By)

		c.At, c.Met = map[int]failing.Fault{c.Seen + 1: failing.Passed}, nil
		c.Meanwhile = func() {
			_, made, err := w.s.Cancel(t.Context(), "t", "refill-BTC-1", false, recorded("bob's end"))
			require.NoError(t, err)
			require.True(t, made)
		}
		_, made, err := w.s.Cancel(t.Context(), "t", "refill-BTC-1", false, recorded("ann's end"))
		require.NoError(t, err)
		require.False(t, made, "the other's call ended it, and is recorded")
	})
}
