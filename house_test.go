package cryptopay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/cryptopaytest"
	"github.com/cryptopay-go/cryptopay/internal/failing"
	"github.com/cryptopay-go/cryptopay/ledger"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/memory"
	"github.com/cryptopay-go/cryptopay/wallet"
	"github.com/cryptopay-go/cryptopay/wallet/house"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// earned is a host that takes 10 % of each payment, has earned of one of 300 USD, and has put
// one coin of each network in for gas. It may take what it earned out to "house".
func earned(t testing.TB, store storage.Store, seed uint64, currencies ...string) *host {
	t.Helper()
	var networks []chain.Network
	for _, code := range currencies {
		c, err := chain.MainnetRegistry().Currency(code)
		require.NoError(t, err)
		if !slices.Contains(networks, c.Network) {
			networks = append(networks, c.Network)
		}
	}
	h := newHostOn(t, store, seed, networks...)
	h.configure = func(c *cryptopay.Config) {
		for _, n := range networks {
			c.HouseAddresses = append(c.HouseAddresses, house.Address{Network: n, Address: h.chains[n].Customer("house")})
		}
	}
	h.restart()
	require.NoError(t, h.app.Upgraded(t.Context()))
	_, err := h.app.Wallets.UpdateTenant(t.Context(), h.tenant, wallet.Settings{TransactionFee: ptr(dec("10"))})
	require.NoError(t, err)
	for _, code := range currencies {
		h.earn(code, "300")
	}
	h.mine(30)
	return h
}

// take is all that the house has of a currency, to "house".
func (h *host) take(currency, key string) house.Take {
	h.t.Helper()
	return house.Take{Tenant: h.tenant, Currency: currency, All: true, Address: string(h.chains[h.coin(currency).Network].Customer("house")), Key: key}
}

// some is as much.
func (h *host) some(currency, amount, key string) house.Take {
	h.t.Helper()
	t := h.take(currency, key)
	units, err := h.coin(currency).Units(dec(amount), ledger.Down)
	require.NoError(h.t, err)
	t.All, t.Amount = false, units
	return t
}

func (h *host) coin(currency string) *chain.Currency {
	h.t.Helper()
	c, err := chain.MainnetRegistry().Currency(currency)
	require.NoError(h.t, err)
	return c
}

// housed is what "house" has been paid.
func (h *host) housed(currency string) decimal.Decimal {
	world := h.chains[h.coin(currency).Network]
	return world.Balance(world.Customer("house"), currency)
}

// heldBy is what an account of the house holds.
func (h *host) heldBy(a ledger.Account, currency string) ledger.Amount {
	h.t.Helper()
	balances, err := h.store.Balances(h.t.Context(), storage.Tenant(h.tenant), a)
	require.NoError(h.t, err)
	for _, b := range balances {
		if string(b.Asset) == currency {
			return b.Held
		}
	}
	return 0
}

// equity is what the house owns of an asset.
func (h *host) equity(currency string) (sum ledger.Amount) {
	h.t.Helper()
	balances, err := h.store.Balances(h.t.Context(), storage.Tenant(h.tenant))
	require.NoError(h.t, err)
	for _, b := range balances {
		if string(b.Asset) == currency && b.Account.House() {
			sum += b.Posted
		}
	}
	return sum
}

// settled demands that a payment of the house's has ended well, that "house" has exactly its
// amount, and that the books say so.
func (h *host) settled(p house.Payment, was map[ledger.Account]ledger.Amount) {
	h.t.Helper()
	now, err := h.app.Operate.HousePayment(h.t.Context(), h.tenant, p.ID)
	require.NoError(h.t, err)
	require.Equal(h.t, house.Completed, now.Status, now.Waiting)
	require.NotEmpty(h.t, now.Tx)
	require.Equal(h.t, h.coin(p.Currency).Decimal(p.Amount).String(), h.housed(p.Currency).String(), "paid once")
	gas, err := chain.MainnetRegistry().Gas(chain.Network(p.Network))
	require.NoError(h.t, err)
	cost := ledger.Amount(0)
	if p.Currency == gas.Code {
		cost = was[ledger.FeesNetwork] - h.posted(ledger.FeesNetwork, gas.Code)
		require.Positive(h.t, cost)
	}
	require.Equal(h.t, was[p.Source]-p.Amount, h.posted(p.Source, p.Currency))
	require.Equal(h.t, was[ledger.Chain(p.Network)]+p.Amount+cost, h.posted(ledger.Chain(p.Network), p.Currency))
	require.Zero(h.t, h.heldBy(p.Source, p.Currency))
	require.GreaterOrEqual(h.t, h.equity(p.Currency), ledger.Amount(0))
	h.released()
	h.sound()
}

