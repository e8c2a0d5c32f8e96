package sim_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/cryptopay-go/cryptopay/chain"
	"github.com/cryptopay-go/cryptopay/chain/chaintest"
	"github.com/cryptopay-go/cryptopay/chain/internal/proof"
	"github.com/cryptopay-go/cryptopay/chain/sim"
	"github.com/cryptopay-go/cryptopay/ledger"
)

var one = decimal.NewFromInt(1)

func dec(s string) decimal.Decimal { return decimal.RequireFromString(s) }

func account(t testing.TB, c *sim.Chain, name string) chaintest.Account {
	t.Helper()
	a, err := chaintest.Secp256k1Account(c.Client(), name)
	require.NoError(t, err)
	return a
}

func pay(t testing.TB, c *sim.Chain, tx sim.Tx) string {
	t.Helper()
	hash, err := c.Send(tx)
	require.NoError(t, err)
	return hash
}

// to is one payment of the native coin.
func to(a chain.Address, amount decimal.Decimal) []sim.Payment {
	return []sim.Payment{{To: a, Amount: amount}}
}

// signed makes a transaction of an account of ours without sending it.
func signed(t testing.TB, c *sim.Chain, a chaintest.Account, o chain.Order) chain.Attempt {
	t.Helper()
	k := c.Client()
	o.Intent.Network, o.Intent.From = c.Network(), a.Address
	if o.Intent.Currency == "" {
		o.Intent.Currency = string(c.Network())
	}
	if o.Attempt == 0 {
		o.Attempt = 1
	}
	var err error
	if o.Fee.Params == nil {
		o.Fee, err = k.EstimateFee(t.Context(), o.Intent)
		require.NoError(t, err)
	}
	u, err := k.Build(t.Context(), o)
	require.NoError(t, err)
	var sigs []chain.Signature
	for _, d := range u.Digests {
		s, err := a.Sign(d.Hash)
		require.NoError(t, err)
		sigs = append(sigs, s)
	}
	s, err := k.Assemble(u, sigs)
	require.NoError(t, err)
	return chain.Attempt{Tx: s.Tx, Raw: s.Raw, Spends: u.Spends}
}

func stored(c *sim.Chain, a chain.Attempt) chain.Stored {
	return proof.NewStored(string(c.Network()), a.Tx, a.Raw)
}

func send(t testing.TB, c *sim.Chain, a chain.Attempt) error {
	t.Helper()
	return c.Client().Broadcast(t.Context(), stored(c, a))
}

func status(t testing.TB, k chain.Client, a chain.Attempt) chain.Status {
	t.Helper()
	all, err := k.Status(t.Context(), a)
	require.NoError(t, err)
	return all[0]
}

func state(t testing.TB, c *sim.Chain, hash string) chain.State {
	t.Helper()
	s, err := c.Outcome(hash)
	require.NoError(t, err)
	return s.State
}

// walk does random things to a chain, the same for the same seed, and proves
// after each that money is conserved.
func walk(t testing.TB, c *sim.Chain, seed uint64, steps int) {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 0))
	var sent []string
	customer := func() string { return fmt.Sprint("customer ", r.IntN(4)) }
	old := func() string {
		if len(sent) == 0 {
			return ""
		}
		return sent[r.IntN(len(sent))]
	}
	for i := range steps {
		switch r.IntN(9) {
		case 0, 1, 2:
			tx := sim.Tx{From: customer(), Payments: to(c.Customer(customer()), decimal.New(r.Int64N(1e8)+1000, -8))}
			if c.Family() == chain.AccountFamily {
				tx.Payments[0].Effect = []sim.Effect{sim.Plain, sim.Plain, sim.Reverted, sim.Internal, sim.InnerReverted}[r.IntN(5)]
				tx.Payments = append(tx.Payments, sim.Payment{To: tx.Payments[0].To, Currency: "USDTERC20", Amount: decimal.New(r.Int64N(1e8), -6)})
			}
			if r.IntN(4) == 0 {
				tx.Replaces, tx.From = old(), ""
			}
			if hash, err := c.Send(tx); err == nil {
				sent = append(sent, hash)
			}
		case 3, 4:
			c.Mine(1 + r.IntN(2))
		case 5:
			_, err := c.ReorgTo(1+r.IntN(4), r.IntN(5), old())
			require.True(t, err == nil || errors.Is(err, sim.ErrDepth))
		case 6:
			c.ReviveAll()
		case 7:
			c.Drop(old())
		case 8:
			if c.Family() == chain.AccountFamily {
				c.SetBehaviour("contractusdt", sim.Behaviour{FeeBasisPoints: r.Int64N(2) * 100, Paused: r.IntN(4) == 0})
			}
			c.SetFeeLevel(r.Int64N(2) * 2 * c.FeeLevel())
		}
		require.NoError(t, c.Audit(), "seed %d step %d", seed, i)
	}
}

