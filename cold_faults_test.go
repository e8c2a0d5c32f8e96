package cryptopay_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// coldIs makes an address the cold one of a currency.
func (h *host) coldIs(currency, name, ceiling, target string) {
	h.t.Helper()
	now, err := h.app.Policies.Get(h.t.Context(), h.tenant)
	require.NoError(h.t, err)
	p := now.Policy
	p.Cold = []policy.Cold{{
		Currency: currency, Address: string(h.chains[h.coin(currency).Network].Customer(name)), Ceiling: dec(ceiling), Target: dec(target),
	}}
	_, _, err = h.app.Operate.SetPolicy(h.t.Context(), h.tenant, now.Number, p, because("another vault"))
	require.NoError(h.t, err)
}

// TestFT07_ANewVaultsRefillIsNotTheOperators: the operator names another cold address and takes the
// coins there himself. What comes back from there is the merchants', though no move was made to it.
func TestFT07_ANewVaultsRefillIsNotTheOperators(t *testing.T) {
	t.Parallel()
	h, hot, told := refilled(t, memory.New(), 750, usdt, "100", "50")
	h.coldIs(usdt, "vault2", "0", "0")
	float, cold := h.posted(ledger.Float, usdt), h.cold(usdt)
	h.from("vault", h.chains["ETH"].Customer("vault2"), usdt, "30")
	h.mine(20)
	h.from("vault2", hot, usdt, "20")
	h.mine(20)
	const came = ledger.Amount(20_000_000)
	require.Equal(t, []ledger.Amount{float, cold, came}, []ledger.Amount{h.posted(ledger.Float, usdt), h.cold(usdt), h.posted(ledger.Suspense, usdt)})
	require.Len(t, *told, 1)
	require.Equal(t, treasury.ApartUnknown, (*told)[0].Reason)
	h.sound()
}

// handedOver is a store on which something happens once a house payment was handed over, once.
type handedOver struct {
	storage.Store
	do func()
}

func (s *handedOver) Commit(ctx context.Context, cs ...storage.Change) []error {
	errs := s.Store.Commit(ctx, cs...)
	for i := range cs {
		for _, r := range cs[i].Put {
			p, ok := r.Value.(house.Payment)
			if do := s.do; do != nil && ok && p.Stage == "handed" && p.Status == house.Pending && errs[i] == nil {
				s.do = nil
				do()
			}
		}
	}
	return errs
}

// TestFT07_AnAddressThatIsNoLongerColdGetsNothing: the cold address was changed after its move was
// handed over, and before anything of it was signed. It goes nowhere, and ends. The next goes to the
// new address.
func TestFT07_AnAddressThatIsNoLongerColdGetsNothing(t *testing.T) {
	t.Parallel()
	for i, code := range []string{"BTC", usdt} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			s := &handedOver{Store: memory.New()}
			h := earned(t, s, uint64(780+i), code)
			ceiling, target := "100", "50"
			if code == "BTC" {
				ceiling, target = "0.001", "0.0005"
			}
			happened := false
			s.do = func() { happened = true; h.coldIs(code, "vault2", ceiling, target) }
			h.chilled(code, ceiling, target)
			h.mine(20)
			require.True(t, happened)
			require.True(t, h.stored(code).IsZero())
			require.Len(t, h.moves(), 2)
			require.Equal(t, []house.Status{house.Completed, house.Cancelled}, []house.Status{h.moves()[0].Status, h.moves()[1].Status})
			world := h.chains[h.coin(code).Network]
			require.True(t, world.Balance(world.Customer("vault2"), code).IsPositive())
			h.sound()
		})
	}
}

// TestFT07_AForkTakesAMoveBack: a fork takes a completed move out of its block. The coins show as
// hot again, and are not moved twice.
func TestFT07_AForkTakesAMoveBack(t *testing.T) {
	t.Parallel()
	for i, code := range []string{"ETH", usdt, "BTC"} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			h := earned(t, memory.New(), uint64(760+i), code)
			owed := h.credited(code)
			ceiling, target := "0.05", "0.02"
			if code == "BTC" {
				ceiling, target = "0.001", "0.0005"
			}
			if code == usdt {
				ceiling, target = "100", "50"
			}
			h.chilled(code, ceiling, target)
			for len(h.moves()) == 0 || h.moves()[0].Status != house.Completed {
				h.mine(1)
			}
			_, err := h.chains[h.coin(code).Network].Reorg(2)
			require.NoError(t, err)
			for range 6 {
				h.clock.Advance(time.Minute)
				h.step()
			}
			h.mine(60)
			h.cooled(code, owed)
		})
	}
}

// meanwhile is a store on which something happens before a change is committed, once.
type meanwhile struct {
	storage.Store
	before string // begins the id of the change
	do     func()
}

func (s *meanwhile) Commit(ctx context.Context, cs ...storage.Change) []error {
	for i := range cs {
		if do := s.do; do != nil && strings.HasPrefix(cs[i].ID, s.before) {
			s.do = nil
			do()
		}
	}
	return s.Store.Commit(ctx, cs...)
}

// TestFT07_ATopUpIsBookedOnce: one process decides on a top-up while nothing lies at a cold address,
// and sleeps. Another sees the first move land, and holds the same top-up apart.
func TestFT07_ATopUpIsBookedOnce(t *testing.T) {
	t.Parallel()
	s := &meanwhile{Store: memory.New(), before: "topup/"}
	h := earned(t, s, 770, "BTC")
	hot, err := h.app.Hot(t.Context(), "BTC", h.tenant)
	require.NoError(t, err)
	float := h.posted(ledger.Float, "BTC")
	other := h.beside(h.configure)
	happened := false
	s.do = func() {
		happened = true
		h.chilled("BTC", "0.001", "0.0005")
		for range 100 {
			h.clock.Advance(time.Second)
			if h.cold("BTC") == 0 {
				h.chains["BTC"].Mine(1)
			} else {
				h.clock.Advance(time.Minute)
			}
			require.NoError(t, other.Step(t.Context()))
		}
	}
	h.from("somebody", hot, "BTC", "0.0007")
	h.mine(15)
	require.True(t, happened)
	require.Equal(t, ledger.Amount(70_000), h.posted(ledger.Float, "BTC")-float+h.posted(ledger.Suspense, "BTC"), "once")
	h.sound()
}