// stand is how the house's accounts of a currency stand.
func (h *host) stand(currency string) map[ledger.Account]ledger.Amount {
	h.t.Helper()
	out := map[ledger.Account]ledger.Amount{}
	for _, a := range []ledger.Account{ledger.FeesPlatform, ledger.FeesNetwork, ledger.Float, ledger.Adjustment, ledger.Chain(string(h.coin(currency).Network))} {
		out[a] = h.posted(a, currency)
	}
	return out
}

// onBoth runs a test on memory and on SQLite.
func onBoth(t *testing.T, test func(t *testing.T, store storage.Store)) {
	t.Helper()
	onMemory(t, true, test)
}

// onMemory is onBoth where sqlite is true, and memory alone where it is not.
func onMemory(t *testing.T, sqlite bool, test func(t *testing.T, store storage.Store)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) {
		t.Parallel()
		test(t, memory.New())
	})
	if !sqlite {
		return
	}
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		store, _ := onSQLite(t)
		test(t, store)
	})
}

// TestFT07_FeesAndFloatAreTakenOut: what was earned goes to an address of the host's own by a
// real payment: P −x, c +x, and its cost. Then what was put in: F −x, c +x. Customers are
// paid what they have afterwards.
func TestFT07_FeesAndFloatAreTakenOut(t *testing.T) {
	t.Parallel()
	for i, code := range []string{"ETH", "BTC", usdt} {
		t.Run(code, func(t *testing.T) {
			t.Parallel()
			onBoth(t, func(t *testing.T, store storage.Store) {
				ctx := t.Context()
				h := earned(t, store, uint64(200+i), code)
				was := h.stand(code)
				fees := was[ledger.FeesPlatform]
				require.Positive(t, fees)

				dry := because("month's end")
				dry.DryRun = true
				p, id, err := h.app.Operate.PayOutFees(ctx, h.take(code, "november"), dry)
				require.NoError(t, err)
				require.Equal(t, fees, p.Amount)
				require.Empty(t, id)
				require.Zero(t, h.heldBy(ledger.FeesPlatform, code), "a dry run holds nothing")

				p, id, err = h.app.Operate.PayOutFees(ctx, h.take(code, "november"), because("month's end"))
				require.NoError(t, err)
				require.NotEmpty(t, id)
				require.Equal(t, []ledger.Amount{fees, fees}, []ledger.Amount{p.Amount, h.heldBy(ledger.FeesPlatform, code)})
				h.sound()
				again, none, err := h.app.Operate.PayOutFees(ctx, h.take(code, "november"), because("month's end"))
				require.NoError(t, err)
				require.Equal(t, []string{p.ID, ""}, []string{again.ID, none}, "one key, one payment")
				_, _, err = h.app.Operate.PayOutFees(ctx, h.some(code, "0.001", "november"), because("more"))
				require.ErrorIs(t, err, house.ErrKey)
				var short *house.ShortError
				_, _, err = h.app.Operate.PayOutFees(ctx, h.some(code, "0.001", "december"), because("more"))
				require.ErrorAs(t, err, &short, "it is on its way out")
				h.mine(30)
				h.settled(p, was)

				ops, err := h.app.Operate.List(ctx, "", 10, 0)
				require.NoError(t, err)
				require.Len(t, ops, 1, "one call, one record")
				require.Equal(t, []string{"pay_out_fees", "ann", "month's end", h.tenant, p.ID}, []string{string(ops[0].Kind), ops[0].By, ops[0].Reason, ops[0].Tenant, ops[0].Object})
				require.NotEqual(t, ops[0].Before, ops[0].After)

				// All that the customers have goes out, too.
				h.paidOnce(h.tenant, h.customersPayout(code))
				h.sound()
				if code == usdt {
					return
				}
				first := h.housed(code)
				was = h.stand(code)
				p, _, err = h.app.Operate.WithdrawOperatorFunds(ctx, h.some(code, "0.5", "november"), because("too much of it"))
				require.NoError(t, err)
				h.mine(30)
				require.Equal(t, h.coin(code).Decimal(p.Amount).String(), h.housed(code).Sub(first).String())
				require.Equal(t, was[ledger.Float]-p.Amount, h.posted(ledger.Float, code))
				h.released()
				h.sound()
			})
		})
	}
}

// customersPayout pays all that the customers have out, less fees, and waits for it.
func (h *host) customersPayout(code string) string {
	h.t.Helper()
	has := h.coin(code).Decimal(h.credited(code))
	id := h.payout(h.tenant, code, has.String())
	h.mine(30)
	return id
}