func TestSameSeedSameChain(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		var bytes [3]string
		for i, seed := range []uint64{1, 1, 2} {
			c := open(t, n, func(o *sim.Options) { o.Seed = seed })
			walk(t, c, 99, 60)
			b, err := c.Snapshot()
			require.NoError(t, err)
			bytes[i] = string(b)
		}
		require.Equal(t, bytes[0], bytes[1])
		require.NotEqual(t, bytes[0], bytes[2])
	}
}

func TestSnapshotCarriesOn(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		for seed := range uint64(10) {
			first, second := open(t, n), open(t, n, func(o *sim.Options) { o.Seed = 77 })
			walk(t, first, seed, 80)
			b, err := first.Snapshot()
			require.NoError(t, err)
			require.NoError(t, second.Restore(b))
			require.NoError(t, second.Audit())
			require.Equal(t, first.Mempool(), second.Mempool())
			require.Equal(t, first.Transfers(""), second.Transfers(""))
			walk(t, first, seed+100, 40)
			walk(t, second, seed+100, 40)
			x, err := first.Snapshot()
			require.NoError(t, err)
			y, err := second.Snapshot()
			require.NoError(t, err)
			require.Equal(t, string(x), string(y), "%s seed %d", n, seed)
		}
	}
}

func TestRestoreRefusesOthers(t *testing.T) {
	t.Parallel()
	c, other := open(t, "ETH"), open(t, "BTC")
	walk(t, c, 1, 20)
	b, err := c.Snapshot()
	require.NoError(t, err)
	require.Error(t, other.Restore(b))
	require.Error(t, c.Restore(nil))
	require.Error(t, c.Restore([]byte("{}")))
	require.Error(t, c.Restore([]byte(strings.Replace(string(b), `"version":1`, `"version":2`, 1))))
	again, err := c.Snapshot()
	require.NoError(t, err)
	require.Equal(t, string(b), string(again), "what is refused changes nothing")
}

func TestBlockTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 1, 10, 0, 0, 0, time.UTC)
	c := open(t, "ETH", func(o *sim.Options) { o.Now = func() time.Time { return now }; o.BlockTime = 10 * time.Second })
	require.Equal(t, now, c.Head().Time)
	c.Mine(2)
	require.Equal(t, now.Add(20*time.Second), c.Head().Time, "at least BlockTime apart")
	now = now.Add(time.Hour)
	c.Mine(1)
	require.Equal(t, now, c.Head().Time, "and never behind the clock")
}

