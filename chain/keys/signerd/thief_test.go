package signerd_test

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/keys"
	"github.com/cryptopay-go/cryptopay/chain/keys/signerd"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/internal/testenv"
	"github.com/cryptopay-go/cryptopay/ledger"
)

// thief owns the App: its certificate, its database, its node. The thief builds any payload and
// asks for any signature, and has neither the keys nor the signer's machine.
type thief struct {
	t      testing.TB
	sim    *sim.Chain
	client chain.Client
	signer *signer
	own    []chain.Derived
	gas    *chain.Currency
	coins  []chain.Coin
	purse  chain.Address // the thief's own
}

const rich = 1000 // coins in each output, or at each address

func newThief(t testing.TB, s *signer, n chain.Network) *thief {
	t.Helper()
	registry := chain.MainnetRegistry()
	h := &thief{t: t, sim: simulated(n, time.Now), signer: s}
	h.client = h.sim.Client()
	var err error
	h.gas, err = registry.Gas(n)
	require.NoError(t, err)
	if s.order.Module != nil {
		h.own = s.made(n)
	} else {
		seed, err := keys.FromMnemonic(mnemonic, "")
		require.NoError(t, err)
		accounts, err := seed.Accounts(registry.Networks())
		require.NoError(t, err)
		source, err := keys.NewSource(accounts, map[chain.Network]keys.Encode{n: h.client.AddressOf})
		require.NoError(t, err)
		h.own, err = source.Derive(t.Context(), n, 0, 12)
		require.NoError(t, err)
	}
	h.purse = h.sim.Customer("thief")
	for i := range h.own {
		if h.utxo() {
			i = 0
		}
		tx, err := h.sim.Fund(h.own[i].Address, h.gas.Code, decimal.New(rich, 0))
		require.NoError(t, err)
		units, err := h.gas.Units(decimal.New(rich, 0), ledger.Down)
		require.NoError(t, err)
		h.coins = append(h.coins, chain.Coin{Outpoint: tx + ":0", Address: h.own[0].Address, Key: h.own[0].Key, Amount: units})
	}
	h.sim.Mine(1)
	return h
}

func (h *thief) utxo() bool { return h.sim.Family() == chain.UTXOFamily }

// wish is what the thief asks for.
type wish struct {
	intent, attempt string
	slots           []int // nonce, or coins
	amount          ledger.Amount
	fee             int64 // level
	to              chain.Address
	from            int // address
}

// apart has slots that no other number has.
func (h *thief) apart(i int, w wish) wish {
	if h.utxo() {
		w.slots = []int{i}
	} else {
		w.from, w.slots = i, []int{0}
	}
	return w
}

func (h *thief) request(w wish) chain.SignRequest {
	h.t.Helper()
	in := chain.Intent{
		ID: w.intent, Purpose: chain.ForWithdrawal, Tenant: "a", Network: h.sim.Network(), Currency: h.gas.Code,
		To: h.purse, Amount: w.amount, MaxCost: math.MaxInt64 / 4,
	}
	if w.to != "" {
		in.To = w.to
	}
	if !h.utxo() {
		in.From, in.FromKey = h.own[w.from].Address, h.own[w.from].Key
	}
	h.sim.SetFeeLevel(max(w.fee, 1))
	fee, err := h.client.EstimateFee(h.t.Context(), in)
	require.NoError(h.t, err)
	o := chain.Order{Intent: in, Fee: fee, Attempt: 1, Change: h.own[1].Address}
	for _, slot := range w.slots {
		o.Nonce = uint64(slot)
		if h.utxo() {
			o.Coins = append(o.Coins, h.coins[slot])
		}
	}
	u, err := h.client.Build(h.t.Context(), o)
	require.NoError(h.t, err)
	r := chain.SignRequest{Intent: in, Attempt: w.attempt, Unsigned: u}
	for range u.Digests {
		r.Keys = append(r.Keys, h.own[w.from].Key)
	}
	return r
}

