package refill_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/mandate"
	"github.com/cryptopay-go/cryptopay/chain/refill"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
)

// accounts is a network of accounts with one cold address. What is signed is a name, a bar and the
// payload; its hash is "0x" and that.
type accounts struct {
	chain.Client
	w       *world
	built   int
	nonce   int
	fee     ledger.Amount
	state   chain.Status // of the transaction that has the nonce
	mined   string       // its hash, "" = none has
	pool    map[string]bool
	sent    map[string]int
	down    error
	refuse  error
	without bool          // no key signs for the address
	holds   ledger.Amount // what lies there, 0 = enough
	mu      sync.Mutex
	meet    func() // before a transaction is made
}

func (n *accounts) Network() chain.Network { return "ETH" }

func (n *accounts) ColdAddress(descriptor string) (chain.Address, error) {
	return chain.Address(descriptor), nil
}

func (n *accounts) EstimateFee(context.Context, chain.Intent) (chain.Fee, error) {
	return chain.Fee{Currency: "ETH", Cost: n.fee, Max: n.fee}, n.down
}

func (n *accounts) ProposeCold(_ context.Context, from string, o chain.Order) (chain.Unsigned, string, error) {
	if n.meet != nil {
		n.meet()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	needs := n.fee
	if o.Intent.Currency == "ETH" {
		needs += o.Intent.Amount
	}
	switch {
	case n.holds > 0 && needs > n.holds:
		return chain.Unsigned{}, "", fmt.Errorf("%w: of ether", chain.ErrShort)
	case n.down != nil:
		return chain.Unsigned{}, "", n.down
	case n.without:
		return chain.Unsigned{}, "", fmt.Errorf("a contract: %w", errors.ErrUnsupported)
	case n.fee > o.Intent.MaxCost:
		return chain.Unsigned{}, "", &chain.DearError{Need: n.fee, Most: o.Intent.MaxCost}
	}
	n.built++
	return chain.Unsigned{
		Network: "ETH", Payload: fmt.Appendf(nil, "pay %d with %d", n.built, n.nonce), Spends: []string{fmt.Sprint(from, "/", n.nonce)}, MaxCost: n.fee,
		Outputs: []chain.Output{{To: o.Intent.To, Currency: o.Intent.Currency, Amount: o.Intent.Amount}},
	}, "", nil
}

func (n *accounts) AcceptCold(from chain.Address, payload, signed []byte) (chain.Signed, error) {
	if by, what, _ := bytes.Cut(signed, []byte("|")); !bytes.Equal(what, payload) || len(by) == 0 || from != "cold" {
		return chain.Signed{}, fmt.Errorf("%w: it is another", chain.ErrRejected)
	}
	return chain.Signed{Tx: "0x" + string(signed), Raw: signed}, nil
}

func (n *accounts) Status(_ context.Context, all ...chain.Attempt) ([]chain.Status, error) {
	tx := all[0].Tx
	switch {
	case n.down != nil:
		return nil, n.down
	case "0x"+string(all[0].Raw) != tx:
		return []chain.Status{{State: chain.Unknown}}, nil
	case n.mined == tx:
		return []chain.Status{n.state}, nil
	case n.mined != "":
		return []chain.Status{{State: chain.Conflicted, By: n.mined, Confirmations: n.state.Confirmations}}, nil
	case n.pool[tx]:
		return []chain.Status{{State: chain.Pending}}, nil
	}
	return []chain.Status{{State: chain.Unknown}}, nil
}

func (n *accounts) FindCold(_ context.Context, _ chain.Address, payload []byte, _ string) (string, chain.Status, error) {
	switch {
	case n.down != nil:
		return "", chain.Status{}, n.down
	case n.mined == "":
		return "", chain.Status{State: chain.Unknown}, nil
	case strings.HasSuffix(n.mined, "|"+string(payload)):
		return n.mined, n.state, nil
	}
	return "", chain.Status{State: chain.Conflicted, By: n.mined, Confirmations: n.state.Confirmations}, nil
}

func (n *accounts) ShowCold(_ chain.Address, payload []byte) ([]byte, error) {
	return fmt.Appendf(nil, "%q", payload), nil
}

// Broadcast demands that what is sent is stored.
func (n *accounts) Broadcast(_ context.Context, s chain.Stored) error {
	n.w.t.Helper()
	all, _, err := n.w.s.List(n.w.t.Context(), "t", 10, 0)
	require.NoError(n.w.t, err)
	kept := false
	for _, p := range all {
		kept = kept || p.Tx == s.Tx() && bytes.Equal(p.Raw, s.Raw())
	}
	require.True(n.w.t, kept)
	if n.refuse != nil {
		return n.refuse
	}
	n.pool[s.Tx()] = true
	n.sent[s.Tx()]++
	return nil
}

// process is another process on the store of a world.
func (w *world) process(n *accounts, store storage.Store) *refill.Service {
	w.t.Helper()
	s, err := refill.New(refill.Config{
		Store: store, Registry: chain.MainnetRegistry(), Clients: map[chain.Network]chain.Client{"ETH": n}, Lasts: lasts,
		Seals: seals{mandate.Keys{mandate.Derive(bytes.Repeat([]byte{1}, 32))}}, Now: func() time.Time { return w.now },
		Source: func(_ context.Context, _ string, c *chain.Currency) (refill.Source, error) {
			return refill.Source{Address: "cold", Descriptor: "cold", Hot: "hot", Lies: 10_000}, nil
		},
		Worth: func(_ context.Context, _ string, a ledger.Amount) (ledger.Amount, error) { return a / 100, nil },
	})
	require.NoError(w.t, err)
	return s
}

// newAccounts is a tenant with 10,000 units of each currency at a cold address.
func newAccounts(t *testing.T, store storage.Store, between func(storage.Store) storage.Store) (*world, *accounts) {
	t.Helper()
	w := newWorld(t, store, nil)
	n := &accounts{w: w, pool: map[string]bool{}, sent: map[string]int{}, fee: 10, nonce: 5}
	used := w.store
	if between != nil {
		used = between(used)
	}
	w.s = w.process(n, used)
	return w, n
}

func (w *world) proposeIn(currency string) refill.Proposal {
	w.t.Helper()
	p, err := w.s.Propose(w.t.Context(), "t", currency, 4000, false, "ann", false, nil)
	require.NoError(w.t, err)
	return p
}

func by(name string, p refill.Proposal) []byte { return []byte(name + "|" + string(p.Payload)) }

func included(confirmations int64) chain.Status {
	return chain.Status{State: chain.Included, Executed: true, Confirmations: confirmations, Cost: 7}
}

// TestAccountRefill: made, taken once whoever signs it again, sent until a node has it, landed. Another
// currency of the same cold address waits for it, because it has the nonce.
func TestAccountRefill(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		w, n := newAccounts(t, store(), nil)
		ctx := t.Context()
		p := w.proposeIn("USDTERC20")
		require.Empty(t, p.Tx)
		require.Equal(t, []string{"cold/5"}, p.Inputs)
		shown, err := w.s.Show(&p)
		require.NoError(t, err)
		require.Equal(t, `"pay 1 with 5"`, string(shown))
		_, err = w.s.Propose(ctx, "t", "ETH", 4000, false, "ann", false, nil)
		require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Open}, err)
		_, _, err = w.s.Take(ctx, "t", p.ID, []byte("ann|something else"), false, nil)
		require.ErrorIs(t, err, chain.ErrRejected)
		_, made, err := w.s.Take(ctx, "t", p.ID, by("ann", p), true, nil)
		require.NoError(t, err)
		require.False(t, made)
		require.Equal(t, p, w.get(p.ID))

		taken, made, err := w.s.Take(ctx, "t", p.ID, by("ann", p), false, nil)
		require.NoError(t, err)
		require.True(t, made)
		require.Equal(t, "0xann|pay 1 with 5", taken.Tx)
		again, made, err := w.s.Take(ctx, "t", p.ID, by("bob", p), false, nil)
		require.NoError(t, err)
		require.False(t, made)
		require.Equal(t, taken, again)

		n.down = chain.ErrNode
		w.now = w.now.Add(time.Minute)
		_, err = w.s.Step(ctx)
		require.ErrorIs(t, err, chain.ErrNode)
		n.down, n.refuse = nil, chain.ErrNode
		w.later(time.Minute)
		require.Equal(t, "not_taken", w.get(p.ID).Reason)
		n.refuse = nil
		w.later(time.Minute)
		w.later(time.Minute)
		require.Empty(t, w.get(p.ID).Reason)
		require.Equal(t, map[string]int{taken.Tx: 1}, n.sent)
		clear(n.pool)
		w.later(2 * lasts)
		require.Equal(t, map[string]int{taken.Tx: 2}, n.sent, "what nodes forget is sent again")
		_, _, _, err = w.s.Sent(ctx, "t", "ETH", "USDTERC20", taken.Tx, []string{"cold/5"})
		require.ErrorIs(t, err, chain.ErrBehind, "who saw it in a block knows more than this node")
		n.mined, n.state = taken.Tx, included(1)
		w.later(time.Minute)
		require.Equal(t, refill.Sending, w.get(p.ID).Status)
		_, cost, ok, err := w.s.Sent(ctx, "t", "ETH", "USDTERC20", taken.Tx, []string{"cold/5"})
		require.NoError(t, err)
		require.True(t, ok)
		require.EqualValues(t, 7, cost)
		_, _, ok, err = w.s.Sent(ctx, "t", "ETH", "USDTERC20", "0xanother", []string{"cold/5"})
		require.NoError(t, err)
		require.False(t, ok)
		n.state = included(100)
		w.later(time.Minute)
		require.Equal(t, refill.Landed, w.get(p.ID).Status)
		require.Equal(t, map[refill.Status]int{refill.Open: 1, refill.Sending: 3, refill.Landed: 1}, w.told(), "and each reason")
		n.mined, n.nonce = "", 6
		require.Equal(t, "refill-ETH-1", w.proposeIn("ETH").ID)
	})
}