func TestReplacement(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		c := open(t, n)
		x, y := account(t, c, "x").Address, account(t, c, "y").Address
		first := pay(t, c, sim.Tx{From: "eve", Payments: to(x, one)})
		_, err := c.Send(sim.Tx{Replaces: first, Fee: 1, Payments: to(y, one)})
		require.ErrorIs(t, err, sim.ErrUnderpriced)
		_, err = c.Send(sim.Tx{Replaces: first, Fee: c.FeeLevel(), Payments: to(y, one)})
		require.ErrorIs(t, err, sim.ErrUnderpriced, "more is needed than the level")
		second := pay(t, c, sim.Tx{Replaces: first, Payments: to(y, one)})
		require.NotContains(t, c.Mempool(), first)
		c.Mine(1)
		require.Equal(t, chain.Included, state(t, c, second))
		require.Equal(t, chain.Conflicted, state(t, c, first))
		require.True(t, c.Balance(x, string(n)).IsZero())
		require.Error(t, c.Resend(first))
		// A reorg that drops the second lets the first in after all.
		_, err = c.Reorg(1, second)
		require.NoError(t, err)
		require.NoError(t, c.Resend(first))
		c.Mine(1)
		require.Equal(t, chain.Included, state(t, c, first))
		require.Equal(t, chain.Conflicted, state(t, c, second))
	}
}

func TestFeeLevel(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		c := open(t, n)
		a := account(t, c, "a").Address
		cheap := pay(t, c, sim.Tx{Payments: to(a, one)})
		c.SetFeeLevel(c.FeeLevel() * 10)
		dear := pay(t, c, sim.Tx{Payments: to(a, one)})
		c.Mine(3)
		require.Equal(t, chain.Pending, state(t, c, cheap), "it is stuck")
		require.Equal(t, chain.Included, state(t, c, dear))
		c.SetFeeLevel(0)
		c.Mine(1)
		require.Equal(t, chain.Included, state(t, c, cheap))
	}
}

func TestBlockSize(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH", func(o *sim.Options) { o.BlockSize = 2 })
	a := account(t, c, "a").Address
	for range 5 {
		pay(t, c, sim.Tx{Payments: to(a, one)})
	}
	c.Mine(2)
	require.Len(t, c.Mempool(), 1)
}

func TestSwitchBetweenBranches(t *testing.T) {
	t.Parallel()
	for _, n := range []chain.Network{"ETH", "BTC"} {
		c := open(t, n)
		a := account(t, c, "a").Address
		c.Mine(1)
		tx := pay(t, c, sim.Tx{Payments: to(a, one)})
		c.Mine(1)
		left := c.Head()
		_, err := c.Reorg(1, tx)
		require.NoError(t, err)
		right := c.Head()
		for range 3 { // A→B→A
			_, err = c.Switch(left.Hash)
			require.NoError(t, err)
			require.Equal(t, left, c.Head())
			require.Equal(t, "1", c.Balance(a, string(n)).String())
			require.NoError(t, c.Audit())
			_, err = c.Switch(right.Hash)
			require.NoError(t, err)
			require.Equal(t, right, c.Head())
			require.True(t, c.Balance(a, string(n)).IsZero())
			require.Contains(t, c.Mempool(), tx)
			require.NoError(t, c.Audit())
		}
		_, err = c.Switch("nowhere")
		require.ErrorIs(t, err, sim.ErrDepth)
		_, err = c.Reorg(100)
		require.ErrorIs(t, err, sim.ErrDepth)
	}
}

func TestUnconfirmedChangeCanBeSpentAndFallsWithItsParent(t *testing.T) {
	t.Parallel()
	c := open(t, "BTC")
	a, b := account(t, c, "a"), account(t, c, "b")
	fund, err := c.Fund(a.Address, "BTC", one)
	require.NoError(t, err)
	order := func(outpoint string, have, amount ledger.Amount) chain.Order {
		return chain.Order{
			Intent: chain.Intent{To: b.Address, Amount: amount}, Change: a.Address,
			Coins: []chain.Coin{{Outpoint: outpoint, Address: a.Address, Amount: have}},
		}
	}
	parent := signed(t, c, a, order(fund+":0", 1e8, 1e7))
	u, err := c.Client().Inspect([]byte(body(t, parent)))
	require.NoError(t, err)
	child := signed(t, c, a, order(parent.Tx+":1", u.Outputs[1].Amount, 1e6))
	require.ErrorIs(t, send(t, c, child), sim.ErrMissing)
	require.NoError(t, send(t, c, parent))
	require.NoError(t, send(t, c, child))
	double := signed(t, c, a, order(fund+":0", 1e8, 2e7))
	require.ErrorIs(t, send(t, c, double), sim.ErrUnderpriced)
	c.Mine(1)
	require.Equal(t, chain.Included, state(t, c, child.Tx))
	_, err = c.Reorg(1, parent.Tx)
	require.NoError(t, err)
	require.Empty(t, c.Mempool(), "the child has nothing to spend")
	require.NoError(t, c.Resend(parent.Tx))
	require.NoError(t, c.Resend(child.Tx))
	c.Mine(1)
	require.Equal(t, "0.11", c.Balance(b.Address, "BTC").String())
}

