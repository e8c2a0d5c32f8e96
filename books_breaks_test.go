package cryptopay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/reconcile"
)

// unlooked is a store that refuses the looks which end a difference, as where another process has
// written the look meanwhile.
type unlooked struct {
	storage.Store
	left int
}

func (s *unlooked) Commit(ctx context.Context, cs ...storage.Change) []error {
	errs := make([]error, len(cs))
	for i := range cs {
		ends := false
		for _, r := range cs[i].Drop {
			ends = ends || r.Table == reconcile.Differences.Table
		}
		if ends && s.left > 0 {
			s.left--
			errs[i] = storage.ErrConflict
			continue
		}
		errs[i] = s.Store.Commit(ctx, cs[i])[0]
	}
	return errs
}

// libraryHalts are the halts that stand for differences.
func (h *host) libraryHalts() (out []outgoing.Halt) {
	h.t.Helper()
	row, _, _, err := outgoing.Halts.One(h.t.Context(), h.store, storage.Network("ETH"), outgoing.HaltsID)
	require.NoError(h.t, err)
	for _, x := range row.Halts {
		if x.By == reconcile.Library {
			out = append(out, x)
		}
	}
	return out
}

// drifted is a host with payments whose books say one unit more than the chain has, each named.
func drifted(t *testing.T, store storage.Store, seed uint64, payments int) (h *host, addresses []string) {
	t.Helper()
	h = newHostOn(t, store, seed, "ETH", "BTC")
	h.float("ETH", "1")
	h.earn(usdt, "100")
	h.mine(60)
	h.configure = halting
	h.restart()
	h.days(1)
	require.Empty(t, h.differences("ETH"))
	var made []payment.Payment
	for range payments {
		p := h.create("30", usdt)
		h.pay(p, usdt, dec("30"))
		made, addresses = append(made, p), append(addresses, p.Address)
	}
	h.mine(1)
	for _, p := range made {
		plant(t, h.store, "ETH", p.Address, usdt, "0.000001")
	}
	h.mine(120)
	require.Len(t, h.differences("ETH"), payments)
	require.Len(t, h.libraryHalts(), 1)
	return h, addresses
}

// TestI26_OnlyAnOperatorExplainsADifference: a difference goes, and the look that ends it is not
// stored. When it is there again it halts payouts: nobody has said that it is explained.
func TestI26_OnlyAnOperatorExplainsADifference(t *testing.T) {
	t.Parallel()
	s := &unlooked{Store: memory.New()}
	h, addresses := drifted(t, s, 91, 1)
	plant(t, h.store, "ETH", addresses[0], usdt, "-0.000001")
	s.left = 1
	for i := 0; s.left > 0; i++ {
		require.Less(t, i, 100)
		h.clock.Advance(time.Minute)
		h.mine(1)
	}
	plant(t, h.store, "ETH", addresses[0], usdt, "0.0000010")
	h.clock.Advance(time.Hour)
	h.mine(120)
	require.Len(t, h.differences("ETH"), 1, "it stands")
	require.Len(t, h.libraryHalts(), 1)
}

// TestI26_DifferencesThatEndTogetherLiftTheirHalt: two differences of a tenant's currency end in one
// look. Nothing is halted any more.
func TestI26_DifferencesThatEndTogetherLiftTheirHalt(t *testing.T) {
	t.Parallel()
	h, addresses := drifted(t, memory.New(), 92, 2)
	for _, a := range addresses {
		plant(t, h.store, "ETH", a, usdt, "-0.000001")
	}
	h.clock.Advance(time.Hour)
	h.mine(120)
	require.Empty(t, h.differences("ETH"))
	require.Empty(t, h.libraryHalts())
	h.days(1)
	require.Empty(t, h.libraryHalts())
}

// TestI26_WhatAnOperatorHasNotSeenIsNotExplained: an operator lifts the halt of a difference of one
// unit. More is missing by the time of the next look: that is a difference of its own, and halts.
func TestI26_WhatAnOperatorHasNotSeenIsNotExplained(t *testing.T) {
	t.Parallel()
	h, addresses := drifted(t, memory.New(), 93, 1)
	_, err := h.app.Operate.Lift(t.Context(), cryptopay.HaltScope{Currency: usdt, Tenant: h.tenant}, because("one unit is rounding"))
	require.NoError(t, err)
	plant(t, h.store, "ETH", addresses[0], usdt, "50")
	h.clock.Advance(time.Hour)
	h.mine(120)
	found := h.differences("ETH")
	require.Len(t, found, 1)
	require.Equal(t, "-50", found[0].Amount.String())
	require.Len(t, h.libraryHalts(), 1)
}