// TestAccountRefillSentByHand: a node has it before it came back, or in another signature than came back.
func TestAccountRefillSentByHand(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		w, n := newAccounts(t, store(), nil)
		ctx := t.Context()
		hand := w.proposeIn("ETH")
		n.mined, n.state = "0x"+string(by("ann", hand)), included(1)
		w.later(time.Minute)
		require.Equal(t, refill.Sending, w.get(hand.ID).Status)
		require.Equal(t, n.mined, w.get(hand.ID).Tx)
		n.mined = "" // a fork takes it away
		w.later(lasts)
		require.Equal(t, refill.Expired, w.get(hand.ID).Status)

		other := w.proposeIn("ETH")
		_, _, err := w.s.Take(ctx, "t", other.ID, by("ann", other), false, nil)
		require.NoError(t, err)
		n.mined, n.state = "0x"+string(by("bob", other)), included(1)
		w.later(time.Minute)
		require.Equal(t, "0x"+string(by("ann", other)), w.get(other.ID).Tx, "a fork may take the other away")
		n.mined = ""
		w.later(time.Minute)
		require.Equal(t, 1, n.sent["0x"+string(by("ann", other))])
		n.mined, n.state = "0x"+string(by("bob", other)), included(100)
		w.later(time.Minute)
		require.Equal(t, refill.Landed, w.get(other.ID).Status)
		require.Equal(t, n.mined, w.get(other.ID).Tx)
		_, made, err := w.s.Take(ctx, "t", other.ID, by("ann", other), false, nil)
		require.NoError(t, err)
		require.False(t, made)
	})
}