// body cuts the payload out of a signed transaction.
func body(t testing.TB, a chain.Attempt) string {
	t.Helper()
	s, ok := strings.CutPrefix(string(a.Raw), `{"body":`)
	require.True(t, ok)
	s, _, ok = strings.Cut(s, `,"sigs":`)
	require.True(t, ok)
	return s
}

func TestW03_OldTransactionsReviveForEver(t *testing.T) {
	t.Parallel()
	ever := map[int]bool{} // attempts that were in a block at some time
	for seed := range uint64(20) {
		c := open(t, "ETH", func(o *sim.Options) { o.Seed = seed })
		a, b := account(t, c, "a"), account(t, c, "b")
		_, err := c.Fund(a.Address, "ETH", dec("10"))
		require.NoError(t, err)
		var attempts []chain.Attempt
		for i := range 5 { // one intent, five attempts on one nonce
			attempts = append(attempts, signed(t, c, a, chain.Order{Intent: chain.Intent{To: b.Address, Amount: 1e8}, Attempt: i + 1}))
			require.NoError(t, send(t, c, attempts[i]))
		}
		once := func() {
			landed := 0
			for i, x := range attempts {
				if status(t, c.Client(), x).State == chain.Included {
					landed++
					ever[i] = true
				}
			}
			require.Equal(t, 1, landed, "seed %d", seed)
			require.Equal(t, "1", c.Balance(b.Address, "ETH").String())
		}
		for range 10 {
			c.ReviveAll()
			c.Mine(1)
			once()
			c.ReviveAll() // nothing is left of them: the nonce is used up
			require.Empty(t, c.Mempool(), "seed %d", seed)
			c.Mine(1)
			once()
			_, err := c.Reorg(2)
			require.NoError(t, err)
		}
		c.Mine(1)
		once()
		require.Len(t, c.Transactions(true), 5)
	}
	require.Len(t, ever, 5, "each of them came back and landed in some world")
}

// What spends an output that comes back later in the shuffled order comes back
// after it.
func TestReviveAllBringsChildrenBack(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		c := open(t, "BTC", func(o *sim.Options) { o.Seed = seed })
		a, b := account(t, c, "a"), account(t, c, "b")
		parent, err := c.Pay(a.Address, "BTC", one)
		require.NoError(t, err)
		child := signed(t, c, a, chain.Order{
			Intent: chain.Intent{To: b.Address, Amount: 1e7}, Change: a.Address,
			Coins: []chain.Coin{{Outpoint: parent + ":0", Address: a.Address, Amount: 1e8}},
		})
		require.NoError(t, send(t, c, child))
		c.Drop(parent)
		require.Empty(t, c.Mempool())
		require.Equal(t, 2, c.ReviveAll(), "seed %d", seed)
	}
}