// TestI26_ADriftBelowWhatWasSummedUpIsFound: an address has so many deposits that a look does not sum
// up all of them. Somebody edits one of the first: it is found within a week.
func TestI26_ADriftBelowWhatWasSummedUpIsFound(t *testing.T) {
	t.Parallel()
	h := cryptopaytest.Open(t, cryptopaytest.Options{Networks: []chain.Network{"ETH"}, Configure: halting})
	a := h.PermanentAddress("ann", usdt)
	for range 21 {
		for range 10 {
			h.Customer.SendsTo(a, "25", usdt)
		}
		h.Clock.Advance(time.Minute)
		h.Mine(2)
	}
	day := func() {
		for range 12 {
			h.Clock.Advance(2 * time.Hour)
			h.Mine(4)
		}
	}
	base := func() int64 {
		v, _, _, err := reconcile.Looks.One(t.Context(), h.Store, storage.Network("ETH"), a.Address)
		require.NoError(t, err)
		return v.Height
	}
	for days := 0; base() == 0; days++ {
		require.Less(t, days, 10)
		h.Customer.SendsTo(a, "25", usdt)
		day()
	}
	require.Empty(t, differences(t, h.Store, "ETH"))
	plant(t, h.Store, "ETH", a.Address, usdt, unit(t, usdt))
	for days := 0; len(differences(t, h.Store, "ETH")) == 0; days++ {
		require.Less(t, days, 8)
		day()
	}
	halts, err := h.App.Operate.Halts(t.Context())
	require.NoError(t, err)
	require.Len(t, halts, 1)
	plant(t, h.Store, "ETH", a.Address, usdt, "-"+unit(t, usdt))
	for days := 0; len(differences(t, h.Store, "ETH")) > 0; days++ {
		require.Less(t, days, 9)
		day()
	}
	require.Positive(t, base())
}

// unfound is a store that refuses to store a free coin, as one does that cannot be reached.
type unfound struct {
	storage.Store
	refuses bool
	refused int
}

func (s *unfound) Commit(ctx context.Context, cs ...storage.Change) []error {
	errs := make([]error, len(cs))
	for i := range cs {
		if s.refuses && slices.ContainsFunc(cs[i].Put, func(r storage.Row) bool {
			return r.Table == outgoing.Coins.Table && outgoing.Coins.Value(r).State == outgoing.CoinFree
		}) {
			s.refused++
			errs[i] = errors.New("unfound: no answer")
			continue
		}
		errs[i] = s.Store.Commit(ctx, cs[i])[0]
	}
	return errs
}

// TestI26_CoinThatAForkTookAndBroughtBack: a coin is in a block again, and so is the transaction that
// had spent it, but the App cannot store that for hours. The books do not differ from the chain.
func TestI26_CoinThatAForkTookAndBroughtBack(t *testing.T) {
	t.Parallel()
	for _, spent := range []bool{false, true} {
		t.Run(fmt.Sprint("spent ", spent), func(t *testing.T) {
			t.Parallel()
			s := &unfound{Store: memory.New()}
			h := newHostOn(t, s, 65, "BTC")
			before := h.chains["BTC"].Height()
			if spent {
				p := h.create("600", "BTC")
				h.pay(p, "BTC", p.DueCoins())
				h.mine(3)
			}
			h.float("BTC", "1")
			if spent {
				require.NotEmpty(t, h.withdraw("20", "BTC"))
			}
			h.mine(6)
			s.refuses = true
			_, err := h.chains["BTC"].Reorg(int(h.chains["BTC"].Height() - before))
			require.NoError(t, err)
			for range 40 {
				h.clock.Advance(12 * time.Minute)
				h.chains["BTC"].Mine(4)
				_ = h.app.Step(t.Context()) // it fails: the store refuses the coin
			}
			require.Positive(t, s.refused)
			require.Empty(t, h.differences("BTC"))
			s.refuses = false
			h.days(2)
			require.Empty(t, h.differences("BTC"))
			h.sound()
		})
	}
}

// turns lets two work on a store, one at a time: each does a few reads, or many, before it is the
// other's turn.
type turns struct {
	dice  *rand.Rand
	left  int // reads of this turn
	next  [2]chan struct{}
	alone bool // one has ended
}

func newTurns(seed uint64) *turns {
	return &turns{dice: rand.New(rand.NewPCG(7, seed)), next: [2]chan struct{}{make(chan struct{}), make(chan struct{})}}
}

// may gives the turn to the other, or not.
func (x *turns) may(me int) {
	if x.left--; x.left < 0 && !x.alone {
		x.left = x.dice.IntN(1 << x.dice.IntN(7+2*me))
		x.next[1-me] <- struct{}{}
		<-x.next[me]
	}
}