// TestFT07_HouseTakesNoMoreThanIsItsOwn: what is refused, and that it changes nothing.
func TestFT07_HouseTakesNoMoreThanIsItsOwn(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := earned(t, memory.New(), 210, "ETH", usdt)
	was := h.stand("ETH")
	refused := func(want any, take func() error) {
		t.Helper()
		err := take()
		if target, ok := want.(error); ok {
			require.ErrorIs(t, err, target)
		} else {
			require.ErrorAs(t, err, want)
		}
		require.Zero(t, h.heldBy(ledger.FeesPlatform, "ETH")+h.heldBy(ledger.Float, "ETH"))
		require.Equal(t, was, h.stand("ETH"))
	}
	fees := func(t house.Take, c cryptopay.Call) func() error {
		return func() error { _, _, err := h.app.Operate.PayOutFees(ctx, t, c); return err }
	}
	float := func(t house.Take, c cryptopay.Call) func() error {
		return func() error { _, _, err := h.app.Operate.WithdrawOperatorFunds(ctx, t, c); return err }
	}
	var short *house.ShortError
	refused(cryptopay.ErrCall, fees(h.take("ETH", "a"), cryptopay.Call{By: "ann"}))
	refused(&short, fees(h.some("ETH", "0.9", "a"), because("x"))) // less than the house has, more than it earned
	require.Equal(t, h.coin("ETH").Decimal(was[ledger.FeesPlatform]).String(), short.Free)
	refused(&short, float(h.some("ETH", "2.0001", "a"), because("x")))
	refused(&short, float(h.some(usdt, "1", "a"), because("x"))) // nothing was put in
	stranger := h.some("ETH", "0.001", "a")
	stranger.Address = string(h.chains["ETH"].Customer("stranger"))
	refused(house.ErrAddress, fees(stranger, because("x")))
	memo := h.some("ETH", "0.001", "a")
	memo.Memo = "1"
	refused(house.ErrAddress, fees(memo, because("x")))
	refused(house.ErrAmount, fees(house.Take{Tenant: h.tenant, Currency: "ETH", Address: string(h.chains["ETH"].Customer("house")), Key: "a"}, because("x")))
	refused(house.ErrAmount, fees(h.some("ETH", "0.001", ""), because("x")))
	other := h.some("ETH", "0.001", "a")
	other.Tenant = "nobody"
	refused(wallet.ErrNoTenant, fees(other, because("x")))

	configure := h.configure
	h.configure = nil
	h.restart()
	refused(house.ErrNoAddresses, fees(h.some("ETH", "0.001", "a"), because("x")))
	hot, err := h.app.Hot(ctx, "ETH", h.tenant)
	require.NoError(t, err)
	h.configure = func(c *cryptopay.Config) {
		c.HouseAddresses = []house.Address{{Network: "ETH", Address: hot}}
	}
	h.restart()
	to := h.some("ETH", "0.001", "a")
	to.Address = string(hot)
	refused(house.ErrAddress, fees(to, because("x")))

	// One that was accepted and whose address was taken out of the list waits, and is cancelled.
	h.configure = configure
	h.restart()
	p, _, err := h.app.Operate.PayOutFees(ctx, h.take("ETH", "a"), because("x"))
	require.NoError(t, err)
	h.configure = nil
	h.restart()
	h.mine(3)
	p, err = h.app.Operate.HousePayment(ctx, h.tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, []any{house.Pending, house.WaitingUnlisted}, []any{p.Status, p.Waiting})
	p, id, err := h.app.Operate.CancelHousePayment(ctx, h.tenant, p.ID, because("not there"))
	require.NoError(t, err)
	require.NotEmpty(t, id)
	require.Equal(t, house.Cancelled, p.Status)
	refused(house.ErrNoAddresses, fees(h.some("ETH", "0.001", "b"), because("x")))
	h.mine(5)
	require.True(t, h.housed("ETH").IsZero())
	h.sound()
}

// TestFT07_TwentyAtOnceTakeWhatThereIs: fees, float, a missing payment's rest and gas for
// sweeps draw on the same equity at the same moment. Together they never take more than there
// is, in one process or in two.
func TestFT07_TwentyAtOnceTakeWhatThereIs(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store storage.Store) {
		ctx := t.Context()
		h := earned(t, store, 220, "ETH")
		other := h.beside(h.configure)
		was := h.stand("ETH")
		fees, equity := was[ledger.FeesPlatform], h.equity("ETH")
		var (
			mu    sync.Mutex
			taken = map[ledger.Account]ledger.Amount{}
			wg    sync.WaitGroup
		)
		sweep := h.create("100", "ETH") // gas is set aside meanwhile
		h.pay(sweep, "ETH", h.coin("ETH").Decimal(sweep.Due))
		for i := range 20 {
			wg.Go(func() {
				app := []*cryptopay.App{h.app, other}[i%2]
				take := h.some("ETH", "0.004", fmt.Sprint("k", i))
				call := app.Operate.PayOutFees
				if i%4 > 1 {
					take = h.some("ETH", "0.3", fmt.Sprint("k", i))
					call = app.Operate.WithdrawOperatorFunds
				}
				p, _, err := call(ctx, take, because("x"))
				var short *house.ShortError
				if errors.As(err, &short) || errors.Is(err, storage.ErrConflict) {
					return
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				taken[p.Source] += p.Amount
				mu.Unlock()
			})
		}
		wg.Wait()
		require.Positive(t, taken[ledger.FeesPlatform])
		require.Positive(t, taken[ledger.Float])
		require.LessOrEqual(t, taken[ledger.FeesPlatform], fees)
		require.LessOrEqual(t, taken[ledger.FeesPlatform]+taken[ledger.Float], equity)
		h.mine(60)
		require.Equal(t, h.coin("ETH").Decimal(taken[ledger.FeesPlatform]+taken[ledger.Float]).String(), h.housed("ETH").String())
		require.GreaterOrEqual(t, h.equity("ETH"), ledger.Amount(0))
		h.released()
		h.sound()
	})
}