func TestW04_MalleatedTransactionIsKnownByWhatItDoes(t *testing.T) {
	t.Parallel()
	c := open(t, "BTC")
	a, b := account(t, c, "a"), account(t, c, "b")
	fund, err := c.Fund(a.Address, "BTC", one)
	require.NoError(t, err)
	tx := signed(t, c, a, chain.Order{
		Intent: chain.Intent{To: b.Address, Amount: 1e7}, Change: a.Address,
		Coins: []chain.Coin{{Outpoint: fund + ":0", Address: a.Address, Amount: 1e8}},
	})
	require.NoError(t, send(t, c, tx))
	other, err := c.Malleate(tx.Tx)
	require.NoError(t, err)
	require.NotEqual(t, tx.Tx, other)
	c.Mine(1)
	require.Equal(t, chain.Included, state(t, c, other))
	s := status(t, c.Client(), tx)
	require.Equal(t, chain.Included, s.State, "it did exactly what was signed")
	require.True(t, s.Executed)
	require.Equal(t, other, s.By)
	tx.Raw = nil // by its hash alone it can only be told that something took its input
	require.Equal(t, chain.Conflicted, status(t, c.Client(), tx).State)
}

func TestSignaturesAreOfOneChain(t *testing.T) {
	t.Parallel()
	c, fork := open(t, "ETH"), open(t, "ETH", func(o *sim.Options) { o.Seed = 2 })
	a, b := account(t, c, "a"), account(t, c, "b")
	for _, x := range []*sim.Chain{c, fork} {
		_, err := x.Fund(a.Address, "ETH", dec("2"))
		require.NoError(t, err)
	}
	tx := signed(t, c, a, chain.Order{Intent: chain.Intent{To: b.Address, Amount: 1e8}})
	require.ErrorIs(t, send(t, fork, tx), chain.ErrRejected)
	require.NoError(t, send(t, c, tx))
	_, err := fork.Client().Inspect([]byte(body(t, tx)))
	require.ErrorIs(t, err, chain.ErrRejected)
}

func TestTokenContracts(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a := account(t, c, "a").Address
	give := func(amount string) string {
		tx := pay(t, c, sim.Tx{Payments: []sim.Payment{{To: a, Currency: "USDTERC20", Amount: dec(amount)}}})
		c.Mine(1)
		return tx
	}
	c.SetBehaviour("contractusdt", sim.Behaviour{FeeBasisPoints: 100})
	give("10")
	require.Equal(t, "9.9", c.Balance(a, "USDTERC20").String())
	require.Equal(t, "9.9", c.Transfers(a)[0].Amount.String(), "what was delivered, not what was sent")
	for _, b := range []sim.Behaviour{{Paused: true}, {ReturnsFalse: true}, {Blocked: []chain.Address{a}}} {
		c.SetBehaviour("contractusdt", b)
		s, err := c.Outcome(give("10"))
		require.NoError(t, err)
		require.Equal(t, chain.Included, s.State)
		require.False(t, s.Executed)
		require.Positive(t, s.Cost)
	}
	c.SetBehaviour("contractusdt", sim.Behaviour{})
	give("0.1")
	require.Equal(t, "10", c.Balance(a, "USDTERC20").String())
	require.Len(t, c.Transfers(a), 2)
}

func TestIssuerTakesFromPayoutsAndFromHolders(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a, b := account(t, c, "a"), account(t, c, "b")
	_, err := c.Fund(a.Address, "ETH", dec("1"))
	require.NoError(t, err)
	_, err = c.Fund(a.Address, "USDTERC20", dec("100"))
	require.NoError(t, err)
	c.SetBehaviour("contractusdt", sim.Behaviour{FeeBasisPoints: 100})
	tx := signed(t, c, a, chain.Order{Intent: chain.Intent{Currency: "USDTERC20", To: b.Address, Amount: 10_000_000}})
	require.NoError(t, send(t, c, tx))
	c.Mine(1)
	s := status(t, c.Client(), tx)
	require.True(t, s.Executed)
	require.EqualValues(t, 100_000, s.Shortfall)
	require.Equal(t, "9.9", c.Balance(b.Address, "USDTERC20").String())

	c.Rebase("contractusdt", 1000)
	require.Equal(t, "81", c.Balance(a.Address, "USDTERC20").String())
	require.Equal(t, "8.91", c.Balance(b.Address, "USDTERC20").String())
	c.Rebase("contractusdt", -1000)
	require.Equal(t, "89.1", c.Balance(a.Address, "USDTERC20").String())
	require.NoError(t, c.Audit())
	_, err = c.Reorg(1)
	require.NoError(t, err)
	require.Equal(t, "81", c.Balance(a.Address, "USDTERC20").String())
}