// TestAccountRefillIsGone: another transaction has the nonce, or its own failed. It is gone once that is
// final, and the reason names what is to be booked.
func TestAccountRefillIsGone(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		for _, back := range []bool{false, true} {
			for _, failed := range []bool{false, true} {
				w, n := newAccounts(t, store(), nil)
				p := w.proposeIn("USDTERC20")
				if back {
					_, _, err := w.s.Take(t.Context(), "t", p.ID, by("ann", p), false, nil)
					require.NoError(t, err)
				}
				n.mined, n.state = "0xanother", included(1)
				if failed {
					n.mined, n.state.Executed = "0x"+string(by("ann", p)), false
				}
				w.later(time.Minute)
				require.Contains(t, []refill.Status{refill.Open, refill.Sending}, w.get(p.ID).Status, "a fork may bring it back")
				n.state.Confirmations = 100
				w.later(time.Minute)
				require.Equal(t, refill.Gone, w.get(p.ID).Status)
				require.Contains(t, w.get(p.ID).Reason, n.mined)
				require.Contains(t, w.get(p.ID).Reason, "booked by hand")
				if failed {
					require.Contains(t, w.get(p.ID).Reason, "0.00000007 ETH")
				}
				_, _, err := w.s.Take(t.Context(), "t", p.ID, by("ann", p), false, nil)
				require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Gone}, err)
			}
		}
	})
}

// TestAccountRefillRefuses: what lies there by the books, what its fee is worth, and an address that nobody
// signs for.
func TestAccountRefillRefuses(t *testing.T) {
	t.Parallel()
	w, n := newAccounts(t, memory.New(), nil)
	propose := func(currency string, amount ledger.Amount) error {
		_, err := w.s.Propose(t.Context(), "t", currency, amount, false, "ann", false, nil)
		return err
	}
	require.ErrorIs(t, propose("ETH", 10_001), chain.ErrShort)
	require.ErrorIs(t, propose("ETH", 19), chain.ErrTooDear)
	require.ErrorIs(t, propose("USDTERC20", 1999), chain.ErrTooDear)
	n.without = true
	require.ErrorIs(t, propose("ETH", 100), refill.ErrUnable)
	n.without, n.down = false, chain.ErrNode
	require.ErrorIs(t, propose("ETH", 100), chain.ErrNode)
	n.down = nil
	require.NoError(t, propose("USDTERC20", 2000))
}

