package payment

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
)

// chainModel is what a chain may do to transfers, and what must be true of the
// books whatever it does.
type chainModel struct {
	h         *shop
	p         Payment
	transfers []*transfer
	spent     map[string]ledger.Amount
}

// with does something to one of the transfers in these states; nothing where there
// is none, so that a fuzzer may choose badly as often as it likes.
func (m *chainModel) with(t *rapid.T, do func(*transfer), states ...incoming.State) {
	var of []*transfer
	for _, x := range m.transfers {
		if slices.Contains(states, x.s.State) {
			of = append(of, x)
		}
	}
	if len(of) > 0 {
		do(rapid.SampledFrom(of).Draw(t, "transfer"))
	}
}

func (m *chainModel) actions() map[string]func(*rapid.T) {
	return map[string]func(*rapid.T){
		"send": func(t *rapid.T) {
			if len(m.transfers) > 8 {
				return
			}
			currency := rapid.SampledFrom([]string{usdt, usdt, usdt, "USDCERC20", ""}).Draw(t, "currency")
			amount := rapid.SampledFrom([]string{"0.000001", "1", "40", "60", "99.5", "100", "100.000001", "150"}).Draw(t, "amount")
			of := currency
			if of == "" {
				of = usdt
			}
			x := m.h.transferOf(m.p, of, amount)
			x.s.Currency = currency
			x.s.Unproven = rapid.IntRange(0, 15).Draw(t, "unproven") == 0
			m.transfers = append(m.transfers, x)
			x.seen()
		},
		"mine":  func(t *rapid.T) { m.with(t, func(x *transfer) { x.included() }, incoming.Seen) },
		"final": func(t *rapid.T) { m.with(t, func(x *transfer) { x.must(incoming.Final, true) }, incoming.Included) },
		"drop":  func(t *rapid.T) { m.with(t, func(x *transfer) { x.gone() }, incoming.Seen, incoming.Included) },
		"deep reorg": func(t *rapid.T) {
			m.with(t, func(x *transfer) {
				if rapid.Bool().Draw(t, "at once") {
					x.s.Height, x.s.BlockTime = 100, m.h.now
					x.again()
					return
				}
				x.gone()
				x.s.Generation++ // the next time that it is mined
			}, incoming.Final)
		},
		"return": func(t *rapid.T) {
			m.with(t, func(x *transfer) {
				if rapid.Bool().Draw(t, "mined") {
					x.included()
				} else {
					x.seen()
				}
			}, incoming.Gone)
		},
		"forward": func(t *rapid.T) {
			f := rapid.SampledFrom([]incoming.Forward{incoming.Forwarding, incoming.Forwarded, incoming.Deferred}).Draw(t, "forward")
			m.with(t, func(x *transfer) { x.forward(f, "sweep") }, incoming.Final)
		},
		"time": func(t *rapid.T) {
			m.h.after(time.Duration(rapid.SampledFrom([]int{1, 20, 60, 23 * 60, 25 * 60}).Draw(t, "minutes")) * time.Minute)
		},
		"no tip": func(t *rapid.T) {
			m.h.tipRead = m.h.now
			m.h.after(30 * time.Minute)
			m.h.tipRead = time.Time{}
		},
		"spend": func(t *rapid.T) {
			balances, err := m.h.store.Balances(ctx, storage.Tenant(tenant), ledger.Wallet("w"))
			require.NoError(t, err)
			for _, b := range balances {
				if b.Asset == usdt && b.Available() > 1_000_000 {
					m.h.spend(usdt, "1", false)
					m.spent[usdt] += 1_000_000
					return
				}
			}
		},
		"": m.check,
	}
}

// check is what holds at every moment.
func (m *chainModel) check(t *rapid.T) {
	p := m.h.get(m.p)
	brought := map[string]ledger.Amount{}
	var received ledger.Amount
	for _, x := range m.transfers {
		d := x.deposit()
		final := x.s.State == incoming.Final
		require.False(t, d.Booking == InWallet && !final, "%s is credited and not final", d.ID)
		require.False(t, d.Booking == InSuspense && !final, "%s is in suspense and not final", d.ID)
		if final && d.Role.suspense() {
			require.Equal(t, InSuspense, d.Booking)
		}
		settled := !slices.Contains(unsettled, p.Status)
		if final && d.Role.counted() && settled {
			require.Equal(t, InWallet, d.Booking, "%s is final and not booked while %s", d.ID, p.Status)
		}
		if d.Booking == InWallet {
			received += d.Amount
		}
		if d.Booking == InWallet || d.Booking == InSuspense {
			brought[d.Currency] += d.Amount
		}
	}
	require.Equal(t, received, p.Received)
	require.Equal(t, p.Received, p.Net+p.Platform+p.NetworkTaken)
	balances, err := m.h.store.Balances(ctx, storage.Tenant(tenant))
	require.NoError(t, err)
	held, owed, equity := map[string]ledger.Amount{}, map[string]ledger.Amount{}, map[string]ledger.Amount{}
	for _, b := range balances {
		asset := string(b.Asset)
		switch {
		case b.Account == ledger.Chain("ETH"):
			held[asset] -= b.Posted
		case b.Account.House():
			equity[asset] += b.Posted
		default:
			require.GreaterOrEqual(t, b.Posted, ledger.Amount(0), "%s", b.Account)
			owed[asset] += b.Posted
		}
	}
	for asset := range held {
		require.Equal(t, brought[asset]-m.spent[asset], held[asset], "what is held of %s is what final deposits brought, less what was spent", asset)
		require.Equal(t, held[asset], owed[asset]+equity[asset])
	}
	m.told(t, p)
}

