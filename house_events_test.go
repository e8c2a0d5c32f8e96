package cryptopay_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay"
	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/incoming"
	"github.com/cryptopay-go/cryptopay/chain/outgoing"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/payment"
	"github.com/cryptopay-go/cryptopay/storage"
	"github.com/cryptopay-go/cryptopay/storage/stream"
	"github.com/cryptopay-go/cryptopay/wallet/treasury"
	"github.com/cryptopay-go/cryptopay/withdrawal"
)

// listening is a host on a store with a consumer, which it has had from the start.
func listening(t *testing.T, store storage.Store, seed uint64) (*host, *heard) {
	t.Helper()
	h := newHostOn(t, store, seed, "ETH")
	l := listen(t, store, "host")
	h.configure = func(c *cryptopay.Config) { c.Consumers = []stream.Consumer{l.consumer(0)} }
	h.restart()
	h.step()
	return h, l
}

// told are the bodies of one type that were heard of a partition.
func told[B stream.Body](h *heard, p storage.Partition) (out []B) {
	h.t.Helper()
	for _, l := range h.lines(p) {
		if b, ok := l.Body.(B); ok {
			out = append(out, b)
		}
	}
	return out
}

// ether is the partition of the network.
var ether = storage.Network("ETH")

// forward pays a payment with a token, and mines.
func (h *host) forward(blocks int) payment.Payment {
	h.t.Helper()
	p, err := h.app.Payments.Create(h.t.Context(), h.tenant, payment.CreateInput{Pricing: payment.Pricing{Amount: "300", Currency: usdt}})
	require.NoError(h.t, err)
	_, err = h.chains["ETH"].Pay(chain.Address(p.Address), usdt, dec("300"))
	require.NoError(h.t, err)
	h.mine(blocks)
	return p
}

func (h *host) topUp() {
	h.t.Helper()
	hot, err := h.app.Hot(h.t.Context(), "ETH", h.tenant)
	require.NoError(h.t, err)
	_, err = h.chains["ETH"].Fund(hot, "ETH", dec("1"))
	require.NoError(h.t, err)
}

// E01: a host hears each state of a sweep and of the gas that is sent for it, that the
// operator's coins are too few, and that they are enough again: in order, with what it needs
// to act. What it heard last is what is stored. One that comes later hears all of it.
func TestFE01_HostHearsOfTheHouse(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store storage.Store) {
		h, l := listening(t, store, 21)
		p := h.forward(100)
		funds := told[treasury.FundsChanged](l, storage.Tenant(h.tenant))
		require.Len(t, funds, 1, "told once, however often it is tried")
		require.Equal(t, []any{true, "ETH", h.tenant, "0"}, []any{funds[0].Short, funds[0].Currency, funds[0].Tenant, funds[0].Free})
		needed := dec(funds[0].Needed)
		require.True(t, needed.IsPositive())
		sweeps := told[treasury.SweepChanged](l, ether)
		last := sweeps[len(sweeps)-1]
		require.Equal(t, []any{treasury.SweepDeferred, treasury.WaitGasShort}, []any{last.To, last.Reason})
		require.True(t, last.Long, "it has waited for a quarter of an hour")
		require.False(t, last.Since.IsZero())

		h.topUp()
		h.mine(200)
		require.Equal(t, payment.Completed, h.payment(p.ID).Status)
		funds = told[treasury.FundsChanged](l, storage.Tenant(h.tenant))
		require.Len(t, funds, 2)
		require.False(t, funds[1].Short)
		require.True(t, dec(funds[1].Free).GreaterThanOrEqual(needed))

		l.whole(ether)
		sweeps = told[treasury.SweepChanged](l, ether)
		state, reason := treasury.SweepState(""), ""
		for _, b := range sweeps {
			require.Equal(t, []any{state, reason}, []any{b.From, b.Was}, "each begins where the last ended")
			require.Equal(t, []any{h.tenant, chain.Network("ETH"), usdt, chain.Address(p.Address), "300", 1}, []any{b.Tenant, b.Network, b.Currency, b.Address, b.Amount, b.Deposits})
			state, reason = b.To, b.Reason
		}
		last = sweeps[len(sweeps)-1]
		require.Equal(t, treasury.SweepDone, last.To)
		require.NotEmpty(t, last.Tx)
		require.True(t, dec(last.Cost).IsPositive())
		require.True(t, dec(last.GasSent).IsPositive())
		s, _, ok, err := treasury.Sweeps.One(t.Context(), store, ether, last.SweepID)
		require.NoError(t, err)
		require.True(t, ok)
		require.Equal(t, []any{s.State, s.Tx, s.Reason}, []any{last.To, last.Tx, last.Cost})

		orders := told[outgoing.OrderChanged](l, ether)
		var states []outgoing.State
		for _, b := range orders {
			require.Equal(t, []any{outgoing.OrderGas, h.tenant, "ETH", chain.Address(p.Address)}, []any{b.Kind, b.Tenant, b.Currency, b.Recipient}, "payouts and sweeps have events of their own")
			if len(states) > 0 {
				require.Equal(t, states[len(states)-1], b.From)
			}
			states = append(states, b.To)
		}
		require.Equal(t, []outgoing.State{outgoing.Queued, outgoing.Signed, outgoing.Executed, outgoing.Final}, states)
		gas := orders[len(orders)-1]
		o, _, _, err := outgoing.Outcomes.One(t.Context(), store, ether, gas.OrderID)
		require.NoError(t, err)
		require.Equal(t, o.Tx, gas.Tx)
		require.Equal(t, dec(gas.Cost).Shift(18).IntPart()/1e10*1e10, dec(gas.Cost).Shift(18).IntPart(), "at the scale of the books")
		require.True(t, dec(gas.Cost).IsPositive())

		later := listen(t, store, "later")
		h.configure = func(c *cryptopay.Config) { c.Consumers = []stream.Consumer{l.consumer(0), later.consumer(0)} }
		h.restart()
		h.step()
		require.Len(t, later.lines(ether), len(l.lines(ether)), "one that is new hears of everything")
		n := 0
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for e, err := range h.app.SubscribeNetwork(ctx, "ETH", 0, "treasury.sweep_changed") {
			require.NoError(t, err)
			require.Equal(t, sweeps[n], e.Body)
			if n++; n == len(sweeps) {
				break
			}
		}
		h.sound()

		h.clock.Advance(31 * 24 * time.Hour)
		h.mine(2)
		kept, err := store.Find(t.Context(), storage.Query{Table: storage.Events.Table, Partition: ether})
		require.NoError(t, err)
		require.Empty(t, kept, "forgotten like those of tenants")
	})
}