// TestAccountRefillEdited: whoever writes to the database alone has nothing taken back, sent or booked by
// what he wrote.
func TestAccountRefillEdited(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		for name, edit := range map[string]func(p *refill.Proposal){
			"recipient": func(p *refill.Proposal) { p.To = "thief" },
			"sender":    func(p *refill.Proposal) { p.From = "thief" },
			"payload":   func(p *refill.Proposal) { p.Payload = []byte("pay 9 with 5") },
			"nonce":     func(p *refill.Proposal) { p.Inputs = []string{"cold/6"} },
			"raw":       func(p *refill.Proposal) { p.Raw = []byte("thief|pay 9 with 5"); p.Tx = "0x" + string(p.Raw) },
			"hash":      func(p *refill.Proposal) { p.Tx = "0xanother" },
		} {
			w, n := newAccounts(t, store(), nil)
			ctx := t.Context()
			p := w.proposeIn("ETH")
			_, _, err := w.s.Take(ctx, "t", p.ID, by("ann", p), false, nil)
			require.NoError(t, err)
			p, row, _, err := refill.Proposals.One(ctx, w.store, storage.Tenant("t"), p.ID)
			require.NoError(t, err)
			edit(&p)
			require.NoError(t, storage.CommitOne(ctx, w.store, storage.Change{
				ID: "edited", Partition: row.Partition, Put: []storage.Row{refill.Proposals.Row(row.ID, row.Version, row.Due, p)},
			}), name)
			why, err := w.s.Contradicts(ctx, row.Partition, row.ID, &p)
			require.NoError(t, err)
			require.NotEmpty(t, why, name)
			_, _, err = w.s.Take(ctx, "t", row.ID, by("ann", p), false, nil)
			require.ErrorIs(t, err, refill.ErrAltered, name)
			n.mined, n.state = p.Tx, included(100)
			_, _, ok, err := w.s.Sent(ctx, "t", "ETH", "ETH", p.Tx, []string{"cold/5", "cold/6"})
			require.NoError(t, err)
			require.False(t, ok, name)
			n.mined = ""
			w.later(time.Minute)
			require.Equal(t, refill.Sending, w.get(row.ID).Status, name)
			require.Empty(t, n.sent, name)
		}
	})
}

// TestAccountRefillsOfOneColdAddress: two currencies, or two tenants, have one cold address. However close
// together their refills are proposed, one of them has the nonce, and the other is refused, or gone before
// anybody looks again.
func TestAccountRefillsOfOneColdAddress(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		type ask struct{ tenant, currency string }
		for name, second := range map[string]ask{"currencies": {"t", "ETH"}, "tenants": {"u", "USDTERC20"}} {
			w, n := newAccounts(t, store(), nil)
			ctx, first := t.Context(), ask{"t", "USDTERC20"}
			asks, errs := []ask{first, second}, make([]error, 2)
			both, met := new(sync.WaitGroup), new(sync.WaitGroup)
			met.Add(2)
			n.meet = func() { met.Done(); met.Wait() }
			for i, a := range asks {
				process := w.process(n, w.store)
				both.Go(func() { _, errs[i] = process.Propose(ctx, a.tenant, a.currency, 4000, false, "ann", false, nil) })
			}
			both.Wait()
			n.meet = nil
			w.later(time.Minute)
			var stand []refill.Proposal
			for i, a := range asks {
				all, _, err := w.s.List(ctx, a.tenant, 10, 0)
				require.NoError(t, err)
				for _, p := range all {
					if p.Currency == a.currency && p.Status == refill.Open {
						stand = append(stand, p)
						require.NoError(t, errs[i], name)
						_, _, err := w.s.Take(ctx, a.tenant, p.ID, by("ann", p), false, nil)
						require.NoError(t, err)
					}
				}
			}
			require.Len(t, stand, 1, name)
			for i, a := range asks {
				if a == (ask{stand[0].Tenant, stand[0].Currency}) {
					continue
				}
				busy := (*refill.StateError)(nil)
				if errs[i] == nil {
					last, _, err := w.s.Last(ctx, a.tenant, a.currency)
					require.NoError(t, err)
					require.Equal(t, refill.Gone, last.Status, name)
					require.NotEmpty(t, last.Reason)
				} else {
					require.True(t, errors.As(errs[i], &busy) || errors.Is(errs[i], chain.ErrOccupied), "%s: %v", name, errs[i])
				}
				_, err := w.s.Propose(ctx, a.tenant, a.currency, 4000, false, "ann", false, nil)
				if a.tenant == stand[0].Tenant {
					require.Equal(t, &refill.StateError{ID: stand[0].ID, Current: refill.Sending}, err, name)
				} else {
					require.ErrorIs(t, err, chain.ErrOccupied, name)
					require.NotContains(t, err.Error(), stand[0].Tenant+"/", "it names nothing of another tenant's")
				}
				n.mined, n.state = "0x"+string(by("ann", stand[0])), included(100)
				w.later(time.Minute)
				n.mined, n.nonce = "", 6
				p, err := w.s.Propose(ctx, a.tenant, a.currency, 4000, false, "ann", false, nil)
				require.NoError(t, err, name)
				require.Equal(t, []string{"cold/6"}, p.Inputs)
			}
		}
	})
}