// TestFT07_GasThatIsSetAsideStays: the float that a stuck transaction may still cost cannot be
// taken out, and what was taken out cannot be set aside for gas.
func TestFT07_GasThatIsSetAsideStays(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h, id, _ := stuck(t, memory.New(), "ETH")
	configure := h.configure
	h.configure = func(c *cryptopay.Config) {
		configure(c)
		c.HouseAddresses = []house.Address{{Network: "ETH", Address: h.chains["ETH"].Customer("house")}}
	}
	h.restart()
	require.NoError(t, h.app.Upgraded(ctx))
	g, _, _, err := treasury.GasFloats.One(ctx, h.store, storage.Tenant(h.tenant), "ETH")
	require.NoError(t, err)
	require.Positive(t, g.Reserved)
	p, _, err := h.app.Operate.WithdrawOperatorFunds(ctx, h.take("ETH", "a"), because("x"))
	require.NoError(t, err)
	require.Equal(t, h.equity("ETH")-g.Reserved-p.MaxCost, p.Amount)
	var wait *treasury.WaitError
	_, err = h.app.Operate.SpeedUp(ctx, "ETH", id, 1_000*g.Reserved, because("he waits"))
	require.ErrorAs(t, err, &wait)
	h.chains["ETH"].SetFeeLevel(h.chains["ETH"].FeeLevel() / 40)
	h.mine(40)
	require.Equal(t, h.coin("ETH").Decimal(p.Amount).String(), h.housed("ETH").String())
	h.paidOnce(h.tenant, id)
	require.GreaterOrEqual(t, h.equity("ETH"), ledger.Amount(0))
	h.sound()
}

// TestFT07_CrashAtEachStep: wherever a commit of the call or of what follows from it fails,
// another process goes on: the house is paid once, or, where the call failed, not at all, and
// the same call again pays it once.
func TestFT07_CrashAtEachStep(t *testing.T) {
	t.Parallel()
	for i, code := range []string{"ETH", "BTC"} {
		for failAt := 1; failAt <= 16; failAt++ {
			fault := failing.Undone // its process is gone before
			if failAt%2 == 0 {
				fault = failing.Unheard // and after
			}
			if code == "BTC" && fault == failing.Undone {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d/%s", code, (failAt+1)/2, fault), func(t *testing.T) {
				t.Parallel()
				ctx := t.Context()
				f := &failing.Commits{Store: memory.New()}
				h := earned(t, f, uint64(230+i), code)
				was := h.stand(code)
				f.Seen, f.At = 0, map[int]failing.Fault{(failAt + 1) / 2: fault}
				_, _, err := h.app.Operate.PayOutFees(ctx, h.take(code, "k"), because("x"))
				if err == nil {
					for range 3 {
						h.clock.Advance(15 * time.Second)
						h.chains[h.coin(code).Network].Mine(1)
						if h.app.Step(ctx) != nil {
							break
						}
					}
				}
				f.At = nil
				h.restart()
				h.clock.Advance(2 * time.Minute)
				p, _, err := h.app.Operate.PayOutFees(ctx, h.take(code, "k"), because("x"))
				require.NoError(t, err)
				h.mine(40)
				h.settled(p, was)
				ops, err := h.app.Operate.List(ctx, "", 10, 0)
				require.NoError(t, err)
				require.Len(t, ops, 1)
			})
		}
	}
}

// TestFT07_FailedPayOutIsGivenBack: its transaction was called back on the network, so the
// fees are the house's to take again. Its cost stays booked.
func TestFT07_FailedPayOutIsGivenBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := earned(t, memory.New(), 240, "ETH")
	was := h.stand("ETH")
	p, _, err := h.app.Operate.PayOutFees(ctx, h.take("ETH", "k"), because("x"))
	require.NoError(t, err)
	h.step()
	level := h.stick("ETH")
	h.mine(3)
	_, err = h.app.Operate.CancelTransaction(ctx, "ETH", p.ID, because("wrong month"))
	require.NoError(t, err)
	h.chains["ETH"].SetFeeLevel(level)
	h.step()
	_, _, err = h.app.Operate.CancelHousePayment(ctx, h.tenant, p.ID, because("x"))
	var state *house.StateError
	require.ErrorAs(t, err, &state)
	h.mine(40)
	p, err = h.app.Operate.HousePayment(ctx, h.tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, house.Failed, p.Status)
	require.NotEmpty(t, p.Reason)
	require.Equal(t, was[ledger.FeesPlatform], h.posted(ledger.FeesPlatform, "ETH"))
	require.Zero(t, h.heldBy(ledger.FeesPlatform, "ETH"))
	require.Less(t, h.posted(ledger.FeesNetwork, "ETH"), was[ledger.FeesNetwork], "the network took its fee")
	require.True(t, h.housed("ETH").IsZero())
	h.sound()
	was = h.stand("ETH")
	p, _, err = h.app.Operate.PayOutFees(ctx, h.take("ETH", "again"), because("x"))
	require.NoError(t, err)
	h.mine(40)
	h.settled(p, was)
}