// E01: halts of operators and of the library, forks, and each operator's call are told with
// who did it and why, in the partition of what they are about.
func TestFE01_HostHearsOfHaltsForksAndOperators(t *testing.T) {
	t.Parallel()
	onEveryStore(t, func(t *testing.T, store storage.Store) {
		h, l := listening(t, store, 22)
		ctx, by := t.Context(), cryptopay.Call{By: "ann", Reason: "a look"}
		h.mine(30)
		for _, s := range []cryptopay.HaltScope{{Network: "ETH"}, {Currency: usdt}, {}} {
			e, err := h.app.Operate.Halt(ctx, s, by)
			require.NoError(t, err)
			again, err := h.app.Operate.Halt(ctx, s, cryptopay.Call{By: "bob", Reason: "he too"})
			require.NoError(t, err)
			lifted, err := h.app.Operate.Lift(ctx, s, cryptopay.Call{By: "bob", Reason: "all is well"})
			require.NoError(t, err)
			require.NotEqual(t, e.Operation, lifted.Operation)
			require.NotEmpty(t, again.Operation)
		}
		h.step()
		halt := func(b outgoing.HaltChanged) outgoing.HaltChanged { b.Since = time.Time{}; return b }
		of := func(p storage.Partition) (out []outgoing.HaltChanged) {
			for _, b := range told[outgoing.HaltChanged](l, p) {
				require.False(t, b.Since.IsZero())
				out = append(out, halt(b))
			}
			return out
		}
		both := func(b outgoing.HaltChanged) []outgoing.HaltChanged {
			b.Reason, b.By, b.Halted = "a look", "ann", true
			lifted := b
			lifted.Halted = false
			return []outgoing.HaltChanged{b, lifted}
		}
		wide := both(outgoing.HaltChanged{Wide: true})
		require.Equal(t, wide, of(storage.System))
		var want []outgoing.HaltChanged
		want = append(append(want, both(outgoing.HaltChanged{Network: "ETH"})...), both(outgoing.HaltChanged{Network: "ETH", Currency: usdt})...)
		require.Equal(t, append(want, both(outgoing.HaltChanged{Network: "ETH", Wide: true})...), of(ether), "one that is halted already is not told again")

		acts := told[outgoing.Operated](l, ether)
		require.Len(t, acts, 9, "each call")
		list, err := h.app.Operate.List(ctx, "ETH", 100, 0)
		require.NoError(t, err)
		for _, a := range acts {
			require.Contains(t, []any{outgoing.OpHalt, outgoing.OpLift}, a.Operation)
			require.NotEmpty(t, a.Reason)
			i := 0
			for list[i].ID != a.OperationID {
				i++
			}
			require.Equal(t, []any{list[i].By, list[i].Reason, list[i].Before, list[i].After, list[i].Object}, []any{a.By, a.Reason, a.Before, a.After, a.About})
		}

		world := h.chains["ETH"]
		at := world.Height()
		_, err = world.Reorg(3)
		require.NoError(t, err)
		h.mine(1)
		forks := told[incoming.Forked](l, ether)
		require.Equal(t, []incoming.Forked{{Network: "ETH", Height: at - 3, Head: at}}, forks)

		_, err = world.Reorg(25) // 20 are final
		require.NoError(t, err)
		h.mineHalted()
		halts := told[incoming.HaltChanged](l, ether)
		require.Len(t, halts, 1)
		require.Equal(t, []any{true, ""}, []any{halts[0].Halted, halts[0].Currency})
		require.Contains(t, halts[0].Reason, "final")
		_, err = h.app.Operate.ResumeNetwork(ctx, "ETH", 2, by)
		require.NoError(t, err)
		h.mine(2)
		halts = told[incoming.HaltChanged](l, ether)
		require.Len(t, halts, 2)
		require.Equal(t, []any{false, halts[0].Reason}, []any{halts[1].Halted, halts[1].Reason})
		acts = told[outgoing.Operated](l, ether)
		require.Equal(t, outgoing.OpResume, acts[len(acts)-1].Operation)
		l.whole(ether)
		l.whole(storage.System)
	})
}