// TestAccountRefillForLess: a refill that nobody has named an amount of is for what lies cold, less its
// fee, where that is worth it.
func TestAccountRefillForLess(t *testing.T) {
	t.Parallel()
	for currency, c := range map[string]struct{ want, holds, amount ledger.Amount }{
		"ETH":       {50_000, 10_000, 9980},
		"USDTERC20": {50_000, 0, 10_000},
		"USDCERC20": {5000, 0, 5000},
	} {
		w, n := newAccounts(t, memory.New(), nil)
		n.holds = c.holds
		_, err := w.s.Propose(t.Context(), "t", currency, c.want, false, "ann", true, nil)
		if c.want > c.amount {
			require.ErrorIs(t, err, chain.ErrShort)
		}
		p, err := w.s.Propose(t.Context(), "t", currency, c.want, true, "ann", false, nil)
		require.NoError(t, err)
		require.Equal(t, c.amount, p.Amount)
		require.Equal(t, []chain.Output{{To: "hot", Currency: currency, Amount: c.amount}}, p.Outputs)
	}
	w, n := newAccounts(t, memory.New(), nil)
	n.holds, n.fee = 10_000, 5000
	_, err := w.s.Propose(t.Context(), "t", "ETH", 50_000, true, "ann", false, nil)
	require.ErrorIs(t, err, chain.ErrShort)
	n.holds, n.fee = 0, 51
	_, err = w.s.Propose(t.Context(), "t", "USDTERC20", 50_000, true, "ann", false, nil)
	require.ErrorIs(t, err, chain.ErrTooDear)
}

// TestLandedRefillIsLost: a fork takes back the block of a refill that had landed. It is told, and what
// came back is sent again until it lands.
func TestLandedRefillIsLost(t *testing.T) {
	onBoth(t, func(t *testing.T, store func() storage.Store) {
		w, n := newAccounts(t, store(), nil)
		ctx := t.Context()
		p := w.proposeIn("USDTERC20")
		taken, _, err := w.s.Take(ctx, "t", p.ID, by("ann", p), false, nil)
		require.NoError(t, err)
		n.mined, n.state = taken.Tx, included(100)
		w.later(time.Minute)
		require.Equal(t, refill.Landed, w.get(p.ID).Status)
		require.Empty(t, n.sent)
		require.NoError(t, w.s.Lost(ctx, "t", "ETH", "0xanother"))
		require.NoError(t, w.s.Lost(ctx, "u", "ETH", taken.Tx))
		require.Equal(t, refill.Landed, w.get(p.ID).Status)

		n.mined = ""
		for range 2 { // news may come twice
			require.NoError(t, w.s.Lost(ctx, "t", "ETH", taken.Tx))
		}
		require.Equal(t, refill.Sending, w.get(p.ID).Status)
		_, err = w.s.Propose(ctx, "t", "ETH", 4000, false, "ann", false, nil)
		require.Equal(t, &refill.StateError{ID: p.ID, Current: refill.Sending}, err, "it has the nonce")
		w.later(0)
		require.Equal(t, map[string]int{taken.Tx: 1}, n.sent)
		n.mined = taken.Tx
		w.later(time.Minute)
		require.Equal(t, refill.Landed, w.get(p.ID).Status)
		require.Equal(t, map[refill.Status]int{refill.Open: 1, refill.Sending: 2, refill.Landed: 2}, w.told())
		n.nonce = 6
		require.Equal(t, []string{"cold/6"}, w.proposeIn("USDTERC20").Inputs)
	})
}