// TestFM05_OpenHousePaymentIsBusiness: a network is not taken out of the configuration while
// fees are on their way out there.
func TestFM05_OpenHousePaymentIsBusiness(t *testing.T) {
	t.Parallel()
	h := earned(t, memory.New(), 243, "BTC", "ETH")
	_, _, err := h.app.Operate.PayOutFees(t.Context(), h.take("ETH", "k"), because("x"))
	require.NoError(t, err)
	var open *cryptopay.OpenBusinessError
	require.ErrorAs(t, h.compose(noETH).Open(t.Context(), keys.Tables()...), &open)
	require.Equal(t, int64(1), open.Open[0].Withdrawals)
}

// TestFT07_HaltsHoldTheHouse: while an asset is halted nothing of it leaves, the house's own
// included; afterwards it goes.
func TestFT07_HaltsHoldTheHouse(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := earned(t, memory.New(), 241, usdt)
	was := h.stand(usdt)
	h.distrust(usdt)
	p, _, err := h.app.Operate.PayOutFees(ctx, h.take(usdt, "k"), because("x"))
	require.NoError(t, err)
	h.mine(30)
	p, err = h.app.Operate.HousePayment(ctx, h.tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, []any{house.Pending, house.WaitingHalted}, []any{p.Status, p.Waiting})
	require.False(t, p.WaitingSince.IsZero())
	require.True(t, h.housed(usdt).IsZero())
	h.lift(usdt)
	h.mine(30)
	h.settled(p, was)
}

// TestFT07_AHousePaymentThatWaitsLongIsReported: whether it was handed over or not, the host is
// told once for each reason, by an event that a consumer gets and by Notify, with the reason and
// since when; also by a process that began later. Where it does not wait any more nobody is told.
func TestFT07_AHousePaymentThatWaitsLongIsReported(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		what       string
		stop, goOn func(h *host, signer *muted)
	}{
		{"before it is handed over", func(h *host, _ *muted) { h.distrust(usdt) }, func(h *host, _ *muted) { h.lift(usdt) }},
		{"after", func(_ *host, signer *muted) { signer.on = true }, func(_ *host, signer *muted) { signer.on = false }},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			h := earned(t, memory.New(), 242, usdt)
			told, signer, addresses := &alerts{}, &muted{}, h.configure
			h.configure = func(cfg *cryptopay.Config) {
				addresses(cfg)
				told.listen(cfg)
				signer.Signer = cfg.Signer
				cfg.Signer = signer
			}
			h.restart()
			long := func() (out []house.PaymentChanged) {
				rows, err := h.store.Find(ctx, storage.Query{Table: storage.Events.Table, Partition: storage.Tenant(h.tenant), Limit: 1000})
				require.NoError(t, err)
				for _, r := range rows {
					e := storage.Events.Value(r)
					var b house.PaymentChanged
					if e.Kind == b.EventKind() {
						require.NoError(t, json.Unmarshal(e.Data, &b))
						if b.Long {
							out = append(out, b)
						}
					}
				}
				return out
			}
			was := h.stand(usdt)
			c.stop(h, signer)
			p, _, err := h.app.Operate.PayOutFees(ctx, h.take(usdt, "k"), because("x"))
			require.NoError(t, err)
			h.mine(56) // 14 minutes
			p, err = h.app.Operate.HousePayment(ctx, h.tenant, p.ID)
			require.NoError(t, err)
			require.NotEmpty(t, p.Waiting)
			require.Empty(t, long())
			h.restart()
			h.mine(8)
			for range 2 {
				require.Len(t, long(), 1, "once")
				require.Equal(t, []any{p.ID, p.Waiting, p.WaitingSince}, []any{long()[0].PaymentID, long()[0].Waiting, long()[0].Since.UTC()})
				require.Equal(t, []string{withdrawal.NoticeHouse}, told.of(p.ID))
				h.mine(80)
				h.restart()
			}
			require.Contains(t, told.payouts[0].Detail, p.Waiting)
			c.goOn(h, signer)
			h.mine(120)
			h.settled(p, was)
			require.Len(t, long(), 1)
		})
	}
}

// muted is a signer that does not answer while it is on.
type muted struct {
	chain.Signer
	on bool
}

