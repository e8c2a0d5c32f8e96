package cryptopay_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
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
