package cryptopay_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal/policy"
)

// hexAddresses is a network whose addresses are written as those of Ethereum are.
type hexAddresses struct{ chain.Client }

func (p hexAddresses) ParseAddress(s string) (chain.Address, error) {
	if strings.HasPrefix(s, "0x") && len(s) == 42 {
		return chain.Address(s), nil
	}
	return p.Client.ParseAddress(s)
}

// TestFT07_AColdAddressWithoutAKeyIsRefused: nobody can bring back what a ceiling sends to the
// zero address, to one that coins are burned at, or to a token's own contract.
func TestFT07_AColdAddressWithoutAKeyIsRefused(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 800, usdt)
	app := h.beside(func(c *cryptopay.Config) {
		for i := range c.Chains {
			c.Chains[i] = hexAddresses{c.Chains[i]}
		}
	})
	for _, to := range []string{
		"0x0000000000000000000000000000000000000000", "0x000000000000000000000000000000000000dEaD", h.coin(usdt).Contract,
	} {
		_, _, err := app.Operate.SetPolicy(t.Context(), h.tenant, 0, policy.Policy{Cold: []policy.Cold{{
			Currency: usdt, Address: to, Ceiling: dec("100"), Target: dec("50"),
		}}}, because("x"))
		var bad *policy.InvalidError
		require.ErrorAs(t, err, &bad, to)
		require.Contains(t, bad.Error(), "cold[0].address")
	}
}

// unheardMove is a store on which a move to cold is not noted as completed, as when the process
// that would note it stands still.
type unheardMove struct {
	storage.Store
	deaf bool
}

func (s *unheardMove) Commit(ctx context.Context, cs ...storage.Change) []error {
	errs := make([]error, len(cs))
	for i := range cs {
		deaf := false
		for _, r := range cs[i].Put {
			p, ok := r.Value.(house.Payment)
			deaf = deaf || s.deaf && ok && p.ToCold() && p.Status == house.Completed
		}
		if errs[i] = storage.ErrBusy; !deaf {
			errs[i] = s.Store.Commit(ctx, cs[i])[0]
		}
	}
	return errs
}

// TestFT07_ARefillBeforeItsMoveIsNoted: a move has landed, and the process that would note it stands
// still. What comes back from the cold address meanwhile is not the operator's own.
func TestFT07_ARefillBeforeItsMoveIsNoted(t *testing.T) {
	t.Parallel()
	for i, c := range [][]string{{"BTC", "0.001", "0.0005", "0.0007"}, {usdt, "100", "50", "20"}} {
		t.Run(c[0], func(t *testing.T) {
			t.Parallel()
			code := c[0]
			s := &unheardMove{Store: memory.New(), deaf: true}
			h := earned(t, s, uint64(810+i), code)
			hot, err := h.app.Hot(t.Context(), h.coin(code).Network, h.tenant)
			require.NoError(t, err)
			float := h.posted(ledger.Float, code)
			h.chilled(code, c[1], c[2])
			on := h.chains[h.coin(code).Network]
			for range 30 {
				h.clock.Advance(15 * time.Second)
				on.Mine(1)
				_ = h.app.Step(t.Context())
			}
			require.Len(t, h.moves(), 1)
			require.True(t, h.stored(code).IsPositive(), "it has landed")
			require.NotEqual(t, house.Completed, h.moves()[0].Status)
			h.from("vault", hot, code, c[3])
			for range 30 {
				h.clock.Advance(15 * time.Second)
				on.Mine(1)
				_ = h.app.Step(t.Context())
			}
			require.Equal(t, float, h.posted(ledger.Float, code), "it is not the operator's")
			s.deaf = false
			h.thaw(code)
			h.clock.Advance(2 * time.Minute)
			h.mine(30)
			require.Equal(t, house.Completed, h.moves()[len(h.moves())-1].Status)
			require.Equal(t, float, h.posted(ledger.Float, code))
			apart, err := h.app.Operate.HeldTopUps(t.Context(), h.tenant, "", 10)
			require.NoError(t, err)
			for _, a := range apart {
				_, _, err := h.app.Operate.ResolveTopUp(t.Context(), h.tenant, a.ID, treasury.IsRefill, because("it is"))
				require.NoError(t, err)
			}
			require.Equal(t, float, h.posted(ledger.Float, code))
			var moved ledger.Amount
			for _, m := range h.moves() {
				if m.Status == house.Completed {
					moved += m.Amount
				}
			}
			came, err := h.coin(code).Units(dec(c[3]), ledger.Down)
			require.NoError(t, err)
			require.Equal(t, moved-came, h.cold(code))
			h.sound()
		})
	}
}