// TestFT07_ColdIsCountedOnce: two currencies share a cold address.
func TestFT07_ColdIsCountedOnce(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 771, usdt)
	h.chilled(usdt, "100", "50")
	now, err := h.app.Policies.Get(t.Context(), h.tenant)
	require.NoError(t, err)
	p := now.Policy
	p.Cold = append(p.Cold, policy.Cold{Currency: "ETH", Address: h.vault("ETH")})
	_, _, err = h.app.Operate.SetPolicy(t.Context(), h.tenant, now.Number, p, because("x"))
	require.NoError(t, err)
	h.mine(30)
	_, err = h.app.Treasury.Sync(t.Context(), h.tenant)
	require.NoError(t, err)
	held, err := h.app.Treasury.Holdings(t.Context(), h.tenant)
	require.NoError(t, err)
	for _, total := range held.Totals {
		if total.Currency.Code == usdt {
			require.Equal(t, h.stored(usdt).String(), total.Cold.String())
		}
	}
}

// TestFT07_ACeilingNobodyCanReach: amounts that no ledger holds are refused, at once.
func TestFT07_ACeilingNobodyCanReach(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 772, "ETH")
	for _, c := range [][]string{{"1e18", "1"}, {"1e18", "1e18"}, {"1", "1e-9000"}} {
		_, _, err := h.app.Operate.SetPolicy(t.Context(), h.tenant, 0, policy.Policy{Cold: []policy.Cold{{Currency: "ETH", Address: h.vault("ETH"), Ceiling: dec(c[0]), Target: dec(c[1])}}}, because("x"))
		var bad *policy.InvalidError
		require.ErrorAs(t, err, &bad)
	}
}

// TestFT07_ACostIsNotBookedTwice: the cost of a move is booked when it lands; it is no refill's.
func TestFT07_ACostIsNotBookedTwice(t *testing.T) {
	t.Parallel()
	h, _, _ := refilled(t, memory.New(), 773, "BTC", "0.001", "0.0005")
	was, cold := h.stand("BTC"), h.cold("BTC")
	id, err := h.app.Operate.BookRefillCost(t.Context(), h.tenant, "BTC", h.moves()[0].Tx, 500, because("x"))
	require.ErrorIs(t, err, treasury.ErrOwnCost)
	require.Equal(t, was, h.stand("BTC"))
	require.Equal(t, cold, h.cold("BTC"))
	require.Empty(t, id)
	h.sound()
}

// TestFT07_ACostThatTwoBookIsBookedOnce: of two persons who book other figures at one moment, one is told
// that nothing was made of his.
func TestFT07_ACostThatTwoBookIsBookedOnce(t *testing.T) {
	t.Parallel()
	f := &failing.Commits{Store: memory.New()}
	h, hot, _ := refilled(t, f, 774, "BTC", "0.001", "0.0005")
	h.thaw("BTC")
	tx := h.from("vault", hot, "BTC", "0.0007")
	h.mine(15)
	cold := h.cold("BTC")
	book := func(cost ledger.Amount) string {
		id, err := h.app.Operate.BookRefillCost(t.Context(), h.tenant, "BTC", tx, cost, because("x"))
		require.NoError(t, err)
		return id
	}
	f.Counts = func(c *storage.Change) bool { return strings.HasPrefix(c.ID, "cost/") }
	f.Seen, f.At = 0, map[int]failing.Fault{1: failing.Passed}
	f.Meanwhile = func() { require.NotEmpty(t, book(500)) }
	require.Empty(t, book(700))
	require.Equal(t, cold-500, h.cold("BTC"))
	h.sound()
}

// TestFT07_AnEditedHeldTopUpIsNotResolved: who edits how much is held apart gets no more booked as
// the operator's than came.
func TestFT07_AnEditedHeldTopUpIsNotResolved(t *testing.T) {
	t.Parallel()
	h, hot, _ := refilled(t, memory.New(), 790, "BTC", "0.001", "0.0005")
	h.thaw("BTC")
	h.from("somebody", hot, "BTC", "0.0007")
	h.mine(15)
	apart, err := h.app.Operate.HeldTopUps(t.Context(), h.tenant, "", 10)
	require.NoError(t, err)
	require.Len(t, apart, 1)
	float, part := h.posted(ledger.Float, "BTC"), storage.Tenant(h.tenant)
	v, row, _, err := treasury.TopUps.One(t.Context(), h.store, part, "apart/"+apart[0].ID)
	require.NoError(t, err)
	v.Amount = 50_000_000
	require.NoError(t, storage.CommitOne(t.Context(), h.store, storage.Change{
		ID: "thief/" + row.ID, Partition: part, Put: []storage.Row{treasury.TopUps.Row(row.ID, row.Version, row.Due, v)},
	}))
	for _, is := range []treasury.ApartIs{treasury.IsOperators, treasury.IsRefill} {
		_, _, err = h.app.Operate.ResolveTopUp(t.Context(), h.tenant, apart[0].ID, is, because("it is mine"))
		require.ErrorIs(t, err, treasury.ErrApartAltered)
	}
	require.Equal(t, float, h.posted(ledger.Float, "BTC"))
}