func (m *muted) Sign(ctx context.Context, r chain.SignRequest) ([]chain.Signature, error) {
	if m.on {
		return nil, errTrouble
	}
	return m.Signer.Sign(ctx, r)
}

// TestFT07_ACancelThatSleptMeetsAHandOver: a payment of the house's waits for gas, and the payout
// side tells a cancel that it has nothing of it. Before that ends the payment, gas has come and
// the payment is handed over. The cancel then ends nothing, and the house is paid.
func TestFT07_ACancelThatSleptMeetsAHandOver(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	store := &interloper{Store: memory.New(), table: house.Payments.Table}
	h := earned(t, store, 243, usdt)
	signer, addresses := &muted{}, h.configure
	h.configure = func(cfg *cryptopay.Config) {
		addresses(cfg)
		signer.Signer = cfg.Signer
		cfg.Signer = signer
	}
	h.restart()
	_, _, err := h.app.Operate.WithdrawOperatorFunds(ctx, h.take("ETH", "all"), because("it is mine"))
	require.NoError(t, err)
	h.mine(30)
	p, _, err := h.app.Operate.PayOutFees(ctx, h.take(usdt, "k"), because("x"))
	require.NoError(t, err)
	h.mine(2)
	p, err = h.app.Operate.HousePayment(ctx, h.tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, "gas_float_short", p.Waiting)

	other := h.beside(h.configure)
	store.before = func() { // the cancel falls asleep here
		signer.on = true
		hot, err := other.Hot(ctx, "ETH", h.tenant)
		require.NoError(t, err)
		_, err = h.chains["ETH"].Fund(hot, "ETH", dec("1"))
		require.NoError(t, err)
		h.mineWith(other, "ETH", 40)
	}
	_, _, err = h.app.Operate.CancelHousePayment(ctx, h.tenant, p.ID, because("too late"))
	require.ErrorIs(t, err, house.ErrHandingOver)
	signer.on = false
	h.mine(30)
	p, err = h.app.Operate.HousePayment(ctx, h.tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, house.Completed, p.Status)
	require.Equal(t, h.coin(usdt).Decimal(p.Amount).String(), h.housed(usdt).String())
	h.sound()
}

// TestFT07_ReorgTakesBackFeesThatWerePaidOut: a deep reorg takes a payment away whose fees are
// with the host already. The books say so: equity falls below 0, payouts of the asset halt,
// and go on once float or an adjustment covers it.
func TestFT07_ReorgTakesBackFeesThatWerePaidOut(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := earned(t, memory.New(), 242, usdt)
	p := h.create("300", usdt)
	tx := h.pay(p, usdt, h.coin(usdt).Decimal(p.Due))
	h.mine(14) // credited, and not final for the chain
	was := h.stand(usdt)
	out, _, err := h.app.Operate.PayOutFees(ctx, h.take(usdt, "k"), because("x"))
	require.NoError(t, err)
	require.Equal(t, was[ledger.FeesPlatform], out.Amount)
	h.mine(3)
	_, err = h.chains["ETH"].Reorg(17, tx)
	require.NoError(t, err)
	h.mine(40)
	net, err := h.app.NetworkStatus(ctx, "ETH")
	require.NoError(t, err)
	require.Empty(t, net.Halted)
	require.Negative(t, h.posted(ledger.FeesPlatform, usdt))
	require.Negative(t, h.equity(usdt))
	id := h.payout(h.tenant, usdt, "10")
	h.mine(5)
	require.Equal(t, "pending halted", h.status(h.tenant, id))
	w, err := h.app.Withdrawals.Get(ctx, h.tenant, id)
	require.NoError(t, err)
	require.Contains(t, w.Reason, "the operator's equity in "+usdt+" is below 0")
	reports, err := h.app.Verify(ctx)
	require.NoError(t, err)
	for _, r := range reports { // what the reorg took is the one thing that is wrong
		require.Empty(t, r.Holds)
		require.Empty(t, r.Unexplained)
		require.Empty(t, r.Contradictions)
	}
	hot, err := h.app.Hot(ctx, "ETH", h.tenant)
	require.NoError(t, err)
	_, err = h.chains["ETH"].Fund(hot, usdt, dec("300"))
	require.NoError(t, err)
	h.mine(40)
	h.paidOnce(h.tenant, id)
	h.sound()
}