// TestFT07_ACostIsBookedOnceHoweverItsHashIsWritten: the same transaction in other letters, or with
// a space behind it, is the same one. That of this store's own is refused in any writing.
func TestFT07_ACostIsBookedOnceHoweverItsHashIsWritten(t *testing.T) {
	t.Parallel()
	h, _, _ := refilled(t, memory.New(), 820, "BTC", "0.001", "0.0005")
	ctx := t.Context()
	was := h.stand("BTC")
	own := h.moves()[0].Tx
	for _, tx := range []string{strings.ToUpper(own), own + " ", " " + own} {
		_, err := h.app.Operate.BookRefillCost(ctx, h.tenant, "BTC", tx, 500, because("x"))
		require.ErrorIs(t, err, treasury.ErrOwnCost, tx)
	}
	require.Equal(t, was, h.stand("BTC"))
	other := strings.Repeat("ab", 32)
	for _, tx := range []string{other, strings.ToUpper(other), other + " "} {
		_, err := h.app.Operate.BookRefillCost(ctx, h.tenant, "BTC", tx, 500, because("x"))
		require.NoError(t, err)
	}
	require.Equal(t, was[ledger.FeesNetwork]-500, h.posted(ledger.FeesNetwork, "BTC"), "once")
	h.sound()
}

// TestFT07_WithoutACeilingNothingGoes: a move waits for lower fees when the operator takes the
// ceiling away, or raises it above what is hot. It ends, and nothing goes once fees have fallen.
func TestFT07_WithoutACeilingNothingGoes(t *testing.T) {
	t.Parallel()
	for i, c := range [][]string{{"0", "0"}, {"1000", "0"}} {
		t.Run(c[0], func(t *testing.T) {
			t.Parallel()
			h, level := belowCost(t, uint64(830+i))
			h.chilled(usdt, c[0], c[1])
			h.chains["ETH"].SetFeeLevel(level / 4)
			h.mine(40)
			require.True(t, h.stored(usdt).IsZero(), "nothing goes there")
			require.Equal(t, house.Cancelled, h.moves()[0].Status)
			h.sound()
		})
	}
}

// TestFT07_AMoveThatFeesKeptBackGoesOnceTheyHaveFallen: at the fees of the first look the operator's
// coins do not bear the move. It goes once they bear what it costs by then.
func TestFT07_AMoveThatFeesKeptBackGoesOnceTheyHaveFallen(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 840, usdt)
	owed := h.credited(usdt)
	level := h.chains["ETH"].FeeLevel()
	_, _, err := h.app.Operate.WithdrawOperatorFunds(t.Context(), h.some("ETH", "0.97", "most of it"), because("it is mine"))
	require.NoError(t, err)
	h.mine(15)
	h.chains["ETH"].SetFeeLevel(level * 90)
	h.chilled(usdt, "100", "50")
	h.mine(12)
	require.Len(t, h.moves(), 1)
	require.Equal(t, "gas_float_short", h.moves()[0].Waiting)
	h.chains["ETH"].SetFeeLevel(level)
	h.mine(40)
	require.Equal(t, house.Completed, h.moves()[0].Status, h.moves()[0].Waiting)
	h.cooled(usdt, owed)
}

// TestFT07_ANoticeOutlivesTheProcess: a process dies right after it has noted that a person must
// look. Another one tells of it.
func TestFT07_ANoticeOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	for i, kind := range []string{treasury.NoticeApart, treasury.NoticeRefill} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ctx, prefix := context.WithoutCancel(t.Context()), []string{"apart/", "need/"}[i]
			f := &failing.Commits{Store: memory.New()}
			h, hot, told := refilled(t, f, uint64(850+i), "BTC", "0.001", "0.0005")
			h.thaw("BTC")
			f.Counts = func(c *storage.Change) bool { return strings.HasPrefix(c.ID, prefix) }
			f.Seen, f.At = 0, map[int]failing.Fault{1: failing.Unheard}
			if kind == treasury.NoticeApart {
				h.from("somebody", hot, "BTC", "0.0007")
			} else {
				h.payout(h.tenant, "BTC", "0.002")
			}
			for range 40 {
				h.clock.Advance(15 * time.Second)
				h.chains["BTC"].Mine(1)
				_ = h.app.Step(ctx)
				if f.Seen > 0 {
					break
				}
			}
			require.Equal(t, 1, f.Seen)
			f.At = nil
			h.restart()
			h.clock.Advance(2 * time.Minute)
			h.mine(20)
			require.Len(t, *told, 1)
			require.Equal(t, kind, (*told)[0].Kind)
			h.sound()
		})
	}
}