// told: each status change was told once, in order, along legal moves.
func (m *chainModel) told(t *rapid.T, p *Payment) {
	at := Waiting
	for _, e := range m.h.events(m.p) {
		var from, to Status
		if e == "deposit_received" || e == "deposit_merged" {
			continue
		}
		for i := range e {
			if e[i] == '>' {
				from, to = Status(e[:i]), Status(e[i+1:])
			}
		}
		require.Equal(t, at, from)
		at = to
	}
	require.Equal(t, p.Status, at)
}

// TestD17_EveryUnitIsBooked: whatever customers and the chain do within the
// watch window, in the end each final unit of a listed currency above dust is
// in the wallet or in suspense, and nothing else is.
func TestD17_EveryUnitIsBooked(t *testing.T) {
	t.Parallel()
	for _, late := range []LatePolicy{LateSuspense, LateCredit} {
		t.Run(string(late), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(r *rapid.T) { everyUnit(t, r, late) })
		})
	}
}

func everyUnit(t *testing.T, r *rapid.T, late LatePolicy) {
	h := newShop(t, func(h *shop) { h.cfg.Late = late })
	user := rapid.Bool().Draw(r, "fee by user")
	n := rapid.SampledFrom([]ledger.Amount{0, 1_000_000, 2_000_000}).Draw(r, "network fee")
	h.cfg.NetworkFee = fixedFee(n)
	s, err := New(h.cfg)
	require.NoError(r, err)
	h.s = s
	m := &chainModel{h: h, p: h.create("100", usdt, func(in *CreateInput) { in.FeeByUser = &user }), spent: map[string]ledger.Amount{}}
	r.Repeat(m.actions())
	m.end(r)
}

// FuzzPayment plays the same with a fuzzer's choices.
func FuzzPayment(f *testing.F) {
	for seed := range uint64(4) {
		choices := make([]byte, 4096)
		_, _ = rand.NewChaCha8([32]byte{byte(seed)}).Read(choices)
		f.Add(choices)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		rapid.MakeFuzz(func(r *rapid.T) {
			everyUnit(t, r, rapid.SampledFrom([]LatePolicy{LateSuspense, LateCredit}).Draw(r, "late"))
		})(t, choices)
	})
}

func (m *chainModel) end(t *rapid.T) {
	for _, x := range m.transfers {
		if x.s.State == incoming.Seen || x.s.State == incoming.Included {
			x.final()
		}
	}
	for range 3 {
		m.h.after(25 * time.Hour)
	}
	m.check(t)
	require.Contains(t, []Status{Completed, Expired, Failed}, m.h.get(m.p).Status, "no payment stays open for ever")
	for _, x := range m.transfers {
		d := x.deposit()
		booked := d.Booking == InWallet || d.Booking == InSuspense
		want := x.s.State == incoming.Final && x.s.Currency != "" && d.Role != RoleDust
		require.Equal(t, want, booked, "%+v", d)
	}
}

// TestD16_OnlyAProofMovesMoney: of random facts, none but a proven one posts.
func TestD16_OnlyAProofMovesMoney(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		h := newShop(t)
		p := h.create("100", usdt)
		var all []*transfer
		for range rapid.IntRange(1, 6).Draw(r, "transfers") {
			all = append(all, h.transferOf(p, rapid.SampledFrom([]string{usdt, "USDCERC20"}).Draw(r, "currency"), "100"))
		}
		for range 12 {
			x := rapid.SampledFrom(all).Draw(r, "which")
			state := rapid.SampledFrom([]incoming.State{incoming.Seen, incoming.Included, incoming.Final, incoming.Gone}).Draw(r, "state")
			x.s.Generation = max(x.s.Generation, rapid.IntRange(1, 3).Draw(r, "generation"))
			require.NoError(r, x.tell(state, false))
			h.after(time.Duration(rapid.IntRange(0, 30).Draw(r, "hours")) * time.Hour)
		}
		require.Empty(r, h.posted())
	})
}

// TestFeesFollowTheReceivedSum: the split of any sum adds up, nothing is
// negative, and no order of deposits makes a difference to the end.
func TestFeesFollowTheReceivedSum(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		percent := rapid.Int64Range(0, 100_000_000).Draw(r, "percent")
		p := Payment{
			FeePercent: ledger.Amount(percent).Decimal(feePlaces), FeeByUser: rapid.Bool().Draw(r, "by user"),
			NetworkFee: ledger.Amount(rapid.Int64Range(0, 1<<40).Draw(r, "n")),
		}
		low := rapid.Int64Range(0, 1<<62).Draw(r, "low")
		high := rapid.Int64Range(low, 1<<62).Draw(r, "high")
		a, err := p.divide(ledger.Amount(low))
		require.NoError(r, err)
		b, err := p.divide(ledger.Amount(high))
		require.NoError(r, err)
		for _, s := range []split{a, b} {
			require.True(r, s.net >= 0 && s.platform >= 0 && s.network >= 0)
		}
		require.Equal(r, ledger.Amount(high), b.net+b.platform+b.network)
		require.GreaterOrEqual(r, b.net, a.net, "more received is never less for the merchant")
		require.GreaterOrEqual(r, b.platform+b.network, a.platform+a.network)
	})
}