// TestFM03_RebasedTokenIsAdjusted: books 300, chain 270: adjustment −30, c +30, by two people
// within a day.
func TestFM03_RebasedTokenIsAdjusted(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, store storage.Store) {
		ctx := t.Context()
		h := earned(t, store, 250, usdt)
		units := func(s string) ledger.Amount {
			a, err := h.coin(usdt).Units(dec(s), ledger.Down)
			require.NoError(t, err)
			return a
		}
		by := func(who string) cryptopay.Call { return cryptopay.Call{By: who, Reason: "it rebased by −10 %"} }
		adjustment := func(key string) house.Adjustment {
			return house.Adjustment{Tenant: h.tenant, Currency: usdt, Key: key, Moves: map[ledger.Account]ledger.Amount{
				ledger.Adjustment: -units("30"), ledger.Chain("ETH"): units("30"),
			}}
		}
		was := h.stand(usdt)
		for name, moves := range map[string]map[ledger.Account]ledger.Amount{
			"unbalanced":     {ledger.Adjustment: -30, ledger.Chain("ETH"): 29},
			"one leg":        {ledger.Adjustment: -30},
			"none":           {},
			"nothing":        {ledger.Adjustment: 0, ledger.Chain("ETH"): 0},
			"another chain":  {ledger.Adjustment: -30, ledger.Chain("BTC"): 30},
			"suspense":       {ledger.Suspense: -30, ledger.Adjustment: 30},
			"no wallet":      {ledger.Adjustment: -30, ledger.Wallet("nobody"): 30},
			"receivable":     {ledger.Adjustment: -30, ledger.Receivable("master"): 30},
			"no account":     {ledger.Adjustment: -30, "pocket": 30},
			"overflow":       {ledger.Adjustment: ledger.MaxAmount, ledger.Float: ledger.MaxAmount, ledger.Chain("ETH"): 2},
			"unbalanced big": {ledger.Adjustment: -ledger.MaxAmount, ledger.Float: ledger.MaxAmount - 1},
		} {
			a := adjustment(name)
			a.Moves = moves
			_, _, err := h.app.Operate.Adjust(ctx, a, by("ann"))
			require.ErrorIs(t, err, house.ErrMoves, name)
		}
		_, _, err := h.app.Operate.Adjust(ctx, adjustment("1"), cryptopay.Call{By: "ann"})
		require.ErrorIs(t, err, cryptopay.ErrCall)
		require.Equal(t, was, h.stand(usdt))

		out, id, err := h.app.Operate.Adjust(ctx, adjustment("1"), by("ann"))
		require.NoError(t, err)
		require.NotEmpty(t, id)
		require.False(t, out.Booked())
		for _, again := range []string{"ann", "Ann", " ann "} {
			out, id, err = h.app.Operate.Adjust(ctx, adjustment("1"), by(again))
			require.NoError(t, err)
			require.Equal(t, []any{false, ""}, []any{out.Booked(), id}, "one person is not two")
		}
		require.Equal(t, was, h.stand(usdt))
		dry := by("bob")
		dry.DryRun = true
		out, _, err = h.app.Operate.Adjust(ctx, adjustment("1"), dry)
		require.NoError(t, err)
		require.Equal(t, []string{"0", "-30"}, []string{out.Before[ledger.Adjustment], out.After[ledger.Adjustment]})
		require.Equal(t, was, h.stand(usdt))

		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if _, _, err := h.app.Operate.Adjust(ctx, adjustment("1"), by("bob")); err != nil && !errors.Is(err, storage.ErrConflict) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		out, id, err = h.app.Operate.Adjust(ctx, adjustment("1"), by("carl"))
		require.NoError(t, err)
		require.Equal(t, []string{"ann", "bob", ""}, []string{out.AskedBy, out.ApprovedBy, id})
		require.Equal(t, -units("30"), h.posted(ledger.Adjustment, usdt), "once")
		require.Equal(t, was[ledger.Chain("ETH")]+units("30"), h.posted(ledger.Chain("ETH"), usdt))
		ops, err := h.app.Operate.List(ctx, "", 10, 0)
		require.NoError(t, err)
		kinds := map[outgoing.OperationKind]string{}
		for _, op := range ops {
			kinds[op.Kind] = op.By
		}
		require.Equal(t, map[outgoing.OperationKind]string{outgoing.OpAskAdjustment: "ann", outgoing.OpAdjust: "bob"}, kinds)
		h.sound()

		// The house has earned 30: all of it is gone. More is booked, too: payouts halt.
		require.Zero(t, h.equity(usdt))
		var short *house.ShortError
		_, _, err = h.app.Operate.PayOutFees(ctx, h.take(usdt, "k"), because("x"))
		require.ErrorAs(t, err, &short)
		for _, who := range []string{"ann", "bob"} {
			_, _, err = h.app.Operate.Adjust(ctx, adjustment("2"), by(who))
			require.NoError(t, err)
		}
		require.Negative(t, h.equity(usdt))
		paid := h.payout(h.tenant, usdt, "10")
		h.mine(5)
		require.Equal(t, "pending halted", h.status(h.tenant, paid))
		hot, err := h.app.Hot(ctx, "ETH", h.tenant)
		require.NoError(t, err)
		_, err = h.chains["ETH"].Fund(hot, usdt, dec("40"))
		require.NoError(t, err)
		h.mine(40)
		h.paidOnce(h.tenant, paid)

		// A day later nobody can approve any more.
		_, _, err = h.app.Operate.Adjust(ctx, adjustment("3"), by("ann"))
		require.NoError(t, err)
		h.clock.Advance(house.ConfirmWithin + time.Second)
		_, _, err = h.app.Operate.Adjust(ctx, adjustment("3"), by("bob"))
		require.ErrorIs(t, err, house.ErrTooLate)

		// A merchant is given what he lost, and sees it in his history.
		had := h.credited(usdt)
		gift := adjustment("4")
		gift.Moves = map[ledger.Account]ledger.Amount{ledger.Adjustment: -units("1"), ledger.Wallet(wallet.Master): units("1")}
		for _, who := range []string{"ann", "bob"} {
			_, _, err = h.app.Operate.Adjust(ctx, gift, by(who))
			require.NoError(t, err)
		}
		require.Equal(t, had+units("1"), h.credited(usdt))
		h.uncounted()
		h.sound()
	})
}