// mineHalted mines and steps although a network is halted.
func (h *host) mineHalted() {
	h.t.Helper()
	h.clock.Advance(15 * time.Second)
	h.chains["ETH"].Mine(1)
	for range 3 {
		if err := h.app.Step(h.t.Context()); err != nil {
			require.ErrorIs(h.t, err, incoming.ErrHalted)
		}
	}
}

// E01, M03: a token whose logs and balances differ is halted by the library, and that is told;
// so is that an operator lifts it.
func TestFE01_HostHearsOfADistrustedToken(t *testing.T) {
	t.Parallel()
	h, l := listening(t, newHost(t, 23, "ETH").store, 23)
	c, err := chain.MainnetRegistry().Currency(usdt)
	require.NoError(t, err)
	h.chains["ETH"].SetBehaviour(c.Contract, sim.Behaviour{Overstates: 1000})
	h.forward(30)
	want := []incoming.HaltChanged{{Network: "ETH", Currency: usdt, Halted: true, Reason: incoming.ReasonContradicted}}
	require.Equal(t, want, told[incoming.HaltChanged](l, ether))
	h.lift(usdt)
	h.step()
	want = append(want, incoming.HaltChanged{Network: "ETH", Currency: usdt, Reason: incoming.ReasonContradicted})
	require.Equal(t, want, told[incoming.HaltChanged](l, ether))
}

var errKilled = errors.New("the process is killed")

// E01: a process dies after it has stored that the operator was told of what waits, and
// before it told him. No Notify comes any more, and the host hears of it all the same, once.
func TestFE01_AlertOfAProcessThatDies(t *testing.T) {
	t.Parallel()
	h, l := listening(t, newHost(t, 24, "ETH").store, 24)
	configure, killed := h.configure, map[string]int{}
	h.configure = func(c *cryptopay.Config) {
		configure(c)
		c.Treasury.Notify = func(context.Context, treasury.Notice) { killed["sweep"]++; panic(errKilled) }
		c.Withdrawals.Notify = func(context.Context, withdrawal.Notice) { killed["withdrawal"]++; panic(errKilled) }
	}
	h.restart()
	h.forward(40) // credited; its coins cannot be forwarded without gas
	payout := h.withdraw("20", usdt)
	for range 120 {
		h.clock.Advance(15 * time.Second)
		h.chains["ETH"].Mine(1)
		func() {
			defer func() {
				if p := recover(); p != nil {
					require.Equal(t, errKilled, p)
					h.restart()
				}
			}()
			h.step()
		}()
	}
	require.Equal(t, map[string]int{"sweep": 1, "withdrawal": 1}, killed)
	long := 0
	for _, b := range told[treasury.SweepChanged](l, ether) {
		if b.Long {
			long++
			require.Equal(t, treasury.WaitGasShort, b.Reason)
		}
	}
	require.Equal(t, 1, long)
	long = 0
	for _, b := range told[withdrawal.WaitChanged](l, storage.Tenant(h.tenant)) {
		if b.Long {
			long++
			require.Equal(t, payout, b.WithdrawalID)
			require.NotEmpty(t, b.Reason)
		}
	}
	require.Equal(t, 1, long)
}