func (h *thief) keyOf(_ context.Context, _ chain.Network, a chain.Address) (chain.KeyRef, bool, error) {
	for _, d := range h.own {
		if d.Address == a {
			return d.Key, true, nil
		}
	}
	return h.own[0].Key, true, nil // every address is called ours
}

// ask is one question by a new process.
func (h *thief) ask(rs ...chain.SignRequest) ([][]chain.Signature, []error) {
	h.t.Helper()
	return h.signer.client(h.keyOf).SignMany(h.t.Context(), rs)
}

// send broadcasts what was signed.
func (h *thief) send(r chain.SignRequest, sigs []chain.Signature) {
	h.t.Helper()
	signed, err := h.client.Assemble(r.Unsigned, sigs)
	require.NoError(h.t, err)
	_ = h.client.Broadcast(h.t.Context(), proof.NewStored(string(h.sim.Network()), signed.Tx, signed.Raw)) // what conflicts is refused
	h.sim.Mine(1)
}

func (h *thief) loot() ledger.Amount {
	h.t.Helper()
	units, err := h.gas.Units(h.sim.Balance(h.purse, h.gas.Code), ledger.Down)
	require.NoError(h.t, err)
	return units
}

const coin = 1e8 // units of a coin of 8 places

func limitsOf(n chain.Network, gas string, pays, costs ledger.Amount) keys.Limits {
	return keys.Limits{
		Pays:  map[string][]keys.Limit{gas: {{Amount: pays, Per: 24 * time.Hour}}},
		Costs: map[chain.Network][]keys.Limit{n: {{Amount: costs, Per: 24 * time.Hour}}},
	}
}

// newSigned makes a signer for a thief's network, with limits in its coins.
func newSigned(t testing.TB, n chain.Network, pays, costs int64) *thief {
	t.Helper()
	return newSignedWith(t, nil, n, pays, costs)
}

func newSignedWith(t testing.TB, module *testenv.Token, n chain.Network, pays, costs int64) *thief {
	t.Helper()
	gas, err := chain.MainnetRegistry().Gas(n)
	require.NoError(t, err)
	one, err := gas.Units(decimal.New(1, 0), ledger.Down)
	require.NoError(t, err)
	s := newSigner(t, limitsOf(n, gas.Code, one*ledger.Amount(pays), one*ledger.Amount(costs)), n)
	s.order.Module = module
	s.start()
	return newThief(t, s, n)
}

func (h *thief) one() ledger.Amount {
	one, err := h.gas.Units(decimal.New(1, 0), ledger.Down)
	require.NoError(h.t, err)
	return one
}

// Who owns the App takes no more than the limit: by many requests in one question and in
// many at once, under one intent or many, again and again, over deaths of the signer, and
// until the window is over.
func TestFS07_StolenAppTakesAtMostTheLimit(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			h := newSigned(t, n, 5, 4)
			one := h.one()
			type signed struct {
				r    chain.SignRequest
				sigs []chain.Signature
			}
			var mu sync.Mutex
			var got []signed
			var rs []chain.SignRequest
			for i := range 12 { // one coin each, half of them under one intent
				intent := fmt.Sprint("w", i%2*i)
				rs = append(rs, h.request(h.apart(i, wish{intent: intent, attempt: fmt.Sprintf("a%d", i), amount: one})))
			}
			take := func(rs ...chain.SignRequest) {
				sigs, errs := h.ask(rs...)
				mu.Lock()
				defer mu.Unlock()
				for i, err := range errs {
					if err == nil {
						got = append(got, signed{rs[i], sigs[i]})
						continue
					}
					require.ErrorIs(t, err, chain.ErrRefused)
					require.ErrorContains(t, err, "would pass the limit")
				}
			}
			var all sync.WaitGroup
			for i := range rs {
				all.Go(func() { take(rs[i], rs[(i+5)%len(rs)]) })
			}
			all.Wait()
			take(rs...)
			for range 3 { // again, of a signer that was killed
				h.signer.kill()
				h.signer.start()
				take(rs...)
			}
			different := map[string]bool{}
			for _, s := range got {
				different[s.r.Attempt] = true
			}
			require.Len(t, different, 5, "what is left of the limit is of use")
			for _, s := range got {
				h.send(s.r, s.sigs)
			}
			require.Equal(t, 5*one, h.loot())

			h.signer.kill()
			h.signer.order.Skip = 23 * time.Hour
			h.signer.start()
			take(rs...)
			require.Equal(t, 5*one, h.loot())
			h.signer.kill()
			h.signer.order.Skip = 25 * time.Hour
			h.signer.start()
			take(rs...)
			for _, s := range got {
				different[s.r.Attempt] = true
			}
			require.Len(t, different, 10, "the next window has its own")
		})
	}
}