// TestFS02_ForgedHouseRows: who can write to the database cannot make the house pay, and
// cannot approve alone: edited rows are refused, and Verify names them.
func TestFS02_ForgedHouseRows(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	h := earned(t, memory.New(), 260, "ETH")
	p, _, err := h.app.Operate.PayOutFees(ctx, h.some("ETH", "0.001", "k"), because("x"))
	require.NoError(t, err)
	edit := func(f func(*house.Payment)) {
		v, row, _, err := house.Payments.One(ctx, h.store, storage.Tenant(h.tenant), p.ID)
		require.NoError(t, err)
		f(&v)
		require.NoError(t, storage.CommitOne(ctx, h.store, storage.Change{
			ID: fmt.Sprint("edit", row.Version), Partition: storage.Tenant(h.tenant), Put: []storage.Row{house.Payments.Row(p.ID, row.Version, row.Due, v)},
		}))
	}
	edit(func(v *house.Payment) { v.Address = string(h.chains["ETH"].Customer("thief")) })
	h.mine(5)
	now, err := h.app.Operate.HousePayment(ctx, h.tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, []any{house.Pending, house.WaitingAltered}, []any{now.Status, now.Waiting})
	reports, err := h.app.Verify(ctx)
	require.NoError(t, err)
	var found []string
	for _, r := range reports {
		for _, c := range r.Contradictions {
			found = append(found, c.ID)
		}
	}
	require.Equal(t, []string{p.ID}, found)
	edit(func(v *house.Payment) { v.Address = p.Address })
	h.mine(30)
	now, err = h.app.Operate.HousePayment(ctx, h.tenant, p.ID)
	require.NoError(t, err)
	require.Equal(t, house.Completed, now.Status)
	require.True(t, h.chains["ETH"].Balance(h.chains["ETH"].Customer("thief"), "ETH").IsZero())

	a := house.Adjustment{Tenant: h.tenant, Currency: "ETH", Key: "1", Moves: map[ledger.Account]ledger.Amount{ledger.Adjustment: -1, ledger.Chain("ETH"): 1}}
	out, _, err := h.app.Operate.Adjust(ctx, a, cryptopay.Call{By: "bob", Reason: "x"})
	require.NoError(t, err)
	op, row, _, err := outgoing.Operations.One(ctx, h.store, storage.Tenant(h.tenant), out.ID)
	require.NoError(t, err)
	op.By = "ann"
	require.NoError(t, storage.CommitOne(ctx, h.store, storage.Change{ID: "edit", Partition: storage.Tenant(h.tenant), Put: []storage.Row{outgoing.Operations.Row(row.ID, row.Version, row.Due, op)}}))
	_, _, err = h.app.Operate.Adjust(ctx, a, cryptopay.Call{By: "bob", Reason: "x"})
	require.ErrorIs(t, err, house.ErrForged)
	require.Zero(t, h.posted(ledger.Adjustment, "ETH"))
	h.sound()
}

// TestFT07_AHouseAddressWithoutAKeyIsRefused: nobody could spend fees that were paid out there.
func TestFT07_AHouseAddressWithoutAKeyIsRefused(t *testing.T) {
	t.Parallel()
	h := newHost(t, 241, "ETH")
	for _, to := range []string{
		"0x0000000000000000000000000000000000000000", "0x000000000000000000000000000000000000dEaD", h.coin(usdt).Contract,
	} {
		cfg, err := cryptopaytest.Parts{Store: memory.New(), Clock: h.clock, Chains: h.chains, App: func() *cryptopay.App { return h.app }}.Config()
		require.NoError(t, err)
		for i := range cfg.Chains {
			cfg.Chains[i] = hexAddresses{cfg.Chains[i]}
		}
		cfg.HouseAddresses = []house.Address{{Network: "ETH", Address: chain.Address(to)}}
		_, err = cryptopay.New(cfg)
		var bad *chain.AddressError
		require.ErrorAs(t, err, &bad, to)
		require.ErrorContains(t, err, "house: the address")
	}
}