// TestFT07_AnotherProcessDoesNotKeepACeilingFromBeingSeen: a process that does not serve the network
// of a ceiling looks at policies first each time. The one that does moves the coins all the same.
func TestFT07_AnotherProcessDoesNotKeepACeilingFromBeingSeen(t *testing.T) {
	t.Parallel()
	h := newHostOn(t, memory.New(), 860, "ETH", "BTC")
	require.NoError(t, h.app.Upgraded(t.Context()))
	h.earn("ETH", "300")
	h.mine(60)
	other := h.beside(func(c *cryptopay.Config) { noETH(c); c.Elsewhere = []chain.Network{"ETH"} })
	_, _, err := h.app.Operate.SetPolicy(t.Context(), h.tenant, 0, policy.Policy{Cold: []policy.Cold{{
		Currency: "ETH", Address: h.vault("ETH"), Ceiling: dec("0.05"), Target: dec("0.02"),
	}}}, because("most of it is safer there"))
	require.NoError(t, err)
	for range 180 {
		h.clock.Advance(10 * time.Second)
		require.NoError(t, other.Step(t.Context()))
		h.chains["ETH"].Mine(1)
		h.step()
	}
	require.NotEmpty(t, h.moves())
	require.True(t, h.stored("ETH").IsPositive())
}

// TestFT07_AMoveThatBringsLessIsNoFullMove: a token keeps 0.1 USDT of a move to cold. What lies there
// by the books is what came, and the rest is a cost of the house: chain/<network> counts it no more.
func TestFT07_AMoveThatBringsLessIsNoFullMove(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 870, usdt)
	h.configure = also(h.configure, func(cfg *cryptopay.Config) {
		for i, c := range cfg.Chains {
			cfg.Chains[i] = skimming{c.(able), 100_000}
		}
	})
	h.restart()
	was := h.stand(usdt)
	h.chilled(usdt, "100", "50")
	h.mine(30)
	require.Len(t, h.moves(), 1)
	m := h.moves()[0]
	require.Equal(t, []string{"completed", "delivered_less"}, []string{string(m.Status), m.Waiting})
	require.Equal(t, m.Amount-100_000, h.cold(usdt))
	require.Equal(t, was[ledger.FeesNetwork]-100_000, h.posted(ledger.FeesNetwork, usdt))
	require.Equal(t, was[ledger.Chain("ETH")]+100_000, h.posted(ledger.Chain("ETH"), usdt))
	h.sound()
}

// unpayable is a network on which nothing can be sent to an address.
type unpayable struct {
	able
	to chain.Address
}

func (c unpayable) Build(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
	if o.Intent.To == c.to {
		return chain.Unsigned{}, fmt.Errorf("%w: the token refuses the address", chain.ErrRejected)
	}
	return c.able.Build(ctx, o)
}

// TestFT07_AMoveThatFailsIsNotTriedEachMinute: the cold address cannot be paid. A move there fails, and
// the next is not begun at once: each may cost its fee. Another address is tried at once.
func TestFT07_AMoveThatFailsIsNotTriedEachMinute(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 881, usdt)
	h.configure = also(h.configure, func(cfg *cryptopay.Config) {
		for i, c := range cfg.Chains {
			cfg.Chains[i] = unpayable{c.(able), chain.Address(h.vault(usdt))}
		}
	})
	h.restart()
	h.chilled(usdt, "100", "50")
	h.mine(60)
	require.Len(t, h.moves(), 1)
	require.Equal(t, house.Failed, h.moves()[0].Status)
	h.clock.Advance(6 * time.Hour)
	h.mine(10)
	require.Len(t, h.moves(), 2)
	h.coldIs(usdt, "vault2", "100", "50")
	h.mine(30)
	require.Len(t, h.moves(), 3)
	require.Equal(t, house.Completed, h.moves()[0].Status)
	h.sound()
}

// TestFT07_AMemoThatNoNetworkCarriesIsRefused: a ceiling with a memo on a network that has none is
// refused: each move there would fail.
func TestFT07_AMemoThatNoNetworkCarriesIsRefused(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 880, usdt)
	_, _, err := h.app.Operate.SetPolicy(t.Context(), h.tenant, 0, policy.Policy{Cold: []policy.Cold{{
		Currency: usdt, Address: h.vault(usdt), Memo: "vault 7", Ceiling: dec("100"), Target: dec("50"),
	}}}, because("x"))
	var bad *policy.InvalidError
	require.ErrorAs(t, err, &bad)
	require.Contains(t, bad.Error(), "cold[0].memo")
}

// TestFT07_ADescriptorThatNobodyCheckedIsRefused: however long it is, and in whatever letters, a
// descriptor is checked, or it is not taken.
func TestFT07_ADescriptorThatNobodyCheckedIsRefused(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 881, usdt)
	for _, text := range []string{"wpkh(x)", strings.Repeat("é", 3000), strings.Repeat("x", 5000)} {
		_, _, err := h.app.Operate.SetPolicy(t.Context(), h.tenant, 0, policy.Policy{Cold: []policy.Cold{{
			Currency: usdt, Address: h.vault(usdt), Descriptor: text,
		}}}, because("x"))
		var bad *policy.InvalidError
		require.ErrorAs(t, err, &bad)
		require.Contains(t, bad.Error(), "cold[0].descriptor")
	}
}