// TestFM03_LooksWhileOthersWork: whatever is paid, sent and mined between any two reads of a look,
// no difference is named and nothing is explained that is none.
func TestFM03_LooksWhileOthersWork(t *testing.T) {
	t.Parallel()
	for n, seeds := range map[chain.Network][]uint64{"BTC": {15, 26, 27}, "ETH": {15}} {
		for _, seed := range seeds {
			t.Run(fmt.Sprintf("%s, seed %d", n, seed), func(t *testing.T) {
				t.Parallel()
				x, store := newTurns(seed), &readStore{Store: memory.New()}
				h := newHostOn(t, store, 80, n)
				h.configure = func(c *cryptopay.Config) { c.Reconcile.Off = true }
				h.restart()
				looker, err := reconcile.New(reconcile.Config{
					Store: &readStore{Store: store.Store, before: func(read string) {
						if read == incoming.Sightings.Table.Name {
							x.left = min(x.left, x.dice.IntN(2)) // its facts are of several reads
						}
						x.may(1)
					}},
					Client: h.chains[n].Client(), Registry: chain.MainnetRegistry(), Now: h.clock.Now, Calls: 1_000_000, Every: time.Second,
				})
				require.NoError(t, err)
				looks := func() (all []reconcile.LookRow) {
					rows, err := store.Store.Find(t.Context(), storage.Query{Table: reconcile.Looks.Table, Partition: storage.Network(string(n)), Limit: 1000})
					require.NoError(t, err)
					for _, r := range rows {
						all = append(all, reconcile.Looks.Value(r))
					}
					return all
				}
				done, odd := make(chan error), []string(nil)
				go func() {
					<-x.next[1]
					var failed error
					for !x.alone && failed == nil {
						_, failed = looker.Step(t.Context())
						for _, v := range looks() {
							for code, spot := range v.Spots {
								if spot.Suspect == "" && spot.Explained.IsZero() {
									continue
								}
								odd = append(odd, fmt.Sprintf("%s: %+v", code, spot))
							}
						}
					}
					x.next[0] <- struct{}{}
					done <- failed
				}()
				_, err = h.app.Hot(t.Context(), n, h.tenant)
				require.NoError(t, err)
				h.mine(1)
				from := h.clock.Now().Add(time.Minute)
				store.before = func(string) { x.may(0) }
				h.float(n, "1")
				p := h.create("5000", string(n))
				h.pay(p, string(n), p.DueCoins())
				for i := range 60 {
					if i%2 == 0 {
						h.withdraw("20", string(n))
					}
					h.mine(1)
				}
				x.alone = true
				x.next[1] <- struct{}{}
				<-x.next[0]
				require.NoError(t, <-done)
				require.Empty(t, h.differences(n))
				require.Empty(t, odd)
				looked := 0
				for _, v := range looks() {
					if v.Looked.After(from) {
						looked++
					}
				}
				require.Positive(t, looked)
				h.sound()
			})
		}
	}
}

// TestD17_RecoveredMoneyIsNoDifference: money came to an address that nobody watched any more, and a
// look has explained it. An operator then has it found and booked.
func TestD17_RecoveredMoneyIsNoDifference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		currency string
		stolen   bool // it is gone before it is found
	}{{"BTC", false}, {"ETH", false}, {usdt, false}, {usdt, true}} {
		t.Run(fmt.Sprintf("%s, stolen %t", c.currency, c.stolen), func(t *testing.T) {
			t.Parallel()
			cur, err := chain.MainnetRegistry().Currency(c.currency)
			require.NoError(t, err)
			h := newHost(t, 83, cur.Network)
			h.configure = halting
			h.restart()
			world := h.chains[cur.Network]
			p := h.create("500", cur.Code)
			h.pay(p, cur.Code, p.DueCoins())
			h.mine(20)
			h.days(1)
			h.clock.Advance(400 * 24 * time.Hour)
			h.mine(2)
			_, err = world.Pay(chain.Address(p.Address), cur.Code, dec("0.2"))
			require.NoError(t, err)
			h.mine(20)
			h.days(2)
			look, _, _, err := reconcile.Looks.One(t.Context(), h.store, storage.Network(string(cur.Network)), p.Address)
			require.NoError(t, err)
			require.Equal(t, []any{"0.2", reconcile.Unwatched}, []any{look.Spots[cur.Code].Explained.String(), look.Spots[cur.Code].Why})
			if c.stolen {
				world.Rebase(cur.Contract, 10)
				h.days(2)
				require.NotEmpty(t, h.differences(cur.Network))
				return
			}
			found, _, err := h.app.Operate.RecoverDeposits(t.Context(), cur.Network, chain.Address(p.Address), 1, 0, because("a customer asked"))
			require.NoError(t, err)
			require.Equal(t, 1, found)
			h.mine(20)
			h.days(2)
			require.Empty(t, h.differences(cur.Network))
		})
	}
}