// A replacement that excludes what it replaces counts for what it takes more, and one that
// does not exclude it counts whole: a second payment cannot be called a replacement.
func TestFS07_ReplacementsCountWhatTheyTakeMore(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			h := newSigned(t, n, 5, 4)
			one := h.one()
			ask := func(w wish) error {
				w.intent = "w"
				_, errs := h.ask(h.request(w))
				return errs[0]
			}
			require.NoError(t, ask(wish{attempt: "1", slots: []int{0}, amount: 3 * one}))
			require.NoError(t, ask(wish{attempt: "2", slots: []int{0}, amount: 3 * one, fee: 2}))
			require.NoError(t, ask(wish{attempt: "3", slots: []int{0}, amount: 4 * one, fee: 3}))
			require.ErrorIs(t, ask(wish{attempt: "4", slots: []int{1}, amount: 2 * one}), chain.ErrRefused)
			require.NoError(t, ask(wish{attempt: "5", slots: []int{1}, amount: one}))
			require.ErrorIs(t, ask(wish{attempt: "6", slots: []int{0}, amount: 5 * one}), chain.ErrRefused)
			require.NoError(t, ask(wish{attempt: "1", slots: []int{0}, amount: 3 * one}), "it is bound")
			if !h.utxo() {
				return
			}
			// 7 excludes 8 and 8 excludes 9, but 7 and 9 can both be mined.
			h.signer.kill()
			h.signer.order.Skip = 25 * time.Hour
			h.signer.start()
			require.NoError(t, ask(wish{attempt: "7", slots: []int{2, 3}, amount: 3 * one}))
			require.ErrorIs(t, ask(wish{attempt: "9", slots: []int{4, 5}, amount: 3 * one}), chain.ErrRefused)
			require.NoError(t, ask(wish{attempt: "8", slots: []int{2, 4}, amount: 3 * one}))
			require.ErrorIs(t, ask(wish{attempt: "9", slots: []int{4, 5}, amount: 3 * one}), chain.ErrRefused)
			require.ErrorIs(t, ask(wish{attempt: "10", slots: []int{3, 6}, amount: 3 * one}), chain.ErrRefused)
		})
	}
}

// Nothing is burnt as fees beyond the limit of what the network may take.
func TestFS07_FeesAreLimited(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		t.Run(string(n), func(t *testing.T) {
			t.Parallel()
			h := newSigned(t, n, 1000, 1)
			one := h.one()
			var took ledger.Amount
			refused, level := 0, int64(1e11) // of a gas, or of a byte
			if h.utxo() {
				level = 1000
			}
			for i := range 12 {
				r := h.request(h.apart(i, wish{intent: fmt.Sprint("w", i), attempt: fmt.Sprint("a", i), amount: 1000, fee: level << i}))
				sigs, errs := h.ask(r)
				if errs[0] != nil {
					require.ErrorIs(t, errs[0], chain.ErrRefused)
					require.ErrorContains(t, errs[0], "costs "+string(n))
					refused++
					continue
				}
				seen, err := h.client.Inspect(r.Unsigned.Payload)
				require.NoError(t, err)
				took += seen.MaxCost
				h.send(r, sigs[0])
			}
			require.Positive(t, refused)
			require.LessOrEqual(t, took, one)
			require.Positive(t, took)
		})
	}
}