func TestCoinbaseNeedsConfirmations(t *testing.T) {
	t.Parallel()
	c := open(t, "BTC")
	a := account(t, c, "a").Address
	tx := pay(t, c, sim.Tx{Immature: 100, Payments: to(a, one)})
	require.EqualValues(t, 100, c.Transfers(a)[0].Confirmable)
	_, err := c.Reorg(1)
	require.NoError(t, err)
	require.Empty(t, c.Mempool(), "a coinbase dies with its block")
	require.Equal(t, chain.Unknown, state(t, c, tx))
	require.Zero(t, c.ReviveAll())
}

func TestBadPayments(t *testing.T) {
	t.Parallel()
	c, btc := open(t, "ETH"), open(t, "BTC")
	a, b := account(t, c, "a").Address, account(t, btc, "a").Address
	for what, tx := range map[string]sim.Tx{
		"no payment":       {},
		"bad address":      {Payments: to("nowhere", one)},
		"other network":    {Payments: to(b, one)},
		"negative":         {Payments: to(a, dec("-1"))},
		"too fine":         {Payments: []sim.Payment{{To: a, Currency: "USDTERC20", Amount: dec("0.0000001")}}},
		"unknown currency": {Payments: []sim.Payment{{To: a, Currency: "NONE", Amount: one}}},
		"other's currency": {Payments: []sim.Payment{{To: a, Currency: "BTC", Amount: one}}},
		"replaces nothing": {Replaces: "x", Payments: to(a, one)},
	} {
		_, err := c.Send(tx)
		require.Error(t, err, what)
	}
	_, err := btc.Send(sim.Tx{Payments: []sim.Payment{{To: b, Amount: one, Effect: sim.Reverted}}})
	require.Error(t, err)
	require.ErrorIs(t, c.Resend("x"), sim.ErrUnknownTx)
	_, err = c.Outcome("x")
	require.ErrorIs(t, err, sim.ErrUnknownTx)
}

func TestOptionsAreChecked(t *testing.T) {
	t.Parallel()
	for what, o := range map[string]sim.Options{
		"unknown network": {Network: "XYZ", Registry: registry(t)},
		"unknown family":  {Network: "ETH", Registry: registry(t), Family: "none"},
	} {
		_, err := sim.New(o)
		require.Error(t, err, what)
		require.Panics(t, func() { sim.MustNew(o) }, what)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	c := open(t, "ETH")
	a := account(t, c, "a").Address
	var wg sync.WaitGroup
	for i := range 8 {
		k := c.NewNode().Client()
		wg.Go(func() {
			for range 20 {
				_, _ = c.Pay(a, "ETH", one)
				c.Mine(1)
				_, _ = c.Reorg(1)
				_, _ = k.Tip(t.Context())
				_, _ = k.(chain.Mempool).Pending(t.Context(), everything{})
				_, _ = k.Scan(t.Context(), []chain.Block{c.Head()}, everything{}, 3)
				if i == 0 {
					b, _ := c.Snapshot()
					_ = c.Restore(b)
				}
			}
		})
	}
	wg.Wait()
}

// The golden rule: who imports sim compiles no chain's SDK and no driver.
func TestImportsAreLight(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	require.NoError(t, err)
	allowed := []string{
		"github.com/cryptopay-go/cryptopay/chain", "github.com/cryptopay-go/cryptopay/ledger",
		"github.com/shopspring/decimal", "github.com/decred/dcrd/",
	}
	for _, p := range strings.Fields(string(out)) {
		ok := !strings.Contains(strings.Split(p, "/")[0], ".") // the standard library
		for _, a := range allowed {
			ok = ok || strings.HasPrefix(p, a)
		}
		require.True(t, ok, p)
	}
}