// An asset without a limit is paid to nobody.
func TestFS07_WithoutALimitNothingLeaves(t *testing.T) {
	t.Parallel()
	s := newSigner(t, keys.Limits{Costs: map[chain.Network][]keys.Limit{"ETH": {{Amount: coin, Per: time.Hour}}}}, "ETH")
	s.start()
	h := newThief(t, s, "ETH")
	_, errs := h.ask(h.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: 1}))
	require.ErrorIs(t, errs[0], chain.ErrRefused)
	require.ErrorContains(t, errs[0], "no limit is set for pays ETH")
	require.Empty(t, s.lines())
}

// The thief's address is not ours under any purpose, whatever the App says of it.
func TestFS07_WhatTheAppCallsOursIsDerived(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	for i, purpose := range []chain.Purpose{chain.ForSweep, chain.ForGas, chain.ForCancel} {
		r := h.request(wish{intent: fmt.Sprint("w", i), attempt: fmt.Sprint("a", i), slots: []int{i}, amount: h.one()})
		r.Intent.Purpose = purpose
		_, errs := h.ask(r)
		require.ErrorIs(t, errs[0], chain.ErrRefused)
		require.ErrorContains(t, errs[0], "not ours")
	}
	r := h.request(wish{intent: "w9", attempt: "a9", slots: []int{0}, amount: h.one(), to: h.own[2].Address})
	r.Intent.Purpose = chain.ForSweep
	_, errs := h.ask(r)
	require.NoError(t, errs[0], "an address of ours needs no limit")
	require.Equal(t, []signerd.Paid{{To: h.own[2].Address, Currency: "ETH", Amount: h.one(), Key: h.own[2].Key}}, h.signer.lines()[0].Keeps)
}

// Only listed recipients are paid, where there is a list.
func TestFS07_OnlyListedRecipients(t *testing.T) {
	t.Parallel()
	limits := limitsOf("ETH", "ETH", 5*coin, coin)
	limits.Pays["USDTERC20"] = limits.Pays["ETH"]
	s := newSigner(t, limits, "ETH")
	listed := simulated("ETH", time.Now).Customer("supplier")
	s.order.Allow = map[string][]signerd.Recipient{"ETH": {{Address: string(listed), Memo: "42"}}}
	s.start()
	h := newThief(t, s, "ETH")
	ask := func(attempt, memo string, to chain.Address) error {
		in := chain.Intent{
			ID: attempt, Purpose: chain.ForWithdrawal, Tenant: "a", Network: "ETH", Currency: "ETH", From: h.own[0].Address,
			FromKey: h.own[0].Key, To: to, Memo: memo, Amount: 1000, MaxCost: coin,
		}
		fee, err := h.client.EstimateFee(t.Context(), in)
		require.NoError(t, err)
		u, err := h.client.Build(t.Context(), chain.Order{Intent: in, Fee: fee, Attempt: 1, Nonce: uint64(len(s.lines()))})
		require.NoError(t, err)
		_, errs := h.ask(chain.SignRequest{Intent: in, Attempt: attempt, Unsigned: u, Keys: []chain.KeyRef{h.own[0].Key}})
		return errs[0]
	}
	require.ErrorIs(t, ask("1", "42", h.purse), chain.ErrRefused)
	require.ErrorContains(t, ask("2", "43", listed), "not on the list")
	require.ErrorIs(t, ask("3", "", listed), chain.ErrRefused)
	require.NoError(t, ask("4", "42", listed))
}

// A payload of another network than the signer's, or than the intent's, is refused.
func TestFS07_AnotherNetworkIsRefused(t *testing.T) {
	t.Parallel()
	h := newSigned(t, "ETH", 5, 4)
	other := newThief(t, h.signer, "BSC")
	r := other.request(wish{intent: "w", attempt: "a", slots: []int{0}, amount: 1})
	_, errs := h.ask(r)
	require.ErrorIs(t, errs[0], chain.ErrRefused)
	require.ErrorContains(t, errs[0], "not this signer's")
	r.Intent.Network, r.Unsigned.Network = "ETH", "ETH"
	_, errs = h.ask(r)
	require.ErrorIs(t, errs[0], chain.ErrRefused)
	require.ErrorContains(t, errs[0], "another chain")
	require.Empty(t, h.signer.lines())
}
